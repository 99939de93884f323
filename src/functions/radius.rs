//! `neardup_radius(function, similarity)`: radius in bits that corresponds to a Jaccard similarity,
//! for the fingerprints that `function` makes.
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys::Datum;

use neardup_pg::errors::{UserError, shown};
use neardup_pg::fmgr::{Call, export};

/// Functions whose fingerprints estimate a similarity, each with the number of bits of its
/// fingerprints.
const WIDTHS: [(&[u8], u32); 2] = [(b"minhash64", 64), (b"minhash128", 128)];

/// `neardup_radius(function, similarity)`: radius in bits that corresponds to a similarity. Raises
/// an error unless the similarity is from 0 to 1.
fn radius(call: &mut Call) -> Datum {
    let (function, similarity) = (call.bytes(0), call.float8(1));
    let Some((_, bits)) = WIDTHS.iter().find(|(name, _)| *name == function) else {
        refuse(function)
    };
    if !(0.0..=1.0).contains(&similarity) {
        UserError::invalid_parameter(format!("similarity {similarity} is out of range"))
            .detail("A Jaccard similarity is a number from 0 to 1.")
            .hint("Write 80 % as 0.8.")
            .raise();
    }
    Datum::from(minhash_fingerprint::radius(similarity, *bits))
}

/// Raises the error that the fingerprints of `function` do not estimate a similarity.
fn refuse(function: &[u8]) -> ! {
    let hint = match function {
        b"minhash" => "Search signatures by similarity: minhash_similarity(signature, q) >= 0.8.",
        _ => "Compute the fingerprints with minhash64 or minhash128.",
    };
    UserError::invalid_parameter(format!(
        "fingerprints of function \"{}\" do not estimate a similarity",
        shown(function)
    ))
    .detail(
        "The distance between fingerprints estimates a similarity only if minhash64 or minhash128 \
         computed them.",
    )
    .hint(hint)
    .raise()
}

export! {
    guarded "neardup_radius" => radius;
}
