//! `neardup_clusters`: groups of near-duplicates, each with the row that is to be kept.
use neardup_blocktree::centers::DenseCenters;
use neardup_blocktree::clusters::{Nearness, UNRANKED, join, split};
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::pairs::Thinning;
use neardup_blocktree::sort::ExternalSort;
use pgrx::pg_sys;

use super::distance::{distance_argument, refuse_bits};
use super::limits::{share, too_many};
use super::methods::{Links, Method};
use super::nodes::{Gap, Graph, find, number};
use super::source::{Distances, find_index};
use super::tid_set::UnseenEntries;
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::order_by::OrderBy;
use crate::pg::relation::LockedIndex;
use crate::pg::tid::item_pointer;
use crate::storage::heap_fetch::note_read;
use crate::storage::temp::TempSpace;

export! {
    guarded "neardup_clusters" => clusters;
}

/// Pairs of a fingerprint beyond which not all of them are written down: those of two such
/// fingerprints are found by comparing them when it matters.
const DENSE: u32 = 32;
/// Searches for a forest before all pairs are written down instead.
const MOST_FORESTS: usize = 3;

/// `neardup_clusters(relation, distance, method, keep, column_name)`.
fn clusters(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        let wanted = Wanted::of(call, Distances::Bits);
        let distance = distance_argument(call.int4(1));
        let relations = LockedIndex::open_for_reading(wanted.index);
        refuse_bits(relations.index());
        note_read(relations.index());
        let shown = |distance| pg_sys::Datum::from(distance as i32);
        of_fingerprints(&relations, distance, &wanted, shown, give);
    })
}

/// Arguments of a caller but for the distance.
pub struct Wanted {
    pub index: pg_sys::Oid,
    pub method: Method,
    pub keep: Option<OrderBy>,
}

impl Wanted {
    /// The arguments relation, distance, method, keep and column_name.
    pub fn of(call: &Call, distances: Distances) -> Self {
        for (n, name) in ["relation", "distance", "method"].iter().enumerate() {
            if call.is_null(n) {
                UserError::null_not_allowed(format!("{name} must not be NULL")).raise();
            }
        }
        Wanted {
            method: Method::parse(&call.text(2).unwrap_or_default()),
            keep: call.text(3).map(|list| OrderBy::parse("keep", &list)),
            index: {
                let relation = call.oid(0);
                let column = call.name(4);
                find_index(call.function_oid(), relation, column.as_deref(), distances)
            },
        }
    }
}

/// Callback that adds a row to the result.
pub type Give<'a> = &'a mut dyn FnMut(&[Option<pg_sys::Datum>]);

/// Gives all clusters of fingerprints, of two rows or more.
pub fn of_fingerprints(
    relations: &LockedIndex,
    radius: u32,
    wanted: &Wanted,
    shown: impl Fn(u32) -> pg_sys::Datum,
    give: Give,
) {
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        let scope_words = index.layout.scope_words();
        let mut files = TempSpace;
        let graph = graph::<N, { N + 1 }>(&index, relations, radius, wanted.method, &mut files);
        let nearness = Nearness { radius, scope_words };
        let shown = |a: &Key<N>, b: &Key<N>| shown(distance(a, b, scope_words));
        let group = |files: &mut TempSpace, links: Links<_>, ranks: &mut _| match wanted.method {
            Method::Star => links.star(files, ranks, &mut DenseCenters::new(share(), nearness)),
            // Pairs of dense nodes are among those of the forest.
            Method::Connected => links.connected(files, ranks, |_, _, _| ()),
        };
        cluster(graph, relations, wanted.keep.as_ref(), files, group, shown, give);
    })
}

/// Finds as many pairs of fingerprints as a method needs.
fn graph<const N: usize, const M: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    radius: u32,
    method: Method,
    files: &mut TempSpace,
) -> Graph<M, M> {
    let mut unseen = UnseenEntries::new();
    let mut find = |thinning| find::<N, M>(index, relations, radius, thinning, &mut unseen, files);
    if method == Method::Star {
        return find(Thinning::Degree(DENSE));
    }
    // Each search leaves out the entries that those before have found to be unseen: a fingerprint
    // of such entries alone connects nothing. More may be inserted while a search goes on.
    for _ in 0..MOST_FORESTS {
        let graph = find(Thinning::Forest);
        match graph.gap {
            Gap::None => return graph,
            Gap::Unseen => (),
            // Any of the scopes may lack what connects two fingerprints of it.
            Gap::Scopes => break,
        }
    }
    find(Thinning::Degree(u32::MAX))
}

/// Makes clusters of a graph and gives those of two rows or more: in the order of their
/// representatives, and in each the rows in their order. `group` replaces the rank of each node by
/// that of its representative.
pub fn cluster<const N: usize, const M: usize, const D: usize>(
    graph: Graph<M, D>,
    relations: &LockedIndex,
    keep: Option<&OrderBy>,
    mut files: TempSpace,
    group: impl FnOnce(&mut TempSpace, Links<D>, &mut Paged<TempSpace>),
    shown: impl FnMut(&Key<N>, &Key<N>) -> pg_sys::Datum,
    give: Give,
) {
    let files = &mut files;
    let Graph {
        nodes,
        mut members,
        ends,
        dense,
        gap: _,
    } = graph;
    let mut ranked = rank(&mut members, relations, keep, files);
    drop(members);
    // The rank of a node is that of its best row.
    let mut ranks = Paged::new(files, nodes as usize, share(), |_| UNRANKED);
    ranked.as_added(files, |files, member| {
        let (node, rank) = split(member.key[0]);
        if rank < ranks.get(files, node) {
            ranks.set(files, node, rank);
        }
    });

    let links = Links { nodes, ends, dense };
    group(files, links, &mut ranks);

    // By cluster, and in it by rank.
    let mut listed = ExternalSort::<TempSpace, M>::new(share());
    ranked.as_added(files, |files, member| {
        let (node, rank) = split(member.key[0]);
        let mut key = member.key;
        key[0] = join(ranks.get(files, node), rank);
        listed.push(files, key, Tid::from_packed(member.tid));
    });
    drop((ranked, ranks));
    list(&mut listed, files, shown, give);
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
    keep.rows(relations.table(), members.len(), &mut give, |row| {
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

/// Gives the rows of clusters with more than one.
fn list<const N: usize, const M: usize>(
    listed: &mut ExternalSort<TempSpace, M>,
    files: &mut TempSpace,
    mut shown: impl FnMut(&Key<N>, &Key<N>) -> pg_sys::Datum,
    give: Give,
) {
    // How many rows there are in each cluster, in their order.
    let mut sizes = ExternalSort::<TempSpace, 1>::new(share());
    let mut last: Option<(u32, u64)> = None;
    let mut end = |files: &mut TempSpace, last: Option<(u32, u64)>| {
        if let Some((cluster, size)) = last
            && size > 1
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
        let pointers = [row, *kept].map(item_pointer);
        give(&[
            Some(pg_sys::Datum::from(&raw const pointers[0])),
            Some(pg_sys::Datum::from(&raw const pointers[1])),
            Some(pg_sys::Datum::from(size.tid as i64)),
            Some(shown(&key, its_key)),
        ]);
    }
}
