//! Workers of builds.
use pgrx::pg_sys;

/// Tells the server that the access method builds an index with workers. Servers before version 17
/// do not ask.
pub fn offer_parallel_builds(am: &mut pg_sys::IndexAmRoutine) {
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        am.amcanbuildparallel = true;
    }
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let _ = am;
}

/// Number of workers that the planner wants for a new index. It depends on the table's size, the
/// settings, the memory, and whether expressions may run in workers at all. The server itself asks
/// for btrees and, since version 17, for all access methods that build with workers.
pub fn build_workers(info: &pg_sys::IndexInfo, table: pg_sys::Oid, index: pg_sys::Oid) -> i32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        let _ = info;
        // SAFETY: raises an error if there are no such relations.
        unsafe { pg_sys::plan_create_index_workers(table, index) }
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        let _ = (table, index);
        info.ii_ParallelWorkers
    }
}
