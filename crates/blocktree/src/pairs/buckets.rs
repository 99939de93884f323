//! Crowded buckets in a search for pairs. A bucket consists of the entries of a permutation
//! (ordered copy of all keys) whose scope and leading bits are equal. A row is crowded if it has
//! too many pairs in one bucket. The search reports crowded rows instead of all their pairs
//! ([`Pairs::with_crowded_buckets`]). The scope consists of the columns that must be equal in two
//! near-duplicates. If keys have a scope, their first word is a hash of it.
//!
//! The search reads a permutation in chunks. It ends each chunk at the end of a bucket, so that it
//! compares whole buckets. If a bucket does not fit into a chunk, all its rows are crowded.

use super::Pairs;
use crate::key::{EntryKey, Key, Tid};
use crate::level_cursor::LevelCursor;
use std::ops::Range;

/// Crowded row, as a search for pairs reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdedRow<const N: usize> {
    /// Number of the bucket in which the row is crowded. All crowded buckets of the search are
    /// numbered from 0.
    pub bucket: u32,
    /// Row address in the row's index entry.
    pub row: Tid,
    /// The scope's word if keys have one, then the row's fingerprint. In an index on signatures,
    /// the row's sketch takes the place of the fingerprint. A sketch consists of bits of the
    /// signature.
    pub fingerprint: Key<N>,
}

/// Scope (0 if keys have none) and leading bits of a bucket, as returned by
/// [`SortedChunk::bucket`](super::chunk::SortedChunk::bucket).
type BucketId = (u64, u64);

/// State of a search for pairs that reports crowded buckets.
#[derive(Debug)]
pub(super) struct Buckets {
    /// Maximum number of pairs of a row in one bucket. A row with more pairs is crowded.
    max_pairs: u32,
    /// Number of crowded buckets so far.
    count: u32,
    /// Last bucket that did not fit into one chunk. If the next chunk starts with further entries
    /// of this bucket, they count as the same bucket. `None` before the first such bucket of the
    /// permutation.
    open: Option<BucketId>,
}

impl Buckets {
    pub fn new(max_pairs: u32) -> Self {
        Buckets {
            max_pairs,
            count: 0,
            open: None,
        }
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Must be called before each permutation. Without this call, the first bucket of the
    /// permutation could count as the rest of a bucket of the previous permutation, if both have
    /// the same leading bits.
    pub fn begin_permutation(&mut self) {
        self.open = None;
    }
}

impl<const N: usize> Pairs<N> {
    /// Removes buckets from the chunk that are only partly in it. Only the chunk's first and last
    /// bucket can be such buckets. If the bucket does not fit into one chunk, its rows are passed
    /// to `emit` as crowded rows. Otherwise it is the last bucket and may continue on the next
    /// leaf. Then the cursor moves back to the start of the bucket, so that the next chunk starts
    /// with the whole bucket.
    ///
    /// Must be called after a chunk has been read and before it is divided into groups. Does
    /// nothing in a search that does not report crowded buckets.
    pub(super) fn keep_whole_buckets(&mut self, emit: &mut impl FnMut(CrowdedRow<N>)) {
        let Some(buckets) = &mut self.buckets else {
            return;
        };
        let bits = self.plan.passes[self.pass].bits;
        let (chunk, keys) = (&self.chunk, self.chunk.keys());
        let bucket = |key: &Key<N>| chunk.bucket(key, bits);
        let [Some(first), Some(last)] = [keys.first(), keys.last()].map(|key| key.map(bucket))
        else {
            return;
        };
        let mut kept = 0..keys.len();
        let goes_on = self.end.is_some_and(|end| bucket(&end.key) == last);
        if buckets.open == Some(first) || goes_on && first == last {
            kept.start = keys.partition_point(|key| bucket(key) <= first);
            if buckets.open.replace(first) != Some(first) {
                buckets.count += 1;
            }
            self.report_rows(0..kept.start, emit);
        }
        if goes_on && first != last {
            // The next chunk starts with the whole last bucket.
            kept.end = keys.partition_point(|key| bucket(key) < last);
            let position = self.start_of_bucket(last, bits);
            self.cursor = LevelCursor::at(position);
            self.end = Some(position);
        }
        self.chunk.keep(kept);
    }

    /// Returns an entry key below all entries of a bucket with `bits` leading bits in the current
    /// permutation.
    fn start_of_bucket(&self, (scope, prefix): BucketId, bits: u32) -> EntryKey<N> {
        let scope_words = self.layout.scope_words();
        let mut key = [0; N];
        key[..scope_words].fill(scope);
        key[scope_words] = prefix.checked_shl(64 - bits).unwrap_or(0);
        EntryKey::before_key(self.plan.passes[self.pass].permutation, key)
    }

    /// Passes the crowded rows of the chunk to `emit`. Must be called after the entries of the
    /// chunk have been compared with each other: the comparison counts the pairs of each row.
    pub(super) fn report_crowds(&mut self, emit: &mut impl FnMut(CrowdedRow<N>)) {
        let Some(max_pairs) = self.buckets.as_ref().map(|buckets| buckets.max_pairs) else {
            return;
        };
        for group in 0..self.chunk.group_count() {
            let mut is_counted = false;
            for entry in self.chunk.entries(group) {
                if self.chunk.mark(entry) <= max_pairs {
                    continue;
                }
                if let Some(buckets) = &mut self.buckets
                    && !std::mem::replace(&mut is_counted, true)
                {
                    buckets.count += 1;
                }
                self.report_rows(entry..entry + 1, emit);
            }
        }
    }

    /// Passes the rows of some entries of the chunk to `emit` as crowded rows. `entries` is the
    /// range of the indexes of these entries. The entries must belong to the bucket that was last
    /// added to the number of crowded buckets, because the rows are reported with the number of
    /// that bucket.
    fn report_rows(&self, entries: Range<usize>, emit: &mut impl FnMut(CrowdedRow<N>)) {
        let permutation =
            &self.layout.permutations()[usize::from(self.plan.passes[self.pass].permutation)];
        for entry in entries {
            emit(CrowdedRow {
                bucket: self.crowded_buckets() - 1,
                row: self.chunk.entry_tid(entry),
                fingerprint: permutation.restore(&self.chunk.keys()[entry]),
            });
        }
    }
}
