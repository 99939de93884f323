//! Limits of clusters and of groups of equal signatures: an eighth of `maintenance_work_mem` for
//! each list, 2^32 - 2 rows. (Pairs keep within `work_mem`.)
use pgrx::PgSqlErrorCode;

use neardup_pg::errors::UserError;
use neardup_pg::memory::maintenance_work_mem;

/// Lists and arrays that share `maintenance_work_mem`.
const SHARES: usize = 8;

/// Bytes of memory for one list or array.
pub fn share() -> usize {
    maintenance_work_mem() / SHARES
}

/// 54000: more rows or nodes than there are numbers for.
pub fn too_many() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "too many near-duplicates",
    )
    .detail("There are more than 4294967294 rows that have some.")
    .hint("Use a smaller radius, or a partial index.")
    .raise()
}
