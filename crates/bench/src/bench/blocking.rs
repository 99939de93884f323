//! Second part of `cargo xtask bench --load`: measures how often an insert with the trigger
//! `neardup_dedup` waits for an unrelated row, or deadlocks with it, at several radii.
use super::generated_rows::random;
use super::session::Session;
use anyhow::{Result, bail};
use postgres::error::SqlState;
use postgres::{Client, NoTls};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Instant;
use xtask::ui;

/// Radii, in bits, with which the trigger is measured.
const RADII: [u32; 4] = [3, 8, 10, 16];
/// Number of concurrent clients.
const CLIENTS: usize = 4;
/// Number of transactions of each client.
const TRANSACTIONS: usize = 60;
/// Number of rows that each transaction inserts.
const ROWS: usize = 3;
/// Number of rows that are inserted one by one while a transaction that inserted an unrelated row
/// is still open.
const OTHERS: usize = 200;

/// Identifier of the random stream from which this file takes its values, for [`random`]. Streams
/// with different identifiers have different values. `generated_rows.rs` and `clusters/corpus.rs`
/// use other streams.
const STREAM: u64 = 8;

/// Measurements at one radius of the trigger.
struct Measured {
    radius: u32,
    /// Number of transactions that deadlocked, although all rows are unrelated.
    deadlocks: usize,
    /// Elapsed seconds of the concurrent transactions.
    seconds: f64,
    /// Number of single inserts that waited for an unrelated row.
    held_up: usize,
}

/// Measures deadlocks and waits at each radius, in a database with the extension. Prints the table
/// and returns it as JSON.
pub fn bench(session: &mut Session, conninfo: &str) -> Result<Value> {
    let mut measured = Vec::new();
    for radius in RADII {
        let step = format!("Transactions of {ROWS} unrelated rows, radius {radius}");
        measured.push(ui::step(step, || at(session, conninfo, radius))?);
    }
    println!("\n{}", table(&measured));
    let contenders = measured.iter().map(|measured| {
        json!({
            "radius": measured.radius,
            "deadlocks": measured.deadlocks,
            "transactions": CLIENTS * TRANSACTIONS,
            "seconds": measured.seconds,
            "held_up": measured.held_up,
            "others": OTHERS,
        })
    });
    Ok(contenders.collect())
}

fn at(session: &mut Session, conninfo: &str, radius: u32) -> Result<Measured> {
    session.run(&format!(
        "DROP TABLE IF EXISTS crossing; DROP TABLE IF EXISTS counter; \
         CREATE TABLE crossing (id bigint PRIMARY KEY, fp fingerprint); \
         CREATE INDEX ON crossing USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT ON crossing \
             FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius={radius}'); \
         CREATE TABLE counter (rows bigint); INSERT INTO counter VALUES (0); \
         CREATE OR REPLACE FUNCTION count_row() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN UPDATE counter SET rows = rows + 1; RETURN NULL; END $$; \
         CREATE TRIGGER count AFTER INSERT ON crossing \
             FOR EACH ROW EXECUTE FUNCTION count_row();"
    ))?;
    let values = far_apart(CLIENTS * TRANSACTIONS * ROWS + 1 + OTHERS);
    let (crossing, others) = values.split_at(CLIENTS * TRANSACTIONS * ROWS);
    let begin = Instant::now();
    let deadlocks = deadlocks(conninfo, crossing)?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Measured {
        radius,
        deadlocks,
        seconds,
        held_up: held_up(session, conninfo, others)?,
    })
}

/// Returns `count` values. Any two of them differ in more than 16 bits, the largest of [`RADII`].
fn far_apart(count: usize) -> Vec<u64> {
    let mut values: Vec<u64> = Vec::new();
    for value in (0..).map(|i| random(STREAM, i)) {
        if values.iter().all(|other| (other ^ value).count_ones() > 16) {
            values.push(value);
        }
        if values.len() == count {
            break;
        }
    }
    values
}

fn insert(id: usize, value: u64) -> String {
    format!("INSERT INTO crossing VALUES ({id}, '{value:016x}');")
}

/// Inserts `values` by [`CLIENTS`] concurrent clients, [`ROWS`] rows in each transaction. Returns
/// the number of transactions that deadlocked.
fn deadlocks(conninfo: &str, values: &[u64]) -> Result<usize> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (values.chunks(TRANSACTIONS * ROWS).enumerate())
            .map(|(client, values)| {
                scope.spawn(move || -> Result<usize> {
                    let mut connection = Client::connect(conninfo, NoTls)?;
                    connection.batch_execute("SET deadlock_timeout = '10ms'")?;
                    let mut failed = 0;
                    for (number, values) in values.chunks(ROWS).enumerate() {
                        let first = (client * TRANSACTIONS + number) * ROWS;
                        let rows: String = (values.iter().enumerate())
                            .map(|(row, &value)| insert(first + row, value))
                            .collect();
                        let done = connection.batch_execute(&format!("BEGIN; {rows} COMMIT"));
                        match done {
                            Err(error)
                                if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) =>
                            {
                                connection.batch_execute("ROLLBACK")?;
                                failed += 1;
                            }
                            done => done?,
                        }
                    }
                    Ok(failed)
                })
            })
            .collect();
        let mut failed = 0;
        for client in clients {
            match client.join() {
                Ok(count) => failed += count?,
                Err(_) => bail!("a client panicked"),
            }
        }
        Ok(failed)
    })
}

/// Inserts `values[0]` in a transaction that stays open, and then each of the other values by
/// another connection. Returns how many of these inserts wait for the open transaction, although no
/// two values are near each other. The first transaction stays open because its AFTER trigger waits
/// for an advisory lock.
fn held_up(session: &mut Session, conninfo: &str, values: &[u64]) -> Result<usize> {
    const LOCK: &str = "SELECT pg_advisory_lock(42)";
    session.run(
        "CREATE OR REPLACE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$; \
         DROP TRIGGER count ON crossing; \
         CREATE TRIGGER halt AFTER INSERT ON crossing FOR EACH ROW WHEN (NEW.id < 0) \
             EXECUTE FUNCTION halt();",
    )?;
    session.run(LOCK)?;
    let mut first = Client::connect(conninfo, NoTls)?;
    let backend: i32 = first.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    std::thread::scope(|scope| {
        let held = format!("INSERT INTO crossing VALUES (-1, '{:016x}')", values[0]);
        let held = scope.spawn(move || first.batch_execute(&held));
        while session.value(&format!("SELECT pg_blocking_pids({backend}) = '{{}}'"))? {}
        let mut other = Client::connect(conninfo, NoTls)?;
        // An insert that waits for the held row would wait until this function releases it. A short
        // timeout detects the wait.
        other.batch_execute("SET lock_timeout = '50ms'; SET deadlock_timeout = '10s'")?;
        let mut held_up = 0;
        for (row, &value) in values[1..].iter().enumerate() {
            match other.batch_execute(&insert(1_000_000 + row, value)) {
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => held_up += 1,
                done => done?,
            }
        }
        session.run("SELECT pg_advisory_unlock(42)")?;
        match held.join() {
            Ok(done) => done?,
            Err(_) => bail!("a client panicked"),
        }
        Ok(held_up)
    })
}

/// Returns the measurements as a Markdown table.
fn table(measured: &[Measured]) -> String {
    let mut table = format!(
        "| radius | deadlocks of {} transactions | time | held up of {OTHERS} rows |\n\
         |---:|---:|---:|---:|\n",
        CLIENTS * TRANSACTIONS
    );
    for Measured {
        radius,
        deadlocks,
        seconds,
        held_up,
    } in measured
    {
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {radius} | {deadlocks} | {seconds:.1} s | {held_up} |"
        );
    }
    table
}
