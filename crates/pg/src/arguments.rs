//! Arguments of SQL functions as Rust values. In all methods `n` is the position of the argument,
//! counted from 0. A function that is not strict calls [`Call::is_null`] first.
//!
//! A function reads each argument by a method for the type that its declaration in `sql/` has.
//! Methods for types that are passed by reference raise an internal error if the argument is
//! declared with another type, or is NULL. Methods for numbers check neither.
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
    /// Reads argument `n`, which is declared as `smallint`.
    #[inline(always)]
    pub fn int2(&self, n: usize) -> i16 {
        self.arg(n).value() as i16
    }

    /// Reads argument `n`, which is declared as `integer`.
    #[inline(always)]
    pub fn int4(&self, n: usize) -> i32 {
        self.arg(n).value() as i32
    }

    /// Reads argument `n`, which is declared as `bigint`.
    #[inline(always)]
    pub fn int8(&self, n: usize) -> i64 {
        self.arg(n).value() as i64
    }

    /// Reads argument `n`, which is declared as `boolean`.
    #[inline(always)]
    pub fn bool(&self, n: usize) -> bool {
        self.arg(n).value() != 0
    }

    /// Reads argument `n`, which is declared as `real`.
    #[inline(always)]
    pub fn float4(&self, n: usize) -> f32 {
        f32::from_bits(self.arg(n).value() as u32)
    }

    /// Reads argument `n`, which is declared as `double precision`.
    #[inline(always)]
    pub fn float8(&self, n: usize) -> f64 {
        f64::from_bits(self.arg(n).value() as u64)
    }

    /// Reads argument `n`, which is declared as `oid` or `regclass`.
    #[inline(always)]
    pub fn oid(&self, n: usize) -> pg_sys::Oid {
        pg_sys::Oid::from(self.arg(n).value() as u32)
    }

    /// Copies argument `n`, a value of fixed length that is passed by reference, into `words`.
    /// Raises an internal error unless values of the declared type have the same length as `words`.
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

    /// Returns the bytes after the header of argument `n`, a value of variable length such as a
    /// `bytea` or a `text`. Text is in the encoding of the database.
    #[inline]
    pub fn bytes(&self, n: usize) -> &[u8] {
        // SAFETY: the argument is a value of variable length. The value, and memory that is
        // allocated during the call, live as long as the call.
        unsafe { varlena::bytes(self.reference(n, ValueType::is_varlena)) }
    }

    /// The bytes of argument `n`, as [`Call::bytes`] returns them, aligned to four bytes.
    #[inline]
    pub fn aligned_bytes(&self, n: usize) -> &[u8] {
        // SAFETY: as in `bytes`. The server aligns values of variable length to four bytes or more.
        unsafe { varlena::aligned(self.reference(n, ValueType::is_varlena)) }
    }

    /// Argument `n`, a `text`, in UTF-8. Borrows the bytes if the database uses UTF-8.
    pub fn utf8(&self, n: usize) -> Cow<'_, str> {
        text::bytes_utf8(self.bytes(n))
    }

    /// The bytes of argument `n`, a `cstring`, without the terminating zero. Input functions of
    /// types take such an argument.
    pub fn cstring(&self, n: usize) -> &[u8] {
        let text = self.reference(n, |declared| declared.oid() == pg_sys::CSTRINGOID);
        // SAFETY: a terminated string, which lives as long as the call.
        unsafe { CStr::from_ptr(text.cast_mut_ptr()) }.to_bytes()
    }

    /// Reads the next `length` bytes of the binary message that is the first argument of a receive
    /// function. The server raises error 08P01 if the message has fewer bytes left.
    pub fn message(&self, length: usize) -> &[u8] {
        // SAFETY: the server passes a StringInfo to receive functions. It holds the bytes.
        unsafe {
            let message: pg_sys::StringInfo = self.internal(0);
            let bytes = pg_sys::pq_getmsgbytes(message, length as core::ffi::c_int);
            core::slice::from_raw_parts(bytes.cast::<u8>(), length)
        }
    }

    /// Argument `n`, a `numeric`, as decimal text.
    pub fn numeric(&self, n: usize) -> &str {
        let output = pg_sys::Oid::from_u32(pg_sys::F_NUMERIC_OUT);
        let number = self.reference(n, |declared| declared.oid() == pg_sys::NUMERICOID);
        // SAFETY: the type's output function returns a terminated string in memory that lives as
        // long as the call.
        let text = unsafe { CStr::from_ptr(pg_sys::OidOutputFunctionCall(output, number)) };
        text.to_str().expect("digits")
    }

    /// The first argument of a sort support function: a structure of the server that the function
    /// fills in.
    pub fn sort_support(&mut self) -> &mut pg_sys::SortSupportData {
        // SAFETY: the server passes a SortSupport to sort support functions.
        unsafe { &mut *self.internal(0) }
    }

    /// The lexemes of argument `n`, a `tsvector`.
    pub fn tsvector(&self, n: usize) -> Lexemes<'_> {
        let value = self.reference(n, |declared| declared.oid() == pg_sys::TSVECTOROID);
        // SAFETY: a tsvector that lives as long as the call.
        unsafe { Lexemes::new(value) }
    }

    /// Returns the elements of argument `n`, an array of `T` with any number of dimensions. Raises
    /// error 22004 if an element is NULL. Functions that give NULL a meaning call
    /// [`Call::nullable_array`] instead. `name` is the argument's name, for the error message.
    pub fn array<'a, T: ArrayElement<'a>>(&'a self, n: usize, name: &str) -> Array<'a, T> {
        Array {
            elements: self.elements::<T>(n).not_null(name),
            element: PhantomData,
        }
    }

    /// Returns the elements of argument `n`, an array of `T` with any number of dimensions. The
    /// value for an element that is NULL is `None`.
    pub fn nullable_array<'a, T: ArrayElement<'a>>(&'a self, n: usize) -> Vec<Option<T>> {
        let elements = self.elements::<T>(n).nullable();
        let mut values = Vec::new();
        values.grow_all(elements.map(|element| element.map(read_element)));
        values
    }

    /// Splits argument `n`, which must be declared as an array of `T`, into datums.
    fn elements<'a, T: ArrayElement<'a>>(&'a self, n: usize) -> Elements<'a> {
        let array = self.reference(n, |declared| declared.oid() == T::ARRAY);
        // SAFETY: an array of this type, which lives as long as the call.
        unsafe { arrays::elements(array, &T::TYPE) }
    }
}

/// Converts an element that [`Call::elements`] has returned for an array of `T`.
fn read_element<'a, T: ArrayElement<'a>>(element: Datum) -> T {
    // SAFETY: `Call::elements` has compared the type.
    unsafe { T::read(element) }
}

/// Argument of an SQL function that is an array without NULLs. `T` is the Rust type of its
/// elements.
pub struct Array<'a, T> {
    elements: &'a [Datum],
    element: PhantomData<T>,
}

impl<'a, T: ArrayElement<'a>> Array<'a, T> {
    /// Returns whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Number of elements of the array.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Iterates over the elements of the array. Converts each element to `T`, for example a `text`
    /// to UTF-8, only when the iterator reaches it.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.elements.iter().copied().map(read_element)
    }
}
