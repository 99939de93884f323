//! Lookup of the rows of fingerprint pairs in table order.
//!
//! The search reads index entries in key order, which is random with respect to the table, so each
//! lookup would read another page. Pairs are therefore sorted by their first entry to look up the
//! first rows, and then by their second entry to look up the second rows. Beyond a share of
//! `work_mem` this needs temporary files. Batches start small, so that the first pairs arrive
//! early.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};

use neardup_pg::memory::work_mem;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Number of pairs in the first batch. The number doubles with each batch, up to a maximum.
const FIRST_BATCH: u64 = 1024;
/// Number of rows in the index for each pair of the largest batch. A batch of this size looks up
/// about ten rows of a typical page together.
const ROWS_FOR_EACH: f64 = 8.0;
/// Maximum number of pairs whose rows one call of [`Batches::look_up`] looks up.
const AT_A_TIME: usize = 1024;
/// Number of low bits for the distance in a word whose higher bits contain a row address.
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
    /// Pairs for the next batches. The key is the first index entry, then the second index entry
    /// with the distance in the low bits.
    collected: ExternalSort<TempSpace, 2>,
    /// Number of collected pairs at which the next batch begins.
    size: u64,
    /// Number of pairs of the largest batch.
    most: u64,
    /// Batch whose rows are being looked up. `None` before the next batch begins.
    batch: Option<Batch>,
}

/// State of a batch whose rows are being looked up.
enum Batch {
    /// The first rows of the pairs are being looked up. Has the remaining pairs, sorted by first
    /// entry, and the pairs whose first row is visible. The pairs with a visible first row will be
    /// sorted by second entry.
    First(Sorted<TempSpace, 2>, ExternalSort<TempSpace, 2>),
    /// The second rows of the pairs are being looked up. Has the remaining pairs, sorted by second
    /// entry.
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

/// Looks up the first row of each of the next pairs in `pairs`, at most [`AT_A_TIME`] pairs. Adds a
/// pair to `by_second` if the snapshot sees its first row. Returns the batch with the remaining
/// pairs. If there are none, returns a batch in which the second rows of the pairs in `by_second`
/// are looked up.
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

/// Looks up the second row of each of the next pairs in `pairs`, at most [`AT_A_TIME`] pairs.
/// Appends a pair to `found` if the snapshot sees its second row. Returns the batch with the
/// remaining pairs, or `None` at its end.
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

/// Lookup of rows in the order of their index entries. Fetches the row of a repeated entry once.
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
