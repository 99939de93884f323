//! Triggers with a radius for each language, as in docs/dedup.md, under many clients.
use crate::dedup::recipes::blocks;
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use anyhow::{Context, Result, bail, ensure};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

const CLIENTS: u64 = 6;
const TRANSACTIONS: u32 = 120;
/// Centres around which all clients write.
const CENTERS: u64 = 10;
/// Keys that clients share.
const KEYS: u64 = 200;

/// The radius for two rows of one language.
const LIMIT: &str = "CASE a.lang WHEN 'zh' THEN 8 ELSE 6 END";

/// Returns a block of the document that makes a table; the fingerprints are written directly.
fn schema(table: &str) -> Result<String> {
    let blocks = blocks("dedup.md", "A radius for each language")?;
    let made = format!("CREATE TABLE {table} (");
    let block = (blocks.iter().find(|block| block.starts_with(&made))).context("a block")?;
    let generated = "fp   fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED";
    ensure!(block.contains(generated), "{block}");
    // Replaces the trigger on the text by one on the fingerprint.
    Ok(block
        .replace(generated, "fp   fingerprint")
        .replace("OF body, lang", "OF fp, lang"))
}

fn statement(random: &mut Random, table: &str) -> String {
    let center = Random::new(random.below(CENTERS)).bits();
    let fp = format!("'{:016x}'", random.near(center, 8));
    let (key, lang) = (
        random.below(KEYS),
        ["zh", "en", "de"][random.below(3) as usize],
    );
    match random.below(8) {
        0..5 => format!(
            "INSERT INTO {table} (id, lang, fp) VALUES ({key}, '{lang}', {fp}) \
             ON CONFLICT DO NOTHING"
        ),
        5 => format!("UPDATE {table} SET fp = {fp} WHERE id = {key}"),
        6 => format!("UPDATE {table} SET lang = '{lang}' WHERE id = {key}"),
        _ => format!("DELETE FROM {table} WHERE id = {key}"),
    }
}

/// Runs transactions of one to three statements. Returns how many were committed.
fn client(conninfo: &str, table: &str, seed: u64) -> Result<u32> {
    let mut client = connect(conninfo)?;
    client.batch_execute("SET deadlock_timeout = '20ms'")?;
    let mut random = Random::new(seed);
    let mut committed = 0;
    for _ in 0..TRANSACTIONS {
        let statements: Vec<String> = (0..=random.below(3))
            .map(|_| statement(&mut random, table))
            .collect();
        let result = client.batch_execute(&format!("BEGIN; {}; COMMIT", statements.join("; ")));
        let lost = [
            // Deadlocks between rows, and rows that a constraint refuses.
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::EXCLUSION_VIOLATION,
            // A row that another session has moved to another partition.
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::UNIQUE_VIOLATION,
        ];
        match code(&result) {
            Some(state) if lost.contains(&state) => client.batch_execute("ROLLBACK")?,
            _ => {
                result?;
                committed += 1;
            }
        }
    }
    Ok(committed)
}

/// Runs many clients that write to a table. Returns a session that does not use indexes.
fn write_to(database: &Database, table: &str) -> Result<Client> {
    let mut admin = database.connect()?;
    admin.batch_execute(&schema(table)?)?;
    std::thread::scope(|scope| -> Outcome {
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|seed| {
                let conninfo = database.conninfo();
                scope.spawn(move || client(conninfo, table, seed))
            })
            .collect();
        for client in clients {
            match client.join() {
                Ok(committed) => ensure!(committed? > 0, "nothing was committed"),
                Err(_) => bail!("a client panicked"),
            }
        }
        Ok(())
    })?;
    admin.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    Ok(admin)
}

/// Number of pairs of rows of a table that meet a condition.
fn count(admin: &mut Client, table: &str, condition: &str) -> Result<i64> {
    let query = format!("SELECT count(*) FROM {table} a, {table} b WHERE {condition}");
    value(admin, &query)
}

/// Asserts that no two rows of one language are within its radius, and that rows remain that are
/// near only by the larger radius or across languages.
fn keeps_out(table: &str) -> Outcome {
    let database = Database::create()?;
    let mut admin = write_to(&database, table)?;
    let same = "a.id < b.id AND a.lang = b.lang";
    let near = format!("{same} AND a.fp <#> b.fp <= {LIMIT}");
    ensure!(count(&mut admin, table, &near)? == 0, "{table}");
    let between = format!("{same} AND a.lang <> 'zh' AND a.fp <#> b.fp IN (7, 8)");
    ensure!(count(&mut admin, table, &between)? > 0, "{table}");
    let others = "a.id < b.id AND a.lang <> b.lang AND a.fp <#> b.fp <= 6";
    ensure!(count(&mut admin, table, others)? > 0, "{table}");
    Ok(())
}

#[test]
fn a_constraint_with_a_distance_for_each_language() -> Outcome {
    keeps_out("pages")
}

#[test]
fn a_trigger_for_each_language() -> Outcome {
    keeps_out("news")
}

/// Signatures have a trigger for each language, by similarity: two that differ in 3 of 16 values.
#[test]
fn signatures_with_a_similarity_for_each_language() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE signed (lang text, sig minhash_signature); \
         CREATE INDEX ON signed USING neardup (lang, sig) WITH (hashes = 16, similarity = 0.7); \
         CREATE TRIGGER zh BEFORE INSERT OR UPDATE ON signed FOR EACH ROW \
            WHEN (NEW.lang = 'zh') \
            EXECUTE FUNCTION neardup_dedup('sig', 'scope=lang', 'similarity=0.7'); \
         CREATE TRIGGER others BEFORE INSERT OR UPDATE ON signed FOR EACH ROW \
            WHEN (NEW.lang IS DISTINCT FROM 'zh') \
            EXECUTE FUNCTION neardup_dedup('sig', 'scope=lang', 'similarity=0.9')",
    )?;
    for (lang, changed, written) in [
        ("zh", 0, 1),
        ("en", 0, 1),
        ("zh", 3, 0),
        ("en", 3, 1),
        ("en", 1, 0),
    ] {
        let insert = "INSERT INTO signed SELECT $1, minhash_from_values(array_agg(CASE \
            WHEN p <= $2 THEN 1000 ELSE p END)) FROM generate_series(1::bigint, 16) p";
        let rows = client.execute(insert, &[&lang, &i64::from(changed)])?;
        ensure!(rows == written, "{lang}, {changed} changed: {rows}");
    }
    Ok(())
}

/// The number of words in a feature may depend on the language.
#[test]
fn features_of_each_language() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE texts (lang text, body text, fp fingerprint GENERATED ALWAYS AS \
            (minhash64(body, shingle => CASE lang WHEN 'zh' THEN 2 ELSE 3 END)) STORED); \
         INSERT INTO texts VALUES ('zh', '图书馆的阅览室开门'), ('en', 'Rain is expected today')",
    )?;
    let alike = "SELECT count(*) FROM texts \
        WHERE fp = minhash64(body, shingle => 2) AND fp <> minhash64(body) AND lang = 'zh' \
        OR fp = minhash64(body) AND fp <> minhash64(body, shingle => 2) AND lang = 'en'";
    ensure!(value::<i64>(&mut client, alike)? == 2);
    Ok(())
}

/// Without the language as a scope, the smaller radius applies between two languages.
#[test]
fn balls_of_different_radii() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&schema("pages")?.replace("(lang WITH =, ball(", "(ball("))?;
    client.batch_execute("INSERT INTO pages (lang, fp) VALUES ('zh', '00000000000000ff')")?;
    for (lang, fp, fits) in [
        ("zh", "0000000000000000", false),
        ("en", "0000000000000000", true),
        ("de", "0000000000000003", false),
        ("zh", "00000000000001ff", false),
        ("en", "000000000000ff3f", true),
    ] {
        let insert = "INSERT INTO pages (lang, fp) VALUES ($1, $2::text::fingerprint) \
            ON CONFLICT DO NOTHING";
        ensure!(
            client.execute(insert, &[&lang, &fp])? == u64::from(fits),
            "{lang} {fp}"
        );
    }
    Ok(())
}

/// Asserts that each mark names an original within the language's radius, and that no two
/// originals are near each other.
fn marks_are_true(admin: &mut Client, table: &str) -> Outcome {
    let same = "a.id <> b.id AND a.lang = b.lang";
    let near = format!("{same} AND a.fp <#> b.fp <= {LIMIT}");
    let originals = format!("{near} AND a.duplicate_of IS NULL AND b.duplicate_of IS NULL");
    ensure!(count(admin, table, &originals)? == 0, "{table}");
    let marked: i64 = value(admin, &format!("SELECT count(duplicate_of) FROM {table}"))?;
    let truth = format!("a.duplicate_of = b.id AND b.duplicate_of IS NULL AND {near}");
    let kept = count(admin, table, &truth)?;
    ensure!(
        marked > 10 && kept == marked,
        "{kept} of {marked} marks are true"
    );
    Ok(())
}

#[test]
fn marks_by_a_trigger_for_each_language() -> Outcome {
    let database = Database::create()?;
    let mut admin = write_to(&database, "reports")?;
    marks_are_true(&mut admin, "reports")
}

#[test]
fn marks_in_a_partition_for_each_language() -> Outcome {
    let database = Database::create()?;
    let mut admin = write_to(&database, "articles")?;
    marks_are_true(&mut admin, "articles")?;
    for partition in ["articles_zh", "articles_others"] {
        let query = format!("SELECT neardup_remark('{partition}')");
        value::<i64>(&mut admin, &query)?;
        ensure!(value::<i64>(&mut admin, &query)? == 0, "{partition}");
    }
    marks_are_true(&mut admin, "articles")
}
