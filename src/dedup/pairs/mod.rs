//! `neardup_pairs`: all pairs of a table's rows within a distance.
//!
//! The searches keep within `work_mem`: that of fingerprints in [`neardup_blocktree::pairs`], whose
//! rows `in_table_order` looks up, with `workers` where there are some; that of signatures in
//! `super::signatures` and, beyond what the index guarantees, in `exhaustive`.
mod bands;
mod exhaustive;
mod fingerprints;
mod in_table_order;
mod search;
mod signatures;
mod workers;

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::bound::{Bound, SearchBound};
use super::signatures::groups::{Groups, Side};
use super::source::find_index;
use crate::pg::caller_sql::Condition;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::locked_index::LockedIndex;
use crate::pg::srf::SetReturning;
use crate::pg::tid::item_pointer;
use crate::storage::heap_fetch::note_read;
pub use fingerprints::FingerprintPairs;
pub use signatures::SignaturePairs;

export! {
    guarded "neardup_pairs" => pairs;
}

/// `neardup_pairs(relation, radius, similarity, column_name, filter, exhaustive)`.
fn pairs(call: &mut Call) -> pg_sys::Datum {
    if !call.is_asked_for_all() {
        return call.return_set(PairSet::of);
    }
    call.return_collected(|call, give| {
        if let Some(set) = PairSet::of(call) {
            set.give_all(give);
        }
    })
}

/// Arguments of a caller but for the index and the bound.
pub struct PairArguments {
    /// The rows that take part; all without it.
    filter: Option<Condition>,
    /// Any amount of work is welcome.
    exhaustive: bool,
}

/// Search for pairs that holds nothing of the server's between two calls.
pub trait PairSearch {
    /// The next pair, the lower address first, and its number of differing bits or positions.
    fn next_pair(&mut self) -> Option<([Tid; 2], u32)>;

    /// Gives all pairs, likewise, if none has been asked for yet.
    fn give_all(&mut self, give: &mut dyn FnMut([Tid; 2], u32)) {
        while let Some((rows, differing)) = self.next_pair() {
            give(rows, differing);
        }
    }
}

/// Source of the pairs of different signatures. Each signature stands for its group.
trait EdgeSource {
    /// The sides of the next pair and their mismatches. `relations` opens the index, which is not
    /// open between two calls.
    fn next_edge(
        &mut self,
        groups: &mut Groups,
        relations: &dyn Fn() -> LockedIndex,
    ) -> Option<([Side; 2], u32)>;
}

/// Pairs on their way to the server.
struct PairSet {
    search: Box<dyn PairSearch>,
    bound: SearchBound,
    /// Addresses in the row that was returned last.
    pointers: [pg_sys::ItemPointerData; 2],
}

impl PairSet {
    /// The pairs that a caller asks for; `None` if it names no relation.
    fn of(call: &Call) -> Option<Self> {
        if call.is_null(0) {
            return None;
        }
        let bound = Bound::required(call, [1, 2]);
        let arguments = PairArguments {
            filter: call.text(4).map(|text| Condition::parse("filter", &text)),
            exhaustive: !call.is_null(5) && call.bool(5),
        };
        let (function, column) = (call.function_oid(), call.name(3));
        let index = find_index(function, call.oid(0), column.as_deref(), Some(bound));
        // Raises an error if the caller may not read it.
        let relations = LockedIndex::open_for_reading(index);
        let bound = SearchBound::new(function, &relations, bound);
        Some(PairSet::new(&relations, bound, &arguments))
    }

    /// All pairs within a bound in an index.
    fn new(relations: &LockedIndex, bound: SearchBound, arguments: &PairArguments) -> Self {
        if let Some(filter) = &arguments.filter {
            filter.check(relations.table());
        }
        let search: Box<dyn PairSearch> = match bound {
            SearchBound::Signatures(bound) => {
                Box::new(SignaturePairs::new(relations, bound, arguments))
            }
            SearchBound::Fingerprints(bound) => {
                let pairs = FingerprintPairs::of_arguments(relations, bound.radius, arguments);
                Box::new(pairs)
            }
        };
        note_read(relations.index());
        PairSet {
            search,
            bound,
            pointers: Default::default(),
        }
    }
}

impl PairSet {
    /// Gives all rows of the result.
    fn give_all(mut self, give: &mut dyn FnMut(&[Option<pg_sys::Datum>])) {
        let bound = self.bound;
        self.search.give_all(&mut |rows, differing| {
            let pointers = rows.map(item_pointer);
            let [distance, similarity] = bound.columns(differing);
            give(&[
                Some(pg_sys::Datum::from(&raw const pointers[0])),
                Some(pg_sys::Datum::from(&raw const pointers[1])),
                distance,
                similarity,
            ]);
        });
    }
}

impl SetReturning for Option<PairSet> {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        let Some(set) = self else {
            return false;
        };
        let Some((rows, differing)) = set.search.next_pair() else {
            return false;
        };
        for (pointer, tid) in set.pointers.iter_mut().zip(rows) {
            *pointer = item_pointer(tid);
            columns.push(Some(pg_sys::Datum::from(&raw const *pointer)));
        }
        columns.extend(set.bound.columns(differing));
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
