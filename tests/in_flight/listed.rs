//! The list of rows in flight, and the room for them.
use super::cases::BITS;
use super::nothing_in_flight;
use super::sessions::{FIXTURES, SCHEMA, process, published, session};
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::table::value;
use anyhow::anyhow;
use neardup_tests::{Database, own_server};
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
            "SELECT pid, relation::text, column_name::text FROM neardup_rows_in_flight()",
            &[],
        )?;
        assert_eq!(row.get::<_, i32>(0), backend);
        assert_eq!(row.get::<_, &str>(1), "t");
        assert_eq!(row.get::<_, &str>(2), "v");
        watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
        first.join().map_err(|_| anyhow!("a client panicked"))??;
        Ok(())
    })?;
    // Roles belong to the whole server: these go with the transaction.
    watcher.batch_execute(
        "BEGIN; CREATE ROLE nobody_in_flight; SET ROLE nobody_in_flight; SAVEPOINT s",
    )?;
    let refused = watcher.batch_execute("SELECT * FROM neardup_rows_in_flight()");
    assert_eq!(code(&refused), Some(SqlState::INSUFFICIENT_PRIVILEGE));
    watcher.batch_execute(
        "ROLLBACK TO s; RESET ROLE; GRANT pg_monitor TO nobody_in_flight; \
         SET ROLE nobody_in_flight; SELECT * FROM neardup_rows_in_flight(); ROLLBACK",
    )?;
    nothing_in_flight(&mut watcher)
}

/// Each row's trigger inserts the next one: all are in flight at once.
#[test]
fn more_rows_in_flight_than_there_is_room_for_are_an_error() -> Outcome {
    let settings = [
        ("max_connections", "5"),
        ("autovacuum_max_workers", "1"),
        ("max_worker_processes", "0"),
        ("max_wal_senders", "0"),
        ("max_stack_depth", "6MB"),
        // CREATE EXTENSION locks each object that has a comment.
        ("max_locks_per_transaction", "256"),
    ];
    let server = own_server("in-flight", &settings)?;
    let mut client = neardup_tests::connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    client.batch_execute(&BITS.schema())?;
    client.batch_execute(
        "CREATE FUNCTION next() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF NEW.id > 1 THEN \
                 INSERT INTO t VALUES (NEW.id - 1, 1, '', ((NEW.id - 1) << 40 | 1)::fingerprint); \
             END IF; RETURN NEW; END $$; \
         CREATE TRIGGER next BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION next(); \
         ALTER TABLE t DISABLE TRIGGER dedup; \
         CREATE TRIGGER apart BEFORE INSERT ON t \
             FOR EACH ROW EXECUTE FUNCTION neardup_dedup('v', 'distance=0');",
    )?;
    let result = client.batch_execute("INSERT INTO t VALUES (400, 1, '', 0::bigint::fingerprint)");
    assert_eq!(code(&result), Some(SqlState::OUT_OF_MEMORY), "{result:?}");
    nothing_in_flight(&mut client)?;
    client.batch_execute("INSERT INTO t VALUES (100, 1, '', 0::bigint::fingerprint)")?;
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM t")?, 100);
    nothing_in_flight(&mut client)
}
