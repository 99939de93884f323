//! Indexes on arrays of `bigint` return the same rows as a sequential scan and GIN, after any
//! change of the table.
use crate::support::oracle::Way;
use crate::support::table::value;
use crate::support::waiting::{kill_while_index_grows, wait_until};
use crate::support::{Outcome, with};
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::Client;
use postgres::error::SqlState;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Makes an array of up to 30 elements: rare ones, common ones, NULLs and repeated ones. The array
/// may be empty or NULL.
const SETUP: &str = "
    CREATE EXTENSION IF NOT EXISTS neardup;
    CREATE FUNCTION some_tags(n bigint) RETURNS bigint[] VOLATILE LANGUAGE sql AS $$
        SELECT CASE WHEN random() < 0.02 THEN NULL WHEN random() < 0.02 THEN '{}' ELSE ARRAY(
            SELECT CASE WHEN random() < 0.02 THEN NULL
                WHEN random() < 0.1 THEN (random() * 3)::bigint
                WHEN random() < 0.5 THEN (random() * 1000)::bigint - 500
                ELSE hashint8extended((random() * 20000)::bigint, 1) END
            FROM generate_series(0, n % 30)) END
    $$;
    CREATE TABLE docs (id bigint, site int, tags bigint[]);
    CREATE FUNCTION more(first bigint, rows bigint) RETURNS void LANGUAGE sql AS $$
        INSERT INTO docs SELECT id, id % 3, some_tags(id)
        FROM generate_series(first, first + rows - 1) id
    $$;";

/// `gin` does not serve conditions on the column itself.
const INDEXES: &str = "
    CREATE INDEX docs_tags ON docs USING neardup (tags) WITH (fillfactor = 50);
    CREATE INDEX docs_site ON docs USING neardup (site, tags);
    CREATE INDEX docs_gin ON docs USING gin ((tags || '{}'::bigint[]));";

const VACUUM: &str = "VACUUM (INDEX_CLEANUP ON) docs";

/// Statements that change the table, one after the other.
const STEPS: [&str; 13] = [
    "SELECT more(100000, 3000)",
    "DELETE FROM docs WHERE id % 4 = 1",
    VACUUM,
    // Row addresses in the table are reused.
    "SELECT more(200000, 3000)",
    "UPDATE docs SET tags = some_tags(id) WHERE id % 5 = 1",
    "UPDATE docs SET tags = CASE WHEN tags IS NULL THEN '{1,2}'::bigint[] END WHERE id % 7 = 1",
    "BEGIN; SELECT more(300000, 3000); DELETE FROM docs WHERE id % 2 = 0; ROLLBACK",
    VACUUM,
    "REINDEX INDEX CONCURRENTLY docs_tags",
    "DELETE FROM docs WHERE id % 10 <> 0",
    VACUUM,
    "VACUUM FULL docs",
    "TRUNCATE docs; SELECT more(1, 500)",
];

/// Returns the rows that meet a condition, sorted.
fn ids(client: &mut Client, condition: &str) -> Result<Vec<i64>> {
    let query = format!("SELECT id FROM docs WHERE {condition}");
    let mut ids: Vec<i64> = (client.query(&query, &[])?.iter())
        .map(|row| row.get(0))
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Compares the ways to find the rows of some conditions. Returns the rows found.
fn agree(client: &mut Client, conditions: usize) -> Result<usize> {
    let mut found = 0;
    for i in 0..conditions {
        // A query has at most 1, 4 or 300 elements; rows have some of them.
        let most = [1, 4, 300][i % 3];
        let query: String = value(
            client,
            &format!(
                "SELECT coalesce(array_agg(it), '{{}}')::text FROM (SELECT unnest(some_tags(29)) \
                 FROM generate_series(1, 20) LIMIT {most}) t (it)"
            ),
        )?;
        let same: Option<String> = value(
            client,
            "SELECT (SELECT tags::text FROM docs ORDER BY random() LIMIT 1)",
        )?;
        let same = same.map_or("NULL".to_owned(), |same| format!("'{same}'"));
        for condition in [
            format!("tags && '{query}'"),
            format!("site = 1 AND tags && '{query}'"),
            format!("tags = {same}"),
            format!("tags @> '{query}'"),
            // The first elements of a row.
            format!("tags @> ({same}::bigint[])[:{}]", 1 + i % 4),
            format!("site = 1 AND tags @> ({same}::bigint[])[:2]"),
            "tags IS NULL".to_owned(),
            "site = 2".to_owned(),
        ] {
            Way::Sequential.set(client)?;
            let expected = ids(client, &condition)?;
            found += expected.len();
            // The expression turns NULL into an empty array.
            let gin = (condition.replace("tags &&", "(tags || '{}'::bigint[]) &&")).replace(
                "tags @>",
                "tags IS NOT NULL AND (tags || '{}'::bigint[]) @>",
            );
            let all = [condition, gin];
            for condition in &all {
                for way in Way::INDEXED {
                    way.set(client)?;
                    let rows = ids(client, condition)?;
                    ensure!(
                        rows == expected,
                        "{condition} by {way:?}: {rows:?} {expected:?}"
                    );
                }
            }
        }
        Way::Sequential.set(client)?;
        let all: i64 = value(client, "SELECT count(*) FROM docs")?;
        client.batch_execute("SET enable_seqscan = off; SET enable_indexonlyscan = on")?;
        let counted: i64 = value(client, "SELECT count(*) FROM docs")?;
        ensure!(
            counted == all,
            "{counted} rows by an index alone, not {all}"
        );
    }
    for index in ["docs_tags", "docs_site"] {
        for concurrently in [true, false] {
            let check = "SELECT rows + null_rows FROM neardup_index_check";
            value::<i64>(client, &format!("{check}('{index}', true, {concurrently})"))?;
        }
    }
    Ok(found)
}

#[test]
fn arrays_agree_after_each_change() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    client.batch_execute("SELECT setseed(0.5), more(1, 3000)")?;
    client.batch_execute(INDEXES)?;
    for step in STEPS {
        // Little memory means several passes.
        let memory = if step == VACUUM { "64kB" } else { "4MB" };
        client.batch_execute(&format!("SET work_mem = '{memory}'"))?;
        client.batch_execute(step)?;
        ensure!(agree(&mut client, 6)? > 100, "hardly a row after {step}");
        if step == VACUUM {
            let rows = "SELECT rows + null_rows FROM neardup_index_check('docs_tags')";
            let rows: i64 = value(&mut client, rows)?;
            let expected: i64 = value(&mut client, "SELECT count(*) FROM docs")?;
            assert_eq!(rows, expected);
        }
    }
    Ok(())
}

#[test]
fn a_build_of_arrays_that_spills_is_the_same() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    client.batch_execute("SELECT setseed(0.1), more(1, 20000)")?;
    client.batch_execute("SET maintenance_work_mem = '1MB'")?;
    client.batch_execute(INDEXES)?;
    assert!(agree(&mut client, 3)? > 1000);
    let info = "SELECT (rows, null_rows, pages, candidates)::text FROM neardup_index_info";
    let spilled: String = value(&mut client, &format!("{info}('docs_tags')"))?;
    client.batch_execute("SET maintenance_work_mem = '256MB'; REINDEX INDEX docs_tags")?;
    let in_memory: String = value(&mut client, &format!("{info}('docs_tags')"))?;
    assert_eq!(spilled, in_memory);
    Ok(())
}

#[test]
fn a_crash_leaves_an_index_on_arrays_sound() -> Outcome {
    with(own_server("arrays", &[("fsync", "off")])?, |server| {
        let conninfo = server.conninfo("postgres");
        let mut client = connect(&conninfo)?;
        client.batch_execute(SETUP)?;
        client.batch_execute("SELECT more(1, 1000)")?;
        client.batch_execute(INDEXES)?;
        client.batch_execute(
            "CREATE UNLOGGED TABLE forgotten AS SELECT tags FROM docs; \
             CREATE INDEX forgotten_tags ON forgotten USING neardup (tags)",
        )?;
        for round in 0..3 {
            std::thread::scope(|scope| -> Outcome {
                let cut = scope.spawn(|| client.batch_execute("SELECT more(10000, 10000000)"));
                kill_while_index_grows(server, "docs_tags", 2 << 20, &cut)?;
                let result = cut.join().ok().context("the client panicked")?;
                ensure!(result.is_err());
                Ok(())
            })?;
            server.start()?;
            client = connect(&conninfo)?;
            client
                .batch_execute("INSERT INTO forgotten VALUES ('{7,8}'), (NULL), ('{8}'), ('{}')")?;
            Way::Index.set(&mut client)?;
            let found = "SELECT count(*) FROM forgotten WHERE tags && '{8}'";
            assert_eq!(value::<i64>(&mut client, found)?, 2);
            let rows = "SELECT rows + null_rows FROM neardup_index_check('forgotten_tags', true)";
            assert_eq!(value::<i64>(&mut client, rows)?, 4);
            client.batch_execute(&format!("SELECT more({}, 500)", 2000 + round * 500))?;
            ensure!(agree(&mut client, 3)? > 100);
            client.batch_execute(VACUUM)?;
            ensure!(agree(&mut client, 3)? > 100);
        }
        Ok(())
    })
}

#[test]
fn a_constraint_on_arrays_waits_for_others_and_refuses() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut second] = [database.connect()?, database.connect()?];
    first.batch_execute(
        "CREATE TABLE apart (id int, tags bigint[], EXCLUDE USING neardup (tags WITH &&)); \
         INSERT INTO apart VALUES (1, '{1,2,3}')",
    )?;
    for (ends, refused) in [("COMMIT", true), ("ROLLBACK", false)] {
        first.batch_execute("BEGIN; INSERT INTO apart VALUES (2, '{10,11}')")?;
        let waiting: i32 = value(&mut second, "SELECT pg_backend_pid()")?;
        let result = std::thread::scope(|scope| {
            let insert =
                scope.spawn(|| second.batch_execute("INSERT INTO apart VALUES (3, '{7,8,9,10}')"));
            let waits = format!(
                "SELECT wait_event_type IS NOT DISTINCT FROM 'Lock' FROM pg_stat_activity \
                 WHERE pid = {waiting}"
            );
            wait_until(&mut first, &waits)?;
            first.batch_execute(ends)?;
            insert.join().ok().context("the client panicked")
        })?;
        let code = result.err().and_then(|error| error.code().cloned());
        assert_eq!(
            code,
            refused.then_some(SqlState::EXCLUSION_VIOLATION),
            "{ends}"
        );
        first.batch_execute("DELETE FROM apart WHERE id > 1")?;
    }
    Ok(())
}

#[test]
fn the_entries_of_a_huge_array_can_be_cancelled() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE huge (tags bigint[]); \
         CREATE TABLE source AS SELECT array_agg(hashint8extended(n, 7)) AS tags \
         FROM generate_series(1, 3000000) n; \
         CREATE INDEX ON huge USING neardup (tags); \
         SET statement_timeout = '500ms'",
    )?;
    let begun = Instant::now();
    let result = client.batch_execute("INSERT INTO huge SELECT tags FROM source");
    let code = result.err().and_then(|error| error.code().cloned());
    assert_eq!(code, Some(SqlState::QUERY_CANCELED));
    assert!(begun.elapsed() < Duration::from_secs(20));
    client.batch_execute(
        "SET statement_timeout = 0; SET enable_seqscan = off; INSERT INTO huge VALUES ('{1}')",
    )?;
    client.batch_execute("VACUUM huge")?;
    let found = "SELECT count(*) FROM huge, source WHERE huge.tags && (source.tags || 1::bigint)";
    assert_eq!(value::<i64>(&mut client, found)?, 1);
    value::<i64>(
        &mut client,
        "SELECT rows FROM neardup_index_check('huge_tags_idx', true)",
    )?;
    Ok(())
}

#[test]
fn rows_that_stay_are_found_while_others_come_and_go() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    client.batch_execute(INDEXES)?;
    // These rows share elements with the others, so that splits and merges move them.
    client.batch_execute(
        "INSERT INTO docs SELECT -n, n % 3, ARRAY[n % 7, hashint8extended(n, 1), n, 999] \
         FROM generate_series(1, 3000) n",
    )?;
    const ROUNDS: i64 = 20;
    let writers_left = AtomicUsize::new(2);
    let churn = |part: i64| -> Outcome {
        let mut client = database.connect()?;
        let first = 1_000_000 * part;
        for round in 0..ROUNDS {
            client.batch_execute(&format!("SELECT more({first}, 2000)"))?;
            let (least, most) = (first, first + 1_000_000);
            client.batch_execute(&format!(
                "DELETE FROM docs WHERE id BETWEEN {least} AND {most} AND id % 5 <> {round} % 5"
            ))?;
            if part == 1 {
                client.batch_execute(VACUUM)?;
            }
        }
        Ok(())
    };
    let search = |way: Way| -> Outcome {
        let mut client = database.connect()?;
        client.batch_execute("SET work_mem = '64kB'")?;
        way.set(&mut client)?;
        let mut searches = 0;
        while writers_left.load(Ordering::Relaxed) > 0 || searches < 10 {
            for (condition, expected) in [
                ("tags && '{999}'", 3000),
                ("tags && '{0,1,2,3,4,5,6}'", 3000),
                (
                    "tags && ARRAY(SELECT generate_series(1, 2000)::bigint)",
                    3000,
                ),
                (
                    "tags && ARRAY(SELECT generate_series(500, 520)::bigint)",
                    21,
                ),
                ("site = 1 AND tags && '{999,3}'", 1000),
                ("tags = ARRAY[5 % 7, hashint8extended(5, 1), 5, 999]", 1),
            ] {
                let mut rows = ids(&mut client, condition)?;
                rows.retain(|&id| id < 0);
                ensure!(
                    rows.is_sorted_by(|a, b| a < b),
                    "a row twice by {way:?}, {condition}"
                );
                let stay = rows.len();
                ensure!(
                    stay == expected,
                    "{condition} by {way:?}: {stay} of {expected}"
                );
                searches += 1;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Outcome {
        let writers_left = &writers_left;
        let writers = [1, 2].map(|part| {
            scope.spawn(move || {
                let result = churn(part);
                writers_left.fetch_sub(1, Ordering::Relaxed);
                result
            })
        });
        let readers = Way::INDEXED.map(|way| scope.spawn(move || search(way)));
        for thread in writers.into_iter().chain(readers) {
            thread.join().ok().context("a thread panicked")??;
        }
        Ok(())
    })?;
    ensure!(agree(&mut client, 3)? > 100);
    Ok(())
}

/// A key to write over the first key of a leaf, or the largest one over the last key, and the
/// error of the check with the table. Key ranges, order and links stay valid, so that no other
/// check fails.
const CHANGED_KEYS: [(usize, u64, &str); 3] = [
    (1, 1, "has another value in the index"),
    (2, 1, "is missing from a permutation"),
    (2, u64::MAX, "is missing from a permutation"),
];

#[test]
fn a_check_finds_elements_that_are_not_those_of_the_row() -> Outcome {
    const PAGE: usize = 8192;
    const FIRST_KEY: usize = 24;
    const LOWER: usize = 12;
    // Servers that have checksums would refuse the pages before the index sees them.
    let settings = [("fsync", "off"), ("ignore_checksum_failure", "on")];
    with(own_server("elements", &settings)?, |server| {
        let conninfo = server.conninfo("postgres");
        let mut client = connect(&conninfo)?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        let mut files = Vec::new();
        for case in 0..CHANGED_KEYS.len() {
            client.batch_execute(&format!(
                "CREATE TABLE docs_{case} AS SELECT ARRAY[n, n + 100] AS tags \
                 FROM generate_series(5::bigint, 44) n; \
                 CREATE INDEX tags_{case} ON docs_{case} USING neardup (tags)"
            ))?;
            let path = format!("SELECT pg_relation_filepath('tags_{case}')");
            files.push(server.data().join(value::<String>(&mut client, &path)?));
        }
        drop(client);
        server.stop()?;
        for (file, (block, key, _)) in files.iter().zip(CHANGED_KEYS) {
            let mut pages = fs::read(file)?;
            let page = PAGE * block;
            // The header has the end of the keys.
            let end = u16::from_ne_bytes([pages[page + LOWER], pages[page + LOWER + 1]]);
            let at = match key {
                u64::MAX => page + usize::from(end) - 8,
                _ => page + FIRST_KEY,
            };
            pages[at..at + 8].copy_from_slice(&key.to_ne_bytes());
            fs::write(file, pages)?;
        }
        server.start()?;
        let mut client = connect(&conninfo)?;
        for (case, (_, _, expected)) in CHANGED_KEYS.into_iter().enumerate() {
            let mut check = |heap: bool, concurrently: bool| {
                client.query_one(
                    "SELECT neardup_index_check(('tags_' || $1::text)::regclass, $2, $3)",
                    &[&case.to_string(), &heap, &concurrently],
                )
            };
            check(false, false)?;
            for concurrently in [false, true] {
                let result = check(true, concurrently);
                let error = result.err().context("no damage found")?;
                let error = error.as_db_error().context("an error of the server")?;
                assert_eq!(error.code().code(), "XX002");
                let detail = error.detail().unwrap_or_default();
                assert!(detail.contains(expected), "{detail}");
            }
        }
        Ok(())
    })
}
