//! Stored values after a change of jieba's dictionary: the statements of docs/change-function.md
//! find them and compute them again, beside writers.
use crate::clients::documents::examples;
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::waiting::{poll, wait_until};
use anyhow::{Context, Result, ensure};
use neardup_tests::{connect, own_server, project_path};
use postgres::error::SqlState;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Call that computes all fingerprints.
const CALL: &str = "simhash(body, tokens => 'jieba', shingle => 1)";

/// Tables with a generated column, with a column that a trigger fills, with marks, and with an
/// index on an expression.
const TABLES: &str = "CREATE EXTENSION neardup; \
    CREATE TABLE generated (id bigint PRIMARY KEY, body text, fp fingerprint \
        GENERATED ALWAYS AS (simhash(body, tokens => 'jieba', shingle => 1)) STORED); \
    CREATE TABLE filled (id bigint PRIMARY KEY, body text, fp fingerprint); \
    CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        NEW.fp := simhash(NEW.body, tokens => 'jieba', shingle => 1); RETURN NEW; END $$; \
    CREATE TRIGGER fill BEFORE INSERT OR UPDATE OF body ON filled FOR EACH ROW \
        EXECUTE FUNCTION fill(); \
    CREATE TABLE marked (id bigint PRIMARY KEY, body text, dup bigint, fp fingerprint \
        GENERATED ALWAYS AS (simhash(body, tokens => 'jieba', shingle => 1)) STORED); \
    CREATE INDEX ON marked (dup); \
    CREATE TABLE indexed (id bigint PRIMARY KEY, body text); \
    CREATE INDEX generated_fp ON generated USING neardup (fp); \
    CREATE INDEX filled_fp ON filled USING neardup (fp); \
    CREATE INDEX marked_fp ON marked USING neardup (fp) WHERE dup IS NULL; \
    CREATE INDEX indexed_fp ON indexed \
        USING neardup (simhash(body, tokens => 'jieba', shingle => 1)); \
    CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3'); \
    CREATE TRIGGER mark_after AFTER UPDATE OR DELETE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');";

/// Tables with stored values, and the assignment that computes them again.
const STORED: [(&str, &str); 3] = [
    ("generated", "body = body"),
    (
        "filled",
        "fp = simhash(body, tokens => 'jieba', shingle => 1)",
    ),
    ("marked", "body = body"),
];
const ROWS: u64 = 300;
const CLIENTS: u64 = 3;

/// Returns a text. The new words divide it differently.
fn body(random: &mut Random) -> String {
    const PARTS: [&str; 6] = [
        "李小福是创新办主任",
        "云计算",
        "方面的专家",
        "也是",
        "科学院",
        "他",
    ];
    (0..3 + random.below(5))
        .map(|_| PARTS[random.below(PARTS.len() as u64) as usize])
        .collect()
}

/// Writes rows of all tables until `done`. Counts its statements in `statements`.
fn write(conninfo: &str, seed: u64, done: &AtomicBool, statements: &AtomicU32) -> Outcome {
    let mut client = connect(conninfo)?;
    client.batch_execute("SET deadlock_timeout = '20ms'")?;
    let mut random = Random::new(seed);
    while !done.load(Ordering::Relaxed) {
        for table in ["generated", "filled", "marked", "indexed"] {
            let (id, body) = (random.below(2 * ROWS), body(&mut random));
            let result = client.batch_execute(&match random.below(4) {
                0 => format!("DELETE FROM {table} WHERE id = {id}"),
                1 => format!("UPDATE {table} SET body = '{body}' WHERE id = {id}"),
                _ => format!(
                    "INSERT INTO {table} (id, body) VALUES ({id}, '{body}') ON CONFLICT DO NOTHING"
                ),
            });
            let may_repeat = code(&result) == Some(SqlState::T_R_DEADLOCK_DETECTED);
            ensure!(result.is_ok() || may_repeat, "{table}: {result:?}");
            statements.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Returns the block of the document that computes values in batches, for a table.
fn block(document: &str, table: &str, assignment: &str) -> Result<String> {
    let found = (examples(document, "# Change the function later").into_iter())
        .find(|example| example.sql.starts_with("DO $$"))
        .context("a block")?;
    let (block, _) = found.sql.split_once("END $$;").context("its end")?;
    let mut block = format!("{block}END $$");
    let name = format!(" {table} ");
    for (from, to) in [
        (
            "SET fp2 = minhash128(body)",
            format!("SET {assignment}").as_str(),
        ),
        (
            "fp2 IS DISTINCT FROM minhash128(body)",
            &format!("fp IS DISTINCT FROM {CALL}"),
        ),
        (" docs ", &name),
        ("LIMIT 10000", "LIMIT 20"),
    ] {
        ensure!(block.contains(from), "the block does not contain {from}");
        block = block.replace(from, to);
    }
    Ok(block)
}

/// Counts the values that differ from those of the function.
fn old_values(client: &mut postgres::Client, table: &str) -> Result<i64> {
    value(
        client,
        &format!("SELECT count(*) FROM {table} WHERE fp IS DISTINCT FROM {CALL}"),
    )
}

#[test]
fn values_are_computed_again_beside_writers() -> Outcome {
    let document = std::fs::read_to_string(project_path("docs/change-function.md"))?;
    let server = own_server("recompute", &[])?;
    let conninfo = server.conninfo("postgres");
    let mut client = connect(&conninfo)?;
    client.batch_execute(TABLES)?;
    let mut random = Random::new(7);
    for id in 0..ROWS {
        for table in ["generated", "filled", "marked", "indexed"] {
            let body = body(&mut random);
            client.execute(
                &format!("INSERT INTO {table} (id, body) VALUES ({id}, $1)"),
                &[&body],
            )?;
        }
    }
    client.batch_execute("ALTER SYSTEM SET neardup.jieba_user_words = '创新办, 云计算 5'")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait_until(
        &mut client,
        "SELECT current_setting('neardup.jieba_user_words') <> ''",
    )?;
    for (table, _) in STORED {
        let old = old_values(&mut client, table)?;
        ensure!(old > ROWS as i64 / 2, "{table}: {old}");
    }
    let check = "SELECT rows FROM neardup_index_check('indexed_fp', heap => true)";
    let damaged = client.query_one(check, &[]);
    ensure!(
        code(&damaged) == Some(SqlState::INDEX_CORRUPTED),
        "{damaged:?}"
    );

    let (done, statements) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| -> Outcome {
        let writers: Vec<_> = (0..CLIENTS)
            .map(|seed| {
                scope.spawn({
                    let (conninfo, done, statements) = (&conninfo, &done, &statements);
                    move || write(conninfo, seed, done, statements)
                })
            })
            .collect();
        let computed = (|| -> Outcome {
            for (table, assignment) in STORED {
                let before = statements.load(Ordering::Relaxed);
                poll("the writers go on", || {
                    Ok(statements.load(Ordering::Relaxed) > before + 10)
                })?;
                let block = block(&document, table, assignment)?;
                // A deadlock with a writer ends the block, which can then run again.
                loop {
                    let result = client.batch_execute(&block);
                    if code(&result) != Some(SqlState::T_R_DEADLOCK_DETECTED) {
                        break result?;
                    }
                }
                let old = old_values(&mut client, table)?;
                ensure!(old == 0, "{table}: {old}");
            }
            client.batch_execute("REINDEX INDEX CONCURRENTLY indexed_fp")?;
            Ok(())
        })();
        done.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("no panic")?;
        }
        computed
    })?;

    for (table, assignment) in STORED {
        ensure!(old_values(&mut client, table)? == 0, "{table}");
        // The second time, the block writes nothing.
        let versions = format!("SELECT string_agg(ctid::text, ' ' ORDER BY id) FROM {table}");
        let before: String = value(&mut client, &versions)?;
        client.batch_execute(&block(&document, table, assignment)?)?;
        ensure!(
            value::<String>(&mut client, &versions)? == before,
            "{table}"
        );
        let check = format!("SELECT rows FROM neardup_index_check('{table}_fp', heap => true)");
        value::<i64>(&mut client, &check)?;
    }
    value::<i64>(&mut client, check)?;
    let wrong = "SELECT count(*) FROM marked AS a LEFT JOIN marked AS b ON b.id = a.dup \
        WHERE a.dup IS NOT NULL AND (b.dup IS NULL AND a.fp <#> b.fp <= 3) IS NOT TRUE";
    ensure!(value::<i64>(&mut client, wrong)? == 0, "wrong marks");
    let missing = "SELECT count(*) FROM marked AS a JOIN marked AS b ON a.id < b.id \
        WHERE a.dup IS NULL AND b.dup IS NULL AND a.fp <#> b.fp <= 3";
    ensure!(
        value::<i64>(&mut client, missing)? == 0,
        "originals near each other"
    );
    Ok(())
}
