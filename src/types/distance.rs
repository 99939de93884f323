//! The Hamming distance of two fingerprints, the similarity that it estimates, and conditions on
//! them.
use neardup_blocktree::metric::near_duplicate_bits;
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys;

use super::Fingerprint;
use super::fingerprint::arg;
use neardup_pg::fmgr::{Call, export};

/// Bits of the widest type.
const WIDEST: i32 = 256;

#[inline(always)]
fn bits<T: Fingerprint>(call: &Call) -> u32 {
    arg::<T>(call, 0).distance(arg(call, 1))
}

/// The operators `<~>` and `<#>`: the number of differing bits.
#[inline(always)]
pub fn distance<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32)
}

/// The operator `~=`: near-duplicates by convention.
#[inline(always)]
pub fn similar<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) <= const { near_duplicate_bits(T::BITS) })
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

/// `a <#|> b`: the distance, or -1 where a value is NULL.
#[inline(always)]
pub fn distance_nulls_first<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    match call.is_null(0) || call.is_null(1) {
        true => pg_sys::Datum::from(-1),
        false => distance::<T>(call),
    }
}

/// `fingerprint_similarity(a, b)`: the Jaccard similarity that the distance estimates.
#[inline(always)]
pub fn similarity<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    float8(minhash_fingerprint::similarity(bits::<T>(call), T::BITS))
}

fn float8(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits())
}

/// `_neardup_similarity_radius(similarity, bits)` and `_neardup_similarity_radius_above`: the
/// greatest distance that admits a bound of the similarity.
#[inline(always)]
fn similarity_radius(call: &Call, radius: fn(f64, u32) -> i32) -> pg_sys::Datum {
    // Beyond the widest type no distance is compared.
    let bits = call.int4(1).clamp(1, WIDEST) as u32;
    pg_sys::Datum::from(radius(call.float8(0), bits))
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
    plain "_neardup_similarity_radius" =>
        |call: &mut Call| similarity_radius(call, minhash_fingerprint::radius);
    plain "_neardup_similarity_radius_above" =>
        |call: &mut Call| similarity_radius(call, minhash_fingerprint::radius_above);
    plain "_neardup_radius" => radius;
    plain "_neardup_radius_below" => radius_below;
}
