//! Times of the rows of a table, found by the rows' addresses, for the parameter `row_time`. A time
//! is stored as a span: two times are near each other if their spans overlap. The lists in this
//! file take a share of `maintenance_work_mem`, and temporary files beyond it.
use core::cmp::Ordering;

use neardup_blocktree::key::Tid;
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::ExternalSort;

use super::limits::{share, too_many};
use super::window::{PARAMETER, WindowOfTable};
use neardup_pg::caller_sql::{Condition, values_of_table};
use neardup_pg::rel::Rel;
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::time_span::Span;

/// Number of 32-bit numbers that represent a span in [`Spans`].
const NUMBERS: u32 = 8;

/// Array of spans.
pub struct Spans {
    numbers: Paged<TempSpace>,
    count: u32,
}

impl Spans {
    /// Creates an empty array, which takes up to `memory` bytes of memory, and a temporary file
    /// beyond that.
    pub fn new(files: &mut TempSpace, memory: usize) -> Self {
        Spans {
            numbers: Paged::new(files, 0, memory, |_| 0),
            count: 0,
        }
    }

    /// Number of spans.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Appends a span. Raises an error if there are too many.
    pub fn push(&mut self, files: &mut TempSpace, span: Span) {
        let Some(end) = (self.count + 1).checked_mul(NUMBERS) else {
            too_many();
        };
        self.numbers.grow(files, end as usize);
        for (at, word) in (0..).zip(span.to_words()) {
            let first = self.count * NUMBERS + 2 * at;
            self.numbers.set(files, first, (word >> 32) as u32);
            self.numbers.set(files, first + 1, word as u32);
        }
        self.count += 1;
    }

    /// Returns the span at the position `number`, counted from 0.
    pub fn get(&mut self, files: &mut TempSpace, number: u32) -> Span {
        let words = [0, 2, 4, 6].map(|at| {
            let first = number * NUMBERS + at;
            let [high, low] = [first, first + 1].map(|at| self.numbers.get(files, at));
            u64::from(high) << 32 | u64::from(low)
        });
        Span::from_words(words)
    }
}

/// List of row addresses in ascending order. The number of a row is its position in the list,
/// counted from 0.
pub struct RowNumbers {
    /// Offset of each row in its block, indexed by row number.
    offsets: Paged<TempSpace>,
    /// Number of the first row of each block, indexed by block number. A block without rows has the
    /// number of the first row after it. One more element at the end has the number of all rows.
    first_of_block: Paged<TempSpace>,
    /// Number of blocks in `first_of_block`.
    blocks: u32,
    /// Number of rows.
    count: u32,
}

impl RowNumbers {
    /// Creates an empty list, which takes up to `memory` bytes of memory, and temporary files
    /// beyond that.
    pub fn new(files: &mut TempSpace, memory: usize) -> Self {
        RowNumbers {
            offsets: Paged::new(files, 0, memory / 2, |_| 0),
            first_of_block: Paged::new(files, 0, memory / 2, |_| 0),
            blocks: 0,
            count: 0,
        }
    }

    /// Adds a row. Rows must be added in the order of their addresses.
    pub fn push(&mut self, files: &mut TempSpace, row: Tid) {
        self.begin_blocks(files, u64::from(row.block) + 1);
        self.offsets.grow(files, self.count as usize + 1);
        self.offsets.set(files, self.count, row.offset.into());
        self.count += 1;
        // The rows of the last block end here, unless another row follows in this block.
        self.first_of_block.grow(files, self.blocks as usize + 1);
        self.first_of_block.set(files, self.blocks, self.count);
    }

    /// Adds the blocks up to `blocks - 1`, the block of the next row, to `first_of_block`. Each
    /// added block gets the number of the next row: the last one because this row is its first, and
    /// the others because they have no rows. Does nothing if the blocks have been added already.
    fn begin_blocks(&mut self, files: &mut TempSpace, blocks: u64) {
        self.first_of_block.grow(files, blocks as usize);
        while u64::from(self.blocks) < blocks {
            (self.first_of_block).set(files, self.blocks, self.count);
            self.blocks += 1;
        }
    }

    /// Returns the number of a row, or `None` if the row was not added.
    pub fn find(&mut self, files: &mut TempSpace, row: Tid) -> Option<u32> {
        if row.block >= self.blocks {
            return None;
        }
        let [mut low, mut high] =
            [row.block, row.block + 1].map(|block| self.first_of_block.get(files, block));
        while low < high {
            let middle = low.midpoint(high);
            match (self.offsets.get(files, middle)).cmp(&row.offset.into()) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// Spans of the rows of a table. A row whose time is NULL or an empty range has no span, because no
/// row is near it.
pub struct RowTimes {
    /// Addresses of the rows that have a span.
    rows: RowNumbers,
    /// Spans of these rows, in the order of `rows`.
    spans: Spans,
    /// Row that [`RowTimes::get`] looked up last, and its span. Callers often look up a row several
    /// times in succession, for several pairs.
    last: Option<(Tid, Option<Span>)>,
}

impl RowTimes {
    /// Reads the times of those rows of a table that meet `filter`, or of all rows without a
    /// filter.
    pub fn read(
        files: &mut TempSpace,
        table: Rel,
        window: &WindowOfTable,
        filter: Option<&Condition>,
    ) -> Self {
        let mut rows = ExternalSort::<TempSpace, 5>::new(share());
        let mut temp = *files;
        values_of_table(PARAMETER, &window.time, filter, table, |row, time| {
            if let Some(span) = window.window.span(time) {
                let [a, b, c, d] = span.to_words();
                rows.push(&mut temp, [row.packed(), a, b, c, d], Tid::MIN);
            }
        });
        let mut times = RowTimes {
            rows: RowNumbers::new(files, share() / 2),
            spans: Spans::new(files, share()),
            last: None,
        };
        rows.in_order(files, None, |files, row| {
            let [address, words @ ..] = row.key;
            times.rows.push(files, Tid::from_packed(address));
            times.spans.push(files, Span::from_words(words));
        });
        times
    }

    /// Returns the span of the row at an address. `None` if the row has no span.
    pub fn get(&mut self, files: &mut TempSpace, row: Tid) -> Option<Span> {
        if let Some((known, span)) = self.last
            && known == row
        {
            return span;
        }
        let span = self.find(files, row);
        self.last = Some((row, span));
        span
    }

    fn find(&mut self, files: &mut TempSpace, row: Tid) -> Option<Span> {
        let number = self.rows.find(files, row)?;
        Some(self.spans.get(files, number))
    }

    /// Returns whether the times of the rows at two addresses are near each other.
    pub fn are_near(&mut self, files: &mut TempSpace, [a, b]: [Tid; 2]) -> bool {
        let Some(first) = self.get(files, a) else {
            return false;
        };
        self.find(files, b)
            .is_some_and(|second| first.overlaps(second))
    }
}
