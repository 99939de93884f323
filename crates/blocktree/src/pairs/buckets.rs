//! Crowded buckets: rows that are near so many others that not all of their pairs are reported.
//!
//! A bucket consists of the entries of a permutation whose scope and leading bits are equal. A
//! search for pairs that reports crowded buckets compares whole buckets only: a chunk ends where a
//! bucket ends. All rows of a bucket that does not fit into memory are crowded.

use super::Pairs;
use crate::key::{EntryKey, Key, Tid};
use crate::level_cursor::LevelCursor;
use std::ops::Range;

/// Row of a crowded bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdedRow<const N: usize> {
    /// Number of the bucket.
    pub bucket: u32,
    /// Address of the row.
    pub row: Tid,
    /// Scope and fingerprint of the row, or scope and sketch of its signature.
    pub fingerprint: Key<N>,
}

/// Scope and leading bits of a bucket.
type BucketId = (u64, u64);

/// Counts crowded buckets.
#[derive(Debug)]
pub(super) struct Buckets {
    /// Number of pairs in a bucket beyond which a row is crowded.
    max_pairs: u32,
    count: u32,
    /// Bucket that did not fit into a chunk and may go on in the next one.
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

    /// Prepares for another permutation, which may have buckets with the same leading bits.
    pub fn begin_permutation(&mut self) {
        self.open = None;
    }
}

impl<const N: usize> Pairs<N> {
    /// Limits the chunk, whose groups are not formed yet, to whole buckets. Reports the rows of a
    /// bucket that does not fit into the chunk.
    pub(super) fn keep_whole_buckets(&mut self, emit: &mut impl FnMut(CrowdedRow<N>)) {
        let Some(buckets) = &mut self.buckets else {
            return;
        };
        let bits = self.plan.probes[self.probe].bits;
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
            // The next chunk has all of the last bucket.
            kept.end = keys.partition_point(|key| bucket(key) < last);
            let position = self.start_of_bucket(last, bits);
            self.cursor = LevelCursor::at(position);
            self.end = Some(position);
        }
        self.chunk.keep(kept);
    }

    /// Returns the position before all entries of a bucket.
    fn start_of_bucket(&self, (scope, prefix): BucketId, bits: u32) -> EntryKey<N> {
        let scope_words = self.layout.scope_words();
        let mut key = [0; N];
        key[..scope_words].fill(scope);
        key[scope_words] = prefix.checked_shl(64 - bits).unwrap_or(0);
        EntryKey::before_key(self.plan.probes[self.probe].permutation, key)
    }

    /// Reports the crowded rows of the chunk, whose entries have been compared with each other.
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

    /// Reports rows of the chunk as rows of the last bucket.
    fn report_rows(&self, entries: Range<usize>, emit: &mut impl FnMut(CrowdedRow<N>)) {
        let permutation =
            &self.layout.permutations()[usize::from(self.plan.probes[self.probe].permutation)];
        for entry in entries {
            emit(CrowdedRow {
                bucket: self.crowded_buckets() - 1,
                row: self.chunk.entry_tid(entry),
                fingerprint: permutation.restore(&self.chunk.keys()[entry]),
            });
        }
    }
}
