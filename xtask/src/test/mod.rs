//! `cargo xtask test`: runs the tests and counts them.
mod counts;
mod golden;
mod node;
mod programs;
mod python;
mod rust;
mod selection;
mod sqlx;

pub use rust::provide;

use crate::private::{self, Private};
use crate::setup::PgChoice;
use crate::{signals, ui};
use anyhow::{Context, Result, bail, ensure};
use counts::Counts;
use neardup_pgserver::{SUPPORTED, Server, stop_leftovers};
use rust::RustTests;
use std::path::Path;
use std::process::ExitCode;

/// Name of the shared server, and prefix of the names of servers that tests create.
const PURPOSE: &str = "test";

/// Extent of a run on one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    /// Also runs the tests of the packages that need no server.
    pure: bool,
    /// Also runs the example with sqlx, whose crates take long to build.
    sqlx: bool,
}

impl Extent {
    const USUAL: Self = Self {
        pure: true,
        sqlx: false,
    };
}

/// Runs the tests that `filters` select, or all tests without filters, and prints the count. For
/// several versions, prints a line for each version at the end. Omits the packages that need no
/// server if `server_only`.
///
/// `citus` is the folder below which Citus was installed. Without it Citus is not tested.
pub fn command(
    choice: &PgChoice,
    filters: &[String],
    server_only: bool,
    citus: Option<&Path>,
) -> Result<ExitCode> {
    let extent = Extent {
        pure: !server_only,
        ..Extent::USUAL
    };
    if choice.pg.len() > 1 {
        ensure!(citus.is_none(), "--citus is for one version of the server");
        return on_each(&choice.pg, filters, extent);
    }
    let (_, counts) = on_one(choice, filters, extent, citus)?;
    println!("{counts}");
    Ok(ExitCode::from(u8::from(counts.failed > 0)))
}

/// Runs the tests that `filters` select, including the example for sqlx, on each supported version
/// or on the chosen versions.
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
    let extent = Extent {
        sqlx: true,
        ..Extent::USUAL
    };
    on_each(majors, filters, extent)
}

/// Runs the tests on each version, and the tests without a server only on the first. A version
/// that cannot be provided or built gets a line in the table, and counts as a failure.
fn on_each(majors: &[u32], filters: &[String], mut extent: Extent) -> Result<ExitCode> {
    let mut lines = Vec::new();
    let mut all_passed = true;
    for (number, major) in majors.iter().enumerate() {
        ui::heading(format!("PostgreSQL {major}"));
        extent.pure &= number == 0;
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

/// Runs the tests on one PostgreSQL and returns its version.
fn on_one(
    choice: &PgChoice,
    filters: &[String],
    extent: Extent,
    citus: Option<&Path>,
) -> Result<(String, Counts)> {
    let private = private::prepare_with(choice, citus)?;
    let counts = with_server(&private, |server| run(&private, server, filters, extent))?;
    signals::wait_if_interrupted();
    if counts == Counts::default() && !filters.is_empty() && extent.pure {
        bail!("no test has a name that contains {}", filters.join(" or "));
    }
    Ok((private.pg.version, counts))
}

/// Runs the golden files, or all tests over a connection that `filters` select, on a server of
/// another machine, and prints the count. Returns whether none failed.
pub fn on_foreign(private: &Private, filters: &[String]) -> Result<bool> {
    let counts = with_server(private, |server| match filters {
        [] => golden::regress(private, server, filters),
        _ => run(private, server, filters, Extent::USUAL),
    })?;
    println!("{}: {counts}", private.pg.version);
    Ok(counts.failed == 0)
}

/// Starts the shared server for tests. Stops it and all servers that tests left running.
fn with_server(private: &Private, tests: impl FnOnce(&Server) -> Result<Counts>) -> Result<Counts> {
    let dir = private.instance.data_root.clone();
    let lock = private::take(&dir, PURPOSE)?;
    let server = start(private, PURPOSE)?;
    let counts = tests(&server);
    drop(server);
    // Killed tests leave their servers running.
    stop_leftovers(&dir, PURPOSE)?;
    drop(lock);
    counts
}

/// Runs the tests of all kinds concurrently, because some compute while others wait.
fn run(private: &Private, server: &Server, filters: &[String], extent: Extent) -> Result<Counts> {
    let selected = selection::packages(filters, extent.pure)?;
    let rust = RustTests::build(private, server, &selected)?;
    let mut counts = std::thread::scope(|scope| -> Result<Counts> {
        let running = [
            scope.spawn(|| rust.waiting()),
            scope.spawn(|| rust.over_connections()),
            scope.spawn(|| golden(private, filters)),
            scope.spawn(|| rust.pure()),
        ];
        let mut counts = Counts::default();
        for tests in running {
            counts += tests.join().ok().context("a thread panicked")??;
        }
        Ok(counts)
    })?;
    rust.count_skipped(&mut counts);
    let is_sqlx = |filter: &String| "sqlx".contains(filter.as_str());
    if extent.sqlx && (filters.is_empty() || filters.iter().any(is_sqlx)) {
        counts += sqlx::run(server)?;
    }
    Ok(counts)
}

/// Runs the golden files and the isolation tests on a separate server, because transactions of
/// other tests would change plans and the effect of VACUUM.
fn golden(private: &Private, filters: &[String]) -> Result<Counts> {
    if !golden::are_selected(filters)? {
        return Ok(Counts::default());
    }
    let server = start(private, &format!("{PURPOSE}-golden"))?;
    let mut counts = golden::regress(private, &server, filters)?;
    counts += golden::isolation(private, &server, filters)?;
    Ok(counts)
}

fn start(private: &Private, name: &str) -> Result<Server> {
    ui::step("Starting a private server", || {
        let settings = [
            // The data are temporary. A test that kills a server does not kill the system.
            ("fsync", "off"),
            ("max_connections", "200"),
            // Enough parallel workers for all concurrent tests.
            ("max_worker_processes", "64"),
            ("max_parallel_workers", "64"),
            ("log_min_messages", "warning"),
            // Autovacuum could analyze a table or delay a VACUUM at any time.
            ("autovacuum", "off"),
        ];
        Server::create(&private.instance, name, &settings)
    })
}
