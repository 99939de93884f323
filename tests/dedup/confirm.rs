//! `confirm=` of the trigger: the texts of near rows decide.
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

/// 1,200 texts in families that share most of their words.
const TEXTS: &str = "CREATE FUNCTION number(VARIADIC of int[]) RETURNS int IMMUTABLE LANGUAGE sql \
        RETURN abs(hashtext(of::text) % 1000000); \
    CREATE TABLE texts AS SELECT 8 * f + v AS id, (SELECT string_agg('w' || CASE \
            WHEN number(f, v, w) % 100 < v THEN number(f, v, w) ELSE number(f, w) END, ' ' \
            ORDER BY w) FROM generate_series(1, 40 + f % 60) w) AS body \
        FROM generate_series(0, 149) f, generate_series(0, 7) v; \
    INSERT INTO texts VALUES (5000, NULL), (5001, '...'), (5002, '...');";

/// Tables with triggers, the condition of near fingerprints and the similarity of two texts.
const TABLES: [(&str, &str, &str); 3] = [
    (
        "CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'body', 'confirm=body', 'similarity=0.8')",
        "minhash64(k.body) <~> minhash64(t.body) <= 10",
        "jaccard_similarity(k.body, t.body)",
    ),
    (
        "CREATE TABLE docs (id int PRIMARY KEY, body text, \
            fp fingerprint128 GENERATED ALWAYS AS (minhash128(body, 'char', 5)) STORED); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'confirm=body', 'similarity=0.9')",
        "minhash128(k.body, 'char', 5) <~> minhash128(t.body, 'char', 5) <= 10",
        "jaccard_similarity(k.body, t.body, 'char', 5) - 0.1",
    ),
    (
        "CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'body', 'function=simhash', 'radius=8', \
                'confirm=body')",
        "simhash(k.body) <~> simhash(t.body) <= 8",
        "jaccard_similarity(k.body, t.body, shingle => 2)",
    ),
];

#[test]
fn a_row_is_written_unless_a_similar_text_is_there() -> Outcome {
    for (table, near, similarity) in TABLES {
        let database = Database::create()?;
        let mut client = database.connect()?;
        client.batch_execute(TEXTS)?;
        client.batch_execute(table)?;
        // The rule in SQL, row by row, with a loop over the rows that it keeps.
        client.batch_execute(&format!(
            "CREATE TABLE kept (LIKE texts); \
             DO $$ DECLARE t texts; BEGIN \
                FOR t IN SELECT * FROM texts ORDER BY id LOOP \
                    INSERT INTO kept SELECT t.* WHERE NOT EXISTS (SELECT FROM kept k \
                        WHERE k.id / 8 = t.id / 8 AND {near} AND {similarity} >= 0.8); \
                END LOOP; END $$; \
             INSERT INTO docs (id, body) SELECT id, body FROM texts ORDER BY id"
        ))?;
        let same = "SELECT array_agg(id ORDER BY id) \
            = (SELECT array_agg(id ORDER BY id) FROM kept) FROM docs";
        ensure!(value::<bool>(&mut client, same)?, "{table}");
        let counts = "SELECT count(*) FROM docs";
        let count: i64 = value(&mut client, counts)?;
        ensure!((200..1150).contains(&count), "{table}: {count} rows");
    }
    Ok(())
}

#[test]
fn a_changed_text_is_compared_although_the_fingerprint_stays() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, body text, \
            fp fingerprint DEFAULT '0000000000000007'); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'confirm=body', 'radius=3', 'action=error'); \
         INSERT INTO docs (id, body) VALUES (1, 'The library reopens on Monday morning.'), \
            (2, 'Rain is expected in the north from Friday.'), (3, NULL), (4, '...'), (5, NULL)",
    )?;
    for statement in [
        "UPDATE docs SET body = 'the LIBRARY reopens on monday morning' WHERE id = 2",
        "UPDATE docs SET body = 'the LIBRARY reopens on monday morning' WHERE id = 3",
        "INSERT INTO docs (id, body) VALUES (6, 'rain is expected in the north from friday')",
    ] {
        let error = client.batch_execute(statement).err().context(statement)?;
        ensure!(
            error.code() == Some(&SqlState::EXCLUSION_VIOLATION),
            "{error:?}"
        );
        let detail = error
            .as_db_error()
            .and_then(|error| error.detail())
            .unwrap_or_default();
        ensure!(detail.contains("has a similarity of 1.00"), "{detail}");
    }
    client.batch_execute(
        "UPDATE docs SET body = 'Snow is expected in the south from Sunday.' WHERE id = 2; \
         UPDATE docs SET body = 'The library reopens on Monday morning.' WHERE id = 1; \
         INSERT INTO docs (id, body) VALUES (6, 'rain is expected in the north from friday')",
    )?;
    Ok(())
}

/// Inserts all texts in an order of its own, and repeats those that meet a deadlock.
fn write(mut client: Client, salt: i32) -> Result<()> {
    let rows = client.query(
        "SELECT id, body FROM texts WHERE body IS NOT NULL ORDER BY hashint4extended(id, $1::int)",
        &[&salt],
    )?;
    for row in rows {
        let (id, body): (i32, String) = (row.get(0), row.get(1));
        loop {
            let statement = "INSERT INTO docs (id, body) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            match client.execute(statement, &[&id, &body]) {
                Ok(_) => break,
                Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => (),
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

#[test]
fn concurrent_writers_keep_one_of_similar_texts() -> Outcome {
    let (table, near, similarity) = TABLES[0];
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(TEXTS)?;
    client.batch_execute(table)?;
    std::thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..4)
            .map(|salt| {
                let client = connect(database.conninfo());
                scope.spawn(move || write(client?, salt))
            })
            .collect();
        for writer in writers {
            writer.join().expect("the thread ends")?;
        }
        Ok(())
    })?;
    let similar = format!(
        "SELECT count(*) FROM docs k JOIN docs t ON k.id / 8 = t.id / 8 AND k.id < t.id \
         WHERE {near} AND {similarity} >= 0.8"
    );
    ensure!(value::<i64>(&mut client, &similar)? == 0);
    let lost = format!(
        "SELECT count(*) FROM texts t WHERE t.body <> '...' AND NOT EXISTS (SELECT FROM docs k \
            WHERE k.id / 8 = t.id / 8 AND (k.id = t.id OR {near} AND {similarity} >= 0.8))"
    );
    ensure!(value::<i64>(&mut client, &lost)? == 0);
    Ok(())
}

/// A row waits only for uncommitted rows whose text is similar.
#[test]
fn a_dissimilar_uncommitted_row_is_not_waited_for() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, body text, \
            fp fingerprint DEFAULT '0000000000000007'); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'confirm=body', 'radius=3')",
    )?;
    let mut other = database.connect()?;
    other.batch_execute("BEGIN; INSERT INTO docs (id, body) VALUES (1, 'One text of words.')")?;
    client.batch_execute("SET lock_timeout = '2s'")?;
    client.batch_execute("INSERT INTO docs (id, body) VALUES (2, 'Another set of tokens.')")?;
    let waits = "INSERT INTO docs (id, body) VALUES (3, 'one TEXT of words')";
    let error = client.batch_execute(waits).err().context("it waits")?;
    ensure!(
        error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE),
        "{error:?}"
    );
    other.batch_execute("ROLLBACK")?;
    client.batch_execute(waits)?;
    ensure!(value::<i64>(&mut client, "SELECT count(*) FROM docs")? == 2);
    Ok(())
}

#[test]
fn mistakes_in_the_arguments_are_errors() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint, duplicate_of int, \
            sig minhash_signature); \
         CREATE INDEX ON docs USING neardup (fp); CREATE INDEX ON docs USING neardup (sig)",
    )?;
    let mistakes = [
        ("'fp', 'body', 'confirm=text'", SqlState::UNDEFINED_COLUMN),
        ("'fp', 'body', 'confirm=id'", SqlState::DATATYPE_MISMATCH),
        (
            "'fp', 'body', 'confirm=body', 'similarity=80'",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'fp', 'body', 'confirm=body', 'action=mark', 'mark=duplicate_of'",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'sig', 'body', 'confirm=body'",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'fp', 'body', 'function=simhash', 'confirm=body'",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
    ];
    for (arguments, code) in mistakes {
        client.batch_execute(&format!(
            "CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
             EXECUTE FUNCTION neardup_dedup({arguments})"
        ))?;
        let insert = "INSERT INTO docs (id, body) VALUES (1, 'some text')";
        let error = client.batch_execute(insert).err().context(arguments)?;
        ensure!(error.code() == Some(&code), "{arguments}: {error:?}");
    }
    Ok(())
}
