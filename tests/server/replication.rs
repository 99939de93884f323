//! Triggers in logical replication workers.
use crate::clients::documents::examples_marked;
use crate::support::Outcome;
use crate::support::table::value;
use crate::support::waiting::wait_until;
use anyhow::{Context, ensure};
use neardup_tests::{connect, own_server, project_path};

/// The subscriber marks near-duplicates in the first table, and skips them in the second. The
/// trigger of the third computes the fingerprint. The last trigger ignores replicated rows.
const TABLES: &str = "CREATE EXTENSION neardup; \
    CREATE TABLE marked (id bigint PRIMARY KEY, fp fingerprint, original bigint); \
    CREATE TABLE skipped (id bigint PRIMARY KEY, fp fingerprint); \
    CREATE TABLE computed (id bigint PRIMARY KEY, body text, fp fingerprint); \
    CREATE TABLE passed (id bigint PRIMARY KEY, fp fingerprint);";

const TRIGGERS: &str = "CREATE INDEX ON marked USING neardup (fp) WHERE original IS NULL; \
    CREATE INDEX ON marked (original); \
    CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
    CREATE TRIGGER renew AFTER UPDATE OR DELETE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
    CREATE INDEX ON skipped USING neardup (fp); \
    CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON skipped FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp'); \
    CREATE INDEX ON computed USING neardup (fp); \
    CREATE INDEX ON computed USING neardup (fp) WHERE id % 2 = 1; \
    CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON computed FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'body'); \
    CREATE INDEX ON passed USING neardup (fp); \
    CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON passed FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp'); \
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
         INSERT INTO passed SELECT 10 * n + i, {fp} {rows}; \
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
    // COPY transfers the first rows. Later rows are replicated one by one.
    source.batch_execute(&insert("1, 20"))?;
    // On one server the slot must exist before the subscription, which would wait for itself.
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
                 AND (SELECT count(*) FROM passed) = 3 * {numbers} \
                 AND (SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel)"
            ),
        )
    };
    caught_up(&mut target, 20)?;
    source.batch_execute(&insert("21, 40"))?;
    caught_up(&mut target, 40)?;
    // Deletes originals: one duplicate becomes the original of the others.
    source.batch_execute("DELETE FROM marked WHERE id % 10 = 0")?;
    wait_until(
        &mut target,
        "SELECT count(*) = 80 AND count(original) = 40 FROM marked",
    )?;
    let untrue = "SELECT count(*) FROM marked AS a LEFT JOIN marked AS b ON b.id = a.original \
         WHERE a.original IS NOT NULL AND (b.original IS NULL AND a.fp <#> b.fp <= 3) IS NOT TRUE";
    assert_eq!(value::<i64>(&mut target, untrue)?, 0);
    let rows = "SELECT count(*) FROM neardup_expert_rows_in_flight()";
    assert_eq!(value::<i64>(&mut target, rows)?, 0);
    Ok(())
}

/// Changes that come before the next replicated rows.
struct Step {
    /// Statements at the subscriber.
    change: &'static str,
    /// Statements at the source.
    publication: &'static str,
    /// Radius of the subscriber's triggers after the change.
    radius: u32,
}

/// Returns the marks of row 0 and of its copies 1, 2 and 3, which differ from it in 1, 2 and 3 bits
/// and from each other in as many bits as their numbers. The second list has the marks after row 0
/// is deleted.
fn marks_within(radius: u32) -> [&'static str; 2] {
    match radius {
        1 => ["1>0 3>2", "1>2 3>2"],
        2 => ["1>0 2>0", "1>3 2>3"],
        _ => ["1>0 2>0 3>0", "2>1 3>1"],
    }
}

const STEPS: &[Step] = &[
    Step {
        change: "",
        publication: "",
        radius: 3,
    },
    Step {
        change: "DROP TRIGGER mark ON notes; DROP TRIGGER renew ON notes; \
            CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON notes FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=1'); \
            CREATE TRIGGER renew AFTER UPDATE OR DELETE ON notes FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=1'); \
            ALTER TABLE notes ENABLE ALWAYS TRIGGER mark; \
            ALTER TABLE notes ENABLE ALWAYS TRIGGER renew",
        publication: "",
        radius: 1,
    },
    Step {
        change: "DROP INDEX notes_fp; CREATE INDEX notes_fp ON notes USING neardup (fp)",
        publication: "",
        radius: 1,
    },
    Step {
        change: "REINDEX INDEX CONCURRENTLY notes_fp",
        publication: "",
        radius: 1,
    },
    // The columns of the subscriber get other numbers.
    Step {
        change: "BEGIN; ALTER TABLE notes ADD added text; ALTER TABLE notes ADD moved bigint; \
            UPDATE notes SET moved = original; DROP TRIGGER mark ON notes; \
            DROP TRIGGER renew ON notes; ALTER TABLE notes DROP original; \
            ALTER TABLE notes RENAME moved TO original; \
            CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON notes FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=2'); \
            CREATE TRIGGER renew AFTER UPDATE OR DELETE ON notes FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=2'); \
            ALTER TABLE notes ENABLE ALWAYS TRIGGER mark; \
            ALTER TABLE notes ENABLE ALWAYS TRIGGER renew; COMMIT",
        publication: "",
        radius: 2,
    },
    Step {
        change: "",
        publication: "ALTER PUBLICATION everything SET TABLE notes (id, fp), others",
        radius: 2,
    },
    Step {
        change: "",
        publication: "ALTER PUBLICATION everything SET TABLE notes WHERE (id % 10 < 4)",
        radius: 2,
    },
];

#[test]
fn a_worker_follows_changes_of_the_subscriber_between_rows() -> Outcome {
    const TABLES: &str = "CREATE EXTENSION neardup; \
        CREATE TABLE notes (id bigint PRIMARY KEY, fp fingerprint); \
        CREATE TABLE others (id bigint PRIMARY KEY, fp fingerprint);";
    let source = own_server("follow-source", &[("wal_level", "logical")])?;
    let target = own_server("follow-target", &[])?;
    let mut writer = connect(&source.conninfo("postgres"))?;
    let mut reader = connect(&target.conninfo("postgres"))?;
    for client in [&mut writer, &mut reader] {
        client.batch_execute(TABLES)?;
    }
    reader.batch_execute(
        "ALTER TABLE notes ADD original bigint; CREATE INDEX notes_fp ON notes USING neardup (fp); \
         CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON notes FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
         CREATE TRIGGER renew AFTER UPDATE OR DELETE ON notes FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
         ALTER TABLE notes ENABLE ALWAYS TRIGGER mark; \
         ALTER TABLE notes ENABLE ALWAYS TRIGGER renew",
    )?;
    writer.batch_execute("CREATE PUBLICATION everything FOR TABLE notes")?;
    reader.batch_execute(&format!(
        "CREATE SUBSCRIPTION changes CONNECTION '{}' PUBLICATION everything",
        source.conninfo("postgres").replace('\'', "''")
    ))?;
    wait_until(
        &mut reader,
        "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel",
    )?;
    let worker = "SELECT pid FROM pg_stat_subscription WHERE pid IS NOT NULL";
    let first: i32 = value(&mut reader, worker)?;
    for (number, step) in (1..).zip(STEPS) {
        reader.batch_execute(step.change)?;
        writer.batch_execute(step.publication)?;
        writer.batch_execute(&format!(
            "INSERT INTO notes SELECT 10 * {number} + copy, \
                (hashint8extended({number}, 1) # ((1 << copy) - 1))::fingerprint \
             FROM generate_series(0, 3) AS copy"
        ))?;
        for (rows, expected) in [4, 3].into_iter().zip(marks_within(step.radius)) {
            let of_step = format!("FROM notes WHERE id / 10 = {number}");
            wait_until(&mut reader, &format!("SELECT count(*) = {rows} {of_step}"))?;
            let marks: Option<String> = value(
                &mut reader,
                &format!(
                    "SELECT string_agg(id % 10 || '>' || original % 10, ' ' ORDER BY id) {of_step}"
                ),
            )?;
            ensure!(
                marks.as_deref() == Some(expected),
                "step {number}: {marks:?}"
            );
            writer.batch_execute(&format!("DELETE FROM notes WHERE id = 10 * {number}"))?;
        }
    }
    ensure!(
        value::<i32>(&mut reader, worker)? == first,
        "another worker"
    );
    reader.batch_execute("DROP SUBSCRIPTION changes")?;
    Ok(())
}

/// Rows without a key are identified by all columns. The subscriber needs the equality of each
/// type, including balls and signatures.
#[test]
fn rows_are_found_by_equality_under_replica_identity_full() -> Outcome {
    const TABLE: &str = "CREATE EXTENSION neardup; CREATE TABLE bare (n int, fp fingerprint, \
        wide fingerprint128, widest fingerprint256, near fingerprint_ball, \
        near128 fingerprint128_ball, near256 fingerprint256_ball, near_bits bigint_ball, \
        sig minhash_signature, near_sig minhash_ball); \
        ALTER TABLE bare REPLICA IDENTITY FULL";
    const ROWS: &str = "INSERT INTO bare SELECT 1, fp, wide, widest, ball(fp, 3), ball(wide, 3), \
            ball(widest, 3), ball(n::bigint, 3), sig, minhash_ball(sig, 0.2) \
        FROM generate_series(1, 40) AS n, \
        LATERAL (SELECT n::bigint::fingerprint AS fp, md5(n::text)::uuid::fingerprint128 AS wide, \
            repeat(md5(n::text), 2)::fingerprint256 AS widest, \
            minhash(ARRAY[n::text], hashes => 16) AS sig) AS made";
    let source = own_server("identity-source", &[("wal_level", "logical")])?;
    let target = own_server("identity-target", &[])?;
    let mut writer = connect(&source.conninfo("postgres"))?;
    let mut reader = connect(&target.conninfo("postgres"))?;
    for client in [&mut writer, &mut reader] {
        client.batch_execute(TABLE)?;
    }
    writer.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES")?;
    reader.batch_execute(&format!(
        "CREATE SUBSCRIPTION changes CONNECTION '{}' PUBLICATION everything",
        source.conninfo("postgres").replace('\'', "''")
    ))?;
    writer.batch_execute(ROWS)?;
    wait_until(&mut reader, "SELECT count(*) = 40 FROM bare")?;
    writer.batch_execute(
        "DELETE FROM bare WHERE fp::bigint % 2 = 0; \
         UPDATE bare SET n = 2, near = ball(fp, 9) WHERE fp::bigint % 3 = 0",
    )?;
    let digest = "SELECT md5(string_agg(bare::text, ' ' ORDER BY fp)) FROM bare";
    let expected: String = value(&mut writer, digest)?;
    wait_until(
        &mut reader,
        "SELECT count(*) = 20 AND sum(n) = 27 FROM bare",
    )?;
    assert_eq!(value::<String>(&mut reader, digest)?, expected);
    reader.batch_execute("DROP SUBSCRIPTION changes")?;
    Ok(())
}

/// The statements of docs/platforms.md for a server that cannot load the extension: another server
/// receives its texts and searches them.
#[test]
fn a_server_without_the_extension_feeds_one_with_it() -> Outcome {
    let document = std::fs::read_to_string(project_path("docs/platforms.md"))?;
    let blocks = examples_marked(&document, "# Your platform", "sql not-run");
    let [publish, subscribe] = [0, 1].map(|n| blocks.get(n).map(|block| block.sql.as_str()));
    let (publish, subscribe) = publish.zip(subscribe).context("two blocks")?;
    let managed = own_server("managed", &[("wal_level", "logical")])?;
    let own = own_server("beside", &[])?;
    let mut source = connect(&managed.conninfo("postgres"))?;
    let mut target = connect(&own.conninfo("postgres"))?;
    source.batch_execute(
        "CREATE TABLE articles (id bigint PRIMARY KEY, title text, body text); \
         INSERT INTO articles VALUES (1, 'Library', 'The library reopens on Monday.')",
    )?;
    source.batch_execute(publish)?;
    target.batch_execute("CREATE EXTENSION neardup")?;
    let address = managed.conninfo("postgres").replace('\'', "''");
    let documented = "host=managed.example dbname=app user=replicator";
    for statement in subscribe.split_inclusive(';').filter(|it| it.contains(';')) {
        target.batch_execute(&statement.replace(documented, &address))?;
    }
    source.batch_execute("INSERT INTO articles VALUES (2, '', 'Rain is expected.')")?;
    wait_until(&mut target, "SELECT count(*) = 2 FROM articles")?;
    let near = "SELECT count(*) FROM articles \
        WHERE fingerprint_similarity(fp, minhash64('the LIBRARY reopens on Monday')) >= 0.8";
    assert_eq!(value::<i64>(&mut target, near)?, 1);
    target.batch_execute("DROP SUBSCRIPTION texts")?;
    Ok(())
}
