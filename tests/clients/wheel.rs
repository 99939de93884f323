//! The package for Python, installed from its wheel.
use crate::support::Outcome;
use crate::support::skip::skip_without;
use anyhow::{Context, ensure};
use neardup_tests::{Database, project_path};
use std::process::Command;

/// Runs a function of a program in `drivers/`. Skips the test without Python.
fn run(program: &str, test: &str) -> Outcome {
    let Ok(python) = std::env::var("NEARDUP_TEST_PYTHON") else {
        return skip_without("Python with the packages");
    };
    let database = Database::create()?;
    let drivers = project_path("tests/drivers");
    let output = Command::new(&python)
        .arg(drivers.join(program))
        .args([test, database.conninfo()])
        .output()
        .with_context(|| format!("cannot run {python}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let done = printed.contains(&format!("{test}: done"));
    ensure!(output.status.success() && done, "{test}: {printed}{errors}");
    Ok(())
}

#[test]
fn wheel_gives_the_golden_vectors() -> Outcome {
    run("wheel.py", "golden")
}

#[test]
fn wheel_gives_what_the_server_gives() -> Outcome {
    run("wheel.py", "server")?;
    run("wheel.py", "others")
}

#[test]
fn wheel_has_values() -> Outcome {
    run("wheel.py", "values")
}

#[test]
fn wheel_names_bad_options() -> Outcome {
    run("wheel.py", "errors")
}

#[test]
fn wheel_releases_the_lock_and_can_be_interrupted() -> Outcome {
    run("wheel.py", "threads")
}

#[test]
fn wheel_takes_none_and_iterables() -> Outcome {
    run("wheel.py", "inputs")
}

#[test]
fn wheel_computes_lists() -> Outcome {
    run("wheel.py", "lists")
}

#[test]
fn wheel_knows_user_words() -> Outcome {
    run("wheel.py", "chinese")
}

#[test]
fn wheel_is_documented() -> Outcome {
    run("wheel.py", "documentation")
}

#[test]
fn wheel_has_a_source_archive() -> Outcome {
    run("wheel.py", "sources")
}

#[test]
fn psycopg_has_types() -> Outcome {
    run("wheel_types.py", "with_psycopg")?;
    run("wheel_types.py", "with_psycopg_pool")?;
    run("wheel_types.py", "with_psycopg_async")
}

#[test]
fn asyncpg_has_types() -> Outcome {
    run("wheel_types.py", "with_asyncpg")
}

#[test]
fn sqlalchemy_has_types() -> Outcome {
    run("wheel_types.py", "with_sqlalchemy")
}

#[test]
fn sqlalchemy_explains_arrays_as_text() -> Outcome {
    run("wheel_types.py", "arrays_as_text")
}

#[test]
fn sqlalchemy_reflects_without_warnings() -> Outcome {
    run("wheel_types.py", "reflection")
}

#[test]
fn django_has_fields_and_functions() -> Outcome {
    run("wheel_django.py", "fields")
}

#[test]
fn django_migrations_keep_the_constraint() -> Outcome {
    run("wheel_django.py", "migrations")
}

#[test]
fn django_forms_refuse_near_duplicates() -> Outcome {
    run("wheel_django.py", "forms")?;
    run("wheel_django.py", "admin")
}

#[test]
fn django_writes_json() -> Outcome {
    run("wheel_django.py", "json_values")
}
