//! Search for all pairs of fingerprints within a radius, in one process or in several. A single
//! process reads whole permutations (ordered copies of all keys). For several processes, the
//! permutations are divided into numbered ranges. Each process repeatedly takes the number of the
//! next range from a shared counter, and searches this range.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::PairPlan;
use pgrx::pg_sys;

use super::in_table_order::{Batches, FoundPair};
use super::planned_search::{PlannedSearch, Search, search_from_words};
use super::{PairArguments, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::progress::Progress;
use crate::dedup::row_filter::Wanted;
use crate::dedup::work_limit::check_fingerprints;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Search for all pairs within a radius in an index on fingerprints.
pub struct FingerprintPairs {
    index: pg_sys::Oid,
    /// File number of the index when the search began. It changes if the index is rebuilt.
    file: u32,
    search: Box<dyn Search>,
    /// True if the search may find more pairs in the current range or, without ranges, in the
    /// permutations. When it becomes false, a search with ranges takes the next range, and a search
    /// without ranges ends.
    goes_on: bool,
    /// Pairs whose rows have not been looked up yet. `None` for an index with scopes, where both
    /// rows of a pair are looked up at once.
    batches: Option<Batches>,
    /// Index entries whose rows meet the caller's filter.
    wanted: Wanted,
    /// Pairs that have not been returned, the next pair last. Their rows have been looked up.
    ready: Vec<FoundPair>,
    progress: Progress,
}

/// Callback that returns the number of the next range to search, and advances the counter. The
/// search ends if the number is beyond the last range. A search of whole permutations has no
/// ranges, so its callback returns `None`.
pub type NextRange<'a> = &'a dyn Fn() -> Option<u64>;

impl FingerprintPairs {
    /// Creates a search for pairs within `radius` bits, among the rows of the index entries in
    /// `wanted`. Does not raise an error if the search takes much work.
    pub fn new(relations: &LockedIndex, radius: u32, wanted: Wanted) -> Self {
        let search: Box<dyn Search> = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let rows = index.rows();
            let plan = PairPlan::new(&index.block_layout, radius, rows);
            Box::new(PlannedSearch::new(&index, plan, rows))
        });
        Self::with_search(relations, search, wanted)
    }

    /// Creates the search for the arguments of `neardup_pairs` and a radius in bits. Raises an
    /// error if it takes too much work.
    pub fn from_arguments(relations: &LockedIndex, radius: u32, arguments: &PairArguments) -> Self {
        let (filter, mut files) = (arguments.filter.as_ref(), TempSpace);
        let found: (Box<dyn Search>, Wanted) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let rows = index.rows();
            let plan = PairPlan::new(&index.block_layout, radius, rows);
            if !arguments.exhaustive {
                check_fingerprints(relations, &index, &plan);
            }
            let wanted = Wanted::new(filter, &index, relations, &mut files);
            (Box::new(PlannedSearch::new(&index, plan, rows)), wanted)
        });
        Self::with_search(relations, found.0, found.1)
    }

    fn with_search(relations: &LockedIndex, search: Box<dyn Search>, wanted: Wanted) -> Self {
        let (passes, _) = search.passes();
        FingerprintPairs {
            index: relations.index().oid(),
            file: relations.index().file_number(),
            goes_on: true,
            batches: search.batches(relations),
            search,
            wanted,
            ready: Vec::new(),
            progress: Progress::new(
                "comparing the rows of a permutation",
                "permutations",
                passes as f64,
            ),
        }
    }

    /// Opens the index again. Raises an error if it has been rebuilt since the search began.
    pub fn reopen(&self) -> LockedIndex {
        let relations = LockedIndex::reopen(self.index);
        check_file(&relations, self.file);
        relations
    }

    /// Returns the addresses of the rows of the next pair, the lower first, and their distance in
    /// bits. `None` after the last pair.
    pub fn next(&mut self) -> Option<([Tid; 2], u32)> {
        if self.ready.is_empty() {
            let relations = self.reopen();
            while self.ready.is_empty() && self.step(&relations, &|| None) {}
            self.ready.reverse();
        }
        let found = self.ready.pop()?;
        Some((found.rows, found.distance))
    }

    /// Does one step: searches for some pairs, or looks up the rows of some found pairs. Calls
    /// `next` if another range must be started. Returns false at the end of the search.
    pub fn step(&mut self, relations: &LockedIndex, next: NextRange) -> bool {
        let has_batch = (self.batches.as_ref()).is_some_and(Batches::has_work);
        if !has_batch && (self.goes_on || self.begin_range(next)) {
            let wanted = &mut self.wanted;
            self.goes_on = match &mut self.batches {
                Some(batches) => self.search.collect(relations, wanted, batches),
                None => self.search.step(relations, wanted, &mut self.ready),
            };
            if self.search.ranges() == 0 {
                self.progress.reach(self.search.passes().1);
                if !self.goes_on {
                    self.progress.finish();
                }
            }
            return true;
        }
        let Some(batches) = self.batches.as_mut().filter(|all| !all.is_empty()) else {
            return false;
        };
        let mut rows = HeapFetch::new(relations.table());
        batches.look_up(&mut rows, &mut self.ready);
        true
    }

    /// Removes and returns the pairs whose rows have been looked up.
    pub fn take(&mut self) -> impl Iterator<Item = FoundPair> {
        self.ready.drain(..)
    }
}

/// Functions for a search that several processes share. Each process searches some ranges of the
/// permutations.
impl FingerprintPairs {
    /// Returns the estimated time of the whole search in nanoseconds, without the lookup of rows.
    pub fn cost(&self) -> f64 {
        self.search.cost()
    }

    /// Divides a search that has not begun into ranges for several processes. Returns words from
    /// which [`FingerprintPairs::from_words`] creates the same search in another process. Returns
    /// `None` if the set of index entries that take part needs more than `work_mem`, or if it is
    /// empty.
    pub fn divide(&mut self, relations: &LockedIndex, processes: usize) -> Option<Vec<u64>> {
        let most = work_mem() / size_of::<u64>();
        let wanted = self.wanted.pack(&mut TempSpace, most)?;
        let search = self.search.divide(relations, processes);
        let head = [self.index.to_u32(), self.file].map(u64::from);
        let length = [search.len() as u64];
        Some([&head, &length[..], &search, &wanted].concat())
    }

    /// Makes this process one of the `processes` processes that share the search. Must be called
    /// after [`FingerprintPairs::divide`]. From now on, this process searches only the ranges whose
    /// numbers it takes from the shared counter.
    pub fn share(&mut self, processes: usize) {
        self.goes_on = false;
        let phase = format!("comparing the rows of a permutation in {processes} processes");
        self.progress = Progress::new(phase, "parts of permutations", self.search.ranges() as f64);
    }

    /// Creates a search from the words of [`FingerprintPairs::divide`], and opens its index.
    pub fn from_words(words: &[u64]) -> (LockedIndex, Self) {
        let [index, file, length, words @ ..] = words else {
            panic!("words of another job");
        };
        let (search, wanted) = words.split_at(*length as usize);
        let relations = LockedIndex::reopen(pg_sys::Oid::from_u32(*index as u32));
        check_file(&relations, *file as u32);
        let search = search_from_words(&relations, search);
        let wanted = Wanted::unpack(&mut TempSpace, wanted);
        let pairs = Self::with_search(&relations, search, wanted);
        (
            relations,
            FingerprintPairs {
                goes_on: false,
                ..pairs
            },
        )
    }

    /// Ends the progress report, because no range is left to take. Other processes may still be
    /// searching.
    fn finish_ranges(&mut self) {
        if self.search.ranges() > 0 {
            self.progress.reach(self.search.ranges());
            self.progress.finish();
        }
    }

    /// Takes the number of the next range from `next` and begins to search that range. Returns
    /// false if no range is left.
    fn begin_range(&mut self, next: NextRange) -> bool {
        let Some(number) = next() else {
            self.finish_ranges();
            return false;
        };
        self.progress.reach(number.min(self.search.ranges()));
        self.search.begin_range(number)
    }
}
