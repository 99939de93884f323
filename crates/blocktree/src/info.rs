//! Statistics of a tree: its pages, their fill, and how unevenly its keys are distributed. For the
//! distribution, the entries of each permutation (ordered copy of all keys) are divided into
//! buckets. A bucket has the entries with equal leading bits.
//!
//! A search within the guaranteed radius looks up the query's leading bits in each permutation
//! (ordered copy of all keys), and reads all entries with these bits. Suppose that n of a
//! permutation's N entries have the same leading bits. A random row is one of these n with
//! probability n / N, and its search then reads n entries. So the average number of entries read,
//! over the rows of the index, is the sum of n * n / N over all leading bits that occur. If the
//! keys are spread evenly over 2^p prefixes, it is 1 + (N - 1) / 2^p.

use crate::block_layout::BlockLayout;
use crate::build::{DEFAULT_LEAF_FILL, Fill};
use crate::inner;
use crate::key::{Key, Tid};
use crate::leaf;
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::plan::probed_bits;
use crate::store::ReadPages;
use crate::tree::Tree;

/// Statistics of the tree of one index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info<const N: usize> {
    /// Number of levels of inner pages above the leaves.
    pub height: u16,
    /// Number of inner pages.
    pub inner_pages: u64,
    /// Number of leaves that have an entry.
    pub leaf_pages: u64,
    /// Maximum number of entries that the leaves counted in `leaf_pages` can have.
    pub capacity: u64,
    /// Number of leaves that have no entry.
    pub empty_leaves: u64,
    /// Number of entries of all permutations.
    pub entries: u64,
    /// Number of rows with a fingerprint, which is the number of entries of the first permutation.
    pub rows: u64,
    /// Number of rows without a fingerprint (NULL).
    pub null_rows: u64,
    /// Number of entries that a search within the guaranteed radius reads in all permutations, on
    /// average over the rows of the index.
    pub mean_candidates: f64,
    /// Largest set of entries that a search within the guaranteed radius reads in one permutation.
    /// `None` if the probed permutations are empty.
    pub largest_bucket: Option<LargestBucket<N>>,
}

/// Change that would make an index smaller for a long time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// A REINDEX. The field is the share of the index that it would save, in percent.
    Reindex(u8),
    /// A lower fill factor of leaves, in percent, for the next REINDEX. The leaves of a build with
    /// the present fill factor were too full for the inserts between two vacuums, so that they were
    /// split.
    Fillfactor(u8),
}

/// Minimum share of its leaf space that an index uses in the long run, if rows are inserted and
/// deleted all the time and VACUUM runs. A REINDEX of an index that uses at least this share saves
/// space only for a while, so it is not advised. Simulated indexes used 0.55 or more (`cargo xtask
/// bench --ageing`).
const MIN_STEADY_FILL: f64 = 0.5;
/// A REINDEX is advised only if it saves at least this share of the pages of the index.
const MIN_SAVED: f64 = 0.25;
/// Another fill factor is advised only if the leaves are emptier than a build fills them by at
/// least this difference, in percent of their capacity.
const MIN_FILL_LOSS: f64 = 18.0;
/// The advised fill factor is lower than the present one by at least this number, in percent. It is
/// at most [`DEFAULT_LEAF_FILL`].
const FILL_STEP: u8 = 10;
/// The advised fill factor is at least this number, in percent.
const MIN_ADVISED_FILL: u8 = 60;

/// Bucket: the entries of one permutation that share their scope and all leading bits that a search
/// within the guaranteed radius looks up. Such a search reads all entries of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestBucket<const N: usize> {
    /// Number of the permutation.
    pub permutation: u16,
    /// Number of entries in the bucket.
    pub entries: u64,
    /// Mask of the fingerprint's bits that the entries share.
    pub mask: Key<N>,
    /// Values of the bits in `mask`, which are the same in all entries of the bucket. The scope is
    /// in front.
    pub bits: Key<N>,
    /// Lowest row address in the bucket, as an example.
    pub tid: Tid,
}

/// Counts the entries of each bucket of a permutation. A bucket has the entries with equal leading
/// bits. Entries must arrive bucket by bucket.
#[derive(Default)]
struct BucketCounter {
    /// Bucket of the last entry that was added.
    current: PrefixBucket,
    /// Largest bucket that has ended.
    largest: PrefixBucket,
    /// Sum of the squared sizes of all ended buckets.
    squares: f64,
    /// Number of entries added.
    entries: u64,
}

/// Bucket: a prefix of keys and the entries that have it.
#[derive(Clone, Copy, Default)]
struct PrefixBucket {
    /// Scope's hash (0 without a scope) and leading bits of the keys.
    prefix: (u64, u64),
    /// Number of entries in the bucket.
    entries: u64,
    /// Lowest row address in the bucket.
    tid: Tid,
}

impl BucketCounter {
    fn push(&mut self, prefix: (u64, u64), tid: Tid) {
        if self.current.entries > 0 && self.current.prefix == prefix {
            self.current.entries += 1;
            self.current.tid = self.current.tid.min(tid);
        } else {
            self.end_bucket();
            self.current = PrefixBucket {
                prefix,
                entries: 1,
                tid,
            };
        }
        self.entries += 1;
    }

    fn end_bucket(&mut self) {
        let n = self.current.entries as f64;
        self.squares += n * n;
        if self.current.entries > self.largest.entries {
            self.largest = self.current;
        }
        self.current.entries = 0;
    }
}

impl<S: ReadPages, const N: usize> Tree<'_, S, N> {
    /// Measures the tree by reading each page once. Holds one lock at a time, so other processes
    /// may write meanwhile. Counts each entry that existed at the start exactly once, even if pages
    /// are split meanwhile.
    pub fn measure(&self, layout: &BlockLayout<N>) -> Result<Info<N>> {
        let mut info = Info {
            height: self.refresh_root()?.level,
            ..Info::default()
        };
        for level in 1..=info.height {
            self.each_inner_page(level, |_| {
                info.inner_pages += 1;
                Ok(())
            })?;
        }
        let mut prefixes = Vec::with_capacity(leaf::most_entries::<N>());
        for permutation in 0..=layout.null_permutation() {
            let bits = match permutation == layout.null_permutation() {
                true => 0,
                false => probed_bits(layout, usize::from(permutation)),
            };
            let mut buckets = BucketCounter::default();
            let mut cursor = LevelCursor::<N>::new(permutation);
            while let Some((leaf, from)) = cursor.step(self, |block| self.store.read(block))? {
                prefixes.clear();
                let (entries, capacity) = (leaf.entries_from(from), leaf.shape().capacity());
                prefixes.extend(entries.map(|entry| (prefix(layout, &entry.key, bits), entry.tid)));
                drop(leaf);
                self.store.check_interrupts();
                match prefixes.is_empty() {
                    true => info.empty_leaves += 1,
                    false => {
                        info.leaf_pages += 1;
                        info.capacity += capacity as u64;
                    }
                }
                // The ranges of leaves are in key order, but the entries within a leaf are not.
                prefixes.sort_unstable();
                for &(prefix, tid) in &prefixes {
                    buckets.push(prefix, tid);
                }
            }
            buckets.end_bucket();
            info.add_permutation(layout, permutation, &buckets);
        }
        Ok(info)
    }
}

impl<const N: usize> Info<N> {
    /// Adds the counts of one permutation, which are in `buckets`, to these statistics.
    /// `permutation` is the number of the permutation. It may be the number of the additional
    /// permutation, which has the rows without a fingerprint.
    fn add_permutation(
        &mut self,
        layout: &BlockLayout<N>,
        permutation: u16,
        buckets: &BucketCounter,
    ) {
        self.entries += buckets.entries;
        if permutation == layout.null_permutation() {
            self.null_rows = buckets.entries;
            return;
        }
        if permutation == 0 {
            self.rows = buckets.entries;
        }
        if buckets.entries == 0 || !layout.is_probed(permutation) {
            return;
        }
        self.mean_candidates += buckets.squares / buckets.entries as f64;
        let PrefixBucket {
            prefix,
            entries,
            tid,
        } = buckets.largest;
        if self
            .largest_bucket
            .is_none_or(|largest| entries > largest.entries)
        {
            let permuted = &layout.permutations()[usize::from(permutation)];
            let mut key = [0; N];
            key[0] = prefix.0;
            key[layout.scope_words()] = prefix.1;
            self.largest_bucket = Some(LargestBucket {
                permutation,
                entries,
                mask: permuted.leading_mask(probed_bits(layout, usize::from(permutation))),
                bits: permuted.restore(&key),
                tid,
            });
        }
    }

    /// Returns the change that would make the index smaller for a long time. `pages` is its number
    /// of pages, `permutations` the number of its permutations, and `fill` the option by which the
    /// next REINDEX fills pages. `None` if no change pays.
    pub fn advice(&self, pages: u64, permutations: usize, fill: Fill) -> Option<Advice> {
        let filled = self.fill()?;
        let built = f64::from(fill.leaf) / 100.0;
        // The last leaf of each permutation is not full, also in a new index.
        let new_leaves = self.leaf_pages as f64 * filled / built + permutations as f64 + 1.0;
        let new_pages = 2.0 + new_leaves * (1.0 + 1.0 / inner::usual_count::<N>());
        let saved = 1.0 - new_pages / pages as f64;
        // The share counts unused pages, which inserts can use.
        if saved >= MIN_SAVED && built * (1.0 - saved) < MIN_STEADY_FILL {
            return Some(Advice::Reindex((100.0 * saved) as u8));
        }
        let loss = f64::from(fill.leaf) - 100.0 * filled;
        let has_many_leaves = self.leaf_pages >= 20 * permutations as u64;
        let better = (fill.leaf.saturating_sub(FILL_STEP)).min(DEFAULT_LEAF_FILL);
        (loss >= MIN_FILL_LOSS && has_many_leaves && better >= MIN_ADVISED_FILL)
            .then_some(Advice::Fillfactor(better))
    }

    /// Returns the fill factor of the leaves that have an entry, from 0 to 1. `None` if there is no
    /// such leaf.
    pub fn fill(&self) -> Option<f64> {
        (self.capacity > 0).then(|| self.entries as f64 / self.capacity as f64)
    }
}

/// Returns the scope's hash of a key (0 without a scope), and the `bits` bits behind it,
/// left-aligned. `bits` is at most 64.
fn prefix<const N: usize>(layout: &BlockLayout<N>, key: &Key<N>, bits: u32) -> (u64, u64) {
    let scope = match layout.scope_words() {
        0 => 0,
        _ => key[0],
    };
    let leading = match bits {
        0 => 0,
        _ => key[layout.scope_words()] & u64::MAX << (64 - bits),
    };
    (scope, leading)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the advice for an index of four permutations with `leaves` leaves that are `filled`
    /// percent full, and with `unused` unused pages. Its fill factor is `fill` percent.
    fn advice(leaves: u64, filled: u64, unused: u64, fill: u8) -> Option<Advice> {
        let info = Info::<1> {
            leaf_pages: leaves,
            inner_pages: leaves.div_ceil(300) + 1,
            capacity: 700 * leaves,
            entries: 7 * leaves * filled,
            ..Info::default()
        };
        let pages = 1 + info.leaf_pages + info.inner_pages + unused;
        let fill = Fill {
            leaf: fill,
            ..Fill::default()
        };
        info.advice(pages, 4, fill)
    }

    #[test]
    fn a_new_or_steady_index_gets_no_advice() {
        assert_eq!(advice(4_000, 80, 0, 80), None);
        assert_eq!(advice(4_000, 50, 0, 50), None);
        assert_eq!(advice(4_000, 73, 300, 80), None);
        assert_eq!(advice(4_000, 65, 300, 70), None);
        // The last leaves of a small index are nearly empty, also after a REINDEX.
        assert_eq!(advice(5, 10, 0, 80), None);
        assert_eq!(advice(40, 60, 0, 80), None);
        assert_eq!(Info::<1>::default().advice(9, 4, Fill::default()), None);
    }

    #[test]
    fn a_bloated_index_needs_a_reindex() {
        // Deleted rows before the next vacuum merges leaves, and unused pages after it.
        assert_eq!(advice(4_000, 40, 0, 80), Some(Advice::Reindex(49)));
        assert_eq!(advice(1_000, 75, 3_000, 80), Some(Advice::Reindex(76)));
    }

    #[test]
    fn leaves_that_inserts_have_split_need_room() {
        assert_eq!(advice(4_000, 58, 100, 90), Some(Advice::Fillfactor(80)));
        assert_eq!(advice(4_000, 64, 100, 90), Some(Advice::Fillfactor(80)));
        assert_eq!(advice(4_000, 55, 100, 80), Some(Advice::Fillfactor(70)));
        assert_eq!(advice(4_000, 50, 0, 100), Some(Advice::Fillfactor(80)));
    }
}
