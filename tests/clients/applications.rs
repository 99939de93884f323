//! docs/applications.md, run with its ORMs.
use crate::support::Outcome;
use crate::support::skip::skip_without;
use anyhow::{Context, ensure};
use neardup_tests::Database;
use std::path::Path;
use std::process::Command;

/// Runs a section of the document with options of the program in `drivers/`. Skips the test without
/// Python.
fn section(heading: &str, options: &[&str]) -> Outcome {
    let Ok(python) = std::env::var("NEARDUP_TEST_PYTHON") else {
        return skip_without("Python with the packages");
    };
    let database = Database::create()?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(&python)
        .arg(tests.join("drivers/applications.py"))
        .arg(heading)
        .arg(tests.join("../docs/applications.md"))
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
