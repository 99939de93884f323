//! `neardup_clusters` with a distance that is no integer: that of signatures.
use std::collections::HashMap;

use neardup_blocktree::clusters::{Nearness, join};
use neardup_blocktree::key::{Key, Tid};
use pgrx::pg_sys;

use super::rows::{FoundRow, SignatureRows};
use super::{GROUPED, Groups, edges, mismatches, too_many};
use crate::am::bands;
use crate::am::keys::with_words;
use crate::am::state::{Index, words_of};
use crate::dedup::clusters::{Give, Wanted, cluster, of_fingerprints, share};
use crate::dedup::nodes::Graph;
use crate::dedup::pairs::whole_distance;
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
    call.return_collected(|call, give| {
        let wanted = Wanted::of(call, Distances::Any);
        let distance = f64::from_bits(call.arg(1).value() as u64);
        let relations = LockedIndex::open_for_reading(wanted.index);
        // SAFETY: the relations are open.
        unsafe {
            note_read(relations.index());
            if bands::is_on_signatures(relations.index()) {
                with_words!(words_of(relations.index()), N => {
                    let index = Index::<N>::open(relations.index());
                    find::<N>(&index, &relations, distance, &wanted, give);
                });
            } else {
                let radius = whole_distance(distance);
                let shown = |distance| pg_sys::Datum::from(f64::from(distance).to_bits());
                of_fingerprints(&relations, radius, &wanted, shown, give);
            }
        }
    })
}

/// The signatures that others are near, or that several rows have, and the rows that have them.
struct Nodes {
    /// By the entry of the row that stands for all that have the signature.
    numbers: HashMap<u64, u32>,
    graph: Graph<2>,
    files: TempSpace,
}

impl Nodes {
    /// The number of a signature.
    fn number(&mut self, entry: Tid, rows: &[Tid]) -> u32 {
        if let Some(&number) = self.numbers.get(&entry.packed()) {
            return number;
        }
        let number = self.graph.node();
        self.numbers.insert(entry.packed(), number);
        for &row in rows {
            let known = [entry.packed()];
            self.graph.member(&mut self.files, row, &known, number);
        }
        number
    }
}

/// Gives all clusters of two rows or more.
///
/// # Safety
/// The relations are open, and the index is theirs, on signatures.
unsafe fn find<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    distance: f64,
    wanted: &Wanted,
    give: Give,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mismatches = mismatches(index, distance);
        let hashes = index.bands.as_ref().map_or(1, |bands| bands.hashes());
        let mut rows = SignatureRows::new(relations, index);
        let groups = Groups::find(index, &mut rows);
        let mut nodes = Nodes {
            numbers: HashMap::new(),
            graph: Graph::new(share()),
            files: TempSpace::new(),
        };
        for (first, members) in groups.all() {
            nodes.number(first, members);
        }
        let mut pair = 0;
        edges(index, &groups, mismatches, &mut rows, |edge| {
            for side in [0, 1] {
                let entry = edge.entries[side];
                let node = nodes.number(entry, groups.members(entry, &edge.rows[side]));
                let end = [pair, join(0, node)];
                nodes.graph.ends.push(&mut nodes.files, end, Tid::MIN);
            }
            pair += 1;
            if nodes.numbers.len() * GROUPED > groups.limit {
                too_many(nodes.numbers.len());
            }
        });
        drop(groups);
        let Nodes { graph, files, .. } = nodes;
        // Of signatures all pairs are known, so that nothing is compared.
        let nearness = Nearness {
            radius: 0,
            scope_words: 0,
        };
        let mut known: Option<(u64, Option<FoundRow>)> = None;
        let mut last = ([0; 2], 0.0);
        let shown = |entry: &Key<1>, of: &Key<1>| {
            if last.0 != [entry[0], of[0]] {
                if known.as_ref().is_none_or(|(center, _)| *center != of[0]) {
                    let center = rows.find(Tid::from_packed(of[0])).map(|(_, row)| row);
                    known = Some((of[0], center));
                }
                let own = match entry == of {
                    true => None,
                    false => rows.find(Tid::from_packed(entry[0])).map(|(_, row)| row),
                };
                // The snapshot has seen both before.
                let differing = match (&known, own) {
                    (Some((_, Some(center))), Some(own)) => own.mismatches(center).unwrap_or(0),
                    _ => 0,
                };
                last = ([entry[0], of[0]], signature::distance(differing, hashes));
            }
            pg_sys::Datum::from(last.1.to_bits())
        };
        cluster(graph, relations, wanted, nearness, files, shown, give);
    }
}
