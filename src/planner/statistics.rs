//! Statistics of a column of fingerprints or signatures (pg_statistic).
use pgrx::pg_sys::{self, Oid};

use super::catalog::SearchedType;
use super::point::Point;
use super::signature_sample::{COMMON_KIND, SAMPLE_KIND};
use neardup_pg::column_statistics::Statistics;

/// Statistics of one column or expression, as the estimates need them.
pub struct Column {
    /// Share of NULLs.
    pub null_fraction: f64,
    /// Number of different values, at least 1. Without statistics, the number of rows:
    /// fingerprints of different documents differ.
    pub distinct: f64,
    /// Most common values with their shares of all rows.
    pub common: Vec<(Point, f64)>,
    /// Values drawn evenly from the others: the bounds of the histogram.
    pub sample: Vec<Point>,
    /// Rows expected from the relation; `None` if it is unknown.
    pub rows: Option<f64>,
    /// Rows in the relation, before conditions; 0 if it is unknown.
    pub tuples: f64,
}

impl Column {
    /// Reads statistics. `function` will be applied to the values: the server decides whether the
    /// user may see them through it.
    pub fn read(searched: &SearchedType, statistics: &Statistics, function: Oid) -> Self {
        let tuples = statistics.rows.map(|(_, tuples)| tuples);
        let guess = tuples.filter(|_| statistics.is_guess);
        let mut column = Column {
            null_fraction: statistics.null_fraction.unwrap_or(0.0),
            distinct: guess.unwrap_or(statistics.distinct).max(1.0),
            common: Vec::new(),
            sample: Vec::new(),
            rows: statistics.rows.map(|(rows, _)| rows),
            tuples: tuples.unwrap_or(0.0),
        };
        if statistics.null_fraction.is_none() || !statistics.allow(function) {
            return column;
        }
        // The server's own values, or the shortened ones of long signatures.
        let first = |kinds: [u32; 2], has_shares| {
            (kinds.into_iter()).find_map(|kind| statistics.values(kind, has_shares))
        };
        if let Some((values, shares)) = first([pg_sys::STATISTIC_KIND_MCV, COMMON_KIND], true) {
            column.common = (values.into_iter().zip(shares))
                .filter_map(|(value, share)| Some((searched.point(value)?, share)))
                .collect();
        }
        let kinds = [pg_sys::STATISTIC_KIND_HISTOGRAM, SAMPLE_KIND];
        if let Some((values, _)) = first(kinds, false) {
            let values = values.into_iter();
            column.sample = values.filter_map(|value| searched.point(value)).collect();
        }
        column
    }

    /// Returns the share of rows that are neither NULL nor one of the most common values.
    pub fn other_fraction(&self) -> f64 {
        (1.0 - self.null_fraction - self.common.iter().map(|(_, share)| share).sum::<f64>())
            .max(0.0)
    }

    /// Returns the number of different values without the most common ones, at least 1.
    pub fn other_distinct(&self) -> f64 {
        (self.distinct - self.common.len() as f64).max(1.0)
    }
}
