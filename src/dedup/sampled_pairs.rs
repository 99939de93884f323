//! Error estimate for a number of pairs that is estimated from a sample of rows. Each sampled row
//! is compared with all rows of the table, and its near pairs are counted.
//!
//! A few rows of a table have most of its pairs. The error therefore depends on how much the
//! sampled rows differ in their numbers of pairs. The sample is divided into parts, and the
//! variance of the parts' counts gives the variance of their sum.

/// Number of parts into which the sampled rows are divided. The error is estimated from the
/// differences between the parts.
const PARTS: usize = 32;
/// Quantile of Student's distribution with `PARTS - 1` degrees of freedom, for a two-sided interval
/// of 95 %.
const QUANTILE: f64 = 2.04;
/// Upper 95 % limit of the expected count of pairs if the observed count is 0 ("rule of three").
const NONE_SEEN: f64 = 3.0;

/// Counts of the pairs that contain a sampled row, by distance and by part of the sample.
pub struct SampledPairs {
    /// Number of sampled rows.
    sampled: f64,
    /// Number of all rows.
    rows: f64,
    /// Counts of pairs. There is one element for each distance, from 0. The element has one count
    /// for each part of the sample. A pair is counted in the part of its sampled row. If both rows
    /// of the pair are sampled, it is counted for each of them.
    counts: Vec<[u64; PARTS]>,
}

impl SampledPairs {
    /// Creates empty counts for a sample of `sampled_rows` out of `rows` rows, and for the
    /// distances from 0 to `distances - 1`.
    pub fn new(sampled_rows: usize, rows: f64, distances: usize) -> Self {
        SampledPairs {
            sampled: sampled_rows as f64,
            rows: rows.max(sampled_rows as f64),
            counts: vec![[0; PARTS]; distances],
        }
    }

    /// Counts a pair at a distance. `row` is the number of the pair's sampled row, which determines
    /// the part of the sample. The sample must be numbered in random order.
    #[inline]
    pub fn add(&mut self, row: usize, distance: u32) {
        self.counts[distance as usize][row % PARTS] += 1;
    }

    /// Returns how many pairs of the table each counted pair represents: the number of rows,
    /// divided by twice the size of the sample. The divisor is doubled because a sample of all rows
    /// would count each pair twice, once for each of its rows.
    pub fn weight(&self) -> f64 {
        self.rows / self.sampled / 2.0
    }

    /// Returns half the width of the 95 % confidence interval of the estimated number of pairs at a
    /// distance.
    pub fn margin(&self, distance: u32) -> f64 {
        // A sample of all rows has no error.
        let unseen = 1.0 - self.sampled / self.rows;
        let counts = &self.counts[distance as usize];
        let sum: u64 = counts.iter().sum();
        if sum == 0 {
            return NONE_SEEN * self.weight() * unseen;
        }
        let (parts, mean) = (PARTS as f64, sum as f64 / PARTS as f64);
        let squares: f64 = counts.iter().map(|&n| (n as f64 - mean).powi(2)).sum();
        let variance = squares / (parts - 1.0);
        QUANTILE * (parts * variance * unseen).sqrt() * self.weight()
    }
}
