//! `cargo xtask bench --wide`: searches beyond the radius that an index guarantees, and the nearest
//! first, beside FAISS's IndexBinaryFlat in one run; among uniform values and among others.
mod faiss;

use super::contenders::{Contender, Probes, Query};
use super::corpus::{self, PROBES};
use super::report::{aligned, number};
use super::session::{Session, least};
use anyhow::{Result, ensure};
use faiss::Faiss;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use xtask::ui;

/// A search.
#[derive(Clone, Copy)]
pub enum Search {
    /// All within a radius, in bits.
    Within(u32),
    /// This number of rows, the nearest first.
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

/// Rows of the nearest.
const NEAREST: u32 = 10;
/// Time, in seconds, that the probes of a sequential scan may take together.
const SLOW_LIMIT: f64 = 2.0;

/// A search, and its limits for a million and for ten million rows, in microseconds.
struct Case {
    what: &'static str,
    search: Search,
    /// Among rows that were added near each probe.
    crowd: bool,
    most: [Option<f64>; 2],
}

const fn case(what: &'static str, search: Search, most: [Option<f64>; 2]) -> Case {
    Case {
        what,
        search,
        crowd: false,
        most,
    }
}

const CASES: &[Case] = &[
    case("radius 3", Search::Within(3), [None, None]),
    case("radius 8", Search::Within(8), [Some(500.0), Some(2000.0)]),
    case("radius 12", Search::Within(12), [Some(1000.0), None]),
    Case {
        crowd: true,
        ..case("radius 3, 10 found", Search::Within(3), [None, None])
    },
    Case {
        crowd: true,
        ..case(
            "nearest 10, within 3",
            Search::Nearest(NEAREST),
            [None, None],
        )
    },
    case("nearest 10", Search::Nearest(NEAREST), [None, None]),
];

/// Most time that "nearest 10, within 3" may take, as a multiple of the time of "radius 3, 10
/// found": both find the same number of rows.
const NEAR_TIMES: f64 = 10.0;

/// Measures on an empty database with the extension.
pub fn bench(
    session: &mut Session,
    rows: u64,
    rounds: u32,
    python: Option<&Path>,
    files: &[PathBuf],
) -> Result<Value> {
    ui::step(format!("Loading {rows} rows"), || {
        corpus::load_docs(session, rows)?;
        corpus::load_probes(session)?;
        corpus::add_crowd(session, rows, u64::from(NEAREST))
    })?;
    let mut sets = vec![measure(session, "uniform", rows, rounds, python, true)?];
    for file in files {
        for (name, values) in corpus::columns_of(file)? {
            ui::step(format!("Loading {rows} rows like {name}"), || {
                session.run("DROP TABLE IF EXISTS docs, probes, absent, crowd")?;
                corpus::load_like(session, &values, rows)
            })?;
            let folder = file.parent().and_then(Path::file_name);
            let folder = folder.map(|name| name.to_string_lossy().into_owned());
            let name = format!("{}/{name}", folder.unwrap_or_default());
            sets.push(measure(session, &name, rows, rounds, python, false)?);
        }
    }
    Ok(json!({ "rows": rows, "rounds": rounds, "sets": sets }))
}

/// Measures all searches among what is in the tables now. All contenders must find the same.
fn measure(
    session: &mut Session,
    name: &str,
    rows: u64,
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
    let cases: Vec<&Case> = (CASES.iter()).filter(|case| crowd || !case.crowd).collect();
    let mut lines = vec![json!({}); cases.len()];
    let mut samples = vec![[vec![], vec![], vec![]]; cases.len()];
    for round in 1..=rounds {
        ui::step(
            format!("Searching {name}, round {round} of {rounds}"),
            || {
                for ((case, line), samples) in cases.iter().zip(&mut lines).zip(&mut samples) {
                    let of = |count| match case.crowd {
                        true => Probes::absent(count),
                        false => Probes::planted(count),
                    };
                    let ours = case.search.query(of(PROBES));
                    ours.set(session)?;
                    let plan = session.plan(&ours.count(), "Index Scan using docs_neardup")?;
                    let times = session.times(&ours.count())?;
                    samples[0].extend(times.iter().map(|time| time.wall / PROBES as f64));
                    let sums = ours.sums(session)?;
                    if let Some(faiss) = &mut faiss {
                        let table = of(PROBES).table;
                        let answer = faiss.search(session, table, PROBES, case.search)?;
                        samples[1].extend(answer.times);
                        agree(case.what, &sums, &answer.sums)?;
                    }
                    if round == 1 {
                        let one = case.search.query(of(1)).sequentially();
                        one.set(session)?;
                        let time = session.timed(&one.count())?.wall;
                        let count = ((SLOW_LIMIT / time) as u64).clamp(1, PROBES);
                        let slow = case.search.query(of(count)).sequentially();
                        slow.set(session)?;
                        session.plan(&slow.count(), slow.plan)?;
                        samples[2].push(session.timed(&slow.count())?.wall / count as f64);
                        let theirs = slow.sums(session)?;
                        let some: Vec<(i64, i64)> = (sums.iter().copied())
                            .filter(|(probe, _)| *probe < count.cast_signed())
                            .collect();
                        ensure!(
                            some == theirs,
                            "{}: a sequential scan finds other rows",
                            case.what
                        );
                        let found: i64 = sums.iter().map(|(_, sum)| sum / 1000).sum();
                        *line = json!({ "plan": plan, "found": found as f64 / PROBES as f64 });
                    }
                }
                Ok(())
            },
        )?;
    }
    Contender::Neardup.drop(session)?;
    for ((case, line), samples) in cases.iter().zip(&mut lines).zip(&samples) {
        let [ours, faiss, sequential] = samples
            .each_ref()
            .map(|samples| (!samples.is_empty()).then(|| least(samples) * 1e6));
        line["what"] = json!(case.what);
        line["neardup"] = json!(ours);
        line["faiss"] = json!(faiss);
        line["sequential"] = json!(sequential);
        line["samples"] = json!(samples);
        line["most"] = json!(match rows {
            _ if name != "uniform" => None,
            1_000_000 => case.most[0],
            10_000_000 => case.most[1],
            _ => None,
        });
    }
    let near = |what: &str| lines.iter().position(|line| line["what"] == what);
    if let (Some(radius), Some(nearest)) = (near(CASES[3].what), near(CASES[4].what)) {
        let most = lines[radius]["neardup"]
            .as_f64()
            .map(|time| NEAR_TIMES * time);
        lines[nearest]["most"] = json!(most);
    }
    Ok(json!({
        "name": name,
        "faiss_version": faiss.map(|faiss| faiss.version.clone()),
        "lines": lines,
    }))
}

/// Requires that neardup and FAISS found the same rows for each probe that FAISS searched for.
/// `ours` has pairs of a probe and its sum, and leaves out probes that found nothing; `theirs` has
/// the sums of all probes in order, 0 for those that found nothing.
fn agree(what: &str, ours: &[(i64, i64)], theirs: &[i64]) -> Result<()> {
    let mut sums = vec![0; theirs.len()];
    for &(probe, sum) in ours {
        if let Some(place) = usize::try_from(probe).ok().and_then(|i| sums.get_mut(i)) {
            *place = sum;
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

/// The table, in Markdown.
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
        "goal",
        "met",
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
            let met = time("most")
                .zip(time("neardup"))
                .map(|(most, ours)| ours <= most);
            cells.push([
                set["name"].as_str().unwrap_or_default().to_owned(),
                line["what"].as_str().unwrap_or_default().to_owned(),
                time("found").map_or(String::new(), number),
                text(time("neardup")),
                text(time("faiss")),
                ratio("faiss"),
                text(time("sequential")),
                ratio("sequential"),
                time("most").map_or(String::new(), |most| format!("<= {} us", number(most))),
                met.map_or("", |met| if met { "yes" } else { "NO" })
                    .to_owned(),
            ]);
        }
    }
    aligned(&cells, &[0, 1, 8, 9])
}
