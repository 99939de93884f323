//! Storage for the feature sets of the texts that the argument `confirm` compares. Uses a share of
//! `maintenance_work_mem`, and a temporary file beyond it.
use neardup_blocktree::paged::Paged;
use neardup_blocktree::spilled_lists::SpilledLists;
use neardup_sketch::candidates::similarity_at_least;

use crate::dedup::limits::share;
use neardup_pg::storage::temp::TempSpace;

/// Feature sets of texts. Each set is a sorted list of feature hashes. [`FeatureSets::push`]
/// returns the offset of a set, by which the set can be read. The caller may also give a number to
/// a set ([`FeatureSets::set_number`]), and then read it by this number.
pub struct FeatureSets {
    lists: SpilledLists<TempSpace>,
    /// Offset of each set that has a number, in words in `lists`, indexed by the number. The first
    /// array has the low 32 bits of each offset, and the second array the high 32 bits.
    offsets: [Paged<TempSpace>; 2],
    /// Number of the set that is in `a`. `None` if the set in `a` has no known number.
    last: Option<u32>,
    /// First set of the last comparison, kept because the next comparison often needs the same set.
    a: Vec<u64>,
    /// Second set of the last comparison.
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

    /// Stores a set, which must be sorted, and returns its offset.
    pub fn push(&mut self, files: &mut TempSpace, set: &[u64]) -> u64 {
        self.lists.push(files, set)
    }

    /// Gives a number to the set at an offset.
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

    /// Returns the Jaccard similarity of the sets with the numbers `a` and `b`. Returns `None` if
    /// it is less than `min_similarity`, or if both sets are empty.
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

    /// Returns the Jaccard similarity of the sets at the offsets `a` and `b`. Returns `None` if it
    /// is less than `min_similarity`, or if both sets are empty.
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
