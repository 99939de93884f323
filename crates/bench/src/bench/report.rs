//! Report of the benchmark's searches, builds, sizes and inserts: a Markdown table for people, and
//! JSON for programs. A limit is a lower bound of a time ([`super::limits`]).
use super::generated_rows::ROWS_PER_INSERT;
use super::measure::{BUILD_MEMORY, DEFAULT_MEMORY, Measured, OF_PAIRS, WIDER};
use serde_json::{Value, json};

/// Unit in which the table shows a figure.
#[derive(Clone, Copy)]
enum Unit {
    /// The table shows seconds. The measured value is in seconds too.
    Seconds,
    /// The table shows microseconds. The measured value is in seconds.
    Microseconds,
    /// The table shows bytes a row. The measured value is the size of the index in bytes.
    BytesPerRow,
    /// The table shows megabytes. The measured value is in bytes.
    Megabytes,
}

impl Unit {
    /// Converts a measurement to this unit. `rows` is the number of rows of the table.
    fn of(self, value: f64, rows: u64) -> f64 {
        match self {
            Unit::Seconds => value,
            Unit::Microseconds => value * 1e6,
            Unit::BytesPerRow => value / rows as f64,
            Unit::Megabytes => value / 1e6,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Microseconds => "us",
            Unit::BytesPerRow => "B/row",
            Unit::Megabytes => "MB",
        }
    }
}

/// Line of the table: a figure of neardup beside the figure of another contender.
struct Line {
    what: String,
    unit: Unit,
    /// Name of the other contender in the table.
    against: &'static str,
    /// Name of neardup's measurement in [`Measured::samples`].
    ours: String,
    /// Name of the other contender's measurement in [`Measured::samples`].
    theirs: String,
}

impl Line {
    fn new(what: &str, unit: Unit, ours: &str, against: &'static str, theirs: &str) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            against,
            ours: ours.to_owned(),
            theirs: theirs.to_owned(),
        }
    }
}

const BLOCKS: &str = "4 btree on blocks, OR";
const PERMUTED: &str = "4 btree on permuted values";
const PLAIN: &str = "one btree";
const SEQUENTIAL: &str = "sequential scan, <~>";

/// Returns the lines of the table.
fn lines() -> Vec<Line> {
    let mut lines = search_lines();
    lines.extend(pair_lines());
    lines.extend(build_lines());
    lines.extend(size_lines());
    lines.extend(insert_lines());
    lines
}

/// Returns the lines about searches for one fingerprint at a time.
fn search_lines() -> Vec<Line> {
    let line = |what: &str, key: &str, against, theirs: &str| {
        let ours = format!("probe/neardup{key}");
        let theirs = format!("probe/{theirs}{key}");
        Line::new(what, Unit::Microseconds, &ours, against, &theirs)
    };
    let (found, absent) = ("probe, radius 3", "probe, radius 3, none found");
    let mut lines = vec![
        line(found, "", BLOCKS, "blocks"),
        line(found, "", PERMUTED, "permuted"),
        line(found, "", "sequential scan, bit_count", "bit_count"),
        line(found, "", SEQUENTIAL, "sequential"),
        line(found, "", "one btree, equality", "plain"),
        line(absent, " absent", BLOCKS, "blocks"),
        line(absent, " absent", PERMUTED, "permuted"),
        line(absent, " absent", "one btree, equality", "plain"),
    ];
    lines.extend(WIDER.map(|radius| {
        let what = format!("probe, radius {radius}");
        line(&what, &format!(" {radius}"), SEQUENTIAL, "sequential")
    }));
    lines
}

/// Returns the lines about searches for all pairs.
fn pair_lines() -> [Line; 3] {
    OF_PAIRS.map(|radius| {
        let what = format!("all pairs, radius {radius}");
        let ours = format!("pairs/neardup {radius}");
        let theirs = format!("pairs/join {radius}");
        Line::new(
            &what,
            Unit::Seconds,
            &ours,
            "a join by the same index",
            &theirs,
        )
    })
}

/// Returns the lines about index builds, with 1 GB of memory and with PostgreSQL's default.
fn build_lines() -> [Line; 5] {
    let line = |memory: &str, key: &str, against, theirs: &str| {
        let what = format!("build, {memory} of memory");
        let ours = format!("build/neardup{key}");
        let theirs = format!("build/{theirs}{key}");
        Line::new(&what, Unit::Seconds, &ours, against, &theirs)
    };
    [
        line(BUILD_MEMORY, "", BLOCKS, "blocks"),
        line(BUILD_MEMORY, "", PERMUTED, "permuted"),
        line(BUILD_MEMORY, "", PLAIN, "plain"),
        line(DEFAULT_MEMORY, " small", BLOCKS, "blocks"),
        line(DEFAULT_MEMORY, " small", PLAIN, "plain"),
    ]
}

fn size_lines() -> [Line; 3] {
    let line = |against, theirs: &str| {
        let theirs = format!("size/{theirs}");
        Line::new("size", Unit::BytesPerRow, "size/neardup", against, &theirs)
    };
    [
        line(PERMUTED, "permuted"),
        line(BLOCKS, "blocks"),
        line(PLAIN, "plain"),
    ]
}

/// Returns the lines about the time and the WAL of inserts.
fn insert_lines() -> Vec<Line> {
    let mut lines = Vec::new();
    for (what, unit, key) in [
        ("time", Unit::Seconds, "insert"),
        ("WAL", Unit::Megabytes, "wal"),
    ] {
        let line = |text: &str, ours: &str, against, theirs: &str| {
            let what = format!("insert of {ROWS_PER_INSERT} rows, {what}{text}");
            let ours = format!("{key}/{ours}");
            let theirs = format!("{key}/{theirs}");
            Line::new(&what, unit, &ours, against, &theirs)
        };
        let first = ", right after the build";
        lines.extend([
            line("", "neardup", BLOCKS, "blocks"),
            line(first, "neardup first", BLOCKS, "blocks first"),
            line("", "neardup", PLAIN, "plain"),
            line("", "neardup", "no index", "bare"),
        ]);
    }
    lines
}

/// Returns the names of all lines of the table, in the form that the baseline stores.
#[cfg(test)]
pub fn names() -> Vec<String> {
    let name = |line: Line| format!("{}, beside {}", line.what, line.against);
    lines().into_iter().map(name).collect()
}

/// Figures of one line, in the unit of the line.
struct Figures {
    ours: f64,
    theirs: Option<f64>,
    limit: Option<f64>,
}

/// Returns the figures of `line`; `None` if neardup was not measured.
fn figures(measured: &Measured, line: &Line) -> Option<Figures> {
    let in_unit = |value| line.unit.of(value, measured.rows);
    Some(Figures {
        ours: measured.least(&line.ours).map(in_unit)?,
        theirs: measured.least(&line.theirs).map(in_unit),
        limit: measured.limits.get(&line.ours).copied().map(in_unit),
    })
}

/// Returns the measurements as a Markdown table, with ratios to limits and to other contenders.
pub fn table(measured: &Measured) -> String {
    let header = [
        "",
        "neardup",
        "limit",
        "times the limit",
        "compared with",
        "",
        "ratio",
        "by CPU time",
    ]
    .map(str::to_owned);
    let mut cells = vec![header];
    for line in lines() {
        let Some(Figures {
            ours,
            theirs,
            limit,
        }) = figures(measured, &line)
        else {
            continue;
        };
        let text = |value: f64| format!("{} {}", number(value), line.unit.name());
        let optional = |value: Option<f64>| value.map_or(String::new(), number);
        cells.push([
            line.what.clone(),
            text(ours),
            limit.map_or(String::new(), text),
            optional(limit.map(|limit| ours / limit)),
            line.against.to_owned(),
            theirs.map_or(String::new(), text),
            optional(theirs.map(|theirs| theirs / ours)),
            optional(cpu_ratio(measured, &line)),
        ]);
    }
    aligned(&cells, &[0, 4])
}

/// Returns the other contender's processor time divided by neardup's processor time. Unlike elapsed
/// times, processor times do not depend on other processes. Returns `None` if one of the times is
/// unknown.
fn cpu_ratio(measured: &Measured, line: &Line) -> Option<f64> {
    let cpu = |name: &str| measured.least(&format!("cpu/{name}"));
    Some(cpu(&line.theirs)? / cpu(&line.ours)?)
}

/// Formats a number with three significant digits, or with all digits before the decimal point if
/// there are more.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 0.9995 => 3,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Returns cells as an aligned Markdown table. The first row is the header. Columns whose indexes
/// are in `text` are aligned to the left. The other columns, which have numbers, are aligned to the
/// right.
pub fn aligned<const K: usize>(cells: &[[String; K]], text: &[usize]) -> String {
    let mut widths = [3; K];
    for row in cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let is_text = |column: usize| text.contains(&column);
    let mut table = String::new();
    for (i, row) in cells.iter().enumerate() {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            table += &match is_text(column) {
                true => format!("| {cell:width$} "),
                false => format!("| {cell:>width$} "),
            };
        }
        table += "|\n";
        if i == 0 {
            for (column, width) in widths.iter().enumerate() {
                let line = "-".repeat(width + 1);
                table += &if is_text(column) {
                    format!("|-{line}")
                } else {
                    format!("|{line}:")
                };
            }
            table += "|\n";
        }
    }
    table
}

/// Returns the complete results as JSON: the lines of the table, every repetition, and the query
/// plans.
pub fn json(measured: &Measured) -> Value {
    let lines: Vec<Value> = lines()
        .into_iter()
        .filter_map(|line| {
            let Figures {
                ours,
                theirs,
                limit,
            } = figures(measured, &line)?;
            Some(json!({
                "what": line.what,
                "unit": line.unit.name(),
                "neardup": ours,
                "compared_with": line.against,
                "theirs": theirs,
                "ratio": theirs.map(|theirs| theirs / ours),
                "cpu_ratio": cpu_ratio(measured, &line),
                "limit": limit,
                "times_the_limit": limit.map(|limit| ours / limit),
            }))
        })
        .collect();
    json!({
        "rows": measured.rows,
        "lines": lines,
        "samples": measured.samples,
        "same_results": measured.agreed,
        "plans": measured.plans,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_least_values_and_the_distance_to_the_limit() {
        let mut measured = Measured {
            rows: 1_000_000,
            ..Measured::default()
        };
        let mut add = |name: &str, values: &[f64]| {
            measured.samples.insert(name.to_owned(), values.to_vec());
        };
        add("probe/neardup", &[12e-6, 10e-6]);
        add("probe/blocks", &[75e-6, 95e-6]);
        measured.limits.insert("probe/neardup".to_owned(), 4e-6);
        let table = table(&measured);
        let row = table.lines().nth(2).unwrap_or_default();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2], "10.0 us");
        assert_eq!(cells[3], "4.00 us");
        assert_eq!(cells[4], "2.50");
        assert_eq!(cells[6], "75.0 us");
        assert_eq!(cells[7], "7.50");
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = |value| number(value);
        assert_eq!(shown(0.1234), "0.123");
        assert_eq!(shown(9.876), "9.88");
        assert_eq!(shown(2650.4), "2650");
    }
}
