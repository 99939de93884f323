//! Pairs of fingerprints.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::{PairPlan, Pairs};
use pgrx::pg_sys;

use super::in_table_order::{Batches, Found};
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

/// Pairs that an entry may be in, of a part of a table, before its row is looked up by itself.
const TRUSTED: u32 = 16;

/// All pairs of an index on fingerprints within a distance.
pub struct FingerprintPairs {
    index: pg_sys::Oid,
    /// The index's file when the search began.
    file: u32,
    search: Box<dyn Search>,
    /// The search may find more.
    goes_on: bool,
    /// Found, and their rows not yet looked up; `None` where scopes need both rows of a pair.
    batches: Option<Batches>,
    wanted: Wanted,
    /// Found and not yet given, the next one last.
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
            goes_on: true,
            batches: search.batches(relations),
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
            while self.ready.is_empty() && self.search_on(&relations) {
                self.progress.reach(self.search.passes());
            }
            self.ready.reverse();
        }
        let found = self.ready.pop()?;
        Some((found.rows, found.distance))
    }

    /// Searches for some pairs, or looks up the rows of some. False: there is nothing left to do.
    fn search_on(&mut self, relations: &LockedIndex) -> bool {
        let Some(batches) = &mut self.batches else {
            let (wanted, found) = (&mut self.wanted, &mut self.ready);
            self.goes_on = self.goes_on && self.search.step(relations, wanted, found);
            return self.goes_on;
        };
        if self.goes_on && !batches.has_work() {
            self.goes_on = self.search.collect(relations, &mut self.wanted, batches);
            return true;
        }
        if batches.is_empty() {
            return false;
        }
        let mut rows = HeapFetch::new(relations.table());
        batches.look_up(&mut rows, &mut self.wanted, &mut self.ready);
        true
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
    let (layout, memory) = (index.block_layout.clone(), work_mem() / 2);
    let pairs = Pairs::<N>::new(layout, plan, memory, false).trusting(TRUSTED);
    (Box::new(pairs), passes)
}

/// A search for pairs, for whatever width of keys.
trait Search {
    /// Batches for this search, unless rows have to be looked at in pairs.
    fn batches(&self, relations: &LockedIndex) -> Option<Batches>;

    /// Adds some pairs of entries to batches; false: these were the last. Entries in many pairs are
    /// wanted, and their rows are seen.
    fn collect(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut Wanted,
        batches: &mut Batches,
    ) -> bool;

    /// Appends some pairs of wanted rows of one scope; false: these were the last.
    fn step(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut Wanted,
        found: &mut Vec<Found>,
    ) -> bool;

    /// Number of passes that are done.
    fn passes(&self) -> u64;
}

impl<const N: usize> Search for Pairs<N> {
    fn passes(&self) -> u64 {
        self.passes_done() as u64
    }

    fn batches(&self, relations: &LockedIndex) -> Option<Batches> {
        let index = Index::<N>::open(relations.index());
        let has_scopes = ScopeColumns::of(relations, &index.layout).is_some();
        (!has_scopes).then(|| Batches::new(index.rows()))
    }

    fn collect(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut Wanted,
        batches: &mut Batches,
    ) -> bool {
        let index = Index::<N>::open(relations.index());
        let mut rows = HeapFetch::new(relations.table());
        let mut resolve = |entry| {
            let is_seen = rows.find(entry).is_some();
            (is_seen && wanted.contains(&mut TempSpace, entry)).then_some(entry)
        };
        index.or_corrupt(Pairs::step(
            self,
            &index.tree(),
            &mut resolve,
            &mut |pair| {
                batches.push(pair.rows, pair.distance);
            },
        ))
    }

    fn step(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut Wanted,
        found: &mut Vec<Found>,
    ) -> bool {
        let index = Index::<N>::open(relations.index());
        let Some(scope) = ScopeColumns::of(relations, &index.layout) else {
            unreachable!("rows without a scope are looked up in batches");
        };
        let mut rows = HeapFetch::new(relations.table());
        let mut entries = Vec::new();
        let mut resolve = |entry| {
            let is_seen = rows.find(entry).is_some();
            (is_seen && wanted.contains(&mut TempSpace, entry)).then_some(entry)
        };
        let more = Pairs::step(self, &index.tree(), &mut resolve, &mut |pair| {
            entries.push((pair.rows, pair.distance));
        });
        keep_within_scope(&scope, &mut rows, wanted, &entries, found);
        index.or_corrupt(more)
    }
}

/// Appends the pairs of entries whose rows are wanted and of one scope.
fn keep_within_scope(
    scope: &ScopeColumns,
    rows: &mut HeapFetch,
    wanted: &mut Wanted,
    pairs: &[([Tid; 2], u32)],
    found: &mut Vec<Found>,
) {
    let mut seen = |entry| {
        let row = rows
            .find(entry)
            .filter(|_| wanted.contains(&mut TempSpace, entry))?;
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
            found.push(Found::new([*row, other], distance));
        }
    }
}
