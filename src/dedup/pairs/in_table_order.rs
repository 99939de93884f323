//! Rows of pairs, looked up in the order of the table.
//!
//! A comparison of fingerprints meets entries in the order of their keys, which is none in the
//! table: each look-up would be of another page. So pairs are collected by the addresses of their
//! entries, sorted by one end and looked up, then sorted by the other. That takes temporary files
//! beyond a share of `work_mem`, and the first pairs come late, so that batches begin small.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};

use crate::dedup::row_filter::Wanted;
use crate::pg::memory::work_mem;
use crate::storage::heap_fetch::HeapFetch;
use crate::storage::temp::TempSpace;

/// Pairs of the first batch. Each batch is twice the one before, up to a limit.
const FIRST_BATCH: u64 = 1024;
/// Rows of the table for each pair of the largest batch: of a page of usual rows some ten are
/// looked up together then.
const ROWS_FOR_EACH: f64 = 8.0;
/// Pairs whose second rows are looked up at a time.
const AT_A_TIME: usize = 1024;
/// Bits below an address that hold a distance.
const BELOW: u32 = 16;

/// Two rows, the lower address first, and their distance.
#[derive(Clone, Copy)]
pub struct Found {
    pub rows: [Tid; 2],
    /// In bits.
    pub distance: u32,
}

impl Found {
    /// Two rows in any order.
    pub fn new([a, b]: [Tid; 2], distance: u32) -> Self {
        Found {
            rows: [a.min(b), a.max(b)],
            distance,
        }
    }
}

/// Pairs by the addresses of their entries, of which as many are collected as make a batch.
pub struct Batches {
    collected: ExternalSort<TempSpace, 2>,
    /// Size of the next batch, and of the largest.
    size: u64,
    most: u64,
    /// Pairs of a batch whose first rows have been looked up, by their second entries.
    seen: Option<Sorted<TempSpace, 2>>,
}

/// Memory of one of the two sorts.
fn share() -> usize {
    work_mem() / 4
}

impl Batches {
    /// No pairs yet, of an index with some number of rows.
    pub fn new(rows: f64) -> Self {
        let fit = share() / size_of::<[u64; 3]>();
        Batches {
            collected: ExternalSort::new(share()),
            size: FIRST_BATCH,
            most: ((rows / ROWS_FOR_EACH) as u64).max(fit as u64),
            seen: None,
        }
    }

    /// Adds two entries and their distance in bits.
    pub fn push(&mut self, [a, b]: [Tid; 2], distance: u32) {
        let key = [a.packed(), b.packed() << BELOW | u64::from(distance)];
        self.collected.push(&mut TempSpace, key, Tid::MIN);
    }

    /// Returns true if there is a batch to be looked up, or the rest of one.
    pub fn has_work(&self) -> bool {
        self.seen.is_some() || self.collected.len() >= self.size
    }

    /// Returns true if there are no pairs, whether they make a batch or not.
    pub fn is_empty(&self) -> bool {
        self.seen.is_none() && self.collected.is_empty()
    }

    /// Looks up the rows of some pairs of the batch. Those of which the snapshot sees both, and
    /// which are wanted, are appended to `found`.
    pub fn look_up(&mut self, rows: &mut HeapFetch, wanted: &mut Wanted, found: &mut Vec<Found>) {
        let mut rows = InOrder {
            rows,
            wanted,
            last: None,
        };
        let (files, before) = (&mut TempSpace, found.len());
        let seen = match &mut self.seen {
            Some(seen) => seen,
            None => {
                let first = self.first_rows(&mut rows);
                self.seen.insert(first)
            }
        };
        while found.len() < before + AT_A_TIME {
            let Some(pair) = seen.next(files) else {
                self.seen = None;
                return;
            };
            let [b, a] = pair.key;
            if let Some(row) = rows.find(Tid::from_packed(b)) {
                let distance = a as u32 & ((1 << BELOW) - 1);
                found.push(Found::new([Tid::from_packed(a >> BELOW), row], distance));
            }
        }
    }

    /// The pairs of a batch whose first rows are there, in the order of their second entries.
    fn first_rows(&mut self, rows: &mut InOrder) -> Sorted<TempSpace, 2> {
        let mut by_second = ExternalSort::new(share());
        self.collected
            .in_order(&mut TempSpace, None, |files, pair| {
                let [a, b] = pair.key;
                if let Some(row) = rows.find(Tid::from_packed(a)) {
                    let distance = b & ((1 << BELOW) - 1);
                    let key = [b >> BELOW, row.packed() << BELOW | distance];
                    by_second.push(files, key, Tid::MIN);
                }
            });
        self.collected = ExternalSort::new(share());
        self.size = (2 * self.size).min(self.most);
        by_second.sorted(&mut TempSpace, None)
    }
}

/// Rows that are asked for in the order of their entries, each perhaps several times.
struct InOrder<'a, 'b> {
    rows: &'a mut HeapFetch<'b>,
    wanted: &'a mut Wanted,
    /// The entry that was asked for last, and its row.
    last: Option<(Tid, Option<Tid>)>,
}

impl InOrder<'_, '_> {
    /// The address of an entry's row, if the snapshot sees one and it is wanted.
    fn find(&mut self, entry: Tid) -> Option<Tid> {
        match self.last {
            Some((last, row)) if last == entry => row,
            _ => {
                pgrx::check_for_interrupts!();
                let row = self.rows.find(entry);
                let row = row.filter(|_| self.wanted.contains(&mut TempSpace, entry));
                self.last = Some((entry, row));
                row
            }
        }
    }
}
