//! Bounds among which a reader of a report's page can choose, from the narrowest to the widest. A
//! bound is a maximum distance in bits (a radius) or a minimum similarity. The page lists the
//! clusters for one of the bounds, and shows totals for all of them.
use neardup_report::data::{MAX_RADII, Measure};

use crate::dedup::bound::Bound;

/// Maximum number of distinct radii that [`steps`] returns. All of them are smaller than the radius
/// of the listed clusters. If there are more smaller radii than this number, the returned radii are
/// more than one bit apart.
const MAX_RADIUS_STEPS: u32 = MAX_RADII as u32 - 1;
/// Number of similarities that [`steps`] returns, all above the similarity of the listed clusters.
/// The highest is 1.
const SIMILARITY_STEPS: u32 = 4;
/// Similarities that [`steps`] computes are rounded to multiples of 1 / `SIMILARITY_SCALE`.
const SIMILARITY_SCALE: f64 = 1000.0;

/// Returns the radius that a page shows for a bound: a number of bits, or 1 minus the similarity. A
/// wider bound has a larger radius.
pub fn shown_radius(bound: Bound) -> f64 {
    match bound {
        Bound::Radius(radius) => f64::from(radius),
        Bound::Similarity(similarity) => 1.0 - similarity,
    }
}

/// Returns the bounds of a page in ascending order of radius, and the position of `chosen` among
/// them. `chosen` is the bound of the listed clusters. `others` are the other bounds that the
/// caller asked for. If `others` is `None`, the other bounds are narrower than `chosen`, in steps.
pub fn levels(others: Option<Vec<Bound>>, chosen: Bound) -> (Vec<Bound>, usize) {
    let mut levels = others.unwrap_or_else(|| steps(chosen));
    levels.push(chosen);
    levels.sort_by(|&a, &b| shown_radius(a).total_cmp(&shown_radius(b)));
    levels.dedup();
    let number = levels.iter().position(|&level| level == chosen);
    (levels, number.unwrap_or_default())
}

/// Returns bounds that are narrower than `chosen`, beginning with radius 0 or similarity 1. They
/// are in equal steps, except that the first step of radii may be shorter. If `chosen` is a radius
/// of at most [`MAX_RADIUS_STEPS`] bits, every narrower radius is returned. Radius 0 may occur
/// twice, so [`levels`] removes duplicates.
fn steps(chosen: Bound) -> Vec<Bound> {
    match chosen {
        Bound::Radius(radius) => {
            let step = radius.div_ceil(MAX_RADIUS_STEPS).max(1);
            let steps = (radius % step..radius).step_by(step as usize);
            [0].into_iter().chain(steps).map(Bound::Radius).collect()
        }
        Bound::Similarity(similarity) => (0..SIMILARITY_STEPS)
            .map(|step| {
                let share = f64::from(step) / f64::from(SIMILARITY_STEPS);
                let level = 1.0 - share * (1.0 - similarity);
                Bound::Similarity((level * SIMILARITY_SCALE).round() / SIMILARITY_SCALE)
            })
            .collect(),
    }
}

/// Returns the widest bound that a page's histogram covers. `chosen` is the bound of the listed
/// clusters. The histogram also shows pairs beyond `chosen`. `measure` is the kind of distance in
/// the index.
pub fn widest(chosen: Bound, measure: Measure) -> Bound {
    /// The histogram of signatures always reaches down to this similarity or to a lower one.
    const LEAST_SIMILARITY: f64 = 0.5;
    match (chosen, measure) {
        (Bound::Radius(radius), Measure::Bits(bits) | Measure::Estimated(bits)) => {
            Bound::Radius((radius * 3 / 2 + 2).max(bits / 4).min(bits))
        }
        (Bound::Radius(_), Measure::Signatures) => unreachable!("signatures have no radius"),
        (Bound::Similarity(similarity), _) => {
            Bound::Similarity((2.0 * similarity - 1.0).clamp(0.0, LEAST_SIMILARITY))
        }
    }
}
