//! Sessions that wait for each other, and points in the code where they do.
use crate::support::table::value;
use crate::support::waiting::wait_while_running;
use anyhow::Result;
use neardup_tests::Database;
use postgres::Client;
use std::thread::ScopedJoinHandle;

pub type Running<'a, T> = ScopedJoinHandle<'a, T>;

/// A connection whose statements time out, even when the test fails and does not release them.
pub fn session(database: &Database) -> Result<Client> {
    let mut client = database.connect()?;
    client.batch_execute("SET statement_timeout = '100s'")?;
    Ok(client)
}

/// Points at which the write of a row may wait for others: before it (another trigger), during it
/// (a unique key), and after it (a foreign key, another trigger).
pub const FIXTURES: [Fixture; 4] = [
    Fixture {
        name: "a BEFORE trigger",
        make: "CREATE TRIGGER halt BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.site = 2) \
               EXECUTE FUNCTION halt();",
        hold: "SELECT pg_advisory_xact_lock(42)",
    },
    Fixture {
        name: "a unique key",
        // The primary key, whose index receives the row before the index on its fingerprint.
        make: "",
        hold: "INSERT INTO t (id, site) VALUES (2, 2)",
    },
    Fixture {
        name: "a foreign key",
        make: "ALTER TABLE t ADD FOREIGN KEY (site) REFERENCES site;",
        hold: "UPDATE site SET id = 3 WHERE id = 2",
    },
    Fixture {
        name: "an AFTER trigger",
        make: "CREATE TRIGGER halt AFTER INSERT ON t FOR EACH ROW WHEN (NEW.site = 2) \
               EXECUTE FUNCTION halt();",
        hold: "SELECT pg_advisory_xact_lock(42)",
    },
];

pub struct Fixture {
    pub name: &'static str,
    pub make: &'static str,
    /// Statement that makes a row of site 2 wait at this point.
    pub hold: &'static str,
}

pub const SCHEMA: &str = "DROP TABLE IF EXISTS site CASCADE; \
    CREATE TABLE site (id bigint PRIMARY KEY); \
    INSERT INTO site VALUES (1), (2); \
    CREATE OR REPLACE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NEW; END $$;";

pub fn process(client: &mut Client) -> Result<i32> {
    value(client, "SELECT pg_backend_pid()")
}

/// Waits until a client, whose statement another thread runs, waits for another one.
pub fn blocked<T>(watcher: &mut Client, backend: i32, running: &Running<T>) -> Result<()> {
    let waits = format!("SELECT pg_blocking_pids({backend}) <> '{{}}'");
    wait_while_running(watcher, &waits, running)
}

/// Waits until the row of such a client is in flight.
pub fn published<T>(watcher: &mut Client, running: &Running<T>) -> Result<()> {
    let published = "SELECT count(*) > 0 FROM neardup_expert_rows_in_flight()";
    wait_while_running(watcher, published, running)
}
