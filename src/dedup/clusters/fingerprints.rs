//! Clusters of fingerprints.
//!
//! The ends of pairs are merged with a walk through the index in the order of its first table.
use neardup_blocktree::centers::DenseCenters;
use neardup_blocktree::clusters::Nearness;
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::pairs::{KeyOrderScan, Pair, PairPlan, Pairs, Thinning};
use neardup_blocktree::sort::{ExternalSort, Sorted};

use super::fingerprint_nodes::{Ends, Lookup, Met, Nodes};
use super::graph::{Gap, Graph};
use super::methods::{Links, Method};
use super::scope_parts::{Part, ScopeParts};
use super::{ClusterArguments, Give, cluster};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::exhaustive::check_fingerprints;
use crate::dedup::limits::share;
use crate::dedup::progress::Progress;
use crate::dedup::row_filter::Wanted;
use crate::dedup::tid_set::TidList;
use crate::pg::locked_index::LockedIndex;
use crate::pg::memory::work_mem;
use crate::storage::temp::TempSpace;

/// Pairs of a fingerprint beyond which not all of them are written down: those of two such
/// fingerprints are found by comparing them when it matters.
const DENSE: u32 = 32;
/// Searches for a forest before all pairs are written down instead.
const MOST_FORESTS: usize = 3;

/// Gives all clusters of fingerprints, of two rows or more.
pub fn find(relations: &LockedIndex, arguments: &ClusterArguments, radius: u32, give: Give) {
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
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
        let differing = |a: &Key<N>, b: &Key<N>| distance(a, b, scope_words);
        let group = |files: &mut TempSpace, links: Links<_>, ranks: &mut _| match arguments.method {
            Method::Star => links.star(files, ranks, &mut DenseCenters::new(share(), nearness)),
            // Pairs of dense nodes are among those of the forest.
            Method::Connected => links.connected(files, ranks, |_, _, _, _| ()),
        };
        cluster(graph, relations, arguments, files, group, differing, give);
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
        let index = self.index;
        let mut left_out = self.unseen.set(files);
        let (wanted, part) = (&mut self.wanted, &mut self.part);
        let mut is_left_out = |files: &mut TempSpace, entry| {
            (left_out.as_mut()).is_some_and(|entries| entries.contains(files, entry))
                || !part.contains(files, entry)
                || !wanted.contains(files, entry)
        };
        let ends = find_ends(index, &self.plan, thinning, &mut is_left_out, files);
        let rows = Lookup::new(self.relations, index);
        let nodes = Nodes::new(thinning, &mut self.unseen);
        let ends = Ends::new(ends, files);
        let mut met = Met::new(&index.block_layout, ends, rows, nodes, self.singletons);
        let mut walk = KeyOrderScan::new(index.block_layout.clone());
        let (tree, mut entries) = (index.tree(), Vec::new());
        let mut progress = Progress::new("collecting rows", "rows", index.rows());
        let mut more = true;
        while more {
            entries.clear();
            more = index.or_corrupt(walk.step(&tree, &mut |key, tid| {
                if !is_left_out(files, tid) {
                    entries.push((key, tid));
                }
            }));
            progress.advance(entries.len() as u64);
            for &(key, tid) in &entries {
                met.entry(files, key, tid);
            }
        }
        met.graph(files)
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
    let mut wanted = |entry| !is_left_out(&mut own_files, entry);
    let mut emit = |pair: Pair<N>| {
        for fingerprint in pair.fingerprints {
            ends.push(files, fingerprint, Tid::from_packed(count));
        }
        count += 1;
    };
    while index.or_corrupt(pairs.step(&tree, &mut wanted, &mut Some, &mut emit)) {
        progress.reach(pairs.passes_done() as u64);
    }
    drop(pairs);
    ends.sorted(files, Some(&layout.tables()[0]))
}
