//! Requirements of `action=mark`: a BEFORE trigger that sees every change of a row that may concern
//! its mark, and an AFTER trigger with the same arguments.
use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::arguments::{Arguments, texts};
use super::columns::{Columns, table};
use super::generated;
use super::marks::{qualified, quoted};
use super::spi_plans;
use crate::pg::errors::UserError;

/// Raises error 55000 unless the triggers of a table keep its marks true, if it has marks.
///
/// # Safety
/// The relation is open; the trigger is one of its own, with these arguments and columns.
pub unsafe fn check(
    relation: pg_sys::Relation,
    trigger: &pg_sys::Trigger,
    arguments: &Arguments,
    columns: &Columns,
) {
    if columns.mark.is_none() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if !sees_all(relation, trigger, columns) {
            let statement = create(
                relation,
                trigger,
                b"CREATE OR REPLACE TRIGGER ",
                &quoted(CStr::from_ptr(trigger.tgname)),
                b" BEFORE INSERT OR UPDATE",
            );
            UserError::new(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "the trigger that marks rows of table \"{}\" does not see all changes",
                    table(relation)
                ),
            )
            .detail(
                "It has to fire for INSERT and for UPDATE; a list of columns has to hold those of \
                 the fingerprint or its text, of the scope, and of the mark.",
            )
            .hint(statement)
            .raise();
        }
        if !has_after_trigger(relation, trigger, arguments) {
            let name = [CStr::from_ptr(trigger.tgname).to_bytes(), b"_marks\0"].concat();
            let name = CStr::from_bytes_with_nul(&name).unwrap_or(c"neardup_marks");
            let statement = create(
                relation,
                trigger,
                b"CREATE TRIGGER ",
                &quoted(name),
                b" AFTER UPDATE OR DELETE",
            );
            UserError::new(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "table \"{}\" has no trigger that renews the marks of an original that changes",
                    table(relation)
                ),
            )
            .detail(
                "Marks stay true only if neardup_dedup is called AFTER UPDATE OR DELETE as well, \
                 with the same arguments.",
            )
            .hint(statement)
            .raise();
        }
    }
}

fn fires_for(trigger: &pg_sys::Trigger, events: u32) -> bool {
    u32::from(trigger.tgtype as u16) & events == events
}

/// Whether a BEFORE trigger sees each change that may concern a mark.
unsafe fn sees_all(
    relation: pg_sys::Relation,
    trigger: &pg_sys::Trigger,
    columns: &Columns,
) -> bool {
    if !fires_for(
        trigger,
        pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE,
    ) {
        return false;
    }
    if trigger.tgnattr == 0 {
        return true;
    }
    // SAFETY: the server keeps as many columns as it counts; the relation is open.
    unsafe {
        let listed = core::slice::from_raw_parts(trigger.tgattr, trigger.tgnattr as usize);
        let source = columns.text.unwrap_or(columns.fingerprint);
        // Which columns a generated one depends on is for the user to list.
        let sees_source =
            generated::is_stored(relation, columns.fingerprint) || listed.contains(&source);
        let scope = columns.scope.iter().map(|scope| &scope.column);
        sees_source && (scope.chain(&columns.mark)).all(|column| listed.contains(column))
    }
}

/// Whether a table has an AFTER trigger for the same marks, which fires whenever this one does.
unsafe fn has_after_trigger(
    relation: pg_sys::Relation,
    before: &pg_sys::Trigger,
    arguments: &Arguments,
) -> bool {
    // SAFETY: the relation has triggers, since one has been fired; each is whole.
    unsafe {
        let all = &*(*relation).trigdesc;
        let triggers = core::slice::from_raw_parts(all.triggers, all.numtriggers as usize);
        let timing = pg_sys::TRIGGER_TYPE_TIMING_MASK;
        triggers.iter().any(|trigger| {
            trigger.tgfoid == before.tgfoid
                && u32::from(trigger.tgtype as u16) & timing == pg_sys::TRIGGER_TYPE_AFTER
                && fires_for(
                    trigger,
                    pg_sys::TRIGGER_TYPE_ROW
                        | pg_sys::TRIGGER_TYPE_UPDATE
                        | pg_sys::TRIGGER_TYPE_DELETE,
                )
                && trigger.tgnattr == 0
                && trigger.tgqual.is_null()
                && (trigger.tgenabled == before.tgenabled
                    || trigger.tgenabled as u8 == pg_sys::TRIGGER_FIRES_ALWAYS)
                && Arguments::read(trigger).is_ok_and(|other| other.marks_alike(arguments))
        })
    }
}

/// A statement that makes a trigger with the arguments of an existing one, on the table that the
/// existing one was made for.
unsafe fn create(
    relation: pg_sys::Relation,
    trigger: &pg_sys::Trigger,
    command: &[u8],
    name: &[u8],
    events: &[u8],
) -> String {
    // SAFETY: the caller passes an open relation and one of its triggers.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_func_namespace(trigger.tgfoid));
        let function = pg_sys::get_func_name(trigger.tgfoid);
        let function = pg_sys::quote_qualified_identifier(schema, function);
        let literals: Vec<&[u8]> = (texts(trigger).iter())
            .map(|text| CStr::from_ptr(pg_sys::quote_literal_cstr(text.as_ptr())).to_bytes())
            .collect();
        let statement = [
            command,
            name,
            events,
            b" ON ",
            &made_for(relation, trigger),
            b" FOR EACH ROW EXECUTE FUNCTION ",
            CStr::from_ptr(function).to_bytes(),
            b"(",
            &literals.join(b", ".as_slice()),
            b")",
        ]
        .concat();
        String::from_utf8_lossy(&statement).into_owned()
    }
}

/// The name of the table that a trigger was made for: of a partition's, the partitioned table.
unsafe fn made_for(relation: pg_sys::Relation, trigger: &pg_sys::Trigger) -> Vec<u8> {
    const ORIGIN: &CStr = c"WITH RECURSIVE up AS (
        SELECT tgparentid, tgrelid FROM pg_catalog.pg_trigger
        WHERE oid OPERATOR(pg_catalog.=) $1
        UNION ALL SELECT t.tgparentid, t.tgrelid FROM pg_catalog.pg_trigger t, up
        WHERE t.oid OPERATOR(pg_catalog.=) up.tgparentid)
        SELECT tgrelid FROM up WHERE tgparentid OPERATOR(pg_catalog.=) 0::pg_catalog.oid";
    // SAFETY: the parameter is of the type that goes with it; names are null or C strings.
    unsafe {
        let parameters = [(pg_sys::OIDOID, pg_sys::Datum::from(trigger.tgoid))];
        let Some(oid) = spi_plans::value(ORIGIN, &parameters) else {
            return qualified(relation);
        };
        let oid = pg_sys::Oid::from(oid.value() as u32);
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(oid));
        let name = pg_sys::get_rel_name(oid);
        if name.is_null() {
            return qualified(relation);
        }
        CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name))
            .to_bytes()
            .to_vec()
    }
}
