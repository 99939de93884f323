//! State of this backend process: its role, its plan cache and its waits. Also looks up the name of
//! a table's column.
use pgrx::pg_sys::{self, Datum};

use super::{server, varlena};

/// Returns whether this process is a parallel worker, which another backend has started for a query
/// or an index build.
pub fn is_parallel_worker() -> bool {
    server::parallel_worker_number() >= 0
}

/// Returns whether the server is replaying the write-ahead log, as a standby or after a crash.
pub fn in_recovery() -> bool {
    server::RecoveryInProgress()
}

/// Invalidates all cached plans of this backend, so that the server plans their statements again.
pub fn reset_plan_cache() {
    server::ResetPlanCache();
}

/// Waits until another process sets this backend's latch or `milliseconds` have passed, and then
/// handles interrupts. Without `milliseconds` the wait has no limit. pg_stat_activity shows
/// `reason` as the wait event.
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

/// The name of a table's column, as a datum of type `name` in the current memory context; `None` if
/// the table or the attribute number does not exist.
pub fn column_name(table: pg_sys::Oid, column: i16) -> Option<Datum> {
    let name = server::get_attname(table, column, true)?;
    let mut copy = pg_sys::NameData::default();
    for (to, from) in copy.data.iter_mut().zip(name.to_bytes()) {
        *to = *from as core::ffi::c_char;
    }
    Some(varlena::by_reference(copy))
}
