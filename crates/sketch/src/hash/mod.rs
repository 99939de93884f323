//! Hash functions of features: XXH3 with 64 or 128 bits.

mod short;
pub(crate) mod windows;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Returns the 64-bit hash of a feature: XXH3 with seed 0 of the feature's bytes (UTF-8 for text).
#[inline]
#[must_use]
pub fn feature_hash(feature: &[u8]) -> u64 {
    xxh3_64(feature)
}

/// Returns the 128-bit hash of a feature, for fingerprints of more than 64 bits: XXH3 with seed 0
/// of the feature's bytes (UTF-8 for text).
#[inline]
#[must_use]
pub fn feature_hash128(feature: &[u8]) -> u128 {
    xxh3_128(feature)
}

/// Hash of a feature with as many bits as a fingerprint: an array of 64-bit words, the most
/// significant word first.
pub trait FeatureHash: Copy {
    /// Returns the hash of a feature's bytes.
    fn new(feature: &[u8]) -> Self;
}

impl FeatureHash for [u64; 1] {
    #[inline]
    fn new(feature: &[u8]) -> Self {
        [feature_hash(feature)]
    }
}

impl FeatureHash for [u64; 2] {
    #[inline]
    fn new(feature: &[u8]) -> Self {
        split(feature_hash128(feature))
    }
}

/// Splits a 128-bit number into two words, the most significant word first.
#[inline]
pub(crate) const fn split(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

/// Joins two words, the most significant word first, into a 128-bit number.
#[inline]
pub(crate) const fn join([high, low]: [u64; 2]) -> u128 {
    (high as u128) << 64 | low as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the reference implementation (xxHash, tests/sanity_test.c; also python-xxhash).
    #[test]
    fn published_xxh3() {
        assert_eq!(feature_hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(feature_hash(b"abc"), 0x78af_5f94_892f_3950);
        assert_eq!(
            feature_hash128(b""),
            0x99aa_06d3_0147_98d8_6001_c324_468d_497f
        );
    }

    #[test]
    fn words_are_in_the_order_of_digits() {
        assert_eq!(split(0x1_0000_0000_0000_0002), [1, 2]);
        assert_eq!(join([1, 2]), 0x1_0000_0000_0000_0002);
        assert_eq!(
            <[u64; 2]>::new(b""),
            [0x99aa_06d3_0147_98d8, 0x6001_c324_468d_497f]
        );
    }
}
