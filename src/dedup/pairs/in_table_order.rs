//! Lookup of the rows of pairs in table order.
//!
//! A comparison of fingerprints reads entries in key order, which is random with respect to the
//! table, so each lookup would read another page. Pairs are therefore sorted by one entry and
//! looked up, then sorted by the other entry. Beyond a share of `work_mem` this needs temporary
//! files. Batches start small, so that the first pairs arrive early.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};

use neardup_pg::memory::work_mem;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Number of pairs in the first batch. The size doubles with each batch, up to a limit.
const FIRST_BATCH: u64 = 1024;
/// Rows of the table for each pair of the largest batch. At this ratio about ten rows of a typical
/// page are looked up together.
const ROWS_FOR_EACH: f64 = 8.0;
/// Number of pairs whose first or second rows are looked up in one call.
const AT_A_TIME: usize = 1024;
/// Bits below an address that contain a distance.
const BELOW: u32 = 16;

/// Two rows, the lower address first, and their distance.
#[derive(Clone, Copy)]
pub struct FoundPair {
    pub rows: [Tid; 2],
    /// Distance in bits.
    pub distance: u32,
}

impl FoundPair {
    /// Creates a pair from two rows in any order.
    pub fn new([a, b]: [Tid; 2], distance: u32) -> Self {
        FoundPair {
            rows: [a.min(b), a.max(b)],
            distance,
        }
    }
}

/// Collects pairs of entries into batches and looks up their rows.
pub struct Batches {
    collected: ExternalSort<TempSpace, 2>,
    /// Size of the next batch, and of the largest batch.
    size: u64,
    most: u64,
    /// Batch whose rows are being looked up.
    batch: Option<Batch>,
}

/// Batch whose rows are being looked up.
enum Batch {
    /// Pairs by first entry, and pairs whose first row is visible, by second entry.
    First(Sorted<TempSpace, 2>, ExternalSort<TempSpace, 2>),
    /// Pairs whose first row is visible, by second entry.
    Second(Sorted<TempSpace, 2>),
}

/// Returns the memory of one of the two sorts.
fn share() -> usize {
    work_mem() / 4
}

impl Batches {
    /// Creates an empty collection for an index with some number of rows.
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

    /// Returns whether there is a full batch, or the rest of one, to look up.
    pub fn has_work(&self) -> bool {
        self.batch.is_some() || self.collected.len() >= self.size
    }

    /// Returns whether there are no pairs left, in a batch or collected.
    pub fn is_empty(&self) -> bool {
        self.batch.is_none() && self.collected.is_empty()
    }

    /// Looks up some rows of the batch. Appends pairs to `found` if the snapshot sees both rows.
    pub fn look_up(&mut self, rows: &mut HeapFetch, found: &mut Vec<FoundPair>) {
        let mut rows = InOrder { rows, last: None };
        let batch = self.batch.take().unwrap_or_else(|| self.begin());
        self.batch = match batch {
            Batch::First(pairs, by_second) => Some(look_up_first(&mut rows, pairs, by_second)),
            Batch::Second(pairs) => look_up_second(&mut rows, pairs, found),
        };
    }

    /// Makes a batch of the collected pairs.
    fn begin(&mut self) -> Batch {
        let pairs = self.collected.sorted(&mut TempSpace, None);
        self.collected = ExternalSort::new(share());
        self.size = (2 * self.size).min(self.most);
        Batch::First(pairs, ExternalSort::new(share()))
    }
}

/// Looks up the first rows of some pairs. Returns the rest of the batch.
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

/// Looks up the second rows of some pairs. Returns the rest of the batch.
fn look_up_second(
    rows: &mut InOrder,
    mut pairs: Sorted<TempSpace, 2>,
    found: &mut Vec<FoundPair>,
) -> Option<Batch> {
    for _ in 0..AT_A_TIME {
        let [b, a] = pairs.next(&mut TempSpace)?.key;
        if let Some(row) = rows.find(Tid::from_packed(b)) {
            let distance = a as u32 & ((1 << BELOW) - 1);
            found.push(FoundPair::new(
                [Tid::from_packed(a >> BELOW), row],
                distance,
            ));
        }
    }
    Some(Batch::Second(pairs))
}

/// Lookup of rows in the order of their entries. Repeated entries are fetched once.
struct InOrder<'a, 'b> {
    rows: &'a mut HeapFetch<'b>,
    /// Last entry and its row.
    last: Option<(Tid, Option<Tid>)>,
}

impl InOrder<'_, '_> {
    /// Returns the address of an entry's row, if the snapshot sees one.
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
