//! Trait of all fingerprint types, and the SQL functions that all of them have.
use core::cmp::Ordering;

use pgrx::pg_sys;

use super::hash::hash_of_bytes;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::varlena;

/// Bit vector of fixed width, which SQL compares by Hamming distance.
///
/// Values are ordered as unsigned numbers. The most significant bit is first.
pub trait Fingerprint: Copy + Ord + 'static {
    /// Name of the SQL type, for messages.
    const TYPE_NAME: &'static str;
    /// Width in bits, which is also the maximum distance.
    const BITS: u32;
    /// Sentence that describes the text form, for error messages.
    const TEXT_FORM: &'static str;
    /// Name of an SQL function that computes a fingerprint of this type from a text; `None` if
    /// there is no such function.
    const MADE_BY: Option<&'static str>;
    /// Binary form of a value: an array of `BITS / 8` bytes, the most significant byte first.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;

    /// Number of 64-bit words of a stored value.
    const WORDS: usize = Self::BITS as usize / 64;
    /// Reads the fingerprint in argument `n`. Raises an internal error for NULL and for a value of
    /// another length.
    fn argument(call: &Call, n: usize) -> Self;
    /// Creates a value from its stored form, the first [`WORDS`](Self::WORDS) elements of `words`.
    /// Ignores further elements.
    fn from_words(words: &[u64]) -> Self;
    /// Converts the value to a Datum of the SQL type.
    fn into_datum(self) -> pg_sys::Datum;
    /// Creates a value from its binary form.
    fn from_bytes(bytes: Self::Bytes) -> Self;
    /// Converts the value to its binary form.
    fn to_bytes(self) -> Self::Bytes;
    /// Returns the number of bits in which two values differ, `0..=BITS`.
    fn distance(self, other: Self) -> u32;
    /// Parses a value in its text form. Returns `None` if `text` is invalid.
    fn parse(text: &[u8]) -> Option<Self>;
    /// Appends the text form of the value to `text`.
    fn write(self, text: &mut String);
}

/// Returns the fingerprint in argument `n`, read by [`Fingerprint::argument`].
#[inline(always)]
pub fn arg<T: Fingerprint>(call: &Call, n: usize) -> T {
    T::argument(call, n)
}

/// Returns an SQL expression that computes a fingerprint of type `T` from a text, for hints in
/// errors; `None` if there is no such function.
pub fn made_by<T: Fingerprint>() -> Option<String> {
    T::MADE_BY.map(|function| format!("{function}('...')"))
}

/// Input function of a fingerprint type: converts text to a value. Raises error 22P02 if the text
/// is invalid.
pub fn input<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let text = call.cstring(0);
    match T::parse(text) {
        Some(value) => value.into_datum(),
        None => {
            let made_by = made_by::<T>();
            UserError::invalid_text(T::TYPE_NAME, text, T::TEXT_FORM, made_by.as_deref())
                .raise_soft(call)
        }
    }
}

/// Output function of a fingerprint type: converts a value to text.
pub fn output<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let mut text = String::with_capacity(T::BITS as usize / 4);
    arg::<T>(call, 0).write(&mut text);
    varlena::cstring(&text)
}

/// Receive function of a fingerprint type: converts a binary message to a value. The message has
/// the bytes of the value, the most significant byte first.
pub fn receive<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = call.message(T::BITS as usize / 8);
    from_slice::<T>(bytes)
        .expect("the server returned as many bytes as were asked for")
        .into_datum()
}

/// Send function of a fingerprint type, and its cast to bytea: returns the bytes of a value, the
/// most significant byte first.
pub fn send<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    varlena::build(&[arg::<T>(call, 0).to_bytes().as_ref()])
}

/// Cast from bytea to a fingerprint type. Raises error 22023 if the number of bytes is not that of
/// the type.
pub fn from_bytea<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = call.bytes(0);
    match from_slice::<T>(bytes) {
        Some(value) => value.into_datum(),
        None => UserError::invalid_parameter(format!(
            "cannot cast bytea of {} bytes to {}",
            bytes.len(),
            T::TYPE_NAME
        ))
        .detail(format!(
            "A {} has exactly {} bytes, with the most significant byte first.",
            T::TYPE_NAME,
            T::BITS / 8
        ))
        .hint("If the bytes are hexadecimal digits, decode them first: decode(x, 'hex').")
        .raise(),
    }
}

/// Cast from bit to a fingerprint type. Raises error 22023 if the number of bits is not that of the
/// type.
pub fn from_bit<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    // The bytes of a bit value: its length in bits (int4 in native byte order), then the bits, most
    // significant first.
    let (length, bits) = call.bytes(0).split_at(size_of::<i32>());
    let length = i32::from_ne_bytes(length.try_into().expect("split after four bytes"));
    match from_slice::<T>(bits) {
        Some(value) if length == T::BITS as i32 => value.into_datum(),
        _ => UserError::invalid_parameter(format!(
            "cannot cast a bit string of length {length} to {}",
            T::TYPE_NAME
        ))
        .detail(format!("A {} has exactly {} bits.", T::TYPE_NAME, T::BITS))
        .hint(format!(
            "First cast the bit string to bit({}), which truncates it or pads it with zeros on the \
             right.",
            T::BITS
        ))
        .raise(),
    }
}

/// Cast from a fingerprint type to bit, with as many bits as the type has.
pub fn to_bit<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    varlena::build(&[
        &(T::BITS as i32).to_ne_bytes(),
        arg::<T>(call, 0).to_bytes().as_ref(),
    ])
}

/// Creates a value from its binary form. Returns `None` if the number of bytes is wrong.
fn from_slice<T: Fingerprint>(bytes: &[u8]) -> Option<T> {
    T::Bytes::try_from(bytes).ok().map(T::from_bytes)
}

/// Returns the order of the two fingerprints in arguments 0 and 1.
#[inline(always)]
pub fn order<T: Fingerprint>(call: &Call) -> Ordering {
    arg::<T>(call, 0).cmp(&arg(call, 1))
}

/// Transition function of the aggregate `min`: returns the smaller of two fingerprints.
#[inline(always)]
pub fn smaller<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    // Returns one of the two arguments itself, not a copy: a copy of a value that is passed by
    // reference would have to be freed.
    call.arg(usize::from(arg::<T>(call, 1) < arg::<T>(call, 0)))
}

/// Transition function of the aggregate `max`: returns the larger of two fingerprints.
#[inline(always)]
pub fn larger<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    call.arg(usize::from(arg::<T>(call, 1) > arg::<T>(call, 0)))
}

/// `bit_count(fingerprint)`: number of 1 bits as bigint, like the server's functions of this name.
#[inline(always)]
pub fn bit_count<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = arg::<T>(call, 0).to_bytes();
    let ones = bytes
        .as_ref()
        .iter()
        .map(|byte| i64::from(byte.count_ones() as u8));
    pg_sys::Datum::from(ones.sum::<i64>())
}

/// Hashes the bytes of a fingerprint by [`hash_of_bytes`].
#[inline(always)]
pub fn hash<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    hash_of_bytes(call, arg::<T>(call, 0).to_bytes().as_ref())
}
