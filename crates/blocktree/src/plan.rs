//! Plan of a search for the fingerprints near a query. A permutation is an ordered copy of all keys
//! in the index, in which some blocks (groups of fingerprint bits) are moved to the front. A probe
//! looks up one or more prefixes (leading bits) of keys in one permutation, or reads the whole
//! permutation. A plan consists of the probes that together find all fingerprints within a radius.
//! If keys have a scope (columns that must be equal in two near-duplicates), their first word is a
//! hash of the scope.
//!
//! Up to the guaranteed radius, the search looks up the query's own prefix in a few of the
//! permutations. Beyond that radius the pigeonhole principle still holds in its general form: cut
//! the bits into `m` parts and give part i a threshold `t_i`. If all `t_i + 1` add up to `r + 1`,
//! then two fingerprints within radius `r` differ in at most `t_i` bits of some part i (multi-index
//! hashing: Norouzi, Punjani, Fleet, CVPR 2012; uneven thresholds: Qin et al., "GPH", ICDE 2018).
//! So the search takes permutations whose prefixes do not overlap, and in each looks up all
//! prefixes within the threshold around the query's prefix. If that is more expensive than reading
//! one permutation from start to end, the search does the latter.
//!
//! If several probes find a row, only the first of them returns it. Which one that is follows from
//! the bits in which the row's fingerprint differs from the query, so a search need not remember
//! the rows that it has returned.

use crate::block_layout::{BlockLayout, DESCENT, combinations};
use crate::inner;
use crate::key::Key;
use crate::leaf;

/// Cost of finding the first leaf of a run of adjacent leaves without a descent from the root. That
/// is possible if the inner page with the link to the previous run also has a link to this leaf.
/// The unit is the cost of reading one more adjacent leaf. Measured at radius 12 to 14 with a
/// million rows.
const QUEUED: f64 = 0.5;

/// Returns the cost of reading one leaf when a whole permutation of `leaves` leaves is read. The
/// unit is the cost of a leaf that a probe with prefixes reads. The result is below 1 because the
/// leaves are adjacent and the search computes no next prefix. Measured from 150 to 15,000 leaves,
/// with keys of 1, 2 and 4 words: 0.4 to 0.6 for permutations that fit into the processor's caches,
/// 0.6 to 0.95 for larger ones.
fn whole_leaf(leaves: f64) -> f64 {
    /// Number of leaves from which a permutation exceeds the processor's caches.
    const MAX_CACHED_LEAVES: f64 = 512.0;
    (0.5 + 0.1 * (leaves / MAX_CACHED_LEAVES).log2()).clamp(0.5, 0.9)
}

/// Maximum number of bits of a prefix that a probe looks up. Longer prefixes would not select fewer
/// entries, because 2^64 prefixes outnumber all entries.
const LONGEST_PREFIX: u32 = 64;

/// Returns the length in bits of the prefix that a search within the guaranteed radius looks up in
/// a permutation.
pub fn probed_bits<const N: usize>(layout: &BlockLayout<N>, permutation: usize) -> u32 {
    layout.leading_bits(permutation).min(LONGEST_PREFIX)
}

/// Probe: lookup of one or more prefixes of keys in one permutation, as part of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe<const N: usize> {
    /// Number of the permutation.
    pub permutation: u16,
    /// Number of leading bits of a key that are looked up, from 0 (reads the whole permutation) to
    /// 64. The scope's word, which may precede these bits, does not count.
    pub bits: u32,
    /// Maximum number of the `bits` leading bits in which an entry may differ from the query.
    pub threshold: u32,
    /// Mask of the fingerprint bits that form the looked-up prefix of the key in this permutation.
    pub mask: Key<N>,
}

impl<const N: usize> Probe<N> {
    /// Creates a probe that looks up prefixes of `bits` bits in a permutation. At most `threshold`
    /// of these bits may differ from the query.
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

    /// Returns whether the probe finds a row. `difference` is the row's fingerprint XOR the query.
    #[inline]
    pub fn finds(&self, difference: &Key<N>) -> bool {
        let mut differing = 0;
        for (bits, mask) in difference.iter().zip(&self.mask) {
            differing += (bits & mask).count_ones();
        }
        differing <= self.threshold
    }
}

/// Returns whether the last of `probes` finds a row that none of the earlier probes finds. Searches
/// call it to return each row only once. `difference` is the row's fingerprint XOR the query.
#[inline]
pub(crate) fn last_finds<const N: usize>(probes: &[Probe<N>], difference: &Key<N>) -> bool {
    probes.split_last().is_some_and(|(last, earlier)| {
        last.finds(difference) && !earlier.iter().any(|probe| probe.finds(difference))
    })
}

/// Plan of a search within one radius: the probes that together find all rows within the radius.
///
/// ```
/// use neardup_blocktree::block_layout::BlockLayout;
/// use neardup_blocktree::plan::Plan;
///
/// // Within the guaranteed radius, the search looks up the leading bits in each of four
/// // permutations.
/// let layout = BlockLayout::<1>::new(3, 4).unwrap();
/// let plan = Plan::new(&layout, 3, 1e6);
/// assert_eq!(plan.probes.len(), 4);
/// assert!(plan.probes.iter().all(|probe| probe.bits == 16 && probe.threshold == 0));
///
/// // Far beyond the guaranteed radius, reading one whole permutation is cheapest.
/// assert!(Plan::new(&layout, 40, 1e6).is_whole());
/// ```
#[derive(Clone, Debug)]
pub struct Plan<const N: usize> {
    /// Maximum distance of the rows to find, in bits.
    pub radius: u32,
    /// Probes of the search, in the order in which it makes them.
    pub probes: Vec<Probe<N>>,
    /// Estimated number of leaves that the search reads, if fingerprints are distributed evenly.
    pub leaves: f64,
    /// Estimated number of runs of adjacent leaves that the search reads. The search finds the
    /// first leaf of each run by a descent from the root, or through the inner page that led to the
    /// previous run.
    pub runs: f64,
    /// Estimated number of runs whose first leaf is found through an inner page, not by a descent.
    pub runs_by_inner_page: f64,
    /// Estimated number of leaves of one permutation.
    pub permutation_leaves: f64,
}

impl<const N: usize> Plan<N> {
    /// Returns the cheapest plan for a search within `radius` bits in an index of `rows` rows. A
    /// radius greater than the number of bits of a fingerprint is reduced to that number: a search
    /// with that radius finds all rows.
    pub fn new(layout: &BlockLayout<N>, radius: u32, rows: f64) -> Self {
        let radius = radius.min(layout.bits());
        let leaves = (rows / leaf::usual_count(N)).max(1.0);
        let whole = Plan {
            radius,
            probes: vec![Probe::new(layout, 0, 0, 0)],
            leaves,
            runs: 1.0,
            runs_by_inner_page: 0.0,
            permutation_leaves: leaves,
        };
        let exact = exact_permutations(layout, radius).map(|permutations| {
            let part = |permutation| {
                CandidateProbe::new(permutation, layout.leading_bits(permutation), Some(0))
            };
            let parts: Vec<CandidateProbe> = permutations.into_iter().map(part).collect();
            Plan::from_parts(layout, radius, leaves, &parts)
        });
        let spread = disjoint_parts(layout).into_iter().map(|parts| {
            let parts = spread(parts, radius, |part| {
                let threshold = part.threshold.map_or(0, |threshold| threshold + 1);
                let raised = CandidateProbe::new(part.permutation, part.bits, Some(threshold));
                (raised, raised.cost::<N>(leaves) - part.cost::<N>(leaves))
            });
            Plan::from_parts(layout, radius, leaves, &parts)
        });
        cheapest(whole, exact.into_iter().chain(spread), Plan::cost)
    }

    /// Returns the estimated cost of the plan. The unit is the cost of reading one more adjacent
    /// leaf.
    pub fn cost(&self) -> f64 {
        self.cost_with(DESCENT)
    }

    /// Returns the estimated cost of the plan, like [`Plan::cost`]. `descent` is the cost of a
    /// descent from the root, in the same unit: the cost of reading one more adjacent leaf.
    pub(crate) fn cost_with(&self, descent: f64) -> f64 {
        let leaves = match self.is_whole() {
            true => self.leaves * whole_leaf(self.permutation_leaves),
            false => self.leaves,
        };
        leaves + descent * (self.runs - self.runs_by_inner_page) + QUEUED * self.runs_by_inner_page
    }

    /// Estimates the number of candidates: entries whose prefix the search looks up. The index has
    /// `rows` rows.
    pub fn candidates(&self, rows: f64) -> f64 {
        let share = |probe: &Probe<N>| {
            let bits = f64::from(probe.bits);
            ball(bits, probe.threshold) / bits.exp2()
        };
        rows * self.probes.iter().map(share).sum::<f64>()
    }

    /// Returns the estimated cost of finding the first leaves of all runs. The unit is the cost of
    /// a descent from the root. A run that is found through an inner page counts as a fraction of a
    /// descent.
    pub fn descents_worth(&self) -> f64 {
        self.runs - self.runs_by_inner_page * (1.0 - QUEUED / DESCENT)
    }

    /// Returns whether the search reads one permutation from start to end.
    pub fn is_whole(&self) -> bool {
        self.probes.iter().any(|probe| probe.bits == 0)
    }

    /// Creates a plan with one probe for each element of `parts` that has a threshold. Elements
    /// without a threshold are ignored. `leaves` is the number of leaves of one permutation, for
    /// the estimates of the plan.
    fn from_parts(
        layout: &BlockLayout<N>,
        radius: u32,
        leaves: f64,
        parts: &[CandidateProbe],
    ) -> Self {
        let mut plan = Plan {
            radius,
            probes: vec![],
            leaves: 0.0,
            runs: 0.0,
            runs_by_inner_page: 0.0,
            permutation_leaves: leaves,
        };
        for part in parts {
            let Some(threshold) = part.threshold else {
                continue;
            };
            let (runs, runs_by_inner_page, read) = part.reads::<N>(leaves);
            plan.probes
                .push(Probe::new(layout, part.permutation, part.bits, threshold));
            plan.runs += runs;
            plan.runs_by_inner_page += runs_by_inner_page;
            plan.leaves += read;
        }
        plan
    }
}

/// Returns the greatest radius, in bits, at which a search in an index of `rows` rows looks up
/// prefixes. A search with a greater radius reads one permutation from start to end. `None` if
/// searches with any radius read a whole permutation, as in an index of few leaves.
pub fn probed_radius<const N: usize>(layout: &BlockLayout<N>, rows: f64) -> Option<u32> {
    (0..=layout.bits())
        .take_while(|&radius| !Plan::new(layout, radius, rows).is_whole())
        .last()
}

/// Probe that a plan may use. It looks up prefixes in one permutation. These prefixes differ from
/// the query's prefix in at most a number of bits, the threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CandidateProbe {
    pub permutation: usize,
    /// Number of leading bits of the prefix.
    pub bits: u32,
    /// Maximum number of leading bits in which a row may differ from the query. `None` if the
    /// permutation is not probed.
    pub threshold: Option<u32>,
}

impl CandidateProbe {
    pub fn new(permutation: usize, bits: u32, threshold: Option<u32>) -> Self {
        CandidateProbe {
            permutation,
            bits,
            threshold,
        }
    }

    /// Estimates the reads of the probe in a permutation of `leaves` leaves. Returns three numbers:
    /// runs of adjacent leaves, runs that are found through the inner page of the previous run, and
    /// leaves.
    fn reads<const N: usize>(&self, leaves: f64) -> (f64, f64, f64) {
        let Some(threshold) = self.threshold else {
            return (0.0, 0.0, 0.0);
        };
        let bits = f64::from(self.bits);
        // Number of leading bits that select a leaf. Prefixes that differ only in later bits are on
        // the same leaf.
        let telling = leaves.log2().min(bits);
        let runs = ball(telling, threshold);
        let inner_pages = leaves / inner::usual_count::<N>();
        (
            runs.min(leaves),
            (runs.min(leaves) - 1.0 - inner_pages).max(0.0),
            (runs * (1.0 + leaves / bits.exp2())).min(leaves),
        )
    }

    /// Estimates the cost of the probe in a permutation of `leaves` leaves.
    fn cost<const N: usize>(&self, leaves: f64) -> f64 {
        let (runs, runs_by_inner_page, read) = self.reads::<N>(leaves);
        cost(read, runs, runs_by_inner_page)
    }
}

/// Returns the cost of finding `runs` runs of adjacent leaves and of reading their leaves, `leaves`
/// in total. The search finds `runs_by_inner_page` of the runs through the inner page of the
/// previous run, and the other runs by a descent from the root. The unit is the cost of reading one
/// more adjacent leaf.
fn cost(leaves: f64, runs: f64, runs_by_inner_page: f64) -> f64 {
    leaves + DESCENT * (runs - runs_by_inner_page) + QUEUED * runs_by_inner_page
}

/// Returns the size of a Hamming ball: the number of words of `bits` bits that differ from a given
/// word in at most `radius` bits. The formula also accepts a fractional number of bits.
pub(crate) fn ball(bits: f64, radius: u32) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for i in 0..radius {
        term *= (bits - f64::from(i)).max(0.0) / f64::from(i + 1);
        sum += term;
    }
    sum.min(bits.exp2())
}

/// Returns the expected distance, in bits, from a query to the nearest of `rows` rows with random
/// fingerprints of `bits` bits. In data with near-duplicates the nearest row is nearer.
pub fn expected_nearest(bits: u32, rows: f64) -> u32 {
    let all = f64::from(bits).exp2();
    (0..bits)
        .find(|&radius| rows * ball(f64::from(bits), radius) >= all)
        .unwrap_or(bits)
}

/// Returns the numbers of a small set of permutations. If a search looks up the query's own prefix
/// in each of them, it finds all rows within `radius` bits. `None` if `radius` exceeds the
/// guaranteed radius.
///
/// Two fingerprints within `radius` bits differ in at most `radius` blocks of the layout. If the
/// prefix of a permutation contains none of these blocks, it is equal in both fingerprints. So the
/// set must have such a permutation for each choice of `radius` blocks. The function chooses the
/// permutations greedily (set cover). If each permutation's prefix is one block, any `radius + 1`
/// permutations are enough, and fewer are not.
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

/// Returns several sets of candidate probes, any one of which a search can use. The probes have no
/// thresholds yet: [`spread`] chooses them. Within a set, each block of the layout is in the prefix
/// of at most one probe. The first set has prefixes of one block, the second set has prefixes of
/// two blocks, and so on. A set also has probes with shorter prefixes, for the blocks that are in
/// none of its other prefixes.
pub(crate) fn disjoint_parts<const N: usize>(layout: &BlockLayout<N>) -> Vec<Vec<CandidateProbe>> {
    let longest = layout.permutations()[0].leading().len();
    (1..=longest)
        .map(|length| {
            let mut free = vec![true; layout.blocks().len()];
            let mut parts = Vec::new();
            // Blocks that are left over, because no permutation starts with `length` free blocks,
            // get shorter prefixes.
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
                        parts.push(CandidateProbe::new(permutation, bits, None));
                    }
                }
            }
            parts
        })
        .collect()
}

/// Chooses the thresholds of `parts` for a search within `radius` bits, and returns the parts with
/// these thresholds. At first no part has a threshold. In each of `radius + 1` steps, one threshold
/// is raised: the one whose raise adds the least to the cost. `raise` returns a part with its
/// threshold raised by one step (from `None` to 0, or by 1), and the cost that this adds.
pub(crate) fn spread<P>(mut parts: Vec<P>, radius: u32, raise: impl Fn(&P) -> (P, f64)) -> Vec<P> {
    for _ in 0..=radius {
        let raised = parts.iter().map(&raise).enumerate();
        if let Some((i, (part, _))) = raised.min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1)) {
            parts[i] = part;
        }
    }
    parts
}

/// Returns the plan with the least cost: `first` or one of `others`. If several plans cost the
/// same, returns the first of them.
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

/// Returns the smallest number that is at least `from` and differs from `center` in at most
/// `threshold` bits. `None` if there is no such number below `2^bits`. `center` and `from` are
/// below `2^bits`.
///
/// A probe uses this to visit all prefixes within its threshold in ascending order, without a list.
///
/// ```
/// use neardup_blocktree::plan::next_within;
///
/// // The numbers of four bits that differ from 0101 in at most one bit.
/// let all = (0..16).filter_map(|from| next_within(0b0101, 4, 1, from));
/// let mut all: Vec<u64> = all.collect();
/// all.dedup();
/// assert_eq!(all, [0b0001, 0b0100, 0b0101, 0b0111, 0b1101]);
/// ```
#[inline]
pub fn next_within(center: u64, bits: u32, threshold: u32, from: u64) -> Option<u64> {
    debug_assert!(bits <= 64);
    let highest = |word: u64| 63 - word.leading_zeros();
    // Bits in which `from` differs from `center`, without the `threshold` highest ones. The lowest
    // bit of the omitted ones is `last_allowed`.
    let (mut surplus, mut last_allowed) = (from ^ center, None);
    for _ in 0..threshold {
        if surplus == 0 {
            break;
        }
        let bit = highest(surplus);
        surplus ^= 1 << bit;
        last_allowed = Some(bit);
    }
    if surplus == 0 {
        return Some(from);
    }
    // The result agrees with `from` above some bit i, and has 1 at bit i, where `from` has 0. Below
    // bit i, it is as small as the remaining number of differing bits allows. The lowest possible i
    // gives the smallest result.
    let over = highest(surplus);
    if from >> over & 1 == 0 {
        // Bit i is this bit, where the result is 1 like `center`. The bits above it already differ
        // in `threshold` bits, so all bits below it must equal those of `center`.
        let below = (1 << over) - 1;
        return Some(from & !below | 1 << over | center & below);
    }
    // Candidates for bit i. Below `last_allowed`, more than `threshold` bits would differ.
    let zeros = !from & u64::MAX >> (64 - bits) & u64::MAX << last_allowed?;
    if zeros == 0 {
        return None;
    }
    let i = zeros.trailing_zeros();
    let (bit, differing) = (1u64 << i, (from ^ center) >> i);
    // At bit i, the result has 1 and `from` has 0, so exactly one of them differs from `center`.
    // Above bit i, both are equal.
    let spent = (differing ^ 1).count_ones();
    let mut low = center & (bit - 1);
    for _ in spent..threshold {
        // Clears the most significant set bit, which reduces the number most.
        if low == 0 {
            break;
        }
        low ^= 1 << highest(low);
    }
    Some(from & !(bit - 1) | bit | low)
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
        // Among 1e6 random rows, 0.94 are expected within 13 bits of a query, and 3.5 within 14
        // bits.
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
        // A search for equal fingerprints needs one probe.
        assert_eq!(Plan::new(&layout, 0, 1e10).probes.len(), 1);
    }
}
