//! Limit of near-duplicates in a trigger's arguments.
use core::str::FromStr;
use std::ffi::{CStr, CString};

use neardup_blocktree::metric::{
    Metric, NEAR_DUPLICATE_SIMILARITY, near_duplicate_bits, near_duplicate_mismatches,
};
use neardup_sketch::minhash_fingerprint;

use crate::types::signature::Bound;

/// Limit of near-duplicates, as it was written. Its meaning depends on the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Near {
    /// No limit was written: the threshold of `~=` for signatures, and the threshold of `~=` for
    /// 64 bits for fingerprints of any width.
    Conventional,
    Distance(CString),
    Similarity(CString),
}

impl Near {
    /// The greatest distance of near-duplicates: in bits for fingerprints, in mismatches for
    /// signatures. An error is a sentence that says why the limit makes no sense.
    pub fn limit(&self, metric: Metric<usize>) -> Result<u32, String> {
        match metric {
            Metric::Hamming { bits } => self.bits(bits),
            Metric::Jaccard(hashes) => self.mismatches(hashes),
            Metric::Overlap => Err("Arrays have no distance.".to_owned()),
        }
    }

    fn bits(&self, bits: u32) -> Result<u32, String> {
        match self {
            Near::Conventional => Ok(near_duplicate_bits(64)),
            Near::Distance(text) => number(text)
                .filter(|distance| (0..=256).contains(distance))
                .ok_or_else(|| {
                    format!(
                        "The distance is a number of bits from 0 to 256, and not \"{}\".",
                        text.to_string_lossy()
                    )
                }),
            Near::Similarity(text) => number(text)
                .filter(|similarity| (0.0..=1.0).contains(similarity))
                .map(|similarity| minhash_fingerprint::radius(similarity, bits).unsigned_abs())
                .ok_or_else(|| {
                    format!(
                        "The similarity is a number from 0 to 1, and not \"{}\".",
                        text.to_string_lossy()
                    )
                }),
        }
    }

    /// The least similarity of signatures, for messages, if it makes sense.
    pub fn similarity(&self) -> f64 {
        let rounded = |share: f64| (share * 1e9).round() / 1e9;
        let share = match self {
            Near::Conventional => None,
            Near::Distance(text) => number(text).map(|distance: f64| rounded(1.0 - distance)),
            Near::Similarity(text) => number(text),
        };
        share.unwrap_or(NEAR_DUPLICATE_SIMILARITY)
    }

    fn mismatches(&self, hashes: usize) -> Result<u32, String> {
        let (text, bound) = match self {
            Near::Conventional => return Ok(near_duplicate_mismatches(hashes) as u32),
            Near::Distance(text) => (text, Bound::Distance),
            Near::Similarity(text) => (text, Bound::Similarity),
        };
        number(text)
            .filter(|share| (0.0..=1.0).contains(share))
            .map(|share| bound.mismatches(hashes, share).unsigned_abs())
            .ok_or_else(|| {
                format!(
                    "The distance or similarity of signatures is a number from 0 to 1, \
                 and not \"{}\".",
                    text.to_string_lossy()
                )
            })
    }
}

fn number<T: FromStr>(text: &CStr) -> Option<T> {
    text.to_str().ok()?.parse().ok()
}
