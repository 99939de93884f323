//! The procedure of docs/corpus.md by which better documents replace old ones, on chains of
//! documents and beside transactions that delete and change what it keeps: nothing is lost.
use crate::recipes::{begin, blocks, until_it_waits};
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;

/// The document's tables and `known`: all documents that were delivered and not deleted by hand.
/// Of a chain, each document is near the next (20 of 128 values differ) and no other.
const SETUP: &str = "CREATE TABLE corpus (id bigint PRIMARY KEY, body text, \
        sig minhash_signature, text_length bigint); \
    CREATE INDEX corpus_sig ON corpus USING neardup (sig) WITH (similarity = 0.8); \
    CREATE TABLE archive (LIKE corpus, kept bigint, distance float8, PRIMARY KEY (id)); \
    CREATE TABLE delivery (id bigint, body text, sig minhash_signature, text_length bigint); \
    CREATE FUNCTION sig_of(chain bigint, place bigint) RETURNS minhash_signature \
        LANGUAGE sql AS $$ \
        SELECT minhash_from_values(array_agg(4294967295 & hashint8extended( \
            chain * 1000000 + p * 1000 + (20 * place - p + 127) / 128, 5) ORDER BY p)) \
        FROM generate_series(0, 127) p $$; \
    CREATE TABLE known AS SELECT chain * 100 + place AS id, 'x' AS body, \
        sig_of(chain, place) AS sig, (chain * 100 + place) * 7919 % 13 AS text_length \
        FROM generate_series(1::bigint, 12) chain, generate_series(1, chain) place";

/// Delivers a third of the documents, or all if there is no such third.
fn deliver(client: &mut Client, third: i64) -> Result<u64> {
    let sql = "INSERT INTO delivery SELECT * FROM known WHERE id % 3 = $1 OR $1 > 2";
    Ok(client.execute(sql, &[&third])?)
}

/// Each document that was delivered is in the corpus, or in the archive with one that is near it;
/// none is in both; and no two of the corpus are near each other.
fn holds(client: &mut Client, delivered: &[i64], what: &str) -> Outcome {
    let lost = "SELECT count(*) FROM known k WHERE id % 3 = ANY ($1) \
        AND NOT EXISTS (SELECT FROM corpus c WHERE c.id = k.id AND c.sig = k.sig) \
        AND NOT EXISTS (SELECT FROM archive a JOIN corpus c ON c.id = a.kept \
            WHERE a.id = k.id AND a.sig = k.sig AND a.distance = a.sig <%> c.sig \
            AND a.distance <= 0.2)";
    let lost: i64 = client.query_one(lost, &[&delivered])?.get(0);
    ensure!(lost == 0, "{what}: {lost} documents are lost");
    for (query, wrong) in [
        (
            "SELECT count(*) FROM corpus JOIN archive USING (id)",
            "both",
        ),
        (
            "SELECT count(*) FROM corpus a JOIN corpus b \
                ON a.id < b.id AND (a.sig <%> b.sig)::float8 + 0 <= 0.2",
            "near each other",
        ),
        ("SELECT count(*) FROM delivery", "left"),
    ] {
        let found: i64 = value(client, query)?;
        ensure!(found == 0, "{what}: {found} {wrong}");
    }
    Ok(())
}

/// The documents of the corpus.
fn corpus(client: &mut Client) -> Result<Vec<i64>> {
    let rows = client.query("SELECT id FROM corpus ORDER BY id", &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Those that were archived before and are in the corpus now.
fn came_back(client: &mut Client) -> Result<i64> {
    value(client, "SELECT count(*) FROM corpus JOIN before USING (id)")
}

/// Statements of another transaction while the procedure waits for it.
const MEANWHILE: [&str; 6] = [
    "LOCK TABLE corpus IN ROW EXCLUSIVE MODE",
    "WITH gone AS (DELETE FROM corpus WHERE id % 2 = 0 RETURNING id) \
        DELETE FROM known k USING gone WHERE k.id = gone.id",
    "WITH changed AS (UPDATE corpus SET sig = sig_of(1000 + id, 0) WHERE id % 2 = 0 \
            AND id NOT IN (SELECT id FROM delivery) RETURNING id, sig) \
        UPDATE known k SET sig = c.sig FROM changed c WHERE k.id = c.id",
    "UPDATE corpus SET text_length = 100 - text_length; \
        UPDATE known SET text_length = 100 - text_length",
    "WITH gone AS (DELETE FROM archive WHERE id % 2 = 0 RETURNING id) \
        DELETE FROM known k USING gone WHERE k.id = gone.id",
    // A row that comes to the delivery is taken in with the others.
    "WITH more AS (INSERT INTO known SELECT 9000 + 3 * n, 'x', sig_of(500, n), n \
            FROM (SELECT count(*) AS n FROM known WHERE id >= 9000) more RETURNING *) \
        INSERT INTO delivery SELECT * FROM more",
];

#[test]
fn a_better_document_replaces_an_old_one() -> Outcome {
    let procedure = blocks("corpus.md", "A better document replaces an old one")?;
    let procedure = procedure.first().context("the procedure")?;
    let mut back = 0;
    for other in MEANWHILE {
        let database = Database::create()?;
        let (mut client, mut watcher) = (database.connect()?, database.connect()?);
        client.batch_execute(SETUP)?;
        client.batch_execute(procedure)?;
        for (third, delivered) in [
            (0, &[0][..]),
            (1, &[0, 1]),
            (2, &[0, 1, 2]),
            (3, &[0, 1, 2]),
        ] {
            let what = format!("delivery {third} beside {other}");
            ensure!(deliver(&mut client, third)? > 5, "{what}");
            client.batch_execute(
                "DROP TABLE IF EXISTS before; CREATE TABLE before AS SELECT id FROM archive",
            )?;
            client.batch_execute(&format!("BEGIN; {other}"))?;
            let call = begin(&database, "CALL take_delivery();\n")?;
            until_it_waits(&mut watcher, &call)?;
            client.batch_execute("COMMIT")?;
            call.join().expect("no panic").context(what.clone())?;
            // What was on its way as the other transaction knew it.
            client.batch_execute("DELETE FROM corpus WHERE id NOT IN (SELECT id FROM known)")?;
            client.batch_execute("CALL take_delivery()")?;
            holds(&mut client, delivered, &what)?;
            if third < 3 {
                back += came_back(&mut client)?;
            }
            // A call with nothing to do changes nothing.
            let kept = corpus(&mut client)?;
            client.batch_execute("CALL take_delivery()")?;
            ensure!(corpus(&mut client)? == kept, "{what}, twice");
            holds(&mut client, delivered, &what)?;
        }
    }
    ensure!(back > 5, "only {back} came back");
    Ok(())
}
