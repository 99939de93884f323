//! `old_snapshot_threshold`, in servers before version 17: VACUUM removes rows that an old
//! snapshot still sees. A reader with that snapshot must get error 72000, never a result without
//! these rows.
use crate::search::standing_scans::{WAYS, classes};
use crate::support::clients::code;
use crate::support::oracle::plan;
use crate::support::skip::skip_optional;
use crate::support::table::value;
use crate::support::waiting::poll;
use crate::support::{Outcome, with};
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::error::SqlState;
use postgres::{Client, IsolationLevel, Transaction};
use std::collections::BTreeMap;

/// A table `docs` with the index `docs_fp`, and queries that the index can answer.
struct Subject {
    schema: String,
    /// The operator class and the kind of index.
    name: String,
    queries: Vec<String>,
}

/// Makes a schema for each operator class and each kind of index.
fn make_subjects(client: &mut Client) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    let mut add = |client: &mut Client, name: String, fill: &dyn Fn(&mut Client) -> Result<_>| {
        let schema = format!("subject_{}", subjects.len());
        client.batch_execute(&format!(
            "CREATE SCHEMA {schema}; SET search_path = {schema}, public"
        ))?;
        let queries = fill(client)?;
        subjects.push(Subject {
            schema,
            name,
            queries,
        });
        anyhow::Ok(())
    };
    for class in classes(client)? {
        for (kind, index) in class.indexes() {
            add(client, format!("{}, {kind}", class.name), &|client| {
                class.prepare(client)?;
                client.batch_execute(&format!(
                    "INSERT INTO docs SELECT * FROM source; \
                     CREATE INDEX docs_fp ON docs USING neardup {index}"
                ))?;
                class.queries(kind)
            })?;
        }
    }
    add(client, "bigint_array_ops, plain".to_owned(), &|client| {
        client.batch_execute(
            "CREATE TABLE docs AS SELECT n AS id, ARRAY[n % 9, 1000 + n] AS fp \
                FROM generate_series(1::bigint, 700) AS n; \
             CREATE INDEX docs_fp ON docs USING neardup (fp)",
        )?;
        let array = "ARRAY[5, 1005]::bigint[]";
        Ok(vec![
            format!("SELECT 1 FROM docs WHERE fp && {array}"),
            format!("SELECT 1 FROM docs WHERE fp = {array}"),
        ])
    })?;
    Ok(subjects)
}

/// Tables that functions read. VACUUM does not process the indexes of tables named `pruned`.
const FOR_FUNCTIONS: &str = "\
    CREATE SCHEMA functions; SET search_path = functions, public; \
    CREATE FUNCTION signature_of(n bigint) RETURNS minhash_signature IMMUTABLE \
        RETURN minhash(ARRAY(SELECT n || ':' || word FROM generate_series(1, 20) AS word), 32); \
    CREATE TABLE docs AS SELECT n AS id, (n % 3)::int AS site, \
        hashint8extended(n % 350, 1)::fingerprint AS fp FROM generate_series(1::bigint, 700) AS n; \
    CREATE INDEX docs_fp ON docs USING neardup (fp); \
    CREATE TABLE scoped AS SELECT id, id % 350 AS site, fp FROM docs; \
    CREATE INDEX scoped_fp ON scoped USING neardup (site, fp); \
    CREATE TABLE signed AS SELECT id, signature_of(id % 350) AS fp FROM docs; \
    CREATE INDEX signed_fp ON signed USING neardup (fp) WITH (hashes = 32); \
    CREATE TABLE pruned AS TABLE docs; \
    CREATE INDEX pruned_fp ON pruned USING neardup (fp); \
    CREATE TABLE pruned_scoped AS TABLE scoped; \
    CREATE INDEX pruned_scoped_fp ON pruned_scoped USING neardup (site, fp); \
    CREATE TABLE pruned_signed AS TABLE signed; \
    CREATE INDEX pruned_signed_fp ON pruned_signed USING neardup (fp) WITH (hashes = 32);";

/// Tables from [`FOR_FUNCTIONS`], each with a radius of near-duplicates.
const READ_BY_FUNCTIONS: [(&str, &str); 6] = [
    ("docs", "3"),
    ("scoped", "3"),
    ("signed", "similarity => 0.9"),
    ("pruned", "3"),
    ("pruned_scoped", "3"),
    ("pruned_signed", "similarity => 0.9"),
];

/// Tables to which rows are added under the old snapshot.
const WRITTEN: &str = "\
    CREATE SCHEMA written; SET search_path = written, public; \
    CREATE TABLE apart (id int, fp fingerprint, \
        CONSTRAINT apart_fp EXCLUDE USING neardup (fp WITH ~=)); \
    CREATE TABLE guarded (id int, fp fingerprint); \
    CREATE INDEX guarded_fp ON guarded USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT ON guarded \
        FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=error'); \
    INSERT INTO apart \
        SELECT n, hashint8extended(n, 1)::fingerprint FROM generate_series(1, 700) AS n; \
    INSERT INTO guarded TABLE apart;";

/// Tables in which rows are deleted.
const TABLES: &str = "SELECT format('%I.%I', nspname, relname) FROM pg_class \
    JOIN pg_namespace ON pg_namespace.oid = relnamespace \
    WHERE relkind = 'r' AND relname <> 'source' \
    AND (nspname LIKE 'subject\\_%' OR nspname IN ('functions', 'written'))";

/// Deletes every second row of each table, and vacuums until the server has removed these rows,
/// although an old snapshot sees them.
fn remove_early(client: &mut Client) -> Result<()> {
    let tables: Vec<String> = (client.query(TABLES, &[])?.iter())
        .map(|row| row.get(0))
        .collect();
    for table in &tables {
        client.batch_execute(&format!("DELETE FROM {table} WHERE id % 2 = 0"))?;
    }
    // The server's threshold has whole minutes, at least two.
    poll("VACUUM removes rows", || {
        is_vacuumed(client, "functions.docs")
    })?;
    for table in &tables {
        match table.starts_with("functions.pruned") {
            true => client.batch_execute(&format!("VACUUM (INDEX_CLEANUP OFF) {table}"))?,
            false => ensure!(is_vacuumed(client, table)?, "{table} is not vacuumed"),
        }
    }
    Ok(())
}

/// Vacuums a table, and returns whether it has no dead rows left.
fn is_vacuumed(client: &mut Client, table: &str) -> Result<bool> {
    client.batch_execute(&format!("VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {table}"))?;
    let pages = "relpages > 0 AND relallvisible = relpages";
    let query = format!("SELECT {pages} FROM pg_class WHERE oid = '{table}'::regclass");
    value(client, &query)
}

/// Runs a query in a savepoint. Returns an error unless the query fails with error 72000.
fn is_refused(reader: &mut Transaction, query: &str) -> Result<()> {
    reader.batch_execute("SAVEPOINT query")?;
    let result = reader.query(query, &[]);
    ensure!(
        code(&result) == Some(SqlState::SNAPSHOT_TOO_OLD),
        "{} rows, {:?}: {query}",
        result.as_ref().map_or(0, Vec::len),
        result.err()
    );
    reader.batch_execute("ROLLBACK TO query; RELEASE query")?;
    Ok(())
}

/// Runs queries that use the index in each way. Counts them by class and way.
fn queries_are_refused(reader: &mut Transaction, subjects: &[Subject]) -> Result<()> {
    for subject in subjects {
        let mut taken: BTreeMap<&str, u32> = BTreeMap::new();
        for query in &subject.queries {
            for (way, settings, mark) in WAYS {
                reader.batch_execute(&format!(
                    "SAVEPOINT way; SET LOCAL search_path = {}, public; \
                     SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; \
                     SET LOCAL enable_bitmapscan = off; {settings}",
                    subject.schema
                ))?;
                if plan(reader, query)?.contains(mark) {
                    let on = || format!("{}, {way}", subject.name);
                    is_refused(reader, query).with_context(on)?;
                    *taken.entry(way).or_insert(0) += 1;
                }
                reader.batch_execute("ROLLBACK TO way; RELEASE way")?;
            }
        }
        ensure!(taken.len() >= 2, "{}: {taken:?}", subject.name);
    }
    Ok(())
}

fn functions_are_refused(reader: &mut Transaction) -> Result<()> {
    for (table, limit) in READ_BY_FUNCTIONS {
        let mut calls = vec![
            format!("neardup_pairs('functions.{table}', {limit})"),
            format!("neardup_clusters('functions.{table}', {limit})"),
        ];
        if !table.ends_with("signed") {
            calls.push(format!("neardup_distance_histogram('functions.{table}')"));
        }
        for call in calls {
            is_refused(reader, &format!("SELECT count(*) FROM {call}"))?;
        }
        let check = format!("SELECT neardup_index_check('functions.{table}_fp', true)");
        is_refused(reader, &check)?;
    }
    Ok(())
}

/// Constraints and triggers search the current rows, independent of the snapshot.
fn writers_go_on(reader: &mut Transaction) -> Result<()> {
    for table in ["written.apart", "written.guarded"] {
        // Every second one of the first 700 rows is left.
        for (n, is_free) in [(2, true), (3, false), (1000, true), (1000, false)] {
            let row = format!("{n}, hashint8extended({n}, 1)::fingerprint");
            reader.batch_execute("SAVEPOINT row")?;
            let result = reader.execute(&format!("INSERT INTO {table} SELECT {row}"), &[]);
            ensure!(result.is_ok() == is_free, "{table}, {n}: {result:?}");
            if !is_free {
                ensure!(
                    code(&result) != Some(SqlState::SNAPSHOT_TOO_OLD),
                    "{table}, {n}"
                );
                reader.batch_execute("ROLLBACK TO row")?;
            }
            reader.batch_execute("RELEASE row")?;
        }
    }
    Ok(())
}

#[test]
fn readers_with_a_snapshot_that_is_too_old_get_an_error_instead_of_fewer_rows() -> Outcome {
    let version = "SELECT current_setting('server_version_num')::int";
    let version: i32 = value(&mut Database::create()?.connect()?, version)?;
    if version >= 170_000 {
        return skip_optional("the server has no old_snapshot_threshold");
    }
    let settings = [
        ("old_snapshot_threshold", "1min"),
        ("autovacuum", "off"),
        ("fsync", "off"),
    ];
    with(own_server("old-snapshots", &settings)?, |server| {
        let conninfo = server.conninfo("postgres");
        let (mut client, mut reader) = (connect(&conninfo)?, connect(&conninfo)?);
        client.batch_execute("CREATE EXTENSION neardup")?;
        let subjects = make_subjects(&mut client)?;
        client.batch_execute(FOR_FUNCTIONS)?;
        client.batch_execute(WRITTEN)?;
        reader.batch_execute("SET jit = off; SET search_path = functions, public")?;
        let mut reader = (reader.build_transaction())
            .isolation_level(IsolationLevel::RepeatableRead)
            .start()?;
        let before: i64 = value(&mut reader, "SELECT count(*) FROM docs")?;
        ensure!(before == 700, "{before} rows");
        remove_early(&mut client)?;
        queries_are_refused(&mut reader, &subjects)?;
        functions_are_refused(&mut reader)?;
        writers_go_on(&mut reader)
    })
}
