//! `confirm` of `neardup_pairs` and `neardup_clusters`: compared with the exact similarity of all
//! pairs of texts.
use crate::support::Outcome;
use crate::support::table::value;
use crate::support::texts::FAMILIES;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;
use std::collections::{BTreeMap, BTreeSet};

/// 300 families of eight texts that share most of their words, with copies, texts without words
/// and rows without a text. `crowd` has 400 texts near each other by all fingerprints.
const ROWS: &str = "CREATE TABLE docs (id int PRIMARY KEY, family int, site int, body text, \
        fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED, \
        wide fingerprint128 GENERATED ALWAYS AS (minhash128(body)) STORED, \
        sim fingerprint GENERATED ALWAYS AS (simhash(body)) STORED, \
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED); \
    INSERT INTO docs SELECT 8 * f + v, f, v % 2, family_text(f, v) \
        FROM generate_series(0, 299) f, generate_series(0, 7) v; \
    INSERT INTO docs SELECT 10000 + id, family, site, upper(body) FROM docs WHERE id % 24 = 3; \
    INSERT INTO docs SELECT 20000 + i, -i, 0, CASE i % 2 WHEN 1 THEN '...' END \
        FROM generate_series(1, 10) i; \
    CREATE INDEX docs_fp ON docs USING neardup (fp); \
    CREATE INDEX docs_site ON docs USING neardup (site, fp); \
    CREATE INDEX docs_wide ON docs USING neardup (wide); \
    CREATE INDEX docs_sim ON docs USING neardup (sim); \
    CREATE INDEX docs_sig ON docs USING neardup (sig); \
    CREATE TABLE crowd (id int PRIMARY KEY, family int, site int, body text, \
        fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED); \
    INSERT INTO crowd SELECT v, 0, 0, (SELECT string_agg('w' || CASE \
            WHEN number(v, w) % 400 < v % 9 THEN number(v, w) ELSE w END, ' ' ORDER BY w) \
            FROM generate_series(1, 400) w) \
        FROM generate_series(1, 400) v; \
    CREATE INDEX crowd_fp ON crowd USING neardup (fp); \
    ANALYZE";

/// Pair of keys with the similarity of the texts.
type Pairs = BTreeMap<(i32, i32), String>;

fn database() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(FAMILIES)?;
    client.batch_execute(ROWS)?;
    Ok((database, client))
}

fn pairs(client: &mut Client, query: &str) -> Result<Pairs> {
    let rows = client.query(query, &[]).with_context(|| query.to_owned())?;
    let pair = |row: &postgres::Row| ((row.get(0), row.get(1)), row.get(2));
    let found: Pairs = rows.iter().map(pair).collect();
    ensure!(
        found.len() == rows.len(),
        "a pair is returned twice: {query}"
    );
    Ok(found)
}

/// Pairs of a table that meet a condition and have a similarity, by comparing all texts.
fn expected(client: &mut Client, table: &str, near: &str, similarity: f64) -> Result<Pairs> {
    let query = format!(
        "SELECT a.id, b.id, round(j::numeric, 9)::text FROM {table} a JOIN {table} b \
            ON a.family = b.family AND a.id < b.id, \
            jaccard_similarity(a.body, b.body) j WHERE j >= {similarity} AND {near}"
    );
    pairs(client, &query)
}

fn found(client: &mut Client, arguments: &str) -> Result<Pairs> {
    let query = format!(
        "SELECT a, b, round(similarity::numeric, 9)::text \
         FROM neardup_pairs_by_key(NULL::int, {arguments}, key => 'id', confirm => 'body')"
    );
    pairs(client, &query)
}

#[test]
fn pairs_are_those_with_the_exact_similarity() -> Outcome {
    let (_database, mut client) = database()?;
    let cases = [
        // The radius of candidates follows from the similarity.
        (
            "docs",
            "'docs_fp', similarity => 0.8",
            "a.fp <~> b.fp <= 10",
            0.8,
        ),
        ("docs", "'docs_fp'", "a.fp <~> b.fp <= 10", 0.8),
        (
            "docs",
            "'docs_fp', similarity => 0.9",
            "a.fp <~> b.fp <= 6",
            0.9,
        ),
        ("docs", "'docs_fp', similarity => 1", "a.fp = b.fp", 1.0),
        (
            "docs",
            "'docs_wide', similarity => 0.8",
            "a.wide <~> b.wide <= 17",
            0.8,
        ),
        (
            "docs",
            "'docs_fp', radius => 4, similarity => 0.6",
            "a.fp <~> b.fp <= 4",
            0.6,
        ),
        (
            "docs",
            "'docs_sim', radius => 9, similarity => 0.7",
            "a.sim <~> b.sim <= 9",
            0.7,
        ),
        (
            "docs",
            "'docs_site', similarity => 0.8",
            "a.fp <~> b.fp <= 10 AND a.site = b.site",
            0.8,
        ),
        (
            "docs",
            "'docs_fp', similarity => 0.8, filter => 'id % 3 > 0'",
            "a.fp <~> b.fp <= 10 AND a.id % 3 > 0 AND b.id % 3 > 0",
            0.8,
        ),
        (
            "crowd",
            "'crowd', similarity => 0.9",
            "a.fp <~> b.fp <= 6",
            0.9,
        ),
    ];
    for memory in ["64MB", "1MB"] {
        client.batch_execute(&format!("SET maintenance_work_mem = '{memory}'"))?;
        for (table, arguments, near, similarity) in cases {
            let expected = match arguments.contains("docs_sim") {
                true => simhash_pairs(&mut client, near, similarity)?,
                false => expected(&mut client, table, near, similarity)?,
            };
            ensure!(expected.len() > 50, "{arguments}: {} pairs", expected.len());
            let found = found(&mut client, arguments)?;
            ensure!(found == expected, "{arguments}: {} pairs", found.len());
        }
    }
    // Without confirmation more pairs are found.
    let estimated = "SELECT count(*) FROM neardup_pairs('docs_fp', similarity => 0.8)";
    let estimated: i64 = value(&mut client, estimated)?;
    ensure!(estimated > found(&mut client, "'docs_fp'")?.len() as i64);
    Ok(())
}

/// Texts are compared by the features of the function that made the fingerprints: pairs of words.
fn simhash_pairs(client: &mut Client, near: &str, similarity: f64) -> Result<Pairs> {
    let query = format!(
        "SELECT a.id, b.id, round(j::numeric, 9)::text FROM docs a JOIN docs b \
            ON a.family = b.family AND a.id < b.id, \
            jaccard_similarity(a.body, b.body, shingle => 2) j \
         WHERE j >= {similarity} AND {near}"
    );
    pairs(client, &query)
}

/// The bands of an index on signatures may miss candidates, and never add a pair.
#[test]
fn signatures_supply_nearly_all_candidates() -> Outcome {
    let (_database, mut client) = database()?;
    for similarity in [0.7, 0.8, 0.9] {
        let all = expected(&mut client, "docs", "true", similarity)?;
        let found = found(
            &mut client,
            &format!("'docs_sig', similarity => {similarity}"),
        )?;
        ensure!(
            found
                .iter()
                .all(|(pair, similarity)| all.get(pair) == Some(similarity))
        );
        let share = found.len() as f64 / all.len() as f64;
        ensure!(
            share >= 0.98,
            "{similarity}: {} of {} pairs",
            found.len(),
            all.len()
        );
    }
    Ok(())
}

/// Member, representative and size of each row of a cluster.
type Clusters = BTreeSet<(i32, i32, i64)>;

fn clusters(client: &mut Client, arguments: &str) -> Result<Clusters> {
    let query = format!(
        "SELECT member, representative, size FROM neardup_clusters_by_key(NULL::int, \
            {arguments}, key => 'id', keep => 'length(body) DESC, id', confirm => 'body')"
    );
    let rows = client.query(&query, &[]).context(query)?;
    Ok((rows.iter().map(|row| (row.get(0), row.get(1), row.get(2)))).collect())
}

/// Clusters of pairs by the definition of the method. `order` has all rows, the best first.
fn clustered(pairs: &Pairs, order: &[i32], connected: bool) -> Clusters {
    let mut near: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for &(a, b) in pairs.keys() {
        near.entry(a).or_default().push(b);
        near.entry(b).or_default().push(a);
    }
    let mut representative: BTreeMap<i32, i32> = BTreeMap::new();
    for &best in order {
        if representative.contains_key(&best) {
            continue;
        }
        let mut queue = vec![best];
        representative.insert(best, best);
        while let Some(row) = queue.pop() {
            for &other in near.get(&row).into_iter().flatten() {
                if let std::collections::btree_map::Entry::Vacant(entry) =
                    representative.entry(other)
                {
                    entry.insert(best);
                    if connected {
                        queue.push(other);
                    }
                }
            }
        }
    }
    let mut sizes: BTreeMap<i32, i64> = BTreeMap::new();
    for kept in representative.values() {
        *sizes.entry(*kept).or_default() += 1;
    }
    (representative.into_iter())
        .map(|(row, kept)| (row, kept, sizes[&kept]))
        .filter(|(_, _, size)| *size > 1)
        .collect()
}

#[test]
fn clusters_are_those_of_the_exact_pairs() -> Outcome {
    let (_database, mut client) = database()?;
    let cases = [
        (
            "docs",
            "'docs_fp', similarity => 0.8",
            "a.fp <~> b.fp <= 10",
            0.8,
        ),
        (
            "docs",
            "'docs_fp', similarity => 0.9",
            "a.fp <~> b.fp <= 6",
            0.9,
        ),
        (
            "docs",
            "'docs_wide', similarity => 0.8",
            "a.wide <~> b.wide <= 17",
            0.8,
        ),
        (
            "docs",
            "'docs_site', similarity => 0.8",
            "a.fp <~> b.fp <= 10 AND a.site = b.site",
            0.8,
        ),
        // Most fingerprints have more near ones than the search for clusters lists.
        (
            "crowd",
            "'crowd', similarity => 0.9",
            "a.fp <~> b.fp <= 6",
            0.9,
        ),
        (
            "crowd",
            "'crowd', similarity => 0.93",
            "a.fp <~> b.fp <= 5",
            0.93,
        ),
    ];
    for memory in ["64MB", "1MB"] {
        client.batch_execute(&format!("SET maintenance_work_mem = '{memory}'"))?;
        for (table, arguments, near, similarity) in cases {
            let pairs = expected(&mut client, table, near, similarity)?;
            let order = format!(
                "SELECT array_agg(id ORDER BY length(body) DESC, id) FROM {table} \
                 WHERE fp IS NOT NULL"
            );
            let order: Vec<i32> = value(&mut client, &order)?;
            for method in ["star", "connected"] {
                let arguments = format!("{arguments}, method => '{method}'");
                let found = clusters(&mut client, &arguments)?;
                let expected = clustered(&pairs, &order, method == "connected");
                ensure!(found == expected, "{arguments}, {memory}");
            }
            // Each row with a fingerprint is once in the result.
            let all = clusters(&mut client, &format!("{arguments}, singletons => true"))?;
            ensure!(all.len() == order.len(), "{arguments}: {} rows", all.len());
        }
    }
    Ok(())
}

#[test]
fn options_are_those_of_the_function_that_made_the_fingerprints() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE pages (id int PRIMARY KEY, family int, body text, lang text); \
         INSERT INTO pages SELECT id, family, '<p>' || body, 'en' FROM docs WHERE id < 800; \
         CREATE INDEX pages_chars ON pages \
            USING neardup (minhash64(body, 'char', 5, html => true)); \
         CREATE INDEX pages_lang ON pages USING neardup \
            (minhash64(body, shingle => CASE lang WHEN 'en' THEN 3 ELSE 2 END)); \
         DO $$ BEGIN EXECUTE format('CREATE INDEX pages_rare ON pages USING neardup \
            (minhash64_without(body, %L))', (SELECT neardup_common_features(body, 0.5) \
            FROM pages)); END $$",
    )?;
    let query = "SELECT a.id, b.id, round(j::numeric, 9)::text FROM pages a JOIN pages b \
            ON a.family = b.family AND a.id < b.id, \
            jaccard_similarity(a.body, b.body, 'char', 5, html => true) j \
        WHERE j >= 0.8 AND minhash64(a.body, 'char', 5, html => true) \
            <~> minhash64(b.body, 'char', 5, html => true) <= 10";
    let expected = pairs(&mut client, query)?;
    ensure!(expected.len() > 50 && found(&mut client, "'pages_chars'")? == expected);
    ensure!(found(&mut client, "'pages_rare'")?.len() > 50);
    // The options of this index are not constant: the caller passes the features.
    let error = found(&mut client, "'pages_lang'").unwrap_err();
    let code = error
        .downcast_ref::<postgres::Error>()
        .and_then(postgres::Error::code);
    ensure!(code == Some(&SqlState::FEATURE_NOT_SUPPORTED), "{error:?}");
    let query = "SELECT a, b, round(similarity::numeric, 9)::text FROM neardup_pairs_by_key(\
        NULL::int, 'pages_lang', key => 'id', confirm => 'ARRAY(SELECT hash::bigint \
            FROM neardup_features(body, shingle => 3))')";
    let by_features = pairs(&mut client, query)?;
    let query = "SELECT a.id, b.id, round(j::numeric, 9)::text FROM pages a JOIN pages b \
            ON a.family = b.family AND a.id < b.id, jaccard_similarity(a.body, b.body) j \
        WHERE j >= 0.8 AND minhash64(a.body) <~> minhash64(b.body) <= 10";
    ensure!(by_features == pairs(&mut client, query)?);
    Ok(())
}

#[test]
fn mistakes_in_confirm_are_errors() -> Outcome {
    let (_database, mut client) = database()?;
    let mistakes = [
        ("'docs_fp', confirm => 'text'", SqlState::UNDEFINED_COLUMN),
        (
            "'docs_fp', confirm => 'body, id'",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'docs_fp', confirm => ''",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'docs_fp', confirm => 'body', similarity => 80",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'docs_sim', confirm => 'body'",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'docs_sig', confirm => 'body', radius => 3",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        (
            "'docs_fp', confirm => 'ARRAY[1, NULL]::bigint[]'",
            SqlState::NULL_VALUE_NOT_ALLOWED,
        ),
        (
            "'docs_fp', confirm => '(1 / (id - id))::text'",
            SqlState::DIVISION_BY_ZERO,
        ),
    ];
    for (arguments, code) in mistakes {
        for function in ["neardup_pairs", "neardup_clusters"] {
            let query = format!("SELECT count(*) FROM {function}({arguments})");
            let error = client.query(&query, &[]).err().context(query.clone())?;
            ensure!(error.code() == Some(&code), "{query}: {error:?}");
        }
    }
    Ok(())
}
