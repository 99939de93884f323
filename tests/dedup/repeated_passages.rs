//! Passages that earlier documents contain, as `neardup_repeated_passages` finds them. Compares
//! them with all earlier windows of words, with as little memory as the server allows, and cuts the
//! texts with the statement of the reference.
use crate::dedup::recipes::blocks;
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::memory::most_memory;
use crate::support::roles::Role;
use crate::support::table::value;
use anyhow::{Context, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;

/// Smallest memory settings of the server. JIT is off, because it takes 60 MB.
const LITTLE: &str = "SET work_mem = '64kB'; SET maintenance_work_mem = '1MB'; SET jit = off";

/// A document: its key, its rank in the order of preference, and its words.
struct Document {
    id: i32,
    rank: i32,
    words: Vec<String>,
}

/// Random documents of few distinct words, in the order of preference. Some contain parts of
/// others. Ranks repeat, and then the key decides.
fn documents(random: &mut Random, count: i32, distinct: u64) -> Vec<Document> {
    let mut documents: Vec<Document> = Vec::new();
    for id in 0..count {
        let mut words = Vec::new();
        for _ in 0..random.below(4) {
            match documents.is_empty() || random.below(2) == 0 {
                true => {
                    let more = random.below(30);
                    words.extend((0..more).map(|_| format!("w{}", random.below(distinct))));
                }
                false => {
                    let source = &documents[random.below(documents.len() as u64) as usize].words;
                    let start = random.below(source.len() as u64 + 1) as usize;
                    let end = start + random.below((source.len() - start) as u64 + 1) as usize;
                    words.extend_from_slice(&source[start..end]);
                }
            }
        }
        let rank = random.below(5) as i32;
        documents.push(Document { id, rank, words });
    }
    documents.sort_by_key(|document| (-document.rank, document.id));
    documents
}

/// Words of a text that [`insert`] has written.
fn words(text: &str) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// First document with the window of `length` words at `start` of document `n`, among earlier
/// documents and the words of the same document before the window.
fn original(documents: &[Document], n: usize, start: usize, length: usize) -> Option<usize> {
    let window = &documents[n].words[start..start + length];
    (0..=n).find(|&m| {
        let words = &documents[m].words;
        let end = if m == n { start } else { words.len() };
        words[..end].windows(length).any(|other| other == window)
    })
}

/// Inserts the documents. Each word may be written in other letters, and between others signs.
fn insert(client: &mut Client, random: &mut Random, documents: &[Document]) -> Outcome {
    client.batch_execute("TRUNCATE docs; INSERT INTO docs VALUES (-1, 9, NULL), (-2, 9, '')")?;
    for document in documents {
        let mut body = random.pick(&["", "  ", "« "]).to_owned();
        for word in &document.words {
            body += &match random.below(3) {
                0 => word.to_uppercase(),
                _ => word.clone(),
            };
            body += random.pick(&[" ", "  ", ", ", " – ", "\n"]);
        }
        let row = [
            &document.id as &(dyn postgres::types::ToSql + Sync),
            &document.rank,
            &body,
        ];
        client.execute("INSERT INTO docs VALUES ($1, $2, $3)", &row)?;
    }
    Ok(())
}

const SETUP: &str = "CREATE TABLE docs (id int PRIMARY KEY, rank int, body text)";

#[test]
fn passages_are_those_of_a_comparison_of_all_windows() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    client.batch_execute(LITTLE)?;
    let mut random = Random::new(32);
    let (mut passages, mut cut) = (0, 0);
    for round in 0..60_i32 {
        let length = 1 + random.below(9) as usize;
        let distinct = random.pick(&[1, 2, 5, 50]);
        let documents = documents(&mut random, round / 3, distinct);
        insert(&mut client, &mut random, &documents)?;
        let mut kept: Vec<Vec<bool>> = documents
            .iter()
            .map(|document| vec![true; document.words.len()])
            .collect();
        let query = "SELECT document, token_count, original, left(d.body, passage_start - 1),
                substr(d.body, passage_start, passage_end - passage_start)
            FROM neardup_repeated_passages(NULL::int, 'docs', 'body', $1, keep => 'rank DESC') p
            JOIN docs d ON d.id = p.document";
        for row in client.query(query, &[&(length as i32)])? {
            let (id, count, source): (i32, i32, i32) = (row.get(0), row.get(1), row.get(2));
            let [before, passage] = [3, 4].map(|column| words(row.get(column)));
            let n = documents
                .iter()
                .position(|d| d.id == id)
                .context("a document")?;
            let m = documents
                .iter()
                .position(|d| d.id == source)
                .context("an original")?;
            let run = before.len()..before.len() + count as usize;
            ensure!(
                run.len() >= length && m <= n,
                "round {round}: {run:?} of {id}"
            );
            let words = &documents[n].words[run.clone()];
            ensure!(
                passage == *words,
                "round {round}: {passage:?}, not {words:?}"
            );
            let mut others = documents[m].words.windows(run.len()).enumerate();
            ensure!(
                others.any(|(at, other)| other == words && (m < n || at + length <= run.start)),
                "round {round}: {words:?} of {id} is not in {source}"
            );
            let start = original(&documents, n, run.start, length);
            ensure!(
                start == Some(m),
                "round {round}: {words:?} of {id} begins in {start:?}"
            );
            kept[n][run].fill(false);
            passages += 1;
        }
        for (n, kept) in kept.iter().enumerate() {
            let mut repeated = vec![false; kept.len()];
            for start in 0..(kept.len() + 1).saturating_sub(length) {
                if original(&documents, n, start, length).is_some() {
                    repeated[start..start + length].fill(true);
                }
            }
            let expected: Vec<bool> = repeated.iter().map(|repeated| !repeated).collect();
            ensure!(
                *kept == expected,
                "round {round}, document {n}: {kept:?}, not {expected:?}"
            );
            cut += kept.iter().filter(|kept| !**kept).count();
        }
    }
    ensure!(
        passages > 300 && cut > 2000,
        "{passages} passages, {cut} words"
    );
    Ok(())
}

/// The statement of the reference cuts exactly the passages: the words that remain are those of no
/// passage, and all other characters remain.
#[test]
fn the_statement_of_the_reference_cuts_the_passages() -> Outcome {
    let statement = blocks("reference/passages.md", "`neardup_repeated_passages`")?
        .into_iter()
        .find(|block| block.starts_with("UPDATE"))
        .context("no UPDATE")?;
    let statement = statement
        .replace("novels", "docs")
        .replace(", 5)", ", 4, keep => 'rank DESC')");
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    let mut random = Random::new(33);
    for round in 0..20 {
        let documents = documents(&mut random, 12, 4);
        insert(&mut client, &mut random, &documents)?;
        client.batch_execute(
            "DROP TABLE IF EXISTS old, spans; CREATE TABLE old AS TABLE docs;
             CREATE TABLE spans AS SELECT * FROM neardup_repeated_passages(NULL::int, 'docs',
                 'body', 4, keep => 'rank DESC')",
        )?;
        client.batch_execute(&statement)?;
        let wrong: i64 = value(
            &mut client,
            "SELECT count(*) FROM docs d JOIN old o USING (id) WHERE d.body IS DISTINCT FROM (
                SELECT coalesce(string_agg(c, '' ORDER BY n), '')
                FROM regexp_split_to_table(o.body, '') WITH ORDINALITY s (c, n)
                WHERE NOT EXISTS (SELECT FROM spans p WHERE p.document = o.id
                    AND n >= passage_start AND n < passage_end))
             AND EXISTS (SELECT FROM spans p WHERE p.document = o.id)",
        )?;
        ensure!(wrong == 0, "round {round}: {wrong} texts");
        let cut: i64 = value(&mut client, "SELECT count(*) FROM spans")?;
        ensure!(cut > 0, "round {round}: no passages");
        let changed: i64 = value(
            &mut client,
            "SELECT count(*) FROM docs d JOIN old o USING (id) WHERE d.body IS DISTINCT FROM o.body
                AND NOT EXISTS (SELECT FROM spans p WHERE p.document = o.id)",
        )?;
        ensure!(
            changed == 0,
            "round {round}: {changed} texts without passages were changed"
        );
    }
    Ok(())
}

/// Texts of 20 MB within a few megabytes of memory.
#[test]
fn large_tables_need_little_memory() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(LITTLE)?;
    client.batch_execute(
        "CREATE TABLE large AS SELECT i AS id, (SELECT string_agg(
            hashint8extended(CASE WHEN i % 10 = 0 THEN 7 ELSE i END * 1000 + n, 1)::text, ' '
            ORDER BY n) FROM generate_series(1, 100) n) AS body FROM generate_series(1, 10000) i",
    )?;
    let query = "SELECT count(*) FROM neardup_repeated_passages(NULL::int, 'large', 'body',
        key => 'id') WHERE token_count = 100 AND original = 7";
    let before = most_memory(&mut client)?;
    ensure!(value::<i64>(&mut client, query)? == 1000);
    let grown = most_memory(&mut client)?.saturating_sub(before) >> 20;
    ensure!(grown < 12, "{grown} MB");
    Ok(())
}

/// The function reads what a SELECT of the caller reads.
#[test]
fn the_rights_of_the_caller_decide() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE private (id int PRIMARY KEY, owner text, body text);
         INSERT INTO private VALUES (1, 'other', 'one two three four'),
            (2, NULL, 'one two three'), (3, NULL, 'one two three')",
    )?;
    let role = Role::create(&database)?;
    let query = "SELECT array_agg(document || ' ' || original ORDER BY document) FROM
        neardup_repeated_passages(NULL::int, 'private', 'body', 3)";
    let mut plain = role.connect()?;
    let refused = |plain: &mut Client| -> Outcome {
        let error = value::<Vec<String>>(plain, query)
            .err()
            .context("no error")?;
        let error = error.downcast::<postgres::Error>()?;
        ensure!(
            error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE),
            "{error:?}"
        );
        Ok(())
    };
    refused(&mut plain)?;
    let name = &role.name;
    client.batch_execute(&format!("GRANT SELECT (id) ON private TO {name}"))?;
    refused(&mut plain)?;
    client.batch_execute(&format!("GRANT SELECT (body) ON private TO {name}"))?;
    ensure!(value::<Vec<String>>(&mut plain, query)? == ["2 1", "3 1"]);
    client.batch_execute(&format!(
        "GRANT SELECT (owner) ON private TO {name};
         ALTER TABLE private ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON private USING (owner IS NULL)"
    ))?;
    ensure!(value::<Vec<String>>(&mut plain, query)? == ["3 2"]);
    Ok(())
}

/// A timeout ends each phase.
#[test]
fn timeouts_end_the_function() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE words AS SELECT 1 AS id, string_agg((n % 1000)::text, ' ') AS body
            FROM generate_series(1, 2000000) n",
    )?;
    let query = "SELECT count(*) FROM neardup_repeated_passages(NULL::int, 'words', 'body',
        key => 'id')";
    for milliseconds in [1, 100, 300, 600, 1000] {
        client.batch_execute(&format!("SET statement_timeout = {milliseconds}"))?;
        let result = client.batch_execute(query);
        let code = result
            .as_ref()
            .err()
            .and_then(|error| error.code().cloned());
        ensure!(
            matches!(code, None | Some(SqlState::QUERY_CANCELED)),
            "{result:?}"
        );
        ensure!(
            milliseconds > 1 || result.is_err(),
            "a long statement took a millisecond"
        );
    }
    client.batch_execute("RESET statement_timeout")?;
    ensure!(value::<i64>(&mut client, query)? == 1);
    Ok(())
}
