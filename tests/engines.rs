//! All pairs in other engines, by the statements of docs/distributed.md: those of the index.
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::table::{BIGINT, FINGERPRINT, TYPES, Table, Type};
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use std::path::Path;
use std::process::Command;

/// Interpreter of the environment with DuckDB.
const PYTHON: &str = "NEARDUP_TEST_PYTHON";

/// Interpreter with Spark, which is too large for every run, beside the packages of the drivers.
const SPARK: &str = "NEARDUP_TEST_SPARK";

/// Count of pairs, and sums of their ids and distances.
type Sums = [i64; 4];

/// Runs `engines.py` for an engine on the table `docs`, or says that no interpreter has it.
fn in_python(variable: &str, engine: &str, database: &Database, fp: Type) -> Result<Option<Sums>> {
    let Ok(python) = std::env::var(variable) else {
        eprintln!("{engine}: not tested, {variable} names no Python with the packages");
        return Ok(None);
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(&python)
        .arg(tests.join("drivers/engines.py"))
        .arg(engine)
        .arg(tests.join("../docs/distributed.md"))
        .args([database.conninfo(), fp.name])
        .output()
        .with_context(|| format!("cannot run {python}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{engine}: {printed}{errors}");
    let sums = (printed.lines().rev())
        .find_map(|line| line.strip_prefix("sums: "))
        .with_context(|| format!("{engine}: {printed}"))?;
    let sums: Vec<i64> = (sums.split(' '))
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    Ok(Some(sums.try_into().ok().context("four sums")?))
}

/// Compares the pairs of an engine with those of the index, on rows of these types.
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
             FROM neardup_pairs('docs', 3) AS p \
             JOIN docs x ON x.ctid = p.a JOIN docs y ON y.ctid = p.b",
            &[],
        )?;
        let expected: Sums = std::array::from_fn(|i| row.get(i));
        ensure!(expected[0] > 1_000, "{expected:?}");
        if let Some(found) = in_python(variable, engine, &database, fp)? {
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
fn pairs_of_duckdb_from_a_file() -> Outcome {
    compare(PYTHON, "duckdb-csv", &TYPES)
}

#[test]
fn pairs_of_spark() -> Outcome {
    compare(SPARK, "spark", &[FINGERPRINT, BIGINT])
}

#[test]
fn fingerprints_made_in_duckdb_are_those_of_the_server() -> Outcome {
    let database = Database::create()?;
    let sums = in_python(PYTHON, "functions", &database, FINGERPRINT)?;
    ensure!(sums.is_none_or(|sums| sums[0] == 202), "{sums:?}");
    Ok(())
}
