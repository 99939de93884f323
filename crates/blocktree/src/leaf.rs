//! Leaves: unordered buckets of entries.
//!
//! Keys stand as one array growing up from the header, row addresses as one growing down from the
//! fields at the end. A probe measures all keys of a leaf anyway, so order inside would buy
//! nothing, and an append changes 15 bytes where an ordered insert would shift half the page
//! through the WAL. How many bytes an entry takes is each leaf's own: see [`Shape`].

use crate::key::{Block, EntryKey, Key, Tid};
use crate::page::{self, BOUNDS, Entries, HEADER, Kind, Page, PageView, Result, Sizes, corrupt};
use crate::shape::{Shape, common_bytes, most_left_out};
use crate::store::Patch;
use std::ops::{Deref, DerefMut};

/// The defect of a leaf that leaves out bytes of its keys which are not the same in all of its
/// range.
pub(crate) const WIDER_RANGE: &str = "leaf whose range is wider than its keys";

/// The most entries of any leaf.
pub const fn most_entries<const N: usize>() -> usize {
    page::capacity(N, 8 * N - Shape::<N>::MOST_LEFT_OUT + 4)
}

/// Bytes of an entry in an index of the usual size, built with the default options: a million rows
/// and more leave out the first byte of each key.
pub const fn usual_size(words: usize) -> usize {
    8 * words - 1 + 4
}

/// Bytes of an entry in an index of `rows` rows whose keys are spread evenly: on average, over its
/// leaves.
pub fn expected_size(words: usize, rows: f64) -> f64 {
    let leaves = (rows / usual_count(words)).max(1.0);
    // Where one value of some first bytes ends and the next one begins, a leaf has both.
    let bytes = (1..=most_left_out(words)).map(|bytes| 256f64.powi(bytes as i32));
    let left_out: f64 = bytes.map(|values| (1.0 - values / leaves).max(0.0)).sum();
    (8 * words + 4) as f64 - left_out
}

/// The entries of a leaf with keys of `words` words in an index of the usual size: what one page
/// read covers.
pub const fn usual_count(words: usize) -> f64 {
    0.9 * page::capacity(words, usual_size(words)) as f64
}

/// Contents of a [`Leaf`].
#[derive(Clone, Copy, Debug)]
pub struct LeafEntries;

impl Entries for LeafEntries {
    const KIND: Kind = Kind::Leaf;

    #[inline]
    fn sizes<const N: usize>(page: &Page) -> Option<Sizes> {
        let shape = Shape::<N>::of(page)?;
        Some(Sizes {
            key: shape.key_size(),
            other: shape.row_size(),
        })
    }
}

/// Keys of a leaf.
#[derive(Clone, Copy, Debug)]
pub struct LeafKeys<'a, const N: usize> {
    page: &'a Page,
    count: usize,
    pub(crate) shape: Shape<N>,
    /// The key that the leaf starts at, which has the bytes that the others lack.
    pub(crate) low: Key<N>,
}

impl<'a, const N: usize> LeafKeys<'a, N> {
    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The key of an entry.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Key<N> {
        let offset = HEADER + self.shape.key_size() * i;
        self.shape.key_at(self.page, offset, &self.low)
    }

    /// The bits of a word that are not left out.
    #[inline]
    pub(crate) fn mask(&self, word: usize) -> u64 {
        match 8 * self.shape.left_out().saturating_sub(8 * word) {
            64.. => 0,
            bits => u64::MAX >> bits,
        }
    }

    /// A word of the key of an entry. The bits that are left out of it are any.
    #[inline]
    pub(crate) fn word(&self, i: usize, word: usize) -> u64 {
        let offset = HEADER + self.shape.key_size() * i;
        self.shape.word_at(self.page, offset, word)
    }

    /// The bytes of the keys on the page, entry after entry: whole keys if the shape leaves out
    /// none.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.page[HEADER..HEADER + self.shape.key_size() * self.count]
    }

    /// [`LeafKeys::bytes`] and what follows them on the page.
    #[cfg(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    ))]
    #[inline]
    pub(crate) fn bytes_and_more(&self) -> &'a [u8] {
        &self.page[HEADER..]
    }
}

/// View of a leaf whose header has been checked. `P` is as for [`PageView`].
///
/// ```
/// use neardup_blocktree::key::{EntryKey, Tid};
/// use neardup_blocktree::leaf::{LeafMut, LeafRef};
/// use neardup_blocktree::page::PAGE_SIZE;
/// use neardup_blocktree::shape::Shape;
///
/// let mut page = [0; PAGE_SIZE];
/// let (tid, low) = (Tid { block: 7, offset: 1 }, EntryKey::start_of(3));
/// let shape = Shape::between(&low, None, true);
/// LeafMut::format_leaf(&mut page, &low, shape).push(&[0xff], tid);
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
    /// The bytes that its entries take.
    #[inline]
    pub fn shape(&self) -> Shape<N> {
        // A page of another shape has not passed the check.
        Shape::of(&self.page).unwrap_or(Shape::LEAST)
    }

    /// The keys, entry after entry.
    #[inline]
    pub fn keys(&self) -> LeafKeys<'_, N> {
        LeafKeys {
            page: &self.page,
            count: self.count(),
            shape: self.shape(),
            low: self.low(),
        }
    }

    /// The key of an entry.
    #[inline]
    pub fn key(&self, i: usize) -> Key<N> {
        self.keys().get(i)
    }

    /// The row of an entry.
    #[inline]
    pub fn tid(&self, i: usize) -> Tid {
        self.shape().tid_at(&self.page, self.other_offset(i))
    }

    /// The entry key of an entry.
    #[inline]
    pub fn entry_key(&self, i: usize) -> EntryKey<N> {
        EntryKey::new(self.table(), self.key(i), self.tid(i))
    }

    /// The entry keys of all entries, in no particular order.
    #[inline]
    pub fn entries(&self) -> impl Iterator<Item = EntryKey<N>> {
        let (keys, table, row_size) = (self.keys(), self.table(), self.shape().row_size());
        (0..keys.len()).map(move |i| {
            let tid = keys.shape.tid_at(keys.page, Self::END - row_size * (i + 1));
            EntryKey::new(table, keys.get(i), tid)
        })
    }

    /// The entry keys from one on. The caller has read what lies before it, on a leaf that was
    /// merged into this one since.
    #[inline]
    pub(crate) fn entries_from(&self, from: EntryKey<N>) -> impl Iterator<Item = EntryKey<N>> {
        let all = self.low_key() >= from;
        self.entries()
            .filter(move |entry_key| all || *entry_key >= from)
    }

    /// Returns whether all keys that its range allows begin with the bytes that it leaves out.
    pub(crate) fn covers_its_range(&self) -> bool {
        let range = Shape::between(&self.low_key(), self.high_key().as_ref(), true);
        self.shape().left_out() <= range.left_out()
    }

    /// The append of an entry; `None` if the leaf is full, or its row addresses are too short.
    #[inline]
    pub(crate) fn append(&self, block: Block, key: &Key<N>, tid: Tid) -> Result<Option<Append<N>>> {
        let (shape, hole) = (self.shape(), self.hole());
        if common_bytes(&self.low(), key) < shape.left_out() {
            return corrupt(block, WIDER_RANGE);
        }
        let sizes = [shape.key_size(), shape.row_size()];
        if hole.len() < sizes[0] + sizes[1] || !shape.takes(tid) {
            return Ok(None);
        }
        let offsets = [hole.start, hole.end - sizes[1]];
        let mut bounds = [0; 4];
        bounds[..2].copy_from_slice(&((hole.start + sizes[0]) as u16).to_ne_bytes());
        bounds[2..].copy_from_slice(&(offsets[1] as u16).to_ne_bytes());
        Ok(Some(Append {
            bounds,
            key: shape.key_bytes(key),
            tid: shape.tid_bytes(tid),
            offsets,
            sizes,
        }))
    }

    /// The shape in which the leaf takes a row address that it cannot take as it is; `None` if the
    /// address is not what stands against one more entry.
    pub(crate) fn wider_shape(&self, tid: Tid) -> Option<Shape<N>> {
        let (shape, wider) = (self.shape(), self.shape().widened());
        (!shape.takes(tid) && self.count() < wider.capacity()).then_some(wider)
    }

    /// The shape in which the entries of this leaf and of its right neighbour fit on one page, if
    /// they are few enough.
    pub(crate) fn shape_with<Q: Deref<Target = Page>>(&self, right: &Leaf<Q, N>) -> Shape<N> {
        Shape::between(&self.low_key(), right.high_key().as_ref(), true)
            .with_all_of(self.shape())
            .with_all_of(right.shape())
    }
}

impl<P: DerefMut<Target = Page>, const N: usize> Leaf<P, N> {
    /// Makes a page an empty leaf that starts at an entry key.
    pub fn format_leaf(page: P, low: &EntryKey<N>, shape: Shape<N>) -> Self {
        let mut leaf = Self::format_at(page, 0, low);
        page::put_shape_bytes(&mut leaf.page, shape.to_bytes());
        leaf
    }

    /// Adds an entry to a leaf that has room for it.
    #[inline]
    pub fn push(&mut self, key: &Key<N>, tid: Tid) {
        self.push_all(std::iter::once((*key, tid)));
    }

    /// Adds entries to a leaf that has room for them.
    pub(crate) fn push_all(&mut self, entries: impl Iterator<Item = (Key<N>, Tid)>) {
        let (shape, low, mut count) = (self.shape(), self.low(), self.count());
        let (mut key_at, mut row_at) = (self.key_offset(count), self.other_offset(count));
        for (key, tid) in entries {
            debug_assert!(count < shape.capacity() && shape.takes(tid));
            debug_assert!(common_bytes(&low, &key) >= shape.left_out());
            shape.put_key(&mut self.page, key_at, &key);
            shape.put_tid(&mut self.page, row_at, tid);
            count += 1;
            key_at += shape.key_size();
            // Behind the last one there may be less than a row address.
            row_at = row_at.saturating_sub(shape.row_size());
        }
        self.set_count(count);
    }

    /// Copies an entry over another one.
    fn copy_entry(&mut self, from: usize, to: usize) {
        let (shape, keys) = (self.shape(), self.keys());
        let (key, tid) = (keys.get(from), self.tid(from));
        let (key_at, row_at) = (self.key_offset(to), self.other_offset(to));
        shape.put_key(&mut self.page, key_at, &key);
        shape.put_tid(&mut self.page, row_at, tid);
    }

    /// Writes the entries in another shape, in which they fit.
    pub(crate) fn reshape(&mut self, shape: Shape<N>) {
        let entries: Vec<_> = self.entries().collect();
        debug_assert!(entries.len() <= shape.capacity());
        self.truncate(0, entries.len());
        page::put_shape_bytes(&mut self.page, shape.to_bytes());
        self.push_all(entries.iter().map(|entry| (entry.key, entry.tid)));
    }

    /// Adds the entries of the right neighbour, for which there is room in that shape, behind the
    /// others, and takes over its right sibling.
    pub(crate) fn merge<Q: Deref<Target = Page>>(&mut self, right: &Leaf<Q, N>) {
        let shape = self.shape_with(right);
        if shape != self.shape() {
            self.reshape(shape);
        }
        self.push_all(right.entries().map(|entry| (entry.key, entry.tid)));
        self.set_right_sibling(right.right_sibling());
    }

    /// Keeps the entries that `keep` says yes to. It is given the number that each had on the page.
    /// Gaps are filled from the end, so that most of the page stays as it is and the log record
    /// small.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let before = self.count();
        let (mut i, mut end) = (0, before);
        let mut number = 0;
        while i < end {
            if keep(number) {
                i += 1;
                number = i;
                continue;
            }
            end -= 1;
            self.copy_entry(end, i);
            number = end;
        }
        self.truncate(end, before);
    }

    /// Moves the entries from `separator` on to a new page, and links it in. Pages whose ranges
    /// allow it leave out more of their keys.
    pub(crate) fn split_into(&mut self, right: &mut Page, block: Block, separator: &EntryKey<N>) {
        let narrow = self.shape().is_narrow();
        let shape = Shape::between(separator, self.high_key().as_ref(), narrow);
        let mut right = LeafMut::format_leaf(right, separator, shape);
        let mut stays = Vec::with_capacity(self.count());
        right.push_all(self.entries().filter_map(|entry| {
            stays.push(entry < *separator);
            (entry >= *separator).then_some((entry.key, entry.tid))
        }));
        self.retain(|number| stays[number]);
        right.set_right_sibling(self.right_sibling());
        self.set_right_sibling(Some((*separator, block)));
        let shape = Shape::between(&self.low_key(), Some(separator), narrow);
        if shape != self.shape() {
            self.reshape(shape);
        }
    }
}

/// The three places that an append changes, for a log record that holds nothing else.
pub(crate) struct Append<const N: usize> {
    bounds: [u8; 4],
    key: [[u8; 8]; N],
    tid: [u8; Tid::SIZE],
    offsets: [usize; 2],
    /// Bytes of key and row address that count.
    sizes: [usize; 2],
}

impl<const N: usize> Append<N> {
    /// The changes, in ascending order of their place.
    pub fn patches(&self) -> [Patch<'_>; 3] {
        let patch = |offset, bytes| Patch { offset, bytes };
        [
            patch(BOUNDS, &self.bounds),
            patch(self.offsets[0], &self.key.as_flattened()[..self.sizes[0]]),
            patch(self.offsets[1], &self.tid[..self.sizes[1]]),
        ]
    }
}
