//! Hash function of values, for the hash operator classes of all types.
use pgrx::pg_sys;

use neardup_pg::fmgr::Call;
use neardup_pg::hashing;

/// Hashes bytes by the server's hash function. If the called SQL function has one argument, returns
/// 32 bits, for hash joins, grouping and hash indexes. If it has a seed as its second argument,
/// returns 64 bits, for partitioning by hash.
#[inline(always)]
pub fn hash_of_bytes(call: &Call, bytes: &[u8]) -> pg_sys::Datum {
    match call.arg_count() {
        1 => hashing::hash_bytes(bytes).into(),
        _ => hashing::hash_bytes_extended(bytes, call.int8(1) as u64).into(),
    }
}
