//! The layout that all pages share: the header that PostgreSQL's buffer manager expects
//! (storage/bufpage.h) and, at the end, this tree's own fields.
//!
//! ```text
//! 0            24                                                  8192 - S          8192
//! | header      | one array, growing up ->  hole  <- another, down |  high key, fields |
//! ```
//! The header's `pd_lower` and `pd_upper` bound the hole exactly: PostgreSQL leaves it out of full
//! page images, and recovery zeroes it.

use crate::key::{Block, EntryKey, Key, Tid, key_at, put_key};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

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
pub(crate) const BOUNDS: usize = LOWER;

/// The last two bytes of each page, which tell tools whose page it is.
pub const PAGE_ID: u16 = 0xFFD7;

// The tree's own fields, as distances from the end of the page. The low and the high key stand
// before them.
const FIELDS: usize = 32;
const LOW_TID: usize = PAGE_SIZE - FIELDS;
const SHAPE: usize = LOW_TID + 6;
const RIGHT: usize = LOW_TID + 8;
const LEVEL: usize = RIGHT + 4;
const KIND: usize = RIGHT + 6;
const PERMUTATION: usize = RIGHT + 8;
const HIGH_PERMUTATION: usize = RIGHT + 10;
const HIGH_TID: usize = RIGHT + 12;
const SORTED: usize = RIGHT + 18;
const ID: usize = PAGE_SIZE - 2;

/// Bytes at the end of a page that the tree's own fields take: a low key and a high key of `words`
/// words each, and `FIELDS`.
const fn fields_size(words: usize) -> usize {
    2 * 8 * words + FIELDS
}

/// The most entries, of `size` bytes each, of a page whose low and high key have `words` words.
pub(crate) const fn capacity(words: usize, size: usize) -> usize {
    (PAGE_SIZE - HEADER - fields_size(words)) / size
}

/// Purpose of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Block 0.
    Meta,
    /// Entries of one permutation.
    Leaf,
    /// Separators and downlinks.
    Inner,
    /// Taken out of the tree by a vacuum, for use as a page of its level.
    Free,
}

/// Page whose content contradicts the tree.
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

/// The error for a page with a defect.
pub(crate) fn corrupt<T>(block: Block, what: &'static str) -> Result<T> {
    Err(Corruption { block, what })
}

#[inline]
pub(crate) fn u16_at(page: &Page, offset: usize) -> u16 {
    u16::from_ne_bytes([page[offset], page[offset + 1]])
}

#[inline]
pub(crate) fn u32_at(page: &Page, offset: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&page[offset..offset + 4]);
    u32::from_ne_bytes(bytes)
}

pub(crate) fn u64_at(page: &Page, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[offset..offset + 8]);
    u64::from_ne_bytes(bytes)
}

pub(crate) fn put_u64(page: &mut Page, offset: usize, value: u64) {
    page[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
}

pub(crate) fn put_u16(page: &mut Page, offset: usize, value: u16) {
    page[offset..offset + 2].copy_from_slice(&value.to_ne_bytes());
}

pub(crate) fn put_u32(page: &mut Page, offset: usize, value: u32) {
    page[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
}

#[inline]
pub(crate) fn tid_at(page: &Page, offset: usize) -> Tid {
    // Two loads: six bytes that are copied first would be waited for.
    let offset_in_block = u16_at(page, offset + 4);
    Tid::new(u32_at(page, offset), offset_in_block)
}

pub(crate) fn put_tid(page: &mut Page, offset: usize, tid: Tid) {
    page[offset..offset + Tid::SIZE].copy_from_slice(&tid.to_bytes());
}

/// The two bytes with the shape of a leaf ([`crate::shape::Shape`]).
#[inline]
pub(crate) fn shape_bytes(page: &Page) -> [u8; 2] {
    [page[SHAPE], page[SHAPE + 1]]
}

pub(crate) fn put_shape_bytes(page: &mut Page, bytes: [u8; 2]) {
    page[SHAPE..SHAPE + 2].copy_from_slice(&bytes);
}

/// The number of a leaf's first entries that are in the order of their keys.
#[inline]
pub(crate) fn sorted(page: &Page) -> usize {
    usize::from(u16_at(page, SORTED))
}

pub(crate) fn put_sorted(page: &mut Page, count: usize) {
    put_u16(page, SORTED, count as u16);
}

/// Parts of a leaf as they were a moment ago, one perhaps earlier than the other: some of the
/// header, and the last bytes.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    /// Bytes from [`Glance::HEAD`].
    pub head: [u8; 8],
    /// Bytes from [`Glance::TAIL`].
    pub tail: [u8; 64],
}

impl Glance {
    /// Offset of the first part.
    pub const HEAD: usize = 8;
    /// Offset of the second one.
    pub const TAIL: usize = PAGE_SIZE - 64;

    fn tail_u16(&self, offset: usize) -> u16 {
        let at = offset - Self::TAIL;
        u16::from_ne_bytes([self.tail[at], self.tail[at + 1]])
    }

    /// End of the keys.
    pub(crate) fn lower(&self) -> usize {
        let at = LOWER - Self::HEAD;
        usize::from(u16::from_ne_bytes([self.head[at], self.head[at + 1]]))
    }

    /// The same as [`sorted`].
    pub(crate) fn sorted(&self) -> usize {
        usize::from(self.tail_u16(SORTED))
    }

    /// The same as [`shape_bytes`].
    pub(crate) fn shape(&self) -> [u8; 2] {
        let at = SHAPE - Self::TAIL;
        [self.tail[at], self.tail[at + 1]]
    }

    /// The low key, and the high key if it is one of the same permutation. `None`: longer keys are
    /// not in these parts.
    pub(crate) fn range<const N: usize>(&self) -> Option<(Key<N>, Option<Key<N>>)> {
        let low = (PAGE_SIZE - fields_size(N)).checked_sub(Self::TAIL)?;
        let has_high = self.tail_u16(PERMUTATION) == self.tail_u16(HIGH_PERMUTATION)
            && self.tail[RIGHT - Self::TAIL..][..4] != [0; 4];
        let high = has_high.then(|| key_at(&self.tail, low + 8 * N));
        Some((key_at(&self.tail, low), high))
    }
}

/// Contents of a [`PageView`]: a page that has not been checked, of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Unchecked;

/// Contents of a [`PageView`]: two arrays, of keys and of elements with the rest of each entry.
pub trait Entries {
    /// Kind of such a page.
    const KIND: Kind;
    /// The bytes that a page with keys of `N` words takes for an entry; `None` if what it says of
    /// that is impossible.
    fn sizes<const N: usize>(page: &Page) -> Option<Sizes>;
}

/// Bytes of the elements of a page's two arrays.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes per entry of the first array, which grows upwards: a key.
    pub key: usize,
    /// Bytes per entry of the second array, which grows downwards.
    pub other: usize,
}

impl Sizes {
    /// Entries of a page with a hole.
    #[inline]
    fn count(self, end: usize, hole: &Range<usize>) -> usize {
        let others = end - hole.end;
        // The compiler replaces a division by a constant.
        match self.other {
            4 => others / 4,
            6 => others / 6,
            other => others / other,
        }
    }
}

/// View of a page with keys of `N` words. `P` is a reference to the page, or a lock on it.
///
/// The fields that all pages have lie at fixed offsets, and can be read whatever the page holds.
/// The methods for entries are those of [`crate::leaf::Leaf`] and [`crate::inner::Inner`]: views of
/// pages that have been checked, so that no access to an entry is out of bounds.
#[derive(Clone, Copy, Debug)]
pub struct PageView<P, const N: usize, E = Unchecked> {
    pub(crate) page: P,
    entries: PhantomData<E>,
}

/// View of a page for reading.
pub type PageRef<'a, const N: usize> = PageView<&'a Page, N>;
/// View of a page for changing it.
pub type PageMut<'a, const N: usize> = PageView<&'a mut Page, N>;

impl<P, const N: usize> PageView<P, N> {
    /// A view of a page, unchecked.
    #[inline]
    pub fn new(page: P) -> Self {
        Self::unchecked(page)
    }
}

impl<P, const N: usize, E> PageView<P, N, E> {
    const LOW_KEY: usize = PAGE_SIZE - fields_size(N);
    const HIGH_KEY: usize = Self::LOW_KEY + 8 * N;
    /// End of the array that grows down.
    pub(crate) const END: usize = Self::LOW_KEY;

    /// The view of a page that the caller has checked, or is about to.
    #[inline]
    pub(crate) fn unchecked(page: P) -> Self {
        let entries = PhantomData;
        PageView { page, entries }
    }
}

impl<P: Deref<Target = Page>, const N: usize, E> PageView<P, N, E> {
    /// The page's purpose; `None` if it is not one of this tree's pages.
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        if u16_at(&self.page, ID) != PAGE_ID {
            return None;
        }
        match u16_at(&self.page, KIND) {
            0 => Some(Kind::Meta),
            1 => Some(Kind::Leaf),
            2 => Some(Kind::Inner),
            3 => Some(Kind::Free),
            _ => None,
        }
    }

    /// The page's height above the leaves.
    #[inline]
    pub fn level(&self) -> u16 {
        u16_at(&self.page, LEVEL)
    }

    /// The permutation of a leaf; the first permutation below an inner page: that of the low key.
    #[inline]
    pub fn permutation(&self) -> u16 {
        u16_at(&self.page, PERMUTATION)
    }

    /// The hole between the page's two arrays.
    #[inline]
    pub fn hole(&self) -> Range<usize> {
        usize::from(u16_at(&self.page, LOWER))..usize::from(u16_at(&self.page, UPPER))
    }

    /// The page to the right on the same level.
    #[inline]
    pub fn right_link(&self) -> Option<Block> {
        // Block 0 is the meta page, which has no left neighbour.
        Some(u32_at(&self.page, RIGHT)).filter(|&right| right != 0)
    }

    /// Lower bound of the page's entries, inclusive: the high key of its left neighbour.
    #[inline]
    pub fn low_key(&self) -> EntryKey<N> {
        EntryKey::new(self.permutation(), self.low(), tid_at(&self.page, LOW_TID))
    }

    /// The key of [`PageView::low_key`].
    #[inline]
    pub(crate) fn low(&self) -> Key<N> {
        key_at(&*self.page, Self::LOW_KEY)
    }

    /// High key: the exclusive upper bound of the entries of the page and of those to its left;
    /// `None` on the last page of a level.
    #[inline]
    pub fn high_key(&self) -> Option<EntryKey<N>> {
        self.right_link()?;
        let (key, tid) = (
            key_at(&*self.page, Self::HIGH_KEY),
            tid_at(&self.page, HIGH_TID),
        );
        Some(EntryKey::new(
            u16_at(&self.page, HIGH_PERMUTATION),
            key,
            tid,
        ))
    }

    /// Start and block of the page to the right: high key and right link.
    #[inline]
    pub fn right_sibling(&self) -> Option<(EntryKey<N>, Block)> {
        self.high_key().zip(self.right_link())
    }

    /// Returns whether an entry key belongs to a page further right.
    #[inline]
    pub fn is_left_of(&self, entry_key: &EntryKey<N>) -> bool {
        self.high_key().is_some_and(|high| high <= *entry_key)
    }

    /// Checks the kind of a page and that the hole lies between header and fields.
    #[inline]
    pub(crate) fn check_header(&self, block: Block, expected: Kind) -> Result<()> {
        match self.kind() {
            None => return corrupt(block, "not a page of a neardup index"),
            Some(kind) if kind != expected => {
                return corrupt(block, "a page of another kind than expected");
            }
            Some(_) => (),
        }
        let hole = self.hole();
        if usize::from(u16_at(&self.page, SPECIAL)) != Self::END
            || hole.start < HEADER
            || hole.end > Self::END
            || hole.start > hole.end
        {
            return corrupt(block, "page header out of bounds");
        }
        Ok(())
    }
}

impl<P: DerefMut<Target = Page>, const N: usize, E> PageView<P, N, E> {
    pub(crate) fn set_hole(&mut self, hole: Range<usize>) {
        put_u16(&mut self.page, LOWER, hole.start as u16);
        put_u16(&mut self.page, UPPER, hole.end as u16);
    }

    pub(crate) fn set_right_link(&mut self, right: Option<Block>) {
        put_u32(&mut self.page, RIGHT, right.unwrap_or(0));
    }

    /// Sets the high key together with the page that it leads to.
    pub(crate) fn set_right_sibling(&mut self, sibling: Option<(EntryKey<N>, Block)>) {
        self.set_right_link(sibling.map(|(_, right)| right));
        let high = sibling.map_or(EntryKey::start_of(0), |(high, _)| high);
        put_u16(&mut self.page, HIGH_PERMUTATION, high.permutation);
        put_key(&mut *self.page, Self::HIGH_KEY, &high.key);
        put_tid(&mut self.page, HIGH_TID, high.tid);
    }

    /// Makes an empty page that starts at an entry key.
    pub(crate) fn format(&mut self, kind: Kind, level: u16, low: &EntryKey<N>) {
        let page = &mut *self.page;
        page.fill(0);
        put_u16(page, SPECIAL, Self::END as u16);
        put_u16(page, SIZE_AND_VERSION, PAGE_SIZE as u16 | LAYOUT_VERSION);
        put_u16(page, LEVEL, level);
        put_u16(page, KIND, kind as u16);
        put_u16(page, PERMUTATION, low.permutation);
        put_key(page, Self::LOW_KEY, &low.key);
        put_tid(page, LOW_TID, low.tid);
        put_u16(page, ID, PAGE_ID);
        self.set_hole(HEADER..Self::END);
    }

    /// Makes a free page, the first of a list that continues at `next`.
    pub(crate) fn free(&mut self, level: u16, next: Option<Block>) {
        self.format(Kind::Free, level, &EntryKey::start_of(0));
        self.set_right_link(next);
    }
}

impl<P: Deref<Target = Page>, const N: usize, E: Entries> PageView<P, N, E> {
    #[inline]
    fn sizes(&self) -> Sizes {
        // What is impossible has not passed the check.
        E::sizes::<N>(&self.page).unwrap_or(Sizes { key: 0, other: 1 })
    }

    /// Offset of the `i`th key in the array that grows up.
    #[inline]
    pub(crate) fn key_offset(&self, i: usize) -> usize {
        HEADER + self.sizes().key * i
    }

    /// Offset of the `i`th element in the array that grows down.
    #[inline]
    pub(crate) fn other_offset(&self, i: usize) -> usize {
        Self::END - self.sizes().other * (i + 1)
    }

    /// The hole of a page with `count` entries.
    #[inline]
    fn hole_behind(&self, count: usize) -> Range<usize> {
        let Sizes { key, other } = self.sizes();
        HEADER + key * count..Self::END - other * count
    }

    /// The view of a page, if it is of that kind and its arrays lie within it.
    #[inline]
    pub fn open(page: P, block: Block) -> Result<Self> {
        let page = Self::unchecked(page);
        page.check(block)?;
        Ok(page)
    }

    /// Checks the header: as many keys as elements, no more of a leaf's in order than there are,
    /// and on an inner page one at least.
    #[inline]
    pub(crate) fn check(&self, block: Block) -> Result<()> {
        self.check_header(block, E::KIND)?;
        let Some(sizes) = E::sizes::<N>(&self.page) else {
            return corrupt(block, "leaf of an impossible shape");
        };
        let hole = self.hole();
        let count = sizes.count(Self::END, &hole);
        if self.hole_behind(count) != hole {
            return corrupt(block, "the two arrays differ in length");
        }
        if E::KIND == Kind::Leaf && sorted(&self.page) > count {
            return corrupt(block, "leaf with more entries in order than it has");
        }
        if E::KIND == Kind::Inner && (count == 0 || self.level() == 0) {
            return corrupt(block, "inner page without an entry or without a level");
        }
        Ok(())
    }

    /// The number of entries.
    #[inline]
    pub fn count(&self) -> usize {
        self.sizes().count(Self::END, &self.hole())
    }
}

impl<P: DerefMut<Target = Page>, const N: usize, E: Entries> PageView<P, N, E> {
    /// Makes a page an empty one of this kind that starts at an entry key.
    pub(crate) fn format_at(page: P, level: u16, low: &EntryKey<N>) -> Self {
        let mut page = Self::unchecked(page);
        page.format(E::KIND, level, low);
        page
    }

    #[inline]
    pub(crate) fn set_count(&mut self, count: usize) {
        self.set_hole(self.hole_behind(count));
    }

    /// Drops all entries from the `kept`th on, of `count`.
    pub(crate) fn truncate(&mut self, kept: usize, count: usize) {
        let (old, new) = (self.hole_behind(count), self.hole_behind(kept));
        // Recovery zeroes the hole, and so does this.
        self.page[new.start..old.start].fill(0);
        self.page[old.end..new.end].fill(0);
        self.set_hole(new);
    }
}
