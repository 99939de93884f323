//! Concurrent near-duplicates from many clients, against the trigger and the constraint.
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::waiting::poll;
use crate::support::{Outcome, with};
use anyhow::{Result, bail, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::error::SqlState;
use postgres::{Client, Error};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Tables that refuse near-duplicates by a trigger or by a constraint, of fingerprints and of
/// signatures. A delay separates the trigger's search from the write of the row.
const SCHEMA: &str = "CREATE TABLE triggered (id bigint PRIMARY KEY, fp fingerprint); \
    CREATE INDEX ON triggered USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON triggered \
        FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius=3'); \
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN PERFORM pg_sleep(0.005 * random()); RETURN NEW; END $$; \
    CREATE TRIGGER linger BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION linger(); \
    CREATE TABLE constrained (id bigint PRIMARY KEY, fp fingerprint, \
        EXCLUDE USING neardup (fp WITH ~=)); \
    CREATE TABLE signed (id bigint PRIMARY KEY, body text, sig minhash_signature); \
    CREATE INDEX ON signed USING neardup (sig); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON signed \
        FOR EACH ROW EXECUTE FUNCTION neardup_dedup('sig', 'body', 'shingle=1', 'similarity=0.8'); \
    CREATE TRIGGER linger BEFORE INSERT ON signed FOR EACH ROW EXECUTE FUNCTION linger(); \
    CREATE TABLE signed_apart (id bigint PRIMARY KEY, body text, \
        sig minhash_signature GENERATED ALWAYS AS (minhash(body, shingle => 1)) STORED, \
        EXCLUDE USING neardup (sig WITH ~=));";

/// The tables, the condition of near-duplicates, and the index.
const TABLES: [(&str, &str, &str); 4] = [
    ("triggered", "a.fp <#> b.fp <= 3", "triggered_fp_idx"),
    ("constrained", "a.fp <#> b.fp <= 6", "constrained_fp_excl"),
    ("signed", "a.sig ~= b.sig", "signed_sig_idx"),
    ("signed_apart", "a.sig ~= b.sig", "signed_apart_sig_excl"),
];

/// Way in which a client writes its rows.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// One row per statement, and one statement per transaction.
    Single,
    /// Several statements per transaction.
    Several,
    /// Several rows per statement.
    Many,
    /// COPY, which has no ON CONFLICT.
    Copy,
}

const WAYS: [(&str, Way); 11] = [
    ("triggered", Way::Single),
    ("triggered", Way::Several),
    ("triggered", Way::Many),
    ("triggered", Way::Copy),
    ("constrained", Way::Single),
    ("constrained", Way::Many),
    ("signed", Way::Single),
    ("signed", Way::Several),
    ("signed", Way::Copy),
    ("signed_apart", Way::Single),
    ("signed_apart", Way::Many),
];

/// Centres around which all clients write.
const CENTERS: u64 = 40;

/// Returns the content of a row: a value or a text near one of the centres.
fn content(random: &mut Random, table: &str) -> String {
    let number = random.below(CENTERS);
    if table.starts_with("signed") {
        let from = random.below(20);
        let words = from..from + 60;
        return words.map(|word| format!("c{number}w{word} ")).collect();
    }
    let center = Random::new(number).bits();
    format!("{:016x}", random.near(center, 6))
}

fn write(client: &mut Client, table: &str, way: Way, rows: &[(u64, String)]) -> Result<(), Error> {
    let skip = match table {
        "constrained" | "signed_apart" => " ON CONFLICT DO NOTHING",
        _ => "",
    };
    let values = |(id, content): &(u64, String)| format!("({id}, '{content}')");
    let insert = |values: String| format!("INSERT INTO {table} VALUES {values}{skip};");
    match way {
        Way::Single => rows
            .iter()
            .try_for_each(|row| client.batch_execute(&insert(values(row)))),
        Way::Several => {
            let statements: String = rows.iter().map(|row| insert(values(row))).collect();
            client.batch_execute(&format!("BEGIN; {statements} COMMIT"))
        }
        Way::Many => {
            let all: Vec<String> = rows.iter().map(values).collect();
            client.batch_execute(&insert(all.join(", ")))
        }
        Way::Copy => {
            let columns = match table {
                "signed" => "id, body",
                _ => "id, fp",
            };
            let mut writer = client.copy_in(&format!("COPY {table} ({columns}) FROM stdin"))?;
            for (id, content) in rows {
                // `finish` returns an error of the server.
                writeln!(writer, "{id}\t{content}").ok();
            }
            writer.finish().map(drop)
        }
    }
}

/// Writes batches of rows while `go_on` returns true. Returns the number of stored batches.
fn client(
    conninfo: &str,
    seed: u64,
    (table, way): (&str, Way),
    go_on: impl Fn(u32) -> bool,
) -> Result<u32> {
    let mut client = connect(conninfo)?;
    client.batch_execute("SET deadlock_timeout = '20ms'")?;
    let mut random = Random::new(seed);
    let (mut batches, mut id) = (0, seed << 32);
    while go_on(batches) {
        let rows: Vec<(u64, String)> = (0..8)
            .map(|_| {
                id += 1;
                (id, content(&mut random, table))
            })
            .collect();
        loop {
            let result = write(&mut client, table, way, &rows);
            match code(&result) {
                // Two clients wait for each other's rows, as with a unique index.
                Some(state) if state == SqlState::T_R_DEADLOCK_DETECTED => {
                    client.batch_execute("ROLLBACK")?;
                    if matches!(way, Way::Single) {
                        break;
                    }
                }
                Some(_) => return Err(result.unwrap_err().into()),
                None if result.is_err() => return Ok(batches),
                None => break,
            }
        }
        batches += 1;
    }
    Ok(batches)
}

/// Asserts that no two rows are near-duplicates, and that the constraint's own index agrees.
fn holds(client: &mut Client) -> Outcome {
    // A search by the index would miss rows that the index has lost.
    client.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    for (table, near, index) in TABLES {
        let pairs: i64 = value(
            client,
            &format!("SELECT count(*) FROM {table} a, {table} b WHERE a.id < b.id AND {near}"),
        )?;
        assert_eq!(pairs, 0, "{table}");
        let rows: i64 = value(client, &format!("SELECT count(*) FROM {table}"))?;
        assert!(rows >= CENTERS as i64, "{table}: {rows}");
        client.batch_execute(&format!("SELECT neardup_index_check('{index}', true)"))?;
    }
    let locks: i64 = value(
        client,
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )?;
    assert_eq!(locks, 0);
    Ok(())
}

fn workload(conninfo: &str, seed: u64, go_on: impl Fn(u32) -> bool + Sync) -> Result<Vec<u32>> {
    let go_on = &go_on;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (seed..)
            .zip(WAYS)
            .map(|(seed, work)| scope.spawn(move || client(conninfo, seed, work, go_on)))
            .collect();
        clients
            .into_iter()
            .map(|client| match client.join() {
                Ok(batches) => batches,
                Err(_) => bail!("a client panicked"),
            })
            .collect()
    })
}

#[test]
fn clients_that_write_near_duplicates_at_once_leave_none() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SCHEMA)?;
    workload(database.conninfo(), 1, |batches| batches < 60)?;
    holds(&mut client)
}

#[test]
fn a_crash_amid_such_clients_leaves_none() -> Outcome {
    let settings = [("fsync", "off"), ("checkpoint_timeout", "1h")];
    with(own_server("dedup", &settings)?, |server| {
        let conninfo = server.conninfo("postgres");
        let mut client = connect(&conninfo)?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        client.batch_execute(SCHEMA)?;
        workload(&conninfo, 1, |batches| batches < 15)?;
        let (dead, batches) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| -> Outcome {
            // Writes until the connection is lost.
            let clients = scope.spawn(|| {
                workload(&conninfo, 100, |_| {
                    batches.fetch_add(1, Ordering::Relaxed);
                    !dead.load(Ordering::Relaxed)
                })
            });
            poll("the clients have begun some batches", || {
                let begun = batches.load(Ordering::Relaxed);
                Ok(begun > 5 * WAYS.len() || clients.is_finished())
            })?;
            server.kill_9()?;
            dead.store(true, Ordering::Relaxed);
            match clients.join() {
                Ok(result) => {
                    ensure!(
                        result.is_ok() || format!("{result:?}").contains("connect"),
                        "{result:?}"
                    );
                    Ok(())
                }
                Err(_) => bail!("a client panicked"),
            }
        })?;
        server.start()?;
        holds(&mut connect(&conninfo)?)
    })
}
