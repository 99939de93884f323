//! Columns in front of the fingerprint: equality within each, near-duplicates kept apart.
use crate::support::Outcome;
use crate::support::oracle::{Way, assert_way};
use crate::support::table::value;
use neardup_tests::Database;
use postgres::error::SqlState;

/// A type of a leading column, and a value of it made from a number `k`, NULL for none.
const SCOPES: [(&str, &str); 15] = [
    ("smallint", "k::smallint"),
    ("integer", "k::integer"),
    ("bigint", "k * 10000000000"),
    ("boolean", "k % 2 = 0"),
    ("text", "'site ' || k"),
    ("varchar(20)", "'site ' || k"),
    ("character(20)", "'site ' || k"),
    ("name", "('site ' || k)::name"),
    ("uuid", "md5(k::text)::uuid"),
    ("bytea", "decode(md5(k::text), 'hex')"),
    ("date", "'2000-01-01'::date + k::int"),
    (
        "timestamptz",
        "'2000-01-01'::timestamptz + k * interval '1 hour'",
    ),
    ("numeric", "k / 8.0"),
    ("inet", "'10.0.0.0'::inet + k"),
    ("colour", "(enum_range(NULL::colour))[1 + k % 3]"),
];

const ARRAYS: [(&str, &str); 2] = [
    ("integer[]", "ARRAY[k, 7]::integer[]"),
    ("text[]", "ARRAY['site', k::text]"),
];

const FP: &str =
    "CASE WHEN n % 16 > 0 THEN (hashint8extended(n % 60, 1) # (1::bigint << (n % 40)::int)) END";

#[test]
fn every_type_of_scope_answers_as_the_sequential_scan() -> Outcome {
    answers_as_the_sequential_scan(&SCOPES)
}

#[test]
fn an_array_as_a_scope_answers_as_the_sequential_scan() -> Outcome {
    answers_as_the_sequential_scan(&ARRAYS)
}

fn answers_as_the_sequential_scan(scopes: &[(&str, &str)]) -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute("CREATE TYPE colour AS ENUM ('red', 'green', 'blue')")?;
    for (scope, of_k) in scopes {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs; CREATE TABLE docs (id bigint, site {scope}, fp fingerprint); \
             INSERT INTO docs SELECT n, (SELECT {of_k} FROM (SELECT nullif(n % 9, 0) AS k) AS one), \
                 ({FP})::fingerprint FROM generate_series(1::bigint, 6000) AS n; \
             CREATE INDEX docs_fp ON docs USING neardup (site, fp); \
             INSERT INTO docs SELECT id + 10000, site, fp FROM docs WHERE id % 3 = 0"
        ))?;
        let known = format!("(SELECT {of_k} FROM (SELECT 5::bigint AS k) AS one)::{scope}");
        for condition in [
            format!("site = {known} AND fp <@ ball((hashint8extended(5, 1))::fingerprint, 3)"),
            format!("site = {known} AND fp <@ ball((hashint8extended(7, 1))::fingerprint, 26)"),
            format!("site = {known} AND fp ~= (hashint8extended(5, 1))::fingerprint"),
            format!("site = {known}"),
            "fp <@ ball((hashint8extended(5, 1))::fingerprint, 3)".to_owned(),
            "fp <@ ball((hashint8extended(5, 1))::fingerprint, 30)".to_owned(),
        ] {
            let query = format!(
                "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM docs WHERE {condition}"
            );
            Way::Sequential.set(&mut client)?;
            let expected: Vec<i64> = value(&mut client, &query)?;
            assert!(!expected.is_empty(), "{scope}, {condition}: finds nothing");
            for way in Way::INDEXED {
                assert_way(&mut client, way, "docs_fp", &query)?;
                let found: Vec<i64> = value(&mut client, &query)
                    .map_err(|error| error.context(format!("{scope}, {way:?}: {condition}")))?;
                assert!(
                    found == expected,
                    "{scope}, {way:?}, {condition}: {} of {}",
                    found.len(),
                    expected.len()
                );
            }
        }
        client.batch_execute("SELECT neardup_index_check('docs_fp', true)")?;
    }
    Ok(())
}

#[test]
fn near_duplicates_are_kept_apart_within_a_scope_only() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (site text, kind int, fp fingerprint, CONSTRAINT apart \
         EXCLUDE USING neardup (site WITH =, kind WITH =, fp WITH ~=)); \
         INSERT INTO docs VALUES ('a', 1, '0000000000000000')",
    )?;
    for (row, gets_in) in [
        ("('a', 1, '0000000000000001')", false),
        ("('a', 1, '000000000000000f')", true),
        ("('a', 2, '0000000000000001')", true),
        ("('b', 1, '0000000000000001')", true),
        ("('b', 1, '0000000000000007')", false),
        // NULL is equal to nothing.
        ("(NULL, 1, '0000000000000000')", true),
        ("(NULL, 1, '0000000000000000')", true),
        ("('a', NULL, '0000000000000000')", true),
        ("('a', 1, NULL)", true),
    ] {
        let result = client.batch_execute(&format!("INSERT INTO docs VALUES {row}"));
        assert_eq!(result.is_ok(), gets_in, "{row}: {result:?}");
        if let Err(error) = result {
            assert_eq!(
                error.code(),
                Some(&SqlState::EXCLUSION_VIOLATION),
                "{row}: {error:?}"
            );
        }
    }
    Ok(())
}
