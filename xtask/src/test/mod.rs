//! `cargo xtask test`: everything that can fail, counted.
mod golden;
mod node;
mod packages;
mod python;
mod sqlx;

pub use packages::provide;

use crate::private::{self, Private};
use crate::setup::PgChoice;
use crate::{signals, ui};
use anyhow::{Result, bail, ensure};
use neardup_pgserver::{SUPPORTED, Server, stop_leftovers};
use std::fmt;
use std::ops::AddAssign;
use std::path::Path;
use std::process::ExitCode;

/// The name of the shared server, and the beginning of the names of those that tests make.
const PURPOSE: &str = "test";

/// Number of tests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// Extent of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All tests but one.
    Usual,
    /// The example with sqlx too, whose crates take long to build.
    WithSqlx,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Runs the tests that `filters` select, all when there are none, and prints the count; a line
/// for each version in the end if several are chosen.
///
/// `citus` is the folder that Citus was installed below; without it Citus is not tested.
pub fn command(choice: &PgChoice, filters: &[String], citus: Option<&Path>) -> Result<ExitCode> {
    if choice.pg.len() > 1 {
        ensure!(citus.is_none(), "--citus is for one version of the server");
        return on_each(&choice.pg, filters, Extent::Usual);
    }
    let (_, counts) = on_one(choice, filters, Extent::Usual, citus)?;
    println!("{counts}");
    Ok(ExitCode::from(u8::from(counts.failed > 0)))
}

/// Runs the tests that `filters` select, with the example for sqlx among them, on each supported
/// version, or on those that are chosen.
pub fn matrix(choice: &PgChoice, filters: &[String]) -> Result<ExitCode> {
    ensure!(
        choice.pg_config.is_none(),
        "matrix runs on versions; `test --pg-config` takes a server"
    );
    let all = SUPPORTED.collect::<Vec<u32>>();
    let majors = if choice.pg.is_empty() {
        &all
    } else {
        &choice.pg
    };
    on_each(majors, filters, Extent::WithSqlx)
}

/// Runs the tests on one version after the other. A version that cannot be had or built is a line
/// in the table as well, and a failure.
fn on_each(majors: &[u32], filters: &[String], extent: Extent) -> Result<ExitCode> {
    let mut lines = Vec::new();
    let mut all_passed = true;
    for major in majors {
        ui::heading(format!("PostgreSQL {major}"));
        match on_one(&PgChoice::major(*major), filters, extent, None) {
            Ok((version, counts)) => {
                all_passed &= counts.failed == 0;
                lines.push(format!("{version}: {counts}"));
            }
            Err(error) => {
                signals::wait_if_interrupted();
                all_passed = false;
                ui::error(&error);
                lines.push(format!("PostgreSQL {major}: not run: {error:#}"));
            }
        }
    }
    println!("{}", lines.join("\n"));
    Ok(ExitCode::from(u8::from(!all_passed)))
}

/// Runs the tests on one PostgreSQL, and returns its version.
fn on_one(
    choice: &PgChoice,
    filters: &[String],
    extent: Extent,
    citus: Option<&Path>,
) -> Result<(String, Counts)> {
    let private = private::prepare_with(choice, citus)?;
    let counts = with_server(&private, |server| run(&private, server, filters, extent))?;
    signals::wait_if_interrupted();
    if counts == Counts::default() && !filters.is_empty() {
        bail!("no test has a name that contains {}", filters.join(" or "));
    }
    Ok((private.pg.version, counts))
}

/// Runs the golden files, or all tests over a connection that `filters` select, on a server of
/// another machine, and prints the count. Returns true if none failed.
pub fn on_foreign(private: &Private, filters: &[String]) -> Result<bool> {
    let counts = with_server(private, |server| match filters {
        [] => golden::regress(private, server, filters),
        _ => run(private, server, filters, Extent::Usual),
    })?;
    println!("{}: {counts}", private.pg.version);
    Ok(counts.failed == 0)
}

/// Starts the shared server for tests, and stops it and those that tests have left.
fn with_server(private: &Private, tests: impl FnOnce(&Server) -> Result<Counts>) -> Result<Counts> {
    let dir = private.instance.data_root.clone();
    let lock = private::take(&dir, PURPOSE)?;
    let server = start(private)?;
    let counts = tests(&server);
    drop(server);
    // Tests that were killed leave the servers that they made.
    stop_leftovers(&dir, PURPOSE)?;
    drop(lock);
    counts
}

fn run(private: &Private, server: &Server, filters: &[String], extent: Extent) -> Result<Counts> {
    let mut counts = packages::run(private, server, filters)?;
    counts += golden::regress(private, server, filters)?;
    counts += golden::isolation(private, server, filters)?;
    let is_sqlx = |filter: &String| "sqlx".contains(filter.as_str());
    if extent == Extent::WithSqlx && (filters.is_empty() || filters.iter().any(is_sqlx)) {
        counts += sqlx::run(server)?;
    }
    Ok(counts)
}

fn start(private: &Private) -> Result<Server> {
    ui::step("Starting the private server", || {
        let settings = [
            // The data are thrown away; a test that kills a server leaves the system running.
            ("fsync", "off"),
            ("max_connections", "200"),
            ("log_min_messages", "warning"),
            // At a moment of its own choice it would analyze a table, or hold up a VACUUM.
            ("autovacuum", "off"),
        ];
        Server::create(&private.instance, PURPOSE, &settings)
    })
}
