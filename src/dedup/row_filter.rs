//! Rows that take part in a job over a whole table: all rows, or rows that meet a condition.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::KeyOrderScan;

use super::limits::too_many;
use super::progress::Progress;
use super::tid_set::{TidList, TidSet};
use crate::am::index::Index;
use neardup_pg::caller_sql::Condition;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::rel::Rel;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Index entries, or rows of a table, that take part.
pub enum Wanted {
    All,
    None,
    /// Only these.
    Entries(TidSet),
}

impl Wanted {
    /// Finds the entries whose rows meet a condition. Evaluates the condition as the caller.
    pub fn new<const N: usize>(
        condition: Option<&Condition>,
        index: &Index<N>,
        relations: &LockedIndex,
        files: &mut TempSpace,
    ) -> Self {
        let Some(condition) = condition else {
            return Wanted::All;
        };
        let Wanted::Entries(mut chosen) = Self::rows(condition, relations.table(), files) else {
            return Wanted::None;
        };
        // A row updated in place is at another address than its entry, so the entries are needed.
        let mut progress =
            Progress::estimated("applying the filter", "rows", index.estimated_rows());
        let mut entries = all_entries(index, files);
        let mut rows = HeapFetch::new(relations.table());
        let mut wanted = TidList::new();
        entries.in_order(files, |files, entry| {
            progress.advance(1);
            let row = rows.find(entry);
            if row.is_some_and(|row| chosen.contains(files, row)) {
                wanted.push(files, entry);
            }
        });
        progress.finish();
        Self::from_list(&mut wanted, files)
    }

    /// Finds the visible rows of a table that meet a condition, by their addresses in the
    /// snapshot. Evaluates the condition as the caller.
    pub fn rows(condition: &Condition, table: Rel, files: &mut TempSpace) -> Self {
        let mut list = TidList::new();
        condition.rows(table, |row| list.push(files, row));
        Self::from_list(&mut list, files)
    }

    /// Keeps the first visible entry of each distinct fingerprint in an index. Treats scopes with
    /// the same hash as one scope.
    pub fn one_of_equals<const N: usize>(
        mut self,
        index: &Index<N>,
        relations: &LockedIndex,
        files: &mut TempSpace,
    ) -> Self {
        let mut rows = HeapFetch::new(relations.table());
        let mut list = TidList::new();
        let mut walk = KeyOrderScan::new(index.block_layout.clone());
        let (tree, mut entries, mut last) = (index.tree(), Vec::new(), None);
        let mut more = true;
        while more {
            entries.clear();
            more = index.or_corrupt(walk.step(&tree, &mut |key, tid| entries.push((key, tid))));
            for &(key, entry) in &entries {
                pgrx::check_for_interrupts!();
                let is_first = last != Some(key) && self.contains(files, entry);
                if is_first && rows.find(entry).is_some() {
                    last = Some(key);
                    list.push(files, entry);
                }
            }
        }
        Self::from_list(&mut list, files)
    }

    fn from_list(list: &mut TidList, files: &mut TempSpace) -> Self {
        match list.set(files) {
            Some(set) => Wanted::Entries(set),
            None if list.is_empty() => Wanted::None,
            None => too_many(),
        }
    }

    /// Returns the rows as plain words for another process, or no words for all rows. Returns
    /// `None` if there are more than `most` words, or no rows.
    pub fn pack(&mut self, files: &mut TempSpace, most: usize) -> Option<Vec<u64>> {
        match self {
            Wanted::All => Some(Vec::new()),
            Wanted::None => None,
            Wanted::Entries(entries) => entries.pack(files, most),
        }
    }

    /// Reads the words that [`Wanted::pack`] returned.
    pub fn unpack(files: &mut TempSpace, words: &[u64]) -> Self {
        TidSet::unpack(files, words).map_or(Wanted::All, Wanted::Entries)
    }

    /// Returns whether an entry's row takes part.
    pub fn contains(&mut self, files: &mut TempSpace, entry: Tid) -> bool {
        match self {
            Wanted::All => true,
            Wanted::None => false,
            Wanted::Entries(entries) => entries.contains(files, entry),
        }
    }
}

/// Returns all entries of an index.
fn all_entries<const N: usize>(index: &Index<N>, files: &mut TempSpace) -> TidList {
    let mut entries = TidList::new();
    let mut walk = KeyOrderScan::new(index.block_layout.clone());
    let tree = index.tree();
    while index.or_corrupt(walk.step(&tree, &mut |_, entry| entries.push(files, entry))) {}
    entries
}
