//! Callbacks that the server calls when a row of a system catalogue, or a relation, changes.
use pgrx::pg_sys::{self, Datum, Oid};

/// Registers a function that the server calls whenever a row of this system cache
/// (`SysCacheIdentifier`) may have changed. The function must not raise errors. It stays registered
/// as long as the backend lives.
pub fn on_change(cache: pg_sys::SysCacheIdentifier::Type, function: fn()) {
    let argument = Datum::from(function as *const ());
    // SAFETY: the callback and the function stay valid: the server never unloads the library.
    unsafe { pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(changed), argument) };
}

unsafe extern "C-unwind" fn changed(argument: Datum, _cache: i32, _hash: u32) {
    // SAFETY: `on_change` has made the argument of a function of this type.
    let function: fn() = unsafe { core::mem::transmute(argument.cast_mut_ptr::<()>()) };
    function();
}

/// Registers a function like [`on_change`]. The argument of the function identifies the changed
/// row: it is the hash value of the row's key in the system cache, or 0 if any row may have
/// changed.
pub fn on_change_of_row(cache: pg_sys::SysCacheIdentifier::Type, function: fn(u32)) {
    let argument = Datum::from(function as *const ());
    // SAFETY: as in `on_change`.
    unsafe { pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(row_changed), argument) };
}

unsafe extern "C-unwind" fn row_changed(argument: Datum, _cache: i32, hash: u32) {
    // SAFETY: `on_change_of_row` has made the argument of a function of this type.
    let function: fn(u32) = unsafe { core::mem::transmute(argument.cast_mut_ptr::<()>()) };
    function(hash);
}

/// Registers a function that the server calls whenever a relation's entry in the relation cache may
/// have changed. The server passes the OID of the relation; `InvalidOid` stands for all relations.
/// The function must not raise errors. It stays registered as long as the backend lives.
pub fn on_relation_change(function: fn(Oid)) {
    let argument = Datum::from(function as *const ());
    // SAFETY: as in `on_change`.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), argument) };
}

unsafe extern "C-unwind" fn relation_changed(argument: Datum, relation: Oid) {
    // SAFETY: `on_relation_change` has made the argument of a function of this type.
    let function: fn(Oid) = unsafe { core::mem::transmute(argument.cast_mut_ptr::<()>()) };
    function(relation);
}
