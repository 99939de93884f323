//! Arguments of SQL functions as Rust values.
//!
//! A function reads its arguments with the types that its declaration in `sql/` gives them. The
//! readers are safe to call because of that declaration: the server passes no other types. To read
//! another type than the declared one is a bug, as a wrong declaration of a C function would be.
//!
//! None of the readers takes a NULL; functions that are not strict ask [`Call::is_null`] first.
use core::ffi::CStr;
use core::marker::PhantomData;
use std::borrow::Cow;

use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys::{self, Datum};

use super::arrays::{self, ArrayElement, Elements};
use super::fmgr::Call;
use super::tsvector::Lexemes;
use super::{text, varlena};

impl Call {
    /// An `integer`.
    pub fn int4(&self, n: usize) -> i32 {
        self.arg(n).value() as i32
    }

    /// A `bigint`.
    pub fn int8(&self, n: usize) -> i64 {
        self.arg(n).value() as i64
    }

    /// A `boolean`.
    pub fn bool(&self, n: usize) -> bool {
        self.arg(n).value() != 0
    }

    /// A `real`.
    pub fn float4(&self, n: usize) -> f32 {
        f32::from_bits(self.arg(n).value() as u32)
    }

    /// A `double precision`.
    pub fn float8(&self, n: usize) -> f64 {
        f64::from_bits(self.arg(n).value() as u64)
    }

    /// An `oid` or `regclass`.
    pub fn oid(&self, n: usize) -> pg_sys::Oid {
        pg_sys::Oid::from(self.arg(n).value() as u32)
    }

    /// An argument as `read` takes it, a function that asks for a value of the declared type. The
    /// value lives as long as the call, as does memory that is allocated during it.
    #[inline(always)]
    pub fn declared<T>(&self, n: usize, read: unsafe fn(Datum) -> T) -> T {
        // SAFETY: declared so.
        unsafe { read(self.arg(n)) }
    }

    /// The bytes of a `bytea`, or of a `text` in the encoding of the database.
    pub fn bytes(&self, n: usize) -> &[u8] {
        self.declared(n, varlena::bytes)
    }

    /// A `text` in UTF-8, without a copy if that is the encoding of the database.
    pub fn utf8(&self, n: usize) -> Cow<'_, str> {
        text::bytes_utf8(self.bytes(n))
    }

    /// The bytes of a `cstring`, as input functions take it.
    pub fn cstring(&self, n: usize) -> &[u8] {
        // SAFETY: declared to take a cstring, which lives as long as the call.
        unsafe { CStr::from_ptr(self.arg(n).cast_mut_ptr()) }.to_bytes()
    }

    /// The next `length` bytes of the binary message that is a receive function's first argument.
    /// The server raises 08P01 if fewer are left.
    pub fn message(&self, length: usize) -> &[u8] {
        // SAFETY: declared to take an internal StringInfo, in which the bytes lie.
        unsafe {
            let message: pg_sys::StringInfo = self.arg(0).cast_mut_ptr();
            let bytes = pg_sys::pq_getmsgbytes(message, length as core::ffi::c_int);
            core::slice::from_raw_parts(bytes.cast::<u8>(), length)
        }
    }

    /// The text form of a `numeric`.
    pub fn numeric(&self, n: usize) -> &str {
        let output = pg_sys::Oid::from_u32(pg_sys::F_NUMERIC_OUT);
        // SAFETY: declared to take numeric; its output function returns a C string in memory that
        // lives as long as the call.
        let text = unsafe { CStr::from_ptr(pg_sys::OidOutputFunctionCall(output, self.arg(n))) };
        text.to_str().expect("digits")
    }

    /// The place that a sort support function fills in.
    pub fn sort_support(&mut self) -> &mut pg_sys::SortSupportData {
        // SAFETY: declared to take an internal SortSupport, which lives as long as the call.
        unsafe { &mut *self.arg(0).cast_mut_ptr() }
    }

    /// A `tsvector`.
    pub fn tsvector(&self, n: usize) -> Lexemes<'_> {
        self.declared(n, Lexemes::new)
    }

    /// An array of `T`, of any number of dimensions. A NULL in it is error 22004, since the meaning
    /// of NULL is different for each function. `name` is the argument's.
    pub fn array<'a, T: ArrayElement<'a>>(&'a self, n: usize, name: &str) -> Array<'a, T> {
        Array {
            elements: self.elements::<T>(n).not_null(name),
            element: PhantomData,
        }
    }

    /// The same, with `None` for a NULL.
    pub fn nullable_array<'a, T: ArrayElement<'a>>(&'a self, n: usize) -> Vec<Option<T>> {
        let elements = self.elements::<T>(n).nullable();
        let mut values = Vec::new();
        values.grow_all(elements.map(|element| element.map(read_element)));
        values
    }

    fn elements<'a, T: ArrayElement<'a>>(&'a self, n: usize) -> Elements<'a> {
        // SAFETY: declared to take an array of this type, which lives as long as the call.
        unsafe { arrays::elements(self.arg(n), &T::TYPE) }
    }
}

/// Reads an element of an array that is declared to hold this type.
fn read_element<'a, T: ArrayElement<'a>>(element: Datum) -> T {
    // SAFETY: declared so.
    unsafe { T::read(element) }
}

/// An array argument without NULLs.
pub struct Array<'a, T> {
    elements: &'a [Datum],
    element: PhantomData<T>,
}

impl<'a, T: ArrayElement<'a>> Array<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// The elements. Texts are converted to UTF-8 one by one.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.elements.iter().copied().map(read_element)
    }
}
