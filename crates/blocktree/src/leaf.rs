//! Leaves: buckets of sorted entries, followed by the entries that were added later.
//!
//! Keys stand as one array growing up from the header, row addresses as one growing down from the
//! fields at the end. A leaf that is built has its entries in the order of their keys, one that is
//! split has most of them so, and it says of how many of its first ones that holds: a probe for one
//! prefix looks these up. The others it measures all, as other probes do the whole leaf: an ordered
//! insert would shift half the page through the WAL, where an append changes 15 bytes. How many
//! bytes an entry takes is each leaf's own: see [`Shape`].

use crate::key::{Block, EntryKey, Key, Tid};
use crate::page::{self, BOUNDS, Entries, HEADER, Kind, Page, PageView, Result, Sizes, corrupt};
use crate::shape::{Shape, common_bytes, most_left_out};
use crate::store::Patch;
use std::ops::{Deref, DerefMut, Range};

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

/// Usual number of entries of a leaf with keys of `words` words.
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
        let shape = Shape::<N>::from_page(page)?;
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
    /// Offset of the first.
    start: usize,
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

    /// Some of them.
    #[inline]
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.count);
        LeafKeys {
            start: self.start + self.shape.key_size() * range.start,
            count: range.len(),
            ..*self
        }
    }

    /// The key of an entry.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Key<N> {
        let offset = self.start + self.shape.key_size() * i;
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
        let offset = self.start + self.shape.key_size() * i;
        self.shape.word_at(self.page, offset, word)
    }

    /// The bytes of the keys on the page, entry after entry: whole keys if the shape leaves out
    /// none.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.page[self.start..self.start + self.shape.key_size() * self.count]
    }

    /// [`LeafKeys::bytes`] and the following bytes of the page.
    #[cfg(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    ))]
    #[inline]
    pub(crate) fn bytes_and_more(&self) -> &'a [u8] {
        &self.page[self.start..]
    }
}

/// Share of a leaf's entries that may stay in no order when it is split, as its inverse.
const FEW_APPENDED: usize = 4;

/// Number of entries that are read on both sides of the expected range. Among evenly spread keys,
/// one in a few hundred is further from its expected index.
const AROUND: usize = 32;

/// Range of indexes among `count` sorted keys of a leaf that contains all keys between two, if the
/// keys are spread evenly between the leaf's low key and its high key, if it has one.
#[inline]
pub(crate) fn expected_range<const N: usize>(
    (low, high): (&Key<N>, Option<&Key<N>>),
    shape: Shape<N>,
    count: usize,
    first: &Key<N>,
    last: &Key<N>,
) -> Range<usize> {
    // The 64 bits after the common prefix of all keys.
    let (word, cut) = (shape.left_out() / 8, 8 * (shape.left_out() % 8) as u32);
    let significant = |key: &Key<N>| match cut {
        0 => key[word],
        _ => key[word] << cut | key.get(word + 1).map_or(0, |next| next >> (64 - cut)),
    };
    let start = significant(low);
    // At the end of what these bits can tell apart a high key begins with zeroes.
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
/// assert_eq!(leaf.entry_key(0), EntryKey { permutation: 3, key: [0xff], tid });
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
        Shape::from_page(&self.page).unwrap_or(Shape::LEAST)
    }

    /// The keys, entry after entry.
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

    /// Number of the first entries that are known to be in the order of their keys. Those behind
    /// them were appended, or moved into gaps.
    #[inline]
    pub fn sorted(&self) -> usize {
        page::sorted(&self.page)
    }

    /// Index ranges that contain all entries with keys between two, both included: a range of the
    /// sorted entries, and all unsorted ones.
    #[inline]
    pub(crate) fn ranges_between(&self, first: &Key<N>, last: &Key<N>) -> [Range<usize>; 2] {
        let (sorted, keys) = (self.sorted(), self.keys());
        let high = self
            .high_key()
            .filter(|high| high.permutation == self.permutation());
        let high = high.map(|high| high.key);
        let expected = expected_range((&keys.low, high.as_ref()), keys.shape, sorted, first, last);
        // Checks two keys only, because a binary search takes longer than the filter.
        let is_behind = expected.start == 0 || keys.get(expected.start - 1) < *first;
        let is_before = expected.end == sorted || keys.get(expected.end) > *last;
        match is_behind && is_before {
            true => [expected, sorted..keys.len()],
            false => [0..0, 0..keys.len()],
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
        EntryKey::new(self.permutation(), self.key(i), self.tid(i))
    }

    /// The entry keys of all entries, in no particular order.
    #[inline]
    pub fn entries(&self) -> impl Iterator<Item = EntryKey<N>> {
        let (keys, permutation, row_size) =
            (self.keys(), self.permutation(), self.shape().row_size());
        (0..keys.len()).map(move |i| {
            let tid = keys.shape.tid_at(keys.page, Self::END - row_size * (i + 1));
            EntryKey::new(permutation, keys.get(i), tid)
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
        let mut sorted = self.sorted();
        let mut last = sorted.checked_sub(1).map_or([0; N], |last| self.key(last));
        for (key, tid) in entries {
            debug_assert!(count < shape.capacity() && shape.takes(tid));
            if sorted == count && key >= last {
                (sorted, last) = (count + 1, key);
            }
            debug_assert!(common_bytes(&low, &key) >= shape.left_out());
            shape.put_key(&mut self.page, key_at, &key);
            shape.put_tid(&mut self.page, row_at, tid);
            count += 1;
            key_at += shape.key_size();
            // Behind the last one there may be less than a row address.
            row_at = row_at.saturating_sub(shape.row_size());
        }
        self.set_count(count);
        page::put_sorted(&mut self.page, sorted);
    }

    /// Drops all entries.
    fn clear(&mut self) {
        self.truncate(0, self.count());
        page::put_sorted(&mut self.page, 0);
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
        self.clear();
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

    /// Keeps the entries that `keep` says yes to. It is given the number of each on the page. Gaps
    /// are filled from the end, so that most of the page stays as it is and the log record small,
    /// where few entries go. The first gap ends what is in order.
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

    /// Keeps the entries that `keep` says yes to, as [`Leaf::retain`] does, and writes them in
    /// order.
    pub fn retain_in_order(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut entries: Vec<EntryKey<N>> = (self.entries().enumerate())
            .filter_map(|(index, entry)| keep(index).then_some(entry))
            .collect();
        // Most are in order already.
        entries.sort();
        self.clear();
        self.push_all(entries.iter().map(|entry| (entry.key, entry.tid)));
    }

    /// Moves the entries from `separator` on to a new page, and links it in. Pages whose ranges
    /// allow it leave out more of their keys.
    pub(crate) fn split_into(&mut self, right: &mut Page, block: Block, separator: &EntryKey<N>) {
        let narrow = self.shape().is_narrow();
        let shape = Shape::between(separator, self.high_key().as_ref(), narrow);
        let mut right = LeafMut::format_leaf(right, separator, shape);
        let entries: Vec<EntryKey<N>> = self.entries().collect();
        let (mut stay, mut go): (Vec<EntryKey<N>>, Vec<EntryKey<N>>) =
            entries.iter().partition(|entry| **entry < *separator);
        // Most are in order already.
        go.sort();
        right.push_all(go.iter().map(|entry| (entry.key, entry.tid)));
        right.set_right_sibling(self.right_sibling());
        self.set_right_sibling(Some((*separator, block)));
        let shape = Shape::between(&self.low_key(), Some(separator), narrow);
        // What does not move need not be logged: few stay behind those that are in order.
        let in_order = (entries[..self.sorted()].iter()).take_while(|entry| **entry < *separator);
        let in_order = in_order.count();
        if shape == self.shape() && stay.len() - in_order <= in_order / FEW_APPENDED {
            self.truncate(in_order, entries.len());
            page::put_sorted(&mut self.page, in_order);
            self.push_all(stay[in_order..].iter().map(|entry| (entry.key, entry.tid)));
        } else {
            stay.sort();
            self.clear();
            page::put_shape_bytes(&mut self.page, shape.to_bytes());
            self.push_all(stay.iter().map(|entry| (entry.key, entry.tid)));
        }
    }
}

/// The three ranges that an append changes, for a log record with nothing else.
pub(crate) struct Append<const N: usize> {
    bounds: [u8; 4],
    key: [[u8; 8]; N],
    tid: [u8; Tid::SIZE],
    offsets: [usize; 2],
    /// Bytes of key and row address that count.
    sizes: [usize; 2],
}

impl<const N: usize> Append<N> {
    /// The changes, in ascending order of their offsets.
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

        /// Sorted entries are in order, whatever was added, removed and moved, and they are all
        /// where a leaf is written in order.
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
