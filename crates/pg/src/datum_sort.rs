//! Comparison functions with which the server sorts datums.
use core::cmp::Ordering;
use core::ffi::c_int;

use pgrx::pg_sys::{self, Datum, SortSupport};

unsafe extern "C-unwind" {
    fn ssup_datum_unsigned_cmp(
        x: pg_sys::Datum,
        y: pg_sys::Datum,
        ssup: pg_sys::SortSupport,
    ) -> core::ffi::c_int;
}

/// Returns the server's function that compares two datums as unsigned integers, for a sort. The
/// server recognises this function by its address, and then uses a specialised sort. pgrx's wrapper
/// of the function would have another address, so it is not used here.
pub fn unsigned_datum_comparator() -> unsafe extern "C-unwind" fn(
    pg_sys::Datum,
    pg_sys::Datum,
    pg_sys::SortSupport,
) -> core::ffi::c_int {
    ssup_datum_unsigned_cmp
}

/// Sets up `support`, the server's description of a sort, for values that consist of `W` 64-bit
/// words and are passed by reference. Values are compared word by word, as unsigned integers. If
/// the server requests abbreviated keys, the abbreviated key of a value is its first word.
///
/// # Safety
/// The values to sort have `W` words and are aligned to eight bytes.
pub unsafe fn sort_words<const W: usize>(support: &mut pg_sys::SortSupportData) {
    support.comparator = Some(compare::<W>);
    if support.abbreviate {
        support.comparator = Some(unsigned_datum_comparator());
        support.abbrev_converter = Some(first_word::<W>);
        support.abbrev_abort = Some(never);
        support.abbrev_full_comparator = Some(compare::<W>);
    }
}

unsafe extern "C-unwind" fn compare<const W: usize>(a: Datum, b: Datum, _: SortSupport) -> c_int {
    // SAFETY: the caller of `sort_words` promised values of this length.
    let [a, b] = [a, b].map(|value| unsafe { &*value.cast_mut_ptr::<[u64; W]>() });
    match a.cmp(b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

unsafe extern "C-unwind" fn first_word<const W: usize>(value: Datum, _: SortSupport) -> Datum {
    // SAFETY: the caller of `sort_words` promised values of this length.
    Datum::from(unsafe { *value.cast_mut_ptr::<u64>() })
}

/// Callback of the server's sort that decides whether to give up abbreviated keys. Always returns
/// false, because an abbreviated key costs only one load per row.
unsafe extern "C-unwind" fn never(_rows: c_int, _: SortSupport) -> bool {
    false
}
