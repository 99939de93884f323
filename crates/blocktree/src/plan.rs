//! Plan of a query: the permutations that it probes, and the radius around its own prefix in
//! each.
//!
//! Up to the guaranteed radius a choice of permutations is probed with the query's own leading
//! bits. Beyond it the pigeonhole principle still holds in its general form: cut the bits into `m`
//! parts and give part i a threshold `t_i`; if the thresholds plus one sum to `r + 1`, then two
//! fingerprints within `r` differ in at most `t_i` bits of some part i (multi-index hashing:
//! Norouzi, Punjani, Fleet, CVPR 2012; uneven thresholds: Qin et al., "GPH", ICDE 2018). So
//! permutations whose leading parts do not overlap are probed with all prefixes within their
//! thresholds. When that reads more pages than one permutation has, one permutation is read whole.
//!
//! A row that several permutations would find is returned by the first of them alone, which the
//! difference between its fingerprint and the query decides: nothing has to be remembered.

use crate::block_layout::{BlockLayout, DESCENT, combinations};
use crate::inner;
use crate::key::Key;
use crate::leaf;

/// Cost of finding a run of leaves by the inner page that leads to the run before, relative to
/// reading on to the next leaf. Measured at radius 12 to 14 of a million rows.
const QUEUED: f64 = 0.5;

/// Cost of a leaf of a permutation that is read whole, relative to a leaf that a probe reads: such
/// leaves are next to each other, and nothing looks for the next prefix. Measured from 150 to
/// 15,000 leaves, with keys of 1, 2 and 4 words: 0.4 to 0.6 for permutations that fit into the
/// processor's caches, 0.6 to 0.95 for larger ones.
fn whole_leaf(leaves: f64) -> f64 {
    const MAX_CACHED_LEAVES: f64 = 512.0;
    (0.5 + 0.1 * (leaves / MAX_CACHED_LEAVES).log2()).clamp(0.5, 0.9)
}

/// Bits of the longest prefix that is looked up. Longer ones would narrow nothing: 2^64 of them
/// outnumber all entries.
const LONGEST_PREFIX: u32 = 64;

/// Leading bits of a permutation's keys that a search within the guaranteed radius looks up.
pub fn probed_bits<const N: usize>(layout: &BlockLayout<N>, permutation: usize) -> u32 {
    layout.leading_bits(permutation).min(LONGEST_PREFIX)
}

/// Probe of one permutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe<const N: usize> {
    /// The permutation.
    pub permutation: u16,
    /// Leading bits of the key that are looked up: 0 (the whole permutation) to 64.
    pub bits: u32,
    /// In how many of them an entry may differ from the query.
    pub threshold: u32,
    /// Mask of the looked-up bits in the unpermuted fingerprint.
    pub mask: Key<N>,
}

impl<const N: usize> Probe<N> {
    pub(crate) fn new(
        layout: &BlockLayout<N>,
        permutation: usize,
        bits: u32,
        threshold: u32,
    ) -> Self {
        let bits = bits.min(LONGEST_PREFIX);
        let mask = layout.permutations()[permutation].leading_mask(bits);
        Probe {
            permutation: permutation as u16,
            bits,
            threshold,
            mask,
        }
    }

    /// Returns whether the probe finds a row with this difference (XOR) to the query.
    #[inline]
    pub fn finds(&self, difference: &Key<N>) -> bool {
        let mut differing = 0;
        for (bits, mask) in difference.iter().zip(&self.mask) {
            differing += (bits & mask).count_ones();
        }
        differing <= self.threshold
    }
}

/// Returns whether the last of some probes, and none before it, finds a row with this difference to
/// the query.
#[inline]
pub(crate) fn last_finds<const N: usize>(probes: &[Probe<N>], difference: &Key<N>) -> bool {
    probes.split_last().is_some_and(|(last, earlier)| {
        last.finds(difference) && !earlier.iter().any(|probe| probe.finds(difference))
    })
}

/// The probes that answer queries of one radius.
///
/// ```
/// use neardup_blocktree::block_layout::BlockLayout;
/// use neardup_blocktree::plan::Plan;
///
/// // Within the guaranteed radius the leading bits of each of four permutations are looked up.
/// let layout = BlockLayout::<1>::new(3, 4).unwrap();
/// let plan = Plan::new(&layout, 3, 1e6);
/// assert_eq!(plan.probes.len(), 4);
/// assert!(plan.probes.iter().all(|probe| probe.bits == 16 && probe.threshold == 0));
///
/// // Far beyond it nothing is cheaper than to read one permutation whole.
/// assert!(Plan::new(&layout, 40, 1e6).is_whole());
/// ```
#[derive(Clone, Debug)]
pub struct Plan<const N: usize> {
    /// The radius, in bits.
    pub radius: u32,
    /// The probes, in the order in which they are made.
    pub probes: Vec<Probe<N>>,
    /// Estimated number of leaves that are read, if fingerprints are spread evenly.
    pub leaves: f64,
    /// Estimated number of runs of adjacent leaves. The first leaf of a run is found by a descent
    /// or through the inner page above the leaves.
    pub descents: f64,
    /// Estimated number of runs that are found through an inner page.
    pub queued: f64,
    /// Estimated number of leaves of one permutation.
    pub permutation_leaves: f64,
}

impl<const N: usize> Plan<N> {
    /// The cheapest plan for a radius in an index of `rows` rows. A radius beyond the width of the
    /// fingerprints counts as that width, which holds everything.
    pub fn new(layout: &BlockLayout<N>, radius: u32, rows: f64) -> Self {
        let radius = radius.min(layout.bits());
        let leaves = (rows / leaf::usual_count(N)).max(1.0);
        let whole = Plan {
            radius,
            probes: vec![Probe::new(layout, 0, 0, 0)],
            leaves,
            descents: 1.0,
            queued: 0.0,
            permutation_leaves: leaves,
        };
        let exact = exact_permutations(layout, radius).map(|permutations| {
            let part =
                |permutation| Part::new(permutation, layout.leading_bits(permutation), Some(0));
            let parts: Vec<Part> = permutations.into_iter().map(part).collect();
            Plan::from_parts(layout, radius, leaves, &parts)
        });
        let spread = disjoint_parts(layout).into_iter().map(|parts| {
            let parts = spread(parts, radius, |part| {
                let threshold = part.threshold.map_or(0, |threshold| threshold + 1);
                let raised = Part::new(part.permutation, part.bits, Some(threshold));
                (raised, raised.cost::<N>(leaves) - part.cost::<N>(leaves))
            });
            Plan::from_parts(layout, radius, leaves, &parts)
        });
        cheapest(whole, exact.into_iter().chain(spread), Plan::cost)
    }

    /// Cost of the plan, in leaves that probes read one after the other.
    pub fn cost(&self) -> f64 {
        self.cost_with(DESCENT)
    }

    /// [`Plan::cost`] with another cost of a descent.
    pub(crate) fn cost_with(&self, descent: f64) -> f64 {
        let leaves = match self.is_whole() {
            true => self.leaves * whole_leaf(self.permutation_leaves),
            false => self.leaves,
        };
        leaves + descent * (self.descents - self.queued) + QUEUED * self.queued
    }

    /// Entries with the leading bits that a search looks up, about, among `rows` rows.
    pub fn candidates(&self, rows: f64) -> f64 {
        let share = |probe: &Probe<N>| {
            let bits = f64::from(probe.bits);
            ball(bits, probe.threshold) / bits.exp2()
        };
        rows * self.probes.iter().map(share).sum::<f64>()
    }

    /// Descents that cost as much as finding all runs does: one that an inner page leads to costs
    /// a part of a descent.
    pub fn descents_worth(&self) -> f64 {
        self.descents - self.queued * (1.0 - QUEUED / DESCENT)
    }

    /// Returns whether one permutation is read whole.
    pub fn is_whole(&self) -> bool {
        self.probes.iter().any(|probe| probe.bits == 0)
    }

    fn from_parts(layout: &BlockLayout<N>, radius: u32, leaves: f64, parts: &[Part]) -> Self {
        let mut plan = Plan {
            radius,
            probes: vec![],
            leaves: 0.0,
            descents: 0.0,
            queued: 0.0,
            permutation_leaves: leaves,
        };
        for part in parts {
            let Some(threshold) = part.threshold else {
                continue;
            };
            let (descents, queued, read) = part.reads::<N>(leaves);
            plan.probes
                .push(Probe::new(layout, part.permutation, part.bits, threshold));
            plan.descents += descents;
            plan.queued += queued;
            plan.leaves += read;
        }
        plan
    }
}

/// Returns the greatest radius at which a search of an index of `rows` rows looks up prefixes;
/// beyond it one permutation is read whole. `None` if every search reads a permutation whole, as in
/// an index of few leaves.
pub fn probed_radius<const N: usize>(layout: &BlockLayout<N>, rows: f64) -> Option<u32> {
    (0..=layout.bits())
        .take_while(|&radius| !Plan::new(layout, radius, rows).is_whole())
        .last()
}

/// A permutation with its leading bits, and how many of them may differ; `None`: it is not probed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub permutation: usize,
    pub bits: u32,
    pub threshold: Option<u32>,
}

impl Part {
    pub fn new(permutation: usize, bits: u32, threshold: Option<u32>) -> Self {
        Part {
            permutation,
            bits,
            threshold,
        }
    }

    /// For a permutation of `leaves` leaves: the number of runs of leaves that the probes read, the
    /// number of runs found through the inner page of the previous run, and the number of leaves.
    fn reads<const N: usize>(&self, leaves: f64) -> (f64, f64, f64) {
        let Some(threshold) = self.threshold else {
            return (0.0, 0.0, 0.0);
        };
        let bits = f64::from(self.bits);
        // Prefixes share a leaf if they differ only in bits that do not select a leaf.
        let telling = leaves.log2().min(bits);
        let runs = ball(telling, threshold);
        let inner_pages = leaves / inner::usual_count::<N>();
        (
            runs.min(leaves),
            (runs.min(leaves) - 1.0 - inner_pages).max(0.0),
            (runs * (1.0 + leaves / bits.exp2())).min(leaves),
        )
    }

    fn cost<const N: usize>(&self, leaves: f64) -> f64 {
        let (descents, queued, read) = self.reads::<N>(leaves);
        cost(read, descents, queued)
    }
}

/// Cost of reading leaves of some runs.
fn cost(leaves: f64, runs: f64, queued: f64) -> f64 {
    leaves + DESCENT * (runs - queued) + QUEUED * queued
}

/// The number of words of `bits` bits within a radius of one of them, for any real `bits`.
pub(crate) fn ball(bits: f64, radius: u32) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for i in 0..radius {
        term *= (bits - f64::from(i)).max(0.0) / f64::from(i + 1);
        sum += term;
    }
    sum.min(bits.exp2())
}

/// Expected distance, in bits, of the nearest of `rows` rows with `bits` random bits: an upper
/// bound for data with near-duplicates.
pub fn expected_nearest(bits: u32, rows: f64) -> u32 {
    let all = f64::from(bits).exp2();
    (0..bits)
        .find(|&radius| rows * ball(f64::from(bits), radius) >= all)
        .unwrap_or(bits)
}

/// Few permutations that together find everything within a radius by leading bits that agree in
/// full: for each choice of `radius` spoilt blocks one of them leads with none of those. `None`
/// beyond the guaranteed radius. Greedy, but where each permutation is led by one block: of these
/// any `radius` plus one do, and no fewer.
pub(crate) fn exact_permutations<const N: usize>(
    layout: &BlockLayout<N>,
    radius: u32,
) -> Option<Vec<usize>> {
    if radius > layout.radius() {
        return None;
    }
    let permutations = layout.permutations();
    if layout.blocks().len() as u32 == layout.radius() + 1 {
        return Some((0..=radius as usize).collect());
    }
    let mut open = combinations(layout.blocks().len(), radius as usize);
    let mut chosen = Vec::new();
    while !open.is_empty() {
        let finds = |permutation: usize, spoilt: &[usize]| {
            permutations[permutation]
                .leading()
                .iter()
                .all(|block| !spoilt.contains(block))
        };
        let best = (0..permutations.len())
            .max_by_key(|&permutation| {
                (
                    open.iter()
                        .filter(|spoilt| finds(permutation, spoilt))
                        .count(),
                    usize::MAX - permutation,
                )
            })
            .filter(|&permutation| open.iter().any(|spoilt| finds(permutation, spoilt)))?;
        open.retain(|spoilt| !finds(best, spoilt));
        chosen.push(best);
    }
    Some(chosen)
}

/// Sets of permutations whose leading parts do not overlap: led by one block each, by two, ...
pub(crate) fn disjoint_parts<const N: usize>(layout: &BlockLayout<N>) -> Vec<Vec<Part>> {
    let longest = layout.permutations()[0].leading().len();
    (1..=longest)
        .map(|length| {
            let mut free = vec![true; layout.blocks().len()];
            let mut parts = Vec::new();
            // What is left over when no permutation leads with `length` free blocks is led by
            // fewer.
            for length in (1..=length).rev() {
                for (permutation, leading) in layout
                    .permutations()
                    .iter()
                    .map(|t| t.leading())
                    .enumerate()
                {
                    let leading = &leading[..length];
                    if leading.iter().all(|&block| free[block]) {
                        leading.iter().for_each(|&block| free[block] = false);
                        let bits = leading.iter().map(|&block| layout.blocks()[block]).sum();
                        parts.push(Part::new(permutation, bits, None));
                    }
                }
            }
            parts
        })
        .collect()
}

/// Shares out `radius + 1` thresholds among parts, each where it adds the least to the cost.
/// `raise` gives a part with its next threshold, and how much that adds.
pub(crate) fn spread<P>(mut parts: Vec<P>, radius: u32, raise: impl Fn(&P) -> (P, f64)) -> Vec<P> {
    for _ in 0..=radius {
        let raised = parts.iter().map(&raise).enumerate();
        if let Some((i, (part, _))) = raised.min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1)) {
            parts[i] = part;
        }
    }
    parts
}

/// The first plan of least cost.
pub(crate) fn cheapest<P>(
    first: P,
    others: impl Iterator<Item = P>,
    cost: impl Fn(&P) -> f64,
) -> P {
    others.fold(first, |best, plan| match cost(&plan) < cost(&best) {
        true => plan,
        false => best,
    })
}

/// The smallest number that is not below `from` and differs from `center` in at most `threshold`
/// of the low `bits` bits; `None` if there is none below `2^bits`. All three are below `2^bits`.
///
/// With it a probe walks its prefixes in the order of the leaves, with no list of them.
///
/// ```
/// use neardup_blocktree::plan::next_within;
///
/// // Four bits; at most one differs from 0101.
/// let all = (0..16).filter_map(|from| next_within(0b0101, 4, 1, from));
/// let mut all: Vec<u64> = all.collect();
/// all.dedup();
/// assert_eq!(all, [0b0001, 0b0100, 0b0101, 0b0111, 0b1101]);
/// ```
#[inline]
pub fn next_within(center: u64, bits: u32, threshold: u32, from: u64) -> Option<u64> {
    debug_assert!(bits <= 64);
    if threshold == 0 {
        return (from <= center).then_some(center);
    }
    if (from ^ center).count_ones() <= threshold {
        return Some(from);
    }
    // The answer agrees with `from` above some bit i, has 1 there where `from` has 0, and below it
    // is as small as what is left of the threshold allows. The lowest such i gives the smallest.
    for i in 0..bits {
        if from >> i & 1 == 1 {
            continue;
        }
        let above = if i == 63 {
            0
        } else {
            ((from ^ center) >> (i + 1)).count_ones()
        };
        let spent = above + u32::from(center >> i & 1 == 0);
        if spent > threshold {
            continue;
        }
        let bit = 1u64 << i;
        let mut low = center & (bit - 1);
        for _ in spent..threshold {
            // The most significant set bits are worth the most.
            if low == 0 {
                break;
            }
            low ^= 1 << (63 - low.leading_zeros());
        }
        return Some(from & !(bit - 1) | bit | low);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn next_within_is_what_a_search_finds(
            bits in 1..12u32, center: u64, threshold in 0..13u32, from: u64,
        ) {
            let (center, from) = (center % (1 << bits), from % (1 << bits));
            let found = (from..1 << bits).find(|x| (x ^ center).count_ones() <= threshold);
            prop_assert_eq!(next_within(center, bits, threshold, from), found);
        }

        #[test]
        fn some_probe_finds_whatever_lies_within_the_radius(
            guaranteed in 0..=8u32, more in 1..=3u32, radius in 0..=24u32,
            rows in prop::sample::select(vec![0.0, 1e3, 1e5, 1e7, 1e9, 1e11]),
            difference in prop::collection::vec(0..64u32, 0..24),
        ) {
            let Ok(layout) = BlockLayout::<1>::new(guaranteed, guaranteed + more) else {
                return Ok(());
            };
            assert_some_probe_finds(&layout, radius, rows, &difference);
        }

        #[test]
        fn some_probe_finds_what_lies_within_the_radius_in_wide_fingerprints(
            guaranteed in 0..=31u32, more in 1..=2u32, radius in 0..=60u32,
            rows in prop::sample::select(vec![0.0, 1e5, 1e7, 1e9, 1e11]),
            difference in prop::collection::vec(0..256u32, 0..60),
        ) {
            let Ok(layout) = BlockLayout::<4>::new(guaranteed, guaranteed + more) else {
                return Ok(());
            };
            assert_some_probe_finds(&layout, radius, rows, &difference);
        }
    }

    fn assert_some_probe_finds<const N: usize>(
        layout: &BlockLayout<N>,
        radius: u32,
        rows: f64,
        difference: &[u32],
    ) {
        let plan = Plan::new(layout, radius, rows);
        let mut bits = [0; N];
        for &bit in difference.iter().take(radius as usize) {
            bits[bit as usize / 64] |= 1u64 << (bit % 64);
        }
        assert!(plan.probes.iter().any(|probe| probe.finds(&bits)));
    }

    #[test]
    fn half_the_usual_radius_of_image_hashes_makes_it_cheap() {
        let cost = |radius, rows| {
            let layout = BlockLayout::<4>::new(radius, radius + 1).unwrap();
            Plan::new(&layout, 31, rows).cost()
        };
        for rows in [1e6, 1e7, 1e8] {
            assert!(cost(15, rows) * 4.0 < cost(3, rows) && cost(15, rows) * 2.0 < cost(8, rows));
        }
    }

    #[test]
    fn next_within_reaches_the_ends() {
        assert_eq!(next_within(0, 0, 0, 0), Some(0));
        assert_eq!(next_within(u64::MAX, 64, 0, 0), Some(u64::MAX));
        assert_eq!(next_within(0, 64, 0, 1), None);
        assert_eq!(next_within(0, 64, 1, (1 << 63) | 1), None);
        assert_eq!(next_within(0, 64, 64, u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn the_nearest_of_a_million_random_rows() {
        // 1e6 rows times the share of all words within 13 bits is 0.94, within 14 bits 3.5.
        assert_eq!(expected_nearest(64, 1e6), 14);
        assert_eq!(expected_nearest(64, 0.0), 64);
    }

    #[test]
    fn smaller_radii_probe_fewer_permutations() {
        let layout = BlockLayout::<1>::new(3, 4).unwrap();
        for radius in 0..=3 {
            let plan = Plan::new(&layout, radius, 1e7);
            assert_eq!(plan.probes.len(), radius as usize + 1);
            assert!(
                plan.probes
                    .iter()
                    .all(|probe| probe.bits == 16 && probe.threshold == 0)
            );
        }
    }

    #[test]
    fn large_radii_read_one_permutation_whole() {
        let layout = BlockLayout::<1>::new(3, 4).unwrap();
        for (radius, rows) in [(30, 1e6), (64, 1e9), (3, 100.0)] {
            let plan = Plan::new(&layout, radius, rows);
            assert_eq!(
                (plan.probes.len(), plan.probes[0].bits),
                (1, 0),
                "{radius} {rows}"
            );
        }
        let within = |radius, rows| {
            Plan::new(&layout, radius, rows).cost() * 2.0 < rows / leaf::usual_count(1)
        };
        assert!(within(8, 1e6) && within(12, 1e7));
    }

    #[test]
    fn beyond_the_probed_radius_every_search_reads_a_permutation_whole() {
        fn holds<const N: usize>(radius: u32, blocks: u32) {
            let layout = BlockLayout::<N>::new(radius, blocks).unwrap();
            for rows in [0.0, 1e3, 1e5, 1e6, 1e8] {
                let probed = probed_radius(&layout, rows);
                for radius in 0..=layout.bits() {
                    let whole = Plan::new(&layout, radius, rows).is_whole();
                    assert_eq!(whole, probed.is_none_or(|probed| radius > probed));
                }
            }
        }
        holds::<1>(3, 4);
        holds::<1>(8, 10);
        holds::<2>(3, 4);
        holds::<2>(6, 8);
        holds::<4>(15, 16);
        let default = BlockLayout::<1>::new(3, 4).unwrap();
        assert_eq!(probed_radius(&default, 100.0), None);
        assert!(probed_radius(&default, 1e8) > probed_radius(&default, 1e6));
    }

    #[test]
    fn the_guaranteed_radius_with_two_blocks_in_front() {
        let layout = BlockLayout::<1>::new(3, 5).unwrap();
        let plan = Plan::new(&layout, 3, 1e10);
        assert_eq!(plan.probes.len(), 10);
        // One probe is enough for equal fingerprints.
        assert_eq!(Plan::new(&layout, 0, 1e10).probes.len(), 1);
    }
}
