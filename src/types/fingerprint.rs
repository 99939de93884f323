//! Trait of all fingerprint types, and the SQL functions that are generic over it.
use core::cmp::Ordering;

use pgrx::pg_sys;

use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::hashing;
use neardup_pg::varlena;

/// Bit vector of fixed width that SQL compares by Hamming distance.
///
/// The order is that of unsigned numbers, most significant bit first.
pub trait Fingerprint: Copy + Ord + 'static {
    /// Name of the SQL type, for messages.
    const TYPE_NAME: &'static str;
    /// Width in bits, which is also the maximum distance.
    const BITS: u32;
    /// Description of the text form for messages: a full sentence.
    const TEXT_FORM: &'static str;
    /// Function that makes a value from text, if there is one.
    const MADE_BY: Option<&'static str>;
    /// Binary form: an array of `BITS / 8` bytes, most significant first.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;

    /// Number of words of a stored value.
    const WORDS: usize = Self::BITS as usize / 64;
    /// Reads argument `n`. Raises an internal error for NULL and for values of another length.
    fn argument(call: &Call, n: usize) -> Self;
    /// Creates a value from the words in which it is stored. Ignores further words.
    fn from_words(words: &[u64]) -> Self;
    /// Converts the value to a Datum.
    fn into_datum(self) -> pg_sys::Datum;
    /// Creates a value from its binary form.
    fn from_bytes(bytes: Self::Bytes) -> Self;
    /// Returns the binary form.
    fn to_bytes(self) -> Self::Bytes;
    /// Returns the number of differing bits, `0..=BITS`.
    fn distance(self, other: Self) -> u32;
    /// Parses the text form. Returns `None` if `text` is invalid.
    fn parse(text: &[u8]) -> Option<Self>;
    /// Appends the text form.
    fn write(self, text: &mut String);
}

/// Reads argument `n` by [`Fingerprint::argument`].
#[inline(always)]
pub fn arg<T: Fingerprint>(call: &Call, n: usize) -> T {
    T::argument(call, n)
}

/// Returns an expression that makes a value from text, for hints.
pub fn made_by<T: Fingerprint>() -> Option<String> {
    T::MADE_BY.map(|function| format!("{function}('...')"))
}

/// Converts text to a value. Raises error 22P02 if the text is invalid.
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

/// Converts a value to text.
pub fn output<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let mut text = String::with_capacity(T::BITS as usize / 4);
    arg::<T>(call, 0).write(&mut text);
    varlena::cstring(&text)
}

/// Converts a binary message to a value.
pub fn receive<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = call.message(T::BITS as usize / 8);
    from_slice::<T>(bytes)
        .expect("the server returned as many bytes as were asked for")
        .into_datum()
}

/// Converts a value to its bytes, most significant first: a binary message, and the cast to bytea.
pub fn send<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    varlena::build(&[arg::<T>(call, 0).to_bytes().as_ref()])
}

/// Cast from bytea. Raises error 22023 unless the length is exactly the width.
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

/// Cast from bit. Raises error 22023 unless the length is exactly the width.
pub fn from_bit<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    // The length in bits (int4 in native byte order), then the bits, most significant first.
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

/// Cast to bit with the width of the type.
pub fn to_bit<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    varlena::build(&[
        &(T::BITS as i32).to_ne_bytes(),
        arg::<T>(call, 0).to_bytes().as_ref(),
    ])
}

fn from_slice<T: Fingerprint>(bytes: &[u8]) -> Option<T> {
    T::Bytes::try_from(bytes).ok().map(T::from_bytes)
}

/// Returns the order of the two arguments.
#[inline(always)]
pub fn order<T: Fingerprint>(call: &Call) -> Ordering {
    arg::<T>(call, 0).cmp(&arg(call, 1))
}

/// Returns the smaller of two values: the step of the aggregate `min`.
#[inline(always)]
pub fn smaller<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    // Returns the argument itself, because a copy of a wide value would have to be freed.
    call.arg(usize::from(arg::<T>(call, 1) < arg::<T>(call, 0)))
}

/// Returns the larger of two values: the step of the aggregate `max`.
#[inline(always)]
pub fn larger<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    call.arg(usize::from(arg::<T>(call, 1) > arg::<T>(call, 0)))
}

/// Returns the number of 1 bits as bigint, like the server's functions of this name.
#[inline(always)]
pub fn bit_count<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let bytes = arg::<T>(call, 0).to_bytes();
    let ones = bytes
        .as_ref()
        .iter()
        .map(|byte| i64::from(byte.count_ones() as u8));
    pg_sys::Datum::from(ones.sum::<i64>())
}

/// Hashes the argument by [`hash_of_bytes`].
#[inline(always)]
pub fn hash<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    hash_of_bytes(call, arg::<T>(call, 0).to_bytes().as_ref())
}

/// Hashes bytes like the server: 32 bits for hash joins, grouping and hash indexes. Returns 64
/// bits, for partitioning by hash, if the called function has a seed after the value.
#[inline(always)]
pub fn hash_of_bytes(call: &Call, bytes: &[u8]) -> pg_sys::Datum {
    match call.arg_count() {
        1 => hashing::hash_bytes(bytes).into(),
        _ => hashing::hash_bytes_extended(bytes, call.int8(1) as u64).into(),
    }
}
