//! Pairs of fingerprints.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::{PairPlan, Pairs};
use pgrx::pg_sys;

use super::{PairArguments, PairSearch, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::exhaustive::check_fingerprints;
use crate::dedup::progress::Progress;
use crate::dedup::row_filter::Wanted;
use crate::dedup::scope::ScopeColumns;
use crate::pg::locked_index::LockedIndex;
use crate::pg::memory::work_mem;
use crate::storage::heap_fetch::HeapFetch;
use crate::storage::temp::TempSpace;

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
    wanted: Wanted,
    /// Found and not yet given.
    ready: Vec<Found>,
    progress: Progress,
}

impl FingerprintPairs {
    /// Pairs of wanted rows within a distance in bits.
    pub fn new(relations: &LockedIndex, distance: u32, wanted: Wanted) -> Self {
        let (search, passes) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            search(&index, PairPlan::new(&index.block_layout, distance, index.rows()))
        });
        Self::of(relations, search, passes, wanted)
    }

    /// The pairs that a caller asks for. Raises an error if they take too much work.
    pub fn of_arguments(relations: &LockedIndex, arguments: &PairArguments) -> Self {
        let (filter, mut files) = (arguments.filter.as_ref(), TempSpace);
        let (found, wanted) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let radius = arguments.distance.radius(index.block_layout.bits());
            let plan = PairPlan::new(&index.block_layout, radius, index.rows());
            if !arguments.exhaustive {
                check_fingerprints(relations, &index, &plan);
            }
            let wanted = Wanted::new(filter, &index, relations, &mut files);
            (search(&index, plan), wanted)
        });
        Self::of(relations, found.0, found.1, wanted)
    }

    fn of(relations: &LockedIndex, search: Box<dyn Search>, passes: usize, wanted: Wanted) -> Self {
        FingerprintPairs {
            index: relations.index().oid(),
            file: relations.index().file_number(),
            search,
            wanted,
            ready: Vec::new(),
            progress: Progress::new("comparing the rows of a table", "tables", passes as f64),
        }
    }

    /// The next pair, the lower address first, and its distance.
    pub fn next(&mut self) -> Option<([Tid; 2], u32)> {
        if self.ready.is_empty() {
            let relations = LockedIndex::reopen(self.index);
            check_file(&relations, self.file);
            let mut files = TempSpace;
            let mut wanted = |entry| self.wanted.contains(&mut files, entry);
            while self.ready.is_empty()
                && self.search.step(&relations, &mut wanted, &mut self.ready)
            {
                self.progress.reach(self.search.passes());
            }
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

/// A search by a plan, and the number of its passes.
fn search<const N: usize>(index: &Index<N>, plan: PairPlan<N>) -> (Box<dyn Search>, usize) {
    let passes = plan.probes.len();
    let pairs = Pairs::<N>::new(index.block_layout.clone(), plan, work_mem(), false);
    (Box::new(pairs), passes)
}

/// A search for pairs, for whatever width of keys.
trait Search {
    /// Appends some pairs of wanted entries; false: these were the last.
    fn step(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut dyn FnMut(Tid) -> bool,
        found: &mut Vec<Found>,
    ) -> bool;

    /// Number of passes that are done.
    fn passes(&self) -> u64;
}

impl<const N: usize> Search for Pairs<N> {
    fn passes(&self) -> u64 {
        self.passes_done() as u64
    }

    fn step(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut dyn FnMut(Tid) -> bool,
        found: &mut Vec<Found>,
    ) -> bool {
        let index = Index::<N>::open(relations.index());
        let tree = index.tree();
        let mut rows = HeapFetch::new(relations.table());
        let scope = ScopeColumns::of(relations, &index.layout);
        let mut entries = Vec::new();
        let more = index.or_corrupt(match scope {
            None => {
                let mut resolve = |entry| rows.find(entry).filter(|_| wanted(entry));
                Pairs::step(self, &tree, &mut resolve, &mut |pair| {
                    found.push(in_order(pair.rows, pair.distance));
                })
            }
            Some(_) => {
                // Rows are looked at in pairs, below, by the addresses of their entries.
                let mut resolve = |entry| rows.find(entry).filter(|_| wanted(entry)).map(|_| entry);
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
