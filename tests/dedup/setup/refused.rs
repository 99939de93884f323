//! Invalid calls of `neardup_setup`, and that the function changes nothing.
use super::code;
use super::names::PLAIN;
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::Context;
use neardup_tests::Database;

/// Tables, a call, the SQLSTATE of its error, and words of its message.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("", "('t', 'nothing')", "42703", "does not exist"),
    ("", "('t', 'id')", "42804", "does not have a text type"),
    ("", "('t', 'ctid')", "42703", "does not exist"),
    (
        "",
        "('t', 'body', 'log')",
        "22023",
        "unknown value for \"action\"",
    ),
    (
        "",
        "('t', 'body', 'mark', 1.5)",
        "22023",
        "similarity must be between",
    ),
    (
        "",
        "('t', 'body', 'mark', 80)",
        "22023",
        "similarity must be between",
    ),
    (
        "",
        "('t', 'body', 'mark', 'NaN')",
        "22023",
        "similarity must be between",
    ),
    (
        "",
        "('t', 'body', 'mark', options => NULL)",
        "22004",
        "\"options\" must not be NULL",
    ),
    (
        "",
        "('t', 'body', 'mark', options => '{NULL}')",
        "22004",
        "NULL",
    ),
    (
        "",
        "('t', 'body', 'skip', options => '{radius=3}')",
        "22023",
        "does not accept the option \"radius\"",
    ),
    (
        "",
        "('t', 'body', options => '{confirm=body}')",
        "22023",
        "does not accept the option \"confirm\"",
    ),
    (
        "",
        "('t', 'body', 'skip', options => '{confirm}')",
        "22023",
        "invalid option",
    ),
    (
        "",
        "('t', 'body', 'skip', options => '{manual=true}')",
        "22023",
        "invalid options",
    ),
    (
        "",
        "('t', 'body', 'skip', keep => 'id')",
        "22023",
        "\"keep\" requires action => 'mark'",
    ),
    (
        "",
        "('t', 'body', 'mark', keep => 'id; DROP TABLE t')",
        "22023",
        "must be a list of ORDER BY expressions",
    ),
    (
        "",
        "('t', 'body', 'skip', options => '{htm=true}')",
        "22023",
        "neardup_dedup has no option \"htm\"",
    ),
    (
        "",
        "('t', 'body', 'skip', options => '{scope=site}')",
        "42703",
        "\"site\" of table \"t\" does not exist",
    ),
    (
        "",
        "(NULL, 'body')",
        "22004",
        "\"relation\" must not be NULL",
    ),
    (
        "",
        "('t', NULL)",
        "22004",
        "\"text_column\" must not be NULL",
    ),
    (
        "",
        "('t', 'body', NULL)",
        "22004",
        "\"action\" must not be NULL",
    ),
    (
        "",
        "('t', 'body', 'mark', NULL)",
        "22004",
        "\"similarity\" must not be NULL",
    ),
    ("", "(0, 'body')", "42P01", "does not exist"),
    ("", "('t_pkey', 'body')", "42809", "is not a table"),
    (
        "CREATE VIEW v AS SELECT * FROM t",
        "('v', 'body')",
        "42809",
        "is not a table",
    ),
    (
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM t",
        "('v', 'body')",
        "42809",
        "is not a table",
    ),
    (
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;
         CREATE FOREIGN TABLE f (body text) SERVER s",
        "('f', 'body')",
        "42809",
        "is not a table",
    ),
    (
        "CREATE TABLE p (body text) PARTITION BY LIST (body)",
        "('p', 'body')",
        "0A000",
        "is partitioned",
    ),
    (
        "CREATE TABLE p (body text) PARTITION BY LIST (body);
         CREATE TABLE q PARTITION OF p DEFAULT",
        "('q', 'body', 'skip')",
        "0A000",
        "is a partition",
    ),
    (
        "ALTER TABLE t DROP id",
        "('t', 'body', 'mark')",
        "42703",
        "single-column primary key",
    ),
    (
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, body)",
        "('t', 'body', 'mark')",
        "42703",
        "single-column primary key",
    ),
    (
        "CREATE INDEX t_body_neardup ON t (body)",
        "('t', 'body')",
        "42P07",
        "\"t_body_neardup\" already exists",
    ),
    (
        "CREATE INDEX t_body_neardup ON t USING neardup (minhash64(other))",
        "('t', 'body')",
        "42P07",
        "\"t_body_neardup\" already exists",
    ),
    (
        "CREATE INDEX t_body_neardup ON t USING neardup (minhash64(body)) WHERE id > 3",
        "('t', 'body')",
        "42P07",
        "\"t_body_neardup\" already exists",
    ),
    (
        "CREATE TABLE t_body_neardup_fp (id int)",
        "('t', 'body', 'skip')",
        "42P07",
        "\"t_body_neardup_fp\" already exists",
    ),
    (
        "CREATE INDEX t_body_neardup_of ON t (id)",
        "('t', 'body', 'mark')",
        "42P07",
        "\"t_body_neardup_of\" already exists",
    ),
    (
        "ALTER TABLE t ADD body_neardup_fp text",
        "('t', 'body', 'skip')",
        "42701",
        "\"body_neardup_fp\" of table \"t\" already exists",
    ),
    (
        "ALTER TABLE t ADD body_neardup_fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED",
        "('t', 'body', 'skip')",
        "42701",
        "\"body_neardup_fp\" of table \"t\" already exists",
    ),
    (
        "ALTER TABLE t ADD body_neardup_of text",
        "('t', 'body', 'mark')",
        "42701",
        "\"body_neardup_of\" of table \"t\" already exists",
    ),
    (
        "ALTER TABLE t ADD body_neardup_fp fingerprint; \
         CREATE INDEX t_body_neardup_fp ON t USING neardup (body_neardup_fp) WITH (radius = 6); \
         CREATE TRIGGER body_neardup BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION \
         neardup_dedup('body_neardup_fp', 'body', 'similarity=0.8', 'notice=true')",
        "('t', 'body', 'skip')",
        "42710",
        "\"body_neardup\" of table \"t\" already exists",
    ),
    (
        "CREATE TRIGGER body_neardup BEFORE UPDATE ON t FOR EACH ROW
         EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "('t', 'body', 'skip')",
        "42710",
        "trigger \"body_neardup\" of table \"t\" already exists",
    ),
    (
        "ALTER TABLE t ADD fp fingerprint; CREATE TRIGGER body_neardup BEFORE INSERT ON t
         FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'body')",
        "('t', 'body', 'skip')",
        "42710",
        "trigger \"body_neardup\" of table \"t\" already exists",
    ),
];

#[test]
fn a_call_that_cannot_work_is_refused_with_a_way_out() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (tables, call, expected, message) in REFUSED {
        let mut transaction = client.transaction()?;
        transaction.batch_execute("CREATE TABLE t (id int PRIMARY KEY, body text, other text)")?;
        transaction.batch_execute(tables)?;
        let query = format!("SELECT * FROM neardup_setup{call}");
        let error = transaction
            .batch_execute(&query)
            .err()
            .context(query.clone())?;
        assert_eq!(code(&error), *expected, "{query}: {error:?}");
        let error = error.as_db_error().context("an error of the server's")?;
        assert!(error.message().contains(message), "{query}: {error:?}");
        if *expected != "22004" {
            assert!(error.detail().is_some(), "{query}: {error:?}");
        }
        if !["22004", "22023"].contains(expected) {
            assert!(error.hint().is_some(), "{query}: {error:?}");
        }
    }
    Ok(())
}

#[test]
fn marks_and_other_actions_do_not_mix() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute("CREATE TABLE docs (id int PRIMARY KEY, body text)")?;
    for (first, second) in [("skip", "mark"), ("mark", "error")] {
        PLAIN.run(&mut client, first, "add")?;
        let query = format!("SELECT * FROM neardup_setup('docs', 'body', '{second}')");
        let error = client
            .batch_execute(&query)
            .err()
            .context("it is not refused")?;
        assert_eq!(code(&error), "55000", "{error:?}");
        PLAIN.run(&mut client, first, "remove")?;
        client.batch_execute(&query)?;
    }
    // One of these replaces the other.
    for action in ["skip", "error"] {
        PLAIN.run(&mut client, action, "add")?;
    }
    let arguments = "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'body_neardup'";
    let definition: String = value(&mut client, arguments)?;
    assert!(definition.contains("'action=error'"), "{definition}");
    Ok(())
}

/// The function changes nothing, and any role may call it.
#[test]
fn a_call_only_reads() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    PLAIN.create(&mut client, 10)?;
    let before = PLAIN.definition(&mut client)?;
    client.batch_execute("SET default_transaction_read_only = on; SET ROLE pg_monitor")?;
    for action in ["search", "skip", "error", "mark"] {
        for part in ["add", "remove"] {
            PLAIN.steps(&mut client, action, part)?;
        }
    }
    assert_eq!(PLAIN.definition(&mut client)?, before);
    Ok(())
}
