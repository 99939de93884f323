//! Calls that programs send by their own drivers.
use crate::support::skip::skip_without;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, project_path};
use std::process::Command;

/// Value of a parameter.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Text(&'a str),
    /// Decimal number. Without a point, programs send an integer.
    Number(&'a str),
}

/// Query with the parameters `$1`, `$2` and so on.
pub struct Call<'a> {
    pub query: String,
    pub values: Vec<Value<'a>>,
}

/// Runs a program that reads the calls from the database, sends them and stores the results.
/// Returns the first value of each result; `None` for an error.
fn by_program(
    database: &Database,
    calls: &[Call],
    program: &str,
    script: &str,
    arguments: &[&str],
) -> Result<Vec<Option<String>>> {
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE cases (number int, query text, kinds text[], sent text[], result text)",
    )?;
    for (number, call) in (0i32..).zip(calls) {
        let (kinds, sent): (Vec<&str>, Vec<&str>) = (call.values.iter())
            .map(|value| match value {
                Value::Text(text) => ("text", *text),
                Value::Number(number) => ("number", *number),
            })
            .unzip();
        let insert = "INSERT INTO cases VALUES ($1, $2, $3, $4)";
        client.execute(insert, &[&number, &call.query, &kinds, &sent])?;
    }
    let path = project_path("tests/drivers").join(script);
    let output = Command::new(program)
        .arg(path)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{script} {arguments:?}: {errors}");
    let rows = client.query("SELECT result FROM cases ORDER BY number", &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Sends the calls by a driver for Python. Skips the test, and returns `None`, without Python.
pub fn in_python(
    database: &Database,
    calls: &[Call],
    driver: &str,
) -> Result<Option<Vec<Option<String>>>> {
    let Ok(python) = std::env::var("NEARDUP_TEST_PYTHON") else {
        skip_without("Python with the drivers")?;
        return Ok(None);
    };
    let arguments = [driver, database.conninfo()];
    by_program(database, calls, &python, "sent_calls.py", &arguments).map(Some)
}

/// Sends the calls by node-postgres. Skips the test, and returns `None`, without Node.js.
pub fn in_node(database: &Database, calls: &[Call]) -> Result<Option<Vec<Option<String>>>> {
    let Ok(folder) = std::env::var("NEARDUP_TEST_NODE") else {
        skip_without("Node.js with node-postgres")?;
        return Ok(None);
    };
    let arguments = [database.conninfo(), &folder];
    by_program(database, calls, "node", "sent_calls.mjs", &arguments).map(Some)
}
