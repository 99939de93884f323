//! Builds and runs the example program for the Rust crate sqlx. It is separate from the other
//! tests, because its dependencies take longer to build than all other tests.
use super::Counts;
use crate::cargo::{cargo, target_dir, workspace};
use crate::ui;
use anyhow::{Context, Result};
use neardup_pgserver::Server;
use std::process::Command;

/// Builds the example in `tests/sqlx`, and runs it on the server in a separate database. Returns
/// the counts, in which the example is one test.
pub fn run(server: &Server) -> Result<Counts> {
    let folder = workspace().join("tests/sqlx");
    let target = target_dir()?.join("sqlx");
    ui::heading("cargo run: the example with sqlx");
    let built = cargo()
        .current_dir(&folder)
        .args(["build", "--quiet", "--locked", "--target-dir"])
        .arg(&target)
        .status()
        .context("cannot run cargo")?;
    let database = |name: &str, statement: &str| {
        let mut psql = server.psql(name);
        let run = psql.args(["--quiet", "--command", statement]).status();
        run.is_ok_and(|status| status.success())
    };
    let prepared = database("postgres", "CREATE DATABASE sqlx")
        && database("sqlx", "CREATE EXTENSION neardup");
    let mut example = Command::new(target.join("debug/neardup-sqlx-test"));
    for part in server.conninfo("sqlx").split(' ') {
        if let Some((name, value)) = part.split_once('=') {
            let name = if name == "dbname" { "database" } else { name };
            example.env(format!("PG{}", name.to_uppercase()), value);
        }
    }
    let passed = built.success() && prepared && example.status().is_ok_and(|it| it.success());
    println!("sqlx: {}", if passed { "ok" } else { "FAILED" });
    Ok(Counts {
        passed: usize::from(passed),
        failed: usize::from(!passed),
        skipped: 0,
    })
}
