//! `cargo xtask bench --build`: compares the times of index builds by one process and with workers.
use super::generated_rows;
use super::session::{Session, Time, least};
use super::text::texts;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use xtask::ui;

/// Approximate size of a document, in bytes. Two rows with such documents fill a page.
const DOCUMENT: usize = 3_900;
/// Total bytes of the distinct documents. The table repeats each document many times, with a
/// different number in front of each repetition.
const BYTES: usize = 16_000_000;
/// Ratio of the row counts of the two tables: `docs`, which has fingerprints, has this many times
/// as many rows as `documents`, which has texts.
const ROWS_PER_DOCUMENT: u64 = 10;

/// Index whose build is measured.
struct Subject {
    what: &'static str,
    /// Table, access method, columns and options: the text after `CREATE INDEX built ON`.
    definition: &'static str,
}

const SUBJECTS: [Subject; 5] = [
    Subject {
        what: "neardup on simhash(body)",
        definition: "documents USING neardup (simhash(body))",
    },
    Subject {
        what: "neardup on minhash(body)",
        definition: "documents USING neardup (minhash(body))",
    },
    Subject {
        what: "btree on simhash(body)",
        definition: "documents (simhash(body))",
    },
    Subject {
        what: "neardup on a column",
        definition: "docs USING neardup (fp bigint_hamming_ops) WITH (radius = 3)",
    },
    Subject {
        what: "btree on a column",
        definition: "docs (fp)",
    },
];

/// Measures the index builds in an empty database with the extension. Each build is measured
/// without workers and with 1 to `workers` workers, `rounds` times. `rows` is the number of
/// fingerprints. Prints a table and returns all times as JSON.
pub fn bench(session: &mut Session, rows: u64, rounds: u32, workers: u32) -> Result<Value> {
    let documents = rows / ROWS_PER_DOCUMENT;
    let step = format!("Loading {rows} fingerprints and {documents} documents");
    ui::step(step, || load(session, rows, documents))?;
    session.run("SET maintenance_work_mem = '1GB'")?;
    let mut measured = vec![vec![Vec::<Time>::new(); workers as usize + 1]; SUBJECTS.len()];
    for round in 1..=rounds {
        for (subject, times) in SUBJECTS.iter().zip(&mut measured) {
            let step = format!("Round {round} of {rounds}, {}", subject.what);
            ui::step(step, || {
                for (workers, times) in times.iter_mut().enumerate() {
                    times.push(build(session, subject, workers)?);
                }
                Ok(())
            })?;
        }
    }
    println!("\n{}", table(&measured));
    let subjects: Vec<Value> = (SUBJECTS.iter().zip(&measured))
        .map(|(subject, times)| {
            let by_workers = times.iter().map(|times| {
                json!({
                    "seconds": times.iter().map(|time| time.wall).collect::<Vec<_>>(),
                    "leader_cpu_seconds": times.iter().map(|time| time.cpu).collect::<Vec<_>>(),
                })
            });
            json!({ "what": subject.what, "by_workers": by_workers.collect::<Vec<_>>() })
        })
        .collect();
    Ok(json!({ "rows": rows, "documents": documents, "rounds": rounds, "subjects": subjects }))
}

/// Loads `docs (id, fp)` with `rows` fingerprints and `documents (id, body)` with `documents`
/// texts.
fn load(session: &mut Session, rows: u64, documents: u64) -> Result<()> {
    generated_rows::load_near(session, "docs", rows)?;
    let text = texts::spaced(texts::LATIN, BYTES).replace('\n', " ");
    let different = texts::documents(&text, DOCUMENT);
    // PLAIN storage does not compress the documents, so a build spends its time on the expression.
    session.run(
        "CREATE TABLE different (n bigint GENERATED ALWAYS AS IDENTITY (MINVALUE 0), body text);
         CREATE TABLE documents (id bigint, body text);
         ALTER TABLE documents ALTER body SET STORAGE PLAIN",
    )?;
    let mut copy = (session.client).copy_in("COPY different (body) FROM STDIN")?;
    for document in &different {
        writeln!(copy, "{document}")?;
    }
    copy.finish()?;
    session.run(&format!(
        "INSERT INTO documents SELECT i, i || ' ' || body \
            FROM generate_series(1, {documents}) i JOIN different ON n = i % {}",
        different.len()
    ))?;
    session.run("VACUUM (FREEZE, ANALYZE) docs, documents")?;
    session.run("CHECKPOINT")
}

/// Builds the index of `subject` by the server process and `workers` parallel workers, and drops
/// the index again. Returns the time of the build.
fn build(session: &mut Session, subject: &Subject, workers: usize) -> Result<Time> {
    session.run(&format!(
        "SET max_parallel_maintenance_workers = {workers};
         ALTER TABLE docs SET (parallel_workers = {workers});
         ALTER TABLE documents SET (parallel_workers = {workers})"
    ))?;
    let time = session.timed(&format!("CREATE INDEX built ON {}", subject.definition))?;
    session.run("DROP INDEX built")?;
    session.run("CHECKPOINT")?;
    Ok(time)
}

/// Returns the measurements as a Markdown table.
fn table(measured: &[Vec<Vec<Time>>]) -> String {
    let mut table = String::from(
        "| index | workers | time | times as fast | the leader on a processor |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for (subject, by_workers) in SUBJECTS.iter().zip(measured) {
        let wall = |times: &[Time]| least(&times.iter().map(|it| it.wall).collect::<Vec<_>>());
        let alone = wall(&by_workers[0]);
        for (workers, times) in by_workers.iter().enumerate() {
            let cpu: Option<Vec<f64>> = times.iter().map(|time| time.cpu).collect();
            let cpu = cpu.map_or(String::new(), |cpu| format!("{:.2} s", least(&cpu)));
            let (what, time) = (subject.what, wall(times));
            // Writing to a string does not fail.
            let _ = writeln!(
                table,
                "| {what} | {workers} | {time:.2} s | {:.2} | {cpu} |",
                alone / time
            );
        }
    }
    table
}
