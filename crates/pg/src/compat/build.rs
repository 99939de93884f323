//! Version differences in parallel index builds.
use pgrx::pg_sys;

/// Declares in the access method's description that it can build an index with workers. Before
/// version 17 the description has no such field, and this does nothing.
pub fn offer_parallel_builds(am: &mut pg_sys::IndexAmRoutine) {
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        am.amcanbuildparallel = true;
    }
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let _ = am;
}

/// Number of workers that the server's planner wants for building an index; 0 for none. The number
/// depends on the table's size, the settings, the memory, and whether workers may evaluate the
/// expressions. Since version 17 the server has already computed the number for access methods that
/// declare parallel builds.
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
