//! The layout that all pages share: the header that PostgreSQL's buffer manager expects
//! (storage/bufpage.h) and, at the end, this tree's own fields.
//!
//! ```text
//! 0            24                                                  8192 - S          8192
//! | header      | one array, growing up ->  hole  <- another, down |  high key, fields |
//! ```
//! The header's `pd_lower` and `pd_upper` bound the hole exactly: PostgreSQL leaves it out of full
//! page images, and recovery zeroes it.

use crate::key::{Block, EntryKey, Tid, key_at, put_key};
use std::fmt;

/// Bytes of a page. PostgreSQL's default, and the only size supported.
pub const PAGE_SIZE: usize = 8192;

/// A page.
pub type Page = [u8; PAGE_SIZE];

/// Bytes of PostgreSQL's page header.
pub const HEADER: usize = 24;
const LOWER: usize = 12;
const UPPER: usize = 14;
const SPECIAL: usize = 16;
const SIZE_AND_VERSION: usize = 18;
/// The version of PostgreSQL's page layout, the same since 8.3.
const LAYOUT_VERSION: u16 = 4;

/// Offset of the hole's bounds in the header: `pd_lower`, then `pd_upper`.
pub const BOUNDS: usize = LOWER;

/// The last two bytes of each page, which tell tools whose page it is.
pub const PAGE_ID: u16 = 0xFFD7;

// The tree's own fields, as distances from the end of the page. The low and the high key stand
// before them.
const FIELDS: usize = 32;
const LOW_TID: usize = PAGE_SIZE - FIELDS;
const RIGHT: usize = LOW_TID + 8;
const LEVEL: usize = RIGHT + 4;
const KIND: usize = RIGHT + 6;
const TABLE: usize = RIGHT + 8;
const HIGH_TABLE: usize = RIGHT + 10;
const HIGH_TID: usize = RIGHT + 12;
const ID: usize = PAGE_SIZE - 2;

/// Bytes of a downlink on an inner page, with its separator's table and row.
pub(crate) const LINK: usize = 4 + 2 + Tid::SIZE;

/// Bytes at the end of a page for keys of `N` words.
pub const fn special_size<const N: usize>() -> usize {
    fields_size(N)
}

/// [`special_size`] of a number that is known only at run time.
pub const fn fields_size(words: usize) -> usize {
    2 * 8 * words + FIELDS
}

const fn low_key<const N: usize>() -> usize {
    PAGE_SIZE - special_size::<N>()
}

const fn high_key<const N: usize>() -> usize {
    low_key::<N>() + 8 * N
}

/// Bytes between the header and the fields at the end.
pub const fn room<const N: usize>() -> usize {
    PAGE_SIZE - HEADER - special_size::<N>()
}

/// Purpose of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Block 0.
    Meta,
    /// Entries of one table.
    Leaf,
    /// Separators and downlinks.
    Inner,
    /// Taken out of the tree by a vacuum, for use as a page of its level.
    Free,
}

/// A page that is not what the tree says it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The page.
    pub block: Block,
    /// The defect.
    pub what: &'static str,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}: {}", self.block, self.what)
    }
}

impl std::error::Error for Corruption {}

/// The result of what reads pages.
pub type Result<T> = std::result::Result<T, Corruption>;

pub(crate) fn u16_at(page: &Page, offset: usize) -> u16 {
    u16::from_ne_bytes([page[offset], page[offset + 1]])
}

pub(crate) fn u32_at(page: &Page, offset: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&page[offset..offset + 4]);
    u32::from_ne_bytes(bytes)
}

pub(crate) fn put_u16(page: &mut Page, offset: usize, value: u16) {
    page[offset..offset + 2].copy_from_slice(&value.to_ne_bytes());
}

pub(crate) fn put_u32(page: &mut Page, offset: usize, value: u32) {
    page[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
}

pub(crate) fn tid_at(page: &Page, offset: usize) -> Tid {
    let mut bytes = [0; Tid::SIZE];
    bytes.copy_from_slice(&page[offset..offset + Tid::SIZE]);
    Tid::from_bytes(bytes)
}

pub(crate) fn put_tid(page: &mut Page, offset: usize, tid: Tid) {
    page[offset..offset + Tid::SIZE].copy_from_slice(&tid.to_bytes());
}

/// The first byte of the hole.
#[inline]
pub fn lower(page: &Page) -> usize {
    usize::from(u16_at(page, LOWER))
}

/// The byte after the hole.
#[inline]
pub fn upper(page: &Page) -> usize {
    usize::from(u16_at(page, UPPER))
}

pub(crate) fn put_bounds(page: &mut Page, lower: usize, upper: usize) {
    put_u16(page, LOWER, lower as u16);
    put_u16(page, UPPER, upper as u16);
}

/// The page to the right on the same level.
#[inline]
pub fn right(page: &Page) -> Option<Block> {
    // Block 0 is the meta page and to nobody's right.
    Some(u32_at(page, RIGHT)).filter(|&right| right != 0)
}

pub(crate) fn put_right(page: &mut Page, right: Option<Block>) {
    put_u32(page, RIGHT, right.unwrap_or(0));
}

/// The page's height above the leaves.
#[inline]
pub fn level(page: &Page) -> u16 {
    u16_at(page, LEVEL)
}

/// The table of a leaf; the first table below an inner page: that of the low key.
#[inline]
pub fn table(page: &Page) -> u16 {
    u16_at(page, TABLE)
}

/// The page's purpose; `None` if it is not one of this tree's pages.
#[inline]
pub fn kind(page: &Page) -> Option<Kind> {
    if u16_at(page, ID) != PAGE_ID {
        return None;
    }
    match u16_at(page, KIND) {
        0 => Some(Kind::Meta),
        1 => Some(Kind::Leaf),
        2 => Some(Kind::Inner),
        3 => Some(Kind::Free),
        _ => None,
    }
}

/// Lower bound of the page's entries, inclusive: the high key of its left neighbour.
#[inline]
pub fn low<const N: usize>(page: &Page) -> EntryKey<N> {
    EntryKey {
        table: table(page),
        key: key_at(page, low_key::<N>()),
        tid: tid_at(page, LOW_TID),
    }
}

/// High key: the exclusive upper bound of the entries of the page and of those to its left; `None`
/// on the last page of a level.
#[inline]
pub fn high<const N: usize>(page: &Page) -> Option<EntryKey<N>> {
    right(page)?;
    Some(EntryKey {
        table: u16_at(page, HIGH_TABLE),
        key: key_at(page, high_key::<N>()),
        tid: tid_at(page, HIGH_TID),
    })
}

/// Returns whether an entry key belongs to a page further right.
#[inline]
pub fn is_left_of<const N: usize>(page: &Page, entry_key: &EntryKey<N>) -> bool {
    high::<N>(page).is_some_and(|high| high <= *entry_key)
}

/// Sets the high key together with the page that it leads to.
pub(crate) fn put_high<const N: usize>(page: &mut Page, high: Option<(EntryKey<N>, Block)>) {
    put_right(page, high.map(|(_, right)| right));
    let entry_key = high.map_or(EntryKey::start_of(0), |(entry_key, _)| entry_key);
    put_u16(page, HIGH_TABLE, entry_key.table);
    put_key(page, high_key::<N>(), &entry_key.key);
    put_tid(page, HIGH_TID, entry_key.tid);
}

/// Makes an empty page that starts at an entry key.
pub(crate) fn format<const N: usize>(page: &mut Page, kind: Kind, level: u16, low: &EntryKey<N>) {
    page.fill(0);
    let special = PAGE_SIZE - special_size::<N>();
    put_bounds(page, HEADER, special);
    put_u16(page, SPECIAL, special as u16);
    put_u16(page, SIZE_AND_VERSION, PAGE_SIZE as u16 | LAYOUT_VERSION);
    put_u16(page, LEVEL, level);
    put_u16(page, KIND, kind as u16);
    put_u16(page, TABLE, low.table);
    put_key(page, low_key::<N>(), &low.key);
    put_tid(page, LOW_TID, low.tid);
    put_u16(page, ID, PAGE_ID);
}

/// Makes a page that is in no tree, the first of a list of such that goes on at `next`.
pub(crate) fn free<const N: usize>(page: &mut Page, level: u16, next: Option<Block>) {
    format::<N>(page, Kind::Free, level, &EntryKey::start_of(0));
    put_right(page, next);
}

/// Checks that a page is of the expected kind and that its arrays lie within it, so that
/// no access to its entries is out of bounds, whatever it holds.
#[inline]
pub fn expect<const N: usize>(page: &Page, block: Block, expected: Kind) -> Result<()> {
    let wrong = |what| Err(Corruption { block, what });
    match kind(page) {
        None => return wrong("not a page of a neardup index"),
        Some(kind) if kind != expected => return wrong("a page of another kind than expected"),
        Some(_) => (),
    }
    let special = PAGE_SIZE - special_size::<N>();
    let (lower, upper) = (lower(page), upper(page));
    if usize::from(u16_at(page, SPECIAL)) != special
        || lower < HEADER
        || upper > special
        || lower > upper
    {
        return wrong("page header out of bounds");
    }
    let (keys, others) = (lower - HEADER, special - upper);
    let other = match expected {
        Kind::Leaf => Tid::SIZE,
        Kind::Inner => LINK,
        Kind::Meta | Kind::Free => return Ok(()),
    };
    if keys % (8 * N) != 0 || keys / (8 * N) * other != others {
        return wrong("the two arrays differ in length");
    }
    if expected == Kind::Inner && (keys == 0 || level(page) == 0) {
        return wrong("inner page without an entry or without a level");
    }
    Ok(())
}
