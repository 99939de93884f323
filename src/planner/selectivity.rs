//! Selectivity estimates: the share of rows within a radius of a value (a ball), and the share of
//! pairs of rows in a join. The parameter `distances` is the range of distances that the estimated
//! condition admits. A query may have other conditions on the same rows.
//!
//! The estimate is the maximum of three sources:
//! - **volume**: the ball's share of all bit patterns. It is tiny for 64-bit fingerprints and small
//!   radii (2.4e-15 at radius 3), but grows fast, to 3 % at radius 24. It is 0 for signatures;
//! - **kin**: the near-duplicates of the value. Most searches for near-duplicates have a value that
//!   is in the table, so the rows of about one distinct value are expected to match;
//! - **density**: the share of near pairs in the statistics' sample, which shows how close the
//!   actual data are: documents of one language or site are closer than random bits.
//!
//! The most common values are added to this estimate, because their shares are known exactly.
use core::slice;

use neardup_blocktree::metric::{Metric, NEAR_DUPLICATE_RADIUS, near_duplicate_bits};

use super::point::Point;
use super::signature_sample::KEPT;
use super::statistics::Column;
use crate::types::signature::Signature;

/// Minimum number of matches that two samples must be able to show, so that an estimate uses them.
/// It is the number of outer sample values that would have a match in the inner sample if every
/// outer value had a match in the inner table. If this number is smaller, [`Inner::evidence`]
/// returns `None`.
const EVIDENCE: f64 = 8.0;

/// Minimum share of the outer rows of a semi-join that have the same value. For a value with fewer
/// rows, the planner does not search an index while planning.
const SEARCHED_SHARE: f64 = 0.01;

/// Range of distances that a condition admits. The unit is bits for fingerprints, and the share of
/// differing positions for signatures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distances {
    /// Smallest admitted distance.
    from: f64,
    /// Largest admitted distance.
    to: f64,
}

impl Distances {
    /// Largest admitted distance.
    pub fn radius(self) -> f64 {
        self.to
    }

    /// Returns whether the condition admits all distances up to its largest, like a ball around a
    /// value.
    pub fn is_ball(self) -> bool {
        self.from <= 0.0
    }

    /// Returns the range of all distances up to `radius`.
    pub fn up_to(radius: f64) -> Self {
        Distances {
            from: 0.0,
            to: radius,
        }
    }

    /// Returns the range that contains only `distance`.
    pub fn exactly(distance: f64) -> Self {
        Distances {
            from: distance,
            to: distance,
        }
    }

    /// Returns whether the range contains `distance`.
    fn hold(self, distance: f64) -> bool {
        (self.from..=self.to).contains(&distance)
    }

    /// Returns whether no two values of this metric can have an admitted distance.
    fn are_none(self, metric: Metric) -> bool {
        self.to < 0.0 || self.from > largest_distance(metric)
    }

    /// Returns whether the condition admits every distance of this metric.
    fn are_all(self, metric: Metric) -> bool {
        self.from <= 0.0 && self.to >= largest_distance(metric)
    }

    /// Returns the expected share of rows that are near-duplicates ("kin") of a value and have an
    /// admitted distance from it. `distinct` is the number of distinct values of the column. A
    /// value is expected to have one distinct value as near-duplicate, with all rows of that
    /// distinct value.
    ///
    /// If the condition admits only the distance `d`, it selects only some of the near-duplicates.
    /// The estimate assumes that the near-duplicates are spread evenly over the distances from 0 to
    /// `d`.
    fn near_duplicate_share(self, distinct: f64) -> f64 {
        1.0 / (distinct * (self.from.max(0.0) + 1.0))
    }
}

/// Returns at most `limit` elements of `sample`, evenly spaced.
fn thin<T: Clone>(limit: usize, sample: &[T]) -> Vec<T> {
    let step = sample.len().div_ceil(limit).max(1);
    sample.iter().step_by(step).cloned().collect()
}

/// Returns the radius of the operator `~=`, within which values are near-duplicates by convention.
/// Estimates also use it for a radius that is an unknown parameter. The unit is bits, or the share
/// of positions for signatures.
pub fn usual_radius(metric: Metric) -> f64 {
    match metric {
        Metric::Hamming { bits } => near_duplicate_bits(bits).into(),
        Metric::Jaccard(()) => NEAR_DUPLICATE_RADIUS,
        Metric::Overlap => no_distances(),
    }
}

/// Returns the largest possible distance of two values of this metric.
fn largest_distance(metric: Metric) -> f64 {
    match metric {
        Metric::Hamming { bits } => bits.into(),
        Metric::Jaccard(()) => 1.0,
        Metric::Overlap => no_distances(),
    }
}

/// Maximum number of values of a sample that an estimate uses. All pairs of two samples are
/// compared: 200 by 200 distances of fingerprints take about 40 microseconds.
fn sample_size(metric: Metric) -> usize {
    match metric {
        Metric::Hamming { .. } => 200,
        Metric::Jaccard(()) => 50,
        Metric::Overlap => no_distances(),
    }
}

/// Maximum number of values of one list (the most common values, or a sample) with which a single
/// value is compared. It is higher than [`sample_size`], because a match that is missed would
/// change the estimate much. All comparisons together take about 400 microseconds. Statistics have
/// more values only if the statistics target was raised.
fn max_compared(metric: Metric) -> usize {
    10 * sample_size(metric)
}

/// Panics, because this file has no estimates for types without distances (arrays).
fn no_distances() -> ! {
    unreachable!("the catalogue has no array type")
}

/// Returns the share of all bit patterns that have an admitted distance from a fingerprint: the sum
/// of C(bits, i) / 2^bits over the admitted distances i. 0 for signatures.
fn volume(metric: Metric, distances: Distances) -> f64 {
    let Metric::Hamming { bits } = metric else {
        return 0.0;
    };
    let mut term = (-f64::from(bits)).exp2();
    let mut sum = 0.0;
    for i in 0..=bits {
        if distances.hold(i.into()) {
            sum += term;
        }
        term *= f64::from(bits - i) / f64::from(i + 1);
    }
    sum.min(1.0)
}

/// Returns the share of pairs, one value from each sample, that have an admitted distance.
/// Subtracts one from the number of such pairs, because a single pair may be chance. Does not count
/// pairs of equal values, because in samples of one column they may be the same row.
fn density(metric: Metric, a: &[Point], b: &[Point], distances: Distances) -> f64 {
    let (a, b) = (thin(sample_size(metric), a), thin(sample_size(metric), b));
    let hits = a
        .iter()
        .flat_map(|a| b.iter().map(move |b| distance(a, b)))
        .filter(|distance| *distance > 0.0 && distances.hold(*distance))
        .count();
    if hits < 2 {
        0.0
    } else {
        (hits - 1) as f64 / (a.len() * b.len()) as f64
    }
}

/// Estimates the share of pairs of values that have an admitted distance. `a` and `b` are samples
/// of the values of two columns, without their most common values. One of them may instead be the
/// single value that a query searches for. The estimate is the largest of [`volume`], [`density`]
/// and `kin`, which is the result of [`Distances::near_duplicate_share`].
fn share_of_others(
    metric: Metric,
    a: &[Point],
    b: &[Point],
    distances: Distances,
    kin: f64,
) -> f64 {
    (volume(metric, distances).max(kin)).max(density(metric, a, b, distances))
}

/// Returns the distance of two values; infinite for signatures made with different schemes or
/// seeds.
#[inline(always)]
fn distance(a: &Point, b: &Point) -> f64 {
    let distance = match (a, b) {
        (Point::Signature(a), Point::Signature(b)) => share_of_mismatches(&a.get(), &b.get()),
        _ => a.bits(b).map(f64::from),
    };
    distance.unwrap_or(f64::INFINITY)
}

/// Returns whether the distance of two values is one of `distances`.
fn near(a: &Point, b: &Point, distances: Distances) -> bool {
    distances.hold(distance(a, b))
}

/// Returns the share of positions in which two signatures differ; `None` if they were made with
/// different schemes or seeds. If one of them is a long signature that statistics have shortened to
/// [`KEPT`] positions, compares only these positions.
fn share_of_mismatches(a: &Signature, b: &Signature) -> Option<f64> {
    let length = a.values.len().min(b.values.len());
    let first = |of: &Signature<'_>| of.values.len() > length && length == KEPT;
    let a = if first(a) { a.first(length) } else { *a };
    let b = if first(b) { b.first(length) } else { *b };
    a.mismatches(&b)
        .map(|mismatches| mismatches as f64 / length as f64)
}

/// Estimates the share of a column's rows that have an admitted distance from `center`. If `center`
/// is `None`, the value is unknown, and is assumed to be the value of a random row.
pub fn restriction(
    metric: Metric,
    column: &Column,
    center: Option<Point>,
    distances: Distances,
) -> f64 {
    if distances.are_none(metric) {
        return 0.0;
    }
    if distances.are_all(metric) {
        return 1.0 - column.null_fraction;
    }
    match center {
        Some(center) => {
            let common: f64 = column
                .common
                .iter()
                .filter(|(value, _)| near(value, &center, distances))
                .map(|(_, share)| share)
                .sum();
            // For distance 0, the rows with this most common value are all matching rows.
            if distances == Distances::up_to(0.0) && common > 0.0 {
                return common;
            }
            let kin = distances.near_duplicate_share(column.other_distinct());
            common
                + column.other_fraction()
                    * share_of_others(metric, &column.sample, &[center], distances, kin)
        }
        None => join(metric, column, column, distances),
    }
}

/// Estimates which share of all pairs of a row of `a` and a row of `b` has an admitted distance.
pub fn join(metric: Metric, a: &Column, b: &Column, distances: Distances) -> f64 {
    if distances.are_none(metric) {
        return 0.0;
    }
    if distances.are_all(metric) {
        return (1.0 - a.null_fraction) * (1.0 - b.null_fraction);
    }
    let kin = distances.near_duplicate_share(a.other_distinct().max(b.other_distinct()));
    let others = share_of_others(metric, &a.sample, &b.sample, distances, kin);
    common_pairs(metric, a, b, distances)
        + common_with_others(metric, a, b, distances)
        + common_with_others(metric, b, a, distances)
        + a.other_fraction() * b.other_fraction() * others
}

/// Estimates which share of all pairs of rows meets two conditions: both rows have a most common
/// value, and the distance of these two values is admitted.
fn common_pairs(metric: Metric, a: &Column, b: &Column, distances: Distances) -> f64 {
    over_common(metric, a, |value, _| {
        let common = b.common.iter().take(max_compared(metric));
        let near = common.filter(|(other, _)| near(value, other, distances));
        near.map(|(_, share)| share).sum()
    })
}

/// Estimates which share of all pairs of rows meets three conditions: the row of `common` has a
/// most common value, the row of `others` has a value that is not a most common value, and the
/// distance of the two values is admitted.
fn common_with_others(
    metric: Metric,
    common: &Column,
    others: &Column,
    distances: Distances,
) -> f64 {
    let volume = volume(metric, distances);
    let share = over_common(metric, common, |value, _| {
        volume.max(kin_of_common(metric, value, others, distances))
    });
    share * others.other_fraction()
}

/// Returns the expected share of near-duplicates ("kin") of `value` among the rows of `column`
/// whose value is not a most common value. Returns 0 if a most common value of `column` has an
/// admitted distance from `value`, because then the rows with that most common value are the kin.
fn kin_of_common(metric: Metric, value: &Point, column: &Column, distances: Distances) -> f64 {
    let mut common = column.common.iter().take(max_compared(metric));
    if common.any(|(other, _)| near(value, other, distances)) {
        0.0
    } else {
        distances.near_duplicate_share(column.other_distinct())
    }
}

/// Returns the sum of `share * each(value, share)` over the most common values of the column.
/// `share` is the share of the rows that have the value. If there are more values than
/// [`sample_size`], evaluates only some of them, and scales the sum up.
fn over_common(metric: Metric, column: &Column, each: impl Fn(&Point, f64) -> f64) -> f64 {
    let all: f64 = column.common.iter().map(|(_, share)| share).sum();
    let (mut sum, mut seen) = (0.0, 0.0);
    for (value, share) in thin(sample_size(metric), &column.common) {
        sum += share * each(&value, share);
        seen += share;
    }
    if seen > 0.0 { sum * all / seen } else { 0.0 }
}

/// Estimates the share of the outer column's rows that have at least one matching inner row, for
/// semi-joins and anti-joins. Two rows match if their values have an admitted distance, one of
/// `distances`. All outer rows with the same most common value are treated alike: they all have a
/// match, or none has one.
///
/// `finds` searches an index for an inner row that matches a value, and returns whether there is
/// one. It returns `None` if no search is possible.
pub fn matched(
    metric: Metric,
    outer: &Column,
    inner: &Column,
    distances: Distances,
    finds: impl Fn(&Point) -> Option<bool>,
) -> f64 {
    if distances.are_none(metric) {
        return 0.0;
    }
    let inner = Inner::new(metric, inner, distances);
    if distances.are_all(metric) {
        let any = inner.rows * (1.0 - inner.column.null_fraction) >= 1.0;
        return if any { 1.0 - outer.null_fraction } else { 0.0 };
    }
    let common = over_common(metric, outer, |value, share| {
        let without_common = inner.without_common(value);
        if without_common == 1.0
            && share >= SEARCHED_SHARE
            && let Some(found) = finds(value)
        {
            return if found { inner.chance_of_any() } else { 0.0 };
        }
        let kin = kin_of_common(metric, value, inner.column, distances);
        let others = share_of_others(
            metric,
            slice::from_ref(value),
            &inner.column.sample,
            distances,
            kin,
        );
        1.0 - without_common * (-inner.other_rows() * others).exp()
    });
    common + outer.other_fraction() * inner.matches_others(outer)
}

/// Inner column of a semi-join or anti-join. The "other conditions" are the conditions of the query
/// on the inner table alone. An inner row that does not fulfil them is no match, even if its
/// distance is admitted.
struct Inner<'a> {
    metric: Metric,
    column: &'a Column,
    distances: Distances,
    /// Estimated number of inner rows that fulfil the query's other conditions.
    rows: f64,
    /// Share of all inner rows that fulfil the other conditions.
    kept: f64,
}

impl<'a> Inner<'a> {
    fn new(metric: Metric, column: &'a Column, distances: Distances) -> Self {
        let rows = column.rows.unwrap_or(column.distinct);
        let tuples = column.tuples.max(rows).max(1.0);
        Inner {
            metric,
            column,
            distances,
            rows,
            kept: rows / tuples,
        }
    }

    /// Returns the estimated number of inner rows that fulfil the query's other conditions and do
    /// not have a most common value.
    fn other_rows(&self) -> f64 {
        self.rows * self.column.other_fraction()
    }

    /// Returns the probability that none of `rows` inner rows fulfils the query's other conditions
    /// on the inner table. If `rows` is below 1, it counts as 1.
    fn chance_of_none(&self, rows: f64) -> f64 {
        (1.0 - self.kept).powf(rows.max(1.0))
    }

    /// Returns the probability that a value has at least one inner row that fulfils the query's
    /// other conditions. The value occurs in the inner column, and is not one of its most common
    /// values.
    fn chance_of_any(&self) -> f64 {
        let rows_each = self.other_rows() / self.kept / self.column.other_distinct();
        1.0 - self.chance_of_none(rows_each)
    }

    /// Returns the probability that `value` has no match among the inner rows with a most common
    /// value. A match has an admitted distance and fulfils the query's other conditions.
    fn without_common(&self, value: &Point) -> f64 {
        let tuples = self.rows / self.kept;
        let common = self.column.common.iter().take(max_compared(self.metric));
        common
            .filter(|(other, _)| near(value, other, self.distances))
            .map(|(_, share)| self.chance_of_none(share * tuples))
            .product()
    }

    /// Returns the probability that a row of `outer` whose value is not a most common value matches
    /// some inner row.
    fn matches_others(&self, outer: &Column) -> f64 {
        let sample = thin(sample_size(self.metric), &outer.sample);
        let without_common = match sample.len() {
            0 => 1.0,
            count => {
                let chances = sample.iter().map(|value| self.without_common(value));
                chances.sum::<f64>() / count as f64
            }
        };
        let without_others = 1.0
            - self.evidence(&sample).unwrap_or_else(|| {
                let column = self.column;
                let distinct = outer.other_distinct().max(column.other_distinct());
                let kin = self.distances.near_duplicate_share(distinct);
                let (a, b) = (&outer.sample, &column.sample);
                let share = share_of_others(self.metric, a, b, self.distances, kin);
                -(-self.other_rows() * share).exp_m1()
            });
        1.0 - without_common * without_others
    }

    /// Returns the probability that a value of the sample `outer` has a match among the inner rows
    /// without a most common value. A match has an admitted distance and fulfils the query's other
    /// conditions.
    ///
    /// Counts the values of `outer` that are near a value of the inner sample, and scales the count
    /// up from the sample to all inner values. Returns `None` if the samples are too small
    /// ([`EVIDENCE`]).
    fn evidence(&self, outer: &[Point]) -> Option<f64> {
        let inner = thin(max_compared(self.metric), &self.column.sample);
        let covered = (inner.len() as f64 / self.column.other_distinct()).min(1.0);
        let expected = outer.len() as f64 * covered;
        if expected < EVIDENCE {
            return None;
        }
        let has_match =
            |value: &&Point| (inner.iter()).any(|other| near(value, other, self.distances));
        let seen = outer.iter().filter(has_match).count();
        Some((seen as f64 / expected).min(1.0) * self.chance_of_any())
    }
}
