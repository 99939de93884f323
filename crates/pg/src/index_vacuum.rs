//! Arguments that VACUUM passes to the callbacks of an index access method.
use core::ffi::c_void;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::buffer_strategy::Strategy;
use super::compat;
use super::rel::Rel;
use super::tid::item_pointer;

/// Vacuum of one index, with the statistics that the access method returns to the server.
pub struct IndexVacuum<'a> {
    /// The server's description of the vacuum (`IndexVacuumInfo`).
    pub info: &'a pg_sys::IndexVacuumInfo,
    /// The index that is vacuumed.
    pub index: Rel<'a>,
    /// Ring of buffers into which the vacuum reads pages of the index.
    pub strategy: Strategy<'a>,
    /// Statistics of the vacuum; null before their first use.
    stats: *mut pg_sys::IndexBulkDeleteResult,
}

impl IndexVacuum<'_> {
    /// Wraps the description and the statistics that the server passes.
    ///
    /// # Safety
    /// The description lives as long as the result, with its index open and locked. The statistics
    /// are null or were made by this access method.
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

    /// Returns whether an earlier callback of this vacuum has allocated the statistics.
    pub fn has_stats(&self) -> bool {
        !self.stats.is_null()
    }

    /// The statistics of the vacuum. Allocates them, with zero in all fields, if there are none
    /// yet.
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

    /// Returns the statistics in the form that the server expects; null if there are none.
    pub fn into_stats(self) -> *mut pg_sys::IndexBulkDeleteResult {
        self.stats
    }
}

/// Set of the rows that VACUUM removes. A callback of the server looks up each address.
pub struct DeadRows {
    callback: pg_sys::IndexBulkDeleteCallback,
    state: *mut c_void,
}

impl DeadRows {
    /// Wraps the callback and its state, as the server passes them to `ambulkdelete`.
    ///
    /// # Safety
    /// `state` is valid for `callback` while the value lives.
    pub unsafe fn new(callback: pg_sys::IndexBulkDeleteCallback, state: *mut c_void) -> Self {
        DeadRows { callback, state }
    }

    /// Returns whether VACUUM removes the row at this address.
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

/// Returns whether the server calls `ambulkdelete` only to list the row addresses in an index.
/// CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY do so in their last phase, when the index is
/// still invalid. VACUUM also calls `ambulkdelete` for invalid indexes, but to remove dead rows.
/// Then this function returns false.
pub fn is_validating(index: Rel) -> bool {
    assert!(index.is_neardup_index());
    !index.index_form().is_valid && !compat::in_vacuum()
}

/// Returns whether a vacuum may truncate the file of an index, for which it briefly takes an
/// AccessExclusiveLock. The table's settings can forbid that.
pub fn may_truncate(index: Rel) -> bool {
    assert!(index.is_neardup_index());
    // SAFETY: an open index, whose table is locked as well.
    unsafe { compat::vacuum_may_truncate(index.raw()) }
}
