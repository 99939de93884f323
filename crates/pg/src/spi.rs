//! Statements run through SPI, planned once for each backend.
//!
//! They run as the current user. Their texts name each object with its schema.
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::cursor::Cursor;
pub use super::cursor::{Connection, connected, failed};
use super::value::{OwnedValue, Value};
use super::{compat, server};

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
    let [value] = row(statement, parameters, sees)?;
    Some(value)
}

/// Returns the first values of the first row that a SELECT yields, `None` for NULL; or `None` if
/// there is no row. Raises an internal error if the row has fewer columns.
pub fn row<const COLUMNS: usize>(
    statement: &CStr,
    parameters: &[Value],
    sees: Sees,
) -> Option<[Option<OwnedValue>; COLUMNS]> {
    connected(statement, |connection| {
        let reads = sees == Sees::SameAsOuter;
        connection.execute(statement, parameters, pg_sys::SPI_OK_SELECT, reads);
        // SAFETY: the statement has just yielded its rows; the columns are counted.
        unsafe {
            (pg_sys::SPI_processed > 0).then(|| {
                let table = &*pg_sys::SPI_tuptable;
                assert!((*table.tupdesc).natts as usize >= COLUMNS);
                core::array::from_fn(|at| {
                    let (column, mut null) = (at as i16 + 1, true);
                    let value =
                        pg_sys::SPI_getbinval(*table.vals, table.tupdesc, column.into(), &mut null);
                    let attribute = compat::attribute(&*table.tupdesc, column);
                    (!null).then(|| Value::new(value, attribute).to_owned())
                })
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
        // SAFETY: the plan is of a SELECT with these parameters.
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
            Cursor::new(cursor)
        };
        cursor.for_each(|row| {
            let row: Vec<_> = row.iter().map(|value| value.map(Value::to_owned)).collect();
            each(connection, &row);
        });
    });
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
