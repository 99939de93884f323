//! A search that the trigger must repeat.
use super::cases::CASES;
use super::nothing_in_flight;
use super::sessions::{process, session};
use crate::support::Outcome;
use crate::support::table::value;
use crate::support::waiting::wait_while_running;
use anyhow::anyhow;
use neardup_tests::Database;

/// A unique key whose expression waits at each evaluation, until the holder of the locks from 101
/// on releases the next one.
const STEP_BY_STEP: &str = "CREATE SEQUENCE IF NOT EXISTS steps; \
    CREATE OR REPLACE FUNCTION step(site bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ \
        DECLARE lock bigint = nextval('public.steps'); \
        BEGIN \
            PERFORM pg_advisory_lock_shared(lock); PERFORM pg_advisory_unlock_shared(lock); \
            RETURN site; \
        END $$; \
    CREATE UNIQUE INDEX ON t (step(site)); \
    ALTER TABLE t ADD COLUMN note int; \
    SELECT setval('steps', 100); \
    SELECT pg_advisory_lock(n) FROM generate_series(101, 130) AS n;";

/// A row with the new row's unique key may change between the search and the lock on it. Then the
/// trigger searches again, and the row must still be in flight only once.
#[test]
fn a_row_that_is_looked_up_again_is_in_flight_once() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut second, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    let waiting = process(&mut first)?;
    for case in CASES
        .iter()
        .filter(|case| !case.scoped && !case.partitioned)
    {
        watcher.batch_execute(&case.schema())?;
        watcher.batch_execute(&case.insert(1, &case.value(1, 0)))?;
        watcher.batch_execute(STEP_BY_STEP)?;
        let insert = case.insert(2, &case.value(1, case.near_by()));
        let insert = insert.replace(";", " ON CONFLICT DO NOTHING");
        std::thread::scope(|scope| -> Outcome {
            let first = scope.spawn(|| first.batch_execute(&insert));
            let at = |step: u32| {
                format!(
                    "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {waiting} AND NOT granted \
                     AND locktype = 'advisory' AND objid = {step})"
                )
            };
            // Evaluations of the key: of the new row, of the old and the new version of the
            // existing row, and of the new version again.
            let mut most = 0;
            for step in 101..=106 {
                wait_while_running(&mut watcher, &at(step), &first)?;
                let count = "SELECT count(*) FROM neardup_expert_rows_in_flight()";
                most = most.max(value::<i64>(&mut watcher, count)?);
                if step == 102 {
                    second.batch_execute("UPDATE t SET note = 1")?;
                }
                watcher.batch_execute(&format!("SELECT pg_advisory_unlock({step})"))?;
            }
            watcher.batch_execute("SELECT pg_advisory_unlock_all()")?;
            first.join().map_err(|_| anyhow!("a client panicked"))??;
            assert_eq!(most, 1, "{case:?}");
            Ok(())
        })?;
        nothing_in_flight(&mut watcher)?;
    }
    Ok(())
}
