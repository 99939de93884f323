//! `cargo xtask test` and `cargo xtask matrix`: run the tests of all kinds and count them.
mod counts;
mod golden;
mod node;
mod programs;
mod python;
mod rust;
mod selection;
mod sqlx;

pub use rust::set_server_variables;

use crate::private::{self, Private, Variant};
use crate::setup::PgChoice;
use crate::{signals, ui};
use anyhow::{Context, Result, bail, ensure};
use counts::Counts;
use neardup_pgserver::{SUPPORTED, Server, stop_leftovers};
use rust::RustTests;
use std::process::ExitCode;

/// Name of the server that most tests share. Tests also create servers, whose names begin with it.
const PURPOSE: &str = "test";

/// Which optional tests a run on one PostgreSQL version includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    /// True to include the tests of the packages that need no server.
    pure: bool,
    /// True to include the example with sqlx, whose dependencies take long to build.
    sqlx: bool,
}

impl Extent {
    const USUAL: Self = Self {
        pure: true,
        sqlx: false,
    };
}

/// Runs `cargo xtask test`: the tests that `filters` select, or all tests without filters. Prints
/// the counts. If the user chose several versions of PostgreSQL, each has a line. If `server_only`
/// is true, skips the packages that need no server.
///
/// `variant` says what the private copy of the server contains.
pub fn command(
    choice: &PgChoice,
    filters: &[String],
    server_only: bool,
    variant: &Variant,
) -> Result<ExitCode> {
    let extent = Extent {
        pure: !server_only,
        ..Extent::USUAL
    };
    if choice.pg.len() > 1 {
        let is_plain = variant.citus.is_none() && variant.target.is_none();
        ensure!(
            is_plain,
            "--citus and --target are for one version of the server"
        );
        return on_each(&choice.pg, filters, extent);
    }
    let (_, counts) = on_one(choice, filters, extent, variant)?;
    println!("{counts}");
    Ok(ExitCode::from(u8::from(counts.failed > 0)))
}

/// Runs `cargo xtask matrix`: the tests that `filters` select, and the example with sqlx, on the
/// major versions `majors`, or on each supported version if there are none.
pub fn matrix(majors: &[u32], filters: &[String]) -> Result<ExitCode> {
    let all = SUPPORTED.collect::<Vec<u32>>();
    let majors = if majors.is_empty() { &all } else { majors };
    let extent = Extent {
        sqlx: true,
        ..Extent::USUAL
    };
    on_each(majors, filters, extent)
}

/// Runs the tests that `filters` select on each of the major versions `majors`, and prints a table.
/// `extent` says which optional tests to include. The tests that need no server run only with the
/// first version. A version that cannot be provided or built has a line in the table, and counts as
/// a failure.
fn on_each(majors: &[u32], filters: &[String], mut extent: Extent) -> Result<ExitCode> {
    let mut lines = Vec::new();
    let mut all_passed = true;
    let plain = Variant::default();
    for (number, major) in majors.iter().enumerate() {
        ui::heading(format!("PostgreSQL {major}"));
        extent.pure &= number == 0;
        match on_one(&PgChoice::major(*major), filters, extent, &plain) {
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

/// Runs the tests that `filters` select on the PostgreSQL that `choice` chooses. `extent` says
/// which optional tests to include, and `variant` what the private copy of the server contains.
/// Returns the version of PostgreSQL and the counts of tests.
fn on_one(
    choice: &PgChoice,
    filters: &[String],
    extent: Extent,
    variant: &Variant,
) -> Result<(String, Counts)> {
    let private = private::prepare_with(choice, variant)?;
    let counts = with_server(&private, |server| run(&private, server, filters, extent))?;
    signals::wait_if_interrupted();
    if counts == Counts::default() && !filters.is_empty() && extent.pure {
        bail!("no test has a name that contains {}", filters.join(" or "));
    }
    Ok((private.pg.version, counts))
}

/// Runs tests on an emulated server, whose programs are in `private`, and prints the counts. Runs
/// the golden files and the tests over a connection that `filters` select; without filters, all
/// golden files and no other tests. Returns true if no test failed.
pub fn on_foreign(private: &Private, filters: &[String]) -> Result<bool> {
    let counts = with_server(private, |server| match filters {
        [] => golden::regress(private, server, filters),
        _ => run(private, server, filters, Extent::USUAL),
    })?;
    println!("{}: {counts}", private.pg.version);
    Ok(counts.failed == 0)
}

/// Starts the server that tests share, and calls `tests` with it. At the end, stops this server and
/// all servers that tests left running.
fn with_server(private: &Private, tests: impl FnOnce(&Server) -> Result<Counts>) -> Result<Counts> {
    let dir = private.instance.data_root.clone();
    let lock = private::reserve_server_names(&dir, PURPOSE)?;
    let server = start(private, PURPOSE)?;
    let counts = tests(&server);
    drop(server);
    // Tests that were killed leave their servers running.
    stop_leftovers(&dir, PURPOSE)?;
    drop(lock);
    counts
}

/// Runs the tests of all kinds that `filters` select on `server`. `extent` says which optional
/// tests to include. The kinds run concurrently, because some tests compute while others wait.
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

/// Runs the golden files (SQL scripts with expected output) and the isolation tests that `filters`
/// select. They run on a separate server, because transactions of other tests would change query
/// plans and the effect of VACUUM.
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
            // The data are temporary, so they need not survive a crash of the system. Tests only
            // crash servers.
            ("fsync", "off"),
            ("max_connections", "200"),
            // All concurrent tests need enough parallel workers.
            ("max_worker_processes", "64"),
            ("max_parallel_workers", "64"),
            ("log_min_messages", "warning"),
            // Autovacuum could analyze a table, or delay a test's VACUUM, at any time.
            ("autovacuum", "off"),
        ];
        Server::create(&private.instance, name, &settings)
    })
}
