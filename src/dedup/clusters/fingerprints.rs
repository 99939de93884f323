//! Clusters of fingerprints.
//!
//! The ends of pairs are merged with a walk through the index in the order of its first table.
use neardup_blocktree::centers::DenseCenters;
use neardup_blocktree::clusters::{Nearness, join};
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::pairs::{KeyOrderScan, PairPlan, Pairs, Thinning};
use neardup_blocktree::sort::{ExternalSort, Sorted};

use super::graph::{Gap, Graph, in_front, number};
use super::methods::{Links, Method};
use super::scope_parts::{Part, ScopeParts};
use super::{ClusterArguments, Give, cluster};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::exhaustive::check_fingerprints;
use crate::dedup::limits::share;
use crate::dedup::progress::Progress;
use crate::dedup::row_filter::Wanted;
use crate::dedup::scope::{ScopeColumns, ScopeNumbers};
use crate::dedup::tid_set::TidList;
use crate::pg::locked_index::LockedIndex;
use crate::pg::memory::work_mem;
use crate::storage::heap_fetch::HeapFetch;
use crate::storage::temp::TempSpace;

/// Pairs of a fingerprint beyond which not all of them are written down: those of two such
/// fingerprints are found by comparing them when it matters.
const DENSE: u32 = 32;
/// Searches for a forest before all pairs are written down instead.
const MOST_FORESTS: usize = 3;

/// Gives all clusters of fingerprints, of two rows or more.
pub fn find(relations: &LockedIndex, arguments: &ClusterArguments, give: Give) {
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        let radius = arguments.distance.radius(index.block_layout.bits());
        let scope_words = index.layout.scope_words();
        let mut files = TempSpace;
        let mut search = NodeSearch {
            index: &index,
            relations,
            plan: PairPlan::new(&index.block_layout, radius, index.rows()),
            wanted: Wanted::new(arguments.filter.as_ref(), &index, relations, &mut files),
            part: Part::All,
            unseen: TidList::new(),
            singletons: arguments.singletons,
        };
        if !arguments.exhaustive {
            check_fingerprints(relations, &index, &search.plan);
        }
        let graph = search.graph::<{ N + 1 }>(arguments.method, &mut files);
        let nearness = Nearness { radius, scope_words };
        let shown = |a: &Key<N>, b: &Key<N>| f64::from(distance(a, b, scope_words));
        let group = |files: &mut TempSpace, links: Links<_>, ranks: &mut _| match arguments.method {
            Method::Star => links.star(files, ranks, &mut DenseCenters::new(share(), nearness)),
            // Pairs of dense nodes are among those of the forest.
            Method::Connected => links.connected(files, ranks, |_, _, _, _| ()),
        };
        cluster(graph, relations, arguments, files, group, shown, give);
    })
}

/// Search for the nodes of an index.
struct NodeSearch<'a, const N: usize> {
    index: &'a Index<'a, N>,
    relations: &'a LockedIndex,
    plan: PairPlan<N>,
    /// Entries whose rows take part.
    wanted: Wanted,
    /// Entries that the search under way takes.
    part: Part,
    /// Entries whose rows the snapshot does not see: deleted ones that VACUUM has not removed yet,
    /// and those of other transactions. Such an entry stays one as long as the snapshot lives,
    /// whatever row takes its address.
    unseen: TidList,
    /// Rows that are near no other are nodes as well.
    singletons: bool,
}

impl<const N: usize> NodeSearch<'_, N> {
    /// Finds as many pairs of fingerprints as a method needs.
    fn graph<const M: usize>(&mut self, method: Method, files: &mut TempSpace) -> Graph<M, M> {
        if method == Method::Star {
            return self.find(Thinning::Degree(DENSE), files);
        }
        let found = self.forest(files).or_else(|gap| match gap {
            // Any of the scopes may lack what connects two fingerprints of it.
            Gap::Scopes => self.forest_by_scopes(files).ok_or(gap),
            _ => Err(gap),
        });
        self.part = Part::All;
        found.unwrap_or_else(|_| self.find(Thinning::Degree(u32::MAX), files))
    }

    /// Finds pairs that connect all that is connected.
    ///
    /// # Errors
    /// The reason why they may not.
    fn forest<const M: usize>(&mut self, files: &mut TempSpace) -> Result<Graph<M, M>, Gap> {
        // Each search leaves out the entries that those before have found to be unseen: a
        // fingerprint of such entries alone connects nothing. More may be inserted while a search
        // goes on.
        for _ in 0..MOST_FORESTS {
            let graph = self.find(Thinning::Forest, files);
            match graph.gap {
                Gap::None => return Ok(graph),
                Gap::Unseen => (),
                Gap::Scopes => return Err(Gap::Scopes),
            }
        }
        Err(Gap::Unseen)
    }

    /// The same, where scopes share a hash: one of each hash after the other. `None` if that does
    /// not do.
    fn forest_by_scopes<const M: usize>(&mut self, files: &mut TempSpace) -> Option<Graph<M, M>> {
        let wanted = &mut self.wanted;
        let is_wanted = |files: &mut TempSpace, entry| wanted.contains(files, entry);
        let mut parts = ScopeParts::find(self.index, self.relations, files, is_wanted)?;
        let mut all = Graph::new(share());
        for _ in 0..parts.count {
            self.part = parts.next(files)?;
            let graph = self.forest(files).ok()?;
            all.append(files, graph);
        }
        Some(all)
    }

    /// Finds all nodes. Entries known to be unseen take no part, and those that are found among the
    /// rows of nodes are added to them.
    fn find<const M: usize>(&mut self, thinning: Thinning, files: &mut TempSpace) -> Graph<M, M> {
        let (index, memory) = (self.index, share());
        let mut left_out = self.unseen.set(files);
        let (wanted, part) = (&mut self.wanted, &mut self.part);
        let mut is_left_out = |files: &mut TempSpace, entry| {
            (left_out.as_mut()).is_some_and(|entries| entries.contains(files, entry))
                || !part.contains(files, entry)
                || !wanted.contains(files, entry)
        };
        let ends = find_ends(index, &self.plan, thinning, &mut is_left_out, files);
        let mut ends = Ends::new(ends, files);
        let mut rows = Lookup::new(self.relations, index);
        let mut walk = KeyOrderScan::new(index.block_layout.clone());
        let mut group = Group {
            graph: Graph::new(memory),
            thinning,
            key: None,
            in_pairs: None,
            singletons: self.singletons,
            is_known: false,
            alone: None,
            nodes: Vec::new(),
        };
        let (tree, mut entries) = (index.tree(), Vec::new());
        let mut progress = Progress::new("collecting rows", "rows", index.rows());
        loop {
            entries.clear();
            let more = index.or_corrupt(walk.step(&tree, &mut |key, tid| {
                if !is_left_out(files, tid) {
                    entries.push((key, tid));
                }
            }));
            progress.advance(entries.len() as u64);
            for &(key, tid) in &entries {
                if group.key != Some(key) {
                    group.finish(files, &mut ends);
                    let passed = ends.passed;
                    let permuted = index.block_layout.tables()[0].permute(&key);
                    let in_pairs = ends.is_there(files, &permuted).then_some(permuted);
                    if ends.passed > passed {
                        group.note(Gap::Unseen);
                    }
                    group.begin(key, in_pairs);
                }
                group.add(files, &mut rows, &mut self.unseen, tid);
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
}

/// Finds the ends of pairs of fingerprints, in the order of the first table.
fn find_ends<const N: usize>(
    index: &Index<N>,
    plan: &PairPlan<N>,
    thinning: Thinning,
    is_left_out: &mut impl FnMut(&mut TempSpace, Tid) -> bool,
    files: &mut TempSpace,
) -> Sorted<TempSpace, N> {
    let layout = &index.block_layout;
    let passes = plan.probes.len() as f64;
    let mut progress = Progress::new("comparing the rows of a table", "tables", passes);
    let mut pairs = Pairs::thinned(layout.clone(), plan.clone(), work_mem(), thinning);
    let tree = index.tree();
    let mut ends = ExternalSort::<TempSpace, N>::new(share());
    let mut count = 0u64;
    // A fingerprint of which the snapshot sees no row drops out later. Each closure has a handle of
    // its own for files.
    let mut own_files = *files;
    let mut seen = |entry| (!is_left_out(&mut own_files, entry)).then_some(entry);
    while index.or_corrupt(pairs.step(&tree, &mut seen, &mut |pair| {
        for fingerprint in pair.fingerprints {
            ends.push(files, fingerprint, Tid::from_packed(count));
        }
        count += 1;
    })) {
        progress.reach(pairs.passes_done() as u64);
    }
    drop(pairs);
    ends.sorted(files, Some(&layout.tables()[0]))
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
    /// Each fingerprint is a node.
    singletons: bool,
    /// True if the fingerprint is in a pair, or several entries have it.
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
        self.is_known = in_pairs.is_some() || self.singletons;
        self.alone = None;
        self.nodes.clear();
    }

    fn note(&mut self, gap: Gap) {
        self.graph.gap = self.graph.gap.max(gap);
    }

    fn add(&mut self, files: &mut TempSpace, rows: &mut Lookup, unseen: &mut TidList, entry: Tid) {
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
        unseen: &mut TidList,
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
