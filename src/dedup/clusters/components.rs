//! `neardup_components`: clusters of keys, from the pairs of keys that a caller's query returns.
//!
//! The server sorts the keys of all pairs by preference, and the keys are numbered in that order.
//! The number of a key is therefore its rank, and pairs and clusters are stored as numbers.
use neardup_blocktree::clusters::{Centers, join};
use neardup_blocktree::key::Tid;
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::{Entry, ExternalSort};
use pgrx::{PgSqlErrorCode, pg_sys};

use super::methods::{Links, Method};
use crate::dedup::key_type::KeyType;
use crate::dedup::limits::{share, too_many};
use neardup_pg::caller_sql::Query;
use neardup_pg::cursor::Store;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::spi::{self, Connection};
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::value::{OwnedValue, Value};

export! {
    guarded "neardup_components" => of_bigint;
    guarded "neardup_components_of" => of_type;
}

/// Callback that adds a row to the result of `neardup_components`.
type Give<'a> = &'a mut dyn FnMut(&[Option<pg_sys::Datum>]);

/// `neardup_components(query)`, for keys of type `bigint` and the method `connected`.
fn of_bigint(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        let key_type = KeyType::new(pg_sys::INT8OID);
        let query = Query::parse("query", &argument(call, 0, "query"));
        components(&query, Method::Connected, None, key_type, give);
    })
}

/// `neardup_components(key_type, query, method, keep)`.
fn of_type(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        let [query, method] =
            [(1, "query"), (2, "method")].map(|(n, name)| argument(call, n, name));
        let query = Query::parse("query", &query);
        let keep = call.text(3).map(|keep| Query::parse("keep", &keep));
        let key_type = KeyType::from_argument(call, 0);
        components(
            &query,
            Method::parse(&method),
            keep.as_ref(),
            key_type,
            give,
        );
    })
}

/// Returns the text argument `name` at position `n`. Raises an error if it is NULL.
fn argument(call: &Call, n: usize, name: &str) -> Vec<u8> {
    call.text(n).unwrap_or_else(|| {
        UserError::null_not_allowed(format!("\"{name}\" must not be NULL")).raise()
    })
}

/// Clusters the keys in the pairs that the caller's query returns. Passes the rows of the result to
/// `give`. The query `keep` returns keys in the order of preference.
fn components(query: &Query, method: Method, keep: Option<&Query>, key_type: KeyType, give: Give) {
    // Raises an error with the type's name if the type has no order.
    key_type.less_than();
    spi::connected(c"SELECT member", |connection| {
        check_columns(connection, query, key_type);
        if let Some(keep) = keep {
            check_keep(connection, keep, key_type);
        }
        let mut keys = connection.store(c"neardup keys", &[(c"key", key_type.oid())]);
        let links = read_pairs(connection, query, keep, key_type, &mut keys);
        let cluster_columns = [
            (c"representative", pg_sys::INT8OID),
            (c"node", pg_sys::INT8OID),
            (c"key", key_type.oid()),
        ];
        let mut clusters = connection.store(c"neardup clusters", &cluster_columns);
        cluster(connection, links, method, &keys, &mut clusters);
        drop(keys);
        connection.open(RESULT, &[], &[&clusters]).for_each(|row| {
            let columns: Vec<_> = row.iter().map(|value| value.map(Value::datum)).collect();
            give(&columns);
        });
    });
}

/// Query for the result: each key, the key of its representative, and the size of the cluster. Keys
/// are in the order of their representatives, then in the order of preference. A representative
/// precedes the other members of its cluster.
const RESULT: &[u8] = b"SELECT g.key, pg_catalog.first_value(g.key) OVER w,
    pg_catalog.count(*) OVER w FROM \"neardup clusters\" AS g
    WINDOW w AS (PARTITION BY g.representative ORDER BY g.node
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ORDER BY g.representative, g.node";

/// Raises an error unless the caller's query returns two columns of the key type.
fn check_columns(connection: &Connection, query: &Query, key_type: KeyType) {
    let columns = columns(connection, query);
    let [a, b] = columns[..] else {
        UserError::invalid_parameter("\"query\" must return exactly two columns")
            .detail(format!(
                "Each row must be a pair of keys, but the number of columns is {}.",
                columns.len()
            ))
            .hint("Select only the keys: SELECT a, b FROM (...) AS pairs.")
            .raise()
    };
    key_type.require("the first column of \"query\"", a);
    key_type.require("the second column of \"query\"", b);
}

/// Raises an error unless the query `keep` returns one column of the key type.
fn check_keep(connection: &Connection, keep: &Query, key_type: KeyType) {
    let columns = columns(connection, keep);
    let [key] = columns[..] else {
        UserError::invalid_parameter("\"keep\" must return exactly one column")
            .detail(format!(
                "Each row must be a key, but the number of columns is {}.",
                columns.len()
            ))
            .hint("Sort the keys with ORDER BY: SELECT id FROM docs ORDER BY published, id.")
            .raise()
    };
    key_type.require("the column of \"keep\"", key);
}

/// Returns the types of the columns of a caller's query.
fn columns(connection: &Connection, query: &Query) -> Vec<pg_sys::Oid> {
    let statement = [b"SELECT * FROM ", query.sql().as_slice(), b" AS q"].concat();
    connection.open(&statement, &[], &[]).columns()
}

/// Returns the text of a query for the keys in the pairs of the caller's query. The result has two
/// rows for each pair, one for each key. Its columns are `key`, and `pair` with the number of the
/// pair.
fn ends_of_pairs(query: &Query, key_type: KeyType) -> Vec<u8> {
    let [a, b] = [b"p.a", b"p.b"].map(|column| key_type.sql(column));
    [
        b"SELECT v.key, p.pair FROM (\
            SELECT pg_catalog.row_number() OVER () AS pair, q.a, q.b FROM ",
        query.sql().as_slice(),
        b" AS q (a, b)) AS p CROSS JOIN LATERAL (VALUES (",
        &a,
        b"), (",
        &b,
        b")) AS v (key)",
    ]
    .concat()
}

/// Adds a third column, `preference`, to the query `ends` of [`ends_of_pairs`]. It has the position
/// of the key in the result of `keep`, or NULL if `keep` does not return the key.
fn with_preference(ends: &[u8], keep: &Query, key_type: KeyType) -> Vec<u8> {
    // The window function finds the position without the name of the key type's equality operator.
    [
        b"SELECT w.* FROM (SELECT u.key, u.pair, \
            pg_catalog.min(u.preference) OVER (PARTITION BY u.key) AS preference FROM (\
            SELECT e.key, e.pair, NULL::bigint AS preference FROM (",
        ends,
        b") AS e UNION ALL SELECT ",
        &key_type.sql(b"k.key"),
        b", NULL, k.preference FROM (\
            SELECT q.key, pg_catalog.row_number() OVER () AS preference FROM ",
        &keep.sql(),
        b" AS q (key)) AS k) AS u) AS w WHERE w.pair IS NOT NULL",
    ]
    .concat()
}

/// Reads the pairs that the caller's query returns. Stores each distinct key once in `keys`, in the
/// order of preference. First are the keys that `keep` returns, and then all further keys in key
/// order. A key is a node of the returned graph. The number of the node is the position of the key
/// in `keys`.
fn read_pairs(
    connection: &Connection,
    query: &Query,
    keep: Option<&Query>,
    key_type: KeyType,
    keys: &mut Store,
) -> Links<1> {
    let ends = ends_of_pairs(query, key_type);
    let (ends, order) = match keep {
        None => (ends, &b"e.key"[..]),
        Some(keep) => (
            with_preference(&ends, keep, key_type),
            &b"e.preference, e.key"[..],
        ),
    };
    let statement = [
        b"SELECT e.key, e.pair, pg_catalog.dense_rank() OVER (ORDER BY ",
        order,
        b") FROM (",
        &ends,
        b") AS e ORDER BY ",
        order,
    ]
    .concat();
    let (mut files, mut ends) = (TempSpace, ExternalSort::<TempSpace, 2>::new(share()));
    // Number and value of the last key read.
    let mut last: Option<(u32, OwnedValue)> = None;
    connection.open(&statement, &[], &[]).for_each(|row| {
        let [Some(key), Some(pair), Some(rank)] = row else {
            refuse_null();
        };
        let [pair, rank] = [pair, rank].map(|number| number.integer().unwrap_or_default());
        let node = u32::try_from(rank - 1).ok().filter(|&node| node < u32::MAX);
        let node = node.unwrap_or_else(|| too_many());
        ends.push(&mut files, [pair as u64, join(0, node)], Tid::MIN);
        let key = (*key).to_owned();
        match &mut last {
            // Equal keys may have different bytes, such as 1.0 and 1.00. Stores the key with the
            // lowest bytes, so that the result does not depend on the order of the pairs.
            Some((number, known)) if *number == node => {
                if key.image_cmp(known).is_lt() {
                    *known = key;
                }
            }
            _ => {
                if let Some((_, known)) = last.replace((node, key)) {
                    keys.push(&[known.get()]);
                }
            }
        }
    });
    let nodes = last.as_ref().map_or(0, |(number, _)| number + 1);
    if let Some((_, known)) = &last {
        keys.push(&[known.get()]);
    }
    let crowded = ExternalSort::new(share());
    Links {
        nodes,
        ends,
        crowded,
    }
}

/// Clusters the numbered keys by their pairs in `links`. Reads the keys from `keys` in the order of
/// their numbers. Stores a row for each key in `clusters`: the number of its representative, its
/// own number, and the key.
fn cluster(
    connection: &Connection,
    links: Links<1>,
    method: Method,
    keys: &Store,
    clusters: &mut Store,
) {
    let (files, nodes) = (&mut TempSpace, links.nodes);
    let mut ranks = Paged::new(files, nodes as usize, share(), |node| node);
    match method {
        Method::Star => links.star(files, &mut ranks, &mut NoCenters),
        Method::Connected => links.connected(files, &mut ranks, |_, _, _, _| ()),
    }
    // The query returns the keys in the order in which they were stored, which is the order of
    // their numbers.
    let mut node = 0;
    let query = b"SELECT key FROM \"neardup keys\"";
    connection.open(query, &[], &[keys]).for_each(|row| {
        if let [Some(key)] = row {
            let numbers = [ranks.get(files, node), node].map(|number| Value::int8(number.into()));
            clusters.push(&[numbers[0], numbers[1], *key]);
            node += 1;
        }
    });
}

/// Empty set of representatives among crowded nodes (nodes with too many pairs to list). The graph
/// has no crowded nodes, because a caller's query returns all pairs.
struct NoCenters;

impl Centers<TempSpace, 1> for NoCenters {
    fn first_near(&mut self, _: &mut TempSpace, _: &[Entry<1>], _: u32) -> Option<u32> {
        None
    }

    fn push(&mut self, _: &mut TempSpace, _: &[Entry<1>]) {}
}

fn refuse_null() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
        "a key in the query's result is NULL",
    )
    .detail("Each row of the result must be a pair of keys.")
    .hint("Exclude such rows: WHERE a IS NOT NULL AND b IS NOT NULL.")
    .raise()
}
