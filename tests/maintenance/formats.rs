//! Indexes in the format of another version of neardup. Each use raises an error whose hint is a
//! working statement that rebuilds the index.
use super::corruption::{PAGE, SETTINGS, VERSION};
use crate::support::oracle::Way;
use crate::support::table::value;
use crate::support::{Outcome, with};
use anyhow::{Context, Result};
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::Client;
use std::fs;

/// An index, the statement that rebuilds it, and statements that use it.
struct Case {
    /// Name as a value of type regclass.
    index: &'static str,
    rebuild: &'static str,
    uses: &'static [&'static str],
}

const TABLES: &str = r#"
CREATE EXTENSION neardup;
CREATE SCHEMA "Old one";
SET search_path = "Old one", public;
CREATE TABLE docs (id int PRIMARY KEY, fp fingerprint);
CREATE TABLE kept (id int PRIMARY KEY, fp fingerprint);
CREATE TABLE wide (id int PRIMARY KEY, fp fingerprint256);
CREATE TABLE numbers (id int PRIMARY KEY, fp bigint, scope text);
CREATE TABLE signed (id int PRIMARY KEY, sig minhash_signature);
CREATE TABLE lists (id int PRIMARY KEY, list bigint[]);
CREATE TABLE marked (id int PRIMARY KEY, body text, fp fingerprint, copy_of int);
CREATE TABLE parts (id int, fp fingerprint) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parts DEFAULT;
INSERT INTO docs SELECT i, minhash64('text number ' || i) FROM generate_series(1, 300) i;
INSERT INTO kept SELECT i, left(md5(i::text), 16)::fingerprint FROM generate_series(1, 9) i;
INSERT INTO wide SELECT i, repeat(md5(i::text), 2)::fingerprint256 FROM generate_series(1, 300) i;
INSERT INTO numbers SELECT id, fp::bigint, 'a' FROM docs;
INSERT INTO signed SELECT id, minhash('text number ' || id) FROM docs;
INSERT INTO lists SELECT id, ARRAY[id] FROM docs;
INSERT INTO marked SELECT id, 'text number ' || id, fp FROM docs;
INSERT INTO parts SELECT * FROM docs;
CREATE INDEX "docs ""fp" ON docs USING neardup (fp);
ALTER TABLE kept ADD CONSTRAINT "One copy" EXCLUDE USING neardup (fp WITH ~=);
CREATE INDEX wide_fp ON wide USING neardup (fp);
CREATE INDEX numbers_fp ON numbers USING neardup (scope, fp bigint_hamming_ops);
CREATE INDEX signed_sig ON signed USING neardup (sig);
CREATE INDEX lists_list ON lists USING neardup (list);
CREATE INDEX marked_fp ON marked USING neardup (fp) WHERE copy_of IS NULL;
CREATE INDEX parts_fp ON parts USING neardup (fp);
CREATE TRIGGER marked BEFORE INSERT OR UPDATE OF body, fp, copy_of ON marked FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'similarity=0.8', 'action=mark', 'mark=copy_of');
CREATE TRIGGER marked_after AFTER UPDATE OR DELETE ON marked FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'similarity=0.8', 'action=mark', 'mark=copy_of');
"#;

const CASES: [Case; 8] = [
    Case {
        index: r#""docs ""fp""#,
        rebuild: r#"REINDEX INDEX CONCURRENTLY "Old one"."docs ""fp";"#,
        uses: &[
            "SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= 3",
            "SELECT count(*) FROM docs WHERE fp = '0000000000000000'",
            "SELECT id FROM docs ORDER BY fp <~> '0000000000000000' LIMIT 1",
            "SELECT count(*) FROM generate_series(1, 3) i \
             JOIN docs ON fp <~> i::bigint::fingerprint <= 3",
            "INSERT INTO docs VALUES (1000, '0000000000000000')",
            "INSERT INTO docs VALUES (1000, NULL)",
            "UPDATE docs SET fp = minhash64('another text') WHERE id = 1",
            "VACUUM (INDEX_CLEANUP ON) docs",
            "SELECT * FROM neardup_pairs('docs', 3)",
            "SELECT * FROM neardup_clusters('docs', 3)",
            "SELECT * FROM neardup_pairs_by_key(NULL::int, 'docs', 3)",
            "SELECT neardup_report('docs')",
            r#"SELECT neardup_index_info('"docs ""fp"')"#,
            r#"SELECT neardup_expert_index_statistics('"docs ""fp"')"#,
            r#"SELECT neardup_index_check('"docs ""fp"')"#,
            r#"SELECT neardup_index_check('"docs ""fp"', heap => true)"#,
            r#"SELECT neardup_index_check('"docs ""fp"', heap => true, concurrently => true)"#,
        ],
    },
    Case {
        index: r#""One copy""#,
        rebuild: r#"REINDEX INDEX "Old one"."One copy";"#,
        uses: &[
            "INSERT INTO kept VALUES (1000, '0000000000000000')",
            "INSERT INTO kept VALUES (1000, '0000000000000000') ON CONFLICT DO NOTHING",
            "SELECT count(*) FROM kept WHERE fp <~> '0000000000000000' <= 3",
            "SELECT * FROM neardup_clusters('kept', 3)",
            r#"SELECT neardup_index_check('"One copy"')"#,
        ],
    },
    Case {
        index: "wide_fp",
        rebuild: r#"REINDEX INDEX CONCURRENTLY "Old one".wide_fp;"#,
        uses: &[
            "SELECT count(*) FROM wide WHERE fp <~> repeat('0', 64)::fingerprint256 <= 9",
            "INSERT INTO wide VALUES (1000, repeat('0', 64)::fingerprint256)",
            "SELECT * FROM neardup_pairs('wide', 3)",
        ],
    },
    Case {
        index: "numbers_fp",
        rebuild: r#"REINDEX INDEX CONCURRENTLY "Old one".numbers_fp;"#,
        uses: &[
            "SELECT count(*) FROM numbers WHERE scope = 'a' AND fp <~> 0::bigint <= 3",
            "INSERT INTO numbers VALUES (1000, 0, 'a')",
            "SELECT * FROM neardup_pairs('numbers', 3)",
        ],
    },
    Case {
        index: "signed_sig",
        rebuild: r#"REINDEX INDEX CONCURRENTLY "Old one".signed_sig;"#,
        uses: &[
            "SELECT count(*) FROM signed WHERE sig ~= minhash('text number 7')",
            "INSERT INTO signed VALUES (1000, minhash('another text'))",
            "SELECT * FROM neardup_pairs('signed', similarity => 0.9)",
            "SELECT neardup_index_info('signed_sig')",
        ],
    },
    Case {
        index: "lists_list",
        rebuild: r#"REINDEX INDEX CONCURRENTLY "Old one".lists_list;"#,
        uses: &[
            "SELECT count(*) FROM lists WHERE list && ARRAY[7::bigint]",
            "INSERT INTO lists VALUES (1000, ARRAY[7])",
        ],
    },
    Case {
        index: "marked_fp",
        rebuild: r#"REINDEX INDEX CONCURRENTLY "Old one".marked_fp;"#,
        uses: &[
            "INSERT INTO marked VALUES (1000, 'text number 7')",
            "UPDATE marked SET body = 'text number 7' WHERE id = 8",
            "SELECT neardup_remark('marked')",
        ],
    },
    Case {
        index: "part_fp_idx",
        rebuild: r#"REINDEX INDEX CONCURRENTLY "Old one".part_fp_idx;"#,
        uses: &[
            "SELECT count(*) FROM parts WHERE fp <~> '0000000000000000' <= 3",
            "INSERT INTO parts VALUES (1000, '0000000000000000')",
        ],
    },
];

/// Adds a number to the layout version of each index, as in another version of neardup.
fn change_versions(server: &mut Server, change: i16) -> Outcome {
    let mut client = enter(server)?;
    let mut files = Vec::new();
    for case in &CASES {
        // The stop below writes all pages to the file, and leaves none in memory.
        let path = format!("SELECT pg_relation_filepath($${}$$)", case.index);
        files.push(server.data().join(value::<String>(&mut client, &path)?));
    }
    drop(client);
    server.stop()?;
    for file in files {
        let mut pages = fs::read(&file).with_context(|| file.display().to_string())?;
        assert!(pages.len() > PAGE);
        let version = u16::from_le_bytes([pages[VERSION], pages[VERSION + 1]]);
        let other = version.checked_add_signed(change).context("a version")?;
        pages[VERSION..VERSION + 2].copy_from_slice(&other.to_le_bytes());
        fs::write(file, pages)?;
    }
    server.start()
}

fn enter(server: &Server) -> Result<Client> {
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute(r#"SET search_path = "Old one", public"#)?;
    Way::Index.set(&mut client)?;
    Ok(client)
}

/// Runs a statement, which must fail with the error about the format.
fn is_refused(client: &mut Client, case: &Case, statement: &str) -> Outcome {
    let error = client
        .batch_execute(statement)
        .err()
        .context(statement.to_owned())?;
    let error = error.as_db_error().context("an error of the server's")?;
    let context = format!("{statement}: {error:?}");
    assert_eq!(error.code().code(), "0A000", "{context}");
    assert_eq!(error.hint(), Some(case.rebuild), "{context}");
    assert!(error.detail().is_some(), "{context}");
    assert!(error.message().contains("layout"), "{context}");
    Ok(())
}

/// The query of docs/versions.md for all indexes of a database.
fn rebuild_all(client: &mut Client) -> Outcome {
    let query = "SELECT format('REINDEX INDEX %s %s;',
            CASE WHEN NOT is_constraint THEN 'CONCURRENTLY' END, index)
        FROM neardup_indexes WHERE bytes IS NOT NULL";
    for row in client.query(query, &[])? {
        client.batch_execute(row.get(0)).context(query)?;
    }
    Ok(())
}

#[test]
fn an_index_of_another_version_names_the_statement_that_rebuilds_it() -> Outcome {
    with(own_server("formats", &SETTINGS)?, |server| {
        connect(&server.conninfo("postgres"))?.batch_execute(TABLES)?;
        for change in [-1, 1] {
            change_versions(server, change)?;
            let mut client = enter(server)?;
            // VACUUM reads the index only if there are dead rows.
            client.batch_execute("DELETE FROM docs WHERE id = 300")?;
            for case in &CASES {
                for statement in case.uses {
                    is_refused(&mut client, case, statement)?;
                }
                // A new session has not read the index yet.
                is_refused(&mut enter(server)?, case, case.uses[0])?;
            }
            // Statements without the index work.
            client.batch_execute("ANALYZE docs; SET enable_seqscan = on")?;
            let rows: i64 = value(&mut client, "SELECT count(*) FROM docs WHERE id > 0")?;
            assert!(rows > 200, "{rows}");
            Way::Index.set(&mut client)?;
            match change {
                1 => rebuild_all(&mut client)?,
                _ => CASES
                    .iter()
                    .try_for_each(|case| client.batch_execute(case.rebuild))?,
            }
            for case in &CASES {
                for statement in case.uses {
                    // Rolls back each statement where possible, so that the tables do not change.
                    let in_transaction = !statement.starts_with("VACUUM");
                    let result = match in_transaction {
                        true => client.batch_execute(&format!("BEGIN; {statement}; ROLLBACK")),
                        false => client.batch_execute(statement),
                    };
                    result.with_context(|| (*statement).to_owned())?;
                }
                let check = format!("SELECT neardup_index_check($${}$$, true)", case.index);
                client.batch_execute(&check).context(check)?;
            }
            // Without a change, the next round would test nothing.
            client.batch_execute("INSERT INTO docs VALUES (300, minhash64('text number 300'))")?;
        }
        Ok(())
    })
}

#[test]
fn the_server_rebuilds_the_index_of_a_constraint_in_one_way_only() -> Outcome {
    let database = neardup_tests::Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE kept (fp fingerprint, CONSTRAINT kept_fp EXCLUDE USING neardup (fp WITH ~=))",
    )?;
    let result = client.batch_execute("REINDEX INDEX CONCURRENTLY kept_fp");
    let error = result
        .err()
        .context("the hint could name CONCURRENTLY for constraints too")?;
    assert_eq!(
        error.code().map(|code| code.code()),
        Some("0A000"),
        "{error:?}"
    );
    client.batch_execute("REINDEX INDEX kept_fp")?;
    Ok(())
}
