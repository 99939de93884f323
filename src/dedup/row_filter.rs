//! Rows that take part in a job over a whole table: all rows, or the rows that meet the caller's
//! `filter`. A set of rows has either the row addresses in index entries or the addresses of
//! visible row versions. The two addresses of a row can differ after a HOT update.
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

/// Rows that take part in a job over a whole table.
pub enum Wanted {
    All,
    None,
    /// Only the rows in this set. It has the row addresses in index entries. If [`Wanted::rows`]
    /// made the set, it has the addresses of visible row versions instead.
    Entries(TidSet),
}

impl Wanted {
    /// Finds the rows that meet a condition. The set has the row addresses in the entries of
    /// `index`. Without a condition, all rows take part. Evaluates the condition with the rights of
    /// the caller.
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
        // After a HOT update the address of a row differs from the address in its entry. Searches
        // of the index need the address in the entry.
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

    /// Finds the rows of a table that the snapshot sees and that meet a condition. The set has the
    /// addresses of the visible row versions. Evaluates the condition with the rights of the
    /// caller.
    pub fn rows(condition: &Condition, table: Rel, files: &mut TempSpace) -> Self {
        let mut list = TidList::new();
        condition.rows(table, |row| list.push(files, row));
        Self::from_list(&mut list, files)
    }

    /// Reduces the set to one index entry for each distinct fingerprint: the first entry that has a
    /// visible row. A scope is a group of rows that are compared only with each other. Equal
    /// fingerprints in different scopes count as distinct, unless the scopes have the same hash.
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

    /// Makes the set of the index entries in a list. Raises an error if there are too many.
    pub fn from_list(list: &mut TidList, files: &mut TempSpace) -> Self {
        match list.set(files) {
            Some(set) => Wanted::Entries(set),
            None if list.is_empty() => Wanted::None,
            None => too_many(),
        }
    }

    /// Serializes the set for another process. The result has at most `most` words, and no words if
    /// all rows take part. Returns `None` if no row takes part, or if the set needs more words.
    pub fn pack(&mut self, files: &mut TempSpace, most: usize) -> Option<Vec<u64>> {
        match self {
            Wanted::All => Some(Vec::new()),
            Wanted::None => None,
            Wanted::Entries(entries) => entries.pack(files, most),
        }
    }

    /// Restores a set from the words that [`Wanted::pack`] returned.
    pub fn unpack(files: &mut TempSpace, words: &[u64]) -> Self {
        TidSet::unpack(files, words).map_or(Wanted::All, Wanted::Entries)
    }

    /// Returns whether the row of an index entry takes part. If [`Wanted::rows`] made the set,
    /// `entry` is the address of a row.
    pub fn contains(&mut self, files: &mut TempSpace, entry: Tid) -> bool {
        match self {
            Wanted::All => true,
            Wanted::None => false,
            Wanted::Entries(entries) => entries.contains(files, entry),
        }
    }
}

/// Lists the row addresses in all entries of an index.
fn all_entries<const N: usize>(index: &Index<N>, files: &mut TempSpace) -> TidList {
    let mut entries = TidList::new();
    let mut walk = KeyOrderScan::new(index.block_layout.clone());
    let tree = index.tree();
    while index.or_corrupt(walk.step(&tree, &mut |_, entry| entries.push(files, entry))) {}
    entries
}
