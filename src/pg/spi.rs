//! Statements run through SPI, planned once for each backend.
//!
//! They run as the current user. Their texts name each object with its schema.
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::errors::UserError;
use super::value::{OwnedValue, Value};
use super::{compat, server};

/// Rows fetched at a time.
const FETCH: core::ffi::c_long = 1000;

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

/// Returns the one value that a SELECT yields; `None` for NULL.
pub fn value(statement: &CStr, parameters: &[Value]) -> Option<OwnedValue> {
    first(statement, parameters, Sees::SameAsOuter).flatten()
}

/// Returns the first value of the first row that a SELECT yields: `None` if there is no row, and
/// `Some(None)` for NULL.
pub fn first(statement: &CStr, parameters: &[Value], sees: Sees) -> Option<Option<OwnedValue>> {
    connected(statement, |connection| {
        let reads = sees == Sees::SameAsOuter;
        connection.execute(statement, parameters, pg_sys::SPI_OK_SELECT, reads);
        // SAFETY: the statement has just yielded its rows, with at least one column each.
        unsafe {
            (pg_sys::SPI_processed > 0).then(|| {
                let table = &*pg_sys::SPI_tuptable;
                let mut null = true;
                let value = pg_sys::SPI_getbinval(*table.vals, table.tupdesc, 1, &mut null);
                let column = compat::attribute(&*table.tupdesc, 1);
                (!null).then(|| Value::new(value, column).to_owned())
            })
        }
    })
}

/// Runs an INSERT.
pub fn insert(statement: &CStr, parameters: &[Value]) {
    connected(statement, |connection| {
        connection.execute(statement, parameters, pg_sys::SPI_OK_INSERT, false);
    });
}

/// Calls a function for each address that a SELECT yields, which sees what others have committed
/// until now, also where the transaction does not see it.
pub fn for_each_address(
    statement: &CStr,
    parameters: &[Value],
    mut each: impl FnMut(&Connection, Tid),
) {
    for_each_row(statement, parameters, |connection, row| {
        if let Some(address) = row.first().and_then(Option::as_ref) {
            each(connection, address.as_tid());
        }
    });
}

/// Calls a function with the values of each row that a SELECT yields, `None` for NULL. The
/// statement sees what others have committed until now, also where the transaction does not.
pub fn for_each_row(
    statement: &CStr,
    parameters: &[Value],
    mut each: impl FnMut(&Connection, &[Option<OwnedValue>]),
) {
    connected(statement, |connection| {
        let plan = connection.plan(statement, parameters);
        let mut values = datums(parameters);
        // SAFETY: the plan is of a SELECT with these parameters. The cursor is closed after the
        // last row, and by the server after an error.
        let cursor = unsafe {
            pg_sys::CommandCounterIncrement();
            pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
            let cursor = pg_sys::SPI_cursor_open(
                core::ptr::null(),
                plan,
                values.as_mut_ptr(),
                core::ptr::null(),
                true,
            );
            pg_sys::PopActiveSnapshot();
            cursor
        };
        loop {
            // SAFETY: the cursor is open until there are no more rows.
            let rows = unsafe { fetch(cursor) };
            if rows.is_empty() {
                break;
            }
            for row in rows {
                each(connection, &row);
                pgrx::check_for_interrupts!();
            }
        }
    });
}

/// The next rows; without any, the cursor is closed.
///
/// # Safety
/// The cursor is open.
unsafe fn fetch(cursor: pg_sys::Portal) -> Vec<Vec<Option<OwnedValue>>> {
    // SAFETY: the caller's promise; the values are copied before their tuples are freed.
    unsafe {
        pg_sys::SPI_cursor_fetch(cursor, true, FETCH);
        let (table, count) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed as usize);
        let descriptor = (*table).tupdesc;
        let columns = (*descriptor).natts as i16;
        let value = |tuple, column: i16| {
            let mut null = false;
            let value = pg_sys::SPI_getbinval(tuple, descriptor, column.into(), &mut null);
            (!null).then(|| Value::new(value, compat::attribute(&*descriptor, column)).to_owned())
        };
        let row = |i: usize| {
            let tuple = *(*table).vals.add(i);
            (1..=columns).map(|column| value(tuple, column)).collect()
        };
        let rows = (0..count).map(row).collect();
        pg_sys::SPI_freetuptable(table);
        if count == 0 {
            pg_sys::SPI_cursor_close(cursor);
        }
        rows
    }
}

/// An open connection to SPI.
pub struct Connection(());

/// Runs a function while SPI is connected. An error disconnects as well.
fn connected<T>(statement: &CStr, run: impl FnOnce(&Connection) -> T) -> T {
    // SAFETY: disconnects from what it has connected to; what was connected meanwhile has been
    // disconnected.
    unsafe {
        if pg_sys::SPI_connect() != pg_sys::SPI_OK_CONNECT as i32 {
            failed(statement);
        }
        let result = run(&Connection(()));
        pg_sys::SPI_finish();
        result
    }
}

impl Connection {
    fn plan(&self, statement: &CStr, parameters: &[Value]) -> pg_sys::SPIPlanPtr {
        let mut types: Vec<pg_sys::Oid> = parameters.iter().map(|value| value.type_oid()).collect();
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

    fn execute(&self, statement: &CStr, parameters: &[Value], expected: u32, only_reads: bool) {
        let plan = self.plan(statement, parameters);
        let mut values = datums(parameters);
        let null = core::ptr::null();
        // SAFETY: the plan was made for parameters of these types.
        let done =
            unsafe { pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), null, only_reads, 0) };
        if done != expected as i32 {
            failed(statement);
        }
    }

    /// Runs an UPDATE as the server runs those of foreign keys, and returns how many rows it wrote:
    /// where the transaction has a snapshot of its own, a row that it does not see is error 40001.
    pub fn update_as_constraint(&self, statement: &CStr, parameters: &[Value]) -> u64 {
        let plan = self.plan(statement, parameters);
        let mut values = datums(parameters);
        // SAFETY: the plan was made for parameters of these types.
        unsafe {
            let (snapshot, crosscheck) = match has_transaction_snapshot() {
                true => {
                    pg_sys::CommandCounterIncrement();
                    let latest = pg_sys::GetLatestSnapshot();
                    (latest, pg_sys::GetTransactionSnapshot())
                }
                false => (core::ptr::null_mut(), core::ptr::null_mut()),
            };
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
                failed(statement);
            }
            pg_sys::SPI_processed
        }
    }
}

/// Returns whether one snapshot serves all statements of the transaction.
pub fn has_transaction_snapshot() -> bool {
    server::isolation_level() >= pg_sys::XACT_REPEATABLE_READ as i32
}

fn datums(parameters: &[Value]) -> Vec<pg_sys::Datum> {
    parameters.iter().map(|value| value.datum()).collect()
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
