//! Estimates from two signatures, and the order of signatures.
use core::cmp::Ordering;

use pgrx::pg_sys::Datum;

use super::{Signature, distance, similarity};
use crate::pg::fmgr::{Call, export};
use crate::types::fingerprint::{hash_of_bytes, hash_of_bytes_extended};

fn two(call: &Call) -> [Signature<'_>; 2] {
    [0, 1].map(|n| Signature::argument(call, n))
}

/// An estimate from the mismatches of two signatures and their length; NULL if they are not
/// comparable.
fn estimate(call: &mut Call, from: fn(usize, usize) -> f64) -> Datum {
    let [a, b] = two(call);
    let estimate = (a.mismatches(&b)).map(|mismatches| from(mismatches, a.values.len()));
    call.return_value(estimate.map(|value| Datum::from(value.to_bits())))
}

/// The operator `<%>`.
fn jaccard_distance(call: &mut Call) -> Datum {
    estimate(call, distance)
}

/// `minhash_similarity(a, b)`.
fn jaccard_similarity(call: &mut Call) -> Datum {
    estimate(call, similarity)
}

fn compare(call: &mut Call) -> Datum {
    let [a, b] = two(call);
    Datum::from(a.order(&b) as i32)
}

/// All of a signature but the varlena's length.
fn bytes(call: &Call) -> Vec<u8> {
    let signature = Signature::argument(call, 0);
    [&signature.head(), signature.value_bytes()].concat()
}

fn hash(call: &mut Call) -> Datum {
    hash_of_bytes(&bytes(call))
}

fn hash_extended(call: &mut Call) -> Datum {
    hash_of_bytes_extended(&bytes(call), call.arg(1).value() as u64)
}

macro_rules! order {
    ($($symbol:literal: $test:expr;)*) => { $(
        export! {
            guarded $symbol => |call: &mut Call| {
                let test: fn(Ordering) -> bool = $test;
                let [a, b] = two(call);
                Datum::from(test(a.order(&b)))
            };
        }
    )* };
}

order! {
    "minhash_signature_eq": Ordering::is_eq;
    "minhash_signature_ne": Ordering::is_ne;
    "minhash_signature_lt": Ordering::is_lt;
    "minhash_signature_le": Ordering::is_le;
    "minhash_signature_gt": Ordering::is_gt;
    "minhash_signature_ge": Ordering::is_ge;
}

export! {
    guarded "minhash_distance" => jaccard_distance;
    guarded "minhash_similarity" => jaccard_similarity;
    guarded "minhash_signature_cmp" => compare;
    guarded "minhash_signature_hash" => hash;
    guarded "minhash_signature_hash_extended" => hash_extended;
}
