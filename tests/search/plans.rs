//! The index in larger plans: with other indexes, in parallel workers, and in EXPLAIN.
use crate::support::Outcome;
use crate::support::clients::{cancel_when, code};
use crate::support::data::{Probe, Shape};
use crate::support::oracle::{Way, explain, number, plan};
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::waiting::poll;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;

/// Makes clusters of wide rows, so that a second index is worth the table pages that it saves.
fn wide_rows() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(12_000, 1), "")?;
    client.batch_execute(
        "ALTER TABLE docs ADD kind int, ADD words text[], ADD pad text; \
         ALTER TABLE docs ALTER pad SET STORAGE PLAIN; \
         UPDATE docs SET kind = hashint8(id) % 50, words = ARRAY['w' || id % 60], pad = \
         repeat('x', 1200)",
    )?;
    client.batch_execute("VACUUM FULL docs")?;
    client.batch_execute(
        "CREATE INDEX docs_kind ON docs (kind); CREATE INDEX docs_words ON docs USING gin (words); \
         ANALYZE docs",
    )?;
    Ok((database, client))
}

/// Returns a condition that holds for a twelfth of the rows.
fn near(seed: u64) -> String {
    let center = Shape::Balls.center(seed);
    format!("fp <@ {}", FINGERPRINT.ball(Probe { center, radius: 11 }))
}

/// The sorted numbers that a query `SELECT id AS n ...` returns.
fn ids(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let array = format!("SELECT coalesce(array_agg(n ORDER BY n), '{{}}') FROM ({query}) AS found");
    value(client, &array)
}

#[test]
fn bitmaps_of_this_and_other_indexes_are_combined() -> Outcome {
    let (_database, mut client) = wide_rows()?;
    let near = near(1);
    for (condition, nodes) in [
        (format!("{near} AND kind = 3"), ["BitmapAnd", "docs_kind"]),
        (
            format!("{near} AND words @> '{{w7}}'"),
            ["BitmapAnd", "docs_words"],
        ),
        (format!("{near} OR kind = 3"), ["BitmapOr", "docs_kind"]),
        (
            format!("(kind = 3 OR words @> '{{w7}}') AND {near}"),
            ["BitmapAnd", "BitmapOr"],
        ),
        (
            format!("(kind = 3 AND fp ~= '0000000000000000') OR ({near} AND words @> '{{w9}}')"),
            ["BitmapOr", "docs_words"],
        ),
    ] {
        let query = format!("SELECT id AS n FROM docs WHERE {condition}");
        Way::Sequential.set(&mut client)?;
        let expected = ids(&mut client, &query)?;
        assert!(!expected.is_empty(), "{condition}");
        Way::Bitmap.set(&mut client)?;
        let shown = plan(&mut client, &query)?;
        for node in nodes.into_iter().chain(["Bitmap Index Scan on docs_fp"]) {
            assert!(shown.contains(node), "no {node}:\n{shown}");
        }
        assert!(ids(&mut client, &query)? == expected, "{condition}");
    }
    Ok(())
}

#[test]
fn a_bitmap_that_keeps_pages_only_is_rechecked_row_by_row() -> Outcome {
    let (_database, mut client) = wide_rows()?;
    let query = "SELECT id AS n FROM docs WHERE fp <~> '0123456789abcdef' <= 30";
    Way::Sequential.set(&mut client)?;
    let expected = ids(&mut client, query)?;
    Way::Bitmap.set(&mut client)?;
    client.batch_execute("SET work_mem = '64kB'")?;
    let shown = analyzed(&mut client, query)?;
    assert!(shown.contains("lossy="), "{shown}");
    assert!(shown.contains("Rows Removed by Index Recheck"), "{shown}");
    assert!(ids(&mut client, query)? == expected);
    Ok(())
}

/// Returns the output of EXPLAIN ANALYZE for a query.
fn analyzed(client: &mut Client, query: &str) -> Result<String> {
    explain(client, "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF", query)
}

/// Parallel queries: the nodes that the plan must have, the plan types to disable, and the query.
const PARALLEL: [(&[&str], &str, &str); 6] = [
    (
        &["Parallel Seq Scan on docs"],
        "indexscan, bitmapscan",
        "SELECT id AS n FROM docs WHERE fp <~> '0123456789abcdef' <= 25",
    ),
    (
        &["Parallel Seq Scan on asked", "Index Scan using docs_fp"],
        "bitmapscan",
        "SELECT a.id * 1000000 + d.id AS n FROM asked a JOIN docs d ON d.fp <~> a.fp <= 9",
    ),
    (
        &[
            "Parallel Bitmap Heap Scan on docs",
            "Bitmap Index Scan on docs_fp",
        ],
        "seqscan, indexscan",
        "SELECT id AS n FROM docs WHERE fp <~> '0123456789abcdef' <= 25",
    ),
    (
        &[
            "Parallel Append",
            "Index Scan using parts_0_fp_idx",
            "Index Scan using parts_3_fp_idx",
        ],
        "seqscan, bitmapscan",
        "SELECT id AS n FROM parts WHERE fp <~> '0123456789abcdef' <= 25",
    ),
    (
        &["Parallel Seq Scan on asked", "Order By: (fp <#> a.fp)"],
        "bitmapscan, sort",
        "SELECT a.id * 1000 + d AS n FROM asked a CROSS JOIN LATERAL \
         (SELECT (fp <~> a.fp)::int AS d FROM docs ORDER BY fp <~> a.fp LIMIT 3) AS near",
    ),
    (
        &["Parallel Seq Scan on asked"],
        "indexscan",
        "SELECT simhash(repeat('some words of row ' || id || ' ', 3))::bigint # id AS n FROM asked",
    ),
];

#[test]
fn parallel_workers_search_and_measure() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(12_000, 2), "")?;
    client.batch_execute(
        "CREATE TABLE asked AS SELECT id, fp FROM docs WHERE id % 40 = 0 AND fp IS NOT NULL; \
         CREATE TABLE parts (id bigint, fp fingerprint) PARTITION BY HASH (id)",
    )?;
    for n in 0..4 {
        client.batch_execute(&format!(
            "CREATE TABLE parts_{n} PARTITION OF parts FOR VALUES WITH (MODULUS 4, REMAINDER {n})"
        ))?;
    }
    client.batch_execute(
        "INSERT INTO parts SELECT * FROM docs; CREATE INDEX ON parts USING neardup (fp); ANALYZE",
    )?;
    for (nodes, without, query) in PARALLEL {
        Way::Sequential.set(&mut client)?;
        client.batch_execute("SET max_parallel_workers_per_gather = 0")?;
        let expected = ids(&mut client, query)?;
        assert!(expected.len() > 100, "{query}: {} rows", expected.len());
        client.batch_execute("RESET ALL; SET jit = off")?;
        for kind in without.split(", ") {
            client.batch_execute(&format!("SET enable_{kind} = off"))?;
        }
        if nodes.contains(&"Parallel Append") {
            // Version 18 compares only costs of the children, and uses disabled plan types.
            client.batch_execute("SET seq_page_cost = 1000")?;
        }
        client.batch_execute(
            "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; \
             SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; \
             SET min_parallel_index_scan_size = 0",
        )?;
        let shown = plan(&mut client, query)?;
        for node in nodes.iter().chain(&["Gather"]) {
            assert!(shown.contains(node), "no {node}:\n{shown}");
        }
        assert!(ids(&mut client, query)? == expected, "{query}");
    }
    Ok(())
}

#[test]
fn a_search_runs_inside_a_worker() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let values = Shape::Balls.values(6_000, 3);
    table.create_indexed(&mut client, &values, "")?;
    let version: i32 = value(
        &mut client,
        "SELECT current_setting('server_version_num')::int",
    )?;
    let setting = match version {
        ..160_000 => "force_parallel_mode",
        _ => "debug_parallel_query",
    };
    client.batch_execute(&format!("SET {setting} = on"))?;
    Way::Index.set(&mut client)?;
    let query = format!("SELECT id FROM docs WHERE {}", near(3));
    // Other tests may use all workers for a while.
    poll("a worker is launched", || {
        let shown = analyzed(&mut client, &query)?;
        let in_worker = shown.contains("Single Copy: true") && shown.contains("Index Scan using");
        ensure!(in_worker, "{shown}");
        Ok(shown.contains("Workers Launched: 1"))
    })?;
    table.holds(&mut client, 4)
}

#[test]
fn explain_tells_what_was_done() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(12_000, 5), "")?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    let near = format!(
        "fp <~> {} <= 8",
        FINGERPRINT.literal(Shape::Balls.center(5))
    );
    let count = format!("SELECT count(*) FROM docs WHERE {near}");
    Way::Sequential.set(&mut client)?;
    let rows: i64 = value(&mut client, &count)?;
    assert!(rows > 100);

    Way::Index.set(&mut client)?;
    let shown = analyzed(&mut client, &format!("SELECT id FROM docs WHERE {near}"))?;
    // Exact: the index alone decides, and the scan removes no rows.
    assert!(shown.contains("Index Cond: (fp <@ '<"), "{shown}");
    assert!(
        !shown.contains("Filter") && !shown.contains("Removed"),
        "{shown}"
    );
    assert_eq!(number(&shown, "actual rows="), Some(rows as f64), "{shown}");

    let limited =
        format!("SELECT id FROM docs WHERE {near} AND id % 2 = 0 ORDER BY fp <~> '00' LIMIT 5");
    let limited = limited.replace("'00'", &FINGERPRINT.literal(Shape::Balls.center(5)));
    let shown = analyzed(&mut client, &limited)?;
    for part in [
        "Index Cond: (fp <@ ",
        "Order By: (fp <#> ",
        "Filter: ((id % ",
        "Rows Removed by Filter",
    ] {
        assert!(shown.contains(part), "no {part}:\n{shown}");
    }
    assert!(!shown.contains("Sort"), "{shown}");

    client.batch_execute("SET enable_indexonlyscan = on")?;
    let shown = analyzed(&mut client, &format!("SELECT fp FROM docs WHERE {near}"))?;
    assert!(shown.contains("Index Only Scan using docs_fp"), "{shown}");
    assert_eq!(number(&shown, "Heap Fetches: "), Some(0.0), "{shown}");
    client.batch_execute(&format!("UPDATE docs SET id = id WHERE {near}"))?;
    let shown = analyzed(&mut client, &format!("SELECT fp FROM docs WHERE {near}"))?;
    assert!(
        number(&shown, "Heap Fetches: ") >= Some(rows as f64),
        "{shown}"
    );
    Ok(())
}

#[test]
fn what_a_search_is_expected_to_cost_grows_with_its_radius() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Uniform.values(60_000, 6), "")?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    client.batch_execute("SET jit = off")?;
    let mut costs = Vec::new();
    let mut kinds = Vec::new();
    for radius in 0..=64 {
        let query = format!("SELECT id FROM docs WHERE fp <~> '0123456789abcdef' <= {radius}");
        client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off")?;
        let shown = explain(&mut client, "COSTS", &query)?;
        ensure!(shown.starts_with("Index Scan using docs_fp"), "{shown}");
        costs.push(number(&shown, "..").unwrap_or_default());
        client.batch_execute("RESET enable_seqscan; RESET enable_bitmapscan")?;
        kinds.push(plan(&mut client, &query)?.contains("Seq Scan"));
    }
    assert!(costs.is_sorted(), "{costs:?}");
    assert!(costs[12] > 2.0 * costs[3], "{costs:?}");
    // A sequential scan is for a radius that contains nearly every row, and for larger ones.
    assert!(!kinds[12] && kinds[64] && kinds.is_sorted(), "{kinds:?}");
    Ok(())
}

#[test]
fn a_search_that_is_cancelled_in_its_midst_leaves_nothing_behind() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(20_000, 7), "")?;
    client.batch_execute("CREATE SEQUENCE seen; DELETE FROM docs WHERE id % 10 = 0")?;
    for (way, mark, searched) in [
        (Way::Index, "Index Cond", "docs WHERE fp <@ ball(a.fp, 14)"),
        (
            Way::Bitmap,
            "Bitmap Index Scan",
            "docs WHERE fp <@ ball(a.fp, 14)",
        ),
        (
            Way::Index,
            "Order By",
            "(SELECT fp FROM docs ORDER BY fp <~> a.fp) AS sorted",
        ),
    ] {
        way.set(&mut client)?;
        client.batch_execute("SET enable_indexonlyscan = on; SET enable_sort = off")?;
        let query = format!(
            "SELECT sum(n) FROM docs a CROSS JOIN LATERAL (SELECT nextval('seen') AS n FROM \
                {searched}) AS b"
        );
        let shown = plan(&mut client, &query)?;
        ensure!(shown.contains(mark), "{shown}");
        // Other sessions see a sequence before the statement ends.
        let midst = "SELECT last_value > 3000 FROM seen";
        let restart = "ALTER SEQUENCE seen RESTART";
        let result = cancel_when(&database, &mut client, midst, &query, restart)?;
        assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
        client.batch_execute(restart)?;
        // VACUUM waits for a scan that holds a pin.
        client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
        table.holds(&mut client, 8)?;
    }
    Ok(())
}

#[test]
fn without_its_scope_a_search_is_expected_to_cost_a_whole_table() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &Shape::Uniform.values(60_000, 9))?;
    client.batch_execute(
        "ALTER TABLE docs ADD site int; UPDATE docs SET site = id % 40; \
         CREATE INDEX docs_site ON docs USING neardup (site, fp)",
    )?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off")?;
    let (scoped, unscoped) = (
        "SELECT id FROM docs WHERE site = 7 AND fp <~> '0123456789abcdef' <= 3",
        "SELECT id FROM docs WHERE fp <~> '0123456789abcdef' <= 3",
    );
    let cost = |client: &mut Client, query: &str, index: &str| -> Result<f64> {
        let shown = explain(client, "COSTS", query)?;
        ensure!(
            shown.starts_with(&format!("Index Scan using {index} ")),
            "{shown}"
        );
        number(&shown, "..").context(shown)
    };
    let cheap = cost(&mut client, scoped, "docs_site")?;
    let dear = cost(&mut client, unscoped, "docs_site")?;
    assert!(dear > 5.0 * cheap, "{dear} against {cheap}");
    client.batch_execute(&table.index_command(""))?;
    let plain = cost(&mut client, unscoped, "docs_fp")?;
    assert!(plain < dear / 5.0, "{plain} against {dear}");
    Ok(())
}
