//! `neardup_pairs`: all pairs of a table's rows within a bound.
//!
//! [`neardup_blocktree::pairs`] searches the index within `work_mem`. For fingerprints the index
//! has the distance of each pair, so `in_table_order` only looks up the rows, in several processes
//! if workers are available. For signatures the index has only a lower bound of the mismatches, so
//! `signature_edges` compares the signatures in the table.
mod confirmed_pairs;
mod fingerprint_pairs;
mod in_table_order;
mod planned_search;
mod signature_edges;
mod signature_pairs;
mod windowed_fingerprints;
mod windowed_pairs;
mod workers;

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::bound::SearchBound;
use super::compared::Compared;
use super::confirm::{ConfirmArgument, Confirmation, search_bound};
use super::row_times::RowTimes;
use super::signatures::equal_rows::{EqualRows, Side};
use super::source::find_bounded_index;
use super::window::{WindowArgument, WindowOfTable};
use crate::am::keys::Layout;
use confirmed_pairs::ConfirmedPairs;
pub use fingerprint_pairs::FingerprintPairs;
use neardup_pg::caller_sql::Condition;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::srf::SetReturning;
use neardup_pg::storage::heap_fetch::note_read;
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::tid::item_pointer;
pub use signature_pairs::SignaturePairs;
use windowed_fingerprints::WindowedFingerprints;
use windowed_pairs::WindowedPairs;

export! {
    guarded "neardup_pairs" => pairs;
}

/// `neardup_pairs(relation, radius, similarity, column_name, filter, exhaustive, confirm, row_time,
/// within)`.
fn pairs(call: &mut Call) -> pg_sys::Datum {
    if !call.is_asked_for_all() {
        return call.return_set(PairSet::from_call);
    }
    call.return_collected(|call, give| {
        if let Some(set) = PairSet::from_call(call) {
            set.give_all(give);
        }
    })
}

/// Arguments of `neardup_pairs` without the index and the bound.
pub struct PairArguments {
    /// Condition on the rows that take part. `None` takes all rows.
    filter: Option<Condition>,
    /// True if the work of the search is not limited. Otherwise a search that takes too much work
    /// raises an error.
    exhaustive: bool,
}

/// Search for pairs of rows that holds no server resources between two calls.
pub trait PairSearch {
    /// Returns the addresses of the rows of the next pair, the lower first, and the number of bits
    /// (fingerprints) or positions (signatures) in which the rows differ. `None` after the last
    /// pair.
    fn next_pair(&mut self) -> Option<([Tid; 2], u32)>;

    /// Passes all pairs to `give`, in the form in which [`PairSearch::next_pair`] returns them.
    /// Must not be called after [`PairSearch::next_pair`].
    fn for_each_pair(&mut self, give: &mut dyn FnMut([Tid; 2], u32)) {
        while let Some((rows, differing)) = self.next_pair() {
            give(rows, differing);
        }
    }
}

/// Search for edges: pairs of near but different signatures. A signature belongs to a single row or
/// to a run of rows with equal signatures (a [`Side`]).
trait EdgeSource {
    /// Returns the two sides of the next edge, and the number of positions in which their
    /// signatures differ. Returns `None` after the last edge. `equal_rows` has the runs of equal
    /// signatures. `relations` opens the index, which is closed between two calls.
    fn next_edge(
        &mut self,
        equal_rows: &mut EqualRows,
        relations: &dyn Fn() -> LockedIndex,
    ) -> Option<([Side; 2], u32)>;
}

/// Result set of `neardup_pairs`.
struct PairSet {
    search: Box<dyn PairSearch>,
    /// Pairs whose texts are similar, which are the result if the caller passes `confirm`. `None`
    /// if the pairs of `search` are the result.
    confirmed: Option<ConfirmedPairs>,
    bound: SearchBound,
    /// Row addresses of the last returned pair. The returned row points to them.
    pointers: [pg_sys::ItemPointerData; 2],
}

impl PairSet {
    /// Begins the search that a call asks for. Returns `None` if the relation is NULL.
    fn from_call(call: &Call) -> Option<Self> {
        if call.is_null(0) {
            return None;
        }
        let (confirm, bound) = ConfirmArgument::read(call, 6, [1, 2]);
        let window = WindowArgument::read(call, 7, 8);
        let arguments = PairArguments {
            filter: call.text(4).map(|text| Condition::parse("filter", &text)),
            exhaustive: !call.is_null(5) && call.bool(5),
        };
        let (function, column) = (call.function_oid(), call.name(3));
        let index = find_bounded_index(function, call.oid(0), column.as_deref(), bound);
        // Raises an error if the caller may not read the table.
        let relations = LockedIndex::open_for_reading(index);
        let (bound, confirmation) = search_bound(confirm, bound, function, &relations);
        let window = window.map(|window| window.of_table(relations.table()));
        Some(PairSet::new(
            &relations,
            bound,
            &arguments,
            window.as_ref(),
            confirmation,
        ))
    }

    /// Begins the search for all pairs within a bound in an index.
    fn new(
        relations: &LockedIndex,
        bound: SearchBound,
        arguments: &PairArguments,
        window: Option<&WindowOfTable>,
        confirmation: Option<Confirmation>,
    ) -> Self {
        if let Some(filter) = &arguments.filter {
            filter.check(relations.table());
        }
        let has_scope = Layout::from_index(relations.index()).scope_columns > 0;
        let mut search: Box<dyn PairSearch> = match (bound, window) {
            (SearchBound::Fingerprints(bound), Some(window)) if !has_scope => {
                let radius = bound.radius;
                Box::new(WindowedFingerprints::new(
                    relations, radius, arguments, window,
                ))
            }
            (bound, None) => from_index(relations, bound, arguments),
            (bound, Some(window)) => {
                let search = from_index(relations, bound, arguments);
                let filter = arguments.filter.as_ref();
                let times = RowTimes::read(&mut TempSpace, relations.table(), window, filter);
                Box::new(WindowedPairs { search, times })
            }
        };
        note_read(relations.index());
        let confirmed = confirmation
            .map(|confirmation| ConfirmedPairs::new(&mut *search, relations, &confirmation));
        PairSet {
            search,
            confirmed,
            bound,
            pointers: Default::default(),
        }
    }
}

impl PairSet {
    /// Passes all rows of the result to `give`.
    fn give_all(mut self, give: &mut dyn FnMut(&[Option<pg_sys::Datum>])) {
        let bound = self.bound;
        let mut give = |rows: [Tid; 2], compared| {
            let pointers = rows.map(item_pointer);
            let [distance, similarity] = bound.columns(compared);
            give(&[
                Some(pg_sys::Datum::from(&raw const pointers[0])),
                Some(pg_sys::Datum::from(&raw const pointers[1])),
                distance,
                similarity,
            ]);
        };
        match &mut self.confirmed {
            Some(confirmed) => {
                while let Some((rows, compared)) = confirmed.next_pair() {
                    give(rows, compared);
                }
            }
            None => (self.search)
                .for_each_pair(&mut |rows, differing| give(rows, Compared::estimated(differing))),
        }
    }
}

impl SetReturning for PairSet {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        let found = match &mut self.confirmed {
            Some(confirmed) => confirmed.next_pair(),
            None => (self.search.next_pair())
                .map(|(rows, differing)| (rows, Compared::estimated(differing))),
        };
        let Some((rows, compared)) = found else {
            return false;
        };
        for (pointer, tid) in self.pointers.iter_mut().zip(rows) {
            *pointer = item_pointer(tid);
            columns.push(Some(pg_sys::Datum::from(&raw const *pointer)));
        }
        columns.extend(self.bound.columns(compared));
        true
    }
}

/// Creates the search for all pairs of an index within a bound.
fn from_index(
    relations: &LockedIndex,
    bound: SearchBound,
    arguments: &PairArguments,
) -> Box<dyn PairSearch> {
    match bound {
        SearchBound::Signatures(bound) => {
            Box::new(SignaturePairs::new(relations, bound, arguments))
        }
        SearchBound::Fingerprints(bound) => Box::new(FingerprintPairs::from_arguments(
            relations,
            bound.radius,
            arguments,
        )),
    }
}

/// Raises an error if an index has been rebuilt since a search of it began. `file` is the number of
/// the index's file when the search began.
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
