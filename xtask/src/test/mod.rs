//! `cargo xtask test`: everything that can fail, counted.
mod golden;
mod packages;
mod python;

pub use packages::provide;

use crate::private::{self, Private};
use crate::{signals, ui};
use anyhow::{Result, bail};
use neardup_pgserver::{Server, stop_leftovers};
use std::ops::AddAssign;
use std::path::Path;
use std::process::ExitCode;

/// The name of the shared server, and the beginning of the names of those that tests make.
const PURPOSE: &str = "test";

/// Number of tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Runs the tests that `filters` select, all when there are none, and prints the count.
pub fn command(pg_config: Option<&Path>, filters: &[String]) -> Result<ExitCode> {
    let private = private::prepare(pg_config)?;
    let dir = private.instance.data_root.clone();
    let lock = private::take(&dir, PURPOSE)?;
    let server = start(&private)?;
    let counts = run(&private, &server, filters);
    drop(server);
    // Tests that were killed leave the servers that they made.
    stop_leftovers(&dir, PURPOSE)?;
    drop(lock);

    let counts = counts?;
    signals::wait_if_interrupted();
    if counts == Counts::default() && !filters.is_empty() {
        bail!("no test has a name that contains {}", filters.join(" or "));
    }
    println!("{} passed, {} failed", counts.passed, counts.failed);
    Ok(ExitCode::from(u8::from(counts.failed > 0)))
}

fn run(private: &Private, server: &Server, filters: &[String]) -> Result<Counts> {
    let mut counts = packages::run(private, server, filters)?;
    counts += golden::regress(private, server, filters)?;
    counts += golden::isolation(private, server, filters)?;
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
