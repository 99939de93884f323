//! Adds up floating-point weights of features without rounding, and derives the bits of a simhash
//! from the sums.
//!
//! Each binary exponent that occurs has its own set of integer sums, so nothing is rounded. Neither
//! the order of the features nor the order of merging partial sums matters. The caller provides the
//! memory of the sums ([`WordStore`]). An SQL aggregate uses memory of the server.

use super::accumulator::{add_where_set, words};
use crate::hash::FeatureHash;
use crate::memory::WordStore;
use crate::weight::{ExactWeight, WeightError};

/// Exact sums of weights for a simhash of `64 * W` bits.
///
/// Each weight is split into parts by binary exponent. The memory has one block of words for each
/// exponent, in ascending order of exponents. A block holds the exponent, the sum of all parts with
/// this exponent, and one sum for each bit: the sum of the parts whose feature has this bit set in
/// its hash. The unit of these sums is 2^(exponent - 1074).
#[derive(Clone, Debug, Default)]
pub struct ExactAccumulator<const W: usize, S = Vec<u64>>(S);

impl<const W: usize, S: WordStore> ExactAccumulator<W, S> {
    /// Number of words of a block.
    const BLOCK: usize = 2 + 64 * W;

    /// Creates an accumulator that stores its sums in `words`. If `words` is empty, the sums start
    /// at 0. To continue the sums of another accumulator, pass a copy of its words
    /// ([`ExactAccumulator::words`]).
    ///
    /// # Panics
    ///
    /// If `words` does not consist of whole blocks of `2 + 64 * W` words.
    pub fn new(words: S) -> Self {
        assert!(words.words().len().is_multiple_of(Self::BLOCK));
        Self(words)
    }

    /// Returns the sums as words, for storage and for [`ExactAccumulator::merge`].
    pub fn words(&self) -> &[u64] {
        self.0.words()
    }

    /// Returns the block of an exponent. Inserts the block if it does not exist.
    fn block(&mut self, exponent: u64) -> &mut [u64] {
        let (mut before, mut behind) = (0, self.words().len() / Self::BLOCK);
        while before < behind {
            let middle = (before + behind) / 2;
            if self.words()[middle * Self::BLOCK] < exponent {
                before = middle + 1;
            } else {
                behind = middle;
            }
        }
        let start = before * Self::BLOCK;
        if self.words().get(start) != Some(&exponent) {
            self.0.insert_zeroes(start, Self::BLOCK);
            self.0.words_mut()[start] = exponent;
        }
        &mut self.0.words_mut()[start..start + Self::BLOCK]
    }

    /// Adds a feature, given by its bytes, with a weight.
    ///
    /// # Errors
    ///
    /// If the weight is NaN, infinite or negative. The error contains `index`, the position of the
    /// feature in the caller's list.
    pub fn add_feature(
        &mut self,
        index: usize,
        feature: &[u8],
        weight: f64,
    ) -> Result<(), WeightError>
    where
        [u64; W]: FeatureHash,
    {
        self.add(index, FeatureHash::new(feature), weight)
    }

    /// Adds a feature, given by its hash, with a weight. Fails like [`Self::add_feature`].
    pub(crate) fn add(
        &mut self,
        index: usize,
        hash: [u64; W],
        weight: f64,
    ) -> Result<(), WeightError> {
        for part in ExactWeight::parts(index, weight)? {
            let block = self.block(part.exponent.into());
            let mantissa = u64::from(part.mantissa);
            // Mantissas are below 2^27, so the sum of 2^36 mantissas is below 2^63.
            block[1] = fitting(block[1] + mantissa);
            let (sums, _) = block[2..].as_chunks_mut::<64>();
            if let Ok(sums) = sums.try_into() {
                add_where_set::<W>(sums, hash, mantissa);
            }
        }
        Ok(())
    }

    /// Adds the sums of another accumulator for the same number of bits, given by its words
    /// ([`ExactAccumulator::words`]).
    pub fn merge(&mut self, other: &[u64]) {
        for theirs in other.chunks_exact(Self::BLOCK) {
            let ours = self.block(theirs[0]);
            for (ours, theirs) in ours[1..].iter_mut().zip(&theirs[1..]) {
                *ours += theirs;
            }
            fitting(ours[1]);
        }
    }

    /// Returns the simhash, most significant word first, or `None` if no weight above zero was
    /// added. If the features with a bit in their hashes have the same total weight as the features
    /// without it, the bit is 0.
    pub fn simhash(&self) -> Option<[u64; W]> {
        (!self.words().is_empty()).then(|| words(|word, bit| self.is_positive(64 * word + bit)))
    }

    /// Returns true if bit `bit` of the simhash is 1, because the features with this bit in their
    /// hashes have a greater total weight than the features without it. Bits are numbered from 0,
    /// the lowest bit of the first word.
    fn is_positive(&self, bit: usize) -> bool {
        // Sum over the blocks with higher exponents, in units of 2^(`above` - 1074). `above` is the
        // lowest of these exponents.
        let mut sum = 0_i128;
        let mut above = 0;
        for block in self.words().rchunks_exact(Self::BLOCK) {
            let exponent = block[0];
            if sum != 0 {
                let gap = above - exponent;
                // Each signed sum is below 2^63 in size, so all later sums together are below 2^64
                // units of 2^exponent. A sum of at least that size keeps its sign.
                if u64::from(sum.unsigned_abs().ilog2()) + gap >= 64 {
                    return sum > 0;
                }
                sum <<= gap;
            }
            above = exponent;
            // The sum of +w and -w over the features: the weight with the bit set minus the weight
            // without it.
            sum += 2 * i128::from(block[2 + bit]) - i128::from(block[1]);
        }
        sum > 0
    }
}

/// Returns `total`, the sum of all parts in a block. Panics if it is 2^63 or more, because later
/// additions may overflow.
fn fitting(total: u64) -> u64 {
    assert!(total >> 63 == 0, "more than 2^36 features in one simhash");
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums<const W: usize>(features: &[([u64; W], f64)]) -> ExactAccumulator<W> {
        let mut sums = ExactAccumulator::default();
        for &(hash, weight) in features {
            sums.add(0, hash, weight).unwrap();
        }
        sums
    }

    proptest! {
        /// Merging partial sums in any way gives the same words, so all results are equal.
        #[test]
        fn parts_may_be_merged_in_any_way(
            features in prop::collection::vec(
                (any::<[u64; 2]>(), 0_u64..0x7FF0_0000_0000_0000),
                0..60,
            ),
            parts in prop::collection::vec(0_usize..4, 60),
        ) {
            let features: Vec<_> = features.iter().map(|&(h, w)| (h, f64::from_bits(w))).collect();
            let whole = sums(&features);
            let mut merged = ExactAccumulator::<2>::default();
            for part in 0..4 {
                let of_part = features.iter().zip(&parts).filter(|(_, p)| **p == part);
                let part: Vec<_> = of_part.map(|(feature, _)| *feature).collect();
                merged.merge(sums(&part).words());
            }
            prop_assert_eq!(merged.words(), whole.words());
            let copied = ExactAccumulator::<2>::new(whole.words().to_vec());
            prop_assert_eq!(copied.simhash(), whole.simhash());
        }
    }

    #[test]
    fn blocks_stand_in_the_order_of_exponents() {
        let sums = sums(&[([1], 1.0), ([1], 1.25e9), ([1], 2f64.powi(-99)), ([1], 1.5)]);
        let exponents: Vec<u64> = sums.words().iter().step_by(66).copied().collect();
        assert_eq!(exponents.len(), 3);
        assert!(exponents.is_sorted(), "{exponents:?}");
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(sums::<1>(&[]).simhash(), None);
        assert_eq!(sums(&[([1], 0.0), ([1], -0.0)]).simhash(), None);
        let mut some = sums(&[([5], 1.0)]);
        some.merge(&[]);
        assert_eq!(some.simhash(), Some([5]));
    }

    #[test]
    #[should_panic(expected = "2^36")]
    fn sums_do_not_overflow() {
        let mut sums = sums(&[([1], 1.0)]);
        for _ in 0..40 {
            let double = sums.words().to_vec();
            sums.merge(&double);
        }
    }
}
