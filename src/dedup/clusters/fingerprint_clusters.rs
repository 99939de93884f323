//! Clusters of rows by the Hamming distance of their fingerprints. The search for pairs of distinct
//! fingerprints runs first. [`NodeBuilder`] then merges the pairs with the entries of the index.
//! Each fingerprint of a pair becomes a node in each scope (rows with equal values in the scope
//! columns). The method `connected` needs only a forest: a small set of pairs that connects the
//! same fingerprints as all pairs together.
use neardup_blocktree::clusters::{Centers, split};
use neardup_blocktree::crowded_centers::CrowdedCenters;
use neardup_blocktree::crowded_centers::Nearness;
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::pairs::{KeyOrderScan, Pair, PairPlan, Pairs, Thinning};
use neardup_blocktree::sort::{Entry, ExternalSort, Sorted};

use super::clustering::{Accept, ClusterMetric, find_clusters};
use super::confirmed_clusters::ConfirmedClusters;
use super::graph::{Gap, Graph};
use super::methods::{Links, Method};
use super::node_builder::{GraphWriter, NodeBuilder, PairEnds, RowLookup};
use super::scope_parts::{Part, ScopeParts};
use super::{ClusterArguments, Give};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::compared::Compared;
use crate::dedup::limits::share;
use crate::dedup::progress::Progress;
use crate::dedup::row_filter::Wanted;
use crate::dedup::tid_set::TidList;
use crate::dedup::work_limit::check_fingerprints;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::temp::TempSpace;

/// Number of pairs above which a fingerprint is crowded, for the method `star`. The search may omit
/// a pair of two crowded fingerprints. `star` then compares such fingerprints itself.
const MAX_PAIRS: u32 = 32;
/// Maximum number of searches for a forest. A search fails if a fingerprint in a pair has no
/// visible row. The next search skips the entries without a visible row that earlier searches have
/// found, but other sessions may add new ones all the time. If all searches fail, one more search
/// finds all pairs.
const MAX_FOREST_SEARCHES: usize = 3;

/// Finds the clusters of the rows of a fingerprint index and passes them to `give`. `radius` is in
/// bits.
pub fn find(relations: &LockedIndex, arguments: &ClusterArguments, radius: u32, give: Give) {
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        let mut search = NodeSearch {
            index: &index,
            relations,
            plan: PairPlan::new(&index.block_layout, radius, index.rows()),
            wanted: Wanted::new(arguments.filter.as_ref(), &index, relations, &mut TempSpace),
            part: Part::All,
            invisible: TidList::new(),
            singletons: arguments.singletons,
            is_confirmed: !arguments.conditions.is_empty(),
            max_rows: match &arguments.conditions.window {
                Some(_) => MAX_PAIRS,
                None => u32::MAX,
            },
        };
        if !arguments.exhaustive {
            check_fingerprints(relations, &index, &search.plan);
        }
        if arguments.conditions.is_empty() {
            return find_clusters::<N, { N + 1 }, { N + 1 }>(
                &mut search, relations, arguments, give,
            );
        }
        let mut confirmed = ConfirmedClusters::<_, N, { N + 1 }>::new(
            search, relations, arguments,
        );
        find_clusters::<{ N + 1 }, { N + 2 }, { N + 1 }>(
            &mut confirmed, relations, arguments, give,
        );
    })
}

/// Search of a fingerprint index for nodes and pairs of nodes.
struct NodeSearch<'a, const N: usize> {
    index: &'a Index<'a, N>,
    relations: &'a LockedIndex,
    plan: PairPlan<N>,
    /// Index entries whose rows meet the caller's filter.
    wanted: Wanted,
    /// Part of the index that the current search reads, usually the whole index. If several scopes
    /// have the same hash, a search for a forest reads one scope of each hash at a time. Otherwise
    /// it could connect fingerprints of different scopes, because the index stores only the hashes
    /// of scopes.
    part: Part,
    /// Index entries without a visible row: deleted rows that VACUUM has not removed yet, and rows
    /// of other transactions. Such an entry stays invisible as long as the snapshot exists, even if
    /// another row takes its address.
    invisible: TidList,
    /// True if fingerprints without a pair become nodes as well.
    singletons: bool,
    /// True if the texts or times of all pairs are compared afterwards. The search then finds all
    /// pairs instead of a forest (pairs that connect all nodes without cycles), because some pairs
    /// of a forest may be rejected.
    is_confirmed: bool,
    /// Number of rows above which a fingerprint is crowded for the method `star`. `u32::MAX`, which
    /// means no limit, unless a window of time is given. Rows with equal fingerprints are then
    /// compared with each other, so their number must be limited.
    max_rows: u32,
}

impl<const N: usize, const M: usize> ClusterMetric<N, M, M> for NodeSearch<'_, N> {
    fn graph(&mut self, files: &mut TempSpace, method: Method) -> Graph<M, M> {
        if method == Method::Star {
            return self.find(Thinning::Degree(MAX_PAIRS), files);
        }
        if self.is_confirmed {
            return self.find(Thinning::Degree(u32::MAX), files);
        }
        let found = self.forest(files).or_else(|gap| match gap {
            // Several scopes have the same hash, so the forest may lack pairs that connect two
            // fingerprints of one scope.
            Gap::Scopes => self.forest_by_scopes(files).ok_or(gap),
            _ => Err(gap),
        });
        self.part = Part::All;
        found.unwrap_or_else(|_| self.find(Thinning::Degree(u32::MAX), files))
    }

    fn star(
        &mut self,
        files: &mut TempSpace,
        links: Links<M>,
        ranks: &mut Paged<TempSpace>,
        accept: Accept,
    ) {
        let nearness = Nearness {
            radius: self.plan.radius,
            scope_words: self.index.layout.scope_words(),
        };
        let centers = CrowdedCenters::new(share(), nearness);
        links.star(files, ranks, &mut AcceptedCenters { centers, accept });
    }

    fn connected(&mut self, files: &mut TempSpace, links: Links<M>, ranks: &mut Paged<TempSpace>) {
        // The graph for this method has no crowded nodes, so its pairs connect everything.
        links.connected(files, ranks, |_, _, _, _| ());
    }

    fn compare(&mut self, member: &Key<N>, representative: &Key<N>) -> Compared {
        let scope_words = self.index.layout.scope_words();
        Compared::estimated(distance(member, representative, scope_words))
    }
}

/// Representatives among crowded fingerprints. A representative near a node counts only if `accept`
/// confirms that the two are near-duplicates.
struct AcceptedCenters<'a, const M: usize> {
    centers: CrowdedCenters<TempSpace, M>,
    accept: Accept<'a>,
}

impl<const M: usize> Centers<TempSpace, M> for AcceptedCenters<'_, M> {
    fn first_near(&mut self, files: &mut TempSpace, own: &[Entry<M>], below: u32) -> Option<u32> {
        let (_, node) = split(own[0].key[0]);
        let accept = &mut |center| (self.accept)(node, center);
        self.centers.first_accepted(files, own, below, accept)
    }

    fn push(&mut self, files: &mut TempSpace, own: &[Entry<M>]) {
        self.centers.push(files, own);
    }
}

impl<const N: usize> NodeSearch<'_, N> {
    /// Finds a forest: pairs that connect, directly or in several steps, all fingerprints that the
    /// full set of pairs connects. Searches up to [`MAX_FOREST_SEARCHES`] times.
    ///
    /// # Errors
    /// The reason why the found pairs may not be a forest.
    fn forest<const M: usize>(&mut self, files: &mut TempSpace) -> Result<Graph<M, M>, Gap> {
        // Each search skips the entries that earlier searches found to be invisible, because a
        // fingerprint without a visible row connects nothing. Other sessions may insert more
        // invisible entries during a search.
        for _ in 0..MAX_FOREST_SEARCHES {
            let graph = self.find(Thinning::Forest, files);
            match graph.gap {
                Gap::None => return Ok(graph),
                Gap::Invisible => (),
                Gap::Scopes => return Err(Gap::Scopes),
            }
        }
        Err(Gap::Invisible)
    }

    /// Finds a forest in an index in which several scopes have the same hash. Searches one part of
    /// the index after the other, and joins the graphs. A part has the entries of one scope for
    /// each hash. Returns `None` if the index cannot be divided into parts, or if the found pairs
    /// may not be a forest.
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

    /// Runs one search for pairs, and returns the graph of their nodes. `thinning` determines which
    /// pairs the search may omit. Skips the entries in `self.invisible`, and adds other entries
    /// without a visible row to it.
    fn find<const M: usize>(&mut self, thinning: Thinning, files: &mut TempSpace) -> Graph<M, M> {
        let index = self.index;
        let mut invisible = self.invisible.set(files);
        let (wanted, part) = (&mut self.wanted, &mut self.part);
        let mut is_skipped = |files: &mut TempSpace, entry| {
            (invisible.as_mut()).is_some_and(|entries| entries.contains(files, entry))
                || !part.contains(files, entry)
                || !wanted.contains(files, entry)
        };
        let ends = find_ends(index, &self.plan, thinning, &mut is_skipped, files);
        let max_rows = match thinning {
            Thinning::Degree(MAX_PAIRS) => self.max_rows,
            _ => u32::MAX,
        };
        let mut builder = NodeBuilder::new(
            &index.block_layout,
            PairEnds::new(ends, files),
            RowLookup::new(self.relations, index),
            GraphWriter::new(thinning, max_rows, &mut self.invisible),
            self.singletons,
        );
        let mut scan = KeyOrderScan::new(index.block_layout.clone());
        let (tree, mut entries) = (index.tree(), Vec::new());
        let total = index.estimated_rows();
        let mut progress = Progress::estimated("collecting rows", "rows", total);
        let mut more = true;
        while more {
            entries.clear();
            more = index.or_corrupt(scan.step(&tree, &mut |key, tid| {
                if !is_skipped(files, tid) {
                    entries.push((key, tid));
                }
            }));
            progress.advance(entries.len() as u64);
            for &(key, tid) in &entries {
                builder.add_entry(files, key, tid);
            }
        }
        progress.finish();
        builder.finish(files)
    }
}

/// Searches for pairs of fingerprints. Ignores index entries for which `is_skipped` is true.
/// Returns two entries for each pair, one for each fingerprint. The key of an entry is the
/// fingerprint's key in the first permutation (ordered copy of all keys), and the value is the
/// number of the pair. The result is sorted by key.
fn find_ends<const N: usize>(
    index: &Index<N>,
    plan: &PairPlan<N>,
    thinning: Thinning,
    is_skipped: &mut impl FnMut(&mut TempSpace, Tid) -> bool,
    files: &mut TempSpace,
) -> Sorted<TempSpace, N> {
    let layout = &index.block_layout;
    let passes = plan.passes.len() as f64;
    let mut progress = Progress::new(
        "comparing the rows of a permutation",
        "permutations",
        passes,
    );
    let mut pairs = Pairs::thinned(layout.clone(), plan.clone(), work_mem(), thinning);
    let tree = index.tree();
    let mut ends = ExternalSort::<TempSpace, N>::new(share());
    let mut count = 0u64;
    // Rows are not fetched yet, so a fingerprint of a pair may have no visible row.
    let mut own_files = *files;
    let mut wanted = |entry| !is_skipped(&mut own_files, entry);
    let mut emit = |pair: Pair<N>| {
        for fingerprint in pair.fingerprints {
            ends.push(files, fingerprint, Tid::from_packed(count));
        }
        count += 1;
    };
    while index.or_corrupt(pairs.step(&tree, &mut wanted, &mut Some, &mut emit)) {
        progress.reach(pairs.passes_done() as u64);
    }
    progress.reach(pairs.passes_done() as u64);
    progress.finish();
    drop(pairs);
    ends.sorted(files, Some(&layout.permutations()[0]))
}
