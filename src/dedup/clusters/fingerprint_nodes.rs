//! The nodes of fingerprints: what a walk in the order of the index's first table meets, and the
//! rows of it.
//!
//! The walk meets entries in an order that is none in the table, where each would be looked up on
//! another page. So what it meets waits, as long as there is memory, and the rows of it are looked
//! up by their addresses; then it is gone through again.
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::clusters::join;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::pairs::Thinning;
use neardup_blocktree::sort::Sorted;

use super::graph::{Gap, Graph, in_front, number};
use crate::am::index::Index;
use crate::dedup::limits::share;
use crate::dedup::scope::{ScopeColumns, ScopeNumbers};
use crate::dedup::tid_set::TidList;
use crate::pg::locked_index::LockedIndex;
use crate::storage::heap_fetch::HeapFetch;
use crate::storage::temp::TempSpace;

/// The ends of pairs of fingerprints, in the order of the walk.
pub struct Ends<const N: usize> {
    sorted: Sorted<TempSpace, N>,
    /// The next: its key in the first table, and the pair.
    next: Option<(Key<N>, u64)>,
    /// The walk has not met one: its rows have been removed meanwhile.
    has_passed: bool,
}

impl<const N: usize> Ends<N> {
    /// Takes ends in the order of the first table.
    pub fn new(sorted: Sorted<TempSpace, N>, files: &mut TempSpace) -> Self {
        let mut ends = Ends {
            sorted,
            next: None,
            has_passed: false,
        };
        ends.advance(files);
        ends
    }

    fn advance(&mut self, files: &mut TempSpace) {
        self.next = self.sorted.next(files).map(|end| (end.key, end.tid));
    }

    /// Goes on to a key. Returns whether it is in any pair.
    pub fn is_there(&mut self, files: &mut TempSpace, key: &Key<N>) -> bool {
        while self.next.is_some_and(|(next, _)| next < *key) {
            self.has_passed = true;
            self.advance(files);
        }
        self.next.is_some_and(|(next, _)| next == *key)
    }

    /// The next pair of a key that is in pairs.
    fn pair(&mut self, files: &mut TempSpace, key: &Key<N>) -> Option<u64> {
        let (_, pair) = self.next.filter(|(next, _)| next == key)?;
        self.advance(files);
        Some(pair)
    }

    /// Returns whether the walk, which is at its end, has not met all.
    pub fn has_passed(&self) -> bool {
        self.has_passed || self.next.is_some()
    }
}

/// A step of the walk.
#[derive(Clone, Copy)]
enum Step<const N: usize> {
    /// To a fingerprint, to which belongs what follows.
    Fingerprint(Key<N>),
    /// To an entry of it.
    Entry(Tid),
    /// The row of an entry, and the number of its scope.
    Row(Tid, u32),
    /// An entry of which the snapshot sees no row.
    Unseen(Tid),
    /// A pair that the fingerprint is in. Its pairs follow its entries.
    Pair(u64),
}

/// An entry whose row is looked up: its address, its place among the steps and the first word of
/// its key.
type Asked = (Tid, usize, u64);

/// Steps of a walk through the first table that wait for their rows, and the graph so far.
pub struct Met<'a, const N: usize, const M: usize> {
    layout: &'a BlockLayout<N>,
    ends: Ends<N>,
    rows: Lookup<'a>,
    nodes: Nodes<'a, N, M>,
    /// Each fingerprint is a node.
    singletons: bool,
    /// The fingerprint at which the walk is.
    key: Option<Key<N>>,
    /// Its key in the first table, if it is in a pair.
    in_pairs: Option<Key<N>>,
    /// Its first entry, as long as it has no other and is in no pair.
    alone: Option<Tid>,
    /// Steps to be gone through again.
    steps: Vec<Step<N>>,
    asked: Vec<Asked>,
    /// The most of them, by memory.
    most: usize,
}

impl<'a, const N: usize, const M: usize> Met<'a, N, M> {
    /// Creates the state of a walk that has met nothing.
    pub fn new(
        layout: &'a BlockLayout<N>,
        ends: Ends<N>,
        rows: Lookup<'a>,
        nodes: Nodes<'a, N, M>,
        singletons: bool,
    ) -> Self {
        // Two of the shares: half of the lists do not exist yet.
        let most = 2 * share() / (size_of::<Step<N>>() + size_of::<Asked>());
        Met {
            layout,
            ends,
            rows,
            nodes,
            singletons,
            key: None,
            in_pairs: None,
            alone: None,
            steps: Vec::new(),
            asked: Vec::new(),
            most,
        }
    }

    /// Takes the next entry.
    pub fn entry(&mut self, files: &mut TempSpace, key: Key<N>, entry: Tid) {
        if self.key != Some(key) {
            self.end_pairs(files);
            let permuted = self.layout.tables()[0].permute(&key);
            self.key = Some(key);
            self.in_pairs = (self.ends.is_there(files, &permuted)).then_some(permuted);
            self.alone = None;
            if self.in_pairs.is_none() && !self.singletons {
                self.alone = Some(entry);
                return;
            }
            self.step(files, Step::Fingerprint(key));
        } else if let Some(first) = self.alone.take() {
            self.step(files, Step::Fingerprint(key));
            self.step(files, Step::Entry(first));
        }
        self.step(files, Step::Entry(entry));
    }

    /// Takes the pairs of the fingerprint, which the walk leaves.
    fn end_pairs(&mut self, files: &mut TempSpace) {
        if let Some(permuted) = self.in_pairs.take() {
            while let Some(pair) = self.ends.pair(files, &permuted) {
                self.step(files, Step::Pair(pair));
            }
        }
    }

    fn step(&mut self, files: &mut TempSpace, step: Step<N>) {
        if self.steps.len() >= self.most {
            self.make_nodes(files);
        }
        self.steps.push(step);
    }

    /// Looks up the rows of the steps so far, and makes nodes of them.
    fn make_nodes(&mut self, files: &mut TempSpace) {
        let mut key = self.nodes.key;
        for (place, step) in self.steps.iter().enumerate() {
            match *step {
                Step::Fingerprint(next) => key = next,
                Step::Entry(entry) => self.asked.push((entry, place, key[0])),
                _ => (),
            }
        }
        // Scopes are numbered in the order of their hashes.
        if self.rows.scope.is_none() {
            self.asked.sort_unstable();
        }
        for (entry, place, hash) in self.asked.drain(..) {
            self.steps[place] = match self.rows.find(hash, entry) {
                Some((row, scope)) => Step::Row(row, scope),
                None => Step::Unseen(entry),
            };
        }
        for step in self.steps.drain(..) {
            self.nodes.add(files, step);
        }
    }

    /// Returns the graph of what was met, after the last entry.
    pub fn graph(mut self, files: &mut TempSpace) -> Graph<M, M> {
        self.end_pairs(files);
        self.make_nodes(files);
        self.nodes.finish(files);
        if self.ends.has_passed() {
            self.nodes.note(Gap::Unseen);
        }
        self.nodes.graph
    }
}

/// The graph that steps of the walk make, and the nodes of the fingerprint at which they are.
pub struct Nodes<'a, const N: usize, const M: usize> {
    graph: Graph<M, M>,
    thinning: Thinning,
    /// Entries of which the snapshot sees no row.
    unseen: &'a mut TidList,
    key: Key<N>,
    /// Its scopes, and its node in each.
    of_scopes: Vec<(u32, u32)>,
    /// Number of its pairs.
    degree: u32,
}

impl<'a, const N: usize, const M: usize> Nodes<'a, N, M> {
    /// Creates an empty graph. Entries of which the snapshot sees no row are added to `unseen`.
    pub fn new(thinning: Thinning, unseen: &'a mut TidList) -> Self {
        Nodes {
            graph: Graph::new(share()),
            thinning,
            unseen,
            key: [0; N],
            of_scopes: Vec::new(),
            degree: 0,
        }
    }

    fn note(&mut self, gap: Gap) {
        self.graph.gap = self.graph.gap.max(gap);
    }

    /// Adds a step, of which the row has been looked up.
    fn add(&mut self, files: &mut TempSpace, step: Step<N>) {
        match step {
            Step::Fingerprint(key) => {
                self.finish(files);
                self.key = key;
            }
            Step::Row(row, scope) => self.row(files, row, scope),
            Step::Entry(entry) | Step::Unseen(entry) => self.unseen.push(files, entry),
            Step::Pair(pair) => {
                self.degree = self.degree.saturating_add(1);
                for &(scope, node) in &self.of_scopes {
                    let end = [pair, join(scope, node)];
                    self.graph.ends.push(files, end, Tid::MIN);
                }
            }
        }
    }

    fn row(&mut self, files: &mut TempSpace, row: Tid, scope: u32) {
        let known = self.of_scopes.iter().find(|(other, _)| *other == scope);
        let node = match known {
            Some((_, node)) => *node,
            None => {
                let node = self.graph.node();
                self.of_scopes.push((scope, node));
                node
            }
        };
        self.graph.member(files, row, &self.key, node);
    }

    /// Ends the fingerprint.
    fn finish(&mut self, files: &mut TempSpace) {
        if self.degree > 0 {
            self.note(match self.of_scopes[..] {
                [] => Gap::Unseen,
                [(0, _)] => Gap::None,
                _ => Gap::Scopes,
            });
        }
        if let Thinning::Degree(most) = self.thinning
            && self.degree > most
        {
            for &(scope, node) in &self.of_scopes {
                let dense = in_front(u64::from(node), &self.key);
                self.graph.dense.push(files, dense, number(scope));
            }
        }
        self.of_scopes.clear();
        self.degree = 0;
    }
}

/// Looks up rows and their scopes, in the order of the index's first table if there are scopes.
pub struct Lookup<'a> {
    rows: HeapFetch<'a>,
    scope: Option<ScopeColumns<'a>>,
    numbers: ScopeNumbers,
}

impl<'a> Lookup<'a> {
    /// Looks up rows of an index.
    pub fn new<const N: usize>(relations: &'a LockedIndex, index: &Index<N>) -> Self {
        Lookup {
            rows: HeapFetch::new(relations.table()),
            scope: ScopeColumns::of(relations, &index.layout),
            numbers: ScopeNumbers::default(),
        }
    }

    /// The row of an entry, and the number of its scope among those with the same hash. `None` if
    /// the snapshot sees none, or if it is in no scope.
    fn find(&mut self, hash: u64, entry: Tid) -> Option<(Tid, u32)> {
        pgrx::check_for_interrupts!();
        let row = self.rows.find(entry)?;
        let Some(scope) = &self.scope else {
            return Some((row, 0));
        };
        let values = scope.values(self.rows.slot())?;
        Some((row, self.numbers.number(scope, hash, values)))
    }
}
