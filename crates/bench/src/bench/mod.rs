//! `cargo xtask bench`: compares neardup with other indexes, functions and libraries.
//! docs/benchmarks.md explains what each option measures.
mod ageing;
mod baseline;
mod blocking;
mod build;
mod clusters;
mod contenders;
mod generated_rows;
mod growth;
mod jobs;
mod limits;
mod load;
mod machine;
mod measure;
mod minhash;
mod report;
mod session;
mod text;
mod wide;

use anyhow::{Context, Result, bail};
use machine::Machine;
use neardup_pgserver::{Instance, Lock, Server, stop_leftovers};
use serde_json::{Value, json};
use session::Session;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xtask::setup::PgChoice;
use xtask::{cargo, extension, private, ui};

/// Heading in the help text of the options that choose one part of the benchmark.
const PARTS: &str = "Measure only one part";
/// Heading in the help text of the options that need an option of [`PARTS`].
const OF_A_PART: &str = "Options for one part";

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Options {
    /// Number of rows of the measured tables
    #[arg(long, default_value_t = SMALL)]
    #[arg(value_parser = clap::value_parser!(u64).range(generated_rows::MIN_ROWS..))]
    rows: u64,
    /// Measure at one million rows and then at ten million; takes 15 minutes and 4 GB of disk
    #[arg(long, conflicts_with = "rows")]
    full: bool,
    /// Measure only functions that make fingerprints of texts, beside ClickHouse's functions; takes
    /// a minute or two
    #[arg(long, conflicts_with_all = ["rows", "full", "shared_buffers"])]
    #[arg(help_heading = PARTS)]
    text: bool,
    /// With --text: a file whose lines replace the generated English documents
    #[arg(long, value_name = "FILE", requires = "text")]
    #[arg(help_heading = OF_A_PART)]
    documents: Option<PathBuf>,
    /// Measure only MinHash: functions that make signatures of texts, beside ClickHouse and rensa,
    /// and an index on signatures
    #[arg(long, conflicts_with_all = ["full", "text", "load", "wide", "shared_buffers"])]
    #[arg(help_heading = PARTS)]
    minhash: bool,
    /// Measure only jobs over a whole table of fingerprints (with --minhash: of signatures): the
    /// time, the memory and the temporary files of CREATE INDEX, neardup_pairs and neardup_clusters
    #[arg(long, conflicts_with_all = ["full", "text", "load", "wide"])]
    #[arg(help_heading = PARTS)]
    jobs: bool,
    /// Measure only loads in which three rows in ten are near-duplicates; takes two minutes
    #[arg(long, conflicts_with_all = ["text", "full", "wide"])]
    #[arg(help_heading = PARTS)]
    load: bool,
    /// Measure only builds of indexes: by one process, and with 1, 2 ... workers
    #[arg(long, conflicts_with_all = ["text", "full", "load", "wide", "jobs", "minhash"])]
    #[arg(help_heading = PARTS)]
    build: bool,
    /// With --build: the largest number of workers [default: the number of processors less one, but
    /// from 1 to 4]
    #[arg(long, value_name = "NUMBER", requires = "build")]
    #[arg(help_heading = OF_A_PART)]
    workers: Option<u32>,
    /// Measure only searches within radius 3, 8 and 12 and searches for the nearest rows, beside
    /// FAISS if --faiss is given; takes some 2 minutes for each million rows
    #[arg(long, conflicts_with_all = ["full", "text"])]
    #[arg(help_heading = PARTS)]
    wide: bool,
    /// Measure only searches, index builds, index sizes and pairs at 0.1, 0.3, 1, 3 ... million
    /// rows, up to --rows, beside the times that the cost model expects; up to 100 million rows it
    /// takes some 15 minutes and 20 GB of disk
    #[arg(long, conflicts_with_all = ["full", "text", "load", "wide", "jobs", "clusters"])]
    #[arg(help_heading = PARTS)]
    growth: bool,
    /// Measure only the ageing of an index: simulates months in which a share of the rows is
    /// replaced, with a VACUUM each month, and compares the index with a new one; a simulation of
    /// 300,000 rows takes about a minute
    #[arg(long)]
    #[arg(conflicts_with_all = ["full", "text", "load", "wide", "jobs", "clusters", "growth"])]
    #[arg(help_heading = PARTS)]
    ageing: bool,
    /// With --ageing: number of months
    #[arg(long, default_value_t = 36, requires = "ageing")]
    #[arg(help_heading = OF_A_PART)]
    months: u32,
    /// With --ageing: kinds of the simulated indexes
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "radius6",
        requires = "ageing"
    )]
    #[arg(help_heading = OF_A_PART)]
    kinds: Vec<ageing::Kind>,
    /// With --ageing: percentages of the rows that are replaced each month
    #[arg(long, value_delimiter = ',', default_value = "10", requires = "ageing")]
    #[arg(help_heading = OF_A_PART)]
    turnover: Vec<u32>,
    /// With --ageing: values of the option fillfactor
    #[arg(long, value_delimiter = ',', default_value = "90", requires = "ageing")]
    #[arg(help_heading = OF_A_PART)]
    fillfactor: Vec<u32>,
    /// Measure only the way from texts to clusters of near-duplicates: CREATE INDEX on
    /// simhash(body) or minhash(body), then neardup_clusters_by_key
    #[arg(long, conflicts_with_all = ["full", "text", "load", "wide", "jobs", "minhash", "build"])]
    #[arg(help_heading = PARTS)]
    clusters: bool,
    /// With --clusters: a Python interpreter that has rensa, text-dedup or datatrove, to compare
    /// neardup with them
    #[arg(long, value_name = "PYTHON", requires = "clusters")]
    #[arg(help_heading = OF_A_PART)]
    peers: Option<PathBuf>,
    /// With --peers: number of documents that each Python library clusters; neardup is measured
    /// with the same documents as well [default: 50000]
    #[arg(long, value_name = "NUMBER", requires = "peers")]
    #[arg(help_heading = OF_A_PART)]
    peer_rows: Option<u64>,
    /// With --growth or --ageing: write the plot to this SVG file
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = OF_A_PART)]
    svg: Option<PathBuf>,
    /// Compare the ratios of this run with those in crates/bench/baseline.json, which has ratios
    /// for one million and for ten million rows; exit with 1 if a ratio got worse
    #[arg(long, conflicts_with_all = ["text", "minhash", "jobs", "load", "wide", "clusters"])]
    baseline: bool,
    /// Store the ratios of this run in crates/bench/baseline.json
    #[arg(long, requires = "full", conflicts_with = "baseline")]
    save_baseline: bool,
    /// With --wide: a Python interpreter that has faiss-cpu, to compare neardup with FAISS
    #[arg(long, value_name = "PYTHON", requires = "wide")]
    #[arg(help_heading = OF_A_PART)]
    faiss: Option<PathBuf>,
    /// With --wide: search also among values like those in this tab-separated file, plain or .gz;
    /// each column of 16 hexadecimal digits is taken as fingerprints
    #[arg(long, value_name = "FILE", requires = "wide")]
    #[arg(help_heading = OF_A_PART)]
    hashes: Vec<PathBuf>,
    /// Number of times that builds, searches and inserts are repeated
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Size of the server's own cache, for example 512MB [default: large enough for all data; with
    /// --jobs or --growth 2GB]
    #[arg(long, value_name = "SIZE")]
    shared_buffers: Option<String>,
    /// Write the results as JSON to this file [default: in the folder bench of the target folder,
    /// ROWS.json or a file named after the option, such as text.json or load.json]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Default number of rows, and the smaller number of `--full`.
const SMALL: u64 = 1_000_000;
/// Larger number of rows of `--full`.
const LARGE: u64 = 10_000_000;
/// Name of the benchmark's server and of the lock that allows one benchmark at a time.
const PURPOSE: &str = "bench";

/// Runs `cargo xtask bench`: measures what the options select, prints tables and writes a JSON
/// file.
pub fn command(choice: &PgChoice, options: &Options) -> Result<ExitCode> {
    let private = private::prepare(choice)?;
    let dir = &private.instance.data_root;
    let Some(_lock) = Lock::try_take(dir, PURPOSE)? else {
        bail!("another cargo xtask bench is running");
    };
    stop_leftovers(dir, PURPOSE)?;
    let (instance, rounds) = (&private.instance, options.rounds);
    let json = options.json.as_deref();
    if options.text {
        let server = start(instance, &settings(SMALL, None))?;
        let documents = options.documents.as_deref();
        let result = bench_texts(&server, rounds, |session| {
            text::bench(session, rounds, text::CASES, documents)
        })?;
        return write(&result, "text", json);
    }
    if options.jobs {
        return bench_jobs(instance, options);
    }
    if options.minhash {
        // A signature and its entry in the index take 1.3 kB, twelve times as much as a
        // fingerprint.
        let server = start(instance, &settings(16 * options.rows, None))?;
        let result = bench_texts(&server, rounds, |session| {
            minhash::bench(session, options.rows, rounds)
        })?;
        return write(&result, "minhash", json);
    }
    let settings = settings(options.rows, options.shared_buffers.as_deref());
    if options.load {
        let server = start(instance, &settings)?;
        let result = bench_load(&server, options.rows, rounds)?;
        return write(&result, "load", json);
    }
    if options.build {
        return bench_builds(instance, options);
    }
    if options.wide {
        let server = start(instance, &settings)?;
        let result = bench_wide(&server, options, &settings)?;
        return write(&result, &format!("wide-{}", options.rows), json);
    }
    if options.clusters {
        return clusters::command(instance, options);
    }
    if options.growth {
        return bench_growth(instance, options);
    }
    if options.ageing {
        return bench_ageing(instance, options);
    }
    bench_searches(instance, options)
}

/// Compares neardup's index with other indexes by searches, builds, sizes and inserts, for each
/// number of rows. This is what `cargo xtask bench` does without an option that starts with
/// "Measure only".
fn bench_searches(instance: &Instance, options: &Options) -> Result<ExitCode> {
    let sizes = match options.full {
        true => vec![SMALL, LARGE],
        false => vec![options.rows],
    };
    let mut results = Vec::new();
    for &rows in &sizes {
        let settings = settings(rows, options.shared_buffers.as_deref());
        let server = start(instance, &settings)?;
        results.push(bench(&server, rows, options.rounds, &settings)?);
    }
    let name = sizes
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join("-");
    let results = json!({ "runs": results });
    let written = write(&results, &name, options.json.as_deref())?;
    if options.save_baseline {
        baseline::save(&results, &baseline::path())?;
    }
    if options.baseline && !baseline::compare(&results, &baseline::path())? {
        return Ok(ExitCode::FAILURE);
    }
    Ok(written)
}

/// Starts a temporary server for the benchmark. `settings` are pairs of a PostgreSQL setting and
/// its value.
fn start(instance: &Instance, settings: &[(&str, String)]) -> Result<Server> {
    ui::step("Starting a server for the benchmark", || {
        let pairs = settings.iter().map(|(name, value)| (*name, value.as_str()));
        Server::temporary(instance, PURPOSE, &pairs.collect::<Vec<_>>())
    })
}

/// Writes the results of a benchmark as JSON to `path`, or to `bench/NAME.json` in the target
/// folder.
fn write(results: &Value, name: &str, path: Option<&Path>) -> Result<ExitCode> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => cargo::target_dir()?
            .join("bench")
            .join(format!("{name}.json")),
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    let text = serde_json::to_string_pretty(results)? + "\n";
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    ui::note(format!("written to {}", path.display()));
    Ok(ExitCode::SUCCESS)
}

/// Runs `--load` on a started server. Returns the results as JSON.
fn bench_load(server: &Server, rows: u64, rounds: u32) -> Result<Value> {
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let mut result = load::bench(&mut session, rows, rounds)?;
    let load = [before, machine::load()];
    println!("{}", machine.line());
    println!("One thread, all in memory; the least of {rounds} rounds.");
    machine::print_load(load);
    result["blocking"] = blocking::bench(&mut session, &server.conninfo("postgres"))?;
    result["machine"] = machine.json();
    result["load"] = json!(load);
    Ok(result)
}

/// Runs `--build` on its own server: index builds by one process and with workers.
fn bench_builds(instance: &Instance, options: &Options) -> Result<ExitCode> {
    // A document takes 4 kB, forty times as much as a fingerprint. There are ten fingerprints for
    // each document, so data takes four times as much as the fingerprints alone.
    let settings = settings(4 * options.rows, options.shared_buffers.as_deref());
    let server = start(instance, &settings)?;
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let processors = std::thread::available_parallelism()?.get() as u32;
    let workers = options.workers.unwrap_or((processors - 1).clamp(1, 4));
    let mut result = build::bench(&mut session, options.rows, options.rounds, workers)?;
    let load = [before, machine::load()];
    println!("{}", machine.line());
    println!(
        "All in memory, maintenance_work_mem 1 GB; the least of {} rounds. The machine's load, in \
         which the workers count: {load:?}.",
        options.rounds
    );
    result["machine"] = machine.json();
    result["load"] = json!(load);
    write(&result, "build", options.json.as_deref())
}

/// Runs `--jobs` on its own server: CREATE INDEX, pairs and clusters of a whole table.
fn bench_jobs(instance: &Instance, options: &Options) -> Result<ExitCode> {
    let (subject, name) = match options.minhash {
        true => (&jobs::SIGNATURES, "jobs-minhash"),
        false => (&jobs::FINGERPRINTS, "jobs"),
    };
    // The tables should be larger than the cache; 2 GB is a quarter of a small server's memory.
    let buffers = options.shared_buffers.as_deref().unwrap_or("2GB");
    let settings = settings(options.rows, Some(buffers));
    let server = start(instance, &settings)?;
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let mut result = jobs::bench(&server.conninfo("postgres"), options.rows, subject)?;
    println!("{}; shared_buffers = {buffers}", machine.line());
    result["machine"] = machine.json();
    result["load"] = json!([before, machine::load()]);
    let name = format!("{name}-{}", options.rows);
    write(&result, &name, options.json.as_deref())
}

/// Runs `--growth` on its own server. The server's cache has the same size for all numbers of rows,
/// as it would on one machine.
fn bench_growth(instance: &Instance, options: &Options) -> Result<ExitCode> {
    let buffers = options.shared_buffers.as_deref().unwrap_or("2GB");
    let server = start(instance, &settings(options.rows, Some(buffers)))?;
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let points: Result<Vec<_>> = (growth::sizes(options.rows).into_iter())
        .map(|rows| growth::measure(&mut session, rows))
        .collect();
    println!("{}; shared_buffers = {buffers}", machine.line());
    let mut result = growth::report(&points?, options.svg.as_deref())?;
    result["machine"] = machine.json();
    result["load"] = json!([before, machine::load()]);
    let name = format!("growth-{}", options.rows);
    write(&result, &name, options.json.as_deref())
}

/// Runs `--ageing` on its own server: one simulation for each combination of the options.
fn bench_ageing(instance: &Instance, options: &Options) -> Result<ExitCode> {
    // A signature with its index entries takes twelve times as much as a fingerprint. Updated rows
    // and the new index also need space.
    let signatures = options.kinds.contains(&ageing::Kind::Signatures);
    let rows = if signatures { 24 } else { 2 } * options.rows;
    let server = start(instance, &settings(rows, options.shared_buffers.as_deref()))?;
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let mut simulations = Vec::new();
    for &kind in &options.kinds {
        for &turnover in &options.turnover {
            for &fill in &options.fillfactor {
                let setup = ageing::Setup {
                    kind,
                    rows: options.rows,
                    turnover,
                    fill,
                    months: options.months,
                };
                simulations.push(ageing::simulate(&mut session, setup)?);
            }
        }
    }
    println!("{}", machine.line());
    let mut result = ageing::report(&simulations, options.svg.as_deref())?;
    result["machine"] = machine.json();
    result["load"] = json!([before, machine::load()]);
    let name = format!("ageing-{}", options.rows);
    write(&result, &name, options.json.as_deref())
}

/// Runs `bench`, which measures functions over texts (`--text` or `--minhash`), on a started
/// server. Returns its results as JSON, with facts about the machine.
fn bench_texts(
    server: &Server,
    rounds: u32,
    bench: impl FnOnce(&mut Session) -> Result<Value>,
) -> Result<Value> {
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let mut result = bench(&mut session)?;
    let load = [before, machine::load()];
    println!("{}", machine.line());
    println!(
        "One thread, warm cache; the least processor time of all repetitions in {rounds} rounds. \
         Ratio: theirs to neardup's time, above 1 neardup is better."
    );
    machine::print_load(load);
    result["machine"] = machine.json();
    result["load"] = json!(load);
    Ok(result)
}

/// Runs `--wide` on a started server: searches with larger radii than the index is built for, and
/// searches for the nearest rows. Returns the results as JSON.
fn bench_wide(server: &Server, options: &Options, settings: &[(&str, String)]) -> Result<Value> {
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let before = machine::load();
    let faiss = options.faiss.as_deref();
    let mut result = wide::bench(
        &mut session,
        options.rows,
        options.rounds,
        faiss,
        &options.hashes,
    )?;
    let load = [before, machine::load()];
    print_conditions(&machine, settings, options.rounds, load);
    println!("\n{}", wide::table(&result));
    result["machine"] = machine.json();
    result["load"] = json!(load);
    Ok(result)
}

/// Compares searches, builds, sizes and inserts at one number of rows. Prints the table. Returns
/// the lines of the table and all measurements as JSON.
fn bench(server: &Server, rows: u64, rounds: u32, settings: &[(&str, String)]) -> Result<Value> {
    let mut session = Session::open(&server.conninfo("postgres"))?;
    session.run(&format!("CREATE EXTENSION {}", extension::NAME))?;
    let machine = Machine::ask(&mut session)?;
    let load = [machine::load()];
    let mut measured = measure::run(&mut session, rows, rounds)?;
    limits::add(&mut measured);
    let load = [load[0], machine::load()];
    println!("\n{rows} rows");
    print_conditions(&machine, settings, rounds, load);
    println!("\n{}", report::table(&measured));
    let mut json = report::json(&measured);
    json["machine"] = machine.json();
    json["load"] = json!(load);
    json["rounds"] = json!(rounds);
    json["settings"] = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    Ok(json)
}

/// Prints the machine, the server's settings, the number of rounds and the load before and after a
/// measurement.
fn print_conditions(
    machine: &Machine,
    settings: &[(&str, String)],
    rounds: u32,
    load: [Option<f64>; 2],
) {
    println!("{}", machine.line());
    let listed: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    println!("{}", listed.join(", "));
    println!(
        "One thread, warm cache; the least of all repetitions in {rounds} rounds. Ratio: theirs to \
         neardup's, above 1 neardup is better; by CPU time it leaves out waiting for the disk and \
         for \
         other programs."
    );
    machine::print_load(load);
}

/// Returns the settings of the benchmark's server. `buffers` is the size of the server's cache. If
/// it is `None`, the cache has room for all measured data of `rows` rows. The other settings
/// prevent checkpoints and background work. They make a query use one process and no compiled
/// expressions.
fn settings(rows: u64, buffers: Option<&str>) -> Vec<(&'static str, String)> {
    // 256 bytes a row hold the table and the indexes of one contender, and keep the table below a
    // quarter of the cache. PostgreSQL reads a larger table through a small ring of buffers, so
    // that a sequential scan would not find it in the cache.
    let all = || format!("{}MB", (rows * 256 / (1 << 20)).max(512));
    let buffers = buffers.map_or_else(all, str::to_owned);
    let fixed = [
        ("max_parallel_workers_per_gather", "0"),
        ("max_parallel_maintenance_workers", "0"),
        ("jit", "off"),
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
        ("max_wal_size", "32GB"),
    ];
    let mut settings = vec![("shared_buffers", buffers)];
    settings.extend(fixed.map(|(name, value)| (name, value.to_owned())));
    settings
}
