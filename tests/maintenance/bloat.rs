//! Space: VACUUM frees entries of an index, which reuses or truncates the pages.
use crate::support::data::Probe;
use crate::support::oracle::Way;
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::{Outcome, with};
use anyhow::{Context, Result};
use neardup_tests::{Database, connect, own_server};
use postgres::Client;

const ROWS: i64 = 12_000;
const ROUNDS: i64 = 10;
const SIZE: &str = "SELECT pg_relation_size('docs_fp')";
const VACUUM: &str = "VACUUM (INDEX_CLEANUP ON) docs";

/// Values of the row `n` in the round `r`.
const SHAPES: [(&str, &str); 6] = [
    ("spread evenly", "hashint8extended(n, r)"),
    ("the same in each round", "hashint8extended(n, 0)"),
    (
        "near few centres",
        "hashint8extended(n % 37, 0) # (1::bigint << (n * r % 63)::int) # (1::bigint << (n % \
            61)::int)",
    ),
    (
        "near other centres in each round",
        "hashint8extended(n % 37, r) # (1::bigint << (n * r % 63)::int) # (1::bigint << (n % \
            61)::int)",
    ),
    ("all equal", "42::bigint"),
    ("ever greater", "n + r * 1000000::bigint"),
];

/// Makes the index and its table, which no other session uses.
fn create(client: &mut Client, of: &str) -> Result<()> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS docs; DROP FUNCTION IF EXISTS value_of; \
         CREATE FUNCTION value_of(n bigint, r bigint) RETURNS fingerprint IMMUTABLE \
             RETURN ({of})::fingerprint; \
         CREATE TABLE docs (id bigint, fp fingerprint) WITH (autovacuum_enabled = off); \
         {}; CREATE INDEX docs_fp ON docs USING neardup (fp)",
        insert(0)
    ))?;
    Ok(())
}

fn insert(round: i64) -> String {
    format!(
        "INSERT INTO docs SELECT n, value_of(n, {round}) FROM generate_series(1::bigint, {ROWS}) \
            AS n"
    )
}

#[test]
fn ten_times_new_rows_for_all_old_ones_keep_the_index_below_twice_its_size() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (shape, of) in SHAPES {
        for update in [true, false] {
            create(&mut client, of)?;
            let mut sizes = vec![value::<i64>(&mut client, SIZE)?];
            for round in 1..=ROUNDS {
                let steps = match update {
                    true => [
                        format!("UPDATE docs SET fp = value_of(id, {round})"),
                        VACUUM.to_owned(),
                        String::new(),
                    ],
                    false => [
                        "DELETE FROM docs".to_owned(),
                        VACUUM.to_owned(),
                        insert(round),
                    ],
                };
                for step in steps {
                    client.batch_execute(&step)?;
                }
                sizes.push(value(&mut client, SIZE)?);
            }
            client.batch_execute("REINDEX INDEX docs_fp")?;
            let fresh: i64 = value(&mut client, SIZE)?;
            let most = sizes.iter().max().context("sizes")?;
            let how = if update {
                "updated"
            } else {
                "deleted and inserted"
            };
            println!("{shape}, {how}: {:.2}", *most as f64 / fresh as f64);
            assert!(
                *most < 2 * fresh,
                "{shape}, {how}: {sizes:?}, fresh {fresh}"
            );
        }
    }
    Ok(())
}

#[test]
fn what_is_left_after_each_round_answers_as_the_table_does() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    for (seed, (_, of)) in (1..).zip(SHAPES) {
        create(&mut client, of)?;
        for share in [2, 20] {
            client.batch_execute(&format!("DELETE FROM docs WHERE id % {share} > 0"))?;
            client.batch_execute(VACUUM)?;
            table.holds(&mut client, seed)?;
            client.batch_execute(&insert(share))?;
            table.is_sound(&mut client)?;
        }
        table.holds(&mut client, seed + 1)?;
    }
    Ok(())
}

/// Returns the number of rows that a session finds in the whole index.
fn everything(client: &mut Client) -> Result<i64> {
    Way::Index.set(client)?;
    let ball = FINGERPRINT.ball(Probe {
        center: 0,
        radius: 64,
    });
    value(
        client,
        &format!("SELECT count(id) FROM docs WHERE fp <@ {ball}"),
    )
}

#[test]
fn space_is_given_back_when_nobody_uses_the_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut other = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let delete = format!("DELETE FROM docs WHERE id > {}", ROWS / 10);
    create(&mut client, SHAPES[0].1)?;
    let full: i64 = value(&mut client, SIZE)?;

    // Another transaction has read the index and may read it again.
    other.batch_execute("BEGIN")?;
    assert_eq!(everything(&mut other)?, ROWS);
    client.batch_execute(&delete)?;
    client.batch_execute(VACUUM)?;
    assert_eq!(value::<i64>(&mut client, SIZE)?, full);
    assert_eq!(everything(&mut other)?, ROWS / 10);
    other.batch_execute("COMMIT")?;

    // VACUUM does not truncate if the table's option forbids it.
    let option = |on| format!("ALTER TABLE docs SET (vacuum_truncate = {on})");
    client.batch_execute(&option("off"))?;
    client.batch_execute("DELETE FROM docs WHERE id = 1")?;
    client.batch_execute(VACUUM)?;
    assert_eq!(value::<i64>(&mut client, SIZE)?, full);

    client.batch_execute(&option("on"))?;
    client.batch_execute("DELETE FROM docs WHERE id = 2")?;
    client.batch_execute(VACUUM)?;
    let small: i64 = value(&mut client, SIZE)?;
    assert!(small < full / 4, "{small} of {full} bytes are left");

    // The other session caches a root that is beyond the end of the file now.
    assert_eq!(everything(&mut other)?, ROWS / 10 - 2);
    table.holds(&mut client, 1)?;
    client.batch_execute(&insert(1))?;
    other.batch_execute("INSERT INTO docs VALUES (0, '0123456789abcdef')")?;
    assert_eq!(everything(&mut other)?, ROWS / 10 - 2 + ROWS + 1);
    table.holds(&mut client, 2)
}

#[test]
fn a_standby_follows_when_space_is_given_back() -> Outcome {
    let settings = [("fsync", "off"), ("wal_consistency_checking", "all")];
    let primary = own_server("shrinking", &settings)?;
    with(primary, |primary| {
        let mut writer = connect(&primary.conninfo("postgres"))?;
        writer.batch_execute("CREATE EXTENSION neardup")?;
        create(&mut writer, SHAPES[0].1)?;
        let standby = primary.standby("test-shrinking-replica", &[("fsync", "off")])?;
        with(standby, |standby| {
            let mut reader = connect(&standby.conninfo("postgres"))?;
            crate::server::standby::wait_for_replay(&mut writer, &mut reader)?;
            assert_eq!(everything(&mut reader)?, ROWS);
            let full: i64 = value(&mut reader, SIZE)?;
            for round in 1..4 {
                writer.batch_execute("DELETE FROM docs WHERE id % 20 > 0")?;
                writer.batch_execute(VACUUM)?;
                crate::server::standby::wait_for_replay(&mut writer, &mut reader)?;
                let rows: i64 = value(&mut writer, "SELECT count(*) FROM docs")?;
                // The same session as before still caches the root.
                assert_eq!(everything(&mut reader)?, rows);
                let small: i64 = value(&mut reader, SIZE)?;
                assert!(small < full / 2, "{small} of {full} bytes are left");
                writer.batch_execute(&insert(round))?;
                crate::server::standby::wait_for_replay(&mut writer, &mut reader)?;
                assert_eq!(everything(&mut reader)?, rows + ROWS);
            }
            crate::server::standby::assert_same_pages(&mut writer, &mut reader, primary, standby)
        })
    })
}

/// A transaction that has inserted a row caches the leaves that it used. The executor releases the
/// index at the end of the statement.
#[test]
fn leaves_that_a_transaction_remembers_stay_where_they_are_until_it_ends() -> Outcome {
    const SAME: &str = "INSERT INTO docs VALUES (0, 'ffffffffffffffff')";
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut other = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let prepare = |client: &mut Client| -> Result<()> {
        create(client, SHAPES[0].1)?;
        client.batch_execute(&format!("DELETE FROM docs WHERE id > {}", ROWS / 10))?;
        Ok(())
    };
    let size = |client: &mut Client| value::<i64>(client, SIZE);

    prepare(&mut client)?;
    let full = size(&mut client)?;
    other.batch_execute("BEGIN")?;
    other.batch_execute(SAME)?;
    client.batch_execute(VACUUM)?;
    assert_eq!(size(&mut client)?, full);
    other.batch_execute(SAME)?;
    other.batch_execute("COMMIT")?;
    assert_eq!(everything(&mut other)?, ROWS / 10 + 2);
    table.holds(&mut client, 1)?;

    // Rolling back a subtransaction drops its cached leaves together with its locks.
    prepare(&mut client)?;
    other.batch_execute("BEGIN; SAVEPOINT part")?;
    other.batch_execute(SAME)?;
    other.batch_execute("ROLLBACK TO part")?;
    client.batch_execute(VACUUM)?;
    let less = size(&mut client)?;
    assert!(less < full / 4, "{less} of {full} bytes are left");
    other.batch_execute(SAME)?;
    other.batch_execute("COMMIT")?;
    assert_eq!(everything(&mut other)?, ROWS / 10 + 1);
    table.holds(&mut client, 2)?;

    // Emptying and refilling a table in the same file also drops cached leaves.
    other.batch_execute(
        "BEGIN; CREATE TABLE anew (id bigint, fp fingerprint); \
         CREATE INDEX ON anew USING neardup (fp)",
    )?;
    for round in 1..=2 {
        other.batch_execute(&format!(
            "INSERT INTO anew SELECT n, value_of(n, {round}) \
             FROM generate_series(1::bigint, {ROWS}) AS n; \
             INSERT INTO anew VALUES (0, 'ffffffffffffffff'); \
             TRUNCATE anew"
        ))?;
    }
    other.batch_execute("INSERT INTO anew VALUES (0, 'ffffffffffffffff')")?;
    other.batch_execute("COMMIT")?;
    other.batch_execute("SET enable_seqscan = off")?;
    let near = "SELECT count(*) FROM anew WHERE fp <~> 'ffffffffffffffff' <= 3";
    assert_eq!(value::<i64>(&mut other, near)?, 1);
    Ok(())
}
