//! ANALYZE function of the signature type, which keeps shortened values of long signatures.
//!
//! For values above 1,024 bytes, such as signatures of 253 hashes and more, the server keeps
//! neither common values nor a histogram. This module keeps the first 128 hashes of each such
//! signature, which are a signature of the default length, so estimates are as good as for that
//! length. pg_statistic stores them under separate kinds, so that the server's estimates for `=` do
//! not use them.
use crate::types::signature::Signature;
use neardup_pg::fmgr::export;
use neardup_pg::short_sample::{ShortSample, analyze};

/// Number of hashes that statistics keep of a long signature. It is the default length of
/// signatures.
pub const KEPT: usize = 128;

// pg_statistic.h reserves the kinds 10000 to 30000 for private use.
/// Kind in pg_statistic for the most common shortened signatures and their shares, like
/// `STATISTIC_KIND_MCV`.
pub const COMMON_KIND: u32 = 26_161;
/// Kind in pg_statistic for a sample of the shortened signatures that are not most common, like
/// `STATISTIC_KIND_HISTOGRAM`.
pub const SAMPLE_KIND: u32 = 26_162;

/// Rule by which ANALYZE shortens long signatures: it keeps their first [`KEPT`] hashes.
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
