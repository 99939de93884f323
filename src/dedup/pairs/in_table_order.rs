//! Rows of pairs, looked up in the order of the table.
//!
//! A comparison of fingerprints meets entries in the order of their keys, which is none in the
//! table: each look-up would be of another page. So pairs are collected by the addresses of their
//! entries, sorted by one end and looked up, then sorted by the other. That takes temporary files
//! beyond a share of `work_mem`, and the first pairs come late, so that batches begin small.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};

use neardup_pg::memory::work_mem;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Pairs of the first batch. Each batch is twice the one before, up to a limit.
const FIRST_BATCH: u64 = 1024;
/// Rows of the table for each pair of the largest batch: of a page of usual rows some ten are
/// looked up together then.
const ROWS_FOR_EACH: f64 = 8.0;
/// Pairs whose first or second rows are looked up at a time.
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
    /// The batch that is being looked up.
    batch: Option<Batch>,
}

/// Pairs whose rows are being looked up.
enum Batch {
    /// By their first entries; and those whose first rows are there, by their second entries.
    First(Sorted<TempSpace, 2>, ExternalSort<TempSpace, 2>),
    /// Those whose first rows are there, by their second entries.
    Second(Sorted<TempSpace, 2>),
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
            batch: None,
        }
    }

    /// Adds two entries and their distance in bits.
    pub fn push(&mut self, [a, b]: [Tid; 2], distance: u32) {
        let key = [a.packed(), b.packed() << BELOW | u64::from(distance)];
        self.collected.push(&mut TempSpace, key, Tid::MIN);
    }

    /// Returns true if there is a batch to be looked up, or the rest of one.
    pub fn has_work(&self) -> bool {
        self.batch.is_some() || self.collected.len() >= self.size
    }

    /// Returns true if there are no pairs, whether they make a batch or not.
    pub fn is_empty(&self) -> bool {
        self.batch.is_none() && self.collected.is_empty()
    }

    /// Looks up some rows of the batch. Pairs of which the snapshot sees both rows are
    /// appended to `found`.
    pub fn look_up(&mut self, rows: &mut HeapFetch, found: &mut Vec<Found>) {
        let mut rows = InOrder { rows, last: None };
        let batch = self.batch.take().unwrap_or_else(|| self.begin());
        self.batch = match batch {
            Batch::First(pairs, by_second) => Some(look_up_first(&mut rows, pairs, by_second)),
            Batch::Second(pairs) => look_up_second(&mut rows, pairs, found),
        };
    }

    /// Makes a batch of what is collected.
    fn begin(&mut self) -> Batch {
        let pairs = self.collected.sorted(&mut TempSpace, None);
        self.collected = ExternalSort::new(share());
        self.size = (2 * self.size).min(self.most);
        Batch::First(pairs, ExternalSort::new(share()))
    }
}

/// Looks up the first rows of some pairs. Returns what is to be done next.
fn look_up_first(
    rows: &mut InOrder,
    mut pairs: Sorted<TempSpace, 2>,
    mut by_second: ExternalSort<TempSpace, 2>,
) -> Batch {
    let files = &mut TempSpace;
    for _ in 0..AT_A_TIME {
        let Some(pair) = pairs.next(files) else {
            return Batch::Second(by_second.sorted(files, None));
        };
        let [a, b] = pair.key;
        if let Some(row) = rows.find(Tid::from_packed(a)) {
            let distance = b & ((1 << BELOW) - 1);
            let key = [b >> BELOW, row.packed() << BELOW | distance];
            by_second.push(files, key, Tid::MIN);
        }
    }
    Batch::First(pairs, by_second)
}

/// Looks up the second rows of some pairs whose first ones are there. Returns the rest.
fn look_up_second(
    rows: &mut InOrder,
    mut pairs: Sorted<TempSpace, 2>,
    found: &mut Vec<Found>,
) -> Option<Batch> {
    for _ in 0..AT_A_TIME {
        let [b, a] = pairs.next(&mut TempSpace)?.key;
        if let Some(row) = rows.find(Tid::from_packed(b)) {
            let distance = a as u32 & ((1 << BELOW) - 1);
            found.push(Found::new([Tid::from_packed(a >> BELOW), row], distance));
        }
    }
    Some(Batch::Second(pairs))
}

/// Rows that are asked for in the order of their entries, each perhaps several times.
struct InOrder<'a, 'b> {
    rows: &'a mut HeapFetch<'b>,
    /// The entry that was asked for last, and its row.
    last: Option<(Tid, Option<Tid>)>,
}

impl InOrder<'_, '_> {
    /// The address of an entry's row, if the snapshot sees one.
    fn find(&mut self, entry: Tid) -> Option<Tid> {
        match self.last {
            Some((last, row)) if last == entry => row,
            _ => {
                pgrx::check_for_interrupts!();
                let row = self.rows.find(entry);
                self.last = Some((entry, row));
                row
            }
        }
    }
}
