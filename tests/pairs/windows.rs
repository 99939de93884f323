//! Parameters `row_time` and `within` of `neardup_pairs` and `neardup_clusters`.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::texts::FAMILIES;
use crate::support::timed_rows::{combinations, keep, random_rows};
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;

fn database() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(FAMILIES)?;
    client.batch_execute("SET timezone = 'Europe/Berlin'; SET client_min_messages = warning")?;
    Ok((database, client))
}

/// Makes the table `linked` with a component for each row of `docs` that is near another row: the
/// lowest key of the rows that chains of pairs in `near_pairs` connect with it.
const LINK: &str = "DROP TABLE IF EXISTS linked; \
    CREATE TABLE linked AS SELECT DISTINCT id, id AS component FROM \
        (SELECT k AS id FROM near_pairs UNION ALL SELECT t FROM near_pairs) ends; \
    DO $$ DECLARE changed int := 1; BEGIN WHILE changed > 0 LOOP \
        UPDATE linked l SET component = lower.component FROM (SELECT e.id, min(o.component) AS \
            component FROM (SELECT k AS id, t AS other FROM near_pairs UNION ALL SELECT t, k FROM \
            near_pairs) e JOIN linked o ON o.id = e.other GROUP BY 1) lower \
        WHERE l.id = lower.id AND lower.component < l.component; \
        GET DIAGNOSTICS changed = ROW_COUNT; END LOOP; END $$";

/// Compares pairs, clusters of both methods and clusters of single rows with the results of joins
/// in SQL. About a quarter of the rows have the same fingerprint, so some fingerprints are crowded.
#[test]
fn pairs_and_clusters_are_those_of_the_condition_in_sql() -> Outcome {
    let (_database, mut client) = database()?;
    for ((values, times), seed) in combinations().zip(0..) {
        let mut near = values.near(times);
        let arguments = format!("{}, {}", values.arguments, times.arguments);
        values.create(&mut client, times, false)?;
        let count = if values.written() == "fp" { 1000 } else { 400 };
        let rows = random_rows(values, times, count, &mut Random::new(seed));
        client.batch_execute(&rows.concat())?;
        // Pairs of fingerprints are found in another way if the index has no scope.
        if seed % 2 == 1 {
            near = near.replace("k.site = t.site AND ", "");
            let index = values.index.replace(" WHERE dup IS NULL", "");
            client.batch_execute(&format!(
                "DROP INDEX docs_site_fp_idx; CREATE INDEX ON docs USING neardup ({index}"
            ))?;
        }
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS near_pairs; CREATE TABLE near_pairs AS \
             SELECT k.id AS k, t.id AS t, {} AS distance FROM docs k, docs t \
             WHERE k.id < t.id AND {near}",
            values.distance,
        ))?;
        client.batch_execute(LINK)?;
        keep(&mut client, "docs", &near)?;
        let count: i64 = value(&mut client, "SELECT count(*) FROM near_pairs")?;
        ensure!(count > 200, "{near}: {count} pairs");
        // With little memory, all lists are in temporary files.
        for memory in ["64MB", "1MB"] {
            client.batch_execute(&format!(
                "SET maintenance_work_mem = '{memory}'; SET work_mem = '{memory}'"
            ))?;
            let same = |client: &mut Client, found: &str, expected: &str| -> Outcome {
                let differing: i64 = value(
                    client,
                    &format!(
                        "WITH found AS ({found}), expected AS ({expected}) SELECT count(*) FROM \
                         ((TABLE found EXCEPT ALL TABLE expected) UNION ALL \
                          (TABLE expected EXCEPT ALL TABLE found)) AS differing"
                    ),
                )?;
                ensure!(
                    differing == 0,
                    "{arguments}: {near}: {differing} rows of {found}"
                );
                Ok(())
            };
            same(
                &mut client,
                &format!(
                    "SELECT a, b, coalesce(distance, 0)::float8 FROM \
                     neardup_pairs_by_key(NULL::int, 'docs', key => 'id', {arguments})"
                ),
                match values.column.contains("signature") {
                    true => "SELECT k, t, 0::float8 FROM near_pairs",
                    false => "SELECT k, t, distance::float8 FROM near_pairs",
                },
            )?;
            let clusters = |options: &str| {
                format!(
                    "SELECT member, representative, size FROM neardup_clusters_by_key(NULL::int, \
                     'docs', key => 'id', keep => 'id', {arguments}, {options})"
                )
            };
            let stars = format!(
                "SELECT t.id, coalesce(min(k.id), t.id) AS representative FROM docs t LEFT JOIN \
                 kept k ON k.id < t.id AND {near} WHERE t.fp IS NOT NULL GROUP BY t.id"
            );
            let sized = format!(
                "SELECT id, representative, count(*) OVER (PARTITION BY representative) AS size \
                 FROM ({stars}) stars"
            );
            same(&mut client, &clusters("singletons => true"), &sized)?;
            same(
                &mut client,
                &clusters("singletons => false"),
                &format!("SELECT * FROM ({sized}) sized WHERE size > 1"),
            )?;
            same(
                &mut client,
                &clusters("method => 'connected'"),
                "SELECT id, component, count(*) OVER (PARTITION BY component) FROM linked",
            )?;
        }
    }
    Ok(())
}

/// Many copies of one text in one window are one cluster, in time proportional to their number.
#[test]
fn many_copies_in_one_window_are_few_comparisons() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT id, '0000000000000007'::fingerprint AS fp, \
            timestamptz '2024-01-01' + id * interval '1 second' AS at \
            FROM generate_series(1, 60000) id; \
         CREATE INDEX ON docs USING neardup (fp); SET statement_timeout = '60s'",
    )?;
    // All pairs would be 1.8 billion.
    for (method, within, clusters) in [
        ("star", "1 day", 1),
        ("star", "1 hour", 17),
        ("connected", "1 second", 1),
        ("connected", "1 hour", 1),
    ] {
        let query = format!(
            "SELECT count(DISTINCT representative) FROM neardup_clusters('docs', 3, method => \
             '{method}', keep => 'id', row_time => 'at', within => '{within}')"
        );
        let count: i64 = value(&mut client, &query)?;
        ensure!(count == clusters, "{method}, {within}: {count}");
    }
    Ok(())
}

#[test]
fn mistakes_are_errors_and_the_filter_comes_first() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE docs (id int, at timestamptz, note text, fp fingerprint); \
         INSERT INTO docs SELECT id, '2024-01-01', CASE id WHEN 1 THEN 'never' ELSE '2024-01-01' \
            END, '0000000000000007' FROM generate_series(1, 4) id; \
         CREATE INDEX ON docs USING neardup (fp)",
    )?;
    for function in ["pairs", "clusters"] {
        for (arguments, expected, detail) in [
            (
                "row_time => 'at'",
                SqlState::INVALID_PARAMETER_VALUE,
                "\"within\" is missing",
            ),
            (
                "within => '1 day'",
                SqlState::INVALID_PARAMETER_VALUE,
                "maximum time between two near-duplicates",
            ),
            (
                "row_time => 'at', within => '1 month'",
                SqlState::INVALID_PARAMETER_VALUE,
                "contains months",
            ),
            (
                "row_time => 'id', within => '1 day'",
                SqlState::INVALID_PARAMETER_VALUE,
                "have type integer",
            ),
            (
                "row_time => 'then', within => '1 day'",
                SqlState::INVALID_PARAMETER_VALUE,
                "",
            ),
            (
                "row_time => 'published', within => '1 day'",
                SqlState::UNDEFINED_COLUMN,
                "parameter \"row_time\"",
            ),
            (
                "row_time => 'note::timestamptz', within => '1 day'",
                SqlState::INVALID_DATETIME_FORMAT,
                "parameter \"row_time\"",
            ),
        ] {
            let query = format!("SELECT neardup_{function}('docs', 3, {arguments})");
            let result = client.batch_execute(&query);
            ensure!(code(&result) == Some(expected), "{query}: {result:?}");
            let error = result.err().context("an error")?;
            let error = error.as_db_error().context("of the server")?;
            let shown = error.detail().unwrap_or_default();
            ensure!(shown.contains(detail), "{query}: {error:?}");
        }
        let query = format!(
            "SELECT count(*) FROM neardup_{function}('docs', 3, filter => 'id > 1', row_time => \
             'note::timestamptz', within => '1 day')"
        );
        ensure!(value::<i64>(&mut client, &query)? == 3, "{query}");
    }
    Ok(())
}
