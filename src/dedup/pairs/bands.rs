//! Pairs of signatures that share a band.
//!
//! Candidates are collected in temporary files up to a multiple of the rows, a batch, and those of
//! a batch looked up in the table. A pair that shares several bands may be in several batches: it
//! is given with the one that has the first of these bands.
use neardup_blocktree::bands::{Bands, CandidatePair, CandidateScan};
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};

use super::EdgeSource;
use crate::am::index::Index;
use crate::dedup::progress::Progress;
use crate::dedup::signatures::groups::{Groups, Side};
use crate::dedup::signatures::rows::SignatureRows;
use crate::dedup::signatures::{BELOW, Verifier};
use crate::pg::locked_index::LockedIndex;
use crate::pg::memory::work_mem;
use crate::storage::temp::TempSpace;

/// Candidates that are collected between two looks at their number.
const STEP: usize = 1 << 16;
/// Most candidates of a batch, for each row of the index.
const MOST: f64 = 32.0;
/// Most candidates of a batch in a small index.
const FEW: f64 = 1e6;

/// Pairs of signatures by the bands that they share.
pub struct BandEdges<const N: usize> {
    mismatches: usize,
    search: CandidateScan<N>,
    /// The search may find more.
    goes_on: bool,
    /// Most candidates of a batch.
    most: u64,
    is_first: bool,
    /// Pairs of groups of a batch: the entries, the packed sides, and behind them the mismatches.
    batch: Option<Sorted<TempSpace, 4>>,
    progress: Progress,
}

/// A pair that the candidates of a batch name.
struct BatchPair {
    rows: [Tid; 2],
    /// Mismatches that it has at least, if it shares no band.
    least: usize,
    /// The first band in which the batch has it.
    band: u64,
    /// Number of bands in which the batch has it.
    shared: usize,
}

impl<const N: usize> BandEdges<N> {
    /// The pairs of a search, of some number of rows.
    pub fn new(search: CandidateScan<N>, rows: f64) -> Self {
        let bands = search.plan().tables();
        let entries = rows * bands as f64;
        BandEdges {
            mismatches: search.plan().mismatches(),
            search,
            goes_on: true,
            most: (MOST * rows).max(FEW) as u64,
            is_first: true,
            batch: None,
            progress: Progress::of_parts(
                "comparing the rows of each band",
                ("entries", entries),
                ("band", bands as u64),
            ),
        }
    }

    /// Collects candidates, and gives the pairs among them.
    fn next_batch(&mut self, groups: &mut Groups, relations: &LockedIndex) -> Sorted<TempSpace, 4> {
        let index = Index::<N>::open(relations.index());
        let files = &mut TempSpace;
        let mut candidates = ExternalSort::<TempSpace, 2>::new(work_mem() / 2);
        let tree = index.tree();
        while self.goes_on && candidates.len() < self.most {
            let mut emit = |CandidatePair {
                                rows: [a, b],
                                least,
                                table,
                            }| {
                let key = [a.packed(), b.packed() << BELOW | u64::from(least)];
                candidates.push(files, key, Tid::from_packed(u64::from(table)));
            };
            let mut wanted = |entry| groups.is_wanted(entry);
            let step = self.search.step(&tree, STEP, &mut wanted, &mut emit);
            self.goes_on = index.or_corrupt(step);
            let (bands, rows) = (self.search.tables_done(), self.search.rows_done());
            self.progress.reach_part(bands, rows);
        }
        let is_whole = self.is_first && !self.goes_on;
        self.is_first = false;
        let mut rows = SignatureRows::new(relations, &index);
        let verifier = Verifier::new(&mut rows, self.mismatches);
        let bands = index.metric.bands().filter(|_| !is_whole);
        self.edges(groups, candidates, verifier, bands.map(|bands| &**bands))
    }

    /// The pairs among candidates, with the groups that they stand for. Without `bands` the
    /// candidates are all that there are.
    fn edges(
        &self,
        groups: &mut Groups,
        mut candidates: ExternalSort<TempSpace, 2>,
        mut verifier: Verifier,
        bands: Option<&Bands>,
    ) -> Sorted<TempSpace, 4> {
        let files = &mut TempSpace;
        // Sorted by one end, then by the other, to meet the groups, which are in that order.
        let mut by_second = ExternalSort::<TempSpace, 4>::new(work_mem() / 2);
        let mut firsts = groups.all();
        let mut judge = |files: &mut TempSpace, pair: BatchPair| {
            let edge = match bands {
                None if pair.least > self.mismatches + pair.shared => None,
                None => verifier.edge(pair.rows),
                Some(bands) => verifier.edge_if(pair.rows, |a, b| {
                    a.first_shared(b, bands)
                        .is_some_and(|band| band as u64 == pair.band)
                }),
            };
            if let Some(edge) = edge {
                let ([a, b], [row, other]) = (edge.entries.map(Tid::packed), edge.rows);
                let key = [b, a, firsts.of(a, row).packed(), other.packed()];
                by_second.push(files, key, Tid::from_packed(u64::from(edge.mismatches)));
            }
        };
        let mut progress = Progress::new("comparing candidates", "pairs", candidates.len() as f64);
        let mut last: Option<BatchPair> = None;
        candidates.in_order(files, None, |files, candidate| {
            progress.advance(1);
            let [a, b] = candidate.key;
            let rows = [Tid::from_packed(a), Tid::from_packed(b >> BELOW)];
            match &mut last {
                // The first band comes first.
                Some(known) if known.rows == rows => known.shared += 1,
                _ => {
                    let pair = BatchPair {
                        rows,
                        least: (b & ((1 << BELOW) - 1)) as usize,
                        band: candidate.tid,
                        shared: 1,
                    };
                    last.replace(pair)
                        .into_iter()
                        .for_each(|pair| judge(files, pair));
                }
            }
        });
        last.into_iter().for_each(|pair| judge(files, pair));
        drop(candidates);
        drop(firsts);
        let mut sorted = by_second.sorted(files, None);
        drop(by_second);
        let mut found = ExternalSort::<TempSpace, 4>::new(work_mem() / 2);
        let mut seconds = groups.all();
        while let Some(edge) = sorted.next(files) {
            let [b, a, left, other] = edge.key;
            let right = seconds.of(b, Tid::from_packed(other)).packed();
            found.push(files, [a, b, left, right], Tid::from_packed(edge.tid));
        }
        found.sorted(files, None)
    }
}

impl<const N: usize> EdgeSource for BandEdges<N> {
    fn next_edge(
        &mut self,
        groups: &mut Groups,
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
            if !self.goes_on {
                return None;
            }
            let relations = relations();
            self.batch = Some(self.next_batch(groups, &relations));
        }
    }
}
