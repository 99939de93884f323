//! Clusters of rows by the Jaccard similarity of their signatures. A node is a single row, or a run
//! of rows with equal signatures. One row of a run stands for the whole run in the search. A node
//! is identified by an index entry: the row address in the entry of that row, or of the single row.
//! A bucket is a set of rows with equal leading key bits. A row is crowded in a bucket if it has
//! too many pairs there to list.
use neardup_blocktree::bands::{BucketCenters, connect_buckets};
use neardup_blocktree::clusters::join;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::pairs::KeyOrderScan;
use neardup_blocktree::sort::ExternalSort;

use super::clustering::{Accept, ClusterMetric, find_clusters};
use super::confirmed_clusters::ConfirmedClusters;
use super::graph::Graph;
use super::methods::{Links, Method};
use super::{ClusterArguments, Give};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::bound::SignatureBound;
use crate::dedup::compared::Compared;
use crate::dedup::limits::share;
use crate::dedup::row_filter::Wanted;
use crate::dedup::signatures::equal_rows::EqualRows;
use crate::dedup::signatures::rows::{ComparedRows, SignatureRow, SignatureRows};
use crate::dedup::signatures::{CrowdedRows, MAX_BUCKET_PAIRS, for_each_edge, hashes};
use crate::dedup::work_limit::{BY_PARAMETER, SignaturePlan};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::temp::TempSpace;

/// Finds the clusters of the rows of a signature index and passes them to `give`.
pub fn find(
    relations: &LockedIndex,
    arguments: &ClusterArguments,
    bound: SignatureBound,
    give: Give,
) {
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        let mut nodes = SignatureNodes {
            index: &index,
            relations,
            arguments,
            bound,
            rows: SignatureRows::new(relations, &index),
            buckets: 0,
            representative: None,
            last: ([0; 2], 0),
        };
        match arguments.conditions.is_empty() {
            true => find_clusters(&mut nodes, relations, arguments, give),
            false => {
                let mut confirmed = ConfirmedClusters::new(nodes, relations, arguments);
                find_clusters::<2, 3, 4>(&mut confirmed, relations, arguments, give);
            }
        }
    })
}

/// Search of a signature index for nodes and pairs of nodes. Compares nodes by the signatures of
/// their rows in the table.
struct SignatureNodes<'a, const N: usize> {
    index: &'a Index<'a, N>,
    relations: &'a LockedIndex,
    arguments: &'a ClusterArguments,
    bound: SignatureBound,
    rows: SignatureRows<'a>,
    /// Number of buckets with crowded rows that the search has found.
    buckets: u32,
    /// Representative in the last comparison: its packed index entry, and its row if the snapshot
    /// sees it.
    representative: Option<(u64, Option<SignatureRow>)>,
    /// Packed index entries of the member and the representative in the last comparison, and the
    /// number of positions in which their signatures differ.
    last: ([u64; 2], u32),
}

impl<'a, const N: usize> SignatureNodes<'a, N> {
    /// Creates a lookup that reads and compares the rows of crowded nodes.
    fn compared_rows(&self) -> ComparedRows<'a> {
        let rows = SignatureRows::new(self.relations, self.index);
        ComparedRows::new(rows, hashes(self.index), self.bound.mismatches)
    }
}

impl<const N: usize> ClusterMetric<1, 2, 4> for SignatureNodes<'_, N> {
    fn graph(&mut self, files: &mut TempSpace, _: Method) -> Graph<2, 4> {
        let (index, relations, rows) = (self.index, self.relations, &mut self.rows);
        let wanted = Wanted::new(self.arguments.filter.as_ref(), index, relations, files);
        let mut equal_rows = EqualRows::find(index, rows, wanted, *files);
        let otherwise = (!self.arguments.exhaustive).then_some(BY_PARAMETER);
        let mut is_wanted = |entry| equal_rows.is_wanted(entry);
        let plan = SignaturePlan::new(relations, index, self.bound, otherwise, &mut is_wanted);
        let mut ends = NodeEnds {
            sort: ExternalSort::new(share()),
            files: *files,
        };
        let mut crowd = CrowdedRows {
            files: *files,
            rows: ExternalSort::new(share()),
            buckets: 0,
        };
        let mut pair = 0;
        // If texts or times are compared, all pairs are needed, so no row is crowded.
        let max_pairs = match self.arguments.conditions.is_empty() {
            true => MAX_BUCKET_PAIRS,
            false => u32::MAX,
        };
        for_each_edge(
            index,
            &mut equal_rows,
            &plan,
            rows,
            max_pairs,
            &mut crowd,
            |edge| {
                for (entry, row) in edge.entries.into_iter().zip(edge.rows) {
                    ends.push(entry, pair, row);
                }
                pair += 1;
            },
        );
        ends.add_crowd(&mut crowd, rows);
        if self.arguments.singletons {
            ends.add_all(index, &mut equal_rows, rows);
        }
        self.buckets = crowd.buckets;
        graph(equal_rows, ends, crowd, files)
    }

    fn star(
        &mut self,
        files: &mut TempSpace,
        links: Links<4>,
        ranks: &mut Paged<TempSpace>,
        _: Accept,
    ) {
        let (rows, mismatches) = (self.compared_rows(), self.bound.mismatches);
        let mut centers = BucketCenters::new(files, self.buckets, rows, mismatches, share());
        links.star(files, ranks, &mut centers);
    }

    fn connected(&mut self, files: &mut TempSpace, links: Links<4>, ranks: &mut Paged<TempSpace>) {
        let (mut rows, mismatches) = (self.compared_rows(), self.bound.mismatches);
        links.connected(files, ranks, |files, crowded, connected, done| {
            let rows = &mut rows;
            connect_buckets(files, crowded, connected, rows, mismatches, share(), done);
        });
    }

    fn compare(&mut self, &[member]: &Key<1>, &[representative]: &Key<1>) -> Compared {
        let nodes = [member, representative];
        if self.last.0 == nodes {
            return Compared::estimated(self.last.1);
        }
        let rows = &mut self.rows;
        let known = match &mut self.representative {
            Some((known, row)) if *known == representative => row,
            other => {
                let row = rows.find(Tid::from_packed(representative));
                &mut other.insert((representative, row.map(|(_, row)| row))).1
            }
        };
        let compared = known.as_ref().filter(|_| member != representative);
        // The snapshot saw both rows earlier in this job, so the result is `None` only if both
        // nodes are the same.
        let compared = compared.and_then(|row| rows.compare(Tid::from_packed(member), row));
        let differing = compared.map_or(0, |(_, differing)| differing as u32);
        self.last = (nodes, differing);
        Compared::estimated(differing)
    }
}

/// Stands in [`NodeEnds`] in place of the number of a pair, for rows that become nodes without a
/// pair: the crowded rows, and all other rows if the caller also wants clusters of one row.
const NO_PAIR: u64 = u64::MAX;

/// Ends of pairs of rows. The key is the packed index entry of the row, then the number of the
/// pair. The value is the address at which the snapshot sees the row.
struct NodeEnds {
    sort: ExternalSort<TempSpace, 2>,
    files: TempSpace,
}

impl NodeEnds {
    fn push(&mut self, entry: Tid, pair: u64, row: Tid) {
        self.sort.push(&mut self.files, [entry.packed(), pair], row);
    }

    /// Adds an end without a pair for each visible row in `crowd`.
    fn add_crowd(&mut self, crowd: &mut CrowdedRows, rows: &mut SignatureRows) {
        let mut last = None;
        crowd.rows.in_order(&mut crowd.files, None, |_, member| {
            let entry = member.key[0];
            if last.replace(entry) == Some(entry) {
                return;
            }
            pgrx::check_for_interrupts!();
            let entry = Tid::from_packed(entry);
            if let Some((row, _)) = rows.find(entry) {
                self.push(entry, NO_PAIR, row);
            }
        });
    }

    /// Adds an end without a pair for each visible row that takes part in the search: each single
    /// row, and the row that stands for each run. All of them thus become nodes.
    fn add_all<const N: usize>(
        &mut self,
        index: &Index<N>,
        equal_rows: &mut EqualRows,
        rows: &mut SignatureRows,
    ) {
        let mut scan = KeyOrderScan::new(index.block_layout.clone());
        let (tree, mut entries) = (index.tree(), Vec::new());
        let mut more = true;
        while more {
            entries.clear();
            more = index.or_corrupt(scan.step(&tree, &mut |_, entry| entries.push(entry)));
            for &entry in &entries {
                if equal_rows.is_wanted(entry)
                    && let Some((row, _)) = rows.find(entry)
                {
                    self.push(entry, NO_PAIR, row);
                }
            }
        }
    }
}

/// Builds the graph. Nodes are the runs in `equal_rows` and the rows in `ends`. They are numbered
/// in the order of their index entries. `crowd` has the crowded rows, which become the crowded
/// nodes of the graph.
fn graph(
    mut equal_rows: EqualRows,
    mut ends: NodeEnds,
    mut crowd: CrowdedRows,
    files: &mut TempSpace,
) -> Graph<2, 4> {
    let mut graph = Graph::new(share());
    let mut crowded = crowd.rows.sorted(files, None);
    let mut member = crowded.next(files);
    let mut runs = equal_rows.all();
    let mut sorted = ends.sort.sorted(files, None);
    drop(ends);
    let mut end = sorted.next(files);
    loop {
        let entry = match (runs.peek(), end.map(|end| end.key[0])) {
            (Some(a), Some(b)) => a.min(b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return graph,
        };
        let node = graph.add_node();
        let itself = end.map_or(Tid::MIN, |end| Tid::from_packed(end.tid));
        let side = runs.side_of(entry, itself);
        for number in 0..side.len() {
            if let Some(row) = equal_rows.row(side, number) {
                graph.add_member(files, row, &[entry], node);
            }
        }
        if runs.peek() == Some(entry) {
            runs.next();
        }
        while let Some(next) = end
            && next.key[0] == entry
        {
            end = sorted.next(files);
            if next.key[1] != NO_PAIR {
                let end_of_pair = [next.key[1], join(0, node)];
                graph.ends.push(files, end_of_pair, Tid::MIN);
                continue;
            }
            while let Some(own) = member
                && own.key[0] <= entry
            {
                let [owner, bucket, high, low] = own.key;
                if owner == entry {
                    let crowded = [u64::from(node), bucket, high, low];
                    graph.crowded.push(files, crowded, Tid::from_packed(entry));
                }
                member = crowded.next(files);
            }
        }
    }
}
