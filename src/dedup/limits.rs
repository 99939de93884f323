//! Limits of clusters and of runs of equal signatures: each list uses an eighth of
//! `maintenance_work_mem`, and there are at most 2^32 - 2 rows. (Pairs are limited by `work_mem`.)
use pgrx::PgSqlErrorCode;

use neardup_pg::errors::UserError;
use neardup_pg::memory::maintenance_work_mem;

/// Number of lists and arrays that share `maintenance_work_mem`.
const SHARES: usize = 8;

/// Returns the memory of one list or array in bytes.
pub fn share() -> usize {
    maintenance_work_mem() / SHARES
}

/// Raises error 54000: there are more rows or nodes than numbers.
pub fn too_many() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "too many near-duplicates",
    )
    .detail("There are more than 4294967294 rows that have some.")
    .hint("Use a smaller radius, or a partial index.")
    .raise()
}
