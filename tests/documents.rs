//! What the documents show is what comes out: their SQL is run, and compared with the output that
//! stands below it.
use crate::support::Outcome;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, client_program};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Documents whose SQL is one session from top to bottom, and the heading at which it begins.
const DOCUMENTS: [(&str, &str); 5] = [
    ("README.md", "## A worked example"),
    ("docs/minhash.md", "# MinHash"),
    (
        "docs/tutorial-news.md",
        "# Tutorial: one copy of each story",
    ),
    (
        "docs/tutorial-images.md",
        "# Tutorial: image hashes in a bigint column",
    ),
    ("docs/quality.md", "## Text that many documents share"),
];

/// A piece of a document that is run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Example {
    /// The line on which it begins.
    line: usize,
    sql: String,
    /// What psql prints; `None` where the document does not say.
    output: Option<String>,
}

/// The fenced blocks marked `sql`, each with the block marked `text` that follows at once. The
/// session ends with the next heading of the first level that begins it, if it is one of a section.
fn examples(document: &str, heading: &str) -> Vec<Example> {
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
            ("sql", _) => examples.push(Example {
                line: number,
                sql: block,
                output: None,
            }),
            ("text", Some(example)) if adjacent => example.output = Some(block),
            _ => (),
        }
        adjacent = kind == "sql";
    }
    examples
}

/// What psql prints for all of the statements, in one session; after each, a line that tells them
/// apart.
fn run(database: &Database, examples: &[Example]) -> Result<Vec<String>> {
    const END: &str = "== end of example ==";
    let script: String = (examples.iter())
        .map(|example| format!("{}\n\\echo {END}\n", example.sql))
        .collect();
    let mut psql = client_program("psql")?
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
        .arg(format!("--dbname={}", database.conninfo()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run psql")?;
    let mut stdin = psql.stdin.take().context("a pipe")?;
    stdin.write_all(script.as_bytes())?;
    drop(stdin);
    let output = psql.wait_with_output()?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "an example fails:\n{text}");
    Ok(text.split(END).map(str::to_owned).collect())
}

fn lines(text: &str) -> Vec<&str> {
    text.trim().lines().map(str::trim_end).collect()
}

#[test]
fn examples_print_what_the_documents_show() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, heading) in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(name)).context(name)?;
        let examples = examples(&text, heading);
        ensure!(!examples.is_empty(), "{name} has no examples");
        let database = Database::create()?;
        let outputs = run(&database, &examples)?;
        for (example, output) in examples.iter().zip(&outputs) {
            if let Some(shown) = &example.output {
                assert_eq!(
                    lines(output),
                    lines(shown),
                    "{name}, line {}: the output is\n{output}",
                    example.line
                );
            }
        }
    }
    Ok(())
}

#[test]
fn blocks_are_found_under_their_heading() {
    let document = "# A\n```sql\nno\n```\n## B\n```sql\none\ntwo\n```\n\n```text\nout\n```\n\
                    ```sh\nls\n```\n```text\nnot its\n```\n```sql\nthree\n```\nwords\n```text\nno\n```\n## C\n```sql\nno\n```\n";
    let found = examples(document, "## B");
    let expected = [
        (6, "one\ntwo\n", Some("out\n".to_owned())),
        (20, "three\n", None),
    ]
    .map(|(line, sql, output)| Example {
        line,
        sql: sql.to_owned(),
        output,
    });
    assert_eq!(found, expected);
}
