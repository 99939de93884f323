//! Arguments that VACUUM passes to an access method.
use core::ffi::c_void;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::buffer_strategy::Strategy;
use super::compat;
use super::rel::Rel;
use super::tid::item_pointer;

/// Vacuum of an index, with the statistics that it returns.
pub struct IndexVacuum<'a> {
    /// The server's description of the vacuum.
    pub info: &'a pg_sys::IndexVacuumInfo,
    /// The index.
    pub index: Rel<'a>,
    /// The ring of buffers for its reads.
    pub strategy: Strategy<'a>,
    stats: *mut pg_sys::IndexBulkDeleteResult,
}

impl IndexVacuum<'_> {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// The vacuum lives as long as the result, with its index open and locked. The statistics are
    /// null or were made by this access method.
    pub unsafe fn new(
        info: *mut pg_sys::IndexVacuumInfo,
        stats: *mut pg_sys::IndexBulkDeleteResult,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let info = &*info;
            IndexVacuum {
                info,
                index: Rel::new(info.index),
                strategy: Strategy::new(info.strategy),
                stats,
            }
        }
    }

    /// Returns whether an earlier call has allocated the statistics.
    pub fn has_stats(&self) -> bool {
        !self.stats.is_null()
    }

    /// The statistics. Allocates them if there are none yet.
    pub fn stats(&mut self) -> &mut pg_sys::IndexBulkDeleteResult {
        // SAFETY: null or valid statistics; all fields of new statistics are zero.
        unsafe {
            if self.stats.is_null() {
                let size = size_of::<pg_sys::IndexBulkDeleteResult>();
                self.stats = pg_sys::palloc0(size).cast();
            }
            &mut *self.stats
        }
    }

    /// The statistics for the server; null if there are none.
    pub fn into_stats(self) -> *mut pg_sys::IndexBulkDeleteResult {
        self.stats
    }
}

/// Set of rows that VACUUM removes.
pub struct DeadRows {
    callback: pg_sys::IndexBulkDeleteCallback,
    state: *mut c_void,
}

impl DeadRows {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// `state` is valid for `callback` while the value lives.
    pub unsafe fn new(callback: pg_sys::IndexBulkDeleteCallback, state: *mut c_void) -> Self {
        DeadRows { callback, state }
    }

    /// Returns whether a row is dead.
    pub fn contain(&self, tid: Tid) -> bool {
        let mut pointer = item_pointer(tid);
        self.callback.is_some_and(|callback| {
            // SAFETY: the state belongs to the callback.
            unsafe {
                pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                    callback(&raw mut pointer, self.state)
                })
            }
        })
    }
}

/// Returns whether the server calls `ambulkdelete` only to list the rows of an index, as in the
/// last phase of CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY. VACUUM also calls it for
/// invalid indexes, with dead rows to remove.
pub fn is_validating(index: Rel) -> bool {
    assert!(index.is_neardup_index());
    !index.index_form().is_valid && !compat::in_vacuum()
}

/// Returns whether a vacuum of an index's table may truncate files, which briefly takes the
/// strongest lock.
pub fn may_truncate(index: Rel) -> bool {
    assert!(index.is_neardup_index());
    // SAFETY: an open index, whose table is locked as well.
    unsafe { compat::vacuum_may_truncate(index.raw()) }
}
