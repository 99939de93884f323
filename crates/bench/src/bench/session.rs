//! Database connection of the benchmarks. It measures the elapsed time of statements in the client,
//! and the processor time of their server process.
use anyhow::{Context, Result, ensure};
use postgres::types::FromSqlOwned;
use postgres::{Client, NoTls};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Database connection whose statements can be timed.
pub struct Session {
    /// The connection itself.
    pub client: Client,
    /// Path of the `/proc` file with the processor time of the connection's server process.
    clock: PathBuf,
}

/// Time that a statement or a piece of work took, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Elapsed time in seconds.
    pub wall: f64,
    /// Processor time in seconds, which excludes waits for disks and other programs. `None` where
    /// `/proc` lacks it.
    pub cpu: Option<f64>,
}

impl Time {
    /// Zero seconds: start value of a sum of times.
    pub const ZERO: Self = Self {
        wall: 0.0,
        cpu: Some(0.0),
    };

    /// Divides the elapsed time and the processor time by a number.
    pub fn divided(self, by: f64) -> Self {
        Self {
            wall: self.wall / by,
            cpu: self.cpu.map(|cpu| cpu / by),
        }
    }

    /// Returns the sum of two times. The processor time of the sum is known if both processor times
    /// are known.
    pub fn plus(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu.zip(other.cpu).map(|(a, b)| a + b),
        }
    }
}

/// Total time after which a measurement is not repeated any more, if it was repeated [`FEWEST`]
/// times.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);
/// Minimum number of repetitions of a measurement.
const FEWEST: usize = 3;
/// Maximum number of repetitions of a measurement, even if they take less than [`LONG_ENOUGH`].
const MOST: usize = 50;

impl Session {
    /// Connects to the server and finds the `/proc` file of its process.
    pub fn open(conninfo: &str) -> Result<Self> {
        let mut client =
            Client::connect(conninfo, NoTls).context("cannot connect to the server")?;
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let clock = PathBuf::from(format!("/proc/{pid}/schedstat"));
        Ok(Self { client, clock })
    }

    fn measure(&mut self, run: impl FnOnce(&mut Client) -> Result<()>) -> Result<Time> {
        measure(&self.clock, || run(&mut self.client))
    }

    /// Runs statements whose results are ignored.
    pub fn run(&mut self, statements: &str) -> Result<()> {
        self.client
            .batch_execute(statements)
            .with_context(|| statements.to_owned())
    }

    /// Runs a statement and returns its time.
    pub fn timed(&mut self, statement: &str) -> Result<Time> {
        self.measure(|client| {
            client
                .batch_execute(statement)
                .with_context(|| statement.to_owned())
        })
    }

    /// Runs a query once. Returns its time and the single value of its result.
    pub fn timed_value<T: FromSqlOwned>(&mut self, query: &str) -> Result<(Time, T)> {
        let mut value = None;
        let time = self.measure(|client| {
            let row = client.query_one(query, &[]).context(query.to_owned())?;
            value = Some(row.try_get(0)?);
            Ok(())
        })?;
        Ok((time, value.context("no value")?))
    }

    /// Runs a query and returns the single value of its result.
    pub fn value<T: FromSqlOwned>(&mut self, query: &str) -> Result<T> {
        let row = self
            .client
            .query_one(query, &[])
            .context(query.to_owned())?;
        Ok(row.try_get(0)?)
    }

    /// Returns the times of repeated runs of a query that returns one row. The query is prepared
    /// first, so the times exclude planning, and runs once without being measured, which fills the
    /// cache. The round trip to the server adds some 50 microseconds per run.
    pub fn times(&mut self, query: &str) -> Result<Vec<Time>> {
        let statement = self.client.prepare(query).context(query.to_owned())?;
        self.client.query_one(&statement, &[])?;
        repeated(|| {
            self.measure(|client| {
                client.query_one(&statement, &[])?;
                Ok(())
            })
        })
    }

    /// Returns the plan of a query. Fails if the plan does not contain `part`, because the
    /// benchmark would measure another plan than intended.
    pub fn plan(&mut self, query: &str, part: &str) -> Result<String> {
        let rows = self
            .client
            .query(&format!("EXPLAIN (COSTS OFF) {query}"), &[])?;
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = lines.join("\n");
        ensure!(
            plan.contains(part),
            "the planner did not choose \"{part}\" for\n{query}\nbut\n{plan}"
        );
        Ok(plan)
    }

    /// Runs a query with two integer columns. Returns the rows as pairs, sorted and without
    /// duplicates.
    pub fn pairs(&mut self, query: &str) -> Result<Vec<(i64, i64)>> {
        let rows = self.client.query(query, &[]).context(query.to_owned())?;
        let mut pairs: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Ok(pairs)
    }

    /// Returns the current insert position of the write-ahead log, in bytes.
    pub fn wal(&mut self) -> Result<i64> {
        self.value("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    }
}

/// Returns the processor time of a process or thread in seconds. `clock` is the path of its file
/// `schedstat` in `/proc`, in which Linux reports nanoseconds. Returns `None` if the file cannot be
/// read.
fn on_processor(clock: &Path) -> Option<f64> {
    let text = fs::read_to_string(clock).ok()?;
    let nanoseconds: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// Times `run`. `clock` is the `/proc` file of the process or thread whose processor time counts.
fn measure(clock: &Path, run: impl FnOnce() -> Result<()>) -> Result<Time> {
    let (cpu, start) = (on_processor(clock), Instant::now());
    run()?;
    let wall = start.elapsed().as_secs_f64();
    let cpu = on_processor(clock)
        .zip(cpu)
        .map(|(after, before)| after - before);
    Ok(Time { wall, cpu })
}

/// Times repeated runs of `work` in this thread. The first run is not measured.
pub fn times_here(mut work: impl FnMut()) -> Result<Vec<Time>> {
    work();
    repeated(|| {
        measure(Path::new("/proc/thread-self/schedstat"), || {
            work();
            Ok(())
        })
    })
}

/// Calls `one`, which makes one measurement, repeatedly. Returns the results of all calls. Makes at
/// least [`FEWEST`] and at most [`MOST`] calls. Between these numbers, stops when [`LONG_ENOUGH`]
/// has passed.
fn repeated(mut one: impl FnMut() -> Result<Time>) -> Result<Vec<Time>> {
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < FEWEST || (begin.elapsed() < LONG_ENOUGH && times.len() < MOST) {
        times.push(one()?);
    }
    Ok(times)
}

/// Returns the smallest of several measurements. It is the best estimate, because disturbances only
/// make a measurement larger.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
