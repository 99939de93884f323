//! Checks of the structure of a tree, for `neardup_index_check` and for tests. A tree has one part
//! for each permutation (ordered copy of all keys). An entry of an inner page has a separator, the
//! lowest entry key that belongs on a page of the level below, and a downlink, the block of that
//! page.

use crate::block_layout::BlockLayout;
use crate::inner::Inner;
use crate::key::{Block, EntryKey, Key, Tid, mix};
use crate::leaf::{Leaf, WIDER_RANGE};
use crate::level_cursor::LevelCursor;
use crate::meta::{FREE_LISTS, FreeList, MetaView};
use crate::page::{Kind, PageView, Result, corrupt};
use crate::sets;
use crate::store::{PageGuard, ReadPages};
use crate::tree::Tree;

/// Numbers of pages, entries and rows that a check of a tree has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStats {
    /// Number of leaves of all permutations (ordered copies of all keys).
    pub leaves: u64,
    /// Number of inner pages.
    pub inner_pages: u64,
    /// Number of entries of all permutations.
    pub entries: u64,
    /// Number of rows with a fingerprint, which is the number of entries of the first permutation.
    pub rows: u64,
    /// Number of rows without a fingerprint (NULL).
    pub null_rows: u64,
    /// True if all permutations contain the same rows, or the elements of these rows. It may be
    /// false in an intact tree: after a crash during an insert, only some permutations may have the
    /// row of the aborted transaction, until a vacuum removes it.
    pub permutations_agree: bool,
}

impl CheckStats {
    /// Counts an entry of the permutation with the number `permutation`.
    fn count<const N: usize>(&mut self, permutation: u16, layout: &BlockLayout<N>) {
        self.entries += 1;
        match permutation {
            0 => self.rows += 1,
            _ if permutation == layout.null_permutation() => self.null_rows += 1,
            _ => (),
        }
    }
}

/// Checksum of rows that does not depend on their order. Permutations with different rows have
/// different checksums, except by a very unlikely collision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RowSum {
    count: u64,
    sum: u64,
}

impl RowSum {
    fn add<const N: usize>(&mut self, fingerprint: &Key<N>, tid: Tid) {
        let seed = mix(tid.packed().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let hash = fingerprint
            .iter()
            .fold(seed, |hash, &word| mix(hash ^ word.wrapping_mul(3)));
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash);
    }

    /// Adds an entry of an index over sets to the checksum. Such an index has a permutation with an
    /// entry for each row, and a permutation with an entry for each element of each row. `elements`
    /// is the sum of the hashes of the row's elements, or the hash of the one element
    /// ([`sets::sum_contribution`]). So the entries of both permutations add up to the same
    /// checksum. Of `key`, only the scope's word is used, if there is one.
    fn add_elements<const N: usize>(&mut self, key: &Key<N>, elements: u64, tid: Tid) {
        let mut hash = mix(tid.packed().wrapping_add(0x9e37_79b9_7f4a_7c15));
        for word in &key[..N - sets::WORDS] {
            hash = mix(hash ^ word.wrapping_mul(3));
        }
        self.sum = (self.sum).wrapping_add((hash | 1).wrapping_mul(elements));
    }
}

impl<S: ReadPages, const N: usize> Tree<'_, S, N> {
    /// Checks that links, levels, separators and high keys agree, and that each entry is in the
    /// range of its page. The index must not be changed meanwhile. Calls `row` with the
    /// permutation, the row address and the unpermuted key of each entry, permutation by
    /// permutation.
    pub fn check(
        &self,
        layout: &BlockLayout<N>,
        mut row: impl FnMut(u16, Tid, &Key<N>),
    ) -> Result<CheckStats> {
        let mut stats = CheckStats::default();
        let root = self.refresh_root()?;
        // Separators and downlinks of the level above. Above the root, a single downlink to the
        // root.
        let mut above: Vec<(EntryKey<N>, Block)> = vec![(EntryKey::start_of(0), root.block)];
        for level in (1..=root.level).rev() {
            stats.inner_pages += above.len() as u64;
            above = self.check_inner_level(level, &above, layout)?;
        }
        self.check_free_lists()?;
        let mut index = 0;
        let mut sums = vec![RowSum::default(); layout.permutations().len()];
        for permutation in 0..=layout.null_permutation() {
            let mut cursor = LevelCursor::<N>::new(permutation);
            while let Some((leaf, _)) = cursor.step(self, |block| self.store.read(block))? {
                self.store.check_interrupts();
                let block = leaf.block();
                let wrong = |what| corrupt(block, what);
                let Some(&(low, expected)) = above.get(index) else {
                    return wrong("leaf without a downlink");
                };
                if expected != block || leaf.low_key() != low || low.permutation != permutation {
                    return wrong("leaf is not where its downlink says");
                }
                if leaf.right_link() != above.get(index + 1).map(|&(_, block)| block) {
                    return wrong("right link and next downlink differ");
                }
                let high = leaf.high_key();
                if high != above.get(index + 1).map(|&(next, _)| next) {
                    return wrong("high key and next separator differ");
                }
                index += 1;
                stats.leaves += 1;
                for (tid, key) in checked_entries(&leaf, layout, low)? {
                    stats.count(permutation, layout);
                    if let Some(sum) = sums.get_mut(usize::from(permutation)) {
                        match layout.has_elements() {
                            false => sum.add(&key, tid),
                            true => sum.add_elements(
                                &key,
                                sets::sum_contribution(permutation, &key),
                                tid,
                            ),
                        }
                    }
                    row(permutation, tid, &key);
                }
            }
        }
        if index != above.len() {
            return corrupt(above[index].1, "leaf that no cursor reaches");
        }
        stats.permutations_agree = sums.iter().all(|sum| sum == &sums[0]);
        Ok(stats)
    }

    /// Checks each page separately, level by level from left to right, while other processes may
    /// change the index. Calls `row` for each entry, like [`Tree::check`]. It may miss entries that
    /// are added, moved or removed meanwhile. A row address that is reused meanwhile may occur with
    /// two keys.
    pub fn check_shared(
        &self,
        layout: &BlockLayout<N>,
        mut row: impl FnMut(u16, Tid, &Key<N>),
    ) -> Result<CheckStats> {
        let mut stats = CheckStats::default();
        for level in (1..=self.refresh_root()?.level).rev() {
            self.each_inner_page(level, |page| {
                stats.inner_pages += 1;
                match misplaced_separator(&page, layout) {
                    Some(wrong) => corrupt(page.block(), wrong),
                    None => Ok(()),
                }
            })?;
        }
        for permutation in 0..=layout.null_permutation() {
            let mut cursor = LevelCursor::<N>::new(permutation);
            while let Some((leaf, from)) = cursor.step(self, |block| self.store.read(block))? {
                stats.leaves += 1;
                let entries = checked_entries(&leaf, layout, from)?;
                drop(leaf);
                for (tid, key) in &entries {
                    stats.count(permutation, layout);
                    row(permutation, *tid, key);
                }
                self.store.check_interrupts();
            }
        }
        Ok(stats)
    }

    /// Checks the inner pages of the level `level`. `above` has the separators and downlinks on the
    /// level above, which the pages must match. Returns the separators and downlinks on the checked
    /// pages, by which the caller checks the level below.
    fn check_inner_level(
        &self,
        level: u16,
        above: &[(EntryKey<N>, Block)],
        layout: &BlockLayout<N>,
    ) -> Result<Vec<(EntryKey<N>, Block)>> {
        let mut below = Vec::new();
        for (i, &(low, block)) in above.iter().enumerate() {
            self.store.check_interrupts();
            let page = self.read_inner(block, level)?;
            let wrong = |what| corrupt(block, what);
            let next = above.get(i + 1);
            if page.right_link() != next.map(|&(_, block)| block) {
                return wrong("right link and next downlink differ");
            }
            let high = page.high_key();
            if high != next.map(|&(separator, _)| separator) {
                return wrong("high key and next separator differ");
            }
            if page.separator(0) != low || page.low_key() != low {
                return wrong("first separator and downlink differ");
            }
            if let Some(what) = misplaced_separator(&page, layout) {
                return wrong(what);
            }
            below.extend(page.entries());
        }
        Ok(below)
    }

    /// Checks that the free list of each level contains only free pages of this level, and as many
    /// as the meta page states.
    fn check_free_lists(&self) -> Result<()> {
        for level in 0..FREE_LISTS as u16 {
            let FreeList { first, count } = MetaView::new(self.store.read(0)).free_list(level);
            let mut next = first;
            for _ in 0..count {
                self.store.check_interrupts();
                let Some(block) = next else { break };
                let page = PageView::<_, N>::new(self.store.read(block));
                page.check_header(block, Kind::Free)?;
                if page.level() != level {
                    return corrupt(block, "free page of another level");
                }
                next = page.right_link();
            }
            let ends = first.is_none() == (count == 0) && next.is_none();
            if !ends {
                return corrupt(0, "number of free pages is wrong");
            }
        }
        Ok(())
    }
}

/// Returns a description of the defect if the separators of an inner page are out of order or
/// outside the page's range. Otherwise returns `None`.
fn misplaced_separator<P: PageGuard, const N: usize>(
    page: &Inner<P, N>,
    layout: &BlockLayout<N>,
) -> Option<&'static str> {
    let separators: Vec<_> = page.entries().map(|(separator, _)| separator).collect();
    if !separators.is_sorted_by(|a, b| a < b) {
        return Some("separators out of order");
    }
    let (first, last) = (separators.first()?, separators.last()?);
    let in_range = *first == page.low_key()
        && page.high_key().is_none_or(|high| *last < high)
        && last.permutation <= layout.null_permutation();
    (!in_range).then_some("separator out of its page's range")
}

/// Returns the row address and the unpermuted key of each entry of a leaf, except for entries
/// before the entry key `from`. Returns an error if the leaf is defective: its keys are out of
/// order, an entry is outside the leaf's range, or a row without a fingerprint has a key.
fn checked_entries<P: PageGuard, const N: usize>(
    leaf: &Leaf<P, N>,
    layout: &BlockLayout<N>,
    from: EntryKey<N>,
) -> Result<Vec<(Tid, Key<N>)>> {
    let (low, high) = (leaf.low_key(), leaf.high_key());
    let permutation = layout.permutations().get(usize::from(low.permutation));
    if !leaf.covers_its_range() {
        return corrupt(leaf.block(), WIDER_RANGE);
    }
    let keys = leaf.keys();
    if !(1..leaf.sorted()).all(|index| keys.get(index - 1) <= keys.get(index)) {
        return corrupt(leaf.block(), "keys out of order");
    }
    let mut entries = Vec::new();
    for entry_key in leaf.entries() {
        if entry_key < low || high.is_some_and(|high| entry_key >= high) {
            return corrupt(leaf.block(), "entry out of its page's range");
        }
        let key = match permutation {
            Some(permutation) => permutation.restore(&entry_key.key),
            None => entry_key.key,
        };
        if permutation.is_none() && key[layout.scope_words()..].iter().any(|&word| word != 0) {
            return corrupt(leaf.block(), "row without a fingerprint that has a key");
        }
        if entry_key >= from {
            entries.push((entry_key.tid, key));
        }
    }
    Ok(entries)
}
