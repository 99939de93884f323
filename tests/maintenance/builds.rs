//! Ways to build an index: concurrently, repeatedly, with little memory, cancelled, rolled back.
use crate::support::Outcome;
use crate::support::clients::{cancel_when, code, time_out};
use crate::support::data::Shape;
use crate::support::table::{BIGINT, FINGERPRINT, FINGERPRINT256, Table, value};
use neardup_tests::Database;
use postgres::error::SqlState;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn concurrent_builds_miss_nothing_that_is_written_meanwhile() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut writer = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &Shape::Balls.values(20_000, 1))?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| -> Outcome {
        let writes = scope.spawn(|| -> Outcome {
            for round in (1..).take_while(|_| !done.load(Ordering::Relaxed)) {
                writer.batch_execute(&format!(
                    "INSERT INTO docs SELECT id + {round} * 1000000, fp FROM docs WHERE id < 100; \
                     UPDATE docs SET fp = (fp::bigint # {round})::fingerprint WHERE id % 500 = \
                     {round}; \
                     DELETE FROM docs WHERE id % 501 = {round} AND id > 100"
                ))?;
            }
            Ok(())
        });
        let command = table
            .index_command("")
            .replace("INDEX", "INDEX CONCURRENTLY");
        let built = client.batch_execute(&command);
        for _ in 0..3 {
            client.batch_execute("REINDEX INDEX CONCURRENTLY docs_fp")?;
        }
        done.store(true, Ordering::Relaxed);
        writes
            .join()
            .map_err(|_| anyhow::anyhow!("the writer panicked"))??;
        Ok(built?)
    })?;
    table.holds(&mut client, 2)
}

#[test]
fn little_memory_makes_the_same_index_by_an_external_sort() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (fp, shape, rows) in [
        (FINGERPRINT, Shape::Uniform, 120_000),
        (BIGINT, Shape::FewValues, 120_000),
        (FINGERPRINT256, Shape::Uniform, 40_000),
    ] {
        let table = Table::new(fp);
        let values = shape.values(rows, 3);
        let mut sizes = Vec::new();
        for memory in ["1MB", "2MB", "100MB"] {
            client.batch_execute(&format!("SET maintenance_work_mem = '{memory}'"))?;
            table.create_indexed(&mut client, &values, "radius = 2, blocks = 4")?;
            table.answers(&mut client, &[0, 2, 3, 8, 40], 4)?;
            sizes.push(value::<i64>(
                &mut client,
                "SELECT pg_relation_size('docs_fp')",
            )?);
        }
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
    }
    Ok(())
}

#[test]
fn the_external_sort_keeps_to_temp_file_limit() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &Shape::Uniform.values(120_000, 3))?;
    client.batch_execute("SET temp_file_limit = '1MB'; SET maintenance_work_mem = '1MB'")?;
    let error = client.batch_execute(&table.index_command("")).unwrap_err();
    assert_eq!(
        error.code(),
        Some(&SqlState::CONFIGURATION_LIMIT_EXCEEDED),
        "{error:?}"
    );
    // With enough memory the build writes no temporary file.
    client.batch_execute("SET maintenance_work_mem = '64MB'")?;
    client.batch_execute(&table.index_command(""))?;
    table.is_sound(&mut client)
}

#[test]
fn a_build_or_a_drop_that_is_rolled_back_leaves_what_was() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &Shape::Balls.values(10_000, 5))?;
    let build = table.index_command("");
    client.batch_execute(&format!("BEGIN; {build}; ROLLBACK"))?;
    assert!(!value::<bool>(
        &mut client,
        "SELECT to_regclass('docs_fp') IS NOT NULL"
    )?);
    client.batch_execute(&build)?;
    for undone in [
        "DROP INDEX docs_fp",
        "REINDEX INDEX docs_fp",
        "TRUNCATE docs",
        "DROP TABLE docs",
        "ALTER TABLE docs ALTER fp TYPE fingerprint USING (fp::bigint # 5)::fingerprint",
        "ALTER INDEX docs_fp SET (radius = 5); REINDEX INDEX docs_fp",
    ] {
        client.batch_execute(&format!("BEGIN; {undone}; ROLLBACK"))?;
        table.holds(&mut client, 6)?;
    }
    // The rollback of a savepoint removes its index. The transaction's own index stays.
    client.batch_execute(&format!(
        "BEGIN; DROP INDEX docs_fp; SAVEPOINT s; {build}; ROLLBACK TO s; INSERT INTO docs \
         SELECT id + 50000, fp FROM docs; {build}; COMMIT"
    ))?;
    table.holds(&mut client, 7)
}

#[test]
fn a_new_table_and_index_in_one_transaction() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut transaction = client.transaction()?;
    let table = Table::new(FINGERPRINT);
    transaction.batch_execute("CREATE TABLE docs (id bigint, fp fingerprint)")?;
    transaction.batch_execute(&table.index_command(""))?;
    let fill = "INSERT INTO docs SELECT n, hashint8extended(n % 3000, 1)::fingerprint \
                FROM generate_series(1, 10000) AS n";
    transaction.batch_execute(fill)?;
    table.holds(&mut transaction, 8)?;
    transaction.batch_execute("TRUNCATE docs")?;
    assert_eq!(
        value::<i64>(&mut transaction, "SELECT count(*) FROM docs")?,
        0
    );
    transaction.batch_execute(fill)?;
    table.holds(&mut transaction, 9)?;
    transaction.commit()?;
    table.holds(&mut client, 10)
}

#[test]
fn rewritten_tables_get_a_right_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(8_000, 11), "radius = 1")?;
    for (seed, rewrite) in (12..).zip([
        "ALTER TABLE docs ALTER fp TYPE fingerprint USING (fp::bigint # 77)::fingerprint",
        "ALTER TABLE docs ADD made timestamptz DEFAULT clock_timestamp()",
        "DELETE FROM docs WHERE id % 2 = 0",
        "VACUUM FULL docs",
        "ALTER TABLE docs SET UNLOGGED",
        "ALTER TABLE docs SET LOGGED",
        "TRUNCATE docs; INSERT INTO docs SELECT n, n::bigint::fingerprint FROM generate_series(1, \
            3000) AS n",
    ]) {
        client.batch_execute(rewrite)?;
        table.holds(&mut client, seed)?;
    }
    Ok(())
}

#[test]
fn a_cancelled_build_leaves_nothing_and_can_be_repeated() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &Shape::Uniform.values(150_000, 13))?;
    // Little memory: the cancellation also meets the sort's temporary files.
    client.batch_execute("SET maintenance_work_mem = '1MB'")?;
    let build = table.index_command("radius = 3, blocks = 8");
    let left = "SELECT count(*) FROM pg_ls_tmpdir() \
                WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%'";
    for phase in ["%scanning table%", "%sorting and writing%"] {
        let running = format!(
            "SELECT count(*) > 0 FROM pg_stat_progress_create_index \
             WHERE datname = current_database() AND phase LIKE '{phase}'"
        );
        let result = cancel_when(
            &database,
            &mut client,
            &running,
            &build,
            "DROP INDEX docs_fp",
        )?;
        assert_eq!(
            code(&result),
            Some(SqlState::QUERY_CANCELED),
            "{phase}: {result:?}"
        );
        assert!(!value::<bool>(
            &mut client,
            "SELECT to_regclass('docs_fp') IS NOT NULL"
        )?);
        assert_eq!(value::<i64>(&mut client, left)?, 0, "temporary files");
    }
    client.batch_execute(&table.index_command(""))?;
    table.answers(&mut client, &[0, 3, 7], 14)?;
    table.is_sound(&mut client)
}

#[test]
fn a_timeout_ends_a_build_a_search_and_leaves_both_usable() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(60_000, 15), "")?;
    crate::support::oracle::Way::Index.set(&mut client)?;
    for (slow, undo) in [
        (
            "CREATE INDEX other ON docs USING neardup (fp) WITH (blocks = 8)",
            "DROP INDEX other",
        ),
        (
            "SELECT count(*) FROM docs a JOIN docs b ON b.fp <@ ball(a.fp, 20)",
            "",
        ),
        (
            "INSERT INTO docs SELECT a.id, a.fp FROM docs a, generate_series(1, 100)",
            "",
        ),
    ] {
        let result = time_out(&mut client, slow, undo)?;
        assert_eq!(
            code(&result),
            Some(SqlState::QUERY_CANCELED),
            "{slow}: {result:?}"
        );
    }
    client.batch_execute("VACUUM docs")?;
    table.holds(&mut client, 16)
}

#[test]
fn a_cancelled_vacuum_can_be_repeated() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(
        &mut client,
        &Shape::Uniform.values(20_000, 17),
        "blocks = 8",
    )?;
    let delete = "DELETE FROM docs WHERE id % 3 = 0; CHECKPOINT";
    client.batch_execute(delete)?;
    client.batch_execute("SET vacuum_cost_delay = '5ms'; SET vacuum_cost_limit = 20")?;
    let running = "SELECT count(*) > 0 FROM pg_stat_progress_vacuum \
                   WHERE datname = current_database() AND phase = 'vacuuming indexes'";
    let vacuum = "VACUUM (INDEX_CLEANUP ON) docs";
    // Makes dead rows again, in case the vacuum has finished.
    let undo = format!("INSERT INTO docs SELECT * FROM docs; {delete}");
    let result = cancel_when(&database, &mut client, running, vacuum, &undo)?;
    assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
    table.holds(&mut client, 18)?;
    client.batch_execute("SET vacuum_cost_delay = 0")?;
    client.batch_execute(vacuum)?;
    table.holds(&mut client, 19)
}
