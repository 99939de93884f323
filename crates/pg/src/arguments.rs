//! Arguments of SQL functions as Rust values.
//!
//! A function reads its arguments with the types of its declaration in `sql/`. Methods for types
//! that are passed by reference compare the declared type with their own, and raise an internal
//! error for another type and for NULL. Methods for numbers do not check the declared type.
//!
//! A function that is not strict calls [`Call::is_null`] first.
use core::ffi::CStr;
use core::marker::PhantomData;
use std::borrow::Cow;

use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys::{self, Datum};

use super::arrays::{self, ArrayElement, Elements};
use super::fmgr::Call;
use super::tsvector::Lexemes;
use super::value::ValueType;
use super::{text, varlena};

impl Call {
    /// A `smallint`.
    #[inline(always)]
    pub fn int2(&self, n: usize) -> i16 {
        self.arg(n).value() as i16
    }

    /// An `integer`.
    #[inline(always)]
    pub fn int4(&self, n: usize) -> i32 {
        self.arg(n).value() as i32
    }

    /// A `bigint`.
    #[inline(always)]
    pub fn int8(&self, n: usize) -> i64 {
        self.arg(n).value() as i64
    }

    /// A `boolean`.
    #[inline(always)]
    pub fn bool(&self, n: usize) -> bool {
        self.arg(n).value() != 0
    }

    /// A `real`.
    #[inline(always)]
    pub fn float4(&self, n: usize) -> f32 {
        f32::from_bits(self.arg(n).value() as u32)
    }

    /// A `double precision`.
    #[inline(always)]
    pub fn float8(&self, n: usize) -> f64 {
        f64::from_bits(self.arg(n).value() as u64)
    }

    /// An `oid` or `regclass`.
    #[inline(always)]
    pub fn oid(&self, n: usize) -> pg_sys::Oid {
        pg_sys::Oid::from(self.arg(n).value() as u32)
    }

    /// Copies the words of a value of fixed length that is passed by reference.
    #[inline(always)]
    pub fn copy_words(&self, n: usize, words: &mut [u64]) {
        let size = size_of_val(words);
        let fits = |declared: ValueType| {
            !declared.by_value() && usize::try_from(declared.length()) == Ok(size)
        };
        let start = self.reference(n, fits).cast_mut_ptr::<u8>();
        // SAFETY: values of this type have `size` bytes.
        unsafe { core::ptr::copy_nonoverlapping(start, words.as_mut_ptr().cast(), size) };
    }

    /// The bytes behind the header of a value of variable length, such as a `bytea` or a `text`.
    /// Text is in the encoding of the database.
    #[inline]
    pub fn bytes(&self, n: usize) -> &[u8] {
        // SAFETY: a value of variable length, which lives as long as the call. So does memory that
        // is allocated during the call.
        unsafe { varlena::bytes(self.reference(n, ValueType::is_varlena)) }
    }

    /// [`Call::bytes`], aligned to four bytes.
    #[inline]
    pub fn aligned_bytes(&self, n: usize) -> &[u8] {
        // SAFETY: as above. The server aligns each type of variable length to four bytes at least.
        unsafe { varlena::aligned(self.reference(n, ValueType::is_varlena)) }
    }

    /// A `text` in UTF-8. Does not copy it if the database uses UTF-8.
    pub fn utf8(&self, n: usize) -> Cow<'_, str> {
        text::bytes_utf8(self.bytes(n))
    }

    /// The bytes of a `cstring`, the argument of input functions.
    pub fn cstring(&self, n: usize) -> &[u8] {
        let text = self.reference(n, |declared| declared.oid() == pg_sys::CSTRINGOID);
        // SAFETY: a terminated string, which lives as long as the call.
        unsafe { CStr::from_ptr(text.cast_mut_ptr()) }.to_bytes()
    }

    /// The next `length` bytes of the binary message that is a receive function's first argument.
    /// The server raises 08P01 if fewer are left.
    pub fn message(&self, length: usize) -> &[u8] {
        // SAFETY: the server passes a StringInfo to receive functions. It holds the bytes.
        unsafe {
            let message: pg_sys::StringInfo = self.internal(0);
            let bytes = pg_sys::pq_getmsgbytes(message, length as core::ffi::c_int);
            core::slice::from_raw_parts(bytes.cast::<u8>(), length)
        }
    }

    /// The text form of a `numeric`.
    pub fn numeric(&self, n: usize) -> &str {
        let output = pg_sys::Oid::from_u32(pg_sys::F_NUMERIC_OUT);
        let number = self.reference(n, |declared| declared.oid() == pg_sys::NUMERICOID);
        // SAFETY: the type's output function returns a terminated string in memory that lives as
        // long as the call.
        let text = unsafe { CStr::from_ptr(pg_sys::OidOutputFunctionCall(output, number)) };
        text.to_str().expect("digits")
    }

    /// The structure that a sort support function fills in.
    pub fn sort_support(&mut self) -> &mut pg_sys::SortSupportData {
        // SAFETY: the server passes a SortSupport to sort support functions.
        unsafe { &mut *self.internal(0) }
    }

    /// A `tsvector`.
    pub fn tsvector(&self, n: usize) -> Lexemes<'_> {
        let value = self.reference(n, |declared| declared.oid() == pg_sys::TSVECTOROID);
        // SAFETY: a tsvector that lives as long as the call.
        unsafe { Lexemes::new(value) }
    }

    /// An array of `T`, of any number of dimensions. Raises error 22004 if it contains NULL,
    /// because each function would give NULL another meaning. `name` is the name of the argument.
    pub fn array<'a, T: ArrayElement<'a>>(&'a self, n: usize, name: &str) -> Array<'a, T> {
        Array {
            elements: self.elements::<T>(n).not_null(name),
            element: PhantomData,
        }
    }

    /// [`Call::array`] with `None` for each NULL.
    pub fn nullable_array<'a, T: ArrayElement<'a>>(&'a self, n: usize) -> Vec<Option<T>> {
        let elements = self.elements::<T>(n).nullable();
        let mut values = Vec::new();
        values.grow_all(elements.map(|element| element.map(read_element)));
        values
    }

    fn elements<'a, T: ArrayElement<'a>>(&'a self, n: usize) -> Elements<'a> {
        let array = self.reference(n, |declared| declared.oid() == T::ARRAY);
        // SAFETY: an array of this type, which lives as long as the call.
        unsafe { arrays::elements(array, &T::TYPE) }
    }
}

/// Reads an element that [`Call::elements`] has returned for this type.
fn read_element<'a, T: ArrayElement<'a>>(element: Datum) -> T {
    // SAFETY: `Call::elements` has compared the type.
    unsafe { T::read(element) }
}

/// An array argument without NULLs.
pub struct Array<'a, T> {
    elements: &'a [Datum],
    element: PhantomData<T>,
}

impl<'a, T: ArrayElement<'a>> Array<'a, T> {
    /// Returns whether the array has no element.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// The elements. Texts are converted to UTF-8 one by one.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.elements.iter().copied().map(read_element)
    }
}
