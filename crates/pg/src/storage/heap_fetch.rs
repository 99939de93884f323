//! Fetches the heap rows of index entries, as a snapshot sees them.
//!
//! The visibility map cannot be used here. It marks all rows of a page as visible, but VACUUM may
//! have removed a row since its entry was copied from a leaf. Only a reader that keeps the leaf
//! pinned may trust the map. Besides, joins on `ctid` need the address of the visible version of
//! the row, while the address in the index may be that of an earlier version in the same chain.
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use crate::compat::OldSnapshotCheck;
use crate::rel::Rel;
use crate::slot::Slot;
use crate::tid::{item_pointer, tid_of};

unsafe extern "C-unwind" {
    /// Takes a predicate lock on a relation (storage/predicate.h). pgrx has no binding for it.
    fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
}

/// Fetches rows of one table by the addresses in its index entries. Finds the row versions that are
/// visible to the snapshot that was active when this value was made.
pub struct HeapFetch<'a> {
    table: Rel<'a>,
    snapshot: pg_sys::Snapshot,
    /// Check that is applied to the pages of the table. It raises an error if a page may have lost
    /// a row that the snapshot sees.
    check: OldSnapshotCheck,
    /// The server's state of fetches from this table.
    fetch: *mut pg_sys::IndexFetchTableData,
    /// Slot that holds the row that was found last.
    slot: Slot<'a>,
}

impl<'a> HeapFetch<'a> {
    /// Prepares to fetch rows of a table as the active snapshot sees them.
    pub fn new(table: Rel<'a>) -> Self {
        // SAFETY: the table is open as long as this lives. A function is called with an active
        // snapshot. Registering it keeps it after it is no longer active.
        let (snapshot, check, fetch) = unsafe {
            let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetActiveSnapshot());
            (
                snapshot,
                OldSnapshotCheck::new(&*snapshot),
                pg_sys::table_index_fetch_begin(table.raw()),
            )
        };
        HeapFetch {
            table,
            snapshot,
            check,
            fetch,
            slot: Slot::new(table),
        }
    }

    /// Fetches the row of an index entry with this address. Returns the address of the row version
    /// that the snapshot sees, which is the `ctid` that SQL queries join on. `None` if the snapshot
    /// sees no version. The row stays in the slot until the next call.
    pub fn find(&mut self, entry: Tid) -> Option<Tid> {
        let mut pointer = item_pointer(entry);
        let (mut again, mut all_dead) = (false, false);
        // SAFETY: the table is open; MVCC snapshots see at most one row of a chain.
        let found = unsafe {
            pg_sys::table_index_fetch_tuple(
                self.fetch,
                &raw mut pointer,
                self.snapshot,
                self.slot.raw(),
                &raw mut again,
                &raw mut all_dead,
            )
        };
        if !found && self.check.is_active() {
            self.check_page();
        }
        found.then(|| tid_of(self.slot.address()))
    }

    /// Raises error 72000 if the table page that was read last may have lost a row that the
    /// snapshot sees. The server does not make this check when it fetches a row by its address, but
    /// only when it reads a page of an index or scans the whole table. A check of the index pages
    /// would miss such a loss, because pruning removes rows from a table page without a change in
    /// any index.
    fn check_page(&self) {
        let table = self.table.raw();
        // SAFETY: the table is open. The fetch of a heap keeps its last page pinned.
        unsafe {
            if (*table).rd_tableam == pg_sys::GetHeapamTableAmRoutine() {
                let buffer = (*self.fetch.cast::<pg_sys::IndexFetchHeapData>()).xs_cbuf;
                self.check.test(table, pg_sys::BufferGetLSNAtomic(buffer));
            }
        }
    }

    /// Slot with the row that [`HeapFetch::find`] has found last.
    pub fn slot(&self) -> &Slot<'a> {
        &self.slot
    }
}

impl Drop for HeapFetch<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: this value made both. After an error the server releases their resources.
            unsafe {
                pg_sys::table_index_fetch_end(self.fetch);
                pg_sys::UnregisterSnapshot(self.snapshot);
            }
        }
    }
}

/// Records, for serializable transactions, that this transaction has read a whole relation.
pub fn note_read(relation: Rel) {
    // SAFETY: the relation is open, and a function is called with an active snapshot.
    unsafe {
        let (relation, snapshot) = (relation.raw(), pg_sys::GetActiveSnapshot());
        pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| PredicateLockRelation(relation, snapshot))
    }
}

/// Returns whether a row that this transaction has just written was written speculatively, as by
/// `INSERT ... ON CONFLICT`. The server may remove such a row and write it again. Returns true for
/// a table that is not a heap, where this is unknown.
pub fn is_speculative(table: Rel, tid: Tid) -> bool {
    let table = table.raw();
    // SAFETY: the table is open. A used line pointer within the page's limit refers to a row on
    // the page; a row of a transaction in progress is never removed.
    unsafe {
        if (*table).rd_tableam != pg_sys::GetHeapamTableAmRoutine() {
            return true;
        }
        let buffer = pg_sys::ReadBuffer(table, tid.block);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
        let page = pg_sys::BufferGetPage(buffer);
        assert!((1..=pg_sys::PageGetMaxOffsetNumber(page) as u16).contains(&tid.offset));
        let line = pg_sys::PageGetItemId(page, tid.offset);
        assert!((*line).lp_len() > 0, "a row that was just written");
        let item = pg_sys::PageGetItem(page, line);
        let header = item.cast::<pg_sys::HeapTupleHeaderData>();
        let speculative = u32::from((*header).t_ctid.ip_posid) == pg_sys::SpecTokenOffsetNumber;
        pg_sys::UnlockReleaseBuffer(buffer);
        speculative
    }
}
