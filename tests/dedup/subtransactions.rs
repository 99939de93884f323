//! Subtransactions: the memory that a transaction keeps between statements neither grows with the
//! number of savepoints, nor outlives the lock that protects it.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::table::value;
use crate::support::waiting::wait_until;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::error::SqlState;
use postgres::{Client, Transaction};

/// Values of rows by a number, far from each other, and tables for them with each kind of index.
const TABLES: &str = "\
    CREATE FUNCTION word(n int, seed int) RETURNS text IMMUTABLE \
        RETURN lpad(to_hex(hashint8extended(n, seed)), 16, '0'); \
    CREATE FUNCTION fp_of(n int) RETURNS fingerprint IMMUTABLE \
        RETURN hashint8extended(n, 1)::fingerprint; \
    CREATE FUNCTION wide_of(n int) RETURNS fingerprint256 IMMUTABLE \
        RETURN (word(n, 1) || word(n, 2) || word(n, 3) || word(n, 4))::fingerprint256; \
    CREATE FUNCTION signature_of(n int) RETURNS minhash_signature IMMUTABLE \
        RETURN minhash(ARRAY(SELECT n || ':' || word FROM generate_series(1, 20) AS word), 32); \
    CREATE TABLE plain (id int, fp fingerprint); \
    CREATE INDEX plain_fp ON plain USING neardup (fp); \
    CREATE TABLE wide (id int, fp fingerprint256); \
    CREATE INDEX wide_fp ON wide USING neardup (fp); \
    CREATE TABLE number (id int, fp bigint); \
    CREATE INDEX number_fp ON number USING neardup (fp bigint_hamming_ops); \
    CREATE TABLE scoped (id int, fp fingerprint); \
    CREATE INDEX scoped_fp ON scoped USING neardup ((id % 3), fp); \
    CREATE TABLE part (id int, fp fingerprint); \
    CREATE INDEX part_fp ON part USING neardup (fp) WHERE id > 0; \
    CREATE TABLE signed (id int, fp minhash_signature); \
    CREATE INDEX signed_fp ON signed USING neardup (fp) WITH (hashes = 32); \
    CREATE TABLE arrays (id int, fp bigint[]); \
    CREATE INDEX arrays_fp ON arrays USING neardup (fp); \
    CREATE TABLE apart (id int, fp fingerprint, \
        CONSTRAINT apart_fp EXCLUDE USING neardup (fp WITH ~=)); \
    CREATE TABLE wide_apart (id int, fp fingerprint256, \
        CONSTRAINT wide_apart_fp EXCLUDE USING neardup (fp WITH ~=)); \
    CREATE TABLE scoped_apart (id int, fp bigint, CONSTRAINT scoped_apart_fp \
        EXCLUDE USING neardup ((id % 3) WITH =, fp bigint_hamming_ops WITH ~=)); \
    CREATE TABLE guarded (id int, fp fingerprint); \
    CREATE INDEX guarded_fp ON guarded USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON guarded \
        FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius=3'); \
    CREATE TABLE signed_guarded (id int, fp minhash_signature); \
    CREATE INDEX signed_guarded_fp ON signed_guarded USING neardup (fp) WITH (hashes = 32); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON signed_guarded \
        FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp'); \
    CREATE TABLE left_out (kept int, distance int, dropped jsonb, fingerprint fingerprint); \
    CREATE TABLE logged (id int PRIMARY KEY, fp fingerprint); \
    CREATE INDEX logged_fp ON logged USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON logged FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=log', 'log=left_out'); \
    CREATE TABLE strict (id int, fp fingerprint); \
    CREATE INDEX strict_fp ON strict USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON strict \
        FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'action=error'); \
    CREATE TABLE marked (id int PRIMARY KEY, fp fingerprint, original int); \
    CREATE INDEX marked_fp ON marked USING neardup (fp); \
    CREATE INDEX marked_original ON marked (original); \
    CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
    CREATE TRIGGER renew AFTER UPDATE OR DELETE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); ";

/// A table of [`TABLES`], and the value of row `n` in it.
const KINDS: [(&str, &str); 15] = [
    ("plain", "fp_of(n)"),
    ("wide", "wide_of(n)"),
    ("number", "fp_of(n)::bigint"),
    ("scoped", "fp_of(n)"),
    ("part", "fp_of(n)"),
    ("signed", "signature_of(n)"),
    ("arrays", "ARRAY[n, n + 1, n * 1000]::bigint[]"),
    ("apart", "fp_of(n)"),
    ("wide_apart", "wide_of(n)"),
    ("scoped_apart", "fp_of(n)::bigint"),
    ("guarded", "fp_of(n)"),
    ("signed_guarded", "signature_of(n)"),
    ("logged", "fp_of(n)"),
    ("strict", "fp_of(n)"),
    ("marked", "fp_of(n)"),
];

/// The condition that a row has the value of row `n`.
fn has_value(table: &str, value: &str) -> String {
    match table {
        "arrays" => format!("fp && {value}"),
        "part" => format!("fp = {value} AND id > 0"),
        _ => format!("fp = {value}"),
    }
}

/// Runs a statement for the numbers from `first` on: each one alone, in a subtransaction that
/// commits, or in one that is rolled back.
const LOOPS: &str = "\
    CREATE FUNCTION run(statement text, way text, first int, count int) RETURNS void \
        LANGUAGE plpgsql AS $$ BEGIN \
            FOR n IN first..first + count - 1 LOOP \
                IF way = 'statements' THEN \
                    EXECUTE statement USING n; \
                    CONTINUE; \
                END IF; \
                BEGIN \
                    EXECUTE statement USING n; \
                    IF way = 'aborts' THEN RAISE division_by_zero; END IF; \
                EXCEPTION WHEN division_by_zero THEN NULL; END; \
            END LOOP; \
        END $$";

/// Returns the bytes in the memory contexts of this session.
fn allocated(client: &mut Transaction) -> Result<i64> {
    let sum = "SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts";
    value(client, sum)
}

/// Statements with a parameter `$1`, each with its number of runs.
fn statements() -> Vec<(String, i32)> {
    const MANY: i32 = 100;
    const FEW: i32 = 15;
    let mut all = Vec::new();
    for (table, value) in KINDS {
        let of_row = "FROM (SELECT $1::int AS n) AS row";
        let of_new = "FROM (SELECT 10000 + $1::int AS n) AS row";
        let of_nine = "FROM (SELECT 20000 + $1::int AS id, $1::int % 9 AS n) AS row";
        all.push((
            format!("INSERT INTO {table} SELECT n, {value} {of_new}"),
            MANY,
        ));
        if table != "strict" {
            all.push((
                format!("INSERT INTO {table} SELECT id, {value} {of_nine} ON CONFLICT DO NOTHING"),
                MANY,
            ));
        }
        let found = has_value(table, value);
        all.push((
            format!("SELECT count(id) {of_row}, {table} WHERE {found}"),
            MANY,
        ));
        all.push((format!("UPDATE {table} SET fp = fp WHERE id = $1"), MANY));
        all.push((format!("DELETE FROM {table} WHERE id = $1"), MANY));
    }
    for function in [
        "neardup_pairs",
        "neardup_clusters",
        "neardup_distance_histogram",
    ] {
        for table in ["plain", "wide"] {
            all.push((
                format!("SELECT $1, count(*) FROM {function}('{table}', 3)"),
                FEW,
            ));
        }
    }
    all
}

#[test]
fn memory_does_not_grow_with_the_number_of_subtransactions_or_statements() -> Outcome {
    /// A context that grows by doubling may double in between.
    const SLACK: i64 = 65_536;
    /// Bytes per run that the server keeps for a change until the transaction ends.
    const EACH: i64 = 600;
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(TABLES)?;
    client.batch_execute(LOOPS)?;
    client.batch_execute("SET enable_seqscan = off; SET jit = off")?;
    for (table, value) in KINDS {
        // The rows that statements find, update and delete.
        let numbers = "generate_series(1000, 2100) AS n WHERE n % 1000 < 100";
        client.batch_execute(&format!(
            "INSERT INTO {table} SELECT n, {value} FROM {numbers}"
        ))?;
    }
    for (statement, count) in statements() {
        for way in ["statements", "commits", "aborts", "savepoints"] {
            let on = || format!("{way}: {statement}");
            let mut transaction = client.transaction()?;
            let run = |transaction: &mut Transaction, first: i32| -> Result<()> {
                if way != "savepoints" {
                    let call = "SELECT run($1, $2, $3, $4)";
                    transaction.execute(call, &[&statement, &way, &first, &count])?;
                    return Ok(());
                }
                for n in first..first + count {
                    let statement = statement.replace("$1", &n.to_string());
                    transaction.batch_execute(&format!("SAVEPOINT s; {statement}; RELEASE s"))?;
                }
                Ok(())
            };
            run(&mut transaction, 1_000).with_context(on)?;
            let before = allocated(&mut transaction)?;
            run(&mut transaction, 2_000).with_context(on)?;
            let grown = allocated(&mut transaction)? - before;
            transaction.rollback()?;
            let limit = SLACK + EACH * i64::from(count);
            ensure!(grown <= limit, "{grown} bytes more: {}", on());
        }
    }
    Ok(())
}

/// Opens a cursor, reads a row, and makes the cursor fail in a savepoint that is rolled back.
fn fail_in_savepoint(transaction: &mut Transaction, query: &postgres::Statement) -> Result<()> {
    let portal = transaction.bind(query, &[])?;
    let first = transaction.query_portal(&portal, 1)?;
    ensure!(first.len() == 1, "no first row");
    transaction.batch_execute("SAVEPOINT s; SET LOCAL test.fails = on")?;
    let rest = transaction.query_portal(&portal, 0);
    ensure!(code(&rest) == Some(SqlState::DIVISION_BY_ZERO), "{rest:?}");
    transaction.batch_execute("ROLLBACK TO s; RELEASE s")?;
    Ok(())
}

/// Function that fails if a setting is on.
const FAILING: &str = "\
    CREATE FUNCTION checked(id int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN \
        IF current_setting('test.fails') = 'on' THEN RAISE division_by_zero; END IF; \
        RETURN id; \
    END $$;";

/// Returns queries that use the index of a table and fail at a later row: by a scan, and by rows
/// that a function inserts.
fn failing_queries(client: &mut Client, table: &str, value: &str) -> Result<[String; 2]> {
    client.batch_execute(&format!(
        "CREATE FUNCTION add_to_{table}(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN \
            INSERT INTO {table} SELECT n, {value}; RETURN checked(n); END $$"
    ))?;
    let found = has_value(table, value);
    Ok([
        format!(
            "SELECT checked(row.n), found FROM (VALUES (1), (2), (3)) AS row (n), LATERAL \
             (SELECT count(*) FROM {table} WHERE {found} OFFSET 0) AS rows (found)"
        ),
        format!("SELECT add_to_{table}(n) FROM generate_series(101, 110) AS n"),
    ])
}

#[test]
fn a_cursor_that_fails_in_a_savepoint_leaves_the_lock_of_what_is_remembered() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(TABLES)?;
    client.batch_execute(FAILING)?;
    client.batch_execute(
        "SET test.fails = off; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan",
    )?;
    for (table, value_of) in KINDS {
        let insert = "FROM generate_series(1, 50) AS n ON CONFLICT DO NOTHING";
        client.batch_execute(&format!(
            "INSERT INTO {table} SELECT n, {value_of} {insert}"
        ))?;
        for text in failing_queries(&mut client, table, value_of)? {
            let query = client.prepare(&text)?;
            // Plans the queries here: planning locks indexes until the transaction ends.
            let mut transaction = client.transaction()?;
            transaction.query(&query, &[])?;
            transaction.rollback()?;
            let index: String = value(
                &mut client,
                &format!(
                    "SELECT indexrelid::text FROM pg_index JOIN pg_class ON pg_class.oid = \
                     indexrelid JOIN pg_am ON pg_am.oid = relam AND amname = 'neardup' \
                     WHERE indrelid = '{table}'::regclass"
                ),
            )?;
            let mut transaction = client.transaction()?;
            fail_in_savepoint(&mut transaction, &query)?;
            let locked: i64 = value(
                &mut transaction,
                &format!(
                    "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() \
                     AND relation = {index} AND mode = 'AccessShareLock'"
                ),
            )?;
            ensure!(locked == 1, "{locked} locks on the index: {text}");
            transaction.rollback()?;
        }
    }
    Ok(())
}

/// A table whose index VACUUM can mostly truncate. VACUUM then waits for an advisory lock before
/// it ends: the second index is on a function that takes the lock.
const SHRINKING: &str = "\
    CREATE FUNCTION waits(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
        PERFORM pg_advisory_xact_lock_shared(42); RETURN id; \
    END $$; \
    CREATE TABLE docs (id int, fp fingerprint) WITH (autovacuum_enabled = off); \
    CREATE INDEX docs_fp ON docs USING neardup (fp); \
    CREATE INDEX docs_waits ON docs USING brin (waits(id)) WITH (pages_per_range = 1); \
    INSERT INTO docs SELECT n, fp_of(n) FROM generate_series(1, 20000) AS n;";

#[test]
fn what_a_failed_cursor_remembered_is_not_used_on_a_truncated_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut vacuum = database.connect()?;
    let mut watcher = database.connect()?;
    client.batch_execute(TABLES)?;
    client.batch_execute(FAILING)?;
    client.batch_execute(SHRINKING)?;
    client.batch_execute(
        "SET test.fails = off; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan",
    )?;
    let query = client.prepare(
        "SELECT checked(row.n), found FROM (VALUES (1), (2), (3)) AS row (n), LATERAL \
         (SELECT count(*) FROM docs WHERE fp <~> fp_of(n) <= 3 OFFSET 0) AS rows (found)",
    )?;
    let mut transaction = client.transaction()?;
    transaction.query(&query, &[])?;
    transaction.rollback()?;
    vacuum.batch_execute("DELETE FROM docs WHERE id % 100 > 0")?;

    let mut transaction = client.transaction()?;
    transaction.batch_execute("SELECT pg_advisory_xact_lock(42)")?;
    fail_in_savepoint(&mut transaction, &query)?;
    let backend: i32 = value(&mut vacuum, "SELECT pg_backend_pid()")?;
    std::thread::scope(|scope| -> Result<()> {
        let vacuum = scope.spawn(move || vacuum.batch_execute("VACUUM (TRUNCATE FALSE) docs"));
        wait_until(
            &mut watcher,
            &format!(
                "SELECT count(*) > 0 FROM pg_stat_activity \
                 WHERE pid = {backend} AND wait_event = 'advisory'"
            ),
        )?;
        // The cursor was searching for the second row when it failed.
        transaction.batch_execute("INSERT INTO docs SELECT 30000, fp_of(2)")?;
        let found: i64 = value(
            &mut transaction,
            "SELECT count(*) FROM docs WHERE fp <~> fp_of(2) <= 3",
        )?;
        ensure!(found == 1, "{found} rows");
        transaction.commit()?;
        match vacuum.join() {
            Ok(result) => Ok(result?),
            Err(_) => anyhow::bail!("the client panicked"),
        }
    })?;
    client.batch_execute("SELECT neardup_index_check('docs_fp', true)")?;
    Ok(())
}
