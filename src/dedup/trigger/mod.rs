//! `neardup_dedup`: a row trigger that keeps near-duplicates out, marks them, or records them.
//!
//! Transactions may insert near-duplicates of each other at the same time. So a row is published
//! among those in flight ([`flight`]) from before the look for a near-duplicate until it stands in
//! the index. The look sees what other transactions have not committed yet, and waits for them.
mod action;
mod arguments;
mod columns;
mod compute;
mod flight;
mod generated;
mod lookup;
mod marks;
mod metric;
mod names;
mod new_row;
mod originals;
mod requirements;
mod row_lock;
mod same_row;
mod spi_plans;
mod usage;

use pgrx::pg_sys;

use crate::pg::fmgr::{Call, export};
use action::{Outcome, PreparedAction};
use arguments::Arguments;
use columns::{Columns, Types};
use compute::Fingerprints;
use flight::Flight;
use lookup::OwnRow;
use marks::Recheck;
use new_row::NewRow;
use same_row::SameRow;
use usage::misused;

/// What one trigger knows while one statement lasts.
struct State {
    action: PreparedAction,
    columns: Columns,
    fingerprints: Fingerprints,
    unique: same_row::Lazy,
    generated: generated::Lazy,
    flight: Flight,
}

/// Whether an event of a trigger has one of the server's flags.
fn is(event: pg_sys::TriggerEvent, mask: u32, flag: u32) -> bool {
    event & mask == flag
}

fn dedup(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: the context of a trigger's call is its data; both live as long as the call.
    unsafe {
        let context = call.context();
        if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_TriggerData {
            misused("it can only be called as a trigger");
        }
        let data = &*context.cast::<pg_sys::TriggerData>();
        let event = data.tg_event;
        if !is(event, pg_sys::TRIGGER_EVENT_ROW, pg_sys::TRIGGER_EVENT_ROW) {
            misused("it is a trigger FOR EACH STATEMENT");
        }
        let timing = event & pg_sys::TRIGGER_EVENT_TIMINGMASK;
        let inserted = is(
            event,
            pg_sys::TRIGGER_EVENT_OPMASK,
            pg_sys::TRIGGER_EVENT_INSERT,
        );
        let updated = is(
            event,
            pg_sys::TRIGGER_EVENT_OPMASK,
            pg_sys::TRIGGER_EVENT_UPDATE,
        );
        let deleted = is(
            event,
            pg_sys::TRIGGER_EVENT_OPMASK,
            pg_sys::TRIGGER_EVENT_DELETE,
        );
        match timing {
            pg_sys::TRIGGER_EVENT_BEFORE if inserted || updated => {}
            // AFTER.
            0 if updated || deleted => {
                originals::changed(call, data, updated);
                return pg_sys::Datum::null();
            }
            pg_sys::TRIGGER_EVENT_BEFORE => misused("it is a trigger BEFORE DELETE"),
            0 => misused("it is a trigger AFTER INSERT"),
            _ => misused("it is a trigger INSTEAD OF changes of a view"),
        }
        let descriptor = (*data.tg_relation).rd_att;
        let old = updated.then(|| NewRow::new(data.tg_trigtuple, descriptor));
        let new = match updated {
            true => data.tg_newtuple,
            false => data.tg_trigtuple,
        };
        let row = NewRow::new(new, descriptor);
        let state = state(call, data);
        pg_sys::Datum::from(state.row(data.tg_relation, row, old.as_ref()))
    }
}

/// The trigger's state, made when its first row in a statement comes.
///
/// # Safety
/// The call is that of a trigger with this data.
unsafe fn state<'a>(call: &mut Call, data: &pg_sys::TriggerData) -> &'a mut State {
    // SAFETY: the call's own record. The server keeps one for each trigger of each statement, and
    // its memory context goes with the statement; then what is still published is
    // withdrawn.
    unsafe {
        let function = call.function();
        if (*function).fn_extra.is_null() {
            let arguments = Arguments::of(&*data.tg_trigger);
            let types = Types::beside((*data.tg_trigger).tgfoid);
            let columns = Columns::find(data.tg_relation, types, &arguments);
            requirements::check(data.tg_relation, &*data.tg_trigger, &arguments, &columns);
            let fingerprints = Fingerprints::of(
                data.tg_relation,
                types,
                &arguments,
                &columns,
                (*function).fn_mcxt,
            );
            let flight = Flight::new(
                data.tg_relation,
                (*function).fn_mcxt,
                &*data.tg_trigger,
                &arguments,
                &columns,
            );
            let state = State {
                action: PreparedAction::new(
                    &arguments,
                    data.tg_relation,
                    &columns,
                    (*function).fn_mcxt,
                ),
                columns,
                fingerprints,
                unique: same_row::Lazy::new((*function).fn_mcxt),
                generated: generated::Lazy::new((*function).fn_mcxt),
                flight,
            };
            let mut context = pgrx::PgMemoryContexts::For((*function).fn_mcxt);
            (*function).fn_extra = context.leak_and_drop_on_delete(state).cast();
        }
        &mut *(*function).fn_extra.cast::<State>()
    }
}

impl State {
    /// Decides what becomes of a new row, or of a row's new version: the row to write, or null.
    ///
    /// # Safety
    /// The rows are of this relation.
    unsafe fn row(
        &mut self,
        relation: pg_sys::Relation,
        mut row: NewRow,
        old: Option<&NewRow>,
    ) -> pg_sys::HeapTuple {
        self.flight.withdraw_previous();
        let columns = &self.columns;
        let marks = self.action.marks();
        // SAFETY: the caller's promise.
        unsafe {
            let recheck = marks.is_some_and(|marks| Recheck::take((*relation).rd_id, marks.mark));
            let fingerprint = match (recheck, columns.text) {
                (true, Some(_)) => row.get(columns.fingerprint),
                _ => self.fingerprints.of_row(&mut row, columns),
            };
            let scope: Option<Vec<_>> = (columns.scope.iter())
                .map(|scope| row.get(scope.column))
                .collect();
            // What belongs nowhere is near nothing, as for a constraint.
            let (Some(fingerprint), Some(scope)) = (fingerprint, scope) else {
                row.clear(columns.mark);
                return row.tuple;
            };
            if let Some(old) = old.filter(|old| self.stays(old, fingerprint, &scope)) {
                let look = recheck
                    || marks.is_some_and(|marks| {
                        let key = columns.key.expect("a column is found for this action");
                        marks.settle(relation, old, &mut row, |value| {
                            action::may_know(marks, relation, key, value)
                        })
                    });
                if !look {
                    return row.tuple;
                }
            }
            row.clear(columns.mark);
            loop {
                let found = {
                    let query = lookup::Query {
                        fingerprint,
                        scope: &scope,
                        own_row: match old {
                            Some(old) => OwnRow::Version((*old.tuple).t_self),
                            None => OwnRow::Key(SameRow::new(
                                relation,
                                &row,
                                &self.unique,
                                &self.generated,
                            )),
                        },
                    };
                    lookup::find_existing(relation, columns, &query, &self.flight)
                };
                let Some(found) = found else {
                    return row.tuple;
                };
                // Whatever happens now, the row does not count as an original.
                self.flight.withdraw();
                match action::run(&self.action, relation, columns, &found, &mut row) {
                    Outcome::Write => return row.tuple,
                    Outcome::Drop => return core::ptr::null_mut(),
                    Outcome::Retry => {
                        pgrx::check_for_interrupts!();
                    }
                }
            }
        }
    }

    /// Whether a row keeps its fingerprint and its scope.
    ///
    /// # Safety
    /// The old row is of the trigger's relation, and the values are of its columns' types.
    unsafe fn stays(
        &self,
        old: &NewRow,
        fingerprint: pg_sys::Datum,
        scope: &[pg_sys::Datum],
    ) -> bool {
        let columns = &self.columns;
        // SAFETY: the caller's promise.
        unsafe {
            old.get(columns.fingerprint)
                .is_some_and(|old| columns.metric.distance(old, fingerprint) == Some(0))
                && (columns.scope.iter().zip(scope)).all(|(column, &value)| {
                    old.get(column.column)
                        .is_some_and(|old| column.equal(old, value))
                })
        }
    }
}

export! {
    guarded "neardup_dedup" => dedup;
}
