//! Pairs of fingerprints.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::{PairPlan, Pairs};
use pgrx::pg_sys;

use super::{PairSearch, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::scope::ScopeColumns;
use crate::pg::locked_index::LockedIndex;
use crate::pg::memory::work_mem;
use crate::storage::heap_fetch::HeapFetch;

/// Two rows and their distance.
#[derive(Clone, Copy)]
struct Found {
    rows: [Tid; 2],
    distance: u32,
}

/// All pairs of an index on fingerprints within a distance.
pub struct FingerprintPairs {
    index: pg_sys::Oid,
    /// The index's file when the search began.
    file: u32,
    search: Box<dyn Search>,
    /// Found and not yet given.
    ready: Vec<Found>,
}

impl FingerprintPairs {
    pub fn new(relations: &LockedIndex, distance: u32) -> Self {
        let search: Box<dyn Search> = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let plan = PairPlan::new(&index.block_layout, distance, index.rows());
            Box::new(Pairs::<N>::new(index.block_layout.clone(), plan, work_mem(), false))
        });
        FingerprintPairs {
            index: relations.index().oid(),
            file: relations.index().file_number(),
            search,
            ready: Vec::new(),
        }
    }

    /// The next pair, the lower address first, and its distance.
    pub fn next(&mut self) -> Option<([Tid; 2], u32)> {
        if self.ready.is_empty() {
            let relations = LockedIndex::reopen(self.index);
            check_file(&relations, self.file);
            while self.ready.is_empty() && self.search.step(&relations, &mut self.ready) {}
        }
        let found = self.ready.pop()?;
        Some((found.rows, found.distance))
    }
}

impl PairSearch for FingerprintPairs {
    fn next_pair(&mut self) -> Option<([Tid; 2], f64)> {
        let (rows, distance) = self.next()?;
        Some((rows, f64::from(distance)))
    }
}

/// A search for pairs, for whatever width of keys.
trait Search {
    /// Appends some pairs; false: these were the last.
    fn step(&mut self, relations: &LockedIndex, found: &mut Vec<Found>) -> bool;
}

impl<const N: usize> Search for Pairs<N> {
    fn step(&mut self, relations: &LockedIndex, found: &mut Vec<Found>) -> bool {
        let index = Index::<N>::open(relations.index());
        let tree = index.tree();
        let mut rows = HeapFetch::new(relations.table());
        let scope = ScopeColumns::of(relations, &index.layout);
        let mut entries = Vec::new();
        let more = index.or_corrupt(match scope {
            None => {
                let mut resolve = |entry| rows.find(entry);
                Pairs::step(self, &tree, &mut resolve, &mut |pair| {
                    found.push(in_order(pair.rows, pair.distance));
                })
            }
            Some(_) => {
                // Rows are looked at in pairs, below, by the addresses of their entries.
                let mut resolve = |entry| rows.find(entry).map(|_| entry);
                Pairs::step(self, &tree, &mut resolve, &mut |pair| {
                    entries.push((pair.rows, pair.distance));
                })
            }
        });
        if let Some(scope) = scope {
            keep_within_scope(&scope, &mut rows, &entries, found);
        }
        more
    }
}

/// A pair with its lower address first.
fn in_order([a, b]: [Tid; 2], distance: u32) -> Found {
    Found {
        rows: [a.min(b), a.max(b)],
        distance,
    }
}

/// Appends the pairs of entries whose rows are of one scope.
fn keep_within_scope(
    scope: &ScopeColumns,
    rows: &mut HeapFetch,
    pairs: &[([Tid; 2], u32)],
    found: &mut Vec<Found>,
) {
    let mut seen = |entry| {
        let row = rows.find(entry)?;
        Some((row, scope.values(rows.slot())?))
    };
    // The first row of a pair is often that of the pair before.
    let mut first = None;
    for &([a, b], distance) in pairs {
        pgrx::check_for_interrupts!();
        if first.as_ref().is_none_or(|(entry, _)| *entry != a) {
            first = Some((a, seen(a)));
        }
        if let Some((_, Some((row, values)))) = &first
            && let Some((other, other_values)) = seen(b)
            && scope.equal(values, &other_values)
        {
            found.push(in_order([*row, other], distance));
        }
    }
}
