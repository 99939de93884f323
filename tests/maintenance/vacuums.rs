//! Rows that an index reports to the server for a concurrent build, the order of entries after a
//! vacuum, and truncation while others use the index.
use crate::search::standing_scans::classes;
use crate::support::data::Shape;
use crate::support::oracle::Way;
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::{Outcome, with};
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::{Client, Config, NoTls};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A connection that keeps the server's notices.
fn with_messages(conninfo: &str) -> Result<(Client, Arc<Mutex<Vec<String>>>)> {
    let messages = Arc::new(Mutex::new(Vec::new()));
    let mut config: Config = conninfo.parse()?;
    let sink = messages.clone();
    config.notice_callback(move |notice| {
        if let Ok(mut messages) = sink.lock() {
            messages.push(notice.message().to_owned());
        }
    });
    Ok((config.connect(NoTls)?, messages))
}

#[test]
fn a_concurrent_build_asks_for_each_row_once() -> Outcome {
    let database = Database::create()?;
    let (mut client, messages) = with_messages(database.conninfo())?;
    for class in classes(&mut client)? {
        class.prepare(&mut client)?;
        client.batch_execute("INSERT INTO docs SELECT * FROM source")?;
        for (kind, index) in class.indexes() {
            let build = format!("CREATE INDEX CONCURRENTLY docs_fp ON docs USING neardup {index}");
            let rows = match kind {
                "partial" => "SELECT count(*) FROM docs WHERE id > 5",
                _ => "SELECT count(*) FROM docs",
            };
            let rows: i64 = value(&mut client, rows)?;
            for command in [build.as_str(), "REINDEX INDEX CONCURRENTLY docs_fp"] {
                client.batch_execute("SET client_min_messages = debug2")?;
                client.batch_execute(command)?;
                client.batch_execute("RESET client_min_messages")?;
                let sent = std::mem::take(&mut *messages.lock().expect("no panic holds it"));
                let found = (sent.iter())
                    .find(|message| message.starts_with("validate_index found"))
                    .with_context(|| format!("{}, {kind}: {sent:?}", class.name))?;
                let expected = format!(" {rows} index tuples; inserted 0 missing tuples");
                ensure!(found.contains(&expected), "{}, {kind}: {found}", class.name);
            }
            let check = "SELECT rows + null_rows FROM neardup_index_check('docs_fp', true)";
            ensure!(value::<i64>(&mut client, check)? == rows, "{}", class.name);
            client.batch_execute("DROP INDEX docs_fp")?;
        }
    }
    Ok(())
}

/// An index contains the rows inserted between the two passes of a concurrent build. VACUUM
/// processes an index that a failed build has left like any other.
#[test]
fn an_index_that_is_not_valid_is_vacuumed_in_all_permutations() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(6_000, 1), "")?;
    let valid = |on| {
        format!("UPDATE pg_index SET indisvalid = {on} WHERE indexrelid = 'docs_fp'::regclass")
    };
    client.batch_execute(&valid(false))?;
    client.batch_execute("DELETE FROM docs WHERE id % 3 > 0")?;
    client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
    client.batch_execute(&valid(true))?;
    let rows: i64 = value(&mut client, "SELECT count(*) FROM docs")?;
    // An entry without its row, in any permutation, is damage.
    let check = "SELECT rows + null_rows FROM neardup_index_check('docs_fp', true)";
    assert_eq!(value::<i64>(&mut client, check)?, rows);
    let entries = "SELECT count(DISTINCT n) FROM \
        (SELECT (entries - null_rows) / rows AS n, (entries - null_rows) % rows AS rest \
         FROM neardup_index_info('docs_fp'), neardup_expert_index_statistics('docs_fp')) AS each \
         WHERE rest = 0";
    assert_eq!(
        value::<i64>(&mut client, entries)?,
        1,
        "permutations of different sizes"
    );
    table.holds(&mut client, 2)
}

/// Returns the number of entries in key order on the leaves in a file of an index: the sum of a
/// field that docs/dev/on-disk-format.md describes.
fn in_order(file: &Path) -> Result<i64> {
    let bytes = fs::read(file)?;
    let field = |page: &[u8], before_end: usize| {
        let at = page.len() - before_end;
        u16::from_ne_bytes([page[at], page[at + 1]])
    };
    let leaves = bytes.chunks(8192).filter(|page| field(page, 18) == 1);
    Ok(leaves.map(|page| i64::from(field(page, 6))).sum())
}

#[test]
fn a_vacuum_puts_leaves_in_order_where_that_costs_the_log_nothing() -> Outcome {
    // The server writes unlogged pages only at shutdown.
    with(own_server("in-order", &[("fsync", "off")])?, |server| {
        let mut client = connect(&server.conninfo("postgres"))?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        let mut vacuumed = Vec::new();
        for kind in ["LOGGED", "UNLOGGED"] {
            client.batch_execute(&format!(
                "CREATE UNLOGGED TABLE {kind} (id bigint, fp fingerprint) \
                     WITH (autovacuum_enabled = off); \
                 ALTER TABLE {kind} SET {kind}; \
                 INSERT INTO {kind} SELECT n, hashint8extended(n, 1)::fingerprint \
                     FROM generate_series(1::bigint, 30000) AS n; \
                 CREATE INDEX {kind}_fp ON {kind} USING neardup (fp) WITH (radius = 3); \
                 INSERT INTO {kind} SELECT n, hashint8extended(n, 1)::fingerprint \
                     FROM generate_series(30001::bigint, 31000) AS n; \
                 DELETE FROM {kind} WHERE id % 23 = 0; CHECKPOINT"
            ))?;
            client.batch_execute(&format!("VACUUM (INDEX_CLEANUP ON) {kind}"))?;
            client.batch_execute(&format!("SELECT neardup_index_check('{kind}_fp', true)"))?;
            let entries = format!(
                "SELECT entries, pg_relation_filepath('{kind}_fp') \
                         FROM neardup_expert_index_statistics('{kind}_fp')"
            );
            let row = client.query_one(&entries, &[])?;
            let (entries, file): (i64, String) = (row.get(0), row.get(1));
            assert_eq!(entries, 4 * (31_000 - 31_000 / 23), "{kind}");
            vacuumed.push((entries, server.data().join(file)));
        }
        drop(client);
        server.stop()?;
        for (entries, file) in vacuumed {
            assert_eq!(in_order(&file)?, entries, "{}", file.display());
        }
        Ok(())
    })
}

const SIZE: &str = "SELECT pg_relation_size('docs_fp')";

/// Makes a table whose index is nine tenths empty after the next vacuum.
fn prepare(client: &mut Client) -> Result<i64> {
    let table = Table::new(FINGERPRINT);
    table.create_indexed(client, &Shape::Uniform.values(12_000, 1), "")?;
    let size = value(client, SIZE)?;
    client.batch_execute("DELETE FROM docs WHERE id >= 1200")?;
    Ok(size)
}

#[test]
fn vacuum_waits_a_moment_for_an_index_that_is_in_use() -> Outcome {
    let database = Database::create()?;
    let (mut client, mut other) = (database.connect()?, database.connect()?);
    let mut watcher = database.connect()?;
    let backend: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
    // On a slow machine, the vacuum may give up before the other transaction has ended.
    for _ in 0..10 {
        let full = prepare(&mut client)?;
        Way::Index.set(&mut other)?;
        other.batch_execute("BEGIN; SELECT id FROM docs WHERE fp <~> '00000000000000ff' <= 3")?;
        let mut waited = false;
        std::thread::scope(|scope| -> Outcome {
            let vacuum = scope.spawn(|| client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs"));
            let waiting = format!(
                "SELECT coalesce(wait_event = 'VacuumTruncate', false) \
                 FROM pg_stat_activity WHERE pid = {backend}"
            );
            while !waited && !vacuum.is_finished() {
                waited = value(&mut watcher, &waiting)?;
            }
            // Other sessions do not queue behind a lock that VACUUM only tries to take.
            watcher.batch_execute("SELECT id FROM docs WHERE fp <~> '0000000000000fff' <= 3")?;
            other.batch_execute("COMMIT")?;
            vacuum
                .join()
                .map_err(|_| anyhow::anyhow!("the client panicked"))??;
            Ok(())
        })?;
        let left: i64 = value(&mut client, SIZE)?;
        Table::new(FINGERPRINT).holds(&mut client, 1)?;
        if waited && left < full / 4 {
            return Ok(());
        }
    }
    anyhow::bail!("the index never shrinks");
}
