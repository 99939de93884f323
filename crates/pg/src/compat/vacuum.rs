//! Version differences in the server's vacuum: its delays, its truncation and its state.
use pgrx::pg_sys;

use crate::backend;

/// Sleeps if the vacuum has used up its cost limit (`vacuum_cost_delay`), and handles interrupts.
/// Callers must hold no page lock, because other sessions would wait for it during the sleep.
pub fn vacuum_delay_point() {
    // SAFETY: takes no pointers. After an error the server releases the backend's locks and pins.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        pg_sys::vacuum_delay_point();
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        pg_sys::vacuum_delay_point(false);
    }
}

/// Returns whether a vacuum of the index's table may truncate files. A truncation briefly takes an
/// AccessExclusiveLock. Returns false if the setting `vacuum_truncate` of the table or the server
/// forbids it. Also returns false in parallel mode: the lock needs a transaction id, and the server
/// assigns none in this mode.
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

/// Waits until the latch is set, but at most 50 ms. The server's vacuum waits in the same way
/// between its attempts to lock a table for truncation.
///
/// # Safety
/// No lock on a page is held.
pub unsafe fn vacuum_truncate_nap() {
    use pg_sys::WaitEventTimeout::WAIT_EVENT_VACUUM_TRUNCATE as REASON;
    /// `VACUUM_TRUNCATE_LOCK_WAIT_INTERVAL` of the server, in milliseconds.
    const INTERVAL: core::ffi::c_long = 50;
    backend::wait(Some(INTERVAL), REASON);
}

/// Returns whether this backend is running VACUUM.
pub fn in_vacuum() -> bool {
    // SAFETY: a backend's `MyProc` is valid while the backend lives. Only the backend itself
    // changes this flag.
    unsafe { u32::from((*pg_sys::MyProc).statusFlags) & pg_sys::PROC_IN_VACUUM != 0 }
}
