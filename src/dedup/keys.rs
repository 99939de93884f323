//! `neardup_pairs_by_key` and `neardup_clusters_by_key`: pairs and clusters whose rows are
//! identified by keys instead of addresses.
//!
//! Each function runs a query that calls `neardup_pairs` or `neardup_clusters` and looks up the key
//! of each address in its result. The query runs with the rights of the caller and sees the same
//! snapshot.
use core::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::confirm::ConfirmArgument;
use super::key_type::KeyType;
use super::source::find_bounded_index;
use crate::am::keys::require_distances;
use neardup_pg::caller_sql::Expression;
use neardup_pg::catalog;
use neardup_pg::cursor::Parameter;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::rel::Rel;
use neardup_pg::spi;
use neardup_pg::unique_keys::primary_key_column;
use neardup_pg::value::Value;

export! {
    guarded "neardup_pairs_by_key" => |call| by_key(call, Function::Pairs);
    guarded "neardup_clusters_by_key" => |call| by_key(call, Function::Clusters);
}

/// Function that is called for the pairs or clusters. The first two columns of its result are row
/// addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    /// `neardup_pairs`, with the columns `a`, `b`, `distance`, `similarity`.
    Pairs,
    /// `neardup_clusters`, with the columns `member`, `representative`, `size`, `distance`,
    /// `similarity`.
    Clusters,
}

// Positions of the arguments that `neardup_pairs_by_key` and `neardup_clusters_by_key` have in
// common. The arguments from `OTHERS` on are passed to `neardup_pairs` or `neardup_clusters` after
// the bound.
const KEY_TYPE: usize = 0;
const RELATION: usize = 1;
const RADIUS: usize = 2;
const SIMILARITY: usize = 3;
const KEY: usize = 4;
const OTHERS: usize = 5;

impl Function {
    fn name(self) -> &'static CStr {
        match self {
            Function::Pairs => c"neardup_pairs",
            Function::Clusters => c"neardup_clusters",
        }
    }

    /// Returns the position of the argument `column_name`.
    fn column(self) -> usize {
        match self {
            Function::Pairs => OTHERS,
            Function::Clusters => OTHERS + 2,
        }
    }
}

/// `neardup_pairs_by_key(key_type, relation, radius, similarity, key, column_name, filter,
/// exhaustive, confirm, row_time, within)`, and `neardup_clusters_by_key(key_type, relation,
/// radius, similarity, key, method, keep, column_name, filter, singletons, exhaustive, confirm,
/// row_time, within)`.
fn by_key(call: &mut Call, function: Function) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        if call.is_null(RELATION) {
            if function == Function::Pairs {
                return;
            }
            UserError::null_not_allowed("\"relation\" must not be NULL").raise();
        }
        let key_type = KeyType::from_argument(call, KEY_TYPE);
        let expression = (call.text(KEY)).map(|text| Expression::parse("key", &text));
        // Only the arguments `row_time` and `within` follow `confirm`.
        let confirm = call.arg_count() - 3;
        let (_, bound) = ConfirmArgument::read(call, confirm, [RADIUS, SIMILARITY]);
        let (own, column) = (call.function_oid(), call.name(function.column()));
        let index = find_bounded_index(own, call.oid(RELATION), column.as_deref(), bound);
        let relations = LockedIndex::open_checked(index);
        require_distances(relations.index());
        let expression = key_of_rows(relations.table(), expression, key_type);
        // Passes the index instead of the table. Otherwise the inner call would repeat the notice
        // about the scope of the index.
        let relation = Parameter {
            type_oid: pg_sys::REGCLASSOID,
            value: Some(Value::oid(index)),
        };
        let others = (OTHERS..call.arg_count()).map(|n| Parameter {
            value: call.parameter(n).value.filter(|_| n != function.column()),
            ..call.parameter(n)
        });
        let bound = [RADIUS, SIMILARITY].map(|n| call.parameter(n));
        let parameters: Vec<Parameter> =
            [relation].into_iter().chain(bound).chain(others).collect();
        let called = called(own, function, parameters.len());
        let query = query(function, &called, relations.table(), &expression, key_type);
        spi::connected(c"SELECT key", |connection| {
            connection.open(&query, &parameters, &[]).for_each(|row| {
                for key in &row[..2] {
                    let key = key.unwrap_or_else(|| refuse_null());
                    assert_eq!(key.type_oid(), key_type.oid());
                }
                let columns: Vec<_> = row.iter().map(|value| value.map(Value::datum)).collect();
                give(&columns);
            });
        });
    })
}

/// Returns the SQL call of `neardup_pairs` or `neardup_clusters` with the arguments `$1`, `$2` and
/// so on, as many as `parameters`. `own` is the extension's function being called. The called
/// function is in the same schema.
fn called(own: pg_sys::Oid, function: Function, parameters: usize) -> Vec<u8> {
    let schema = catalog::schema_name(catalog::schema_of_function(own));
    let arguments: Vec<String> = (1..=parameters).map(|n| format!("${n}")).collect();
    let arguments = format!("({})", arguments.join(", "));
    [
        catalog::qualified(&schema, function.name()),
        arguments.into_bytes(),
    ]
    .concat()
}

/// Returns the query that replaces the addresses in the result of the call `called` by keys.
/// `expression` is the SQL expression for the key of a row of `table`.
fn query(
    function: Function,
    called: &[u8],
    table: Rel,
    expression: &[u8],
    key_type: KeyType,
) -> Vec<u8> {
    let keys = [
        b"(SELECT ctid AS address, ",
        key_type.sql(expression).as_slice(),
        b" AS key FROM ONLY ",
        &table.qualified_name(),
        b")",
    ]
    .concat();
    match function {
        // Orders the two keys of each pair, because the order of addresses means nothing to the
        // caller.
        Function::Pairs => {
            let swapped = [b"b.key ", key_type.less_than().as_slice(), b" a.key"].concat();
            [
                b"SELECT CASE WHEN ",
                swapped.as_slice(),
                b" THEN b.key ELSE a.key END, CASE WHEN ",
                &swapped,
                b" THEN a.key ELSE b.key END, p.distance, p.similarity FROM ",
                called,
                b" AS p JOIN ",
                &keys,
                b" AS a ON a.address OPERATOR(pg_catalog.=) p.a JOIN ",
                &keys,
                b" AS b ON b.address OPERATOR(pg_catalog.=) p.b",
            ]
            .concat()
        }
        Function::Clusters => [
            b"SELECT m.key, r.key, c.size, c.distance, c.similarity FROM ",
            called,
            b" WITH ORDINALITY AS c (member, representative, size, distance, similarity, ordinal) \
              JOIN ",
            &keys,
            b" AS m ON m.address OPERATOR(pg_catalog.=) c.member JOIN ",
            &keys,
            b" AS r ON r.address OPERATOR(pg_catalog.=) c.representative ORDER BY c.ordinal",
        ]
        .concat(),
    }
}

/// Returns the SQL expression for the key of a row: the caller's expression `key` or, if it is
/// `None`, the primary key. Raises an error if the expression does not have the key type, or if the
/// table needs a primary key of one column and has none.
pub fn key_of_rows(table: Rel, key: Option<Expression>, key_type: KeyType) -> Vec<u8> {
    let primary_key = || {
        let column = primary_key_column(table).unwrap_or_else(|| refuse_table(table));
        Expression::column(&table.column_name(column)).sql()
    };
    let expression = key.map_or_else(primary_key, |key| key.sql());
    let query = [
        b"SELECT (",
        expression.as_slice(),
        b") FROM ONLY ",
        &table.qualified_name(),
    ]
    .concat();
    let own_type = spi::connected(c"SELECT key", |connection| {
        connection.open(&query, &[], &[]).columns()[0]
    });
    key_type.require("the key", own_type);
    expression
}

fn refuse_table(table: Rel) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        format!(
            "table \"{}\" does not have a single-column primary key",
            table.shown()
        ),
    )
    .hint("Pass a column or another expression as the argument \"key\", such as key => 'id'.")
    .raise()
}

fn refuse_null() -> ! {
    UserError::null_not_allowed("the key of a near-duplicate is NULL")
        .detail("The key must identify the row.")
        .hint("Choose another key, or exclude such rows with filter => '... IS NOT NULL'.")
        .raise()
}
