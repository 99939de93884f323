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

/// How many values of a sample are compared at most with those of another: pairs grow with the
/// square, and 200 by 200 distances take some 40 microseconds.
const SAMPLE: usize = 200;

/// The share of all patterns of `bits` bits that lie within `radius` of one of them:
/// the sum of C(bits, i) / 2^bits over i = 0..=radius.
fn volume(bits: u32, radius: i32) -> f64 {
    let mut term = (-f64::from(bits)).exp2();
    let mut sum = 0.0;
    for i in 0..=radius.min(bits as i32) {
        sum += term;
        term *= f64::from(bits as i32 - i) / f64::from(i + 1);
    }
    sum.min(1.0)
}

impl Kind {
    fn near(&self, a: Datum, b: Datum, radius: i32) -> Option<u32> {
        // SAFETY: both are values from the statistics of columns of this fingerprint type, or
        // constants of it.
        let distance = unsafe { (self.traits.distance)(a, b) };
        (distance as i32 <= radius).then_some(distance)
    }

    /// The share of pairs of different values of two samples that lie within the radius. One
    /// lucky pair is no evidence, and equal values in samples of one column are one row twice.
    fn density(&self, a: &[Datum], b: &[Datum], radius: i32) -> f64 {
        let thin = |sample: &[Datum]| -> Vec<Datum> {
            sample
                .iter()
                .step_by(sample.len().div_ceil(SAMPLE).max(1))
                .copied()
                .collect()
        };
        let (a, b) = (thin(a), thin(b));
        let near = a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b)));
        let hits = near
            .filter(|(a, b)| {
                self.near(*a, *b, radius)
                    .is_some_and(|distance| distance > 0)
            })
            .count();
        if hits < 2 {
            0.0
        } else {
            (hits - 1) as f64 / (a.len() * b.len()) as f64
        }
    }
}

/// The share of a column's rows within `radius` of `center`, or of a value not known yet.
pub fn restriction(kind: &Kind, column: &Column, center: Option<Datum>, radius: i32) -> f64 {
    if radius < 0 {
        return 0.0;
    }
    if radius >= kind.traits.bits as i32 {
        return 1.0 - column.null_fraction;
    }
    let volume = volume(kind.traits.bits, radius);
    match center {
        Some(center) => {
            let near = |value: &Datum| kind.near(*value, center, radius).is_some();
            let common: f64 = column
                .common
                .iter()
                .filter(|(value, _)| near(value))
                .map(|(_, share)| share)
                .sum();
            let density = kind.density(&column.sample, &[center], radius);
            common
                + column.other_fraction() * volume.max(1.0 / column.other_distinct()).max(density)
        }
        None => {
            let density = kind.density(&column.sample, &column.sample, radius);
            (1.0 - column.null_fraction) * volume.max(1.0 / column.distinct).max(density)
        }
    }
}

/// The share of all pairs of two columns' rows that lie within `radius` of each other.
pub fn join(kind: &Kind, a: &Column, b: &Column, radius: i32) -> f64 {
    if radius < 0 {
        return 0.0;
    }
    if radius >= kind.traits.bits as i32 {
        return (1.0 - a.null_fraction) * (1.0 - b.null_fraction);
    }
    let mut common = 0.0;
    for (value, share) in a.common.iter().take(SAMPLE) {
        for (other, other_share) in b.common.iter().take(SAMPLE) {
            if kind.near(*value, *other, radius).is_some() {
                common += share * other_share;
            }
        }
    }
    let density = kind.density(&a.sample, &b.sample, radius);
    let kin = 1.0 / a.other_distinct().max(b.other_distinct());
    common
        + a.other_fraction()
            * b.other_fraction()
            * volume(kind.traits.bits, radius).max(kin).max(density)
}
