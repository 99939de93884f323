//! Error codes of statements, and statements that a test cancels or lets time out.
use super::table::value;
use anyhow::{Result, bail};
use neardup_tests::Database;
use postgres::error::SqlState;
use postgres::{Client, Error};

/// Maximum number of attempts to cancel a statement while it runs.
const ATTEMPTS: u32 = 20;

/// Returns the SQLSTATE of a result; `None` if it is not an error of the server.
pub fn code<T>(result: &Result<T, Error>) -> Option<SqlState> {
    result
        .as_ref()
        .err()
        .and_then(|error| error.code().cloned())
}

/// Runs a statement and cancels it once the query `condition` returns true to another client.
/// Returns the result of the statement.
///
/// The statement may finish first, on a fast machine or one that stalls. Then this runs `undo` and
/// tries again.
///
/// # Errors
/// When, in every attempt, the statement finished before it could be cancelled.
pub fn cancel_when(
    database: &Database,
    client: &mut Client,
    condition: &str,
    statement: &str,
    undo: &str,
) -> Result<Result<(), Error>> {
    let mut watcher = database.connect()?;
    let backend: i32 = value(client, "SELECT pg_backend_pid()")?;
    for _ in 0..ATTEMPTS {
        let (met, result) = std::thread::scope(|scope| -> Result<_> {
            let statement = scope.spawn(|| client.batch_execute(statement));
            let mut met = false;
            while !met && !statement.is_finished() {
                met = value(&mut watcher, condition)?;
            }
            if met {
                watcher.execute("SELECT pg_cancel_backend($1)", &[&backend])?;
            }
            match statement.join() {
                Ok(result) => Ok((met, result)),
                Err(_) => bail!("the client panicked"),
            }
        })?;
        if met && result.is_err() {
            return Ok(result);
        }
        result?;
        client.batch_execute(undo)?;
    }
    bail!("{ATTEMPTS} times it was over before {condition}");
}

/// Runs a statement with ever shorter timeouts, until a timeout ends the statement. Runs `undo`
/// each time the statement finishes first. Returns the result of the statement.
///
/// # Errors
/// When not even a timeout of a millisecond ends the statement.
pub fn time_out(client: &mut Client, statement: &str, undo: &str) -> Result<Result<(), Error>> {
    for milliseconds in [150, 50, 20, 10, 5, 2, 1] {
        client.batch_execute(&format!("SET statement_timeout = '{milliseconds}ms'"))?;
        let result = client.batch_execute(statement);
        client.batch_execute("SET statement_timeout = 0")?;
        if result.is_err() {
            return Ok(result);
        }
        client.batch_execute(undo)?;
    }
    bail!("nothing ends {statement}");
}
