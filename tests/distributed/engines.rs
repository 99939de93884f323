//! All pairs in other engines, by the statements of docs/distributed.md, equal the index's.
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::skip::{skip_optional, skip_without};
use crate::support::table::{BIGINT, FINGERPRINT, TYPES, Table, Type};
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, project_path};
use std::process::Command;
use std::str::FromStr;

/// Interpreter of the environment with DuckDB.
pub const PYTHON: &str = "NEARDUP_TEST_PYTHON";

/// Interpreter with Spark and the packages of the drivers. Spark is too large for every run.
pub const SPARK: &str = "NEARDUP_TEST_SPARK";

/// Count of pairs, and sums of their ids and distances.
type Sums = [i64; 4];

/// Result of an engine.
pub struct InPython {
    pub sums: Sums,
    /// Time of the export to a file that the engine reads, and of the join.
    pub seconds: [f64; 2],
}

/// Runs `engines.py` for an engine on the table `docs`, or says that no interpreter has it.
///
/// # Errors
/// When the engine fails.
pub fn in_python(
    variable: &str,
    engine: &str,
    conninfo: &str,
    fp_type: &str,
) -> Result<Option<InPython>> {
    let Ok(python) = std::env::var(variable) else {
        match variable {
            SPARK => skip_optional("no Spark; NEARDUP_TEST_SPARK names a Python with it")?,
            _ => skip_without("Python with the packages")?,
        }
        return Ok(None);
    };
    let output = Command::new(&python)
        .arg(project_path("tests/drivers/engines.py"))
        .arg(engine)
        .arg(project_path("docs/distributed.md"))
        .args([conninfo, fp_type])
        .output()
        .with_context(|| format!("cannot run {python}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{engine}: {printed}{errors}");
    Ok(Some(InPython {
        sums: numbers(&printed, "sums: ").with_context(|| printed.to_string())?,
        seconds: numbers(&printed, "seconds: ").with_context(|| printed.to_string())?,
    }))
}

/// The numbers on the last line that begins with `name`.
fn numbers<T: FromStr, const N: usize>(printed: &str, name: &str) -> Option<[T; N]> {
    let line = (printed.lines().rev()).find_map(|line| line.strip_prefix(name))?;
    let numbers: Option<Vec<T>> = line.split(' ').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Compares the pairs of an engine and of the index, on rows of these types.
fn compare(variable: &str, engine: &str, types: &[Type]) -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for &fp in types {
        let mut values = Shape::Balls.values(2_000, 61);
        values.extend(Shape::Uniform.values(2_000, 62));
        Table::new(fp).create_indexed(&mut client, &values, "")?;
        let row = client.query_one(
            "SELECT count(*), sum(least(x.id, y.id))::bigint, \
                sum(greatest(x.id, y.id))::bigint, sum(p.distance)::bigint \
             FROM neardup_pairs('docs', 6) AS p \
             JOIN docs x ON x.ctid = p.a JOIN docs y ON y.ctid = p.b",
            &[],
        )?;
        let expected: Sums = std::array::from_fn(|i| row.get(i));
        ensure!(expected[0] > 1_000, "{expected:?}");
        if let Some(found) = in_python(variable, engine, database.conninfo(), fp.name)? {
            let found = found.sums;
            ensure!(
                found == expected,
                "{}: {found:?}, not {expected:?}",
                fp.name
            );
        }
    }
    Ok(())
}

#[test]
fn pairs_of_duckdb_through_its_postgres_reader() -> Outcome {
    compare(PYTHON, "duckdb-postgres", &TYPES)
}

#[test]
fn pairs_of_spark() -> Outcome {
    compare(SPARK, "spark", &[FINGERPRINT, BIGINT])
}

/// Table of signatures: groups of five documents with similarities from 0.6 to 1, which also have
/// some of their features in common with all others. The ids of a group are not consecutive.
const SIGNATURES: &str = "CREATE TABLE docs AS SELECT id * 7919 % 4001 AS id, \
        minhash(ARRAY(SELECT 'word ' || id / 5 || ' ' || i \
            FROM generate_series(id % 5 * 6, 60) AS i) || ARRAY(SELECT 'all ' || i \
            FROM generate_series(1, 6) AS i)) AS sig \
    FROM generate_series(1, 4000) id";

/// Compares the pairs of signatures of an engine with those of a join that compares all.
fn compare_signatures(variable: &str, engine: &str) -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SIGNATURES)?;
    let row = client.query_one(
        "SELECT count(*), sum(a.id)::bigint, sum(b.id)::bigint, \
            sum(round(128 * minhash_similarity(a.sig, b.sig)))::bigint \
         FROM docs a JOIN docs b ON a.id < b.id AND minhash_similarity(a.sig, b.sig) >= 0.8",
        &[],
    )?;
    let expected: Sums = std::array::from_fn(|i| row.get(i));
    ensure!(expected[0] > 3_000, "{expected:?}");
    if let Some(found) = in_python(variable, engine, database.conninfo(), "minhash_signature")? {
        ensure!(found.sums == expected, "{:?}, not {expected:?}", found.sums);
    }
    Ok(())
}

#[test]
fn pairs_of_signatures_of_duckdb_within_a_memory_limit() -> Outcome {
    compare_signatures(PYTHON, "duckdb-signatures")
}

#[test]
fn pairs_of_signatures_of_spark() -> Outcome {
    compare_signatures(SPARK, "spark-signatures")
}

/// The statement finds as many pairs by approximate keys as their recall says. For a pair of which
/// k of 128 values are equal, a band of 10 values is equal with probability C(k, 10) / C(128, 10).
#[test]
fn approximate_pairs_of_duckdb_have_the_stated_recall() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SIGNATURES)?;
    let row = client.query_one(
        "WITH pairs AS MATERIALIZED (SELECT round(128 * minhash_similarity(a.sig, b.sig)) AS k \
             FROM docs a JOIN docs b ON a.id < b.id \
             AND minhash_similarity(a.sig, b.sig) >= 0.8) \
         SELECT count(*), sum(1 - (1 - p) ^ 12)::float8 FROM pairs, \
             LATERAL (SELECT exp(sum(ln((k - i)::float8 / (128 - i)))) AS p \
                 FROM generate_series(0, 9) AS i) AS band",
        &[],
    )?;
    let (all, expected): (i64, f64) = (row.get(0), row.get(1));
    let run = in_python(
        PYTHON,
        "duckdb-approximate",
        database.conninfo(),
        "minhash_signature",
    )?;
    if let Some(found) = run {
        let (found, all) = (found.sums[0] as f64, all as f64);
        ensure!(
            (found - expected).abs() < 0.03 * all,
            "{found}, not {expected} of {all}"
        );
        ensure!(expected < 0.97 * all, "{expected} of {all}");
    }
    Ok(())
}

/// Runs an engine that compares its own results with those of the server.
fn compare_in_python(variable: &str, engine: &str, rows: i64) -> Outcome {
    let database = Database::create()?;
    if let Some(found) = in_python(variable, engine, database.conninfo(), FINGERPRINT.name)? {
        ensure!(found.sums[0] >= rows, "{:?}", found.sums);
    }
    Ok(())
}

#[test]
fn signatures_and_keys_outside_the_server_are_those_of_the_server() -> Outcome {
    compare_in_python(PYTHON, "sketch", 203)
}

#[test]
fn signatures_and_keys_made_in_spark_are_those_of_the_server() -> Outcome {
    compare_in_python(SPARK, "spark-sketch", 203)
}

#[test]
fn clusters_made_in_duckdb_are_those_of_the_server() -> Outcome {
    compare_in_python(PYTHON, "components", 800)
}

#[test]
fn clusters_made_in_spark_are_those_of_the_server() -> Outcome {
    compare_in_python(SPARK, "spark-components", 800)
}
