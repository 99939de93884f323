//! Crowded buckets in a search for pairs: their rows are near so many others that the search
//! reports the rows instead of all their pairs ([`Pairs::with_crowded_buckets`]).
//!
//! A bucket consists of the entries of a permutation whose scope and leading bits are equal. The
//! search reads a permutation in chunks. It ends each chunk at the end of a bucket, so that it
//! compares whole buckets. If a bucket does not fit into a chunk, all its rows are crowded.

use super::Pairs;
use crate::key::{EntryKey, Key, Tid};
use crate::level_cursor::LevelCursor;
use std::ops::Range;

/// Crowded row that a search for pairs reports: the row has too many pairs in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdedRow<const N: usize> {
    /// Number of the bucket, counted from 0 over all crowded buckets of the search.
    pub bucket: u32,
    /// Heap address in the row's index entry.
    pub row: Tid,
    /// Scope's word, if keys have one, and fingerprint of the row. In an index on signatures, the
    /// sketch instead of the fingerprint.
    pub fingerprint: Key<N>,
}

/// Scope (0 if keys have none) and leading bits of a bucket, as returned by
/// [`SortedChunk::bucket`](super::chunk::SortedChunk::bucket).
type BucketId = (u64, u64);

/// State of a search for pairs that reports crowded buckets.
#[derive(Debug)]
pub(super) struct Buckets {
    /// A row is crowded if it has more than this number of pairs in one bucket.
    max_pairs: u32,
    /// Number of crowded buckets so far.
    count: u32,
    /// Last bucket that did not fit into a chunk. The next chunk may start with further entries of
    /// this bucket. `None` before the first such bucket of the permutation.
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

    /// Prepares for the next permutation. Its buckets are different ones, even if they have the
    /// same leading bits.
    pub fn begin_permutation(&mut self) {
        self.open = None;
    }
}

impl<const N: usize> Pairs<N> {
    /// Removes the entries of incomplete buckets from the chunk that was just read. Must be called
    /// before the chunk is divided into groups. `emit` gets the rows of a bucket that does not fit
    /// into one chunk. If a bucket starts within the chunk and may continue to the right, removes
    /// its entries and moves the cursor back to the start of the bucket. So the next chunk starts
    /// with the whole bucket.
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

    /// Passes the crowded rows of the chunk to `emit`, after the entries of the chunk have been
    /// compared with each other.
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

    /// Passes the rows of the entries with the indexes `entries` in the chunk to `emit`. Reports
    /// them as rows of the crowded bucket that was counted last.
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
