//! `cargo xtask bench --text`: compares neardup's functions that make fingerprints of texts with
//! ClickHouse's functions and with jieba-rs, in one run.
pub mod clickhouse;
mod jieba;
#[path = "../../../../sketch/benches/texts/mod.rs"]
pub mod texts;

use super::session::{Session, Time, least};
use anyhow::{Context, Result, ensure};
use clickhouse::ClickHouse;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use xtask::{cargo, ui};

/// Minimum total bytes of the documents of each kind of text (English, Chinese).
pub const BYTES: usize = 16_000_000;
/// Approximate bytes of a generated document, so that two rows fill a page of the table.
const DOCUMENT: usize = 3_900;
/// Maximum bytes of a document from `--documents`, so that a row fits into a page. Longer lines are
/// split.
const LINE: usize = 7_000;
/// Approximate number of bytes of a title: about ten words.
const TITLE: usize = 65;

/// Comparison of an SQL expression of neardup over the column `body` with expressions of other
/// programs. The other expressions are SQL expressions of ClickHouse over the column `t`. The
/// exception is [`jieba::CUT`], for which the benchmark calls jieba-rs.
pub struct Case {
    /// Name of the comparison in the table: kind of text, and features.
    pub what: &'static str,
    /// Name of the table with the documents.
    pub texts: &'static str,
    /// SQL expression of neardup over `body`.
    pub ours: &'static str,
    /// SQL expressions of ClickHouse over `t`, or [`jieba::CUT`]. Empty if neardup is measured
    /// alone.
    pub theirs: &'static [&'static str],
}

/// Cases of `--text`: simhash and MinHash functions, and reading the documents alone.
pub const CASES: &[Case] = &[
    Case {
        what: "English, 2 words",
        texts: "english",
        ours: "simhash(body)",
        theirs: &[
            "wordShingleSimHash(t, 2)",
            "wordShingleSimHashCaseInsensitiveUTF8(t, 2)",
        ],
    },
    Case {
        what: "English, 5 characters",
        texts: "english",
        ours: "simhash(body, 'char', 5)",
        theirs: &[
            "ngramSimHash(t, 5)",
            "ngramSimHashCaseInsensitiveUTF8(t, 5)",
        ],
    },
    Case {
        what: "Chinese, 2 words (characters)",
        texts: "chinese",
        ours: "simhash(body)",
        theirs: &["ngramSimHashUTF8(t, 2)"],
    },
    Case {
        what: "Chinese, 2 characters",
        texts: "chinese",
        ours: "simhash(body, 'char', 2)",
        theirs: &["ngramSimHashUTF8(t, 2)"],
    },
    Case {
        what: "English, 2 words, 128 bits",
        texts: "english",
        ours: "simhash128(body)",
        theirs: &[],
    },
    Case {
        what: "English, lines",
        texts: "english",
        ours: "simhash(body, 'line', 1)",
        theirs: &[],
    },
    Case {
        what: "Chinese, 2 words by jieba",
        texts: "chinese_words",
        ours: "simhash(body, 'jieba')",
        theirs: &[jieba::CUT],
    },
    Case {
        what: "English, set of 3 words",
        texts: "english",
        ours: "minhash64(body)",
        theirs: &[],
    },
    Case {
        what: "English, 3 words, 128 minima",
        texts: "english",
        ours: "minhash(body)",
        theirs: &[],
    },
    Case {
        what: "titles, 2 words",
        texts: "titles",
        ours: "simhash(body)",
        theirs: &["wordShingleSimHash(t, 2)"],
    },
    Case {
        what: "titles, set of 3 words",
        texts: "titles",
        ours: "minhash64(body)",
        theirs: &[],
    },
    Case {
        what: "titles, 3 words, 128 bits",
        texts: "titles",
        ours: "minhash128(body)",
        theirs: &[],
    },
    Case {
        what: "titles, 3 words, 128 minima",
        texts: "titles",
        ours: "minhash(body)",
        theirs: &[],
    },
    Case {
        what: "titles, reading alone",
        texts: "titles",
        ours: "nullif(octet_length(body), 0)",
        theirs: &["length(t)"],
    },
    Case {
        what: "reading alone",
        texts: "english",
        ours: "nullif(octet_length(body), 0)",
        theirs: &["length(t)"],
    },
];

/// Compares the expressions of `cases`, in an empty database with the extension. Prints the table
/// and returns all times as JSON. The lines of `file`, if there is one, replace the generated
/// English documents.
pub fn bench(
    session: &mut Session,
    rounds: u32,
    cases: &[Case],
    file: Option<&Path>,
) -> Result<Value> {
    let target = cargo::target_dir()?;
    let mut clickhouse = ClickHouse::start(&target)?;
    match &clickhouse {
        Some(clickhouse) => ui::note(format!("beside ClickHouse {}", clickhouse.version)),
        None => ui::note(format!(
            "without ClickHouse; to have it: {}",
            clickhouse::how_to_install(&target)
        )),
    }
    let bytes = ui::step("Making the texts", || {
        load(session, clickhouse.as_mut(), file)
    })?;
    let cut = (cases.iter().any(|case| case.theirs.contains(&jieba::CUT)))
        .then(|| jieba::Cut::new(lines(&texts::chinese_words(BYTES))));
    let mut measured: Vec<Vec<Vec<Time>>> = Vec::new();
    for case in cases {
        measured.push(vec![Vec::new(); 1 + case.theirs.len()]);
    }
    for round in 1..=rounds {
        ui::step(format!("Round {round} of {rounds}"), || {
            for (case, times) in cases.iter().zip(&mut measured) {
                let query = format!("SELECT count({}) FROM {}", case.ours, case.texts);
                times[0].extend(session.times(&query)?);
                for (function, times) in case.theirs.iter().zip(&mut times[1..]) {
                    if *function == jieba::CUT {
                        if let Some(cut) = &cut {
                            times.extend(cut.times()?);
                        }
                    } else if let Some(clickhouse) = &mut clickhouse {
                        let query =
                            format!("SELECT sum(toUInt64({function})) FROM bench.{}", case.texts);
                        times.extend(clickhouse.times(&query)?);
                    }
                }
            }
            Ok(())
        })?;
    }
    println!("\n{}", table(cases, &measured, &bytes));
    Ok(json!({
        "bytes": bytes,
        "clickhouse": clickhouse.map(|clickhouse| clickhouse.version.clone()),
        "rounds": rounds,
        "seconds": as_json(cases, &measured),
    }))
}

/// Total bytes of the documents in each table, without line breaks, by the table's name.
type Bytes = BTreeMap<&'static str, usize>;

/// Returns the documents in a file, one per line. Splits long lines, and repeats all documents
/// until they have at least [`BYTES`] bytes.
fn lines_of(file: &Path) -> Result<String> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let plain = text.replace(['\\', '\t', '\r'], " ");
    let documents = plain.lines().flat_map(|line| texts::documents(line, LINE));
    let documents: Vec<&str> = documents.filter(|text| !text.is_empty()).collect();
    ensure!(!documents.is_empty(), "{} is empty", file.display());
    let lines = documents.join("\n") + "\n";
    Ok(lines.repeat(BYTES.div_ceil(lines.len())))
}

/// Splits a generated text into documents of about [`DOCUMENT`] bytes. Returns one document per
/// line.
fn lines(text: &str) -> String {
    lines_of_size(text, DOCUMENT)
}

/// Splits a text into documents of about `size` bytes. Returns one document per line.
fn lines_of_size(text: &str, size: usize) -> String {
    texts::documents(&text.replace('\n', " "), size).join("\n") + "\n"
}

/// Loads the documents into tables of PostgreSQL and, if `clickhouse` is given, the same documents
/// into tables of ClickHouse. If `file` is given, its lines replace the generated English
/// documents. Returns the total bytes of the documents in each table.
fn load(
    session: &mut Session,
    mut clickhouse: Option<&mut ClickHouse>,
    file: Option<&Path>,
) -> Result<Bytes> {
    let english = match file {
        Some(file) => lines_of(file)?,
        None => lines(&texts::spaced(texts::LATIN, BYTES)),
    };
    let generated = [
        ("titles", lines_of_size(&english, TITLE)),
        ("english", english),
        ("chinese", lines(&texts::chinese(BYTES))),
        ("chinese_words", lines(&texts::chinese_words(BYTES))),
    ];
    let mut bytes = Bytes::new();
    for (name, lines) in generated {
        ensure!(
            !lines.contains(['\\', '\t', '\r']),
            "what COPY would read otherwise"
        );
        bytes.insert(name, lines.bytes().filter(|&byte| byte != b'\n').count());
        // PLAIN storage neither compresses a document nor moves it out of its row, so reading it
        // costs as little as possible.
        session
            .run(&format!("CREATE TABLE {name} (body text STORAGE PLAIN)"))
            .or_else(|_| {
                // PostgreSQL 15 sets a column's storage only by ALTER TABLE.
                session.run(&format!(
                "CREATE TABLE {name} (body text); ALTER TABLE {name} ALTER body SET STORAGE PLAIN"
            ))
            })?;
        let mut copy = session.client.copy_in(&format!("COPY {name} FROM STDIN"))?;
        copy.write_all(lines.as_bytes())?;
        copy.finish()?;
        session.run(&format!("VACUUM (FREEZE, ANALYZE) {name}"))?;
        if let Some(clickhouse) = clickhouse.as_deref_mut() {
            let file = std::env::temp_dir().join(format!("neardup-{}-{name}", std::process::id()));
            fs::write(&file, lines).with_context(|| format!("cannot write {}", file.display()))?;
            let loaded = clickhouse.load(name, &file);
            fs::remove_file(&file)?;
            loaded?;
        }
    }
    Ok(bytes)
}

/// Returns the minimum elapsed time and the minimum processor time of several runs, in seconds. The
/// processor time is `None` if it is unknown for a run. Returns `None` if `times` is empty.
fn best(times: &[Time]) -> Option<(f64, Option<f64>)> {
    let walls: Vec<f64> = times.iter().map(|time| time.wall).collect();
    let cpus: Option<Vec<f64>> = times.iter().map(|time| time.cpu).collect();
    (!times.is_empty()).then(|| (least(&walls), cpus.map(|cpus| least(&cpus))))
}

fn table(cases: &[Case], measured: &[Vec<Vec<Time>>], bytes: &Bytes) -> String {
    let mut out = String::new();
    let mut row = |cells: [&str; 6]| {
        let [what, ours, speed, theirs, their_speed, ratio] = cells;
        let _ = writeln!(
            out,
            "| {what:<29} | {ours:<29} | {speed:>8} | {theirs:<43} | {their_speed:>8} | \
                {ratio:>5} |"
        );
    };
    row([
        "text, features",
        "neardup",
        "MB/s",
        "ClickHouse",
        "MB/s",
        "ratio",
    ]);
    row(["---", "---", "---:", "---", "---:", "---:"]);
    for (case, times) in cases.iter().zip(measured) {
        let Some(ours) = best(&times[0]) else {
            continue;
        };
        // Speed by processor time, which excludes waiting for other programs, or by elapsed time if
        // the processor time is unknown.
        let speed =
            |(wall, cpu): (f64, Option<f64>)| bytes[case.texts] as f64 / cpu.unwrap_or(wall) / 1e6;
        let theirs: Vec<_> = (case.theirs.iter().zip(&times[1..]))
            .filter_map(|(function, times)| best(times).map(|best| (function, best)))
            .collect();
        if theirs.is_empty() {
            let speed = format!("{:.0}", speed(ours));
            row([case.what, case.ours, &speed, "", "", ""]);
        }
        for (function, theirs) in theirs {
            let ratio = speed(ours) / speed(theirs);
            row([
                case.what,
                case.ours,
                &format!("{:.0}", speed(ours)),
                function,
                &format!("{:.0}", speed(theirs)),
                &format!("{ratio:.2}"),
            ]);
        }
    }
    out
}

fn as_json(cases: &[Case], measured: &[Vec<Vec<Time>>]) -> Value {
    let seconds = |times: &[Time]| -> Vec<Value> {
        times
            .iter()
            .map(|time| json!([time.wall, time.cpu]))
            .collect()
    };
    let mut all = serde_json::Map::new();
    for (case, times) in cases.iter().zip(measured) {
        let functions = std::iter::once(&case.ours).chain(case.theirs);
        let each: serde_json::Map<String, Value> = functions
            .zip(times)
            .map(|(function, times)| ((*function).to_owned(), json!(seconds(times))))
            .collect();
        all.insert(case.what.to_owned(), Value::Object(each));
    }
    Value::Object(all)
}
