//! `confirm=` of the trigger: the texts of near rows decide.
use crate::support::Outcome;
use crate::support::table::value;
use crate::support::texts::FAMILIES;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

/// 1,200 texts in families of eight, and texts without words.
const TEXTS: &str = "CREATE TABLE texts AS SELECT 8 * f + v AS id, family_text(f, v) AS body \
        FROM generate_series(0, 149) f, generate_series(0, 7) v; \
    INSERT INTO texts VALUES (5000, NULL), (5001, '...'), (5002, '...');";

/// Table with a trigger that compares texts.
#[derive(Clone, Copy)]
struct Compared {
    /// Definition of the column of fingerprints or signatures.
    column: &'static str,
    /// Storage parameters of the index.
    options: &'static str,
    /// Arguments of the trigger.
    arguments: &'static str,
    /// Distance of the texts `k` and `t` by their fingerprints or signatures, as SQL.
    distance: &'static str,
    /// Maximum distance, as SQL.
    limit: &'static str,
    /// Condition on the similarity of the texts `k` and `t`, as SQL.
    similar: &'static str,
}

const TABLES: [Compared; 4] = [
    Compared {
        column: "fp fingerprint",
        options: "",
        arguments: "'fp', 'body', 'confirm=body', 'similarity=0.8'",
        distance: "minhash64(k.body) <~> minhash64(t.body)",
        limit: "10",
        similar: "jaccard_similarity(k.body, t.body) >= 0.8",
    },
    Compared {
        column: "fp fingerprint128 GENERATED ALWAYS AS (minhash128(body, 'char', 5)) STORED",
        options: "",
        arguments: "'fp', 'confirm=body', 'similarity=0.9'",
        distance: "minhash128(k.body, 'char', 5) <~> minhash128(t.body, 'char', 5)",
        limit: "10",
        similar: "jaccard_similarity(k.body, t.body, 'char', 5) >= 0.9",
    },
    Compared {
        column: "fp fingerprint",
        options: "",
        arguments: "'fp', 'body', 'function=simhash', 'radius=8', 'confirm=body'",
        distance: "simhash(k.body) <~> simhash(t.body)",
        limit: "8",
        similar: "jaccard_similarity(k.body, t.body, shingle => 2) >= 0.8",
    },
    Compared {
        column: "fp minhash_signature",
        options: "WITH (similarity = 0.75)",
        arguments: "'fp', 'body', 'confirm=body', 'similarity=0.8'",
        distance: "minhash(k.body) <%> minhash(t.body)",
        limit: "31 / 128.0",
        similar: "jaccard_similarity(k.body, t.body) >= 0.8",
    },
];

impl Compared {
    /// Condition that the texts `k` and `t` are near-duplicates.
    fn near(self) -> String {
        let Compared {
            distance,
            limit,
            similar,
            ..
        } = self;
        format!("{distance} <= {limit} AND {similar}")
    }

    /// Creates the table `docs` with a trigger that runs `action`, which is written as arguments.
    fn create(self, client: &mut Client, action: &str) -> Outcome {
        let Compared {
            column,
            options,
            arguments,
            ..
        } = self;
        client.batch_execute(&format!(
            "CREATE TABLE docs (id int PRIMARY KEY, body text, duplicate_of int, {column}); \
             CREATE INDEX ON docs USING neardup (fp) {options}; \
             CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup({arguments}, {action})"
        ))?;
        if action.contains("action=mark") {
            client.batch_execute(&format!(
                "CREATE TRIGGER marks AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
                    EXECUTE FUNCTION neardup_dedup({arguments}, {action})"
            ))?;
        }
        Ok(())
    }

    /// Makes the table `kept` by the rule in SQL: of all texts in key order, those that are not a
    /// near-duplicate of a text in `kept`.
    fn keep(self, client: &mut Client) -> Outcome {
        let near = self.near();
        client.batch_execute(&format!(
            "CREATE TABLE kept (LIKE texts); \
             DO $$ DECLARE t texts; BEGIN \
                FOR t IN SELECT * FROM texts ORDER BY id LOOP \
                    INSERT INTO kept SELECT t.* WHERE NOT EXISTS (SELECT FROM kept k \
                        WHERE k.id / 8 = t.id / 8 AND {near}); \
                END LOOP; END $$"
        ))?;
        Ok(())
    }

    /// Asserts that the originals are the texts in `kept`, and that each mark names the nearest
    /// original before its row among those with a similar text.
    fn check_marks(self, client: &mut Client) -> Outcome {
        let (near, distance) = (self.near(), self.distance);
        let same = "SELECT array_agg(id ORDER BY id) FILTER (WHERE duplicate_of IS NULL) \
            = (SELECT array_agg(id ORDER BY id) FROM kept) FROM docs";
        ensure!(value::<bool>(client, same)?, "{near}: other originals");
        let untrue = format!(
            "SELECT count(*) FROM docs t, LATERAL (SELECT min({distance}) FROM kept k \
                WHERE k.id / 8 = t.id / 8 AND k.id < t.id AND {near}) best (distance) \
             WHERE duplicate_of IS NOT NULL AND NOT EXISTS (SELECT FROM kept k \
                WHERE k.id = t.duplicate_of AND {near} AND {distance} = best.distance)"
        );
        ensure!(value::<i64>(client, &untrue)? == 0, "{near}: untrue marks");
        Ok(())
    }
}

/// Makes a database with the table of texts.
fn database() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(FAMILIES)?;
    client.batch_execute(TEXTS)?;
    Ok((database, client))
}

#[test]
fn a_row_is_written_unless_a_similar_text_is_there() -> Outcome {
    for table in TABLES {
        let (_database, mut client) = database()?;
        table.create(&mut client, "'action=skip'")?;
        table.keep(&mut client)?;
        client
            .batch_execute("INSERT INTO docs (id, body) SELECT id, body FROM texts ORDER BY id")?;
        let same = "SELECT array_agg(id ORDER BY id) \
            = (SELECT array_agg(id ORDER BY id) FROM kept) FROM docs";
        ensure!(value::<bool>(&mut client, same)?, "{}", table.arguments);
        let count: i64 = value(&mut client, "SELECT count(*) FROM docs")?;
        ensure!((200..1150).contains(&count), "{}: {count}", table.arguments);
    }
    Ok(())
}

#[test]
fn a_row_is_marked_if_a_similar_text_is_there() -> Outcome {
    for table in TABLES {
        let (_database, mut client) = database()?;
        table.create(&mut client, "'action=mark', 'mark=duplicate_of'")?;
        table.keep(&mut client)?;
        client
            .batch_execute("INSERT INTO docs (id, body) SELECT id, body FROM texts ORDER BY id")?;
        table.check_marks(&mut client)?;
        let remark = "SELECT neardup_remark('docs')";
        ensure!(value::<i64>(&mut client, remark)? == 0);
        // Wrong marks, set without the trigger.
        client.batch_execute(
            "ALTER TABLE docs DISABLE TRIGGER USER; \
             UPDATE docs SET duplicate_of = CASE id % 3 WHEN 1 THEN id - 1 END; \
             ALTER TABLE docs ENABLE TRIGGER USER",
        )?;
        ensure!(value::<i64>(&mut client, remark)? > 100);
        table.check_marks(&mut client)?;
        ensure!(value::<i64>(&mut client, remark)? == 0);
    }
    Ok(())
}

/// All fingerprints are equal, so the marks depend on the texts alone.
#[test]
fn marks_follow_the_texts() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let arguments = "'fp', 'confirm=body', 'radius=3', 'action=mark', 'mark=duplicate_of'";
    client.batch_execute(&format!(
        "CREATE TABLE docs (id int PRIMARY KEY, body text, duplicate_of int, \
            fp fingerprint DEFAULT '0000000000000007'); \
         CREATE INDEX ON docs USING neardup (fp) WHERE duplicate_of IS NULL; \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp, body, duplicate_of ON docs \
            FOR EACH ROW EXECUTE FUNCTION neardup_dedup({arguments}); \
         CREATE TRIGGER marks AFTER UPDATE OR DELETE ON docs \
            FOR EACH ROW EXECUTE FUNCTION neardup_dedup({arguments})"
    ))?;
    let library = "'The library reopens on Monday morning.'";
    let rain = "'Rain is expected in the north from Friday.'";
    let steps = [
        (
            format!(
                "INSERT INTO docs (id, body) VALUES (1, {library}), (2, upper({library})), \
                 (3, {library}), (4, {rain}), (5, NULL), (6, NULL), (7, '...'), (8, '...')"
            ),
            "1:- 2:1 3:1 4:- 5:- 6:- 7:- 8:-",
        ),
        // The original gets another text. Its first duplicate becomes the original.
        (
            format!("UPDATE docs SET body = lower({rain}) WHERE id = 1"),
            "1:4 2:- 3:2 4:- 5:- 6:- 7:- 8:-",
        ),
        // A duplicate gets another text.
        (
            format!("UPDATE docs SET body = {rain} WHERE id = 3"),
            "1:4 2:- 3:4 4:- 5:- 6:- 7:- 8:-",
        ),
        // Each duplicate of the deleted original is compared with the new originals.
        (
            "DELETE FROM docs WHERE id = 4".to_owned(),
            "1:- 2:- 3:1 5:- 6:- 7:- 8:-",
        ),
        (
            format!("UPDATE docs SET body = {library} WHERE id IN (5, 7)"),
            "1:- 2:- 3:1 5:2 6:- 7:2 8:-",
        ),
        // An original without words has no duplicates.
        (
            "UPDATE docs SET body = '...' WHERE id = 2".to_owned(),
            "1:- 2:- 3:1 5:- 6:- 7:5 8:-",
        ),
    ];
    for (statement, expected) in steps {
        client.batch_execute(&statement)?;
        let marks = "SELECT string_agg(id || ':' || coalesce(duplicate_of::text, '-'), ' ' \
            ORDER BY id) FROM docs";
        let marks: String = value(&mut client, marks)?;
        ensure!(marks == expected, "{statement}: {marks}");
    }
    ensure!(value::<i64>(&mut client, "SELECT neardup_remark('docs')")? == 0);
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
    let near = TABLES[0].near();
    let (database, mut client) = database()?;
    TABLES[0].create(&mut client, "'action=skip'")?;
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
         WHERE {near}"
    );
    ensure!(value::<i64>(&mut client, &similar)? == 0);
    let lost = format!(
        "SELECT count(*) FROM texts t WHERE t.body <> '...' AND NOT EXISTS (SELECT FROM docs k \
            WHERE k.id / 8 = t.id / 8 AND (k.id = t.id OR {near}))"
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
            "'sig', 'body', 'confirm=body', 'radius=3'",
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

#[test]
fn an_index_on_signatures_must_find_all_candidates() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, body text, sig minhash_signature); \
         CREATE INDEX ON docs USING neardup (sig); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('sig', 'body', 'confirm=body', 'similarity=0.8')",
    )?;
    let insert = "INSERT INTO docs (id, body) VALUES (1, 'some text')";
    let error = client.batch_execute(insert).err().context("the index")?;
    let error = error.as_db_error().context("a server's error")?;
    ensure!(*error.code() == SqlState::UNDEFINED_OBJECT, "{error}");
    let hint = error.hint().unwrap_or_default();
    let (statement, _) = hint.split_once(". Add hashes").context("the hint")?;
    client.batch_execute(statement)?;
    client.batch_execute(insert)?;
    Ok(())
}

/// The trigger that renews marks must look at the same text as the one that writes them.
#[test]
fn both_triggers_of_marks_name_the_text() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint, duplicate_of int); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'body', 'confirm=body', 'similarity=0.8', \
                'action=mark', 'mark=duplicate_of'); \
         CREATE TRIGGER marks AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'body', 'similarity=0.8', 'action=mark', \
                'mark=duplicate_of')",
    )?;
    let insert = "INSERT INTO docs (id, body) VALUES (1, 'some text')";
    let error = client.batch_execute(insert).err().context("it fails")?;
    let code = error.code();
    ensure!(
        code == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE),
        "{error:?}"
    );
    Ok(())
}
