//! docs/without-the-extension.md: its plain SQL, in a database without the extension, returns the
//! same results as neardup.
use crate::clients::documents::examples;
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Context, Result};
use neardup_tests::{Database, connect, project_path};
use postgres::Client;
use std::thread;

const PAGE: &str = "docs/without-the-extension.md";

/// Fingerprints of 400 texts of 60 words in up to six versions with increasingly many different
/// words, some extremes, and values with one block in common.
const FINGERPRINTS: &str = "CREATE TABLE docs (id bigint PRIMARY KEY, fp bigint); \
    INSERT INTO docs SELECT i, minhash64((SELECT string_agg(md5(CASE WHEN hashint8extended(w, i) \
            % 60 BETWEEN 0 AND i % 6 THEN 'new ' || i ELSE i / 6 || '' END || ' ' || w), ' ' \
            ORDER BY w) FROM generate_series(1, 60) w))::bigint FROM generate_series(1, 2400) i; \
    INSERT INTO docs VALUES (10001, 0), (10002, 0), (10003, -1), (10004, -2), (10005, 127), \
        (10006, -9223372036854775808), (10007, 9223372036854775807); \
    INSERT INTO docs SELECT 20000 + i, (i::bigint * i << 16) | 4660 \
        FROM generate_series(1, 300) i; \
    CREATE INDEX docs_fp ON docs USING neardup (fp bigint_hamming_ops);";

/// Makes the table and the functions of the page, in a database without the extension.
fn prepare(database: &Database) -> Result<Client> {
    let mut client = database.connect()?;
    client.batch_execute("DROP EXTENSION neardup")?;
    client.batch_execute(&statements("CREATE TABLE docs")?)?;
    Ok(client)
}

/// Returns the block of the page that contains this statement.
fn statements(statement: &str) -> Result<String> {
    let page = std::fs::read_to_string(project_path(PAGE)).context(PAGE)?;
    let block = (examples(&page, "# Without the extension").into_iter())
        .find(|example| example.sql.contains(statement))
        .with_context(|| format!("{PAGE} has no {statement}"))?;
    Ok(block.sql)
}

fn pairs(client: &mut Client, query: &str) -> Result<Vec<(i64, i64)>> {
    let rows = client.query(query, &[])?;
    let mut pairs: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    pairs.sort_unstable();
    Ok(pairs)
}

#[test]
fn the_page_finds_what_neardup_finds() -> Outcome {
    let (with, without) = (Database::create()?, Database::create()?);
    let mut neardup = with.connect()?;
    neardup.batch_execute(FINGERPRINTS)?;
    let mut plain = prepare(&without)?;
    let rows = neardup.query("SELECT array_agg(id), array_agg(fp) FROM docs", &[])?;
    let (ids, values): (Vec<i64>, Vec<i64>) = (rows[0].get(0), rows[0].get(1));
    let copy = "INSERT INTO docs (id, fp) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
    plain.execute(copy, &[&ids, &values])?;
    plain.batch_execute("ANALYZE docs")?;
    let mut found = Vec::new();
    for radius in 0..=7 {
        let expected = pairs(
            &mut neardup,
            &format!(
                "SELECT least(a.id, b.id), greatest(a.id, b.id) FROM neardup_pairs('docs', \
                 {radius}) p JOIN docs a ON a.ctid = p.a JOIN docs b ON b.ctid = p.b"
            ),
        )?;
        let near = format!(
            "SELECT a.id, b.id FROM docs a CROSS JOIN LATERAL near(a.fp, {radius}) b \
             WHERE a.id < b.id"
        );
        assert_eq!(pairs(&mut plain, &near)?, expected, "within {radius} bits");
        found.push(expected);
    }
    // Otherwise the comparison would be empty.
    assert!(found.windows(2).all(|next| next[0].len() < next[1].len()));
    plain.batch_execute(&statements("CREATE VIEW near_pairs")?)?;
    assert_eq!(pairs(&mut plain, "SELECT a, b FROM near_pairs")?, found[3]);
    for radius in [-1, 8] {
        let refused = plain.query(&format!("SELECT near(0, {radius})"), &[]);
        assert!(refused.is_err(), "radius {radius}");
    }
    Ok(())
}

/// Concurrent sessions write the same values, each changed in one bit.
#[test]
fn the_trigger_of_the_page_keeps_near_duplicates_out() -> Outcome {
    let database = Database::create()?;
    let mut client = prepare(&database)?;
    let trigger = statements("CREATE FUNCTION refuse_near")?;
    client.batch_execute(&trigger)?;
    client.batch_execute("TRUNCATE docs")?;
    let sessions: Vec<_> = (0..4_i64)
        .map(|session| {
            let conninfo = database.conninfo().to_owned();
            thread::spawn(move || -> Outcome {
                let mut client = connect(&conninfo)?;
                for number in 0..60_i64 {
                    client.batch_execute(&format!(
                        "INSERT INTO docs (id, fp) VALUES ({session} * 1000 + {number}, \
                         hashint8extended({number}, 5) # (1::bigint << {session}))"
                    ))?;
                }
                Ok(())
            })
        })
        .collect();
    for session in sessions {
        session.join().ok().context("a session panicked")??;
    }
    let near = "SELECT count(*) FROM docs a JOIN docs b \
        ON a.id < b.id AND hamming_distance(a.fp, b.fp) <= 6";
    assert_eq!(value::<i64>(&mut client, near)?, 0);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM docs")?, 60);
    Ok(())
}
