//! What near-duplicates are: of fingerprints of some width, or of signatures of some length.
use pgrx::pg_sys;

use super::arguments::Near;
use crate::am::bands::{scheme_hash, with_signature};
use crate::registry::Value;
use crate::types::signature::{self, SignatureBall};
use crate::types::{Ball, Fingerprint, Fingerprint64, Fingerprint128, Fingerprint256};

/// What a column holds, as far as the index does not tell types of one width apart, and how near
/// values are that repeat each other.
#[derive(Clone, Copy)]
pub enum Metric {
    Fingerprints {
        /// 64-bit words: 1, 2 or 4.
        words: usize,
        /// The greatest distance, in bits.
        radius: i32,
    },
    Signatures {
        /// Values of a signature.
        hashes: usize,
        /// The most that differ.
        mismatches: usize,
    },
}

impl Metric {
    /// The bits of a fingerprint of so many words, the most significant word first.
    unsafe fn bits(words: usize, fingerprint: pg_sys::Datum) -> Vec<u64> {
        match words {
            1 => vec![fingerprint.value() as u64],
            // SAFETY: passed by reference.
            words => unsafe {
                core::slice::from_raw_parts(fingerprint.cast_mut_ptr::<u64>(), words).to_vec()
            },
        }
    }

    /// A value as rows in flight are compared by it, and a number that values which can be near
    /// each other have in common.
    ///
    /// # Safety
    /// The datum is of the column's type.
    pub unsafe fn in_flight(self, value: pg_sys::Datum) -> (u64, Value) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Metric::Fingerprints { words, .. } => {
                    (words as u64, Value::of_words(&Self::bits(words, value)))
                }
                Metric::Signatures { .. } => with_signature(value, |signature| {
                    let kind = scheme_hash(signature).wrapping_add(signature.values.len() as u64);
                    (kind, Value::of_signature(signature))
                }),
            }
        }
    }

    /// The greatest distance of near-duplicates by another trigger's arguments, if they make sense
    /// for these values.
    pub fn radius(self, near: &Near) -> Option<u32> {
        match self {
            Metric::Fingerprints { .. } => near.bits().ok().map(i32::unsigned_abs),
            Metric::Signatures { hashes, .. } => near.mismatches(hashes).ok().map(|n| n as u32),
        }
    }

    /// The distance of two values, in bits or mismatches; `None` for signatures that were made in
    /// different ways.
    ///
    /// # Safety
    /// Both datums are of the column's type.
    pub unsafe fn distance(self, a: pg_sys::Datum, b: pg_sys::Datum) -> Option<u32> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Metric::Fingerprints { words, .. } => {
                    let (a, b) = (Self::bits(words, a), Self::bits(words, b));
                    Some(a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum())
                }
                Metric::Signatures { .. } => with_signature(a, |a| {
                    with_signature(b, |b| a.mismatches(b).map(|it| it as u32))
                }),
            }
        }
    }

    /// Whether values so far apart are near-duplicates.
    pub fn is_near(self, distance: u32) -> bool {
        match self {
            Metric::Fingerprints { radius, .. } => i64::from(distance) <= i64::from(radius),
            Metric::Signatures { mismatches, .. } => distance as usize <= mismatches,
        }
    }

    /// Whether an index gives rows from the nearest on.
    pub fn comes_in_order(self) -> bool {
        matches!(self, Metric::Fingerprints { .. })
    }

    /// The ball around a value that holds its near-duplicates, as the operator `<@` takes it.
    ///
    /// # Safety
    /// The datum is of the column's type.
    pub unsafe fn ball(self, center: pg_sys::Datum) -> pg_sys::Datum {
        /// # Safety
        /// The datum is a `T`.
        unsafe fn ball<T: Fingerprint>(center: pg_sys::Datum, radius: i32) -> pg_sys::Datum {
            // SAFETY: the caller's promise.
            Ball::new(unsafe { T::from_datum(center) }, radius).into_datum()
        }
        // SAFETY: the caller's promise; balls of one width are stored alike.
        unsafe {
            match self {
                Metric::Fingerprints { words: 1, radius } => ball::<Fingerprint64>(center, radius),
                Metric::Fingerprints { words: 2, radius } => ball::<Fingerprint128>(center, radius),
                Metric::Fingerprints { radius, .. } => ball::<Fingerprint256>(center, radius),
                Metric::Signatures { mismatches, .. } => with_signature(center, |&center| {
                    SignatureBall {
                        center,
                        mismatches: mismatches as i32,
                        approximate: false,
                    }
                    .into_datum()
                }),
            }
        }
    }

    /// A distance for users, with its type.
    pub fn shown(self, distance: u32) -> (pg_sys::Oid, pg_sys::Datum) {
        match self {
            Metric::Fingerprints { .. } => (pg_sys::INT4OID, pg_sys::Datum::from(distance as i32)),
            Metric::Signatures { hashes, .. } => {
                let share = signature::distance(distance as usize, hashes);
                (pg_sys::FLOAT8OID, pg_sys::Datum::from(share.to_bits()))
            }
        }
    }

    /// The greatest distance of near-duplicates, for messages.
    pub fn limit(self) -> u32 {
        match self {
            Metric::Fingerprints { radius, .. } => radius.unsigned_abs(),
            Metric::Signatures { mismatches, .. } => mismatches as u32,
        }
    }

    /// What a distance counts, for messages.
    pub fn unit(self) -> String {
        match self {
            Metric::Fingerprints { .. } => "bits".to_owned(),
            Metric::Signatures { hashes, .. } => format!("of {hashes} hashes"),
        }
    }
}
