//! Actions of the trigger for a new row that is a near-duplicate of an existing row.
use pgrx::PgSqlErrorCode;

use super::columns::Columns;
use super::log::LogTable;
use super::lookup::{self, NearRow};
use super::marks::{self, Marks};
use super::names;
use super::own_row::AllPlanned;
use super::trigger_arguments::{self, Action, Arguments};
use crate::am::metric::ValueMetric;
use neardup_pg::acl::{has_policies, may_select};
use neardup_pg::errors::UserError;
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::Rel;
use neardup_pg::row_lock::{Locked, Mode};
use neardup_pg::value::{OwnedValue, Value};

/// Action of a trigger, with the statements that it runs.
pub enum PreparedAction {
    Skip,
    Error,
    Mark(Marks),
    /// Records skipped rows in this log table. Each statement makes the SQL of the INSERT again
    /// ([`PreparedAction::log_table`]), because the log table's columns and indexes may have
    /// changed.
    Log(trigger_arguments::Log),
}

impl PreparedAction {
    /// Prepares the action of a trigger on `table`.
    pub fn new(arguments: &Arguments, table: Rel, columns: &Columns) -> Self {
        match &arguments.action {
            Action::Skip => PreparedAction::Skip,
            Action::Error => PreparedAction::Error,
            Action::Mark(_) => {
                let (key, mark) = (columns.key.zip(columns.mark))
                    .expect("both columns are found for this action");
                PreparedAction::Mark(Marks::new(table, key, mark))
            }
            Action::Log(log) => PreparedAction::Log(log.clone()),
        }
    }

    /// Finds the log table of the action `log`, and makes the INSERT into it. Returns `None` for
    /// other actions. `table` is the trigger's table, and `columns` are its columns that the
    /// trigger uses. `planned` has the plans of the generated columns of `table`.
    pub fn log_table(
        &self,
        table: Rel,
        columns: &Columns,
        planned: &AllPlanned,
    ) -> Option<LogTable> {
        match self {
            PreparedAction::Log(log) => Some(LogTable::new(log, table, columns, planned)),
            _ => None,
        }
    }

    /// Returns the columns and statements of the action `mark`. Returns `None` for other actions.
    pub fn marks(&self) -> Option<&Marks> {
        match self {
            PreparedAction::Mark(marks) => Some(marks),
            _ => None,
        }
    }
}

/// Result of an action for the new row.
pub enum Outcome {
    /// The new row is written.
    Write,
    /// The new row is not written.
    Drop,
    /// The existing row has changed, so the lookup of near rows must be repeated.
    Retry,
}

/// Runs the trigger's action for the new row `row`, which is a near-duplicate of the existing row
/// `found`. `log` is the log table of the action `log`.
pub fn run(
    action: &PreparedAction,
    log: Option<&LogTable>,
    table: Rel,
    columns: &Columns,
    found: &NearRow,
    row: &mut NewRow,
) -> Outcome {
    match action {
        // Like a constraint, this action also rejects a near-duplicate of a row that the
        // transaction's snapshot does not see.
        PreparedAction::Error => refuse(table, columns, found),
        _ if found.unseen => lookup::refuse_unseen(),
        PreparedAction::Skip => Outcome::Drop,
        PreparedAction::Mark(marks) => mark(marks, table, columns, found, row),
        PreparedAction::Log(_) => {
            let log = log.expect("each statement finds the log table");
            log.write(table, columns, found, row);
            Outcome::Drop
        }
    }
}

/// Sets the mark of the new row to the key of the original `found`, and locks the original. Until
/// the transaction ends, other sessions cannot delete the original or change the columns that make
/// the mark true (key, fingerprint, scope and mark).
fn mark(
    marks: &Marks,
    table: Rel,
    columns: &Columns,
    found: &NearRow,
    row: &mut NewRow,
) -> Outcome {
    let (key, mark) =
        (columns.key.zip(columns.mark)).expect("both columns are found for this action");
    let Some(original) = found.key.as_ref().map(OwnedValue::get) else {
        UserError::null_not_allowed("cannot mark a near-duplicate of a row that has no key")
            .detail(format!(
                "Column {} of the original row is NULL.",
                column_name(table, key)
            ))
            .hint("Specify a column that is never NULL, such as 'key=id'.")
            .raise();
    };
    if !may_know(marks, table, key, original) {
        marks::hidden(table);
    }
    if found.row.lock(table, Mode::KeyShare, true) != Locked::Yes {
        return Outcome::Retry;
    }
    row.set(mark, Some(original));
    Outcome::Write
}

/// Returns whether the current user may read the key `value` of an existing row. This requires the
/// SELECT privilege on the key column. If the table has row security policies, they must also let
/// the user see the row. `key` is the attribute number of the key column.
pub fn may_know(marks: &Marks, table: Rel, key: i16, value: Value) -> bool {
    may_select(table, key) && (!has_policies(table) || marks.is_visible(value))
}

/// Raises error 23P01: the new row is a near-duplicate of the existing row `found`. As in the
/// server's own constraints, the message contains the existing row's key only if the current user
/// may read it.
fn refuse(table: Rel, columns: &Columns, found: &NearRow) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
        format!("near-duplicate of a row in table \"{}\"", table.shown()),
    )
    .detail(in_the_way(table, columns, found))
    .hint("To skip, mark or log near-duplicates instead, change the trigger's action.")
    .raise()
}

/// Sends a notice that the new row was skipped because it is a near-duplicate of `found`. If
/// `is_update` is true, the notice is that the UPDATE did not change the row.
pub fn notify(table: Rel, columns: &Columns, found: &NearRow, row: &NewRow, is_update: bool) {
    let left_out = match is_update {
        false => String::new(),
        true => match columns.key.and_then(|key| Some((key, row.get(key)?))) {
            Some((column, key)) if may_read(table, column) => format!(
                "The row with ({})=({}) was not changed. ",
                column_name(table, column),
                key.output()
            ),
            _ => "The row was not changed. ".to_owned(),
        },
    };
    let what = match is_update {
        true => "update to a near-duplicate of a row",
        false => "near-duplicate of a row",
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
        format!("{what} in table \"{}\" was skipped", table.shown()),
    )
    .detail(left_out + &in_the_way(table, columns, found))
    .notify();
}

/// Returns whether the current user may read a column in all rows.
fn may_read(table: Rel, column: i16) -> bool {
    !has_policies(table) && may_select(table, column)
}

/// Returns a sentence for messages about the existing row `found`: its distance or similarity, and
/// its key if the user may read it.
fn in_the_way(table: Rel, columns: &Columns, found: &NearRow) -> String {
    let (unit, limit) = (columns.metric.unit(), columns.limit);
    let shown = (columns.key.zip(found.key.as_ref())).filter(|(key, _)| may_read(table, *key));
    if let Some(similarity) = found.similarity {
        return match shown {
            Some((column, key)) => format!(
                "The text of the row with ({})=({}) has a similarity of {similarity:.2}.",
                column_name(table, column),
                key.get().output()
            ),
            None => "The text of an existing row is similar.".to_owned(),
        };
    }
    match shown {
        Some((column, key)) => format!(
            "The row with ({})=({}) differs in {} {unit}; rows that differ in at most {limit} are \
             near-duplicates.",
            column_name(table, column),
            key.get().output(),
            found.distance
        ),
        None => format!("An existing row differs in at most {limit} {unit}."),
    }
}

/// Returns the name of a column for messages, quoted if necessary.
fn column_name(table: Rel, column: i16) -> String {
    names::shown(&table.column_name(column))
}
