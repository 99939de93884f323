//! Inner pages of the tree: sorted entries, each with a separator and the block of a child page. A
//! separator is the lowest entry key that belongs on the child page. An entry key consists of the
//! number of a permutation (ordered copy of all keys in the index), a key and a row address.
//!
//! The keys of the separators are an array that grows up from the page header. The remaining fields
//! of each entry (child, permutation, row address) are an array that grows down from the end.
//! Searches treat the first separator of a page as lower than every entry key.

use crate::key::{Block, EntryKey, Key, Tid, key_at, put_key, word_at};
use crate::page::{self, Entries, HEADER, Kind, Page, PageView, Sizes};
use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};

/// Returns the maximum number of entries of an inner page with keys of `N` words.
pub const fn capacity<const N: usize>() -> usize {
    page::capacity(N, 8 * N + REST)
}

/// Returns the typical number of entries of an inner page, in an index that was built with the
/// default fill factor.
pub const fn usual_count<const N: usize>() -> f64 {
    0.9 * capacity::<N>() as f64
}

/// Size in bytes of the fields of an entry other than its separator's key: child block, permutation
/// and row address.
const REST: usize = 4 + 2 + Tid::SIZE;

/// Marker type by which a [`PageView`] is the view of an inner page.
#[derive(Clone, Copy, Debug)]
pub struct InnerEntries;

impl Entries for InnerEntries {
    const KIND: Kind = Kind::Inner;

    #[inline]
    fn sizes<const N: usize>(_: &Page) -> Option<Sizes> {
        Some(Sizes {
            key: 8 * N,
            rest: REST,
        })
    }
}

/// View of an inner page whose header has been checked. `P` is a reference to the page, or the
/// guard of a locked page.
pub type Inner<P, const N: usize> = PageView<P, N, InnerEntries>;

/// View of an inner page for reading.
pub type InnerRef<'a, const N: usize> = Inner<&'a Page, N>;
/// View of an inner page for changing it.
pub type InnerMut<'a, const N: usize> = Inner<&'a mut Page, N>;

impl<P, const N: usize> Inner<P, N> {
    /// Returns the offset on the page of the key of entry `i`.
    const fn key_start(i: usize) -> usize {
        HEADER + 8 * N * i
    }

    /// Returns the offset on the page of the fields of entry `i` other than its key: child block,
    /// permutation and row address.
    const fn rest_start(i: usize) -> usize {
        Self::END - REST * (i + 1)
    }
}

impl<P: Deref<Target = Page>, const N: usize> Inner<P, N> {
    #[inline]
    fn key(&self, i: usize) -> Key<N> {
        key_at(&*self.page, Self::key_start(i))
    }

    #[inline]
    fn separator_permutation(&self, i: usize) -> u16 {
        page::u16_at(&self.page, Self::rest_start(i) + 4)
    }

    /// Returns the separator of entry `i`.
    #[inline]
    pub fn separator(&self, i: usize) -> EntryKey<N> {
        let tid = page::tid_at(&self.page, Self::rest_start(i) + 6);
        EntryKey::new(self.separator_permutation(i), self.key(i), tid)
    }

    /// Returns the block of the child page of entry `i`.
    #[inline]
    pub fn child(&self, i: usize) -> Block {
        page::u32_at(&self.page, Self::rest_start(i))
    }

    /// Returns the separators and the child blocks of all entries.
    pub fn entries(&self) -> impl Iterator<Item = (EntryKey<N>, Block)> {
        (0..self.count()).map(|i| (self.separator(i), self.child(i)))
    }

    /// Returns the index of the last entry whose separator is not above an entry key. The child
    /// page of that entry covers the entry key. Entry 0 always qualifies, because its separator
    /// counts as lower than every entry key.
    #[inline]
    pub fn search(&self, entry_key: &EntryKey<N>) -> usize {
        self.search_from(0, entry_key)
    }

    /// Like [`Inner::search`], but searches only the entries from index `low` on. The separator of
    /// entry `low` must not be above the entry key.
    #[inline]
    pub(crate) fn search_from(&self, mut low: usize, entry_key: &EntryKey<N>) -> usize {
        let mut high = self.count();
        // The permutation and the first key word nearly always decide the comparison. The fields
        // other than the key are elsewhere on the page, so they are read only if the first words
        // are equal. Permutations are also read if the page has entries of several permutations.
        let word = entry_key.key[0];
        let one_permutation = high > 1
            && self.separator_permutation(low.max(1)) == entry_key.permutation
            && self.separator_permutation(high - 1) == entry_key.permutation;
        if one_permutation {
            low = self.last_below(low, high, word);
            if low + 1 == high || self.first_word(low + 1) > word {
                return low;
            }
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            let order = (self
                .separator_permutation(middle)
                .cmp(&entry_key.permutation))
            .then_with(|| self.first_word(middle).cmp(&word));
            let above = match order {
                Ordering::Equal => self.separator(middle) > *entry_key,
                order => order == Ordering::Greater,
            };
            if above { high = middle } else { low = middle }
        }
        low
    }

    /// Returns the index of the last entry in `low..high` whose separator's first key word is below
    /// `word`. Returns `low`, without checking entry `low`, if no later separator qualifies. The
    /// separators after `low` must all have the same permutation.
    #[inline]
    fn last_below(&self, mut low: usize, high: usize, word: u64) -> usize {
        // Both halves are equally likely, so a conditional move takes less time than a mispredicted
        // jump.
        let mut length = high - low;
        while length > 1 {
            let half = length / 2;
            let is_below = self.first_word(low + half) < word;
            low = core::hint::select_unpredictable(is_below, low + half, low);
            length -= half;
        }
        low
    }

    #[inline]
    fn first_word(&self, i: usize) -> u64 {
        word_at(&*self.page, Self::key_start(i))
    }

    /// Returns the block of the child page that covers an entry key.
    #[inline]
    pub fn child_of(&self, entry_key: &EntryKey<N>) -> Block {
        self.child(self.search(entry_key))
    }
}

impl<P: DerefMut<Target = Page>, const N: usize> Inner<P, N> {
    /// Changes the child block of entry `i`.
    pub(crate) fn set_child(&mut self, i: usize, child: Block) {
        page::put_u32(&mut self.page, Self::rest_start(i), child);
    }

    /// Appends an entry. The page must have room for it.
    pub(crate) fn push(&mut self, separator: &EntryKey<N>, child: Block) {
        self.insert(self.count(), separator, child);
    }

    /// Inserts an entry before entry `i`. The page must have room for it.
    pub(crate) fn insert(&mut self, i: usize, separator: &EntryKey<N>, child: Block) {
        let count = self.count();
        debug_assert!(i <= count && count < capacity::<N>());
        let page = &mut *self.page;
        page.copy_within(
            Self::key_start(i)..Self::key_start(count),
            Self::key_start(i + 1),
        );
        if i < count {
            let end = Self::rest_start(i) + REST;
            page.copy_within(Self::rest_start(count - 1)..end, Self::rest_start(count));
        }
        let link = Self::rest_start(i);
        page::put_u32(page, link, child);
        page::put_u16(page, link + 4, separator.permutation);
        page::put_tid(page, link + 6, separator.tid);
        put_key(page, Self::key_start(i), &separator.key);
        self.set_count(count + 1);
    }

    /// Removes entry `i`, which must not be the first entry.
    pub(crate) fn remove(&mut self, i: usize) {
        let count = self.count();
        debug_assert!(0 < i && i < count);
        let page = &mut *self.page;
        page.copy_within(
            Self::key_start(i + 1)..Self::key_start(count),
            Self::key_start(i),
        );
        page.copy_within(
            Self::rest_start(count - 1)..Self::rest_start(i),
            Self::rest_start(count - 2),
        );
        self.truncate(count - 1, count);
    }

    /// Appends entries of the page `other`: entry `from` and all entries after it. This page must
    /// have room for them. The right sibling of `other` becomes the right sibling of this page.
    pub(crate) fn append_from<Q>(&mut self, other: &Inner<Q, N>, from: usize)
    where
        Q: Deref<Target = Page>,
    {
        let (count, more) = (self.count(), other.count() - from);
        let keys = Self::key_start(count);
        let (start, hole) = (Self::key_start(from), other.hole());
        self.page[keys..keys + hole.start - start].copy_from_slice(&other.page[start..hole.start]);
        let others = Self::END - REST * (count + more);
        let moved = &other.page[hole.end..Self::END - REST * from];
        self.page[others..others + moved.len()].copy_from_slice(moved);
        self.set_count(count + more);
        self.set_right_sibling(other.right_sibling());
    }

    /// Splits this page. Moves entry `kept` and all entries after it to `right`, a new page at
    /// `block`. `right` becomes the right sibling of this page.
    pub(crate) fn split_into(&mut self, right: &mut Page, block: Block, kept: usize) {
        let separator = self.separator(kept);
        InnerMut::format_at(right, self.level(), &separator).append_from(self, kept);
        self.truncate(kept, self.count());
        self.set_right_sibling(Some((separator, block)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_SIZE;
    use proptest::prelude::*;

    fn entry_key() -> impl Strategy<Value = EntryKey<2>> {
        // Only few values, so that equal permutations, words and row addresses are frequent. Some
        // words have the highest bit set.
        (0..3u16, prop_oneof![0..4u64, !3..=!0u64], 0..3u64, 0..3u32).prop_map(
            |(permutation, a, b, row)| EntryKey::new(permutation, [a, b], Tid::new(row, 1)),
        )
    }

    proptest! {
        #[test]
        fn search_finds_the_last_separator_that_is_not_above(
            mut separators in prop::collection::vec(entry_key(), 1..60),
            wanted in prop::collection::vec(entry_key(), 1..20),
            start in 0..60usize,
        ) {
            separators.sort_unstable();
            separators.dedup();
            let mut page = [0; PAGE_SIZE];
            let mut inner = InnerMut::<2>::format_at(&mut page, 1, &separators[0]);
            for (child, separator) in (1..).zip(&separators) {
                inner.push(separator, child);
            }
            for wanted in wanted {
                let index = separators.iter().rposition(|separator| *separator <= wanted);
                let expected = index.unwrap_or(0);
                prop_assert_eq!(inner.search(&wanted), expected);
                let start = start.min(expected);
                prop_assert_eq!(inner.search_from(start, &wanted), expected);
            }
        }
    }
}
