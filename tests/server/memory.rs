//! Memory of text functions: out-of-memory errors, and no memory kept without need.
use crate::support::table::value;
use anyhow::{Context, ensure};
use neardup_pgserver::Server;
use neardup_tests::{Database, connect, own_server};
use postgres::Client;
use std::fs;

type Outcome = anyhow::Result<()>;

/// Calls of all extension functions that take a value of any length, by the start of the
/// signature. `t` is a text, `f` its words as an array, `v` a tsvector of some of them.
const CASES: &[(&str, &str)] = &[
    ("simhash(text,", "simhash(t)"),
    ("simhash(text,", "simhash(t, 'char', 100)"),
    (
        "simhash(text,",
        "simhash(t, 'line', accents => 'remove', digits => 'zero')",
    ),
    ("simhash(text,", "simhash(t, 'jieba')"),
    ("simhash(text,", "simhash(t, 'jieba_tfidf')"),
    ("simhash(text,", "simhash(t, html => true)"),
    ("simhash128(text,", "simhash128(t)"),
    ("simhash128(text,", "simhash128(t, 'char', 100)"),
    (
        "neardup_features(text,",
        "(SELECT count(hash) FROM neardup_features(t))",
    ),
    (
        "neardup_features(text,",
        "(SELECT count(hash) FROM neardup_features(t, 'char', 100))",
    ),
    (
        "_neardup_feature_hashes(text,",
        "cardinality(_neardup_feature_hashes(t))",
    ),
    (
        "_neardup_feature_hashes(text,",
        "cardinality(_neardup_feature_hashes(t, 'char', 100))",
    ),
    ("neardup_explain(text,", "neardup_explain(t, t || 'x y')"),
    (
        "neardup_explain(text,",
        "neardup_explain(t, reverse(t), 'char', 50, top => 100000)",
    ),
    (
        "neardup_explain(text,",
        "neardup_explain(t, t || 'x y', function => 'minhash')",
    ),
    (
        "neardup_diff(text,",
        "(SELECT count(a_text) FROM neardup_diff(t, t || ' x y'))",
    ),
    (
        "neardup_diff_html(text,",
        "length(neardup_diff_html(t, reverse(t)))",
    ),
    (
        "neardup_diff_ansi(text,",
        "length(neardup_diff_ansi(t, left(t, 10000), 3))",
    ),
    (
        "neardup_segments(text,",
        "(SELECT count(hash) FROM neardup_segments(t, 'sentence'))",
    ),
    (
        "neardup_segments(text,",
        "(SELECT max(hash) FROM neardup_segments(t))",
    ),
    (
        "neardup_cut_segments(text,",
        "length(neardup_cut_segments(t, '{1}', 'sentence'))",
    ),
    ("neardup_text_length(text,", "neardup_text_length(t)"),
    (
        "neardup_text_length(text,",
        "neardup_text_length(t, html => true, accents => 'remove')",
    ),
    (
        "jaccard_similarity(text,",
        "jaccard_similarity(t, t || 'x y')",
    ),
    ("containment(text,", "containment(t, t || 'x y')"),
    (
        "neardup_text_without(text,",
        "neardup_text_without(t, (SELECT neardup_common_features(t || n, 0.5) FROM \
            generate_series(1, 3) n))",
    ),
    (
        "neardup_text_without(text,",
        "length(neardup_text_without('<p>' || t, '\\x6e6446010003000000000000', html => true))",
    ),
    (
        "neardup_expert_feature_set_info(bytea)",
        "neardup_expert_feature_set_info((SELECT neardup_common_features(t || n, 0.5, 'char', 9) \
            FROM generate_series(1, 3) n))",
    ),
    (
        "neardup_expert_feature_set_contains(bytea,",
        "neardup_expert_feature_set_contains((SELECT neardup_common_features(t || n, 0.5, \
            'char', 9) FROM generate_series(1, 3) n), 'ffffffffffffffff')",
    ),
    ("html_text(text)", "length(html_text('<p>' || t))"),
    (
        "html_text(text)",
        "length(html_text('<script></' || repeat('a', 1000000)))",
    ),
    (
        "longest_sentences_hash(text,",
        "longest_sentences_hash(t, 1000)",
    ),
    ("passages(text,", "cardinality(passages(t))"),
    ("passages(text,", "cardinality(passages(t, 1, 'char', 1))"),
    (
        "passages_without(text,",
        "cardinality(passages_without(t, (SELECT neardup_common_features(t || n, 0.5, 'jieba', \
            2) FROM generate_series(1, 3) n), 10000, 'jieba', 2))",
    ),
    (
        "passages_in_common(bigint[],",
        "passages_in_common(passages(t, 2, 'char', 2), passages(t || 'x', 3, 'char', 2))",
    ),
    (
        "shared_passages(text,",
        "(SELECT sum(length(passage)) FROM shared_passages(t, t || 'x y', 1))",
    ),
    (
        "shared_passages(text,",
        "(SELECT count(passage) FROM shared_passages(t, reverse(t), 2, 'char', html => true))",
    ),
    ("minhash64(text,", "minhash64(t)"),
    ("minhash128(text,", "minhash128(t, 'char', 100)"),
    ("minhash(text,", "minhash(t)"),
    (
        "minhash(text,",
        "minhash(t, 'char', 100, scheme => 'datasketch2', hashes => 16)",
    ),
    ("simhash(text[],", "simhash(f)"),
    (
        "simhash(bigint[],",
        "simhash(ARRAY(SELECT hashtextextended(w, 0) FROM unnest(f) w))",
    ),
    (
        "simhash128(text[],",
        "simhash128(f, array_fill(0.1::float8, ARRAY[cardinality(f)]))",
    ),
    (
        "neardup_common_features(text,",
        "(SELECT length(neardup_common_features(x, 0.5)) FROM (VALUES (t), (t || ' x y')) v (x))",
    ),
    (
        "_neardup_common_features_add(",
        "minhash_without(t || ' z', (SELECT neardup_common_features(x, 0.5) \
         FROM (VALUES (t), (t || ' x y')) v (x)))",
    ),
    (
        "minhash_without(text,",
        "minhash_without(t || ' z', '\\x6e6446010003000000000000')",
    ),
    (
        "minhash128_without(text,",
        "minhash128_without(t || ' z', '\\x6e6446010003000000000000')",
    ),
    (
        "simhash_without(text,",
        "simhash_without(t || ' z', '\\x6e6446010003000000000000', shingle => 3)",
    ),
    (
        "passages_without(text,",
        "passages_without(t, '\\x6e6446010008000000000000')",
    ),
    (
        "_neardup_feature_hashes_without(text,",
        "cardinality(_neardup_feature_hashes_without(t || ' z', \
         (SELECT neardup_common_features(x, 0.5) FROM (VALUES (t), (t || ' x y')) v (x))))",
    ),
    (
        "minhash64_without(text,",
        "minhash64_without(t || ' z', without => (SELECT neardup_common_features(x, 0.5) \
         FROM (VALUES (t), (t || ' x y')) v (x)))",
    ),
    (
        "simhash128_without(text,",
        "simhash128_without(t || ' z', (SELECT neardup_common_features(x, 0.5, 'char', 20) \
         FROM (VALUES (t), (t || ' x y')) v (x)), 'char', 20)",
    ),
    (
        "neardup_evaluate(",
        "(SELECT sum(pairs) FROM neardup_evaluate(array_fill(1::float8, ARRAY[length(t)]), \
         array_fill(true, ARRAY[length(t)])))",
    ),
    ("minhash64(text[])", "minhash64(f)"),
    ("minhash128(text[])", "minhash128(f)"),
    ("minhash(text[],", "minhash(f, 1024)"),
    ("simhash(tsvector)", "simhash(v)"),
    ("simhash128(tsvector)", "simhash128(v)"),
    ("minhash64(tsvector)", "minhash64(v)"),
    ("minhash128(tsvector)", "minhash128(v)"),
    ("minhash(tsvector,", "minhash(v, 1024)"),
    (
        "simhash_agg(text,",
        "(SELECT simhash_agg(w, (length(w) / 7.0)::real) FROM unnest(f) w)",
    ),
    (
        "_neardup_simhash_agg_add(",
        "(SELECT simhash_agg(w, 3e-9::real) FROM unnest(f) w)",
    ),
    (
        "simhash128_agg(text,",
        "(SELECT simhash128_agg(w, (length(w) / 7.0)::real) FROM unnest(f) w)",
    ),
    (
        "_neardup_simhash128_agg_add(",
        "(SELECT simhash128_agg(w, 3e-9::real) FROM unnest(f) w)",
    ),
    (
        "minhash_agg(text",
        "(SELECT minhash_agg(w, 1024) FROM unnest(f) w)",
    ),
    (
        "_neardup_minhash_accumulate(",
        "_neardup_minhash_accumulate(NULL, t)",
    ),
    (
        "minhash_from_values(bigint[]",
        "minhash_from_values(minhash_values(minhash(t, hashes => 1024)))",
    ),
    (
        "fingerprint(bytea)",
        "fingerprint(substr(decode(md5(t), 'hex'), 1, 8))",
    ),
    (
        "fingerprint128(bytea)",
        "fingerprint128(decode(md5(t), 'hex'))",
    ),
    ("fingerprint256(bytea)", "fingerprint256(sha256(t::bytea))"),
];

/// Functions whose texts are names, options or a few words of configuration, by the start of their
/// signature. Their memory does not grow with a document.
const SHORT: &[&str] = &[
    "ball(text,",
    "fingerprint_similarity(text,",
    "neardup_band_keys(text,",
    "neardup_keys(text,",
    "neardup_pairs(",
    "neardup_pairs_by_key(",
    "neardup_clusters(",
    "neardup_clusters_by_key(",
    "neardup_components(",
    "neardup_repeated_passages(",
    "neardup_distance_histogram(",
    "neardup_radius(",
    "neardup_setup(",
    "neardup_remark(",
    "neardup_report(",
    "neardup_tune(",
    "neardup_tune_radius(",
    "_neardup_simhash_agg_load(",
    "_neardup_simhash_agg_save(",
];

/// Texts of about a megabyte, as expressions.
const TEXTS: &[(&str, &str)] = &[
    (
        "words",
        "(SELECT string_agg(md5(n::text), ' ') FROM generate_series(1, 25000) n)",
    ),
    ("one word", "repeat('éж', 250000)"),
    (
        "marks",
        "'a' || repeat(chr(790) || chr(769), 250000) || ' b'",
    ),
    (
        "Chinese",
        "(SELECT string_agg(chr(19968 + n % 20000 * 7919 % 20000), '') FROM generate_series(1, \
            300000) n)",
    ),
    (
        "lines",
        "(SELECT string_agg(repeat('x y ', n % 600) || n, E'\\n') FROM generate_series(1, 900) n)",
    ),
];

fn signatures(client: &mut Client) -> anyhow::Result<Vec<String>> {
    let query = "SELECT array_agg(objid::regprocedure::text) FROM pg_depend JOIN pg_proc p ON \
        objid = p.oid \
        WHERE deptype = 'e' AND classid = 'pg_proc'::regclass AND refclassid = \
        'pg_extension'::regclass \
        AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'neardup') \
        AND p.proargtypes::oid[] && ARRAY['text', 'bytea', 'text[]', 'bigint[]', 'float8[]', \
        'tsvector', \
            'jsonb']::regtype[]::oid[]";
    value(client, query)
}

/// Each new function that takes a text or an array must be in one of the lists.
#[test]
fn every_function_of_texts_is_tried() -> Outcome {
    let database = Database::create()?;
    let signatures = signatures(&mut database.connect()?)?;
    let known = |signature: &str| {
        let cases = CASES.iter().map(|(start, _)| *start);
        cases
            .chain(SHORT.iter().copied())
            .any(|start| signature.starts_with(start))
    };
    let unknown: Vec<_> = signatures.iter().filter(|s| !known(s)).collect();
    assert!(
        unknown.is_empty(),
        "neither in CASES nor in SHORT: {unknown:?}"
    );
    for (start, _) in CASES {
        ensure!(
            signatures.iter().any(|s| s.starts_with(start)),
            "there is no {start}"
        );
    }
    Ok(())
}

/// Limits the address space of a backend to its current size and `room` bytes; `None` removes the
/// limit. The command must run as the server's user, so another backend starts it.
#[cfg(target_os = "linux")]
fn limit(other: &mut Client, backend: i32, room: Option<u64>) -> Outcome {
    let limit = match room {
        Some(room) => (kilobytes(backend, "status", "VmSize:")? * 1024 + room).to_string(),
        None => "unlimited".to_owned(),
    };
    // Sets the soft limit alone, so that it can be raised again. Sends no rows, because the
    // program reads none.
    let program = format!("prlimit --pid {backend} --as={limit}: >&2");
    other.batch_execute(&format!("COPY (SELECT WHERE false) TO PROGRAM '{program}'"))?;
    Ok(())
}

/// Bytes of additional room: from almost nothing to more than most statements here need.
#[cfg(target_os = "linux")]
const ROOM: [u64; 4] = [1 << 16, 1 << 20, 3 << 20, 8 << 20];

/// Runs a statement with increasing room, until it succeeds. Before, it must fail with error 53200
/// and leave the session usable. Returns how many of the errors were neardup's own.
#[cfg(target_os = "linux")]
fn run_out(
    server: &Server,
    other: &mut Client,
    client: &mut Client,
    backend: i32,
    statement: &str,
) -> anyhow::Result<usize> {
    let mut own = 0;
    for room in ROOM {
        limit(other, backend, Some(room))?;
        let result = client.batch_execute(statement);
        let about = || {
            let log = fs::read_to_string(server.log()).unwrap_or_default();
            let end = log.lines().rev().take(90).collect::<Vec<_>>();
            let end = end.join("\n");
            format!("{statement} with {room} bytes; the log backwards:\n{end}")
        };
        limit(other, backend, None).with_context(about)?;
        let Err(error) = result else {
            // More room would not change the result.
            break;
        };
        let error = error.as_db_error().with_context(about)?;
        assert_eq!(error.code().code(), "53200", "{error:?}: {}", about());
        own += usize::from(error.detail().is_some_and(|d| d.contains("neardup")));
        client.batch_execute("SELECT 1").with_context(about)?;
    }
    Ok(own)
}

/// Calls each function with each kind of text, in a session with little room for memory. The
/// statement must succeed or fail with error 53200, and all sessions must stay usable.
#[cfg(target_os = "linux")]
#[test]
fn out_of_memory_is_an_error() -> Outcome {
    let settings = [
        ("max_parallel_workers_per_gather", "0"),
        // Sessions start with the dictionary loaded.
        ("shared_preload_libraries", "neardup"),
    ];
    let server = own_server("memory", &settings)?;
    let conninfo = server.conninfo("postgres");
    let mut other = connect(&conninfo)?;
    other.batch_execute(
        "CREATE EXTENSION neardup; CREATE TABLE big (kind text, t text, f text[], v tsvector)",
    )?;
    for (kind, text) in TEXTS {
        other.batch_execute(&format!(
            "INSERT INTO big SELECT '{kind}', t, f[:5000], array_to_tsvector(ARRAY( \
                 SELECT DISTINCT left(w, 40) FROM unnest(f[:5000]) w WHERE w <> '')) \
             FROM (SELECT t, regexp_split_to_array(t, ' ') AS f FROM (SELECT {text} AS t) AS \
             text) AS words"
        ))?;
    }
    let mut own = 0;
    for (_, call) in CASES {
        let mut client = connect(&conninfo)?;
        let backend: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
        client.batch_execute("SELECT simhash('a')")?;
        for (kind, _) in TEXTS {
            let statement = format!("SELECT ({call})::text FROM big WHERE kind = '{kind}'");
            own += run_out(&server, &mut other, &mut client, backend, &statement)?;
        }
    }
    // The server's own code fails as well, but not always first.
    assert!(own > 100, "{own} errors of neardup's");
    Ok(())
}

/// Failed scans, inserts, builds, vacuums and whole-table jobs must not lose or damage anything.
#[cfg(target_os = "linux")]
#[test]
fn out_of_memory_in_an_index_is_an_error() -> Outcome {
    let settings = [
        ("max_parallel_workers_per_gather", "0"),
        ("autovacuum", "off"),
        // Loading the library of the compiler fails with another error.
        ("jit", "off"),
    ];
    let server = own_server("index-memory", &settings)?;
    let conninfo = server.conninfo("postgres");
    let mut other = connect(&conninfo)?;
    other.batch_execute(
        "CREATE EXTENSION neardup; CREATE TABLE docs (id int, fp fingerprint, \
             sig minhash_signature); \
         INSERT INTO docs SELECT i, simhash(i / 2 || ' a few words'), minhash(i / 2 || ' words') \
             FROM generate_series(1, 5000) i; \
         CREATE INDEX docs_fp ON docs USING neardup (fp); \
         CREATE INDEX docs_sig ON docs USING neardup (sig); ANALYZE docs",
    )?;
    for statement in [
        "SELECT count(*) FROM docs WHERE fp <~> simhash('a few words') <= 30",
        "SELECT id FROM docs ORDER BY fp <~> simhash('a few words') OFFSET 4000 LIMIT 1",
        "SELECT count(*) FROM docs WHERE sig <%> minhash('1 words') <= 0.7",
        "INSERT INTO docs SELECT 0, fp, sig FROM docs LIMIT 1000",
        "UPDATE docs SET id = -id WHERE id % 7 = 0",
        "CREATE INDEX once ON docs USING neardup (fp); DROP INDEX once",
        "CREATE INDEX once ON docs USING neardup (sig); DROP INDEX once",
        "SELECT count(*) FROM neardup_pairs('docs', 3, column_name => 'fp')",
        "SELECT count(*) FROM neardup_pairs('docs', similarity => 0.8, column_name => 'sig')",
        "SELECT count(*) FROM neardup_clusters('docs', 3, keep => 'id', column_name => 'fp')",
        "SELECT count(*) FROM neardup_pairs('docs', 3, column_name => 'fp', row_time => \
            'date ''2024-01-01'' + id % 1000', within => '3 days')",
        "SELECT count(*) FROM neardup_clusters('docs', 3, keep => 'id', column_name => 'fp', \
            row_time => 'int4range(id % 1000, id % 1000 + 9)')",
        "SELECT count(*) FROM neardup_clusters('docs', similarity => 0.8, keep => 'id', \
             column_name => 'sig')",
        "SELECT count(*) FROM neardup_pairs_by_key(NULL::int, 'docs', 3, key => 'id', \
             column_name => 'fp')",
        "SELECT count(*) FROM neardup_clusters_by_key(NULL::int, 'docs', similarity => 0.8, \
             key => 'id', column_name => 'sig')",
        "SELECT count(*) FROM neardup_components('SELECT id, id / 3 FROM docs')",
        "SELECT count(*) FROM neardup_repeated_passages(NULL::int, 'docs', \
             'repeat(id || '' '', 60)', 20, key => 'id')",
        "DELETE FROM docs WHERE id = 0",
        "VACUUM docs",
    ] {
        let mut client = connect(&conninfo)?;
        client.batch_execute("SET enable_seqscan = off; SELECT simhash('a')")?;
        let backend: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
        run_out(&server, &mut other, &mut client, backend, statement)?;
    }
    for index in ["docs_fp", "docs_sig"] {
        other.batch_execute(&format!("SELECT neardup_index_check('{index}', true)"))?;
    }
    Ok(())
}

/// Returns a number of kB from a file of a process in /proc.
#[cfg(target_os = "linux")]
fn kilobytes(pid: i32, file: &str, name: &str) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/{file}");
    let lines = std::fs::read_to_string(&path)?;
    let line = lines.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(number
        .with_context(|| format!("no {name} in {path}"))?
        .parse()?)
}

/// Memory in kB that a process has for itself alone.
#[cfg(target_os = "linux")]
fn private_memory(pid: i32) -> anyhow::Result<u64> {
    kilobytes(pid, "smaps_rollup", "Private_Dirty:")
}

/// The session does not keep the memory of a long word, line or page.
#[cfg(target_os = "linux")]
#[test]
fn memory_for_a_long_text_is_given_back() -> Outcome {
    const MOST: u64 = 12 << 10;
    let database = Database::create()?;
    let calls = [
        "simhash(t)",
        "simhash(t, 'char', 2)",
        "simhash(t, 'line')",
        "minhash(t)",
        "minhash64(t)",
        "length(html_text(t))",
    ];
    for call in calls {
        let mut client = database.connect()?;
        let pid: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
        let run = |client: &mut Client, text: &str| {
            client.batch_execute(&format!(
                "SELECT {call} FROM (SELECT {text} AS t OFFSET 0) AS text"
            ))
        };
        run(&mut client, "'a é 好'::text")?;
        let before = private_memory(pid)?;
        for word in ["ab", "éж"] {
            run(&mut client, &format!("repeat('{word}', 20000000)"))?;
        }
        run(&mut client, "'a é 好'::text")?;
        let kept = private_memory(pid)?.saturating_sub(before);
        assert!(kept < MOST, "{call}: {kept} kB");
    }
    Ok(())
}

/// Memory holds the signature of each group once.
#[test]
fn states_of_aggregates_stand_once() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "SET work_mem = '100MB'; SET enable_sort = off; SET max_parallel_workers_per_gather = 0",
    )?;
    // Groups whose states nearly fill the server's blocks, each twice as large as the one before.
    for (aggregate, bytes, groups) in [
        ("minhash_agg(w, 1024)", 4096 + 16, 2000_i64),
        ("minhash_agg(w)", 512 + 16, 1700),
    ] {
        let plan = client.query(
            &format!(
                "EXPLAIN (ANALYZE) SELECT {aggregate} FROM (SELECT n % {groups} AS g, n::text AS w \
                 FROM generate_series(1, 3 * {groups}) n) AS x GROUP BY g"
            ),
            &[],
        )?;
        let mut lines = plan.iter().map(|row| row.get::<_, String>(0));
        let peak = lines.find_map(|line| {
            let (_, usage) = line.split_once("Memory Usage: ")?;
            usage.strip_suffix("kB")?.parse::<i64>().ok()
        });
        let peak = peak.context("no hash aggregate")?;
        // The state in a chunk of the server, whose sizes are powers of two, and the entry of the
        // group.
        let chunk = i64::from((bytes as u32).next_power_of_two());
        let most = groups * (chunk + 300) / 1024 + 200;
        assert!(peak < most, "{aggregate}: {peak} kB, not {most}");
    }
    Ok(())
}
