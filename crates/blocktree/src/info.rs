//! Measuring a tree: its pages, how full they are, and how unevenly its keys are spread.
//!
//! A probe of the guaranteed radius looks up its own leading bits in each permutation. How many
//! entries it meets there is, on average over the rows of the index, the sum of n * n / N over all
//! leading bits that occur, where n of the permutation's N entries share them: a row is one of the
//! n with the chance n / N, and then meets n. Keys spread evenly over 2^p prefixes make that
//! 1 + (N - 1) / 2^p.

use crate::block_layout::BlockLayout;
use crate::key::{Key, Tid};
use crate::leaf;
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::plan::probed_bits;
use crate::store::ReadPages;
use crate::tree::Tree;

/// Statistics of a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info<const N: usize> {
    /// Levels of inner pages above the leaves.
    pub height: u16,
    /// Inner pages.
    pub inner_pages: u64,
    /// Leaves with an entry.
    pub leaf_pages: u64,
    /// The most entries that these can have.
    pub room: u64,
    /// Leaves without one.
    pub empty_leaves: u64,
    /// Entries of all permutations.
    pub entries: u64,
    /// Rows with a fingerprint: entries of the first permutation.
    pub rows: u64,
    /// Rows without one.
    pub null_rows: u64,
    /// Entries that a probe of the guaranteed radius meets, in all permutations, on average over
    /// the rows that are there.
    pub candidates: f64,
    /// The largest number of entries that a probe meets in one permutation.
    pub largest_bucket: Option<LargestBucket<N>>,
}

/// Entries of one permutation that share all the bits that a probe looks up, and the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestBucket<const N: usize> {
    /// The permutation.
    pub permutation: u16,
    /// Number of entries.
    pub entries: u64,
    /// Bits of the fingerprint that are looked up.
    pub mask: Key<N>,
    /// Their values in these entries, and the scope in front.
    pub bits: Key<N>,
    /// One of the rows: the one with the lowest address.
    pub tid: Tid,
}

/// Counts the entries of each bucket (one prefix) of a permutation, read in the order of its
/// leaves.
#[derive(Default)]
struct BucketCounter {
    /// The current bucket.
    current: PrefixBucket,
    largest: PrefixBucket,
    /// The sum of the squares of the sizes of all ended buckets.
    squares: f64,
    entries: u64,
}

#[derive(Clone, Copy, Default)]
struct PrefixBucket {
    /// The scope, or 0, and the leading bits.
    prefix: (u64, u64),
    entries: u64,
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
    /// Reads every page of the tree once, holding one lock at a time; others may write meanwhile.
    /// Counts each entry that existed at the start once, even if pages are split meanwhile.
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
                        info.room += capacity as u64;
                    }
                }
                // Leaves follow each other in the order of keys, their entries do not.
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
        self.candidates += buckets.squares / buckets.entries as f64;
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

    /// Fill factor of the leaves that have an entry, from 0 to 1; `None` if there are none.
    pub fn fill(&self) -> Option<f64> {
        (self.room > 0).then(|| self.entries as f64 / self.room as f64)
    }
}

/// The scope of a key, or 0, and its leading bits.
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
