//! Queries of every kind that use the index: joins, subqueries, several conditions, NULL.
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::oracle::{Way, assert_way, explain};
use crate::support::table::{FINGERPRINT, Table, value};
use anyhow::Result;
use neardup_tests::Database;
use postgres::Client;

const ALL: &[Way] = &Way::INDEXED;
/// Ways of queries that the server can run by a plain scan only, or by a bitmap scan only.
const PLAIN: &[Way] = &[Way::Index];
const BITMAP: &[Way] = &[Way::Bitmap];

/// A query: its subject, the ways in which it uses the index, and its text, which returns a column
/// `n` of type bigint.
type Query = (&'static str, &'static [Way], &'static str);

const QUERIES: &[Query] = &[
    (
        "a nested loop that scans again for each outer row",
        ALL,
        "SELECT p.id * 1000000 + d.id AS n FROM asked p JOIN docs d ON d.fp <@ ball(p.fp, \
            p.radius)",
    ),
    (
        "a join through ~=",
        ALL,
        "SELECT p.id * 1000000 + d.id AS n FROM asked p JOIN docs d ON d.fp ~= p.fp",
    ),
    (
        "an outer join: rows without a partner, by NULL too",
        ALL,
        "SELECT p.id * 1000000 + coalesce(d.id, 999999) AS n \
         FROM asked p LEFT JOIN docs d ON d.fp <@ ball(p.fp, p.radius)",
    ),
    (
        "an anti-join",
        ALL,
        "SELECT p.id AS n FROM asked p \
         WHERE NOT EXISTS (SELECT FROM docs d WHERE d.fp <@ ball(p.fp, 5) AND d.id <> p.id)",
    ),
    (
        "a scan that is left after the first row and begun again",
        ALL,
        "SELECT p.id AS n FROM asked p WHERE (SELECT true FROM docs d \
         WHERE d.fp <@ ball(p.fp, 9) LIMIT 1)",
    ),
    (
        "a correlated subquery",
        ALL,
        "SELECT p.id * 1000000 + (SELECT count(*) FROM docs d WHERE d.fp <@ ball(p.fp, p.radius)) \
         AS n FROM asked p",
    ),
    (
        "LATERAL",
        ALL,
        "SELECT p.id * 1000000 + d.total AS n FROM asked p CROSS JOIN LATERAL \
         (SELECT sum(id)::bigint AS total FROM docs WHERE fp <@ ball(p.fp, p.radius)) AS d \
         WHERE d.total IS NOT NULL",
    ),
    (
        "a self-join: all pairs",
        ALL,
        "SELECT a.id * 1000000 + b.id AS n FROM (SELECT * FROM docs WHERE id < 300) a \
         JOIN docs b ON b.fp <@ ball(a.fp, 3) AND a.id < b.id",
    ),
    (
        "two conditions",
        ALL,
        "SELECT p.id * 1000000 + d.id AS n FROM asked p JOIN asked o ON o.id = p.id + 1 \
         JOIN docs d ON d.fp <@ ball(p.fp, 24) AND d.fp <@ ball(o.fp, 26)",
    ),
    (
        "three conditions, of which ~= is the narrowest",
        ALL,
        "SELECT p.id * 1000000 + d.id AS n FROM asked p \
         JOIN docs d ON d.fp <@ ball(p.fp, 24) AND d.fp ~= p.fp AND d.fp <@ ball(p.fp, 4)",
    ),
    (
        "a condition on another column",
        ALL,
        "SELECT p.id * 1000000 + d.id AS n FROM asked p \
         JOIN docs d ON d.fp <@ ball(p.fp, 12) AND d.id % 3 = 0",
    ),
    (
        "an equality join",
        ALL,
        "SELECT p.id * 1000000 + d.id AS n FROM asked p JOIN docs d ON d.fp = p.fp",
    ),
    (
        "a ball from a table, some of them empty, some NULL",
        ALL,
        "SELECT p.id * 1000000 + d.id AS n FROM asked p JOIN docs d ON d.fp <@ p.ball",
    ),
    (
        "OR, by two scans into one bitmap",
        BITMAP,
        "SELECT d.id AS n FROM docs d WHERE d.fp <@ ball('0123456789abcdef'::fingerprint, 22) \
         OR d.fp <@ ball('fedcba9876543210'::fingerprint, 22)",
    ),
    (
        "AND of two scans' bitmaps' worth of rows",
        BITMAP,
        "SELECT d.id AS n FROM docs d WHERE (d.fp <@ ball('0123456789abcdef'::fingerprint, 29) \
         OR d.fp ~= 'fedcba9876543210') AND d.fp <@ ball('ffff456789abcdef'::fingerprint, 30)",
    ),
    (
        "one of a list of balls",
        BITMAP,
        "SELECT d.id AS n FROM docs d WHERE d.fp <@ ANY ((SELECT array_agg(ball) FROM \
            asked)::fingerprint_ball[])",
    ),
    (
        "no condition but the index's own: rows without a fingerprint too",
        ALL,
        "SELECT d.id AS n FROM docs d WHERE d.id % 2 = 0 AND d.id > 100",
    ),
    (
        "locked rows",
        PLAIN,
        "SELECT id AS n FROM docs d WHERE d.fp <@ ball('0123456789abcdef'::fingerprint, 24) FOR \
            UPDATE",
    ),
];

/// Queries without result rows.
const EMPTY: &[Query] = &[
    (
        "two conditions that exclude each other",
        ALL,
        "SELECT d.id AS n FROM docs d \
         WHERE d.fp <@ ball('0000000000000000'::fingerprint, 31) \
         AND d.fp <@ ball('ffffffffffffffff'::fingerprint, 32)",
    ),
    (
        "a ball that is NULL when the query runs",
        ALL,
        "SELECT d.id AS n FROM docs d WHERE d.fp <@ (SELECT NULL::fingerprint_ball)",
    ),
    (
        "one condition of two is NULL",
        ALL,
        "SELECT d.id AS n FROM docs d WHERE d.fp <@ (SELECT NULL::fingerprint_ball) \
         AND d.fp <@ ball('0123456789abcdef'::fingerprint, 64)",
    ),
];

fn database() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let mut values = Shape::Balls.values(6_000, 3);
    values.extend(Shape::Uniform.values(6_000, 4));
    table.create_indexed(&mut client, &values, "fillfactor = 50")?;
    client.batch_execute(
        "CREATE TABLE asked AS SELECT id, fp, (id % 13 - 1)::int AS radius, \
             ball(fp, (id % 13 - 1)::int) AS ball \
         FROM (SELECT row_number() OVER (ORDER BY hashint8(id)) AS id, \
                   CASE id % 3 WHEN 0 THEN fp ELSE (fp::bigint # (1::bigint << (id % \
                   50)::int))::fingerprint END AS fp \
               FROM docs WHERE id % 97 = 0) AS sample; \
         CREATE INDEX docs_even ON docs USING neardup (fp) WHERE id % 2 = 0; \
         ANALYZE",
    )?;
    Ok((database, client))
}

/// Returns a query's result, sorted; asserts that it runs in this way.
fn answer(client: &mut Client, way: Way, query: &str) -> Result<Vec<i64>> {
    // All of the indexes have this prefix.
    assert_way(client, way, "docs_", query)?;
    let array = format!("SELECT coalesce(array_agg(n ORDER BY n), '{{}}') FROM ({query}) AS found");
    value(client, &array)
}

#[test]
fn each_query_answers_with_the_index_as_without() -> Outcome {
    let (_database, mut client) = database()?;
    for (why, ways, query) in QUERIES {
        Way::Sequential.set(&mut client)?;
        let expected = answer(&mut client, Way::Sequential, query)?;
        assert!(!expected.is_empty(), "{why}: finds nothing");
        for way in *ways {
            let found = answer(&mut client, *way, query)?;
            assert!(
                found == expected,
                "{why}, {way:?}: {} of {}",
                found.len(),
                expected.len()
            );
        }
    }
    Ok(())
}

#[test]
fn impossible_and_unknown_conditions_find_nothing() -> Outcome {
    let (_database, mut client) = database()?;
    for (why, ways, query) in EMPTY {
        for way in *ways {
            let found = answer(&mut client, *way, query)?;
            assert_eq!(found, [0; 0], "{why}, {way:?}");
        }
    }
    Ok(())
}

#[test]
fn a_scan_without_a_condition_returns_rows_without_a_fingerprint() -> Outcome {
    let (_database, mut client) = database()?;
    let query = "SELECT id AS n FROM docs d WHERE id % 2 = 0 AND fp IS NULL";
    let found = answer(&mut client, Way::Index, query)?;
    assert!(found.len() > 300, "{} rows", found.len());
    assert_eq!(found, answer(&mut client, Way::Sequential, query)?);
    Ok(())
}

#[test]
fn counting_rows_without_looking_at_a_column() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute("VACUUM docs")?;
    let counts = "SELECT count(*) AS n FROM docs UNION ALL \
                  SELECT count(*) FROM docs WHERE id % 2 = 0 UNION ALL \
                  SELECT count(*) FROM docs WHERE EXISTS (SELECT FROM docs)";
    let expected = answer(&mut client, Way::Sequential, counts)?;
    // The planner treats a query that needs no column as covered by every index.
    client.batch_execute("RESET ALL")?;
    for setting in [
        "RESET ALL",
        "SET enable_seqscan = off",
        "SET enable_bitmapscan = off",
    ] {
        client.batch_execute(setting)?;
        let found: Vec<i64> = value(
            &mut client,
            &format!("SELECT array_agg(n ORDER BY n) FROM ({counts}) AS found"),
        )?;
        assert_eq!(found, expected, "{setting}");
    }
    Ok(())
}

#[test]
fn prepared_statements_with_a_generic_plan() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute("SET plan_cache_mode = force_generic_plan")?;
    Way::Index.set(&mut client)?;
    let ids = |condition: &str| {
        format!("SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM docs WHERE {condition}")
    };
    let indexed = client.prepare(&ids("fp <@ ball($1::bigint::fingerprint, $2)"))?;
    client.batch_execute(
        "PREPARE shown AS SELECT id FROM docs WHERE fp <@ ball($1::bigint::fingerprint, $2)",
    )?;
    assert_way(&mut client, Way::Index, "docs_fp", "EXECUTE shown(5, 3)")?;
    let known: Vec<i64> = value(
        &mut client,
        "SELECT array_agg(fp::bigint) FROM asked WHERE fp IS NOT NULL",
    )?;
    let mut rows = 0;
    for (center, radius) in known.into_iter().zip((-1..=20).cycle()) {
        let found: Vec<i64> = client.query_one(&indexed, &[&center, &radius])?.get(0);
        let filter = format!("fp <~> ({center})::bigint::fingerprint <= {radius}");
        Way::Sequential.set(&mut client)?;
        let expected: Vec<i64> = value(&mut client, &ids(&filter))?;
        Way::Index.set(&mut client)?;
        assert_eq!(found, expected, "{center} {radius}");
        rows += found.len();
    }
    assert!(rows > 0);
    let nothing = client.query_one(&indexed, &[&None::<i64>, &3])?;
    assert_eq!(nothing.get::<_, Vec<i64>>(0), [0; 0]);
    Ok(())
}

#[test]
fn a_scrollable_cursor_goes_back() -> Outcome {
    let (_database, mut client) = database()?;
    Way::Index.set(&mut client)?;
    let mut transaction = client.transaction()?;
    transaction.batch_execute(
        "DECLARE c SCROLL CURSOR FOR SELECT id FROM docs \
         WHERE fp <@ ball('0123456789abcdef'::fingerprint, 26)",
    )?;
    let mut ids = |fetch: &str| -> Result<Vec<i64>> {
        let rows = transaction.query(fetch, &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let forward = ids("FETCH FORWARD ALL FROM c")?;
    let mut backward = ids("FETCH BACKWARD ALL FROM c")?;
    backward.reverse();
    assert!(forward.len() > 100);
    assert_eq!(forward, backward);
    Ok(())
}

#[test]
fn pages_found_in_the_cache_are_counted() -> Outcome {
    let (_database, mut client) = database()?;
    // Each search reads at least one page, nearly always at its last position.
    Way::Index.set(&mut client)?;
    let searches: i64 = value(
        &mut client,
        "SELECT count(*) FROM asked WHERE ball IS NOT NULL AND radius >= 0",
    )?;
    for _ in 0..2 {
        let search = "SELECT count(*) FROM asked p JOIN docs d ON d.fp <@ ball(p.fp, p.radius)";
        value::<i64>(&mut client, search)?;
    }
    let read = "SELECT pg_stat_get_xact_blocks_fetched('docs_fp'::regclass)";
    let hit = "SELECT pg_stat_get_xact_blocks_hit('docs_fp'::regclass)";
    client.batch_execute("BEGIN")?;
    value::<i64>(
        &mut client,
        "SELECT count(*) FROM asked p JOIN docs d ON d.fp <@ ball(p.fp, p.radius)",
    )?;
    let (read, hit): (i64, i64) = (value(&mut client, read)?, value(&mut client, hit)?);
    client.batch_execute("COMMIT")?;
    assert!(
        searches > 50 && hit >= searches && read >= hit,
        "{searches} searches, {read} pages, {hit} in the cache"
    );
    Ok(())
}

#[test]
fn a_join_is_priced_by_its_radius() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT n AS id, hashint8extended(n, 1)::fingerprint AS fp \
             FROM generate_series(1::bigint, 200000) AS n; \
         CREATE TABLE asked AS SELECT * FROM docs WHERE id % 1000 = 0; \
         CREATE INDEX docs_fp ON docs USING neardup (fp); ANALYZE",
    )?;
    let condition =
        |radius: &str| format!("SELECT * FROM asked a JOIN docs d ON d.fp <~> a.fp <= {radius}");
    let mut cost = |query: &str| -> anyhow::Result<f64> {
        assert_way(&mut client, Way::Index, "docs_fp", query)?;
        let plan = explain(&mut client, "COSTS ON", query)?;
        // "->  Index Scan using docs_fp on docs d  (cost=0.00..12.34 rows=1 width=16)"
        let inner = plan.split("Index Scan using docs_fp").nth(1);
        let cost = inner
            .and_then(|inner| inner.split("..").nth(1))
            .and_then(|rest| rest.split(' ').next());
        Ok(cost.unwrap_or_default().parse()?)
    };
    let costs = ["3", "8", "12", "30"].map(|radius| cost(&condition(radius)));
    let costs: Vec<f64> = costs.into_iter().collect::<anyhow::Result<_>>()?;
    assert!(costs.windows(2).all(|pair| pair[0] < pair[1]), "{costs:?}");
    assert!(costs[2] > 2.0 * costs[0], "{costs:?}");
    Ok(())
}
