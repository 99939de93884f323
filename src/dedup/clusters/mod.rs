//! `neardup_clusters`: groups of near-duplicates, each with the row that is to be kept.
mod components;
mod fingerprint_nodes;
mod fingerprints;
mod graph;
mod methods;
mod scope_parts;
mod signatures;

use neardup_blocktree::clusters::{UNRANKED, join, split};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::ExternalSort;
use pgrx::pg_sys;

use super::bound::{Bound, SearchBound};
use super::limits::{share, too_many};
use super::source::find_index;
use crate::dedup::progress::Progress;
use crate::pg::caller_sql::Condition;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::locked_index::LockedIndex;
use crate::pg::order_by::OrderBy;
use crate::pg::tid::item_pointer;
use crate::storage::heap_fetch::note_read;
use crate::storage::temp::TempSpace;
use graph::{Graph, number};
use methods::{Links, Method};

export! {
    guarded "neardup_clusters" => clusters;
}

/// `neardup_clusters(relation, radius, similarity, method, keep, column_name, filter, singletons,
/// exhaustive)`.
fn clusters(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        for (n, name) in [(0, "relation"), (3, "method")] {
            if call.is_null(n) {
                UserError::null_not_allowed(format!("{name} must not be NULL")).raise();
            }
        }
        let flag = |n| !call.is_null(n) && call.bool(n);
        let bound = Bound::required(call, [1, 2]);
        let arguments = ClusterArguments {
            method: Method::parse(&call.text(3).unwrap_or_default()),
            keep: call.text(4).map(|list| OrderBy::parse("keep", &list)),
            filter: call.text(6).map(|text| Condition::parse("filter", &text)),
            singletons: flag(7),
            exhaustive: flag(8),
        };
        let (function, column) = (call.function_oid(), call.name(5));
        let index = find_index(function, call.oid(0), column.as_deref(), Some(bound));
        let relations = LockedIndex::open_for_reading(index);
        let bound = SearchBound::new(function, &relations, bound);
        // An error in them is to be found now, and not after a search.
        if let Some(keep) = &arguments.keep {
            keep.check(relations.table());
        }
        if let Some(filter) = &arguments.filter {
            filter.check(relations.table());
        }
        note_read(relations.index());
        let give: Give = &mut |rows, size, differing| {
            let pointers = rows.map(item_pointer);
            let [distance, similarity] = bound.columns(differing);
            give(&[
                Some(pg_sys::Datum::from(&raw const pointers[0])),
                Some(pg_sys::Datum::from(&raw const pointers[1])),
                Some(pg_sys::Datum::from(size as i64)),
                distance,
                similarity,
            ]);
        };
        match bound {
            SearchBound::Signatures(bound) => signatures::find(&relations, &arguments, bound, give),
            SearchBound::Fingerprints(bound) => {
                fingerprints::find(&relations, &arguments, bound.radius, give);
            }
        }
    })
}

/// Arguments of a caller but for the index and the bound.
struct ClusterArguments {
    method: Method,
    keep: Option<OrderBy>,
    /// The rows that take part; all without it.
    filter: Option<Condition>,
    /// Rows that are near no other are given, too, each as a cluster of its own.
    singletons: bool,
    /// Any amount of work is welcome.
    exhaustive: bool,
}

/// Callback that takes a member and its representative, the size of their cluster, and the number
/// of bits or positions in which the two differ.
type Give<'a> = &'a mut dyn FnMut([Tid; 2], u64, u32);

/// Makes clusters of a graph and gives those of two rows or more, or all: in the order of their
/// representatives, and in each the rows in their order. `group` replaces the rank of each node by
/// that of its representative.
fn cluster<const N: usize, const M: usize, const D: usize>(
    graph: Graph<M, D>,
    relations: &LockedIndex,
    arguments: &ClusterArguments,
    mut files: TempSpace,
    group: impl FnOnce(&mut TempSpace, Links<D>, &mut Paged<TempSpace>),
    differing: impl FnMut(&Key<N>, &Key<N>) -> u32,
    give: Give,
) {
    let files = &mut files;
    let Graph {
        nodes,
        mut members,
        ends,
        dense,
        ..
    } = graph;
    let mut ranked = rank(&mut members, relations, arguments.keep.as_ref(), files);
    drop(members);
    // By node, whose rank is that of its best row: so `ranks` is written, and later read, from its
    // start to its end, where any other order would ask for a page of it for each row.
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

    let links = Links { nodes, ends, dense };
    group(files, links, &mut ranks);

    // By cluster, and in it by rank.
    let mut listed = ExternalSort::<TempSpace, M>::new(share());
    rows.as_added(files, |files, row| {
        let (node, rank) = split(row.key[0]);
        let mut key = row.key;
        key[0] = join(ranks.get(files, node), rank);
        listed.push(files, key, Tid::from_packed(row.tid));
    });
    drop((rows, ranks));
    let least_size = if arguments.singletons { 1 } else { 2 };
    list(&mut listed, least_size, files, differing, give);
}

/// All rows with their ranks, from the most wanted on: the node and the rank, then what is known of
/// the row, and its address.
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
            push(files, member.key, member.tid, next);
            next += 1;
        });
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
    let (mut order, mut rows) = (order.sorted(files, None), members.sorted(files, None));
    while let Some(member) = rows.next(files) {
        match order.next(files) {
            Some(place) if place.key[0] == member.key[0] => {
                push(files, member.key, member.tid, place.tid as u32);
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
    UserError::invalid_parameter("keep gives more or fewer rows than there are")
        .detail("Its expressions must have one value for each row.")
        .raise()
}

/// Gives the rows of clusters with `least_size` or more.
fn list<const N: usize, const M: usize>(
    listed: &mut ExternalSort<TempSpace, M>,
    least_size: u64,
    files: &mut TempSpace,
    mut differing: impl FnMut(&Key<N>, &Key<N>) -> u32,
    give: Give,
) {
    // How many rows there are in each cluster, in their order.
    let mut sizes = ExternalSort::<TempSpace, 1>::new(share());
    let mut last: Option<(u32, u64)> = None;
    let mut end = |files: &mut TempSpace, last: Option<(u32, u64)>| {
        if let Some((cluster, size)) = last
            && size >= least_size
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

    let mut sizes = sizes.sorted(files, None);
    let mut size = sizes.next(files);
    // The representative's address and key; it comes first.
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
        give([row, *kept], size.tid, differing(&key, its_key));
    }
}
