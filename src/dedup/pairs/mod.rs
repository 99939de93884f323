//! `neardup_pairs`: all pairs of a table's rows within a distance.
//!
//! The searches keep within `work_mem`: that of fingerprints in [`neardup_blocktree::pairs`], that
//! of signatures in `super::signatures`.
mod fingerprints;
mod signatures;

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::distance::DistanceArgument;
use super::source::{Distances, find_index};
use crate::am::keys::is_on_signatures;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::locked_index::LockedIndex;
use crate::pg::srf::SetReturning;
use crate::pg::tid::item_pointer;
use crate::storage::heap_fetch::note_read;
pub use fingerprints::FingerprintPairs;
use signatures::SignaturePairs;

export! {
    guarded "neardup_pairs" => |call| pairs(call, Distances::Bits);
    guarded "neardup_signature_pairs" => |call| pairs(call, Distances::Any);
}

/// `neardup_pairs(relation, distance, column_name)`.
fn pairs(call: &mut Call, distances: Distances) -> pg_sys::Datum {
    // As of a strict function.
    let is_null = call.is_null(0) || call.is_null(1);
    call.return_set(|call| {
        if is_null {
            return None;
        }
        let distance = DistanceArgument::of(call, distances);
        let column = call.name(2);
        let function = call.function_oid();
        let index = find_index(function, call.oid(0), column.as_deref(), distances);
        Some(PairSet::new(index, distance))
    })
}

/// Search for pairs that holds nothing of the server's between two calls.
trait PairSearch {
    /// The next pair, the lower address first, and its distance.
    fn next_pair(&mut self) -> Option<([Tid; 2], f64)>;
}

/// Pairs on their way to the server.
struct PairSet {
    search: Box<dyn PairSearch>,
    distance: DistanceArgument,
    /// Addresses in the row that was returned last.
    pointers: [pg_sys::ItemPointerData; 2],
}

impl PairSet {
    /// All pairs within a distance in an index, which the caller must be allowed to read.
    fn new(index: pg_sys::Oid, distance: DistanceArgument) -> Self {
        let relations = LockedIndex::open_for_reading(index);
        let search: Box<dyn PairSearch> = if is_on_signatures(relations.index()) {
            let distance = distance.fraction(relations.index());
            Box::new(SignaturePairs::new(&relations, distance))
        } else {
            Box::new(FingerprintPairs::new(&relations, distance.bits()))
        };
        note_read(relations.index());
        PairSet {
            search,
            distance,
            pointers: Default::default(),
        }
    }
}

impl SetReturning for Option<PairSet> {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        let Some(set) = self else {
            return false;
        };
        let Some((rows, distance)) = set.search.next_pair() else {
            return false;
        };
        for (pointer, tid) in set.pointers.iter_mut().zip(rows) {
            *pointer = item_pointer(tid);
            columns.push(Some(pg_sys::Datum::from(&raw const *pointer)));
        }
        columns.push(Some(set.distance.datum(distance)));
        true
    }
}

/// Raises an error if an index has been rebuilt since a search of it began.
fn check_file(relations: &LockedIndex, file: u32) {
    if relations.index().file_number() != file {
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "index \"{}\" was rebuilt while it was being read",
                relations.index().shown()
            ),
        )
        .hint("Run the query again.")
        .raise();
    }
}
