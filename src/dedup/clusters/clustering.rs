//! Clustering of rows by fingerprints, signatures or texts. A node is a distinct value that has
//! near-duplicates, with all rows that have this value. Rows are ranked by the order of the
//! argument `keep`, and the rank of a node is the lowest rank of its rows. The method ([`Method`])
//! assigns a representative to each node. The nodes of one representative are a cluster.
//!
//! Each list and array uses at most its share of `maintenance_work_mem` ([`share`]), and temporary
//! files beyond it.
use neardup_blocktree::clusters::{UNRANKED, join, split};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::ExternalSort;

use super::graph::{Graph, number};
use super::methods::{Links, Method};
use super::{ClusterArguments, Give};
use crate::dedup::compared::Compared;
use crate::dedup::limits::{share, too_many};
use crate::dedup::progress::Progress;
use neardup_pg::errors::UserError;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::order_by::OrderBy;
use neardup_pg::storage::temp::TempSpace;

/// Metric by which rows are clustered: fingerprints, signatures or texts. `N` is the number of
/// 64-bit words that identify a node. `M` must be `N + 1`: the number of words of a key in
/// [`Graph::members`]. `D` is the number of words of a key in [`Graph::crowded`], the list of nodes
/// with too many pairs to list.
pub trait ClusterMetric<const N: usize, const M: usize, const D: usize> {
    /// Searches the index. Returns the nodes, their rows, and the pairs of near nodes that `method`
    /// needs. `files` is the temporary space for the lists of the graph.
    fn graph(&mut self, files: &mut TempSpace, method: Method) -> Graph<M, D>;

    /// Applies the method `star`: replaces the rank of each node in `ranks` by the rank of its
    /// representative. `links` has the nodes and their pairs. It lacks some pairs of crowded nodes
    /// (nodes with too many pairs to list). This function finds the missing pairs itself, and uses
    /// such a pair only if `accept` returns true.
    fn star(
        &mut self,
        files: &mut TempSpace,
        links: Links<D>,
        ranks: &mut Paged<TempSpace>,
        accept: Accept,
    );

    /// Applies the method `connected`: replaces the rank of each node in `ranks` by the lowest rank
    /// in its connected component.
    fn connected(&mut self, files: &mut TempSpace, links: Links<D>, ranks: &mut Paged<TempSpace>);

    /// Compares a member of a cluster with its representative, each given by the words that
    /// identify its node.
    fn compare(&mut self, member: &Key<N>, representative: &Key<N>) -> Compared;
}

/// Callback that takes the numbers of two nodes whose indexed values are near each other. Returns
/// whether the nodes are near-duplicates. It may return false because of their texts or times.
pub type Accept<'a> = &'a mut dyn FnMut(u32, u32) -> bool;

/// Finds the clusters and passes their rows to `give`: clusters in the order of their
/// representatives' ranks, and the rows of a cluster in the order of their own ranks. Skips
/// clusters of one row unless the caller asks for them.
pub fn find_clusters<const N: usize, const M: usize, const D: usize>(
    metric: &mut impl ClusterMetric<N, M, D>,
    relations: &LockedIndex,
    arguments: &ClusterArguments,
    give: Give,
) {
    let files = &mut TempSpace;
    let Graph {
        nodes,
        mut members,
        ends,
        crowded,
        ..
    } = metric.graph(files, arguments.method);
    let mut ranked = rank(&mut members, relations, arguments.keep.as_ref(), files);
    drop(members);
    // The rank of a node is the lowest rank of its rows. Sorting the rows by node makes the access
    // to the pages of `ranks` sequential. Any other order would load a page for each row.
    let mut rows = ExternalSort::<TempSpace, M>::new(share());
    let mut ranks = Paged::new(files, nodes as usize, share(), |_| UNRANKED);
    let mut last = None;
    ranked.in_order(files, None, |files, row| {
        let (node, rank) = split(row.key[0]);
        if last.replace(node) != Some(node) {
            ranks.set(files, node, rank);
        }
        rows.push(files, row.key, Tid::from_packed(row.tid));
    });
    drop(ranked);

    let links = Links {
        nodes,
        ends,
        crowded,
    };
    match arguments.method {
        Method::Star => metric.star(files, links, &mut ranks, &mut |_, _| true),
        Method::Connected => metric.connected(files, links, &mut ranks),
    }

    // All rows, to be sorted by cluster (the rank of the representative), then by the row's own
    // rank.
    let mut listed = ExternalSort::<TempSpace, M>::new(share());
    rows.as_added(files, |files, row| {
        let (node, rank) = split(row.key[0]);
        let mut key = row.key;
        key[0] = join(ranks.get(files, node), rank);
        listed.push(files, key, Tid::from_packed(row.tid));
    });
    drop((rows, ranks));
    let min_size = if arguments.singletons { 1 } else { 2 };
    let compare = |a: &Key<N>, b: &Key<N>| metric.compare(a, b);
    list(&mut listed, min_size, files, compare, give);
}

/// Ranks all rows in `members` in the order of `keep`, or by address if `keep` is `None`. So the
/// row to keep has the lowest rank of its cluster. Returns an entry for each row. The value of the
/// entry is the row's address. The first word of its key has the number of the row's node and the
/// rank of the row. The other words of the key identify the node.
fn rank<const M: usize>(
    members: &mut ExternalSort<TempSpace, M>,
    relations: &LockedIndex,
    keep: Option<&OrderBy>,
    files: &mut TempSpace,
) -> ExternalSort<TempSpace, M> {
    if members.len() >= u64::from(UNRANKED) {
        too_many();
    }
    let mut ranked = ExternalSort::new(share());
    let mut push = |files: &mut TempSpace, member: Key<M>, node: u64, rank: u32| {
        let mut key = member;
        key[0] = join(node as u32, rank);
        ranked.push(files, key, Tid::from_packed(member[0]));
    };
    let mut progress = Progress::new("ordering rows", "rows", members.len() as f64);
    let Some(keep) = keep else {
        let mut next = 0;
        members.in_order(files, None, |files, member| {
            progress.advance(1);
            push(files, member.key, member.tid, next);
            next += 1;
        });
        progress.finish();
        return ranked;
    };
    let (mut order, mut next) = (ExternalSort::<TempSpace, 1>::new(share()), 0);
    let mut rows = members.sorted(files, None);
    let mut temp = TempSpace;
    let mut give = || {
        rows.next(files)
            .map(|member| Tid::from_packed(member.key[0]))
    };
    keep.rows(relations.table(), &mut give, |row| {
        progress.advance(1);
        order.push(&mut temp, [row.packed()], number(next));
        next += 1;
    });
    progress.finish();
    let (mut order, mut rows) = (order.sorted(files, None), members.sorted(files, None));
    while let Some(member) = rows.next(files) {
        match order.next(files) {
            Some(ranked) if ranked.key[0] == member.key[0] => {
                push(files, member.key, member.tid, ranked.tid as u32);
            }
            _ => not_one_for_each(),
        }
    }
    if order.next(files).is_some() {
        not_one_for_each();
    }
    ranked
}

fn not_one_for_each() -> ! {
    UserError::invalid_parameter("\"keep\" returned an unexpected number of rows")
        .detail("Each expression in \"keep\" must return exactly one value for each row.")
        .raise()
}

/// Passes the rows of clusters with at least `min_size` rows to `give`. `listed` has all rows by
/// cluster, then by rank. `compare` compares a member with its representative.
fn list<const N: usize, const M: usize>(
    listed: &mut ExternalSort<TempSpace, M>,
    min_size: u64,
    files: &mut TempSpace,
    mut compare: impl FnMut(&Key<N>, &Key<N>) -> Compared,
    give: Give,
) {
    let mut sizes = cluster_sizes(listed, min_size, files).sorted(files, None);
    let mut size = sizes.next(files);
    // Representative of the current cluster, which is its first row: the cluster's number, the
    // row's address, and the words that identify its node.
    let mut representative: Option<(u32, Tid, Key<N>)> = None;
    let mut rows = listed.sorted(files, None);
    while let Some(row) = rows.next(files) {
        pgrx::check_for_interrupts!();
        let (cluster, _) = split(row.key[0]);
        while size.is_some_and(|size| size.key[0] < u64::from(cluster)) {
            size = sizes.next(files);
        }
        let Some(size) = size.filter(|size| size.key[0] == u64::from(cluster)) else {
            continue;
        };
        let mut key = [0; N];
        key.copy_from_slice(&row.key[1..]);
        let row = Tid::from_packed(row.tid);
        let (_, kept, its_key) = match &representative {
            Some(known) if known.0 == cluster => known,
            _ => representative.insert((cluster, row, key)),
        };
        give([row, *kept], size.tid, compare(&key, its_key));
    }
}

/// Returns an entry for each cluster with at least `min_size` rows. The key is the number of the
/// cluster, and the value is its number of rows. `listed` has all rows by cluster.
fn cluster_sizes<const M: usize>(
    listed: &mut ExternalSort<TempSpace, M>,
    min_size: u64,
    files: &mut TempSpace,
) -> ExternalSort<TempSpace, 1> {
    let mut sizes = ExternalSort::<TempSpace, 1>::new(share());
    let mut last: Option<(u32, u64)> = None;
    let mut end = |files: &mut TempSpace, last: Option<(u32, u64)>| {
        if let Some((cluster, size)) = last
            && size >= min_size
        {
            sizes.push(files, [u64::from(cluster)], Tid::from_packed(size));
        }
    };
    listed.in_order(files, None, |files, row| {
        let (cluster, _) = split(row.key[0]);
        last = match last {
            Some((known, size)) if known == cluster => Some((known, size + 1)),
            _ => {
                end(files, last);
                Some((cluster, 1))
            }
        };
    });
    end(files, last);
    sizes
}
