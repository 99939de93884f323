//! `cargo xtask bench --growth`: measures searches, builds, index sizes and pairs at growing
//! numbers of rows, and compares the times with the cost model. docs/performance.md shows the
//! plots.
mod model;
mod plot;

use super::contenders::{Contender, Probes, Query};
use super::generated_rows::{self, PROBE_COUNT};
use super::report::{aligned, number};
use super::session::{Session, Time, least};
use anyhow::{Result, ensure};
use model::Model;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use xtask::ui;

/// Radii of the measured searches, in bits.
pub const RADII: [u32; 3] = [3, 8, 12];
/// Radius of the measured calls of `neardup_pairs`, in bits.
const OF_PAIRS: u32 = 3;
/// `maintenance_work_mem` of the index builds.
const BUILD_MEMORY: &str = "1GB";
/// Smallest number of rows. The other numbers of rows are 3, 10, 30, 100 ... times as large.
const FIRST: u64 = 100_000;

/// Measurements at one number of rows.
pub struct Point {
    /// Number of rows of the table.
    pub rows: u64,
    /// Seconds of `CREATE INDEX`.
    pub build: f64,
    /// Size of the index in bytes.
    pub size: f64,
    /// Seconds of one search, for each radius of [`RADII`].
    pub probes: [f64; RADII.len()],
    /// Average number of rows that a search finds, for each radius of [`RADII`].
    pub found: [f64; RADII.len()],
    /// Seconds of `neardup_pairs` over the whole table.
    pub pairs: f64,
    /// Number of pairs that `neardup_pairs` returned.
    pub pairs_found: i64,
}

/// Returns the numbers of rows to measure, up to `most`: 0.1, 0.3, 1, 3, 10 ... millions.
pub fn sizes(most: u64) -> Vec<u64> {
    let steps = (0..).map(|power| FIRST * 10u64.pow(power));
    let all = steps.flat_map(|size| [size, 3 * size]);
    all.take_while(|&rows| rows <= most).collect()
}

/// Fills the benchmark's tables with `rows` rows, builds the index, and measures the build, the
/// index size, searches and pairs.
pub fn measure(session: &mut Session, rows: u64) -> Result<Point> {
    ui::step(format!("{rows} rows: loading"), || {
        session.run("RESET ALL; DROP TABLE IF EXISTS docs, probes, absent")?;
        generated_rows::load_docs(session, rows)?;
        generated_rows::load_probes(session)?;
        session.run("CHECKPOINT")
    })?;
    let build = ui::step(format!("{rows} rows: building"), || {
        session.run(&format!("SET maintenance_work_mem = '{BUILD_MEMORY}'"))?;
        Contender::Neardup.build(session)
    })?;
    let size = Contender::Neardup.size(session)?;
    let mut probes = [0.0; RADII.len()];
    let mut found = [0.0; RADII.len()];
    ui::step(format!("{rows} rows: searching"), || {
        for (i, radius) in RADII.into_iter().enumerate() {
            (probes[i], found[i]) = search(session, radius)?;
        }
        Ok(())
    })?;
    session.run("RESET ALL")?;
    let pairs = format!("SELECT count(*) FROM neardup_pairs('docs_neardup', {OF_PAIRS})");
    let (time, pairs_found): (Time, i64) = ui::step(format!("{rows} rows: pairs"), || {
        session.timed_value(&pairs)
    })?;
    ensure!(pairs_found > 0, "no pair was found among {rows} rows");
    Ok(Point {
        rows,
        build: build.wall,
        size,
        probes,
        found,
        pairs: time.wall,
        pairs_found,
    })
}

/// Measures searches within `radius` for all probes. Returns two averages for one search: the
/// seconds, from the fastest repetition, and the number of rows found.
fn search(session: &mut Session, radius: u32) -> Result<(f64, f64)> {
    let query = Query::neardup(Probes::planted(PROBE_COUNT), radius);
    query.set(session)?;
    let count = query.count();
    session.plan(&count, query.plan)?;
    let times: Vec<f64> = (session.times(&count)?.iter())
        .map(|time| time.wall / PROBE_COUNT as f64)
        .collect();
    let found: i64 = session.value(&count)?;
    Ok((least(&times), found as f64 / PROBE_COUNT as f64))
}

/// Prints the table of measurements, writes the plot to `svg` if it is given, and returns the
/// measurements as JSON.
pub fn report(points: &[Point], svg: Option<&Path>) -> Result<Value> {
    let model = Model::fit(points);
    println!("\n{}", table(points, &model));
    println!("{}", model.sentence());
    if let Some(path) = svg {
        fs::write(path, plot::draw(points, &model)?)?;
        ui::note(format!("plot written to {}", path.display()));
    }
    let json: Vec<Value> = (points.iter())
        .map(|point| {
            json!({
                "rows": point.rows, "build_seconds": point.build, "index_bytes": point.size,
                "radii": RADII, "search_seconds": point.probes, "found": point.found,
                "model_seconds": RADII.map(|radius| model.search(point.rows as f64, radius)),
                "pairs_seconds": point.pairs, "pairs": point.pairs_found,
                "model_pairs_seconds": model.pairs(point.rows as f64),
            })
        })
        .collect();
    Ok(json!({ "points": json }))
}

/// Returns the measurements as a Markdown table. Beside each measured time is the time that `model`
/// expects, if it expects one.
fn table(points: &[Point], model: &Model) -> String {
    let mut cells = vec![
        [
            "rows",
            "radius 3",
            "model",
            "radius 8",
            "model",
            "radius 12",
            "model",
            "index",
            "build",
            "all pairs",
            "model",
        ]
        .map(str::to_owned),
    ];
    for point in points {
        let rows = point.rows as f64;
        let micros = |seconds: f64| format!("{} us", number(seconds * 1e6));
        let expected = |radius| micros(model.search(rows, radius));
        let [three, eight, twelve] = point.probes.map(micros);
        cells.push([
            format!("{}M", rows / 1e6),
            three,
            expected(RADII[0]),
            eight,
            expected(RADII[1]),
            twelve,
            expected(RADII[2]),
            format!("{} B/row", number(point.size / rows)),
            format!("{} s", number(point.build)),
            format!("{} s", number(point.pairs)),
            format!("{} s", number(model.pairs(rows))),
        ]);
    }
    aligned(&cells, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_to_the_most() {
        assert_eq!(sizes(1_000_000), [100_000, 300_000, 1_000_000]);
        assert_eq!(sizes(FIRST), [FIRST]);
        assert_eq!(sizes(100_000_000).len(), 7);
    }
}
