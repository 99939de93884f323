//! Simhash fingerprints that are bit for bit equal to those of other programs, if the features and
//! their weights are equal.
//!
//! The programs differ in the hash function of features and in the arithmetic of weights. In all
//! programs bit i is 1 iff the weight of the hashes with bit i is more than half of the total.
//! Programs that add floating-point weights round, so the order of the features can change a bit.
//!
//! If a text has no features, the other programs return 0, and so do their schemes here.

mod jenkins;

use md5::{Digest, Md5};

use crate::hash::feature_hash;
use crate::options::NamedOption;
use crate::simhash::simhash64_hashes;
use crate::weight::{WeightError, check_weight};

/// Simhash scheme of a program: hash function of features and arithmetic of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SimhashScheme {
    /// Scheme of this crate: the hash is XXH3, and weights are added without rounding.
    Neardup,
    /// Package `simhash` of PyPI, with f = 64. The hash is the last 8 bytes of MD5, big-endian.
    /// Weights are added as doubles. Sums of integers below 2^53 are exact in any order, so the
    /// result is the same as the package's if all weights are integers. If a text also has
    /// fractional weights, a bit may differ: the package has separate sums for Python integers up
    /// to 50 and for other weights, so it adds the weights in another order.
    PythonSimhash,
    /// `simhash-py` and `simhash-cpp`. The hash is the first 8 bytes of MD5, big-endian
    /// (`unsigned_hash`). These programs have no weights, but their callers can repeat a feature. A
    /// weight of n here has the same effect as n repetitions there. Weights are added without
    /// rounding.
    SimhashPy,
    /// `yanyiwu/simhash`. The hash is lookup3 of Jenkins with seed 0. Weights are added as doubles.
    YanyiwuSimhash,
    /// Programs whose hash is the middle 8 bytes of MD5 (bits 32 to 95), big-endian. Weights are
    /// added without rounding.
    Md5Middle,
}

impl NamedOption for SimhashScheme {
    const PARAMETER: &str = "scheme";
    const NAMES: &[(&str, Self)] = &[
        ("neardup", Self::Neardup),
        ("python_simhash", Self::PythonSimhash),
        ("simhash_py", Self::SimhashPy),
        ("yanyiwu_simhash", Self::YanyiwuSimhash),
        ("md5_middle", Self::Md5Middle),
    ];
}

impl SimhashScheme {
    /// Returns the 64-bit hash of a feature's bytes by the hash function of this scheme.
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

    /// Returns the simhash of features, given as pairs of a hash and a weight. If no weight is
    /// above zero, returns `None` for [`SimhashScheme::Neardup`], and 0 for the other schemes, as
    /// their programs do.
    ///
    /// # Errors
    ///
    /// If a weight is NaN, infinite or negative.
    pub fn simhash64(
        self,
        hashes: impl IntoIterator<Item = (u64, f64)>,
    ) -> Result<Option<u64>, WeightError> {
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

/// Calls `each` with every hash and its weight. Fails at the first weight that is NaN, infinite or
/// negative.
fn each(
    hashes: impl IntoIterator<Item = (u64, f64)>,
    mut each: impl FnMut(u64, f64),
) -> Result<(), WeightError> {
    for (index, (hash, weight)) in hashes.into_iter().enumerate() {
        check_weight(index, weight)?;
        each(hash, weight);
    }
    Ok(())
}

/// Returns a fingerprint whose bit i is 1 if and only if `sums[i]` is above `limit`.
fn where_above(sums: &[f64; 64], limit: f64) -> u64 {
    sums.iter()
        .enumerate()
        .fold(0, |all, (bit, &sum)| all | u64::from(sum > limit) << bit)
}
