//! The server's hashes: of bytes, and of SQL values by the default hash operator classes of their
//! types.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::catalog;
use super::errors::UserError;
use super::value::Value;

unsafe extern "C-unwind" {
    // The server's hash functions (common/hashfn.h). They cannot raise errors, so they are
    // declared here without the wrapper that pgrx puts around C functions.
    #[link_name = "hash_bytes"]
    fn server_hash_bytes(key: *const u8, length: core::ffi::c_int) -> u32;
    #[link_name = "hash_bytes_extended"]
    fn server_hash_bytes_extended(key: *const u8, length: core::ffi::c_int, seed: u64) -> u64;
}

/// The server's 32-bit hash of bytes (`hash_bytes`).
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u32 {
    // SAFETY: the pointer and the length describe one slice.
    unsafe { server_hash_bytes(bytes.as_ptr(), bytes.len() as core::ffi::c_int) }
}

/// The server's 64-bit hash of bytes with a seed (`hash_bytes_extended`).
#[inline]
pub fn hash_bytes_extended(bytes: &[u8], seed: u64) -> u64 {
    // SAFETY: the pointer and the length describe one slice.
    unsafe { server_hash_bytes_extended(bytes.as_ptr(), bytes.len() as core::ffi::c_int, seed) }
}

/// Returns the 64-bit hash of an SQL value under a collation. The hash function is from the default
/// hash operator class of the value's type, so equal values have equal hashes. Raises error 42883
/// if the type has no extended hash function.
pub fn hash_value(value: Value, collation: pg_sys::Oid) -> u64 {
    let function = hash_function(value.type_oid());
    let seed = pg_sys::Datum::from(0_i64);
    // SAFETY: the function is for the value's type, and its record lives as long as the backend.
    unsafe {
        let function = function.cast_mut();
        pg_sys::FunctionCall2Coll(function, collation, value.datum(), seed).value() as u64
    }
}

/// Raises error 42883 unless [`hash_value`] accepts values of this type.
pub fn require_hash(value_type: pg_sys::Oid) {
    hash_function(value_type);
}

/// The OID of the default hash operator family of a type; `InvalidOid` if the type has none.
pub fn hash_family(value_type: pg_sys::Oid) -> pg_sys::Oid {
    catalog::cached_type(value_type, pg_sys::TYPECACHE_HASH_OPFAMILY).hash_opf
}

/// Returns the extended (64-bit) hash function for values of a type, from the type's default hash
/// operator class. Raises error 42883 if there is none.
fn hash_function(value_type: pg_sys::Oid) -> *const pg_sys::FmgrInfo {
    let flag = pg_sys::TYPECACHE_HASH_EXTENDED_PROC_FINFO;
    let entry = catalog::cached_type(value_type, flag);
    let function = &raw const entry.hash_extended_proc_finfo;
    let oid = entry.hash_extended_proc_finfo.fn_oid;
    if oid != pg_sys::InvalidOid {
        return function;
    }
    // The type cache finds the function for a range, but not for a domain over a range.
    let base = catalog::base_type(value_type);
    if base != value_type {
        return hash_function(base);
    }
    UserError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
        format!(
            "could not identify an extended hash function for type {}",
            catalog::type_name(value_type)
        ),
    )
    .detail(
        "A neardup index stores a hash of the values in all columns before the fingerprint column.",
    )
    .hint("Use columns whose type has a default hash operator class.")
    .raise()
}
