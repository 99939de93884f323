//! Requirements of `action=mark`: a BEFORE trigger that sees every change of a row that may concern
//! its mark, and an AFTER trigger with the same arguments.
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::arguments::Arguments;
use super::columns::Columns;
use crate::pg::catalog;
use crate::pg::errors::UserError;
use crate::pg::rel::{Rel, Trigger};
use crate::pg::spi;
use crate::pg::value::Value;

/// Raises error 55000 if `trigger`, one of the table's, marks rows, but does not see all changes
/// that may concern a mark, or if the AFTER trigger that it needs is missing. `arguments` and
/// `columns` are those of `trigger`.
pub fn check(table: Rel, trigger: &Trigger, arguments: &Arguments, columns: &Columns) {
    if columns.mark.is_none() {
        return;
    }
    if !sees_all(table, trigger, columns) {
        let name = catalog::quoted(&trigger.name);
        let command = b"CREATE OR REPLACE TRIGGER ";
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "the trigger that marks rows of table \"{}\" does not see all changes",
                table.shown()
            ),
        )
        .detail(
            "It has to fire for INSERT and for UPDATE; a list of columns has to hold those of \
             the fingerprint or its text, of the scope, and of the mark.",
        )
        .hint(create(
            table,
            trigger,
            command,
            &name,
            b" BEFORE INSERT OR UPDATE",
        ))
        .raise();
    }
    if !has_after_trigger(table, trigger, arguments) {
        let name = [trigger.name.to_bytes(), b"_marks"].concat();
        let name = CString::new(name).expect("made of a C string");
        let (command, events) = (b"CREATE TRIGGER ", b" AFTER UPDATE OR DELETE");
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "table \"{}\" has no trigger that renews the marks of an original that changes",
                table.shown()
            ),
        )
        .detail(
            "Marks stay true only if neardup_dedup is called AFTER UPDATE OR DELETE as well, \
             with the same arguments.",
        )
        .hint(create(
            table,
            trigger,
            command,
            &catalog::quoted(&name),
            events,
        ))
        .raise();
    }
}

/// Returns whether a BEFORE trigger sees each change that may concern a mark.
fn sees_all(table: Rel, trigger: &Trigger, columns: &Columns) -> bool {
    if !trigger.fires_for(pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE) {
        return false;
    }
    if trigger.columns.is_empty() {
        return true;
    }
    let listed = &trigger.columns;
    let source = columns.text.unwrap_or(columns.fingerprint);
    // Which columns a generated one depends on is for the user to list.
    let sees_source = table.is_stored_generated(columns.fingerprint) || listed.contains(&source);
    let scope = columns.scope.iter().map(|scope| &scope.column);
    sees_source && (scope.chain(&columns.mark)).all(|column| listed.contains(column))
}

/// Returns whether a table has an AFTER trigger for the same marks, which fires whenever this one
/// does.
fn has_after_trigger(table: Rel, before: &Trigger, arguments: &Arguments) -> bool {
    let events =
        pg_sys::TRIGGER_TYPE_ROW | pg_sys::TRIGGER_TYPE_UPDATE | pg_sys::TRIGGER_TYPE_DELETE;
    table.triggers().iter().any(|trigger| {
        trigger.function == before.function
            && trigger.flags & pg_sys::TRIGGER_TYPE_TIMING_MASK == pg_sys::TRIGGER_TYPE_AFTER
            && trigger.fires_for(events)
            && trigger.columns.is_empty()
            && !trigger.has_condition
            && (trigger.enabled == before.enabled
                || trigger.enabled == pg_sys::TRIGGER_FIRES_ALWAYS)
            && Arguments::read(trigger).is_ok_and(|other| other.marks_alike(arguments))
    })
}

/// A statement that makes a trigger with the arguments of an existing one, on the table that the
/// existing one was made for.
fn create(table: Rel, trigger: &Trigger, command: &[u8], name: &[u8], events: &[u8]) -> String {
    let literals: Vec<Vec<u8>> = (trigger.arguments.iter())
        .map(|text| catalog::literal(text))
        .collect();
    let statement = [
        command,
        name,
        events,
        b" ON ",
        &made_for(trigger).unwrap_or_else(|| table.qualified_name()),
        b" FOR EACH ROW EXECUTE FUNCTION ",
        &catalog::qualified_function(trigger.function),
        b"(",
        &literals.join(b", ".as_slice()),
        b")",
    ]
    .concat();
    String::from_utf8_lossy(&statement).into_owned()
}

/// The name of the table that a trigger was made for: of a partition's, the partitioned table.
fn made_for(trigger: &Trigger) -> Option<Vec<u8>> {
    const ORIGIN: &CStr = c"WITH RECURSIVE up AS (
        SELECT tgparentid, tgrelid FROM pg_catalog.pg_trigger
        WHERE oid OPERATOR(pg_catalog.=) $1
        UNION ALL SELECT t.tgparentid, t.tgrelid FROM pg_catalog.pg_trigger t, up
        WHERE t.oid OPERATOR(pg_catalog.=) up.tgparentid)
        SELECT tgrelid FROM up WHERE tgparentid OPERATOR(pg_catalog.=) 0::pg_catalog.oid";
    let table = spi::value(ORIGIN, &[Value::oid(trigger.oid)])?;
    catalog::qualified_relation(table.get().as_oid())
}
