//! Choosing bands by what they are to find.

use super::{Bands, MAX_BANDS};
use crate::leaf;

/// The similarity that unrelated documents are taken to have, from boilerplate and frequent
/// phrases, for estimates of how many rows are compared in vain.
pub const BACKGROUND: f64 = 0.1;

/// Fill factor of leaves after a build.
const FILL: f64 = 0.9;

/// Bands, with their expected recall and cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The number of bands.
    pub bands: usize,
    /// Values in each; of bands that share all values out, in the smallest.
    pub rows: usize,
    /// All rows of the similarity asked for are found with certainty.
    pub exact: bool,
}

impl Choice {
    /// The probability that a pair of this Jaccard similarity agrees in a band.
    pub fn found(&self, similarity: f64) -> f64 {
        1.0 - (1.0 - similarity.powi(self.rows as i32)).powi(self.bands as i32)
    }

    /// Unrelated rows, out of all, that are expected to agree with a query in a band by chance.
    pub fn candidates(&self, rows: f64) -> f64 {
        rows * self.found(BACKGROUND)
    }

    /// Bytes of an index of `rows` rows for each of them.
    pub fn bytes_a_row(&self, rows: f64) -> f64 {
        self.bands as f64 * leaf::expected_size(super::WORDS, rows) / FILL
    }
}

/// The bands that find all of some number of mismatches; `None` if that takes too many.
pub fn exact(hashes: usize, mismatches: usize) -> Option<Choice> {
    let bands = Bands::new(hashes, Bands::default_count(hashes, mismatches), 0).ok()?;
    Some(Choice {
        bands: bands.count(),
        rows: bands.fewest_rows(),
        exact: true,
    })
}

/// The cheapest bands with which a pair of a similarity is found with a probability of at least
/// `recall`, below 1: those with the fewest permutations searched and rows compared in vain,
/// together. `None` if there are none.
pub fn approximate(similarity: f64, recall: f64, hashes: usize, rows: f64) -> Option<Choice> {
    let cost = |choice: &Choice| choice.bands as f64 + choice.candidates(rows);
    (1..=hashes.min(super::MAX_BAND_ROWS))
        .filter_map(|in_band| {
            let most = (hashes / in_band).min(MAX_BANDS);
            (1..=most)
                .map(|bands| Choice {
                    bands,
                    rows: in_band,
                    exact: false,
                })
                .find(|choice| choice.found(similarity) >= recall)
        })
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_recall_asked_for_is_reached(
            similarity in 0.3..1.0_f64, recall in 0.1..0.9999_f64, hashes in 16_usize..1025,
            rows in 1.0..1e9_f64,
        ) {
            if let Some(choice) = approximate(similarity, recall, hashes, rows) {
                prop_assert!(choice.found(similarity) >= recall);
                prop_assert!(Bands::new(hashes, choice.bands, choice.rows).is_ok());
            } else {
                // Not even bands of one value would do.
                prop_assert!(1.0 - (1.0 - similarity).powi(hashes.min(MAX_BANDS) as i32) < recall);
            }
        }
    }

    /// The textbook's 16 bands of 8, and what its authors say of them.
    #[test]
    fn published_probabilities() {
        let choice = Choice {
            bands: 16,
            rows: 8,
            exact: false,
        };
        assert!((choice.found(0.7) - 0.613).abs() < 5e-4);
        assert!((choice.found(0.8) - 0.947).abs() < 5e-4);
    }

    /// Found as often as it says, by pairs made to be of a similarity.
    #[test]
    fn recall_is_seen() {
        let choice = approximate(0.8, 0.95, 128, 1e6).unwrap();
        let bands = Bands::new(128, choice.bands, choice.rows).unwrap();
        let mut state = 5_u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            super::super::mix(state)
        };
        let mut found = 0;
        for _ in 0..4000 {
            let a: Vec<u32> = (0..128).map(|_| next() as u32).collect();
            let b: Vec<u32> = (a.iter())
                .map(|&value| {
                    if next() % 10 < 8 {
                        value
                    } else {
                        next() as u32
                    }
                })
                .collect();
            found += usize::from(
                (0..bands.count()).any(|i| bands.hash(i, &a, 0) == bands.hash(i, &b, 0)),
            );
        }
        // Three deviations of that number of draws below 0.95.
        assert!(found > 3759, "{found}");
    }

    #[test]
    fn exact_bands_guarantee() {
        assert_eq!(
            exact(128, 25),
            Some(Choice {
                bands: 30,
                rows: 4,
                exact: true
            })
        );
        assert_eq!(exact(1024, 512), None);
    }
}
