//! `cargo xtask bench --jobs`: measures CREATE INDEX, `neardup_pairs` and `neardup_clusters` over a
//! whole table, with the memory and the temporary files that each uses.
use super::session::{Session, Time};
use super::{generated_rows, minhash};
use anyhow::{Context, Result, anyhow};
use postgres::{Client, NoTls};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use xtask::ui;

/// Table with a column of fingerprints or signatures, and the parts of the measured SQL statements
/// that depend on the table.
pub struct Subject {
    what: &'static str,
    table: &'static str,
    index: &'static str,
    /// SQL argument of `neardup_pairs` and `neardup_clusters`: the radius, or the minimum
    /// similarity.
    limit: &'static str,
    load: fn(&mut Session, u64) -> Result<()>,
}

/// Table of 64-bit fingerprints. Three in ten fingerprints are near-duplicates of an earlier
/// fingerprint in the table.
pub const FINGERPRINTS: Subject = Subject {
    what: "fingerprints of 64 bits within 3 bits",
    table: "docs",
    index: "CREATE INDEX docs_near ON docs USING neardup (fp bigint_hamming_ops) \
            WITH (radius = 3)",
    limit: "3",
    load: |session, rows| generated_rows::load_near(session, "docs", rows),
};
/// Table of signatures of 128 hashes, made from generated documents. About a third of the documents
/// belong to groups of five similar versions.
pub const SIGNATURES: Subject = Subject {
    what: "signatures of 128 hashes within similarity 0.8",
    table: "signatures",
    index: "CREATE INDEX signatures_near ON signatures USING neardup (sig) \
            WITH (similarity = 0.8)",
    limit: "similarity => 0.8",
    load: minhash::load_signatures,
};

/// Interval at which the memory and the temporary files of a running statement are sampled.
const INTERVAL: Duration = Duration::from_millis(20);

/// Largest sampled memory and temporary files of a statement, in bytes.
#[derive(Clone, Copy, Default)]
struct Peak {
    /// Private memory of the statement's server process. 0 where the system does not report it.
    memory: u64,
    /// Total size of the temporary files of all server processes.
    temporary: u64,
}

/// Measurements of one statement.
struct Done {
    what: String,
    time: Time,
    peak: Peak,
    /// Count that the measured query returns. 0 for CREATE INDEX.
    found: i64,
}

/// Loads `rows` rows of `subject` into an empty database with the extension, and measures the jobs
/// with two sizes of `maintenance_work_mem`. Prints the table and returns its figures as JSON.
pub fn bench(conninfo: &str, rows: u64, subject: &Subject) -> Result<Value> {
    let mut session = Session::open(conninfo)?;
    ui::step(format!("Loading {rows} rows"), || {
        (subject.load)(&mut session, rows)?;
        session.run("CHECKPOINT")
    })?;
    let (table, limit) = (subject.table, subject.limit);
    let count = |function: &str, more: &str| {
        format!("SELECT count(*) FROM {function}('{table}', {limit}{more})")
    };
    let connected = ", method => 'connected'";
    let jobs = [
        ("CREATE INDEX", subject.index.to_owned()),
        ("neardup_pairs", count("neardup_pairs", "")),
        ("neardup_clusters", count("neardup_clusters", "")),
        (
            "neardup_clusters, connected",
            count("neardup_clusters", connected),
        ),
    ];
    let mut all = Vec::new();
    for memory in ["64MB", "1GB"] {
        let set = format!("SET maintenance_work_mem = '{memory}'");
        for (what, statement) in &jobs {
            let what = format!("{what}, maintenance_work_mem {memory}");
            // Each job has its own session, so that it finds no state of the previous job.
            let mut session = Session::open(conninfo)?;
            session.run(&set)?;
            let done = ui::step(what.clone(), || watched(session, conninfo, what, statement))?;
            all.push(done);
        }
        if memory == "64MB" {
            session.run(&format!("DROP INDEX {table}_near"))?;
        }
    }
    let size = |session: &mut Session, function: &str, name: &str| -> Result<i64> {
        session.value(&format!("SELECT {function}('{name}')"))
    };
    let heap = size(&mut session, "pg_table_size", table)?;
    let index = size(&mut session, "pg_relation_size", &format!("{table}_near"))?;
    println!("\n{rows} rows: {}", subject.what);
    println!("table {}, index {}", size_of(heap), size_of(index));
    println!("\n{}", report(&all));
    let jobs: Vec<Value> = (all.iter())
        .map(|done| {
            json!({
                "what": done.what, "seconds": done.time.wall, "cpu_seconds": done.time.cpu,
                "memory_bytes": done.peak.memory, "temporary_bytes": done.peak.temporary,
                "rows": done.found,
            })
        })
        .collect();
    Ok(json!({
        "rows": rows, "what": subject.what, "table_bytes": heap, "index_bytes": index,
        "jobs": jobs,
    }))
}

/// Runs the statement `statement` in `session`, and returns its measurements under the name `what`.
/// Meanwhile another connection, to the database `conninfo`, samples the memory and the temporary
/// files that the statement uses.
fn watched(mut session: Session, conninfo: &str, what: String, statement: &str) -> Result<Done> {
    let pid: i32 = session.value("SELECT pg_backend_pid()")?;
    let mut observer = Client::connect(conninfo, NoTls).context("cannot connect to the server")?;
    let stop = AtomicBool::new(false);
    let (result, peak) = thread::scope(|scope| {
        let watch = scope.spawn(|| watch(&mut observer, pid, &stop));
        let result = run(&mut session, statement);
        stop.store(true, Ordering::Relaxed);
        (result, watch.join())
    });
    let (time, found) = result?;
    let peak = peak.map_err(|_| anyhow!("the watching thread has panicked"))??;
    Ok(Done {
        what,
        time,
        peak,
        found,
    })
}

/// Runs `statement` once: a query that returns a count, or a command. Returns the time of the
/// statement, and the count, which is 0 for a command.
fn run(session: &mut Session, statement: &str) -> Result<(Time, i64)> {
    if statement.starts_with("SELECT") {
        return session.timed_value(statement);
    }
    Ok((session.timed(statement)?, 0))
}

fn watch(observer: &mut Client, pid: i32, stop: &AtomicBool) -> Result<Peak> {
    let mut peak = Peak::default();
    let status = format!("/proc/{pid}/status");
    let size = observer.prepare("SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_tmpdir()")?;
    while !stop.load(Ordering::Relaxed) {
        let temporary: i64 = observer.query_one(&size, &[])?.get(0);
        peak.temporary = peak.temporary.max(temporary.cast_unsigned());
        peak.memory = peak.memory.max(own_memory(&status).unwrap_or_default());
        thread::sleep(INTERVAL);
    }
    Ok(peak)
}

/// Returns the private memory of a process in bytes: memory that is neither shared nor part of a
/// file. `status` is the path of the process's file `/proc/PID/status`. Returns `None` if the
/// system does not report the memory.
fn own_memory(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find(|line| line.starts_with("RssAnon:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the measurements as a Markdown table.
fn report(all: &[Done]) -> String {
    let mut table = String::from(
        "| job | time | on a processor | memory | temporary files | rows |\n\
         |---|---:|---:|---:|---:|---:|\n",
    );
    for Done {
        what,
        time,
        peak,
        found,
    } in all
    {
        let cpu = time.cpu.map_or(String::new(), |cpu| format!("{cpu:.2} s"));
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {what} | {:.2} s | {cpu} | {} | {} | {} |",
            time.wall,
            size_of(peak.memory.cast_signed()),
            size_of(peak.temporary.cast_signed()),
            if *found > 0 {
                found.to_string()
            } else {
                String::new()
            },
        );
    }
    table
}

fn size_of(bytes: i64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}
