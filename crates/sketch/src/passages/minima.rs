//! Finds the minimum of each window of a sequence of hashes, and returns the set of these minima. A
//! window is a fixed number of consecutive hashes.

use crate::feature_list::sort;
use crate::memory::GrowVec;

/// Value by which the caller replaces the hash of a feature to leave out, such as a common feature.
/// It is the greatest value, so it is the minimum of a window only if the window has no other
/// hashes. Such a minimum is dropped.
pub(super) const LEFT_OUT: u64 = u64::MAX;
/// Number of minima in [`WindowMinima::found`] at which duplicates are removed for the first time.
const MERGE_AT: usize = 1 << 16;
/// Maximum number of elements of [`WindowMinima::changes`] that are kept between texts. The memory
/// of further elements is freed.
const KEPT: usize = 1 << 15;

/// Finds the minimum hash of each window of a sequence. Keeps its buffers between sequences.
///
/// The sequence is cut into blocks of the length of a window. A window is a suffix of a block and a
/// prefix of the next block, so its minimum is the lesser of the minima of these two parts (van
/// Herk, "A fast algorithm for local minimum and maximum filters", Pattern Recognition Letters 13,
/// 1992). So each hash takes three comparisons, whatever the hashes are.
#[derive(Default)]
pub(crate) struct WindowMinima {
    /// Hashes of the current block; the first `filled` elements are set. The vector is as long as a
    /// window.
    block: Vec<u64>,
    /// For each position of the previous block, the minimum from this position to the end of the
    /// block. An additional last element is [`LEFT_OUT`], the minimum of no hashes.
    suffixes: Vec<u64>,
    /// Number of hashes in the current block.
    filled: usize,
    /// Minimum of the hashes in the current block.
    prefix: u64,
    /// True once a block of the sequence was full, so that there are whole windows.
    any_full: bool,
    /// Minimum of the latest whole window.
    last: u64,
    /// Working memory of one call of [`WindowMinima::add`]: the minimum of each window, unless it
    /// equals the minimum of the preceding window.
    changes: Vec<u64>,
    /// Minima of all windows so far, with some duplicates until the next merge.
    found: Vec<u64>,
    /// Length of `found` at which duplicates are removed the next time.
    merge_at: usize,
}

impl WindowMinima {
    /// Starts a new sequence, with windows of `window` hashes.
    pub fn reset(&mut self, window: usize) {
        assert!(window > 0, "a window has at least one hash");
        self.block.clear();
        self.block.grow_to(window, LEFT_OUT);
        self.suffixes.clear();
        self.suffixes.grow_to(window + 1, LEFT_OUT);
        self.changes.truncate(KEPT);
        self.changes.shrink_to(KEPT);
        self.found.clear();
        (self.filled, self.prefix, self.last) = (0, LEFT_OUT, LEFT_OUT);
        (self.any_full, self.merge_at) = (false, MERGE_AT);
    }

    /// Adds the next hashes of the sequence. Calls the cancellation check `check` while it removes
    /// duplicates.
    pub fn add(&mut self, hashes: &[[u64; 1]], check: &mut dyn FnMut()) {
        if self.changes.len() < hashes.len() {
            self.changes.grow_to(hashes.len(), 0);
        }
        let (mut rest, mut changes) = (hashes, 0);
        while !rest.is_empty() {
            let (now, after) = rest.split_at(rest.len().min(self.block.len() - self.filled));
            changes += self.add_to_block(now, changes);
            if self.filled == self.block.len() {
                changes += self.end_block(changes);
            }
            rest = after;
        }
        self.found.grow_by(&self.changes[..changes]);
        if self.found.len() >= self.merge_at {
            self.merge(check);
            self.merge_at = MERGE_AT.max(2 * self.found.len());
        }
    }

    /// Adds hashes that fit into the current block. Except in the first block, each hash ends a
    /// window. If the minimum of this window differs from that of the preceding window, writes it
    /// to `changes`, from index `from` on. Returns the number of minima written.
    #[inline]
    fn add_to_block(&mut self, hashes: &[[u64; 1]], from: usize) -> usize {
        let end = self.filled + hashes.len();
        let block = &mut self.block[self.filled..end];
        for (slot, &[hash]) in block.iter_mut().zip(hashes) {
            *slot = hash;
        }
        let suffixes = &self.suffixes[self.filled + 1..=end];
        self.filled = end;
        if !self.any_full {
            self.prefix = hashes
                .iter()
                .fold(self.prefix, |least, [hash]| least.min(*hash));
            return 0;
        }
        let changes = &mut self.changes[from..from + hashes.len()];
        let (mut prefix, mut last, mut count) = (self.prefix, self.last, 0);
        for (&[hash], &suffix) in hashes.iter().zip(suffixes) {
            prefix = prefix.min(hash);
            let minimum = prefix.min(suffix);
            // Each minimum is written, but counted only if it is new: a branch would be hard to
            // predict.
            changes[count] = minimum;
            count += usize::from(minimum != last);
            last = minimum;
        }
        (self.prefix, self.last) = (prefix, last);
        count
    }

    /// Makes the full current block the previous one. The first block is also the first window, so
    /// its minimum is written to `changes` at index `from`. Returns the number of minima written.
    #[inline]
    fn end_block(&mut self, from: usize) -> usize {
        let mut least = LEFT_OUT;
        let suffixes = &mut self.suffixes[..self.block.len()];
        for (suffix, &hash) in suffixes.iter_mut().zip(&self.block).rev() {
            least = least.min(hash);
            *suffix = least;
        }
        let first = !self.any_full;
        if first {
            self.last = self.prefix;
            self.changes[from] = self.prefix;
        }
        (self.any_full, self.filled, self.prefix) = (true, 0, LEFT_OUT);
        usize::from(first)
    }

    /// Sorts `found` and removes duplicates.
    fn merge(&mut self, check: &mut dyn FnMut()) {
        // Sorts in the order of SQL's bigint.
        sort(&mut self.found, |a, b| (*a as i64).cmp(&(*b as i64)), check);
        self.found.dedup();
    }

    /// Ends the sequence. Returns the distinct minima of all windows, in ascending order as signed
    /// numbers. A sequence shorter than a window has one minimum, that of all its hashes. Windows
    /// in which all hashes are [`LEFT_OUT`] have none.
    pub fn finish(&mut self, check: &mut dyn FnMut()) -> Vec<u64> {
        if !self.any_full && self.filled > 0 {
            self.found.grow_push(self.prefix);
        }
        self.merge(check);
        if let Ok(at) =
            (self.found).binary_search_by(|found| (*found as i64).cmp(&(LEFT_OUT as i64)))
        {
            self.found.remove(at);
        }
        std::mem::take(&mut self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Reference implementation: the set of minima by its definition.
    fn defined(hashes: &[u64], window: usize) -> BTreeSet<i64> {
        let whole = hashes.chunks(hashes.len().max(1));
        let all: Vec<&[u64]> = match hashes.len() < window {
            true => whole.collect(),
            false => hashes.windows(window).collect(),
        };
        (all.iter())
            .filter_map(|window| window.iter().min().copied())
            .filter(|&least| least != LEFT_OUT)
            .map(|least| least as i64)
            .collect()
    }

    fn found(minima: &mut WindowMinima, hashes: &[u64], window: usize, cut: usize) -> Vec<i64> {
        minima.reset(window);
        let hashes: Vec<[u64; 1]> = hashes.iter().map(|&hash| [hash]).collect();
        for part in hashes.chunks(cut) {
            minima.add(part, &mut || ());
        }
        let found = minima.finish(&mut || ());
        found.into_iter().map(|hash| hash as i64).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn equals_the_definition(
            hashes in prop::collection::vec(
                prop_oneof![any::<u64>(), 0_u64..4, Just(LEFT_OUT)], 0..200),
            window in 1_usize..40,
            cut in 1_usize..50,
        ) {
            let mut minima = WindowMinima::default();
            // An earlier sequence, which reset() must forget.
            found(&mut minima, &[3, 1, 2], 2, 1);
            let expected: Vec<i64> = defined(&hashes, window).into_iter().collect();
            prop_assert_eq!(found(&mut minima, &hashes, window, cut), expected);
        }
    }

    #[test]
    fn many_minima_are_merged() {
        let mut minima = WindowMinima::default();
        minima.reset(1);
        for n in 0..40_u64 {
            let part: Vec<[u64; 1]> = (0..10_000).map(|m| [(m + n) % 10_007]).collect();
            minima.add(&part, &mut || ());
            assert!(minima.found.len() < MERGE_AT);
        }
        assert_eq!(minima.finish(&mut || ()).len(), 10_007);
    }

    /// Winnowing chooses a share of 2 / (w + 1) of random hashes.
    #[test]
    fn density_is_that_of_winnowing() {
        let mut state = 7_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state ^ state >> 29
        };
        let hashes: Vec<u64> = (0..200_000).map(|_| random()).collect();
        let found = found(&mut WindowMinima::default(), &hashes, 17, 1000);
        let expected = 200_000 * 2 / 18;
        assert!(
            found.len().abs_diff(expected) < expected / 20,
            "{}",
            found.len()
        );
    }
}
