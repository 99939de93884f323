//! `neardup_components`: clusters of keys, from the pairs of keys that a caller's query returns.
//!
//! The server sorts the keys of all pairs, and the keys are numbered in that order. The number of a
//! key is therefore its rank, and pairs and clusters are stored as numbers.
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
        components(
            &argument(call, 0, "query"),
            Method::Connected,
            key_type,
            give,
        );
    })
}

/// `neardup_components(key_type, query, method)`.
fn of_type(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        let [query, method] =
            [(1, "query"), (2, "method")].map(|(n, name)| argument(call, n, name));
        components(
            &query,
            Method::parse(&method),
            KeyType::from_argument(call, 0),
            give,
        );
    })
}

/// Returns the text argument `name` at position `n`. Raises an error if it is NULL.
fn argument(call: &Call, n: usize, name: &str) -> Vec<u8> {
    call.text(n)
        .unwrap_or_else(|| UserError::null_not_allowed(format!("{name} must not be NULL")).raise())
}

/// Clusters the keys that a caller's query pairs, and passes the rows of the result to `give`.
fn components(query: &[u8], method: Method, key_type: KeyType, give: Give) {
    let query = Query::parse("query", query);
    // Raises an error with the type's name if the type has no order.
    key_type.less_than();
    spi::connected(c"SELECT member", |connection| {
        check_columns(connection, &query, key_type);
        let mut keys = connection.store(c"neardup keys", &[(c"key", key_type.oid())]);
        let links = read_pairs(connection, &query, key_type, &mut keys);
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
/// are in the order of their representatives, then in key order. A representative precedes the
/// other members of its cluster.
const RESULT: &[u8] = b"SELECT g.key, pg_catalog.first_value(g.key) OVER w,
    pg_catalog.count(*) OVER w FROM \"neardup clusters\" AS g
    WINDOW w AS (PARTITION BY g.representative ORDER BY g.node
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ORDER BY g.representative, g.node";

/// Raises an error unless the caller's query returns two columns of the key type.
fn check_columns(connection: &Connection, query: &Query, key_type: KeyType) {
    let statement = [b"SELECT * FROM ", query.sql().as_slice(), b" AS q"].concat();
    let columns = connection.open(&statement, &[], &[]).columns();
    let [a, b] = columns[..] else {
        UserError::invalid_parameter("query must have two columns: the keys of a pair")
            .detail(format!("The number of columns is {}.", columns.len()))
            .hint("Select only the keys: SELECT a, b FROM (...) AS pairs.")
            .raise()
    };
    key_type.require("the first column of query", a);
    key_type.require("the second column of query", b);
}

/// Reads the pairs that the caller's query returns. Stores each distinct key once in `keys`, in key
/// order, and returns the pairs as numbers of keys.
fn read_pairs(
    connection: &Connection,
    query: &Query,
    key_type: KeyType,
    keys: &mut Store,
) -> Links<1> {
    let [a, b] = [b"p.a", b"p.b"].map(|column| key_type.sql(column));
    let statement = [
        b"SELECT e.key, e.pair, pg_catalog.dense_rank() OVER (ORDER BY e.key) FROM (SELECT \
            p.pair, v.key FROM (SELECT pg_catalog.row_number() OVER () AS pair, q.a, q.b FROM ",
        query.sql().as_slice(),
        b" AS q (a, b)) AS p CROSS JOIN LATERAL (VALUES (",
        &a,
        b"), (",
        &b,
        b")) AS v (key)) AS e ORDER BY e.key",
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

/// Clusters the numbered keys by their pairs. Stores each key in `clusters`, with the number of its
/// representative and its own number.
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

/// Representatives among crowded nodes, for graphs without crowded nodes.
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
