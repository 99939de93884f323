//! What is done with a row that repeats another.
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::arguments::{Action, Arguments};
use super::columns::{Columns, table};
use super::lookup::{self, Found};
use super::marks::{self, Marks};
use super::new_row::NewRow;
use super::row_lock::{Locked, Mode};
use super::{generated, names, spi_plans};
use crate::pg::compat;
use crate::pg::errors::UserError;

/// An action with what it needs.
pub enum PreparedAction {
    Skip,
    Error,
    Mark(Marks),
    /// With the statement that writes to the log, and the columns that are generated.
    Log(CString, generated::Lazy),
}

impl PreparedAction {
    /// # Safety
    /// The relation is open, and the columns are its own; the memory context outlives the value.
    pub unsafe fn new(
        arguments: &Arguments,
        relation: pg_sys::Relation,
        columns: &Columns,
        memory: pg_sys::MemoryContext,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            match &arguments.action {
                Action::Skip => PreparedAction::Skip,
                Action::Error => PreparedAction::Error,
                Action::Mark(_) => {
                    let (key, mark) = (columns.key.zip(columns.mark))
                        .expect("both columns are found for this action");
                    PreparedAction::Mark(Marks::new(relation, key, mark))
                }
                Action::Log(name) => {
                    PreparedAction::Log(log_statement(name, relation), generated::Lazy::new(memory))
                }
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

/// What becomes of the row.
pub enum Outcome {
    Write,
    Drop,
    /// The row that was found has changed meanwhile: the new one is to be looked up again.
    Retry,
}

/// Does what the trigger's action asks for.
///
/// # Safety
/// The row is of this relation, which is the one that the columns are of.
pub unsafe fn run(
    action: &PreparedAction,
    relation: pg_sys::Relation,
    columns: &Columns,
    found: &Found,
    row: &mut NewRow,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        match action {
            // A constraint does not care either for what the transaction can see.
            PreparedAction::Error => refuse(relation, columns, found),
            _ if found.unseen => lookup::refuse_unseen(),
            PreparedAction::Skip => Outcome::Drop,
            PreparedAction::Mark(marks) => mark(marks, relation, columns, found, row),
            PreparedAction::Log(statement, generated) => {
                let row = generated.complete(relation, row);
                log(statement, relation, columns, found, row);
                Outcome::Drop
            }
        }
    }
}

/// Marks the row with the key of the one that it repeats, which nobody can change or delete until
/// the transaction ends.
unsafe fn mark(
    marks: &Marks,
    relation: pg_sys::Relation,
    columns: &Columns,
    found: &Found,
    row: &mut NewRow,
) -> Outcome {
    // SAFETY: the relation is open, and the key of its column's type.
    unsafe {
        let (key, mark) =
            (columns.key.zip(columns.mark)).expect("both columns are found for this action");
        let Some(original) = found.key else {
            UserError::null_not_allowed("the row that is repeated has no key to mark with")
                .detail(format!(
                    "Its column {} is NULL.",
                    column_name(relation, key)
                ))
                .hint("Name a column that is never NULL, such as 'key=id'.")
                .raise();
        };
        if !may_know(marks, relation, key, original) {
            marks::hidden(relation);
        }
        if found.row.lock(relation, Mode::Share, true) != Locked::Yes {
            return Outcome::Retry;
        }
        row.set(mark, Some(original));
        Outcome::Write
    }
}

/// Whether the current user may know the key of a row.
///
/// # Safety
/// The relation is open, the key one of its columns, and the value of that column's type.
pub unsafe fn may_know(
    marks: &Marks,
    relation: pg_sys::Relation,
    key: i16,
    value: pg_sys::Datum,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { may_select(relation, key) && (!has_policies(relation) || marks.is_visible(value)) }
}

/// Error 23P01, which tells the existing row's key only to someone who may read it, as the server's
/// own constraints do.
unsafe fn refuse(relation: pg_sys::Relation, columns: &Columns, found: &Found) -> ! {
    // SAFETY: the relation is open, and the key of its column's type.
    unsafe {
        let (unit, limit) = (columns.metric.unit(), columns.metric.limit());
        let shown = columns
            .key
            .zip(found.key)
            .filter(|(key, _)| may_read(relation, *key));
        let detail = match shown {
            Some((column, key)) => {
                let form = &*compat::attribute((*relation).rd_att, column as usize - 1);
                let (mut output, mut varlena) = (pg_sys::InvalidOid, false);
                pg_sys::getTypeOutputInfo(form.atttypid, &mut output, &mut varlena);
                let key = CStr::from_ptr(pg_sys::OidOutputFunctionCall(output, key));
                format!(
                    "The row with ({})=({}) differs in {} {unit}; at most {limit} are a near-duplicate.",
                    column_name(relation, column),
                    key.to_string_lossy(),
                    found.distance
                )
            }
            None => format!("An existing row differs in at most {limit} {unit}."),
        };
        UserError::new(
            PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
            format!("near-duplicate of a row in table \"{}\"", table(relation)),
        )
        .detail(detail)
        .hint("Change the trigger's action if near-duplicates are to be skipped, marked or logged.")
        .raise()
    }
}

unsafe fn may_read(relation: pg_sys::Relation, column: i16) -> bool {
    // SAFETY: the relation is open.
    unsafe { !has_policies(relation) && may_select(relation, column) }
}

/// Whether the current user has the right to read a column.
unsafe fn may_select(relation: pg_sys::Relation, column: i16) -> bool {
    // SAFETY: catalogue look-ups for an open relation.
    unsafe {
        let (oid, user) = ((*relation).rd_id, pg_sys::GetUserId());
        let select = pg_sys::ACL_SELECT as pg_sys::AclMode;
        let ok = pg_sys::AclResult::ACLCHECK_OK;
        pg_sys::pg_class_aclcheck(oid, user, select) == ok
            || pg_sys::pg_attribute_aclcheck(oid, column, user, select) == ok
    }
}

/// Whether policies of row security apply to the current user.
unsafe fn has_policies(relation: pg_sys::Relation) -> bool {
    // SAFETY: catalogue look-ups for an open relation.
    unsafe {
        pg_sys::check_enable_rls((*relation).rd_id, pg_sys::InvalidOid, true)
            == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    }
}

/// The name of a column, quoted if need be, for messages.
unsafe fn column_name(relation: pg_sys::Relation, column: i16) -> String {
    // SAFETY: the column is one of the open relation.
    unsafe {
        let form = &*compat::attribute((*relation).rd_att, column as usize - 1);
        names::shown(CStr::from_ptr(form.attname.data.as_ptr()))
    }
}

/// Writes the row to the log, as the user whose statement it is.
unsafe fn log(
    statement: &CStr,
    relation: pg_sys::Relation,
    columns: &Columns,
    found: &Found,
    row: pg_sys::HeapTuple,
) {
    // SAFETY: the relation is open; the parameters are of the types that are named.
    unsafe {
        let key = columns.key.expect("a column is found for this action");
        let key_type = (*compat::attribute((*relation).rd_att, key as usize - 1)).atttypid;
        let descriptor = (*relation).rd_att;
        let dropped = pg_sys::heap_copy_tuple_as_datum(row, descriptor);
        let row_type = (*descriptor).tdtypeid;
        let Some(existing) = found.key else {
            UserError::null_not_allowed("the row that is repeated has no key to log")
                .hint("Name a column that is never NULL, such as 'key=id'.")
                .raise();
        };
        spi_plans::insert(
            statement,
            &[
                (key_type, existing),
                columns.metric.shown(found.distance),
                (row_type, dropped),
            ],
        );
    }
}

/// The INSERT into the log. A name without a schema is one of the schema of the trigger's table.
unsafe fn log_statement(name: &CStr, relation: pg_sys::Relation) -> CString {
    // SAFETY: catalogue look-ups; lists and names live in the current memory context.
    unsafe {
        let names = pg_sys::textToQualifiedNameList(pg_sys::cstring_to_text(name.as_ptr()));
        let place = pg_sys::makeRangeVarFromNameList(names);
        if (*place).schemaname.is_null() {
            let schema = (*(*relation).rd_rel).relnamespace;
            (*place).schemaname = pg_sys::get_namespace_name(schema);
        }
        // No lock: the name goes into a statement, which takes its own. An unknown table is 42P01.
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        pg_sys::RangeVarGetRelidExtended(place, no_lock, 0, None, core::ptr::null_mut());
        let name = pg_sys::quote_qualified_identifier((*place).schemaname, (*place).relname);
        let mut text = b"INSERT INTO ".to_vec();
        text.extend(CStr::from_ptr(name).to_bytes());
        text.extend(b" (kept, distance, dropped) VALUES ($1, $2, pg_catalog.to_jsonb($3))");
        CString::new(text).expect("made of C strings")
    }
}
