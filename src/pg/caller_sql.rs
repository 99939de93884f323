//! Parts of a query that a caller gives as text: an order, a condition. They are parsed by
//! themselves first, so that nothing else comes with them, and evaluated as the caller.
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys::PgTryBuilder;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::compat;
use super::errors::UserError;
use super::rel::Rel;
use super::spi::failed;
use super::tid::{item_pointer, tid_of};

/// Rows fetched at a time.
const FETCH: core::ffi::c_long = 10_000;

/// The name of the rows to be ordered, in the query that does it.
pub(super) const ROWS: &CStr = c"neardup rows to order";

/// Clause of a SELECT that stands alone in a text.
pub(super) struct Clause {
    /// The query up to the clause.
    pub before: &'static [u8],
    /// Returns whether a query has this clause, and not the one that the other kind has.
    pub is_alone: fn(&pg_sys::SelectStmt) -> bool,
    /// Predicate of the error's message.
    pub wrong: &'static str,
    /// Advice to the user.
    pub hint: &'static str,
}

impl Clause {
    /// Raises an error unless a text, passed as the parameter `name`, is this clause and nothing
    /// else.
    pub fn check(&self, name: &str, text: &[u8]) {
        let wrong = |detail: String| -> ! {
            UserError::invalid_parameter(format!("{name} {}", self.wrong))
                .detail(detail)
                .hint(self.hint)
                .raise()
        };
        // The line end closes a comment.
        let Ok(query) = CString::new([self.before, text, b"\n"].concat()) else {
            wrong("It holds a zero byte.".to_owned())
        };
        let parsed = PgTryBuilder::new(|| Ok(is_select(&query, self.is_alone)))
            .catch_when(PgSqlErrorCode::ERRCODE_SYNTAX_ERROR, |error| {
                Err(message(error))
            })
            .execute();
        match parsed {
            Err(message) => wrong(format!("The parser says: {message}.")),
            Ok(false) => wrong("It holds more than that.".to_owned()),
            Ok(true) => (),
        }
    }
}

/// Condition on a table's rows, as written by a caller, in the server's encoding.
pub struct Condition {
    /// The caller's parameter.
    name: &'static str,
    text: Vec<u8>,
}

impl Condition {
    /// Checks that a text is an expression as after WHERE and nothing else.
    pub fn parse(name: &'static str, text: &[u8]) -> Self {
        let clause = Clause {
            before: b"SELECT WHERE ",
            is_alone: |select| !select.whereClause.is_null() && select.sortClause.is_null(),
            wrong: "is no condition",
            hint: "Write what could follow WHERE, such as 'id > 100' or 'kind = ''news'''.",
        };
        clause.check(name, text);
        let text = text.to_vec();
        Condition { name, text }
    }

    /// Gives the rows of a table, by their addresses, for which it is true. The query runs as the
    /// caller's own, with the active snapshot.
    pub fn rows(&self, table: Rel, each: impl FnMut(Tid)) {
        self.run(table, b"", each);
    }

    /// Runs the query without its rows, so that an error in it is raised now: a column that does
    /// not exist, a missing right.
    pub fn check(&self, table: Rel) {
        self.run(table, b" LIMIT 0", |_| ());
    }

    fn run(&self, table: Rel, end: &[u8], each: impl FnMut(Tid)) {
        let query = [
            b"SELECT ctid FROM ONLY ",
            table.qualified_name().as_slice(),
            b" WHERE ",
            &self.expression(),
            end,
        ]
        .concat();
        in_parameter(self.name, || select_addresses(&query, None, each));
    }

    /// The expression in parentheses, for a query.
    pub fn expression(&self) -> Vec<u8> {
        // The line end closes a comment.
        [b"(", self.text.as_slice(), b"\n)"].concat()
    }
}

/// Rows that a query finds under the name [`ROWS`]: their number, and the next address.
pub(super) type NamedRows<'a> = (u64, &'a mut dyn FnMut() -> Option<Tid>);

/// Runs a function whose errors say in their detail by which of the caller's parameters they come.
/// (What the server adds as CONTEXT is lost where pgrx catches an error.)
pub(super) fn in_parameter<R>(name: &str, function: impl FnOnce() -> R) -> R {
    PgTryBuilder::new(AssertUnwindSafe(function))
        .catch_others(|error| match error {
            CaughtError::PostgresError(report) if is_of_expression(report.sql_error_code()) => {
                let mut error = UserError::new(report.sql_error_code(), report.message());
                let place = format!("It comes from the parameter \"{name}\".");
                error = error.detail(match report.detail() {
                    Some(detail) => format!("{detail} {place}"),
                    None => place,
                });
                if let Some(hint) = report.hint() {
                    error = error.hint(hint);
                }
                error.raise()
            }
            other => other.rethrow(),
        })
        .execute()
}

/// Returns whether an expression can be the reason of an error: not of a cancelled statement, of a
/// server that shuts down or has no resources, of a conflict with other transactions, of a bug.
fn is_of_expression(code: PgSqlErrorCode) -> bool {
    // The first two of five characters, six bits each.
    let class = code as u32 & 0xfff;
    let class_of = |name: [u8; 2]| u32::from(name[0] - b'0') | u32::from(name[1] - b'0') << 6;
    ![*b"57", *b"53", *b"58", *b"40", *b"XX"]
        .map(class_of)
        .contains(&class)
}

/// Calls a function for each row of a query, whose first column is an address.
pub(super) fn select_addresses(query: &[u8], rows: Option<NamedRows>, mut each: impl FnMut(Tid)) {
    // Neither a name nor what was parsed holds a zero byte.
    let query = CString::new(query).unwrap_or_default();
    let (null, types) = (core::ptr::null(), core::ptr::null_mut());
    // SAFETY: everything made here goes with SPI's own memory, at the end or after an error. The
    // type of the first column is compared.
    unsafe {
        pg_sys::SPI_connect();
        let store = rows.map(|(count, next)| store_rows(count, next));
        let portal = pg_sys::SPI_cursor_open_with_args(
            null,
            query.as_ptr(),
            0,
            types,
            core::ptr::null_mut(),
            null,
            true,
            0,
        );
        loop {
            pg_sys::SPI_cursor_fetch(portal, true, FETCH);
            let (table, count) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed);
            if compat::attribute(&*(*table).tupdesc, 1).atttypid != pg_sys::TIDOID {
                failed(&query);
            }
            for i in 0..count as usize {
                let mut null = false;
                let tuple = *(*table).vals.add(i);
                let value = pg_sys::SPI_getbinval(tuple, (*table).tupdesc, 1, &raw mut null);
                if !null {
                    each(tid_of(*value.cast_mut_ptr()));
                }
            }
            pg_sys::SPI_freetuptable(table);
            if count == 0 {
                break;
            }
            pgrx::check_for_interrupts!();
        }
        pg_sys::SPI_cursor_close(portal);
        if let Some(store) = store {
            pg_sys::tuplestore_end(store);
        }
        pg_sys::SPI_finish();
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

fn message(error: CaughtError) -> String {
    use CaughtError::{ErrorReport, PostgresError, RustPanic};
    match error {
        PostgresError(report) | ErrorReport(report) => report.message().to_owned(),
        RustPanic { ereport, .. } => ereport.message().to_owned(),
    }
}

/// Returns whether a query is one SELECT with one clause and nothing behind it. Raises the parser's
/// errors.
fn is_select(query: &CStr, is_alone: fn(&pg_sys::SelectStmt) -> bool) -> bool {
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
            && is_alone(select)
            && select.targetList.is_null()
            && select.groupClause.is_null()
            && select.havingClause.is_null()
            && select.windowClause.is_null()
            && select.limitOffset.is_null()
            && select.limitCount.is_null()
            && select.lockingClause.is_null()
            && select.withClause.is_null()
            && select.intoClause.is_null()
    }
}
