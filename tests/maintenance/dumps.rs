//! Dumps of data that are restored into tables with triggers and constraints.
use crate::support::Outcome;
use crate::support::roles::Role;
use crate::support::table::value;
use anyhow::{Result, ensure};
use neardup_tests::{Database, client_program};
use postgres::Client;
use std::process::Stdio;

/// Tables with marks, with a trigger that skips rows, and with a constraint. Rows are dumped in the
/// order of insertion, in which the triggers would not have made the same decisions: a mark was set
/// by hand and another removed, originals follow their copies, and near-duplicates are older than
/// the trigger that skips them. The last trigger also fires at a subscriber.
const TABLES: &str = "\
    CREATE TABLE marked (id bigint PRIMARY KEY, fp fingerprint, \
        dup bigint REFERENCES marked DEFERRABLE); \
    CREATE INDEX marked_fp ON marked USING neardup (fp) WHERE dup IS NULL; \
    CREATE INDEX ON marked (dup); \
    CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3'); \
    CREATE TRIGGER mark_after AFTER UPDATE OR DELETE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3'); \
    CREATE TABLE skipped (id bigint PRIMARY KEY, fp fingerprint); \
    CREATE INDEX skipped_fp ON skipped USING neardup (fp); \
    INSERT INTO skipped SELECT n, (hashint8extended(n / 2, 1) # n % 2)::fingerprint \
        FROM generate_series(1, 100) n; \
    CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON skipped FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'radius=3'); \
    CREATE TABLE apart (id bigint PRIMARY KEY, body text, \
        fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED, \
        CONSTRAINT apart_fp EXCLUDE USING neardup (ball(fp, 6) WITH ~=)); \
    INSERT INTO apart SELECT n, md5(n::text) || ' ' || md5((-n)::text) || ' x y' \
        FROM generate_series(1, 100) n ON CONFLICT DO NOTHING; \
    INSERT INTO marked SELECT n, (hashint8extended(n / 4, 1) # n % 4)::fingerprint \
        FROM generate_series(1, 100) n; \
    UPDATE marked SET dup = NULL WHERE id % 20 = 2; \
    UPDATE marked SET dup = 4 WHERE id % 20 = 15; \
    UPDATE marked SET dup = id - 1 WHERE id = 64; \
    ALTER TABLE skipped ENABLE ALWAYS TRIGGER skip;";

/// All rows of all tables.
const ROWS: &str = "SELECT md5(string_agg(row, ' ' ORDER BY row)) FROM ( \
    SELECT 'marked' || marked::text AS row FROM marked UNION ALL \
    SELECT 'skipped' || skipped::text FROM skipped UNION ALL \
    SELECT 'apart' || apart::text FROM apart) AS rows";

/// How many indexes agree with their tables, and the state in which each trigger fires.
const STATE: &str = "SELECT (SELECT count(*) FROM neardup_indexes, \
        LATERAL neardup_index_check(index, heap => true)) || \
    (SELECT string_agg(tgname || ' ' || tgenabled::text, ' ' ORDER BY tgname) FROM pg_trigger \
     WHERE NOT tgisinternal)";

/// Restores a dump of the database `from` into the database `into`. `dump` has options of pg_dump,
/// and `session` has settings of the session that restores it. Returns whether it succeeded.
fn restore(from: &str, dump: &[&str], into: &str, session: &str) -> Result<bool> {
    let mut dump = client_program("pg_dump")?
        .args(dump)
        .arg(format!("--dbname={from}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let restored = client_program("psql")?
        .args([
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
        ])
        .arg(format!("--dbname={into}"))
        .env("PGOPTIONS", session)
        .stdin(dump.stdout.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(dump.wait()?.success() && restored.success())
}

/// Makes a database with the schema of the database `from`, without rows.
fn empty_copy(from: &Database) -> Result<(Database, Client)> {
    let into = Database::create_on(from.conninfo(), "")?;
    let copied = restore(from.conninfo(), &["--schema-only"], into.conninfo(), "")?;
    ensure!(copied, "the schema was not restored");
    let client = into.connect()?;
    Ok((into, client))
}

fn ensure_restored(client: &mut Client, expected: &str, state: &str, way: &str) -> Outcome {
    let rows: Option<String> = value(client, ROWS)?;
    ensure!(rows.as_deref() == Some(expected), "{way}: other rows");
    let now: String = value(client, STATE)?;
    ensure!(now == state, "{way}: {now} instead of {state}");
    // The triggers and the constraint work again.
    client.batch_execute(
        "INSERT INTO marked SELECT 1000, fp FROM marked WHERE id = 1; \
         INSERT INTO skipped SELECT 1000, fp FROM skipped WHERE id = 1; \
         INSERT INTO apart (id, body) SELECT 1000, body FROM apart WHERE id = 1 \
            ON CONFLICT DO NOTHING",
    )?;
    let found: String = value(
        client,
        "SELECT (SELECT dup FROM marked WHERE id = 1000) || ' ' || \
            (SELECT count(*) FROM skipped WHERE id = 1000) || ' ' || \
            (SELECT count(*) FROM apart WHERE id = 1000)",
    )?;
    ensure!(found == "1 0 0", "{way}: {found}");
    Ok(())
}

#[test]
fn a_dump_of_the_data_alone_restores_marks_without_triggers() -> Outcome {
    let from = Database::create()?;
    let mut client = from.connect()?;
    client.batch_execute(TABLES)?;
    let rows: String = value(&mut client, ROWS)?;
    let state: String = value(&mut client, STATE)?;

    let all = Database::create_on(from.conninfo(), "")?;
    ensure!(
        restore(from.conninfo(), &[], all.conninfo(), "")?,
        "a whole dump"
    );
    ensure_restored(&mut all.connect()?, &rows, &state, "a whole dump")?;

    // With the triggers, some rows get other marks and others are skipped.
    let (into, mut client) = empty_copy(&from)?;
    ensure!(
        restore(from.conninfo(), &["--data-only"], into.conninfo(), "")?,
        "with triggers"
    );
    let changed: String = value(&mut client, ROWS)?;
    ensure!(changed != rows, "the triggers change nothing");

    // The dump then enables each trigger for its own server only.
    let (into, mut client) = empty_copy(&from)?;
    let dump = ["--data-only", "--disable-triggers"];
    ensure!(
        restore(from.conninfo(), &dump, into.conninfo(), "")?,
        "--disable-triggers"
    );
    client.batch_execute("ALTER TABLE skipped ENABLE ALWAYS TRIGGER skip")?;
    ensure_restored(&mut client, &rows, &state, "--disable-triggers")?;

    // The setting has no effect on triggers that always fire.
    let (into, mut client) = empty_copy(&from)?;
    client.batch_execute("ALTER TABLE skipped ENABLE TRIGGER skip")?;
    let replica = "-c session_replication_role=replica";
    ensure!(
        restore(from.conninfo(), &["--data-only"], into.conninfo(), replica)?,
        "{replica}"
    );
    client.batch_execute("ALTER TABLE skipped ENABLE ALWAYS TRIGGER skip")?;
    ensure_restored(&mut client, &rows, &state, replica)?;

    // The owner of the tables need not be a superuser. Foreign keys are then checked.
    let (into, mut client) = empty_copy(&from)?;
    let role = Role::create(&into)?;
    for table in ["marked", "skipped", "apart"] {
        client.batch_execute(&format!(
            "ALTER TABLE {table} OWNER TO {}; ALTER TABLE {table} DISABLE TRIGGER USER",
            role.name
        ))?;
    }
    let owner = role.conninfo(&into);
    ensure!(
        restore(from.conninfo(), &["--data-only"], &owner, "")?,
        "the owner"
    );
    for table in ["marked", "skipped", "apart"] {
        client.batch_execute(&format!("ALTER TABLE {table} ENABLE TRIGGER USER"))?;
    }
    client.batch_execute("ALTER TABLE skipped ENABLE ALWAYS TRIGGER skip")?;
    ensure_restored(&mut client, &rows, &state, "the owner")
}
