//! The list of rows in flight.
use super::cases::BITS;
use super::nothing_in_flight;
use super::sessions::{FIXTURES, SCHEMA, process, published, session};
use crate::support::Outcome;
use crate::support::clients::code;
use anyhow::anyhow;
use neardup_tests::Database;
use postgres::error::SqlState;

#[test]
fn rows_in_flight_are_shown_to_those_who_watch_the_server() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut watcher] = [session(&database)?, session(&database)?];
    watcher.batch_execute(&BITS.schema())?;
    watcher.batch_execute(SCHEMA)?;
    watcher.batch_execute(FIXTURES[0].make)?;
    let backend = process(&mut first)?;
    let insert = format!(
        "INSERT INTO t (id, site, v) VALUES (2, 2, '{}')",
        BITS.value(1, 0)
    );
    watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
    std::thread::scope(|scope| -> Outcome {
        let first = scope.spawn(|| first.batch_execute(&insert));
        published(&mut watcher, &first)?;
        let row = watcher.query_one(
            "SELECT pid, relation::text, column_name::text FROM neardup_expert_rows_in_flight()",
            &[],
        )?;
        assert_eq!(row.get::<_, i32>(0), backend);
        assert_eq!(row.get::<_, &str>(1), "t");
        assert_eq!(row.get::<_, &str>(2), "v");
        watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
        first.join().map_err(|_| anyhow!("a client panicked"))??;
        Ok(())
    })?;
    // Roles belong to the whole server. The rollback of the transaction removes this one.
    watcher.batch_execute(
        "BEGIN; CREATE ROLE nobody_in_flight; SET ROLE nobody_in_flight; SAVEPOINT s",
    )?;
    let refused = watcher.batch_execute("SELECT * FROM neardup_expert_rows_in_flight()");
    assert_eq!(code(&refused), Some(SqlState::INSUFFICIENT_PRIVILEGE));
    watcher.batch_execute(
        "ROLLBACK TO s; RESET ROLE; GRANT pg_monitor TO nobody_in_flight; \
         SET ROLE nobody_in_flight; SELECT * FROM neardup_expert_rows_in_flight(); ROLLBACK",
    )?;
    nothing_in_flight(&mut watcher)
}
