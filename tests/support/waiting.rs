//! Waiting for conditions, and delays before a test interferes. No other module sleeps.
use super::Outcome;
use super::table::value;
use anyhow::{Result, ensure};
use neardup_pgserver::Server;
use neardup_tests::connect;
use postgres::{Client, GenericClient};
use std::fmt::Display;
use std::thread::{ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

/// Time after which [`poll`] gives up. It is long enough for any machine.
const LIMIT: Duration = Duration::from_secs(600);
/// Shortest and longest interval between two checks.
const INTERVALS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(500)];

/// Waits until `holds` returns true. Checks less often the longer it waits.
///
/// # Errors
/// An error of `holds`, or a timeout.
pub fn poll(condition: impl Display, mut holds: impl FnMut() -> Result<bool>) -> Outcome {
    let start = Instant::now();
    while !holds()? {
        let elapsed = start.elapsed();
        ensure!(elapsed < LIMIT, "it never came to be that {condition}");
        let [shortest, longest] = INTERVALS;
        sleep((elapsed / 16).clamp(shortest, longest));
    }
    Ok(())
}

/// Waits until the query `condition` returns true.
///
/// # Errors
/// Same as [`poll`].
pub fn wait_until(client: &mut impl GenericClient, condition: &str) -> Outcome {
    poll(condition, || {
        // Within a transaction the server caches pg_stat_activity.
        client.batch_execute("SELECT pg_stat_clear_snapshot()")?;
        value(client, condition)
    })
}

/// Waits until the query `condition` returns true. The thread `running` must run until then.
///
/// # Errors
/// Same as [`poll`], or when the thread ended first.
pub fn wait_while_running<T>(
    client: &mut impl GenericClient,
    condition: &str,
    running: &ScopedJoinHandle<T>,
) -> Outcome {
    poll(condition, || {
        let holds = value(client, condition)?;
        let goes_on = holds || !running.is_finished();
        ensure!(goes_on, "the thread ended before {condition}");
        Ok(holds)
    })
}

/// Connects to a server once it has recovered from the death of a process.
///
/// # Errors
/// Same as [`poll`].
pub fn reconnect(conninfo: &str) -> Result<Client> {
    let mut connected = None;
    poll("the server has recovered", || {
        connected = connect(conninfo).ok();
        let answers = |client: &mut Client| client.batch_execute("SELECT 1").is_ok();
        Ok(connected.as_mut().is_some_and(answers))
    })?;
    Ok(connected.expect("poll has succeeded"))
}

/// Kills a server while the thread `inserting` endlessly adds rows to an index, once the index has
/// grown by `growth` bytes and the log on disk contains this growth.
///
/// # Errors
/// Same as [`wait_while_running`], or when the server cannot be killed.
pub fn kill_while_index_grows<T>(
    server: &mut Server,
    index: &str,
    growth: i64,
    inserting: &ScopedJoinHandle<T>,
) -> Outcome {
    let mut watcher = connect(&server.conninfo("postgres"))?;
    let size = format!("SELECT pg_relation_size('{index}')");
    let before: i64 = value(&mut watcher, &size)?;
    let grown = format!("{size} >= {}", before + growth);
    wait_while_running(&mut watcher, &grown, inserting)?;
    let position: String = value(&mut watcher, "SELECT pg_current_wal_insert_lsn()::text")?;
    let flushed = format!("SELECT pg_current_wal_flush_lsn() >= '{position}'");
    wait_while_running(&mut watcher, &flushed, inserting)?;
    server.kill_9()
}

/// Lets some time pass before the test interferes at a random moment. A test that needs a state
/// waits for that state instead.
pub fn moment(milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds));
}
