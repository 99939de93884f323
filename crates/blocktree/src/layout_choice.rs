//! Chooses the block layout of an index from the radius of its searches and its number of rows. A
//! block layout states how fingerprints are cut into blocks (groups of bits), and the permutations
//! of these blocks. Within the guaranteed radius of a layout, two fingerprints agree in the leading
//! bits of at least one permutation. If keys have a scope (columns that must be equal in two
//! near-duplicates), their first word is a hash of the scope.

use crate::block_layout::{BlockLayout, max_radius};
use crate::plan::Plan;

/// Minimum number of rows for which a layout is chosen. A smaller index gets the layout for this
/// number of rows, because most tables grow and a layout lasts until the next REINDEX.
pub const MIN_ROWS: f64 = 1e6;

/// Maximum ratio of a layout's search cost to the lowest search cost of all layouts. Among the
/// layouts within this ratio, the one with the fewest permutations is chosen.
const AS_CHEAP: f64 = 1.03;

/// Cost of a descent from the root when layouts are compared, as a multiple of the cost of reading
/// one more adjacent leaf. Query plans assume a higher cost ([`crate::block_layout::DESCENT`]). But
/// a search with many descents finds inner pages in the processor's caches, while the leaves of
/// long runs must be fetched from memory. The value 1.5 agrees best with measurements for 1 and 10
/// million rows of 64 and 128 bits and 1 million rows of 256 bits. With the value 2, the layout
/// chosen for radius 30 at 256 bits makes searches 11 % slower than a layout with half its
/// permutations.
const DESCENT: f64 = 1.5;

/// Returns the cost of a search with the plan `plan`. Layouts are compared by this cost. The unit
/// is the cost of reading one more adjacent leaf.
pub fn search_cost<const N: usize>(plan: &Plan<N>) -> f64 {
    plan.cost_with(DESCENT)
}

/// Returns the maximum number of permutations that [`best_layout`] considers for fingerprints of
/// `bits` bits.
pub fn max_permutations(bits: u32) -> usize {
    match bits {
        0..=64 => 8,
        65..=128 => 14,
        _ => 32,
    }
}

/// Returns the best layout for an index of `rows` rows whose searches have a radius of `radius`
/// bits. An index with fewer than [`MIN_ROWS`] rows counts as one with that number of rows. The
/// best layout is one of those with the lowest search cost, or a cost up to 3 % higher. Among
/// these, it has the fewest permutations, and among equals the largest guaranteed radius. `scope`
/// is true if keys start with a scope's hash.
pub fn best_layout<const N: usize>(scope: bool, radius: u32, rows: f64) -> BlockLayout<N> {
    let bits = 64 * (N - usize::from(scope)) as u32;
    let rows = rows.max(MIN_ROWS);
    let all: Vec<(BlockLayout<N>, f64)> = candidates(scope, bits)
        .map(|layout| {
            let cost = search_cost(&Plan::new(&layout, radius, rows));
            (layout, cost)
        })
        .collect();
    let least = all
        .iter()
        .map(|(_, cost)| *cost)
        .fold(f64::INFINITY, f64::min);
    let cheap = all
        .into_iter()
        .filter(|(_, cost)| *cost <= least * AS_CHEAP);
    cheap
        .map(|(layout, _)| layout)
        .min_by_key(|layout| (layout.permutations().len(), u32::MAX - layout.radius()))
        .expect("one block is a layout of any width")
}

/// Returns all layouts for fingerprints of `bits` bits that have at most [`max_permutations`]
/// permutations. `scope` is true if keys start with a scope's hash.
fn candidates<const N: usize>(scope: bool, bits: u32) -> impl Iterator<Item = BlockLayout<N>> {
    let most = max_permutations(bits);
    let pairs = (0..=max_radius(bits)).flat_map(move |radius| {
        // At radius 0, each number of blocks gives one permutation, so one number of blocks is
        // enough.
        let blocks = if radius == 0 {
            1..=1
        } else {
            radius + 1..=most as u32
        };
        blocks.map(move |blocks| (radius, blocks))
    });
    pairs
        .filter_map(move |(radius, blocks)| BlockLayout::for_index(scope, radius, blocks).ok())
        .filter(move |layout| layout.permutations().len() <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the guaranteed radius and the number of blocks of the best layout.
    fn chosen<const N: usize>(radius: u32, rows: f64) -> (u32, usize) {
        let layout = best_layout::<N>(false, radius, rows);
        (layout.radius(), layout.blocks().len())
    }

    #[test]
    fn known_layouts() {
        assert_eq!(
            [0, 3, 6].map(|radius| chosen::<1>(radius, 1e6)),
            [(0, 1), (3, 4), (6, 7)]
        );
        assert_eq!(chosen::<2>(12, 1e6), (12, 13));
        // With a radius of the full width every row matches, so a second permutation is useless.
        assert_eq!(chosen::<1>(64, 1e9), (0, 1));
        assert_eq!(chosen::<4>(256, 1e9), (0, 1));
    }

    #[test]
    fn small_tables_have_the_layout_of_a_million_rows() {
        for radius in 0..=16 {
            for rows in [0.0, 1.0, 1e5, 999_999.0] {
                assert_eq!(chosen::<1>(radius, rows), chosen::<1>(radius, 1e6));
            }
        }
    }

    fn is_the_best<const N: usize>(scope: bool, radius: u32, rows: f64) {
        let layout = best_layout::<N>(scope, radius, rows);
        assert_eq!(layout.scope_words(), usize::from(scope));
        let rows = rows.max(MIN_ROWS);
        let cost = |layout: &BlockLayout<N>| search_cost(&Plan::new(layout, radius, rows));
        let bits = 64 * (N - usize::from(scope)) as u32;
        for other in candidates(scope, bits) {
            assert!(cost(&layout) <= cost(&other) * AS_CHEAP);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn no_layout_has_much_cheaper_searches(
            radius in 0..=300u32, rows in 0.0..11.0f64, scope: bool,
        ) {
            let rows = 10f64.powf(rows);
            is_the_best::<1>(false, radius, rows);
            is_the_best::<2>(scope, radius, rows);
            is_the_best::<4>(false, radius, rows);
            is_the_best::<5>(true, radius, rows);
        }
    }
}
