//! Hamming distance of two fingerprints, the similarity that it estimates, and conditions on both.
use neardup_blocktree::metric::near_duplicate_bits;
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys;

use super::Fingerprint;
use super::fingerprint::arg;
use neardup_pg::fmgr::{Call, export};

/// Bits of the longest type.
const WIDEST: i32 = 256;

#[inline(always)]
fn bits<T: Fingerprint>(call: &Call) -> u32 {
    arg::<T>(call, 0).distance(arg(call, 1))
}

/// Operators `<~>` and `<#>`: number of differing bits.
#[inline(always)]
pub fn distance<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32)
}

/// Operator `~=`: near-duplicates by convention.
#[inline(always)]
pub fn similar<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) <= const { near_duplicate_bits(T::BITS) })
}

/// `_neardup_within(a, b, radius)`: planned form of `a <~> b <= radius` if both fingerprints come
/// from tables.
#[inline(always)]
pub fn within<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32 <= call.int4(2))
}

/// `_neardup_at_distance(a, b, distance)`: planned form of `a <~> b = distance`.
#[inline(always)]
pub fn at_distance<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32 == call.int4(2))
}

/// `a <#|> b`: distance, or -1 if a value is NULL.
#[inline(always)]
pub fn distance_nulls_first<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    match call.is_null(0) || call.is_null(1) {
        true => pg_sys::Datum::from(-1),
        false => distance::<T>(call),
    }
}

/// `fingerprint_similarity(a, b)`: Jaccard similarity that the distance estimates.
#[inline(always)]
pub fn similarity<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    float8(minhash_fingerprint::similarity(bits::<T>(call), T::BITS))
}

fn float8(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits())
}

/// `_neardup_similarity_radius(similarity, bits)` and `_neardup_similarity_radius_above`: maximum
/// distance with which a pair meets a similarity bound.
#[inline(always)]
fn similarity_radius(call: &Call, radius: fn(f64, u32) -> i32) -> pg_sys::Datum {
    // No type is longer than `WIDEST`.
    let bits = call.int4(1).clamp(1, WIDEST) as u32;
    pg_sys::Datum::from(radius(call.float8(0), bits))
}

/// `_neardup_radius(bigint)`: clamps a radius to the range of int4.
fn radius(call: &mut Call) -> pg_sys::Datum {
    clamped(call.int8(0))
}

/// `_neardup_radius_below(bigint)`: subtracts 1 and clamps to the range of int4.
fn radius_below(call: &mut Call) -> pg_sys::Datum {
    clamped(call.int8(0).saturating_sub(1))
}

fn clamped(radius: i64) -> pg_sys::Datum {
    pg_sys::Datum::from(radius.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}

export! {
    plain "_neardup_similarity_radius" =>
        |call: &mut Call| similarity_radius(call, minhash_fingerprint::radius);
    plain "_neardup_similarity_radius_above" =>
        |call: &mut Call| similarity_radius(call, minhash_fingerprint::radius_above);
    plain "_neardup_radius" => radius;
    plain "_neardup_radius_below" => radius_below;
}
