//! Progress of a build, as `pg_stat_progress_create_index` shows it, and the writer that reports
//! it.
use core::ffi::c_char;

use pgrx::pg_sys;

use neardup_pg::server;
use neardup_pg::storage::bulk::BulkWriter;

/// Phase in `pg_stat_progress_create_index`: reading the table. (The server's own first phase is
/// 1.)
pub const PHASE_SCAN: i64 = 2;
/// Sorting and writing.
pub const PHASE_WRITE: i64 = 3;

/// Memory, in bytes, of the sort of rows without a fingerprint: they are few or all alike.
pub const NULL_MEMORY: usize = 1 << 20;

/// Writes pages and reports progress.
pub type Writer<'a> = BulkWriter<'a, fn(usize, usize)>;

/// Reports a number to the progress view.
pub fn report(parameter: u32, value: i64) {
    // Counts for this backend only, and only while a command reports its progress.
    server::pgstat_progress_update_param(parameter as i32, value);
}

/// Counts the permutations of the index, as the server counts partitions, in the column `tuples`.
pub fn report_permutation(done: usize, permutations: usize) {
    report(pg_sys::PROGRESS_CREATEIDX_TUPLES_TOTAL, permutations as i64);
    report(pg_sys::PROGRESS_CREATEIDX_TUPLES_DONE, done as i64);
}

/// `ambuildphasename`.
pub fn phase_name(phase: pg_sys::int64) -> *mut c_char {
    let name = match phase {
        1 => c"initializing",
        PHASE_SCAN => c"scanning table",
        PHASE_WRITE => c"sorting and writing permutations",
        _ => return core::ptr::null_mut(),
    };
    name.as_ptr().cast_mut()
}
