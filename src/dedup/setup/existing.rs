//! Check of existing objects whose names the statements of `neardup_setup` use.
//!
//! Statements may be run again, so objects that the same statements created earlier are accepted.
//! An error prevents the statements from using, replacing or dropping any other object.
use core::ffi::CStr;
use std::ffi::CString;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::Goal;
use super::subject::Subject;
use crate::dedup::trigger::trigger_arguments::{Action, Arguments};
use neardup_pg::catalog::{self, Named};
use neardup_pg::errors::UserError;
use neardup_pg::rel::{OpenRelation, Rel, Trigger};

/// Raises an error if an existing object has a name that the statements use, but was not created by
/// them. Returns the names of indexes that an unfinished CREATE INDEX CONCURRENTLY left invalid.
pub fn check(subject: &Subject) -> Vec<CString> {
    let (table, names) = (subject.table, &subject.names);
    let mut invalid = Vec::new();
    let mut check_index = |name: &CStr, fits: &dyn Fn(Rel) -> bool| {
        if is_invalid_index(table, name, fits) {
            invalid.push(name.to_owned());
        }
    };
    if subject.goal == Goal::Search {
        check_index(&names.search_index, &|index| {
            index.is_neardup_index()
                && !index.is_partial()
                && index.index_form().columns == indexed(subject, Some(0))
                && index.columns_of_searched_expression() == [subject.text_column]
        });
        return invalid;
    }
    for trigger in table.triggers() {
        check_trigger(subject, &trigger);
    }
    let fingerprint = check_column(table, &names.fingerprint, |column_type| {
        subject.types.name(column_type).as_deref() == Some(c"fingerprint")
    });
    check_index(&names.fingerprint_index, &|index| {
        index.is_neardup_index()
            && index.is_partial() == (subject.goal == Goal::Mark)
            && fingerprint.is_some()
            && index.index_form().columns == indexed(subject, fingerprint)
    });
    if let Some(key) = subject.key_column {
        let key_type = catalog::base_type(table.attribute(key).atttypid);
        let mark = check_column(table, &names.mark, |column_type| {
            catalog::base_type(column_type) == key_type
        });
        check_index(&names.mark_index, &|index| {
            !index.is_partial()
                && Some(index.index_form().columns) == mark.map(|column| vec![column])
        });
    }
    invalid
}

/// Returns the attribute numbers of the columns of an index that the statements create: the scope
/// columns, then the column `last`. Only rows with equal values in the scope columns are compared.
/// `last` is the fingerprint column, or 0 for an index on an expression. It is `None` if the table
/// does not have the fingerprint column yet. Then the result has only the scope columns.
fn indexed(subject: &Subject, last: Option<i16>) -> Vec<i16> {
    let scope = subject.arguments.scope.iter();
    let scope = scope.filter_map(|column| subject.table.column_number(column));
    scope.chain(last).collect()
}

/// Returns whether the index with this name is invalid. Returns false if there is none. Raises an
/// error if a relation of this name is not the index that `fits` describes.
fn is_invalid_index(table: Rel, name: &CStr, fits: &dyn Fn(Rel) -> bool) -> bool {
    let Some(oid) = catalog::find(table.schema(), name, Named::Relation) else {
        return false;
    };
    if catalog::relation_kind(oid) == pg_sys::RELKIND_INDEX {
        let index = OpenRelation::index(oid, pg_sys::AccessShareLock);
        let form = index.rel().index_form();
        if form.table == table.oid() && fits(index.rel()) {
            return !form.is_valid;
        }
    }
    refuse(
        PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
        &format!("relation \"{}\" already exists", name.to_string_lossy()),
        "neardup_setup uses this name for an index, but the existing relation is not that index.",
    )
}

/// Returns the attribute number of the column with this name, or `None` if there is none. Raises an
/// error if the column is generated, or if `fits` is false for its type.
fn check_column(table: Rel, name: &CStr, fits: impl Fn(pg_sys::Oid) -> bool) -> Option<i16> {
    let column = table.column_number(name)?;
    if table.is_generated(column) || !fits(table.attribute(column).atttypid) {
        refuse(
            PgSqlErrorCode::ERRCODE_DUPLICATE_COLUMN,
            &format!(
                "column \"{}\" of table \"{}\" already exists",
                name.to_string_lossy(),
                table.shown()
            ),
            "neardup_setup uses this name for a new column, but the existing column has another \
             type or is generated.",
        );
    }
    Some(column)
}

/// Raises an error if a trigger has a name that the statements use, but was not created by them or
/// has an action that they cannot replace.
fn check_trigger(subject: &Subject, trigger: &Trigger) {
    let names = &subject.names;
    if trigger.name != names.trigger && trigger.name != names.marks_trigger {
        return;
    }
    let schema = subject.types.schema();
    let is_ours =
        catalog::find(schema, c"neardup_dedup", Named::Function(&[])) == Some(trigger.function);
    let arguments = (Arguments::read(trigger).ok())
        .filter(|arguments| is_ours && arguments.has_same_options(&subject.arguments));
    let name = trigger.name.to_string_lossy();
    let Some(arguments) = arguments else {
        refuse(
            PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
            &format!(
                "trigger \"{name}\" of table \"{}\" already exists",
                subject.table.shown()
            ),
            "neardup_setup uses this name for a trigger, but the existing trigger has other \
             arguments. If neardup_setup created it, pass the same options again.",
        );
    };
    let goal = match arguments.action {
        Action::Skip => Goal::Skip,
        Action::Error => Goal::Error,
        Action::Mark(mark) if mark == names.mark => Goal::Mark,
        _ => Goal::Search,
    };
    // A trigger for skip can replace one for error, and the reverse. Marks need another column and
    // other indexes, so a trigger for mark must be removed first.
    let is_mark = |goal: Goal| goal == Goal::Mark;
    if goal == Goal::Search || is_mark(goal) != is_mark(subject.goal) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "trigger \"{name}\" of table \"{}\" has a different action",
                subject.table.shown()
            ),
        )
        .detail(
            "The triggers, columns and indexes for \"mark\" differ from those for \"skip\" and \
             \"error\".",
        )
        .hint(
            "First remove the existing triggers. To get the statements for this, call \
             neardup_setup with the existing action. The column \"part\" of these statements has \
             the value 'remove'.",
        )
        .raise();
    }
}

fn refuse(code: PgSqlErrorCode, message: &str, detail: &str) -> ! {
    UserError::new(code, message)
        .detail(detail)
        .hint("Rename the existing object, or write the statements yourself.")
        .raise()
}
