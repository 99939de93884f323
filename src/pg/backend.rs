//! State of the backend process, and catalogue look-ups.
use pgrx::pg_sys::{self, Datum};

/// Returns true in a worker of a parallel query.
pub fn is_parallel_worker() -> bool {
    // SAFETY: reads a variable of the process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Returns whether the server is a standby, or recovers from a crash.
pub fn in_recovery() -> bool {
    // SAFETY: asks for the server's state.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Marks all cached plans of this backend as no longer valid.
pub fn reset_plan_cache() {
    // SAFETY: allowed at any time.
    unsafe { pg_sys::ResetPlanCache() };
}

/// The name of a column as a value of type `name`; `None` for a column that does not exist.
pub fn column_name(table: pg_sys::Oid, column: i16) -> Option<Datum> {
    // SAFETY: a catalogue look-up; the name is copied to memory of a whole `NameData`.
    unsafe {
        let name = pg_sys::get_attname(table, column, true);
        (!name.is_null()).then(|| {
            let copy = pg_sys::palloc0(size_of::<pg_sys::NameData>());
            pg_sys::namestrcpy(copy.cast(), name);
            Datum::from(copy)
        })
    }
}
