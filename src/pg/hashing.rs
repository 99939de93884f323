//! Hashes of values by the default hash operator classes of their types.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::catalog;
use super::errors::UserError;
use super::value::Value;

/// The hash of a value by a collation, the same for equal values. Raises an error if the type has
/// no extended hash function.
pub fn hash_value(value: Value, collation: pg_sys::Oid) -> u64 {
    let function = hash_function(value.type_oid());
    let seed = pg_sys::Datum::from(0_i64);
    // SAFETY: the type cache's entries stay for the backend's life; the function is that of the
    // value's type.
    unsafe { pg_sys::FunctionCall2Coll(function, collation, value.datum(), seed).value() as u64 }
}

/// Raises an error unless values of a type can be hashed.
pub fn require_hash(value_type: pg_sys::Oid) {
    hash_function(value_type);
}

/// The default hash operator family of a type; `InvalidOid` if it has none.
pub fn hash_family(value_type: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a look-up in the type cache.
    unsafe {
        let flag = pg_sys::TYPECACHE_HASH_OPFAMILY as i32;
        (*pg_sys::lookup_type_cache(value_type, flag)).hash_opf
    }
}

/// The extended hash function of a type's default hash operator class; raises an error if it has
/// none.
fn hash_function(value_type: pg_sys::Oid) -> *mut pg_sys::FmgrInfo {
    // SAFETY: a look-up in the type cache.
    let (function, oid) = unsafe {
        let flag = pg_sys::TYPECACHE_HASH_EXTENDED_PROC_FINFO as i32;
        let entry = pg_sys::lookup_type_cache(value_type, flag);
        let function = &raw mut (*entry).hash_extended_proc_finfo;
        (function, (*function).fn_oid)
    };
    if oid != pg_sys::InvalidOid {
        return function;
    }
    // The type cache knows the elements of a range, but not of a domain over one.
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
    .detail("A neardup index keeps the hash of columns before the fingerprint.")
    .hint("These need a type with a default hash operator class.")
    .raise()
}
