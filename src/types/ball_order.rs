//! Equality, order and hash of balls, for GROUP BY, DISTINCT, UNION and the server's indexes.
//!
//! Two balls are equal if their centres and their radii are equal. Balls are ordered by centre,
//! then by radius. The order has no other meaning.
use core::cmp::Ordering;

use pgrx::pg_sys::Datum;

use super::hash::hash_of_bytes;
use super::order::export_order;
use super::{Ball, Fingerprint};
use neardup_pg::fmgr::{Call, export};

/// Returns the order of the two balls of fingerprints in arguments 0 and 1.
#[inline(always)]
pub fn order<T: Fingerprint>(call: &Call) -> Ordering {
    let [a, b] = [0, 1].map(|n| Ball::<T>::argument(call, n));
    a.center.cmp(&b.center).then(a.radius.cmp(&b.radius))
}

/// Hashes the bytes of a ball of fingerprints: those of the centre, then those of the radius, each
/// with the most significant byte first. So the hash is the same on every machine.
pub fn hash<T: Fingerprint>(call: &mut Call) -> Datum {
    // Room for the bytes of the longest centre and for the radius.
    let mut bytes = [0; 32 + 4];
    let ball = Ball::<T>::argument(call, 0);
    let (center, radius) = (ball.center.to_bytes(), ball.radius.to_be_bytes());
    let (front, length) = (center.as_ref(), center.as_ref().len() + radius.len());
    bytes[..front.len()].copy_from_slice(front);
    bytes[front.len()..length].copy_from_slice(&radius);
    hash_of_bytes(call, &bytes[..length])
}

/// Returns the order of the two balls of signatures in arguments 0 and 1, by their bytes. Equal
/// balls have equal bytes.
fn signature_order(call: &Call) -> Ordering {
    call.bytes(0).cmp(call.bytes(1))
}

/// Hashes the bytes of a ball of signatures by [`hash_of_bytes`].
fn signature_hash(call: &mut Call) -> Datum {
    hash_of_bytes(call, call.bytes(0))
}

export_order!(guarded "minhash_ball_", signature_order);
export! {
    guarded "minhash_ball_hash" => signature_hash;
    guarded "minhash_ball_hash_extended" => signature_hash;
}
