//! Hamming distance of two fingerprints, the similarity that it estimates, and conditions on
//! distance and similarity.
use neardup_blocktree::metric::near_duplicate_bits;
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys;

use super::Fingerprint;
use super::fingerprint::arg;
use neardup_pg::fmgr::{Call, export};

/// Number of bits of the longest fingerprint type.
const WIDEST: i32 = 256;

/// Returns the number of bits in which the fingerprints in arguments 0 and 1 differ.
#[inline(always)]
fn bits<T: Fingerprint>(call: &Call) -> u32 {
    arg::<T>(call, 0).distance(arg(call, 1))
}

/// Operators `<~>` and `<#>`: number of bits in which two fingerprints differ. `<~>` returns it as
/// the domain `hamming`, and `<#>` as a plain integer.
#[inline(always)]
pub fn distance<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32)
}

/// Operator `~=`: whether two fingerprints are near-duplicates by convention. Their distance is
/// then at most [`near_duplicate_bits`], for example 6 of 64 bits.
#[inline(always)]
pub fn similar<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) <= const { near_duplicate_bits(T::BITS) })
}

/// `_neardup_within(a, b, radius)`: whether the distance of two fingerprints is at most `radius`.
/// The planner replaces `a <~> b <= radius` by this function if both `a` and `b` contain columns,
/// as in a join, because an index on either column can be searched.
#[inline(always)]
pub fn within<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32 <= call.int4(2))
}

/// `_neardup_at_distance(a, b, distance)`: whether two fingerprints have exactly this distance. The
/// planner replaces `a <~> b = distance` by this function.
#[inline(always)]
pub fn at_distance<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(bits::<T>(call) as i32 == call.int4(2))
}

/// Operator `<#|>`: number of bits in which two fingerprints differ, or -1 if one of them is NULL.
/// An ascending sort has such rows first.
#[inline(always)]
pub fn distance_nulls_first<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    match call.is_null(0) || call.is_null(1) {
        true => pg_sys::Datum::from(-1),
        false => distance::<T>(call),
    }
}

/// `fingerprint_similarity(a, b)`: Jaccard similarity that the distance of two fingerprints
/// estimates, 0 to 1.
#[inline(always)]
pub fn similarity<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    float8(minhash_fingerprint::similarity(bits::<T>(call), T::BITS))
}

/// Converts a number to a Datum of type float8.
fn float8(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits())
}

/// Body of `_neardup_similarity_radius` and `_neardup_similarity_radius_above`. Argument 0 is a
/// similarity, and argument 1 is the width of the fingerprints in bits. Calls `radius` with both,
/// and returns its result: the maximum distance at which the estimated similarity is at least
/// argument 0 (in the second SQL function: above argument 0). The result is -1 if there is no such
/// distance.
#[inline(always)]
fn similarity_radius(call: &Call, radius: fn(f64, u32) -> i32) -> pg_sys::Datum {
    // The width is clamped, because no type has more than [`WIDEST`] bits.
    let bits = call.int4(1).clamp(1, WIDEST) as u32;
    pg_sys::Datum::from(radius(call.float8(0), bits))
}

/// `_neardup_radius(bigint)`: radius of a condition `distance <= argument`. Returns the argument
/// clamped to the range of int4.
fn radius(call: &mut Call) -> pg_sys::Datum {
    clamped(call.int8(0))
}

/// `_neardup_radius_below(bigint)`: radius of a condition `distance < argument`. Returns the
/// argument minus 1, clamped to the range of int4.
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
