//! What is done with a row that repeats another.
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::NewRow;
use super::arguments::{Action, Arguments};
use super::columns::{Columns, table};
use super::look::{self, Found};
use super::statements;
use crate::pg::compat;
use crate::pg::errors::UserError;

/// An action with what it needs.
pub enum Ready {
    Skip,
    Error,
    Mark,
    /// With the statement that writes to the log.
    Log(CString),
}

impl Ready {
    /// # Safety
    /// The relation is open.
    pub unsafe fn new(arguments: &Arguments, relation: pg_sys::Relation) -> Self {
        match &arguments.action {
            Action::Skip => Ready::Skip,
            Action::Error => Ready::Error,
            Action::Mark(_) => Ready::Mark,
            // SAFETY: the caller's promise.
            Action::Log(name) => Ready::Log(unsafe { log_statement(name, relation) }),
        }
    }
}

/// What becomes of the row.
pub enum Fate {
    Write,
    Drop,
}

/// Does what the trigger's action asks for.
///
/// # Safety
/// The row is of this relation, which is the one that the columns are of.
pub unsafe fn fate(
    action: &Ready,
    relation: pg_sys::Relation,
    columns: &Columns,
    found: &Found,
    row: &mut NewRow,
) -> Fate {
    // SAFETY: the caller's promise.
    unsafe {
        match action {
            // A constraint does not care either for what the transaction can see.
            Ready::Error => refuse(relation, columns, found),
            _ if found.unseen => look::refuse_unseen(),
            Ready::Skip => Fate::Drop,
            Ready::Mark => {
                let mark = columns.mark.expect("a column is found for this action");
                row.set(mark, found.key);
                Fate::Write
            }
            Ready::Log(statement) => {
                log(statement, relation, columns, found, row);
                Fate::Drop
            }
        }
    }
}

/// Error 23P01, which tells the existing row's key only to someone who may read it, as the server's
/// own constraints do.
unsafe fn refuse(relation: pg_sys::Relation, columns: &Columns, found: &Found) -> ! {
    // SAFETY: the relation is open, and the key of its column's type.
    unsafe {
        let (unit, limit) = (columns.kind.unit(), columns.kind.limit());
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
                    CStr::from_ptr(form.attname.data.as_ptr()).to_string_lossy(),
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
    // SAFETY: catalogue look-ups for an open relation.
    unsafe {
        let (oid, user) = ((*relation).rd_id, pg_sys::GetUserId());
        let select = pg_sys::ACL_SELECT as pg_sys::AclMode;
        let ok = pg_sys::AclResult::ACLCHECK_OK;
        let hidden = pg_sys::check_enable_rls(oid, pg_sys::InvalidOid, true)
            == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
        !hidden
            && (pg_sys::pg_class_aclcheck(oid, user, select) == ok
                || pg_sys::pg_attribute_aclcheck(oid, column, user, select) == ok)
    }
}

/// Writes the row to the log, as the user whose statement it is.
unsafe fn log(
    statement: &CStr,
    relation: pg_sys::Relation,
    columns: &Columns,
    found: &Found,
    row: &NewRow,
) {
    // SAFETY: the relation is open; the parameters are of the types that are named.
    unsafe {
        let key = columns.key.expect("a column is found for this action");
        let key_type = (*compat::attribute((*relation).rd_att, key as usize - 1)).atttypid;
        let dropped = pg_sys::heap_copy_tuple_as_datum(row.tuple, row.descriptor);
        let row_type = (*row.descriptor).tdtypeid;
        let Some(existing) = found.key else {
            UserError::null_not_allowed("the row that is repeated has no key to log")
                .hint("Name a column that is never NULL, such as 'key=id'.")
                .raise();
        };
        statements::insert(
            statement,
            &[
                (key_type, existing),
                columns.kind.shown(found.distance),
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
