//! Search of an index for pairs of fingerprints, for any number of words in a key. It reads the
//! permutations (ordered copies of all keys) in the order of a plan. `wanted` has the index entries
//! whose rows meet the caller's filter. In an index with scope columns, the two rows of a pair must
//! be in the same scope: they must have equal values in these columns.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::{Pair, PairPlan, PairRange, Pairs};

use super::in_table_order::{Batches, FoundPair};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::row_filter::Wanted;
use crate::dedup::scope::ScopeColumns;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Number of pairs that the search reports for an index entry without fetching the entry's row.
/// Further pairs of the entry are reported only if its row is visible. This limits the pairs of a
/// row with many dead versions. The number applies to each chunk of a permutation, which is the
/// part that the search holds in memory.
const TRUSTED: u32 = 16;

/// Search for pairs by a plan. Searches whole permutations (ordered copies of all keys). If several
/// processes share the work, searches ranges of permutations instead.
pub struct PlannedSearch<const N: usize> {
    pairs: Pairs<N>,
    /// Number of rows for which the plan was made.
    rows: f64,
    /// Ranges of the permutations. Empty if whole permutations are searched.
    ranges: Vec<PairRange<N>>,
}

impl<const N: usize> PlannedSearch<N> {
    /// Creates a search of whole permutations by a plan. `rows` is the number of rows for which the
    /// plan was made.
    pub fn new(index: &Index<N>, plan: PairPlan<N>, rows: f64) -> Self {
        let (layout, memory) = (index.block_layout.clone(), work_mem() / 2);
        PlannedSearch {
            pairs: Pairs::<N>::new(layout, plan, memory, false).with_unresolved_pairs(TRUSTED),
            rows,
            ranges: Vec::new(),
        }
    }
}

/// Creates a search of ranges from the words that [`Search::divide`] returned in another process.
pub fn search_from_words(relations: &LockedIndex, words: &[u64]) -> Box<dyn Search> {
    let [radius, rows, ranges @ ..] = words else {
        panic!("words of another job");
    };
    let rows = f64::from_bits(*rows);
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        let plan = PairPlan::new(&index.block_layout, *radius as u32, rows);
        let mut search = PlannedSearch::new(&index, plan, rows);
        let ranges = ranges.chunks(PairRange::<N>::WORDS);
        search.ranges = ranges.map(PairRange::from_words).collect();
        Box::new(search)
    })
}

/// Search for pairs of fingerprints, independent of the number of words in a key.
pub trait Search {
    /// Returns empty batches for the pairs of this search. Returns `None` for an index with scopes,
    /// where both rows of a pair must be looked up at once.
    fn batches(&self, relations: &LockedIndex) -> Option<Batches>;

    /// Searches for some pairs of entries in `wanted` and adds them to `batches`, for a later
    /// lookup of their rows. Before an entry gets more than `TRUSTED` pairs, the search fetches its
    /// row, and adds the further pairs only if the row is visible. Returns false at the end of the
    /// search. Must not be called for an index with scopes.
    fn collect(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut Wanted,
        batches: &mut Batches,
    ) -> bool;

    /// Searches for some pairs of entries in `wanted`, and appends to `found` the pairs whose rows
    /// are visible and in the same scope. Returns false at the end of the search. Must be called
    /// only for an index with scopes.
    fn step(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut Wanted,
        found: &mut Vec<FoundPair>,
    ) -> bool;

    /// Returns the number of passes over permutations that the search makes, and the number of
    /// completed passes.
    fn passes(&self) -> (u64, u64);

    /// Returns the estimated time of reading the index and comparing fingerprints, in nanoseconds.
    fn cost(&self) -> f64;

    /// Divides the permutations into ranges for several processes. Returns words from which
    /// [`search_from_words`] creates the same search with the same ranges.
    fn divide(&mut self, relations: &LockedIndex, processes: usize) -> Vec<u64>;

    /// Returns the number of ranges, which is 0 if whole permutations are searched.
    fn ranges(&self) -> u64;

    /// Begins to search the range with this number, from 0, and drops the rest of the previous
    /// range. Returns false if there is no such range.
    fn begin_range(&mut self, number: u64) -> bool;
}

impl<const N: usize> Search for PlannedSearch<N> {
    fn passes(&self) -> (u64, u64) {
        let passes = self.pairs.plan().passes.len();
        (passes as u64, self.pairs.passes_done() as u64)
    }

    fn cost(&self) -> f64 {
        self.pairs.plan().cost
    }

    fn divide(&mut self, relations: &LockedIndex, processes: usize) -> Vec<u64> {
        /// Maximum number of ranges for each process. With many ranges, all processes end at almost
        /// the same time.
        const FOR_EACH: usize = 16;
        /// Minimum number of leaves of a range, because each range reads one extra leaf at its
        /// end.
        const LEAVES: usize = 32;
        let index = Index::<N>::open(relations.index());
        let leaves = index.blocks as usize / index.block_layout.permutations().len();
        let most = (FOR_EACH * processes).min(leaves / LEAVES);
        let plan = self.pairs.plan();
        self.ranges = index.or_corrupt(plan.ranges(&index.tree(), most));
        let head = [u64::from(plan.radius), self.rows.to_bits()];
        let ranges = self.ranges.iter().flat_map(PairRange::to_words);
        head.into_iter().chain(ranges).collect()
    }

    fn ranges(&self) -> u64 {
        self.ranges.len() as u64
    }

    fn begin_range(&mut self, number: u64) -> bool {
        let range = usize::try_from(number).map(|number| self.ranges.get(number));
        let Ok(Some(range)) = range else {
            return false;
        };
        self.pairs.begin_range(*range);
        true
    }

    fn batches(&self, relations: &LockedIndex) -> Option<Batches> {
        let index = Index::<N>::open(relations.index());
        let has_scopes = ScopeColumns::from_index(relations, &index.layout).is_some();
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
        let mut wanted = |entry| wanted.contains(&mut TempSpace, entry);
        let mut resolve = |entry| rows.find(entry).map(|_| entry);
        let mut emit = |pair: Pair<N>| batches.push(pair.rows, pair.distance);
        let tree = index.tree();
        index.or_corrupt((self.pairs).step(&tree, &mut wanted, &mut resolve, &mut emit))
    }

    fn step(
        &mut self,
        relations: &LockedIndex,
        wanted: &mut Wanted,
        found: &mut Vec<FoundPair>,
    ) -> bool {
        let index = Index::<N>::open(relations.index());
        let Some(scope) = ScopeColumns::from_index(relations, &index.layout) else {
            unreachable!("rows without a scope are looked up in batches");
        };
        let mut rows = HeapFetch::new(relations.table());
        let mut entries = Vec::new();
        let mut wanted = |entry| wanted.contains(&mut TempSpace, entry);
        let mut resolve = |entry| rows.find(entry).map(|_| entry);
        let mut emit = |pair: Pair<N>| entries.push((pair.rows, pair.distance));
        let tree = index.tree();
        let more = (self.pairs).step(&tree, &mut wanted, &mut resolve, &mut emit);
        keep_within_scope(&scope, &mut rows, &entries, found);
        index.or_corrupt(more)
    }
}

/// Appends to `found` the pairs whose rows are visible and in the same scope. Each element of
/// `pairs` has the addresses in two index entries, and their distance in bits.
fn keep_within_scope(
    scope: &ScopeColumns,
    rows: &mut HeapFetch,
    pairs: &[([Tid; 2], u32)],
    found: &mut Vec<FoundPair>,
) {
    let mut seen = |entry| {
        let row = rows.find(entry)?;
        Some((row, scope.values(rows.slot())?))
    };
    // Consecutive pairs often have the same first entry, so its row is kept.
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
            found.push(FoundPair::new([*row, other], distance));
        }
    }
}
