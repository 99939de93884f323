//! Searches in a snapshot whose rows the server has pruned, with `old_snapshot_threshold` at 0.
use crate::support::fixtures::LOGGED;
use crate::support::oracle::Way;
use crate::support::table::value;
use crate::support::workload::{server_error, wait};
use anyhow::{Result, ensure};
use neardup_tests::connect;
use postgres::error::SqlState;
use postgres::{Client, Error, IsolationLevel};

/// Age at which the server calls a snapshot too old, in milliseconds. Its clock for that is 5 s
/// behind.
const OLD: u64 = 6_000;

/// Asserts that searches in an old snapshot find all its rows, or fail. Returns how many failed.
pub fn hold(conninfo: &str) -> Result<usize> {
    let mut reader = connect(conninfo)?;
    let mut old = reader
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()?;
    Way::Sequential.set(&mut old)?;
    let mut searches: Vec<(String, Vec<i64>)> = Vec::new();
    for place in LOGGED {
        let table = place.table;
        let ball = place.in_ball(&place.of("21"), 6);
        let query =
            format!("SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM {table} WHERE {ball}");
        let rows = match value(&mut old, &query) {
            Err(error) if has_code(&error, &SqlState::SNAPSHOT_TOO_OLD) => return Ok(1),
            rows => rows?,
        };
        searches.push((query, rows));
    }
    wait(OLD)?;
    prune(&mut connect(conninfo)?)?;
    let mut too_old = 0;
    for (query, rows) in searches {
        for way in Way::INDEXED {
            let mut savepoint = old.transaction()?;
            way.set(&mut savepoint)?;
            match value::<Vec<i64>>(&mut savepoint, &query) {
                Ok(found) => ensure!(
                    found == rows,
                    "{way:?} finds {} of {} rows in an old snapshot: {query}",
                    found.len(),
                    rows.len()
                ),
                Err(error) if has_code(&error, &SqlState::SNAPSHOT_TOO_OLD) => too_old += 1,
                Err(error) => return Err(error),
            }
            savepoint.rollback()?;
        }
    }
    Ok(too_old)
}

/// Deletes rows of each table, and has VACUUM prune them. A table is left out while its index is
/// built concurrently, since the build waits for the old snapshot.
fn prune(writer: &mut Client) -> Result<()> {
    writer.batch_execute("SET deadlock_timeout = '50ms'")?;
    for place in LOGGED {
        let table = place.table;
        for statement in [
            format!("DELETE FROM {table} WHERE id % 3 = 0"),
            format!("VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON) {table}"),
        ] {
            match writer.batch_execute(&statement).map_err(Into::into) {
                Err(error) if has_code(&error, &SqlState::T_R_DEADLOCK_DETECTED) => {}
                result => result?,
            }
        }
    }
    // Each VACUUM tells all sessions which snapshots are too old. This one is never left out.
    writer.batch_execute("CREATE TABLE IF NOT EXISTS old_snapshots ()")?;
    writer.batch_execute("VACUUM old_snapshots")?;
    Ok(())
}

fn has_code(error: &anyhow::Error, code: &SqlState) -> bool {
    server_error(error).and_then(Error::code) == Some(code)
}
