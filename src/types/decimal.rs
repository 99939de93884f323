//! Casts between fingerprints and `numeric`. The bits of a fingerprint are read as one unsigned
//! number.
//!
//! Programs that store 64-bit hashes as unsigned integers print them in decimal, and half of these
//! numbers are beyond the range of `bigint`. Of the server's types, only `numeric` can represent
//! them.
use core::fmt::Write;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::Fingerprint;
use super::fingerprint::arg;
use neardup_pg::errors::{UserError, shown};
use neardup_pg::fmgr::Call;
use neardup_pg::varlena;

/// Number of 64-bit words of the longest fingerprint.
const WORDS: usize = 4;
/// Number of decimal digits that are converted at once. It is the largest number of digits that
/// always fit into 64 bits.
const CHUNK: usize = 19;

/// Unsigned number of 256 bits. The most significant word is first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct U256([u64; WORDS]);

impl U256 {
    /// Returns `self * factor + addend`, or `None` if the result needs more than 256 bits.
    fn multiply_add(self, factor: u64, addend: u64) -> Option<Self> {
        let mut words = self.0;
        let mut carry = u128::from(addend);
        for word in words.iter_mut().rev() {
            carry += u128::from(*word) * u128::from(factor);
            *word = carry as u64;
            carry >>= 64;
        }
        (carry == 0).then_some(U256(words))
    }

    /// Returns the quotient and the remainder of a division by `divisor`.
    fn divide(self, divisor: u64) -> (Self, u64) {
        let mut words = self.0;
        let mut rest = 0;
        for word in &mut words {
            let dividend = u128::from(rest) << 64 | u128::from(*word);
            *word = (dividend / u128::from(divisor)) as u64;
            rest = (dividend % u128::from(divisor)) as u64;
        }
        (U256(words), rest)
    }

    /// Parses decimal digits. Returns `None` if a byte is not a digit or the number needs more than
    /// 256 bits.
    fn parse(digits: &[u8]) -> Option<Self> {
        let mut number = U256::default();
        for chunk in digits.chunks(CHUNK) {
            let text = str::from_utf8(chunk).ok()?;
            if !chunk.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let factor = 10_u64.pow(chunk.len() as u32);
            number = number.multiply_add(factor, text.parse().ok()?)?;
        }
        Some(number)
    }

    /// Returns the number in decimal digits without leading zeros.
    fn to_decimal(self) -> String {
        let mut chunks = Vec::new();
        let mut number = self;
        loop {
            let (quotient, rest) = number.divide(10_u64.pow(CHUNK as u32));
            chunks.push(rest);
            if quotient == U256::default() {
                break;
            }
            number = quotient;
        }
        let mut text = chunks.pop().unwrap_or(0).to_string();
        for chunk in chunks.iter().rev() {
            write!(text, "{chunk:0CHUNK$}").expect("writing to a string cannot fail");
        }
        text
    }
}

/// Cast from numeric to a fingerprint type. Raises error 22003 if the number is negative or too
/// large for the type, and 22023 if it has a fraction.
pub fn from_numeric<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let text = call.numeric(0).as_bytes();
    let (whole, fraction) = match text.iter().position(|byte| *byte == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &[][..]),
    };
    if fraction.iter().any(|digit| *digit != b'0') {
        UserError::invalid_parameter(format!("cannot cast {} to {}", shown(text), T::TYPE_NAME))
            .detail("A fingerprint is a whole number.")
            .hint("If the fraction does not matter, round the number first.")
            .raise()
    }
    // The bytes above the width of the type must be zero.
    let bytes = U256::parse(whole).map(|number| number.0.map(u64::to_be_bytes));
    let spare = 8 * WORDS - T::BITS as usize / 8;
    let value = bytes.as_ref().and_then(|bytes| {
        let (above, bytes) = bytes.as_flattened().split_at(spare);
        let fits = above.iter().all(|byte| *byte == 0);
        fits.then(|| T::Bytes::try_from(bytes).ok()).flatten()
    });
    match value {
        Some(bytes) => T::from_bytes(bytes).into_datum(),
        None => UserError::new(
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{} is out of range for type {}", shown(text), T::TYPE_NAME),
        )
        .detail(format!(
            "A {} is an unsigned number from 0 to 2^{} - 1.",
            T::TYPE_NAME,
            T::BITS
        ))
        .hint(
            "If the number is a signed 64-bit hash, cast it to bigint first. The cast keeps its \
             bits.",
        )
        .raise(),
    }
}

/// Cast from a fingerprint type to numeric. Reads the bits as an unsigned number.
pub fn to_numeric<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let value = arg::<T>(call, 0).to_bytes();
    let mut words = [[0; 8]; WORDS];
    let spare = 8 * WORDS - value.as_ref().len();
    words.as_flattened_mut()[spare..].copy_from_slice(value.as_ref());
    varlena::numeric(&U256(words.map(u64::from_be_bytes)).to_decimal())
}
