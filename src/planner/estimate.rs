//! The shares of rows that lie near each other.
//!
//! Three sources, of which the largest share counts:
//! - **the volume of the ball**, the share of all bit patterns that it holds. For unrelated
//!   64-bit fingerprints and small radii that is next to nothing (2.4e-15 at radius 3), but
//!   it grows fast, to 3 % at radius 24;
//! - **the fingerprint's own kin**: whoever asks for near-duplicates mostly asks about something
//!   that is in the table, so about one distinct value, with all rows that share it, is expected;
//! - **the statistics' sample**, which shows how dense the data at hand really is: documents of
//!   one language or site lie closer to each other than random bits.
//!
//! To these come the most common values, whose shares are known exactly.
use pgrx::pg_sys::Datum;

use super::catalog::Kind;
use super::statistics::Column;

/// The number of values of a sample that are compared at most with those of another: pairs grow
/// with the square, and 200 by 200 distances take some 40 microseconds.
const SAMPLE: usize = 200;

/// The number of values that each of [`SAMPLE`] is compared with at most, where it matters that one
/// is found: some 400 microseconds. There are as many only where the statistics target was raised.
const COMPARED: usize = 2000;

/// Fewest matches that a sample must be expected to show, if every value had one, before those that
/// it does show are evidence.
const EVIDENCE: f64 = 8.0;

/// The distances that a condition admits, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distances {
    from: i32,
    to: i32,
}

impl Distances {
    /// At most `radius`.
    pub fn up_to(radius: i32) -> Self {
        Distances {
            from: 0,
            to: radius,
        }
    }

    /// `distance` and no other.
    pub fn exactly(distance: i32) -> Self {
        Distances {
            from: distance,
            to: distance,
        }
    }

    fn hold(self, distance: u32) -> bool {
        (self.from..=self.to).contains(&(distance as i32))
    }

    /// Whether no distance of two values of `bits` bits is among them.
    fn are_none(self, bits: u32) -> bool {
        self.to < 0 || self.from > bits as i32
    }

    /// Whether every distance of two values of `bits` bits is among them.
    fn are_all(self, bits: u32) -> bool {
        self.from <= 0 && self.to >= bits as i32
    }

    /// The share of all patterns of `bits` bits that lie at such a distance from one of them:
    /// the sum of C(bits, i) / 2^bits over the distances i.
    fn volume(self, bits: u32) -> f64 {
        let mut term = (-f64::from(bits)).exp2();
        let mut sum = 0.0;
        for i in 0..=self.to.min(bits as i32) {
            if i >= self.from {
                sum += term;
            }
            term *= f64::from(bits as i32 - i) / f64::from(i + 1);
        }
        sum.min(1.0)
    }

    /// The part of a value's kin to be expected at these distances. It is as likely at one
    /// distance of a ball as at another.
    fn kin(self, distinct: f64) -> f64 {
        1.0 / (distinct * f64::from(self.from.max(0) + 1))
    }
}

/// Some of the elements, evenly spread: at most [`SAMPLE`].
fn thin<T: Copy>(sample: &[T]) -> Vec<T> {
    thin_to(SAMPLE, sample)
}

/// Some of the elements, evenly spread: at most so many.
fn thin_to<T: Copy>(limit: usize, sample: &[T]) -> Vec<T> {
    let step = sample.len().div_ceil(limit).max(1);
    sample.iter().step_by(step).copied().collect()
}

impl Kind {
    fn distance(&self, a: Datum, b: Datum) -> u32 {
        // SAFETY: both are values from the statistics of columns of this fingerprint type, or
        // constants of it.
        unsafe { (self.traits.distance)(a, b) }
    }

    fn near(&self, a: Datum, b: Datum, distances: Distances) -> bool {
        distances.hold(self.distance(a, b))
    }

    /// The share of pairs of different values of two samples that lie that far apart. One
    /// lucky pair is no evidence, and equal values in samples of one column are one row twice.
    fn density(&self, a: &[Datum], b: &[Datum], distances: Distances) -> f64 {
        let (a, b) = (thin(a), thin(b));
        let hits = a
            .iter()
            .flat_map(|a| b.iter().map(move |b| self.distance(*a, *b)))
            .filter(|distance| *distance > 0 && distances.hold(*distance))
            .count();
        if hits < 2 {
            0.0
        } else {
            (hits - 1) as f64 / (a.len() * b.len()) as f64
        }
    }

    /// The share that pairs of two columns' other values have among all pairs of them.
    fn others(&self, a: &[Datum], b: &[Datum], distances: Distances, kin: f64) -> f64 {
        let volume = distances.volume(self.traits.bits);
        volume.max(kin).max(self.density(a, b, distances))
    }
}

/// The share of a column's rows as far from `center`, or from a value not known yet.
pub fn restriction(
    kind: &Kind,
    column: &Column,
    center: Option<Datum>,
    distances: Distances,
) -> f64 {
    if distances.are_none(kind.traits.bits) {
        return 0.0;
    }
    if distances.are_all(kind.traits.bits) {
        return 1.0 - column.null_fraction;
    }
    match center {
        Some(center) => {
            let common: f64 = column
                .common
                .iter()
                .filter(|(value, _)| kind.near(*value, center, distances))
                .map(|(_, share)| share)
                .sum();
            let kin = distances.kin(column.other_distinct());
            common
                + column.other_fraction() * kind.others(&column.sample, &[center], distances, kin)
        }
        None => {
            let kin = distances.kin(column.distinct);
            (1.0 - column.null_fraction)
                * kind.others(&column.sample, &column.sample, distances, kin)
        }
    }
}

/// The share of all pairs of two columns' rows that lie that far apart.
pub fn join(kind: &Kind, a: &Column, b: &Column, distances: Distances) -> f64 {
    if distances.are_none(kind.traits.bits) {
        return 0.0;
    }
    if distances.are_all(kind.traits.bits) {
        return (1.0 - a.null_fraction) * (1.0 - b.null_fraction);
    }
    let kin = distances.kin(a.other_distinct().max(b.other_distinct()));
    let others = kind.others(&a.sample, &b.sample, distances, kin);
    common_pairs(kind, a, b, distances)
        + common_with_others(kind, a, b, distances)
        + common_with_others(kind, b, a, distances)
        + a.other_fraction() * b.other_fraction() * others
}

/// The share of pairs of rows with one of the most common values on both sides.
fn common_pairs(kind: &Kind, a: &Column, b: &Column, distances: Distances) -> f64 {
    over_common(a, |value| {
        let common = b.common.iter().take(COMPARED);
        let near = common.filter(|(other, _)| kind.near(value, *other, distances));
        near.map(|(_, share)| share).sum()
    })
}

/// The share of pairs of rows with one of the most common values on one side, and one that is none
/// of them on the other.
fn common_with_others(kind: &Kind, common: &Column, others: &Column, distances: Distances) -> f64 {
    let volume = distances.volume(kind.traits.bits);
    let share = over_common(common, |value| {
        volume.max(kin_of_common(kind, value, others, distances))
    });
    share * others.other_fraction()
}

/// The share of a column's other rows that are kin of a value: none if its kin is among the most
/// common values.
fn kin_of_common(kind: &Kind, value: Datum, column: &Column, distances: Distances) -> f64 {
    let mut common = column.common.iter().take(COMPARED);
    if common.any(|(other, _)| kind.near(value, *other, distances)) {
        0.0
    } else {
        distances.kin(column.other_distinct())
    }
}

/// The sum over the most common values of a column of their shares, each times what `each` says.
/// Of many, some stand for the others.
fn over_common(column: &Column, each: impl Fn(Datum) -> f64) -> f64 {
    let all: f64 = column.common.iter().map(|(_, share)| share).sum();
    let (mut sum, mut seen) = (0.0, 0.0);
    for (value, share) in thin(&column.common) {
        sum += share * each(value);
        seen += share;
    }
    if seen > 0.0 { sum * all / seen } else { 0.0 }
}

/// The share of an outer column's rows for which some row of the inner column lies that far from
/// it. Of a common value all rows have a match or none has.
pub fn matched(kind: &Kind, outer: &Column, inner: &Column, distances: Distances) -> f64 {
    if distances.are_none(kind.traits.bits) {
        return 0.0;
    }
    let inner = Inner::new(kind, inner, distances);
    if distances.are_all(kind.traits.bits) {
        let any = inner.rows * (1.0 - inner.column.null_fraction) >= 1.0;
        return if any { 1.0 - outer.null_fraction } else { 0.0 };
    }
    let common = over_common(outer, |value| {
        let kin = kin_of_common(kind, value, inner.column, distances);
        let others = kind.others(&[value], &inner.column.sample, distances, kin);
        1.0 - inner.without_common(value) * (-inner.other_rows() * others).exp()
    });
    common + outer.other_fraction() * inner.matches_others(outer)
}

/// The inner column of a semi-join or anti-join.
struct Inner<'a> {
    kind: &'a Kind,
    column: &'a Column,
    distances: Distances,
    /// Rows, after conditions on their table.
    rows: f64,
    /// The share of rows that those conditions leave.
    kept: f64,
}

impl<'a> Inner<'a> {
    fn new(kind: &'a Kind, column: &'a Column, distances: Distances) -> Self {
        let rows = column.rows.unwrap_or(column.distinct);
        let tuples = column.tuples.max(rows).max(1.0);
        Inner {
            kind,
            column,
            distances,
            rows,
            kept: rows / tuples,
        }
    }

    fn other_rows(&self) -> f64 {
        self.rows * self.column.other_fraction()
    }

    /// The chance that of rows, counted before the conditions, none is left.
    fn chance_of_none(&self, rows: f64) -> f64 {
        (1.0 - self.kept).powf(rows.max(1.0))
    }

    /// The chance that no row with one of the most common values lies as far from this one.
    fn without_common(&self, value: Datum) -> f64 {
        let tuples = self.rows / self.kept;
        let common = self.column.common.iter().take(COMPARED);
        common
            .filter(|(other, _)| self.kind.near(value, *other, self.distances))
            .map(|(_, share)| self.chance_of_none(share * tuples))
            .product()
    }

    /// The chance that a value of `outer` which is none of its most common ones has a match.
    fn matches_others(&self, outer: &Column) -> f64 {
        let sample = thin(&outer.sample);
        let without_common = match sample.len() {
            0 => 1.0,
            count => {
                let chances = sample.iter().map(|value| self.without_common(*value));
                chances.sum::<f64>() / count as f64
            }
        };
        let without_others = 1.0
            - self.evidence(&sample).unwrap_or_else(|| {
                let column = self.column;
                let distinct = outer.other_distinct().max(column.other_distinct());
                let kin = self.distances.kin(distinct);
                let (a, b) = (&outer.sample, &column.sample);
                let share = self.kind.others(a, b, self.distances, kin);
                -(-self.other_rows() * share).exp_m1()
            });
        1.0 - without_common * without_others
    }

    /// The chance that one of some values has a match among those that are not the most common
    /// ones, as far as samples that cover enough of them tell.
    fn evidence(&self, outer: &[Datum]) -> Option<f64> {
        let inner = thin_to(COMPARED, &self.column.sample);
        let covered = (inner.len() as f64 / self.column.other_distinct()).min(1.0);
        let expected = outer.len() as f64 * covered;
        if expected < EVIDENCE {
            return None;
        }
        let has_match = |value: &&Datum| {
            let near = |other: &Datum| self.kind.near(**value, *other, self.distances);
            inner.iter().any(near)
        };
        let seen = outer.iter().filter(has_match).count();
        let rows_each = self.other_rows() / self.kept / self.column.other_distinct();
        Some((seen as f64 / expected).min(1.0) * (1.0 - self.chance_of_none(rows_each)))
    }
}
