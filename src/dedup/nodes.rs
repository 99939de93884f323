//! The fingerprints and rows of a table that have near-duplicates.
use std::collections::HashMap;

use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::pairs::{InOrder, PairPlan, Pairs};
use neardup_blocktree::sort::Rows;
use pgrx::pg_sys;

use super::clusters::{join, too_many};
use super::pairs::work_memory;
use super::scope::{ScopeColumns, Values};
use crate::am::state::Index;
use crate::pg::compat;
use crate::pg::relation::LockedIndex;
use crate::storage::rows::IndexedRows;
use crate::storage::temp::TempSpace;

/// A row that has a near-duplicate, perhaps.
#[derive(Clone, Copy)]
pub struct Member {
    /// Its address, as the snapshot sees it.
    pub row: Tid,
    /// Its fingerprint, among [`Nodes::fingerprints`].
    pub node: u32,
    /// Which of the scopes with the same hash it is of.
    pub scope: u32,
    /// Its place in an order.
    pub rank: u32,
}

impl Member {
    /// No place yet.
    pub const UNRANKED: u32 = u32::MAX;
}

/// What is near something else.
pub struct Nodes<const N: usize> {
    /// Fingerprints that another one is near, or that several rows have.
    pub fingerprints: Vec<Key<N>>,
    /// The rows that have them.
    pub members: Vec<Member>,
    numbers: HashMap<Key<N>, u32>,
    /// Bytes that all this may take.
    limit: usize,
}

impl<const N: usize> Nodes<N> {
    /// Finds all of an index's. Of the pairs of fingerprints, by their numbers, some come twice;
    /// they go to files if they are many.
    ///
    /// # Safety
    /// The relations are open, and the index is theirs.
    pub unsafe fn find(
        index: &Index<N>,
        relations: &LockedIndex,
        radius: u32,
        files: &mut TempSpace,
        near: &mut Rows<TempSpace, 1>,
    ) -> Self {
        // SAFETY: a variable of the server's.
        let limit = unsafe { pg_sys::maintenance_work_mem } as usize * 1024;
        let mut nodes = Nodes {
            fingerprints: Vec::new(),
            members: Vec::new(),
            numbers: HashMap::new(),
            limit,
        };
        let plan = PairPlan::new(&index.design, radius, index.rows());
        let mut pairs = Pairs::new(index.design.clone(), plan, work_memory(), true);
        let tree = index.tree();
        // A fingerprint whose rows nobody sees any more drops out below, for want of a row.
        while index.sound(pairs.step(&tree, &mut Some, &mut |pair| {
            let [a, b] = pair.fingerprints.map(|key| nodes.number(key));
            near.push(files, [join(a.min(b), a.max(b))], Tid::MIN);
        })) {
            nodes.check_memory();
        }
        // SAFETY: the caller's promise.
        unsafe { nodes.find_members(index, relations) };
        nodes
    }

    fn number(&mut self, key: Key<N>) -> u32 {
        let next = self.fingerprints.len() as u32;
        *self.numbers.entry(key).or_insert_with(|| {
            self.fingerprints.push(key);
            next
        })
    }

    fn check_memory(&self) {
        // A hash table is between half and seven eighths full; lists that grow are copied, and the
        // result is a list, too.
        let fingerprint = 2 * (size_of::<Key<N>>() + 8) + 2 * size_of::<Key<N>>() + 16;
        let member = 2 * size_of::<Member>() + 64;
        let taken = self.fingerprints.len() * fingerprint + self.members.len() * member;
        if taken > self.limit {
            too_many(self.fingerprints.len(), self.members.len());
        }
    }

    /// Finds the rows of all fingerprints that are near another, or equal to another's.
    unsafe fn find_members(&mut self, index: &Index<N>, relations: &LockedIndex) {
        // SAFETY: the caller's promise.
        let mut rows = unsafe { Lookup::new(relations, index) };
        let tree = index.tree();
        let mut walk = InOrder::new(index.design.clone());
        // A row whose fingerprint nothing has been found for so far.
        let mut alone: Option<(Key<N>, Tid)> = None;
        loop {
            let mut entries = Vec::new();
            let more = index.sound(walk.step(&tree, &mut |key, tid| entries.push((key, tid))));
            for (key, tid) in entries {
                let first = alone
                    .take_if(|(other, _)| *other == key)
                    .map(|(_, tid)| tid);
                if first.is_none() && !self.numbers.contains_key(&key) {
                    alone = Some((key, tid));
                    continue;
                }
                let node = self.number(key);
                for tid in first.into_iter().chain([tid]) {
                    // SAFETY: the caller's promise.
                    if let Some((row, scope)) = unsafe { rows.find(&key, tid) } {
                        self.members.push(Member {
                            row,
                            node,
                            scope,
                            rank: Member::UNRANKED,
                        });
                    }
                }
            }
            self.check_memory();
            if !more {
                break;
            }
        }
        // Needed no more.
        self.numbers = HashMap::new();
    }
}

/// Looks up rows and their scopes.
struct Lookup {
    rows: IndexedRows,
    scope: Option<ScopeColumns>,
    /// Scopes by their hash.
    known: HashMap<u64, Vec<Values>>,
    /// Where their values live, and those of the row at hand.
    contexts: [pg_sys::MemoryContext; 2],
}

impl Lookup {
    /// # Safety
    /// The relations are open as long as the result lives, and the index is theirs.
    unsafe fn new<const N: usize>(relations: &LockedIndex, index: &Index<N>) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Lookup {
                rows: IndexedRows::new(relations.table()),
                scope: ScopeColumns::of(relations.index(), &index.layout),
                known: HashMap::new(),
                contexts: [
                    compat::small_context(c"neardup scopes"),
                    compat::small_context(c"neardup scope of a row"),
                ],
            }
        }
    }

    /// The row of an entry, and the number of its scope among those with the same hash. `None` if
    /// the snapshot sees none, or if it is in no scope.
    ///
    /// # Safety
    /// As for [`Lookup::new`].
    unsafe fn find<const N: usize>(&mut self, key: &Key<N>, entry: Tid) -> Option<(Tid, u32)> {
        let row = self.rows.find(entry)?;
        let Some(scope) = &self.scope else {
            return Some((row, 0));
        };
        // SAFETY: the caller's promise; values live as long as the context.
        unsafe {
            let [kept, passing] = self.contexts;
            pg_sys::MemoryContextReset(passing);
            let outer = pg_sys::MemoryContextSwitchTo(passing);
            let number = scope.values(self.rows.slot()).map(|values| {
                let known = self.known.entry(key[0]).or_default();
                let number = known.iter().position(|other| scope.equal(other, &values));
                number.unwrap_or_else(|| {
                    pg_sys::MemoryContextSwitchTo(kept);
                    known.push(scope.copy(&values));
                    known.len() - 1
                })
            });
            pg_sys::MemoryContextSwitchTo(outer);
            number.map(|number| (row, number as u32))
        }
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for context in self.contexts {
                // SAFETY: made by us.
                unsafe { pg_sys::MemoryContextDelete(context) }
            }
        }
    }
}
