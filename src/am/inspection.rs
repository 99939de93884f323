//! Access to an index and its table for the functions that inspect them.
use core::ffi::c_void;
use core::ops::Deref;

use neardup_blocktree::key::{Key, Tid};
use pgrx::{pg_guard, pg_sys};

use super::bands;
use super::index::{Index, name, words_of};
use crate::pg::relation::LockedIndex;
use crate::pg::security_context::AsOwner;
use crate::pg::tid::tid_of;
use crate::storage::pages::IndexPages;

/// The number of words of an index's keys.
pub fn key_words(relations: &LockedIndex) -> usize {
    words_of(relations.index())
}

/// The name of an index, quoted and with its schema where a statement needs that.
pub fn index_name(relations: &LockedIndex) -> String {
    name(relations.index())
}

/// An index with keys of `N` words, as long as its relation is open.
pub struct InspectedIndex<'a, const N: usize>(Index<'a, N>);

impl<'a, const N: usize> Deref for InspectedIndex<'a, N> {
    type Target = Index<'a, N>;

    fn deref(&self) -> &Index<'a, N> {
        &self.0
    }
}

impl<'a, const N: usize> InspectedIndex<'a, N> {
    /// Opens an index that is read once: its pages do not displace others from the buffer cache.
    ///
    /// # Panics
    ///
    /// If its keys do not have `N` words.
    pub fn open_for_one_pass(relations: &'a LockedIndex) -> Self {
        // SAFETY: the ring of buffers lives in the memory of the call, which outlasts the index:
        // what borrows a `LockedIndex` does not outlive the function that has opened it.
        let pages = unsafe { IndexPages::for_one_pass(relations.index()) };
        InspectedIndex(Index::with_pages(pages))
    }

    /// Opens an index.
    ///
    /// # Panics
    ///
    /// If its keys do not have `N` words.
    pub fn open(relations: &'a LockedIndex) -> Self {
        InspectedIndex(Index::open(relations.index()))
    }
}

/// Scan of a table for one of its indexes.
struct TableScan<'a, const N: usize> {
    index: &'a Index<'a, N>,
    row: &'a mut dyn FnMut(Tid, Option<Key<N>>),
}

/// Calls `row` for each row of the table that a new snapshot sees and that belongs into the index,
/// with the key that it has in the index; `None` for NULL.
pub fn each_visible_row<const N: usize>(
    relations: &LockedIndex,
    index: &InspectedIndex<N>,
    row: &mut dyn FnMut(Tid, Option<Key<N>>),
) {
    // SAFETY: both relations are open and locked; the scan ends within this function, and so does
    // the snapshot's registration.
    unsafe {
        let _as_owner = AsOwner::of(relations.table());
        let (table, relation) = (relations.table().raw(), relations.index().raw());
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
        // As amcheck: a snapshot from before the build may see rows that the index left out.
        relations.check_age(snapshot);
        let scan =
            pg_sys::table_beginscan_strat(table, snapshot, 0, core::ptr::null_mut(), true, true);
        // As amcheck does it: with a snapshot of its own, and no constraint to check.
        let info = pg_sys::BuildIndexInfo(relation);
        (*info).ii_Concurrent = true;
        (*info).ii_Unique = false;
        (*info).ii_ExclusionOps = core::ptr::null_mut();
        (*info).ii_ExclusionProcs = core::ptr::null_mut();
        (*info).ii_ExclusionStrats = core::ptr::null_mut();
        let mut state = TableScan { index, row };
        pg_sys::table_index_build_scan(
            table,
            relation,
            info,
            true,
            false,
            Some(scanned_row::<N>),
            (&raw mut state).cast(),
            scan,
        );
        pg_sys::UnregisterSnapshot(snapshot);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scanned_row<const N: usize>(
    _relation: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    isnull: *mut bool,
    _tuple_is_alive: bool,
    state: *mut c_void,
) {
    // SAFETY: the server passes a row of the table and the state of `each_visible_row`.
    unsafe {
        let TableScan { index, row } = &mut *state.cast::<TableScan<N>>();
        let (key, has_fingerprint) = if index.layout.signatures {
            bands::row_key(index, values, isnull)
        } else {
            index.layout.key::<N>(index.relation(), values, isnull)
        };
        row(tid_of(*tid), has_fingerprint.then_some(key));
    }
}
