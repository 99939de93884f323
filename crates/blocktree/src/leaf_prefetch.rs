//! Prefetch of the part of a leaf that a search will read, into the processor's cache. A leaf has
//! sorted entries, followed by unsorted entries that were added later. The search reads a range of
//! the sorted keys and all unsorted keys.
//!
//! A search for one prefix reads a few cache lines of a leaf with sorted entries. Which lines they
//! are follows from fields of the page. The fields are read without a lock, so that parts of the
//! leaves of all permutations are fetched at the same time. The fields may be outdated, or invalid
//! while another process writes the page. That does no harm, because they only decide which lines
//! are prefetched.

use crate::key::{Block, Key};
use crate::leaf;
use crate::page::HEADER;
use crate::shape::Shape;
use crate::store::{PrefetchPages, UnlockedCopy};
use std::ops::Range;

/// Maximum length of keys, in 64-bit words, for two kinds of prefetch. Up to this length, a search
/// prefetches only the parts of a leaf that it will read, and a scan of adjacent leaves prefetches
/// the leaf after the current one. With longer keys, a search prefetches whole leaves, and a scan
/// does not prefetch the next leaf, because measurements found no gain.
pub(crate) const MOST_WORDS: usize = 2;

/// First step of the prefetch of a leaf: prefetches the fields that [`prefetch_between`] reads. If
/// keys have more than [`MOST_WORDS`] words, prefetches the whole leaf.
#[inline]
pub(crate) fn prefetch_first<S: PrefetchPages, const N: usize>(store: &S, leaf: Block) {
    match N <= MOST_WORDS {
        true => store.prefetch_ends(leaf),
        false => store.prefetch(leaf),
    }
}

/// Second step of the prefetch of a leaf: prefetches the sorted keys from `first` to `last` and all
/// unsorted keys. Does nothing if keys have more than [`MOST_WORDS`] words, because
/// [`prefetch_first`] has prefetched the whole leaf.
pub(crate) fn prefetch_between<S: PrefetchPages, const N: usize>(
    store: &S,
    block: Block,
    first: &Key<N>,
    last: &Key<N>,
) {
    if N > MOST_WORDS {
        return;
    }
    let parts = (store.glance(block)).and_then(|glance| parts_between(&glance, first, last));
    for part in parts.into_iter().flatten() {
        store.prefetch_part(block, part);
    }
}

/// Prefetches the part of a leaf that a search will read. The caller has prefetched the leaf's
/// fields ([`prefetch_first`]). `wanted` takes the key at which the leaf ends, or `None` for the
/// last leaf of a permutation. It returns the lowest and the highest key that the search reads on
/// the leaf, or `None` if the search reads the whole leaf. If keys have more than [`MOST_WORDS`]
/// words, prefetches the whole leaf without a call of `wanted`.
pub(crate) fn prefetch_wanted<S: PrefetchPages, const N: usize>(
    store: &S,
    block: Block,
    wanted: impl FnOnce(Option<&Key<N>>) -> Option<(Key<N>, Key<N>)>,
) {
    if N > MOST_WORDS {
        return store.prefetch(block);
    }
    let Some(glance) = store.glance(block) else {
        return;
    };
    let high = glance.range::<N>().and_then(|(_, high)| high);
    let Some((first, last)) = wanted(high.as_ref()) else {
        return store.prefetch(block);
    };
    let parts = parts_between(&glance, &first, &last);
    for part in parts.into_iter().flatten() {
        store.prefetch_part(block, part);
    }
}

/// Returns two byte ranges of a leaf: the range that probably has the sorted keys from `first` to
/// `last`, and the range of the unsorted keys. `glance` is a copy of the leaf's fields, made
/// without a lock. `None` if the fields are invalid, or if keys are too long to be in `glance`.
fn parts_between<const N: usize>(
    glance: &UnlockedCopy,
    first: &Key<N>,
    last: &Key<N>,
) -> Option<[Range<usize>; 2]> {
    let shape = Shape::<N>::from_bytes(glance.shape())?;
    let size = shape.key_size();
    let count = glance.lower().checked_sub(HEADER)? / size;
    let sorted = glance.sorted().min(count);
    let bytes = |range: Range<usize>| HEADER + size * range.start..HEADER + size * range.end;
    let (low, high) = glance.range::<N>()?;
    let expected = leaf::expected_range((&low, high.as_ref()), shape, sorted, first, last);
    Some([bytes(expected), bytes(sorted..count)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{EntryKey, Tid};
    use crate::leaf::{Leaf, LeafMut};
    use crate::page::{PAGE_SIZE, Page};
    use proptest::prelude::*;

    fn glance(page: &Page) -> UnlockedCopy {
        let mut glance = UnlockedCopy {
            head: [0; 8],
            tail: [0; 64],
        };
        glance
            .head
            .copy_from_slice(&page[UnlockedCopy::HEAD..][..8]);
        glance.tail.copy_from_slice(&page[UnlockedCopy::TAIL..]);
        glance
    }

    /// Fills a leaf with evenly distributed keys. For each of 40 prefixes in the leaf's range,
    /// asserts that the prefetched part contains all keys with the prefix and is small. The last
    /// `appended` keys of the leaf are unsorted. `is_last` is true if the leaf has no right
    /// sibling.
    fn assert_fetched<const N: usize>(is_last: bool, appended: usize) {
        let (low, high) = (0x1234 << 48, 0x123c << 48);
        let end = EntryKey::before_key(2, [high; N]);
        let low_key = EntryKey::before_key(2, [low; N]);
        let shape = Shape::between(&low_key, (!is_last).then_some(&end), true);
        let mut page = [0; PAGE_SIZE];
        let mut leaf: LeafMut<'_, N> = LeafMut::format_leaf(&mut page, &low_key, shape);
        let range = if is_last { u64::MAX - low } else { high - low };
        let count = shape.capacity() - appended;
        let key_of = |i: usize| {
            let mut key = [(i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15); N];
            key[0] = low + range / count as u64 * i as u64;
            key
        };
        for i in (0..count).chain((0..appended).map(|i| i * 7 % count)) {
            leaf.push(&key_of(i), Tid::new(1, 1));
        }
        if !is_last {
            leaf.set_right_sibling(Some((end, 9)));
        }
        assert_eq!(leaf.sorted(), count);
        let glance = glance(&page);
        let leaf = Leaf::<_, N>::open(&page, 1).unwrap();
        let (size, mut most) = (shape.key_size(), 0);
        for i in 0..40 {
            let part = range / 40;
            let (mut first, mut last) = ([0; N], [u64::MAX; N]);
            (first[0], last[0]) = (low + part * i, low + part * i + part - 1);
            let fetched = parts_between(&glance, &first, &last).unwrap();
            for index in 0..leaf.count() {
                if (first..=last).contains(&leaf.key(index)) {
                    let at = HEADER + size * index;
                    assert!(
                        fetched.iter().any(|part| part.contains(&at)),
                        "{i}: {index}"
                    );
                }
            }
            most = most.max(fetched.iter().map(ExactSizeIterator::len).sum());
        }
        assert!(most < size * (appended + count / 40 + 70), "{most}");
    }

    #[test]
    fn what_a_probe_reads_is_fetched() {
        for appended in [0, 1, 150] {
            for is_last in [false, true] {
                assert_fetched::<1>(is_last, appended);
                assert_fetched::<2>(is_last, appended);
            }
        }
    }

    proptest! {
        /// For any values of the fields, the fetched range is inside the page or empty.
        #[test]
        fn damaged_fields_do_no_harm(
            head: [u8; 8], tail in prop::collection::vec(any::<u8>(), 64),
            left_out in 0..5u8, narrow in 0..2u8, first: [u64; 2], last: [u64; 2],
        ) {
            let mut tail: [u8; 64] = tail.try_into().unwrap();
            // Most random bytes are not a valid shape, so the bytes of the shape are set here.
            (tail[38], tail[39]) = (left_out, narrow);
            let glance = UnlockedCopy { head, tail };
            prop_assert_eq!(glance.shape(), [left_out, narrow]);
            let parts = [
                parts_between::<1>(&glance, &[first[0]], &[last[0]]),
                parts_between::<2>(&glance, &first, &last),
            ];
            for part in parts.into_iter().flatten().flatten() {
                prop_assert!(part.start <= part.end && part.end <= usize::from(u16::MAX));
            }
        }
    }
}
