//! SQL values with their types, borrowed from the server's memory or copied to Rust memory.
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
    /// Returns whether two values have the same bytes after decompression (utils/datum.h). pgrx has
    /// no binding for it.
    fn datum_image_eq(a: Datum, b: Datum, by_value: bool, length: core::ffi::c_int) -> bool;
}

/// SQL type, with the way in which the server passes its values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ValueType {
    /// OID of the type.
    oid: Oid,
    /// Length of values in bytes (`typlen`): -1 for a varlena, -2 for a C string.
    length: i16,
    /// True if a datum is the value itself, false if it is a pointer.
    by_value: bool,
}

impl ValueType {
    /// Looks up the type with this OID in the catalogue.
    pub fn from_oid(oid: Oid) -> Self {
        let (mut length, mut by_value) = (0, false);
        // SAFETY: a catalogue lookup; an unknown type is an error.
        unsafe { pg_sys::get_typlenbyval(oid, &mut length, &mut by_value) };
        ValueType {
            oid,
            length,
            by_value,
        }
    }

    /// Describes the type with this OID without a lookup. Its values are passed by reference and
    /// have `length` bytes. A negative `length` means variable length.
    pub fn by_reference(oid: Oid, length: i16) -> Self {
        ValueType {
            oid,
            length,
            by_value: false,
        }
    }

    /// Type of a table's or index's column.
    #[inline]
    pub fn from_attribute(attribute: &pg_sys::FormData_pg_attribute) -> Self {
        ValueType {
            oid: attribute.atttypid,
            length: attribute.attlen,
            by_value: attribute.attbyval,
        }
    }

    /// Type of a constant in an expression.
    pub fn from_const(constant: &pg_sys::Const) -> Self {
        ValueType {
            oid: constant.consttype,
            length: constant.constlen as i16,
            by_value: constant.constbyval,
        }
    }

    /// OID of the type.
    #[inline(always)]
    pub fn oid(self) -> Oid {
        self.oid
    }

    /// Length of the type's values in bytes; negative if it varies.
    #[inline(always)]
    pub fn length(self) -> i16 {
        self.length
    }

    /// Returns whether a datum of this type is the value itself and not a pointer.
    #[inline(always)]
    pub fn by_value(self) -> bool {
        self.by_value
    }

    /// Returns whether the type's values are varlenas: of variable length, with a header that has
    /// the length.
    #[inline(always)]
    pub fn is_varlena(self) -> bool {
        self.length == -1
    }
}

/// SQL value that is not NULL, in memory that lives for `'a`.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    datum: Datum,
    of: ValueType,
    _memory: PhantomData<&'a ()>,
}

impl<'a> Value<'a> {
    /// Wraps a value of a column.
    ///
    /// # Safety
    /// The conditions of [`Value::typed`] hold for the column's type.
    #[inline]
    pub unsafe fn new(datum: Datum, attribute: &pg_sys::FormData_pg_attribute) -> Self {
        Value {
            datum,
            of: ValueType::from_attribute(attribute),
            _memory: PhantomData,
        }
    }

    /// Wraps a value of the type `of`.
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

    /// Makes a value of a column's type from 64-bit words. The column has type `bigint` or a
    /// fixed-length type of this extension. Raises an internal error for other types, and if the
    /// values of the type do not have the length of `words`.
    #[inline]
    pub fn from_words(words: &'a [u64], column: &pg_sys::FormData_pg_attribute) -> Self {
        let of = ValueType::from_attribute(column);
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

    /// Wraps the datum of a built-in type whose values are passed by value and have `length` bytes.
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

    /// Makes a `bool`.
    #[inline]
    pub fn bool(value: bool) -> Self {
        Self::small(Datum::from(value), pg_sys::BOOLOID, 1)
    }

    /// Makes an `int4`.
    #[inline]
    pub fn int4(value: i32) -> Self {
        Self::small(Datum::from(value), pg_sys::INT4OID, 4)
    }

    /// Makes an `int8`.
    #[inline]
    pub fn int8(value: i64) -> Self {
        Self::small(Datum::from(value), pg_sys::INT8OID, 8)
    }

    /// Makes a `float4`.
    #[inline]
    pub fn float4(value: f32) -> Self {
        Self::small(Datum::from(value.to_bits()), pg_sys::FLOAT4OID, 4)
    }

    /// Makes a `float8`.
    #[inline]
    pub fn float8(value: f64) -> Self {
        Self::small(Datum::from(value.to_bits()), pg_sys::FLOAT8OID, 8)
    }

    /// Makes an `oid`.
    #[inline]
    pub fn oid(value: Oid) -> Self {
        Self::small(Datum::from(value), pg_sys::OIDOID, 4)
    }

    /// Makes a `tid`. Borrows the row address `value` instead of copying it.
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

    /// The value as the server's datum.
    #[inline]
    pub fn datum(self) -> Datum {
        self.datum
    }

    /// Type of the value.
    #[inline]
    pub fn value_type(self) -> ValueType {
        self.of
    }

    /// OID of the value's type.
    #[inline]
    pub fn type_oid(self) -> Oid {
        self.of.oid
    }

    /// Length in bytes of the values of this type; negative if it varies.
    #[inline]
    pub fn length(self) -> i16 {
        self.of.length
    }

    /// Returns whether a varlena has a header of four bytes and is not compressed. Raises an
    /// internal error for values of other types.
    #[inline]
    pub fn is_plain(self) -> bool {
        assert_eq!(self.of.length, -1);
        // SAFETY: a value of variable length.
        unsafe { pgrx::varlena::varatt_is_4b_u(self.datum.cast_mut_ptr()) }
    }

    /// Calls `each` with the bytes of a varlena after its header. If the value is compressed, has a
    /// short header or is in TOAST, makes a copy for the call. Frees the copy after the call,
    /// because a statement may read millions of values. Raises an internal error for values of
    /// other types.
    #[inline]
    pub fn with_body<T>(self, each: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: a plain value has variable length and needs no copy. Its header is aligned to
        // at least four bytes.
        let body = |value: Value| unsafe { varlena::aligned(value.datum()) };
        match self.is_plain() {
            true => each(body(self)),
            false => each(body(self.to_owned().get())),
        }
    }

    /// Fills `words` with the first 64-bit words of a value of fixed length. Raises an internal
    /// error if the value is shorter.
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
        // SAFETY: a value passed by reference, which has the length of its type.
        unsafe { core::slice::from_raw_parts(start, self.of.length as usize) }
    }

    /// Row address in a value of type `tid`. Raises an internal error for any other type.
    #[inline]
    pub fn as_tid(self) -> Tid {
        assert_eq!(self.of.oid, pg_sys::TIDOID);
        let bytes = self.fixed_bytes();
        // `ItemPointerData` has the two halves of the block number, the high half first, and then
        // the offset.
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Tid {
            block: u32::from(half(0)) << 16 | u32::from(half(2)),
            offset: half(4),
        }
    }

    /// Number in a value of type `int2`, `int4`, `int8` or a domain over one of them. `None` for
    /// other types.
    pub fn integer(self) -> Option<i64> {
        let bits = self.datum.value();
        match catalog::base_type(self.of.oid) {
            pg_sys::INT2OID => Some((bits as i16).into()),
            pg_sys::INT4OID => Some((bits as i32).into()),
            pg_sys::INT8OID => Some(bits as i64),
            _ => None,
        }
    }

    /// Number in a value of type `float4`, `float8` or a domain over one of them. `None` for other
    /// types.
    pub fn float(self) -> Option<f64> {
        let bits = self.datum.value();
        match catalog::base_type(self.of.oid) {
            pg_sys::FLOAT4OID => Some(f32::from_bits(bits as u32).into()),
            pg_sys::FLOAT8OID => Some(f64::from_bits(bits as u64)),
            _ => None,
        }
    }

    /// Elements of an array of `int2`, `int4` or `int8`. `None` for other types, and if an element
    /// is NULL.
    pub fn integers(self) -> Option<Vec<i64>> {
        self.small_elements(Value::integer)
    }

    /// Elements of an array of `float4` or `float8`. `None` for other types, and if an element is
    /// NULL.
    pub fn floats(self) -> Option<Vec<f64>> {
        self.small_elements(Value::float)
    }

    /// Elements of an array of integers or floating-point numbers, each converted by `read`. `None`
    /// for other types, if an element is NULL, or if `read` returns `None` for an element.
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

    /// Value of type `bool`. Raises an internal error for any other type.
    #[inline]
    pub fn as_bool(self) -> bool {
        assert_eq!(self.of.oid, pg_sys::BOOLOID);
        self.datum.value() != 0
    }

    /// Value of type `oid`. Raises an internal error for any other type.
    #[inline]
    pub fn as_oid(self) -> Oid {
        assert_eq!(self.of.oid, pg_sys::OIDOID);
        Oid::from(self.datum.value() as u32)
    }

    /// Returns the same value with type `text`. The value's type must be stored like `text`,
    /// such as `varchar` or a domain over it. A value of type `char(n)`, or of a domain over it,
    /// gets the type `bpchar` instead. Raises an internal error for any other type.
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

    /// Returns the same value, labelled as a value of the type whose OID is `oid`. Both types must
    /// have the same base type, for example a domain and its base type. Raises an internal error if
    /// they do not.
    pub fn relabelled(self, oid: Oid) -> Self {
        assert!(oid == self.of.oid || catalog::base_type(oid) == catalog::base_type(self.of.oid));
        Value {
            of: ValueType { oid, ..self.of },
            ..self
        }
    }

    /// Text form of the value, as its type's output function writes it. The bytes are read as
    /// UTF-8, whatever the database's encoding is. Invalid bytes become replacement characters. Use
    /// [`Value::utf8`] to convert the text from the database's encoding.
    pub fn output(self) -> String {
        String::from_utf8_lossy(&self.output_bytes()).into_owned()
    }

    /// Text form of the value, converted from the encoding of the database to UTF-8.
    pub fn utf8(self) -> String {
        text::utf8_lossy(&self.output_bytes())
    }

    /// Does the same as [`Value::utf8`] for a value that is a prefix of a text. Drops an incomplete
    /// last character.
    pub fn utf8_beginning(self) -> String {
        text::utf8_beginning(&self.output_bytes())
    }

    /// Text form of the value, in the encoding of the database.
    fn output_bytes(self) -> Vec<u8> {
        let (mut output, mut varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: the type's output function takes the value and returns a C string.
        unsafe {
            pg_sys::getTypeOutputInfo(self.of.oid, &mut output, &mut varlena);
            let text = pg_sys::OidOutputFunctionCall(output, self.datum);
            CStr::from_ptr(text).to_bytes().to_vec()
        }
    }

    /// Returns whether two values of one type have the same bytes, after decompression. Raises an
    /// internal error if the types differ.
    pub fn image_eq(self, other: Value) -> bool {
        assert_eq!(self.of.oid, other.of.oid);
        let length = i32::from(self.of.length);
        // SAFETY: both values have this type. Reading them from TOAST may raise an error, which the
        // boundary catches.
        unsafe {
            pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                datum_image_eq(self.datum, other.datum, self.of.by_value, length)
            })
        }
    }

    /// Copies the value to Rust memory. Compressed values are decompressed.
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

    /// Bytes of a value that is passed by reference, decompressed and read from TOAST. They are in
    /// 64-bit words, because these are aligned for every type; the last word is padded with zeros.
    fn words(self) -> Box<[u64]> {
        // SAFETY: the type's length determines the form of the value that the datum points to.
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

/// Returns whether a value of this fixed-length type may be made from any words without a check.
/// True for `bigint`, where every bit pattern is a valid value, and for the types for which
/// [`is_not_builtin`] is true.
fn takes_any_words(oid: Oid) -> bool {
    is_not_builtin(oid) || oid == pg_sys::INT8OID
}

/// Returns whether a type is not built into the server. This extension makes values of such a type
/// from unchecked bytes only for its own types, whose functions check the bytes. The server's
/// functions do not check the bytes of built-in types.
fn is_not_builtin(oid: Oid) -> bool {
    oid.to_u32() >= pg_sys::FirstNormalObjectId
}

/// SQL value that is not NULL, copied to Rust memory.
#[derive(Clone)]
pub struct OwnedValue {
    /// Bytes of a value that is passed by reference; otherwise empty.
    bytes: Box<[u64]>,
    /// The value, if it is passed by value.
    datum: Datum,
    of: ValueType,
}

impl OwnedValue {
    /// Makes a value from 64-bit words. `oid` is `bigint` or a fixed-length type of this extension.
    /// Raises an internal error for other built-in types, and if the values of the type do not have
    /// the length of `words`.
    #[inline]
    pub fn from_words(words: &[u64], oid: Oid) -> Self {
        let of = ValueType::from_oid(oid);
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

    /// Makes a value of a variable-length type of this extension. `body` has the bytes after the
    /// header. Raises an internal error for any other type.
    pub fn from_body(body: &[u8], oid: Oid) -> Self {
        let of = ValueType::from_oid(oid);
        assert!(is_not_builtin(oid) && of.is_varlena());
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

    /// Row address in a value of type `tid`. Raises an internal error for any other type.
    #[inline]
    pub fn as_tid(&self) -> Tid {
        self.get().as_tid()
    }

    /// Compares two values of one type by their bytes. The order is the same in each run but has no
    /// meaning. Raises an internal error if the types differ.
    pub fn image_cmp(&self, other: &Self) -> Ordering {
        assert_eq!(self.of.oid, other.of.oid);
        match self.of.by_value {
            true => self.datum.value().cmp(&other.datum.value()),
            false => self.bytes.cmp(&other.bytes),
        }
    }

    /// Copies the value to the current memory context, and returns the copy's datum.
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

    /// Borrows the value.
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
