//! Plan of a search for all pairs of near signatures: whether it compares the rows that have the
//! same hash in a band (group of positions of a signature), or all rows of a scope (rows with equal
//! values in the index columns before the last). A mismatch is a position at which two signatures
//! differ.
//!
//! Up to the number of mismatches that the bands guarantee, the search compares the sketches of
//! rows that have the same hash in a band, one band after the other. It reports a pair once for
//! each band that the two rows share, because the number of shared bands is needed to reject pairs
//! by their sketches ([`Bands`]). Beyond the guarantee, the search compares the sketches of all
//! rows of a scope.

use std::rc::Rc;

use super::{Bands, HASH_BITS, sketch};
use crate::block_layout::BlockLayout;
use crate::pairs::{Pair, PairPlan, PassOverlap};
use crate::plan::Probe;

/// Plan of a search of an index on signatures for all pairs with at most some number of mismatches.
#[derive(Clone, Debug)]
pub struct BandPairPlan {
    bands: Rc<Bands>,
    mismatches: u32,
    /// True if only rows that share a band are compared. False if all rows of a scope are compared
    /// with each other.
    by_bands: bool,
}

impl BandPairPlan {
    /// Creates a plan that finds all pairs of signatures with at most `mismatches` mismatches.
    pub fn exact(bands: Rc<Bands>, mismatches: usize) -> Self {
        BandPairPlan {
            by_bands: mismatches <= bands.guaranteed(),
            bands,
            mismatches: mismatches as u32,
        }
    }

    /// Creates a plan that compares only rows that share a band. If `mismatches` is at least the
    /// number of bands, the search misses the pairs that share no band. [`Bands::recall`] estimates
    /// the share of the pairs that it finds.
    pub fn by_bands(bands: Rc<Bands>, mismatches: usize) -> Self {
        BandPairPlan {
            by_bands: true,
            bands,
            mismatches: mismatches as u32,
        }
    }

    /// Returns the maximum number of mismatches of a pair.
    pub fn mismatches(&self) -> usize {
        self.mismatches as usize
    }

    /// Returns whether the search compares only rows that share a band, and reports a pair once for
    /// each shared band. Otherwise it compares all rows of a scope and reports each pair once.
    pub fn is_by_bands(&self) -> bool {
        self.by_bands
    }

    /// Returns the bands of the index.
    pub fn bands(&self) -> &Rc<Bands> {
        &self.bands
    }

    /// Returns the number of permutations that the search reads.
    pub fn permutations(&self) -> usize {
        if self.by_bands { self.bands.count() } else { 1 }
    }

    /// Returns the plan in the form that the search [`Pairs`](crate::pairs::Pairs) needs. `layout`
    /// is the layout of the index. In this search, the distance of a pair is the number of bits in
    /// which the two sketches differ, a lower bound of the mismatches.
    pub fn passes<const N: usize>(&self, layout: &BlockLayout<N>) -> PairPlan<N> {
        let bits = if self.by_bands { HASH_BITS } else { 0 };
        PairPlan {
            radius: self.mismatches,
            passes: (0..self.permutations())
                .map(|permutation| Probe::new(layout, permutation, bits, 0))
                .collect(),
            cost: 0.0,
            comparisons: 0.0,
            overlap: PassOverlap::EachReports,
            ignores_hashes: !self.by_bands,
        }
    }

    /// Returns a lower bound of the mismatches of a pair that the search reported.
    ///
    /// If the search is by bands, the caller must subtract the number of bands in which the hashes
    /// of the two rows are equal. The result counts one mismatch for each band whose sketch bits
    /// are equal in both rows, as if the hashes of the band differed. If the hashes are in fact
    /// equal, this mismatch does not exist. The caller knows the number of these bands, because the
    /// search reports a pair once for each of them.
    pub fn least_mismatches<const N: usize>(&self, pair: &Pair<N>) -> u32 {
        if !self.by_bands {
            return pair.distance;
        }
        let [a, b] = pair.fingerprints.each_ref().map(sketch);
        let (bits, alike) = self.bands.difference(&a, &b);
        bits + alike
    }
}
