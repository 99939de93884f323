//! `cargo xtask bench --ageing`: simulates months of inserts, updates and deletes, and compares the
//! index in use with a new index on the same rows. docs/performance.md shows the plots.
mod plot;

use super::report::{aligned, number};
use super::session::{Session, Time, least};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use xtask::ui;

/// Number of searches in one measurement.
const PROBE_COUNT: u64 = 1000;
/// Number of alternating measurements of the index in use and of the new index. The least times
/// count.
const ROUNDS: u32 = 3;
/// Number of measured runs of all searches in each round.
const REPETITIONS: u32 = 4;
/// Number of words of a generated text, from which a signature is made.
const WORDS: u32 = 40;

/// Kind of the simulated index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Fingerprints of 64 bits with the default radius of 6 bits.
    Radius6,
    /// Fingerprints of 64 bits with radius 3.
    Radius3,
    /// Hashes in a bigint column.
    Bigint,
    /// Signatures of 128 hashes.
    Signatures,
}

impl Kind {
    fn label(self) -> &'static str {
        match self {
            Kind::Radius6 => "radius 6",
            Kind::Radius3 => "radius 3",
            Kind::Bigint => "bigint",
            Kind::Signatures => "signatures",
        }
    }

    fn column_type(self) -> &'static str {
        match self {
            Kind::Radius6 | Kind::Radius3 => "fingerprint",
            Kind::Bigint => "bigint",
            Kind::Signatures => "minhash_signature",
        }
    }

    /// Returns the operator class and the options of the index.
    fn index_options(self, fill: u32) -> String {
        match self {
            Kind::Radius6 => format!("(v) WITH (radius = 6, fillfactor = {fill})"),
            Kind::Radius3 => format!("(v) WITH (radius = 3, fillfactor = {fill})"),
            Kind::Bigint => format!("(v bigint_hamming_ops) WITH (fillfactor = {fill})"),
            Kind::Signatures => format!("(v) WITH (fillfactor = {fill})"),
        }
    }

    /// Returns an SQL expression for a pseudorandom value. `number` is an SQL expression for a
    /// number. The same number always gives the same value.
    fn value(self, number: &str) -> String {
        match self {
            Kind::Radius6 | Kind::Radius3 => format!("hashint8extended({number}, 1)::fingerprint"),
            Kind::Bigint => format!("hashint8extended({number}, 1)"),
            Kind::Signatures => format!(
                "minhash((SELECT string_agg(md5(({number})::text || ' ' || w), ' ') \
                 FROM generate_series(1, {WORDS}) w))"
            ),
        }
    }

    /// Returns an SQL expression for a near-duplicate of the value `v` of the row `id`.
    fn near(self) -> &'static str {
        match self {
            Kind::Radius6 | Kind::Radius3 => {
                "(v::bigint # (1::bigint << (id % 63)::int))::fingerprint"
            }
            Kind::Bigint => "v # (1::bigint << (id % 63)::int)",
            Kind::Signatures => "v",
        }
    }

    /// Returns the condition of a search: row `d` is near probe `q`.
    fn condition(self) -> &'static str {
        match self {
            Kind::Radius6 | Kind::Radius3 | Kind::Bigint => "d.v <~> q.v <= 3",
            Kind::Signatures => "minhash_similarity(d.v, q.v) >= 0.8",
        }
    }
}

/// Parameters of one simulation: the index, the number of rows, how many rows are replaced each
/// month, and the number of months.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Kind of the index.
    pub kind: Kind,
    /// Number of rows, which stays nearly constant.
    pub rows: u64,
    /// Percentage of the rows that are deleted each month, and replaced by new ones.
    pub turnover: u32,
    /// Option `fillfactor` of the index, in percent.
    pub fill: u32,
    /// Number of simulated months.
    pub months: u32,
}

impl Setup {
    fn label(&self) -> String {
        let kind = self.kind.label();
        format!(
            "{kind}, fillfactor {}, turnover {} %",
            self.fill, self.turnover
        )
    }
}

/// Measurements after the VACUUM of one month. Month 0 is the new index.
pub struct Month {
    /// Number of rows.
    pub rows: i64,
    /// Size of the index in use, in bytes.
    pub bytes: i64,
    /// Size of a new index on the same rows, in bytes.
    pub new_bytes: i64,
    /// Processor seconds of one search in the index in use.
    pub search: f64,
    /// Processor seconds of one search in the new index.
    pub new_search: f64,
    /// Processor seconds of the INSERT statements for each inserted row. 0 in month 0.
    pub insert: f64,
    /// Processor seconds of VACUUM. 0 in month 0.
    pub vacuum: f64,
    /// Bytes that VACUUM wrote to the write-ahead log. 0 in month 0.
    pub vacuum_wal: i64,
}

impl Month {
    /// Returns the size in bytes for each row.
    fn bytes_per_row(&self) -> f64 {
        self.bytes as f64 / self.rows as f64
    }

    /// Returns the size in relation to a new index.
    fn size_ratio(&self) -> f64 {
        self.bytes as f64 / self.new_bytes as f64
    }

    /// Returns the time of a search in relation to a new index.
    fn search_ratio(&self) -> f64 {
        self.search / self.new_search
    }
}

/// Simulation and its measurements.
pub struct Simulation {
    setup: Setup,
    months: Vec<Month>,
}

/// Runs one simulation in an empty table.
pub fn simulate(session: &mut Session, setup: Setup) -> Result<Simulation> {
    let kind = setup.kind;
    ui::step(format!("{}: loading", setup.label()), || {
        session.run(&format!(
            "DROP TABLE IF EXISTS docs; CREATE TABLE docs (id bigint, v {}); \
             INSERT INTO docs SELECT n, {} FROM generate_series(0::bigint, {}) n; \
             CREATE INDEX docs_used ON docs USING neardup {}",
            kind.column_type(),
            kind.value("n"),
            setup.rows - 1,
            kind.index_options(setup.fill),
        ))?;
        session.run("VACUUM ANALYZE docs")?;
        session.run("CHECKPOINT")
    })?;
    let mut months = vec![compare(session, setup, None)?];
    ui::step(
        format!("{}: {} months", setup.label(), setup.months),
        || {
            let mut next_id = setup.rows;
            for month in 1..=setup.months {
                let work = run_month(session, setup, month, &mut next_id)?;
                months.push(compare(session, setup, Some(work))?);
            }
            Ok(())
        },
    )?;
    Ok(Simulation { setup, months })
}

/// Work of one month.
struct Work {
    inserted: u64,
    insert: Time,
    vacuum: Time,
    vacuum_wal: i64,
}

/// Inserts, updates and deletes the rows of one month, then runs VACUUM. For a turnover of 10 %,
/// inserts 8 % new rows and 2 % near-duplicates, changes the values of 2 % of the rows, and deletes
/// as many rows as were inserted. `next_id` is the first unused `id`.
fn run_month(session: &mut Session, setup: Setup, month: u32, next_id: &mut u64) -> Result<Work> {
    let kind = setup.kind;
    let near = setup.rows * u64::from(setup.turnover) / 500;
    let new = near * 4;
    let first = *next_id;
    let insert_new = format!(
        "INSERT INTO docs SELECT n, {} FROM generate_series({first}::bigint, {}) n",
        kind.value("n"),
        first + new - 1
    );
    let insert_near = format!(
        "INSERT INTO docs SELECT {} + row_number() OVER (), {} \
         FROM (SELECT * FROM docs WHERE {} LIMIT {near}) d",
        first + new - 1,
        kind.near(),
        drawn(month, 1, f64::from(setup.turnover) / 400.0)
    );
    *next_id = first + new + near;
    let insert = session
        .timed(&insert_new)?
        .plus(session.timed(&insert_near)?);
    let share = f64::from(setup.turnover) / 100.0;
    session.run(&format!(
        "UPDATE docs SET v = {} WHERE {}; DELETE FROM docs WHERE {}",
        kind.value(&format!("id + {month} * 1000000007::bigint")),
        drawn(month, 2, share / 5.0),
        drawn(month, 3, share / (1.0 + share)),
    ))?;
    let before = session.wal()?;
    let vacuum = session.timed("VACUUM docs")?;
    Ok(Work {
        inserted: new + near,
        insert,
        vacuum,
        vacuum_wal: session.wal()? - before,
    })
}

/// Returns an SQL condition that is true for a pseudorandom share of the rows. `share` is from 0 to
/// 1. Each pair of `month` and `stream` selects other rows.
fn drawn(month: u32, stream: u32, share: f64) -> String {
    let limit = (share * f64::from(1 << 20)) as u32;
    let seed = 10 * month + stream;
    format!("(hashint8extended(id, {seed}) & 1048575) < {limit}")
}

/// Builds a new index on the present rows. Measures both indexes.
fn compare(session: &mut Session, setup: Setup, work: Option<Work>) -> Result<Month> {
    session.run(&format!(
        "CREATE INDEX docs_new ON docs USING neardup {}; \
         DROP TABLE IF EXISTS probes; CREATE TABLE probes AS \
         SELECT v FROM docs ORDER BY hashint8extended(id, 0) LIMIT {PROBE_COUNT}; \
         ANALYZE probes",
        setup.kind.index_options(setup.fill)
    ))?;
    let (mut used, mut new) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        used.extend(search_times(session, setup.kind, "docs_used", "docs_new")?);
        new.extend(search_times(session, setup.kind, "docs_new", "docs_used")?);
    }
    let size = |session: &mut Session, index| {
        session.value(&format!("SELECT pg_relation_size('{index}')"))
    };
    let cpu = |time: Time| time.cpu.context("the processor time is unknown");
    let month = Month {
        rows: session.value("SELECT count(*) FROM docs")?,
        bytes: size(session, "docs_used")?,
        new_bytes: size(session, "docs_new")?,
        search: least(&used) / PROBE_COUNT as f64,
        new_search: least(&new) / PROBE_COUNT as f64,
        insert: match &work {
            Some(work) => cpu(work.insert)? / work.inserted as f64,
            None => 0.0,
        },
        vacuum: work.as_ref().map_or(Ok(0.0), |work| cpu(work.vacuum))?,
        vacuum_wal: work.as_ref().map_or(0, |work| work.vacuum_wal),
    };
    session.run("DROP INDEX docs_new")?;
    Ok(month)
}

/// Runs the searches for all probes by the index `index` several times. Returns the processor
/// seconds of each run. The planner cannot use the index `other`: the searches are in a transaction
/// that drops it and is rolled back at the end.
fn search_times(session: &mut Session, kind: Kind, index: &str, other: &str) -> Result<Vec<f64>> {
    let count = format!(
        "SELECT count(*) FROM probes q JOIN docs d ON {}",
        kind.condition()
    );
    session.run(&format!(
        "BEGIN; SET LOCAL enable_seqscan = off; DROP INDEX {other}"
    ))?;
    session.plan(&count, &format!("using {index}"))?;
    // The first run, which is not measured, fills the caches of the session.
    session.run(&count)?;
    let times: Result<Vec<f64>> = (0..REPETITIONS)
        .map(|_| {
            session
                .timed(&count)?
                .cpu
                .context("the processor time is unknown")
        })
        .collect();
    session.run("ROLLBACK")?;
    times
}

/// Prints the tables of measurements, writes the plot to `svg` if it is given, and returns the
/// measurements as JSON.
pub fn report(simulations: &[Simulation], svg: Option<&Path>) -> Result<Value> {
    for simulation in simulations {
        println!(
            "\n{}\n{}",
            simulation.setup.label(),
            table(&simulation.months)
        );
    }
    if let Some(path) = svg {
        fs::write(path, plot::draw(simulations)?)?;
        ui::note(format!("plot written to {}", path.display()));
    }
    Ok(json!({ "simulations": simulations.iter().map(to_json).collect::<Vec<_>>() }))
}

fn to_json(simulation: &Simulation) -> Value {
    let Simulation { setup, months } = simulation;
    let months: Vec<Value> = (months.iter())
        .map(|month| {
            json!({
                "rows": month.rows, "bytes": month.bytes, "new_bytes": month.new_bytes,
                "search_seconds": month.search, "new_search_seconds": month.new_search,
                "insert_seconds": month.insert, "vacuum_seconds": month.vacuum,
                "vacuum_wal": month.vacuum_wal,
            })
        })
        .collect();
    json!({
        "index": setup.kind.label(), "rows": setup.rows, "turnover": setup.turnover,
        "fillfactor": setup.fill, "months": months,
    })
}

/// Returns the measurements as a Markdown table.
fn table(months: &[Month]) -> String {
    let header = [
        "month",
        "rows",
        "B/row",
        "size",
        "search",
        "search, new",
        "ratio",
        "insert",
        "VACUUM",
        "its WAL",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    for (number_of, month) in months.iter().enumerate() {
        cells.push([
            number_of.to_string(),
            month.rows.to_string(),
            number(month.bytes_per_row()),
            number(month.size_ratio()),
            format!("{} us", number(month.search * 1e6)),
            format!("{} us", number(month.new_search * 1e6)),
            number(month.search_ratio()),
            format!("{} us", number(month.insert * 1e6)),
            format!("{} s", number(month.vacuum)),
            format!("{} MB", number(month.vacuum_wal as f64 / 1e6)),
        ]);
    }
    aligned(&cells, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_month_draws_other_rows() {
        assert_eq!(
            drawn(3, 1, 0.5),
            "(hashint8extended(id, 31) & 1048575) < 524288"
        );
        assert_ne!(drawn(3, 1, 0.5), drawn(4, 1, 0.5));
    }

    #[test]
    fn a_table_relates_an_index_to_a_new_one() {
        let month = Month {
            rows: 1000,
            bytes: 60_000,
            new_bytes: 50_000,
            search: 4.4e-6,
            new_search: 4e-6,
            insert: 9e-6,
            vacuum: 0.1,
            vacuum_wal: 2_000_000,
        };
        let table = table(&[month]);
        for cell in ["60.0", "1.20", "1.10", "9.00 us", "2.00 MB"] {
            assert!(table.contains(cell), "{cell} in {table}");
        }
    }
}
