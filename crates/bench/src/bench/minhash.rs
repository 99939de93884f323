//! `cargo xtask bench --minhash`: compares neardup's functions that make MinHash signatures of
//! texts with ClickHouse's function and with rensa, and measures searches in an index on
//! signatures.
use super::session::{Session, Time, least};
use super::text::{self, Case, clickhouse, texts};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::Command;
use xtask::{cargo, ui};

/// Comparisons of neardup's expressions that make signatures with ClickHouse's expressions.
const CASES: &[Case] = &[
    Case {
        what: "English, 3 words, 128 hashes",
        texts: "english",
        ours: "minhash(body)",
        theirs: &["tupleElement(wordShingleMinHash(t, 3, 25), 1)"],
    },
    Case {
        what: "Chinese, 3 words (characters)",
        texts: "chinese",
        ours: "minhash(body)",
        theirs: &["tupleElement(ngramMinHashUTF8(t, 3, 25), 1)"],
    },
];

/// Python program that runs rensa. Makes three-word shingles of each line of a file. Prints the
/// total bytes of the shingles, and the seconds that making all signatures takes (the minimum of
/// several runs).
const RENSA: &str = r#"
import sys, time
from rensa import RMinHash
rows = []
for line in open(sys.argv[1], encoding="utf-8"):
    words = line.split()
    rows.append([" ".join(words[i:i + 3]) for i in range(len(words) - 2)])
best = None
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    for row in rows:
        signature = RMinHash(num_perm=128, seed=0)
        signature.update(row)
        signature.digest()
    spent = time.process_time() - start
    best = spent if best is None else min(best, spent)
print(sum(len(s.encode()) for row in rows for s in row), best)
"#;

/// Number of signatures that one measured query searches for.
const PROBE_COUNT: u64 = 2000;
/// Upper limit (exclusive) of the number of words of a generated document. It does not count the
/// first line of 12 words, which documents of the same generated web site have in common.
const WORDS: u64 = 140;

/// Runs all measurements in an empty database with the extension: signatures of texts, signatures
/// of ready-made shingles, and an index on `rows` signatures. Repeats the measurements of functions
/// and of searches `rounds` times. Prints the results and returns them as JSON.
pub fn bench(session: &mut Session, rows: u64, rounds: u32) -> Result<Value> {
    let mut result = text::bench(session, rounds, CASES, None)?;
    result["shingles"] = shingles(session, rounds)?;
    result["index"] = index(session, rows, rounds)?;
    Ok(result)
}

/// Measures `minhash(features)` over arrays of ready-made three-word shingles, and rensa over the
/// same texts. Prints the speeds and returns the times as JSON.
fn shingles(session: &mut Session, rounds: u32) -> Result<Value> {
    session.run(
        "CREATE TABLE shingled AS SELECT ARRAY(SELECT words[i] || ' ' || words[i + 1] || ' ' || \
            words[i + 2] \
             FROM generate_series(1, array_length(words, 1) - 2) i) AS features \
         FROM (SELECT regexp_split_to_array(trim(body), '\\s+') AS words FROM english LIMIT 1000) \
         w",
    )?;
    // The arrays are not compressed, because decompression would take most of the time.
    session.run(
        "ALTER TABLE shingled ALTER features SET STORAGE EXTERNAL; \
         UPDATE shingled SET features = features || ARRAY[]::text[]",
    )?;
    session.run("VACUUM (FREEZE, ANALYZE) shingled")?;
    let bytes: i64 =
        session.value("SELECT sum(octet_length(f))::bigint FROM shingled, unnest(features) f")?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.extend(session.times("SELECT count(minhash(features)) FROM shingled")?);
    }
    let ours = on_processor(&times);
    println!(
        "\nready-made shingles of 3 words, {bytes} bytes: minhash(features) {:.0} MB/s of CPU time",
        bytes as f64 / ours / 1e6
    );
    let theirs = rensa(session, rounds)?;
    if let Some((their_bytes, seconds)) = theirs {
        println!(
            "rensa RMinHash(128): {:.0} MB/s; ratio {:.2}",
            their_bytes / seconds / 1e6,
            seconds / their_bytes * bytes as f64 / ours
        );
    }
    let theirs = theirs.map(|(_, seconds)| seconds);
    Ok(json!({ "bytes": bytes, "seconds": ours, "rensa": theirs }))
}

/// Runs rensa on 1,000 documents of the table `english`. Returns the total bytes of their shingles
/// and the seconds that making all signatures takes; `None` if rensa is not installed.
fn rensa(session: &mut Session, rounds: u32) -> Result<Option<(f64, f64)>> {
    let python = clickhouse::python(&cargo::target_dir()?);
    let file = std::env::temp_dir().join(format!("neardup-{}-shingles", std::process::id()));
    let texts = "SELECT regexp_replace(trim(body), '\\s+', ' ', 'g') FROM english LIMIT 1000";
    let texts = session.client.query(texts, &[])?;
    let lines: Vec<String> = texts.iter().map(|row| row.get(0)).collect();
    fs::write(&file, lines.join("\n"))?;
    let output = Command::new(&python)
        .args(["-c", RENSA])
        .arg(&file)
        .arg((3 * rounds).to_string())
        .output();
    fs::remove_file(&file)?;
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        ui::note(format!(
            "without rensa; to have it: {} -m pip install rensa==0.5.0",
            python.display()
        ));
        return Ok(None);
    };
    let text = String::from_utf8(output.stdout)?;
    let numbers = text.split_whitespace().map(str::parse);
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
    ensure!(numbers.len() == 2, "unexpected output: {text}");
    Ok(Some((numbers[0], numbers[1])))
}

fn on_processor(times: &[Time]) -> f64 {
    least(
        &times
            .iter()
            .map(|time| time.cpu.unwrap_or(time.wall))
            .collect::<Vec<_>>(),
    )
}

/// Calls `give` with each of `rows` generated documents, which resemble real documents. Their words
/// are about as frequent as in English texts, and documents of one site share a line of words.
/// About a third of the documents are in groups of five versions of a page. Each version has up to
/// an eighth of the words changed.
fn documents(rows: u64, mut give: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let text = texts::spaced(texts::LATIN, 3_000_000);
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut state = 7_u64;
    let mut below = move |n: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    };
    let mut document: Vec<&str> = Vec::new();
    let mut versions = 0;
    for _ in 0..rows {
        if versions == 0 {
            versions = if below(12) == 0 { 5 } else { 1 };
            let site = below(200) as usize * 12;
            document.clear();
            document.extend(&words[site..site + 12]);
            for _ in 0..20 + below(WORDS - 20) {
                document.push(words[below(words.len() as u64) as usize]);
            }
        }
        versions -= 1;
        let changed = below(document.len() as u64 / 8 + 1);
        let mut version = document.clone();
        for _ in 0..changed {
            let at = below(version.len() as u64) as usize;
            version[at] = words[below(words.len() as u64) as usize];
        }
        give(&version.join(" "))?;
    }
    Ok(())
}

/// Loads the table `signatures (id, sig)` with the signatures of `rows` generated documents.
pub fn load_signatures(session: &mut Session, rows: u64) -> Result<()> {
    session
        .run("CREATE UNLOGGED TABLE documents (id int GENERATED ALWAYS AS IDENTITY, body text)")?;
    let mut copy = session.client.copy_in("COPY documents (body) FROM STDIN")?;
    documents(rows, |line| Ok(writeln!(copy, "{line}")?))?;
    copy.finish()?;
    session.run(
        "CREATE TABLE signatures AS SELECT id, minhash(body) AS sig FROM documents; \
         DROP TABLE documents",
    )?;
    session.run("VACUUM (FREEZE, ANALYZE) signatures")
}

/// Measures an index on `rows` signatures: build, size, searches and all pairs. Prints the results
/// and returns them as JSON.
fn index(session: &mut Session, rows: u64, rounds: u32) -> Result<Value> {
    ui::step(format!("Making {rows} signatures"), || {
        load_signatures(session, rows)
    })?;
    session.run("SET maintenance_work_mem = '1GB'")?;
    let build = ui::step("Building the index", || {
        session.timed("CREATE INDEX signatures_sig ON signatures USING neardup (sig)")
    })?;
    load_probes(session)?;
    let search = ["probes", "strangers"]
        .map(|table| Ok((table, search_times(session, table, rounds)?)))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let fetched = fetched_per_match(session)?;
    let size: f64 = session.value(
        "SELECT pg_relation_size('signatures_sig') / sum(pg_column_size(sig))::float8 FROM \
            signatures",
    )?;
    let pairs = "SELECT count(*) FROM neardup_pairs('signatures_sig', similarity => 0.8)";
    let time = ui::step("Finding all pairs", || session.timed(pairs))?;
    let found: i64 = session.value(pairs)?;
    println!("\nindex on {rows} signatures of 128 hashes, searches within 0.2");
    println!(
        "build: {:.1} s; size: {size:.2} times the signatures",
        build.wall
    );
    for (table, [wall, cpu]) in &search {
        println!("a search for {table}: {wall:.0} us by the clock, {cpu:.0} us on a processor");
    }
    println!("rows of the table looked at for each that is found: {fetched:.2}");
    println!("neardup_pairs: {:.1} s, {found} pairs", time.wall);
    let search = search
        .iter()
        .map(|(table, [wall, cpu])| json!([table, wall, cpu]));
    Ok(json!({
        "rows": rows, "build": build.wall, "size": size, "looked_at": fetched,
        "pairs": { "seconds": time.wall, "found": found },
        "search": search.collect::<Vec<_>>(),
    }))
}

/// Loads two tables of [`PROBE_COUNT`] signatures each. `probes` has signatures of the table
/// `signatures`. The signatures in `strangers` are unlike all rows of `signatures`.
fn load_probes(session: &mut Session) -> Result<()> {
    session.run(&format!(
        "CREATE TABLE probes AS SELECT sig FROM signatures ORDER BY hashint4(id) \
             LIMIT {PROBE_COUNT}; \
         CREATE TABLE strangers AS SELECT minhash(ARRAY(SELECT md5(g || ' ' || n) \
             FROM generate_series(1, 100) n)) AS sig FROM generate_series(1, {PROBE_COUNT}) g; \
         ANALYZE probes; ANALYZE strangers; SET enable_seqscan = off"
    ))
}

/// Returns a query that searches for the signatures within distance 0.2 of each signature in
/// `table`, and counts the rows found.
fn count_near(table: &str) -> String {
    format!(
        "SELECT coalesce(sum(n), 0)::bigint FROM {table} q CROSS JOIN LATERAL \
         (SELECT count(*) AS n FROM signatures s WHERE s.sig <%> q.sig <= 0.2) near"
    )
}

/// Returns the microseconds of one search for a signature of `table`: elapsed time and processor
/// time. Both are minima of all repetitions.
fn search_times(session: &mut Session, table: &str, rounds: u32) -> Result<[f64; 2]> {
    session.plan(&count_near(table), "Index Scan using signatures_sig")?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.extend(session.times(&count_near(table))?);
    }
    let wall = least(&times.iter().map(|time| time.wall).collect::<Vec<_>>());
    Ok([wall, on_processor(&times)].map(|time| 1e6 * time / PROBE_COUNT as f64))
}

/// Returns how many rows searches fetch from the table for each row that they find.
fn fetched_per_match(session: &mut Session) -> Result<f64> {
    session.run("BEGIN")?;
    // PostgreSQL counts the rows of the table that a scan fetches for the scanned index.
    let fetched = "SELECT pg_stat_get_xact_tuples_fetched('signatures_sig'::regclass)";
    let before: i64 = session.value(fetched)?;
    let matches: i64 = session.value(&count_near("probes"))?;
    let after: i64 = session.value(fetched)?;
    session.run("COMMIT")?;
    ensure!(
        matches >= PROBE_COUNT as i64,
        "each probe is a row of the table"
    );
    Ok((after - before) as f64 / matches as f64)
}
