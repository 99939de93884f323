//! Stores the ratios of a benchmark in `crates/bench/baseline.json`, and finds the ratios that got
//! worse since.
use super::report::{aligned, number};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum change of a ratio of times that counts as noise, as a share of the ratio. If a ratio
/// gets worse by a greater share, the comparison fails. Two runs on one machine differ by up to a
/// tenth, so the maximum is greater than that.
const NOISE_OF_TIMES: f64 = 0.15;
/// Maximum change of a ratio of sizes that counts as noise, as a share of the ratio. Sizes hardly
/// differ between runs.
const NOISE_OF_SIZES: f64 = 0.02;

/// Path of the stored baseline in the source tree.
pub fn path() -> PathBuf {
    xtask::cargo::workspace().join("crates/bench/baseline.json")
}

/// Comparison of neardup with another contender: a line of a benchmark's table. It keeps only the
/// ratio of the two figures. The figures themselves depend on the speed of the machine, so they
/// cannot be compared with other runs.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    what: String,
    against: String,
    /// Figure of the other contender divided by the figure of neardup. Above 1, neardup is better.
    /// The figures are processor times if both are known, because other processes do not influence
    /// processor times. Otherwise they are the figures that the table shows.
    ratio: f64,
    is_size: bool,
}

impl Line {
    fn name(&self) -> String {
        format!("{}, beside {}", self.what, self.against)
    }

    fn noise(&self) -> f64 {
        match self.is_size {
            true => NOISE_OF_SIZES,
            false => NOISE_OF_TIMES,
        }
    }

    /// Reads a line from the JSON of a benchmark's report or of a baseline. Returns `None` if the
    /// line has no ratio.
    fn from_value(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let unit = text("unit")?;
        let ratio = value["cpu_ratio"].as_f64().or(value["ratio"].as_f64())?;
        Some(Self {
            what: text("what")?,
            against: text("compared_with")?,
            ratio,
            is_size: ["MB", "B/row"].contains(&unit.as_str()),
        })
    }
}

/// Returns the lines of a run that have a ratio. A run is a benchmark's JSON for one number of
/// rows.
fn lines_of(run: &Value) -> Vec<Line> {
    let lines = run["lines"].as_array();
    lines
        .into_iter()
        .flatten()
        .filter_map(Line::from_value)
        .collect()
}

/// Writes the ratios of a benchmark's runs, one run for each number of rows, to the baseline at
/// `path`.
pub fn save(results: &Value, path: &Path) -> Result<()> {
    let runs = results["runs"].as_array().context("no runs")?;
    let kept: Vec<Value> = (runs.iter())
        .map(|run| {
            let lines: Vec<Value> = (run["lines"].as_array().into_iter().flatten())
                .map(|line| {
                    let of = |key: &str| line[key].clone();
                    json!({
                        "what": of("what"), "compared_with": of("compared_with"),
                        "unit": of("unit"), "ratio": rounded(&line["ratio"]),
                        "cpu_ratio": rounded(&line["cpu_ratio"]),
                    })
                })
                .collect();
            json!({ "rows": run["rows"], "machine": run["machine"], "lines": lines })
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({ "runs": kept }))? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns a ratio rounded to four digits. With more digits, every run would change the baseline
/// file.
fn rounded(ratio: &Value) -> Value {
    match ratio.as_f64() {
        Some(ratio) => json!(format!("{ratio:.3e}").parse::<f64>().unwrap_or(ratio)),
        None => Value::Null,
    }
}

/// Prints how the ratios of a benchmark differ from the baseline at `path`. Returns false if a
/// ratio got worse by more than noise explains. Lines that exist only in the baseline or only in
/// `results` do not fail the comparison.
///
/// # Errors
///
/// If the baseline cannot be read, or has no run with the same number of rows.
pub fn compare(results: &Value, path: &Path) -> Result<bool> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read {}; --save-baseline makes it", path.display()))?;
    let stored: Value = serde_json::from_str(&text)?;
    let mut is_good = true;
    for run in results["runs"].as_array().into_iter().flatten() {
        let rows = &run["rows"];
        let earlier = (stored["runs"].as_array().into_iter().flatten())
            .find(|earlier| earlier["rows"] == *rows)
            .with_context(|| format!("{} has no run of {rows} rows", path.display()))?;
        let compared = compared(&lines_of(earlier), &lines_of(run));
        ensure!(
            !compared.is_empty(),
            "no line of {rows} rows can be compared"
        );
        let cpu = |run: &Value| run["machine"]["cpu"].as_str().unwrap_or("?").to_owned();
        println!(
            "\n{rows} rows, {} beside the baseline's {}",
            cpu(run),
            cpu(earlier)
        );
        println!("\n{}", table(&compared));
        is_good &= compared.iter().all(|line| line.verdict != Verdict::Worse);
    }
    println!(
        "{}",
        match is_good {
            true => "Nothing got worse than noise explains.",
            false => "Lines marked WORSE lost more than noise explains.",
        }
    );
    Ok(is_good)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Same,
    Better,
    Worse,
    /// The benchmark no longer has this line of the baseline.
    Gone,
}

/// Line of the baseline, compared with the same line of this run: its ratio in the baseline
/// (`then`) and in this run (`now`, `None` if the run has no such line).
struct Compared {
    name: String,
    then: f64,
    now: Option<f64>,
    verdict: Verdict,
}

fn compared(then: &[Line], now: &[Line]) -> Vec<Compared> {
    then.iter()
        .map(|line| {
            let same = |other: &&Line| other.what == line.what && other.against == line.against;
            let now = now.iter().find(same).map(|line| line.ratio);
            let verdict = match now.map(|now| now / line.ratio) {
                None => Verdict::Gone,
                Some(change) if change < 1.0 - line.noise() => Verdict::Worse,
                Some(change) if change > 1.0 / (1.0 - line.noise()) => Verdict::Better,
                Some(_) => Verdict::Same,
            };
            Compared {
                name: line.name(),
                then: line.ratio,
                now,
                verdict,
            }
        })
        .collect()
}

fn table(compared: &[Compared]) -> String {
    let header = ["ratio, above 1 neardup is better", "baseline", "now", ""].map(str::to_owned);
    let mut cells = vec![header];
    cells.extend(compared.iter().map(|line| {
        let verdict = match line.verdict {
            Verdict::Same => "",
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
            Verdict::Gone => "not measured",
        };
        [
            line.name.clone(),
            number(line.then),
            line.now.map_or(String::new(), number),
            verdict.to_owned(),
        ]
    }));
    aligned(&cells, &[0, 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rows: u64, lines: &[(&str, &str, f64)]) -> Value {
        let lines: Vec<Value> = (lines.iter())
            .map(|(what, unit, ratio)| {
                json!({
                    "what": what, "compared_with": "btree", "unit": unit, "ratio": ratio,
                    "cpu_ratio": null, "neardup": 1.0, "theirs": ratio,
                })
            })
            .collect();
        json!({ "runs": [{ "rows": rows, "machine": { "cpu": "one" }, "lines": lines }] })
    }

    fn verdict(unit: &str, then: f64, now: f64) -> Verdict {
        let line = |ratio| lines_of(&run(1, &[("probe", unit, ratio)])["runs"][0]);
        compared(&line(then), &line(now))[0].verdict
    }

    #[test]
    fn times_may_differ_by_more_than_sizes() {
        assert_eq!(verdict("us", 10.0, 9.0), Verdict::Same);
        assert_eq!(verdict("us", 10.0, 8.4), Verdict::Worse);
        assert_eq!(verdict("us", 10.0, 12.0), Verdict::Better);
        assert_eq!(verdict("B/row", 10.0, 9.9), Verdict::Same);
        assert_eq!(verdict("B/row", 10.0, 9.0), Verdict::Worse);
    }

    #[test]
    fn a_baseline_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baseline.json");
        let first = run(5, &[("probe", "us", 10.0), ("size", "MB", 2.0)]);
        assert!(compare(&first, &path).is_err());
        save(&first, &path).unwrap();
        assert!(compare(&first, &path).unwrap());
        assert!(!compare(&run(5, &[("probe", "us", 5.0)]), &path).unwrap());
        // Runs with other numbers of rows cannot be compared.
        assert!(compare(&run(6, &[("probe", "us", 10.0)]), &path).is_err());
    }

    #[test]
    fn the_stored_baseline_has_the_lines_of_the_benchmark() {
        let text = fs::read_to_string(path()).unwrap();
        let stored: Value = serde_json::from_str(&text).unwrap();
        let rows: Vec<u64> = (stored["runs"].as_array().unwrap().iter())
            .map(|run| run["rows"].as_u64().unwrap())
            .collect();
        assert_eq!(rows, [1_000_000, 10_000_000]);
        for run in stored["runs"].as_array().unwrap() {
            let named: Vec<String> = lines_of(run).iter().map(Line::name).collect();
            for line in super::super::report::names() {
                let is_there = named.contains(&line);
                // A join is measured only within radius 3.
                assert!(is_there || line.starts_with("all pairs"), "{line}");
            }
        }
    }
}
