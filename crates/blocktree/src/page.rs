//! Layout of all pages of an index. A page has PostgreSQL's page header (storage/bufpage.h), which
//! its buffer manager expects, two arrays with a hole of unused bytes between them, and this tree's
//! own fields at the end. The fields include the low key and the high key, which are the bounds of
//! the page's entries.
//!
//! ```text
//! 0            24                                                  8192 - S          8192
//! | header      | one array, growing up ->  hole  <- another, down |  high key, fields |
//! ```
//! `pd_lower` and `pd_upper` in the header are the exact bounds of the hole. PostgreSQL omits the
//! hole from full page images, and recovery zeroes it.

use crate::key::{Block, EntryKey, Key, Tid, key_at, put_key};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

/// Size of a page in bytes: PostgreSQL's default, which is the only supported size.
pub const PAGE_SIZE: usize = 8192;

/// Bytes of one page.
pub type Page = [u8; PAGE_SIZE];

/// Size of PostgreSQL's page header in bytes.
pub const HEADER: usize = 24;
const LOWER: usize = 12;
const UPPER: usize = 14;
const SPECIAL: usize = 16;
const SIZE_AND_VERSION: usize = 18;
/// Version of PostgreSQL's page layout, which has not changed since PostgreSQL 8.3.
const LAYOUT_VERSION: u16 = 4;

/// Offset in the page header of the two bounds of the hole: `pd_lower`, then `pd_upper`.
pub(crate) const BOUNDS: usize = LOWER;

/// Value of the last two bytes of each page, by which tools recognize pages of this access method.
pub const PAGE_ID: u16 = 0xFFD7;

// The tree's own fields are at the end of the page, behind the low key and the high key.
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

/// Returns the number of bytes at the end of a page for the tree's own fields: a low key and a high
/// key of `words` words each, and [`FIELDS`] more bytes.
const fn fields_size(words: usize) -> usize {
    2 * 8 * words + FIELDS
}

/// Returns the maximum number of entries of `size` bytes on a page with keys of `words` words.
pub(crate) const fn capacity(words: usize, size: usize) -> usize {
    (PAGE_SIZE - HEADER - fields_size(words)) / size
}

/// Purpose of a page in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Meta page (block 0), with the parameters of the index.
    Meta,
    /// Leaf: has entries of one permutation (ordered copy of all keys).
    Leaf,
    /// Inner page: has separators and downlinks to child pages.
    Inner,
    /// Free page: a vacuum has removed it from the tree, and a split can reuse it on its level.
    Free,
}

/// Error for a page whose content is damaged or contradicts the rest of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Block of the damaged page.
    pub block: Block,
    /// Description of the defect.
    pub what: &'static str,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}: {}", self.block, self.what)
    }
}

impl std::error::Error for Corruption {}

/// Result of functions that read pages.
pub type Result<T> = std::result::Result<T, Corruption>;

/// Returns an error for the page at `block`. `what` describes the page's defect.
pub(crate) fn corrupt<T>(block: Block, what: &'static str) -> Result<T> {
    Err(Corruption { block, what })
}

#[inline]
pub(crate) fn u16_at(page: &Page, offset: usize) -> u16 {
    u16::from_ne_bytes([page[offset], page[offset + 1]])
}

#[inline]
pub(crate) fn u32_at(page: &Page, offset: usize) -> u32 {
    let bytes = page[offset..].first_chunk();
    u32::from_ne_bytes(*bytes.expect("four bytes within the page"))
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
    // Loads the two fields separately: copying all six bytes first would stall the loads.
    let offset_in_block = u16_at(page, offset + 4);
    Tid::new(u32_at(page, offset), offset_in_block)
}

pub(crate) fn put_tid(page: &mut Page, offset: usize, tid: Tid) {
    page[offset..offset + Tid::SIZE].copy_from_slice(&tid.to_bytes());
}

/// Returns the two bytes of a leaf that encode its shape ([`crate::shape::Shape`]).
#[inline]
pub(crate) fn shape_bytes(page: &Page) -> [u8; 2] {
    [page[SHAPE], page[SHAPE + 1]]
}

pub(crate) fn put_shape_bytes(page: &mut Page, bytes: [u8; 2]) {
    page[SHAPE..SHAPE + 2].copy_from_slice(&bytes);
}

/// Returns the number of entries at the start of a leaf that are in key order.
#[inline]
pub(crate) fn sorted(page: &Page) -> usize {
    usize::from(u16_at(page, SORTED))
}

pub(crate) fn put_sorted(page: &mut Page, count: usize) {
    put_u16(page, SORTED, count as u16);
}

/// Two parts of a leaf, copied without a lock: bytes of the page header and the last bytes of the
/// page. The two parts may be outdated, and may come from different versions of the page.
#[derive(Clone, Copy, Debug)]
pub struct UnlockedCopy {
    /// The 8 bytes of the page from [`UnlockedCopy::HEAD`] on.
    pub head: [u8; 8],
    /// The 64 bytes of the page from [`UnlockedCopy::TAIL`] on.
    pub tail: [u8; 64],
}

impl UnlockedCopy {
    /// Offset of `head` on the page.
    pub const HEAD: usize = 8;
    /// Offset of `tail` on the page.
    pub const TAIL: usize = PAGE_SIZE - 64;

    fn tail_u16(&self, offset: usize) -> u16 {
        let at = offset - Self::TAIL;
        u16::from_ne_bytes([self.tail[at], self.tail[at + 1]])
    }

    /// Returns the offset of the end of the key array (`pd_lower`).
    pub(crate) fn lower(&self) -> usize {
        let at = LOWER - Self::HEAD;
        usize::from(u16::from_ne_bytes([self.head[at], self.head[at + 1]]))
    }

    /// Returns the number of entries at the start of the leaf that are in key order, like
    /// [`sorted`] for a page.
    pub(crate) fn sorted(&self) -> usize {
        usize::from(self.tail_u16(SORTED))
    }

    /// Returns the two bytes that encode the leaf's shape, like [`shape_bytes`] for a page.
    pub(crate) fn shape(&self) -> [u8; 2] {
        let at = SHAPE - Self::TAIL;
        [self.tail[at], self.tail[at + 1]]
    }

    /// Returns the low key of the leaf, and its high key if the high key belongs to the same
    /// permutation. `None` if the keys are too long to be in `tail`.
    pub(crate) fn range<const N: usize>(&self) -> Option<(Key<N>, Option<Key<N>>)> {
        let low = (PAGE_SIZE - fields_size(N)).checked_sub(Self::TAIL)?;
        let has_high = self.tail_u16(PERMUTATION) == self.tail_u16(HIGH_PERMUTATION)
            && self.tail[RIGHT - Self::TAIL..][..4] != [0; 4];
        let high = has_high.then(|| key_at(&self.tail, low + 8 * N));
        Some((key_at(&self.tail, low), high))
    }
}

/// Marker type for a [`PageView`] of a page whose kind and content have not been checked.
#[derive(Clone, Copy, Debug)]
pub struct Unchecked;

/// Trait of the marker types by which a [`PageView`] is the view of a leaf or of an inner page.
/// Such a page has two arrays, each with one element for each entry. The first array has the keys,
/// and the second array has the other fields.
pub trait Entries {
    /// Kind of the pages that have these entries.
    const KIND: Kind;
    /// Returns the sizes of the array elements on a page with keys of `N` words. `None` if the page
    /// states impossible sizes.
    fn sizes<const N: usize>(page: &Page) -> Option<Sizes>;
}

/// Sizes in bytes of the elements of a page's two arrays.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Size of a key in the first array, which grows up from the header.
    pub key: usize,
    /// Size of an entry's other fields in the second array, which grows down from the end.
    pub rest: usize,
}

impl Sizes {
    /// Returns the number of entries of a page. It is computed from the size of the page's second
    /// array, which begins at the end of the hole and ends at the offset `end`.
    #[inline]
    fn count(self, end: usize, hole: &Range<usize>) -> usize {
        let others = end - hole.end;
        // These sizes are frequent. They are constants here, so that the compiler avoids a
        // division.
        match self.rest {
            4 => others / 4,
            6 => others / 6,
            rest => others / rest,
        }
    }
}

/// View of a page with keys of `N` words. `P` is a reference to the page, or the guard of a locked
/// page. `E` is the marker type of the page's entries ([`Entries`]), or [`Unchecked`].
///
/// The fields that all pages have are at fixed offsets and can be read from any page. Methods that
/// access entries exist only for [`crate::leaf::Leaf`] and [`crate::inner::Inner`], whose pages
/// have been checked, so that no access is out of bounds.
#[derive(Clone, Copy, Debug)]
pub struct PageView<P, const N: usize, E = Unchecked> {
    pub(crate) page: P,
    entries: PhantomData<E>,
}

/// View of an unchecked page for reading.
pub type PageRef<'a, const N: usize> = PageView<&'a Page, N>;
/// View of an unchecked page for changing it.
pub type PageMut<'a, const N: usize> = PageView<&'a mut Page, N>;

impl<P, const N: usize> PageView<P, N> {
    /// Makes a view of a page without checking it.
    #[inline]
    pub fn new(page: P) -> Self {
        Self::unchecked(page)
    }
}

impl<P, const N: usize, E> PageView<P, N, E> {
    /// Offset of the low key.
    const LOW_KEY: usize = PAGE_SIZE - fields_size(N);
    /// Offset of the high key.
    const HIGH_KEY: usize = Self::LOW_KEY + 8 * N;
    /// Offset of the end of the second array, which grows down from here.
    pub(crate) const END: usize = Self::LOW_KEY;

    /// Makes a view without checking the page. The caller must have checked it, or must check it
    /// before it accesses entries.
    #[inline]
    pub(crate) fn unchecked(page: P) -> Self {
        let entries = PhantomData;
        PageView { page, entries }
    }
}

impl<P: Deref<Target = Page>, const N: usize, E> PageView<P, N, E> {
    /// Returns the page's purpose. `None` if it is not a page of a neardup index.
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

    /// Returns the level of the page: 0 for leaves, increasing towards the root.
    #[inline]
    pub fn level(&self) -> u16 {
        u16_at(&self.page, LEVEL)
    }

    /// Returns the permutation of the low key. For a leaf this is the permutation of all its
    /// entries.
    #[inline]
    pub fn permutation(&self) -> u16 {
        u16_at(&self.page, PERMUTATION)
    }

    /// Returns the range of unused bytes between the page's two arrays.
    #[inline]
    pub fn hole(&self) -> Range<usize> {
        usize::from(u16_at(&self.page, LOWER))..usize::from(u16_at(&self.page, UPPER))
    }

    /// Returns the block of the page to the right on the same level. `None` on the last page of a
    /// level.
    #[inline]
    pub fn right_link(&self) -> Option<Block> {
        // Block 0 is the meta page, to which no right link leads.
        Some(u32_at(&self.page, RIGHT)).filter(|&right| right != 0)
    }

    /// Returns the low key: the inclusive lower bound of the page's entries. It equals the high key
    /// of the left neighbour.
    #[inline]
    pub fn low_key(&self) -> EntryKey<N> {
        EntryKey::new(self.permutation(), self.low(), tid_at(&self.page, LOW_TID))
    }

    /// Returns the key in the low key, without the permutation and the row address.
    #[inline]
    pub(crate) fn low(&self) -> Key<N> {
        key_at(&*self.page, Self::LOW_KEY)
    }

    /// Returns the high key: the exclusive upper bound of the page's entries. `None` on the last
    /// page of a level.
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

    /// Returns the low key and the block of the page to the right, which this page stores as its
    /// high key and its right link. `None` on the last page of a level.
    #[inline]
    pub fn right_sibling(&self) -> Option<(EntryKey<N>, Block)> {
        self.high_key().zip(self.right_link())
    }

    /// Returns whether an entry key is at or above the page's high key, so that it belongs to a
    /// page further right.
    #[inline]
    pub fn is_left_of(&self, entry_key: &EntryKey<N>) -> bool {
        self.high_key().is_some_and(|high| high <= *entry_key)
    }

    /// Checks that the page has the expected kind and that its hole is between the header and the
    /// fields at the end.
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

    /// Sets the high key and the right link. `sibling` has the low key and the block of the page to
    /// the right, or is `None` for the last page of a level.
    pub(crate) fn set_right_sibling(&mut self, sibling: Option<(EntryKey<N>, Block)>) {
        self.set_right_link(sibling.map(|(_, right)| right));
        let high = sibling.map_or(EntryKey::start_of(0), |(high, _)| high);
        put_u16(&mut self.page, HIGH_PERMUTATION, high.permutation);
        put_key(&mut *self.page, Self::HIGH_KEY, &high.key);
        put_tid(&mut self.page, HIGH_TID, high.tid);
    }

    /// Formats the page as an empty page of the kind `kind` on the level `level`, with the low key
    /// `low`.
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

    /// Formats the page as a free page of a level. `next` is the block of the next page in the free
    /// list.
    pub(crate) fn free(&mut self, level: u16, next: Option<Block>) {
        self.format(Kind::Free, level, &EntryKey::start_of(0));
        self.set_right_link(next);
    }
}

impl<P: Deref<Target = Page>, const N: usize, E: Entries> PageView<P, N, E> {
    #[inline]
    fn sizes(&self) -> Sizes {
        // Impossible sizes have not passed the check. The fallback avoids a division by zero.
        E::sizes::<N>(&self.page).unwrap_or(Sizes { key: 0, rest: 1 })
    }

    /// Returns the offset on the page of the key of entry `i`.
    #[inline]
    pub(crate) fn key_offset(&self, i: usize) -> usize {
        HEADER + self.sizes().key * i
    }

    /// Returns the offset on the page of the fields of entry `i` other than its key.
    #[inline]
    pub(crate) fn other_offset(&self, i: usize) -> usize {
        Self::END - self.sizes().rest * (i + 1)
    }

    /// Returns the byte range that the hole has on a page with `count` entries.
    #[inline]
    fn hole_behind(&self, count: usize) -> Range<usize> {
        let Sizes { key, rest } = self.sizes();
        HEADER + key * count..Self::END - rest * count
    }

    /// Checks a page and returns its view. Returns an error if the page has another kind, or if its
    /// arrays exceed the page. `block` is the page's block, for the error.
    #[inline]
    pub fn open(page: P, block: Block) -> Result<Self> {
        let page = Self::unchecked(page);
        page.check(block)?;
        Ok(page)
    }

    /// Checks the header fields on which accesses to entries depend. Both arrays must have the same
    /// length. The number of sorted entries of a leaf must not exceed the number of its entries. An
    /// inner page must have an entry and a level above 0.
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

    /// Returns the number of entries on the page.
    #[inline]
    pub fn count(&self) -> usize {
        self.sizes().count(Self::END, &self.hole())
    }
}

impl<P: DerefMut<Target = Page>, const N: usize, E: Entries> PageView<P, N, E> {
    /// Formats a page as an empty page for entries of type `E`, with the level `level` and the low
    /// key `low`.
    pub(crate) fn format_at(page: P, level: u16, low: &EntryKey<N>) -> Self {
        let mut page = Self::unchecked(page);
        page.format(E::KIND, level, low);
        page
    }

    #[inline]
    pub(crate) fn set_count(&mut self, count: usize) {
        self.set_hole(self.hole_behind(count));
    }

    /// Removes the entries from index `kept` on. `count` is the present number of entries.
    pub(crate) fn truncate(&mut self, kept: usize, count: usize) {
        let (old, new) = (self.hole_behind(count), self.hole_behind(kept));
        // Recovery after a crash zeroes the hole. Zero it here too, so that the page is the same
        // without recovery.
        self.page[new.start..old.start].fill(0);
        self.page[old.end..new.end].fill(0);
        self.set_hole(new);
    }
}
