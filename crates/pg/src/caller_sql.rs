//! SQL that users pass to functions and triggers as text: expressions, conditions and queries. Each
//! text is first parsed alone, so that it cannot add other clauses, and is then evaluated with the
//! rights of the current user.
use core::panic::AssertUnwindSafe;
use std::ffi::{CStr, CString};
use std::hash::{DefaultHasher, Hash, Hasher};

use neardup_blocktree::key::Tid;
use pgrx::pg_sys::PgTryBuilder;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::catalog::{is_base_type, name_of, quoted};
use super::cursor::Store;
use super::errors::UserError;
use super::rel::Rel;
use super::security_context::RestrictedPath;
use super::spi;
use super::tid::item_pointer;
use super::value::Value;

/// Name of the relation that this module supplies to a query. The relation has the addresses of the
/// table rows that the query is to process, in its only column, `ctid_of_row`.
pub(super) const ROW_ADDRESSES: &CStr = c"neardup rows to order";

/// Kind of clause of a SELECT that a user passes as text, such as an ORDER BY list.
/// [`Clause::check`] accepts a text only if it is one clause of this kind.
pub(super) struct Clause {
    /// Start of a query, such as `SELECT ORDER BY `, to which the user's text is appended.
    pub before: &'static [u8],
    /// Returns whether a parsed query has a clause of this kind, and neither of the other two
    /// kinds. The kinds are a select list, a WHERE clause and an ORDER BY clause.
    /// [`Clause::check`] calls it only for queries without further clauses.
    pub is_alone: fn(&Parsed) -> bool,
    /// Rest of the error message after the parameter's name, such as "must be a condition".
    pub error_predicate: &'static str,
    /// Hint of the error message, which advises the user.
    pub hint: &'static str,
}

impl Clause {
    /// Raises error 22023 unless `text` is one clause of this kind and nothing else. `name` is the
    /// SQL parameter that holds the text.
    pub fn check(&self, name: &str, text: &[u8]) {
        let wrong = |detail: String| -> ! {
            UserError::invalid_parameter(format!("\"{name}\" {}", self.error_predicate))
                .detail(detail)
                .hint(self.hint)
                .raise()
        };
        // The newline ends a comment in the text.
        let Ok(query) = CString::new([self.before, text, b"\n"].concat()) else {
            wrong("The text contains a zero byte.".to_owned())
        };
        match parse(&query, |parsed| {
            parsed.is_plain() && (self.is_alone)(&parsed)
        }) {
            Err(message) => wrong(message),
            Ok(Some(true)) => (),
            Ok(_) => wrong("The text is empty or contains other parts of a query.".to_owned()),
        }
    }
}

/// Expression over a table's columns, as written by a user, in the encoding of the database.
pub struct Expression(Vec<u8>);

impl Expression {
    /// Reads an expression from the text of the SQL parameter `name`. Raises error 22023 unless the
    /// text is a single item of a select list, without an alias.
    pub fn parse(name: &str, text: &[u8]) -> Self {
        let clause = Clause {
            before: b"SELECT ",
            is_alone: |parsed| {
                parsed.select.whereClause.is_null()
                    && parsed.select.sortClause.is_null()
                    && parsed.targets == 1
                    && !parsed.is_named
            },
            error_predicate: "must be an expression",
            hint: "Write an expression that could be a column of a SELECT, such as 'id' or 'site \
                   || id'.",
        };
        clause.check(name, text);
        Expression(text.to_vec())
    }

    /// Makes the expression that consists of the column `name`.
    pub fn column(name: &CStr) -> Self {
        Expression(quoted(name))
    }

    /// Checks the expression before its first use, and returns the OID of its type. Begins a query
    /// that selects the expression from `table`, without reading rows, so that the server raises
    /// errors such as an unknown column. `name` is the SQL parameter that holds the expression.
    pub fn check(&self, name: &str, table: Rel) -> pg_sys::Oid {
        let query = [
            b"SELECT (",
            self.sql().as_slice(),
            b") FROM ONLY ",
            &table.qualified_name(),
        ]
        .concat();
        in_parameter(name, || {
            spi::connected(c"SELECT expression", |connection| {
                connection.open(&query, &[], &[]).columns()[0]
            })
        })
    }

    /// SQL that converts the expression to `text`. `type_oid` is the type of the expression.
    ///
    /// The SQL casts base types (see `is_base_type`) to `text`. It converts any other type, such as
    /// an enum, by the type's output function. Any role can make such a type and a cast of it to
    /// `text`, and the function of the cast would run with the rights of the user who runs the
    /// query.
    pub fn as_text(&self, type_oid: pg_sys::Oid) -> Vec<u8> {
        let sql = self.sql();
        match is_base_type(type_oid) {
            true => [b"((", sql.as_slice(), b")::pg_catalog.text)"].concat(),
            false => [
                b"(SELECT CASE pg_catalog.num_nulls(v) WHEN 0 THEN pg_catalog.format('%s', v) END \
                  FROM (SELECT (",
                sql.as_slice(),
                b") AS v) AS s)",
            ]
            .concat(),
        }
    }

    /// SQL of the expression, followed by a newline, which ends a comment in the expression.
    pub fn sql(&self) -> Vec<u8> {
        [self.0.as_slice(), b"\n"].concat()
    }
}

/// Evaluates an SQL expression for some rows of a table, with the rights of the current user.
/// `next` returns the addresses of the rows, one at a time. Calls `each` for each of these rows
/// that the active snapshot sees, in no particular order. The arguments of `each` are the row's
/// address and the expression's value (`None` for NULL). `name` is the SQL parameter that holds the
/// expression.
pub fn values_of_rows(
    name: &str,
    expression: &[u8],
    table: Rel,
    next: NextAddress,
    mut each: impl FnMut(Tid, Option<Value>),
) {
    let query = [
        b"SELECT ctid, ",
        expression,
        b" FROM ONLY ",
        &table.qualified_name(),
        b" WHERE ctid OPERATOR(pg_catalog.=) ANY (SELECT ctid_of_row FROM \"",
        ROW_ADDRESSES.to_bytes(),
        b"\")",
    ]
    .concat();
    in_parameter(name, || {
        select_rows(&query, Some(next), |row| {
            if let [Some(address), value] = row {
                each(address.as_tid(), *value);
            }
        });
    });
}

/// Evaluates an SQL expression for each row of a table that the active snapshot sees and that meets
/// `condition`. `None` stands for a condition that all rows meet. Rows of child tables are not
/// read. Calls `each`, in no particular order, with the address of each row and the expression's
/// value (`None` for NULL). The query runs with the rights of the current user. `name` is the SQL
/// parameter that holds the expression.
pub fn values_of_table(
    name: &str,
    expression: &[u8],
    condition: Option<&Condition>,
    table: Rel,
    mut each: impl FnMut(Tid, Option<Value>),
) {
    let condition = condition.map_or(b"true".to_vec(), Condition::expression);
    let query = [
        b"SELECT ctid, (",
        expression,
        b") FROM ONLY ",
        &table.qualified_name(),
        b" WHERE ",
        &condition,
    ]
    .concat();
    in_parameter(name, || {
        select_rows(&query, None, |row| {
            if let [Some(address), value] = row {
                each(address.as_tid(), *value);
            }
        });
    });
}

/// SELECT or VALUES query as written by a user, in the encoding of the database.
pub struct Query(Vec<u8>);

impl Query {
    /// Reads a query from the text of the SQL parameter `name`. Raises error 22023 unless the text
    /// is a single SELECT or VALUES without INTO. Removes a semicolon at the end.
    pub fn parse(name: &str, text: &[u8]) -> Self {
        let wrong = |detail: String| -> ! {
            UserError::invalid_parameter(format!("\"{name}\" must be a SELECT query"))
                .detail(detail)
                .hint("Write one query, such as 'SELECT a.id, b.id FROM ...'.")
                .raise()
        };
        let Ok(query) = CString::new(text) else {
            wrong("The text contains a zero byte.".to_owned())
        };
        let length = |parsed: Parsed| {
            let is_whole = parsed.select.intoClause.is_null();
            is_whole.then_some(parsed.length)
        };
        match parse(&query, length) {
            Err(message) => wrong(message),
            Ok(Some(Some(0))) => Query(text.to_vec()),
            Ok(Some(Some(length))) => Query(text[..length].to_vec()),
            Ok(_) => wrong(
                "The text is another kind of statement or contains several statements.".to_owned(),
            ),
        }
    }

    /// SQL of the query in parentheses, for a FROM clause. The caller appends the alias.
    pub fn sql(&self) -> Vec<u8> {
        [b"(", self.0.as_slice(), b"\n)"].concat()
    }
}

/// Condition on the rows of a table, as written by a user, in the encoding of the database.
pub struct Condition {
    /// The SQL parameter that holds the condition.
    name: &'static str,
    text: Vec<u8>,
}

impl Condition {
    /// Reads a condition from the text of the SQL parameter `name`. Raises error 22023 unless the
    /// text is a single expression that can follow WHERE.
    pub fn parse(name: &'static str, text: &[u8]) -> Self {
        let clause = Clause {
            before: b"SELECT WHERE ",
            is_alone: |parsed| {
                !parsed.select.whereClause.is_null()
                    && parsed.select.sortClause.is_null()
                    && parsed.targets == 0
            },
            error_predicate: "must be a condition",
            hint: "Write a condition that could follow WHERE, such as 'id > 100' or 'kind = \
                   ''news'''.",
        };
        clause.check(name, text);
        let text = text.to_vec();
        Condition { name, text }
    }

    /// Calls `each` with the address of each row of a table for which the condition is true. The
    /// query runs with the rights of the current user and the active snapshot.
    pub fn rows(&self, table: Rel, each: impl FnMut(Tid)) {
        self.run(table, b"", each);
    }

    /// Checks the condition before its first use: runs the query of [`Condition::rows`] with LIMIT
    /// 0. The server then raises an error in the condition, such as a column that does not exist or
    /// a missing privilege.
    pub fn check(&self, table: Rel) {
        self.run(table, b" LIMIT 0", |_| ());
    }

    /// Calls `each` with the address of each row of `table` for which the condition is true. `end`
    /// is SQL that follows the condition, such as a LIMIT clause.
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

    /// Returns the SQL of a statement for [`Condition::holds`]. The statement's only parameter is a
    /// row of the table, and its result is whether the condition is true for that row.
    pub fn statement_for_row(&self, table: Rel) -> CString {
        let statement = [
            b"SELECT ",
            self.expression().as_slice(),
            b" IS TRUE FROM (SELECT ($1).*) AS ",
            &quoted(&table.name()),
            layout_comment(table).as_bytes(),
        ]
        .concat();
        CString::new(statement).expect("the parser has read the condition")
    }

    /// Runs a statement from [`Condition::statement_for_row`], and returns whether the condition is
    /// true for `row`. Runs with the rights of the current user, who need not be the condition's
    /// author. So the statement runs with a `search_path` of the server's own schemas, in which
    /// other users cannot make objects.
    pub fn holds(&self, statement: &CStr, row: Value) -> bool {
        in_parameter(self.name, || {
            let _path = RestrictedPath::set();
            let holds = spi::value(statement, &[row]);
            holds.is_some_and(|holds| holds.get().as_bool())
        })
    }

    /// SQL of the condition in parentheses.
    pub fn expression(&self) -> Vec<u8> {
        // The newline ends a comment in the text.
        [b"(", self.text.as_slice(), b"\n)"].concat()
    }
}

/// Returns an SQL comment with a hash of the names and types of a table's columns. The comment is
/// added to a statement that has a row of the table as its parameter. The backend's cache of plans
/// finds a plan by the text of the statement ([`spi`]). Without the comment, it would use an old
/// plan after a change of the columns. With the comment, the text changes too, and a new plan is
/// made.
fn layout_comment(table: Rel) -> String {
    let mut hasher = DefaultHasher::new();
    for column in table.attributes() {
        let name = name_of(&column.attname);
        (
            column.attnum,
            column.atttypid.to_u32(),
            column.atttypmod,
            name,
        )
            .hash(&mut hasher);
    }
    format!(" /* columns {:016x} */", hasher.finish())
}

/// Function that returns, one at a time, the addresses of the rows of the relation
/// [`ROW_ADDRESSES`], and `None` after the last.
pub type NextAddress<'a> = &'a mut dyn FnMut() -> Option<Tid>;

/// Runs `function`, which evaluates a user's SQL, and returns its result. If the function raises an
/// error that the SQL can have caused, raises the error again. The detail of the new error states
/// that the error comes from the SQL parameter `name`. The server's CONTEXT does not state it,
/// because pgrx drops the CONTEXT when it catches an error.
pub(super) fn in_parameter<R>(name: &str, function: impl FnOnce() -> R) -> R {
    PgTryBuilder::new(AssertUnwindSafe(function))
        .catch_others(|error| match error {
            CaughtError::PostgresError(report) if is_of_expression(report.sql_error_code()) => {
                let mut error = UserError::new(report.sql_error_code(), report.message());
                let origin = format!("The error comes from the parameter \"{name}\".");
                error = error.detail(match report.detail() {
                    Some(detail) => format!("{detail} {origin}"),
                    None => origin,
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

/// Returns whether a user's SQL can have caused an error with this SQLSTATE. Returns false for
/// cancellation, shutdown, missing resources, conflicts with other transactions, and bugs.
fn is_of_expression(code: PgSqlErrorCode) -> bool {
    // An SQLSTATE has five characters of six bits each. The first two, in the lowest 12 bits, are
    // the class of the error.
    let class = code as u32 & 0xfff;
    let class_of = |name: [u8; 2]| u32::from(name[0] - b'0') | u32::from(name[1] - b'0') << 6;
    ![*b"57", *b"53", *b"58", *b"40", *b"XX"]
        .map(class_of)
        .contains(&class)
}

/// Runs a query whose first column is a row address, and calls `each` with the address in each row
/// that the query returns. If the query reads the relation [`ROW_ADDRESSES`], `rows` supplies the
/// addresses in this relation. Otherwise `rows` is `None`.
pub(super) fn select_addresses(query: &[u8], rows: Option<NextAddress>, mut each: impl FnMut(Tid)) {
    select_rows(query, rows, |row| {
        if let Some(Some(address)) = row.first() {
            each(address.as_tid());
        }
    });
}

/// Runs a query, and calls `each` with the values of each row that the query returns, `None` for
/// NULL. If the query reads the relation [`ROW_ADDRESSES`], `rows` supplies the addresses in this
/// relation. Otherwise `rows` is `None`.
fn select_rows(query: &[u8], rows: Option<NextAddress>, each: impl FnMut(&[Option<Value>])) {
    spi::connected(c"SELECT ctid", |connection| {
        let store = rows.map(|next| {
            let mut store = connection.store(ROW_ADDRESSES, &[(c"ctid_of_row", pg_sys::TIDOID)]);
            while let Some(tid) = next() {
                store.push(&[Value::tid(&item_pointer(tid))]);
            }
            store
        });
        let stores: Vec<&Store> = store.iter().collect();
        connection.open(query, &[], &stores).for_each(each);
    });
}

/// Parses a query, passes the parsed query to `read`, and returns the result of `read`. Returns
/// `Ok(None)` unless the text is a single SELECT or VALUES. Returns a syntax error as a sentence
/// with the parser's message.
fn parse<T>(query: &CStr, read: impl Fn(Parsed) -> T) -> Result<Option<T>, String> {
    PgTryBuilder::new(AssertUnwindSafe(|| Ok(parse_select(query, &read))))
        .catch_when(PgSqlErrorCode::ERRCODE_SYNTAX_ERROR, |error| {
            Err(format!("The parser reported: {}.", message(error)))
        })
        .execute()
}

fn message(error: CaughtError) -> String {
    use CaughtError::{ErrorReport, PostgresError, RustPanic};
    match error {
        PostgresError(report) | ErrorReport(report) => report.message().to_owned(),
        RustPanic { ereport, .. } => ereport.message().to_owned(),
    }
}

/// SELECT or VALUES query that the server's parser has read.
pub(super) struct Parsed<'a> {
    select: &'a pg_sys::SelectStmt,
    /// Number of expressions in the select list.
    targets: usize,
    /// True if an expression of the select list has a name (AS).
    is_named: bool,
    /// Length of the statement in bytes, without its semicolon; 0 if the text ends with the
    /// statement.
    length: usize,
}

impl Parsed<'_> {
    /// Returns whether the query has an ORDER BY clause, an empty select list and no WHERE clause.
    pub(super) fn is_order(&self) -> bool {
        !self.select.sortClause.is_null() && self.select.whereClause.is_null() && self.targets == 0
    }

    /// Returns whether the query has no clauses other than a select list, WHERE and ORDER BY.
    fn is_plain(&self) -> bool {
        let select = self.select;
        select.op == pg_sys::SetOperation::SETOP_NONE
            && select.distinctClause.is_null()
            && select.fromClause.is_null()
            && select.valuesLists.is_null()
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

/// Parses a query, passes it to `read` and returns the result of `read`; `None` unless the text is
/// a single SELECT or VALUES. Raises the parser's errors.
fn parse_select<T>(query: &CStr, read: impl FnOnce(Parsed) -> T) -> Option<T> {
    let mode = pg_sys::RawParseMode::RAW_PARSE_DEFAULT;
    // SAFETY: the parser only reads the text. Its tree is freed with the memory context, also
    // after an error. Node tags identify the structs; a select list has targets.
    unsafe {
        let statements = pg_sys::raw_parser(query.as_ptr(), mode);
        let statements = pgrx::PgList::<pg_sys::RawStmt>::from_pg(statements);
        let (1, Some(statement)) = (statements.len(), statements.get_ptr(0)) else {
            return None;
        };
        let node = (*statement).stmt;
        if (*node).type_ != pg_sys::NodeTag::T_SelectStmt {
            return None;
        }
        let select = &*node.cast::<pg_sys::SelectStmt>();
        let targets = pgrx::PgList::<pg_sys::ResTarget>::from_pg(select.targetList);
        Some(read(Parsed {
            select,
            targets: targets.len(),
            is_named: targets.iter_ptr().any(|target| !(*target).name.is_null()),
            length: ((*statement).stmt_location + (*statement).stmt_len) as usize
                * usize::from((*statement).stmt_len > 0),
        }))
    }
}
