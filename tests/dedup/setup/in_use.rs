//! The statements, run concurrently with a writer.
use super::code;
use super::names::{LONG, Names, ODD, PLAIN, reworded, words};
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes single rows until told to stop: new texts, repeated ones, other texts and other columns
/// of existing rows. Returns how many statements succeeded.
fn write_beside(names: &Names, client: &mut Client, stop: &AtomicBool) -> Result<u64> {
    let mut written = 0;
    let mut number = 100_000;
    let allowed = ["23P01", "40P01"];
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let row = number % 500 + 1;
        let new_text = words(&number.to_string());
        let old_text = reworded(&row.to_string());
        let results = [
            names.insert(client, number, &new_text),
            names.insert(client, number + 500_000, &old_text),
            client.execute(
                &format!(
                    "UPDATE {} SET {} = {new_text} WHERE n = {row} + 50",
                    names.table, names.text
                ),
                &[],
            ),
            client.execute(
                &format!(
                    "UPDATE {} SET pages = {number} WHERE n = {row}",
                    names.table
                ),
                &[],
            ),
        ];
        for result in results {
            match result {
                Ok(_) => written += 1,
                Err(error) => {
                    ensure!(allowed.contains(&code(&error)), "{error:?}");
                }
            }
        }
    }
    Ok(written)
}

/// Runs the statements that add an action twice, concurrently with a writer.
fn add_beside_a_writer(names: &Names, database: &Database, action: &str) -> Outcome {
    let mut client = database.connect()?;
    client.batch_execute(&format!("SET search_path = {}", names.search_path))?;
    let stop = AtomicBool::new(false);
    let written = std::thread::scope(|scope| -> Result<u64> {
        let writer =
            scope.spawn(|| -> Result<u64> { write_beside(names, &mut database.connect()?, &stop) });
        let added = names.run(&mut client, action, "add");
        // Running the statements again changes nothing.
        let again = names.run(&mut client, action, "add");
        stop.store(true, Ordering::Relaxed);
        let written = writer.join().expect("the writer does not panic")?;
        added.and(again)?;
        Ok(written)
    })?;
    ensure!(written > 0, "the writer wrote {written} times");
    Ok(())
}

/// Returns the plan of the search that the last note describes.
fn search_plan(names: &Names, client: &mut Client) -> Result<String> {
    let steps = names.steps(client, "search", "add")?;
    let note = &steps.last().context("a note")?.note;
    let (_, condition) = note.split_once("uses the index: ").context("a condition")?;
    let text: String = value(client, &format!("SELECT {}", words("7")))?;
    let condition = condition.replace("$1", &format!("'{text}'"));
    let query = format!("SELECT n FROM {} WHERE {condition}", names.table);
    let found: Vec<i32> = client
        .query(&query, &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert!(found.contains(&7), "{found:?}");
    let plan = client.query(&format!("EXPLAIN {query}"), &[])?;
    Ok(plan
        .iter()
        .map(|row| row.get::<_, String>(0))
        .collect::<Vec<_>>()
        .join("\n"))
}

/// Returns SQL for a text with a similarity between 0.8 and 0.9 to the text with this number. A
/// stricter bound than the documented one would miss it.
fn near_duplicate(names: &Names, client: &mut Client, number: i32) -> Result<String> {
    let original = words(&number.to_string());
    let variant: String = value(
        client,
        &format!(
            "SELECT variant FROM (SELECT regexp_replace({original}, '\\S+$', 'other ' || k)
                FROM generate_series(1, 1000) k) v (variant)
             WHERE {extension}.fingerprint_similarity({extension}.minhash64(variant),
                {extension}.minhash64({original})) BETWEEN 0.8 AND 0.89 LIMIT 1",
            extension = names.extension
        ),
    )?;
    Ok(format!("'{variant}'"))
}

/// Checks that each row has the fingerprint of its text.
fn has_all_fingerprints(names: &Names, client: &mut Client) -> Outcome {
    let Names {
        table,
        text,
        extension,
        ..
    } = names;
    let fp = names.column("neardup_fp");
    let wrong: i64 = value(
        client,
        &format!(
            "SELECT count(*) FROM {table} \
             WHERE {fp}::text IS DISTINCT FROM {extension}.minhash64({text})::text"
        ),
    )?;
    assert_eq!(wrong, 0);
    Ok(())
}

#[test]
fn search_is_added_to_a_table_in_use_and_removed() -> Outcome {
    for names in [PLAIN, ODD, LONG] {
        let database = Database::create()?;
        let mut client = database.connect()?;
        names.create(&mut client, 3_000)?;
        let before = names.definition(&mut client)?;
        let plan = search_plan(&names, &mut client)?;
        assert!(plan.contains("Seq Scan"), "{plan}");
        add_beside_a_writer(&names, &database, "search")?;
        let plan = search_plan(&names, &mut client)?;
        assert!(plan.contains("Index"), "{plan}");
        names.run(&mut client, "search", "remove")?;
        names.run(&mut client, "search", "remove")?;
        assert_eq!(names.definition(&mut client)?, before);
    }
    Ok(())
}

#[test]
fn near_duplicates_are_skipped_or_refused_on_a_table_in_use() -> Outcome {
    for (names, action) in [
        (PLAIN, "skip"),
        (PLAIN, "error"),
        (ODD, "error"),
        (LONG, "skip"),
    ] {
        let database = Database::create()?;
        let mut client = database.connect()?;
        names.create(&mut client, 3_000)?;
        let before = names.definition(&mut client)?;
        add_beside_a_writer(&names, &database, action)?;
        has_all_fingerprints(&names, &mut client)?;
        // The writer has not changed the text of this row.
        let text = near_duplicate(&names, &mut client, 1_001)?;
        let written = names.insert(&mut client, 900_001, &text);
        match action {
            "skip" => assert_eq!(written?, 0),
            _ => {
                let error = written.err().context("a near-duplicate is written")?;
                assert_eq!(code(&error), "23P01", "{error:?}");
            }
        }
        assert_eq!(names.insert(&mut client, 900_002, &words("-1"))?, 1);
        names.run(&mut client, action, "remove")?;
        names.run(&mut client, action, "remove")?;
        assert_eq!(names.definition(&mut client)?, before);
        assert_eq!(names.insert(&mut client, 900_003, &words("-1"))?, 1);
    }
    Ok(())
}

#[test]
fn near_duplicates_are_marked_on_a_table_in_use() -> Outcome {
    for names in [PLAIN, ODD, LONG] {
        let database = Database::create()?;
        let mut client = database.connect()?;
        names.create(&mut client, 3_000)?;
        let before = names.definition(&mut client)?;
        add_beside_a_writer(&names, &database, "mark")?;
        has_all_fingerprints(&names, &mut client)?;
        let Names {
            table, extension, ..
        } = names;
        let [fp, mark] = ["neardup_fp", "neardup_of"].map(|label| names.column(label));
        let false_marks = format!(
            "SELECT count(*) FROM {table} a LEFT JOIN {table} o ON o.id = a.{mark} \
             WHERE a.{mark} IS NOT NULL AND (o.id IS NULL OR o.{mark} IS NOT NULL \
                OR {extension}.fingerprint_similarity(o.{fp}, a.{fp}) < 0.8)"
        );
        assert_eq!(value::<i64>(&mut client, &false_marks)?, 0);
        // Of the rows that the writer does not change, one of two equal texts has a mark.
        let marked = format!(
            "SELECT count({mark}) FROM {table} WHERE n BETWEEN 1000 AND 3000 AND n % 10 IN (0, 9)"
        );
        let marked: i64 = value(&mut client, &marked)?;
        assert!((200..=202).contains(&marked), "{marked}");
        let text = near_duplicate(&names, &mut client, 1_001)?;
        assert_eq!(names.insert(&mut client, 900_001, &text)?, 1);
        let original = format!(
            "SELECT o.n FROM {table} a JOIN {table} o ON o.id = a.{mark} WHERE a.n = 900001"
        );
        assert_eq!(value::<i32>(&mut client, &original)?, 1_001);
        names.run(&mut client, "mark", "remove")?;
        names.run(&mut client, "mark", "remove")?;
        assert_eq!(names.definition(&mut client)?, before);
    }
    Ok(())
}

#[test]
fn an_index_whose_build_was_cut_off_is_dropped_first() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute("CREATE TABLE docs (body text); INSERT INTO docs VALUES ('a text')")?;
    let statement = |client: &mut Client| -> Result<String> {
        Ok(PLAIN
            .steps(client, "search", "add")?
            .swap_remove(0)
            .statement)
    };
    let create = statement(&mut client)?;
    let mut other = database.connect()?;
    // The build waits for this transaction.
    other.batch_execute("BEGIN; INSERT INTO docs VALUES ('another')")?;
    client.batch_execute("SET lock_timeout = '10ms'")?;
    let error = client
        .batch_execute(&create)
        .err()
        .context("the build does not wait")?;
    assert_eq!(code(&error), "55P03", "{error:?}");
    client.batch_execute("RESET lock_timeout")?;
    other.batch_execute("COMMIT")?;
    let first = statement(&mut client)?;
    assert_eq!(
        first,
        "DROP INDEX CONCURRENTLY IF EXISTS public.docs_body_neardup;"
    );
    PLAIN.run(&mut client, "search", "add")?;
    let is_valid =
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'docs_body_neardup'::regclass";
    assert!(value::<bool>(&mut client, is_valid)?);
    assert_eq!(statement(&mut client)?, create);
    Ok(())
}
