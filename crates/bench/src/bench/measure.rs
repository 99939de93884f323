//! Measures neardup's index, the compared indexes and sequential scans, in a fixed order.
//! Contenders take turns within each round, so that other activity on the machine affects all of
//! them equally.
use super::contenders::{Contender, Probes, Query};
use super::generated_rows::{self, INSERTS, PROBE_COUNT, ROWS_PER_INSERT};
use super::session::{Session, Time, least};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use xtask::ui;

/// `maintenance_work_mem` of the main index builds, the same for all contenders.
pub const BUILD_MEMORY: &str = "1GB";
/// PostgreSQL's default `maintenance_work_mem`, with which further index builds are measured.
pub const DEFAULT_MEMORY: &str = "64MB";
/// Radii, in bits, of searches that are wider than the measured index was built for, which is
/// radius 3. 6 bits is the recommended radius of `minhash64`.
pub const WIDER: [u32; 3] = [6, 8, 12];
/// Radii, in bits, at which `neardup_pairs` is measured.
pub const OF_PAIRS: [u32; 3] = [3, 6, 8];
/// Maximum seconds that a slow query may take for all its probes (values to search for). The query
/// gets as many probes as it can search for in this time, and at least one.
const SLOW_LIMIT: f64 = 1.0;

/// Measurements at one number of rows.
#[derive(Default)]
pub struct Measured {
    /// Number of rows of the table.
    pub rows: u64,
    /// All repetitions of each measurement, by the measurement's name. Names of times, in seconds,
    /// begin with `probe/` (one search), `build/`, `pairs/` or `insert/` (one statement). Names of
    /// sizes, in bytes, begin with `size/` or `wal/` (one statement). With `cpu/` in front of the
    /// name of a time, the value is the processor time instead of the elapsed time.
    pub samples: BTreeMap<String, Vec<f64>>,
    /// Lower bounds of times in seconds, by name of the measurement.
    pub limits: BTreeMap<String, f64>,
    /// Query plans of the measured queries, by name of the measurement.
    pub plans: BTreeMap<String, String>,
    /// Number of results that two contenders both found, by the name of the comparison.
    pub agreed: BTreeMap<String, usize>,
}

impl Measured {
    fn add(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        let samples = self.samples.entry(name.to_owned()).or_default();
        samples.extend(values);
    }

    fn add_times(&mut self, name: &str, times: impl IntoIterator<Item = Time>) {
        for time in times {
            self.add(name, [time.wall]);
            self.add(&format!("cpu/{name}"), time.cpu);
        }
    }

    /// Returns the smallest repetition of the measurement `name`; `None` if it was not measured.
    pub fn least(&self, name: &str) -> Option<f64> {
        self.samples.get(name).map(|values| least(values))
    }

    /// Fails if the results of two contenders, `ours` and `theirs`, differ or are empty. Otherwise
    /// stores the number of results in `agreed` under the name `what`.
    fn agree(&mut self, what: &str, ours: &[(i64, i64)], theirs: &[(i64, i64)]) -> Result<()> {
        ensure!(
            ours == theirs,
            "{what}: neardup's index finds {}, the others {}, and not the same",
            ours.len(),
            theirs.len()
        );
        ensure!(!ours.is_empty(), "{what}: nothing was found");
        self.agreed.insert(what.to_owned(), ours.len());
        Ok(())
    }
}

/// State of the measurements at one number of rows.
struct Run<'a> {
    session: &'a mut Session,
    measured: Measured,
    /// Pairs of a probe and a row that neardup's index found within radius 3, to compare with other
    /// indexes.
    rows_found: Vec<(i64, i64)>,
    /// Pairs of a probe and a value that neardup's index found within radius 3, to compare with
    /// indexes that return values.
    values_found: Vec<(i64, i64)>,
}

/// Loads a table of `rows` rows and takes all measurements. Builds, searches, pairs and inserts are
/// measured `rounds` times.
pub fn run(session: &mut Session, rows: u64, rounds: u32) -> Result<Measured> {
    ui::step(format!("Loading {rows} rows"), || {
        generated_rows::load_docs(session, rows)?;
        generated_rows::load_permuted(session, rows)?;
        generated_rows::load_probes(session)?;
        generated_rows::load_fresh(session, rows)
    })?;
    let mut run = Run {
        session,
        measured: Measured {
            rows,
            ..Measured::default()
        },
        rows_found: Vec::new(),
        values_found: Vec::new(),
    };
    for round in 1..=rounds {
        let step = |contender: Contender, what: &str| {
            format!("Round {round} of {rounds}, {}: {what}", contender.label())
        };
        for contender in Contender::ALL {
            ui::step(step(contender, "build and search"), || {
                run.build(contender)?;
                run.search(contender)
            })?;
            if round == 1 && contender == Contender::Neardup {
                ui::step("Sequential scans and wider radii", || run.slow())?;
            }
            if contender == Contender::Neardup {
                ui::step(step(contender, "all pairs"), || run.pairs(round == 1))?;
            }
            if contender != Contender::Permuted {
                ui::step(step(contender, "insert"), || run.insert(contender))?;
            }
            run.clear(contender)?;
        }
    }
    ui::step(format!("Builds with {DEFAULT_MEMORY}"), || {
        run.small_builds()
    })?;
    Ok(run.measured)
}

impl Run<'_> {
    fn build(&mut self, contender: Contender) -> Result<()> {
        // Every contender starts right after a checkpoint. Then WAL has full images of the pages
        // that its build writes, so that inserts need not log these pages whole again.
        self.session.run("RESET ALL; CHECKPOINT")?;
        self.session
            .run(&format!("SET maintenance_work_mem = '{BUILD_MEMORY}'"))?;
        if contender == Contender::Bare {
            return Ok(());
        }
        let time = contender.build(self.session)?;
        let size = contender.size(self.session)?;
        self.measured
            .add_times(&format!("build/{}", contender.key()), [time]);
        self.measured
            .add(&format!("size/{}", contender.key()), [size]);
        // The planner needs the statistics of indexes on expressions, which ANALYZE collects.
        self.session.run(&format!("ANALYZE {}", contender.table()))
    }

    fn search(&mut self, contender: Contender) -> Result<()> {
        let query = |probes| match contender {
            Contender::Neardup => Query::neardup(probes, 3),
            Contender::Blocks => Query::blocks(probes),
            Contender::Permuted => Query::permuted(probes),
            Contender::Bare | Contender::Plain => Query::equality(probes),
        };
        if contender == Contender::Bare {
            return Ok(());
        }
        let absent = Probes::absent(PROBE_COUNT);
        self.probe(
            &format!("{} absent", contender.key()),
            &query(absent),
            absent,
        )?;
        let probes = Probes::planted(PROBE_COUNT);
        let query = query(probes);
        self.probe(contender.key(), &query, probes)?;
        match contender {
            Contender::Neardup => {
                self.rows_found = query.rows(self.session)?;
                self.values_found = query.values(self.session)?;
            }
            Contender::Blocks => {
                let theirs = query.rows(self.session)?;
                self.measured
                    .agree("rows within 3", &self.rows_found, &theirs)?;
            }
            Contender::Permuted => {
                let theirs = query.values(self.session)?;
                self.measured
                    .agree("values within 3", &self.values_found, &theirs)?;
            }
            Contender::Bare | Contender::Plain => {}
        }
        Ok(())
    }

    /// Measures the query `query`, which searches for `probes`. Stores the time of one probe and
    /// the query plan under `name`. Fails if the planner chose another plan than the query expects.
    fn probe(&mut self, name: &str, query: &Query, probes: Probes) -> Result<()> {
        query.set(self.session)?;
        let count = query.count();
        let plan = self.session.plan(&count, query.plan)?;
        let times = self.session.times(&count)?;
        let each = times
            .into_iter()
            .map(|time| time.divided(probes.count as f64));
        self.measured.add_times(&format!("probe/{name}"), each);
        self.measured.plans.insert(name.to_owned(), plan);
        Ok(())
    }

    /// Measures sequential scans at radius 3 and at each radius of [`WIDER`], and searches by
    /// neardup's index at each radius of [`WIDER`]. Each query has as many probes as it can search
    /// for within [`SLOW_LIMIT`]. Fails if a sequential scan and the index find different rows.
    fn slow(&mut self) -> Result<()> {
        self.sequential("sequential", 3, |probes| Query::sequential(probes, 3))?;
        self.sequential("bit_count", 3, |probes| Query::bit_count(probes, 3))?;
        for radius in WIDER {
            let ours = |probes| Query::neardup(probes, radius);
            let probes = self.affordable(ours)?;
            self.probe(&format!("neardup {radius}"), &ours(probes), probes)?;
            let name = format!("sequential {radius}");
            self.sequential(&name, radius, |probes| Query::sequential(probes, radius))?;
        }
        Ok(())
    }

    fn sequential(
        &mut self,
        name: &str,
        radius: u32,
        query: impl Fn(Probes) -> Query,
    ) -> Result<()> {
        let probes = self.affordable(&query)?;
        self.probe(name, &query(probes), probes)?;
        let theirs = query(probes).rows(self.session)?;
        let ours = Query::neardup(probes, radius).rows(self.session)?;
        self.measured
            .agree(&format!("rows, {name}"), &ours, &theirs)
    }

    /// Measures the search for all pairs of the table by `neardup_pairs`, at each radius of
    /// [`OF_PAIRS`]. If `with_join` is true, also measures a join at radius 3 that searches the
    /// index for each row, and fails if `neardup_pairs` finds other pairs than the join.
    fn pairs(&mut self, with_join: bool) -> Result<()> {
        self.session.run("RESET ALL")?;
        for radius in OF_PAIRS {
            let count = format!("SELECT count(*) FROM neardup_pairs('docs_neardup', {radius})");
            let time = self.session.timed(&count)?;
            let name = format!("pairs/neardup {radius}");
            self.measured.add_times(&name, [time]);
        }
        if !with_join {
            return Ok(());
        }
        let from = "docs a JOIN docs b ON a.fp <~> b.fp <= 3 AND a.id < b.id";
        let count = format!("SELECT count(*) FROM {from}");
        let plan = (self.session).plan(&count, "Index Scan using docs_neardup")?;
        let time = self.session.timed(&count)?;
        self.measured.add_times("pairs/join 3", [time]);
        self.measured.plans.insert("all pairs".to_owned(), plan);
        let ours = self.session.pairs(
            "SELECT least(a.id, b.id), greatest(a.id, b.id) FROM neardup_pairs('docs_neardup', 3) \
                p \
             JOIN docs a ON a.ctid = p.a JOIN docs b ON b.ctid = p.b",
        )?;
        let theirs = self
            .session
            .pairs(&format!("SELECT a.id, b.id FROM {from}"))?;
        self.measured.agree("all pairs within 3", &ours, &theirs)
    }

    /// Estimates how many probes a query can search for within [`SLOW_LIMIT`], from the time of one
    /// probe. Returns this number of probes with planted neighbours, at least one.
    fn affordable(&mut self, query: impl Fn(Probes) -> Query) -> Result<Probes> {
        query(Probes::planted(1)).set(self.session)?;
        let one = query(Probes::planted(1)).count();
        self.session.timed(&one)?;
        let time = self.session.timed(&one)?.wall;
        Ok(Probes::planted(
            ((SLOW_LIMIT / time) as u64).clamp(1, PROBE_COUNT),
        ))
    }

    /// Measures INSERT statements one after the other, so that page splits are as frequent as in a
    /// growing table and not as in a newly built index. Stores the mean time and the mean WAL of a
    /// statement, and separately the time and the WAL of the first statement.
    fn insert(&mut self, contender: Contender) -> Result<()> {
        self.session.run("RESET ALL")?;
        let (key, share) = (contender.key(), INSERTS as f64);
        let (mut time, mut wal) = (Time::ZERO, 0.0);
        for statement in 0..INSERTS {
            let before = self.session.wal()?;
            let insert = format!("INSERT INTO docs SELECT id, fp FROM fresh_{statement}");
            let taken = self.session.timed(&insert)?;
            let bytes = (self.session.wal()? - before) as f64;
            if statement == 0 {
                self.measured
                    .add_times(&format!("insert/{key} first"), [taken]);
                self.measured.add(&format!("wal/{key} first"), [bytes]);
            }
            time = time.plus(taken);
            wal += bytes;
        }
        let time = time.divided(share);
        self.measured.add_times(&format!("insert/{key}"), [time]);
        self.measured.add(&format!("wal/{key}"), [wal / share]);
        let expected = self.measured.rows + INSERTS * ROWS_PER_INSERT;
        let count: i64 = self.session.value("SELECT count(*) FROM docs")?;
        ensure!(
            count.cast_unsigned() == expected,
            "{count} rows, not {expected}"
        );
        Ok(())
    }

    /// Drops the contender's indexes. Deletes the rows that the measured INSERT statements added to
    /// the table `docs`.
    fn clear(&mut self, contender: Contender) -> Result<()> {
        contender.drop(self.session)?;
        if contender == Contender::Permuted {
            return Ok(());
        }
        let rows = self.measured.rows;
        self.session
            .run(&format!("DELETE FROM docs WHERE id >= {rows}"))?;
        self.session.run("VACUUM docs")
    }

    /// Measures index builds with PostgreSQL's default `maintenance_work_mem`. The sort of a large
    /// table does not fit into this memory, so it uses temporary files.
    fn small_builds(&mut self) -> Result<()> {
        for contender in [Contender::Neardup, Contender::Blocks, Contender::Plain] {
            self.session.run("RESET ALL; CHECKPOINT")?;
            self.session
                .run(&format!("SET maintenance_work_mem = '{DEFAULT_MEMORY}'"))?;
            let time = contender.build(self.session)?;
            self.measured
                .add_times(&format!("build/{} small", contender.key()), [time]);
            contender.drop(self.session)?;
        }
        Ok(())
    }
}
