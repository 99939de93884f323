//! `neardup_dedup`: a row trigger that keeps near-duplicates out, marks them, or records them.
//!
//! Transactions may insert near-duplicates of each other at the same time. So a row is published
//! among those in flight ([`flight`]) from before the lookup of a near-duplicate until it stands in
//! the index. The lookup sees rows that other transactions have not committed yet, and waits for
//! them.
mod action;
mod arguments;
mod columns;
mod compute;
mod flight;
mod joined;
mod log;
mod lookup;
mod marks;
mod names;
mod near;
mod originals;
mod own_row;
mod remark;
mod requirements;
mod usage;

use pgrx::pg_sys;

use crate::pg::fmgr::{Call, export};
use crate::pg::new_row::NewRow;
use crate::pg::rel::Rel;
use crate::pg::row_lock::hold_off_sharers;
use crate::pg::tid::tid_of;
use crate::pg::trigger::TriggerCall;
use crate::pg::value::{OwnedValue, Value};
use action::{Outcome, PreparedAction};
use arguments::Arguments;
use columns::{Columns, Types};
use compute::Fingerprints;
use flight::Flight;
use joined::Place;
use lookup::{Found, Query};
use marks::{Marks, Recheck};
use own_row::{Keys, NewKey, OwnRow};
use usage::misused;

/// State of one trigger, kept as long as one statement lasts.
struct State {
    trigger: pg_sys::Oid,
    action: PreparedAction,
    columns: Columns,
    fingerprints: Fingerprints,
    keys: Keys,
    flight: Flight,
    /// True if a generated column is part of the key or of a scope.
    needs_generated: bool,
    /// True if the client gets a notice of each row that is left out.
    notice: bool,
    /// True if marks that statements set are obeyed.
    manual: bool,
}

fn dedup(call: &mut Call) -> pg_sys::Datum {
    let Some(mut call) = TriggerCall::new(call) else {
        misused("it can only be called as a trigger");
    };
    let event = call.event();
    let is = |mask: u32, flag: u32| event & mask == flag;
    if !is(pg_sys::TRIGGER_EVENT_ROW, pg_sys::TRIGGER_EVENT_ROW) {
        misused("it is a trigger FOR EACH STATEMENT");
    }
    let inserted = is(pg_sys::TRIGGER_EVENT_OPMASK, pg_sys::TRIGGER_EVENT_INSERT);
    let updated = is(pg_sys::TRIGGER_EVENT_OPMASK, pg_sys::TRIGGER_EVENT_UPDATE);
    let deleted = is(pg_sys::TRIGGER_EVENT_OPMASK, pg_sys::TRIGGER_EVENT_DELETE);
    match event & pg_sys::TRIGGER_EVENT_TIMINGMASK {
        pg_sys::TRIGGER_EVENT_BEFORE if inserted || updated => {}
        // AFTER.
        0 if updated || deleted => {
            originals::changed(&mut call, updated);
            return pg_sys::Datum::null();
        }
        pg_sys::TRIGGER_EVENT_BEFORE => misused("it is a trigger BEFORE DELETE"),
        0 => misused("it is a trigger AFTER INSERT"),
        _ => misused("it is a trigger INSTEAD OF changes of a view"),
    }
    let (table, given) = (call.table(), call.row());
    let (row, old) = match updated {
        true => (call.new_version(), Some(given)),
        false => (given, None),
    };
    let written = call.state(State::new).row(table, row, old.as_ref());
    written.map_or(pg_sys::Datum::null(), |row| {
        pg_sys::Datum::from(row.tuple())
    })
}

impl State {
    fn new(call: &TriggerCall) -> Self {
        let (table, trigger) = (call.table(), call.trigger());
        let arguments = Arguments::of(&trigger);
        let types = Types::beside(trigger.function);
        let columns = Columns::find(table, types, &arguments);
        requirements::check(table, &trigger, &arguments, &columns);
        let fingerprints = Fingerprints::new(table, types, &arguments, &columns);
        let flight = Flight::new(table, call.statement(), &trigger, &arguments, &columns);
        let needs_generated = (columns.key.into_iter())
            .chain(flight.scope_columns(&columns))
            .any(|column| table.is_stored_generated(column));
        State {
            trigger: trigger.oid,
            action: PreparedAction::new(&arguments, table, &columns),
            columns,
            fingerprints,
            keys: Keys::default(),
            needs_generated,
            flight,
            notice: arguments.notice,
            manual: arguments.manual,
        }
    }

    /// Decides what becomes of a new row of this table, or of a row's new version. Returns the row
    /// to write, or `None` to write none.
    fn row<'a>(
        &mut self,
        table: Rel<'a>,
        mut row: NewRow<'a>,
        old: Option<&NewRow<'a>>,
    ) -> Option<NewRow<'a>> {
        self.flight.withdraw_previous();
        let columns = &self.columns;
        let marks = self.action.marks();
        if let (Some(marks), Some(old)) = (marks, old)
            && remark::writes(table, marks.mark, tid_of(old.address()))
        {
            return Some(row);
        }
        let recheck = marks.is_some_and(|marks| Recheck::take(table.oid(), marks.mark));
        let fingerprint = match (recheck, columns.text) {
            (true, Some(_)) => row.get(columns.fingerprint).map(Value::to_owned),
            _ => self.fingerprints.of_row(table, &mut row, columns),
        };
        // The server computes generated columns after the triggers only.
        let complete = match self.needs_generated {
            true => self.keys.complete(table, &row),
            false => None,
        };
        let scope: Option<Vec<OwnedValue>> = (columns.scope.iter())
            .map(|scope| {
                let row = complete.as_ref().unwrap_or(&row);
                row.get(scope.column).map(Value::to_owned)
            })
            .collect();
        let compared = fingerprint.zip(scope);
        let stays = match (&compared, old) {
            (Some((fingerprint, scope)), Some(old)) => self.stays(old, fingerprint.get(), scope),
            _ => false,
        };
        if let (Some(marks), Some(old)) = (marks, old) {
            let new = complete.as_ref().unwrap_or(&row);
            self.hold_off_markers(marks, table, old, new, stays);
        }
        // What belongs nowhere is near nothing, as for a constraint.
        let Some((fingerprint, scope)) = compared else {
            row.clear(columns.mark);
            return Some(row);
        };
        let mut again = recheck;
        if let Some(old) = old.filter(|_| stays && !recheck) {
            again = marks.is_some_and(|marks| {
                self.loses_mark(marks, table, old, &mut row, complete.as_ref())
            });
            if !again {
                return Some(row);
            }
        }
        row.clear(columns.mark);
        let scope: Vec<Value> = scope.iter().map(OwnedValue::get).collect();
        loop {
            let query = Query {
                row: complete.as_ref().unwrap_or(&row),
                fingerprint: fingerprint.get(),
                scope: &scope,
                own_row: match old {
                    Some(old) => OwnRow::Version(tid_of(old.address())),
                    None => OwnRow::Key(NewKey::new(table, &row, &self.keys)),
                },
            };
            let Some(found) = self.find(table, &query, again) else {
                return Some(row);
            };
            // Whatever happens now, the row does not count as an original.
            self.flight.withdraw();
            match action::run(&self.action, table, columns, &found, &mut row) {
                Outcome::Write => return Some(row),
                Outcome::Drop => {
                    if self.notice {
                        action::notify(table, columns, &found, &row, old.is_some());
                    }
                    return None;
                }
                Outcome::Retry => {
                    pgrx::check_for_interrupts!();
                }
            }
        }
    }

    /// Locks an original FOR UPDATE if the UPDATE changes its fingerprint, scope, key or mark.
    /// Waits for sessions that mark rows with its key before the new version is written, so that
    /// they can insert further copies meanwhile.
    fn hold_off_markers(&self, marks: &Marks, table: Rel, old: &NewRow, new: &NewRow, stays: bool) {
        let key = self.columns.key.expect("a column is found for this action");
        let is_original = old.get(marks.mark).is_none()
            && old.get(self.columns.fingerprint).is_some()
            && old.get(key).is_some();
        let is_same = |column| marks.equal(old.get(column), new.get(column));
        let mark_stays = !self.manual || is_same(marks.mark);
        if is_original && !(stays && mark_stays && is_same(key)) {
            hold_off_sharers(table, tid_of(old.address()));
        }
    }

    /// Decides about the mark of a row whose fingerprint and scope stay. Returns whether the row is
    /// to be compared again, because its mark names no original any more.
    fn loses_mark(
        &self,
        marks: &Marks,
        table: Rel,
        old: &NewRow,
        row: &mut NewRow,
        complete: Option<&NewRow>,
    ) -> bool {
        if !self.manual {
            return !marks.keep(table, old, row);
        }
        let key = self.columns.key.expect("a column is found for this action");
        let own = complete.unwrap_or(row).get(key);
        marks.settle(table, old, row, own, |value| {
            action::may_know(marks, table, key, value)
        })
    }

    /// Returns the row that a new one, or a new version, repeats. A copy that is compared `again`
    /// joins an original that one before it has joined or become, if it is near one of these.
    fn find(&self, table: Rel, query: &Query, again: bool) -> Option<Found> {
        let columns = &self.columns;
        let Some(marks) = self.action.marks().filter(|_| again) else {
            return lookup::find_existing(table, columns, query, &self.flight);
        };
        let place = Place::new(self.trigger, columns);
        if let Some(found) = joined::find(place, table, marks, columns, query) {
            return Some(found);
        }
        let found = lookup::find_existing(table, columns, query, &self.flight);
        let key = match &found {
            Some(found) => found.key.as_ref().map(OwnedValue::get),
            None => columns.key.and_then(|key| query.row.get(key)),
        };
        let fingerprint =
            (found.as_ref()).map_or(query.fingerprint, |found| found.fingerprint.get());
        if let Some(key) = key {
            joined::keep(place, key, fingerprint, query.scope);
        }
        found
    }

    /// Returns whether a row keeps its fingerprint and its scope.
    fn stays(&self, old: &NewRow, fingerprint: Value, scope: &[OwnedValue]) -> bool {
        let columns = &self.columns;
        (old.get(columns.fingerprint))
            .is_some_and(|old| columns.metric.distance(old, fingerprint) == Some(0))
            && (columns.scope.iter().zip(scope)).all(|(column, value)| {
                (old.get(column.column)).is_some_and(|old| column.equal(old, value.get()))
            })
    }
}

export! {
    guarded "neardup_dedup" => dedup;
}
