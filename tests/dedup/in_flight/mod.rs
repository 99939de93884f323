//! Rows that the trigger is writing: their locks and waits, and the removal of their entries.
mod again;
mod cases;
mod left;
mod listed;
mod quota;
mod sessions;
mod waits;
mod workload;

use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::table::value;
use crate::support::waiting::wait_until;
use anyhow::{Result, bail};
use cases::{CASES, Case, TWICE};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

const CLIENTS: usize = 4;
const TRANSACTIONS: usize = 60;

/// An ordinary trigger: a session that inserts a row waits until all other inserting sessions
/// commit.
const COUNTER: &str = "DROP TABLE IF EXISTS counter; \
    CREATE TABLE counter (rows bigint); INSERT INTO counter VALUES (0); \
    CREATE OR REPLACE FUNCTION count_row() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN UPDATE counter SET rows = rows + 1; RETURN NULL; END $$; \
    CREATE TRIGGER count AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION count_row();";

/// Delays the write of the row after the trigger's search.
const LINGER: &str = "CREATE OR REPLACE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN PERFORM pg_sleep(0.002 * random()); RETURN NEW; END $$; \
    CREATE TRIGGER linger BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION linger();";

/// Writes the values from several clients, in transactions of `rows` rows. Returns the number of
/// transactions that ended in a deadlock.
fn deadlocks(database: &Database, case: &Case, values: &[String], rows: usize) -> Result<usize> {
    let share = values.len() / CLIENTS;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (values.chunks(share).enumerate())
            .map(|(client, values)| {
                scope.spawn(move || -> Result<usize> {
                    let mut connection = connect(database.conninfo())?;
                    connection.batch_execute("SET deadlock_timeout = '10ms'")?;
                    let mut deadlocks = 0;
                    for (transaction, values) in values.chunks(rows).enumerate() {
                        let first = client * share + transaction * rows;
                        let rows: String = (values.iter().enumerate())
                            .map(|(row, value)| case.insert(first + row, value))
                            .collect();
                        let result = connection.batch_execute(&format!("BEGIN; {rows} COMMIT"));
                        match code(&result) {
                            Some(state) if state == SqlState::T_R_DEADLOCK_DETECTED => {
                                connection.batch_execute("ROLLBACK")?;
                                deadlocks += 1;
                            }
                            _ => result?,
                        }
                    }
                    Ok(deadlocks)
                })
            })
            .collect();
        let mut all = 0;
        for client in clients {
            all += match client.join() {
                Ok(deadlocks) => deadlocks?,
                Err(_) => bail!("a client panicked"),
            };
        }
        Ok(all)
    })
}

/// Asserts that no row is in flight and none of their locks is held: at once after a statement,
/// and soon after an error, which the server reports before it rolls back.
fn nothing_in_flight(client: &mut Client) -> Outcome {
    wait_until(
        client,
        "SELECT (SELECT count(*) FROM neardup_expert_rows_in_flight()) \
              + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = \
                 (SELECT oid FROM pg_database WHERE datname = current_database())) = 0",
    )
}

#[test]
fn unrelated_rows_never_deadlock_over_what_other_triggers_wait_for() -> Outcome {
    const ROWS: usize = 3;
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut found = Vec::new();
    for case in CASES {
        client.batch_execute(&case.schema())?;
        client.batch_execute(COUNTER)?;
        let families = case.families(CLIENTS * TRANSACTIONS * ROWS);
        let values: Vec<_> = families
            .iter()
            .map(|&family| case.value(family, 0))
            .collect();
        let deadlocks = deadlocks(&database, &case, &values, ROWS)?;
        let rows: i64 = value(&mut client, "SELECT count(*) FROM t")?;
        found.push((case, deadlocks, rows));
    }
    for (_, deadlocks, rows) in &found {
        let all = CLIENTS * TRANSACTIONS * ROWS;
        assert_eq!((*deadlocks, *rows as usize), (0, all), "{found:#?}");
    }
    nothing_in_flight(&mut client)
}

/// Two triggers check each row. If one trigger accepted a row before the other found it near
/// another row, two concurrent rows would wait for each other.
#[test]
fn single_rows_never_deadlock_between_two_triggers() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&TWICE.schema())?;
    client.batch_execute(LINGER)?;
    // Its name makes it fire between the two.
    client.batch_execute(
        "CREATE TRIGGER dedup_pause BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION linger()",
    )?;
    // All clients write rows of the same family at about the same time, 7 bits apart.
    let values: Vec<_> = (0..CLIENTS)
        .flat_map(|client| {
            (0..TRANSACTIONS)
                .map(move |row| TWICE.value(row as u64 / 2 + 1, 7 * (client as u32 % 2)))
        })
        .collect();
    assert_eq!(deadlocks(&database, &TWICE, &values, 1)?, 0);
    let near = format!(
        "SELECT count(*) FROM t a, t b WHERE a.id < b.id AND {}",
        TWICE.near
    );
    assert_eq!(value::<i64>(&mut client, &near)?, 0);
    nothing_in_flight(&mut client)
}
