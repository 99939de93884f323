//! The recipes of docs/dedup.md, concurrently with transactions that delete and change the rows
//! that the recipes keep. Nothing may be lost. The statements are copied from the document.
use crate::support::Outcome;
use crate::support::table::value;
use crate::support::waiting::poll;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, project_path};
use postgres::Client;
use std::collections::BTreeMap;
use std::thread::JoinHandle;

/// The SQL below a heading of docs/dedup.md.
fn recipe(heading: &str) -> Result<String> {
    Ok(blocks("dedup.md", heading)?.concat())
}

/// The blocks of SQL below a heading of a document.
pub fn blocks(name: &str, heading: &str) -> Result<Vec<String>> {
    let document = std::fs::read_to_string(project_path(&format!("docs/{name}")))?;
    let (_, section) = (document.split_once(&format!("\n## {heading}\n")))
        .with_context(|| format!("docs/{name} has no section {heading}"))?;
    let section = section.split("\n## ").next().unwrap_or(section);
    let blocks = section.split("```sql\n").skip(1);
    Ok(blocks
        .filter_map(|block| Some(block.split("```").next()?.to_owned()))
        .collect())
}

/// The radius of the recipes.
const NEAR: i32 = 6;

/// Documents by number: length of the text, and fingerprint. Each member of three chains is near
/// the next, and the ends are far apart. The best document is at one end, in the middle, or one of
/// several equal ones. There are also a pair, a single document, and 60 rows of a long chain.
fn documents() -> Vec<(i32, usize, i64)> {
    let mut documents = vec![
        (1, 30, 0),
        (2, 20, 0xf),
        (3, 10, 0xff),
        (4, 9, 0xfff),
        (11, 10, 0xff << 32),
        (12, 30, 0xfff << 32),
        (13, 20, 0xffff << 32),
        (14, 20, 0xffff << 32),
        (21, 5, 0xff << 48),
        (22, 6, 0xff << 48),
        (31, 5, 0x5555_5555_5555_5555),
    ];
    documents.extend((0..60).map(|i| (100 + i, 7 * i as usize % 13, ((1 << i) - 1) << 2 | 2)));
    documents
}

fn create(client: &mut Client) -> Result<()> {
    let block = recipe_setup()?;
    client.batch_execute(&block)?;
    for (id, length, fp) in documents() {
        client.execute(
            "INSERT INTO docs VALUES ($1, repeat('x', $2), $3::bigint::fingerprint)",
            &[&id, &(length as i32), &fp],
        )?;
    }
    Ok(())
}

/// The document's own table and index.
fn recipe_setup() -> Result<String> {
    let document = std::fs::read_to_string(project_path("docs/dedup.md"))?;
    let block = document.split("```sql\n").nth(1).context("a first block")?;
    Ok(block.split("```").next().unwrap_or(block).to_owned())
}

/// The fingerprints of the documents that are kept: in the table, and not marked.
fn kept(client: &mut Client) -> Result<BTreeMap<i32, i64>> {
    let query = "SELECT id, fp::bigint FROM docs WHERE duplicate_of IS NULL";
    let rows = client.query(query, &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Asserts that each of these documents is kept, or near a kept one.
fn nothing_is_lost(client: &mut Client, start: &[(i32, i64)], what: &str) -> Result<()> {
    let kept = kept(client)?;
    for &(id, fp) in start {
        let near = |other: &i64| (fp ^ other).count_ones() as i32 <= NEAR;
        ensure!(
            kept.contains_key(&id) || kept.values().any(near),
            "{what}: document {id} is lost; kept: {:?}",
            kept.keys()
        );
    }
    Ok(())
}

/// Asserts that no two of the kept documents are near each other.
fn none_is_left(client: &mut Client, what: &str) -> Result<()> {
    let kept: Vec<(i32, i64)> = kept(client)?.into_iter().collect();
    for (i, (id, fp)) in kept.iter().enumerate() {
        for (other, its) in &kept[i + 1..] {
            ensure!(
                (fp ^ its).count_ones() as i32 > NEAR,
                "{what}: {id} and {other}"
            );
        }
    }
    Ok(())
}

/// Runs a recipe in a new session, statement by statement as psql would.
pub fn begin(database: &Database, sql: &str) -> Result<JoinHandle<Result<()>>> {
    let mut client = database.connect()?;
    let statements = statements(sql);
    client.batch_execute("SET application_name = 'recipe'")?;
    Ok(std::thread::spawn(move || {
        for statement in statements {
            client.batch_execute(&statement)?;
        }
        Ok(())
    }))
}

/// Returns the statements of a script; the bodies of its DO blocks stay whole.
fn statements(sql: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    let mut quoted = false;
    for line in sql.lines() {
        quoted ^= line.matches("$$").count() % 2 == 1;
        let last = statements.len() - 1;
        statements[last] += line;
        statements[last] += "\n";
        if !quoted && line.ends_with(';') {
            statements.push(String::new());
        }
    }
    statements.retain(|statement| !statement.trim().is_empty());
    statements
}

/// Waits until the recipe waits for a lock, or has ended.
pub fn until_it_waits(client: &mut Client, recipe: &JoinHandle<Result<()>>) -> Result<()> {
    let query = "SELECT count(*) FROM pg_stat_activity \
        WHERE application_name = 'recipe' AND datname = current_database() \
        AND wait_event_type = 'Lock'";
    poll("the recipe waits for a lock or ends", || {
        Ok(recipe.is_finished() || value::<i64>(client, query)? > 0)
    })
}

/// Statements of a concurrent transaction, and the documents that it deletes itself.
const MEANWHILE: [(&str, &[i32]); 5] = [
    ("SELECT", &[]),
    ("DELETE FROM docs WHERE id IN (1, 12, 22)", &[1, 12, 22]),
    // Turns a kept document into a different one.
    (
        "UPDATE docs SET fp = (~fp::bigint)::fingerprint WHERE id IN (1, 12, 22)",
        &[1, 12, 22],
    ),
    // Changes the order of preference.
    (
        "UPDATE docs SET body = repeat('y', 100 - length(body)) WHERE id < 100",
        &[],
    ),
    (
        "DELETE FROM docs WHERE id BETWEEN 100 AND 130 AND id % 2 = 0",
        &[
            100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126, 128, 130,
        ],
    ),
];

/// Runs a recipe while another transaction with changes is open, and once more later.
fn beside_others(heading: &str, complete: bool, again: &str) -> Outcome {
    beside_others_with("", &recipe(heading)?, heading, complete, again)
}

/// The same, after the statements that the recipe runs once in advance.
fn beside_others_with(
    setup: &str,
    sql: &str,
    heading: &str,
    complete: bool,
    again: &str,
) -> Outcome {
    for (other, gone) in MEANWHILE {
        let what = format!("{heading}, beside {other}");
        let database = Database::create()?;
        let (mut client, mut watcher) = (database.connect()?, database.connect()?);
        create(&mut client)?;
        client.batch_execute(setup)?;
        let start: Vec<(i32, i64)> = (documents().iter())
            .filter(|(id, _, _)| !gone.contains(id))
            .map(|&(id, _, fp)| (id, fp))
            .collect();
        client.batch_execute(&format!("BEGIN; {other}"))?;
        let recipe = begin(&database, sql)?;
        until_it_waits(&mut watcher, &recipe)?;
        client.batch_execute("COMMIT")?;
        recipe.join().expect("no panic").context(what.clone())?;
        nothing_is_lost(&mut client, &start, &what)?;
        // A batch may skip documents that it would have to compare again.
        if complete {
            none_is_left(&mut client, &what)?;
        }
        // Repeats the recipe on the current rows, after another change of the order of preference.
        client.batch_execute("UPDATE docs SET body = repeat('z', 200 - length(body))")?;
        let start: Vec<(i32, i64)> = (client.query("SELECT id, fp::bigint FROM docs", &[])?.iter())
            .map(|row| (row.get(0), row.get(1)))
            .collect();
        begin(&database, again.replace("{}", sql).as_str())?
            .join()
            .expect("no panic")
            .context(what.clone())?;
        nothing_is_lost(&mut client, &start, &format!("{what}, twice"))?;
        none_is_left(&mut client, &format!("{what}, twice"))?;
        archived_are_near(&mut client, &what)?;
    }
    Ok(())
}

/// Asserts that each archived document is near the kept document that it names.
fn archived_are_near(client: &mut Client, what: &str) -> Result<()> {
    if value::<bool>(client, "SELECT to_regclass('archive') IS NULL")? {
        return Ok(());
    }
    let wrong = "SELECT count(*) FROM archive a WHERE NOT EXISTS \
        (SELECT FROM docs k WHERE k.id = a.kept AND (k.fp <~> a.fp) + 0 <= 6)";
    let wrong: i64 = value(client, wrong)?;
    ensure!(
        wrong == 0,
        "{what}: {wrong} archived documents are near nothing"
    );
    Ok(())
}

#[test]
fn deleting_all_but_the_kept() -> Outcome {
    beside_others("Delete all but the kept", true, "{}")
}

#[test]
fn marking() -> Outcome {
    beside_others("Mark them", true, "{}")?;
    // Marked documents may be deleted at once.
    beside_others(
        "Mark them",
        true,
        "{}\nDELETE FROM docs WHERE duplicate_of IS NOT NULL;\n",
    )
}

#[test]
fn moving_to_an_archive() -> Outcome {
    let heading = "Move them to an archive";
    let all = recipe(heading)?;
    let at = all.find("CALL").context("a call")?;
    let procedure = &blocks("corpus.md", "Keep one copy, archive the others")?[0];
    // Inserts better documents, near the kept ones and not near the rows represented by them.
    let better = "INSERT INTO docs SELECT 1000 + id, repeat('x', 500), \
        (fp::bigint # (7::bigint << 60))::fingerprint FROM docs WHERE id < 100;\n{}";
    let setup = [procedure, &all[..at]].concat();
    beside_others_with(&setup, &all[at..], heading, true, better)
}

#[test]
fn deleting_in_batches() -> Outcome {
    beside_others("In batches", false, "{}")
}

/// The kept document is deleted or changed after the keys have been stored.
#[test]
fn a_batch_looks_at_what_it_keeps() -> Outcome {
    let sql = recipe("In batches")?;
    let (first, rest) = sql.split_once("DO $$").context("two parts")?;
    let rest = format!("DO $$ {rest}");
    for (other, gone) in MEANWHILE {
        let what = format!("batches, later beside {other}");
        let database = Database::create()?;
        let (mut client, mut watcher) = (database.connect()?, database.connect()?);
        create(&mut client)?;
        client.batch_execute(first)?;
        let start: Vec<(i32, i64)> = (documents().iter())
            .filter(|(id, _, _)| !gone.contains(id))
            .map(|&(id, _, fp)| (id, fp))
            .collect();
        client.batch_execute(&format!("BEGIN; {other}"))?;
        let recipe = begin(&database, &rest)?;
        until_it_waits(&mut watcher, &recipe)?;
        client.batch_execute("COMMIT")?;
        recipe.join().expect("no panic").context(what.clone())?;
        nothing_is_lost(&mut client, &start, &what)?;
    }
    Ok(())
}
