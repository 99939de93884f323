//! Estimates from two signatures, the order of signatures, and comparisons of estimates.
use core::cmp::Ordering;

use pgrx::pg_sys::{self, Datum};

use super::{Signature, distance, similarity};
use crate::pg::call::{Call, export};
use crate::types::fingerprint::{hash_of_bytes, hash_of_bytes_extended};

fn two<'a>(call: &Call) -> [Signature<'a>; 2] {
    // SAFETY: the functions of this file that call it are declared with two signatures in front.
    [0, 1].map(|n| unsafe { Signature::from_datum(call.arg(n)) })
}

fn float8(value: f64) -> Datum {
    Datum::from(value.to_bits())
}

/// The operator `<%>`.
fn jaccard_distance(call: &mut Call) -> Datum {
    let [a, b] = two(call);
    float8(distance(a.mismatches(&b), a.values.len()))
}

/// `minhash_similarity(a, b)`.
fn jaccard_similarity(call: &mut Call) -> Datum {
    let [a, b] = two(call);
    float8(similarity(a.mismatches(&b), a.values.len()))
}

fn compare(call: &mut Call) -> Datum {
    let [a, b] = two(call);
    Datum::from(a.order(&b) as i32)
}

/// All of a signature but the varlena's length.
fn bytes(call: &Call) -> Vec<u8> {
    // SAFETY: declared to take a signature.
    let signature = unsafe { Signature::from_datum(call.arg(0)) };
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

/// A number of SQL as float8, which the server compares estimates as.
trait Number {
    fn read(datum: Datum) -> f64;
}

struct Float8;
struct Int4;
struct Numeric;

impl Number for Float8 {
    fn read(datum: Datum) -> f64 {
        f64::from_bits(datum.value() as u64)
    }
}

impl Number for Int4 {
    fn read(datum: Datum) -> f64 {
        f64::from(datum.value() as i32)
    }
}

impl Number for Numeric {
    fn read(datum: Datum) -> f64 {
        // SAFETY: the callers are declared to take numeric here.
        let float = unsafe {
            let cast = pg_sys::Oid::from_u32(pg_sys::F_FLOAT8_NUMERIC);
            pg_sys::OidFunctionCall1Coll(cast, pg_sys::InvalidOid, datum)
        };
        f64::from_bits(float.value() as u64)
    }
}

/// The order of float8: NaN equals itself and is above all others, and zeros are alike.
fn order<A: Number, B: Number>(call: &Call) -> Ordering {
    let (a, b) = (A::read(call.arg(0)), B::read(call.arg(1)));
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

macro_rules! comparisons {
    ($($name:literal: $test:expr;)*) => { $(
        comparisons!(@types $name, $test, "_int4", Float8, Int4);
        comparisons!(@types $name, $test, "_numeric", Float8, Numeric);
        comparisons!(@types concat!("int4_", $name), $test, "", Int4, Float8);
        comparisons!(@types concat!("numeric_", $name), $test, "", Numeric, Float8);
    )* };
    (@types $name:expr, $test:expr, $suffix:literal, $a:ty, $b:ty) => {
        export! {
            guarded concat!("jaccard_", $name, $suffix) => |call: &mut Call| {
                let test: fn(Ordering) -> bool = $test;
                Datum::from(test(order::<$a, $b>(call)))
            };
        }
    };
}

comparisons! {
    "lt": Ordering::is_lt;
    "le": Ordering::is_le;
    "eq": Ordering::is_eq;
    "ne": Ordering::is_ne;
    "ge": Ordering::is_ge;
    "gt": Ordering::is_gt;
}

export! {
    guarded "minhash_distance" => jaccard_distance;
    guarded "minhash_similarity" => jaccard_similarity;
    guarded "minhash_signature_cmp" => compare;
    guarded "minhash_signature_hash" => hash;
    guarded "minhash_signature_hash_extended" => hash_extended;
}
