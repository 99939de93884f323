//! Sets of features of numbered texts, within a share of `maintenance_work_mem`.
use neardup_blocktree::paged::Paged;
use neardup_blocktree::spilled_lists::SpilledLists;
use neardup_sketch::candidates::similarity_at_least;

use crate::dedup::limits::share;
use neardup_pg::storage::temp::TempSpace;

/// The sets. Each is a sorted list of hashes.
pub struct FeatureSets {
    lists: SpilledLists<TempSpace>,
    /// Low and high half of the offset of each text's list.
    offsets: [Paged<TempSpace>; 2],
    /// Text that the first list of the last comparison belongs to.
    last: Option<u32>,
    a: Vec<u64>,
    b: Vec<u64>,
}

impl FeatureSets {
    pub fn new() -> Self {
        let files = &mut TempSpace;
        let offsets = [(); 2].map(|()| Paged::new(files, 0, share() / 8, |_| 0));
        FeatureSets {
            lists: SpilledLists::new(share()),
            offsets,
            last: None,
            a: Vec::new(),
            b: Vec::new(),
        }
    }

    /// Stores a set and returns its offset.
    pub fn push(&mut self, files: &mut TempSpace, set: &[u64]) -> u64 {
        self.lists.push(files, set)
    }

    /// Numbers the set at an offset.
    pub fn set_number(&mut self, files: &mut TempSpace, number: u32, offset: u64) {
        for (half, offsets) in [offset as u32, (offset >> 32) as u32]
            .into_iter()
            .zip(&mut self.offsets)
        {
            offsets.grow(files, number as usize + 1);
            offsets.set(files, number, half);
        }
    }

    fn offset(&mut self, files: &mut TempSpace, number: u32) -> u64 {
        let [low, high] = &mut self.offsets;
        u64::from(low.get(files, number)) | u64::from(high.get(files, number)) << 32
    }

    /// Returns the Jaccard similarity of two numbered sets if it is at least `min_similarity`.
    pub fn similarity(
        &mut self,
        files: &mut TempSpace,
        [a, b]: [u32; 2],
        min_similarity: f64,
    ) -> Option<f64> {
        if self.last != Some(a) {
            let offset = self.offset(files, a);
            self.lists.read(files, offset, &mut self.a);
            self.last = Some(a);
        }
        let offset = self.offset(files, b);
        self.lists.read(files, offset, &mut self.b);
        similarity_at_least(&self.a, &self.b, min_similarity)
    }

    /// Returns the Jaccard similarity of the sets at two offsets if it is at least
    /// `min_similarity`.
    pub fn similarity_at(
        &mut self,
        files: &mut TempSpace,
        [a, b]: [u64; 2],
        min_similarity: f64,
    ) -> Option<f64> {
        self.last = None;
        self.lists.read(files, a, &mut self.a);
        self.lists.read(files, b, &mut self.b);
        similarity_at_least(&self.a, &self.b, min_similarity)
    }
}
