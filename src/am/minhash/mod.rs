//! Indexes on MinHash signatures. A row has an index entry for each band (group of hashes) of its
//! signature. Signatures can be compared if they have the same number of hashes, the same scheme
//! (kind of hash function) and the same seed.
pub mod options;
pub mod search;

use neardup_blocktree::bands::{self, Bands};
use pgrx::PgSqlErrorCode;

use crate::types::signature::{Signature, SignatureBall};
use neardup_pg::errors::UserError;
use neardup_pg::rel::Rel;
use neardup_pg::value::Value;

/// Returns a hash of the scheme and the seed of a signature ([`bands::scheme_hash`]). Keys of bands
/// depend on it, so signatures with different schemes or seeds have different keys.
pub fn scheme_hash(signature: &Signature) -> u64 {
    bands::scheme_hash(signature.scheme.code(), signature.seed)
}

/// Raises an error unless a signature has as many hashes as an index expects.
pub fn expect_length(index: Rel, bands: &Bands, signature: &Signature) {
    let hashes = signature.values.len();
    if hashes != bands.hashes() {
        let name = index.shown();
        UserError::new(
            PgSqlErrorCode::ERRCODE_DATA_EXCEPTION,
            format!("signature length does not match index \"{name}\""),
        )
        .detail(format!(
            "The signature has {hashes} hashes, but the index requires signatures with {} hashes.",
            bands.hashes()
        ))
        .hint(format!(
            "Create the index WITH (hashes = {hashes}), or compute the signature with hashes => \
             {}.",
            bands.hashes()
        ))
        .raise();
    }
}

/// Calls `each` with the signature in an SQL value, and returns the result. A value that must be
/// read from TOAST is copied. The copy is freed after the call, because a caller may read the
/// signatures of millions of rows. Raises an internal error if the value is not a signature.
pub fn with_signature<T>(value: Value, each: impl FnOnce(&Signature) -> T) -> T {
    value.with_body(|body| each(&Signature::from_body(body)))
}

/// Calls `each` with the ball of signatures in an SQL value, like [`with_signature`].
pub fn with_ball<T>(value: Value, each: impl FnOnce(&SignatureBall) -> T) -> T {
    value.with_body(|body| each(&SignatureBall::from_body(body)))
}
