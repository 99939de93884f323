//! The hash functions of a signature.
//!
//! A feature comes as a hash of 64 bits ([`crate::hash::feature_hash`]), of which `low` and `high`
//! are the halves. Function i is `h_i(x) = a_i * low(x) + high(x)` modulo 2^32, with multipliers
//! from a seed.
//!
//! For features whose hashes are independent and uniform, each h_i is uniform, so that a position
//! agrees with exactly the probability J. And of two functions, h_i - h_j = (a_i - a_j) * low is
//! independent of h_i, so that any two positions are independent of each other, up to the trailing
//! zeros of a_i - a_j, which concern the last bits of 32. The variance of a mean of pairwise
//! independent terms is J(1-J)/K, as of K functions drawn independently: linear functions lose
//! nothing here because the features are hashed well before. docs/minhash.md has the measurement,
//! and what other constructions cost.

use super::kernel;

/// Features whose hashes are gathered before the minima are looked at.
const BATCH: usize = 256;

/// The hash functions of signatures of some length and seed.
#[derive(Clone, Debug)]
pub struct Family {
    hashes: usize,
    /// One for each position, and some more to fill the last vector.
    multipliers: Vec<u32>,
}

/// The next number of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Family {
    /// The functions of a seed. A longer signature begins with the shorter one of the same seed.
    #[must_use]
    pub fn new(hashes: usize, seed: u64) -> Self {
        let mut state = seed;
        let padded = hashes.next_multiple_of(kernel::LANES);
        Family {
            hashes,
            multipliers: (0..padded)
                .map(|_| (splitmix64(&mut state) >> 32) as u32)
                .collect(),
        }
    }

    /// The length of signatures.
    #[must_use]
    pub fn hashes(&self) -> usize {
        self.hashes
    }

    /// The signature of features given by their hashes, in any order and any number of times;
    /// `None` if there are none.
    #[must_use]
    pub fn signature(&self, features: &[u64]) -> Option<Vec<u32>> {
        let mut minima = Minima::default();
        minima.reset(self);
        minima.add_all(self, features);
        minima.finish(self).map(<[u32]>::to_vec)
    }

    /// Takes one more feature into a signature that stands somewhere else.
    pub fn add(&self, signature: &mut [u32], feature: u64) {
        let (low, high) = (feature as u32, (feature >> 32) as u32);
        for (least, multiplier) in signature.iter_mut().zip(&self.multipliers) {
            *least = (*least).min(multiplier.wrapping_mul(low).wrapping_add(high));
        }
    }
}

/// A signature in the making; reusable.
#[derive(Clone, Debug, Default)]
pub struct Minima {
    least: Vec<u32>,
    waiting: Vec<u64>,
    any: bool,
}

impl Minima {
    /// Forgets everything, for features under the functions of a family.
    pub fn reset(&mut self, family: &Family) {
        self.least.clear();
        self.least.resize(family.multipliers.len(), u32::MAX);
        self.waiting.clear();
        self.waiting.reserve(BATCH);
        self.any = false;
    }

    /// Adds a feature by its hash.
    #[inline]
    pub fn add(&mut self, family: &Family, feature: u64) {
        if self.waiting.len() == BATCH {
            self.flush(family);
        }
        self.waiting.push(feature);
    }

    /// Adds features by their hashes.
    pub fn add_all(&mut self, family: &Family, features: &[u64]) {
        self.flush(family);
        self.any |= !features.is_empty();
        kernel::fold(&mut self.least, &family.multipliers, features);
    }

    fn flush(&mut self, family: &Family) {
        self.any |= !self.waiting.is_empty();
        kernel::fold(&mut self.least, &family.multipliers, &self.waiting);
        self.waiting.clear();
    }

    /// The signature of all that was added; `None` if that is nothing.
    pub fn finish(&mut self, family: &Family) -> Option<&[u32]> {
        self.flush(family);
        self.any.then_some(&self.least[..family.hashes])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, one value at a time.
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
            let family = Family::new(hashes, seed);
            let expected = defined(hashes, seed, &features);
            prop_assert_eq!(family.signature(&features), Some(expected.clone()));
            let mut minima = Minima::default();
            minima.reset(&family);
            features.iter().for_each(|&feature| minima.add(&family, feature));
            prop_assert_eq!(minima.finish(&family), Some(&expected[..]));
            let mut placed = vec![u32::MAX; hashes];
            features.iter().for_each(|&feature| family.add(&mut placed, feature));
            prop_assert_eq!(placed, expected);
        }
    }

    #[test]
    fn nothing_has_no_signature() {
        assert_eq!(Family::new(128, 0).signature(&[]), None);
    }

    #[test]
    fn a_longer_signature_begins_with_a_shorter() {
        let features = [1 << 40 | 7, 3 << 33 | 9];
        let long = Family::new(256, 5).signature(&features).unwrap();
        assert_eq!(
            Family::new(100, 5).signature(&features).unwrap(),
            long[..100]
        );
    }

    /// The first outputs of splitmix64 from the seed 1234567, as published with the generator.
    #[test]
    fn published_splitmix64() {
        let mut state = 1_234_567;
        assert_eq!(splitmix64(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix64(&mut state), 3_203_168_211_198_807_973);
    }

    /// Golden values: signatures are stored, so these never change.
    #[test]
    fn golden() {
        let features = ["a b c", "b c d", "c d e"].map(|f| crate::hash::feature_hash(f.as_bytes()));
        let signature = Family::new(16, 0).signature(&features).unwrap();
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
