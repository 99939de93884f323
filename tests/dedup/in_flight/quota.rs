//! The limit on the rows that one session has in flight, which protects all other sessions.
use super::cases::{BITS, CASES};
use super::nothing_in_flight;
use super::sessions::{process, session};
use crate::support::clients::code;
use crate::support::table::value;
use crate::support::waiting::{poll, reconnect, wait_while_running};
use crate::support::{Outcome, with};
use anyhow::{Context, Result, anyhow, ensure};
use neardup_pgserver::Server;
use neardup_tests::{Database, own_server};
use postgres::error::{DbError, SqlState};
use postgres::{Client, Error};

/// Slots of a session (`SLOTS_PER_BACKEND` in `crates/pg/src/registry/table.rs`). A fingerprint
/// takes one.
const QUOTA: usize = 128;
/// A signature of 128 hashes takes four.
const SIGNATURES: usize = QUOTA / 4;
/// Sessions that take as many slots as they can. Together they request more than the number of
/// slots that all sessions once shared.
const HOGS: usize = 5;
const SCOPED_TRIGGERS: usize = 66;

/// A trigger that inserts the row with the next lower number, and lets the last one wait for the
/// advisory lock 42. So all these rows are in flight at once.
const NEXT: &str = "\
    CREATE FUNCTION next() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF NEW.id > 1 THEN \
            EXECUTE format('INSERT INTO %I (id, owner, v) VALUES ($1, $2, $3)', TG_TABLE_NAME) \
                USING NEW.id - 1, NEW.owner, make(NEW.owner, NEW.id - 1, NEW.v); \
        ELSE PERFORM pg_advisory_xact_lock_shared(42); \
        END IF; \
        RETURN NEW; END $$; \
    CREATE FUNCTION make(owner bigint, id bigint, fingerprint) RETURNS fingerprint \
        LANGUAGE sql AS $$ SELECT (owner << 40 | id)::fingerprint $$; \
    CREATE FUNCTION make(owner bigint, id bigint, minhash_signature) RETURNS minhash_signature \
        LANGUAGE sql AS $$ SELECT minhash(string_agg(format('w%s_%s_%s', owner, id, i), ' '), \
            hashes => 128) FROM generate_series(1, 40) i $$;";

/// A table `name` with a row trigger that compares equal values, and `next`.
fn chain(name: &str, column: &str, limit: &str) -> String {
    format!(
        "CREATE TABLE {name} (id bigint, owner bigint, v {column}, PRIMARY KEY (owner, id)); \
         CREATE INDEX ON {name} USING neardup (v); \
         CREATE TRIGGER dedup BEFORE INSERT ON {name} \
             FOR EACH ROW EXECUTE FUNCTION neardup_dedup('v', '{limit}'); \
         CREATE TRIGGER next BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION next();"
    )
}

/// A table with triggers for many different scopes.
fn scoped() -> String {
    format!(
        "CREATE TABLE scoped (id bigint, owner bigint, v fingerprint, \
             s0 int DEFAULT 0, s1 int DEFAULT 0, s2 int DEFAULT 0, s3 int DEFAULT 0, \
             s4 int DEFAULT 0, s5 int DEFAULT 0, s6 int DEFAULT 0); \
         DO $$ DECLARE columns text; BEGIN \
             FOR number IN 1 .. {SCOPED_TRIGGERS} LOOP \
                 SELECT string_agg('s' || i, ',') INTO columns FROM generate_series(0, 6) i \
                 WHERE number >> i & 1 = 1; \
                 EXECUTE format('CREATE INDEX ON scoped USING neardup (%s, v)', columns); \
                 EXECUTE format('CREATE TRIGGER %I BEFORE INSERT ON scoped FOR EACH ROW \
                     EXECUTE FUNCTION neardup_dedup(''v'', ''radius=0'', %L)', \
                     'dedup_' || number, 'scope=' || columns); \
             END LOOP; END $$; \
         CREATE TRIGGER next BEFORE INSERT ON scoped FOR EACH ROW EXECUTE FUNCTION next();"
    )
}

/// Returns the statement that puts this many rows of a table into flight.
fn nest(table: &str, owner: usize, rows: usize) -> String {
    let column = match table {
        "signatures" => "minhash_signature",
        _ => "fingerprint",
    };
    format!(
        "INSERT INTO {table} (id, owner, v) \
         SELECT {rows}, {owner}, make({owner}, {rows}, NULL::{column})"
    )
}

fn with_server(name: &str, test: impl FnOnce(&mut Server) -> Outcome) -> Outcome {
    let settings = [
        ("max_connections", "10"),
        ("superuser_reserved_connections", "0"),
        ("autovacuum_max_workers", "1"),
        ("max_worker_processes", "0"),
        ("max_wal_senders", "0"),
        ("max_stack_depth", "6MB"),
        // CREATE EXTENSION locks each object that has a comment.
        ("max_locks_per_transaction", "256"),
        ("fsync", "off"),
    ];
    with(own_server(name, &settings)?, test)
}

/// A database with the tables of this module.
fn database(server: &Server) -> Result<(Database, Client)> {
    let database = Database::create_on(&server.conninfo("postgres"), "neardup")?;
    let mut client = database.connect()?;
    client.batch_execute(NEXT)?;
    client.batch_execute(&chain("bits", "fingerprint", "radius=0"))?;
    client.batch_execute(&chain("signatures", "minhash_signature", "similarity=0.9"))?;
    Ok((database, client))
}

/// Writes rows of each kind of column one by one, and as many at once as a session may have in
/// flight.
fn ordinary_work(client: &mut Client) -> Outcome {
    for case in CASES {
        client.batch_execute(&case.schema())?;
        for (id, family) in case.families(10).into_iter().enumerate() {
            client.batch_execute(&case.insert(id, &case.value(family, 0)))?;
        }
    }
    client.batch_execute(&nest("bits", 1, QUOTA))?;
    client.batch_execute(&nest("signatures", 1, SIGNATURES))?;
    Ok(())
}

#[test]
fn a_session_with_many_rows_in_flight_makes_no_other_session_fail() -> Outcome {
    with_server("in-flight-hogs", |server| {
        let (hogs, mut watcher) = database(server)?;
        let (ordinary, mut client) = database(server)?;
        watcher.batch_execute(&scoped())?;
        watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
        let statements: Vec<String> = (1..=HOGS)
            .map(|owner| match owner {
                1 => nest("scoped", owner, 4),
                2 => nest("signatures", owner, SIGNATURES),
                _ => nest("bits", owner, QUOTA),
            })
            .collect();
        std::thread::scope(|scope| -> Outcome {
            let mut running = Vec::new();
            for statement in &statements {
                let mut hog = session(&hogs)?;
                let backend = process(&mut hog)?;
                let hog = scope.spawn(move || hog.batch_execute(statement));
                // The first one may get an error: it asks for more than its share.
                let waits = format!("SELECT pg_blocking_pids({backend}) <> '{{}}'");
                poll(&waits, || {
                    Ok(hog.is_finished() || value(&mut watcher, &waits)?)
                })?;
                running.push(hog);
            }
            let result = ordinary_work(&mut client);
            // Ends the hogs before checking the result, so that a failure does not hang.
            watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
            for (number, hog) in running.into_iter().enumerate() {
                let result = hog.join().map_err(|_| anyhow!("a client panicked"))?;
                match number {
                    0 => assert_eq!(code(&result), Some(SqlState::PROGRAM_LIMIT_EXCEEDED)),
                    _ => result?,
                }
            }
            result
        })?;
        nothing_in_flight(&mut watcher)?;
        nothing_in_flight(&mut client)?;
        drop(ordinary);
        Ok(())
    })
}

fn refusal(result: &Result<(), Error>) -> Result<&DbError> {
    let error = result.as_ref().err().context("no error")?;
    let error = error.as_db_error().context("not the server's")?;
    ensure!(*error.code() == SqlState::PROGRAM_LIMIT_EXCEEDED, "{error}");
    Ok(error)
}

#[test]
fn the_error_of_a_session_names_what_its_slots_are_used_for() -> Outcome {
    with_server("in-flight-quota", |server| {
        let (_database, mut client) = database(server)?;
        client.batch_execute(&scoped())?;
        let cases = [
            (
                "bits",
                QUOTA + 1,
                format!("bits ({QUOTA} slots for {QUOTA} rows)"),
            ),
            (
                "signatures",
                SIGNATURES + 1,
                format!("signatures ({QUOTA} slots for {SIGNATURES} rows)"),
            ),
            ("scoped", 2, format!("scoped ({QUOTA} slots for 2 rows)")),
        ];
        for (table, rows, used) in &cases {
            let result = client.batch_execute(&nest(table, 1, *rows));
            let detail = refusal(&result)?.detail().unwrap_or_default();
            assert!(detail.contains(used), "{detail}");
            nothing_in_flight(&mut client)?;
        }
        // Rolling back a subtransaction frees its slots.
        let savepoints: String = (0..3)
            .map(|owner| {
                let statement = nest("bits", owner, QUOTA);
                format!("SAVEPOINT s; {statement}; ROLLBACK TO s; {statement}; ROLLBACK TO s;")
            })
            .collect();
        client.batch_execute(&format!("BEGIN; {savepoints} COMMIT"))?;
        client.batch_execute(&format!(
            "DO $$ BEGIN FOR i IN 1 .. 3 LOOP BEGIN {}; \
             EXCEPTION WHEN program_limit_exceeded THEN NULL; END; END LOOP; {}; END $$",
            nest("bits", 1, QUOTA + 1),
            nest("bits", 1, QUOTA),
        ))?;
        let rows: i64 = value(&mut client, "SELECT count(*) FROM bits")?;
        assert_eq!(rows as usize, QUOTA);
        nothing_in_flight(&mut client)
    })
}

/// After the crash of a backend the server starts with an empty registry.
#[test]
fn a_killed_backend_leaves_no_row_in_flight() -> Outcome {
    with_server("in-flight-killed", |server| {
        let (database, mut watcher) = database(server)?;
        watcher.batch_execute(&BITS.schema())?;
        watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
        let mut victim = database.connect()?;
        let backend = process(&mut victim)?;
        let statement = nest("bits", 1, QUOTA);
        std::thread::scope(|scope| -> Outcome {
            let victim = scope.spawn(|| victim.batch_execute(&statement));
            let waits = format!("SELECT pg_blocking_pids({backend}) <> '{{}}'");
            wait_while_running(&mut watcher, &waits, &victim)?;
            ensure!(server.kill_9_child(backend)?, "no such process");
            let result = victim.join().map_err(|_| anyhow!("a client panicked"))?;
            ensure!(result.is_err());
            Ok(())
        })?;
        let mut client = reconnect(database.conninfo())?;
        nothing_in_flight(&mut client)?;
        client.batch_execute(&nest("bits", 1, QUOTA))?;
        let rows: i64 = value(&mut client, "SELECT count(*) FROM bits")?;
        assert_eq!(rows as usize, QUOTA);
        nothing_in_flight(&mut client)
    })
}
