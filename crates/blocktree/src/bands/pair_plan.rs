//! Plan of a search for all pairs of near signatures.
//!
//! Up to what the bands guarantee, the search compares the rows that have the same hash in a band,
//! band by band. It reports a pair once for each band that the two rows share, because each shared
//! band tells more about the pair ([`Bands`]). Beyond the guarantee, the search compares the
//! sketches of all rows of a scope.

use std::rc::Rc;

use super::{Bands, HASH_BITS, sketch};
use crate::block_layout::BlockLayout;
use crate::pairs::{Pair, PairPlan, PassOverlap};
use crate::plan::Probe;

/// Plan of a search for all pairs of signatures with at most some number of mismatches.
#[derive(Clone, Debug)]
pub struct BandPairPlan {
    bands: Rc<Bands>,
    mismatches: u32,
    by_bands: bool,
}

impl BandPairPlan {
    /// Search that finds all pairs.
    pub fn exact(bands: Rc<Bands>, mismatches: usize) -> Self {
        BandPairPlan {
            by_bands: mismatches <= bands.guaranteed(),
            bands,
            mismatches: mismatches as u32,
        }
    }

    /// Search by bands. Beyond what the bands guarantee it misses pairs that share none
    /// ([`Bands::recall`]).
    pub fn by_bands(bands: Rc<Bands>, mismatches: usize) -> Self {
        BandPairPlan {
            by_bands: true,
            bands,
            mismatches: mismatches as u32,
        }
    }

    /// Maximum number of mismatches of a pair.
    pub fn mismatches(&self) -> usize {
        self.mismatches as usize
    }

    /// Returns whether the search reports a pair once for each shared band. Otherwise it reports a
    /// pair once, and the pair may share no band.
    pub fn is_by_bands(&self) -> bool {
        self.by_bands
    }

    /// The bands.
    pub fn bands(&self) -> &Rc<Bands> {
        &self.bands
    }

    /// Number of permutations that the search reads.
    pub fn permutations(&self) -> usize {
        if self.by_bands { self.bands.count() } else { 1 }
    }

    /// Passes of the search over an index of this layout. Distances are numbers of different bits
    /// of sketches. Rows of a pair have at least as many mismatches.
    pub fn passes<const N: usize>(&self, layout: &BlockLayout<N>) -> PairPlan<N> {
        let bits = if self.by_bands { HASH_BITS } else { 0 };
        PairPlan {
            radius: self.mismatches,
            probes: (0..self.permutations())
                .map(|permutation| Probe::new(layout, permutation, bits, 0))
                .collect(),
            cost: 0.0,
            comparisons: 0.0,
            overlap: PassOverlap::EachReports,
            ignores_hashes: !self.by_bands,
        }
    }

    /// Returns a lower bound for the mismatches of a pair that shares no band. Each shared band
    /// lowers the bound by one.
    pub fn least_mismatches<const N: usize>(&self, pair: &Pair<N>) -> u32 {
        if !self.by_bands {
            return pair.distance;
        }
        let [a, b] = pair.fingerprints.each_ref().map(sketch);
        let (bits, alike) = self.bands.difference(&a, &b);
        bits + alike
    }
}
