//! The recipes of docs/segments.md beside other transactions: no paragraph is lost, and none stays
//! twice. The statements are those of the document.
use crate::recipes::{begin, blocks, until_it_waits};
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;

const DOCUMENT: &str = "segments.md";

/// The part of a section from these words to the end of a statement.
fn statement(section: &str, start: &str, end: &str) -> Result<String> {
    let at = section.find(start).with_context(|| format!("no {start}"))?;
    let length = section[at..]
        .find(end)
        .with_context(|| format!("no {end}"))?
        + end.len();
    Ok(section[at..at + length].to_owned())
}

/// The one statement that removes paragraphs, and the table that it writes.
fn removal() -> Result<[String; 2]> {
    let section = blocks(DOCUMENT, "Remove them, by one statement")?.concat();
    Ok([
        statement(&section, "CREATE TABLE removed", ";")?,
        statement(&section, "WITH locked", "rest.id;")?,
    ])
}

/// The trigger with its tables, and the statement that gives back what nobody keeps.
fn trigger() -> Result<[String; 2]> {
    let section = blocks(DOCUMENT, "Keep it so: a trigger and a table")?.concat();
    Ok([
        statement(
            &section,
            "CREATE TABLE paragraphs",
            "keep_first_paragraphs();",
        )?,
        statement(&section, "WITH orphans", "given.id;")?,
    ])
}

const SETUP: &str = r"CREATE TABLE docs (id int PRIMARY KEY, body text);
    INSERT INTO docs VALUES
    (1, E'one\n\nshared by all\n\nof 1 and 2'), (2, E'of 1 and 2\n\ntwo\n\nSHARED by all'),
    (3, E'shared by  all\n\nthree'), (4, E'shared by all\n\nshared by all'),
    (5, E'five'), (6, NULL);";

/// Statements of another transaction meanwhile: it takes away or changes a document that keeps a
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

/// Number of paragraphs that more than one document has.
const REPEATED: &str = "SELECT count(*) FROM (SELECT FROM docs, neardup_segments(body) \
    GROUP BY hash HAVING count(DISTINCT id) > 1) r";

/// Number of removed paragraphs that the document named does not have.
const MISSING: &str = "SELECT count(*) FROM removed r WHERE NOT EXISTS ( \
    SELECT FROM docs d, neardup_segments(d.body) s WHERE d.id = r.kept AND s.hash = r.hash)";

#[test]
fn nothing_is_lost_beside_others() -> Outcome {
    let [table, sql] = removal()?;
    for other in MEANWHILE {
        let database = Database::create()?;
        let (mut client, mut watcher) = (database.connect()?, database.connect()?);
        client.batch_execute(&format!("{SETUP} {table}"))?;
        client.batch_execute(&format!("BEGIN; {other}"))?;
        let expected: Vec<i64> = value(&mut client, PARAGRAPHS)?;
        let recipe = begin(&database, &sql)?;
        until_it_waits(&mut watcher, &recipe)?;
        client.batch_execute("COMMIT")?;
        recipe.join().expect("no panic").context(other)?;
        let check = |client: &mut Client| -> Result<i64> {
            let found: Vec<i64> = value(client, PARAGRAPHS)?;
            ensure!(found == expected, "{other}: {found:?}, not {expected:?}");
            ensure!(value::<i64>(client, REPEATED)? == 0, "{other}");
            ensure!(value::<i64>(client, MISSING)? == 0, "{other}");
            value(client, "SELECT count(*) FROM removed")
        };
        let removed = check(&mut client)?;
        ensure!(removed > 0, "{other}");
        // Twice: nothing more.
        begin(&database, &sql)?.join().expect("no panic")?;
        ensure!(check(&mut client)? == removed, "{other}");
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
        let query = "SELECT array_agg(id) FROM docs, neardup_segments(body) s \
            WHERE lower(segment) = 'the new one.'";
        let with: Vec<i32> = value(&mut client, query)?;
        ensure!(with == [kept_by], "{end}: {with:?}");
        let query = "SELECT array_agg(kept) FROM removed WHERE id = 11";
        let removed: Option<Vec<i32>> = value(&mut client, query)?;
        ensure!(
            removed == (kept_by == 10).then(|| vec![10]),
            "{end}: {removed:?}"
        );
    }
    Ok(())
}

/// Paragraphs of a few texts in another order each time.
fn body(document: i32) -> String {
    let number = |i: i32| (document * 7 + i * (document % 5 + 1)) % 13;
    let shared = (0..6).map(|i| format!("Paragraph number {} of thirteen.", number(i)));
    shared.collect::<Vec<_>>().join("\n\n") + &format!("\n\nOf {document} alone.")
}

/// Sessions that insert at once, of which each document is a transaction: none fails, each
/// paragraph stays once, and after documents have gone and come back none is lost.
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
    let paragraphs: Vec<i64> = value(&mut client, PARAGRAPHS)?;
    ensure!(paragraphs.len() == 113, "{}", paragraphs.len());
    // Half of them go, and others get another text; then all that keep something for others go.
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
    // Of the documents that are left, no paragraph that they came with is lost.
    let lost = "SELECT count(*) FROM arrived a JOIN docs USING (id), neardup_segments(a.body) s \
        WHERE s.hash NOT IN (SELECT hash FROM docs, neardup_segments(body))";
    ensure!(
        value::<i64>(&mut client, lost)? > 0,
        "nothing to be given back"
    );
    client.batch_execute(&give_back)?;
    ensure!(value::<i64>(&mut client, lost)? == 0, "something is lost");
    ensure!(
        value::<i64>(&mut client, REPEATED)? == 0,
        "a paragraph is given back twice"
    );
    // Once more: there is nothing left to give back.
    ensure!(client.execute(&give_back, &[])? == 0, "given back again");
    Ok(())
}
