//! Hamming distance: the number of bit positions in which two fingerprints differ.

/// Returns the Hamming distance of two 64-bit fingerprints: the number of bits that differ, 0 to
/// 64.
#[must_use]
pub const fn hamming64(a: u64, b: u64) -> u32 {
    (a ^ b).count_ones()
}

#[cfg(test)]
mod tests {
    use super::hamming64;

    /// Values from the tests of simhash-cpp (test/test-simhash.cpp).
    #[test]
    fn published_simhash_cpp() {
        assert_eq!(hamming64(0xDEAD_BEEF, 0xDEAD_BEAD), 2);
    }

    /// Values from the tests of yanyiwu/simhash (TSimhash.cpp).
    #[test]
    fn published_yanyiwu() {
        assert_eq!(hamming64(0b1000_1011_0110, 0b1100_0111_0011), 5);
        assert_eq!(hamming64(0b1000_1011_0110, 0b1100_1011_0111), 2);
    }

    /// The three pairwise distances of the example values that matpalm published.
    #[test]
    fn published_matpalm() {
        let [a, b, c] = [851_459_198, 847_263_864, 984_968_088];
        assert_eq!(
            [hamming64(a, b), hamming64(a, c), hamming64(b, c)],
            [4, 16, 12]
        );
    }

    /// Values from the ClickHouse test 01017_bithamming_distance.
    #[test]
    fn published_clickhouse() {
        assert_eq!(hamming64(1, 5), 1);
        assert_eq!(hamming64(100, 100_000), 7);
        assert_eq!(hamming64(u64::MAX, 1), 63);
    }

    #[test]
    fn bounds() {
        assert_eq!(hamming64(7, 7), 0);
        assert_eq!(hamming64(0, u64::MAX), 64);
    }
}
