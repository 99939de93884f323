//! Plan of a search for all pairs within a radius. It states the permutations (ordered copies of
//! all keys) that the search reads, and how many leading bits (the prefix) are equal in a group of
//! rows. Reading one permutation is a pass. Two groups are neighbours, and are compared, if their
//! prefixes differ in at most a threshold of bits.
//!
//! The principle is that of the plan of a query ([`crate::plan`]), applied to all rows at once. In
//! a permutation, rows whose first bits are equal are adjacent: they form a group. The search
//! compares each group with itself. Beyond the guaranteed radius it also compares neighbouring
//! groups, whose first bits differ in a few positions (Norouzi, Punjani, Fleet, CVPR 2012, turned
//! from a query into a join). The search reads permutations sequentially, without descents from the
//! root, so the number of compared keys determines the cost.

use crate::block_layout::BlockLayout;
use crate::plan::{
    CandidateProbe, Probe, ball, cheapest, disjoint_parts, exact_permutations, spread,
};

/// Cost of reading an entry into memory and sorting it, in nanoseconds.
const READ: f64 = 35.0;
/// Cost of comparing two keys, in nanoseconds per word of a key.
const COMPARE: f64 = 0.25;
/// Cost of starting the comparison of a key with the keys of a group, in nanoseconds, in addition
/// to [`COMPARE`].
const VISIT: f64 = 20.0;
/// Cost of looking up a neighbouring group, in nanoseconds. Most lookups find no group and miss the
/// processor's cache.
const LOOK_UP: f64 = 15.0;

/// Rule that decides which passes report a pair of rows, if several passes find the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassOverlap {
    /// Only the first pass that finds a pair reports it.
    FirstReports,
    /// Each pass that finds a pair reports it, so that the caller can count the passes.
    EachReports,
}

/// Plan of a search for pairs: the passes over permutations that find all pairs within a radius.
#[derive(Clone, Debug)]
pub struct PairPlan<const N: usize> {
    /// Maximum distance of a pair, in bits.
    pub radius: u32,
    /// One element for each pass. `permutation` is the permutation that the pass reads. `bits` is
    /// the number of leading bits that are equal within a group. `threshold` is the maximum number
    /// of these bits in which two compared groups may differ.
    pub passes: Vec<Probe<N>>,
    /// Estimated time of the search in nanoseconds, for evenly distributed fingerprints. 0 if there
    /// is no estimate.
    pub cost: f64,
    /// Estimated number of comparisons of two fingerprints. 0 if there is no estimate.
    pub comparisons: f64,
    pub(crate) overlap: PassOverlap,
    /// In an index on signatures, true if the search removes the band's hash from keys before it
    /// groups and compares them.
    pub(crate) ignores_hashes: bool,
}

impl<const N: usize> PairPlan<N> {
    /// Returns the cheapest plan for a search for the pairs of fingerprints within `radius` bits,
    /// in an index of `rows` rows. All plans for one radius find the same pairs.
    pub fn new(layout: &BlockLayout<N>, radius: u32, rows: f64) -> Self {
        let radius = radius.min(layout.bits());
        let exact = exact_permutations(layout, radius).map(|permutations| {
            let part = |permutation| {
                CandidateProbe::new(
                    permutation,
                    layout.leading_bits(permutation).min(64),
                    Some(0),
                )
            };
            Self::from_parts(layout, radius, rows, permutations.into_iter().map(part))
        });
        let spread = disjoint_parts(layout).into_iter().map(|parts| {
            // Each element has a part with all its leading bits, and the pass that reads the
            // permutation of this part. The pass may group by fewer bits.
            let passes = parts.into_iter().map(|part| (part, part)).collect();
            let passes = spread(passes, radius, |&(part, pass)| {
                let threshold = pass.threshold.map_or(0, |threshold| threshold + 1);
                let raised = best(&part, threshold, rows, N);
                let added = cost(&raised, rows, N) - cost(&pass, rows, N);
                ((part, raised), added)
            });
            Self::from_parts(
                layout,
                radius,
                rows,
                passes.into_iter().map(|(_, pass)| pass),
            )
        });
        let whole = Self::from_parts(layout, radius, rows, [CandidateProbe::new(0, 0, Some(0))]);
        cheapest(whole, exact.into_iter().chain(spread), |plan| plan.cost)
    }

    /// Returns the number of comparisons of two fingerprints per second that the cost estimate
    /// assumes.
    pub fn comparisons_per_second() -> f64 {
        1e9 / (COMPARE * N as f64)
    }

    /// Creates a plan with one pass for each element of `parts` that has a threshold. Elements
    /// without a threshold are ignored. `rows` is the number of rows, for the estimates of the
    /// plan.
    fn from_parts(
        layout: &BlockLayout<N>,
        radius: u32,
        rows: f64,
        parts: impl IntoIterator<Item = CandidateProbe>,
    ) -> Self {
        let (mut passes, mut sum, mut compared) = (Vec::new(), 0.0, 0.0);
        for pass in parts {
            sum += cost(&pass, rows, N);
            compared += comparisons(&pass, rows);
            let probe = |threshold| Probe::new(layout, pass.permutation, pass.bits, threshold);
            passes.extend(pass.threshold.map(probe));
        }
        PairPlan {
            radius,
            passes,
            cost: sum,
            comparisons: compared,
            overlap: PassOverlap::FirstReports,
            ignores_hashes: false,
        }
    }
}

/// Returns half the number of neighbours of a group: the prefixes of `bits` bits that differ from
/// the group's prefix in 1 to `threshold` bits. Two neighbouring groups are compared only once, so
/// each group accounts for half of its neighbours.
fn neighbours(bits: u32, threshold: u32) -> f64 {
    (ball(f64::from(bits), threshold) - 1.0) / 2.0
}

/// Estimates the number of comparisons of two keys in a pass over `rows` rows. 0 if `pass` has no
/// threshold, which means that the search does not make this pass.
fn comparisons(pass: &CandidateProbe, rows: f64) -> f64 {
    pass.threshold.map_or(0.0, |threshold| {
        rows * (rows / f64::from(pass.bits).exp2()) * (0.5 + neighbours(pass.bits, threshold))
    })
}

/// Estimates the cost of a pass over `rows` rows with keys of `words` words, in nanoseconds. 0 if
/// `pass` has no threshold, which means that the search does not make this pass.
fn cost(pass: &CandidateProbe, rows: f64, words: usize) -> f64 {
    let Some(threshold) = pass.threshold else {
        return 0.0;
    };
    let all = f64::from(pass.bits).exp2();
    let neighbours = neighbours(pass.bits, threshold);
    let groups = rows.min(all);
    // Number of groups with which each entry is compared. If prefixes outnumber rows, most groups
    // have one entry, and most neighbouring prefixes have no group.
    let met = (rows / all).min(1.0) + (neighbours * groups / all).min(groups);
    READ * rows
        + LOOK_UP * groups * neighbours.min(groups)
        + VISIT * rows * met
        + COMPARE * words as f64 * comparisons(pass, rows)
}

/// Returns the cheapest pass over the permutation of `part` in which the prefixes of neighbouring
/// groups differ in at most `threshold` bits. The function chooses the number of leading bits by
/// which the pass groups rows: at most the number in `part`, and at most 64. `rows` is the number
/// of rows, and `words` the number of words of a key.
fn best(part: &CandidateProbe, threshold: u32, rows: f64, words: usize) -> CandidateProbe {
    let pass = |bits| CandidateProbe::new(part.permutation, bits, Some(threshold));
    let most = part.bits.min(64);
    cheapest(pass(most), (0..most).rev().map(pass), |pass| {
        cost(pass, rows, words)
    })
}

/// Returns all words of `bits` bits with at most `threshold` set bits, the word 0 first. They are
/// the XOR values between a prefix and the prefixes of its neighbours. `None` if there are more
/// than `most` words.
pub(super) fn masks(bits: u32, threshold: u32, most: usize) -> Option<Vec<u64>> {
    if ball(f64::from(bits), threshold) > most as f64 {
        return None;
    }
    let mut masks = vec![0u64];
    let mut last = 0..1;
    for _ in 0..threshold.min(bits) {
        // Extends each mask of the last round by one more bit above its highest bit.
        for i in last.clone() {
            let mask = masks[i];
            let above = 64 - mask.leading_zeros();
            masks.extend((above..bits).map(|bit| mask | 1 << bit));
        }
        last = last.end..masks.len();
    }
    Some(masks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn some_pass_finds_whatever_lies_within_the_radius(
            distance in 0..=6u32, more in 1..=3u32, radius in 0..=64u32,
            rows in prop::sample::select(vec![0.0, 1e3, 1e5, 1e7, 1e9]),
            difference in prop::collection::vec(0..64u32, 0..200),
        ) {
            let Ok(layout) = BlockLayout::<1>::new(distance, distance + more) else {
                return Ok(());
            };
            let plan = PairPlan::new(&layout, radius, rows);
            let mut bits = 0u64;
            for &bit in &difference {
                if bits.count_ones() < radius {
                    bits |= 1 << bit;
                }
            }
            prop_assert!(plan.passes.iter().any(|probe| probe.finds(&[bits])));
        }

        #[test]
        fn masks_are_all_words_with_few_ones(bits in 0..11u32, threshold in 0..12u32) {
            let mut masks = masks(bits, threshold, usize::MAX).unwrap();
            prop_assert_eq!(masks[0], 0);
            masks.sort_unstable();
            let expected: Vec<u64> =
                (0..1u64 << bits).filter(|word| word.count_ones() <= threshold).collect();
            prop_assert_eq!(masks, expected);
        }
    }

    #[test]
    fn the_guaranteed_radius_takes_the_permutations_as_they_are() {
        let layout = BlockLayout::<1>::new(3, 4).unwrap();
        let plan = PairPlan::new(&layout, 3, 1e7);
        assert_eq!(plan.passes.len(), 4);
        assert!(plan.passes.iter().all(|p| (p.bits, p.threshold) == (16, 0)));
    }

    /// Within the guaranteed radius, no pass compares neighbouring groups, even if there are ten
    /// permutations, whose groups have few entries. These passes cost less than three times as much
    /// as the passes over four permutations.
    #[test]
    fn the_guaranteed_radius_looks_up_no_neighbours() {
        let layout = BlockLayout::<1>::new(3, 5).unwrap();
        for rows in [1e6, 2e6, 1e7, 1e8] {
            let plan = PairPlan::new(&layout, 3, rows);
            assert!(plan.passes.iter().all(|p| p.threshold == 0), "{plan:?}");
            let four = PairPlan::new(&BlockLayout::<1>::new(3, 4).unwrap(), 3, rows);
            assert!(plan.cost < 3.0 * four.cost, "{rows}");
        }
    }

    #[test]
    fn a_wide_radius_costs_far_less_than_comparing_all() {
        let layout = BlockLayout::<1>::new(3, 4).unwrap();
        let all = |rows: f64| COMPARE * rows * rows / 2.0;
        assert!(PairPlan::new(&layout, 8, 1e6).cost * 20.0 < all(1e6));
        assert!(PairPlan::new(&layout, 12, 1e7).cost * 20.0 < all(1e7));
        // The widest radius reads one permutation and compares all rows with each other.
        let widest = PairPlan::new(&layout, 64, 1e6);
        assert_eq!((widest.passes.len(), widest.passes[0].bits), (1, 0));
    }
}
