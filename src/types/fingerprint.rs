//! The trait of all fingerprint types, and the SQL functions that are generic over it.
use core::cmp::Ordering;

use pgrx::pg_sys;

use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::hashing;
use neardup_pg::varlena;

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
    /// Function that makes a value of a text, if there is one.
    const MADE_BY: Option<&'static str>;
    /// The binary form: an array of `BITS / 8` bytes, most significant first.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;

    /// Number of words in which a value is stored.
    const WORDS: usize = Self::BITS as usize / 64;
    /// Reads argument `n`. Raises an internal error for NULL and for values of another length.
    fn argument(call: &Call, n: usize) -> Self;
    /// The value from the words in which it is stored, with more words behind it or without.
    fn from_words(words: &[u64]) -> Self;
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

/// Argument `n` as [`Fingerprint::argument`] reads it.
#[inline(always)]
pub fn arg<T: Fingerprint>(call: &Call, n: usize) -> T {
    T::argument(call, n)
}

/// Expression that makes a value of a text, for hints.
pub fn made_by<T: Fingerprint>() -> Option<String> {
    T::MADE_BY.map(|function| format!("{function}('...')"))
}

/// Text to value: 22P02 if the text is invalid.
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

/// Value to text.
pub fn output<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let mut text = String::with_capacity(T::BITS as usize / 4);
    arg::<T>(call, 0).write(&mut text);
    varlena::cstring(&text)
}

/// Binary message to value.
pub fn receive<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = call.message(T::BITS as usize / 8);
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
    let bytes = call.bytes(0);
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
    // A length in bits (int4 in the machine's byte order), then the bits, most significant first.
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

/// The order of the two arguments.
#[inline(always)]
pub fn order<T: Fingerprint>(call: &Call) -> Ordering {
    arg::<T>(call, 0).cmp(&arg(call, 1))
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

/// Hash, as [`hash_of_bytes`].
#[inline(always)]
pub fn hash<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    hash_of_bytes(call, arg::<T>(call, 0).to_bytes().as_ref())
}

/// The server's hash of bytes: of 32 bits, for hash joins, grouping and hash indexes; or of 64
/// bits, for partitioning by hash, if the function that is called takes a seed after the value.
#[inline(always)]
pub fn hash_of_bytes(call: &Call, bytes: &[u8]) -> pg_sys::Datum {
    match call.arg_count() {
        1 => hashing::hash_bytes(bytes).into(),
        _ => hashing::hash_bytes_extended(bytes, call.int8(1) as u64).into(),
    }
}
