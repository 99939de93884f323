//! Every kind of table and index that PostgreSQL has.
use crate::support::Outcome;
use crate::support::data::{RADII, Shape, probes};
use crate::support::table::{BIGINT, FINGERPRINT, Table, value};
use neardup_tests::{Database, client_program, connect, own_server};
use std::process::Stdio;

const FIXTURE: &str = "CREATE TABLE raw AS SELECT n AS id, n % 3 = 0 AS kept, \
    CASE n % 16 WHEN 0 THEN NULL ELSE hashint8extended(n % 900, 7) END AS bits \
    FROM generate_series(1::bigint, 9000) AS n;";

/// Views named `docs`. The column `fp` of each has a different kind of index.
const INDEXES: [(&str, &str, &str); 4] = [
    (
        "an expression",
        "CREATE VIEW docs AS SELECT id, (bits # 85)::fingerprint AS fp FROM raw",
        "CREATE INDEX docs_fp ON raw USING neardup (((bits # 85)::fingerprint))",
    ),
    (
        "some of the rows",
        "CREATE VIEW docs AS SELECT id, bits::fingerprint AS fp FROM raw WHERE kept",
        "CREATE INDEX docs_fp ON raw USING neardup ((bits::fingerprint)) WHERE kept",
    ),
    (
        "some of the rows, none of them without a fingerprint",
        "CREATE VIEW docs AS SELECT id, bits::fingerprint AS fp FROM raw WHERE bits IS NOT NULL",
        "CREATE INDEX docs_fp ON raw USING neardup ((bits::fingerprint)) WHERE bits IS NOT NULL",
    ),
    (
        "a function",
        "CREATE FUNCTION turned(bigint) RETURNS fingerprint IMMUTABLE \
         RETURN (CASE WHEN $1 > 0 THEN ~$1 END)::fingerprint; \
         CREATE VIEW docs AS SELECT id, turned(bits) AS fp FROM raw",
        "CREATE INDEX docs_fp ON raw USING neardup (turned(bits))",
    ),
];

#[test]
fn expression_and_partial_indexes() -> Outcome {
    for (why, view, index) in INDEXES {
        let database = Database::create()?;
        let mut client = database.connect()?;
        client.batch_execute(&format!("{FIXTURE} {view}; {index}"))?;
        let table = Table::new(FINGERPRINT);
        for (seed, change) in (1..).zip([
            "ANALYZE",
            "INSERT INTO raw SELECT id + 10000, NOT kept, bits # 6 FROM raw",
            "UPDATE raw SET kept = NOT kept WHERE id % 5 = 0",
            "UPDATE raw SET bits = bits # 12 WHERE id % 7 = 0",
            "DELETE FROM raw WHERE id % 2 = 0",
            "VACUUM (INDEX_CLEANUP ON) raw",
            "REINDEX TABLE raw",
        ]) {
            client.batch_execute(change)?;
            table
                .holds(&mut client, seed)
                .map_err(|error| error.context(why))?;
        }
    }
    Ok(())
}

#[test]
fn partitioned_tables() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    // The indexes of the partitions are named after them.
    let table = Table {
        index: "docs_",
        ..Table::new(FINGERPRINT)
    };
    client.batch_execute(
        "CREATE TABLE docs (id bigint, fp fingerprint) PARTITION BY RANGE (id); \
         CREATE TABLE docs_0 PARTITION OF docs FOR VALUES FROM (0) TO (4000); \
         CREATE TABLE docs_1 PARTITION OF docs FOR VALUES FROM (4000) TO (8000)",
    )?;
    let values = Shape::Balls.values(12_000, 1);
    table.append(&mut client, 0, &values[..6_000])?;
    client.batch_execute(&Table::new(FINGERPRINT).index_command("radius = 2"))?;
    client.batch_execute(
        "CREATE TABLE docs_2 PARTITION OF docs FOR VALUES FROM (8000) TO (10000); \
         CREATE TABLE docs_rest PARTITION OF docs DEFAULT",
    )?;
    table.append(&mut client, 6_000, &values[6_000..])?;
    let probes = probes(&values, &RADII, 2);
    for change in [
        "VACUUM docs",
        // Rows that move to another partition.
        "UPDATE docs SET id = 12000 - id WHERE id % 3 = 0 AND id <= 12000",
        "ALTER TABLE docs DETACH PARTITION docs_1",
        "UPDATE docs_1 SET fp = (fp::bigint # 3)::fingerprint; VACUUM docs_1",
        "ALTER TABLE docs ATTACH PARTITION docs_1 FOR VALUES FROM (4000) TO (8000)",
        "DROP TABLE docs_0",
        "REINDEX TABLE docs",
    ] {
        for statement in change.split(';') {
            client.batch_execute(statement)?;
        }
        assert!(table.agree(&mut client, &probes)? > 1_000, "{change}");
    }
    let indexes: i64 = value(
        &mut client,
        "SELECT count(*) FROM pg_inherits JOIN pg_index ON inhrelid = indexrelid \
         WHERE inhparent = 'docs_fp'::regclass AND indisvalid",
    )?;
    assert_eq!(indexes, 3);
    Ok(())
}

#[test]
fn temporary_tables() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let values = Shape::Balls.values(5_000, 3);
    let table = Table::new(FINGERPRINT);
    client.batch_execute("CREATE TEMPORARY TABLE docs (id bigint, fp fingerprint)")?;
    client.batch_execute(&table.index_command(""))?;
    table.append(&mut client, 0, &values)?;
    table.holds(&mut client, 4)?;
    client.batch_execute("DELETE FROM docs WHERE id % 2 = 0")?;
    client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
    table.holds(&mut client, 5)?;

    client.batch_execute(
        "DROP TABLE docs; \
         CREATE TEMPORARY TABLE docs (id bigint, fp fingerprint) ON COMMIT DELETE ROWS",
    )?;
    client.batch_execute(&table.index_command(""))?;
    for round in 0..3 {
        client.batch_execute("BEGIN")?;
        table.append(&mut client, 0, &values)?;
        table.holds(&mut client, round)?;
        client.batch_execute("COMMIT")?;
        assert_eq!(
            table.agree(&mut client, &probes(&values, &RADII, round))?,
            0
        );
    }
    Ok(())
}

#[test]
fn an_unlogged_table_is_empty_after_a_crash_and_whole_after_a_stop() -> Outcome {
    let mut server = own_server("unlogged", &[("fsync", "off")])?;
    let table = Table::new(FINGERPRINT);
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    client.batch_execute("CREATE UNLOGGED TABLE docs (id bigint, fp fingerprint)")?;
    client.batch_execute(&table.index_command("radius = 2"))?;
    table.append(&mut client, 0, &Shape::Balls.values(10_000, 6))?;
    // The index was built from rows, and rebuilt.
    client.batch_execute("REINDEX INDEX docs_fp")?;
    drop(client);

    server.restart()?;
    let mut client = connect(&server.conninfo("postgres"))?;
    assert_eq!(
        value::<i64>(&mut client, "SELECT count(*) FROM docs")?,
        10_000
    );
    table.holds(&mut client, 7)?;
    for round in 0..2 {
        server.kill_9()?;
        server.start()?;
        client = connect(&server.conninfo("postgres"))?;
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM docs")?, 0);
        let values = Shape::Balls.values(6_000, 6);
        assert_eq!(
            table.agree(&mut client, &probes(&values, &RADII, round))?,
            0
        );
        table.is_sound(&mut client)?;
        table.append(&mut client, 0, &values)?;
        table.holds(&mut client, 8)?;
    }
    // A logged table survives a crash.
    client.batch_execute("ALTER TABLE docs SET LOGGED")?;
    client.batch_execute("INSERT INTO docs SELECT id + 10000, fp FROM docs")?;
    server.kill_9()?;
    server.start()?;
    client = connect(&server.conninfo("postgres"))?;
    assert_eq!(
        value::<i64>(&mut client, "SELECT count(*) FROM docs")?,
        12_000
    );
    table.holds(&mut client, 9)
}

#[test]
fn a_dump_restores_columns_values_and_indexes() -> Outcome {
    let from = Database::create()?;
    let mut client = from.connect()?;
    let table = Table::new(FINGERPRINT);
    let options = "radius='4', blocks='6', fillfactor='70'";
    table.create_indexed(&mut client, &Shape::Balls.values(5_000, 10), options)?;
    client.batch_execute(
        "CREATE TABLE images (id bigint, fp bigint); \
         INSERT INTO images SELECT id, fp::bigint FROM docs; \
         CREATE INDEX images_fp ON images USING neardup (fp bigint_hamming_ops); \
         CREATE TABLE balls AS SELECT ball(fp, 3) FROM docs; \
         CREATE TABLE guarded (fp fingerprint, EXCLUDE USING neardup (fp WITH ~=))",
    )?;
    let definitions = "SELECT string_agg(pg_get_indexdef(indexrelid), '; ' ORDER BY \
        indexrelid::regclass::text) \
        FROM pg_index WHERE indrelid::regclass::text IN ('docs', 'images', 'guarded')";
    let expected: String = value(&mut client, definitions)?;
    assert!(expected.contains(options), "{expected}");

    let mut dump = client_program("pg_dump")?
        .arg(format!("--dbname={}", from.conninfo()))
        .stdout(Stdio::piped())
        .spawn()?;
    // The dump creates the extension.
    let into = Database::create_on(from.conninfo(), "")?;
    let restored = client_program("psql")?
        .args([
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
        ])
        .arg(format!("--dbname={}", into.conninfo()))
        .stdin(dump.stdout.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .status()?;
    assert!(dump.wait()?.success() && restored.success());

    let mut client = into.connect()?;
    assert_eq!(value::<String>(&mut client, definitions)?, expected);
    table.holds(&mut client, 11)?;
    let images = Table {
        name: "images",
        index: "images_fp",
        fp: BIGINT,
    };
    images.holds(&mut client, 12)
}

#[test]
fn dropping_the_extension_takes_its_indexes_along() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE images (fp bigint); \
         CREATE INDEX ON images USING neardup (fp bigint_hamming_ops)",
    )?;
    let error = client.batch_execute("DROP EXTENSION neardup").unwrap_err();
    let code = error.code().map(|code| code.code());
    assert_eq!(code, Some("2BP01"), "{error:?}");
    client.batch_execute("DROP EXTENSION neardup CASCADE")?;
    let indexes: i64 = value(
        &mut client,
        "SELECT count(*) FROM pg_index WHERE indrelid = 'images'::regclass",
    )?;
    assert_eq!(indexes, 0);
    client.batch_execute("INSERT INTO images VALUES (1); CREATE EXTENSION neardup")?;
    Ok(())
}
