//! Bounds among which a reader of a report's page can choose, from the narrowest to the widest.
use neardup_report::data::{MAX_RADII, Measure};

use crate::dedup::bound::Bound;

/// Maximum number of steps from radius 0 to the radius of the listed clusters.
const MAX_RADIUS_STEPS: u32 = MAX_RADII as u32 - 1;
/// Number of steps from similarity 1 to the similarity of the listed clusters.
const SIMILARITY_STEPS: u32 = 4;
/// Similarities of steps are rounded to multiples of 1 divided by this number.
const SIMILARITY_SCALE: f64 = 1000.0;

/// Returns the radius that a page shows for a bound: a number of bits, or 1 minus the similarity. A
/// wider bound has a larger radius.
pub fn shown_radius(bound: Bound) -> f64 {
    match bound {
        Bound::Radius(radius) => f64::from(radius),
        Bound::Similarity(similarity) => 1.0 - similarity,
    }
}

/// Returns the bounds of a page in ascending order of radius, and the position of `chosen`, which
/// is the bound of the listed clusters. `others` are the caller's other bounds. Without them, the
/// other bounds are steps up to `chosen`.
pub fn levels(others: Option<Vec<Bound>>, chosen: Bound) -> (Vec<Bound>, usize) {
    let mut levels = others.unwrap_or_else(|| steps(chosen));
    levels.push(chosen);
    levels.sort_by(|&a, &b| shown_radius(a).total_cmp(&shown_radius(b)));
    levels.dedup();
    let number = levels.iter().position(|&level| level == chosen);
    (levels, number.unwrap_or_default())
}

/// Returns narrower bounds than `chosen` in equal steps, including radius 0 or similarity 1.
/// Returns every narrower radius if there are few enough.
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

/// Returns the widest bound of a page's histogram. `chosen` is the bound of the clusters that the
/// page lists.
pub fn widest(chosen: Bound, measure: Measure) -> Bound {
    /// The histogram of signatures always reaches down to this similarity, or lower.
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
