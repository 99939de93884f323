//! Rows with equal signatures.
//!
//! All lists are sorted, or read by page, in temporary files if they are long.
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
use crate::storage::temp::TempSpace;

/// The bit of a packed [`Side`] that tells a group from a row, whose address has 48 bits.
const IS_GROUP: u64 = 1 << 63;

/// A row, or all those that it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The row as the snapshot sees it.
    Row(Tid),
    /// The place of a group's first row in [`Groups::rows`], and how many there are.
    Group(u32, u32),
}

impl Side {
    /// Number of rows.
    pub fn len(self) -> u32 {
        match self {
            Side::Row(_) => 1,
            Side::Group(_, count) => count,
        }
    }

    pub fn packed(self) -> u64 {
        match self {
            Side::Row(row) => row.packed(),
            Side::Group(start, count) => IS_GROUP | u64::from(start) << 32 | u64::from(count),
        }
    }

    /// Reads what [`Side::packed`] gave.
    pub fn from_packed(packed: u64) -> Self {
        match packed & IS_GROUP {
            0 => Side::Row(Tid::from_packed(packed)),
            _ => Side::Group(((packed & !IS_GROUP) >> 32) as u32, packed as u32),
        }
    }
}

/// Rows with equal signatures, of which one stands for all: the one whose entry in the index has
/// the lowest address.
pub struct Groups {
    files: TempSpace,
    /// The entry of each group's first row, then the packed [`Side`].
    groups: ExternalSort<TempSpace, 2>,
    /// The rows, group by group, as the snapshot sees them: the block, then the line.
    rows: Paged<TempSpace>,
    /// Entries for which another stands, or whose row the snapshot does not see.
    followers: TidSet,
    /// Entries whose rows take part.
    wanted: Wanted,
}

impl Groups {
    /// Finds all of an index's, of the rows that take part. The files live as the space says.
    pub fn find<const N: usize>(
        index: &Index<N>,
        rows: &mut SignatureRows,
        mut wanted: Wanted,
        mut files: TempSpace,
    ) -> Self {
        let mut progress = Progress::new("grouping equal signatures", "rows", index.rows());
        let mut alike = Alike::new();
        let tree = index.tree();
        let mut walk = KeyOrderScan::new(index.block_layout.clone());
        // Equal signatures have equal keys. The first entry with a key, as long as it is the only.
        let mut run: Option<(Key<N>, Option<Tid>)> = None;
        let mut entries = Vec::new();
        loop {
            entries.clear();
            let more = index.or_corrupt(walk.step(&tree, &mut |key, tid| entries.push((key, tid))));
            progress.advance(entries.len() as u64);
            for &(key, tid) in &entries {
                if !wanted.contains(&mut files, tid) {
                    continue;
                }
                match &mut run {
                    Some((known, alone)) if *known == key => {
                        for entry in alone.take().into_iter().chain([tid]) {
                            alike.add(&mut files, rows, entry);
                        }
                    }
                    _ => run = Some((key, Some(tid))),
                }
            }
            if !more {
                return alike.grouped(wanted, files);
            }
        }
    }

    /// Returns whether a row is to be searched for.
    pub fn is_wanted(&mut self, entry: Tid) -> bool {
        self.wanted.contains(&mut self.files, entry)
            && !self.followers.contains(&mut self.files, entry)
    }

    /// The row with a number, from 0 on.
    pub fn row(&mut self, side: Side, number: u32) -> Option<Tid> {
        match side {
            Side::Row(row) => (number == 0).then_some(row),
            Side::Group(start, count) => (number < count).then(|| self.member(start + number)),
        }
    }

    fn member(&mut self, place: u32) -> Tid {
        let [block, line] = [0, 1].map(|half| self.rows.get(&mut self.files, 2 * place + half));
        Tid {
            block,
            offset: line as u16,
        }
    }

    /// All groups, in the order of their first rows' entries.
    pub fn all(&mut self) -> InEntryOrder {
        let mut sorted = self.groups.sorted(&mut self.files, None);
        InEntryOrder {
            next: sorted.next(&mut self.files),
            sorted,
            files: self.files,
        }
    }
}

/// Groups in the order of their first rows' entries.
pub struct InEntryOrder {
    sorted: Sorted<TempSpace, 2>,
    next: Option<Entry<2>>,
    files: TempSpace,
}

impl InEntryOrder {
    /// The entry of the next group's first row.
    pub fn peek(&self) -> Option<u64> {
        self.next.map(|group| group.key[0])
    }

    /// The next group: the entry of its first row, and its rows.
    pub fn next(&mut self) -> Option<(u64, Side)> {
        let group = self.next?;
        self.next = self.sorted.next(&mut self.files);
        Some((group.key[0], Side::from_packed(group.key[1])))
    }

    /// The rows that the one of an entry stands for, or that row. Entries come in their order.
    pub fn of(&mut self, entry: u64, row: Tid) -> Side {
        while self.peek().is_some_and(|first| first < entry) {
            self.next();
        }
        match self.next {
            Some(group) if group.key[0] == entry => Side::from_packed(group.key[1]),
            _ => Side::Row(row),
        }
    }
}

/// Rows whose signatures may be equal.
struct Alike {
    /// A hash of 128 bits of what makes rows equal, and the entry; behind them the row, or
    /// [`Tid::MIN`] for none. The hash is made with keys that nobody knows, so that two signatures
    /// with the same need not be expected.
    found: ExternalSort<TempSpace, 3>,
    hashes: [RandomState; 2],
    /// The highest block and line of all entries.
    highest: Tid,
}

impl Alike {
    fn new() -> Self {
        Alike {
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

    fn grouped(mut self, wanted: Wanted, mut files: TempSpace) -> Groups {
        let places = u32::try_from(2 * self.found.len()).unwrap_or_else(|_| too_many());
        let mut rows = Paged::new(&mut files, places as usize, share(), |_| 0);
        let mut groups = ExternalSort::new(share());
        let mut followers = TidSet::new(&mut files, self.highest).unwrap_or_else(|| too_many());
        let mut finish = |files: &mut TempSpace, first: u64, start: u32, end: u32| {
            if end - start > 1 {
                groups.push(
                    files,
                    [first, Side::Group(start, end - start).packed()],
                    Tid::MIN,
                );
            }
        };
        // The group under way: its hash, its first row's entry, and where its rows begin.
        let mut last: Option<([u64; 2], u64, u32)> = None;
        let mut place = 0;
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
                    if let Some((_, first, start)) = last.replace(([high, low], entry, place)) {
                        finish(&mut files, first, start, place);
                    }
                }
            }
            rows.set(&mut files, 2 * place, row.block);
            rows.set(&mut files, 2 * place + 1, u32::from(row.offset));
            place += 1;
        }
        if let Some((_, first, start)) = last {
            finish(&mut files, first, start, place);
        }
        Groups {
            files,
            groups,
            rows,
            followers,
            wanted,
        }
    }
}
