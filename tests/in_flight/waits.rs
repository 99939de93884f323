//! Who waits for whom, between two or three sessions.
use super::cases::{BITS, BY_EVENT, CASES};
use super::nothing_in_flight;
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::table::value;
use anyhow::{Result, anyhow, ensure};
use neardup_tests::{Database, own_server};
use postgres::Client;
use postgres::error::SqlState;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

type Running<'a, T> = ScopedJoinHandle<'a, T>;

/// A connection whose statements end even if nobody lets them go on, as when a test fails.
fn session(database: &Database) -> Result<Client> {
    let mut client = database.connect()?;
    client.batch_execute("SET statement_timeout = '100s'")?;
    Ok(client)
}

/// Places in the life of a row where it may have to wait for others: before it is written (another
/// trigger), while it is (a unique key), and afterwards (a foreign key, another trigger).
const PLACES: [Place; 4] = [
    Place {
        name: "a BEFORE trigger",
        make: "CREATE TRIGGER halt BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.site = 2) \
               EXECUTE FUNCTION halt();",
        hold: "SELECT pg_advisory_xact_lock(42)",
    },
    Place {
        name: "a unique key",
        // The primary key, to which the row is written before the index on its fingerprint.
        make: "",
        hold: "INSERT INTO t (id, site) VALUES (2, 2)",
    },
    Place {
        name: "a foreign key",
        make: "ALTER TABLE t ADD FOREIGN KEY (site) REFERENCES site;",
        hold: "UPDATE site SET id = 3 WHERE id = 2",
    },
    Place {
        name: "an AFTER trigger",
        make: "CREATE TRIGGER halt AFTER INSERT ON t FOR EACH ROW WHEN (NEW.site = 2) \
               EXECUTE FUNCTION halt();",
        hold: "SELECT pg_advisory_xact_lock(42)",
    },
];

struct Place {
    name: &'static str,
    make: &'static str,
    /// What makes a row of site 2 wait there.
    hold: &'static str,
}

const SCHEMA: &str = "DROP TABLE IF EXISTS site CASCADE; \
    CREATE TABLE site (id bigint PRIMARY KEY); \
    INSERT INTO site VALUES (1), (2); \
    CREATE OR REPLACE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NEW; END $$;";

fn process(client: &mut Client) -> Result<i32> {
    value(client, "SELECT pg_backend_pid()")
}

/// Waits until a client, whose statement another thread runs, waits for another one.
fn blocked<T>(watcher: &mut Client, backend: i32, running: &Running<T>) -> Result<()> {
    until(
        watcher,
        &format!("SELECT pg_blocking_pids({backend}) <> '{{}}'"),
        running,
    )
}

/// Waits until the row of such a client is in flight.
fn published<T>(watcher: &mut Client, running: &Running<T>) -> Result<()> {
    until(
        watcher,
        "SELECT count(*) > 0 FROM neardup_rows_in_flight()",
        running,
    )
}

fn until<T>(watcher: &mut Client, condition: &str, running: &Running<T>) -> Result<()> {
    while !value::<bool>(watcher, condition)? {
        ensure!(!running.is_finished(), "it was done before {condition}");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[test]
fn a_row_that_waits_holds_up_no_unrelated_row() -> Outcome {
    let database = Database::create()?;
    let [mut holder, mut waiting, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    for client in [&mut holder, &mut waiting] {
        client.batch_execute("SET deadlock_timeout = '10ms'")?;
    }
    let backend = process(&mut waiting)?;
    for case in CASES {
        // The rows that wait are of site 2.
        for place in PLACES.iter().filter(|_| !case.scoped) {
            let context = format!("{case:?}, {}", place.name);
            holder.batch_execute(&case.schema())?;
            holder.batch_execute(SCHEMA)?;
            holder.batch_execute(place.make)?;
            let waits = case
                .insert(2, &case.value(1, 0))
                .replace("(id,", "(site, id,");
            let waits = waits.replace("VALUES (", "VALUES (2, ");
            let far = case.insert(5, &case.value(1, case.far_off()));
            holder.batch_execute("BEGIN")?;
            holder.batch_execute(place.hold)?;
            std::thread::scope(|scope| -> Outcome {
                let waiter = scope.spawn(|| waiting.batch_execute(&waits));
                blocked(&mut watcher, backend, &waiter)?;
                // If it waited for the other one, that would be a deadlock.
                let result = holder.batch_execute(&far);
                assert!(result.is_ok(), "{context}: {result:?}");
                holder.batch_execute("COMMIT")?;
                let result = waiter.join().map_err(|_| anyhow!("a client panicked"))?;
                match place.name {
                    "a unique key" => assert_eq!(code(&result), Some(SqlState::UNIQUE_VIOLATION)),
                    "a foreign key" => {
                        assert_eq!(code(&result), Some(SqlState::FOREIGN_KEY_VIOLATION));
                    }
                    _ => assert!(result.is_ok(), "{context}: {result:?}"),
                }
                Ok(())
            })?;
            nothing_in_flight(&mut watcher)?;
        }
    }
    Ok(())
}

#[test]
fn triggers_with_different_distances_see_each_others_rows() -> Outcome {
    let database = Database::create()?;
    let [mut inserting, mut updating, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    watcher.batch_execute(&BY_EVENT.schema())?;
    watcher.batch_execute(SCHEMA)?;
    watcher.batch_execute(PLACES[0].make)?;
    watcher.batch_execute(&BY_EVENT.insert(1, &BY_EVENT.value(2, 0)))?;
    let backend = process(&mut updating)?;
    watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
    let insert = format!(
        "INSERT INTO t (id, site, v) VALUES (2, 2, '{}')",
        BY_EVENT.value(1, 0)
    );
    let update = format!("UPDATE t SET v = '{}' WHERE id = 1", BY_EVENT.value(1, 3));
    std::thread::scope(|scope| -> Outcome {
        let insert = scope.spawn(|| inserting.batch_execute(&insert));
        published(&mut watcher, &insert)?;
        let update = scope.spawn(|| updating.batch_execute(&update));
        blocked(&mut watcher, backend, &update)?;
        watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
        for client in [insert, update] {
            client.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(())
    })?;
    let pairs = "SELECT count(*) FROM t a, t b WHERE a.id < b.id AND a.v <#> b.v <= 8";
    assert_eq!(value::<i64>(&mut watcher, pairs)?, 0);
    nothing_in_flight(&mut watcher)
}

#[test]
fn a_backend_that_is_terminated_leaves_nothing_in_flight() -> Outcome {
    let database = Database::create()?;
    let mut watcher = session(&database)?;
    for case in CASES.iter().filter(|case| !case.scoped) {
        let [mut first, mut second] = [session(&database)?, session(&database)?];
        watcher.batch_execute(&case.schema())?;
        watcher.batch_execute(SCHEMA)?;
        watcher.batch_execute(PLACES[0].make)?;
        let (victim, waiting) = (process(&mut first)?, process(&mut second)?);
        let column = case.target();
        let insert = format!(
            "INSERT INTO t (id, site, {column}) VALUES (2, 2, '{}')",
            case.value(1, 0)
        );
        // In one partition, if there are several.
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

/// An index whose expression waits for whoever holds 42, for rows of site 2.
const HALFWAY: &str = "CREATE OR REPLACE FUNCTION halfway(site bigint) RETURNS bigint \
        LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN \
            IF site = 2 THEN \
                PERFORM pg_advisory_lock_shared(42); PERFORM pg_advisory_unlock_shared(42); \
            END IF; \
            RETURN site; \
        END $$; \
    CREATE INDEX t_halfway ON t (halfway(site));";

/// Others may look through another index than the first that the row is written to.
#[test]
fn a_row_stays_in_flight_until_it_stands_in_every_index() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut second, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    let waiting = process(&mut second)?;
    for case in CASES
        .iter()
        .filter(|case| !case.scoped && !case.partitioned)
    {
        watcher.batch_execute(&case.schema())?;
        // A partial index is none to look through.
        watcher.batch_execute("DROP INDEX t_v")?;
        let index = |name: &str| format!("CREATE INDEX {name} ON t USING neardup {}", case.index());
        watcher.batch_execute(&format!("{} WHERE site = 2", index("t_part")))?;
        watcher.batch_execute(HALFWAY)?;
        watcher.batch_execute(&index("t_whole"))?;
        watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
        let insert = format!(
            "INSERT INTO t (id, site, {}) VALUES (2, 2, '{}')",
            case.target(),
            case.value(1, 0)
        );
        let near = case.insert(3, &case.value(1, case.near_by()));
        std::thread::scope(|scope| -> Outcome {
            let insert = scope.spawn(|| first.batch_execute(&insert));
            published(&mut watcher, &insert)?;
            let near = scope.spawn(|| second.batch_execute(&near));
            blocked(&mut watcher, waiting, &near)?;
            watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
            for client in [insert, near] {
                client.join().map_err(|_| anyhow!("a client panicked"))??;
            }
            Ok(())
        })?;
        assert_eq!(
            value::<i64>(&mut watcher, "SELECT count(*) FROM t")?,
            1,
            "{case:?}"
        );
        nothing_in_flight(&mut watcher)?;
    }
    Ok(())
}

/// The server takes a row of ON CONFLICT back when another one gets the same key while the row is
/// being written, and writes it again when that one is gone, without firing the trigger again.
#[test]
fn a_row_that_is_taken_back_and_written_again_stays_in_flight() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut second, mut other, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    let (writing, waiting) = (process(&mut first)?, process(&mut second)?);
    let rival = process(&mut other)?;
    watcher.batch_execute(&BITS.schema())?;
    watcher.batch_execute(HALFWAY)?;
    watcher.batch_execute("CREATE UNIQUE INDEX t_body ON t (body)")?;
    watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
    let row = |id, site, body, value| {
        format!("INSERT INTO t VALUES ({id}, {site}, '{body}', '{value}') ON CONFLICT DO NOTHING")
    };
    let insert = row(2, 2, "key", BITS.value(1, 0));
    let near = row(3, 1, "other key", BITS.value(1, 3));
    std::thread::scope(|scope| -> Outcome {
        let insert = scope.spawn(|| first.batch_execute(&insert));
        blocked(&mut watcher, writing, &insert)?;
        other.batch_execute("BEGIN")?;
        other.batch_execute(&row(4, 1, "key", BITS.value(50, 0)))?;
        watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
        let taken_back = format!("SELECT {rival} = ANY (pg_blocking_pids({writing}))");
        until(&mut watcher, &taken_back, &insert)?;
        let near = scope.spawn(|| second.batch_execute(&near));
        blocked(&mut watcher, waiting, &near)?;
        other.batch_execute("ROLLBACK")?;
        for client in [insert, near] {
            client.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(())
    })?;
    assert_eq!(
        value::<i64>(&mut watcher, "SELECT sum(id)::bigint FROM t")?,
        2
    );
    nothing_in_flight(&mut watcher)
}

/// Statements after which the transaction goes on, though a row that was looked at is not there.
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

#[test]
fn rows_in_flight_are_shown_to_those_who_watch_the_server() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut watcher] = [session(&database)?, session(&database)?];
    watcher.batch_execute(&BITS.schema())?;
    watcher.batch_execute(SCHEMA)?;
    watcher.batch_execute(PLACES[0].make)?;
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
        ("max_locks_per_transaction", "1000"),
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
         ALTER TABLE t DISABLE TRIGGER dedup;",
    )?;
    // Each takes a slot for each row.
    for number in 0..4 {
        client.batch_execute(&format!(
            "CREATE TRIGGER apart_{number} BEFORE INSERT ON t \
                 FOR EACH ROW EXECUTE FUNCTION neardup_dedup('v', 'distance=0')"
        ))?;
    }
    let result = client.batch_execute("INSERT INTO t VALUES (120, 1, '', 0::bigint::fingerprint)");
    assert_eq!(code(&result), Some(SqlState::OUT_OF_MEMORY), "{result:?}");
    nothing_in_flight(&mut client)?;
    client.batch_execute("INSERT INTO t VALUES (20, 1, '', 0::bigint::fingerprint)")?;
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM t")?, 20);
    nothing_in_flight(&mut client)
}
