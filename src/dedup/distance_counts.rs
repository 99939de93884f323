//! Number of pairs at each distance for the distance histogram, with a random sample of pairs for
//! each distance. The distance of fingerprints is in bits. For signatures, a distance is the number
//! of a histogram line: line 0 is similarity 1, and each further line is a lower step of
//! similarity.
use neardup_blocktree::key::Tid;

use super::bottom_k_sample::{BottomKSample, mix};
use super::sampled_pairs::SampledPairs;

/// Length of the histogram's longest bar in characters.
const LONGEST_BAR: f64 = 40.0;

/// Number of pairs at each distance, with example pairs.
pub struct Counts {
    /// Number of pairs and example pairs for each distance, from 0.
    by_distance: Vec<(u64, BottomKSample<(Tid, Tid)>)>,
    /// Counts for the error estimate if only a sample of rows is compared. `None` if all pairs are
    /// counted.
    sample: Option<SampledPairs>,
}

impl Counts {
    /// Creates empty counts for distances from 0 to `most`. `examples` is the maximum number of
    /// example pairs for each distance.
    pub fn new(most: u32, examples: usize) -> Self {
        let none = |_| (0, BottomKSample::new(examples));
        Counts {
            by_distance: (0..=most).map(none).collect(),
            sample: None,
        }
    }

    /// Starts a count of the pairs of a sample: `sampled_rows` rows out of about `rows` rows. The
    /// caller then adds pairs by [`Counts::add_sampled`]. A pair of two sampled rows must be added
    /// twice, once for each of its rows.
    pub fn begin_sample(&mut self, sampled_rows: usize, rows: f64) {
        self.sample = Some(SampledPairs::new(
            sampled_rows,
            rows,
            self.by_distance.len(),
        ));
    }

    /// Counts a pair that consists of a sampled row and another row. `row` is the sampled row's
    /// number in the sample, and `pair` has the addresses of both rows.
    pub fn add_sampled(&mut self, row: usize, pair: [Tid; 2], distance: u32) {
        if let Some(sample) = &mut self.sample {
            sample.add(row, distance);
        }
        self.add(pair[0], pair[1], distance);
    }

    /// Returns the maximum distance that is counted.
    pub fn most(&self) -> u32 {
        self.by_distance.len() as u32 - 1
    }

    /// Counts a pair of rows with the addresses `a` and `b`, and perhaps chooses it as an example.
    /// `distance` must not exceed [`Counts::most`].
    #[inline]
    pub fn add(&mut self, a: Tid, b: Tid, distance: u32) {
        let (count, shown) = &mut self.by_distance[distance as usize];
        *count += 1;
        let (a, b) = (a.min(b), a.max(b));
        let mixed = mix(mix(a.packed()).wrapping_add(b.packed()));
        if shown.wants(mixed) && !shown.contains(&(a, b)) {
            shown.offer(mixed, (a, b));
        }
    }

    /// Returns the lines of the histogram, one for each distance from 0.
    pub fn lines(self) -> Vec<Line> {
        let weight = self.sample.as_ref().map_or(1.0, SampledPairs::weight);
        let pairs = |count: u64| (count as f64 * weight).round();
        let margin = |distance| {
            let sample = self.sample.as_ref();
            sample.map_or(0, |sample| sample.margin(distance).ceil() as i64)
        };
        let most = self
            .by_distance
            .iter()
            .map(|(count, _)| pairs(*count))
            .fold(1.0, f64::max);
        (0..)
            .zip(self.by_distance)
            .map(|(distance, (count, shown))| {
                // Logarithmic, because counts grow exponentially with the distance.
                let share = (1.0 + pairs(count)).ln() / (1.0 + most).ln();
                Line {
                    distance,
                    pairs: pairs(count) as i64,
                    margin: margin(distance),
                    bar: "#".repeat((LONGEST_BAR * share).round() as usize),
                    shown: shown.into_vec(),
                }
            })
            .collect()
    }
}

/// Line of the histogram: a row of the result of `neardup_distance_histogram`.
pub struct Line {
    /// Distance in bits or, for signatures, the number of this line.
    pub distance: u32,
    /// Number of pairs at this distance. An estimate if only a sample of rows was compared.
    pub pairs: i64,
    /// Half the width of the 95 % confidence interval of `pairs`. 0 if all pairs were counted.
    pub margin: i64,
    /// Bar whose length shows the count on a logarithmic scale.
    pub bar: String,
    /// Addresses of the two rows of each example pair.
    pub shown: Vec<(Tid, Tid)>,
}
