//! Distance and similarity estimated from two signatures, and the order and hash of signatures.
use core::cmp::Ordering;

use pgrx::pg_sys::Datum;

use super::{Signature, distance, similarity};
use crate::types::hash::hash_of_bytes;
use crate::types::order::export_order;
use neardup_pg::fmgr::{Call, export};

/// Reads the signatures in arguments 0 and 1.
fn two(call: &Call) -> [Signature<'_>; 2] {
    [0, 1].map(|n| Signature::argument(call, n))
}

/// Returns an estimate from the signatures in arguments 0 and 1. `from` computes it from the number
/// of differing positions and the number of all positions. Returns NULL if the signatures cannot be
/// compared.
fn estimate(call: &mut Call, from: fn(usize, usize) -> f64) -> Datum {
    let [a, b] = two(call);
    let estimate = (a.mismatches(&b)).map(|mismatches| from(mismatches, a.values.len()));
    call.return_value(estimate.map(|value| Datum::from(value.to_bits())))
}

/// Operator `<%>`: estimated Jaccard distance of two signatures.
fn jaccard_distance(call: &mut Call) -> Datum {
    estimate(call, distance)
}

/// `minhash_similarity(a, b)`: estimated Jaccard similarity of two signatures.
fn jaccard_similarity(call: &mut Call) -> Datum {
    estimate(call, similarity)
}

fn order(call: &Call) -> Ordering {
    let [a, b] = two(call);
    a.order(&b)
}

/// Hashes all bytes of a signature except the varlena header.
fn hash(call: &mut Call) -> Datum {
    let signature = Signature::argument(call, 0);
    hash_of_bytes(call, &signature.to_bytes())
}

export_order!(guarded "minhash_signature_", order);
export! {
    guarded "minhash_distance" => jaccard_distance;
    guarded "minhash_similarity" => jaccard_similarity;
    guarded "minhash_signature_hash" => hash;
    guarded "minhash_signature_hash_extended" => hash;
}
