//! `neardup_clusters`: groups of near-duplicates, each with the row that is to be kept.
use std::collections::HashMap;

use neardup_blocktree::clusters::{Connected, Star};
use neardup_blocktree::key::{Tid, distance};
use neardup_blocktree::sort::Rows;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::nodes::{Member, Nodes};
use super::pairs::{distance_argument, work_memory};
use super::signatures::refuse_bits;
use super::source::{Distances, find_index};
use crate::am::keys::with_words;
use crate::am::state::{Index, words_of};
use crate::pg::call::{Call, export};
use crate::pg::errors::UserError;
use crate::pg::order::OrderBy;
use crate::pg::relation::LockedIndex;
use crate::pg::set::Set;
use crate::pg::{text, varlena};
use crate::storage::rows::note_read;
use crate::storage::temp::TempSpace;

export! {
    guarded "neardup_clusters" => clusters;
}

/// How rows that are near each other are made into groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Star,
    Connected,
}

impl Method {
    fn parse(name: &str) -> Self {
        match name {
            "star" => Method::Star,
            "connected" => Method::Connected,
            _ => UserError::invalid_parameter("method must be 'star' or 'connected'")
                .detail(
                    "star: each member is within the distance of its representative. connected: \
                     members are linked by chains of rows within the distance of each other.",
                )
                .raise(),
        }
    }
}

/// `neardup_clusters(relation, distance, method, keep, column_name)`.
fn clusters(call: &mut Call) -> pg_sys::Datum {
    call.return_set(|call| {
        let wanted = Wanted::of(call, Distances::Bits);
        let distance = distance_argument(call.arg(1).value() as i32);
        let relations = LockedIndex::open_for_reading(wanted.index);
        // SAFETY: the relations are open.
        let listed = unsafe {
            refuse_bits(relations.index());
            note_read(relations.index());
            with_words!(words_of(relations.index()), N => {
                let index = Index::<N>::open(relations.index());
                let shown = |distance| pg_sys::Datum::from(distance as i32);
                find::<N>(&index, &relations, distance, &wanted, shown)
            })
        };
        ClusterSet::new(listed)
    })
}

/// What a caller asks for, but for the distance.
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
        // SAFETY: the SQL script declares both as text.
        unsafe {
            Wanted {
                index: {
                    let relation = pg_sys::Oid::from(call.arg(0).value() as u32);
                    let column = (!call.is_null(4)).then(|| call.arg(4));
                    find_index(call.function_oid(), relation, column, distances)
                },
                method: Method::parse(&text::utf8(call.arg(2))),
                keep: (!call.is_null(3))
                    .then(|| OrderBy::parse("keep", varlena::bytes(call.arg(3)))),
            }
        }
    }
}

/// A row of the result.
#[derive(Clone, Copy)]
pub struct Listed {
    member: Tid,
    representative: Tid,
    size: u32,
    /// Of whatever type the result has.
    distance: pg_sys::Datum,
}

/// All clusters of two rows or more.
///
/// # Safety
/// The relations are open.
pub unsafe fn find<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    radius: u32,
    wanted: &Wanted,
    shown: impl Fn(u32) -> pg_sys::Datum,
) -> Vec<Listed> {
    let mut files = TempSpace::new();
    let mut near = Rows::new(work_memory());
    // SAFETY: the caller's promise.
    let mut nodes = unsafe { Nodes::<N>::find(index, relations, radius, &mut files, &mut near) };
    // SAFETY: the caller's promise.
    unsafe { sort_members(&mut nodes.members, relations, wanted.keep.as_ref()) };
    let representatives = cluster(&mut nodes.members, near, files, wanted.method);
    let (fingerprints, scope_words) = (&nodes.fingerprints, index.layout.scope_words());
    list(&nodes.members, &representatives, |a, b| {
        let [a, b] = [a, b].map(|member| &fingerprints[member.node as usize]);
        shown(distance(a, b, scope_words))
    })
}

/// The representatives of all nodes, which are numbered by the best of their rows: from here on a
/// node is what members have in common, in one scope. The members come from the most wanted on, and
/// get the number of their node as their rank.
pub fn cluster(
    members: &mut [Member],
    mut near: Rows<TempSpace, 1>,
    mut files: TempSpace,
    method: Method,
) -> Vec<u32> {
    let mut ranks = Ranks::default();
    for member in members {
        member.rank = ranks.of(member.node, member.scope);
    }
    let mut star = Star::new(ranks.count());
    let mut connected = Connected::new(ranks.count());
    let mut sorted = Rows::<TempSpace, 1>::new(work_memory());
    near.in_order(&mut files, None, |files, pair| {
        let (a, b) = split(pair.key[0]);
        ranks.pairs(a, b, |a, b| match method {
            Method::Connected => connected.near(a, b),
            Method::Star => sorted.push(files, [join(a.min(b), a.max(b))], Tid::MIN),
        });
    });
    drop(near);
    sorted.in_order(&mut files, None, |_, pair| {
        let (a, b) = split(pair.key[0]);
        star.near(a, b);
    });
    match method {
        Method::Star => star.finish(),
        Method::Connected => connected.finish(),
    }
}

/// Two numbers in one, ordered by the first.
pub fn join(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

fn split(joined: u64) -> (u32, u32) {
    ((joined >> 32) as u32, joined as u32)
}

/// Sorts rows from the most wanted on.
///
/// # Safety
/// The relations are open.
pub unsafe fn sort_members(
    members: &mut [Member],
    relations: &LockedIndex,
    keep: Option<&OrderBy>,
) {
    members.sort_unstable_by_key(|member| member.row);
    let Some(keep) = keep else {
        return;
    };
    let rows: Vec<Tid> = members.iter().map(|member| member.row).collect();
    let mut next = 0;
    let place = |row: Tid| rows.binary_search(&row).ok();
    // SAFETY: the caller's promise.
    unsafe {
        keep.rows(relations.table(), &rows, |row| {
            if let Some(place) = place(row)
                && members[place].rank == Member::UNRANKED
            {
                members[place].rank = next;
            }
            next += 1;
        });
    }
    if next as usize != rows.len() {
        UserError::invalid_parameter("keep gives more or fewer rows than there are")
            .detail("Its expressions must have one value for each row.")
            .raise();
    }
    members.sort_unstable_by_key(|member| member.rank);
}

/// The nodes of a clustering: a fingerprint in each scope that it occurs in. Scopes with the same
/// hash are told apart here; nearly always there is one for a fingerprint and its hash.
#[derive(Default)]
struct Ranks {
    count: u32,
    /// By fingerprint, of its first scope: the scope, and the node.
    first: Vec<Option<(u32, u32)>>,
    /// Of others.
    others: HashMap<u32, Vec<(u32, u32)>>,
}

impl Ranks {
    /// The node of a fingerprint in a scope, numbered anew if it has not been seen.
    fn of(&mut self, fingerprint: u32, scope: u32) -> u32 {
        let place = fingerprint as usize;
        if self.first.len() <= place {
            self.first.resize(place + 1, None);
        }
        let known = self.all(fingerprint).find(|(other, _)| *other == scope);
        if let Some((_, node)) = known {
            return node;
        }
        let node = self.count;
        self.count += 1;
        match &mut self.first[place] {
            first @ None => *first = Some((scope, node)),
            Some(_) => self
                .others
                .entry(fingerprint)
                .or_default()
                .push((scope, node)),
        }
        node
    }

    fn all(&self, fingerprint: u32) -> impl Iterator<Item = (u32, u32)> {
        let first = self.first.get(fingerprint as usize).copied().flatten();
        let others = match self.others.is_empty() {
            true => None,
            false => self.others.get(&fingerprint),
        };
        first
            .into_iter()
            .chain(others.into_iter().flatten().copied())
    }

    /// The nodes of two fingerprints that are of one scope.
    fn pairs(&self, a: u32, b: u32, mut each: impl FnMut(u32, u32)) {
        for (scope, a) in self.all(a) {
            for (other, b) in self.all(b) {
                if scope == other {
                    each(a, b);
                }
            }
        }
    }

    fn count(&self) -> usize {
        self.count as usize
    }
}

/// The result: clusters in the order of their representatives, and in each the rows in their order.
pub fn list(
    members: &[Member],
    representatives: &[u32],
    distance: impl Fn(&Member, &Member) -> pg_sys::Datum,
) -> Vec<Listed> {
    let mut sizes = vec![0u32; representatives.len()];
    // The first row of a node, which comes before all others of its cluster if it represents it.
    let mut best: Vec<Option<Member>> = vec![None; representatives.len()];
    let cluster = |member: &Member| representatives[member.rank as usize];
    for member in members {
        sizes[cluster(member) as usize] += 1;
        best[member.rank as usize].get_or_insert(*member);
    }
    let mut listed: Vec<(u32, u32, Listed)> = Vec::new();
    for (place, member) in (0..).zip(members) {
        let size = sizes[cluster(member) as usize];
        let Some(representative) = best[cluster(member) as usize] else {
            continue;
        };
        if size > 1 {
            let row = Listed {
                member: member.row,
                representative: representative.row,
                size,
                distance: distance(member, &representative),
            };
            if listed.try_reserve(1).is_err() {
                UserError::out_of_memory().raise();
            }
            listed.push((cluster(member), place, row));
        }
    }
    listed.sort_unstable_by_key(|&(cluster, place, _)| (cluster, place));
    listed.into_iter().map(|(_, _, row)| row).collect()
}

/// Clusters on their way to the server.
pub struct ClusterSet {
    listed: std::vec::IntoIter<Listed>,
    /// What the row given last points to.
    pointers: [pg_sys::ItemPointerData; 2],
}

impl ClusterSet {
    pub fn new(listed: Vec<Listed>) -> Self {
        ClusterSet {
            listed: listed.into_iter(),
            pointers: Default::default(),
        }
    }
}

impl Set for ClusterSet {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        let Some(row) = self.listed.next() else {
            return false;
        };
        let rows = [row.member, row.representative];
        for (pointer, tid) in self.pointers.iter_mut().zip(rows) {
            pgrx::itemptr::item_pointer_set_all(pointer, tid.block, tid.offset);
            columns.push(Some(pg_sys::Datum::from(&raw const *pointer)));
        }
        columns.push(Some(pg_sys::Datum::from(i64::from(row.size))));
        columns.push(Some(row.distance));
        true
    }
}

/// 53400: near-duplicates need more memory than is set for such work.
pub fn too_many(fingerprints: usize, rows: usize) -> ! {
    // SAFETY: a variable of the server's.
    let limit = unsafe { pg_sys::maintenance_work_mem } / 1024;
    UserError::new(
        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        "clusters need more memory than maintenance_work_mem allows",
    )
    .detail(format!(
        "{fingerprints} fingerprints and {rows} rows with near-duplicates were found, and \
         maintenance_work_mem is {limit} MB."
    ))
    .hint("SET maintenance_work_mem to a larger value, or use a smaller distance.")
    .raise()
}
