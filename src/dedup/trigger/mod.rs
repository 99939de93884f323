//! `neardup_dedup`: a row trigger that rejects, skips, marks or records near-duplicates. The mark
//! of a near-duplicate is the key of its original, which is the row that it repeats. A row is
//! published in shared memory before it is written, so that other sessions find it.
//!
//! Transactions may insert near-duplicates of each other at the same time. A row is therefore
//! published ([`flight`]) from before its lookup until the index contains it. The lookup sees
//! uncommitted rows of other transactions, and waits for these transactions.
mod action;
mod bound_argument;
mod by_hand;
pub(super) mod columns;
mod compared;
pub(super) mod compute;
pub(super) mod extension_types;
mod flight;
mod joined;
mod log;
mod lookup;
mod marks;
pub(super) mod names;
mod originals;
mod own_row;
mod remark;
mod requirements;
mod text_comparison;
pub(super) mod time_window;
pub(super) mod trigger_arguments;
mod usage;

use core::ops::Deref;
use std::rc::Rc;

use pgrx::pg_sys;

use crate::am::metric::ValueMetric;
use action::{Outcome, PreparedAction};
use by_hand::{ByHand, ManualCondition};
use columns::Columns;
use compared::ComparedValue;
use compute::{FingerprintSource, Fingerprints};
use extension_types::ExtensionTypes;
use flight::{Flight, FlightRules};
use joined::CacheKey;
use log::LogTable;
use lookup::{NearRow, Query};
use marks::Recheck;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::Rel;
use neardup_pg::row_lock::lock_for_update;
use neardup_pg::tid::tid_of;
use neardup_pg::trigger::TriggerCall;
use neardup_pg::trigger_cache;
use neardup_pg::value::{OwnedValue, Value};
use own_row::{AllPlanned, Keys, NewKey, OwnRow};
use text_comparison::{NewText, TextComparison};
use trigger_arguments::{Arguments, Manual};
use usage::misused;

/// State of one BEFORE trigger that the backend keeps between statements ([`trigger_cache`]).
struct Prepared {
    trigger: pg_sys::Oid,
    action: PreparedAction,
    columns: Columns,
    source: FingerprintSource,
    generated: AllPlanned,
    flight_rules: Rc<FlightRules>,
    /// Comparison of texts that confirms near rows. `None` without `confirm=`.
    texts: Option<TextComparison>,
    /// True if a generated column is part of the key or of a scope, or has the compared text or the
    /// time.
    needs_generated: bool,
    /// True if the client gets a notice of each row that the trigger skips.
    notice: bool,
    /// True if the trigger obeys all marks that statements set (`manual=true`).
    manual: bool,
    /// Condition of `manual=<condition>`: the trigger obeys the marks that statements set in rows
    /// that meet the condition. `None` without such a condition.
    condition: Option<Rc<ManualCondition>>,
}

impl trigger_cache::Prepared for Prepared {
    fn is_valid(&self) -> bool {
        self.source.is_valid()
            && self.generated.is_valid()
            && (self.condition.as_ref()).is_none_or(|condition| condition.is_valid())
    }
}

/// State of one BEFORE trigger, for the duration of one statement.
struct State {
    prepared: Rc<Prepared>,
    fingerprints: Fingerprints,
    keys: Keys,
    flight: Flight,
    /// Log table of the action `log`. `None` for other actions.
    log: Option<LogTable>,
    /// The prepared condition, compiled for this statement.
    by_hand: Option<ByHand>,
}

impl Deref for State {
    type Target = Prepared;

    fn deref(&self) -> &Prepared {
        &self.prepared
    }
}

fn dedup(call: &mut Call) -> pg_sys::Datum {
    let Some(mut call) = TriggerCall::new(call) else {
        misused("neardup_dedup can be called only by a trigger.");
    };
    let event = call.event();
    let is = |mask: u32, flag: u32| event & mask == flag;
    if !is(pg_sys::TRIGGER_EVENT_ROW, pg_sys::TRIGGER_EVENT_ROW) {
        misused("The trigger is FOR EACH STATEMENT, but must be FOR EACH ROW.");
    }
    let inserted = is(pg_sys::TRIGGER_EVENT_OPMASK, pg_sys::TRIGGER_EVENT_INSERT);
    let updated = is(pg_sys::TRIGGER_EVENT_OPMASK, pg_sys::TRIGGER_EVENT_UPDATE);
    let deleted = is(pg_sys::TRIGGER_EVENT_OPMASK, pg_sys::TRIGGER_EVENT_DELETE);
    match event & pg_sys::TRIGGER_EVENT_TIMINGMASK {
        pg_sys::TRIGGER_EVENT_BEFORE if inserted || updated => {}
        // The timing is AFTER if its flags are 0.
        0 if updated || deleted => {
            originals::changed(&mut call, updated);
            return pg_sys::Datum::null();
        }
        pg_sys::TRIGGER_EVENT_BEFORE => misused("The trigger fires BEFORE DELETE."),
        0 => misused("The trigger fires AFTER INSERT."),
        _ => misused("The trigger is an INSTEAD OF trigger of a view."),
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

impl Prepared {
    fn new(call: &TriggerCall) -> Self {
        let (table, trigger) = (call.table(), call.trigger());
        let arguments = Arguments::from_trigger(&trigger);
        let types = ExtensionTypes::beside(trigger.function);
        let columns = Columns::find(table, types, &arguments);
        requirements::check(table, &trigger, &arguments, &columns);
        let source = FingerprintSource::new(table, types, &arguments, &columns);
        let texts = TextComparison::new(table, &trigger, &arguments, &columns);
        let flight_rules = FlightRules::new(table, &trigger, &arguments, &columns);
        let needs_generated = (columns.key.into_iter())
            .chain(flight_rules.scope_columns(&columns))
            .chain(texts.as_ref().map(|texts| texts.column))
            .chain(columns.time)
            .any(|column| table.is_stored_generated(column));
        Prepared {
            trigger: trigger.oid,
            action: PreparedAction::new(&arguments, table, &columns),
            condition: ManualCondition::new(&arguments, table, &columns).map(Rc::new),
            columns,
            source,
            generated: AllPlanned::default(),
            texts,
            needs_generated,
            flight_rules: Rc::new(flight_rules),
            notice: arguments.notice,
            manual: arguments.manual == Manual::All,
        }
    }
}

impl State {
    fn new(call: &TriggerCall) -> Self {
        let (table, prepared) = (call.table(), trigger_cache::prepared(call, Prepared::new));
        State {
            fingerprints: prepared.source.compile(table),
            keys: Keys::new(&prepared.generated),
            flight: Flight::new(&prepared.flight_rules, call.statement()),
            log: (prepared.action).log_table(table, &prepared.columns, &prepared.generated),
            by_hand: (prepared.condition.as_ref()).map(|it| ByHand::new(it, table)),
            prepared,
        }
    }

    /// Runs all phases of the trigger for a row that a statement inserts or updates. `old` is the
    /// version that an UPDATE replaces. Returns the row to write, or `None` if no row is written.
    fn row<'a>(
        &mut self,
        table: Rel<'a>,
        row: NewRow<'a>,
        old: Option<&NewRow<'a>>,
    ) -> Option<NewRow<'a>> {
        self.flight.withdraw_previous();
        if let (Some(marks), Some(old)) = (self.action.marks(), old)
            && remark::writes(table, marks.mark, tid_of(old.address()))
        {
            return Some(row);
        }
        let mut incoming = self.compute(table, row, old);
        let stays = self.stays(&incoming);
        self.hold_off_markers(&incoming, stays);
        let by_hand = self.decide_by_hand(&mut incoming, stays);
        let Some(compared) = incoming.compared.take() else {
            // A row whose fingerprint, scope or time is NULL, or whose time is an empty range, is
            // not near any row, like NULL in a unique constraint.
            if let None | Some(MarkDecision::Compare { .. }) = by_hand {
                incoming.row.set_null(self.columns.mark);
            }
            return Some(incoming.row);
        };
        match by_hand.unwrap_or_else(|| self.decide_mark(&mut incoming, stays)) {
            MarkDecision::Write => Some(incoming.row),
            MarkDecision::Publish => {
                lookup::publish(&self.columns, &incoming, &compared, &self.flight);
                Some(incoming.row)
            }
            MarkDecision::Compare { again } => {
                incoming.row.set_null(self.columns.mark);
                self.compare(incoming, &compared, again)
            }
        }
    }

    /// First phase: computes the fingerprint and the generated columns that the trigger needs, and
    /// evaluates the condition of `manual=<condition>`.
    fn compute<'a, 'o>(
        &self,
        table: Rel<'a>,
        mut row: NewRow<'a>,
        old: Option<&'o NewRow<'a>>,
    ) -> Incoming<'a, 'o> {
        let columns = &self.columns;
        let marks = self.action.marks();
        let recheck = marks.is_some_and(|marks| Recheck::take(table.oid(), marks.mark));
        let fingerprint = match (recheck, columns.text) {
            (true, Some(_)) => row.get(columns.fingerprint).map(Value::to_owned),
            _ => self.fingerprints.of_row(table, &mut row, columns),
        };
        // The server computes generated columns after the BEFORE triggers, so this trigger computes
        // the columns that it needs.
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
        let value = fingerprint.as_ref().map(OwnedValue::get);
        let stored = |by_hand: &ByHand| {
            old.is_some_and(|old| by_hand.holds(table, old, old.get(columns.fingerprint)))
        };
        let (by_hand, released) = match &self.by_hand {
            None => (false, false),
            // The AFTER trigger has removed only the mark, so the condition is evaluated for the
            // old version, which has the mark.
            Some(by_hand) if recheck => (stored(by_hand), false),
            Some(by_hand) => match by_hand.holds(table, &row, value) {
                true => (true, false),
                false => (false, stored(by_hand)),
            },
        };
        // `None` if the time is NULL or an empty range, because no row is then near this one.
        // `Some(None)` without the option `time`.
        let time = match &columns.window {
            None => Some(None),
            Some(window) => {
                let row = complete.as_ref().unwrap_or(&row);
                window.span(row.get(window.column)).map(Some)
            }
        };
        let compared = fingerprint.zip(scope).zip(time);
        let compared = compared.map(|((fingerprint, scope), time)| ComparedValue {
            fingerprint,
            scope,
            time,
        });
        Incoming {
            table,
            row,
            old,
            complete,
            compared,
            recheck,
            by_hand,
            released,
        }
    }

    /// Returns whether an UPDATE keeps the row's fingerprint, scope, time and compared text.
    /// Returns false for an INSERT.
    fn stays(&self, incoming: &Incoming) -> bool {
        let (columns, Some(old), Some(new)) = (&self.columns, incoming.old, &incoming.compared)
        else {
            return false;
        };
        let keeps_text = self.texts.as_ref().is_none_or(|texts| {
            let new = incoming.completed().get(texts.column);
            match (old.get(texts.column), new) {
                (Some(old), Some(new)) => old.image_eq(new),
                (old, new) => old.is_none() && new.is_none(),
            }
        });
        let keeps_time = (columns.window.as_ref())
            .is_none_or(|window| window.span(old.get(window.column)) == new.time);
        keeps_text
            && keeps_time
            && (old.get(columns.fingerprint))
                .is_some_and(|old| columns.metric.distance(old, new.fingerprint.get()) == Some(0))
            && (columns.scope.iter().zip(&new.scope)).all(|(column, value)| {
                (old.get(column.column)).is_some_and(|old| column.equal(old, value.get()))
            })
    }

    /// Second phase, for `action=mark`. Locks an original FOR UPDATE if an UPDATE changes its
    /// fingerprint, scope, time, compared text, key or mark. A session that marks a row with the
    /// original's key holds a lock on the original, so this function waits for such sessions. The
    /// lock is taken before the new version is written. Without it, other sessions could still mark
    /// rows with the original's key. `stays` is the result of [`State::stays`].
    fn hold_off_markers(&self, incoming: &Incoming, stays: bool) {
        let (Some(marks), Some(old)) = (self.action.marks(), incoming.old) else {
            return;
        };
        let key = self.columns.key.expect("a column is found for this action");
        // A mark that a statement sets may name a row without a fingerprint.
        let can_be_named = self.by_hand.is_some() || old.get(self.columns.fingerprint).is_some();
        let is_original = old.get(marks.mark).is_none() && can_be_named && old.get(key).is_some();
        let new = incoming.completed();
        let is_same = |column| marks.equal(old.get(column), new.get(column));
        let sets_mark = self.manual || incoming.by_hand;
        let mark_stays = !incoming.released && (!sets_mark || is_same(marks.mark));
        if is_original && !(stays && mark_stays && is_same(key)) {
            lock_for_update(incoming.table, tid_of(old.address()));
        }
    }

    /// Decides about the mark of a row by the condition of `manual=<condition>`. `stays` is the
    /// result of [`State::stays`]. Returns `None` if there is no such condition, or if the trigger
    /// decides itself, as with `manual=false`.
    fn decide_by_hand(&self, incoming: &mut Incoming, stays: bool) -> Option<MarkDecision> {
        let (by_hand, marks) = (self.by_hand.as_ref()?, self.action.marks()?);
        by_hand.decide(marks, self.columns.key?, incoming, stays)
    }

    /// Third phase: decides whether a row is compared with other rows. `stays` is the result of
    /// [`State::stays`]. If it is false, the row is compared. If it is true, the new version is
    /// compared in two cases: its mark does not name an original any more, or the condition of
    /// `manual=<condition>` was true for the replaced version only.
    fn decide_mark(&self, incoming: &mut Incoming, stays: bool) -> MarkDecision {
        let is_settled = stays && !incoming.recheck && !incoming.released;
        let Some(old) = incoming.old.filter(|_| is_settled) else {
            return MarkDecision::Compare {
                again: incoming.recheck,
            };
        };
        let Some(marks) = self.action.marks() else {
            return MarkDecision::Write;
        };
        let table = incoming.table;
        let loses_mark = if self.manual {
            let key = self.columns.key.expect("a column is found for this action");
            let own = incoming.completed().get(key);
            marks.settle(table, old, &mut incoming.row, own, |value| {
                action::may_know(marks, table, key, value)
            })
        } else {
            !marks.keep(table, old, &mut incoming.row)
        };
        match loses_mark {
            true => MarkDecision::Compare { again: true },
            false => MarkDecision::Write,
        }
    }

    /// Last phase: looks for an existing row that the new row is a near-duplicate of. If there is
    /// one, runs the trigger's action. Returns the row to write, or `None` if no row is written.
    /// `compared` has the row's fingerprint, scope and time. `again` is true if the row had a mark
    /// that does not name an original any more.
    fn compare<'a>(
        &self,
        incoming: Incoming<'a, '_>,
        compared: &ComparedValue,
        again: bool,
    ) -> Option<NewRow<'a>> {
        let Incoming {
            table,
            mut row,
            old,
            complete,
            ..
        } = incoming;
        let columns = &self.columns;
        loop {
            let new = complete.as_ref().unwrap_or(&row);
            let query = Query {
                row: new,
                compared,
                text: self.texts.as_ref().map(|texts| NewText::new(texts, new)),
                own_row: match old {
                    Some(old) => OwnRow::Version(tid_of(old.address())),
                    None => OwnRow::Key(NewKey::new(table, &row, &self.keys)),
                },
            };
            let Some(found) = self.find(table, &query, again) else {
                return Some(row);
            };
            // The new row does not become an original, regardless of the action, so other sessions
            // need not wait for it.
            self.flight.withdraw();
            drop(query);
            match action::run(
                &self.action,
                self.log.as_ref(),
                table,
                columns,
                &found,
                &mut row,
            ) {
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

    /// Returns the existing row that a new row or version is a near-duplicate of. `again` is true
    /// if the row's mark named an original that was deleted, changed or marked. In this case, the
    /// search first tries the originals that other rows with the same mark have joined or become
    /// ([`joined`]).
    fn find(&self, table: Rel, query: &Query, again: bool) -> Option<NearRow> {
        let columns = &self.columns;
        let Some(marks) = self.action.marks().filter(|_| again) else {
            return lookup::find_existing(table, columns, query, &self.flight);
        };
        let cache_key = CacheKey::new(self.trigger, columns);
        if let Some(found) = joined::find(cache_key, table, marks, columns, query) {
            return Some(found);
        }
        let found = lookup::find_existing(table, columns, query, &self.flight);
        let key = match &found {
            Some(found) => found.key.as_ref().map(OwnedValue::get),
            None => columns.key.and_then(|key| query.row.get(key)),
        };
        if let Some(key) = key {
            let mut original = query.compared.clone();
            if let Some(found) = &found {
                original.fingerprint = found.fingerprint.clone();
                original.time = found.time;
            }
            joined::keep(cache_key, key, original);
        }
        found
    }
}

/// Row that a statement writes, passed through the phases of the trigger.
struct Incoming<'a, 'o> {
    table: Rel<'a>,
    row: NewRow<'a>,
    /// Version that an UPDATE replaces.
    old: Option<&'o NewRow<'a>>,
    /// The row with its generated columns. `None` if the trigger does not need them.
    complete: Option<NewRow<'a>>,
    /// Values by which the row is compared. `None` if the fingerprint, a scope value or the time is
    /// NULL, or if the time is an empty range.
    compared: Option<ComparedValue>,
    /// True if the AFTER trigger has removed the row's mark, so that the row is compared again.
    recheck: bool,
    /// True if the row meets the condition of `manual=<condition>`.
    by_hand: bool,
    /// True if the version that the UPDATE replaces met the condition of `manual=<condition>`, and
    /// the new version does not.
    released: bool,
}

impl<'a> Incoming<'a, '_> {
    /// Returns the row with its generated columns, if the trigger needs them, or else the row.
    fn completed(&self) -> &NewRow<'a> {
        self.complete.as_ref().unwrap_or(&self.row)
    }
}

/// Decision about the mark of a row, and about its comparison with other rows.
enum MarkDecision {
    /// The row is written as it is, without a comparison.
    Write,
    /// The row is published and written as an original, without a comparison. It is written only
    /// after other sessions have withdrawn their published near rows.
    Publish,
    /// The row is compared with other rows. `again` is true if the row had a mark that does not
    /// name an original any more.
    Compare { again: bool },
}

export! {
    guarded "neardup_dedup" => dedup;
}
