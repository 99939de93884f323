//! The server's vacuum.
use pgrx::pg_sys;

use crate::backend;

/// Waits as `vacuum_cost_delay` asks, and handles interrupts. Callers must hold no page lock:
/// others would wait for it just as long.
pub fn vacuum_delay_point() {
    // SAFETY: takes no pointers; an error releases what is held.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        pg_sys::vacuum_delay_point();
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        pg_sys::vacuum_delay_point(false);
    }
}

/// Returns whether a vacuum of this index's table may briefly take the strongest lock to give
/// space back. It may not if the table's option `vacuum_truncate` forbids it, nor in parallel
/// mode, because such a lock then needs a transaction id.
///
/// # Safety
/// The index is open, and its table is locked.
pub unsafe fn vacuum_may_truncate(index: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise. The options are null or table options.
    unsafe {
        if pg_sys::IsInParallelMode() {
            return false;
        }
        let table = (*(*index).rd_index).indrelid;
        let table = pg_sys::table_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        let options = (*table).rd_options.cast::<pg_sys::StdRdOptions>().as_ref();
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        let may = options.is_none_or(|options| options.vacuum_truncate);
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        let may = options
            .filter(|options| options.vacuum_truncate_set)
            .map_or(pg_sys::vacuum_truncate, |options| options.vacuum_truncate);
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        may
    }
}

/// Waits for a moment, as a vacuum does between its attempts to lock a table for truncation.
///
/// # Safety
/// No lock on a page is held.
pub unsafe fn vacuum_truncate_nap() {
    use pg_sys::WaitEventTimeout::WAIT_EVENT_VACUUM_TRUNCATE as REASON;
    /// VACUUM_TRUNCATE_LOCK_WAIT_INTERVAL of the server, in milliseconds.
    const INTERVAL: core::ffi::c_long = 50;
    backend::wait(Some(INTERVAL), REASON);
}

/// Returns whether this backend is in a vacuum.
pub fn in_vacuum() -> bool {
    // SAFETY: a backend has its entry from its start to its end, and changes these flags alone.
    unsafe { u32::from((*pg_sys::MyProc).statusFlags) & pg_sys::PROC_IN_VACUUM != 0 }
}
