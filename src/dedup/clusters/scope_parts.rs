//! Separates the index entries by scope when several scopes have the same hash. Each part has the
//! rows of one scope of each hash.
//!
//! A chain of pairs within a part stays in one scope. In a search of all rows it might cross
//! scopes, and the index cannot detect this, because it stores only the hash of a scope.
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

/// Maximum number of scopes of a hash to search separately. Each part reads the whole index.
const MOST_PARTS: u32 = 64;

/// Entries that a search reads.
pub enum Part {
    All,
    /// All entries except these.
    Without(TidSet),
    /// Only these entries.
    Only(TidSet),
}

impl Part {
    /// Returns whether the part has an entry.
    pub fn contains(&mut self, files: &mut TempSpace, entry: Tid) -> bool {
        match self {
            Part::All => true,
            Part::Without(others) => !others.contains(files, entry),
            Part::Only(own) => own.contains(files, entry),
        }
    }
}

/// Iterator over the parts of an index.
pub struct ScopeParts {
    /// Entries of scopes that are not the first of their hash: the scope's number, then the entry.
    later: ExternalSort<TempSpace, 2>,
    sorted: Option<Sorted<TempSpace, 2>>,
    next: Option<Entry<2>>,
    highest: Tid,
    /// Number of parts.
    pub count: u32,
}

impl ScopeParts {
    /// Finds the scopes of all `wanted` entries. Returns `None` if the index has no scopes, or too
    /// many scopes with one hash.
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
        let mut progress =
            Progress::estimated("telling scopes apart", "rows", index.estimated_rows());
        // Entries with the same hash are adjacent.
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
