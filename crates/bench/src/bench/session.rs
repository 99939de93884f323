//! Connection that times its statements in the client.
use anyhow::{Context, Result, ensure};
use postgres::types::FromSqlOwned;
use postgres::{Client, NoTls};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Connection, with the CPU clock of its backend.
pub struct Session {
    pub client: Client,
    /// `/proc` file with the CPU time of the backend.
    clock: PathBuf,
}

/// Duration in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Elapsed time.
    pub wall: f64,
    /// CPU time, which excludes waits for disks and other programs. None where `/proc` lacks it.
    pub cpu: Option<f64>,
}

impl Time {
    /// Start value of a sum.
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

    /// Returns the sum of two times. Its CPU time is known if both CPU times are known.
    pub fn plus(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu.zip(other.cpu).map(|(a, b)| a + b),
        }
    }
}

/// Time after which a query is not repeated any more, once it has run [`FEWEST`] times.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);
/// Minimum and maximum number of repetitions.
const FEWEST: usize = 3;
const MOST: usize = 50;

impl Session {
    /// Connects to the server.
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

    /// Runs a statement and returns its time.
    pub fn timed(&mut self, statement: &str) -> Result<Time> {
        self.measure(|client| {
            client
                .batch_execute(statement)
                .with_context(|| statement.to_owned())
        })
    }

    /// Runs a query once, and returns its time and the one value of its result.
    pub fn timed_value<T: FromSqlOwned>(&mut self, query: &str) -> Result<(Time, T)> {
        let mut value = None;
        let time = self.measure(|client| {
            let row = client.query_one(query, &[]).context(query.to_owned())?;
            value = Some(row.try_get(0)?);
            Ok(())
        })?;
        Ok((time, value.context("no value")?))
    }

    /// Returns the one value of a query's result.
    pub fn value<T: FromSqlOwned>(&mut self, query: &str) -> Result<T> {
        let row = self
            .client
            .query_one(query, &[])
            .context(query.to_owned())?;
        Ok(row.try_get(0)?)
    }

    /// Returns the times of a query, without planning. The query is prepared and run once before
    /// the first measurement, which also fills the cache. The client waits for one row. Its round
    /// trip adds some 50 microseconds per query.
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

    /// Returns the query's plan. Fails if the plan does not contain `part`, because the benchmark
    /// would measure another plan.
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

    /// Returns the pairs of a query's result, sorted and without duplicates.
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

/// CPU time of a process or thread in seconds. Linux reports it in nanoseconds.
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

/// Times `work` in this thread, after one run that is not measured.
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

/// Returns the smallest measurement. Disturbances only ever add to a measurement.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
