//! State of the backend process, and a lookup of column names.
use pgrx::pg_sys::{self, Datum};

use super::{server, varlena};

/// Returns true in a worker of a parallel query.
pub fn is_parallel_worker() -> bool {
    server::parallel_worker_number() >= 0
}

/// Returns whether the server is a standby or is recovering from a crash.
pub fn in_recovery() -> bool {
    server::RecoveryInProgress()
}

/// Invalidates all cached plans of this backend.
pub fn reset_plan_cache() {
    server::ResetPlanCache();
}

/// Waits until another process wakes this one or the time has passed, and handles interrupts.
/// pg_stat_activity shows `reason` as the wait event.
pub fn wait(milliseconds: Option<core::ffi::c_long>, reason: u32) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_EXIT_ON_PM_DEATH;
    let events = milliseconds.map_or(events, |_| events | pg_sys::WL_TIMEOUT);
    // SAFETY: `MyLatch` is this backend's own latch.
    unsafe {
        let latch = pg_sys::MyLatch;
        pg_sys::WaitLatch(latch, events as i32, milliseconds.unwrap_or(0), reason);
        pg_sys::ResetLatch(latch);
    }
    pgrx::check_for_interrupts!();
}

/// The name of a column as a value of type `name`; `None` if the column does not exist.
pub fn column_name(table: pg_sys::Oid, column: i16) -> Option<Datum> {
    let name = server::get_attname(table, column, true)?;
    let mut copy = pg_sys::NameData::default();
    for (to, from) in copy.data.iter_mut().zip(name.to_bytes()) {
        *to = *from as core::ffi::c_char;
    }
    Some(varlena::by_reference(copy))
}
