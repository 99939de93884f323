//! The page of `neardup_report` in a real browser, with malicious texts.
use crate::support::Outcome;
use crate::support::skip::skip_optional;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Parts of documents that would run, load something, or break the layout.
const HOSTILE: [&str; 12] = [
    "<script>globalThis.hostile = 1</script>",
    "<img src=x: onerror='globalThis.hostile = 1'>",
    "</style><style>* { display: none }</style>",
    "</details></section></main><h1>Another heading</h1>",
    "<svg onload=globalThis.hostile=1><iframe srcdoc='<script>parent.hostile=1</script>'>",
    "<meta http-equiv=refresh content='0;url=https://example.invalid/'>",
    "<link rel=stylesheet href=https://example.invalid/a.css><base href=//example.invalid>",
    "\" onmouseover=\"globalThis.hostile = 1\" x=\"",
    "\u{202e}turned around\u{2066} and isolated",
    "\u{5d0}\u{5d1}\u{5d2} \u{627}\u{644}\u{639} from right to left",
    "\u{1b}[31mred\u{7}\u{1}\u{85}\u{feff}",
    "Z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}\u{30b}",
];

/// Clusters of near-duplicates, some of them hostile, and single documents.
fn fill(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE docs (name text PRIMARY KEY, body text, \
            fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED); \
         CREATE INDEX docs_fp ON docs USING neardup (fp) WITH (radius = 6);",
    )?;
    let insert = client.prepare("INSERT INTO docs VALUES ($1, $2)")?;
    let mut number = 0;
    let mut next = |part: &str| {
        number += 1;
        client.execute(
            &insert,
            &[&format!("{number:04} {part}"), &part_of(number, part)],
        )
    };
    for part in HOSTILE {
        for _ in 0..3 {
            next(part)?;
        }
    }
    for part in [
        "plain words",
        &"long".repeat(20_000),
        &"word ".repeat(20_000),
    ] {
        for _ in 0..6 {
            next(part)?;
        }
    }
    for n in 0..40 {
        next(&format!("single {}", n * n))?;
    }
    client.batch_execute("ANALYZE docs")?;
    Ok(())
}

/// Returns a document whose copies differ in a number. Documents of other parts share no word.
fn part_of(number: i32, part: &str) -> String {
    let hash = part
        .bytes()
        .fold(7u32, |hash, byte| hash.wrapping_mul(31) + u32::from(byte));
    let words: Vec<String> = (0..60)
        .map(|n| format!("w{}", hash.wrapping_mul(n + 1) % 9973))
        .collect();
    format!(
        "{} {part}\nA line of copy {number} <b>.\n{part} {}",
        words[..30].join(" "),
        words[30..].join(" ")
    )
}

#[test]
fn a_browser_shows_the_page_and_runs_nothing() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fill(&mut client)?;
    let title = HOSTILE.concat();
    let page: String = client
        .query_one(
            "SELECT neardup_report('docs', title => $1, members => 4, \
                keep => 'name -- <script>globalThis.hostile = 1</script>')",
            &[&title],
        )?
        .get(0);
    ensure!(
        page.contains("globalThis.hostile"),
        "no hostile text on the page"
    );
    let variable = |name| std::env::var(name).ok().map(PathBuf::from);
    let browser = (
        variable("NEARDUP_TEST_BROWSER"),
        variable("NEARDUP_TEST_CHROMIUM"),
    );
    let (Some(packages), Some(program)) = browser else {
        // CI installs Chromium only where no installed package changes.
        return skip_optional("no Chromium with Playwright");
    };
    let folder = std::env::temp_dir().join(format!("neardup-report-{}", std::process::id()));
    let folder = variable("NEARDUP_TEST_SCREENSHOTS").unwrap_or(folder);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("report.html");
    std::fs::write(&file, page)?;
    look(&packages, &program, &file, &folder)?;
    if variable("NEARDUP_TEST_SCREENSHOTS").is_none() {
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

/// Runs the script in the folder of its packages.
fn look(packages: &Path, program: &Path, page: &Path, folder: &Path) -> Result<()> {
    let output = Command::new("node")
        .arg(packages.join("report.mjs"))
        .args([page, folder, program])
        .output()
        .context("cannot run node")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{}\n{errors}",
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(())
}
