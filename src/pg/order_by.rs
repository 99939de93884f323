//! An order that a caller gives as an SQL expression list. Its expressions are evaluated as the
//! caller.
use std::ffi::{CStr, CString};

use neardup_blocktree::key::Tid;
use pgrx::pg_sys::PgTryBuilder;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::errors::UserError;
use super::rel::Rel;
use super::tid::{item_pointer, tid_of};

/// Rows fetched at a time.
const FETCH: core::ffi::c_long = 10_000;

/// The name of the rows to be ordered, in the query that does it.
const ROWS: &CStr = c"neardup rows to order";

/// List of expressions as after ORDER BY, as written by a caller, in the server's encoding.
pub struct OrderBy(Vec<u8>);

impl OrderBy {
    /// Checks that a text is a list as after ORDER BY and nothing else: no further clause, no
    /// second statement. What its expressions mean is for the query to find out, with the caller's
    /// rights.
    pub fn parse(name: &str, text: &[u8]) -> Self {
        let wrong = |detail: String| -> ! {
            UserError::invalid_parameter(format!("{name} is no list of expressions to order by"))
                .detail(detail)
                .hint("Write what could follow ORDER BY, such as 'length(body) DESC, id'.")
                .raise()
        };
        // The line end closes a comment.
        let Ok(query) = CString::new([b"SELECT ORDER BY ", text, b"\n"].concat()) else {
            wrong("It holds a zero byte.".to_owned())
        };
        let parsed = PgTryBuilder::new(|| Ok(is_order(&query)))
            .catch_when(PgSqlErrorCode::ERRCODE_SYNTAX_ERROR, |error| {
                Err(message(error))
            })
            .execute();
        match parsed {
            Err(message) => wrong(format!("The parser says: {message}.")),
            Ok(false) => wrong("It holds more than that.".to_owned()),
            Ok(true) => OrderBy(text.to_vec()),
        }
    }

    /// Gives rows of a table, which `next` names by their addresses, `count` of them, in this
    /// order, those that are equal by address. The query runs as the caller's own, with the active
    /// snapshot, and with its `work_mem`.
    pub fn rows(
        &self,
        table: Rel,
        count: u64,
        next: &mut dyn FnMut() -> Option<Tid>,
        mut each: impl FnMut(Tid),
    ) {
        let query = [
            b"SELECT ctid FROM ONLY ",
            table.qualified_name().as_slice(),
            b" WHERE ctid OPERATOR(pg_catalog.=) ANY (SELECT ctid_of_row FROM \"",
            ROWS.to_bytes(),
            b"\") ORDER BY ",
            &self.0,
            b"\n, ctid",
        ]
        .concat();
        // SAFETY: everything made here goes with SPI's own memory.
        unsafe {
            // Neither the name nor the list holds a zero byte.
            let query = CString::new(query).unwrap_or_default();
            pg_sys::SPI_connect();
            let store = store_rows(count, next);
            let portal = pg_sys::SPI_cursor_open_with_args(
                core::ptr::null(),
                query.as_ptr(),
                0,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::null(),
                true,
                0,
            );
            loop {
                pg_sys::SPI_cursor_fetch(portal, true, FETCH);
                let (table, count) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed);
                for i in 0..count as usize {
                    let mut null = false;
                    let tuple = *(*table).vals.add(i);
                    let value = pg_sys::SPI_getbinval(tuple, (*table).tupdesc, 1, &raw mut null);
                    each(tid_of(*value.cast_mut_ptr()));
                }
                pg_sys::SPI_freetuptable(table);
                if count == 0 {
                    break;
                }
                pgrx::check_for_interrupts!();
            }
            pg_sys::SPI_cursor_close(portal);
            pg_sys::tuplestore_end(store);
            pg_sys::SPI_finish();
        }
    }
}

/// Puts addresses of rows where SPI's queries find them by a name, as triggers find transition
/// tables. Beyond `work_mem` they go to a temporary file.
///
/// # Safety
/// SPI is connected.
unsafe fn store_rows(
    count: u64,
    next: &mut dyn FnMut() -> Option<Tid>,
) -> *mut pg_sys::Tuplestorestate {
    // SAFETY: the caller's promise. The descriptor, the store and its name live in SPI's memory,
    // which outlives the query.
    unsafe {
        let descriptor = pg_sys::CreateTemplateTupleDesc(1);
        pg_sys::TupleDescInitEntry(
            descriptor,
            1,
            c"ctid_of_row".as_ptr(),
            pg_sys::TIDOID,
            -1,
            0,
        );
        let store = pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem);
        while let Some(tid) = next() {
            let mut pointer = item_pointer(tid);
            let mut value = pg_sys::Datum::from(&raw mut pointer);
            let mut null = false;
            pg_sys::tuplestore_putvalues(store, descriptor, &raw mut value, &raw mut null);
        }
        let size = size_of::<pg_sys::EphemeralNamedRelationData>();
        let relation = pg_sys::palloc0(size).cast::<pg_sys::EphemeralNamedRelationData>();
        (*relation).md.name = ROWS.as_ptr().cast_mut();
        (*relation).md.tupdesc = descriptor;
        (*relation).md.enrtype = pg_sys::EphemeralNameRelationType::ENR_NAMED_TUPLESTORE;
        (*relation).md.enrtuples = count as f64;
        (*relation).reldata = store.cast();
        pg_sys::SPI_register_relation(relation);
        store
    }
}

fn message(error: pg_sys::panic::CaughtError) -> String {
    use pg_sys::panic::CaughtError::{ErrorReport, PostgresError, RustPanic};
    match error {
        PostgresError(report) | ErrorReport(report) => report.message().to_owned(),
        RustPanic { ereport, .. } => ereport.message().to_owned(),
    }
}

/// Returns whether a query is one SELECT with an order and nothing behind it. Raises the parser's
/// errors.
fn is_order(query: &CStr) -> bool {
    let mode = pg_sys::RawParseMode::RAW_PARSE_DEFAULT;
    // SAFETY: the parser only reads the text, and what it builds goes with the memory context. When
    // it fails it holds nothing else. Tags say which structs the nodes are.
    unsafe {
        let statements = pg_sys::raw_parser(query.as_ptr(), mode);
        let statements = pgrx::PgList::<pg_sys::RawStmt>::from_pg(statements);
        let (1, Some(statement)) = (statements.len(), statements.get_ptr(0)) else {
            return false;
        };
        let node = (*statement).stmt;
        if (*node).type_ != pg_sys::NodeTag::T_SelectStmt {
            return false;
        }
        let select = &*node.cast::<pg_sys::SelectStmt>();
        select.op == pg_sys::SetOperation::SETOP_NONE
            && !select.sortClause.is_null()
            && select.targetList.is_null()
            && select.limitOffset.is_null()
            && select.limitCount.is_null()
            && select.lockingClause.is_null()
            && select.withClause.is_null()
            && select.intoClause.is_null()
    }
}

/// An array of row addresses, in the current memory context.
pub fn tid_array(rows: &[Tid]) -> pg_sys::Datum {
    let mut pointers: Vec<pg_sys::ItemPointerData> =
        (rows.iter()).map(|&tid| item_pointer(tid)).collect();
    let mut datums: Vec<pg_sys::Datum> = (pointers.iter_mut())
        .map(|pointer| pg_sys::Datum::from(&raw mut *pointer))
        .collect();
    // SAFETY: addresses of six bytes each, passed by reference and aligned to two.
    let array = unsafe {
        pg_sys::construct_array(
            datums.as_mut_ptr(),
            datums.len() as i32,
            pg_sys::TIDOID,
            size_of::<pg_sys::ItemPointerData>() as i32,
            false,
            pg_sys::TYPALIGN_SHORT as core::ffi::c_char,
        )
    };
    pg_sys::Datum::from(array)
}
