//! `cargo xtask bench --wide`: compares neardup with FAISS's IndexBinaryFlat and with sequential
//! scans in one run. Measures searches with larger radii than the index is built for, and searches
//! for the nearest rows, among uniform values and among values of other origin.
mod faiss;

use super::contenders::{Contender, Probes, Query};
use super::generated_rows::{self, PROBE_COUNT};
use super::report::{aligned, number};
use super::session::{Session, least};
use anyhow::{Result, ensure};
use faiss::Faiss;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use xtask::ui;

/// Kind of a search for the neighbours of a value.
#[derive(Clone, Copy)]
pub enum Search {
    /// Search for all rows within this radius, in bits.
    Within(u32),
    /// Search for this number of rows, nearest first.
    Nearest(u32),
}

impl Search {
    fn query(self, probes: Probes) -> Query {
        match self {
            Search::Within(radius) => Query::neardup(probes, radius),
            Search::Nearest(limit) => Query::nearest(probes, limit),
        }
    }
}

/// Number of rows that a search for the nearest rows returns.
const NEAREST: u32 = 10;
/// Maximum seconds of a sequential scan for all its probes (values to search for). The query gets
/// as many probes as it can search for in this time.
const SLOW_LIMIT: f64 = 2.0;

/// Search that the benchmark measures: one line of the table.
struct Case {
    /// Name of the search in the table.
    what: &'static str,
    search: Search,
    /// True if the search looks for the probes of [`generated_rows::ABSENT_PROBES`], after ten rows
    /// were added near each probe. False if it looks for the probes with planted neighbours.
    crowd: bool,
}

const fn case(what: &'static str, search: Search) -> Case {
    Case {
        what,
        search,
        crowd: false,
    }
}

const CASES: &[Case] = &[
    case("radius 3", Search::Within(3)),
    case("radius 8", Search::Within(8)),
    case("radius 12", Search::Within(12)),
    Case {
        crowd: true,
        ..case("radius 3, 10 found", Search::Within(3))
    },
    Case {
        crowd: true,
        ..case("nearest 10, within 3", Search::Nearest(NEAREST))
    },
    case("nearest 10", Search::Nearest(NEAREST)),
];

/// Runs all measurements in an empty database with the extension. First measures searches among
/// `rows` uniform values. Then, for each column of fingerprints in `files`, measures searches among
/// the values of the column. If the column has fewer than `rows` values, generated values like them
/// are added. `python` is an interpreter that has FAISS. If it is `None`, FAISS is not measured.
/// Returns the results as JSON.
pub fn bench(
    session: &mut Session,
    rows: u64,
    rounds: u32,
    python: Option<&Path>,
    files: &[PathBuf],
) -> Result<Value> {
    ui::step(format!("Loading {rows} rows"), || {
        generated_rows::load_docs(session, rows)?;
        generated_rows::load_probes(session)?;
        generated_rows::add_crowd(session, rows, u64::from(NEAREST))
    })?;
    let mut sets = vec![measure(session, "uniform", rounds, python, true)?];
    for file in files {
        for (name, values) in generated_rows::columns_of(file)? {
            ui::step(format!("Loading {rows} rows like {name}"), || {
                session.run("DROP TABLE IF EXISTS docs, probes, absent, crowd")?;
                generated_rows::load_like(session, &values, rows)
            })?;
            let folder = file.parent().and_then(Path::file_name);
            let folder = folder.map(|name| name.to_string_lossy().into_owned());
            let name = format!("{}/{name}", folder.unwrap_or_default());
            sets.push(measure(session, &name, rounds, python, false)?);
        }
    }
    Ok(json!({ "rows": rows, "rounds": rounds, "sets": sets }))
}

/// Times of all repetitions of one case, with a field for each program that searched. A time is the
/// seconds of a search for one probe.
#[derive(Default)]
struct Samples {
    neardup: Vec<f64>,
    faiss: Vec<f64>,
    sequential: Vec<f64>,
}

/// Case, and its measurements so far.
struct Measurement {
    case: &'static Case,
    line: Value,
    samples: Samples,
}

/// Measures all searches among the values that the table `docs` has now. Repeats the
/// searches of neardup and of FAISS `rounds` times. `name` is the origin of the values. `crowd` is
/// true if the table has rows added near each probe. Without the interpreter `python`, FAISS is not
/// measured. Fails if neardup, FAISS and the sequential scan find different rows.
fn measure(
    session: &mut Session,
    name: &str,
    rounds: u32,
    python: Option<&Path>,
    crowd: bool,
) -> Result<Value> {
    let mut faiss = python
        .map(|python| ui::step("Starting FAISS", || Faiss::start(python, session)))
        .transpose()?;
    session.run("SET maintenance_work_mem = '1GB'")?;
    ui::step(format!("Building an index of {name}"), || {
        Contender::Neardup.build(session)
    })?;
    let cases = CASES.iter().filter(|case| crowd || !case.crowd);
    let mut measurements: Vec<Measurement> = cases
        .map(|case| Measurement {
            case,
            line: json!({ "what": case.what }),
            samples: Samples::default(),
        })
        .collect();
    for round in 1..=rounds {
        let what = format!("Searching {name}, round {round} of {rounds}");
        ui::step(what, || {
            for measurement in &mut measurements {
                let sums = measurement.search(session, faiss.as_mut())?;
                if round == 1 {
                    measurement.search_sequentially(session, &sums)?;
                }
            }
            Ok(())
        })?;
    }
    Contender::Neardup.drop(session)?;
    let lines: Vec<Value> = measurements.into_iter().map(Measurement::finish).collect();
    Ok(json!({
        "name": name,
        "faiss_version": faiss.map(|faiss| faiss.version.clone()),
        "lines": lines,
    }))
}

impl Measurement {
    /// Returns the first `count` probes of this case.
    fn probes(&self, count: u64) -> Probes {
        match self.case.crowd {
            true => Probes::absent(count),
            false => Probes::planted(count),
        }
    }

    /// Measures searches by neardup's index and by FAISS, and fails if they find different rows.
    /// Returns pairs of a probe's `id` and a number that summarizes the rows found for it
    /// ([`Query::sums`]).
    fn search(
        &mut self,
        session: &mut Session,
        faiss: Option<&mut Faiss>,
    ) -> Result<Vec<(i64, i64)>> {
        let ours = self.case.search.query(self.probes(PROBE_COUNT));
        ours.set(session)?;
        self.line["plan"] = json!(session.plan(&ours.count(), "Index Scan using docs_neardup")?);
        let times = session.times(&ours.count())?;
        let times = times.iter().map(|time| time.wall / PROBE_COUNT as f64);
        self.samples.neardup.extend(times);
        let sums = ours.sums(session)?;
        if let Some(faiss) = faiss {
            let table = self.probes(PROBE_COUNT).table;
            let answer = faiss.search(session, table, PROBE_COUNT, self.case.search)?;
            self.samples.faiss.extend(answer.times);
            agree(self.case.what, &sums, &answer.sums)?;
        }
        let found: i64 = sums.iter().map(|(_, sum)| sum / 1000).sum();
        self.line["found"] = json!(found as f64 / PROBE_COUNT as f64);
        Ok(sums)
    }

    /// Measures a sequential scan with as many probes as [`SLOW_LIMIT`] allows. Fails if the scan
    /// finds other rows than the index. `sums` are the [`Query::sums`] of the search by the index.
    fn search_sequentially(&mut self, session: &mut Session, sums: &[(i64, i64)]) -> Result<()> {
        let one = self.case.search.query(self.probes(1)).sequentially();
        one.set(session)?;
        let time = session.timed(&one.count())?.wall;
        let count = ((SLOW_LIMIT / time) as u64).clamp(1, PROBE_COUNT);
        let slow = self.case.search.query(self.probes(count)).sequentially();
        slow.set(session)?;
        session.plan(&slow.count(), slow.plan)?;
        let time = session.timed(&slow.count())?.wall;
        self.samples.sequential.push(time / count as f64);
        let expected = sums.iter().copied();
        let expected = expected.filter(|(probe, _)| *probe < count.cast_signed());
        ensure!(
            slow.sums(session)?.into_iter().eq(expected),
            "{}: a sequential scan finds other rows",
            self.case.what
        );
        Ok(())
    }

    /// Returns the table line of this case as JSON.
    fn finish(self) -> Value {
        let Samples {
            neardup,
            faiss,
            sequential,
        } = &self.samples;
        let [ours, theirs, slow] = [neardup, faiss, sequential]
            .map(|samples| (!samples.is_empty()).then(|| least(samples) * 1e6));
        let mut line = self.line;
        line["neardup"] = json!(ours);
        line["faiss"] = json!(theirs);
        line["sequential"] = json!(slow);
        line["samples"] = json!([neardup, faiss, sequential]);
        line
    }
}

/// Fails if neardup and FAISS found different rows for a probe that FAISS searched for. `ours` has
/// pairs of a probe and its value of [`Query::sums`], and lacks probes that found nothing. `theirs`
/// has the values of all probes in order, 0 for a probe that found nothing.
fn agree(what: &str, ours: &[(i64, i64)], theirs: &[i64]) -> Result<()> {
    let mut sums = vec![0; theirs.len()];
    for &(probe, sum) in ours {
        if let Some(slot) = usize::try_from(probe).ok().and_then(|i| sums.get_mut(i)) {
            *slot = sum;
        }
    }
    let other = sums.iter().zip(theirs).position(|(a, b)| a != b);
    ensure!(
        other.is_none(),
        "{what}: FAISS finds other rows for probe {other:?}"
    );
    ensure!(!theirs.is_empty(), "{what}: FAISS has not searched");
    Ok(())
}

/// Returns the results as a Markdown table.
pub fn table(result: &Value) -> String {
    let header = [
        "values",
        "search",
        "found",
        "neardup",
        "FAISS flat",
        "ratio",
        "sequential scan",
        "ratio",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for set in each(&result["sets"]) {
        for line in each(&set["lines"]) {
            let time = |name: &str| line[name].as_f64();
            let text =
                |value: Option<f64>| value.map_or(String::new(), |t| format!("{} us", number(t)));
            let ratio = |name: &str| {
                let ratio = time(name)
                    .zip(time("neardup"))
                    .map(|(theirs, ours)| theirs / ours);
                ratio.map_or(String::new(), number)
            };
            cells.push([
                set["name"].as_str().unwrap_or_default().to_owned(),
                line["what"].as_str().unwrap_or_default().to_owned(),
                time("found").map_or(String::new(), number),
                text(time("neardup")),
                text(time("faiss")),
                ratio("faiss"),
                text(time("sequential")),
                ratio("sequential"),
            ]);
        }
    }
    aligned(&cells, &[0, 1])
}
