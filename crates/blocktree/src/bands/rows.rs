//! Access to rows for comparisons, and a cache.

use std::hash::{BuildHasher, RandomState};

use crate::key::Tid;
use crate::sort::TempFiles;

/// Source of indexed rows, which decides what rows are near each other.
pub trait RowSource {
    /// Values of a row that a comparison needs.
    type Row;

    /// Returns the size of a row in memory.
    fn row_bytes(&self) -> usize;

    /// Returns the row of an entry, or `None` if it is invisible.
    fn fetch(&mut self, entry: Tid) -> Option<Self::Row>;

    /// Returns whether two rows are near each other.
    fn are_near(&self, a: &Self::Row, b: &Self::Row) -> bool;
}

/// Maximum number of slots of a cache, because all slots are allocated at once.
const MAX_SLOTS: usize = 1 << 16;

/// Entry, and its row if it is visible.
type Cached<R> = (Tid, Option<R>);

/// Direct-mapped cache of rows.
pub(super) struct RowCache<S: RowSource> {
    source: S,
    /// First row of the last comparison.
    own: Option<Cached<S::Row>>,
    slots: Vec<Option<Cached<S::Row>>>,
    hasher: RandomState,
}

impl<S: RowSource> RowCache<S> {
    /// Creates an empty cache. `memory` is in bytes.
    pub fn new<F: TempFiles>(files: &mut F, source: S, memory: usize) -> Self {
        let bytes = size_of::<Option<Cached<S::Row>>>() + source.row_bytes();
        let count = (memory / bytes).clamp(1, MAX_SLOTS);
        let mut slots = Vec::new();
        if slots.try_reserve_exact(count).is_err() {
            files.out_of_memory();
        }
        slots.resize_with(count, || None);
        RowCache {
            source,
            own: None,
            slots,
            hasher: RandomState::new(),
        }
    }

    /// Returns whether two rows are near each other. The cache keeps the second row.
    pub fn are_near(&mut self, own: Tid, other: Tid) -> bool {
        let at = self.hasher.hash_one(other.packed()) as usize % self.slots.len();
        let RowCache { source, slots, .. } = self;
        let own = cached(&mut self.own, source, own);
        let other = cached(&mut slots[at], source, other);
        own.is_some_and(|own| other.is_some_and(|other| source.are_near(own, other)))
    }
}

/// Returns the row of an entry. Fetches it unless it is in the slot.
fn cached<'a, S: RowSource>(
    slot: &'a mut Option<Cached<S::Row>>,
    source: &mut S,
    entry: Tid,
) -> Option<&'a S::Row> {
    if slot.as_ref().is_none_or(|(known, _)| *known != entry) {
        *slot = Some((entry, source.fetch(entry)));
    }
    slot.as_ref().and_then(|(_, row)| row.as_ref())
}
