//! Access to heap rows whose signatures are compared ([`RowSource`]), and a cache of such rows.

use std::hash::{BuildHasher, RandomState};

use crate::key::Tid;
use crate::sort::TempFiles;

/// Fetches rows with signatures from the table and decides which of them are near each other.
pub trait RowSource {
    /// Fetched row: the values that a comparison needs.
    type Row;

    /// Returns the number of bytes that a fetched row allocates, in addition to the size of `Row`
    /// itself.
    fn row_bytes(&self) -> usize;

    /// Fetches the row with the address `entry` from an index entry. `None` if it is invisible.
    fn fetch(&mut self, entry: Tid) -> Option<Self::Row>;

    /// Returns whether the signatures of two rows are near each other.
    fn are_near(&self, a: &Self::Row, b: &Self::Row) -> bool;
}

/// Maximum number of slots of a [`RowCache`], which allocates all its slots at once.
const MAX_SLOTS: usize = 1 << 16;

/// Address from an index entry, and the row, or `None` if the row is invisible.
type Cached<R> = (Tid, Option<R>);

/// Direct-mapped cache of rows that were fetched for comparisons.
pub(super) struct RowCache<S: RowSource> {
    source: S,
    /// Row that was passed to the last comparison as `own`.
    own: Option<Cached<S::Row>>,
    /// Cached rows. The hash of an address determines the slot of its row.
    slots: Vec<Option<Cached<S::Row>>>,
    hasher: RandomState,
}

impl<S: RowSource> RowCache<S> {
    /// Creates an empty cache of rows from `source`, which takes up to `memory` bytes.
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

    /// Returns whether the rows with the addresses `own` and `other` are visible and near each
    /// other. Keeps the `own` row until a call with another `own` row, and stores the `other` row
    /// in the cache.
    pub fn are_near(&mut self, own: Tid, other: Tid) -> bool {
        let at = self.hasher.hash_one(other.packed()) as usize % self.slots.len();
        let RowCache { source, slots, .. } = self;
        let own = cached(&mut self.own, source, own);
        let other = cached(&mut slots[at], source, other);
        own.is_some_and(|own| other.is_some_and(|other| source.are_near(own, other)))
    }
}

/// Returns the row with the address `entry`, or `None` if it is invisible. Fetches the row into
/// `slot` unless the slot has it.
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
