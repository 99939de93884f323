//! A connection whose statements are timed from the outside.
use anyhow::{Context, Result, ensure};
use postgres::types::FromSqlOwned;
use postgres::{Client, NoTls};
use std::time::{Duration, Instant};

/// A connection with the settings of the benchmark.
pub struct Session {
    /// The connection.
    pub client: Client,
}

/// How often a query is repeated: until this much time has passed ...
const LONG_ENOUGH: Duration = Duration::from_millis(1500);
/// ... and this often at least, and at most.
const FEWEST: usize = 3;
const MOST: usize = 50;

impl Session {
    /// Connects.
    pub fn open(conninfo: &str) -> Result<Self> {
        let client = Client::connect(conninfo, NoTls).context("cannot connect to the server")?;
        Ok(Self { client })
    }

    /// Runs statements without results.
    pub fn run(&mut self, statements: &str) -> Result<()> {
        self.client
            .batch_execute(statements)
            .with_context(|| statements.to_owned())
    }

    /// Runs a statement and says how long that took.
    pub fn timed(&mut self, statement: &str) -> Result<Duration> {
        let start = Instant::now();
        self.run(statement)?;
        Ok(start.elapsed())
    }

    /// The one value that a query returns.
    pub fn value<T: FromSqlOwned>(&mut self, query: &str) -> Result<T> {
        let row = self
            .client
            .query_one(query, &[])
            .context(query.to_owned())?;
        Ok(row.try_get(0)?)
    }

    /// A query's times, in seconds, without planning: it is prepared and has been run once before
    /// the first measurement, which also brings what it reads into the cache. The client waits for
    /// one row; what it adds is the way there and back, some 50 microseconds for a query.
    pub fn times(&mut self, query: &str) -> Result<Vec<f64>> {
        let statement = self.client.prepare(query).context(query.to_owned())?;
        self.client.query_one(&statement, &[])?;
        let (mut times, begin) = (Vec::new(), Instant::now());
        while times.len() < FEWEST || (begin.elapsed() < LONG_ENOUGH && times.len() < MOST) {
            let start = Instant::now();
            self.client.query_one(&statement, &[])?;
            times.push(start.elapsed().as_secs_f64());
        }
        Ok(times)
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

/// The smallest of some measurements: what disturbs a measurement only ever adds to it.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
