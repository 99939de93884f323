//! Connections to SPI, the server's interface for running SQL. Cursors read the rows of a query in
//! batches, and a query can read rows that this extension supplies under a relation name.
use core::ffi::{CStr, c_char, c_long};
use core::marker::PhantomData;
use std::ffi::CString;

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, Datum, Oid};

use super::compat;
use super::errors::UserError;
use super::value::Value;

/// Number of rows that a cursor fetches at a time.
const FETCH_ROWS: c_long = 1000;

/// Open connection to SPI, for the function passed to [`connected`].
pub struct Connection(());

/// Connects to SPI, runs a function and disconnects. Returns the function's result. If SPI cannot
/// connect, the error names `statement`.
pub fn connected<T>(statement: &CStr, run: impl FnOnce(&Connection) -> T) -> T {
    // SAFETY: connects and disconnects once. Nested connections have ended before that.
    unsafe {
        if pg_sys::SPI_connect() != pg_sys::SPI_OK_CONNECT as i32 {
            failed(statement);
        }
        let result = run(&Connection(()));
        pg_sys::SPI_finish();
        result
    }
}

/// Raises error XX000: a statement of this extension returned an unexpected result. `statement` is
/// the detail of the error.
pub fn failed(statement: &CStr) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "internal statement of neardup returned an unexpected result",
    )
    .detail(statement.to_string_lossy())
    .raise()
}

/// Value of a parameter of a query (`None` for NULL), with its type.
pub struct Parameter<'a> {
    /// OID of the parameter's type.
    pub type_oid: Oid,
    /// The parameter's value; `None` for NULL.
    pub value: Option<Value<'a>>,
}

/// Cursor of a running query. [`Cursor::columns`] and [`Cursor::for_each`] close it. Otherwise it
/// ends with the transaction.
#[must_use]
pub struct Cursor<'a> {
    portal: pg_sys::Portal,
    _connection: PhantomData<&'a Connection>,
}

impl Connection {
    /// Begins a SELECT with the active snapshot and the rights of the current user, and returns its
    /// cursor. `parameters` are `$1`, `$2` and so on. The query can read the rows of `stores` under
    /// their relation names.
    pub fn open(&self, query: &[u8], parameters: &[Parameter], stores: &[&Store]) -> Cursor<'_> {
        let query = CString::new(query).unwrap_or_default();
        let mut types: Vec<Oid> = parameters.iter().map(|one| one.type_oid).collect();
        let mut values: Vec<Datum> = (parameters.iter())
            .map(|one| one.value.map_or(Datum::null(), Value::datum))
            .collect();
        let nulls: Vec<c_char> = (parameters.iter())
            .map(|one| if one.value.is_some() { b' ' } else { b'n' } as c_char)
            .collect();
        // SAFETY: SPI is connected; the arrays of types, values and NULL flags have the passed
        // length. A store that is already registered stays registered.
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
    /// Wraps a cursor that SPI has opened.
    ///
    /// # Safety
    /// The cursor is open and runs a SELECT. SPI stays connected while the result lives.
    pub(super) unsafe fn new(portal: pg_sys::Portal) -> Self {
        Cursor {
            portal,
            _connection: PhantomData,
        }
    }

    /// Returns the OIDs of the types of the query's columns, and closes the cursor without reading
    /// rows.
    pub fn columns(self) -> Vec<Oid> {
        // SAFETY: the cursor is open and has a row descriptor.
        unsafe {
            let descriptor = &*(*self.portal).tupDesc;
            let columns = (1..=descriptor.natts as i16)
                .map(|column| compat::attribute(descriptor, column).atttypid)
                .collect();
            pg_sys::SPI_cursor_close(self.portal);
            columns
        }
    }

    /// Reads all rows of the query, calls `each` with the values of each row (`None` for NULL), and
    /// closes the cursor.
    pub fn for_each(self, mut each: impl FnMut(&[Option<Value>])) {
        let mut row = Vec::new();
        loop {
            // SAFETY: the cursor is open and SPI is connected. Fetched rows stay until they are
            // freed here, even if `each` runs other queries.
            unsafe {
                pg_sys::SPI_cursor_fetch(self.portal, true, FETCH_ROWS);
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

/// Rows that this extension supplies to queries under a relation name, like a trigger's transition
/// table. Rows beyond `work_mem` are in a temporary file.
pub struct Store<'a> {
    rows: *mut pg_sys::Tuplestorestate,
    relation: pg_sys::EphemeralNamedRelation,
    /// OIDs of the columns' types.
    columns: Vec<Oid>,
    _connection: PhantomData<&'a Connection>,
}

impl Connection {
    /// Makes an empty store, which queries of this connection can read as the relation `name`.
    /// `columns` has the name and the type of each column.
    pub fn store(&self, name: &'static CStr, columns: &[(&CStr, Oid)]) -> Store<'_> {
        // SAFETY: SPI is connected. The descriptor and the store live in SPI's memory, which
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
    /// Adds a row to the store. Raises an internal error if the types of its values are not the
    /// types of the store's columns.
    pub fn push(&mut self, row: &[Value]) {
        assert!(
            row.iter()
                .map(|value| value.type_oid())
                .eq(self.columns.iter().copied())
        );
        let mut values: Vec<Datum> = row.iter().map(|value| value.datum()).collect();
        let mut nulls = vec![false; row.len()];
        // SAFETY: the store and its descriptor live, and the values have its types. The planner
        // uses the row count.
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
        // After an error the server frees the store's memory and file.
        if !std::thread::panicking() {
            // SAFETY: this connection made the store and is still open.
            unsafe {
                pg_sys::SPI_unregister_relation((*self.relation).md.name);
                pg_sys::tuplestore_end(self.rows);
            }
        }
    }
}
