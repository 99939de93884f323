//! Inner pages: sorted separators, each with the page whose entries start there.
//!
//! Separator keys stand as one array growing up, the rest of each separator with its downlink as
//! one growing down. The first separator of a page counts as below everything.

use crate::key::{Block, EntryKey, Key, Tid, key_at, put_key, word_at};
use crate::page::{self, Entries, HEADER, Kind, Page, PageView, Sizes};
use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};

/// The most entries of an inner page.
pub const fn capacity<const N: usize>() -> usize {
    page::capacity(N, 8 * N + REST)
}

/// The entries of an inner page in an index that was built with the default options.
pub const fn usual_count<const N: usize>() -> f64 {
    0.9 * capacity::<N>() as f64
}

/// Bytes of a downlink, with its separator's permutation and row.
const REST: usize = 4 + 2 + Tid::SIZE;

/// Contents of an [`Inner`] page.
#[derive(Clone, Copy, Debug)]
pub struct InnerEntries;

impl Entries for InnerEntries {
    const KIND: Kind = Kind::Inner;

    #[inline]
    fn sizes<const N: usize>(_: &Page) -> Option<Sizes> {
        Some(Sizes {
            key: 8 * N,
            other: REST,
        })
    }
}

/// View of an inner page whose header has been checked. `P` is as for [`PageView`].
pub type Inner<P, const N: usize> = PageView<P, N, InnerEntries>;

/// View of an inner page for reading.
pub type InnerRef<'a, const N: usize> = Inner<&'a Page, N>;
/// View of an inner page for changing it.
pub type InnerMut<'a, const N: usize> = Inner<&'a mut Page, N>;

impl<P, const N: usize> Inner<P, N> {
    /// Offset of the `i`th key.
    const fn key_start(i: usize) -> usize {
        HEADER + 8 * N * i
    }

    /// Offset of the `i`th downlink, with the rest of its separator.
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

    /// The separator of an entry.
    #[inline]
    pub fn separator(&self, i: usize) -> EntryKey<N> {
        let tid = page::tid_at(&self.page, Self::rest_start(i) + 6);
        EntryKey::new(self.separator_permutation(i), self.key(i), tid)
    }

    /// The page that an entry leads to.
    #[inline]
    pub fn child(&self, i: usize) -> Block {
        page::u32_at(&self.page, Self::rest_start(i))
    }

    /// Separators and the pages that they lead to.
    pub fn entries(&self) -> impl Iterator<Item = (EntryKey<N>, Block)> {
        (0..self.count()).map(|i| (self.separator(i), self.child(i)))
    }

    /// Index of the downlink that covers an entry key: the last whose separator is not above it.
    #[inline]
    pub fn search(&self, entry_key: &EntryKey<N>) -> usize {
        self.search_from(0, entry_key)
    }

    /// [`Inner::search`] among the downlinks from the `low`th on, which is not above the entry key.
    #[inline]
    pub(crate) fn search_from(&self, mut low: usize, entry_key: &EntryKey<N>) -> usize {
        let mut high = self.count();
        // Nearly always permutations and the first words of keys decide. Rows lie elsewhere on the
        // page and are read only where they must be: between equal words. So are permutations, on
        // pages that lead to several.
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

    /// The last entry before the `high`th whose separator's first word is below a word, or the
    /// `low`th if none behind it is. All are of one permutation.
    #[inline]
    fn last_below(&self, mut low: usize, high: usize, word: u64) -> usize {
        // Neither half is likelier: a conditional move takes less time than a jump that is guessed.
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

    /// The page that the downlink which covers an entry key leads to.
    #[inline]
    pub fn child_of(&self, entry_key: &EntryKey<N>) -> Block {
        self.child(self.search(entry_key))
    }
}

impl<P: DerefMut<Target = Page>, const N: usize> Inner<P, N> {
    /// Changes the page that an entry leads to.
    pub(crate) fn set_child(&mut self, i: usize, child: Block) {
        page::put_u32(&mut self.page, Self::rest_start(i), child);
    }

    /// Adds an entry behind the others to a page that has room for it.
    pub(crate) fn push(&mut self, separator: &EntryKey<N>, child: Block) {
        self.insert(self.count(), separator, child);
    }

    /// Inserts an entry before the `i`th of a page that has room for it.
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

    /// Removes the `i`th entry; the first of a page stays.
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

    /// Adds the entries of a page from the `from`th on, for which there is room, behind the others,
    /// and takes over its right sibling.
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

    /// Moves the entries from the `kept`th on to a new page, and links it in.
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
        // Few values, so that permutations, words and rows are equal often; and words with the high
        // bit.
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
