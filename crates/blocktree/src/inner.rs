//! Inner pages: sorted separators, each with the page whose entries start there.
//!
//! Separator keys stand as one array growing up, the rest of each separator with its downlink as
//! one growing down. The first separator of a page counts as below everything.

use crate::key::{Block, EntryKey, key_at, put_key, word_at};
use crate::page::{self, HEADER, Kind, LINK, PAGE_SIZE, Page, special_size};

/// The most entries of an inner page.
pub const fn capacity<const N: usize>() -> usize {
    page::room::<N>() / (8 * N + LINK)
}

/// The entries of an inner page in an index that was built with the default options.
pub const fn usual_count<const N: usize>() -> f64 {
    0.9 * capacity::<N>() as f64
}

const fn key_offset<const N: usize>(i: usize) -> usize {
    HEADER + 8 * N * i
}

const fn link_offset<const N: usize>(i: usize) -> usize {
    PAGE_SIZE - special_size::<N>() - LINK * (i + 1)
}

/// The number of entries.
#[inline]
pub fn count<const N: usize>(page: &Page) -> usize {
    (page::lower(page) - HEADER) / (8 * N)
}

/// The separator of an entry.
pub fn separator<const N: usize>(page: &Page, i: usize) -> EntryKey<N> {
    let link = link_offset::<N>(i);
    EntryKey {
        table: page::u16_at(page, link + 4),
        key: key_at(page, key_offset::<N>(i)),
        tid: page::tid_at(page, link + 6),
    }
}

/// The page that an entry leads to.
#[inline]
pub fn child<const N: usize>(page: &Page, i: usize) -> Block {
    page::u32_at(page, link_offset::<N>(i))
}

/// Changes the page that an entry leads to.
pub(crate) fn put_child<const N: usize>(page: &mut Page, i: usize, child: Block) {
    page::put_u32(page, link_offset::<N>(i), child);
}

/// Index of the downlink that covers an entry key: the last whose separator is not above it.
#[inline]
pub fn search<const N: usize>(page: &Page, entry_key: &EntryKey<N>) -> usize {
    let (mut low, mut high) = (0, count::<N>(page));
    // Nearly always the first words of keys decide, which lie close together. Tables and rows lie
    // elsewhere on the page and are looked at only where they must be: if the page leads to several
    // tables, or between equal words.
    let table = |i: usize| page::u16_at(page, link_offset::<N>(i) + 4);
    let one_table = high > 1 && table(1) == entry_key.table && table(high - 1) == entry_key.table;
    while high - low > 1 {
        let middle = (low + high) / 2;
        let first = word_at(page, key_offset::<N>(middle));
        let above = if one_table && first != entry_key.key[0] {
            first > entry_key.key[0]
        } else {
            separator(page, middle) > *entry_key
        };
        if above { high = middle } else { low = middle }
    }
    low
}

/// Makes an empty inner page that starts at an entry key.
pub fn format<const N: usize>(page: &mut Page, level: u16, low: &EntryKey<N>) {
    page::format(page, Kind::Inner, level, low);
}

/// Inserts an entry before the `i`th of a page that has room for it.
pub fn insert<const N: usize>(page: &mut Page, i: usize, separator: &EntryKey<N>, child: Block) {
    let count = count::<N>(page);
    debug_assert!(i <= count && count < capacity::<N>());
    page.copy_within(
        key_offset::<N>(i)..key_offset::<N>(count),
        key_offset::<N>(i + 1),
    );
    if i < count {
        let end = link_offset::<N>(i) + LINK;
        page.copy_within(link_offset::<N>(count - 1)..end, link_offset::<N>(count));
    }
    put_key(page, key_offset::<N>(i), &separator.key);
    let link = link_offset::<N>(i);
    page::put_u32(page, link, child);
    page::put_u16(page, link + 4, separator.table);
    page::put_tid(page, link + 6, separator.tid);
    page::put_bounds(page, key_offset::<N>(count + 1), link_offset::<N>(count));
}

/// Drops all entries from the `kept`th on.
pub fn truncate<const N: usize>(page: &mut Page, kept: usize) {
    let count = count::<N>(page);
    debug_assert!(0 < kept && kept <= count);
    page[key_offset::<N>(kept)..key_offset::<N>(count)].fill(0);
    page[link_offset::<N>(count - 1)..link_offset::<N>(kept - 1)].fill(0);
    page::put_bounds(page, key_offset::<N>(kept), link_offset::<N>(kept - 1));
}

/// Takes the `i`th entry away; the first of a page stays.
pub fn remove<const N: usize>(page: &mut Page, i: usize) {
    let count = count::<N>(page);
    debug_assert!(0 < i && i < count);
    page.copy_within(
        key_offset::<N>(i + 1)..key_offset::<N>(count),
        key_offset::<N>(i),
    );
    page.copy_within(
        link_offset::<N>(count - 1)..link_offset::<N>(i),
        link_offset::<N>(count - 2),
    );
    truncate::<N>(page, count - 1);
}
