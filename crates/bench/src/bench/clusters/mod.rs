//! `cargo xtask bench --clusters`: measures the time from texts to clusters of near-duplicates, and
//! compares it with the time of Python libraries on the same documents.
mod agreement;
mod corpus;
mod peers;

use super::machine::{self, Machine};
use super::report::{aligned, number};
use super::session::{Session, Time, least};
use super::{Options, settings, start, write};
use agreement::{Agreement, agreement};
use anyhow::Result;
use corpus::Corpus;
use neardup_pgserver::Instance;
use peers::{PEERS, Peer};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xtask::{extension, ui};

/// Default number of documents that the Python libraries cluster. neardup is also measured on these
/// documents.
pub const SHARED: u64 = 50_000;
/// Total seconds of a Python library's runs after which later rounds skip this library.
const PATIENCE: f64 = 30.0;

/// Work of neardup that is measured: building an index on an expression, and clustering the
/// documents with this index.
struct Job {
    what: &'static str,
    /// Indexed expression and options of the index, after `USING neardup`.
    index: &'static str,
    /// SQL argument of `neardup_clusters_by_key`: the radius, or the minimum similarity.
    limit: &'static str,
}

const JOBS: [Job; 2] = [
    Job {
        what: "neardup, simhash(body) within 8",
        index: "(simhash(body))",
        limit: "8",
    },
    Job {
        what: "neardup, minhash(body), 0.8",
        index: "(minhash(body)) WITH (similarity = 0.8)",
        limit: "similarity => 0.8",
    },
];

/// Measurements of one run of neardup or of a Python library.
struct Measured {
    /// Version of the Python library; `None` for neardup.
    version: Option<String>,
    /// Time from the texts, which are in a table or in memory, to the clusters.
    time: Time,
    /// Time of `CREATE INDEX`, which `time` includes; `None` for a Python library.
    index: Option<Time>,
    /// Pairs of a document number and an identifier of the document's cluster.
    clusters: Vec<(u64, u64)>,
}

/// Line of the table: all runs of one neardup job or of one Python library.
struct TableLine {
    what: &'static str,
    documents: u64,
    /// Command that would install the missing Python library. `None` if the library is installed,
    /// or if the line is about neardup.
    absent: Option<String>,
    version: Option<String>,
    times: Vec<Time>,
    index: Vec<Time>,
    agreement: Option<Agreement>,
}

/// Runs `--clusters` on its own server: measures neardup and the Python libraries, prints the table
/// and writes the results as JSON.
pub fn command(instance: &Instance, options: &Options) -> Result<ExitCode> {
    // A document takes a kilobyte, ten times as much as a fingerprint.
    let settings = settings(16 * options.rows, options.shared_buffers.as_deref());
    let server = start(instance, &settings)?;
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let python = options.peers.as_deref();
    let shared = options.peer_rows.unwrap_or(SHARED).min(options.rows);
    let mut sizes = vec![options.rows];
    if python.is_some() && shared < options.rows {
        sizes.insert(0, shared);
    }
    let (corpus, mut sides, mut bytes) = (Corpus::new(), Vec::new(), Vec::new());
    for documents in sizes {
        let python = python.filter(|_| documents == shared);
        let mut bench = Bench::new(&mut session, &corpus, documents, python)?;
        for round in 1..=options.rounds {
            let step = format!("Round {round} of {}, {documents} documents", options.rounds);
            ui::step(step, || bench.round())?;
        }
        bytes.push(bench.bytes);
        sides.extend(bench.sides);
    }
    let load = [before, machine::load()];
    println!("\n{}", table(&sides));
    println!("{}", machine.line());
    println!(
        "One process each, warm cache; the least of {} rounds. Documents a second by the time on a \
         processor; ratio: theirs to that of neardup's first line, above 1 neardup is better.",
        options.rounds
    );
    machine::print_load(load);
    if python.is_none() {
        ui::note("nothing to compare with: --peers PYTHON names an interpreter that has libraries");
    }
    for side in &sides {
        if let Some(how) = &side.absent {
            ui::note(format!("{} is absent; to have it: {how}", side.what));
        }
    }
    let sides: Vec<Value> = sides.iter().map(TableLine::json).collect();
    let result = json!({
        "rounds": options.rounds, "bytes": bytes, "sides": sides,
        "machine": machine.json(), "load": load,
    });
    let name = format!("clusters-{}", options.rows);
    write(&result, &name, options.json.as_deref())
}

/// Measurements of all jobs and Python libraries on the first documents of the corpus.
struct Bench<'a> {
    session: &'a mut Session,
    /// Python interpreter, and the file of documents that the libraries' programs read; `None` if
    /// this run of the benchmark does not measure the libraries.
    python: Option<(&'a Path, PathBuf)>,
    _files: tempfile::TempDir,
    /// Number of the original of each document, by document number. Documents with the same
    /// original form a true cluster.
    truth: Vec<u64>,
    /// Total bytes of the documents.
    bytes: usize,
    /// A table line for each of [`JOBS`], followed by a table line for each of [`PEERS`] if
    /// `python` is given.
    sides: Vec<TableLine>,
}

impl<'a> Bench<'a> {
    /// Loads `documents` documents of `corpus`, and finds out which Python libraries are installed.
    fn new(
        session: &'a mut Session,
        corpus: &Corpus,
        documents: u64,
        python: Option<&'a Path>,
    ) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let path = files.path().join("documents.jsonl");
        let bytes = ui::step(format!("Making {documents} documents"), || {
            load(session, corpus, documents, python.map(|_| path.as_path()))
        })?;
        let mut sides: Vec<TableLine> = (JOBS.iter())
            .map(|job| TableLine::new(job.what, documents))
            .collect();
        for peer in PEERS.iter().filter(|_| python.is_some()) {
            let mut side = TableLine::new(peer.what, documents);
            if let Some(python) = python
                && !peer.is_installed(python)?
            {
                let (python, packages) = (python.display(), peer.packages);
                side.absent = Some(format!("{python} -m pip install {packages}"));
            }
            sides.push(side);
        }
        Ok(Self {
            session,
            python: python.map(|python| (python, path)),
            _files: files,
            truth: (0..documents).map(corpus::original).collect(),
            bytes,
            sides,
        })
    }

    /// Runs each job and each installed Python library once. Skips a library if its earlier runs
    /// took [`PATIENCE`] seconds or more in total.
    fn round(&mut self) -> Result<()> {
        let peers = PEERS.iter().map(Work::Peer);
        let works: Vec<Work> = JOBS.iter().map(Work::Job).chain(peers).collect();
        for (work, side) in works.iter().zip(&mut self.sides) {
            let spent: f64 = side.times.iter().map(|time| time.wall).sum();
            let measured = match (work, &self.python) {
                (Work::Job(job), _) => job.run(self.session)?,
                (Work::Peer(peer), Some((python, path)))
                    if side.absent.is_none() && spent < PATIENCE =>
                {
                    peer.run(python, path)?
                }
                _ => continue,
            };
            side.add(measured, &self.truth);
        }
        Ok(())
    }
}

/// Work that one line of the table measures: a job of neardup or a Python library.
enum Work {
    Job(&'static Job),
    Peer(&'static Peer),
}

impl Job {
    /// Builds the index, stores the clusters in a table, reads them, and rolls all of this back.
    /// Returns the times and the clusters.
    fn run(&self, session: &mut Session) -> Result<Measured> {
        let index = format!("CREATE INDEX ON documents USING neardup {}", self.index);
        let clusters = format!(
            "CREATE TABLE clusters AS SELECT member, representative FROM neardup_clusters_by_key( \
                NULL::bigint, 'documents', {}, key => 'id', method => 'connected')",
            self.limit
        );
        session.run("BEGIN")?;
        let index = session.timed(&index)?;
        let time = session.timed(&clusters)?.plus(index);
        let pairs = session.pairs("SELECT member, representative FROM clusters")?;
        session.run("ROLLBACK; CHECKPOINT")?;
        let clusters = pairs
            .iter()
            .map(|(a, b)| (a.cast_unsigned(), b.cast_unsigned()));
        Ok(Measured {
            version: None,
            time,
            index: Some(index),
            clusters: clusters.collect(),
        })
    }
}

impl TableLine {
    fn new(what: &'static str, documents: u64) -> Self {
        Self {
            what,
            documents,
            absent: None,
            version: None,
            times: Vec::new(),
            index: Vec::new(),
            agreement: None,
        }
    }

    fn add(&mut self, measured: Measured, truth: &[u64]) {
        self.times.push(measured.time);
        self.index.extend(measured.index);
        self.version = measured.version;
        self.agreement = Some(agreement(truth, &measured.clusters));
    }

    /// Returns the smallest processor time of all runs in seconds, or the smallest elapsed time if
    /// the processor time is unknown.
    fn on_processor(&self) -> f64 {
        let of = |time: &Time| time.cpu.unwrap_or(time.wall);
        least(&self.times.iter().map(of).collect::<Vec<_>>())
    }

    fn json(&self) -> Value {
        let seconds = |times: &[Time]| -> Vec<Value> {
            let each = times.iter().map(|time| json!([time.wall, time.cpu]));
            each.collect()
        };
        json!({
            "what": self.what, "documents": self.documents, "version": self.version,
            "absent": self.absent.is_some(), "seconds": seconds(&self.times),
            "index_seconds": seconds(&self.index),
            "recall": self.agreement.map(|it| it.recall),
            "precision": self.agreement.map(|it| it.precision),
        })
    }
}

/// Loads `documents` documents of `corpus` into the table `documents (id, body)`, and writes them
/// to the JSON lines file `path` if it is given. Returns their total bytes.
fn load(
    session: &mut Session,
    corpus: &Corpus,
    documents: u64,
    path: Option<&Path>,
) -> Result<usize> {
    session.run(
        "DROP TABLE IF EXISTS documents; CREATE TABLE documents (id bigint NOT NULL, body text)",
    )?;
    let mut file = path.map(File::create).transpose()?.map(BufWriter::new);
    let mut copy = (session.client).copy_in("COPY documents FROM STDIN")?;
    let mut bytes = 0;
    for number in 0..documents {
        let text = corpus.text(number);
        bytes += text.len();
        writeln!(copy, "{number}\t{text}")?;
        if let Some(file) = &mut file {
            writeln!(
                file,
                "{}",
                json!({ "id": number.to_string(), "text": text })
            )?;
        }
    }
    copy.finish()?;
    if let Some(mut file) = file {
        file.flush()?;
    }
    session.run("VACUUM (FREEZE, ANALYZE) documents")?;
    session.run("CHECKPOINT; SET maintenance_work_mem = '1GB'")?;
    Ok(bytes)
}

/// Returns the measurements as a Markdown table. Each line has a ratio: its processor time divided
/// by the processor time of the first line with the same number of documents.
fn table(sides: &[TableLine]) -> String {
    let header = [
        "documents",
        "by",
        "time",
        "on a processor",
        "`CREATE INDEX`",
        "documents/s",
        "ratio",
        "recall",
        "precision",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    for side in sides {
        let mut by = side.what.to_owned();
        if side.times.is_empty() {
            by += ": absent";
        }
        let mut row = [const { String::new() }; 9];
        row[0] = side.documents.to_string();
        row[1] = by;
        if !side.times.is_empty() {
            let seconds = |times: &[Time]| {
                let walls: Vec<f64> = times.iter().map(|time| time.wall).collect();
                match walls.is_empty() {
                    true => String::new(),
                    false => format!("{} s", number(least(&walls))),
                }
            };
            let first = sides.iter().find(|it| it.documents == side.documents);
            let ratio = first.map(|first| side.on_processor() / first.on_processor());
            row[2] = seconds(&side.times);
            row[3] = format!("{} s", number(side.on_processor()));
            row[4] = seconds(&side.index);
            row[5] = format!("{:.0}", side.documents as f64 / side.on_processor());
            row[6] = ratio.map_or(String::new(), number);
        }
        if let Some(Agreement { recall, precision }) = side.agreement {
            [row[7], row[8]] = [number(recall), number(precision)];
        }
        cells.push(row);
    }
    aligned(&cells, &[1])
}
