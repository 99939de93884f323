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
    // SAFETY: the function is that of the value's type, and stays for the backend's life.
    unsafe {
        let function = function.cast_mut();
        pg_sys::FunctionCall2Coll(function, collation, value.datum(), seed).value() as u64
    }
}

/// Raises an error unless values of a type can be hashed.
pub fn require_hash(value_type: pg_sys::Oid) {
    hash_function(value_type);
}

/// The default hash operator family of a type; `InvalidOid` if it has none.
pub fn hash_family(value_type: pg_sys::Oid) -> pg_sys::Oid {
    cached(value_type, pg_sys::TYPECACHE_HASH_OPFAMILY).hash_opf
}

/// An entry of the type cache, with the fields that a flag stands for.
fn cached(value_type: pg_sys::Oid, flag: u32) -> &'static pg_sys::TypeCacheEntry {
    // SAFETY: entries stay for the backend's life.
    unsafe { &*pg_sys::lookup_type_cache(value_type, flag as i32) }
}

/// The extended hash function of a type's default hash operator class; raises an error if it has
/// none.
fn hash_function(value_type: pg_sys::Oid) -> *const pg_sys::FmgrInfo {
    let entry = cached(value_type, pg_sys::TYPECACHE_HASH_EXTENDED_PROC_FINFO);
    let function = &raw const entry.hash_extended_proc_finfo;
    let oid = entry.hash_extended_proc_finfo.fn_oid;
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
