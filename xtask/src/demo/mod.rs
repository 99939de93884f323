//! `cargo xtask demo`: the main job on real documents, from nothing to near-duplicates.
mod database;
mod differences;
mod document;
mod folder;
mod formats;
mod groups;
mod machine;
mod report;
mod source;

use crate::setup::PgChoice;
use crate::{private, psql, ui};
use anyhow::{Context, Result, bail, ensure};
use database::{CREATE_INDEX, CREATE_TABLE, Choice, Demo, Loaded};
use document::Complaints;
use groups::Groups;
use source::Source;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Loads the documents at `path`, or those that the machine has, and shows what is alike; in a
/// report as well if there is a file for it.
pub fn command(
    choice: &PgChoice,
    path: Option<&Path>,
    report_file: Option<&Path>,
) -> Result<ExitCode> {
    // Before the build: a slip in a path should not cost minutes.
    let source = Source::of(path)?;
    report_file.map_or(Ok(()), check_file)?;
    let private = private::prepare(choice)?;
    let lock = psql::take_lock(&private)?;
    let server = psql::start(&private, true)?;
    psql::create_database(&server)?;
    psql::remember_scripts(&private, &server)?;
    let mut demo = Demo::connect(&server.conninfo(psql::DATABASE))?;
    let report = run(&mut demo, &source, report_file);
    drop(demo);
    drop(server);
    drop(lock);
    print(&report?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns an error if a file cannot be written, as far as can be told without writing it.
fn check_file(file: &Path) -> Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    ensure!(folder.is_dir(), "there is no folder {}", folder.display());
    ensure!(!file.is_dir(), "{} is a folder", file.display());
    Ok(())
}

fn run(demo: &mut Demo, source: &Source, report_file: Option<&Path>) -> Result<String> {
    let mut complaints = Complaints::default();
    let loaded = demo.load(source, &mut complaints)?;
    tell(&complaints);
    if loaded.documents == 0 {
        bail!("there is no document in {}", source.describe());
    }
    let (index_time, index_size) = ui::step("Building the index", || demo.index())?;
    let aside = demo.set_equal_ones_aside()?;
    let choice = demo.choose_plan()?;
    let mut groups = Groups::new(loaded.documents);
    let mut pairs = 0;
    let pairs_time = ui::step("Finding all pairs of near-duplicates", || {
        demo.pairs(|pair| {
            pairs += 1;
            groups.join(number_from_0(pair.a), number_from_0(pair.b));
        })
    })?;
    let plan = ui::step("Looking at the plan", || demo.plan())?;
    let comparison = ui::step("Comparing with sequential scans", || demo.compare())?;

    demo.add_primary_key()?;

    let mut out = String::new();
    writeln!(out, "\n{}\n", summary(source, &loaded, &complaints))?;
    let groups = groups.of_two_or_more();
    out += &report::groups(demo, &groups)?;
    writeln!(
        out,
        "\nIn SQL:\n   {CREATE_TABLE};\n   {CREATE_INDEX};  -- {}, {}",
        ui::duration(index_time),
        ui::size(index_size)
    )?;
    writeln!(
        out,
        "   {};  -- {} in {}",
        demo.pairs_query(),
        ui::plural(pairs, "pair", "pairs"),
        ui::duration(pairs_time)
    )?;
    if aside {
        out += "   (docs_distinct has one document per fingerprint: very many are equal)\n";
    }
    out += "\nIts plan:\n";
    for line in plan {
        writeln!(out, "   {line}")?;
    }
    out += match choice {
        Choice::Index => "",
        Choice::IndexOnDemand => {
            "   (with enable_seqscan = off: so few documents are as quickly scanned)\n"
        }
        Choice::NoIndex => "   (the planner finds no use for the index)\n",
    };
    write!(out, "\n{}", report::comparison(&comparison))?;
    if let Some(file) = report_file {
        let title = format!("What repeats: {}", source.describe());
        let page = ui::step("Writing the report", || demo.page(&title))?;
        std::fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
        writeln!(out, "\nA report to look at: {}", file.display())?;
    }
    out += "\nThe tables are still there: cargo xtask psql\n";
    Ok(out)
}

/// Identifiers are numbered from 1; one out of range belongs to no group.
fn number_from_0(id: i64) -> usize {
    usize::try_from(id - 1).unwrap_or(usize::MAX)
}

fn tell(complaints: &Complaints) {
    for reason in &complaints.first {
        ui::note(format!("left out: {reason}"));
    }
    let more = complaints.count - complaints.first.len();
    if more > 0 {
        ui::note(format!("…and {} more left out", ui::number(more)));
    }
}

fn summary(source: &Source, loaded: &Loaded, complaints: &Complaints) -> String {
    let mut text = format!(
        "{} ({}) from {}: {}",
        ui::plural(loaded.documents, "document", "documents"),
        ui::size(loaded.bytes),
        source.describe(),
        ui::duration(loaded.time)
    );
    if loaded.without_fingerprint > 0 {
        let count = ui::number(loaded.without_fingerprint);
        text += &format!("; {count} without a word, and so without a fingerprint");
    }
    if complaints.count > 0 {
        text += &format!("; {} left out", ui::number(complaints.count));
    }
    text
}

/// `cargo xtask demo | head` closes the pipe, which is no error.
fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
