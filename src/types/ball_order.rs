//! Equality, order and hash of balls, for GROUP BY, DISTINCT, UNION and the server's indexes.
//!
//! Balls are equal if their centres and their radii are. The order is by centre and then by radius;
//! it has no meaning beyond sorting.
use core::cmp::Ordering;

use pgrx::pg_sys::Datum;

use super::fingerprint::{hash_of_bytes, hash_of_bytes_extended};
use super::{Ball, Fingerprint};
use crate::pg::fmgr::{Call, export};
use crate::pg::varlena;

#[inline(always)]
fn order<T: Fingerprint>(call: &Call) -> Ordering {
    // SAFETY: the functions of this file that call it are declared to take the ball type twice.
    let [a, b] = [0, 1].map(|n| unsafe { Ball::<T>::from_datum(call.arg(n)) });
    a.center.cmp(&b.center).then(a.radius.cmp(&b.radius))
}

/// The order as -1, 0 or 1, for btree.
#[inline(always)]
pub fn compare<T: Fingerprint>(call: &mut Call) -> Datum {
    Datum::from(order::<T>(call) as i32)
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident $symbol:literal: $test:expr;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<T: Fingerprint>(call: &mut Call) -> Datum {
            let test: fn(Ordering) -> bool = $test;
            Datum::from(test(order::<T>(call)))
        }
        export! {
            guarded $symbol => |call: &mut Call| {
                let test: fn(Ordering) -> bool = $test;
                Datum::from(test(signature_order(call)))
            };
        }
    )* };
}

comparison! {
    /// The operator `=`.
    equal "minhash_ball_eq": Ordering::is_eq;
    /// The operator `<>`.
    not_equal "minhash_ball_ne": Ordering::is_ne;
    /// The operator `<`.
    less "minhash_ball_lt": Ordering::is_lt;
    /// The operator `<=`.
    less_or_equal "minhash_ball_le": Ordering::is_le;
    /// The operator `>`.
    greater "minhash_ball_gt": Ordering::is_gt;
    /// The operator `>=`.
    greater_or_equal "minhash_ball_ge": Ordering::is_ge;
}

/// Calls a hash function with the centre's bytes and those of the radius, most significant first,
/// so that the hash is the same on every machine.
fn with_bytes<T: Fingerprint>(call: &Call, hash: impl FnOnce(&[u8]) -> Datum) -> Datum {
    // The widest centre, and the radius.
    let mut bytes = [0; 32 + 4];
    // SAFETY: the functions that call it are declared to take the ball type.
    let ball = unsafe { Ball::<T>::from_datum(call.arg(0)) };
    let (center, radius) = (ball.center.to_bytes(), ball.radius.to_be_bytes());
    let (front, length) = (center.as_ref(), center.as_ref().len() + radius.len());
    bytes[..front.len()].copy_from_slice(front);
    bytes[front.len()..length].copy_from_slice(&radius);
    hash(&bytes[..length])
}

/// Hash of 32 bits, for hash joins, grouping and hash indexes.
pub fn hash<T: Fingerprint>(call: &mut Call) -> Datum {
    with_bytes::<T>(call, hash_of_bytes)
}

/// Hash of 64 bits with a seed, for partitioning by hash.
pub fn hash_extended<T: Fingerprint>(call: &mut Call) -> Datum {
    let seed = call.arg(1).value() as u64;
    with_bytes::<T>(call, |bytes| hash_of_bytes_extended(bytes, seed))
}

/// The payload of a ball of signatures. Equal balls have equal payloads.
fn signature_bytes<'a>(call: &Call, n: usize) -> &'a [u8] {
    // SAFETY: the functions that call it are declared to take the ball type.
    unsafe { varlena::bytes(call.arg(n)) }
}

fn signature_order(call: &Call) -> Ordering {
    signature_bytes(call, 0).cmp(signature_bytes(call, 1))
}

export! {
    guarded "minhash_ball_cmp" => |call: &mut Call| Datum::from(signature_order(call) as i32);
    guarded "minhash_ball_hash" => |call: &mut Call| hash_of_bytes(signature_bytes(call, 0));
    guarded "minhash_ball_hash_extended" => |call: &mut Call| {
        hash_of_bytes_extended(signature_bytes(call, 0), call.arg(1).value() as u64)
    };
}
