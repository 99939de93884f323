//! ANALYZE of columns of signatures.
//!
//! The server keeps no common values and no histogram of values above 1,024 bytes, as signatures of
//! 253 hashes and more are. Of these the first 128 values are kept: a signature itself, of as many
//! positions as the usual one has, so that estimates are as good as for that. They stand under
//! numbers of their own in pg_statistic, where the server's estimates for `=` do not take them for
//! the values of the column.
use crate::types::signature::Signature;
use neardup_pg::fmgr::export;
use neardup_pg::short_sample::{ShortSample, analyze};

/// Values that are kept of a long signature.
pub const KEPT: usize = 128;

// From the range that pg_statistic.h leaves to private use.
/// The most common shortened values, with their shares: as `STATISTIC_KIND_MCV`.
pub const COMMON_KIND: u32 = 26_161;
/// Shortened values drawn evenly from the others: as `STATISTIC_KIND_HISTOGRAM`.
pub const SAMPLE_KIND: u32 = 26_162;

/// The first values of each signature.
struct SignatureSample;

impl ShortSample for SignatureSample {
    const SIZE: usize = Signature::size(KEPT);
    const COMMON_KIND: u32 = COMMON_KIND;
    const SAMPLE_KIND: u32 = SAMPLE_KIND;

    fn shorten(beginning: &[u8]) -> Option<Vec<u8>> {
        Signature::beginning(beginning, KEPT).map(|short| short.to_bytes())
    }
}

export! {
    guarded "minhash_signature_analyze" => analyze::<SignatureSample>;
}
