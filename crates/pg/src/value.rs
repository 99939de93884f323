//! SQL values with their types, borrowed from the server's memory or copied into Rust's.
use core::cmp::Ordering;
use core::ffi::CStr;
use core::marker::PhantomData;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys::{self, Datum, Oid};

use super::arrays::{self, ElementType};
use super::catalog;
use super::text;
use super::varlena;

unsafe extern "C-unwind" {
    /// Not among pgrx's bindings (utils/datum.h). Compares bytes, uncompressed.
    fn datum_image_eq(a: Datum, b: Datum, by_value: bool, length: core::ffi::c_int) -> bool;
}

/// A type, and how its values are passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ValueType {
    oid: Oid,
    length: i16,
    by_value: bool,
}

impl ValueType {
    /// Looks a type up.
    pub fn of(oid: Oid) -> Self {
        let (mut length, mut by_value) = (0, false);
        // SAFETY: a catalogue look-up.
        unsafe { pg_sys::get_typlenbyval(oid, &mut length, &mut by_value) };
        ValueType {
            oid,
            length,
            by_value,
        }
    }

    /// A type whose values are passed by reference; a length below zero varies.
    pub fn by_reference(oid: Oid, length: i16) -> Self {
        ValueType {
            oid,
            length,
            by_value: false,
        }
    }

    /// The type of a column.
    #[inline]
    pub fn of_attribute(attribute: &pg_sys::FormData_pg_attribute) -> Self {
        ValueType {
            oid: attribute.atttypid,
            length: attribute.attlen,
            by_value: attribute.attbyval,
        }
    }

    /// The type of a constant in an expression.
    pub fn of_const(constant: &pg_sys::Const) -> Self {
        ValueType {
            oid: constant.consttype,
            length: constant.constlen as i16,
            by_value: constant.constbyval,
        }
    }

    /// The type's OID.
    #[inline(always)]
    pub fn oid(self) -> Oid {
        self.oid
    }

    /// Length of the values in bytes; below zero if it varies.
    #[inline(always)]
    pub fn length(self) -> i16 {
        self.length
    }

    /// Returns whether the datum is the value itself.
    #[inline(always)]
    pub fn by_value(self) -> bool {
        self.by_value
    }

    /// Returns whether values are of variable length, with a header that states it.
    #[inline(always)]
    pub fn is_varlena(self) -> bool {
        self.length == -1
    }
}

/// A value that is not NULL, in memory that lives for `'a`.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    datum: Datum,
    of: ValueType,
    _memory: PhantomData<&'a ()>,
}

impl<'a> Value<'a> {
    /// A value of a column's type.
    ///
    /// # Safety
    /// As for [`Value::typed`].
    #[inline]
    pub unsafe fn new(datum: Datum, attribute: &pg_sys::FormData_pg_attribute) -> Self {
        Value {
            datum,
            of: ValueType::of_attribute(attribute),
            _memory: PhantomData,
        }
    }

    /// A value of a type.
    ///
    /// # Safety
    /// The datum is a value of that type, in memory that lives for `'a`.
    #[inline]
    pub unsafe fn typed(datum: Datum, of: ValueType) -> Self {
        Value {
            datum,
            of,
            _memory: PhantomData,
        }
    }

    /// A value of a column of this extension's types, or of `bigint`, from its words. Raises an
    /// internal error unless values of the column are as long.
    #[inline]
    pub fn from_words(words: &'a [u64], column: &pg_sys::FormData_pg_attribute) -> Self {
        let of = ValueType::of_attribute(column);
        assert!(takes_any_words(of.oid));
        assert!(usize::try_from(of.length) == Ok(size_of_val(words)));
        Value {
            datum: match of.by_value {
                true => Datum::from(words[0]),
                false => Datum::from(words.as_ptr()),
            },
            of,
            _memory: PhantomData,
        }
    }

    #[inline]
    fn small(datum: Datum, oid: Oid, length: i16) -> Self {
        Value {
            datum,
            of: ValueType {
                oid,
                length,
                by_value: true,
            },
            _memory: PhantomData,
        }
    }

    /// A `bool`.
    #[inline]
    pub fn bool(value: bool) -> Self {
        Self::small(Datum::from(value), pg_sys::BOOLOID, 1)
    }

    /// An `int4`.
    #[inline]
    pub fn int4(value: i32) -> Self {
        Self::small(Datum::from(value), pg_sys::INT4OID, 4)
    }

    /// An `int8`.
    #[inline]
    pub fn int8(value: i64) -> Self {
        Self::small(Datum::from(value), pg_sys::INT8OID, 8)
    }

    /// A `float4`.
    #[inline]
    pub fn float4(value: f32) -> Self {
        Self::small(Datum::from(value.to_bits()), pg_sys::FLOAT4OID, 4)
    }

    /// A `float8`.
    #[inline]
    pub fn float8(value: f64) -> Self {
        Self::small(Datum::from(value.to_bits()), pg_sys::FLOAT8OID, 8)
    }

    /// An `oid`.
    #[inline]
    pub fn oid(value: Oid) -> Self {
        Self::small(Datum::from(value), pg_sys::OIDOID, 4)
    }

    /// A `tid`.
    pub fn tid(value: &'a pg_sys::ItemPointerData) -> Self {
        Value {
            datum: Datum::from(core::ptr::from_ref(value)),
            of: ValueType {
                oid: pg_sys::TIDOID,
                length: size_of::<pg_sys::ItemPointerData>() as i16,
                by_value: false,
            },
            _memory: PhantomData,
        }
    }

    /// The value as the server passes it.
    #[inline]
    pub fn datum(self) -> Datum {
        self.datum
    }

    /// Its type, and how values of it are passed.
    #[inline]
    pub fn value_type(self) -> ValueType {
        self.of
    }

    /// Its type.
    #[inline]
    pub fn type_oid(self) -> Oid {
        self.of.oid
    }

    /// The length of the type's values in bytes; below zero if it varies.
    #[inline]
    pub fn length(self) -> i16 {
        self.of.length
    }

    /// Returns whether a value of variable length has a header of four bytes and is not compressed.
    /// Raises an internal error for values of fixed length.
    #[inline]
    pub fn is_plain(self) -> bool {
        assert_eq!(self.of.length, -1);
        // SAFETY: a value of variable length.
        unsafe { pgrx::varlena::varatt_is_4b_u(self.datum.cast_mut_ptr()) }
    }

    /// Calls a function with the bytes behind the header of a value of variable length. They are
    /// copied if they have to be read from TOAST, and freed at once: a caller may do so for
    /// millions of rows. Raises an internal error for values of fixed length.
    #[inline]
    pub fn with_body<T>(self, each: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: a value that is plain is one of variable length, and is taken as it is. Its
        // header is at least as aligned as its four bytes.
        let body = |value: Value| unsafe { varlena::aligned(value.datum()) };
        match self.is_plain() {
            true => each(body(self)),
            false => each(body(self.to_owned().get())),
        }
    }

    /// Copies the first words of a value of fixed length. Raises an internal error if the value is
    /// shorter.
    #[inline]
    pub fn copy_words(self, words: &mut [u64]) {
        assert!(usize::try_from(self.of.length).is_ok_and(|length| length >= size_of_val(words)));
        match words {
            [word] if self.of.by_value => *word = self.datum.value() as u64,
            words => {
                let (bytes, _) = self.fixed_bytes().as_chunks();
                for (word, bytes) in words.iter_mut().zip(bytes) {
                    *word = u64::from_ne_bytes(*bytes);
                }
            }
        }
    }

    /// The bytes of a value of fixed length that is passed by reference.
    #[inline]
    fn fixed_bytes(&self) -> &[u8] {
        assert!(!self.of.by_value && self.of.length > 0);
        let start = self.datum.cast_mut_ptr::<u8>();
        // SAFETY: a value passed by reference, which is as long as its type says.
        unsafe { core::slice::from_raw_parts(start, self.of.length as usize) }
    }

    /// The address, if it is a `tid`; raises an internal error for any other type.
    #[inline]
    pub fn as_tid(self) -> Tid {
        assert_eq!(self.of.oid, pg_sys::TIDOID);
        let bytes = self.fixed_bytes();
        // As `ItemPointerData` has it: both halves of the block, the higher one first.
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Tid {
            block: u32::from(half(0)) << 16 | u32::from(half(2)),
            offset: half(4),
        }
    }

    /// The number, if it is an `int2`, `int4`, `int8` or of a domain over one of them.
    pub fn integer(self) -> Option<i64> {
        let bits = self.datum.value();
        match catalog::base_type(self.of.oid) {
            pg_sys::INT2OID => Some((bits as i16).into()),
            pg_sys::INT4OID => Some((bits as i32).into()),
            pg_sys::INT8OID => Some(bits as i64),
            _ => None,
        }
    }

    /// The number, if it is a `float4`, `float8` or of a domain over one of them.
    pub fn float(self) -> Option<f64> {
        let bits = self.datum.value();
        match catalog::base_type(self.of.oid) {
            pg_sys::FLOAT4OID => Some(f32::from_bits(bits as u32).into()),
            pg_sys::FLOAT8OID => Some(f64::from_bits(bits as u64)),
            _ => None,
        }
    }

    /// The elements, if it is an array of one of those integers; `None` if NULL is among them.
    pub fn integers(self) -> Option<Vec<i64>> {
        self.small_elements(Value::integer)
    }

    /// The elements, if it is an array of `float4` or `float8`; `None` if NULL is among them.
    pub fn floats(self) -> Option<Vec<f64>> {
        self.small_elements(Value::float)
    }

    /// The elements of an array of numbers that are passed by value. `None` if the array is of
    /// another type, or `read` returns `None` for an element.
    fn small_elements<T>(self, read: fn(Value<'a>) -> Option<T>) -> Option<Vec<T>> {
        let element = catalog::array_element(catalog::base_type(self.of.oid));
        let (length, alignment) = match element {
            pg_sys::INT2OID => (2, b's'),
            pg_sys::INT4OID | pg_sys::FLOAT4OID => (4, b'i'),
            pg_sys::INT8OID | pg_sys::FLOAT8OID => (8, b'd'),
            _ => return None,
        };
        let of = ElementType::new(element, length.into(), alignment);
        // SAFETY: an array of this type.
        let elements = unsafe { arrays::elements(self.datum, &of) }.nullable();
        elements
            .map(|datum| read(Value::small(datum?, element, length)))
            .collect()
    }

    /// A `bool`; raises an internal error for any other type.
    #[inline]
    pub fn as_bool(self) -> bool {
        assert_eq!(self.of.oid, pg_sys::BOOLOID);
        self.datum.value() != 0
    }

    /// An `oid`; raises an internal error for any other type.
    #[inline]
    pub fn as_oid(self) -> Oid {
        assert_eq!(self.of.oid, pg_sys::OIDOID);
        Oid::from(self.datum.value() as u32)
    }

    /// A value of a type that is stored as `text` is, as one; a `char(n)` stays what it is. Raises
    /// an internal error for any other type.
    pub fn as_text(self) -> Self {
        let base = catalog::base_type(self.of.oid);
        let is_char = base == pg_sys::BPCHAROID;
        assert!(is_char || catalog::is_text(base));
        let oid = if is_char { base } else { pg_sys::TEXTOID };
        Value {
            of: ValueType { oid, ..self.of },
            ..self
        }
    }

    /// The same value under another type that differs at most by a domain. Raises an internal error
    /// for any other type.
    pub fn relabelled(self, oid: Oid) -> Self {
        assert!(oid == self.of.oid || catalog::base_type(oid) == catalog::base_type(self.of.oid));
        Value {
            of: ValueType { oid, ..self.of },
            ..self
        }
    }

    /// The text form.
    pub fn output(self) -> String {
        String::from_utf8_lossy(&self.output_bytes()).into_owned()
    }

    /// The text form in UTF-8, whatever the encoding of the database is.
    pub fn utf8(self) -> String {
        text::utf8_lossy(&self.output_bytes())
    }

    /// The same of the beginning of a text.
    pub fn utf8_beginning(self) -> String {
        text::utf8_beginning(&self.output_bytes())
    }

    /// The text form in the encoding of the database.
    fn output_bytes(self) -> Vec<u8> {
        let (mut output, mut varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: the type's output function takes the value and returns a C string.
        unsafe {
            pg_sys::getTypeOutputInfo(self.of.oid, &mut output, &mut varlena);
            let text = pg_sys::OidOutputFunctionCall(output, self.datum);
            CStr::from_ptr(text).to_bytes().to_vec()
        }
    }

    /// Returns whether two values of one type are the same, byte for byte.
    pub fn image_eq(self, other: Value) -> bool {
        assert_eq!(self.of.oid, other.of.oid);
        let length = i32::from(self.of.length);
        // SAFETY: both are of this type. Values may have to be read from TOAST, which may fail.
        unsafe {
            pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                datum_image_eq(self.datum, other.datum, self.of.by_value, length)
            })
        }
    }

    /// A copy in Rust's memory.
    pub fn to_owned(self) -> OwnedValue {
        OwnedValue {
            bytes: match self.of.by_value {
                true => Box::default(),
                false => self.words(),
            },
            datum: self.datum,
            of: self.of,
        }
    }

    /// The bytes of a value that is passed by reference, uncompressed, in words so that they are
    /// aligned for every type.
    fn words(self) -> Box<[u64]> {
        // SAFETY: the type's length says what the datum points to.
        unsafe {
            let (bytes, detoasted) = match self.of.length {
                -1 => {
                    let stored: *mut pg_sys::varlena = self.datum.cast_mut_ptr();
                    let plain = pg_sys::pg_detoast_datum(stored);
                    let size = pgrx::varlena::varsize_4b(plain);
                    let bytes = core::slice::from_raw_parts(plain.cast::<u8>(), size);
                    (bytes, (plain != stored).then_some(plain))
                }
                -2 => {
                    let text = CStr::from_ptr(self.datum.cast_mut_ptr());
                    (text.to_bytes_with_nul(), None)
                }
                length => {
                    let start = self.datum.cast_mut_ptr::<u8>();
                    (core::slice::from_raw_parts(start, length as usize), None)
                }
            };
            let mut words = vec![0; bytes.len().div_ceil(8)].into_boxed_slice();
            let start = words.as_mut_ptr().cast();
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            if let Some(plain) = detoasted {
                pg_sys::pfree(plain.cast());
            }
            words
        }
    }
}

/// Returns whether any words are a value of a type of fixed length: of this extension, or `bigint`.
fn takes_any_words(oid: Oid) -> bool {
    is_extension_type(oid) || oid == pg_sys::INT8OID
}

/// Returns whether a type is not one of the server's own. The server trusts the bytes of its own
/// types; each function of this extension checks those of the extension's types.
fn is_extension_type(oid: Oid) -> bool {
    oid.to_u32() >= pg_sys::FirstNormalObjectId
}

/// A value in Rust's memory.
#[derive(Clone)]
pub struct OwnedValue {
    bytes: Box<[u64]>,
    datum: Datum,
    of: ValueType,
}

impl OwnedValue {
    /// A value of a type of this extension, or of `bigint`, from its words. Raises an internal
    /// error for any other type of the server, and unless the type has as many words.
    #[inline]
    pub fn from_words(words: &[u64], oid: Oid) -> Self {
        let of = ValueType::of(oid);
        assert!(takes_any_words(oid) && usize::try_from(of.length) == Ok(size_of_val(words)));
        OwnedValue {
            datum: Datum::from(words[0]),
            bytes: match of.by_value {
                true => Box::default(),
                false => words.into(),
            },
            of,
        }
    }

    /// A value of variable length, of a type of this extension, from the bytes behind its header.
    /// Raises an internal error for any other type.
    pub fn from_body(body: &[u8], oid: Oid) -> Self {
        let of = ValueType::of(oid);
        assert!(is_extension_type(oid) && of.is_varlena());
        let size = pg_sys::VARHDRSZ + body.len();
        let mut words = vec![0_u64; size.div_ceil(8)].into_boxed_slice();
        let start = words.as_mut_ptr().cast::<u8>();
        // SAFETY: the words have room for the header and the bytes.
        unsafe {
            pgrx::varlena::set_varsize_4b(start.cast(), size as i32);
            let at = start.add(pg_sys::VARHDRSZ);
            core::ptr::copy_nonoverlapping(body.as_ptr(), at, body.len());
        }
        OwnedValue {
            datum: Datum::null(),
            bytes: words,
            of,
        }
    }

    /// The address, if it is a `tid`; raises an internal error for any other type.
    #[inline]
    pub fn as_tid(&self) -> Tid {
        self.get().as_tid()
    }

    /// Orders values of one type by how they are stored: the same each time, and otherwise without
    /// a meaning. Raises an internal error for two types.
    pub fn image_cmp(&self, other: &Self) -> Ordering {
        assert_eq!(self.of.oid, other.of.oid);
        match self.of.by_value {
            true => self.datum.value().cmp(&other.datum.value()),
            false => self.bytes.cmp(&other.bytes),
        }
    }

    /// A copy of the datum in the current memory context.
    pub(super) fn server_copy(&self) -> Datum {
        if self.of.by_value {
            return self.datum;
        }
        // SAFETY: the new memory has the size of the bytes.
        unsafe {
            let copy = pg_sys::palloc(size_of_val(&*self.bytes)).cast::<u64>();
            core::ptr::copy_nonoverlapping(self.bytes.as_ptr(), copy, self.bytes.len());
            Datum::from(copy)
        }
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> Value<'_> {
        Value {
            datum: match self.of.by_value {
                true => self.datum,
                false => Datum::from(self.bytes.as_ptr()),
            },
            of: self.of,
            _memory: PhantomData,
        }
    }
}
