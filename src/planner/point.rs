//! Values and balls of the types with a metric, read from the server's form.
use pgrx::pg_sys::Datum;

use super::catalog::{Metric, Space};
use super::planned_ball::{BallRadius, SignatureRadius};
use crate::pg::catalog::base_type;
use crate::pg::value::{Value, ValueType};
use crate::types::signature::{Signature, SignatureBall};
use crate::types::{Ball, Fingerprint, Fingerprint64, Fingerprint128, Fingerprint256};

/// A value of a type with a metric.
#[derive(Clone, Copy)]
pub enum Point<'a> {
    Bits64(Fingerprint64),
    Bits128(Fingerprint128),
    Bits256(Fingerprint256),
    Signature(Signature<'a>),
}

/// A ball, with its centre in the server's form.
pub struct KnownBall<'a> {
    pub center: Value<'a>,
    pub radius: BallRadius,
    /// True if an index may answer approximately.
    pub approximate: bool,
}

impl Metric {
    /// Reads a value of the metric's type, which lives as long as the memory context that is
    /// current. `None` if it has another type: statistics are those of the column below a cast that
    /// leaves the value as it is, so that 64 bits may be those of a bigint.
    pub fn point<'a>(&self, value: Value<'a>) -> Option<Point<'a>> {
        let (of, datum) = (value.value_type(), value.datum());
        let has_64_bits = of.by_value() && of.length() == 8;
        let is_own = of.oid() == self.value || base_type(of.oid()) == self.value;
        // SAFETY: the datum is a value of the metric's type, or 64 bits passed by value.
        unsafe {
            match &self.space {
                Space::Hamming(hamming) => match hamming.traits.bits {
                    64 if has_64_bits => Some(Point::Bits64(Fingerprint64::from_datum(datum))),
                    128 if is_own => Some(Point::Bits128(Fingerprint128::from_datum(datum))),
                    256 if is_own => Some(Point::Bits256(Fingerprint256::from_datum(datum))),
                    _ => None,
                },
                Space::MinHash(_) => is_own.then(|| Point::Signature(Signature::from_datum(datum))),
            }
        }
    }

    /// Reads a ball. `None` if it has another type.
    pub fn ball<'a>(&self, ball: Value<'a>) -> Option<KnownBall<'a>> {
        if base_type(ball.type_oid()) != self.ball {
            return None;
        }
        let datum = ball.datum();
        // SAFETY: a value of the metric's ball type, whose centre is a value of the metric's type.
        unsafe {
            let (center, radius, approximate) = match &self.space {
                Space::Hamming(hamming) => {
                    let (center, radius) = match hamming.traits.bits {
                        64 => parts(Ball::<Fingerprint64>::from_datum(datum)),
                        128 => parts(Ball::<Fingerprint128>::from_datum(datum)),
                        _ => parts(Ball::<Fingerprint256>::from_datum(datum)),
                    };
                    (center, BallRadius::Bits(radius), false)
                }
                Space::MinHash(_) => {
                    let ball = SignatureBall::from_datum(datum);
                    let hashes = ball.center.values.len();
                    let radius = SignatureRadius::Mismatches(ball.mismatches, hashes);
                    let radius = BallRadius::Signatures(radius);
                    (ball.center.into_datum(), radius, ball.approximate)
                }
            };
            Some(KnownBall {
                center: Value::typed(center, ValueType::of(self.value)),
                radius,
                approximate,
            })
        }
    }
}

fn parts<T: Fingerprint>(ball: Ball<T>) -> (Datum, i32) {
    (ball.center.into_datum(), ball.radius)
}

impl Point<'_> {
    /// The differing bits of two fingerprints of one width. `None` for any other two.
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
