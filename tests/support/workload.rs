//! Workload: clients that insert, change, search, vacuum and build at once.
use super::data::Random;
use super::fixtures::{self, Fixture};
use super::waiting::poll;
use anyhow::{Context, Result, bail};
use neardup_tests::connect;
use postgres::error::SqlState;
use postgres::{Client, Error};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Work that a client repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Inserts 1 to 100 rows in each of two subtransactions; some of these and some of the
    /// transactions are rolled back.
    Insert,
    /// Inserts one row without BEGIN.
    Single,
    /// Inserts thousands of rows in a statement, which constantly splits leaves.
    Fill,
    /// Deletes or updates some rows.
    Change,
    /// Fills the table, deletes most of it and vacuums. Pages are merged and reused. Without other
    /// clients, VACUUM truncates the index.
    Drain,
    /// Vacuums, and now and then writes a checkpoint.
    Vacuum,
    /// Builds a second index and drops it.
    Build,
    /// Builds a second index and drops it, sometimes concurrently, and rebuilds the indexes.
    Rebuild,
    /// Asserts that the index returns the same rows as the sequential scan, in one snapshot.
    Search,
}

/// Work of a client, and its table.
#[derive(Clone, Copy, Debug)]
pub struct Job(pub Work, pub &'static Fixture);

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.0, self.1.table)
    }
}

impl Job {
    /// Returns a name for the next statements of a client, and the statements.
    fn next(self, random: &mut Random) -> (&'static str, String) {
        let Job(work, fixture) = self;
        let table = fixture.table;
        match work {
            Work::Insert => {
                let inserts = [0; 2].map(|_| fixture.insert(random.pick(&[1, 1, 10, 100])));
                ("insert", transaction(&inserts, random))
            }
            Work::Single => ("insert of a row", fixture.insert(1)),
            Work::Fill => {
                let inserts = [fixture.insert(1_500), fixture.insert(1_500)];
                ("insert with splits", transaction(&inserts, random))
            }
            Work::Change => {
                let changes = [change(fixture, random), change(fixture, random)];
                ("update or delete", transaction(&changes, random))
            }
            Work::Drain => match random.below(8) {
                0 => ("insert with splits", fixture.insert(1_000)),
                1 | 2 => {
                    let delete =
                        format!("DELETE FROM {table} WHERE id % 20 <> {}", random.below(20));
                    ("delete of most", transaction(&[delete], random))
                }
                _ => (
                    "vacuum after such",
                    format!("VACUUM (INDEX_CLEANUP ON) {table}"),
                ),
            },
            Work::Vacuum if random.below(20) == 0 => ("checkpoint", "CHECKPOINT".to_owned()),
            Work::Vacuum => ("vacuum", format!("VACUUM (INDEX_CLEANUP ON) {table}")),
            Work::Build if random.below(2) == 0 => drop_other(table, ""),
            Work::Build => create_other(fixture, ""),
            Work::Rebuild => rebuild(fixture, random),
            // Search runs many statements of its own.
            Work::Search => ("search", String::new()),
        }
    }
}

/// Returns a transaction with a savepoint before each statement. Some statements and some
/// transactions are rolled back.
fn transaction(statements: &[String], random: &mut Random) -> String {
    let mut text = "BEGIN; ".to_owned();
    for statement in statements {
        let end = random.pick(&["RELEASE", "RELEASE", "RELEASE", "ROLLBACK TO"]);
        text += &format!("SAVEPOINT before; {statement}; {end} before; ");
    }
    text + random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"])
}

fn change(fixture: &Fixture, random: &mut Random) -> String {
    let table = fixture.table;
    match random.below(4) {
        0 => format!("DELETE FROM {table} WHERE id % 40 = {}", random.below(40)),
        1 => format!(
            "UPDATE {table} SET id = id WHERE id % 50 = {}",
            random.below(50)
        ),
        2 => format!("DELETE FROM {table} WHERE id < (SELECT max(id) - 20000 FROM {table})"),
        _ => format!(
            "UPDATE {table} SET fp = {} WHERE id % 60 = {}",
            fixture.of(&format!("id + {}", random.below(2_000))),
            random.below(60)
        ),
    }
}

fn create_other(fixture: &Fixture, concurrently: &str) -> (&'static str, String) {
    let Fixture {
        table,
        columns,
        other_options,
        ..
    } = fixture;
    let label = match concurrently {
        "" => "create index",
        _ => "create index concurrently",
    };
    (
        label,
        format!(
            "CREATE INDEX {concurrently} IF NOT EXISTS {table}_other ON {table} \
             USING neardup {columns} WITH ({other_options})"
        ),
    )
}

fn drop_other(table: &str, concurrently: &str) -> (&'static str, String) {
    (
        "drop index",
        format!("DROP INDEX {concurrently} IF EXISTS {table}_other"),
    )
}

fn rebuild(fixture: &Fixture, random: &mut Random) -> (&'static str, String) {
    const CONCURRENTLY: &str = "CONCURRENTLY";
    let table = fixture.table;
    match random.below(8) {
        0 => drop_other(table, ""),
        1 => drop_other(table, CONCURRENTLY),
        2 => create_other(fixture, ""),
        3 | 4 => create_other(fixture, CONCURRENTLY),
        // The server cannot build the index of a constraint concurrently.
        5 | 6 if !fixture.keeps_apart => (
            "reindex concurrently",
            format!("REINDEX INDEX CONCURRENTLY {table}_fp"),
        ),
        _ => ("reindex", format!("REINDEX TABLE {table}")),
    }
}

/// State of a client at work, which other threads can read.
pub struct Busy {
    pub job: Job,
    /// Process ID of the client's backend.
    pub backend: i32,
    doing: Mutex<&'static str>,
    /// Number of statements that have ended.
    done: AtomicU32,
    /// True once the client has stopped.
    ended: AtomicBool,
}

impl Busy {
    /// Returns the name of the current statement, or "nothing" before the first statement.
    pub fn doing(&self) -> &'static str {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, doing: &'static str) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing;
    }
}

/// Runs one client per job until `pause` returns. All clients connect first, and each finishes at
/// least one statement.
///
/// # Errors
/// The first error of a client. With `may_end`, clients may lose their connection.
pub fn run<T>(
    conninfo: &str,
    jobs: &[Job],
    seed: u64,
    may_end: bool,
    pause: impl FnOnce(&[Busy]) -> Result<T>,
) -> Result<T> {
    let mut clients = Vec::new();
    let mut busy_clients = Vec::new();
    for &job in jobs {
        let mut client = connect(conninfo)?;
        client.batch_execute("SET deadlock_timeout = '50ms'; SET maintenance_work_mem = '1MB'")?;
        busy_clients.push(Busy {
            job,
            backend: client.query_one("SELECT pg_backend_pid()", &[])?.get(0),
            doing: Mutex::new("nothing"),
            done: AtomicU32::new(0),
            ended: AtomicBool::new(false),
        });
        clients.push(client);
    }
    let (busy_clients, done) = (&busy_clients[..], &AtomicBool::new(false));
    let strict = !jobs.iter().any(|job| job.0 == Work::Rebuild);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (seed * 1_000..)
            .zip(clients)
            .zip(busy_clients)
            .map(|((seed, client), busy)| {
                scope.spawn(move || {
                    let result = work_until(done, client, busy, seed, (strict, may_end));
                    busy.ended.store(true, Ordering::Relaxed);
                    result
                })
            })
            .collect();
        let paused = pause(busy_clients);
        done.store(true, Ordering::Relaxed);
        for (client, busy) in clients.into_iter().zip(busy_clients) {
            let Ok(result) = client.join() else {
                bail!("a client panicked");
            };
            result.with_context(|| format!("{}: {}", busy.job, busy.doing()))?;
        }
        paused
    })
}

/// Returns whether each client has finished this many statements. Also returns true if a client has
/// failed, because [`run`] then returns the error.
pub fn each_has_done(clients: &[Busy], statements: u32) -> bool {
    let has_ended = |client: &Busy| client.ended.load(Ordering::Relaxed);
    let has_done = |client: &Busy| client.done.load(Ordering::Relaxed) >= statements;
    clients.iter().any(has_ended) || clients.iter().all(has_done)
}

/// Waits until [`each_has_done`] returns true.
///
/// # Errors
/// When a statement hangs.
pub fn until_each_has_done(clients: &[Busy], statements: u32) -> Result<()> {
    poll("each client has done its statements", || {
        Ok(each_has_done(clients, statements))
    })
}

/// Runs one client: at least one statement, and more until `done`.
fn work_until(
    done: &AtomicBool,
    mut client: Client,
    busy: &Busy,
    seed: u64,
    (strict, may_end): (bool, bool),
) -> Result<()> {
    let mut random = Random::new(seed);
    loop {
        let (doing, statement) = busy.job.next(&mut random);
        busy.set(doing);
        let mut result = match busy.job.0 {
            Work::Search => fixtures::search(&mut client, busy.job.1, random.bits(), strict),
            _ => client.batch_execute(&statement).map_err(Into::into),
        };
        if (result.as_ref()).is_err_and(|error| is_allowed(busy.job, error)) {
            result = client.batch_execute("ROLLBACK").map_err(Into::into);
        }
        match result {
            Err(error) if may_end && is_cut_off(&error) => return Ok(()),
            result => result.with_context(|| statement)?,
        }
        busy.done.fetch_add(1, Ordering::Relaxed);
        if done.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

/// Returns the error of the database client among the causes of an error, if there is one.
fn server_error(error: &anyhow::Error) -> Option<&Error> {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>())
}

/// Returns whether the server closed the connection, as when it is killed.
fn is_cut_off(error: &anyhow::Error) -> bool {
    const ENDS: [SqlState; 3] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
    ];
    server_error(error).is_some_and(|error| {
        error.is_closed() || error.code().is_none_or(|code| ENDS.contains(code))
    })
}

/// Returns whether a client may get this error. Writers of several rows may deadlock; inserts of
/// single rows may not, since each waits for one original at most.
fn is_allowed(Job(work, fixture): Job, error: &anyhow::Error) -> bool {
    let code = server_error(error).and_then(Error::code);
    code.is_some_and(|code| match *code {
        SqlState::T_R_DEADLOCK_DETECTED => work != Work::Single,
        SqlState::EXCLUSION_VIOLATION => fixture.keeps_apart,
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::SNAPSHOT_TOO_OLD => true,
        _ => false,
    })
}
