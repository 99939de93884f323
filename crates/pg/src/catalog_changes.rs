//! Callbacks that the server calls when a row of a system catalogue changes.
use pgrx::pg_sys::{self, Datum};

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
