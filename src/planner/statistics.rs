//! Reads the statistics (pg_statistic) of a column of fingerprints or signatures.
use pgrx::pg_sys::{self, Oid};

use super::catalog::SearchedType;
use super::point::Point;
use super::signature_sample::{COMMON_KIND, SAMPLE_KIND};
use neardup_pg::column_statistics::Statistics;

/// Statistics of one column or expression, in the form that `selectivity` needs.
pub struct Column {
    /// Share of the rows that are NULL.
    pub null_fraction: f64,
    /// Number of distinct values, at least 1. Without statistics, it is the number of rows, because
    /// different documents usually have different fingerprints.
    pub distinct: f64,
    /// Most common values, each with its share of all rows.
    pub common: Vec<(Point, f64)>,
    /// Evenly spaced sample of the values that are not most common values: the bounds of the
    /// histogram.
    pub sample: Vec<Point>,
    /// Estimated number of rows that are left after the conditions on the relation; `None` if it is
    /// unknown.
    pub rows: Option<f64>,
    /// Number of rows of the relation without any condition; 0 if it is unknown.
    pub tuples: f64,
}

impl Column {
    /// Reads the statistics of a column whose type is `searched`. `function` is the OID of the
    /// function behind the condition. If the server decides that the user may not see the values
    /// through this function, `common` and `sample` stay empty.
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
        // Take the server's own statistics, or those that ANALYZE stores for shortened long
        // signatures.
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

    /// Share of the rows whose value is neither NULL nor one of the most common values.
    pub fn other_fraction(&self) -> f64 {
        (1.0 - self.null_fraction - self.common.iter().map(|(_, share)| share).sum::<f64>())
            .max(0.0)
    }

    /// Number of distinct values other than the most common values, at least 1.
    pub fn other_distinct(&self) -> f64 {
        (self.distinct - self.common.len() as f64).max(1.0)
    }
}
