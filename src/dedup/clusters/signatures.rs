//! Clusters of signatures.
use neardup_blocktree::bands::{BucketCenters, connect_buckets};
use neardup_blocktree::clusters::join;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::pairs::KeyOrderScan;
use neardup_blocktree::sort::ExternalSort;

use super::graph::Graph;
use super::methods::{Links, Method};
use super::{ClusterArguments, Give, cluster};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::bound::SignatureBound;
use crate::dedup::exhaustive::{BY_PARAMETER, plan_signatures};
use crate::dedup::limits::share;
use crate::dedup::row_filter::Wanted;
use crate::dedup::signatures::groups::Groups;
use crate::dedup::signatures::rows::{ComparedRows, FoundRow, SignatureRows};
use crate::dedup::signatures::{CrowdedRows, edges, hashes};
use crate::pg::locked_index::LockedIndex;
use crate::storage::temp::TempSpace;

/// Pairs by the entries of their rows: the entry and the pair's number, and behind them the row.
type Ends = ExternalSort<TempSpace, 2>;

/// The number of no pair: the row of the entry is in a crowded bucket, or a node for itself.
const IN_CROWD: u64 = u64::MAX;

/// Adds an end for each row of a crowd that the snapshot sees.
fn crowd_ends(
    crowd: &mut CrowdedRows,
    rows: &mut SignatureRows,
    ends: &mut Ends,
    files: &mut TempSpace,
) {
    let mut last = None;
    crowd.rows.in_order(&mut crowd.files, None, |_, member| {
        let entry = member.key[0];
        if last.replace(entry) == Some(entry) {
            return;
        }
        pgrx::check_for_interrupts!();
        if let Some((row, _)) = rows.find(Tid::from_packed(entry)) {
            ends.push(files, [entry, IN_CROWD], row);
        }
    });
}

/// Adds an end for each row that stands for itself or for others, so that each becomes a node.
fn own_ends<const N: usize>(
    index: &Index<N>,
    groups: &mut Groups,
    rows: &mut SignatureRows,
    ends: &mut Ends,
    files: &mut TempSpace,
) {
    let mut walk = KeyOrderScan::new(index.block_layout.clone());
    let (tree, mut entries) = (index.tree(), Vec::new());
    let mut more = true;
    while more {
        entries.clear();
        more = index.or_corrupt(walk.step(&tree, &mut |_, entry| entries.push(entry)));
        for &entry in &entries {
            if groups.is_wanted(entry)
                && let Some((row, _)) = rows.find(entry)
            {
                ends.push(files, [entry.packed(), IN_CROWD], row);
            }
        }
    }
}

/// Numbers the signatures that others are near, or that several rows have, by the entry of the row
/// that stands for all that have the signature.
fn graph(
    mut groups: Groups,
    mut ends: Ends,
    crowd: &mut CrowdedRows,
    files: &mut TempSpace,
) -> Graph<2, 4> {
    let mut graph = Graph::new(share());
    let mut crowded = crowd.rows.sorted(files, None);
    let mut member = crowded.next(files);
    let mut in_order = groups.all();
    let mut sorted = ends.sorted(files, None);
    drop(ends);
    let mut end = sorted.next(files);
    loop {
        let entry = match (in_order.peek(), end.map(|end| end.key[0])) {
            (Some(a), Some(b)) => a.min(b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return graph,
        };
        let node = graph.node();
        let itself = end.map_or(Tid::MIN, |end| Tid::from_packed(end.tid));
        let side = in_order.of(entry, itself);
        for number in 0..side.len() {
            if let Some(row) = groups.row(side, number) {
                graph.member(files, row, &[entry], node);
            }
        }
        if in_order.peek() == Some(entry) {
            in_order.next();
        }
        while let Some(next) = end
            && next.key[0] == entry
        {
            end = sorted.next(files);
            if next.key[1] != IN_CROWD {
                let end_of_pair = [next.key[1], join(0, node)];
                graph.ends.push(files, end_of_pair, Tid::MIN);
                continue;
            }
            while let Some(own) = member
                && own.key[0] <= entry
            {
                let [owner, bucket, high, low] = own.key;
                if owner == entry {
                    let dense = [u64::from(node), bucket, high, low];
                    graph.dense.push(files, dense, Tid::from_packed(entry));
                }
                member = crowded.next(files);
            }
        }
    }
}

/// Gives all clusters of signatures, of two rows or more.
pub fn find(
    relations: &LockedIndex,
    arguments: &ClusterArguments,
    bound: SignatureBound,
    give: Give,
) {
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        find_in(&index, relations, arguments, bound, give);
    })
}

fn find_in<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    arguments: &ClusterArguments,
    bound: SignatureBound,
    give: Give,
) {
    let (hashes, mismatches) = (hashes(index), bound.mismatches);
    let mut rows = SignatureRows::new(relations, index);
    let mut files = TempSpace;
    let wanted = Wanted::new(arguments.filter.as_ref(), index, relations, &mut files);
    let mut groups = Groups::find(index, &mut rows, wanted, files);
    let otherwise = (!arguments.exhaustive).then_some(BY_PARAMETER);
    let mut is_wanted = |entry| groups.is_wanted(entry);
    let plan = plan_signatures(relations, index, bound, otherwise, &mut is_wanted);
    let plan = plan.expect("the index is on signatures");
    let mut ends = Ends::new(share());
    let mut pair = 0;
    let mut crowd = CrowdedRows {
        files,
        rows: ExternalSort::new(share()),
        buckets: 0,
    };
    edges(index, &mut groups, plan, &mut rows, &mut crowd, |edge| {
        for (entry, row) in edge.entries.into_iter().zip(edge.rows) {
            ends.push(&mut files, [entry.packed(), pair], row);
        }
        pair += 1;
    });
    crowd_ends(&mut crowd, &mut rows, &mut ends, &mut files);
    if arguments.singletons {
        own_ends(index, &mut groups, &mut rows, &mut ends, &mut files);
    }
    let graph = graph(groups, ends, &mut crowd, &mut files);
    let buckets = crowd.buckets;
    drop(crowd);
    let mut compared = ComparedRows::new(SignatureRows::new(relations, index), hashes, mismatches);
    let group = |files: &mut TempSpace, links: Links<4>, ranks: &mut _| match arguments.method {
        Method::Star => {
            let mut centers = BucketCenters::new(files, buckets, compared, mismatches, share());
            links.star(files, ranks, &mut centers);
        }
        Method::Connected => links.connected(files, ranks, |files, dense, connected, done| {
            let source = &mut compared;
            connect_buckets(files, dense, connected, source, mismatches, share(), done);
        }),
    };
    let mut known: Option<(u64, Option<FoundRow>)> = None;
    let mut last = ([0; 2], 0);
    let differing = |entry: &Key<1>, of: &Key<1>| {
        if last.0 != [entry[0], of[0]] {
            if known.as_ref().is_none_or(|(center, _)| *center != of[0]) {
                let center = rows.find(Tid::from_packed(of[0])).map(|(_, row)| row);
                known = Some((of[0], center));
            }
            // The snapshot has seen both before.
            let differing = match &known {
                Some((_, Some(center))) if entry != of => {
                    let own = rows.compare(Tid::from_packed(entry[0]), center);
                    own.map_or(0, |(_, differing)| differing)
                }
                _ => 0,
            };
            last = ([entry[0], of[0]], differing as u32);
        }
        last.1
    };
    cluster(graph, relations, arguments, files, group, differing, give);
}
