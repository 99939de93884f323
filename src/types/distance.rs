//! The Hamming distance of two fingerprints, and conditions on it.
use pgrx::pg_sys;

use super::Fingerprint;
use super::fingerprint::arg;
use crate::pg::fmgr::{Call, export};

/// A fingerprint type that has a conventional threshold below which two are near-duplicates.
pub trait Threshold: Fingerprint {
    /// The greatest distance of near-duplicates, in bits, for the operator `~=`.
    const NEAR_DUPLICATE: u32;
}

// 3 of 64 bits: Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007,
// section 5.1.1, where it is the best trade between precision and recall on 8 billion pages.
impl Threshold for super::Fingerprint64 {
    const NEAR_DUPLICATE: u32 = 3;
}
impl Threshold for super::Bigint {
    const NEAR_DUPLICATE: u32 = 3;
}
// The same share of 128 bits; and 31 of 256, the radius recommended for PDQ image hashes
// (Facebook, "The TMK+PDQF video-hashing algorithm and the PDQ image-hashing algorithm", 2019).
impl<const W: usize> Threshold for super::wide::Wide<W> {
    const NEAR_DUPLICATE: u32 = match W {
        2 => 6,
        4 => 31,
        _ => panic!("no SQL type has this width"),
    };
}

#[inline(always)]
fn bits<T: Fingerprint>(call: &Call) -> u32 {
    arg::<T>(call, 0).distance(arg(call, 1))
}

/// The operators `<~>` and `<#>`: the number of differing bits.
#[inline(always)]
pub fn distance<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32)
}

/// The operator `~=`: near-duplicates at the conventional threshold.
#[inline(always)]
pub fn similar<T: Threshold>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) <= T::NEAR_DUPLICATE)
}

/// `_neardup_within(a, b, radius)`: the planned form of `a <~> b <= radius` if both fingerprints
/// come from tables.
#[inline(always)]
pub fn within<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32 <= call.int4(2))
}

/// `_neardup_at_distance(a, b, distance)`: the planned form of `a <~> b = distance`.
#[inline(always)]
pub fn at_distance<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32 == call.int4(2))
}

/// `_neardup_radius(bigint)`: a radius given as bigint, brought into the range of int4.
fn radius(call: &mut Call) -> pg_sys::Datum {
    clamped(call.int8(0))
}

/// `_neardup_radius_below(bigint)`: the greatest whole number below, brought into the range of
/// int4.
fn radius_below(call: &mut Call) -> pg_sys::Datum {
    clamped(call.int8(0).saturating_sub(1))
}

fn clamped(radius: i64) -> pg_sys::Datum {
    pg_sys::Datum::from(radius.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}

export! {
    plain "_neardup_radius" => radius;
    plain "_neardup_radius_below" => radius_below;
}
