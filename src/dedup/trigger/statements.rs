//! Statements that the trigger runs, planned once for each backend.
//!
//! They run as the user whose statement fired the trigger. Each name in them has its schema.
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::errors::UserError;

/// A statement with the types of its parameters.
type Statement = (CString, Vec<pg_sys::Oid>);

thread_local! {
    /// The server sees to it that a plan follows changes of what it depends on.
    static PLANS: RefCell<HashMap<Statement, pg_sys::SPIPlanPtr>> = RefCell::default();
}

/// The one value that a statement yields, in the current memory context; `None` for NULL.
///
/// # Safety
/// The parameters are of the types that go with them.
pub unsafe fn value(
    statement: &CStr,
    parameters: &[(pg_sys::Oid, pg_sys::Datum)],
) -> Option<pg_sys::Datum> {
    // SAFETY: the connection is closed before anything returns; errors close it as well.
    unsafe {
        run(statement, parameters, pg_sys::SPI_OK_SELECT, true);
        let table = &*pg_sys::SPI_tuptable;
        let mut null = true;
        let value = pg_sys::SPI_getbinval(*table.vals, table.tupdesc, 1, &mut null);
        let column = &*crate::pg::compat::attribute(table.tupdesc, 0);
        // Copied to where the caller was before it connected.
        let value = (!null)
            .then(|| pg_sys::SPI_datumTransfer(value, column.attbyval, i32::from(column.attlen)));
        pg_sys::SPI_finish();
        value
    }
}

/// Runs an INSERT.
///
/// # Safety
/// The parameters are of the types that go with them.
pub unsafe fn insert(statement: &CStr, parameters: &[(pg_sys::Oid, pg_sys::Datum)]) {
    // SAFETY: as in `value`.
    unsafe {
        run(statement, parameters, pg_sys::SPI_OK_INSERT, false);
        pg_sys::SPI_finish();
    }
}

/// Leaves the connection open, for the result to be read. What only reads must not make rows of the
/// outer statement visible to whatever follows.
unsafe fn run(
    statement: &CStr,
    parameters: &[(pg_sys::Oid, pg_sys::Datum)],
    expected: u32,
    only_reads: bool,
) {
    let mut types: Vec<pg_sys::Oid> = parameters.iter().map(|(oid, _)| *oid).collect();
    let mut values: Vec<pg_sys::Datum> = parameters.iter().map(|(_, value)| *value).collect();
    // SAFETY: as many types and values as are counted. A plan that is kept stays for good.
    unsafe {
        if pg_sys::SPI_connect() != pg_sys::SPI_OK_CONNECT as i32 {
            failed(statement);
        }
        let known = (statement.to_owned(), types.clone());
        let plan = PLANS.with_borrow(|plans| plans.get(&known).copied());
        let plan = plan.unwrap_or_else(|| {
            let count = types.len() as i32;
            let plan = pg_sys::SPI_prepare(statement.as_ptr(), count, types.as_mut_ptr());
            if plan.is_null() || pg_sys::SPI_keepplan(plan) != 0 {
                failed(statement);
            }
            PLANS.with_borrow_mut(|plans| plans.insert(known, plan));
            plan
        });
        let done =
            pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), core::ptr::null(), only_reads, 0);
        if done != expected as i32 {
            failed(statement);
        }
    }
}

fn failed(statement: &CStr) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "a statement of neardup_dedup did not do what it should",
    )
    .detail(statement.to_string_lossy())
    .raise()
}
