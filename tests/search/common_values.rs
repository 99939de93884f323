//! Joins of tables in which many rows have one value: row estimates and the choice of plan.
use crate::support::Outcome;
use crate::support::oracle::{explain, plan};
use crate::support::table::{TYPES, value};
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;

/// Returns a value of a type from the SQL expression `number`. Different values are far apart.
fn value_of(type_name: &str, number: &str) -> String {
    match type_name {
        "minhash_signature" => format!("minhash(ARRAY['a' || {number}, 'b' || {number}], 32)"),
        "bigint" => format!("hashint8extended({number}, 1)"),
        "fingerprint" => format!("hashint8extended({number}, 1)::fingerprint"),
        wide => {
            let words = if wide == "fingerprint128" {
                1..=2
            } else {
                1..=4
            };
            let words = words.map(|word| format!("int8send(hashint8extended({number}, {word}))"));
            format!("({})::{wide}", words.collect::<Vec<_>>().join(" || "))
        }
    }
}

/// Makes a table in which rows that meet `common` have the value of 0, and others a unique one.
fn create(client: &mut Client, table: &str, of: &str, rows: i64, common: &str) -> Result<()> {
    let value = value_of(of, &format!("(CASE WHEN {common} THEN 0 ELSE id END)"));
    let class = match of {
        "bigint" => "bigint_hamming_ops",
        _ => "",
    };
    let with = match of {
        "minhash_signature" => "WITH (hashes = 32)",
        _ => "",
    };
    client.batch_execute(&format!(
        "CREATE TABLE {table} AS SELECT id, id % 97 AS kind, {value} AS fp \
         FROM generate_series(1::bigint, {rows}) id; \
         CREATE INDEX {table}_fp ON {table} USING neardup (fp {class}) {with}"
    ))?;
    client.batch_execute(&format!("VACUUM ANALYZE {table}"))?;
    Ok(())
}

const SIGNATURE: &str = "minhash_signature";

/// Names of the types whose values are searched by distance.
fn types() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|fp| fp.name).chain([SIGNATURE])
}

/// Returns the estimated and the actual rows per loop of the inner index scan of a nested loop.
fn inner_rows(client: &mut Client, query: &str) -> Result<(f64, f64)> {
    let shown = explain(client, "ANALYZE, TIMING OFF", query)?;
    let mut scans = shown.lines().filter(|line| line.contains("using docs_fp"));
    let inner = scans.next_back().context("no index scan")?;
    let rows = |part: &str| -> Result<f64> {
        let rest = part.split("rows=").nth(1).context("no rows")?;
        let end = rest.find(' ').context("no end")?;
        Ok(rest[..end].parse()?)
    };
    let (expected, actual) = inner.split_once("(actual").context("not analyzed")?;
    ensure!(!inner.contains("loops=1)"), "{shown}");
    Ok((rows(expected)?, rows(actual)?))
}

#[test]
fn common_values_of_the_outer_side_are_expected_on_the_inner_side() -> Outcome {
    for of in types() {
        let database = Database::create()?;
        let mut client = database.connect()?;
        create(&mut client, "docs", of, 2_000, "id % 20 = 0")?;
        client.batch_execute(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_material = off; \
             SET enable_memoize = off; SET jit = off; SET enable_indexonlyscan = off; \
             SET max_parallel_workers_per_gather = 0",
        )?;
        let conditions: &[&str] = match of {
            SIGNATURE => &[
                "a.fp <%> b.fp <= 0.1",
                "minhash_similarity(a.fp, b.fp) > 0.9",
                "b.fp <@ minhash_ball(a.fp, 0.1)",
                "a.fp ~= b.fp",
            ],
            _ => &[
                "a.fp <~> b.fp <= 2",
                "fingerprint_similarity(a.fp, b.fp) >= 0.95",
                "b.fp <@ ball(a.fp, 3)",
                "a.fp ~= b.fp",
            ],
        };
        for condition in conditions {
            let query = format!("SELECT count(*) FROM docs a JOIN docs b ON {condition}");
            let (expected, actual) = inner_rows(&mut client, &query)?;
            assert!(actual > 4.0, "{of}, {condition}: {actual} rows");
            assert!(
                (actual / 2.0..=actual * 2.0).contains(&expected),
                "{of}, {condition}: {expected} rows expected, {actual} found"
            );
        }
        // The value is known only from the outer row of a subquery.
        let query = format!(
            "SELECT (SELECT count(*) FROM docs b WHERE {}) FROM docs a",
            conditions[0]
        );
        let (expected, actual) = inner_rows(&mut client, &query)?;
        assert!(
            (actual / 2.0..=actual * 2.0).contains(&expected),
            "{of}: {expected}, {actual}"
        );
    }
    Ok(())
}

#[test]
fn the_filtered_side_is_read_once_where_one_value_is_everywhere() -> Outcome {
    for of in types() {
        let database = Database::create()?;
        let mut client = database.connect()?;
        create(&mut client, "docs", of, 6_000, "id % 10 > 0")?;
        client.batch_execute("SET jit = off; SET max_parallel_workers_per_gather = 0")?;
        let near = if of == SIGNATURE {
            "a.fp <%> b.fp <= 0.1"
        } else {
            "a.fp <~> b.fp <= 3"
        };
        for query in [
            format!("SELECT count(*) FROM docs a JOIN docs b ON {near} WHERE b.kind = 40"),
            format!(
                "SELECT count(*) FROM docs a WHERE a.kind < 10 AND NOT EXISTS \
                 (SELECT FROM docs b WHERE {near} AND b.kind = 40)"
            ),
            format!(
                "SELECT count(b.id) FROM docs a LEFT JOIN docs b ON {near} AND b.kind = 40 \
                 WHERE a.kind < 10"
            ),
        ] {
            let shown = plan(&mut client, &query)?;
            ensure!(
                shown.contains("Materialize") && !shown.contains("Index Cond: (fp <@ ball("),
                "{of}, {query}:\n{shown}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_common_value_has_matches_in_another_table_or_has_none() -> Outcome {
    for of in types() {
        let database = Database::create()?;
        let mut client = database.connect()?;
        create(&mut client, "docs", of, 5_000, "id % 10 > 0")?;
        create(&mut client, "others", of, 5_000, "false")?;
        client.batch_execute("UPDATE others SET id = id + 10000")?;
        let near = if of == SIGNATURE {
            "a.fp <%> b.fp <= 0.1"
        } else {
            "a.fp <~> b.fp <= 3"
        };
        let value_of_others = value_of(of, "(id + 20000)");
        client.batch_execute(&format!("UPDATE others SET fp = {value_of_others}"))?;
        client.batch_execute("VACUUM ANALYZE others")?;
        client.batch_execute("SET jit = off")?;
        let expected = |client: &mut Client, exists: &str| -> Result<f64> {
            let query = format!(
                "SELECT a.id FROM docs a WHERE {exists} (SELECT FROM others b WHERE {near})"
            );
            let shown = explain(client, "COSTS", &query)?;
            crate::support::oracle::number(&shown, "rows=").context(shown)
        };
        let (with, without) = (
            expected(&mut client, "EXISTS")?,
            expected(&mut client, "NOT EXISTS")?,
        );
        assert!(
            with < 600.0 && without > 4_400.0,
            "{of}, none: {with}, {without}"
        );
        let common = value_of(of, "0::bigint");
        client.batch_execute(&format!("INSERT INTO others VALUES (1, 1, {common})"))?;
        let (with, without) = (
            expected(&mut client, "EXISTS")?,
            expected(&mut client, "NOT EXISTS")?,
        );
        assert!(
            with > 4_400.0 && without < 600.0,
            "{of}, one: {with}, {without}"
        );
        let found: i64 = value(
            &mut client,
            &format!(
                "SELECT count(*) FROM docs a WHERE EXISTS (SELECT FROM others b WHERE {near})"
            ),
        )?;
        assert_eq!(found, 4_500, "{of}");
    }
    Ok(())
}
