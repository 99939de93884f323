//! The trait of all fingerprint types, and the SQL functions that are generic over it.
use core::cmp::Ordering;
use core::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::errors::UserError;
use crate::pg::fmgr::Call;
use crate::pg::varlena;

unsafe extern "C-unwind" {
    // The server's hash functions (common/hashfn.h). They cannot raise errors, so they are
    // declared here without the wrapper that pgrx puts around C functions.
    fn hash_bytes(key: *const u8, length: core::ffi::c_int) -> u32;
    fn hash_bytes_extended(key: *const u8, length: core::ffi::c_int, seed: u64) -> u64;
}

/// A bit vector of fixed width that SQL compares by Hamming distance.
///
/// The order is that of the bits read as one unsigned number, most significant bit first.
pub trait Fingerprint: Copy + Ord + 'static {
    /// The name of the SQL type, for messages.
    const TYPE_NAME: &'static str;
    /// The width in bits, which is also the greatest distance.
    const BITS: u32;
    /// Description of the text form for messages: a full sentence.
    const TEXT_FORM: &'static str;
    /// The binary form: an array of `BITS / 8` bytes, most significant first.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;

    /// Reads the value that the server passes as `datum`.
    ///
    /// # Safety
    /// `datum` is a value of the SQL type that this type stands for.
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self;
    /// The value in the form that the server takes.
    fn into_datum(self) -> pg_sys::Datum;
    /// The value from its binary form.
    fn from_bytes(bytes: Self::Bytes) -> Self;
    /// The binary form.
    fn to_bytes(self) -> Self::Bytes;
    /// The number of bits in which the two differ, `0..=BITS`.
    fn distance(self, other: Self) -> u32;
    /// Parses the text form; `None` if `text` is invalid.
    fn parse(text: &[u8]) -> Option<Self>;
    /// Appends the text form.
    fn write(self, text: &mut String);
}

/// The value of argument `n`.
#[inline(always)]
fn arg<T: Fingerprint>(call: &Call, n: usize) -> T {
    // SAFETY: the SQL declarations of the functions of this file give their arguments this type.
    unsafe { T::from_datum(call.arg(n)) }
}

/// The bytes of a C string argument.
pub fn cstring_arg<'a>(call: &Call, n: usize) -> &'a [u8] {
    // SAFETY: input functions are declared to take a cstring, which outlives the call.
    unsafe { CStr::from_ptr(call.arg(n).cast_mut_ptr()) }.to_bytes()
}

/// A text as the C string that an output function returns.
pub fn return_cstring(text: &str) -> pg_sys::Datum {
    // SAFETY: one byte more than the text is allocated, for the terminator.
    unsafe {
        let cstring = pg_sys::palloc(text.len() + 1).cast::<u8>();
        core::ptr::copy_nonoverlapping(text.as_ptr(), cstring, text.len());
        *cstring.add(text.len()) = 0;
        pg_sys::Datum::from(cstring)
    }
}

/// The next `length` bytes of a binary message. The server raises 08P01 if there are fewer.
pub fn message_bytes<'a>(call: &Call, length: usize) -> &'a [u8] {
    // SAFETY: receive functions are declared to take an internal StringInfo as first argument,
    // and the bytes that the server hands out lie in it.
    unsafe {
        let message: pg_sys::StringInfo = call.arg(0).cast_mut_ptr();
        let bytes = pg_sys::pq_getmsgbytes(message, length as core::ffi::c_int);
        core::slice::from_raw_parts(bytes.cast::<u8>(), length)
    }
}

/// Text to value: 22P02 if the text is invalid.
pub fn input<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let text = cstring_arg(call, 0);
    match T::parse(text) {
        Some(value) => value.into_datum(),
        None => UserError::invalid_text(T::TYPE_NAME, text, T::TEXT_FORM).raise_soft(call),
    }
}

/// Value to text.
pub fn output<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let mut text = String::with_capacity(T::BITS as usize / 4);
    arg::<T>(call, 0).write(&mut text);
    return_cstring(&text)
}

/// Binary message to value.
pub fn receive<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = message_bytes(call, T::BITS as usize / 8);
    from_slice::<T>(bytes)
        .expect("the server returned as many bytes as were asked for")
        .into_datum()
}

/// Value to binary message: the bytes, most significant first. It is the cast to bytea as well.
pub fn send<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    varlena::build(&[arg::<T>(call, 0).to_bytes().as_ref()])
}

/// Cast from bytea: 22023 unless it has exactly the width.
pub fn from_bytea<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: the cast is declared to take bytea.
    let bytes = unsafe { varlena::bytes(call.arg(0)) };
    match from_slice::<T>(bytes) {
        Some(value) => value.into_datum(),
        None => UserError::invalid_parameter(format!(
            "cannot cast bytea of {} bytes to {}",
            bytes.len(),
            T::TYPE_NAME
        ))
        .detail(format!(
            "A {} has exactly {} bytes, most significant first.",
            T::TYPE_NAME,
            T::BITS / 8
        ))
        .hint("If the bytes are hexadecimal digits, decode them first: decode(x, 'hex').")
        .raise(),
    }
}

/// Cast from bit: 22023 unless it has exactly the width.
pub fn from_bit<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: the cast is declared to take bit, which is a varlena: a length in bits (int4 in the
    // machine's byte order), then the bits, most significant first.
    let payload = unsafe { varlena::bytes(call.arg(0)) };
    let (length, bits) = payload.split_at(size_of::<i32>());
    let length = i32::from_ne_bytes(length.try_into().expect("split after four bytes"));
    match from_slice::<T>(bits) {
        Some(value) if length == T::BITS as i32 => value.into_datum(),
        _ => UserError::invalid_parameter(format!(
            "cannot cast a bit string of length {length} to {}",
            T::TYPE_NAME
        ))
        .detail(format!("A {} has exactly {} bits.", T::TYPE_NAME, T::BITS))
        .hint(format!(
            "Cast it to bit({}) first, which cuts it or pads it with zeros on the right.",
            T::BITS
        ))
        .raise(),
    }
}

/// Cast to bit: as many bits as the type has.
pub fn to_bit<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    varlena::build(&[
        &(T::BITS as i32).to_ne_bytes(),
        arg::<T>(call, 0).to_bytes().as_ref(),
    ])
}

fn from_slice<T: Fingerprint>(bytes: &[u8]) -> Option<T> {
    T::Bytes::try_from(bytes).ok().map(T::from_bytes)
}

/// The order as -1, 0 or 1, for btree.
#[inline(always)]
pub fn compare<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(arg::<T>(call, 0).cmp(&arg::<T>(call, 1)) as i32)
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident: $test:expr;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
            let test: fn(Ordering) -> bool = $test;
            pg_sys::Datum::from(test(arg::<T>(call, 0).cmp(&arg::<T>(call, 1))))
        }
    )* };
}

comparison! {
    /// The operator `=`.
    equal: Ordering::is_eq;
    /// The operator `<>`.
    not_equal: Ordering::is_ne;
    /// The operator `<`.
    less: Ordering::is_lt;
    /// The operator `<=`.
    less_or_equal: Ordering::is_le;
    /// The operator `>`.
    greater: Ordering::is_gt;
    /// The operator `>=`.
    greater_or_equal: Ordering::is_ge;
}

/// The lesser of two values: the step of the aggregate `min`.
#[inline(always)]
pub fn smaller<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    // The argument itself is returned: a copy of a wide value would have to be freed.
    call.arg(usize::from(arg::<T>(call, 1) < arg::<T>(call, 0)))
}

/// The greater of two values: the step of the aggregate `max`.
#[inline(always)]
pub fn larger<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    call.arg(usize::from(arg::<T>(call, 1) > arg::<T>(call, 0)))
}

/// The number of bits that are 1, as bigint, which the server's functions of this name return.
#[inline(always)]
pub fn bit_count<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = arg::<T>(call, 0).to_bytes();
    let ones = bytes
        .as_ref()
        .iter()
        .map(|byte| i64::from(byte.count_ones() as u8));
    pg_sys::Datum::from(ones.sum::<i64>())
}

/// Hash of 32 bits, for hash joins, grouping and hash indexes.
#[inline(always)]
pub fn hash<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    hash_of_bytes(arg::<T>(call, 0).to_bytes().as_ref())
}

/// Hash of 64 bits with a seed, for partitioning by hash.
#[inline(always)]
pub fn hash_extended<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let seed = call.arg(1).value() as u64;
    hash_of_bytes_extended(arg::<T>(call, 0).to_bytes().as_ref(), seed)
}

/// The server's hash of bytes, 32 bits.
#[inline(always)]
pub fn hash_of_bytes(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: the pointer and the length are those of one slice.
    let hash = unsafe { hash_bytes(bytes.as_ptr(), bytes.len() as core::ffi::c_int) };
    pg_sys::Datum::from(hash)
}

/// The server's hash of bytes with a seed, 64 bits.
#[inline(always)]
pub fn hash_of_bytes_extended(bytes: &[u8], seed: u64) -> pg_sys::Datum {
    let length = bytes.len() as core::ffi::c_int;
    // SAFETY: the pointer and the length are those of one slice.
    let hash = unsafe { hash_bytes_extended(bytes.as_ptr(), length, seed) };
    pg_sys::Datum::from(hash)
}
