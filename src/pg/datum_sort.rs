//! Comparison of datums for sorting.
use pgrx::pg_sys;

unsafe extern "C-unwind" {
    fn ssup_datum_unsigned_cmp(
        x: pg_sys::Datum,
        y: pg_sys::Datum,
        ssup: pg_sys::SortSupport,
    ) -> core::ffi::c_int;
}

/// The comparison of two datums as unsigned integers, for sorting: the server's own function, which
/// it recognises by its address and replaces by a specialised sort. It is named without the wrapper
/// that pgrx puts around C functions.
pub fn unsigned_datum_comparator() -> unsafe extern "C-unwind" fn(
    pg_sys::Datum,
    pg_sys::Datum,
    pg_sys::SortSupport,
) -> core::ffi::c_int {
    ssup_datum_unsigned_cmp
}
