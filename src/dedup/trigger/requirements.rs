//! Checks that a trigger fires for every change of a row that concerns it. `action=mark` also needs
//! an AFTER trigger with the same arguments.
use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::Columns;
use super::names;
use super::trigger_arguments::{Arguments, Manual};
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::rel::{Rel, Trigger};
use neardup_pg::spi;
use neardup_pg::value::Value;

/// Raises error 55000 if a trigger that marks rows does not fire for all changes that may concern a
/// mark, or if its AFTER trigger is missing. Only warns if a trigger that does not mark rows misses
/// changes. `arguments` and `columns` belong to `trigger`.
pub fn check(table: Rel, trigger: &Trigger, arguments: &Arguments, columns: &Columns) {
    let unseen = unseen_columns(table, trigger, arguments, columns);
    if columns.mark.is_none() {
        if trigger.fires_for(pg_sys::TRIGGER_TYPE_UPDATE) {
            warn_of(table, trigger, arguments, unseen);
        }
        return;
    }
    let events = pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE;
    // An UPDATE of any column can change whether a row meets the condition, so the trigger must
    // fire for all columns.
    let needs_all = matches!(arguments.manual, Manual::Where(_)) && !trigger.columns.is_empty();
    if !trigger.fires_for(events) || !unseen.is_empty() || needs_all {
        let name = catalog::quoted(&trigger.name);
        let command = b"CREATE OR REPLACE TRIGGER ";
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "the trigger that marks rows of table \"{}\" does not fire for all relevant \
                 changes",
                table.shown()
            ),
        )
        .detail(match needs_all {
            true => {
                "The option \"manual\" has a condition, so the trigger must fire for UPDATE of all \
                 columns."
            }
            false => {
                "The trigger must fire for INSERT and UPDATE. If the trigger has a column list, \
                 the list must contain these columns: the fingerprint column or its text column, \
                 the scope columns, the mark column, and the columns that the options confirm and \
                 time name."
            }
        })
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
        raise_without_after_trigger(table, trigger);
    }
}

/// Raises an error: no AFTER trigger renews the marks when an original changes.
fn raise_without_after_trigger(table: Rel, trigger: &Trigger) -> ! {
    let name = [trigger.name.to_bytes(), b"_marks"].concat();
    let name = CString::new(name).expect("made of a C string");
    let (command, events) = (b"CREATE TRIGGER ", b" AFTER UPDATE OR DELETE");
    UserError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "table \"{}\" has no trigger that updates marks when an original changes",
            table.shown()
        ),
    )
    .detail(
        "With action=mark, the table also needs an AFTER UPDATE OR DELETE trigger. This trigger \
         must call neardup_dedup with the same arguments and have no WHEN condition.",
    )
    .hint(create(
        table,
        trigger,
        command,
        &catalog::quoted(&name),
        events,
    ))
    .raise()
}

/// Returns the attribute numbers of the columns that a trigger depends on, but whose UPDATE does
/// not fire the trigger.
fn unseen_columns(
    table: Rel,
    trigger: &Trigger,
    arguments: &Arguments,
    columns: &Columns,
) -> Vec<i16> {
    if trigger.columns.is_empty() {
        return Vec::new();
    }
    // If another trigger computes the fingerprint, the fingerprint can change although the UPDATE
    // does not name its column.
    let texts = (table.triggers().into_iter())
        .filter(|other| columns.text.is_none() && other.function == trigger.function)
        .filter_map(|other| Arguments::read(&other).ok())
        .filter(|other| other.fingerprint == arguments.fingerprint)
        .filter_map(|other| table.column_number(&other.text?));
    let source = columns.text.unwrap_or(columns.fingerprint);
    let scope = columns.scope.iter().map(|scope| scope.column);
    let wanted = (texts.chain([source]).chain(scope))
        .chain(columns.mark)
        .chain(columns.compared_text)
        .chain(columns.time);
    let mut unseen: Vec<i16> = wanted
        .flat_map(|column| unseen_sources(table, trigger, column))
        .collect();
    unseen.sort_unstable();
    unseen.dedup();
    unseen
}

/// Returns the source columns of `column` that can be updated without firing the trigger. The
/// sources are the column itself or, if it is generated, the columns that it is generated from. A
/// trigger that lists a generated column also fires for its sources.
fn unseen_sources(table: Rel, trigger: &Trigger, column: i16) -> Vec<i16> {
    let listed = &trigger.columns;
    if listed.contains(&column) {
        return Vec::new();
    }
    let mut sources = match table.is_generated(column) {
        true => table.columns_of_generated(column),
        false => vec![column],
    };
    // Skips references to the whole row (0), because a trigger can list only columns.
    sources.retain(|source| !listed.contains(source) && *source > 0);
    sources
}

thread_local! {
    /// Warnings that this session has sent: the trigger, and the columns whose UPDATE does not fire
    /// it.
    static WARNED: RefCell<HashSet<(pg_sys::Oid, Vec<i16>)>> = RefCell::default();
}

/// Warns once per session that an UPDATE of the columns `unseen` does not fire a trigger. Skips a
/// column if its UPDATE fires another trigger that compares the same rows. A warning is enough,
/// because the trigger works for the columns that it lists. If this function raised an error
/// instead, every statement that fires the trigger would fail.
fn warn_of(table: Rel, trigger: &Trigger, arguments: &Arguments, mut unseen: Vec<i16>) {
    if unseen.is_empty() {
        return;
    }
    let others: Vec<Trigger> = (table.triggers().into_iter())
        .filter(|other| compares_alike(other, trigger, arguments))
        .collect();
    unseen.retain(|column| {
        !(others.iter()).any(|other| other.columns.is_empty() || other.columns.contains(column))
    });
    let warning = (trigger.oid, unseen);
    if warning.1.is_empty() || !WARNED.with_borrow_mut(|warned| warned.insert(warning.clone())) {
        return;
    }
    let names: Vec<String> = (warning.1.iter())
        .map(|&column| names::shown(&table.column_name(column)))
        .collect();
    let names = names.join(", ");
    UserError::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!(
            "trigger \"{}\" of table \"{}\" does not fire for all relevant changes",
            trigger.name.to_string_lossy(),
            table.shown()
        ),
    )
    .detail(format!(
        "The trigger compares rows by these columns: {names}. An UPDATE of these columns does not \
         fire the trigger."
    ))
    .hint(format!(
        "Add {names} to the UPDATE OF list of the trigger, or omit the list."
    ))
    .warn();
}

/// Returns whether the trigger `other` compares the same rows as `trigger`, and fires for each
/// UPDATE for which `trigger` fires. The column lists of the two triggers may differ.
fn compares_alike(other: &Trigger, trigger: &Trigger, arguments: &Arguments) -> bool {
    let events =
        pg_sys::TRIGGER_TYPE_ROW | pg_sys::TRIGGER_TYPE_BEFORE | pg_sys::TRIGGER_TYPE_UPDATE;
    other.oid != trigger.oid
        && other.function == trigger.function
        && other.fires_for(events)
        && !other.has_condition
        && (other.enabled == trigger.enabled || other.enabled == pg_sys::TRIGGER_FIRES_ALWAYS)
        && Arguments::read(other).is_ok_and(|other| other.compares_alike(arguments))
}

/// Returns whether a table has an AFTER trigger for the same marks as the BEFORE trigger `before`,
/// whose arguments are `arguments`. The AFTER trigger must fire for each UPDATE and DELETE, in all
/// sessions in which `before` fires.
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

/// Returns a CREATE TRIGGER statement for a new trigger with the function and arguments of
/// `trigger`, an existing trigger of `table`. If `trigger` is a partition's copy of a trigger, the
/// new trigger is on the partitioned table. Otherwise it is on `table`. `command` is the statement
/// up to the new trigger's name, `name` is that name, and `events` has the timing and events.
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

/// Returns the qualified name of the table that a trigger was created for. For a partition's copy
/// of a trigger, this is the partitioned table.
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
