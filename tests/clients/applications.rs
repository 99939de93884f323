//! docs/applications.md and docs/live-table.md, run with their ORMs.
use crate::support::Outcome;
use crate::support::skip::skip_without;
use anyhow::{Context, ensure};
use neardup_tests::{Database, project_path};
use std::process::Command;

/// Runs a section of docs/applications.md with options of its driver.
fn section(heading: &str, options: &[&str]) -> Outcome {
    run("applications", "applications", heading, options)
}

/// Runs a section of a document with options of a program in `drivers/`. Skips the test without
/// Python.
pub fn run(driver: &str, document: &str, heading: &str, options: &[&str]) -> Outcome {
    let Ok(python) = std::env::var("NEARDUP_TEST_PYTHON") else {
        return skip_without("Python with the packages");
    };
    let database = Database::create()?;
    let output = Command::new(&python)
        .arg(project_path(&format!("tests/drivers/{driver}.py")))
        .arg(heading)
        .arg(project_path(&format!("docs/{document}.md")))
        .arg(database.conninfo())
        .args(options)
        .output()
        .with_context(|| format!("cannot run {python}"))?;
    let done = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{heading}: {done}{errors}");
    ensure!(
        done.contains(&format!("{heading}: done")),
        "{heading}: {done}"
    );
    Ok(())
}

#[test]
fn sqlalchemy_and_alembic() -> Outcome {
    section("SQLAlchemy and Alembic", &[])
}

#[test]
fn django() -> Outcome {
    section("Django", &[])
}

#[test]
fn django_with_a_pool() -> Outcome {
    section("Django", &["pool"])
}

#[test]
fn retries() -> Outcome {
    section("Retries", &[])
}

#[test]
fn django_migration_of_a_live_table() -> Outcome {
    run("live_table", "live-table", "Django", &[])
}

#[test]
fn alembic_migration_of_a_live_table() -> Outcome {
    run("live_table", "live-table", "Alembic", &[])
}
