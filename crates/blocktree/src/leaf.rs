//! Leaf pages of the tree: sorted entries, followed by unsorted entries that were added later. An
//! entry has a key and a row address. All entries of a leaf belong to one permutation (ordered copy
//! of all keys) and are between the leaf's low key and its high key. The leaf's shape ([`Shape`])
//! states how many leading bytes all keys omit, because these bytes are equal in all of them, and
//! the size of its row addresses.
//!
//! A leaf has an array of keys that grows upwards from the page header, and an array of row
//! addresses that grows downwards from the fields at the end of the page. A build writes the
//! entries of a leaf in key order. A split keeps most entries in order. A field of the page has the
//! number of sorted entries, which are at the start of the arrays. If a search looks up one prefix
//! on the leaf, it locates the prefix's range among the sorted entries and compares all unsorted
//! entries. Other searches compare all entries of the leaf.
//!
//! An insert appends an entry, which changes 15 bytes of the page with usual 64-bit keys. An insert
//! in order would move half of the page and log the moved bytes in the WAL. The number of bytes of
//! an entry depends on the leaf: see [`Shape`].

use crate::key::{Block, EntryKey, Key, Tid};
use crate::page::{self, BOUNDS, Entries, HEADER, Kind, Page, PageView, Result, Sizes, corrupt};
use crate::shape::{Shape, common_bytes, most_left_out};
use crate::store::Patch;
use std::ops::{Deref, DerefMut, Range};

/// Error message for a corrupt leaf: its keys omit leading bytes that are not equal in all keys
/// between its low key and its high key.
pub(crate) const WIDER_RANGE: &str = "leaf whose range is wider than its keys";

/// Returns the maximum number of entries of a leaf with keys of `N` words, in any shape.
pub const fn most_entries<const N: usize>() -> usize {
    page::capacity(N, 8 * N - Shape::<N>::MOST_LEFT_OUT + 4)
}

/// Returns the usual number of bytes of an entry with a key of `words` words: the row address in 4
/// bytes, and the key without its first byte. The leaves of an index with a million rows or more
/// omit the first byte of their keys.
pub const fn usual_size(words: usize) -> usize {
    8 * words - 1 + 4
}

/// Returns the expected average number of bytes of an entry, for an index of `rows` rows with
/// evenly distributed keys of `words` words.
pub fn expected_size(words: usize, rows: f64) -> f64 {
    let leaves = (rows / usual_count(words)).max(1.0);
    // A leaf omits the first n bytes of its keys unless its keys have two values of these bytes. At
    // most 256^n leaves have two values, because each boundary between two values is on one leaf.
    let bytes = (1..=most_left_out(words)).map(|bytes| 256f64.powi(bytes as i32));
    let left_out: f64 = bytes.map(|values| (1.0 - values / leaves).max(0.0)).sum();
    (8 * words + 4) as f64 - left_out
}

/// Returns the usual number of entries of a leaf with keys of `words` words: 90 % of its capacity.
pub const fn usual_count(words: usize) -> f64 {
    0.9 * page::capacity(words, usual_size(words)) as f64
}

/// Marker type by which a [`PageView`] is the view of a leaf.
#[derive(Clone, Copy, Debug)]
pub struct LeafEntries;

impl Entries for LeafEntries {
    const KIND: Kind = Kind::Leaf;

    #[inline]
    fn sizes<const N: usize>(page: &Page) -> Option<Sizes> {
        let shape = Shape::<N>::from_page(page)?;
        Some(Sizes {
            key: shape.key_size(),
            rest: shape.row_size(),
        })
    }
}

/// Keys of a leaf, or of a range of its entries, as they are packed on the page.
#[derive(Clone, Copy, Debug)]
pub struct LeafKeys<'a, const N: usize> {
    page: &'a Page,
    /// Offset of the first key on the page.
    start: usize,
    count: usize,
    pub(crate) shape: Shape<N>,
    /// Key part of the leaf's low key. It contains the leading bytes that the packed keys omit.
    pub(crate) low: Key<N>,
}

impl<'a, const N: usize> LeafKeys<'a, N> {
    /// Returns the number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the keys at the indexes in `range`.
    #[inline]
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.count);
        LeafKeys {
            start: self.start + self.shape.key_size() * range.start,
            count: range.len(),
            ..*self
        }
    }

    /// Returns the whole key at index `i`, including the bytes that the page omits.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Key<N> {
        let offset = self.start + self.shape.key_size() * i;
        self.shape.key_at(self.page, offset, &self.low)
    }

    /// Returns a mask for the word at index `word` of a key. Its set bits are the bits that the
    /// page stores. The page may omit leading bits.
    #[inline]
    pub(crate) fn mask(&self, word: usize) -> u64 {
        match 8 * self.shape.left_out().saturating_sub(8 * word) {
            64.. => 0,
            bits => u64::MAX >> bits,
        }
    }

    /// Returns the word at index `word` of the key at index `i`. The bits that the page omits have
    /// arbitrary values.
    #[inline]
    pub(crate) fn word(&self, i: usize, word: usize) -> u64 {
        let offset = self.start + self.shape.key_size() * i;
        self.shape.word_at(self.page, offset, word)
    }

    /// Returns the bytes of the packed keys on the page. Each key takes as many bytes as the leaf's
    /// shape states, without the omitted ones.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.page[self.start..self.start + self.shape.key_size() * self.count]
    }

    /// Returns the bytes from the first packed key to the end of the page. A vector load may read
    /// beyond the last key.
    #[cfg(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    ))]
    #[inline]
    pub(crate) fn bytes_and_more(&self) -> &'a [u8] {
        &self.page[self.start..]
    }
}

/// Minimum ratio of sorted to unsorted entries among the entries that stay on the left leaf of a
/// split. If the ratio is lower, the split sorts the left leaf and rewrites it.
const MIN_SORTED_PER_UNSORTED: usize = 4;

/// Number of entries by which [`expected_range`] extends its estimate at both ends. If keys are
/// evenly distributed, only one key in a few hundred is further from its expected index.
const AROUND: usize = 32;

/// Estimates which of the first `count` entries of a leaf, which are sorted, have keys from `first`
/// to `last`. Returns a range of indexes, extended by [`AROUND`] at both ends. The keys `low` and
/// `high` are the leaf's low key and high key. The estimate assumes that keys are evenly
/// distributed between them, or up to the end of the permutation if `high` is `None`.
#[inline]
pub(crate) fn expected_range<const N: usize>(
    (low, high): (&Key<N>, Option<&Key<N>>),
    shape: Shape<N>,
    count: usize,
    first: &Key<N>,
    last: &Key<N>,
) -> Range<usize> {
    // Returns the 64 bits of a key behind the bytes that the leaf omits.
    let (word, cut) = (shape.left_out() / 8, 8 * (shape.left_out() % 8) as u32);
    let significant = |key: &Key<N>| match cut {
        0 => key[word],
        _ => key[word] << cut | key.get(word + 1).map_or(0, |next| next >> (64 - cut)),
    };
    let start = significant(low);
    // If the high key differs from the low key in the omitted bytes, its 64 bits are zero. Then the
    // subtractions wrap around to the number of values up to the highest one.
    let range = match high {
        Some(high) => significant(high).wrapping_sub(start).wrapping_sub(1),
        None => u64::MAX - start,
    };
    let scale = count as f64 / (range as f64).max(1.0);
    let position = |key: &Key<N>| match key {
        key if key <= low => 0,
        key if high.is_some_and(|high| key >= high) => count,
        key => ((significant(key).saturating_sub(start)) as f64 * scale) as usize,
    };
    let end = (position(last).saturating_add(AROUND)).min(count);
    position(first).saturating_sub(AROUND).min(end)..end
}

/// View of a leaf whose header has been checked. `P` is a reference to the page, or the guard of a
/// locked page.
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
/// assert_eq!(leaf.entry_key(0), EntryKey { permutation: 3, key: [0xff], tid });
///
/// // A page that is not a leaf is an error, not a panic.
/// assert!(LeafRef::<1>::open(&[0; PAGE_SIZE], 42).is_err());
/// # Ok::<(), neardup_blocktree::page::Corruption>(())
/// ```
pub type Leaf<P, const N: usize> = PageView<P, N, LeafEntries>;

/// View of a leaf for reading, by a shared reference to the page.
pub type LeafRef<'a, const N: usize> = Leaf<&'a Page, N>;
/// View of a leaf for changing it, by a mutable reference to the page.
pub type LeafMut<'a, const N: usize> = Leaf<&'a mut Page, N>;

impl<P: Deref<Target = Page>, const N: usize> Leaf<P, N> {
    /// Returns the leaf's shape: how many bytes each of its keys and row addresses takes.
    #[inline]
    pub fn shape(&self) -> Shape<N> {
        // The check of the header rejects pages without a valid shape.
        Shape::from_page(&self.page).unwrap_or(Shape::LEAST)
    }

    /// Returns the keys of all entries.
    #[inline]
    pub fn keys(&self) -> LeafKeys<'_, N> {
        LeafKeys {
            page: &self.page,
            start: HEADER,
            count: self.count(),
            shape: self.shape(),
            low: self.low(),
        }
    }

    /// Returns the number of entries at the start of the leaf that are in key order. The entries
    /// behind them were appended, or moved into the gaps that removed entries left.
    #[inline]
    pub fn sorted(&self) -> usize {
        page::sorted(&self.page)
    }

    /// Returns the key at which the leaf ends and the next leaf begins. `None` if it is the last
    /// leaf of its permutation.
    #[inline]
    pub(crate) fn high(&self) -> Option<Key<N>> {
        let high = self.high_key()?;
        (high.permutation == self.permutation()).then_some(high.key)
    }

    /// Returns two ranges of indexes that together contain all entries with keys from `first` to
    /// `last` (inclusive). The first is a range of the sorted entries that was estimated from the
    /// keys' distribution. The second has all unsorted entries. If the estimated range lacks a
    /// sorted key from `first` to `last`, the first range is empty and the second has all entries.
    #[inline]
    pub(crate) fn ranges_between(&self, first: &Key<N>, last: &Key<N>) -> [Range<usize>; 2] {
        let (sorted, keys, high) = (self.sorted(), self.keys(), self.high());
        let expected = expected_range((&keys.low, high.as_ref()), keys.shape, sorted, first, last);
        // Checks only the keys around the expected range: a binary search would take longer than
        // filtering all entries.
        let is_behind = expected.start == 0 || keys.get(expected.start - 1) < *first;
        let is_before = expected.end == sorted || keys.get(expected.end) > *last;
        match is_behind && is_before {
            true => [expected, sorted..keys.len()],
            false => [0..0, 0..keys.len()],
        }
    }

    /// Returns the key of the entry at index `i`.
    #[inline]
    pub fn key(&self, i: usize) -> Key<N> {
        self.keys().get(i)
    }

    /// Returns the row address in the entry at index `i`.
    #[inline]
    pub fn tid(&self, i: usize) -> Tid {
        self.shape().tid_at(&self.page, self.other_offset(i))
    }

    /// Returns the entry key (permutation, key and row address) of the entry at index `i`.
    #[inline]
    pub fn entry_key(&self, i: usize) -> EntryKey<N> {
        EntryKey::new(self.permutation(), self.key(i), self.tid(i))
    }

    /// Returns the entry keys of all entries, in the order of the page. They may be unsorted.
    #[inline]
    pub fn entries(&self) -> impl Iterator<Item = EntryKey<N>> {
        let (keys, permutation, row_size) =
            (self.keys(), self.permutation(), self.shape().row_size());
        (0..keys.len()).map(move |i| {
            let tid = keys.shape.tid_at(keys.page, Self::END - row_size * (i + 1));
            EntryKey::new(permutation, keys.get(i), tid)
        })
    }

    /// Returns the entry keys of the leaf from `from` (inclusive) upwards, in the order of the
    /// page. The caller does not want lower entries: it has read them on a leaf that was then
    /// merged into this one.
    #[inline]
    pub(crate) fn entries_from(&self, from: EntryKey<N>) -> impl Iterator<Item = EntryKey<N>> {
        let all = self.low_key() >= from;
        self.entries()
            .filter(move |entry_key| all || *entry_key >= from)
    }

    /// Returns whether the bytes that the leaf omits are equal in all possible keys between its low
    /// key and its high key. If they are not, the leaf is corrupt.
    pub(crate) fn covers_its_range(&self) -> bool {
        let range = Shape::between(&self.low_key(), self.high_key().as_ref(), true);
        self.shape().left_out() <= range.left_out()
    }

    /// Returns the changes by which an entry with `key` and `tid` is appended to this leaf. Does
    /// not make the changes. `block` is the leaf's block, for the error. Returns `None` if the leaf
    /// is full, or if its row addresses have 4 bytes and `tid` needs 6.
    ///
    /// # Errors
    /// If `key` does not begin with the bytes that the leaf omits: the leaf is corrupt.
    #[inline]
    pub(crate) fn append(&self, block: Block, key: &Key<N>, tid: Tid) -> Result<Option<Append<N>>> {
        let (shape, hole) = (self.shape(), self.hole());
        if common_bytes(&self.low(), key) < shape.left_out() {
            return corrupt(block, WIDER_RANGE);
        }
        let sizes = [shape.key_size(), shape.row_size()];
        if hole.len() < sizes[0] + sizes[1] || !shape.fits(tid) {
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

    /// Returns the shape to which this leaf must be changed before an entry with `tid` can be
    /// appended: its present shape with row addresses of 6 bytes. `None` if `tid` fits into the
    /// present shape. Also `None` if the leaf would be full in the wider shape, so that it must be
    /// split.
    pub(crate) fn wider_shape(&self, tid: Tid) -> Option<Shape<N>> {
        let (shape, wider) = (self.shape(), self.shape().widened());
        (!shape.fits(tid) && self.count() < wider.capacity()).then_some(wider)
    }

    /// Returns the shape that this leaf gets when its right sibling `right` is merged into it. The
    /// keys and row addresses of both leaves fit into the shape.
    pub(crate) fn shape_with<Q: Deref<Target = Page>>(&self, right: &Leaf<Q, N>) -> Shape<N> {
        Shape::between(&self.low_key(), right.high_key().as_ref(), true)
            .widest_of(self.shape())
            .widest_of(right.shape())
    }
}

impl<P: DerefMut<Target = Page>, const N: usize> Leaf<P, N> {
    /// Formats a page as an empty leaf with the low key `low` and the shape `shape`.
    pub fn format_leaf(page: P, low: &EntryKey<N>, shape: Shape<N>) -> Self {
        let mut leaf = Self::format_at(page, 0, low);
        page::put_shape_bytes(&mut leaf.page, shape.to_bytes());
        leaf
    }

    /// Appends an entry. The leaf must have room for the entry.
    #[inline]
    pub fn push(&mut self, key: &Key<N>, tid: Tid) {
        self.push_all(std::iter::once((*key, tid)));
    }

    /// Appends entries. The leaf must have room for the entries.
    pub(crate) fn push_all(&mut self, entries: impl Iterator<Item = (Key<N>, Tid)>) {
        let (shape, low, mut count) = (self.shape(), self.low(), self.count());
        let (mut key_at, mut row_at) = (self.key_offset(count), self.other_offset(count));
        let mut sorted = self.sorted();
        let mut last = sorted.checked_sub(1).map_or([0; N], |last| self.key(last));
        for (key, tid) in entries {
            debug_assert!(count < shape.capacity() && shape.fits(tid));
            if sorted == count && key >= last {
                (sorted, last) = (count + 1, key);
            }
            debug_assert!(common_bytes(&low, &key) >= shape.left_out());
            shape.put_key(&mut self.page, key_at, &key);
            shape.put_tid(&mut self.page, row_at, tid);
            count += 1;
            key_at += shape.key_size();
            // After the last entry, the space may be smaller than a row address.
            row_at = row_at.saturating_sub(shape.row_size());
        }
        self.set_count(count);
        page::put_sorted(&mut self.page, sorted);
    }

    fn clear(&mut self) {
        self.truncate(0, self.count());
        page::put_sorted(&mut self.page, 0);
    }

    /// Copies the entry at index `from` over the entry at index `to`.
    fn copy_entry(&mut self, from: usize, to: usize) {
        let (shape, keys) = (self.shape(), self.keys());
        let (key, tid) = (keys.get(from), self.tid(from));
        let (key_at, row_at) = (self.key_offset(to), self.other_offset(to));
        shape.put_key(&mut self.page, key_at, &key);
        shape.put_tid(&mut self.page, row_at, tid);
    }

    /// Rewrites all entries in key order and in another shape. They must fit into the page in that
    /// shape.
    pub(crate) fn reshape(&mut self, shape: Shape<N>) {
        let entries = self.entries().collect();
        self.rewrite_sorted(entries, shape);
    }

    /// Replaces all entries by `entries`, which it writes in key order and in the shape `shape`.
    /// They must fit into the page in that shape.
    fn rewrite_sorted(&mut self, mut entries: Vec<EntryKey<N>>, shape: Shape<N>) {
        debug_assert!(entries.len() <= shape.capacity());
        // A stable sort is fast if most entries are in order.
        entries.sort();
        self.clear();
        page::put_shape_bytes(&mut self.page, shape.to_bytes());
        self.push_all(entries.iter().map(|entry| (entry.key, entry.tid)));
    }

    /// Merges the right sibling `right` into this leaf: changes this leaf to the shape of
    /// [`Leaf::shape_with`] and appends the entries of `right`. All entries must fit into that
    /// shape. The right sibling of `right` becomes the right sibling of this leaf.
    pub(crate) fn merge<Q: Deref<Target = Page>>(&mut self, right: &Leaf<Q, N>) {
        let shape = self.shape_with(right);
        // Entries that follow an unsorted one do not count as sorted.
        if shape != self.shape() || self.sorted() < self.count() {
            self.reshape(shape);
        }
        self.push_all(right.entries().map(|entry| (entry.key, entry.tid)));
        self.set_right_sibling(right.right_sibling());
    }

    /// Removes each entry for whose index `keep` returns false. Moves the last entries of the leaf
    /// into the gaps. So if few entries are removed, most of the page does not change and the log
    /// record is small. Only the entries before the first gap still count as sorted.
    pub fn retain(&mut self, keep: impl FnMut(usize) -> bool) {
        let before = self.count();
        let mut kept: Vec<bool> = (0..before).map(keep).collect();
        let end = kept.iter().filter(|&&kept| kept).count();
        let first_gap = kept.iter().position(|&kept| !kept).unwrap_or(before);
        let sorted = self.sorted().min(first_gap);
        let mut last = before;
        for gap in first_gap..end {
            if kept[gap] {
                continue;
            }
            while !kept[last - 1] {
                last -= 1;
            }
            last -= 1;
            self.copy_entry(last, gap);
            kept[gap] = true;
        }
        self.truncate(end, before);
        page::put_sorted(&mut self.page, sorted);
    }

    /// Removes each entry for whose index `keep` returns false, like [`Leaf::retain`], and rewrites
    /// the other entries in key order.
    pub fn retain_in_order(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let entries = (self.entries().enumerate())
            .filter_map(|(index, entry)| keep(index).then_some(entry))
            .collect();
        self.rewrite_sorted(entries, self.shape());
    }

    /// Splits this leaf: moves the entries from `separator` on to `right`, a new leaf at `block`.
    /// `right` becomes the right sibling of this leaf. Both leaves then omit as many bytes of their
    /// keys as their new, smaller ranges permit.
    pub(crate) fn split_into(&mut self, right: &mut Page, block: Block, separator: &EntryKey<N>) {
        let narrow = self.shape().is_narrow();
        let shape = Shape::between(separator, self.high_key().as_ref(), narrow);
        let mut right = LeafMut::format_leaf(right, separator, shape);
        let entries: Vec<EntryKey<N>> = self.entries().collect();
        let (stay, go): (Vec<EntryKey<N>>, Vec<EntryKey<N>>) =
            entries.iter().partition(|entry| **entry < *separator);
        right.rewrite_sorted(go, shape);
        right.set_right_sibling(self.right_sibling());
        self.set_right_sibling(Some((*separator, block)));
        let shape = Shape::between(&self.low_key(), Some(separator), narrow);
        // If the shape stays and few of the remaining entries are unsorted, the sorted entries are
        // not rewritten, so that they need not be logged.
        let in_order = (entries[..self.sorted()].iter()).take_while(|entry| **entry < *separator);
        let in_order = in_order.count();
        if shape == self.shape() && stay.len() - in_order <= in_order / MIN_SORTED_PER_UNSORTED {
            self.truncate(in_order, entries.len());
            page::put_sorted(&mut self.page, in_order);
            self.push_all(stay[in_order..].iter().map(|entry| (entry.key, entry.tid)));
        } else {
            self.rewrite_sorted(stay, shape);
        }
    }
}

/// Bytes of a leaf that the append of an entry changes: the bounds of the hole between the arrays,
/// the key and the row address. The log record has only these bytes.
pub(crate) struct Append<const N: usize> {
    /// New bounds of the hole.
    bounds: [u8; 4],
    key: [[u8; 8]; N],
    tid: [u8; Tid::SIZE],
    /// Offsets of the key and of the row address on the page.
    offsets: [usize; 2],
    /// Number of bytes of `key` and of `tid` that are written.
    sizes: [usize; 2],
}

impl<const N: usize> Append<N> {
    /// Returns the changes of the page, in ascending order of offsets.
    pub fn patches(&self) -> [Patch<'_>; 3] {
        let patch = |offset, bytes| Patch { offset, bytes };
        [
            patch(BOUNDS, &self.bounds),
            patch(self.offsets[0], &self.key.as_flattened()[..self.sizes[0]]),
            patch(self.offsets[1], &self.tid[..self.sizes[1]]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_SIZE;
    use proptest::prelude::*;

    fn put_leaf(page: &mut Page, keys: &[u64]) {
        let mut leaf = LeafMut::<1>::format_leaf(page, &EntryKey::start_of(0), Shape::LEAST);
        page::put_shape_bytes(leaf.page, [0, 1]);
        for (i, key) in (0..).zip(keys) {
            leaf.push(&[*key], Tid::new(i, 1));
        }
    }

    fn is_sorted(leaf: &LeafRef<'_, 1>) -> bool {
        (1..leaf.sorted()).all(|index| leaf.key(index - 1) <= leaf.key(index))
    }

    proptest! {
        #[test]
        fn keys_between_two_are_among_the_ranges_given(
            mut keys in prop::collection::vec(0..500u64, 0..400), appended in 0..100usize,
            first in 0..520u64, more in 0..40u64, scale in 0..45u32, steep: bool,
        ) {
            let sorted = keys.len() - appended.min(keys.len());
            keys[..sorted].sort_unstable();
            for key in &mut keys {
                *key = if steep { *key * *key } else { *key } << scale;
            }
            let (first, last) = (first << scale, (first + more) << scale);
            let mut page = [0; PAGE_SIZE];
            put_leaf(&mut page, &keys);
            let leaf = LeafRef::<1>::open(&page, 1).unwrap();
            prop_assert!(leaf.sorted() >= sorted);
            let [expected, rest] = leaf.ranges_between(&[first], &[last]);
            prop_assert!(expected.end <= rest.start && rest.end == keys.len());
            let all = leaf.keys();
            for index in 0..keys.len() {
                let is_given = expected.contains(&index) || rest.contains(&index);
                prop_assert!(is_given || !(first..=last).contains(&keys[index]));
                prop_assert_eq!(all.part(index..keys.len()).get(0), [keys[index]]);
            }
        }

        /// The entries that a leaf counts as sorted are in order after each insertion, removal,
        /// split and merge. If the leaf is rewritten in order, all entries count as sorted.
        #[test]
        fn sorted_entries_are_in_order(
            keys in prop::collection::vec(0..1u64 << 60, 2..500), in_order in 0..500usize,
            removed in prop::collection::vec(0..500usize, 0..9), every in 2..600usize,
            rewritten: bool, separator in 1..1u64 << 60,
        ) {
            let mut keys = keys;
            let in_order = in_order.min(keys.len());
            keys[..in_order].sort_unstable();
            let (mut page, mut right) = ([0; PAGE_SIZE], [0; PAGE_SIZE]);
            put_leaf(&mut page, &keys);
            let leaf = LeafRef::<1>::open(&page, 1).unwrap();
            prop_assert!(leaf.sorted() >= in_order && is_sorted(&leaf));
            let before = leaf.sorted();
            let is_drawn = |index: usize| (index + 1).is_multiple_of(every);
            let stays = |index: usize| !removed.contains(&index) && !is_drawn(index);
            let mut wanted: Vec<u64> = (0..keys.len())
                .filter_map(|index| stays(index).then_some(keys[index]))
                .collect();
            let mut leaf = LeafMut::<1>::unchecked(&mut page);
            match rewritten {
                true => leaf.retain_in_order(stays),
                false => leaf.retain(stays),
            }
            let leaf = LeafRef::<1>::open(&page, 1).unwrap();
            prop_assert!(is_sorted(&leaf));
            if rewritten {
                prop_assert_eq!(leaf.sorted(), wanted.len());
            } else {
                prop_assert_eq!(leaf.sorted(), (0..before).take_while(|at| stays(*at)).count());
            }
            let mut kept: Vec<u64> = leaf.entries().map(|entry| entry.key[0]).collect();
            kept.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(kept, wanted);
            let count = leaf.count();
            let separator = EntryKey::before_key(0, [separator]);
            LeafMut::<1>::unchecked(&mut page).split_into(&mut right, 9, &separator);
            let left = LeafRef::<1>::open(&page, 1).unwrap();
            let right = LeafRef::<1>::open(&right, 9).unwrap();
            prop_assert_eq!(left.count() + right.count(), count);
            prop_assert!(is_sorted(&left) && 5 * left.sorted() >= 4 * left.count());
            prop_assert!(is_sorted(&right) && right.sorted() == right.count());
            let (sorted, right) = (left.sorted() == left.count(), *right.page);
            LeafMut::<1>::unchecked(&mut page).merge(&LeafRef::unchecked(&right));
            let leaf = LeafRef::<1>::open(&page, 1).unwrap();
            prop_assert!(leaf.count() == count && is_sorted(&leaf));
            prop_assert!(!sorted || leaf.sorted() == count);
        }
    }
}
