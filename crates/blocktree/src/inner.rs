//! Inner pages: sorted separators, each with the page whose entries start there.
//!
//! Separator keys stand as one array growing up, the rest of each separator with its downlink as
//! one growing down. The first separator of a page counts as below everything.

use crate::key::{Block, EntryKey, Tid, put_key, word_at};
use crate::page::{self, Entries, Kind, Page, PageView};
use std::ops::{Deref, DerefMut};

/// The most entries of an inner page.
pub const fn capacity<const N: usize>() -> usize {
    page::capacity(N, InnerEntries::SIZE)
}

/// The entries of an inner page in an index that was built with the default options.
pub const fn usual_count<const N: usize>() -> f64 {
    0.9 * capacity::<N>() as f64
}

/// Contents of an [`Inner`] page.
#[derive(Clone, Copy, Debug)]
pub struct InnerEntries;

impl Entries for InnerEntries {
    const KIND: Kind = Kind::Inner;
    /// Bytes of a downlink, with its separator's table and row.
    const SIZE: usize = 4 + 2 + Tid::SIZE;
}

/// View of an inner page whose header has been checked. `P` is as for [`PageView`].
pub type Inner<P, const N: usize> = PageView<P, N, InnerEntries>;

/// View of an inner page for reading.
pub type InnerRef<'a, const N: usize> = Inner<&'a Page, N>;
/// View of an inner page for changing it.
pub type InnerMut<'a, const N: usize> = Inner<&'a mut Page, N>;

impl<P: Deref<Target = Page>, const N: usize> Inner<P, N> {
    #[inline]
    fn separator_table(&self, i: usize) -> u16 {
        page::u16_at(&self.page, Self::other_offset(i) + 4)
    }

    /// The separator of an entry.
    #[inline]
    pub fn separator(&self, i: usize) -> EntryKey<N> {
        let tid = page::tid_at(&self.page, Self::other_offset(i) + 6);
        EntryKey::new(self.separator_table(i), self.key(i), tid)
    }

    /// The page that an entry leads to.
    #[inline]
    pub fn child(&self, i: usize) -> Block {
        page::u32_at(&self.page, Self::other_offset(i))
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
        // Nearly always the first words of keys decide, which lie close together. Tables and rows
        // lie elsewhere on the page and are read only where they must be: if the page leads to
        // several tables, or between equal words.
        let one_table = high > 1
            && self.separator_table(low.max(1)) == entry_key.table
            && self.separator_table(high - 1) == entry_key.table;
        while high - low > 1 {
            let middle = (low + high) / 2;
            let first = word_at(&*self.page, Self::key_offset(middle));
            let above = if one_table && first != entry_key.key[0] {
                first > entry_key.key[0]
            } else {
                self.separator(middle) > *entry_key
            };
            if above { high = middle } else { low = middle }
        }
        low
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
        page::put_u32(&mut self.page, Self::other_offset(i), child);
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
            Self::key_offset(i)..Self::key_offset(count),
            Self::key_offset(i + 1),
        );
        if i < count {
            let end = Self::other_offset(i) + InnerEntries::SIZE;
            page.copy_within(
                Self::other_offset(count - 1)..end,
                Self::other_offset(count),
            );
        }
        let link = Self::other_offset(i);
        page::put_u32(page, link, child);
        page::put_u16(page, link + 4, separator.table);
        page::put_tid(page, link + 6, separator.tid);
        put_key(page, Self::key_offset(i), &separator.key);
        self.set_count(count + 1);
    }

    /// Removes the `i`th entry; the first of a page stays.
    pub(crate) fn remove(&mut self, i: usize) {
        let count = self.count();
        debug_assert!(0 < i && i < count);
        let page = &mut *self.page;
        page.copy_within(
            Self::key_offset(i + 1)..Self::key_offset(count),
            Self::key_offset(i),
        );
        page.copy_within(
            Self::other_offset(count - 1)..Self::other_offset(i),
            Self::other_offset(count - 2),
        );
        self.truncate(count - 1, count);
    }

    /// Moves the entries from the `kept`th on to a new page, and links it in.
    pub(crate) fn split_into(&mut self, right: &mut Page, block: Block, kept: usize) {
        let separator = self.separator(kept);
        InnerMut::format_at(right, self.level(), &separator).append_from(self, kept);
        self.truncate(kept, self.count());
        self.set_right_sibling(Some((separator, block)));
    }
}
