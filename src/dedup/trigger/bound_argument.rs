//! Bound of near-duplicates in a trigger's arguments (`radius=` or `similarity=`).
use core::str::FromStr;
use std::ffi::{CStr, CString};

use neardup_blocktree::metric::{Metric, NEAR_DUPLICATE_SIMILARITY};
use neardup_sketch::candidates::{Estimator, USUAL_LOSS};
use neardup_sketch::minhash_fingerprint;

use crate::am::minhash::options::DEFAULT_HASHES;
use crate::dedup::bound::Bound;
use crate::types::signature;

/// Bound of near-duplicates as written in a trigger's arguments. The maximum distance that it means
/// depends on the fingerprint column.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundArgument {
    /// No bound was written, so the bound of the index applies.
    OfIndex,
    /// Value of the option `radius`.
    Radius(CString),
    /// Value of the option `similarity`.
    Similarity(CString),
    /// Minimum similarity of two texts, for triggers with the option `confirm`. The maximum
    /// distance of candidates (rows whose texts are compared) follows from it.
    Candidates(f64),
}

impl BoundArgument {
    /// Returns the maximum distance of near-duplicates: bits for fingerprints, mismatches for
    /// signatures. Returns `None` if no bound was written. The error is a sentence that explains
    /// why the bound is invalid.
    pub fn max_distance(&self, metric: Metric<usize>) -> Result<Option<u32>, String> {
        let bound = match self {
            BoundArgument::OfIndex => return Ok(None),
            BoundArgument::Candidates(similarity) => {
                let estimator = match metric {
                    Metric::Hamming { bits } => Estimator::fingerprint(bits),
                    Metric::Jaccard(hashes) => Estimator::signature(hashes as u32),
                    Metric::Overlap => unreachable!("arrays have no similarity"),
                };
                return Ok(Some(estimator.candidate_bound(*similarity, USUAL_LOSS)));
            }
            BoundArgument::Radius(_) if metric.is_jaccard() => {
                return Err("Signatures have no radius. Specify a similarity, such as \
                            similarity=0.8."
                    .to_owned());
            }
            BoundArgument::Radius(text) => number(text)
                .filter(|radius| (0..=256).contains(radius))
                .map(Bound::Radius)
                .ok_or_else(|| {
                    format!(
                        "The radius must be a number of bits from 0 to 256, not \"{}\".",
                        text.to_string_lossy()
                    )
                })?,
            BoundArgument::Similarity(text) => number(text)
                .filter(|similarity| (0.0..=1.0).contains(similarity))
                .map(Bound::Similarity)
                .ok_or_else(|| {
                    format!(
                        "The similarity must be a number from 0 to 1, not \"{}\".",
                        text.to_string_lossy()
                    )
                })?,
        };
        Ok(Some(max_distance(bound, metric)))
    }

    /// Returns a minimum similarity of signatures for messages: the similarity in the arguments, or
    /// 0.8 if they state none. With the option `confirm`, returns the minimum similarity of
    /// candidates instead, for signatures of [`DEFAULT_HASHES`] values. That similarity is rounded
    /// down to two decimals.
    pub fn similarity(&self) -> f64 {
        let share = match self {
            BoundArgument::Similarity(text) => number(text),
            BoundArgument::Candidates(similarity) => {
                let estimator = Estimator::signature(DEFAULT_HASHES as u32);
                let mismatches = estimator.candidate_bound(*similarity, USUAL_LOSS);
                let share = signature::similarity(mismatches as usize, DEFAULT_HASHES);
                Some((share * 100.0).floor() / 100.0)
            }
            BoundArgument::OfIndex | BoundArgument::Radius(_) => None,
        };
        share.unwrap_or(NEAR_DUPLICATE_SIMILARITY)
    }
}

/// Converts a bound to a maximum distance: bits for fingerprints, mismatches for signatures.
pub fn max_distance(bound: Bound, metric: Metric<usize>) -> u32 {
    match (bound, metric) {
        (Bound::Radius(radius), _) => radius,
        (Bound::Similarity(similarity), Metric::Jaccard(hashes)) => {
            let mismatches = signature::Bound::Similarity.mismatches(hashes, similarity);
            mismatches.unsigned_abs()
        }
        (Bound::Similarity(similarity), Metric::Hamming { bits }) => {
            minhash_fingerprint::radius(similarity, bits).unsigned_abs()
        }
        (Bound::Similarity(_), Metric::Overlap) => unreachable!("arrays have no similarity"),
    }
}

fn number<T: FromStr>(text: &CStr) -> Option<T> {
    text.to_str().ok()?.parse().ok()
}
