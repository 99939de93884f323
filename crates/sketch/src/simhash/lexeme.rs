//! Simhash of the lexemes of a PostgreSQL `tsvector`.
//!
//! A `tsvector` stores the positions of each lexeme, and for each position a label A to D, which
//! marks a part of the document. The default label is D.

use super::accumulator::Accumulator;
use crate::hash::FeatureHash;
use crate::weight::sqrt_weight;

/// Weights of the labels D, C, B and A, in tenths: the defaults of `ts_rank`.
const TENTHS: [u64; 4] = [1, 2, 4, 10];

/// Returns the weight of a lexeme, given its number of occurrences under the labels D, C, B and A:
/// the sum of the square roots of the four numbers ([`sqrt_weight`]), multiplied by 1, 2, 4 and 10.
///
/// Only the ratios of weights matter in a simhash. Lexemes without labels count as D, so they have
/// the default weights of the words of a text. A single occurrence under A has ten times the weight
/// of a single occurrence under D.
///
/// # Panics
///
/// If one of the four numbers is 2^32 or more.
#[must_use]
pub fn lexeme_weight(occurrences: [u64; 4]) -> u64 {
    let weights = occurrences.map(sqrt_weight);
    weights
        .iter()
        .zip(TENTHS)
        .map(|(w, tenths)| w * tenths)
        .sum()
}

/// Accumulator for a simhash of `64 * W` bits of the lexemes of a `tsvector`.
#[derive(Clone, Default)]
pub struct LexemeAccumulator<const W: usize>(Accumulator<W>);

impl<const W: usize> LexemeAccumulator<W>
where
    [u64; W]: FeatureHash,
{
    /// Adds a lexeme with its number of occurrences under the labels D, C, B and A. Must be called
    /// once for each lexeme. Up to 2^20 lexemes fit, more than a `tsvector` can hold.
    pub fn add(&mut self, lexeme: &[u8], occurrences: [u64; 4]) {
        self.0
            .add(FeatureHash::new(lexeme), lexeme_weight(occurrences));
    }

    /// Returns the simhash, most significant word first, or `None` if no lexeme was added. If the
    /// features with a bit in their hashes have the same total weight as the features without it,
    /// the bit is 0.
    #[must_use]
    pub fn simhash(&self) -> Option<[u64; W]> {
        self.0.simhash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simhash::{simhash64_features, simhash128_features};
    use crate::{Sketcher, TextOptions};
    use proptest::prelude::*;

    #[test]
    fn weights_of_labels() {
        assert_eq!(lexeme_weight([1, 0, 0, 0]), 1 << 16);
        assert_eq!(lexeme_weight([2, 0, 0, 0]), 92_681);
        assert_eq!(lexeme_weight([0, 1, 0, 0]), 2 << 16);
        assert_eq!(lexeme_weight([0, 0, 1, 0]), 4 << 16);
        assert_eq!(lexeme_weight([0, 0, 0, 1]), 10 << 16);
        assert_eq!(lexeme_weight([4, 0, 0, 9]), 32 << 16);
    }

    /// Lexemes without labels have the simhash of a text with the same words, at shingle 1.
    #[test]
    fn equals_the_words_of_a_text() {
        let words = TextOptions {
            shingle: 1,
            ..TextOptions::SIMHASH
        };
        let text = "the cat sat on the mat and the dog sat too";
        let mut sums = LexemeAccumulator::<1>::default();
        let lexemes = ["and", "cat", "dog", "mat", "on", "sat", "the", "too"];
        for lexeme in lexemes {
            let count = text.split(' ').filter(|word| *word == lexeme).count();
            sums.add(lexeme.as_bytes(), [count as u64, 0, 0, 0]);
        }
        let expected = Sketcher::new(words).simhash64(text, &mut || ());
        assert_eq!(sums.simhash().map(|[word]| word), expected);
        assert_eq!(LexemeAccumulator::<1>::default().simhash(), None);
    }

    proptest! {
        /// The simhash equals the one computed from sums of floating-point weights. A weight is the
        /// square root of a number of occurrences. All numbers here are squares, so the weights and
        /// their sums are exact.
        #[test]
        fn equals_exact_sums(
            lexemes in prop::collection::btree_map(
                "[a-z]{1,9}",
                prop::array::uniform4(0_u64..16),
                1..40,
            ),
        ) {
            let mut narrow = LexemeAccumulator::<1>::default();
            let mut wide = LexemeAccumulator::<2>::default();
            for (lexeme, roots) in &lexemes {
                let occurrences = roots.map(|root| root * root);
                narrow.add(lexeme.as_bytes(), occurrences);
                wide.add(lexeme.as_bytes(), occurrences);
            }
            let features = || lexemes.iter().map(|(lexeme, [d, c, b, a])| {
                (lexeme, (d + 2 * c + 4 * b + 10 * a) as f32)
            });
            let expected = simhash64_features(features()).unwrap();
            prop_assert_eq!(narrow.simhash().map(|[word]| word), expected);
            let expected = simhash128_features(features()).unwrap();
            prop_assert_eq!(wide.simhash().map(crate::hash::join), expected);
        }
    }
}
