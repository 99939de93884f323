//! ANALYZE of columns of signatures.
//!
//! For values above 1,024 bytes, such as signatures of 253 hashes and more, the server keeps
//! neither common values nor a histogram. This module keeps the first 128 values of these
//! signatures. They are a signature of the default length, so estimates are as good as for it.
//! pg_statistic has them under separate kinds, so the server's estimates for `=` do not use them.
use crate::types::signature::Signature;
use neardup_pg::fmgr::export;
use neardup_pg::short_sample::{ShortSample, analyze};

/// Number of values that are kept of a long signature.
pub const KEPT: usize = 128;

// pg_statistic.h reserves this range for private use.
/// Most common shortened values with their shares, like `STATISTIC_KIND_MCV`.
pub const COMMON_KIND: u32 = 26_161;
/// Shortened values drawn evenly from the others, like `STATISTIC_KIND_HISTOGRAM`.
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
