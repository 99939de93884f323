//! Rows that are never stored leave nothing in flight.
use super::cases::CASES;
use super::nothing_in_flight;
use super::sessions::{FIXTURES, SCHEMA, blocked, process, published, session};
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::anyhow;
use neardup_tests::Database;

#[test]
fn a_backend_that_is_terminated_leaves_nothing_in_flight() -> Outcome {
    let database = Database::create()?;
    let mut watcher = session(&database)?;
    for case in CASES.iter().filter(|case| !case.scoped) {
        let [mut first, mut second] = [session(&database)?, session(&database)?];
        watcher.batch_execute(&case.schema())?;
        watcher.batch_execute(SCHEMA)?;
        watcher.batch_execute(FIXTURES[0].make)?;
        let (victim, waiting) = (process(&mut first)?, process(&mut second)?);
        let column = case.target();
        let insert = format!(
            "INSERT INTO t (id, site, {column}) VALUES (2, 2, '{}')",
            case.value(1, 0)
        );
        // This row is in the same partition, if there are several.
        let near = case.insert(2, &case.value(1, case.near_by()));
        watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
        std::thread::scope(|scope| -> Outcome {
            let first = scope.spawn(|| first.batch_execute(&insert));
            published(&mut watcher, &first)?;
            let second = scope.spawn(|| second.batch_execute(&near));
            blocked(&mut watcher, waiting, &second)?;
            watcher.execute("SELECT pg_terminate_backend($1)", &[&victim])?;
            assert!(
                first
                    .join()
                    .map_err(|_| anyhow!("a client panicked"))?
                    .is_err()
            );
            second.join().map_err(|_| anyhow!("a client panicked"))??;
            Ok(())
        })?;
        watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
        assert_eq!(
            value::<i64>(&mut watcher, "SELECT count(*) FROM t")?,
            1,
            "{case:?}"
        );
        nothing_in_flight(&mut watcher)?;
    }
    Ok(())
}

/// Statements that do not store a row that the trigger has checked, in a transaction that
/// continues.
const FUTILE: [(&str, &str); 5] = [
    (
        "a savepoint is rolled back",
        "SAVEPOINT s; INSERT INTO t (id, COLUMN) VALUES (7, 'VALUE'); ROLLBACK TO s",
    ),
    (
        "a check fails after the look, within a block that goes on",
        "DO $$ BEGIN INSERT INTO t (id, site, COLUMN) VALUES (7, -1, 'VALUE'); \
         EXCEPTION WHEN check_violation THEN NULL; END $$",
    ),
    (
        "another key is there already",
        "INSERT INTO t (id, COLUMN) VALUES (1, 'VALUE') ON CONFLICT (id) DO NOTHING",
    ),
    (
        "another trigger drops the row",
        "INSERT INTO t (id, site, COLUMN) VALUES (7, 9, 'VALUE')",
    ),
    (
        "the last of several rows fails, within a block that goes on",
        "DO $$ BEGIN INSERT INTO t (id, COLUMN) VALUES (7, 'VALUE'), (1, 'OTHER'); \
         EXCEPTION WHEN unique_violation THEN NULL; END $$",
    ),
];

#[test]
fn a_row_that_comes_to_nothing_holds_up_nobody() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut second] = [session(&database)?, session(&database)?];
    for case in CASES {
        first.batch_execute(&case.schema())?;
        first.batch_execute(
            "CREATE OR REPLACE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN RETURN NULL; END $$; \
             CREATE TRIGGER leave_out BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.site = 9) \
                EXECUTE FUNCTION leave_out();",
        )?;
        first.batch_execute(&case.insert(1, &case.value(1, 0)))?;
        for (number, (what, statement)) in FUTILE.iter().enumerate() {
            let family = 10 + number as u64;
            let statement = (statement.replace("COLUMN", case.target()))
                .replace("VALUE'", &format!("{}'", case.value(family, 0)))
                .replace("OTHER", &case.value(family + 100, 0));
            first.batch_execute("BEGIN")?;
            first.batch_execute(&statement)?;
            nothing_in_flight(&mut second)?;
            let near = case.insert(100 + number, &case.value(family, case.near_by()));
            let rows = second.execute(near.as_str(), &[])?;
            assert_eq!(rows, 1, "{what}: {case:?}");
            first.batch_execute("COMMIT")?;
        }
    }
    Ok(())
}
