//! SQL arrays: splits an array into its elements, and makes a `bigint[]`.
use std::borrow::Cow;

use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys::{self, Datum};

use super::errors::UserError;
use super::{text, varlena};

/// SQL type of an array's elements, and how the server stores values of this type.
pub struct ElementType {
    oid: pg_sys::Oid,
    /// Bytes of a value; -1 if the length varies.
    length: i32,
    by_value: bool,
    /// Alignment of a value, as in `pg_type.typalign`.
    alignment: u8,
}

impl ElementType {
    /// Describes the type with this OID. `length` is the number of bytes of a value; -1 means a
    /// type of variable length. Values with a fixed length are passed by value, values of variable
    /// length by reference. `alignment` is `pg_type.typalign`.
    pub const fn new(oid: pg_sys::Oid, length: i32, alignment: u8) -> Self {
        ElementType {
            oid,
            length,
            by_value: length > 0,
            alignment,
        }
    }
}

/// Rust type that represents the elements of an SQL array.
pub trait ArrayElement<'a> {
    /// SQL type of the elements.
    const TYPE: ElementType;
    /// OID of the SQL type of the array, such as `bigint[]`.
    const ARRAY: pg_sys::Oid;

    /// Converts an element of an array from the server's form.
    ///
    /// # Safety
    /// `datum` is a value of the SQL type [`ArrayElement::TYPE`], and lives as long as the result.
    unsafe fn read(datum: Datum) -> Self;
}

impl<'a> ArrayElement<'a> for Cow<'a, str> {
    const TYPE: ElementType = ElementType::new(pg_sys::TEXTOID, -1, b'i');
    const ARRAY: pg_sys::Oid = pg_sys::TEXTARRAYOID;

    unsafe fn read(datum: Datum) -> Self {
        // SAFETY: as the caller promises.
        text::bytes_utf8(unsafe { varlena::bytes(datum) })
    }
}

/// A `text` as bytes in the encoding of the database.
impl<'a> ArrayElement<'a> for &'a [u8] {
    const TYPE: ElementType = ElementType::new(pg_sys::TEXTOID, -1, b'i');
    const ARRAY: pg_sys::Oid = pg_sys::TEXTARRAYOID;

    unsafe fn read(datum: Datum) -> Self {
        // SAFETY: as the caller promises.
        unsafe { varlena::bytes(datum) }
    }
}

impl ArrayElement<'_> for f64 {
    const TYPE: ElementType = ElementType::new(pg_sys::FLOAT8OID, 8, b'd');
    const ARRAY: pg_sys::Oid = pg_sys::FLOAT8ARRAYOID;

    unsafe fn read(datum: Datum) -> Self {
        f64::from_bits(datum.value() as u64)
    }
}

impl ArrayElement<'_> for i32 {
    const TYPE: ElementType = ElementType::new(pg_sys::INT4OID, 4, b'i');
    const ARRAY: pg_sys::Oid = pg_sys::INT4ARRAYOID;

    unsafe fn read(datum: Datum) -> Self {
        datum.value() as i32
    }
}

impl ArrayElement<'_> for i64 {
    const TYPE: ElementType = ElementType::new(pg_sys::INT8OID, 8, b'd');
    const ARRAY: pg_sys::Oid = pg_sys::INT8ARRAYOID;

    unsafe fn read(datum: Datum) -> Self {
        datum.value() as i64
    }
}

impl ArrayElement<'_> for bool {
    const TYPE: ElementType = ElementType::new(pg_sys::BOOLOID, 1, b'c');
    const ARRAY: pg_sys::Oid = pg_sys::BOOLARRAYOID;

    unsafe fn read(datum: Datum) -> Self {
        datum.value() != 0
    }
}

const _: () = assert!(size_of::<Datum>() == 8, "float8 is passed by value");

/// All elements of an SQL array, as datums with a NULL flag for each.
pub struct Elements<'a> {
    values: &'a [Datum],
    nulls: &'a [bool],
}

impl<'a> Elements<'a> {
    /// The datums of all elements. Raises error 22004 if an element is NULL. `name` is the name of
    /// the SQL argument, for the error message.
    pub fn not_null(self, name: &str) -> &'a [Datum] {
        if let Some(position) = self.nulls.iter().position(|null| *null) {
            UserError::null_not_allowed(format!("\"{name}\" must not contain NULL"))
                .detail(format!("Element {} is NULL.", position + 1))
                .hint("Remove the NULL elements first: array_remove(x, NULL).")
                .raise();
        }
        self.values
    }

    /// Iterates over all elements: the datum of each, or `None` for NULL.
    pub fn nullable(self) -> impl Iterator<Item = Option<Datum>> + 'a {
        let elements = self.values.iter().zip(self.nulls);
        elements.map(|(value, null)| (!null).then_some(*value))
    }
}

/// Splits an SQL array with any number of dimensions into its elements.
///
/// # Safety
/// `array` is an array whose elements have the type `element`. The array and the current memory
/// context outlive the result.
pub unsafe fn elements<'a>(array: Datum, element: &ElementType) -> Elements<'a> {
    let (mut values, mut nulls, mut count) = (core::ptr::null_mut(), core::ptr::null_mut(), 0);
    // SAFETY: the caller's promise; the server fills in two arrays of `count` elements.
    unsafe {
        pg_sys::deconstruct_array(
            pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast(),
            element.oid,
            element.length,
            element.by_value,
            element.alignment as core::ffi::c_char,
            &mut values,
            &mut nulls,
            &mut count,
        );
        if count == 0 {
            return Elements {
                values: &[],
                nulls: &[],
            };
        }
        Elements {
            values: core::slice::from_raw_parts(values, count as usize),
            nulls: core::slice::from_raw_parts(nulls, count as usize),
        }
    }
}

/// Number of elements of an SQL array, NULLs included. `body` has the array's bytes behind its
/// varlena header, as utils/array.h describes them.
pub fn element_count(body: &[u8]) -> usize {
    let int4 = |at: usize| {
        let (words, _) = body[at..].as_chunks();
        u32::from_ne_bytes(words[0]) as usize
    };
    const DIMENSIONS: usize = 16 - pg_sys::VARHDRSZ;
    match int4(0) {
        0 => 0,
        dimensions => (0..dimensions).map(|i| int4(DIMENSIONS + 4 * i)).product(),
    }
}

/// Iterates over the elements of a `bigint[]` that are not NULL. `body` has the array's bytes
/// behind its varlena header, as utils/array.h describes them. Accepts any number of dimensions.
/// Raises an internal error for arrays of another type.
#[inline]
pub fn bigints(body: &[u8]) -> impl Iterator<Item = i64> {
    // The server counts offsets from the start of the header, which `body` does not include.
    const HEADER: usize = pg_sys::VARHDRSZ;
    const DIMENSIONS: usize = 16 - HEADER;
    let int4 = |at: usize| {
        let (words, _) = body[at..].as_chunks();
        u32::from_ne_bytes(words[0])
    };
    let (dimensions, data, element) = (int4(0) as usize, int4(4) as usize, int4(8));
    assert_eq!(element, pg_sys::INT8OID.to_u32());
    let count = element_count(body);
    let bitmap = DIMENSIONS + 8 * dimensions;
    // An array without NULLs has no bitmap, and its data offset is 0.
    let has_nulls = data != 0;
    let data = match has_nulls {
        false => (HEADER + bitmap).next_multiple_of(8) - HEADER,
        true => data - HEADER,
    };
    let is_present = move |&i: &usize| !has_nulls || body[bitmap + i / 8] & 1 << (i % 8) != 0;
    let (values, _) = body[data.min(body.len())..].as_chunks();
    let mut values = values.iter().map(|&value| i64::from_ne_bytes(value));
    (0..count)
        .filter(is_present)
        .map_while(move |_| values.next())
}

/// Makes a `bigint[]` with the elements `numbers`, in the current memory context.
pub fn bigint_array(numbers: impl Iterator<Item = i64>) -> Datum {
    const TYPE: ElementType = i64::TYPE;
    let mut elements: Vec<Datum> = Vec::new();
    elements.grow_all(numbers.map(Datum::from));
    // SAFETY: the pointer and the length describe one slice of elements of that type.
    unsafe {
        let array = pg_sys::construct_array(
            elements.as_mut_ptr(),
            elements.len() as i32,
            TYPE.oid,
            TYPE.length,
            TYPE.by_value,
            TYPE.alignment as core::ffi::c_char,
        );
        Datum::from(array)
    }
}
