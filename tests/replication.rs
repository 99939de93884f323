//! Triggers in the processes that apply changes of another server.
use crate::support::Outcome;
use crate::support::clients::wait_until;
use crate::support::table::value;
use neardup_tests::{connect, own_server};

/// A table whose near-duplicates the subscriber marks, one where it skips them, and one that holds
/// them, on both sides.
const TABLES: &str = "CREATE EXTENSION neardup; \
    CREATE TABLE marked (id bigint PRIMARY KEY, fp fingerprint, original bigint); \
    CREATE TABLE skipped (id bigint PRIMARY KEY, fp fingerprint); \
    CREATE TABLE computed (id bigint PRIMARY KEY, body text, fp fingerprint);";

const TRIGGERS: &str = "CREATE INDEX ON marked USING neardup (fp) WHERE original IS NULL; \
    CREATE INDEX ON marked (original); \
    CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original'); \
    CREATE TRIGGER renew AFTER UPDATE OR DELETE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original'); \
    CREATE INDEX ON skipped USING neardup (fp); \
    CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON skipped FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp'); \
    CREATE INDEX ON computed USING neardup (fp); \
    CREATE INDEX ON computed USING neardup (fp) WHERE id % 2 = 1; \
    CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON computed FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'body'); \
    ALTER TABLE marked ENABLE ALWAYS TRIGGER mark; \
    ALTER TABLE marked ENABLE ALWAYS TRIGGER renew; \
    ALTER TABLE skipped ENABLE ALWAYS TRIGGER skip; \
    ALTER TABLE computed ENABLE ALWAYS TRIGGER skip;";

/// Rows 10 * n to 10 * n + 2, each 1 bit from the next, for some n.
fn insert(numbers: &str) -> String {
    let rows = format!(
        "FROM generate_series({numbers}) AS n, \
         (VALUES (0, 0), (1, 1), (2, 3)) AS copy (i, bits)"
    );
    let fp = "(hashint8extended(n, 1) # bits)::fingerprint";
    format!(
        "INSERT INTO marked SELECT 10 * n + i, {fp} {rows}; \
         INSERT INTO skipped SELECT 10 * n + i, {fp} {rows}; \
         INSERT INTO computed SELECT 10 * n + i, \
             (SELECT string_agg(md5(n || ' ' || word), ' ') FROM generate_series(1, 30) AS word) \
             {rows};"
    )
}

#[test]
fn a_subscriber_keeps_near_duplicates_out_and_marks_true() -> Outcome {
    let server = own_server("apply", &[("wal_level", "logical")])?;
    let mut admin = connect(&server.conninfo("postgres"))?;
    for name in ["source", "target"] {
        admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
    }
    let source_of = server.conninfo("source");
    let mut source = connect(&source_of)?;
    let mut target = connect(&server.conninfo("target"))?;
    source.batch_execute(TABLES)?;
    target.batch_execute(TABLES)?;
    target.batch_execute(TRIGGERS)?;
    // What is there at first comes by COPY, what comes later row by row.
    source.batch_execute(&insert("1, 20"))?;
    // On one server the slot has to be there before the subscription, which would wait for itself.
    source.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES")?;
    source.batch_execute("SELECT pg_create_logical_replication_slot('changes', 'pgoutput')")?;
    target.batch_execute(&format!(
        "CREATE SUBSCRIPTION changes CONNECTION '{}' PUBLICATION everything \
         WITH (create_slot = false)",
        source_of.replace('\'', "''")
    ))?;
    let caught_up = |client: &mut _, numbers: u32| {
        wait_until(
            client,
            &format!(
                "SELECT (SELECT count(*) FROM marked) = 3 * {numbers} \
                 AND (SELECT count(*) FROM skipped) = {numbers} \
                 AND (SELECT count(*) FROM computed) = {numbers} \
                 AND (SELECT count(original) FROM marked) = 2 * {numbers} \
                 AND (SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel)"
            ),
        )
    };
    caught_up(&mut target, 20)?;
    source.batch_execute(&insert("21, 40"))?;
    caught_up(&mut target, 40)?;
    // Originals go: their duplicates become each other's.
    source.batch_execute("DELETE FROM marked WHERE id % 10 = 0")?;
    wait_until(
        &mut target,
        "SELECT count(*) = 80 AND count(original) = 40 FROM marked",
    )?;
    let untrue = "SELECT count(*) FROM marked AS a LEFT JOIN marked AS b ON b.id = a.original \
         WHERE a.original IS NOT NULL AND (b.original IS NULL AND a.fp <#> b.fp <= 3) IS NOT TRUE";
    assert_eq!(value::<i64>(&mut target, untrue)?, 0);
    let rows = "SELECT count(*) FROM neardup_rows_in_flight()";
    assert_eq!(value::<i64>(&mut target, rows)?, 0);
    Ok(())
}
