//! Plan of a search for all pairs of signatures.

use std::rc::Rc;

use super::Bands;

/// Plan of a search for all pairs of signatures with some number of mismatches or fewer.
#[derive(Clone, Debug)]
pub struct BandPairPlan {
    pub(super) bands: Rc<Bands>,
    pub(super) mismatches: u32,
    pub(super) by_bands: bool,
}

impl BandPairPlan {
    /// A search that finds all of them: by bands up to what these guarantee, and beyond by
    /// comparing the sketches of each two rows.
    pub fn exact(bands: Rc<Bands>, mismatches: usize) -> Self {
        BandPairPlan {
            by_bands: mismatches <= bands.guaranteed(),
            bands,
            mismatches: mismatches as u32,
        }
    }

    /// A search by bands, which beyond what these guarantee misses pairs that share none
    /// ([`Bands::recall`]).
    pub fn by_bands(bands: Rc<Bands>, mismatches: usize) -> Self {
        BandPairPlan {
            by_bands: true,
            bands,
            mismatches: mismatches as u32,
        }
    }

    /// The most mismatches of a pair.
    pub fn mismatches(&self) -> usize {
        self.mismatches as usize
    }

    /// Returns whether pairs come once for each band that they share; otherwise they come once, and
    /// may share none.
    pub fn is_by_bands(&self) -> bool {
        self.by_bands
    }

    /// The bands.
    pub fn bands(&self) -> &Rc<Bands> {
        &self.bands
    }

    /// Number of tables that the search reads.
    pub fn tables(&self) -> usize {
        if self.by_bands { self.bands.count() } else { 1 }
    }
}
