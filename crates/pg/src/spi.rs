//! SQL statements that Rust code runs by the server's programming interface (SPI). Each backend
//! plans a statement once.
//!
//! Statements run as the current user. They must qualify each object with its schema.
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::cursor::Cursor;
pub use super::cursor::{Connection, connected, failed};
use super::value::{OwnedValue, Value};
use super::{compat, server};

/// Text of a statement and the types of its parameters.
type Statement = (CString, Vec<pg_sys::Oid>);

thread_local! {
    /// Plans of the statements that this backend has run. The server replans a statement when an
    /// object that it uses changes.
    static PLANS: RefCell<HashMap<Statement, pg_sys::SPIPlanPtr>> = RefCell::default();
}

/// Selects the changes that an SPI statement sees. A function of this extension runs the SPI
/// statement. The outer statement, which the variants refer to, is the SQL statement that calls
/// this function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// The statement sees the rows that the outer statement sees, without the changes that the
    /// outer statement itself has made.
    SameAsOuter,
    /// The statement also sees the changes that this transaction has made since the outer statement
    /// began and, in READ COMMITTED, the changes that other transactions have committed since then.
    Latest,
}

/// Runs a SELECT that returns one row with one column. `parameters` are `$1`, `$2` and so on.
/// Returns the value in the row; `None` for NULL. The SELECT sees what the outer statement sees.
pub fn value(statement: &CStr, parameters: &[Value]) -> Option<OwnedValue> {
    first(statement, parameters, Sees::SameAsOuter).flatten()
}

/// Runs a SELECT with `parameters` as `$1`, `$2` and so on. Returns the first value of the first
/// row: `None` if there is no row, and `Some(None)` for NULL. `sees` selects the changes that the
/// SELECT sees.
pub fn first(statement: &CStr, parameters: &[Value], sees: Sees) -> Option<Option<OwnedValue>> {
    let [value] = row(statement, parameters, sees)?;
    Some(value)
}

/// Runs a SELECT with `parameters` as `$1`, `$2` and so on. Returns the first `COLUMNS` values of
/// the first row, each `None` for NULL. Returns `None` if there is no row. `sees` selects the
/// changes that the SELECT sees. Raises an internal error if the row has fewer columns.
pub fn row<const COLUMNS: usize>(
    statement: &CStr,
    parameters: &[Value],
    sees: Sees,
) -> Option<[Option<OwnedValue>; COLUMNS]> {
    connected(statement, |connection| {
        let reads = sees == Sees::SameAsOuter;
        connection.execute(statement, parameters, pg_sys::SPI_OK_SELECT, reads);
        // SAFETY: the statement has just returned its rows; the number of columns is checked.
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

/// Runs an INSERT statement with `parameters` as `$1`, `$2` and so on.
pub fn insert(statement: &CStr, parameters: &[Value]) {
    connected(statement, |connection| {
        connection.execute(statement, parameters, pg_sys::SPI_OK_INSERT, false);
    });
}

/// Runs a SELECT whose first column is a `tid`, with `parameters` as `$1`, `$2` and so on. Calls
/// `each` with each row address that the SELECT returns; skips NULLs. `each` can run other
/// statements through the connection. The SELECT uses the latest snapshot, so it sees all committed
/// rows, even if the transaction's snapshot does not.
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

/// Runs a SELECT with `parameters` as `$1`, `$2` and so on. Calls `each` with the values of each
/// row, `None` for NULL. `each` can run other statements through the connection. The SELECT uses
/// the latest snapshot, as in [`for_each_address`].
pub fn for_each_row(
    statement: &CStr,
    parameters: &[Value],
    mut each: impl FnMut(&Connection, &[Option<OwnedValue>]),
) {
    connected(statement, |connection| {
        let plan = connection.plan(statement, parameters);
        let mut values = datums(parameters);
        // SAFETY: the plan is for a SELECT with these parameters.
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
    /// Returns the plan of a statement whose parameters have the types of `parameters`. Makes the
    /// plan if this backend does not have it yet.
    fn plan(&self, statement: &CStr, parameters: &[Value]) -> pg_sys::SPIPlanPtr {
        let mut types: Vec<pg_sys::Oid> = parameters.iter().map(|value| value.type_oid()).collect();
        let known = (statement.to_owned(), types.clone());
        let plan = PLANS.with_borrow(|plans| plans.get(&known).copied());
        plan.unwrap_or_else(|| {
            // SAFETY: `count` is the number of types. A kept plan is never freed.
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

    /// Runs a statement with `parameters` as `$1`, `$2` and so on. `expected` is the result code
    /// for this kind of statement (`SPI_OK_...`). If `only_reads` is true, the statement sees what
    /// the outer statement sees. Otherwise the statement uses a new snapshot.
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

    /// Runs an UPDATE as the server runs the UPDATEs of foreign keys, which see all committed rows.
    /// Returns the number of updated rows. In REPEATABLE READ and SERIALIZABLE, raises error 40001
    /// for a row that the transaction's snapshot does not see.
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

/// Returns whether all statements of the transaction use the same snapshot (REPEATABLE READ or
/// SERIALIZABLE).
pub fn has_transaction_snapshot() -> bool {
    server::isolation_level() >= pg_sys::XACT_REPEATABLE_READ as i32
}

fn datums(parameters: &[Value]) -> Vec<pg_sys::Datum> {
    parameters.iter().map(|value| value.datum()).collect()
}
