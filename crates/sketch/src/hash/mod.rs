//! Feature hashes.

mod short;
pub(crate) mod windows;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Hash of a feature: XXH3, 64 bits, seed 0, over the feature's bytes (UTF-8 for text).
#[inline]
#[must_use]
pub fn feature_hash(feature: &[u8]) -> u64 {
    xxh3_64(feature)
}

/// Hash of a feature for wider fingerprints: XXH3, 128 bits, seed 0, over the same bytes.
#[inline]
#[must_use]
pub fn feature_hash128(feature: &[u8]) -> u128 {
    xxh3_128(feature)
}

/// Hash of a feature with the width of a fingerprint: words of 64 bits, the most significant
/// first.
pub trait FeatureHash: Copy {
    /// Hashes a feature.
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

/// Splits a number into two words, the most significant first.
#[inline]
pub(crate) const fn split(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

/// Joins two words into a number. The first word is the most significant.
#[inline]
pub(crate) const fn join([high, low]: [u64; 2]) -> u128 {
    (high as u128) << 64 | low as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation (xxHash, tests/sanity_test.c; also python-xxhash).
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
