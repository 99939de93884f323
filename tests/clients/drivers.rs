//! Distances and estimates in clients: types that drivers return, and parameters that they send.
mod numbers;
mod overloads;
mod programs;

use crate::support::Outcome;
use crate::support::skip::skip_without;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, project_path};
use postgres::types::{ToSql, Type};
use postgres::{Client, SimpleQueryMessage};
use std::process::Command;

/// Rows 1 and 2 differ in 2 bits and in 2 of 16 values. Row 3 is far from both.
fn rows() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, fp fingerprint, sig minhash_signature); \
         INSERT INTO docs VALUES \
             (1, '0000000000000000', minhash_from_values(array_fill(1, ARRAY[16]))), \
             (2, '0000000000000003', \
                 minhash_from_values(array_fill(1, ARRAY[14]) || ARRAY[2, 3])), \
             (3, 'ffffffffffffffff', minhash_from_values(array_fill(9, ARRAY[16]))); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE INDEX ON docs USING neardup (sig) WITH (hashes = 16); \
         CREATE TABLE measured (h hamming, j jaccard)",
    )?;
    Ok((database, client))
}

/// Runs `distances.py` with a driver. Skips the test without Python.
fn in_python(driver: &str) -> Outcome {
    let Ok(python) = std::env::var("NEARDUP_TEST_PYTHON") else {
        return skip_without("Python with the drivers");
    };
    let (database, _client) = rows()?;
    let program = project_path("tests/drivers/distances.py");
    let output = Command::new(&python)
        .arg(program)
        .args([driver, database.conninfo()])
        .output()
        .with_context(|| format!("cannot run {python}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{driver}: {errors}");
    Ok(())
}

#[test]
fn psycopg_sees_numbers_as_text() -> Outcome {
    in_python("psycopg-text")
}

#[test]
fn psycopg_sees_numbers_in_binary() -> Outcome {
    in_python("psycopg-binary")
}

#[test]
fn asyncpg_sees_numbers() -> Outcome {
    in_python("asyncpg")
}

#[test]
fn pg8000_sees_numbers() -> Outcome {
    in_python("pg8000")
}

/// Comparisons with an untyped parameter, which gets the type of the compared number.
const UNTYPED: [(&str, Type); 10] = [
    ("a.fp <~> b.fp <= $1", Type::INT4),
    ("a.fp <~> b.fp < $1", Type::INT4),
    ("a.fp <~> b.fp = $1", Type::INT4),
    ("$1 >= a.fp <~> b.fp", Type::INT4),
    ("NOT a.fp <~> b.fp > $1", Type::INT4),
    ("a.sig <%> b.sig <= $1", Type::FLOAT8),
    ("a.sig <%> b.sig = $1", Type::FLOAT8),
    ("$1 > a.sig <%> b.sig", Type::FLOAT8),
    ("minhash_similarity(a.sig, b.sig) >= $1", Type::FLOAT8),
    (
        "minhash_similarity(a.sig, b.sig) BETWEEN $1 AND 1",
        Type::FLOAT8,
    ),
];

#[test]
fn the_server_asks_drivers_for_plain_numbers() -> Outcome {
    let (_database, mut client) = rows()?;
    for (condition, expected) in UNTYPED {
        let query = format!("SELECT count(*) FROM docs a, docs b WHERE {condition}");
        let prepared = client.prepare(&query)?;
        assert_eq!(prepared.params(), [expected], "{condition}");
    }
    Ok(())
}

#[test]
fn rust_sends_and_receives_numbers_in_binary() -> Outcome {
    let (_database, mut client) = rows()?;
    let row = client.query_one(
        "SELECT a.fp <~> b.fp, a.sig <%> b.sig, minhash_similarity(a.sig, b.sig) \
         FROM docs a, docs b WHERE a.id = 1 AND b.id = 2",
        &[],
    )?;
    assert_eq!(row.get::<_, i32>(0), 2);
    assert_eq!(row.get::<_, f64>(1), 0.125);
    assert_eq!(row.get::<_, f64>(2), 0.875);
    let cases: [(&str, &(dyn ToSql + Sync), i64); 5] = [
        ("a.fp <~> b.fp <= $1", &2_i32, 5),
        ("$1 > a.fp <~> b.fp", &2_i32, 3),
        ("a.sig <%> b.sig <= $1", &0.125_f64, 5),
        ("$1 > a.sig <%> b.sig", &0.125_f64, 3),
        ("minhash_similarity(a.sig, b.sig) >= $1", &0.875_f64, 5),
    ];
    for (condition, bound, expected) in cases {
        let query = format!("SELECT count(*) FROM docs a, docs b WHERE {condition}");
        let found: i64 = client.query_one(&query, &[bound])?.get(0);
        assert_eq!(found, expected, "{condition}");
    }
    Ok(())
}

#[test]
fn rust_receives_numbers_as_text() -> Outcome {
    let (_database, mut client) = rows()?;
    let messages = client.simple_query(
        "SELECT a.fp <~> b.fp, a.sig <%> b.sig FROM docs a, docs b WHERE a.id = 1 AND b.id = 2",
    )?;
    let row = (messages.iter())
        .find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some([row.get(0), row.get(1)]),
            _ => None,
        })
        .context("a row")?;
    assert_eq!(row, [Some("2"), Some("0.125")]);
    Ok(())
}

/// A prepared statement with untyped parameters keeps the index in its generic plan.
#[test]
fn untyped_bounds_reach_the_index() -> Outcome {
    let (_database, mut client) = rows()?;
    client.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")?;
    for (name, condition, arguments, index) in [
        (
            "bits",
            "fp <~> $1 <= $2",
            "'0000000000000000', 2",
            "docs_fp_idx",
        ),
        (
            "below",
            "$2 > fp <~> $1",
            "'0000000000000000', 2",
            "docs_fp_idx",
        ),
        (
            "exactly",
            "fp <~> $1 = $2",
            "'0000000000000000', 2",
            "docs_fp_idx",
        ),
        ("estimate", "sig <%> $1 <= $2", "NULL, 0.2", "docs_sig_idx"),
        (
            "alike",
            "minhash_similarity(sig, $1) >= $2",
            "NULL, 0.2",
            "docs_sig_idx",
        ),
    ] {
        client.batch_execute(&format!(
            "PREPARE {name} AS SELECT id FROM docs WHERE {condition}"
        ))?;
        let explain = format!("EXPLAIN (COSTS OFF) EXECUTE {name} ({arguments})");
        let mut plan = String::new();
        for message in client.simple_query(&explain)? {
            if let SimpleQueryMessage::Row(row) = message {
                plan += row.get(0).unwrap_or_default();
                plan += "\n";
            }
        }
        assert!(plan.contains(index), "{condition}\n{plan}");
    }
    Ok(())
}
