//! Actions on a row that repeats another.
use std::ffi::{CStr, CString};

use pgrx::PgSqlErrorCode;

use super::arguments::{Action, Arguments};
use super::columns::Columns;
use super::lookup::{self, Found};
use super::marks::{self, Marks};
use super::names;
use super::own_row::Generated;
use crate::pg::acl::{has_policies, may_select};
use crate::pg::catalog;
use crate::pg::errors::UserError;
use crate::pg::new_row::NewRow;
use crate::pg::rel::Rel;
use crate::pg::row_lock::{Locked, Mode};
use crate::pg::spi;
use crate::pg::value::{OwnedValue, Value};

/// An action with what it needs.
pub enum PreparedAction {
    Skip,
    Error,
    Mark(Marks),
    /// With the statement that writes to the log, and the columns that are generated.
    Log(CString, Generated),
}

impl PreparedAction {
    /// Prepares the action of a trigger of this table, whose columns these are.
    pub fn new(arguments: &Arguments, table: Rel, columns: &Columns) -> Self {
        match &arguments.action {
            Action::Skip => PreparedAction::Skip,
            Action::Error => PreparedAction::Error,
            Action::Mark(_) => {
                let (key, mark) = (columns.key.zip(columns.mark))
                    .expect("both columns are found for this action");
                PreparedAction::Mark(Marks::new(table, key, mark))
            }
            Action::Log(name) => {
                PreparedAction::Log(log_statement(name, table), Generated::default())
            }
        }
    }

    /// The marks that are kept; `None` for other actions.
    pub fn marks(&self) -> Option<&Marks> {
        match self {
            PreparedAction::Mark(marks) => Some(marks),
            _ => None,
        }
    }
}

/// Outcome for the new row.
pub enum Outcome {
    Write,
    Drop,
    /// The row that was found has changed meanwhile: the new one is to be looked up again.
    Retry,
}

/// Does what the trigger's action asks for.
pub fn run(
    action: &PreparedAction,
    table: Rel,
    columns: &Columns,
    found: &Found,
    row: &mut NewRow,
) -> Outcome {
    match action {
        // A constraint does not care either for what the transaction can see.
        PreparedAction::Error => refuse(table, columns, found),
        _ if found.unseen => lookup::refuse_unseen(),
        PreparedAction::Skip => Outcome::Drop,
        PreparedAction::Mark(marks) => mark(marks, table, columns, found, row),
        PreparedAction::Log(statement, generated) => {
            let complete = generated.get(table).complete(table, row);
            log(statement, columns, found, complete.as_ref().unwrap_or(row));
            Outcome::Drop
        }
    }
}

/// Marks the row with the key of the one that it repeats, which nobody can change or delete until
/// the transaction ends.
fn mark(marks: &Marks, table: Rel, columns: &Columns, found: &Found, row: &mut NewRow) -> Outcome {
    let (key, mark) =
        (columns.key.zip(columns.mark)).expect("both columns are found for this action");
    let Some(original) = found.key.as_ref().map(OwnedValue::get) else {
        UserError::null_not_allowed("the row that is repeated has no key to mark with")
            .detail(format!("Its column {} is NULL.", column_name(table, key)))
            .hint("Name a column that is never NULL, such as 'key=id'.")
            .raise();
    };
    if !may_know(marks, table, key, original) {
        marks::hidden(table);
    }
    if found.row.lock(table, Mode::Share, true) != Locked::Yes {
        return Outcome::Retry;
    }
    row.set(mark, Some(original));
    Outcome::Write
}

/// Returns whether the current user may know the key of a row, given the key's column and its
/// value.
pub fn may_know(marks: &Marks, table: Rel, key: i16, value: Value) -> bool {
    may_select(table, key) && (!has_policies(table) || marks.is_visible(value))
}

/// Error 23P01, which tells the existing row's key only to someone who may read it, as the server's
/// own constraints do.
fn refuse(table: Rel, columns: &Columns, found: &Found) -> ! {
    let (unit, limit) = (columns.metric.unit(), columns.limit);
    let may_read = |key| !has_policies(table) && may_select(table, key);
    let shown = (columns.key.zip(found.key.as_ref())).filter(|(key, _)| may_read(*key));
    let detail = match shown {
        Some((column, key)) => format!(
            "The row with ({})=({}) differs in {} {unit}; at most {limit} are a near-duplicate.",
            column_name(table, column),
            key.get().output(),
            found.distance
        ),
        None => format!("An existing row differs in at most {limit} {unit}."),
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
        format!("near-duplicate of a row in table \"{}\"", table.shown()),
    )
    .detail(detail)
    .hint("Change the trigger's action if near-duplicates are to be skipped, marked or logged.")
    .raise()
}

/// The name of a column, quoted if need be, for messages.
fn column_name(table: Rel, column: i16) -> String {
    names::shown(&table.column_name(column))
}

/// Writes the row to the log, as the user whose statement it is.
fn log(statement: &CStr, columns: &Columns, found: &Found, row: &NewRow) {
    let Some(existing) = &found.key else {
        UserError::null_not_allowed("the row that is repeated has no key to log")
            .hint("Name a column that is never NULL, such as 'key=id'.")
            .raise();
    };
    let distance = columns.metric.shown(found.distance);
    spi::insert(statement, &[existing.get(), distance, row.as_record()]);
}

/// The INSERT into the log. A name without a schema is one of the schema of the trigger's table.
fn log_statement(name: &CStr, table: Rel) -> CString {
    let mut text = b"INSERT INTO ".to_vec();
    text.extend(catalog::find_table(name, table.schema()));
    text.extend(b" (kept, distance, dropped) VALUES ($1, $2, pg_catalog.to_jsonb($3))");
    CString::new(text).expect("made of C strings")
}
