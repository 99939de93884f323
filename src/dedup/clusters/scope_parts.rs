//! Divides the entries of an index into parts when several scopes have the same hash. Each part has
//! the entries of one scope of each hash.
//!
//! A search of one part finds only pairs within a scope. A search of all entries might connect two
//! rows of a scope by a chain of pairs through another scope with the same hash. The index cannot
//! detect this, because it stores only the hash of a scope.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::KeyOrderScan;
use neardup_blocktree::sort::{Entry, ExternalSort, Sorted};

use crate::am::index::Index;
use crate::dedup::limits::share;
use crate::dedup::progress::Progress;
use crate::dedup::scope::{ScopeColumns, ScopeNumbers};
use crate::dedup::tid_set::{TidSet, highest};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Maximum number of parts, which is the maximum number of scopes with one hash. The search of each
/// part reads the whole index. With more parts, [`ScopeParts::find`] returns `None`.
const MOST_PARTS: u32 = 64;

/// Set of the index entries that one search reads.
pub enum Part {
    All,
    /// All entries except the entries in this set.
    Without(TidSet),
    /// Only the entries in this set.
    Only(TidSet),
}

impl Part {
    /// Returns whether the part contains an index entry.
    pub fn contains(&mut self, files: &mut TempSpace, entry: Tid) -> bool {
        match self {
            Part::All => true,
            Part::Without(others) => !others.contains(files, entry),
            Part::Only(own) => own.contains(files, entry),
        }
    }
}

/// Iterator over the parts of an index's entries.
pub struct ScopeParts {
    /// Index entries whose scope is not the first scope with its hash. The key is the scope's
    /// number among the scopes with that hash, then the entry.
    later: ExternalSort<TempSpace, 2>,
    /// Entries of `later` that no part contains yet, by scope number. `None` before the first part.
    sorted: Option<Sorted<TempSpace, 2>>,
    /// First entry of the next part. `None` if there are no more parts.
    next: Option<Entry<2>>,
    /// Highest block number and highest offset of all row addresses in `later`, which may belong to
    /// different rows. They limit the size of the set of rows that is made for each part.
    highest: Tid,
    /// Number of parts.
    pub count: u32,
}

impl ScopeParts {
    /// Reads an index, determines the scope of each entry for which `wanted` is true, and creates
    /// the iterator. Returns `None` if the index has no scope columns, or if more than
    /// [`MOST_PARTS`] scopes have the same hash.
    pub fn find<const N: usize>(
        index: &Index<N>,
        relations: &LockedIndex,
        files: &mut TempSpace,
        mut wanted: impl FnMut(&mut TempSpace, Tid) -> bool,
    ) -> Option<Self> {
        let scope = ScopeColumns::from_index(relations, &index.layout)?;
        let mut rows = HeapFetch::new(relations.table());
        let mut numbers = ScopeNumbers::default();
        let mut parts = ScopeParts {
            later: ExternalSort::new(share()),
            sorted: None,
            next: None,
            highest: Tid::MIN,
            count: 1,
        };
        let mut progress = Progress::estimated("separating scopes", "rows", index.estimated_rows());
        // In key order, entries with the same scope hash are adjacent.
        let mut walk = KeyOrderScan::new(index.block_layout.clone());
        let (tree, mut entries, mut more) = (index.tree(), Vec::new(), true);
        while more {
            entries.clear();
            more = index.or_corrupt(walk.step(&tree, &mut |key, tid| entries.push((key[0], tid))));
            progress.advance(entries.len() as u64);
            for &(hash, entry) in &entries {
                pgrx::check_for_interrupts!();
                if !wanted(files, entry) || rows.find(entry).is_none() {
                    continue;
                }
                let Some(values) = scope.values(rows.slot()) else {
                    continue;
                };
                let number = numbers.number(&scope, hash, values);
                if number >= MOST_PARTS {
                    return None;
                }
                if number > 0 {
                    parts.count = parts.count.max(number + 1);
                    parts.highest = highest(parts.highest, entry);
                    let key = [u64::from(number), entry.packed()];
                    parts.later.push(files, key, Tid::MIN);
                }
            }
        }
        progress.finish();
        Some(parts)
    }

    /// Returns the next part. Returns `None` after the last part, or if a set would be too large.
    pub fn next(&mut self, files: &mut TempSpace) -> Option<Part> {
        let mut set = TidSet::new(files, self.highest)?;
        let Some(sorted) = &mut self.sorted else {
            self.later.as_added(files, |files, entry| {
                set.insert(files, Tid::from_packed(entry.key[1]));
            });
            let mut sorted = self.later.sorted(files, None);
            self.next = sorted.next(files);
            self.sorted = Some(sorted);
            return Some(Part::Without(set));
        };
        let number = self.next?.key[0];
        while let Some(entry) = self.next.filter(|entry| entry.key[0] == number) {
            set.insert(files, Tid::from_packed(entry.key[1]));
            self.next = sorted.next(files);
        }
        Some(Part::Only(set))
    }
}
