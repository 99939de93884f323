//! `cargo xtask demo`: loads documents into a private server and runs `demo.sql` on them, which
//! shows their near-duplicates and writes a report.
mod documents;

use crate::setup::PgChoice;
use crate::{cargo, private, psql, ui};
use anyhow::{Context, Result, ensure};
use documents::{Loader, Source};
use neardup_pgserver::Server;
use std::fs::OpenOptions;
use std::io::BufWriter;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, Stdio};

/// SQL script of the demo, from the workspace's root.
const SCRIPT: &str = "xtask/src/demo/demo.sql";
const SIGPIPE: i32 = 13;

/// Runs the demo with the documents at `path`, or with documents of this machine if there is no
/// path. Writes the HTML report to the file `report`, or to `demo-report.html` in the target
/// folder.
///
/// # Errors
/// If the documents cannot be read, the set-up or a statement fails, or the report cannot be
/// written.
pub fn command(choice: &PgChoice, path: Option<&Path>, report: Option<&Path>) -> Result<ExitCode> {
    // Checks both paths now, because the build takes minutes.
    let source = Source::new(path)?;
    let report = match report {
        Some(file) => file.to_owned(),
        None => cargo::target_dir()?.join("demo-report.html"),
    };
    let opened = OpenOptions::new().append(true).create(true).open(&report);
    opened.with_context(|| format!("cannot write {}", report.display()))?;
    let private = private::prepare(choice)?;
    let lock = psql::take_lock(&private)?;
    let server = psql::start(&private, true)?;
    psql::create_database(&server)?;
    psql::remember_scripts(&private, &server)?;
    run(&server, &source, &report)?;
    drop(server);
    drop(lock);
    Ok(ExitCode::SUCCESS)
}

fn run(server: &Server, source: &Source, report: &Path) -> Result<()> {
    let mut psql = server.psql(psql::DATABASE);
    psql.arg("-f").arg(cargo::workspace().join(SCRIPT));
    psql.arg(format!("--set=source={}", source.describe()));
    psql.arg(format!("--set=report={}", report.display()));
    let mut child = psql
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot run psql")?;
    let input = child.stdin.take().context("psql has no standard input")?;
    let mut loader = Loader::new(BufWriter::new(input));
    let loaded = ui::step("Loading documents and making their fingerprints", || {
        source.read(&mut loader)
    });
    loader.report_skipped();
    if loaded.is_ok() && loader.documents == 0 {
        child.kill()?;
        child.wait()?;
        anyhow::bail!("there is no document in {}", source.describe());
    }
    // psql waits for the end of its input before it continues with the script.
    drop(loader);
    let status = child.wait()?;
    // psql ends by SIGPIPE if a reader such as `head` closes the pipe. That is not an error.
    let is_closed = status.signal() == Some(SIGPIPE);
    ensure!(
        status.success() || is_closed,
        "the demo failed ({status}); psql says why above"
    );
    loaded
}
