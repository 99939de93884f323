//! The fingerprints and rows of a table that have near-duplicates, numbered.
//!
//! No list here is kept in memory beyond its share: they are sorted, in temporary files if they are
//! long, and merged with a walk through the index in the order of its first table.
use neardup_blocktree::clusters::join;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::pairs::{KeyOrderScan, PairPlan, Pairs, Thinning};
use neardup_blocktree::sort::{ExternalSort, Sorted};

use super::limits::{share, too_many};
use super::scope::{ScopeColumns, ScopeNumbers};
use super::tid_set::UnseenEntries;
use crate::am::index::Index;
use crate::pg::memory::work_mem;
use crate::pg::relation::LockedIndex;
use crate::storage::heap_fetch::HeapFetch;
use crate::storage::temp::TempSpace;

/// Nodes, what is near what, and the rows of each node. A node is a fingerprint in one scope, or
/// rows with equal signatures. `M` is one more than the words of what is known of a row, `D` than
/// those of what is known of a dense node.
pub struct Graph<const M: usize, const D: usize> {
    /// Number of nodes.
    pub nodes: u32,
    /// Their rows: the address, as the snapshot sees it, then what is known of the row; behind it
    /// the node.
    pub members: ExternalSort<TempSpace, M>,
    /// Pairs, two entries each: the pair's number, then the scope's number and the node. Of a pair
    /// that is in several scopes the two of each scope follow each other.
    pub ends: ExternalSort<TempSpace, 2>,
    /// Nodes near so many others that not all of those pairs are known. Of fingerprints: the node,
    /// then the fingerprint; behind it the scope's number. Of signatures, an entry for each crowded
    /// bucket: the node, the bucket and the sketch; behind them the entry in the index.
    pub dense: ExternalSort<TempSpace, D>,
    /// Whether pairs may have been left out that no others connect.
    pub gap: Gap,
}

/// Why the pairs that [`Thinning::Forest`] leaves do not connect all that is connected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// They do.
    None,
    /// A fingerprint in a pair has no row that the snapshot sees, and is no node.
    Unseen,
    /// A fingerprint in a pair is of one of several scopes with the same hash.
    Scopes,
}

impl<const M: usize, const D: usize> Graph<M, D> {
    /// Nothing, with so many bytes for each list.
    pub fn new(memory: usize) -> Self {
        Graph {
            nodes: 0,
            members: ExternalSort::new(memory),
            ends: ExternalSort::new(memory),
            dense: ExternalSort::new(memory),
            gap: Gap::None,
        }
    }

    /// A new node.
    pub fn node(&mut self) -> u32 {
        // The last number stands for none.
        if self.nodes == u32::MAX - 1 {
            too_many();
        }
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds a row of a node.
    pub fn member<const N: usize>(
        &mut self,
        files: &mut TempSpace,
        row: Tid,
        known: &Key<N>,
        node: u32,
    ) {
        self.members
            .push(files, in_front(row.packed(), known), number(node));
    }
}

/// A key with a word in front.
pub fn in_front<const N: usize, const M: usize>(word: u64, key: &Key<N>) -> Key<M> {
    const { assert!(M == N + 1) };
    let mut joined = [0; M];
    joined[0] = word;
    joined[1..].copy_from_slice(key);
    joined
}

/// A number where a list has a row.
pub fn number(number: u32) -> Tid {
    Tid::from_packed(u64::from(number))
}

/// Finds all nodes of an index, within a radius. Entries known to be unseen take no part, and those
/// that are found among the rows of nodes are added to them.
pub fn find<const N: usize, const M: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    radius: u32,
    thinning: Thinning,
    unseen: &mut UnseenEntries,
    files: &mut TempSpace,
) -> Graph<M, M> {
    let memory = share();
    let mut left_out = unseen.set(files);
    let mut is_left_out = |files: &mut TempSpace, entry| {
        (left_out.as_mut()).is_some_and(|entries| entries.contains(files, entry))
    };
    let plan = PairPlan::new(&index.design, radius, index.rows());
    let mut pairs = Pairs::thinned(index.design.clone(), plan, work_mem(), thinning);
    let tree = index.tree();
    let mut ends = ExternalSort::<TempSpace, N>::new(memory);
    let mut count = 0u64;
    // A fingerprint of which the snapshot sees no row drops out below. Each closure has a handle of
    // its own for files.
    let mut own_files = *files;
    let mut seen = |entry| (!is_left_out(&mut own_files, entry)).then_some(entry);
    while index.or_corrupt(pairs.step(&tree, &mut seen, &mut |pair| {
        for fingerprint in pair.fingerprints {
            ends.push(files, fingerprint, Tid::from_packed(count));
        }
        count += 1;
    })) {}
    drop(pairs);

    let mut ends = Ends::new(ends.sorted(files, Some(&index.design.tables()[0])), files);
    let mut rows = Lookup::new(relations, index);
    let mut walk = KeyOrderScan::new(index.design.clone());
    let mut group = Group {
        graph: Graph::new(memory),
        thinning,
        key: None,
        in_pairs: None,
        is_known: false,
        alone: None,
        nodes: Vec::new(),
    };
    let mut entries = Vec::new();
    loop {
        entries.clear();
        let more = index.or_corrupt(walk.step(&tree, &mut |key, tid| {
            if !is_left_out(files, tid) {
                entries.push((key, tid));
            }
        }));
        for &(key, tid) in &entries {
            if group.key != Some(key) {
                group.finish(files, &mut ends);
                let passed = ends.passed;
                let permuted = index.design.tables()[0].permute(&key);
                let in_pairs = ends.is_there(files, &permuted).then_some(permuted);
                if ends.passed > passed {
                    group.note(Gap::Unseen);
                }
                group.begin(key, in_pairs);
            }
            group.add(files, &mut rows, unseen, tid);
        }
        if !more {
            group.finish(files, &mut ends);
            if ends.next.is_some() {
                group.note(Gap::Unseen);
            }
            return group.graph;
        }
    }
}

/// The fingerprints of pairs in the order of the walk.
struct Ends<const N: usize> {
    sorted: Sorted<TempSpace, N>,
    /// The next: its key in the first table, and the pair.
    next: Option<(Key<N>, u64)>,
    /// Number of those that the walk has not met: their rows have been removed meanwhile.
    passed: u64,
}

impl<const N: usize> Ends<N> {
    fn new(sorted: Sorted<TempSpace, N>, files: &mut TempSpace) -> Self {
        let mut ends = Ends {
            sorted,
            next: None,
            passed: 0,
        };
        ends.advance(files);
        ends
    }

    fn advance(&mut self, files: &mut TempSpace) {
        self.next = self.sorted.next(files).map(|end| (end.key, end.tid));
    }

    /// Goes on to a key. Whether it is in any pair.
    fn is_there(&mut self, files: &mut TempSpace, key: &Key<N>) -> bool {
        while self.next.is_some_and(|(next, _)| next < *key) {
            self.passed += 1;
            self.advance(files);
        }
        self.next.is_some_and(|(next, _)| next == *key)
    }
}

/// The entries with one fingerprint, and the graph that they are added to.
struct Group<const N: usize, const M: usize> {
    graph: Graph<M, M>,
    thinning: Thinning,
    key: Option<Key<N>>,
    /// The key in the first table, if the fingerprint is in a pair.
    in_pairs: Option<Key<N>>,
    /// Whether the fingerprint is in a pair, or several entries have it.
    is_known: bool,
    /// The first entry, as long as that is not so.
    alone: Option<Tid>,
    /// Scopes, and the node of the fingerprint in each.
    nodes: Vec<(u32, u32)>,
}

impl<const N: usize, const M: usize> Group<N, M> {
    fn begin(&mut self, key: Key<N>, in_pairs: Option<Key<N>>) {
        self.key = Some(key);
        self.in_pairs = in_pairs;
        self.is_known = in_pairs.is_some();
        self.alone = None;
        self.nodes.clear();
    }

    fn note(&mut self, gap: Gap) {
        self.graph.gap = self.graph.gap.max(gap);
    }

    fn add(
        &mut self,
        files: &mut TempSpace,
        rows: &mut Lookup,
        unseen: &mut UnseenEntries,
        entry: Tid,
    ) {
        let Some(key) = self.key else {
            return;
        };
        if !self.is_known {
            match self.alone.take() {
                None => {
                    self.alone = Some(entry);
                    return;
                }
                Some(first) => {
                    self.is_known = true;
                    self.add_row(files, rows, unseen, &key, first);
                }
            }
        }
        self.add_row(files, rows, unseen, &key, entry);
    }

    fn add_row(
        &mut self,
        files: &mut TempSpace,
        rows: &mut Lookup,
        unseen: &mut UnseenEntries,
        key: &Key<N>,
        entry: Tid,
    ) {
        let Some((row, scope)) = rows.find(key, entry) else {
            unseen.push(files, entry);
            return;
        };
        let known = self.nodes.iter().find(|(other, _)| *other == scope);
        let node = match known {
            Some((_, node)) => *node,
            None => {
                let node = self.graph.node();
                self.nodes.push((scope, node));
                node
            }
        };
        self.graph.member(files, row, key, node);
    }

    /// Writes down the ends of pairs that the fingerprint is.
    fn finish(&mut self, files: &mut TempSpace, ends: &mut Ends<N>) {
        let (Some(key), Some(permuted)) = (self.key, self.in_pairs) else {
            return;
        };
        self.note(match self.nodes[..] {
            [] => Gap::Unseen,
            [(0, _)] => Gap::None,
            _ => Gap::Scopes,
        });
        let mut degree = 0u32;
        while let Some((next, pair)) = ends.next
            && next == permuted
        {
            for &(scope, node) in &self.nodes {
                self.graph
                    .ends
                    .push(files, [pair, join(scope, node)], Tid::MIN);
            }
            degree = degree.saturating_add(1);
            ends.advance(files);
        }
        if let Thinning::Degree(most) = self.thinning
            && degree > most
        {
            for &(scope, node) in &self.nodes {
                let dense = in_front(u64::from(node), &key);
                self.graph.dense.push(files, dense, number(scope));
            }
        }
    }
}

/// Looks up rows and their scopes, in the order of the index's first table.
struct Lookup<'a> {
    rows: HeapFetch<'a>,
    scope: Option<ScopeColumns<'a>>,
    numbers: ScopeNumbers,
}

impl<'a> Lookup<'a> {
    fn new<const N: usize>(relations: &'a LockedIndex, index: &Index<N>) -> Self {
        Lookup {
            rows: HeapFetch::new(relations.table()),
            scope: ScopeColumns::of(relations, &index.layout),
            numbers: ScopeNumbers::default(),
        }
    }

    /// The row of an entry, and the number of its scope among those with the same hash. `None` if
    /// the snapshot sees none, or if it is in no scope.
    fn find<const N: usize>(&mut self, key: &Key<N>, entry: Tid) -> Option<(Tid, u32)> {
        pgrx::check_for_interrupts!();
        let row = self.rows.find(entry)?;
        let Some(scope) = &self.scope else {
            return Some((row, 0));
        };
        let values = scope.values(self.rows.slot())?;
        Some((row, self.numbers.number(scope, key[0], values)))
    }
}
