//! `neardup_clusters` with a distance that is no integer: that of signatures.
use std::collections::HashMap;

use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::Rows;
use pgrx::pg_sys;

use super::rows::{FoundRow, SignatureRows};
use super::{GROUPED, Groups, edges, mismatches, too_many};
use crate::am::bands;
use crate::am::keys::with_words;
use crate::am::state::{Index, words_of};
use crate::dedup::clusters::{ClusterSet, Listed, Wanted, cluster, join, list, sort_members};
use crate::dedup::nodes::Member;
use crate::dedup::pairs::{whole_distance, work_memory};
use crate::dedup::source::Distances;
use crate::pg::call::{Call, export};
use crate::pg::relation::LockedIndex;
use crate::storage::rows::note_read;
use crate::storage::temp::TempSpace;
use crate::types::signature;

export! {
    guarded "neardup_signature_clusters" => clusters;
}

/// `neardup_clusters(relation, distance, method, keep, column_name)`.
fn clusters(call: &mut Call) -> pg_sys::Datum {
    call.return_set(|call| {
        let wanted = Wanted::of(call, Distances::Any);
        let distance = f64::from_bits(call.arg(1).value() as u64);
        let relations = LockedIndex::open_for_reading(wanted.index);
        // SAFETY: the relations are open.
        let listed = unsafe {
            note_read(relations.index());
            let float8 = |distance: f64| pg_sys::Datum::from(distance.to_bits());
            with_words!(words_of(relations.index()), N => {
                let index = Index::<N>::open(relations.index());
                if bands::is_on_signatures(relations.index()) {
                    find::<N>(&index, &relations, distance, &wanted)
                } else {
                    let distance = whole_distance(distance);
                    let shown = |distance| float8(f64::from(distance));
                    crate::dedup::clusters::find::<N>(&index, &relations, distance, &wanted, shown)
                }
            })
        };
        ClusterSet::new(listed)
    })
}

/// The signatures that others are near, or that several rows have, and the rows that have them.
#[derive(Default)]
struct Nodes {
    numbers: HashMap<u64, u32>,
    /// The entry of each.
    entries: Vec<Tid>,
    members: Vec<Member>,
}

impl Nodes {
    /// The number of a signature by the entry of the row that stands for all that have it.
    fn number(&mut self, entry: Tid, rows: &[Tid]) -> u32 {
        let next = self.entries.len() as u32;
        let number = *self.numbers.entry(entry.packed()).or_insert(next);
        if number == next {
            self.entries.push(entry);
            self.members.extend(rows.iter().map(|&row| Member {
                row,
                node: next,
                scope: 0,
                rank: Member::UNRANKED,
            }));
        }
        number
    }
}

/// All clusters of two rows or more.
///
/// # Safety
/// The relations are open, and the index is theirs, on signatures.
unsafe fn find<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    distance: f64,
    wanted: &Wanted,
) -> Vec<Listed> {
    // SAFETY: the caller's promise.
    unsafe {
        let mismatches = mismatches(index, distance);
        let hashes = index.bands.as_ref().map_or(1, |bands| bands.hashes());
        let mut rows = SignatureRows::new(relations, index);
        let groups = Groups::find(index, &mut rows);
        let mut nodes = Nodes::default();
        for (first, members) in groups.all() {
            nodes.number(first, members);
        }
        let mut files = TempSpace::new();
        let mut near = Rows::<TempSpace, 1>::new(work_memory());
        edges(index, &groups, mismatches, &mut rows, |edge| {
            let [a, b] = [0, 1].map(|side| {
                let entry = edge.entries[side];
                nodes.number(entry, groups.members(entry, &edge.rows[side]))
            });
            near.push(&mut files, [join(a.min(b), a.max(b))], Tid::MIN);
            if nodes.members.len() * GROUPED > groups.limit {
                too_many(nodes.members.len());
            }
        });
        drop(groups);
        sort_members(&mut nodes.members, relations, wanted.keep.as_ref());
        let representatives = cluster(&mut nodes.members, near, files, wanted.method);
        let distances = distances(&nodes, &representatives, &mut rows);
        list(&nodes.members, &representatives, |member, _| {
            let mismatches = distances[member.node as usize];
            let share = signature::distance(mismatches, hashes);
            pg_sys::Datum::from(share.to_bits())
        })
    }
}

/// For each node the mismatches with that which represents it.
///
/// # Safety
/// As for [`find`].
unsafe fn distances(
    nodes: &Nodes,
    representatives: &[u32],
    rows: &mut SignatureRows,
) -> Vec<usize> {
    // Ranks are places in an order; a node has one.
    let mut of_rank = vec![0u32; representatives.len()];
    for member in &nodes.members {
        of_rank[member.rank as usize] = member.node;
    }
    let mut ranks: Vec<u32> = (0..representatives.len() as u32).collect();
    ranks.sort_unstable_by_key(|&rank| (representatives[rank as usize], rank));
    let mut distances = vec![0; nodes.entries.len()];
    let mut known: Option<(u32, Option<FoundRow>)> = None;
    for rank in ranks {
        pgrx::check_for_interrupts!();
        let representative = representatives[rank as usize];
        if representative == rank {
            continue;
        }
        // SAFETY: the caller's promise.
        let mut find = |rank: u32| unsafe {
            let node = of_rank[rank as usize];
            rows.find(nodes.entries[node as usize]).map(|(_, row)| row)
        };
        if known.as_ref().is_none_or(|(of, _)| *of != representative) {
            known = Some((representative, find(representative)));
        }
        // The snapshot has seen both before.
        if let (Some((_, Some(center))), Some(own)) = (&known, find(rank)) {
            let node = of_rank[rank as usize] as usize;
            distances[node] = own.mismatches(center).unwrap_or(0);
        }
    }
    distances
}
