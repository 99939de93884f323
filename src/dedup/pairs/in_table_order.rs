//! Lookup of the rows of fingerprint pairs in table order, batch by batch. A pair consists of a
//! first and a second index entry. A batch looks up the row of each first entry, in the order of
//! the first entries. It then does the same with the second entries of the remaining pairs.
//!
//! The search finds pairs in key order, which is random with respect to the table, so a lookup in
//! that order would read another page for each row. Beyond a share of `work_mem`, the sorting needs
//! temporary files. Batches start small, so that the first pairs arrive early.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};

use neardup_pg::memory::work_mem;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Number of pairs in the first batch. The number doubles with each batch, up to a maximum.
const FIRST_BATCH: u64 = 1024;
/// The largest batch has as many pairs as the index has rows, divided by this number, or more pairs
/// if they fit in memory. Such a batch looks up about ten rows of a typical page together.
const ROWS_FOR_EACH: f64 = 8.0;
/// Maximum number of pairs whose rows one call of [`Batches::look_up`] looks up.
const AT_A_TIME: usize = 1024;
/// Number of low bits that hold the distance of a pair, in a word with a row address in its other
/// bits.
pub const DISTANCE_BITS: u32 = 16;

/// Pair of visible rows and their distance.
#[derive(Clone, Copy)]
pub struct FoundPair {
    /// Addresses at which the snapshot sees the rows, the lower first.
    pub rows: [Tid; 2],
    /// Distance in bits.
    pub distance: u32,
}

impl FoundPair {
    /// Creates a pair from the addresses of two rows, in any order, and their distance in bits.
    pub fn new([a, b]: [Tid; 2], distance: u32) -> Self {
        FoundPair {
            rows: [a.min(b), a.max(b)],
            distance,
        }
    }
}

/// Collects pairs of entries into batches and looks up their rows.
pub struct Batches {
    /// Pairs for the next batch. The first word of a key is the row address in the first index
    /// entry. The second word has the row address in the second index entry and, in its low bits,
    /// the distance.
    collected: ExternalSort<TempSpace, 2>,
    /// Number of collected pairs at which the next batch begins.
    size: u64,
    /// Limit of `size`, which doubles with each batch.
    most: u64,
    /// Batch whose rows are being looked up. `None` before the next batch begins.
    batch: Option<Batch>,
}

/// State of a batch whose rows are being looked up.
enum Batch {
    /// The first row of each pair is being looked up. The first list has the pairs that are still
    /// to be looked up, sorted by first entry. The second list has the pairs whose first row is
    /// visible. It will be sorted by second entry.
    First(Sorted<TempSpace, 2>, ExternalSort<TempSpace, 2>),
    /// The second row of each pair is being looked up. The list has the pairs that are still to be
    /// looked up, sorted by second entry.
    Second(Sorted<TempSpace, 2>),
}

/// Returns the memory of one sorted list of pairs in bytes.
fn sort_memory() -> usize {
    work_mem() / 4
}

impl Batches {
    /// Creates an empty collection for pairs of an index with about `rows` rows.
    pub fn new(rows: f64) -> Self {
        let fit = sort_memory() / size_of::<[u64; 3]>();
        Batches {
            collected: ExternalSort::new(sort_memory()),
            size: FIRST_BATCH,
            most: ((rows / ROWS_FOR_EACH) as u64).max(fit as u64),
            batch: None,
        }
    }

    /// Adds a pair of two index entries, given by their row addresses, and its distance in bits.
    pub fn push(&mut self, [a, b]: [Tid; 2], distance: u32) {
        let key = [
            a.packed(),
            b.packed() << DISTANCE_BITS | u64::from(distance),
        ];
        self.collected.push(&mut TempSpace, key, Tid::MIN);
    }

    /// Returns whether rows can be looked up: a batch has begun, or there are enough pairs for one.
    pub fn has_work(&self) -> bool {
        self.batch.is_some() || self.collected.len() >= self.size
    }

    /// Returns whether no pairs are left, neither in a batch nor for the next one.
    pub fn is_empty(&self) -> bool {
        self.batch.is_none() && self.collected.is_empty()
    }

    /// Looks up some rows of the current batch, or begins a batch. Appends a pair to `found` if the
    /// snapshot sees both of its rows.
    pub fn look_up(&mut self, rows: &mut HeapFetch, found: &mut Vec<FoundPair>) {
        let mut rows = InOrder { rows, last: None };
        let batch = self.batch.take().unwrap_or_else(|| self.begin());
        self.batch = match batch {
            Batch::First(pairs, by_second) => Some(look_up_first(&mut rows, pairs, by_second)),
            Batch::Second(pairs) => look_up_second(&mut rows, pairs, found),
        };
    }

    /// Begins a batch with the pairs collected so far, and doubles the size of the next batch.
    fn begin(&mut self) -> Batch {
        let pairs = self.collected.sorted(&mut TempSpace, None);
        self.collected = ExternalSort::new(sort_memory());
        self.size = (2 * self.size).min(self.most);
        Batch::First(pairs, ExternalSort::new(sort_memory()))
    }
}

/// Takes up to [`AT_A_TIME`] pairs from `pairs`, and looks up the first row of each pair. Adds a
/// pair to `by_second` if the snapshot sees its first row. Returns the new state of the batch. If
/// no pairs are left in `pairs`, the second row of each pair in `by_second` is looked up next.
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
            let distance = b & ((1 << DISTANCE_BITS) - 1);
            let key = [b >> DISTANCE_BITS, row.packed() << DISTANCE_BITS | distance];
            by_second.push(files, key, Tid::MIN);
        }
    }
    Batch::First(pairs, by_second)
}

/// Takes up to [`AT_A_TIME`] pairs from `pairs`, and looks up the second row of each pair.
/// Appends a pair to `found` if the snapshot sees its second row. Returns the new state of the
/// batch, or `None` if no pairs are left.
fn look_up_second(
    rows: &mut InOrder,
    mut pairs: Sorted<TempSpace, 2>,
    found: &mut Vec<FoundPair>,
) -> Option<Batch> {
    for _ in 0..AT_A_TIME {
        let [b, a] = pairs.next(&mut TempSpace)?.key;
        if let Some(row) = rows.find(Tid::from_packed(b)) {
            let distance = a as u32 & ((1 << DISTANCE_BITS) - 1);
            found.push(FoundPair::new(
                [Tid::from_packed(a >> DISTANCE_BITS), row],
                distance,
            ));
        }
    }
    Some(Batch::Second(pairs))
}

/// Lookup of rows in the order of their index entries. If the same entry is looked up several times
/// in succession, its row is fetched once.
struct InOrder<'a, 'b> {
    rows: &'a mut HeapFetch<'b>,
    /// Last entry that was looked up, and the address of its row if the snapshot sees one.
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
