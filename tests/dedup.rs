//! Near-duplicates that many clients write at once, against the trigger and against the constraint.
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::{Outcome, with};
use anyhow::{Result, bail, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::error::SqlState;
use postgres::{Client, Error};
use std::io::Write;

/// Two tables alike, that keep near-duplicates out in the two ways that there are. Between the look of
/// the trigger and the write of the row some time passes.
const SCHEMA: &str = "CREATE TABLE triggered (id bigint PRIMARY KEY, fp fingerprint); \
    CREATE INDEX ON triggered USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON triggered \
        FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'distance=3'); \
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN PERFORM pg_sleep(0.005 * random()); RETURN NEW; END $$; \
    CREATE TRIGGER linger BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION linger(); \
    CREATE TABLE constrained (id bigint PRIMARY KEY, fp fingerprint, \
        EXCLUDE USING neardup (fp WITH ~=));";

/// How a client writes its rows.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A statement and a transaction for each.
    Single,
    /// Some statements in a transaction.
    Several,
    /// Some rows in a statement.
    Many,
    /// COPY, which knows no ON CONFLICT.
    Copy,
}

const WAYS: [(&str, Way); 6] = [
    ("triggered", Way::Single),
    ("triggered", Way::Several),
    ("triggered", Way::Many),
    ("triggered", Way::Copy),
    ("constrained", Way::Single),
    ("constrained", Way::Many),
];

/// Centres around which all clients write.
const CENTERS: u64 = 40;

fn write(client: &mut Client, table: &str, way: Way, rows: &[(u64, u64)]) -> Result<(), Error> {
    let skip = match table {
        "constrained" => " ON CONFLICT DO NOTHING",
        _ => "",
    };
    let values = |(id, fp): &(u64, u64)| format!("({id}, '{fp:016x}')");
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
            let mut writer = client.copy_in(&format!("COPY {table} FROM stdin"))?;
            for (id, fp) in rows {
                // An error of the server's comes with `finish`.
                writeln!(writer, "{id}\t{fp:016x}").ok();
            }
            writer.finish().map(drop)
        }
    }
}

/// Writes batches of rows until `go_on` says no. Returns how many came through.
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
        let rows: Vec<(u64, u64)> = (0..8)
            .map(|_| {
                id += 1;
                let center = Random::new(random.below(CENTERS)).bits();
                (id, random.near(center, 6))
            })
            .collect();
        loop {
            let result = write(&mut client, table, way, &rows);
            match code(&result) {
                // Each waits for a row of the other's, as with a unique index.
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
    for table in ["triggered", "constrained"] {
        let pairs: i64 = value(
            client,
            &format!(
                "SELECT count(*) FROM {table} a, {table} b WHERE a.id < b.id AND a.fp <#> b.fp <= 3"
            ),
        )?;
        assert_eq!(pairs, 0, "{table}");
        let rows: i64 = value(client, &format!("SELECT count(*) FROM {table}"))?;
        assert!(rows >= CENTERS as i64, "{table}: {rows}");
    }
    for index in ["triggered_fp_idx", "constrained_fp_excl"] {
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

fn crowd(conninfo: &str, seed: u64, go_on: impl Fn(u32) -> bool + Sync) -> Result<Vec<u32>> {
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
    crowd(database.conninfo(), 1, |batches| batches < 60)?;
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
        crowd(&conninfo, 1, |batches| batches < 15)?;
        let dead = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| -> Outcome {
            // Until the connection is gone, whenever that is.
            let clients = scope.spawn(|| {
                crowd(&conninfo, 100, |_| {
                    !dead.load(std::sync::atomic::Ordering::Relaxed)
                })
            });
            crate::support::crowd::wait(300)?;
            server.kill_9()?;
            dead.store(true, std::sync::atomic::Ordering::Relaxed);
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
