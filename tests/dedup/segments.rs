//! The recipes of docs/segments.md, concurrently with other transactions: no paragraph is lost,
//! and none remains twice. The statements are copied from the document.
use crate::dedup::recipes::{begin, blocks, until_it_waits};
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;

const DOCUMENT: &str = "segments.md";

/// Returns the part of a section from these words to the end of a statement.
fn statement(section: &str, start: &str, end: &str) -> Result<String> {
    let at = section.find(start).with_context(|| format!("no {start}"))?;
    let length = section[at..]
        .find(end)
        .with_context(|| format!("no {end}"))?
        + end.len();
    Ok(section[at..at + length].to_owned())
}

/// Returns the tables, and the transaction that chooses the paragraphs to remove.
fn removal() -> Result<[String; 2]> {
    let section = blocks(DOCUMENT, "Keep one copy of each")?.concat();
    Ok([
        statement(&section, "ALTER TABLE", "(id, ordinal));")?,
        statement(&section, "BEGIN;", "COMMIT;")?,
    ])
}

/// Returns the trigger, and the statement that restores paragraphs that no document keeps.
fn trigger() -> Result<[String; 2]> {
    let section = blocks(DOCUMENT, "Keep it so: a trigger")?.concat();
    Ok([
        statement(&section, "CREATE INDEX", "keep_first_paragraphs();")?,
        statement(
            &section,
            "UPDATE docs SET body = body",
            "ORDER BY hash, id);",
        )?,
    ])
}

const SETUP: &str = r"CREATE TABLE docs (id int PRIMARY KEY, body text);
    INSERT INTO docs VALUES
    (1, E'one\n\nshared by all\n\nof 1 and 2'), (2, E'of 1 and 2\n\ntwo\n\nSHARED by all'),
    (3, E'shared by  all\n\nthree'), (4, E'shared by all\n\nshared by all'),
    (5, E'five'), (6, NULL);";

/// Statements of a concurrent transaction: it deletes or changes a document that keeps a
/// paragraph, or one that loses some.
const MEANWHILE: [&str; 6] = [
    "SELECT",
    "DELETE FROM docs WHERE id = 1",
    "UPDATE docs SET body = 'quite another' WHERE id = 1",
    "UPDATE docs SET body = E'new of 2\n\nof 1 and 2' WHERE id = 2",
    "UPDATE docs SET body = E'shared by all\n\nfive\n\nsix' WHERE id = 6",
    "DELETE FROM docs WHERE id IN (1, 3)",
];

/// The paragraphs of all documents.
const PARAGRAPHS: &str = "SELECT coalesce(array_agg(DISTINCT hash ORDER BY hash), '{}') \
    FROM docs, neardup_segments(body)";

/// Remaining segments of all documents.
const LEFT: &str = "SELECT coalesce(array_agg(DISTINCT hash ORDER BY hash), '{}') \
    FROM docs, neardup_segments(coalesce(rest, body))";

/// Number of paragraphs that remain in more than one document.
const REPEATED: &str = "SELECT count(*) FROM (SELECT FROM docs, \
    neardup_segments(coalesce(rest, body)) GROUP BY hash HAVING count(DISTINCT id) > 1) r";

/// Number of removed paragraphs that are missing in the document that keeps them.
const MISSING: &str = "SELECT count(*) FROM removed r WHERE NOT EXISTS ( \
    SELECT FROM paragraphs p JOIN docs d ON d.id = p.kept, \
        neardup_segments(coalesce(d.rest, d.body)) s \
    WHERE p.hash = r.hash AND s.hash = r.hash)";

#[test]
fn nothing_is_lost_beside_others() -> Outcome {
    let [tables, sql] = removal()?;
    for other in MEANWHILE {
        let database = Database::create()?;
        let (mut client, mut watcher) = (database.connect()?, database.connect()?);
        client.batch_execute(&format!("{SETUP} {tables}"))?;
        client.batch_execute(&format!("BEGIN; {other}"))?;
        let recipe = begin(&database, &sql)?;
        until_it_waits(&mut watcher, &recipe)?;
        client.batch_execute("COMMIT")?;
        recipe.join().expect("no panic").context(other)?;
        let check = |client: &mut Client| -> Result<i64> {
            let (all, left): (Vec<i64>, Vec<i64>) =
                (value(client, PARAGRAPHS)?, value(client, LEFT)?);
            ensure!(left == all, "{other}: {left:?}, not {all:?}");
            ensure!(value::<i64>(client, REPEATED)? == 0, "{other}");
            ensure!(value::<i64>(client, MISSING)? == 0, "{other}");
            bytes_are_as_cut(client, Unit::Paragraph)?;
            value(client, "SELECT count(*) FROM removed")
        };
        let removed = check(&mut client)?;
        ensure!(removed > 0, "{other}");
        // A second run removes nothing.
        begin(&database, &sql)?.join().expect("no panic")?;
        ensure!(check(&mut client)? == removed, "{other}");
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Paragraph,
    Line,
}

/// Returns a text without some of its lines or paragraphs, cut as the document defines it: by
/// lines that end with a line feed.
fn cut(body: &str, unit: Unit, ordinals: &[i32]) -> String {
    let mut left = String::new();
    let (mut ordinal, mut after_blank) = (0, true);
    for line in body.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        ordinal += i32::from(match unit {
            Unit::Paragraph => !is_blank && after_blank,
            Unit::Line => !is_blank,
        });
        after_blank = is_blank;
        let stays = match unit {
            Unit::Line if is_blank => true,
            _ => !ordinals.contains(&ordinal),
        };
        left += if stays { line } else { "" };
    }
    left
}

/// Checks that each `rest` is the text without the removed paragraphs.
fn bytes_are_as_cut(client: &mut Client, unit: Unit) -> Outcome {
    let query = "SELECT id, body, rest, ARRAY(SELECT ordinal FROM removed r WHERE r.id = d.id) \
        FROM docs d WHERE body IS NOT NULL";
    for row in client.query(query, &[])? {
        let (body, ordinals): (String, Vec<i32>) = (row.get(1), row.get(3));
        let expected = (!ordinals.is_empty()).then(|| cut(&body, unit, &ordinals));
        let rest: Option<String> = row.get(2);
        ensure!(
            rest == expected,
            "document {}: {body:?} without {ordinals:?} is {rest:?}, not {expected:?}",
            row.get::<_, i32>(0)
        );
    }
    Ok(())
}

/// Paragraphs of code, Markdown and other scripts. Some have spaces that must stay, and some are
/// equal except for spaces and case.
const PIECES: [&str; 12] = [
    "def area(self):\n        return self.width * self.height",
    "    def area(self):\n        return self.width * self.height",
    "\tif x:\n\t\treturn [\n\t\t    1,\n\t\t]",
    "class Shape:\n    \"\"\"A shape.\n    \"\"\"\n    width = 0",
    "- A list\n  - with *two* levels  \n    and a line end",
    "    code {\r\n        of; Markdown\r\n    }",
    "\u{200B}",
    "\u{FEFF}\u{AD}",
    "　图书馆昨天宣布。\n　　新的阅览室将开放。",
    "Ünïcödé  LINE",
    "ünïcödé line   ",
    "e\u{301}te\u{301} \u{A0}2024",
];
const SEPARATORS: [&str; 5] = [
    "\n\n",
    "\r\n\r\n",
    "\n \t\n\n",
    "\n\u{3000}\u{A0}\n",
    "\n\n\n\n",
];
const ENDS: [&str; 5] = ["", "\n", "\r\n", " \n\n", "\n\n  \t"];

/// Returns a text of some of the pieces, and one unique piece.
fn any_text(random: &mut Random, id: i32) -> String {
    let mut text = random.pick(&["", "\n", "  \r\n", "\t"]).to_owned();
    for _ in 0..random.below(7) {
        text += random.pick(&PIECES);
        text += random.pick(&SEPARATORS);
    }
    text + "    of " + &id.to_string() + random.pick(&ENDS)
}

fn insert_texts(client: &mut Client, number: i32, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    for id in 1..=number {
        let body = any_text(&mut random, id);
        client.execute("INSERT INTO docs (id, body) VALUES ($1, $2)", &[&id, &body])?;
    }
    Ok(())
}

const DIGEST: &str = "SELECT md5(string_agg(body, '|' ORDER BY id)) FROM docs";

/// Runs the transaction for paragraphs and lines, in several sessions at once.
#[test]
fn what_is_not_removed_stays_byte_for_byte() -> Outcome {
    let [tables, sql] = removal()?;
    for (unit, seed) in [(Unit::Paragraph, 1), (Unit::Line, 2)] {
        let sql = match unit {
            Unit::Paragraph => sql.clone(),
            Unit::Line => (sql.replace("neardup_segments(body)", "neardup_segments(body, 'line')"))
                .replace("r.id = d.id))", "r.id = d.id), 'line')"),
        };
        let database = Database::create()?;
        let mut client = database.connect()?;
        client.batch_execute(&format!(
            "CREATE TABLE docs (id int PRIMARY KEY, body text); {tables}"
        ))?;
        insert_texts(&mut client, 80, seed)?;
        let bodies: String = value(&mut client, DIGEST)?;
        for _ in 0..2 {
            let sessions = (0..3).map(|_| begin(&database, &sql));
            let sessions: Vec<_> = sessions.collect::<Result<_>>()?;
            for session in sessions {
                session
                    .join()
                    .expect("no panic")
                    .context(format!("{unit:?}"))?;
            }
            bytes_are_as_cut(&mut client, unit)?;
            let removed: i64 = value(&mut client, "SELECT count(*) FROM removed")?;
            ensure!(removed > 100, "{unit:?}: {removed}");
            ensure!(
                value::<String>(&mut client, DIGEST)? == bodies,
                "{unit:?}: texts changed"
            );
        }
        // A text that remains alone is whole again.
        client.batch_execute("DELETE FROM docs WHERE id <> 80")?;
        client.batch_execute(&sql)?;
        let rest = "SELECT count(rest) FROM docs";
        ensure!(
            value::<i64>(&mut client, rest)? == 0,
            "{unit:?}: not restored"
        );
    }
    Ok(())
}

/// Removes only exact copies: each spelling of a paragraph remains in one document.
#[test]
fn exact_copies() -> Outcome {
    let [tables, sql] = removal()?;
    let (by_hash, exact) = (
        "SELECT id, ordinal, hash FROM docs",
        "hashtextextended(segment, 0)",
    );
    ensure!(sql.contains(by_hash), "the statement has changed");
    let sql = sql.replace(
        by_hash,
        &format!("SELECT id, ordinal, {exact} AS hash FROM docs"),
    );
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&format!("{SETUP} {tables}"))?;
    for _ in 0..2 {
        client.batch_execute(&sql)?;
        let spellings = |text: &str| {
            format!(
                "SELECT coalesce(array_agg(DISTINCT segment ORDER BY segment), '{{}}') \
                FROM docs, neardup_segments({text})"
            )
        };
        let all: Vec<String> = value(&mut client, &spellings("body"))?;
        let left: Vec<String> = value(&mut client, &spellings("coalesce(rest, body)"))?;
        ensure!(all == left, "{left:?} remain of {all:?}");
        let repeated = "SELECT count(*) FROM (SELECT FROM docs, \
            neardup_segments(coalesce(rest, body)) GROUP BY segment HAVING count(*) > 1) r";
        ensure!(value::<i64>(&mut client, repeated)? == 0, "copies remain");
        let removed: i64 = value(&mut client, "SELECT count(*) FROM removed")?;
        ensure!(removed == 3, "{removed} were removed");
    }
    Ok(())
}

/// Runs the trigger and the statement that restores paragraphs, until one document remains.
#[test]
fn the_trigger_changes_nothing_else() -> Outcome {
    let ([tables, _], [setup, restore]) = (removal()?, trigger()?);
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&format!(
        "CREATE TABLE docs (id int PRIMARY KEY, body text); {tables} {setup}"
    ))?;
    insert_texts(&mut client, 60, 3)?;
    let bodies: String = value(&mut client, DIGEST)?;
    for gone in (5..60).step_by(6) {
        bytes_are_as_cut(&mut client, Unit::Paragraph)?;
        ensure!(value::<i64>(&mut client, REPEATED)? == 0, "{gone}");
        ensure!(value::<i64>(&mut client, MISSING)? == 0, "{gone}");
        let (all, left): (Vec<i64>, Vec<i64>) =
            (value(&mut client, PARAGRAPHS)?, value(&mut client, LEFT)?);
        ensure!(left == all, "{gone}: something is lost");
        if gone == 5 {
            ensure!(
                value::<String>(&mut client, DIGEST)? == bodies,
                "texts changed"
            );
            // Keys may change.
            client.batch_execute("UPDATE docs SET id = 1000 WHERE id = 1")?;
        }
        client.execute(
            "DELETE FROM docs WHERE id <= $1 OR id = 1000 AND $1 > 20",
            &[&gone],
        )?;
        client.batch_execute(&restore)?;
    }
    Ok(())
}

/// The second of two sessions with one paragraph waits, and then loses or keeps it.
#[test]
fn two_sessions_insert_the_same_paragraph() -> Outcome {
    let ([table, _], [setup, _]) = (removal()?, trigger()?);
    for (end, kept_by) in [("COMMIT", 10), ("ROLLBACK", 11)] {
        let database = Database::create()?;
        let (mut client, mut watcher) = (database.connect()?, database.connect()?);
        client.batch_execute(&format!("{SETUP} {table} {setup}"))?;
        client.batch_execute("BEGIN; INSERT INTO docs VALUES (10, E'ten\n\nThe new one.')")?;
        let insert = "INSERT INTO docs VALUES (11, E'the NEW one.\n\neleven');";
        let second = begin(&database, insert)?;
        until_it_waits(&mut watcher, &second)?;
        ensure!(!second.is_finished(), "it does not wait");
        client.batch_execute(end)?;
        second.join().expect("no panic")?;
        let query = "SELECT array_agg(id) FROM docs, neardup_segments(coalesce(rest, body)) s \
            WHERE lower(segment) = 'the new one.'";
        let with: Vec<i32> = value(&mut client, query)?;
        ensure!(with == [kept_by], "{end}: {with:?}");
        let query =
            "SELECT array_agg(kept) FROM removed JOIN paragraphs USING (hash) WHERE id = 11";
        let removed: Option<Vec<i32>> = value(&mut client, query)?;
        ensure!(
            removed == (kept_by == 10).then(|| vec![10]),
            "{end}: {removed:?}"
        );
    }
    Ok(())
}

/// Returns paragraphs of a few texts, in a different order for each document.
fn body(document: i32) -> String {
    let number = |i: i32| (document * 7 + i * (document % 5 + 1)) % 13;
    let shared = (0..6).map(|i| format!("Paragraph number {} of thirteen.", number(i)));
    shared.collect::<Vec<_>>().join("\n\n") + &format!("\n\nOf {document} alone.")
}

/// Concurrent sessions insert documents, one per transaction. No transaction fails, each paragraph
/// remains once, and none is lost after documents are deleted and inserted again.
#[test]
fn many_sessions_insert_and_delete() -> Outcome {
    let ([table, _], [setup, give_back]) = (removal()?, trigger()?);
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&format!(
        "CREATE TABLE docs (id int PRIMARY KEY, body text); {table} {setup} \
         CREATE TABLE arrived (id int, body text)"
    ))?;
    let each = |sql: fn(&mut Client, i32) -> Result<u64>| -> Outcome {
        let sessions = (0..4).map(|session| {
            let mut client = database.connect()?;
            Ok(std::thread::spawn(move || -> Outcome {
                (0..25).try_for_each(|n| sql(&mut client, n * 4 + session).map(drop))
            }))
        });
        let sessions: Vec<_> = sessions.collect::<Result<_>>()?;
        sessions
            .into_iter()
            .try_for_each(|session| session.join().expect("no panic"))
    };
    each(|client, id| {
        client.execute("INSERT INTO arrived VALUES ($1, $2)", &[&id, &body(id)])?;
        Ok(client.execute("INSERT INTO docs VALUES ($1, $2)", &[&id, &body(id)])?)
    })?;
    ensure!(
        value::<i64>(&mut client, REPEATED)? == 0,
        "a paragraph stays twice"
    );
    ensure!(
        value::<i64>(&mut client, MISSING)? == 0,
        "a paragraph is lost"
    );
    let paragraphs: Vec<i64> = value(&mut client, LEFT)?;
    ensure!(paragraphs.len() == 113, "{}", paragraphs.len());
    // Deletes half of the documents and changes others. Then deletes all that keep paragraphs.
    each(|client, id| match id % 4 {
        0 | 1 => Ok(client.execute("DELETE FROM docs WHERE id = $1", &[&id])?),
        2 => {
            let new = format!(
                "Another one of {id}.\n\nParagraph number {} of thirteen.",
                id % 13
            );
            client.execute("UPDATE arrived SET body = $2 WHERE id = $1", &[&id, &new])?;
            Ok(client.execute("UPDATE docs SET body = $2 WHERE id = $1", &[&id, &new])?)
        }
        _ => Ok(0),
    })?;
    client.batch_execute(
        "DELETE FROM docs WHERE id IN (SELECT kept FROM paragraphs GROUP BY 1 HAVING count(*) > 1)",
    )?;
    // The remaining documents have lost no paragraph.
    let lost = "SELECT count(*) FROM arrived a JOIN docs USING (id), neardup_segments(a.body) s \
        WHERE s.hash NOT IN (SELECT hash FROM docs, neardup_segments(coalesce(rest, body)))";
    ensure!(
        value::<i64>(&mut client, lost)? > 0,
        "nothing to be given back"
    );
    ensure!(
        value::<i64>(&mut client, REPEATED)? == 0,
        "a paragraph stays twice beside deletions"
    );
    client.batch_execute(&give_back)?;
    ensure!(value::<i64>(&mut client, lost)? == 0, "something is lost");
    ensure!(
        value::<i64>(&mut client, REPEATED)? == 0,
        "a paragraph is given back twice"
    );
    // A second run restores nothing.
    ensure!(client.execute(&give_back, &[])? == 0, "given back again");
    Ok(())
}
