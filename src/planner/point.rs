//! Decodes values and balls of the types that are searched by distance, for selectivity estimates.
//! A ball contains all values within a radius of its centre.
use std::rc::Rc;

use neardup_blocktree::metric::Metric;
use neardup_sketch::minhash::Scheme;

use super::catalog::SearchedType;
use super::planned_ball::{BallRadius, SignatureRadius};
use crate::types::signature::{Signature, SignatureBall};
use crate::types::{Ball, Fingerprint, Fingerprint64, Fingerprint128, Fingerprint256};
use neardup_pg::catalog::base_type;
use neardup_pg::value::{OwnedValue, Value};

/// Decoded value of a type that is searched by distance.
#[derive(Clone)]
pub enum Point {
    /// Fingerprint or bigint of 64 bits.
    Bits64(Fingerprint64),
    /// Fingerprint of 128 bits.
    Bits128(Fingerprint128),
    /// Fingerprint of 256 bits.
    Bits256(Fingerprint256),
    /// MinHash signature.
    Signature(OwnedSignature),
}

/// Signature that owns its values. Clones share the memory.
#[derive(Clone)]
pub struct OwnedSignature {
    scheme: Scheme,
    seed: u64,
    values: Rc<[u32]>,
}

impl OwnedSignature {
    /// Returns the signature with borrowed values.
    pub fn get(&self) -> Signature<'_> {
        Signature {
            scheme: self.scheme,
            seed: self.seed,
            values: &self.values,
        }
    }
}

/// Decoded ball whose value is known while planning.
pub struct KnownBall {
    /// Centre as a value of the searched type.
    pub center: OwnedValue,
    /// Radius in bits, or in mismatches for signatures.
    pub radius: BallRadius,
    /// True if an index search for this ball may miss rows (`neardup.allow_approximate`).
    pub approximate: bool,
}

impl SearchedType {
    /// Decodes a value of the searched type; `None` if the value has another type. If the searched
    /// type has 64 bits, a bigint is also accepted: the statistics of a bigint column have bigints,
    /// even if the query casts the column to fingerprint.
    pub fn point(&self, value: Value) -> Option<Point> {
        let of = value.value_type();
        let has_64_bits = of.by_value() && of.length() == 8;
        let is_own = of.oid() == self.value || base_type(of.oid()) == self.value;
        match self.metric {
            Metric::Hamming { bits } => match bits {
                64 if has_64_bits => Some(Point::Bits64(fingerprint(value))),
                128 if is_own => Some(Point::Bits128(fingerprint(value))),
                256 if is_own => Some(Point::Bits256(fingerprint(value))),
                _ => None,
            },
            Metric::Jaccard(()) => is_own.then(|| {
                value.with_body(|body| {
                    let signature = Signature::from_body(body);
                    Point::Signature(OwnedSignature {
                        scheme: signature.scheme,
                        seed: signature.seed,
                        values: signature.values.into(),
                    })
                })
            }),
            Metric::Overlap => None,
        }
    }

    /// Converts a decoded value back to a value of the searched type.
    pub fn value(&self, point: &Point) -> OwnedValue {
        match point {
            Point::Bits64(fingerprint) => self.center(&[fingerprint.0]),
            Point::Bits128(fingerprint) => self.center(&fingerprint.0),
            Point::Bits256(fingerprint) => self.center(&fingerprint.0),
            Point::Signature(signature) => {
                OwnedValue::from_body(&signature.get().to_bytes(), self.value)
            }
        }
    }

    /// Decodes a ball of the searched type; `None` if the value is not such a ball.
    pub fn ball(&self, ball: Value) -> Option<KnownBall> {
        if base_type(ball.type_oid()) != self.ball {
            return None;
        }
        let bits = match self.metric {
            Metric::Hamming { bits } => bits,
            Metric::Jaccard(()) => {
                return Some(ball.with_body(|body| self.signature_ball(body)));
            }
            Metric::Overlap => return None,
        };
        let (center, radius) = match bits {
            64 => {
                let ball = Ball::<Fingerprint64>::from_value(ball);
                (self.center(&[ball.center.0]), ball.radius)
            }
            128 => {
                let ball = Ball::<Fingerprint128>::from_value(ball);
                (self.center(&ball.center.0), ball.radius)
            }
            _ => {
                let ball = Ball::<Fingerprint256>::from_value(ball);
                (self.center(&ball.center.0), ball.radius)
            }
        };
        Some(KnownBall {
            center,
            radius: BallRadius::Bits(radius),
            approximate: false,
        })
    }

    /// Encodes the words of a fingerprint as a value of the searched type.
    fn center(&self, words: &[u64]) -> OwnedValue {
        OwnedValue::from_words(words, self.value)
    }

    /// Decodes a ball of signatures from the bytes of its value.
    fn signature_ball(&self, body: &[u8]) -> KnownBall {
        let ball = SignatureBall::from_body(body);
        let hashes = ball.center.values.len();
        let radius = SignatureRadius::Mismatches(ball.mismatches, hashes);
        KnownBall {
            center: OwnedValue::from_body(&ball.center.to_bytes(), self.value),
            radius: BallRadius::Signatures(radius),
            approximate: ball.approximate,
        }
    }
}

/// Decodes a fingerprint. The value must have the length of `T`.
fn fingerprint<T: Fingerprint>(value: Value) -> T {
    let mut words = [0; 4];
    value.copy_words(&mut words[..T::WORDS]);
    T::from_words(&words)
}

impl Point {
    /// Returns the number of differing bits of two fingerprints of the same width; `None` for other
    /// pairs.
    #[inline(always)]
    pub fn bits(&self, other: &Self) -> Option<u32> {
        match (self, other) {
            (Point::Bits64(a), Point::Bits64(b)) => Some(a.distance(*b)),
            (Point::Bits128(a), Point::Bits128(b)) => Some(a.distance(*b)),
            (Point::Bits256(a), Point::Bits256(b)) => Some(a.distance(*b)),
            _ => None,
        }
    }
}
