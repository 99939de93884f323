//! Leaves: unordered buckets of entries.
//!
//! Keys stand as one array growing up from the header, row addresses as one growing down from the
//! fields at the end. A probe measures all keys of a leaf anyway, so order inside would buy
//! nothing, and an append changes 18 bytes where an ordered insert would shift half the page
//! through the WAL.

use crate::key::{Block, EntryKey, Key, Tid, put_key};
use crate::page::{self, BOUNDS, Entries, HEADER, Kind, Page, PageView};
use crate::store::Patch;
use std::ops::{Deref, DerefMut};

/// The most entries of a leaf.
pub const fn capacity<const N: usize>() -> usize {
    page::capacity(N, Tid::SIZE)
}

/// The entries of a leaf with keys of `words` words in an index that was built with the default
/// options: what one page read covers.
pub const fn usual_count(words: usize) -> f64 {
    0.9 * page::capacity(words, Tid::SIZE) as f64
}

/// Contents of a [`Leaf`].
#[derive(Clone, Copy, Debug)]
pub struct LeafEntries;

impl Entries for LeafEntries {
    const KIND: Kind = Kind::Leaf;
    const SIZE: usize = Tid::SIZE;
}

/// View of a leaf whose header has been checked. `P` is as for [`PageView`].
///
/// ```
/// use neardup_blocktree::key::{EntryKey, Tid};
/// use neardup_blocktree::leaf::{LeafMut, LeafRef};
/// use neardup_blocktree::page::PAGE_SIZE;
///
/// let mut page = [0; PAGE_SIZE];
/// let tid = Tid { block: 7, offset: 1 };
/// LeafMut::format_leaf(&mut page, &EntryKey::start_of(3)).push(&[0xff], tid);
///
/// let leaf = LeafRef::<1>::open(&page, 42)?;
/// assert_eq!(leaf.count(), 1);
/// assert_eq!(leaf.entry_key(0), EntryKey { table: 3, key: [0xff], tid });
///
/// // A page that is none is an error, not a panic.
/// assert!(LeafRef::<1>::open(&[0; PAGE_SIZE], 42).is_err());
/// # Ok::<(), neardup_blocktree::page::Corruption>(())
/// ```
pub type Leaf<P, const N: usize> = PageView<P, N, LeafEntries>;

/// View of a leaf for reading.
pub type LeafRef<'a, const N: usize> = Leaf<&'a Page, N>;
/// View of a leaf for changing it.
pub type LeafMut<'a, const N: usize> = Leaf<&'a mut Page, N>;

impl<P: Deref<Target = Page>, const N: usize> Leaf<P, N> {
    /// The keys' bytes, entry after entry.
    #[inline]
    pub fn keys(&self) -> &[u8] {
        &self.page[HEADER..self.hole().start]
    }

    /// The row of an entry.
    #[inline]
    pub fn tid(&self, i: usize) -> Tid {
        page::tid_at(&self.page, Self::other_offset(i))
    }

    /// The entry key of an entry.
    #[inline]
    pub fn entry_key(&self, i: usize) -> EntryKey<N> {
        EntryKey::new(self.table(), self.key(i), self.tid(i))
    }

    /// The entry keys of all entries, in no particular order.
    #[inline]
    pub fn entries(&self) -> impl Iterator<Item = EntryKey<N>> {
        (0..self.count()).map(|i| self.entry_key(i))
    }

    /// The entry keys from one on. The caller has read what lies before it, on a leaf that was
    /// merged into this one since.
    #[inline]
    pub(crate) fn entries_from(&self, from: EntryKey<N>) -> impl Iterator<Item = EntryKey<N>> {
        let all = self.low_key() >= from;
        self.entries()
            .filter(move |entry_key| all || *entry_key >= from)
    }

    /// The append of an entry; `None` if the leaf is full.
    pub(crate) fn append(&self, key: &Key<N>, tid: Tid) -> Option<Append<N>> {
        let i = self.count();
        if i >= capacity::<N>() {
            return None;
        }
        let offsets = [Self::key_offset(i), Self::other_offset(i)];
        let mut bounds = [0; 4];
        bounds[..2].copy_from_slice(&(Self::key_offset(i + 1) as u16).to_ne_bytes());
        bounds[2..].copy_from_slice(&(offsets[1] as u16).to_ne_bytes());
        Some(Append {
            bounds,
            key: key.map(u64::to_ne_bytes),
            tid: tid.to_bytes(),
            offsets,
        })
    }
}

impl<P: DerefMut<Target = Page>, const N: usize> Leaf<P, N> {
    /// Makes a page an empty leaf that starts at an entry key.
    pub fn format_leaf(page: P, low: &EntryKey<N>) -> Self {
        Self::format_at(page, 0, low)
    }

    #[inline]
    fn set_entry(&mut self, i: usize, key: &Key<N>, tid: Tid) {
        put_key(&mut *self.page, Self::key_offset(i), key);
        page::put_tid(&mut self.page, Self::other_offset(i), tid);
    }

    /// Adds an entry to a leaf that has room for it.
    #[inline]
    pub fn push(&mut self, key: &Key<N>, tid: Tid) {
        let i = self.count();
        debug_assert!(i < capacity::<N>());
        self.set_entry(i, key, tid);
        self.set_count(i + 1);
    }

    /// Keeps the entries that `keep` says yes to. It is given the number that each had on the page.
    /// Gaps are filled from the end, so that most of the page stays as it is and the log record
    /// small.
    pub fn retain(&mut self, mut keep: impl FnMut(usize, &Key<N>, Tid) -> bool) {
        let before = self.count();
        let (mut i, mut end) = (0, before);
        let mut number = 0;
        while i < end {
            if keep(number, &self.key(i), self.tid(i)) {
                i += 1;
                number = i;
                continue;
            }
            end -= 1;
            let (last_key, last_tid) = (self.key(end), self.tid(end));
            self.set_entry(i, &last_key, last_tid);
            number = end;
        }
        self.truncate(end, before);
    }

    /// Moves the entries from `separator` on to a new page, and links it in.
    pub(crate) fn split_into(&mut self, right: &mut Page, block: Block, separator: &EntryKey<N>) {
        let mut right = LeafMut::format_leaf(right, separator);
        let table = self.table();
        self.retain(|_, key, tid| {
            let stays = EntryKey::new(table, *key, tid) < *separator;
            if !stays {
                right.push(key, tid);
            }
            stays
        });
        right.set_right_sibling(self.right_sibling());
        self.set_right_sibling(Some((*separator, block)));
    }
}

/// The three places that an append changes, for a log record that holds nothing else.
pub(crate) struct Append<const N: usize> {
    bounds: [u8; 4],
    key: [[u8; 8]; N],
    tid: [u8; Tid::SIZE],
    offsets: [usize; 2],
}

impl<const N: usize> Append<N> {
    /// The changes, in ascending order of their place.
    pub fn patches(&self) -> [Patch<'_>; 3] {
        let patch = |offset, bytes| Patch { offset, bytes };
        [
            patch(BOUNDS, &self.bounds),
            patch(self.offsets[0], self.key.as_flattened()),
            patch(self.offsets[1], &self.tid),
        ]
    }
}
