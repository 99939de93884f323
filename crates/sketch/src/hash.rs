//! Feature hashes.

use xxhash_rust::xxh3::xxh3_64;

/// Hash of a feature: XXH3, 64 bits, seed 0, over the feature's bytes (UTF-8 for text).
#[inline]
#[must_use]
pub fn feature_hash(feature: &[u8]) -> u64 {
    xxh3_64(feature)
}

#[cfg(test)]
mod tests {
    use super::feature_hash;

    /// Values of the reference implementation (xxHash, tests/sanity_test.c; also python-xxhash).
    #[test]
    fn published_xxh3() {
        assert_eq!(feature_hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(feature_hash(b"abc"), 0x78af_5f94_892f_3950);
    }
}
