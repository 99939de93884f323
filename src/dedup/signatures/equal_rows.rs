//! Runs of rows with equal signatures. A search compares only one row of each run, which represents
//! all of them.
//!
//! Long lists use temporary files, sorted or read by page.
use std::hash::{BuildHasher, RandomState};

use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::pairs::KeyOrderScan;
use neardup_blocktree::sort::{Entry, ExternalSort, Sorted};

use super::rows::SignatureRows;
use crate::am::index::Index;
use crate::dedup::limits::{share, too_many};
use crate::dedup::progress::Progress;
use crate::dedup::row_filter::Wanted;
use crate::dedup::tid_set::{self, TidSet};
use neardup_pg::storage::temp::TempSpace;

/// Bit of a packed [`Side`] that is set if the side is a run. Row addresses have only 48 bits, so
/// they leave this bit free.
const IS_RUN: u64 = 1 << 63;

/// Side of a pair: a single row, or a run of rows with equal signatures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Address at which the snapshot sees the row.
    Row(Tid),
    /// Position of the run's first row in the list of all rows of runs, and the number of the run's
    /// rows.
    Run(u32, u32),
}

impl Side {
    /// Returns the number of rows of the side.
    pub fn len(self) -> u32 {
        match self {
            Side::Row(_) => 1,
            Side::Run(_, count) => count,
        }
    }

    /// Encodes the side as a number.
    pub fn packed(self) -> u64 {
        match self {
            Side::Row(row) => row.packed(),
            Side::Run(start, count) => IS_RUN | u64::from(start) << 32 | u64::from(count),
        }
    }

    /// Decodes the number that [`Side::packed`] returned.
    pub fn from_packed(packed: u64) -> Self {
        match packed & IS_RUN {
            0 => Side::Row(Tid::from_packed(packed)),
            _ => Side::Run(((packed & !IS_RUN) >> 32) as u32, packed as u32),
        }
    }
}

/// Runs of rows with equal signatures in an index. The row with the lowest index entry represents a
/// run.
pub struct EqualRows {
    files: TempSpace,
    /// List of runs. The key is the lowest index entry of the run, then the packed [`Side`].
    runs: ExternalSort<TempSpace, 2>,
    /// Addresses at which the snapshot sees the rows of runs, run by run. Each address is two
    /// numbers: the block number and the offset.
    rows: Paged<TempSpace>,
    /// Index entries that a search skips, because another entry represents their run, or because
    /// their row is invisible.
    followers: TidSet,
    /// Index entries whose rows take part in the search.
    wanted: Wanted,
}

impl EqualRows {
    /// Finds the runs of equal signatures among the rows of an index that are in `wanted`. `rows`
    /// looks up the rows.
    pub fn find<const N: usize>(
        index: &Index<N>,
        rows: &mut SignatureRows,
        mut wanted: Wanted,
        mut files: TempSpace,
    ) -> Self {
        let total = index.estimated_rows();
        let mut progress = Progress::estimated("grouping equal signatures", "rows", total);
        let mut maybe_equal = MaybeEqualRows::new();
        let tree = index.tree();
        let mut scan = KeyOrderScan::new(index.block_layout.clone());
        // Current key, and its first entry as long as no other entry has the key. Only rows with
        // equal keys can have equal signatures.
        let mut current: Option<(Key<N>, Option<Tid>)> = None;
        let mut entries = Vec::new();
        loop {
            entries.clear();
            let more = index.or_corrupt(scan.step(&tree, &mut |key, tid| entries.push((key, tid))));
            progress.advance(entries.len() as u64);
            for &(key, tid) in &entries {
                if !wanted.contains(&mut files, tid) {
                    continue;
                }
                match &mut current {
                    Some((known, alone)) if *known == key => {
                        for entry in alone.take().into_iter().chain([tid]) {
                            maybe_equal.add(&mut files, rows, entry);
                        }
                    }
                    _ => current = Some((key, Some(tid))),
                }
            }
            if !more {
                progress.finish();
                return maybe_equal.into_runs(wanted, files);
            }
        }
    }

    /// Returns whether a search compares the row of an index entry: the row takes part, and no
    /// other row of its run represents it.
    pub fn is_wanted(&mut self, entry: Tid) -> bool {
        self.wanted.contains(&mut self.files, entry)
            && !self.followers.contains(&mut self.files, entry)
    }

    /// Returns the address of a row of a side. `number` is the position of the row within the side,
    /// from 0. Returns `None` after the last row.
    pub fn row(&mut self, side: Side, number: u32) -> Option<Tid> {
        match side {
            Side::Row(row) => (number == 0).then_some(row),
            Side::Run(start, count) => (number < count).then(|| self.member(start + number)),
        }
    }

    fn member(&mut self, position: u32) -> Tid {
        let [block, line] = [0, 1].map(|half| self.rows.get(&mut self.files, 2 * position + half));
        Tid {
            block,
            offset: line as u16,
        }
    }

    /// Returns all runs, in the order of their lowest index entries.
    pub fn all(&mut self) -> RunsInOrder {
        let mut sorted = self.runs.sorted(&mut self.files, None);
        RunsInOrder {
            next: sorted.next(&mut self.files),
            sorted,
            files: self.files,
        }
    }
}

/// Iterator over runs of equal signatures, in the order of their lowest index entries.
pub struct RunsInOrder {
    sorted: Sorted<TempSpace, 2>,
    next: Option<Entry<2>>,
    files: TempSpace,
}

impl RunsInOrder {
    /// Returns the lowest index entry of the next run, packed, without advancing.
    pub fn peek(&self) -> Option<u64> {
        self.next.map(|run| run.key[0])
    }

    /// Returns the next run and advances: its lowest index entry, packed, and its rows.
    pub fn next(&mut self) -> Option<(u64, Side)> {
        let run = self.next?;
        self.next = self.sorted.next(&mut self.files);
        Some((run.key[0], Side::from_packed(run.key[1])))
    }

    /// Returns the run that an index entry represents. If it represents no run, returns the single
    /// row at the address `row`. Calls must be in entry order.
    pub fn side_of(&mut self, entry: u64, row: Tid) -> Side {
        while self.peek().is_some_and(|first| first < entry) {
            self.next();
        }
        match self.next {
            Some(run) if run.key[0] == entry => Side::from_packed(run.key[1]),
            _ => Side::Row(row),
        }
    }
}

/// Rows whose signatures may be equal, because their keys in the index are equal.
struct MaybeEqualRows {
    /// Entries of rows. The key is a 128-bit hash of the signature and the scope, then the index
    /// entry. The value is the address at which the snapshot sees the row, or [`Tid::MIN`] for an
    /// invisible row. The hash is keyed by secrets, so users cannot construct collisions.
    found: ExternalSort<TempSpace, 3>,
    hashes: [RandomState; 2],
    /// The highest block number and the highest offset of all index entries.
    highest: Tid,
}

impl MaybeEqualRows {
    fn new() -> Self {
        MaybeEqualRows {
            found: ExternalSort::new(share()),
            hashes: [RandomState::new(), RandomState::new()],
            highest: Tid::MIN,
        }
    }

    fn add(&mut self, files: &mut TempSpace, rows: &mut SignatureRows, entry: Tid) {
        pgrx::check_for_interrupts!();
        self.highest = tid_set::highest(self.highest, entry);
        let (hash, row) = match rows.find(entry) {
            Some((row, found)) => ([0, 1].map(|i| self.hashes[i].hash_one(&found)), row),
            None => ([0; 2], Tid::MIN),
        };
        self.found
            .push(files, [hash[0], hash[1], entry.packed()], row);
    }

    fn into_runs(mut self, wanted: Wanted, mut files: TempSpace) -> EqualRows {
        let numbers = u32::try_from(2 * self.found.len()).unwrap_or_else(|_| too_many());
        let mut rows = Paged::new(&mut files, numbers as usize, share(), |_| 0);
        let mut runs = ExternalSort::new(share());
        let mut followers = TidSet::new(&mut files, self.highest).unwrap_or_else(|| too_many());
        let mut finish = |files: &mut TempSpace, first: u64, start: u32, end: u32| {
            if end - start > 1 {
                runs.push(
                    files,
                    [first, Side::Run(start, end - start).packed()],
                    Tid::MIN,
                );
            }
        };
        // The current run: its hash, its lowest index entry, and the position of its first row.
        let mut last: Option<([u64; 2], u64, u32)> = None;
        let mut position = 0;
        let mut sorted = self.found.sorted(&mut files, None);
        drop(self);
        while let Some(found) = sorted.next(&mut files) {
            let [high, low, entry] = found.key;
            let row = Tid::from_packed(found.tid);
            if row == Tid::MIN {
                followers.insert(&mut files, Tid::from_packed(entry));
                continue;
            }
            match last {
                Some((hash, _, _)) if hash == [high, low] => {
                    followers.insert(&mut files, Tid::from_packed(entry));
                }
                _ => {
                    if let Some((_, first, start)) = last.replace(([high, low], entry, position)) {
                        finish(&mut files, first, start, position);
                    }
                }
            }
            rows.set(&mut files, 2 * position, row.block);
            rows.set(&mut files, 2 * position + 1, u32::from(row.offset));
            position += 1;
        }
        if let Some((_, first, start)) = last {
            finish(&mut files, first, start, position);
        }
        EqualRows {
            files,
            runs,
            rows,
            followers,
            wanted,
        }
    }
}
