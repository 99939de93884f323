//! AFTER trigger of `action=mark`: compares the duplicates of an original again after the original
//! is deleted or changed.
use std::collections::HashSet;

use neardup_blocktree::key::Tid;
use pgrx::PgSqlErrorCode;

use super::columns::NamedColumns;
use super::marks::{Marks, Recheck};
use super::remark;
use super::trigger_arguments::{Action, Arguments};
use super::usage::misused;
use neardup_pg::errors::UserError;
use neardup_pg::rel::Rel;
use neardup_pg::row_lock::lock_for_update;
use neardup_pg::security_context::AsConstraint;
use neardup_pg::spi;
use neardup_pg::tid::{item_pointer, tid_of};
use neardup_pg::trigger::TriggerCall;
use neardup_pg::trigger_cache;
use neardup_pg::value::Value;

/// State of one AFTER trigger that the backend keeps between statements ([`trigger_cache`]).
struct Prepared {
    marks: Marks,
    columns: NamedColumns,
}

impl trigger_cache::Prepared for Prepared {
    fn is_valid(&self) -> bool {
        true
    }
}

impl Prepared {
    fn new(call: &TriggerCall) -> Self {
        let arguments = Arguments::from_trigger(&call.trigger());
        if !matches!(arguments.action, Action::Mark(_)) {
            misused("The trigger is an AFTER trigger, which only the action mark supports.");
        }
        let columns = NamedColumns::find(call.table(), &arguments);
        let marks = Marks::from_columns(call.table(), &columns)
            .unwrap_or_else(|| misused("An AFTER trigger needs a key column and a mark column."));
        Prepared { marks, columns }
    }
}

/// Handles a row that an UPDATE has changed (`updated` is true) or a DELETE has removed. If the row
/// was an original, compares its duplicates again. Their marks stay as they are if an UPDATE keeps
/// the original's key, fingerprint, scope and compared text, and does not mark the original.
pub fn changed(call: &mut TriggerCall, updated: bool) {
    let (table, old) = (call.table(), call.row());
    let new = updated.then(|| call.new_version());
    let prepared = call.state(|call| trigger_cache::prepared(call, Prepared::new));
    let Prepared { marks, columns } = &**prepared;
    let (Some(mark), Some(key)) = (columns.mark, columns.key) else {
        return;
    };
    // `neardup_remark` sets the marks of all rows itself.
    if updated && remark::writes(table, mark, tid_of(old.address())) {
        return;
    }
    // A row that was marked or had no key has no duplicates.
    let Some(key_was) = old.get(key).filter(|_| old.get(mark).is_none()) else {
        return;
    };
    if let Some(new) = new {
        let compared = [key, columns.fingerprint].into_iter();
        let mut compared = (compared.chain(columns.scope.iter().copied()))
            .chain(columns.compared_text)
            .chain(columns.time);
        let same = |column| match (old.get(column), new.get(column)) {
            (Some(old), Some(new)) => old.image_eq(new),
            (old, new) => old.is_none() && new.is_none(),
        };
        if new.get(mark).is_none() && compared.all(same) {
            return;
        }
        // Sessions that mark a row with this key must commit before the search for copies. The
        // BEFORE trigger already has this lock, unless the UPDATE did not fire it or another
        // trigger changed the row after it.
        lock_for_update(table, tid_of(new.address()));
    }
    compare_again(table, marks, key_was);
}

/// Removes the marks that name a key, one by one, which makes the BEFORE trigger compare the rows
/// that had these marks.
fn compare_again(table: Rel, marks: &Marks, key: Value) {
    let _owner = AsConstraint::new(table);
    let mut missed = HashSet::new();
    loop {
        let missed_now = pass(table, marks, key);
        if missed_now.is_empty() {
            return;
        }
        // If another session changed a row, a newer snapshot finds it at another address, or not
        // at all.
        if missed_now.iter().any(|row| missed.contains(row)) {
            UserError::new(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("could not update a mark in table \"{}\"", table.shown()),
            )
            .detail("Another trigger or a rule prevents the update of a marked row.")
            .hint("Change that trigger or rule so that it allows updates that set a mark to NULL.")
            .raise();
        }
        missed = missed_now;
    }
}

/// Removes the mark of each row that is marked with a key. Returns the addresses of rows that could
/// not be written because they had moved or changed.
fn pass(table: Rel, marks: &Marks, key: Value) -> HashSet<Tid> {
    let mut missed = HashSet::new();
    marks.for_each_dependent(key, |connection, row| {
        if !unmark(connection, table, marks, row, key) {
            missed.insert(row);
        }
    });
    missed
}

/// Removes the mark of the row at an address, which makes the BEFORE trigger compare the row.
/// Returns false if there is no row with this mark at the address.
fn unmark(connection: &spi::Connection, table: Rel, marks: &Marks, row: Tid, key: Value) -> bool {
    let mut written = false;
    let compared = Recheck::announce(table.oid(), marks.mark, || {
        written = marks.unmark(connection, &item_pointer(row), key);
    });
    if written && !compared {
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "the BEFORE trigger of table \"{}\" did not compare a row whose mark was removed",
                table.shown()
            ),
        )
        .detail("Without this comparison, the row would wrongly become an original.")
        .hint("Create the BEFORE trigger without a WHEN condition.")
        .raise();
    }
    written
}
