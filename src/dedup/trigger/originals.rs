//! The AFTER trigger of `action=mark`: when an original goes or changes, its duplicates are
//! compared again.
use std::collections::HashSet;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::arguments::{Action, Arguments};
use super::columns::{NamedColumns, table};
use super::marks::{Marks, Recheck};
use super::new_row::NewRow;
use super::spi_plans;
use super::usage::misused;
use crate::pg::compat;
use crate::pg::errors::UserError;
use crate::pg::fmgr::Call;
use crate::pg::security_context::AsConstraint;

/// Rows fetched at a time.
const FETCH: core::ffi::c_long = 1000;

unsafe extern "C-unwind" {
    /// Not among pgrx's bindings (utils/datum.h). Compares bytes, uncompressed.
    fn datum_image_eq(
        a: pg_sys::Datum,
        b: pg_sys::Datum,
        by_value: bool,
        length: core::ffi::c_int,
    ) -> bool;
}

/// State of the trigger, kept as long as one statement lasts.
struct State {
    marks: Marks,
    columns: NamedColumns,
}

/// An UPDATE or DELETE of a row, after it.
///
/// # Safety
/// The call is that of an AFTER row trigger with this data.
pub unsafe fn changed(call: &mut Call, data: &pg_sys::TriggerData, updated: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let state = state(call, data);
        let relation = data.tg_relation;
        let old = NewRow::new(data.tg_trigtuple, (*relation).rd_att);
        let columns = &state.columns;
        let (Some(mark), Some(key)) = (columns.mark, columns.key) else {
            return;
        };
        // What was marked itself has no duplicates, nor has what had no key.
        let Some(key_was) = old.get(key).filter(|_| old.get(mark).is_none()) else {
            return;
        };
        if updated {
            let new = NewRow::new(data.tg_newtuple, (*relation).rd_att);
            let mut compared = [key, columns.fingerprint]
                .into_iter()
                .chain(columns.scope.clone());
            let stays = new.get(mark).is_none()
                && compared.all(|column| same(relation, column, old.get(column), new.get(column)));
            if stays {
                return;
            }
        }
        compare_again(relation, &state.marks, key_was);
    }
}

unsafe fn state<'a>(call: &mut Call, data: &pg_sys::TriggerData) -> &'a State {
    // SAFETY: the call's own record; its memory context goes with the statement.
    unsafe {
        let function = call.function();
        if (*function).fn_extra.is_null() {
            let arguments = Arguments::of(&*data.tg_trigger);
            if !matches!(arguments.action, Action::Mark(_)) {
                misused("it is an AFTER trigger, which is for the action mark only");
            }
            let columns = NamedColumns::find(data.tg_relation, &arguments);
            let marks = Marks::of(data.tg_relation, &columns)
                .unwrap_or_else(|| misused("an AFTER trigger needs a key and a mark"));
            let mut context = pgrx::PgMemoryContexts::For((*function).fn_mcxt);
            (*function).fn_extra = context
                .leak_and_drop_on_delete(State { marks, columns })
                .cast();
        }
        &*(*function).fn_extra.cast::<State>()
    }
}

/// Whether two values of a column are the same, byte for byte.
unsafe fn same(
    relation: pg_sys::Relation,
    column: i16,
    a: Option<pg_sys::Datum>,
    b: Option<pg_sys::Datum>,
) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_none() && b.is_none();
    };
    // SAFETY: both are of the column's type. Values may have to be read from TOAST, which may fail.
    unsafe {
        let form = &*compat::attribute((*relation).rd_att, column as usize - 1);
        let (by_value, length) = (form.attbyval, i32::from(form.attlen));
        pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| datum_image_eq(a, b, by_value, length))
    }
}

/// Takes the marks away that name a key, one by one, and has the BEFORE trigger compare these rows.
unsafe fn compare_again(relation: pg_sys::Relation, marks: &Marks, key: pg_sys::Datum) {
    // SAFETY: the relation is open, and the key of its column's type.
    unsafe {
        let _owner = AsConstraint::of(relation);
        let mut missed = HashSet::new();
        loop {
            let missed_now = pass(relation, marks, key);
            if missed_now.is_empty() {
                return;
            }
            // A row that others change meanwhile is found at another address, or not at all, by a
            // snapshot that sees what they did.
            if missed_now.iter().any(|row| missed.contains(row)) {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!("a mark of table \"{}\" cannot be renewed", table(relation)),
                )
                .detail("Another trigger or a rule keeps a marked row from being updated.")
                .hint("Let updates pass that set a mark to NULL.")
                .raise();
            }
            missed = missed_now;
        }
    }
}

/// One pass over the rows that are marked with a key. Returns the addresses of those that were not
/// at their place any more when they were to be written.
unsafe fn pass(
    relation: pg_sys::Relation,
    marks: &Marks,
    key: pg_sys::Datum,
) -> HashSet<(u32, u16)> {
    // SAFETY: the relation is open, and parameters are of the types that go with them. The
    // connection and the cursor are closed here, and by the server after an error.
    unsafe {
        spi_plans::connect(&marks.dependents);
        let plan = spi_plans::plan(&marks.dependents, &[marks.key_type()]);
        // What others have committed in the meantime counts, also where the transaction does not
        // see it.
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
        let mut values = [key];
        let cursor = pg_sys::SPI_cursor_open(
            core::ptr::null(),
            plan,
            values.as_mut_ptr(),
            core::ptr::null(),
            true,
        );
        pg_sys::PopActiveSnapshot();
        let mut missed = HashSet::new();
        loop {
            pg_sys::SPI_cursor_fetch(cursor, true, FETCH);
            let rows = fetched();
            if rows.is_empty() {
                break;
            }
            for mut row in rows {
                if !unmark(relation, marks, &mut row, key) {
                    missed.insert(pgrx::itemptr::item_pointer_get_both(row));
                }
                pgrx::check_for_interrupts!();
            }
        }
        pg_sys::SPI_cursor_close(cursor);
        pg_sys::SPI_finish();
        missed
    }
}

/// The addresses that were fetched last.
unsafe fn fetched() -> Vec<pg_sys::ItemPointerData> {
    // SAFETY: the server has set both; the only column is an address.
    unsafe {
        let (table, count) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed as usize);
        let rows = (0..count)
            .map(|i| {
                let mut null = false;
                let tuple = *(*table).vals.add(i);
                let value = pg_sys::SPI_getbinval(tuple, (*table).tupdesc, 1, &mut null);
                *value.cast_mut_ptr::<pg_sys::ItemPointerData>()
            })
            .collect();
        pg_sys::SPI_freetuptable(table);
        rows
    }
}

/// Takes the mark of one row away. Returns false if the row was not there with this mark.
unsafe fn unmark(
    relation: pg_sys::Relation,
    marks: &Marks,
    row: &mut pg_sys::ItemPointerData,
    key: pg_sys::Datum,
) -> bool {
    // SAFETY: a connection is open; parameters are of the types that go with them.
    unsafe {
        let plan = spi_plans::plan(&marks.unmark, &[pg_sys::TIDOID, marks.key_type()]);
        let mut values = [pg_sys::Datum::from(&raw mut *row), key];
        // As for foreign keys: where the transaction has a snapshot of its own, a row that it does
        // not see is error 40001.
        let (snapshot, crosscheck) =
            match pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 {
                true => {
                    pg_sys::CommandCounterIncrement();
                    (
                        pg_sys::GetLatestSnapshot(),
                        pg_sys::GetTransactionSnapshot(),
                    )
                }
                false => (core::ptr::null_mut(), core::ptr::null_mut()),
            };
        let mut written = 0;
        let compared = Recheck::announce((*relation).rd_id, marks.mark, || {
            let done = pg_sys::SPI_execute_snapshot(
                plan,
                values.as_mut_ptr(),
                core::ptr::null(),
                snapshot,
                crosscheck,
                false,
                true,
                0,
            );
            if done != pg_sys::SPI_OK_UPDATE as i32 {
                spi_plans::failed(&marks.unmark);
            }
            written = pg_sys::SPI_processed;
        });
        if written > 0 && !compared {
            UserError::new(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "the BEFORE trigger of table \"{}\" did not compare a row without its mark",
                    table(relation)
                ),
            )
            .detail("Without it the row would count as an original.")
            .hint("Let the BEFORE trigger fire for UPDATE, without a condition.")
            .raise();
        }
        written > 0
    }
}
