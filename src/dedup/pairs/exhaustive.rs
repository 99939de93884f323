//! Pairs of signatures beyond what an index's bands guarantee.
//!
//! All sketches are compared with each other. Candidates are looked up in the table as they come,
//! some at a time, so that they need no temporary space, however many they are.
use neardup_blocktree::bands::{CandidatePair, CandidateScan};

use super::EdgeSource;
use crate::am::index::Index;
use crate::dedup::progress::Progress;
use crate::dedup::signatures::groups::{Groups, Side};
use crate::dedup::signatures::rows::SignatureRows;
use crate::dedup::signatures::{Edge, Verifier};
use crate::pg::locked_index::LockedIndex;

/// Candidates that are looked up together.
const ENOUGH: usize = 1 << 16;

/// Pairs of signatures by their sketches.
pub struct ExhaustiveEdges<const N: usize> {
    mismatches: usize,
    search: CandidateScan<N>,
    /// The search may find more.
    goes_on: bool,
    /// Found and not yet given: the sides, and their mismatches.
    ready: Vec<([Side; 2], u32)>,
    progress: Progress,
}

impl<const N: usize> ExhaustiveEdges<N> {
    /// The pairs of a search, which takes some number of comparisons.
    pub fn new(search: CandidateScan<N>, comparisons: f64) -> Self {
        ExhaustiveEdges {
            mismatches: search.plan().mismatches(),
            search,
            goes_on: true,
            ready: Vec::new(),
            progress: Progress::new("comparing each two rows", "comparisons", comparisons),
        }
    }

    /// Looks up more candidates.
    fn search_on(&mut self, groups: &mut Groups, relations: &LockedIndex) {
        let index = Index::<N>::open(relations.index());
        let mut candidates = Vec::new();
        let mut is_wanted = |entry| groups.is_wanted(entry);
        let mut emit = |pair: CandidatePair| candidates.push(pair.rows);
        let tree = index.tree();
        let step = self.search.step(&tree, ENOUGH, &mut is_wanted, &mut emit);
        self.goes_on = index.or_corrupt(step);
        self.progress.reach(self.search.comparisons_done());
        candidates.sort_unstable();
        let mut rows = SignatureRows::new(relations, &index);
        let mut verifier = Verifier::new(&mut rows, self.mismatches);
        let mut edges: Vec<Edge> = (candidates.into_iter())
            .filter_map(|pair| verifier.edge(pair))
            .collect();
        if edges.is_empty() {
            return;
        }
        // Groups come in the order of their entries.
        edges.sort_unstable_by_key(|edge| edge.entries[1]);
        let mut seconds = groups.all();
        let mut halves: Vec<(Edge, Side)> = (edges.into_iter())
            .map(|edge| {
                let side = seconds.of(edge.entries[1].packed(), edge.rows[1]);
                (edge, side)
            })
            .collect();
        halves.sort_unstable_by_key(|(edge, _)| edge.entries);
        let mut firsts = groups.all();
        self.ready.extend(halves.into_iter().map(|(edge, second)| {
            let first = firsts.of(edge.entries[0].packed(), edge.rows[0]);
            ([first, second], edge.mismatches)
        }));
    }
}

impl<const N: usize> EdgeSource for ExhaustiveEdges<N> {
    fn next_edge(
        &mut self,
        groups: &mut Groups,
        relations: &dyn Fn() -> LockedIndex,
    ) -> Option<([Side; 2], u32)> {
        if self.ready.is_empty() && self.goes_on {
            let relations = relations();
            while self.ready.is_empty() && self.goes_on {
                self.search_on(groups, &relations);
            }
        }
        self.ready.pop()
    }
}
