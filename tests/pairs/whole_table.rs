//! Jobs over a whole table: searches beyond the guarantee of an index, in bounded temporary space;
//! filters; progress.
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Context, Result, bail, ensure};
use neardup_tests::{Database, connect};
use postgres::{Client, NoTls};
use std::sync::{Arc, Mutex};

/// 3,000 different signatures, each sharing one to three of four words with many others, and 3,000
/// fingerprints.
const CROWD: &str = "CREATE TABLE crowd AS SELECT i AS id, \
        minhash(ARRAY['a' || i % 3, 'b' || i % 50, 'c' || i / 50, i::text]) AS sig, \
        ('x' || left(md5(i::text), 16))::bit(64)::bigint::fingerprint AS fp \
        FROM generate_series(1, 3000) i; \
    CREATE INDEX crowd_sig ON crowd USING neardup (sig); \
    CREATE INDEX crowd_fp ON crowd USING neardup (fp)";

/// All pairs would take some 200 MB of signatures, and 500 MB of fingerprints.
#[test]
fn temporary_space_does_not_grow_with_the_pairs() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(CROWD)?;
    client.batch_execute(
        "SET work_mem = '64kB'; SET maintenance_work_mem = '1MB'; SET temp_file_limit = '24MB'",
    )?;
    for call in [
        "'crowd_sig', similarity => 0.2",
        "'crowd_sig', similarity => 0.4, method => 'connected'",
        "'crowd_fp', 32",
    ] {
        let query = format!("SELECT count(*) FROM neardup_clusters({call})");
        let members = value::<i64>(&mut client, &query).context(call)?;
        ensure!(members > 1_000, "{call}: {members}");
    }
    // In the select list, pairs are returned one by one without being collected.
    for call in ["'crowd_sig', similarity => 0.2", "'crowd_fp', 32"] {
        let query = format!("SELECT count(*) FROM (SELECT neardup_pairs({call}) OFFSET 0) p");
        let pairs = value::<i64>(&mut client, &query).context(call)?;
        ensure!(pairs > 10_000, "{call}: {pairs}");
    }
    Ok(())
}

/// Pairs that share many bands are candidates in each of them. Here these are some three million,
/// more than fit in a batch. Each pair is returned once, in the memory of a batch.
#[test]
fn candidates_by_bands_come_in_batches() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE near AS SELECT i AS id, minhash(array(SELECT n::text \
            FROM generate_series(1, 60) n WHERE n <> i % 7) || ARRAY[(i / 2 * 2)::text]) AS sig \
            FROM generate_series(1, 500) i WHERE i % 2 = 0 OR i % 10 = 1; \
         INSERT INTO near SELECT 1000 + i, minhash(array(SELECT n::text \
            FROM generate_series(1, 60) n) || ARRAY['x' || i]) FROM generate_series(1, 250) i; \
         CREATE INDEX near_sig ON near USING neardup (sig)",
    )?;
    let joined = "SELECT count(*), sum(minhash_similarity(a.sig, b.sig))::text \
        FROM near a JOIN near b \
        ON a.id < b.id AND minhash_similarity(a.sig, b.sig) >= 0.8";
    let expected = client.query_one(joined, &[])?;
    let expected: (i64, String) = (expected.get(0), expected.get(1));
    client.batch_execute("SET work_mem = '64kB'; SET temp_file_limit = '90MB'")?;
    let found = "SELECT count(*), sum((p).similarity)::text \
        FROM (SELECT neardup_pairs('near', similarity => 0.8) AS p OFFSET 0) p";
    let found = client.query_one(found, &[])?;
    let found: (i64, String) = (found.get(0), found.get(1));
    ensure!(
        found == expected && found.0 > 100_000,
        "{found:?}, not {expected:?}"
    );
    Ok(())
}

/// Beyond the guarantee of the bands, the pairs equal the pairs of a join, and the clusters equal
/// the clusters of an index that guarantees the similarity.
#[test]
fn wide_searches_find_what_an_index_made_for_them_finds() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(CROWD)?;
    client.batch_execute(
        "CREATE TABLE few AS SELECT * FROM crowd WHERE id <= 800; \
         CREATE INDEX few_narrow ON few USING neardup (sig); \
         CREATE INDEX few_wide ON few USING neardup (sig) WITH (similarity = 0.2); \
         DELETE FROM few WHERE id % 11 = 0; UPDATE few SET id = -id WHERE id % 7 = 0",
    )?;
    for memory in ["64kB", "64MB"] {
        client.batch_execute(&format!("SET work_mem = '{memory}'"))?;
        for similarity in ["0.31", "0.28", "0.2"] {
            let joined: i64 = value(
                &mut client,
                &format!(
                    "SELECT count(*) FROM few a JOIN few b ON a.id < b.id \
                        AND minhash_similarity(a.sig, b.sig) >= {similarity}"
                ),
            )?;
            let mut pairs = |index: &str| {
                let query = format!(
                    "SELECT count(*), coalesce(sum(hashtext(p::text)), 0), \
                         min(similarity) >= {similarity} \
                     FROM neardup_pairs('{index}', similarity => {similarity}) p"
                );
                let row = client.query_one(&query, &[])?;
                Ok::<(i64, i64, bool), postgres::Error>((row.get(0), row.get(1), row.get(2)))
            };
            let (narrow, wide) = (pairs("few_narrow")?, pairs("few_wide")?);
            ensure!(
                narrow == wide,
                "{memory}, {similarity}: {narrow:?}, not {wide:?}"
            );
            ensure!(
                narrow.0 == joined && narrow.2,
                "{similarity}: {narrow:?}, not {joined}"
            );
            for method in ["star", "connected"] {
                let mut clusters = |index: &str| {
                    clusters(
                        &mut client,
                        &format!(
                            "'{index}', similarity => {similarity}, method => '{method}', \
                             keep => 'id'"
                        ),
                    )
                };
                let (narrow, wide) = (clusters("few_narrow")?, clusters("few_wide")?);
                ensure!(
                    narrow == wide && !narrow.is_empty(),
                    "{method}, {similarity}"
                );
            }
        }
    }
    Ok(())
}

/// The rows of clusters as texts, in order.
fn clusters(client: &mut Client, call: &str) -> Result<Vec<String>> {
    let query = format!("SELECT c::text FROM neardup_clusters({call}) c ORDER BY 1");
    let rows = client.query(&query, &[]).with_context(|| call.to_owned())?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// A filter gives the same clusters and pairs as a partial index on the same rows.
#[test]
fn a_filter_is_like_a_partial_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let condition = "id % 3 <> 0 AND coalesce(note, '') <> 'no'";
    client.batch_execute(&format!(
        "CREATE TABLE docs (id int, site int, note text, fp fingerprint, \
            sig minhash_signature) WITH (fillfactor = 50); \
         INSERT INTO docs SELECT i, i % 2, NULL, \
            (('x' || left(md5((i / 9)::text), 16))::bit(64)::bigint # (1 << i % 5))::fingerprint, \
            minhash(array(SELECT n || 'x' || i / 9 FROM generate_series(1, 20 + i / 3 % 3) n)) \
            FROM generate_series(0, 2999) i; \
         CREATE INDEX docs_fp ON docs USING neardup (fp); \
         CREATE INDEX docs_site ON docs USING neardup (site, fp); \
         CREATE INDEX docs_sig ON docs USING neardup (sig); \
         CREATE INDEX part_fp ON docs USING neardup (fp) WHERE {condition}; \
         CREATE INDEX part_site ON docs USING neardup (site, fp) WHERE {condition}; \
         CREATE INDEX part_sig ON docs USING neardup (sig) WHERE {condition}; \
         UPDATE docs SET note = 'no' WHERE id % 10 = 1; \
         UPDATE docs SET note = 'yes' WHERE id % 20 = 1; \
         DELETE FROM docs WHERE id % 13 = 0",
    ))?;
    let filter = format!("filter => '{}'", condition.replace('\'', "''"));
    for (kind, bound) in [
        ("fp", "2"),
        ("site", "2"),
        ("sig", "similarity => 0.85"),
        ("sig", "similarity => 0.4"),
    ] {
        for options in [
            "",
            ", method => 'connected'",
            ", keep => 'id DESC'",
            ", singletons => true",
        ] {
            let call = |index: &str| format!("'{index}_{kind}', {bound}{options}");
            let filtered = clusters(&mut client, &format!("{}, {filter}", call("docs")))?;
            let partial = clusters(&mut client, &call("part"))?;
            ensure!(filtered == partial, "{kind}, {bound}{options}");
            ensure!(
                filtered.len() > 300,
                "{kind}, {bound}{options}: {}",
                filtered.len()
            );
            ensure!(filtered != clusters(&mut client, &call("docs"))?, "{kind}");
        }
        let mut pairs = |call: String| -> Result<Vec<String>> {
            let query = format!("SELECT p::text FROM neardup_pairs({call}) p ORDER BY 1");
            Ok(client
                .query(&query, &[])?
                .iter()
                .map(|row| row.get(0))
                .collect())
        };
        let filtered = pairs(format!("'docs_{kind}', {bound}, {filter}"))?;
        ensure!(
            filtered == pairs(format!("'part_{kind}', {bound}"))?,
            "pairs of {kind}"
        );
        ensure!(!filtered.is_empty());
    }
    Ok(())
}

/// Returns the phase, the finished units, their total, and whether the total is an estimate.
fn parsed(notice: &str) -> Result<(String, u64, u64, bool)> {
    let parts: Vec<&str> = notice.split(": ").collect();
    let [_, phase, numbers] = parts[..] else {
        bail!("{notice}");
    };
    let mut words = numbers.split(' ');
    let done = words.next().context("a number")?.parse()?;
    ensure!(words.next() == Some("of"), "{notice}");
    let total = words.next().context("a number")?;
    let is_about = total == "about";
    let total = if is_about { words.next() } else { Some(total) };
    let total = total.context("a number")?.parse()?;
    Ok((phase.to_owned(), done, total, is_about))
}

/// With `neardup.progress` on, the start and the end of each phase are reported; otherwise nothing
/// is. No number of rows exceeds the rows of the table.
#[test]
fn progress_is_told_on_request() -> Outcome {
    let database = Database::create()?;
    connect(database.conninfo())?.batch_execute(CROWD)?;
    let notices: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut config: postgres::Config = database.conninfo().parse()?;
    let told = notices.clone();
    config.notice_callback(move |notice| {
        told.lock()
            .expect("no panic")
            .push(notice.message().to_owned());
    });
    let mut client = config.connect(NoTls)?;
    let rows: i64 = value(&mut client, "SELECT count(*) FROM crowd")?;
    let rows = u64::try_from(rows)?;
    let calls = [
        (
            "neardup_clusters('crowd_sig', similarity => 0.8, keep => 'id')",
            6,
        ),
        (
            "neardup_clusters('crowd_sig', similarity => 0.8, method => 'connected')",
            5,
        ),
        ("neardup_clusters('crowd_sig', similarity => 0.1)", 6),
        ("neardup_clusters('crowd_fp', 3, filter => 'id > 5')", 6),
        ("neardup_pairs('crowd_sig', similarity => 0.8)", 3),
        ("neardup_pairs('crowd_sig', similarity => 0.1)", 2),
        ("neardup_pairs('crowd_fp', 3)", 1),
    ];
    for (call, phases) in calls {
        client.batch_execute(&format!("SELECT count(*) FROM {call}"))?;
        ensure!(notices.lock().expect("no panic").is_empty(), "{call}");
        client.batch_execute("SET neardup.progress = on")?;
        client.batch_execute(&format!("SELECT count(*) FROM {call}"))?;
        client.batch_execute("RESET neardup.progress")?;
        let told: Vec<String> = std::mem::take(&mut *notices.lock().expect("no panic"));
        let begun = told.iter().filter(|text| text.contains(": 0 of ")).count();
        ensure!(begun == phases, "{call}: {told:?}");
        for text in &told {
            let (phase, done, total, _) = parsed(text)?;
            ensure!(total <= rows || !text.ends_with(" rows"), "{call}: {text}");
            let is_over = |text: &String| {
                let end = parsed(text).ok();
                end.is_some_and(|(of, done, total, about)| {
                    of == phase && done == total && done > 0 && !about
                })
            };
            ensure!(
                done > 0 || total == 0 || told.iter().any(is_over),
                "{call}: {told:?}"
            );
        }
        ensure!(
            told.iter().all(|text| text.starts_with("neardup: ")),
            "{told:?}"
        );
        let by_bands = told.iter().any(|text| text.ends_with(", band 1 of 30"));
        ensure!(
            by_bands == (call == "neardup_pairs('crowd_sig', similarity => 0.8)"),
            "{told:?}"
        );
    }
    Ok(())
}

/// Runs a call until it reports the start of a phase, and cancels it. Returns that NOTICE.
fn told_inside(database: &Database, call: &'static str, phase: &str) -> Result<String> {
    let mut config: postgres::Config = database.conninfo().parse()?;
    let (sender, told) = std::sync::mpsc::channel();
    config.notice_callback(move |notice| {
        // The receiver may be gone.
        let _ = sender.send(notice.message().to_owned());
    });
    let mut client = config.connect(NoTls)?;
    // The channel closes with the connection, so a call that ends early does not block the test.
    drop(config);
    let cancel = client.cancel_token();
    // Has memory for all rows: otherwise clusters have no phase of comparisons.
    client.batch_execute("SET neardup.progress = on; SET work_mem = '64MB'")?;
    let running = std::thread::spawn(move || client.batch_execute(call));
    let mut last = String::new();
    let inside = told.iter().find(|text| {
        last.clone_from(text);
        text.contains(phase) && !text.contains(": 0 of ")
    });
    cancel.cancel_query(NoTls)?;
    let ended = running.join().expect("no panic");
    ensure!(ended.is_err(), "{call} ended before it was cancelled");
    inside.with_context(|| format!("{call}: nothing but {last}"))
}

/// A search that compares all pairs of rows reports progress within the phase. The bound is so
/// high that no two sketches are near: clusters compare crowded rows less often.
#[test]
fn progress_is_told_inside_of_a_phase() -> Outcome {
    let database = Database::create()?;
    connect(database.conninfo())?.batch_execute(
        "CREATE TABLE many (sig minhash_signature); \
         INSERT INTO many SELECT minhash(ARRAY[i::text]) FROM generate_series(1, 150000) i; \
         CREATE INDEX many_sig ON many USING neardup (sig) WITH (bands = 8)",
    )?;
    for call in [
        "SELECT neardup_pairs('many', similarity => 0.9, exhaustive => true)",
        "SELECT neardup_clusters('many', similarity => 0.9, exhaustive => true)",
    ] {
        let inside = told_inside(&database, call, "comparing all pairs of rows")?;
        ensure!(inside.contains("of 11249925000 comparisons"), "{inside}");
    }
    Ok(())
}

/// A search by bands reports the current band.
#[test]
fn progress_tells_the_band() -> Outcome {
    let database = Database::create()?;
    // All rows agree in the third of eight bands, and in nothing else.
    connect(database.conninfo())?.batch_execute(
        "CREATE TABLE banded (sig minhash_signature); \
         INSERT INTO banded SELECT minhash_from_values(array_agg(CASE WHEN p IN (4, 5) THEN 7 \
            ELSE hashint8extended(i * 16 + p, 1) & 4294967295 END ORDER BY p)) \
            FROM generate_series(1, 100000) i, generate_series(0, 15) p GROUP BY i; \
         CREATE INDEX banded_sig ON banded USING neardup (sig) \
            WITH (hashes = 16, bands = 8, rows = 2)",
    )?;
    let call = "SELECT neardup_pairs('banded', similarity => 0.9)";
    let inside = told_inside(&database, call, "comparing the rows of each band")?;
    ensure!(inside.ends_with(" entries, band 3 of 8"), "{inside}");
    Ok(())
}
