//! Search for edges: pairs of different signatures that are near each other. A search by bands
//! (groups of positions) finds signatures that are equal in at least one band. An exhaustive search
//! compares all sketches (summaries of the signatures in the index). Both find candidates, whose
//! signatures are then compared.
//!
//! The search of the index collects a batch of candidates in temporary files. The size of a batch
//! is at most a multiple of the number of rows. The rows of the batch are then looked up in the
//! table. A pair that is equal in several bands may be in several batches. The batch with the first
//! of these bands reports the pair.
//!
//! The bands find all pairs only up to the number of mismatches that the index was built for. For
//! more mismatches, the search compares the sketches of all rows with each other, unless it may
//! miss pairs. The batches of such an exhaustive search fit in memory, regardless of the number of
//! candidates.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::{Pair, Pairs};
use neardup_blocktree::sort::{ExternalSort, Sorted};

use super::EdgeSource;
use crate::am::index::Index;
use crate::dedup::progress::Progress;
use crate::dedup::signatures::candidates::Candidates;
use crate::dedup::signatures::equal_rows::{EqualRows, Side};
use crate::dedup::signatures::rows::SignatureRows;
use crate::dedup::work_limit::SignaturePlan;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::temp::TempSpace;

/// A batch of a search by bands ends when the number of its candidates is this multiple of the
/// number of rows in the index. In a small index, the batch ends at [`MIN_BATCH`] candidates
/// instead.
const MAX_CANDIDATES_PER_ROW: f64 = 32.0;
/// Number of candidates at which a batch of a search by bands ends if the index is small.
const MIN_BATCH: f64 = 1e6;
/// Number of candidates at which a batch of an exhaustive search ends.
const EXHAUSTIVE_BATCH: u64 = 1 << 15;
/// Number of comparisons of two sketches after which a batch of an exhaustive search ends, if it
/// has any candidate. So the caller gets the first pairs early, even if there are few candidates.
const EXHAUSTIVE_COMPARISONS: u64 = 1 << 26;

/// Search for edges. Finds one batch of candidates at a time.
pub struct SignatureEdges<const N: usize> {
    plan: SignaturePlan,
    search: Pairs<N>,
    /// True if the search of the index may find more candidates.
    more: bool,
    /// Number of candidates at which a batch ends.
    max_candidates: u64,
    is_first_batch: bool,
    /// Pairs of the current batch that have not been returned. The key is both index entries, then
    /// both packed [`Side`]s. The value is the number of mismatches.
    batch: Option<Sorted<TempSpace, 4>>,
    progress: Progress,
}

impl<const N: usize> SignatureEdges<N> {
    /// Creates the search of an index by a plan.
    pub fn new(index: &Index<N>, plan: SignaturePlan) -> Self {
        let layout = index.block_layout.clone();
        let passes = plan.pairs.passes(&layout);
        let (bands, rows) = (plan.pairs.permutations(), index.rows());
        let entries = index.estimated_rows() * bands as f64;
        let (max_candidates, progress) = match plan.pairs.is_by_bands() {
            true => (
                (MAX_CANDIDATES_PER_ROW * rows).max(MIN_BATCH) as u64,
                Progress::with_parts(
                    "comparing the rows of each band",
                    ("entries", entries),
                    ("band", bands as u64),
                ),
            ),
            false => (EXHAUSTIVE_BATCH, plan.exhaustive_progress()),
        };
        SignatureEdges {
            plan,
            search: Pairs::new(layout, passes, work_mem() / 4, false),
            more: true,
            max_candidates,
            is_first_batch: true,
            batch: None,
            progress,
        }
    }

    /// Collects the next batch of candidate pairs, and compares their signatures. Returns the pairs
    /// within the bound, in the form of the field `batch`.
    fn next_batch(
        &mut self,
        equal_rows: &mut EqualRows,
        relations: &LockedIndex,
    ) -> Sorted<TempSpace, 4> {
        let index = Index::<N>::open(relations.index());
        let by_bands = self.plan.pairs.is_by_bands();
        let mut candidates = Candidates::new(&self.plan.pairs);
        let tree = index.tree();
        let start = self.search.comparisons_done();
        while self.more && candidates.len() < self.max_candidates {
            let mut emit = |pair: Pair<N>| candidates.push(&pair);
            let mut is_wanted = |entry| equal_rows.is_wanted(entry);
            let step = (self.search).step(&tree, &mut is_wanted, &mut Some, &mut emit);
            self.more = index.or_corrupt(step);
            if by_bands {
                let bands = self.search.passes_done() as u64;
                self.progress.reach_part(bands, self.search.entries_done());
                continue;
            }
            let comparisons = self.search.comparisons_done();
            self.progress.reach(comparisons);
            if candidates.len() > 0 && comparisons - start >= EXHAUSTIVE_COMPARISONS {
                break;
            }
        }
        if !self.more {
            self.progress.finish();
        }
        // True if no other batch can contain a pair of this batch: it is the only batch, or the
        // search finds each pair once.
        let has_all_bands = !by_bands || self.is_first_batch && !self.more;
        self.is_first_batch = false;
        let bands = index.metric.bands().filter(|_| !has_all_bands);
        let progress = by_bands.then(|| {
            let count = candidates.len() as f64;
            Progress::new("comparing candidates", "pairs", count)
        });
        // Sorted by second entry, the order in which `with_second_sides` finds the sides of the
        // second rows. The sides of the first rows are found here.
        let mut by_second = ExternalSort::<TempSpace, 4>::new(work_mem() / 2);
        let mut firsts = equal_rows.all();
        let mut rows = SignatureRows::new(relations, &index);
        candidates.verify(&mut rows, bands.map(|bands| &**bands), progress, |edge| {
            let ([a, b], [row, other]) = (edge.entries.map(Tid::packed), edge.rows);
            let key = [b, a, firsts.side_of(a, row).packed(), other.packed()];
            let mismatches = Tid::from_packed(u64::from(edge.mismatches));
            by_second.push(&mut TempSpace, key, mismatches);
        });
        drop(firsts);
        with_second_sides(by_second, equal_rows)
    }
}

/// Converts the pairs of a batch to the form of the field `batch` of [`SignatureEdges`], sorted by
/// their new keys. The [`Side`] of a row is the run of rows with equal signatures that the row
/// represents, or the row itself.
///
/// Each key in `by_second` has four words: the index entry of the second row, the index entry of
/// the first row, the packed side of the first row, and the address of the second row. The new key
/// has the index entries of the first and the second row, then the packed sides of both. The value
/// of a pair, which is the number of mismatches, stays the same.
fn with_second_sides(
    mut by_second: ExternalSort<TempSpace, 4>,
    equal_rows: &mut EqualRows,
) -> Sorted<TempSpace, 4> {
    let files = &mut TempSpace;
    let mut sorted = by_second.sorted(files, None);
    drop(by_second);
    let mut found = ExternalSort::<TempSpace, 4>::new(work_mem() / 2);
    let mut seconds = equal_rows.all();
    while let Some(edge) = sorted.next(files) {
        let [b, a, left, other] = edge.key;
        let right = seconds.side_of(b, Tid::from_packed(other)).packed();
        found.push(files, [a, b, left, right], Tid::from_packed(edge.tid));
    }
    found.sorted(files, None)
}

impl<const N: usize> EdgeSource for SignatureEdges<N> {
    fn next_edge(
        &mut self,
        equal_rows: &mut EqualRows,
        relations: &dyn Fn() -> LockedIndex,
    ) -> Option<([Side; 2], u32)> {
        loop {
            if let Some(batch) = &mut self.batch
                && let Some(edge) = batch.next(&mut TempSpace)
            {
                let [_, _, left, right] = edge.key;
                return Some(([left, right].map(Side::from_packed), edge.tid as u32));
            }
            self.batch = None;
            if !self.more {
                return None;
            }
            let relations = relations();
            self.batch = Some(self.next_batch(equal_rows, &relations));
        }
    }
}
