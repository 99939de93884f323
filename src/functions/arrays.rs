//! Arrays as arguments and results.
use pgrx::pg_sys::{self, Datum};

use crate::pg::errors::UserError;

/// How the server stores the elements of an array.
pub struct Element {
    oid: pg_sys::Oid,
    length: i32,
    by_value: bool,
    alignment: u8,
}

/// The elements of text[].
pub const TEXT: Element = Element {
    oid: pg_sys::TEXTOID,
    length: -1,
    by_value: false,
    alignment: b'i',
};
/// The elements of double precision[].
pub const FLOAT8: Element = Element {
    oid: pg_sys::FLOAT8OID,
    length: 8,
    by_value: true,
    alignment: b'd',
};
/// The elements of bigint[].
pub const INT8: Element = Element {
    oid: pg_sys::INT8OID,
    length: 8,
    by_value: true,
    alignment: b'd',
};

/// All elements of an array, of any number of dimensions. A NULL among them is error 22004: what
/// it should weigh or hash to is for the caller to say.
///
/// # Safety
/// `array` is an array of `element`; the result lives as long as it and as the current memory context.
pub unsafe fn elements<'a>(array: Datum, name: &str, element: &Element) -> &'a [Datum] {
    let (mut values, mut nulls, mut count) = (core::ptr::null_mut(), core::ptr::null_mut(), 0);
    // SAFETY: as the caller promises; the server fills in two arrays of `count` elements.
    let (values, nulls): (&[Datum], &[bool]) = unsafe {
        let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast();
        let alignment = element.alignment as core::ffi::c_char;
        pg_sys::deconstruct_array(
            array,
            element.oid,
            element.length,
            element.by_value,
            alignment,
            &mut values,
            &mut nulls,
            &mut count,
        );
        if count == 0 {
            return &[];
        }
        (
            core::slice::from_raw_parts(values, count as usize),
            core::slice::from_raw_parts(nulls, count as usize),
        )
    };
    if let Some(position) = nulls.iter().position(|null| *null) {
        UserError::null_not_allowed(format!("{name} must not contain NULL"))
            .detail(format!("Element {} is NULL.", position + 1))
            .hint("Remove NULLs first: array_remove(x, NULL).")
            .raise();
    }
    values
}

/// A bigint[] of these numbers.
pub fn of_bigint(numbers: impl Iterator<Item = i64>) -> Datum {
    let mut elements: Vec<Datum> = numbers.map(Datum::from).collect();
    // SAFETY: as many elements of that type as are said.
    unsafe {
        let array = pg_sys::construct_array(
            elements.as_mut_ptr(),
            elements.len() as i32,
            INT8.oid,
            INT8.length,
            INT8.by_value,
            INT8.alignment as core::ffi::c_char,
        );
        Datum::from(array)
    }
}
