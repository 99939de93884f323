//! Near-duplicates by an index: distances of fingerprints of some width, or of signatures of some
//! length, and the greatest at which two values are near-duplicates.
use pgrx::pg_sys;

use super::bands::{scheme_hash, with_signature};
use super::index::{Index, words_of};
use super::keys::{Layout, with_words};
use crate::pg::rel::Rel;
use crate::pg::value::Value;
use crate::registry;
use crate::types::signature::{self, Signature, SignatureBall};
use crate::types::{Ball, Fingerprint, Fingerprint64, Fingerprint128, Fingerprint256};

/// The values of an index's last column, and how near two of them are if they are near-duplicates.
#[derive(Clone, Copy)]
pub struct Metric {
    unit: Unit,
    /// The type of the values.
    value_type: pg_sys::Oid,
}

/// Unit of distances.
#[derive(Clone, Copy)]
enum Unit {
    /// Bits of fingerprints.
    Bits {
        /// 64-bit words: 1, 2 or 4.
        words: usize,
        /// The greatest distance.
        radius: u32,
    },
    /// Mismatches of signatures.
    Mismatches {
        /// Values of a signature.
        hashes: usize,
        /// The most that differ.
        most: u32,
    },
}

/// Limits that a caller sets, of which the one for the index's kind is asked for.
pub trait Limits {
    /// The greatest distance of fingerprints, in bits; `None` if there is none.
    fn bits(&self) -> Option<u32>;
    /// The most positions in which signatures of so many values differ.
    fn mismatches(&self, hashes: usize) -> Option<u32>;
}

impl Metric {
    /// The metric of an index; `None` if it holds balls, or cannot look up signatures that far
    /// apart without reading all of it.
    pub fn of_index(index: Rel, limits: &impl Limits) -> Option<Self> {
        let layout = Layout::of(index);
        let unit = if layout.balls {
            return None;
        } else if layout.signatures {
            let bands = with_words!(words_of(index), N => Index::<N>::open(index).bands)?;
            let (hashes, most) = (bands.hashes(), limits.mismatches(bands.hashes())?);
            if most as usize > bands.guaranteed() {
                return None;
            }
            Unit::Mismatches { hashes, most }
        } else {
            let (words, radius) = (layout.fingerprint_words, limits.bits()?);
            Unit::Bits { words, radius }
        };
        let value_type = index.attribute(index.column_count()).atttypid;
        Some(Metric { unit, value_type })
    }

    /// The greatest distance by other limits, if they make sense for these values.
    pub fn limit_by(self, limits: &impl Limits) -> Option<u32> {
        match self.unit {
            Unit::Bits { .. } => limits.bits(),
            Unit::Mismatches { hashes, .. } => limits.mismatches(hashes),
        }
    }

    /// The greatest distance of near-duplicates.
    pub fn limit(self) -> u32 {
        match self.unit {
            Unit::Bits { radius, .. } => radius,
            Unit::Mismatches { most, .. } => most,
        }
    }

    /// The unit of distances, for messages.
    pub fn unit(self) -> String {
        match self.unit {
            Unit::Bits { .. } => "bits".to_owned(),
            Unit::Mismatches { hashes, .. } => format!("of {hashes} hashes"),
        }
    }

    /// A distance for users.
    pub fn shown(self, distance: u32) -> Value<'static> {
        match self.unit {
            Unit::Bits { .. } => Value::int4(distance as i32),
            Unit::Mismatches { hashes, .. } => {
                Value::float8(signature::distance(distance as usize, hashes))
            }
        }
    }

    /// Returns whether an index gives rows from the nearest on.
    pub fn comes_in_order(self) -> bool {
        matches!(self.unit, Unit::Bits { .. })
    }

    /// The type of the values.
    pub fn value_type(self) -> pg_sys::Oid {
        self.value_type
    }

    /// The bits of a fingerprint, the most significant word first.
    fn bits(self, words: usize, value: Value) -> [u64; 4] {
        assert_eq!(value.type_oid(), self.value_type);
        let mut bits = [0; 4];
        match words {
            1 => bits[0] = value.datum().value() as u64,
            words => {
                let stored = value.datum().cast_mut_ptr::<u64>();
                // SAFETY: a value of this type, passed by reference, has as many words.
                let stored = unsafe { core::slice::from_raw_parts(stored, words) };
                bits[..words].copy_from_slice(stored);
            }
        }
        bits
    }

    fn signature<T>(self, value: Value, each: impl FnOnce(&Signature) -> T) -> T {
        assert_eq!(value.type_oid(), self.value_type);
        // SAFETY: values of an index on signatures are signatures.
        unsafe { with_signature(value.datum(), each) }
    }

    /// A value as rows in flight are compared by it, and a number that values which can be near
    /// each other have in common.
    pub fn in_flight(self, value: Value) -> (u64, registry::Value) {
        match self.unit {
            Unit::Bits { words, .. } => {
                let bits = self.bits(words, value);
                (words as u64, registry::Value::of_words(&bits[..words]))
            }
            Unit::Mismatches { .. } => self.signature(value, |signature| {
                let hash = scheme_hash(signature).wrapping_add(signature.values.len() as u64);
                (hash, registry::Value::of_signature(signature))
            }),
        }
    }

    /// The distance of two values; `None` for signatures that were made in different ways.
    pub fn distance(self, a: Value, b: Value) -> Option<u32> {
        match self.unit {
            Unit::Bits { words, .. } => {
                let (a, b) = (self.bits(words, a), self.bits(words, b));
                Some(a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum())
            }
            Unit::Mismatches { .. } => self.signature(a, |a| {
                self.signature(b, |b| a.mismatches(b).map(|it| it as u32))
            }),
        }
    }

    /// The ball around a value that holds its near-duplicates, as the operator `<@` takes it.
    pub(super) fn ball(self, center: Value) -> pg_sys::Datum {
        /// # Safety
        /// The datum is a `T`.
        unsafe fn ball<T: Fingerprint>(center: pg_sys::Datum, radius: u32) -> pg_sys::Datum {
            // SAFETY: the caller's promise.
            Ball::new(unsafe { T::from_datum(center) }, radius as i32).into_datum()
        }
        assert_eq!(center.type_oid(), self.value_type);
        // SAFETY: the value has as many words; balls of one width are stored alike.
        unsafe {
            match self.unit {
                Unit::Bits { words: 1, radius } => ball::<Fingerprint64>(center.datum(), radius),
                Unit::Bits { words: 2, radius } => ball::<Fingerprint128>(center.datum(), radius),
                Unit::Bits { radius, .. } => ball::<Fingerprint256>(center.datum(), radius),
                Unit::Mismatches { most, .. } => self.signature(center, |&center| {
                    SignatureBall {
                        center,
                        mismatches: most as i32,
                        approximate: false,
                    }
                    .into_datum()
                }),
            }
        }
    }
}
