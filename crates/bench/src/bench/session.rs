//! A connection whose statements are timed from the outside.
use anyhow::{Context, Result, ensure};
use postgres::types::FromSqlOwned;
use postgres::{Client, NoTls};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A connection and the process that serves it.
pub struct Session {
    /// The connection.
    pub client: Client,
    /// Where the system tells how long the server's process has been on a processor.
    clock: PathBuf,
}

/// Duration in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// By the clock.
    pub wall: f64,
    /// On a processor, where the system tells: without waiting for disks or other programs.
    pub cpu: Option<f64>,
}

impl Time {
    /// Neutral element of sums.
    pub const ZERO: Self = Self {
        wall: 0.0,
        cpu: Some(0.0),
    };

    /// Divides both durations by a number.
    pub fn divided(self, by: f64) -> Self {
        Self {
            wall: self.wall / by,
            cpu: self.cpu.map(|cpu| cpu / by),
        }
    }

    /// The sum of two times; the time on a processor is known if both are.
    pub fn plus(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu.zip(other.cpu).map(|(a, b)| a + b),
        }
    }
}

/// Time after which a query is not repeated any more ...
const LONG_ENOUGH: Duration = Duration::from_millis(1500);
/// ... and this often at least, and at most.
const FEWEST: usize = 3;
const MOST: usize = 50;

impl Session {
    /// Connects.
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

    /// Runs statements without results.
    pub fn run(&mut self, statements: &str) -> Result<()> {
        self.client
            .batch_execute(statements)
            .with_context(|| statements.to_owned())
    }

    /// Runs a statement and says how long that took.
    pub fn timed(&mut self, statement: &str) -> Result<Time> {
        self.measure(|client| {
            client
                .batch_execute(statement)
                .with_context(|| statement.to_owned())
        })
    }

    /// Runs a query of one value, once, and says how long that took.
    pub fn timed_value<T: FromSqlOwned>(&mut self, query: &str) -> Result<(Time, T)> {
        let mut value = None;
        let time = self.measure(|client| {
            let row = client.query_one(query, &[]).context(query.to_owned())?;
            value = Some(row.try_get(0)?);
            Ok(())
        })?;
        Ok((time, value.context("no value")?))
    }

    /// The one value that a query returns.
    pub fn value<T: FromSqlOwned>(&mut self, query: &str) -> Result<T> {
        let row = self
            .client
            .query_one(query, &[])
            .context(query.to_owned())?;
        Ok(row.try_get(0)?)
    }

    /// A query's times without planning: it is prepared and has been run once before the first
    /// measurement, which also brings what it reads into the cache. The client waits for one row;
    /// what it adds is the way there and back, some 50 microseconds for a query.
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

    /// The query's plan. It must contain `part`, or the benchmark would measure something else.
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

    /// The pairs that a query returns, in ascending order and without repetitions.
    pub fn pairs(&mut self, query: &str) -> Result<Vec<(i64, i64)>> {
        let rows = self.client.query(query, &[]).context(query.to_owned())?;
        let mut pairs: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Ok(pairs)
    }

    /// Bytes of write-ahead log so far.
    pub fn wal(&mut self) -> Result<i64> {
        self.value("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    }
}

/// Seconds that a process or thread has spent on a processor (Linux tells nanoseconds).
fn on_processor(clock: &Path) -> Option<f64> {
    let text = fs::read_to_string(clock).ok()?;
    let nanoseconds: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn measure(clock: &Path, run: impl FnOnce() -> Result<()>) -> Result<Time> {
    let (cpu, start) = (on_processor(clock), Instant::now());
    run()?;
    let wall = start.elapsed().as_secs_f64();
    let cpu = on_processor(clock)
        .zip(cpu)
        .map(|(after, before)| after - before);
    Ok(Time { wall, cpu })
}

/// Times of work in this thread, after it has been done once.
pub fn times_here(mut work: impl FnMut()) -> Result<Vec<Time>> {
    work();
    repeated(|| {
        measure(Path::new("/proc/thread-self/schedstat"), || {
            work();
            Ok(())
        })
    })
}

fn repeated(mut one: impl FnMut() -> Result<Time>) -> Result<Vec<Time>> {
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < FEWEST || (begin.elapsed() < LONG_ENOUGH && times.len() < MOST) {
        times.push(one()?);
    }
    Ok(times)
}

/// The smallest of some measurements: what disturbs a measurement only ever adds to it.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
