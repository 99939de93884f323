//! Inspection of indexes in unusual states: during writes, on a standby, of another session's
//! temporary tables, and with pages left by a crash.
use crate::support::data::Shape;
use crate::support::fixtures::{self, DOCS, FIXTURES};
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::workload::{self, Job, Work};
use crate::support::{Outcome, with};
use anyhow::Context;
use neardup_tests::{Database, connect, own_server};
use std::fs;

const FUNCTIONS: [&str; 3] = [
    "neardup_index_info",
    "neardup_expert_index_statistics",
    "neardup_index_check",
];

#[test]
fn an_index_can_be_looked_into_while_others_write() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fixtures::prepare(&mut client, &[&DOCS], 2_000)?;
    let mut reader = database.connect()?;
    // No client deletes rows, so the function counts all rows committed before it started.
    let works =
        [Work::Insert, Work::Insert, Work::Vacuum, Work::Build].map(|work| Job(work, &DOCS));
    workload::run(database.conninfo(), &works, 1, false, |_| {
        for _ in 0..200 {
            let committed = "SELECT count(fp) FROM docs";
            let before: i64 = value(&mut reader, committed)?;
            let rows: i64 = value(
                &mut reader,
                "SELECT rows FROM neardup_index_info('docs_fp')",
            )?;
            assert!(rows >= before, "{rows} rows of {before}");
        }
        Ok(())
    })?;
    client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
    let same: bool = value(
        &mut client,
        "SELECT rows + null_rows = (SELECT count(*) FROM docs) FROM neardup_index_info('docs_fp')",
    )?;
    assert!(same);
    Ok(())
}

#[test]
fn an_index_is_checked_against_its_table_while_others_write() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fixtures::prepare(&mut client, &FIXTURES, 1_000)?;
    let mut reader = database.connect()?;
    // A writer never waits for the check.
    let mut writer = database.connect()?;
    writer.batch_execute("SET lock_timeout = '20s'")?;
    for fixture in FIXTURES {
        let works = [
            Work::Insert,
            Work::Change,
            Work::Change,
            Work::Vacuum,
            Work::Drain,
        ]
        .map(|work| Job(work, fixture));
        workload::run(database.conninfo(), &works, 2, false, |_| {
            for _ in 0..10 {
                reader.batch_execute(&format!(
                    "SELECT neardup_index_check('{}_fp', heap => true, concurrently => true)",
                    fixture.table
                ))?;
            }
            Ok(())
        })?;
        let mut open = reader.transaction()?;
        open.batch_execute(&format!(
            "SELECT neardup_index_check('{}_fp', concurrently => true)",
            fixture.table
        ))?;
        writer.batch_execute(&format!("DELETE FROM {}", fixture.table))?;
        open.rollback()?;
    }
    Ok(())
}

#[test]
fn another_sessions_temporary_index_is_refused() -> Outcome {
    let database = Database::create()?;
    let mut owner = database.connect()?;
    owner.batch_execute(
        "CREATE TEMPORARY TABLE docs (fp fingerprint); \
         CREATE INDEX docs_fp ON docs USING neardup (fp)",
    )?;
    let oid: u32 = value(&mut owner, "SELECT 'docs_fp'::regclass::oid")?;
    for function in FUNCTIONS {
        let call = format!("SELECT {function}({oid})");
        owner.batch_execute(&call)?;
        let error = database.connect()?.batch_execute(&call).unwrap_err();
        let error = error.as_db_error().context("an error of the server's")?;
        assert_eq!(error.code().code(), "0A000", "{error:?}");
        let message = "index \"docs_fp\" is on a temporary table of another session";
        assert_eq!(error.message(), message);
    }
    Ok(())
}

#[test]
fn pages_that_a_crash_left_over_are_counted_and_do_no_harm() -> Outcome {
    with(own_server("leftover", &[("fsync", "off")])?, |server| {
        let table = Table::new(FINGERPRINT);
        let mut client = connect(&server.conninfo("postgres"))?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        table.create_indexed(&mut client, &Shape::Balls.values(3_000, 1), "")?;
        let unused = "SELECT unused_pages FROM neardup_index_info('docs_fp')";
        assert_eq!(value::<i64>(&mut client, unused)?, 0);
        let file: String = value(&mut client, "SELECT pg_relation_filepath('docs_fp')")?;
        drop(client);
        server.stop()?;
        // Pages of a split whose server died before logging them.
        let file = server.data().join(file);
        let pages = fs::read(&file)?;
        fs::write(&file, [pages, vec![0; 2 * 8192]].concat())?;
        server.start()?;
        let mut client = connect(&server.conninfo("postgres"))?;
        assert_eq!(value::<i64>(&mut client, unused)?, 2);
        table.append(&mut client, 3_000, &Shape::Uniform.values(6_000, 2))?;
        table.holds(&mut client, 3)?;
        client.batch_execute("REINDEX INDEX docs_fp")?;
        assert_eq!(value::<i64>(&mut client, unused)?, 0);
        Ok(())
    })
}

/// The column `advice` is NULL for an index in good condition, and names a remedy that helps.
#[test]
fn advice_is_given_only_where_it_helps() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let insert = |from: i64, to: i64| {
        format!(
            "INSERT INTO docs SELECT n, hashint8extended(n, 1)::fingerprint \
             FROM generate_series({from}::bigint, {to}) AS n"
        )
    };
    let advice = |client: &mut postgres::Client| {
        let query = "SELECT advice, pages FROM neardup_index_info('docs_fp')";
        let row = client.query_one(query, &[])?;
        anyhow::Ok((row.get::<_, Option<String>>(0), row.get::<_, i64>(1)))
    };
    let rows = 100_000;
    for (fill, is_steady) in [(80, true), (100, false)] {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs; \
             CREATE TABLE docs (id bigint, fp fingerprint) \
                 WITH (autovacuum_enabled = off, vacuum_truncate = off); \
             {}; CREATE INDEX docs_fp ON docs USING neardup (fp) \
                 WITH (radius = 3, fillfactor = {fill})",
            insert(1, rows)
        ))?;
        assert_eq!(advice(&mut client)?.0, None, "new, fillfactor {fill}");
        // A tenth of the rows is replaced before each VACUUM.
        for month in 0..8 {
            let from = rows * (10 + month) / 10;
            client.batch_execute(&insert(from + 1, from + rows / 10))?;
            client.batch_execute(&format!(
                "DELETE FROM docs WHERE ctid IN (SELECT ctid FROM docs \
                 ORDER BY hashint8extended(id, {month}) LIMIT {})",
                rows / 10
            ))?;
            client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
        }
        let (advised, _) = advice(&mut client)?;
        match (is_steady, advised.as_deref()) {
            (true, None) => (),
            (false, Some("REINDEX with fillfactor = 80")) => (),
            _ => anyhow::bail!("after eight months, fillfactor {fill}: {advised:?}"),
        }
    }
    // The index keeps the pages that VACUUM has freed, because the table has vacuum_truncate = off.
    client.batch_execute("REINDEX INDEX docs_fp; DELETE FROM docs WHERE id % 10 > 0")?;
    client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
    let (advised, pages) = advice(&mut client)?;
    let advised = advised.context("advice after a mass delete")?;
    client.batch_execute("REINDEX INDEX docs_fp")?;
    let (after, left) = advice(&mut client)?;
    assert_eq!(after, None, "after {advised}");
    let saved = 100.0 * (1.0 - left as f64 / pages as f64);
    let stated: f64 = (advised.strip_prefix("REINDEX makes the index "))
        .and_then(|rest| rest.strip_suffix(" % smaller"))
        .with_context(|| advised.clone())?
        .parse()?;
    assert!((saved - stated).abs() < 5.0, "{advised}, but {saved}");
    Ok(())
}
