//! Hash functions of the scheme `neardup1`: linear functions modulo 2^32.
//!
//! A feature is given by its 64-bit hash ([`crate::hash::feature_hash`]), with halves `low` and
//! `high`. Function i is `h_i(x) = a_i * low(x) + high(x)` modulo 2^32. A seed determines the
//! multipliers.
//!
//! If the hashes of the features are independent and uniform, each h_i is uniform. So two
//! signatures agree in a position with exactly the probability J, the Jaccard similarity of their
//! sets. For two functions, h_i - h_j = (a_i - a_j) * low is independent of h_i. So any two
//! positions are independent of each other, except for the trailing zeros of a_i - a_j, which
//! affect the last bits of 32. The variance of a mean of K pairwise independent terms is J(1-J)/K,
//! as for K functions drawn independently. Linear functions lose nothing here because the features
//! are hashed well beforehand. docs/minhash.md has the measurement, and the cost of other
//! constructions.

use super::kernel;

/// Linear hash functions of the scheme `neardup1`, for signatures of one length and seed.
#[derive(Clone, Debug)]
pub struct LinearFamily {
    /// Number of hash functions, which is the length of signatures.
    hashes: usize,
    /// Multiplier of each hash function, followed by unused multipliers that fill the last vector
    /// of [`LANES`](super::kernel::LANES) elements.
    multipliers: Vec<u32>,
}

/// Returns the next random number of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl LinearFamily {
    /// Creates `hashes` hash functions from a seed. A shorter signature of the same seed is a
    /// prefix of a longer one.
    #[must_use]
    pub fn new(hashes: usize, seed: u64) -> Self {
        let mut state = seed;
        let padded = hashes.next_multiple_of(kernel::LANES);
        LinearFamily {
            hashes,
            multipliers: (0..padded)
                .map(|_| (splitmix64(&mut state) >> 32) as u32)
                .collect(),
        }
    }

    /// Returns the number of hash functions, which is the length of signatures.
    #[must_use]
    pub fn hashes(&self) -> usize {
        self.hashes
    }

    /// Returns the signature of a set of features, given by their hashes
    /// ([`crate::hash::feature_hash`]), or `None` if there are none. Neither order nor repetitions
    /// matter.
    #[must_use]
    pub fn signature(&self, features: &[u64]) -> Option<Vec<u32>> {
        let mut minima = vec![u32::MAX; self.padded_len()];
        self.fold(&mut minima, features);
        minima.truncate(self.hashes);
        (!features.is_empty()).then_some(minima)
    }

    /// Returns the number of minima that [`LinearFamily::fold`] needs: the length of signatures,
    /// rounded up to a multiple of [`LANES`](super::kernel::LANES).
    pub(super) fn padded_len(&self) -> usize {
        self.multipliers.len()
    }

    /// Adds features, given by their hashes, to `minima`, the minima of the hash functions so far.
    /// `minima` must have [`LinearFamily::padded_len`] elements.
    pub(super) fn fold(&self, minima: &mut [u32], features: &[u64]) {
        kernel::fold(minima, &self.multipliers, features);
    }

    /// Adds one feature, given by its hash, to `signature`, which must have
    /// [`LinearFamily::hashes`] positions. Before the first feature is added, each position must be
    /// `u32::MAX`.
    pub fn add(&self, signature: &mut [u32], feature: u64) {
        let (low, high) = (feature as u32, (feature >> 32) as u32);
        for (least, multiplier) in signature.iter_mut().zip(&self.multipliers) {
            *least = (*least).min(multiplier.wrapping_mul(low).wrapping_add(high));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: the signature by its definition, one value at a time.
    fn defined(hashes: usize, seed: u64, features: &[u64]) -> Vec<u32> {
        let mut state = seed;
        (0..hashes)
            .map(|_| {
                let a = splitmix64(&mut state) >> 32;
                let value = |x: &u64| {
                    (u128::from(a) * u128::from(x & 0xffff_ffff) + u128::from(x >> 32)) as u32
                };
                features.iter().map(value).min().unwrap()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            hashes in super::super::MIN_HASHES..300, seed: u64,
            features in prop::collection::vec(any::<u64>(), 1..700),
        ) {
            let family = LinearFamily::new(hashes, seed);
            let expected = defined(hashes, seed, &features);
            prop_assert_eq!(family.signature(&features), Some(expected.clone()));
            let mut placed = vec![u32::MAX; hashes];
            features.iter().for_each(|&feature| family.add(&mut placed, feature));
            prop_assert_eq!(placed, expected);
        }
    }

    #[test]
    fn nothing_has_no_signature() {
        assert_eq!(LinearFamily::new(128, 0).signature(&[]), None);
    }

    #[test]
    fn a_longer_signature_begins_with_a_shorter() {
        let features = [1 << 40 | 7, 3 << 33 | 9];
        let long = LinearFamily::new(256, 5).signature(&features).unwrap();
        assert_eq!(
            LinearFamily::new(100, 5).signature(&features).unwrap(),
            long[..100]
        );
    }

    /// First outputs of splitmix64 from the seed 1234567, as published with the generator.
    #[test]
    fn published_splitmix64() {
        let mut state = 1_234_567;
        assert_eq!(splitmix64(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix64(&mut state), 3_203_168_211_198_807_973);
    }

    /// Expected signatures, which must never change, because users store signatures.
    #[test]
    fn golden() {
        let features = ["a b c", "b c d", "c d e"].map(|f| crate::hash::feature_hash(f.as_bytes()));
        let signature = LinearFamily::new(16, 0).signature(&features).unwrap();
        let expected = [
            63_668_789,
            2_867_707_296,
            196_777_338,
            1_998_991_535,
            746_600_069,
            1_046_682_107,
            1_500_041_084,
            1_725_947_509,
            610_900_258,
            1_727_693_435,
            587_057_281,
            2_259_822_359,
            109_455_212,
            2_412_809_001,
            1_898_907_966,
            1_120_719_412,
        ];
        assert_eq!(signature, expected);
    }
}
