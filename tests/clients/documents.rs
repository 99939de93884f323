//! Runs the SQL examples of the documents, and compares the output with the documents.
use crate::support::Outcome;
use crate::support::skip::skip_case;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, client_program, project_path};
use postgres::Client;
use std::io::{Read, Write};
use std::process::Stdio;

/// Table for documents that require one.
const DOCS: &str = "CREATE TABLE docs (id int, body text, \
        fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED); \
    INSERT INTO docs (id, body) SELECT i, 'page ' || i / 3 || ' of a site with ' || i \
        FROM generate_series(1, 500) i;";

/// Documents whose SQL is one session from top to bottom, the heading at which it begins, and the
/// setup that it requires.
const DOCUMENTS: &[(&str, &str, &[&str])] = &[
    ("README.md", "# neardup", &["DROP EXTENSION neardup"]),
    ("docs/minhash.md", "# MinHash", &[]),
    (
        "docs/tutorial-news.md",
        "# Tutorial: one copy of each story",
        &[],
    ),
    (
        "docs/tutorial-images.md",
        "# Tutorial: image hashes in a bigint column",
        &[],
    ),
    ("docs/live-table.md", "# Add it to a live table", &[]),
    (
        "docs/change-function.md",
        "# Change the function later",
        &[],
    ),
    ("docs/similar.md", "# Similar articles", &[]),
    ("docs/windows.md", "# Windows of time", &[]),
    ("docs/passages.md", "# Passages", &[]),
    (
        "docs/contamination.md",
        "# Contamination of evaluation sets",
        &[],
    ),
    ("docs/quality.md", "## Text that many documents share", &[]),
    ("docs/reference/types.md", "# Types", &[]),
    ("docs/reference/distance.md", "# Distance and searches", &[]),
    ("docs/reference/fingerprints.md", "# Fingerprints", &[]),
    ("docs/reference/text.md", "# Texts", &[]),
    (
        "docs/reference/common-features.md",
        "# Common features",
        &[],
    ),
    ("docs/reference/passages.md", "# Passages", &[]),
    ("docs/reference/compare.md", "# Comparing two texts", &[]),
    ("docs/reference/minhash.md", "# MinHash signatures", &[]),
    ("docs/reference/index.md", "# Index and constraint", &[]),
    ("docs/reference/trigger.md", "# Setup and trigger", &[]),
    ("docs/reference/clusters.md", "# Whole tables", &[]),
    ("docs/reference/distributed.md", "# Beyond one machine", &[]),
    ("docs/text.md", "# From a text to its features", &[]),
    ("docs/chinese.md", "# Chinese texts", &[]),
    ("docs/html.md", "# HTML", &[]),
    (
        "docs/choosing-a-distance.md",
        "# Which distance for my documents?",
        &[DOCS],
    ),
    ("docs/report.md", "# A report to look at", &[]),
    ("docs/corpus.md", "# Clean a corpus", &[]),
    ("docs/differences.md", "# Where two texts differ", &[]),
    ("docs/segments.md", "# Repeated paragraphs", &[]),
    ("docs/distributed.md", "# Beyond one machine", &[]),
    (
        "docs/production.md",
        "# In production",
        &[DOCS, "CREATE INDEX docs_fp ON docs USING neardup (fp);"],
    ),
    (
        "docs/coming-from/bktree.md",
        "# From pg-spgist_hamming (bktree)",
        &[],
    ),
    (
        "docs/coming-from/datasketch.md",
        "# From datasketch's LSH in Redis",
        &[],
    ),
    (
        "docs/coming-from/faiss-pdq.md",
        "# From PDQ hashes in a FAISS file",
        &[],
    ),
    (
        "docs/coming-from/md5.md",
        "# From a unique index on md5(body)",
        &[],
    ),
    ("docs/coming-from/pg_trgm.md", "# From pg_trgm", &[]),
    (
        "docs/without-the-extension.md",
        "# Without the extension",
        &["DROP EXTENSION neardup"],
    ),
    (
        "docs/tuning.md",
        "# Tuning",
        &[DOCS, "CREATE INDEX docs_fp ON docs USING neardup (fp);"],
    ),
];

/// Contrib extensions that a document needs. Some servers do not have them.
const CONTRIB: &[(&str, &str)] = &[("docs/coming-from/pg_trgm.md", "pg_trgm")];

/// Returns whether the server has the extensions that the document needs.
fn can_run(name: &str, client: &mut Client) -> anyhow::Result<bool> {
    for (_, extension) in CONTRIB.iter().filter(|(document, _)| *document == name) {
        let query = "SELECT count(*) FROM pg_available_extensions WHERE name = $1";
        let found: i64 = client.query_one(query, &[extension])?.get(0);
        if found == 0 {
            skip_case(format!("{name}: the server has no {extension}"))?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// A piece of a document that this test runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// The line on which it begins.
    line: usize,
    pub sql: String,
    /// Output of psql; `None` where the document shows none.
    output: Option<String>,
}

/// Returns the fenced blocks marked `sql`. Skips blocks with another mark, such as `sql not-run`
/// for statements that change the whole server.
pub fn examples(document: &str, heading: &str) -> Vec<Example> {
    examples_marked(document, heading, "sql")
}

/// Returns the fenced blocks with this mark. Each has the output block that follows directly,
/// marked `text` or not marked. For a section, the session ends at the next first-level heading.
pub fn examples_marked(document: &str, heading: &str, mark: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut lines = (1..).zip(document.lines());
    if !lines.any(|(_, line)| line == heading) {
        return examples;
    }
    let mut adjacent = false;
    while let Some((number, line)) = lines.next() {
        if heading.starts_with("## ") && line.starts_with("## ") {
            break;
        }
        let Some(kind) = line.strip_prefix("```") else {
            adjacent &= line.is_empty();
            continue;
        };
        let block: String = (lines.by_ref())
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .flat_map(|line| [line, "\n"])
            .collect();
        match (kind, examples.last_mut()) {
            (kind, _) if kind == mark => examples.push(Example {
                line: number,
                sql: block,
                output: None,
            }),
            ("text" | "", Some(example)) if adjacent => example.output = Some(block),
            _ => (),
        }
        adjacent = kind == mark;
    }
    examples
}

/// Returns the output of psql for all statements, in one session. An error is printed where the
/// document shows an error, and otherwise ends the session.
fn run(conninfo: &str, examples: &[Example]) -> Result<Vec<String>> {
    const END: &str = "== end of example ==";
    let script: String = (examples.iter())
        .map(|example| {
            let refused = (example.output.as_deref()).is_some_and(|text| text.starts_with("ERROR"));
            let stop = if refused { "off" } else { "on" };
            let sql = &example.sql;
            format!("\\set ON_ERROR_STOP {stop}\n{sql}\n\\pset expanded off\n\\echo {END}\n")
        })
        .collect();
    // psql writes into one pipe, so that output and errors are in order.
    let (mut output, input) = std::io::pipe()?;
    let mut psql = client_program("psql")?
        .args(["--no-psqlrc", "--quiet"])
        .arg(format!("--dbname={conninfo}"))
        .env("PGOPTIONS", "--client-min-messages=warning")
        .stdin(Stdio::piped())
        .stdout(input.try_clone()?)
        .stderr(input)
        .spawn()
        .context("cannot run psql")?;
    let mut stdin = psql.stdin.take().context("a pipe")?;
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    let status = psql.wait()?;
    ensure!(status.success(), "an example fails:\n{text}");
    writer.join().expect("no panic")?;
    Ok(text.split(END).map(str::to_owned).collect())
}

/// Runs the examples of a document in one session. Returns each output that differs from the
/// document, after replacing names of this machine.
pub fn differences(
    name: &str,
    conninfo: &str,
    examples: &[Example],
    names: &[(String, String)],
) -> Result<String> {
    let mut wrong = String::new();
    for (example, output) in examples.iter().zip(run(conninfo, examples)?) {
        let output = (names.iter()).fold(output, |output, (from, to)| output.replace(from, to));
        if let Some(shown) = &example.output
            && lines(&output) != lines(shown)
        {
            wrong += &format!("{name}, line {}: the output is\n{output}\n", example.line);
        }
    }
    Ok(wrong)
}

/// Returns the lines of an output. Documents may omit the line with the number of rows.
fn lines(text: &str) -> Vec<&str> {
    let is_number = |line: &str| {
        let number = (line.strip_prefix('(')).and_then(|line| line.split_once(' '));
        number.is_some_and(|(number, of)| {
            number.bytes().all(|byte| byte.is_ascii_digit()) && ["row)", "rows)"].contains(&of)
        })
    };
    let lines = text.trim().lines().map(str::trim_end);
    let mut lines: Vec<&str> = lines.filter(|line| !is_number(line)).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

#[test]
fn examples_print_what_the_documents_show() -> Outcome {
    let root = project_path("");
    let mut wrong = String::new();
    for &(name, heading, setup) in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(name)).context(name)?;
        let examples = examples(&text, heading);
        ensure!(!examples.is_empty(), "{name} has no examples");
        let database = Database::create()?;
        let mut client = database.connect()?;
        if !can_run(name, &mut client)? {
            continue;
        }
        setup.iter().try_for_each(|sql| client.batch_execute(sql))?;
        wrong += &differences(name, database.conninfo(), &examples, &[])?;
    }
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}

#[test]
fn blocks_are_found_under_their_heading() {
    let document = "# A\n```sql\nno\n```\n## B\n```sql\none\ntwo\n```\n\n```text\nout\n```\n\
                    ```sh\nls\n```\n```text\nnot \
                    its\n```\n```sql\nthree\n```\nwords\n```text\nno\n```\n```sql \
                    not-run\nno\n```\n```sql\nfour\n```\n```\nout\n```\n## C\n```sql\nno\n```\n";
    let found = examples(document, "## B");
    let expected = [
        (6, "one\ntwo\n", Some("out\n".to_owned())),
        (20, "three\n", None),
        (30, "four\n", Some("out\n".to_owned())),
    ]
    .map(|(line, sql, output)| Example {
        line,
        sql: sql.to_owned(),
        output,
    });
    assert_eq!(found, expected);
}
