//! The view `neardup_indexes` while other sessions create, use and drop indexes.
use crate::support::Outcome;
use crate::support::table::value;
use crate::support::waiting::poll;
use anyhow::{Context, ensure};
use neardup_tests::{Database, connect};
use std::thread;

const TABLE: &str = "CREATE TABLE docs (fp fingerprint); \
    INSERT INTO docs SELECT hashint8extended(i, 1)::fingerprint FROM generate_series(1, 500) i; \
    CREATE INDEX docs_fp ON docs USING neardup (fp);";

#[test]
fn another_sessions_temporary_index_is_listed() -> Outcome {
    let database = Database::create()?;
    let mut owner = database.connect()?;
    owner.batch_execute(&TABLE.replace("TABLE docs", "TEMPORARY TABLE docs"))?;
    let row = database.connect()?.query_one(
        "SELECT index::oid, persistence, bytes, rows FROM neardup_indexes",
        &[],
    )?;
    let oid: u32 = value(&mut owner, "SELECT 'docs_fp'::regclass::oid")?;
    let bytes: i64 = value(&mut owner, "SELECT pg_relation_size('docs_fp')")?;
    assert_eq!(row.get::<_, u32>(0), oid);
    assert_eq!(row.get::<_, &str>(1), "temporary");
    assert_eq!(row.get::<_, i64>(2), bytes);
    assert_eq!(row.get::<_, i64>(3), 500);
    Ok(())
}

/// A reader that has found the index waits for its size. Then the index is dropped.
#[test]
fn an_index_that_is_dropped_meanwhile_has_no_size() -> Outcome {
    let database = Database::create()?;
    let mut owner = database.connect()?;
    owner.batch_execute(TABLE)?;
    let mut drops = owner.transaction()?;
    drops.batch_execute("DROP TABLE docs")?;
    let conninfo = database.conninfo().to_owned();
    let reader = thread::spawn(move || -> anyhow::Result<Vec<Option<i64>>> {
        let rows = connect(&conninfo)?.query("SELECT bytes FROM neardup_indexes", &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    });
    let mut watcher = database.connect()?;
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted \
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    poll("the reader waits", || {
        ensure!(!reader.is_finished(), "the reader waited for nothing");
        value(&mut watcher, waits)
    })?;
    drops.commit()?;
    let bytes = reader.join().ok().context("the reader panicked")??;
    assert_eq!(bytes, [None]);
    Ok(())
}

#[test]
fn indexes_come_and_go_while_the_view_is_read() -> Outcome {
    let database = Database::create()?;
    let conninfo = database.conninfo().to_owned();
    let changes = thread::spawn(move || -> Outcome {
        let mut client = connect(&conninfo)?;
        for round in 0..40 {
            client.batch_execute(TABLE)?;
            let change = match round % 4 {
                0 => "REINDEX INDEX CONCURRENTLY docs_fp",
                1 => "DROP INDEX CONCURRENTLY docs_fp",
                2 => "REINDEX INDEX docs_fp",
                _ => "VACUUM FULL docs",
            };
            client.batch_execute(change)?;
            client.batch_execute("DROP TABLE docs")?;
        }
        Ok(())
    });
    let mut reader = database.connect()?;
    let mut reads = 0;
    while !changes.is_finished() {
        reader.query("SELECT v::text FROM neardup_indexes v", &[])?;
        reads += 1;
    }
    changes.join().ok().context("the writer panicked")??;
    ensure!(reads > 0);
    let left: i64 = value(&mut reader, "SELECT count(*) FROM neardup_indexes")?;
    assert_eq!(left, 0);
    Ok(())
}
