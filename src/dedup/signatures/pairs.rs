//! `neardup_pairs` with a distance that is no integer: that of signatures.
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::rows::SignatureRows;
use super::{Groups, edges, mismatches};
use crate::am::bands;
use crate::am::keys::with_words;
use crate::am::state::{Index, words_of};
use crate::dedup::pairs::{NoPairs, PairSet, whole_distance};
use crate::dedup::source::{Distances, find_index};
use crate::pg::call::{Call, export};
use crate::pg::relation::LockedIndex;
use crate::storage::rows::note_read;
use crate::types::signature;

export! {
    guarded "neardup_signature_pairs" => pairs;
}

/// `neardup_pairs(relation, distance, column_name)`.
fn pairs(call: &mut Call) -> pg_sys::Datum {
    if call.is_null(0) || call.is_null(1) {
        return call.return_set(|_| NoPairs);
    }
    call.return_collected(|call, give| {
        let relation = pg_sys::Oid::from(call.arg(0).value() as u32);
        let column = (!call.is_null(2)).then(|| call.arg(2));
        let oid = find_index(call.function_oid(), relation, column, Distances::Any);
        let distance = f64::from_bits(call.arg(1).value() as u64);
        let relations = LockedIndex::open_for_reading(oid);
        let mut give = |[a, b]: [Tid; 2], distance: f64| {
            let mut pointers = [pg_sys::ItemPointerData::default(); 2];
            for (pointer, tid) in pointers.iter_mut().zip([a.min(b), a.max(b)]) {
                pgrx::itemptr::item_pointer_set_all(pointer, tid.block, tid.offset);
            }
            give(&[
                Some(pg_sys::Datum::from(&raw const pointers[0])),
                Some(pg_sys::Datum::from(&raw const pointers[1])),
                Some(pg_sys::Datum::from(distance.to_bits())),
            ]);
        };
        // SAFETY: the relations are open to the end of the function.
        unsafe {
            if !bands::is_on_signatures(relations.index()) {
                let distance = whole_distance(distance);
                drop(relations);
                return PairSet::new(oid, distance)
                    .for_each(|rows, distance| give(rows, f64::from(distance)));
            }
            note_read(relations.index());
            with_words!(words_of(relations.index()), N => {
                let index = Index::<N>::open(relations.index());
                all::<N>(&index, &relations, distance, &mut give);
            });
        }
    })
}

/// Gives all pairs, with their distance.
///
/// # Safety
/// The relations are open, and the index is theirs, on signatures.
unsafe fn all<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    distance: f64,
    give: &mut impl FnMut([Tid; 2], f64),
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mismatches = mismatches(index, distance);
        let hashes = index.bands.as_ref().map_or(1, |bands| bands.hashes());
        let mut rows = SignatureRows::new(relations, index);
        let groups = Groups::find(index, &mut rows);
        for (_, members) in groups.all() {
            for (i, &a) in members.iter().enumerate() {
                pgrx::check_for_interrupts!();
                members[i + 1..].iter().for_each(|&b| give([a, b], 0.0));
            }
        }
        edges(index, &groups, mismatches, &mut rows, |edge| {
            let distance = signature::distance(edge.mismatches as usize, hashes);
            for &a in groups.members(edge.entries[0], &edge.rows[0]) {
                pgrx::check_for_interrupts!();
                for &b in groups.members(edge.entries[1], &edge.rows[1]) {
                    give([a, b], distance);
                }
            }
        });
    }
}
