//! The index follows its table: inserts, updates, deletes, aborted transactions, VACUUM.
use crate::support::Outcome;
use crate::support::data::{Probe, RADII, Shape, probes};
use crate::support::oracle::Way;
use crate::support::table::{FINGERPRINT, FINGERPRINT128, FINGERPRINT256, Table, value};
use anyhow::Result;
use neardup_tests::Database;
use postgres::Client;

/// Without the option a vacuum that finds few dead rows skips the indexes.
const VACUUM: &str = "VACUUM (INDEX_CLEANUP ON) docs";

/// Statements that change the table, one after the other.
const STEPS: [&str; 15] = [
    "INSERT INTO docs SELECT id + 100000, fp FROM docs WHERE id % 3 = 0",
    "DELETE FROM docs WHERE id % 4 = 1",
    VACUUM,
    // Row addresses in the table are reused.
    "INSERT INTO docs SELECT id + 200000, of_bits(bits_of(fp) # 6148914691236517205) FROM docs \
     WHERE id % 4 = 2",
    "UPDATE docs SET fp = of_bits(bits_of(fp) # 1) WHERE id % 5 = 1",
    "UPDATE docs SET fp = NULL WHERE id % 7 = 1",
    "UPDATE docs SET fp = of_bits(id * 1001) WHERE fp IS NULL AND id % 3 = 0",
    VACUUM,
    "BEGIN; INSERT INTO docs SELECT id + 300000, fp FROM docs; ROLLBACK",
    "BEGIN; DELETE FROM docs; UPDATE docs SET fp = NULL; ROLLBACK",
    VACUUM,
    "REINDEX INDEX docs_fp",
    "UPDATE docs SET fp = of_bits(bits_of(fp) # 2) WHERE id % 6 = 2",
    "VACUUM FULL docs",
    "CREATE INDEX by_id ON docs (id); CLUSTER docs USING by_id",
];

#[test]
fn after_each_change() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (fp, shape, rows) in [
        (FINGERPRINT, Shape::Balls, 6_000),
        (FINGERPRINT128, Shape::FewValues, 4_000),
        (FINGERPRINT256, Shape::Balls, 3_000),
    ] {
        let table = Table::new(fp);
        table.create_indexed(&mut client, &shape.values(rows, 1), "fillfactor = 50")?;
        client.batch_execute(&format!(
            "DROP FUNCTION IF EXISTS of_bits, bits_of; \
             CREATE FUNCTION of_bits(bigint) RETURNS {0} IMMUTABLE RETURN {1}; \
             CREATE FUNCTION bits_of({0}) RETURNS bigint IMMUTABLE RETURN {2}",
            fp.name,
            fp.of_bits("$1"),
            fp.bits_of("$1")
        ))?;
        for (seed, step) in (1..).zip(STEPS) {
            run(&mut client, step)?;
            table.holds(&mut client, seed)?;
            if step == VACUUM {
                assert_eq!(
                    rows_in_index(&mut client)?,
                    rows_in_table(&mut client)?,
                    "{step}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_parallel_vacuum_takes_the_dead_rows_from_every_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(10_000, 2), "")?;
    client.batch_execute(
        "CREATE INDEX docs_two ON docs USING neardup (fp) WITH (radius = 2); \
         CREATE INDEX docs_id ON docs (id); \
         SET min_parallel_index_scan_size = 0; DELETE FROM docs WHERE id % 3 > 0",
    )?;
    client.batch_execute("VACUUM (PARALLEL 2, INDEX_CLEANUP ON) docs")?;
    let rows = rows_in_table(&mut client)?;
    for index in ["docs_fp", "docs_two"] {
        let check = format!("SELECT rows + null_rows FROM neardup_index_check('{index}', true)");
        assert_eq!(value::<i64>(&mut client, &check)?, rows, "{index}");
        // The row count that VACUUM stored for the planner.
        let reltuples = format!("SELECT reltuples::bigint FROM pg_class WHERE relname = '{index}'");
        assert_eq!(value::<i64>(&mut client, &reltuples)?, rows, "{index}");
    }
    client.batch_execute("DROP INDEX docs_two")?;
    table.holds(&mut client, 3)
}

#[test]
fn hot_updates_leave_the_index_right() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &[])?;
    client.batch_execute("ALTER TABLE docs SET (fillfactor = 40)")?;
    table.append(&mut client, 0, &Shape::Balls.values(5_000, 1))?;
    client.batch_execute(&table.index_command(""))?;
    for round in 1..4 {
        let mut transaction = client.transaction()?;
        transaction.batch_execute("UPDATE docs SET id = id + 100000 WHERE id % 2 = 0")?;
        let hot: i64 = value(
            &mut transaction,
            "SELECT pg_stat_get_xact_tuples_hot_updated('docs'::regclass)",
        )?;
        assert!(hot > 1_000, "{hot} updates kept the index as it was");
        table.holds(&mut transaction, round)?;
        transaction.commit()?;
        table.holds(&mut client, round)?;
        client.batch_execute(VACUUM)?;
        table.holds(&mut client, round)?;
    }
    Ok(())
}

#[test]
fn an_emptied_table_finds_nothing_and_fills_again() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let values = Shape::Uniform.values(10_000, 5);
    table.create_indexed(&mut client, &values, "")?;
    let size = "SELECT pg_relation_size('docs_fp')";
    let full: i64 = value(&mut client, size)?;
    for round in 0..3 {
        run(&mut client, "DELETE FROM docs")?;
        run(&mut client, VACUUM)?;
        assert_eq!(
            table.agree(&mut client, &probes(&values, &RADII, round))?,
            0
        );
        table.is_sound(&mut client)?;
        table.append(&mut client, 0, &values)?;
        table.holds(&mut client, round)?;
    }
    // The emptied leaves receive the same values again.
    let after: i64 = value(&mut client, size)?;
    assert!(
        after < full * 3 / 2,
        "the index has grown from {full} to {after} bytes"
    );
    Ok(())
}

#[test]
fn a_transaction_sees_its_own_changes_and_savepoints() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(4_000, 8), "")?;
    let mut outer = client.transaction()?;
    outer.batch_execute("INSERT INTO docs SELECT id + 10000, fp FROM docs")?;
    table.holds(&mut outer, 1)?;
    {
        let mut inner = outer.savepoint("one")?;
        inner.batch_execute("DELETE FROM docs WHERE id % 2 = 0")?;
        table.holds(&mut inner, 2)?;
        {
            let mut innermost = inner.savepoint("two")?;
            innermost.batch_execute("INSERT INTO docs SELECT id + 50000, fp FROM docs")?;
            table.holds(&mut innermost, 3)?;
            // Dropping the transaction rolls it back.
        }
        table.holds(&mut inner, 4)?;
        inner.rollback()?;
    }
    assert_eq!(
        value::<i64>(&mut outer, "SELECT count(*) FROM docs")?,
        8_000
    );
    table.holds(&mut outer, 5)?;
    // An error inside a savepoint does not affect earlier statements.
    let mut failing = outer.savepoint("three")?;
    let error = failing.batch_execute("INSERT INTO docs SELECT id, fp FROM docs; SELECT 1 / 0");
    assert!(error.is_err());
    failing.rollback()?;
    table.holds(&mut outer, 6)?;
    outer.commit()?;
    table.holds(&mut client, 7)
}

#[test]
fn an_open_cursor_returns_what_was_there_when_it_was_opened() -> Outcome {
    let database = Database::create()?;
    let mut reader = database.connect()?;
    let mut writer = database.connect()?;
    let table = Table::new(FINGERPRINT);
    for (way, shape, rows) in [
        (Way::Index, Shape::Balls, 40_000),
        (Way::Index, Shape::Equal, 5_000),
        (Way::Bitmap, Shape::Balls, 40_000),
    ] {
        let values = shape.values(rows, 4);
        table.create_indexed(&mut writer, &values, "")?;
        // Dead rows, so that the vacuum has something to do while the cursor is open.
        writer.batch_execute("DELETE FROM docs WHERE id % 10 = 0")?;
        // For this many rows in balls, the first radius probes several permutations, and the
        // second reads a whole one.
        for radius in [3, 20] {
            let ball = table.fp.ball(Probe {
                center: shape.center(4),
                radius,
            });
            let query = format!("SELECT id FROM docs WHERE fp <@ {ball}");
            let array = format!("SELECT coalesce(array_agg(id), '{{}}') FROM ({query}) AS found");
            let mut expected: Vec<i64> = value(&mut reader, &array)?;
            expected.sort_unstable();
            assert!(
                expected.len() > 200,
                "too few rows for a cursor: {}",
                expected.len()
            );

            way.set(&mut reader)?;
            let mut transaction = reader.transaction()?;
            let mut fetch = |statement: &str| -> Result<Vec<i64>> {
                let rows = transaction.query(statement, &[])?;
                Ok(rows.iter().map(|row| row.get(0)).collect())
            };
            fetch(&format!("DECLARE opened CURSOR FOR {query}"))?;
            let mut found = fetch("FETCH 50 FROM opened")?;
            // Splits every leaf that the cursor has not read, deletes rows that it must return,
            // and removes dead rows.
            writer.batch_execute("INSERT INTO docs SELECT id + 1000000, fp FROM docs")?;
            found.extend(fetch("FETCH 50 FROM opened")?);
            writer.batch_execute("DELETE FROM docs WHERE id % 2 = 0")?;
            writer.batch_execute(VACUUM)?;
            found.extend(fetch("FETCH 50 FROM opened")?);
            writer.batch_execute("INSERT INTO docs SELECT id + 2000000, fp FROM docs")?;
            found.extend(fetch("FETCH ALL FROM opened")?);
            transaction.commit()?;
            found.sort_unstable();
            assert!(
                found == expected,
                "{way:?} {shape:?}: {} of {}",
                found.len(),
                expected.len()
            );
            writer.batch_execute("DELETE FROM docs WHERE id >= 1000000")?;
        }
        table.holds(&mut writer, 9)?;
    }
    Ok(())
}

#[test]
fn an_old_snapshot_keeps_its_answers() -> Outcome {
    let database = Database::create()?;
    let mut reader = database.connect()?;
    let mut writer = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let values = Shape::FewValues.values(5_000, 6);
    table.create_indexed(&mut writer, &values, "")?;
    let probes = probes(&values, &RADII, 7);
    let expected = table.agree(&mut writer, &probes)?;
    let mut transaction = reader
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .start()?;
    transaction.batch_execute("SELECT 1")?;
    for change in [
        "INSERT INTO docs SELECT id + 10000, fp FROM docs",
        "UPDATE docs SET fp = (fp::bigint # 3)::fingerprint WHERE id % 2 = 0",
        VACUUM,
        "DELETE FROM docs WHERE id % 3 = 0",
        VACUUM,
    ] {
        writer.batch_execute(change)?;
        assert_eq!(
            table.agree(&mut transaction, &probes)?,
            expected,
            "{change}"
        );
    }
    transaction.commit()?;
    assert_ne!(table.agree(&mut reader, &probes)?, expected);
    table.holds(&mut reader, 8)
}

/// Runs a step. VACUUM must be sent alone; a step of several statements is one message.
fn run(client: &mut Client, step: &str) -> Outcome {
    Ok(client.batch_execute(step)?)
}

fn rows_in_index(client: &mut Client) -> Result<i64> {
    value(
        client,
        "SELECT rows + null_rows FROM neardup_index_check('docs_fp', true)",
    )
}

fn rows_in_table(client: &mut Client) -> Result<i64> {
    Way::Sequential.set(client)?;
    value(client, "SELECT count(*) FROM docs")
}
