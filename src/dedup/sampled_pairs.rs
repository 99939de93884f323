//! Errors of numbers of pairs that are estimated from a sample of rows.
//!
//! Pairs are clustered: a few rows of a table have most of its pairs. The error therefore depends
//! on how much the sampled rows differ. The sample is divided into parts, and the variance of the
//! parts gives the variance of their sum.

/// Number of parts of a sample.
const PARTS: usize = 32;
/// Quantile of Student's distribution with `PARTS - 1` degrees of freedom, for 95 %.
const QUANTILE: f64 = 2.04;
/// Upper 95 % limit of an expected count if the observed count is 0 ("rule of three").
const NONE_SEEN: f64 = 3.0;

/// Pairs of the sampled rows, by distance and part.
pub struct SampledPairs {
    /// Number of sampled rows, and of all rows.
    sampled: f64,
    rows: f64,
    counts: Vec<[u64; PARTS]>,
}

impl SampledPairs {
    /// Creates empty counts for a sample from `rows` rows and for a number of distances.
    pub fn new(sampled_rows: usize, rows: f64, distances: usize) -> Self {
        SampledPairs {
            sampled: sampled_rows as f64,
            rows: rows.max(sampled_rows as f64),
            counts: vec![[0; PARTS]; distances],
        }
    }

    /// Counts a pair of a sampled row. The sample must be in random order.
    #[inline]
    pub fn add(&mut self, row: usize, distance: u32) {
        self.counts[distance as usize][row % PARTS] += 1;
    }

    /// Returns the number of pairs that one counted pair represents. Each pair has two rows.
    pub fn weight(&self) -> f64 {
        self.rows / self.sampled / 2.0
    }

    /// Returns half of the 95 % confidence interval of the number of pairs at a distance.
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
