//! Fingerprints as other programs make them, bit for bit, of features that are given to both.
//!
//! Each of these programs has a hash function of its own for features, and a way of its own to add up
//! weights and to round: all make bit i of the fingerprint 1 iff the weight of the hashes that have it
//! is more than half of all, but sums of fractions are rounded sums, and so depend on the order.
//!
//! What the others make of no features at all, 0, is what they are given here too.

mod jenkins;

use md5::{Digest, Md5};

use crate::hash::feature_hash;
use crate::options::Choice;
use crate::simhash::simhash64_hashes;
use crate::weight::{FeatureError, check};

/// A way to make a fingerprint of features with weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// That of this crate: XXH3, and exact sums.
    Neardup,
    /// Package `simhash` of PyPI, with f = 64: the last 8 bytes of MD5, big-endian, and rounded sums of
    /// doubles. (Of whole numbers, which it adds as such, no sum below 2^53 is rounded. If some weights
    /// are Python integers up to 50 and others fractions, it adds the integers later than their turn.)
    PythonSimhash,
    /// `simhash-py` and `simhash-cpp`: the first 8 bytes of MD5, big-endian (`unsigned_hash`). They have
    /// no weights; a weight counts as so many repetitions would, and a fraction of it accordingly.
    SimhashPy,
    /// `yanyiwu/simhash`: lookup3 of Jenkins with seed 0, and rounded sums of doubles.
    YanyiwuSimhash,
    /// The middle 8 bytes of MD5, that is bits 32 to 95, big-endian, and exact sums.
    Md5Middle,
}

impl Choice for Scheme {
    const PARAMETER: &str = "scheme";
    const NAMES: &[(&str, Self)] = &[
        ("neardup", Self::Neardup),
        ("python_simhash", Self::PythonSimhash),
        ("simhash_py", Self::SimhashPy),
        ("yanyiwu_simhash", Self::YanyiwuSimhash),
        ("md5_middle", Self::Md5Middle),
    ];
}

impl Scheme {
    /// Hash of a feature.
    #[must_use]
    pub fn hash(self, feature: &[u8]) -> u64 {
        let md5 = |from: usize| {
            let digest = Md5::digest(feature);
            u64::from_be_bytes(*digest[from..].first_chunk().expect("16 bytes"))
        };
        match self {
            Self::Neardup => feature_hash(feature),
            Self::PythonSimhash => md5(8),
            Self::SimhashPy => md5(0),
            Self::YanyiwuSimhash => jenkins::lookup3(feature),
            Self::Md5Middle => md5(4),
        }
    }

    /// Fingerprint of hashes with weights; `None` without any weight above zero, unless the program of
    /// this scheme makes something of that.
    ///
    /// # Errors
    ///
    /// For a weight that is NaN, infinite or negative, whatever that program would make of it.
    pub fn simhash64(
        self,
        hashes: impl IntoIterator<Item = (u64, f64)>,
    ) -> Result<Option<u64>, FeatureError> {
        match self {
            Self::Neardup => simhash64_hashes(hashes),
            Self::SimhashPy | Self::Md5Middle => Ok(simhash64_hashes(hashes)?.or(Some(0))),
            Self::PythonSimhash => {
                let (mut set, mut total) = ([0.0; 64], 0.0);
                each(hashes, |hash, weight| {
                    total += weight;
                    for (bit, set) in set.iter_mut().enumerate() {
                        *set += if hash >> bit & 1 == 1 { weight } else { 0.0 };
                    }
                })?;
                Ok(Some(where_above(&set, total / 2.0)))
            }
            Self::YanyiwuSimhash => {
                let mut signed = [0.0; 64];
                each(hashes, |hash, weight| {
                    for (bit, signed) in signed.iter_mut().enumerate() {
                        *signed += if hash >> bit & 1 == 1 {
                            weight
                        } else {
                            -weight
                        };
                    }
                })?;
                Ok(Some(where_above(&signed, 0.0)))
            }
        }
    }
}

/// Hands over hashes with weights, as long as these are finite and not negative.
fn each(
    hashes: impl IntoIterator<Item = (u64, f64)>,
    mut each: impl FnMut(u64, f64),
) -> Result<(), FeatureError> {
    for (index, (hash, weight)) in hashes.into_iter().enumerate() {
        check(index, weight)?;
        each(hash, weight);
    }
    Ok(())
}

/// The bits whose sums are above a limit.
fn where_above(sums: &[f64; 64], limit: f64) -> u64 {
    sums.iter()
        .enumerate()
        .fold(0, |all, (bit, &sum)| all | u64::from(sum > limit) << bit)
}
