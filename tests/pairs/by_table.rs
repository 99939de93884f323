//! Objects that name a table keep working after changes that break objects that name an index.
use crate::support::Outcome;
use crate::support::table::value;
use neardup_tests::{Database, client_program};
use postgres::Client;
use std::process::Stdio;

const VIEWS: &str = "CREATE TABLE docs (id int PRIMARY KEY, fp fingerprint, sig \
    minhash_signature); \
    CREATE INDEX docs_fp ON docs USING neardup (fp); \
    CREATE INDEX docs_sig ON docs USING neardup (sig); \
    INSERT INTO docs SELECT i, (i / 2 * 4096)::bigint::fingerprint, minhash(ARRAY[(i / 2)::text, \
    'x']) \
        FROM generate_series(1, 9) i; \
    CREATE VIEW pairs AS SELECT * FROM neardup_pairs('docs', 0); \
    CREATE VIEW near AS SELECT * FROM neardup_pairs('docs', similarity => 1); \
    CREATE VIEW clusters AS SELECT * FROM neardup_clusters('docs', 0, column_name => 'fp'); \
    CREATE VIEW stars AS SELECT * \
        FROM neardup_clusters('docs', similarity => 1, column_name => 'sig'); \
    CREATE VIEW counts AS SELECT * \
        FROM neardup_distance_histogram('docs', 0, sample_rows => NULL); \
    CREATE FUNCTION found() RETURNS bigint LANGUAGE sql \
        BEGIN ATOMIC SELECT count(*) FROM neardup_pairs('docs', 0); END; \
    CREATE MATERIALIZED VIEW taken AS SELECT count(*) FROM neardup_pairs('docs', 0)";

/// Asserts the results of the views and functions for the nine rows.
fn all_answer(client: &mut Client) -> Outcome {
    for (query, expected) in [
        ("SELECT count(*) FROM pairs", 4i64),
        ("SELECT count(*) FROM near", 4),
        ("SELECT count(*) FROM clusters", 8),
        ("SELECT count(*) FROM stars", 8),
        ("SELECT pairs FROM counts", 4),
        ("SELECT found()", 4),
        ("SELECT count FROM taken", 4),
    ] {
        assert_eq!(value::<i64>(client, query)?, expected, "{query}");
    }
    Ok(())
}

#[test]
fn views_outlive_a_concurrent_reindex_and_a_dump() -> Outcome {
    let (from, into) = (Database::create()?, Database::create()?);
    let mut client = from.connect()?;
    client.batch_execute(VIEWS)?;
    all_answer(&mut client)?;
    client.batch_execute("REINDEX INDEX CONCURRENTLY docs_fp")?;
    client.batch_execute("REINDEX INDEX CONCURRENTLY docs_sig")?;
    all_answer(&mut client)?;
    client.batch_execute("REFRESH MATERIALIZED VIEW taken")?;

    let into = Database::create_on(into.conninfo(), "")?;
    let mut dump = client_program("pg_dump")?
        .arg(format!("--dbname={}", from.conninfo()))
        .stdout(Stdio::piped())
        .spawn()?;
    let restored = client_program("psql")?
        .args(["--no-psqlrc", "--quiet", "--single-transaction"])
        .arg("--set=ON_ERROR_STOP=1")
        .arg(format!("--dbname={}", into.conninfo()))
        .stdin(dump.stdout.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .status()?;
    assert!(dump.wait()?.success() && restored.success());
    all_answer(&mut into.connect()?)
}
