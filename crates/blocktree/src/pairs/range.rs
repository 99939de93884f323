//! Ranges of permutations (ordered copies of all keys in the index), by which several processes
//! share a search for pairs.
//!
//! A pair belongs to the pass that returns it. Within this pass, the pair belongs to the range that
//! contains its lower entry. So processes can search ranges in any order and at the same time
//! without communication, and each pair is returned once.

use super::PairPlan;
use crate::key::{EntryKey, Key, Tid};
use crate::page::Result;
use crate::store::ReadPages;
use crate::tree::Tree;

/// Range of the entries of a permutation, which one process searches for pairs as a part of a pass.
/// A pass is the search of one permutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairRange<const N: usize> {
    /// Position in the plan of the pass to which the range belongs, from 0.
    pub pass: usize,
    /// Start of the range (inclusive). It also determines the permutation.
    pub from: EntryKey<N>,
    /// End of the range (exclusive). `None` for the last range of a permutation.
    pub to: Option<EntryKey<N>>,
}

impl<const N: usize> PairRange<N> {
    /// Number of words that [`PairRange::to_words`] returns.
    pub const WORDS: usize = 2 + 2 * (N + 1);

    /// Serializes the range as [`PairRange::WORDS`] words, to pass it to another process.
    pub fn to_words(&self) -> impl Iterator<Item = u64> {
        let words_of =
            |entry_key: EntryKey<N>| std::iter::once(entry_key.tid.packed()).chain(entry_key.key);
        let head = [
            self.pass as u64,
            u64::from(self.from.permutation) << 1 | u64::from(self.to.is_some()),
        ];
        let to = self.to.unwrap_or(self.from);
        (head.into_iter())
            .chain(words_of(self.from))
            .chain(words_of(to))
    }

    /// Restores a range from the words of [`PairRange::to_words`].
    ///
    /// # Panics
    /// If the number of words is not [`PairRange::WORDS`].
    pub fn from_words(words: &[u64]) -> Self {
        assert_eq!(words.len(), Self::WORDS);
        let (head, keys) = words.split_at(2);
        let entry_key = |words: &[u64]| {
            let mut key: Key<N> = [0; N];
            key.copy_from_slice(&words[1..]);
            EntryKey::new((head[1] >> 1) as u16, key, Tid::from_packed(words[0]))
        };
        let (from, to) = keys.split_at(N + 1);
        PairRange {
            pass: head[0] as usize,
            from: entry_key(from),
            to: (head[1] & 1 != 0).then(|| entry_key(to)),
        }
    }
}

impl<const N: usize> PairPlan<N> {
    /// Divides the permutation of each pass into ranges with about the same number of leaves.
    /// Returns the ranges in the order of passes. A pass has up to `most` ranges. If the pass
    /// compares neighbouring groups, the search of a range also reads leaves to the right of the
    /// range. With more ranges, more leaves are read repeatedly, so such a pass has only up to
    /// `most / 4` ranges.
    pub fn ranges<S: ReadPages>(
        &self,
        tree: &Tree<'_, S, N>,
        most: usize,
    ) -> Result<Vec<PairRange<N>>> {
        let permutations = self
            .passes
            .iter()
            .map(|probe| usize::from(probe.permutation) + 1);
        let borders = borders(tree, permutations.max().unwrap_or(0), most)?;
        let mut ranges = Vec::new();
        for (pass, probe) in self.passes.iter().enumerate() {
            let borders = &borders[usize::from(probe.permutation)];
            let leaves = borders.len() + 1;
            let most = if probe.threshold > 0 { most / 4 } else { most };
            let count = most.clamp(1, leaves);
            let mut from = EntryKey::start_of(probe.permutation);
            for n in 1..=count {
                let to = (n < count).then(|| borders[n * leaves / count - 1]);
                ranges.push(PairRange { pass, from, to });
                from = to.unwrap_or(from);
            }
        }
        Ok(ranges)
    }
}

/// Returns the borders at which permutations can be divided. The result has a sorted list of
/// borders for each of the first `permutations` permutations, at the index of the permutation's
/// number. A border is an entry key at which a page of the tree ends. All these pages are on one
/// level: the highest level that gives at least `enough` borders in each permutation. If no level
/// gives enough, it is the level of the leaves.
fn borders<S: ReadPages, const N: usize>(
    tree: &Tree<'_, S, N>,
    permutations: usize,
    enough: usize,
) -> Result<Vec<Vec<EntryKey<N>>>> {
    let mut level = tree.root().level;
    loop {
        let mut borders = vec![Vec::new(); permutations];
        tree.each_inner_page(level, |page| {
            // The first separator of an inner page counts as the lowest key, whatever its value.
            for (separator, _) in page.entries().skip(1) {
                let of_permutation = borders.get_mut(usize::from(separator.permutation));
                if let Some(of_permutation) = of_permutation
                    && separator > EntryKey::start_of(separator.permutation)
                {
                    of_permutation.push(separator);
                }
            }
            Ok(())
        })?;
        if level <= 1
            || borders
                .iter()
                .all(|of_permutation| of_permutation.len() >= enough)
        {
            for of_permutation in &mut borders {
                // A page that is merged during the scan may be visited twice.
                of_permutation.sort_unstable();
                of_permutation.dedup();
            }
            return Ok(borders);
        }
        level -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_keep_a_range(
            pass in 0..99usize, permutation: u16, keys: [[u64; 3]; 2], tids: [(u32, u16); 2],
            last: bool,
        ) {
            let [from, to] = [0, 1].map(|i| {
                EntryKey::new(permutation, keys[i], Tid::new(tids[i].0, tids[i].1))
            });
            let range = PairRange { pass, from, to: (!last).then_some(to) };
            let words: Vec<u64> = range.to_words().collect();
            prop_assert_eq!(PairRange::from_words(&words), range);
        }
    }
}
