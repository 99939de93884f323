//! Choice of the number of bands and of positions per band, for a similarity and a recall. A band
//! is a group of positions of a signature. A search compares the rows that agree with the query in
//! all positions of at least one band. The SQL function `neardup_tune` reports the choice.

use super::{Bands, MAX_BANDS};
use crate::build::DEFAULT_LEAF_FILL;
use crate::leaf;

/// Assumed Jaccard similarity of unrelated documents, which share boilerplate and frequent phrases.
/// It determines the expected number of rows that a search compares although they do not match.
pub const BACKGROUND: f64 = 0.1;

/// Share of a leaf that a build fills with entries.
const FILL: f64 = DEFAULT_LEAF_FILL as f64 / 100.0;

/// Number of bands and of positions per band. Methods estimate recall, candidates and size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Number of bands.
    pub bands: usize,
    /// Number of positions in each band. If `exact`, the positions are distributed evenly, and this
    /// is the number in the smallest band.
    pub band_width: usize,
    /// True if a search is guaranteed to find all rows within the wanted number of mismatches.
    pub exact: bool,
}

impl Choice {
    /// Returns the probability that two signatures with this Jaccard similarity agree in all
    /// positions of at least one band, so that a search finds the pair.
    pub fn found(&self, similarity: f64) -> f64 {
        1.0 - (1.0 - similarity.powi(self.band_width as i32)).powi(self.bands as i32)
    }

    /// Returns the expected number of unrelated rows, out of `rows` rows, that agree with a query
    /// in at least one band by chance.
    pub fn candidates(&self, rows: f64) -> f64 {
        rows * self.found(BACKGROUND)
    }

    /// Returns the expected size of an index of `rows` rows, in bytes per row.
    pub fn bytes_a_row(&self, rows: f64) -> f64 {
        self.bands as f64 * leaf::expected_size(super::WORDS, rows) / FILL
    }
}

/// Returns the numbers of bands and of positions per band with which a search is guaranteed to find
/// all signatures with at most `mismatches` mismatches. `hashes` is the number of positions of a
/// signature. `None` if the guarantee takes more than [`MAX_BANDS`] bands.
pub fn exact(hashes: usize, mismatches: usize) -> Option<Choice> {
    let bands = Bands::new(hashes, Bands::default_count(hashes, mismatches), 0).ok()?;
    Some(Choice {
        bands: bands.count(),
        band_width: bands.min_band_width(),
        exact: true,
    })
}

/// Returns the cheapest numbers of bands and of positions per band with which a search finds a pair
/// of the given Jaccard similarity with a probability of at least `recall`. `recall` is below 1.
/// The cost of a search is the number of bands plus the expected number of unrelated rows that it
/// compares, in an index of `rows` rows. `hashes` is the number of positions of a signature. `None`
/// if no numbers of bands and positions reach the recall.
pub fn approximate(similarity: f64, recall: f64, hashes: usize, rows: f64) -> Option<Choice> {
    let cost = |choice: &Choice| choice.bands as f64 + choice.candidates(rows);
    (1..=hashes.min(super::MAX_BAND_WIDTH))
        .filter_map(|in_band| {
            let most = (hashes / in_band).min(MAX_BANDS);
            (1..=most)
                .map(|bands| Choice {
                    bands,
                    band_width: in_band,
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
                prop_assert!(Bands::new(hashes, choice.bands, choice.band_width).is_ok());
            } else {
                // Even the most bands, of one position each, do not reach the recall.
                prop_assert!(1.0 - (1.0 - similarity).powi(hashes.min(MAX_BANDS) as i32) < recall);
            }
        }
    }

    /// Published probabilities for 16 bands of 8 positions.
    #[test]
    fn published_probabilities() {
        let choice = Choice {
            bands: 16,
            band_width: 8,
            exact: false,
        };
        assert!((choice.found(0.7) - 0.613).abs() < 5e-4);
        assert!((choice.found(0.8) - 0.947).abs() < 5e-4);
    }

    /// Tests the choice for similarity 0.8 and recall 0.95 with random pairs whose positions are
    /// equal with probability 0.8. At least 95 % of the pairs share a band, except for random
    /// deviations.
    #[test]
    fn recall_is_seen() {
        let choice = approximate(0.8, 0.95, 128, 1e6).unwrap();
        let bands = Bands::new(128, choice.bands, choice.band_width).unwrap();
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
        // 0.95 * 4000 = 3800, minus three standard deviations of the binomial distribution.
        assert!(found > 3759, "{found}");
    }

    #[test]
    fn exact_bands_guarantee() {
        assert_eq!(
            exact(128, 25),
            Some(Choice {
                bands: 30,
                band_width: 4,
                exact: true
            })
        );
        assert_eq!(exact(1024, 512), None);
    }
}
