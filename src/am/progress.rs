//! Progress of an index build, as `pg_stat_progress_create_index` shows it. A build writes several
//! permutations (ordered copies of all keys) one after the other.
use core::ffi::c_char;

use pgrx::pg_sys;

use neardup_pg::server;
use neardup_pg::storage::bulk::BulkWriter;

/// Number of the build phase that reads the table. (Phase 1 is the server's own.)
pub const PHASE_SCAN: i64 = 2;
/// Number of the build phase that sorts the keys and writes the index.
pub const PHASE_WRITE: i64 = 3;

/// Writer of a new index that reports each finished permutation.
pub type Writer<'a> = BulkWriter<'a, fn(usize, usize)>;

/// Sets a number in the server's progress view. `parameter` is the index of the number
/// (`PROGRESS_...`).
pub fn report(parameter: u32, value: i64) {
    // Has an effect only while this backend runs a command that reports its progress.
    server::pgstat_progress_update_param(parameter as i32, value);
}

/// Reports how many permutations of a new index are written. The view shows them in the columns
/// `tuples_total` and `tuples_done`.
pub fn report_permutation(done: usize, permutations: usize) {
    report(pg_sys::PROGRESS_CREATEIDX_TUPLES_TOTAL, permutations as i64);
    report(pg_sys::PROGRESS_CREATEIDX_TUPLES_DONE, done as i64);
}

/// Returns the name of a build phase (`ambuildphasename`); null for an unknown number.
pub fn phase_name(phase: pg_sys::int64) -> *mut c_char {
    let name = match phase {
        1 => c"initializing",
        PHASE_SCAN => c"scanning table",
        PHASE_WRITE => c"sorting and writing permutations",
        _ => return core::ptr::null_mut(),
    };
    name.as_ptr().cast_mut()
}
