//! Statements that the trigger runs, planned once for each backend.
//!
//! They run as the user whose statement fired the trigger, but for those that keep marks, which run
//! as the table's owner. Each name in them has its schema.
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

/// Which rows a statement sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// The rows that the outer statement sees. Those that it has written stay invisible to all that
    /// follows.
    SameAsOuter,
    /// Also what has been written since, by this transaction, and in READ COMMITTED by others.
    Latest,
}

/// The one value that a statement yields, in the current memory context; `None` for NULL.
///
/// # Safety
/// The parameters are of the types that go with them.
pub unsafe fn value(
    statement: &CStr,
    parameters: &[(pg_sys::Oid, pg_sys::Datum)],
) -> Option<pg_sys::Datum> {
    // SAFETY: the caller's promise.
    unsafe { first(statement, parameters, Sees::SameAsOuter) }.flatten()
}

/// The first value of the first row that a SELECT yields, in the current memory context: `None` if
/// there is no row, and `Some(None)` for NULL.
///
/// # Safety
/// The parameters are of the types that go with them.
pub unsafe fn first(
    statement: &CStr,
    parameters: &[(pg_sys::Oid, pg_sys::Datum)],
    sees: Sees,
) -> Option<Option<pg_sys::Datum>> {
    // SAFETY: the connection is closed before anything returns; errors close it as well.
    unsafe {
        let reads = sees == Sees::SameAsOuter;
        run(statement, parameters, pg_sys::SPI_OK_SELECT, reads);
        let found = (pg_sys::SPI_processed > 0).then(|| {
            let table = &*pg_sys::SPI_tuptable;
            let mut null = true;
            let value = pg_sys::SPI_getbinval(*table.vals, table.tupdesc, 1, &mut null);
            let column = &*crate::pg::compat::attribute(table.tupdesc, 0);
            // Copied to where the caller was before it connected.
            (!null).then(|| {
                pg_sys::SPI_datumTransfer(value, column.attbyval, i32::from(column.attlen))
            })
        });
        pg_sys::SPI_finish();
        found
    }
}

/// Runs an INSERT.
///
/// # Safety
/// The parameters are of the types that go with them.
pub unsafe fn insert(statement: &CStr, parameters: &[(pg_sys::Oid, pg_sys::Datum)]) {
    // SAFETY: as in `first`.
    unsafe {
        run(statement, parameters, pg_sys::SPI_OK_INSERT, false);
        pg_sys::SPI_finish();
    }
}

/// Opens a connection. It is closed by `SPI_finish`, and by an error.
pub fn connect(statement: &CStr) {
    // SAFETY: changes this backend's state.
    if unsafe { pg_sys::SPI_connect() } != pg_sys::SPI_OK_CONNECT as i32 {
        failed(statement);
    }
}

/// The plan of a statement, within a connection.
///
/// # Safety
/// A connection is open.
pub unsafe fn plan(statement: &CStr, types: &[pg_sys::Oid]) -> pg_sys::SPIPlanPtr {
    let mut types = types.to_vec();
    let known = (statement.to_owned(), types.clone());
    let plan = PLANS.with_borrow(|plans| plans.get(&known).copied());
    plan.unwrap_or_else(|| {
        // SAFETY: as many types as are counted. A plan that is kept stays for good.
        let plan = unsafe {
            let count = types.len() as i32;
            let plan = pg_sys::SPI_prepare(statement.as_ptr(), count, types.as_mut_ptr());
            if plan.is_null() || pg_sys::SPI_keepplan(plan) != 0 {
                failed(statement);
            }
            plan
        };
        PLANS.with_borrow_mut(|plans| plans.insert(known, plan));
        plan
    })
}

/// Leaves the connection open, for the result to be read.
unsafe fn run(
    statement: &CStr,
    parameters: &[(pg_sys::Oid, pg_sys::Datum)],
    expected: u32,
    only_reads: bool,
) {
    let types: Vec<pg_sys::Oid> = parameters.iter().map(|(oid, _)| *oid).collect();
    let mut values: Vec<pg_sys::Datum> = parameters.iter().map(|(_, value)| *value).collect();
    // SAFETY: as many types and values as are counted.
    unsafe {
        connect(statement);
        let plan = plan(statement, &types);
        let done =
            pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), core::ptr::null(), only_reads, 0);
        if done != expected as i32 {
            failed(statement);
        }
    }
}

/// Error XX000: a statement did something else than it says.
pub fn failed(statement: &CStr) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "a statement of neardup_dedup did not do what it should",
    )
    .detail(statement.to_string_lossy())
    .raise()
}
