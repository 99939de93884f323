//! Rows that are compared with each other: where they come from, and a cache of them.

use std::hash::{BuildHasher, RandomState};

use crate::key::Tid;
use crate::sort::TempFiles;

/// Access to indexed rows, to tell which are near each other.
pub trait RowSource {
    /// A row's signature, and whatever else decides.
    type Row;

    /// Returns the number of bytes that a row takes.
    fn row_bytes(&self) -> usize;

    /// Returns the row of an entry; `None` if there is none.
    fn fetch(&mut self, entry: Tid) -> Option<Self::Row>;

    /// Returns whether two rows are near each other.
    fn are_near(&self, a: &Self::Row, b: &Self::Row) -> bool;
}

/// Most slots of a cache, however much memory there is: all are allocated at once.
const MOST_SLOTS: usize = 1 << 16;

/// A row by its entry, or none.
type Cached<R> = (Tid, Option<R>);

/// A direct-mapped cache of rows with which others are compared.
pub(super) struct RowCache<S: RowSource> {
    source: S,
    /// The row that was compared last.
    own: Option<Cached<S::Row>>,
    slots: Vec<Option<Cached<S::Row>>>,
    hasher: RandomState,
}

impl<S: RowSource> RowCache<S> {
    /// An empty cache. `memory` is in bytes.
    pub fn new<F: TempFiles>(files: &mut F, source: S, memory: usize) -> Self {
        let bytes = size_of::<Option<Cached<S::Row>>>() + source.row_bytes();
        let count = (memory / bytes).clamp(1, MOST_SLOTS);
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

    /// Returns whether a row is near another, which is kept as long as there is room.
    pub fn are_near(&mut self, own: Tid, other: Tid) -> bool {
        let at = self.hasher.hash_one(other.packed()) as usize % self.slots.len();
        let RowCache { source, slots, .. } = self;
        let own = cached(&mut self.own, source, own);
        let other = cached(&mut slots[at], source, other);
        own.is_some_and(|own| other.is_some_and(|other| source.are_near(own, other)))
    }
}

/// Returns the row of an entry, and keeps it in a slot.
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
