//! Text form and binary message of MinHash signatures. A text is like `neardup1/128/0/` (scheme,
//! number of values, seed), followed by eight hexadecimal digits for each value.
//!
//! The message has the number of the scheme, the bits of a value, the number of values, the seed,
//! and the values, each most significant byte first.
use core::fmt::Write;
use core::ops::RangeInclusive;

use neardup_sketch::minhash::{MAX_HASHES, MIN_HASHES, Scheme};
use neardup_sketch::options::NamedOption;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::{BITS, Signature};
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

const TYPE: &str = "minhash_signature";
const FORM: &str = "A signature is written as scheme/hashes/seed/values, with 8 hexadecimal digits \
                    for each value. For example, a signature of 16 hashes is written as \
                    neardup1/16/0/ and 128 digits.";
/// Allowed numbers of values of a signature.
pub const HASHES: RangeInclusive<usize> = MIN_HASHES..=MAX_HASHES;

/// Parses a signature in its text form. Stores its values in `values`, from which the result
/// borrows them. Returns `None` if the text is invalid.
pub fn parse<'a>(text: &[u8], values: &'a mut Vec<u32>) -> Option<Signature<'a>> {
    let mut parts = text.splitn(4, |byte| *byte == b'/');
    let scheme = Scheme::from_name(parts.next()?).ok()?;
    let hashes: usize = number(parts.next()?)?;
    let seed: i64 = number(parts.next()?)?;
    let digits = parts.next()?;
    if !HASHES.contains(&hashes) || digits.len() != 8 * hashes {
        return None;
    }
    values.clear();
    for digits in digits.chunks_exact(8) {
        let mut value = 0;
        for digit in digits {
            value = value << 4 | char::from(*digit).to_digit(16)?;
        }
        values.push(value);
    }
    is_valid_seed(scheme, seed as u64).then_some(Signature {
        scheme,
        seed: seed as u64,
        values,
    })
}

/// Parses a decimal number. Returns `None` if the text is not the usual form of the number, for
/// example because of a plus sign or leading zeros.
fn number<T: core::str::FromStr + core::fmt::Display>(digits: &[u8]) -> Option<T> {
    let text = str::from_utf8(digits).ok()?;
    let number: T = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Returns true if signatures of the scheme can have this seed. The seeds of datasketch's schemes
/// have only 32 bits.
fn is_valid_seed(scheme: Scheme, seed: u64) -> bool {
    scheme == Scheme::Neardup1 || u32::try_from(seed).is_ok()
}

/// Appends the text form of a signature to `text`.
pub fn write(signature: &Signature, text: &mut String) {
    let (name, hashes) = (signature.scheme.name(), signature.values.len());
    let seed = signature.seed as i64;
    let result = (|| {
        write!(text, "{name}/{hashes}/{seed}/")?;
        (signature.values.iter()).try_for_each(|value| write!(text, "{value:08x}"))
    })();
    result.expect("writing to a string cannot fail");
}

/// Input function of `minhash_signature`.
fn input(call: &mut Call) -> pg_sys::Datum {
    let text = call.cstring(0);
    let mut values = Vec::new();
    match parse(text, &mut values) {
        Some(signature) => signature.into_datum(),
        None => UserError::invalid_text(TYPE, text, FORM, Some("minhash('...')")).raise_soft(call),
    }
}

/// Output function of `minhash_signature`.
fn output(call: &mut Call) -> pg_sys::Datum {
    let signature = Signature::argument(call, 0);
    let mut text = String::with_capacity(40 + 8 * signature.values.len());
    write(&signature, &mut text);
    varlena::cstring(&text)
}

/// Reads a signature from the binary message of a receive function's call. Appends its values to
/// `values`, which should be empty, because the result borrows all of them. Raises error 22P03 if
/// the signature is invalid.
pub fn receive_values<'a>(call: &Call, values: &'a mut Vec<u32>) -> Signature<'a> {
    let head = call.message(12);
    let hashes = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let seed = u64::from_be_bytes(head[4..12].try_into().expect("12 bytes were asked for"));
    let scheme = Scheme::from_code(head[0]).filter(|scheme| is_valid_seed(*scheme, seed));
    let (Some(scheme), BITS, true) = (scheme, head[1], HASHES.contains(&hashes)) else {
        UserError::new(
            PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
            format!("invalid binary message for type {TYPE}"),
        )
        .detail(format!(
            "A signature cannot have scheme {}, {} bits, {hashes} hashes and seed {}.",
            head[0], head[1], seed as i64
        ))
        .raise()
    };
    let bytes = call.message(4 * hashes);
    let (chunks, _) = bytes.as_chunks::<4>();
    values.extend(chunks.iter().map(|bytes| u32::from_be_bytes(*bytes)));
    Signature {
        scheme,
        seed,
        values,
    }
}

/// Returns the binary message of a signature.
pub fn message(signature: &Signature) -> Vec<u8> {
    let mut bytes = vec![signature.scheme.code(), BITS];
    bytes.extend((signature.values.len() as u16).to_be_bytes());
    bytes.extend(signature.seed.to_be_bytes());
    bytes.extend(
        signature
            .values
            .iter()
            .flat_map(|value| value.to_be_bytes()),
    );
    bytes
}

/// Receive function of `minhash_signature`.
fn receive(call: &mut Call) -> pg_sys::Datum {
    let mut values = Vec::new();
    receive_values(call, &mut values).into_datum()
}

/// Send function of `minhash_signature`.
fn send(call: &mut Call) -> pg_sys::Datum {
    let signature = Signature::argument(call, 0);
    varlena::build(&[&message(&signature)])
}

export! {
    guarded "minhash_signature_in" => input;
    guarded "minhash_signature_out" => output;
    guarded "minhash_signature_recv" => receive;
    guarded "minhash_signature_send" => send;
}
