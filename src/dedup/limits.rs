//! Limits of lists of rows, such as clusters, runs of equal signatures and filters. Each list uses
//! an eighth of `maintenance_work_mem` and then temporary files, and has at most 2^32 - 2 rows.
//! (The search for pairs is limited by `work_mem` instead.)
use pgrx::PgSqlErrorCode;

use neardup_pg::errors::UserError;
use neardup_pg::memory::maintenance_work_mem;

/// Number of lists and arrays that share `maintenance_work_mem`.
const SHARES: usize = 8;

/// Returns the memory limit of one list or array in bytes.
pub fn share() -> usize {
    maintenance_work_mem() / SHARES
}

/// Raises error 54000: there are more rows or nodes than 32-bit numbers can count.
pub fn too_many() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "too many near-duplicates",
    )
    .detail("More than 4294967294 rows have near-duplicates.")
    .hint("Use a smaller radius, or a partial index.")
    .raise()
}
