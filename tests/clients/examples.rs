//! docs/clients.md, run with its drivers. Its Rust code is in `rust.rs`.
use crate::support::Outcome;
use crate::support::skip::skip_without;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, project_path};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The document.
pub fn document() -> Result<String> {
    std::fs::read_to_string(project_path("docs/clients.md")).context("docs/clients.md")
}

/// Returns the code blocks of a section in a language, in order.
pub fn code(document: &str, heading: &str, language: &str) -> Vec<String> {
    let heading = format!("## {heading}");
    let mut lines = document.lines().skip_while(|line| *line != heading).skip(1);
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("## ") {
            break;
        }
        if line.strip_prefix("```") == Some(language) {
            let block = lines.by_ref().take_while(|line| *line != "```");
            blocks.push(block.map(|line| format!("{line}\n")).collect());
        }
    }
    blocks
}

/// Runs a section's code as a script, with the connection settings in the environment.
fn run(program: &Path, script: &Path, heading: &str, language: &str) -> Outcome {
    let code = code(&document()?, heading, language).concat();
    ensure!(!code.is_empty(), "no {language} under {heading}");
    std::fs::write(script, code)?;
    let database = Database::create()?;
    let mut command = Command::new(program);
    for part in database.conninfo().split(' ') {
        let (name, value) = part.split_once('=').context("name=value")?;
        let variable = match name {
            "dbname" => "PGDATABASE".to_owned(),
            name => format!("PG{}", name.to_uppercase()),
        };
        command.env(variable, value);
    }
    let output = command
        .arg(script)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    std::fs::remove_file(script)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{heading}: {printed}{errors}");
    Ok(())
}

/// Runs a section in Python. Skips the test without one.
fn python(heading: &str) -> Outcome {
    let Ok(program) = std::env::var("NEARDUP_TEST_PYTHON") else {
        return skip_without("Python with the packages");
    };
    let script = std::env::temp_dir().join(format!("neardup-{}-{heading}.py", std::process::id()));
    run(Path::new(&program), &script, heading, "python")
}

/// Runs a section in JavaScript. Skips the test without Node.js.
fn javascript(heading: &str) -> Outcome {
    let Ok(folder) = std::env::var("NEARDUP_TEST_NODE") else {
        return skip_without("Node.js with the packages");
    };
    // Node.js finds packages from the script's folder upwards.
    let script = PathBuf::from(folder).join(format!("{heading}.mjs"));
    run(Path::new("node"), &script, heading, "js")
}

#[test]
fn package_for_python() -> Outcome {
    python("Python")
}

#[test]
fn psycopg() -> Outcome {
    python("psycopg")
}

#[test]
fn asyncpg() -> Outcome {
    python("asyncpg")
}

#[test]
fn sqlalchemy() -> Outcome {
    python("SQLAlchemy")
}

#[test]
fn pg8000() -> Outcome {
    python("pg8000")
}

#[test]
fn node_postgres() -> Outcome {
    javascript("node-postgres")
}

#[test]
fn drizzle() -> Outcome {
    javascript("Drizzle")
}
