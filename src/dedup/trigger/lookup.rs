//! The trigger's lookup of the nearest existing row in the index, including rows that uncommitted
//! transactions write.
use core::ops::ControlFlow;
use std::collections::HashSet;

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::Incoming;
use super::columns::Columns;
use super::compared::ComparedValue;
use super::flight::Flight;
use super::own_row::OwnRow;
use super::text_comparison::NewText;
use crate::am::dirty_scan::{DirtyRow, near_rows};
use neardup_pg::errors::UserError;
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::Rel;
use neardup_pg::row_lock::{Locked, Mode, SeenRow, wait_for};
use neardup_pg::slot::Slot;
use neardup_pg::time_span::Span;
use neardup_pg::value::{OwnedValue, Value};

/// New row, or new version of a row, that is compared with existing rows.
pub struct Query<'a> {
    pub row: &'a NewRow<'a>,
    /// Fingerprint, scope and time of the new row.
    pub compared: &'a ComparedValue,
    /// Text of the new row, which is compared with the texts of near rows. `None` if texts are not
    /// compared.
    pub text: Option<NewText<'a>>,
    /// Recognizes existing versions of the new row itself.
    pub own_row: OwnRow<'a>,
}

impl Query<'_> {
    /// Compares the text of the new row with the text of a near row, if the trigger has the option
    /// `confirm`. Returns `None` if the two are not near-duplicates. Otherwise returns the
    /// similarity of the texts, or `Some(None)` without the option.
    pub fn confirm(&self, row: &Slot) -> Option<Option<f64>> {
        match &self.text {
            None => Some(None),
            Some(text) => text.similarity(row).map(Some),
        }
    }
}

/// Existing row that is a near-duplicate of the new row and certain to stay: no running transaction
/// is writing or deleting it.
pub struct NearRow {
    /// Distance to the new row in bits or mismatches.
    pub distance: u32,
    /// Similarity of the two texts. `None` if they were not compared.
    pub similarity: Option<f64>,
    /// Key of the existing row. `None` if the table has no key column, or if the key is NULL.
    pub key: Option<OwnedValue>,
    /// True if the snapshot of this REPEATABLE READ or SERIALIZABLE transaction does not see the
    /// existing row, because another transaction committed the row later. Always false in READ
    /// COMMITTED.
    pub unseen: bool,
    /// Fingerprint or signature of the existing row.
    pub fingerprint: OwnedValue,
    /// Span of the existing row's time. `None` without the option `time`.
    pub time: Option<Span>,
    /// The existing row, for locking it.
    pub row: SeenRow,
}

impl NearRow {
    /// Describes the existing row in `slot`. The row must have a fingerprint. `distance` is the
    /// distance of the existing row to the new row.
    pub fn new(table: Rel, columns: &Columns, slot: &Slot, distance: u32) -> Self {
        let fingerprint = slot.get(columns.fingerprint);
        NearRow {
            distance,
            similarity: None,
            key: (columns.key).and_then(|key| slot.get(key).map(Value::to_owned)),
            unseen: slot.is_unseen(table),
            fingerprint: fingerprint
                .expect("a near row has a fingerprint")
                .to_owned(),
            time: (columns.window.as_ref()).and_then(|window| window.span(slot.get(window.column))),
            row: SeenRow::new(table, slot),
        }
    }
}

/// Result of one lookup of near rows in the index.
enum LookupResult {
    /// The lookup has found no near-duplicate, except rows that have the same values as the new row
    /// in a unique key. The list has these rows. The server handles them by ON CONFLICT or raises a
    /// unique violation.
    Nothing(Vec<SeenRow>),
    Found(NearRow),
    /// A near row that a running transaction writes or deletes. Has that transaction's ID, and the
    /// token of its speculative insertion (INSERT ... ON CONFLICT). The token is 0 if there is no
    /// such insertion.
    Undecided(pg_sys::TransactionId, u32),
}

/// Returns the existing row that is nearest to the new row within `columns.limit`, once every
/// transaction that could change the answer has ended. If it returns `None`, the new row stays
/// published in `flight`. Other sessions wait for a published row, so the answer remains true. The
/// caller withdraws the new row if it is not written after all.
pub fn find_existing(
    table: Rel,
    columns: &Columns,
    query: &Query,
    flight: &Flight,
) -> Option<NearRow> {
    let is_update = matches!(query.own_row, OwnRow::Version(_));
    let row = flight.row(columns, query.row, query.compared, is_update);
    loop {
        let ahead = flight.publish(&row).err();
        match (settled_lookup(table, columns, query), ahead) {
            // A row in flight may turn out to be nearer, but the row found is near enough.
            (LookupResult::Found(found), _) => return Some(found),
            (LookupResult::Undecided(transaction, token), _) => {
                // That transaction may have to wait for the new row in flight before it can end.
                flight.withdraw();
                wait_for(transaction, token, table);
            }
            (LookupResult::Nothing(_), Some(ahead)) => ahead.wait(),
            (LookupResult::Nothing(same), None) => match lock_same_key_rows(table, &same) {
                Ok(()) => return None,
                Err(None) => {
                    flight.withdraw();
                    pgrx::check_for_interrupts!();
                }
                Err(Some(busy)) => {
                    // The session that holds the lock may have to wait for the new row in flight
                    // before it can end.
                    flight.withdraw();
                    busy.lock(table, Mode::NoKeyUpdate, true);
                }
            },
        }
    }
}

/// Publishes the row `incoming`, which is written without a lookup of near rows. If other backends
/// have published near rows, first waits until they have withdrawn these rows.
pub fn publish(columns: &Columns, incoming: &Incoming, compared: &ComparedValue, flight: &Flight) {
    let is_update = incoming.old.is_some();
    let row = flight.row(columns, incoming.completed(), compared, is_update);
    while let Err(ahead) = flight.publish(&row) {
        ahead.wait();
    }
}

/// Locks the existing rows `same`, which have the same values as the new row in a unique key. A
/// locked row keeps these values until the new row is written or the server finds the conflict. The
/// error is a row that another session has locked, or `None` if a row has changed since the lookup.
fn lock_same_key_rows(table: Rel, same: &[SeenRow]) -> Result<(), Option<SeenRow>> {
    for row in same {
        match row.lock(table, Mode::NoKeyUpdate, false) {
            Locked::Yes => {}
            Locked::Changed => return Err(None),
            Locked::Busy => return Err(Some(*row)),
        }
    }
    Ok(())
}

/// Looks for a near row, and repeats the lookup if it may have missed one. A lookup can miss a row
/// that an UPDATE moves meanwhile to an index position that the lookup has already passed. The
/// repetition ends when a lookup finds a near row, or when it meets no version that was deleted or
/// replaced since the previous lookup. Returns the result of the last lookup.
fn settled_lookup(table: Rel, columns: &Columns, query: &Query) -> LookupResult {
    let mut vanished = HashSet::new();
    loop {
        let known = core::mem::take(&mut vanished);
        let result = lookup(table, columns, query, &mut vanished);
        // A version that was replaced since the last lookup may have a successor, at an index
        // position that this lookup had passed. The successor may be unpublished, because an
        // UPDATE that keeps the fingerprint is not compared.
        if !matches!(result, LookupResult::Nothing(_)) || vanished.is_subset(&known) {
            return result;
        }
        pgrx::check_for_interrupts!();
    }
}

/// Runs one lookup in the index. Adds to `vanished` the addresses of row versions that were deleted
/// or replaced. Later snapshots do not see these versions, but existing snapshots may.
fn lookup(
    table: Rel,
    columns: &Columns,
    query: &Query,
    vanished: &mut HashSet<Tid>,
) -> LookupResult {
    let mut same = Vec::new();
    let mut nearest: Option<NearRow> = None;
    // Nearest row that a running transaction writes or deletes, with its distance.
    let mut undecided: Option<(u32, LookupResult)> = None;
    let each = |row: DirtyRow| {
        let Some(distance) = distance(row.slot, columns, query) else {
            return ControlFlow::Continue(());
        };
        // A row that another transaction is inserting is not skipped, because that transaction may
        // still change its key.
        if row.inserter.is_none() && query.own_row.has_key_of(row.slot) {
            same.push(SeenRow::new(table, row.slot));
            return ControlFlow::Continue(());
        }
        let other = row.inserter.or(row.deleter);
        let best = match other {
            None => nearest.as_ref().map(|best| best.distance),
            Some(_) => undecided.as_ref().map(|(best, _)| *best),
        };
        // Texts are compared last, because that takes the most time.
        if best.is_some_and(|best| best <= distance) {
            return ControlFlow::Continue(());
        }
        let Some(similarity) = query.confirm(row.slot) else {
            return ControlFlow::Continue(());
        };
        if let Some(other) = other {
            undecided = Some((distance, LookupResult::Undecided(other, row.token)));
            return ControlFlow::Continue(());
        }
        nearest = Some(NearRow {
            similarity,
            ..NearRow::new(table, columns, row.slot, distance)
        });
        match columns.metric.can_order() || distance == 0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let vanished = |row| {
        vanished.insert(row);
    };
    near_rows(
        table,
        columns.index,
        (&columns.metric, columns.limit),
        &query.compared.scope_values(),
        query.compared.fingerprint.get(),
        vanished,
        each,
    );
    // A row that is certain to stay decides, even if a row that a running transaction writes or
    // deletes is nearer. Without a wait for that transaction, a deadlock is impossible.
    match (nearest, undecided) {
        (Some(found), _) => LookupResult::Found(found),
        (None, Some((_, undecided))) => undecided,
        (None, None) => LookupResult::Nothing(same),
    }
}

/// Returns the distance of an existing row to the new row in bits or mismatches. Returns `None` if
/// the existing row has a mark, is in another scope, is outside the window of time, or is farther
/// away than `columns.limit`. Also returns `None` for the version that an UPDATE replaces.
pub fn distance(row: &Slot, columns: &Columns, query: &Query) -> Option<u32> {
    let is_marked = || columns.mark.is_some_and(|mark| row.get(mark).is_some());
    if query.own_row.is_version(row) || is_marked() {
        return None;
    }
    query.compared.distance_to_row(row, columns)
}

/// Raises error 40001, like the server's ON CONFLICT DO NOTHING: the transaction's snapshot does
/// not see the existing near-duplicate of the new row.
pub fn refuse_unseen() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        "could not serialize access due to a concurrently inserted near-duplicate",
    )
    .detail(
        "Another transaction committed the near-duplicate after this transaction took its \
         snapshot.",
    )
    .hint("Retry the transaction.")
    .raise()
}
