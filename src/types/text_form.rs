//! SQL functions of fingerprints that are given as text.
//!
//! The server chooses these functions for calls with untyped arguments, because its parser prefers
//! text among functions of several types. The number of digits of a text determines the width of
//! the fingerprint.
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys::Datum;

use super::{Ball, Fingerprint, Fingerprint64, Fingerprint128, Fingerprint256};

/// Fingerprint of any width.
pub enum AnyFingerprint {
    Bits64(Fingerprint64),
    Bits128(Fingerprint128),
    Bits256(Fingerprint256),
}

impl AnyFingerprint {
    /// Parses argument `n`, a `text`. Raises error 22P02 unless it has 16, 32 or 64 hexadecimal
    /// digits.
    pub fn argument(call: &Call, n: usize) -> Self {
        let text = call.bytes(n);
        let fingerprint = match text.len() {
            16 => Fingerprint64::parse(text).map(Self::Bits64),
            32 => Fingerprint128::parse(text).map(Self::Bits128),
            64 => Fingerprint256::parse(text).map(Self::Bits256),
            _ => None,
        };
        fingerprint.unwrap_or_else(|| {
            UserError::invalid_text(
                Fingerprint64::TYPE_NAME,
                text,
                "A fingerprint is written as exactly 16, 32 or 64 hexadecimal digits.",
                None,
            )
            .hint(
                "If the value has another type, add a cast, as in $1::bigint or \
                 $1::minhash_signature.",
            )
            .raise()
        })
    }

    /// Returns the number of bits of the fingerprint.
    fn bits(&self) -> u32 {
        match self {
            Self::Bits64(_) => Fingerprint64::BITS,
            Self::Bits128(_) => Fingerprint128::BITS,
            Self::Bits256(_) => Fingerprint256::BITS,
        }
    }

    /// Returns the Hamming distance of two fingerprints, or `None` if they have different widths.
    fn distance(&self, other: &Self) -> Option<u32> {
        match (self, other) {
            (Self::Bits64(a), Self::Bits64(b)) => Some(a.distance(*b)),
            (Self::Bits128(a), Self::Bits128(b)) => Some(a.distance(*b)),
            (Self::Bits256(a), Self::Bits256(b)) => Some(a.distance(*b)),
            _ => None,
        }
    }
}

/// `ball(text, radius)`: ball of the type `fingerprint_ball` whose centre is a fingerprint given as
/// text. Raises an error unless the fingerprint has 64 bits.
fn ball(call: &mut Call) -> Datum {
    match AnyFingerprint::argument(call, 0) {
        AnyFingerprint::Bits64(center) => Ball::new(center, call.int4(1)).into_datum(),
        wide => {
            let bits = wide.bits();
            UserError::invalid_parameter(format!("cannot make a fingerprint_ball of {bits} bits"))
                .detail(
                    "A center that is passed as text must have 16 hexadecimal digits (64 bits).",
                )
                .hint(format!("Cast the center: $1::fingerprint{bits}."))
                .raise()
        }
    }
}

/// `fingerprint_similarity(text, text)`: Jaccard similarity estimated from two fingerprints given
/// as text. Raises an error if their widths differ.
fn similarity(call: &mut Call) -> Datum {
    let [a, b] = [0, 1].map(|n| AnyFingerprint::argument(call, n));
    let Some(distance) = a.distance(&b) else {
        UserError::invalid_parameter("cannot compare fingerprints of different widths")
            .detail(format!(
                "The fingerprints have {} and {} bits.",
                a.bits(),
                b.bits()
            ))
            .hint("Compute both with the same function.")
            .raise()
    };
    Datum::from(minhash_fingerprint::similarity(distance, a.bits()).to_bits())
}

export! {
    guarded "text_ball" => ball;
    guarded "text_similarity" => similarity;
}
