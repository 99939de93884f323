//! Several clients at once, and what the server answers them.
use super::table::value;
use anyhow::{Result, bail};
use neardup_tests::Database;
use postgres::error::SqlState;
use postgres::{Client, Error};
use std::time::{Duration, Instant};

/// The SQLSTATE of a result; `None` if it is none of the server's errors.
pub fn code<T>(result: &Result<T, Error>) -> Option<SqlState> {
    result
        .as_ref()
        .err()
        .and_then(|error| error.code().cloned())
}

/// Runs a statement and cancels it once `condition`, a query, answers true to another client.
/// Returns what came of the statement.
///
/// # Errors
/// When the condition never holds: the statement then proved nothing.
pub fn cancel_when(
    database: &Database,
    client: &mut Client,
    condition: &str,
    statement: &str,
) -> Result<Result<(), Error>> {
    let mut watcher = database.connect()?;
    let backend: i32 = value(client, "SELECT pg_backend_pid()")?;
    std::thread::scope(|scope| {
        let statement = scope.spawn(|| client.batch_execute(statement));
        let start = Instant::now();
        while !value::<bool>(&mut watcher, condition)? {
            if statement.is_finished() || start.elapsed() > Duration::from_secs(30) {
                bail!("it never came to be that {condition}");
            }
        }
        watcher.execute("SELECT pg_cancel_backend($1)", &[&backend])?;
        match statement.join() {
            Ok(result) => Ok(result),
            Err(_) => bail!("the client panicked"),
        }
    })
}
