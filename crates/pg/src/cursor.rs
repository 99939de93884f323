//! Connections to SPI and their queries: rows one by one as they come, and rows of ours that a
//! query finds by a name.
use core::ffi::{CStr, c_char, c_long};
use core::marker::PhantomData;
use std::ffi::CString;

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, Datum, Oid};

use super::compat;
use super::errors::UserError;
use super::value::Value;

/// Rows fetched at a time.
const FETCH: c_long = 1000;

/// An open connection to SPI.
pub struct Connection(());

/// Runs a function while SPI is connected, for a statement to be named in an error. An error
/// disconnects as well.
pub fn connected<T>(statement: &CStr, run: impl FnOnce(&Connection) -> T) -> T {
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

/// Error XX000: a statement did something else than it says.
pub fn failed(statement: &CStr) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "internal statement of neardup returned an unexpected result",
    )
    .detail(statement.to_string_lossy())
    .raise()
}

/// Value of a parameter of a query, or NULL, with its type.
pub struct Parameter<'a> {
    /// The type.
    pub type_oid: Oid,
    /// The value; `None` for NULL.
    pub value: Option<Value<'a>>,
}

/// Rows of a query that runs. It ends with the transaction, unless it is read.
#[must_use]
pub struct Cursor<'a> {
    portal: pg_sys::Portal,
    _connection: PhantomData<&'a Connection>,
}

impl Connection {
    /// Begins a SELECT, which reads what the active snapshot sees, with the current user's rights.
    /// It finds the rows of `stores` by their names.
    pub fn open(&self, query: &[u8], parameters: &[Parameter], stores: &[&Store]) -> Cursor<'_> {
        let query = CString::new(query).unwrap_or_default();
        let mut types: Vec<Oid> = parameters.iter().map(|one| one.type_oid).collect();
        let mut values: Vec<Datum> = (parameters.iter())
            .map(|one| one.value.map_or(Datum::null(), Value::datum))
            .collect();
        let nulls: Vec<c_char> = (parameters.iter())
            .map(|one| if one.value.is_some() { b' ' } else { b'n' } as c_char)
            .collect();
        // SAFETY: SPI is connected; as many types, values and marks of NULLs as are counted. A
        // store that is known already stays so.
        unsafe {
            for store in stores {
                pg_sys::SPI_register_relation(store.relation);
            }
            let portal = pg_sys::SPI_cursor_open_with_args(
                core::ptr::null(),
                query.as_ptr(),
                parameters.len() as i32,
                types.as_mut_ptr(),
                values.as_mut_ptr(),
                nulls.as_ptr(),
                true,
                0,
            );
            Cursor::new(portal)
        }
    }
}

impl Cursor<'_> {
    /// Wraps an open cursor.
    ///
    /// # Safety
    /// The cursor is of a SELECT, and open; SPI is connected for the result's lifetime.
    pub(super) unsafe fn new(portal: pg_sys::Portal) -> Self {
        Cursor {
            portal,
            _connection: PhantomData,
        }
    }

    /// Returns the types of the columns, and reads no row.
    pub fn columns(self) -> Vec<Oid> {
        // SAFETY: the cursor is open, and has a description of its rows.
        unsafe {
            let descriptor = &*(*self.portal).tupDesc;
            let columns = (1..=descriptor.natts as i16)
                .map(|column| compat::attribute(descriptor, column).atttypid)
                .collect();
            pg_sys::SPI_cursor_close(self.portal);
            columns
        }
    }

    /// Calls a function with the values of each row, `None` for NULL.
    pub fn for_each(self, mut each: impl FnMut(&[Option<Value>])) {
        let mut row = Vec::new();
        loop {
            // SAFETY: the cursor is open, and SPI connected. The rows that were fetched last stay
            // until they are freed here, whatever the function runs.
            unsafe {
                pg_sys::SPI_cursor_fetch(self.portal, true, FETCH);
                let (table, count) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed as usize);
                let descriptor = (*table).tupdesc;
                let columns = (*descriptor).natts as i16;
                for i in 0..count {
                    let tuple = *(*table).vals.add(i);
                    row.clear();
                    row.extend((1..=columns).map(|column| {
                        let mut null = false;
                        let value =
                            pg_sys::SPI_getbinval(tuple, descriptor, column.into(), &mut null);
                        let attribute = compat::attribute(&*descriptor, column);
                        (!null).then(|| Value::new(value, attribute))
                    }));
                    each(&row);
                    pgrx::check_for_interrupts!();
                }
                pg_sys::SPI_freetuptable(table);
                if count == 0 {
                    pg_sys::SPI_cursor_close(self.portal);
                    return;
                }
            }
        }
    }
}

/// Rows that a query finds by a name, as those of triggers find transition tables. Beyond
/// `work_mem` they go to a temporary file.
pub struct Store<'a> {
    rows: *mut pg_sys::Tuplestorestate,
    relation: pg_sys::EphemeralNamedRelation,
    columns: Vec<Oid>,
    _connection: PhantomData<&'a Connection>,
}

impl Connection {
    /// Makes an empty store of rows with these columns.
    pub fn store(&self, name: &'static CStr, columns: &[(&CStr, Oid)]) -> Store<'_> {
        // SAFETY: SPI is connected. The description and the store live in its memory, which
        // outlives its queries.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(columns.len() as i32);
            for (number, (name, type_oid)) in (1..).zip(columns) {
                pg_sys::TupleDescInitEntry(descriptor, number, name.as_ptr(), *type_oid, -1, 0);
            }
            let rows = pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem);
            let size = size_of::<pg_sys::EphemeralNamedRelationData>();
            let relation: pg_sys::EphemeralNamedRelation = pg_sys::palloc0(size).cast();
            (*relation).md.name = name.as_ptr().cast_mut();
            (*relation).md.tupdesc = descriptor;
            (*relation).md.enrtype = pg_sys::EphemeralNameRelationType::ENR_NAMED_TUPLESTORE;
            (*relation).reldata = rows.cast();
            Store {
                rows,
                relation,
                columns: columns.iter().map(|column| column.1).collect(),
                _connection: PhantomData,
            }
        }
    }
}

impl Store<'_> {
    /// Adds a row. Raises an internal error if its values are not of the columns' types.
    pub fn push(&mut self, row: &[Value]) {
        assert!(
            row.iter()
                .map(|value| value.type_oid())
                .eq(self.columns.iter().copied())
        );
        let mut values: Vec<Datum> = row.iter().map(|value| value.datum()).collect();
        let mut nulls = vec![false; row.len()];
        // SAFETY: the store and its description live, and the values are of its types. The number
        // of rows is for the planner.
        unsafe {
            let relation = &mut (*self.relation).md;
            let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::tuplestore_putvalues(self.rows, relation.tupdesc, values, nulls);
            relation.enrtuples += 1.0;
        }
    }
}

impl Drop for Store<'_> {
    fn drop(&mut self) {
        // After an error it goes with SPI's memory, and its file with the transaction.
        if !std::thread::panicking() {
            // SAFETY: made by us, while SPI was connected, and it still is.
            unsafe {
                pg_sys::SPI_unregister_relation((*self.relation).md.name);
                pg_sys::tuplestore_end(self.rows);
            }
        }
    }
}
