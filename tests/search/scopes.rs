//! Scope columns before the fingerprint: equality and exclusion constraints within each.
use crate::support::Outcome;
use crate::support::oracle::{Way, assert_way, plan};
use crate::support::table::value;
use neardup_tests::Database;
use postgres::error::SqlState;

/// A type of a scope column, and an SQL value of it made from a number `k`; NULL for no value.
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
            "DROP TABLE IF EXISTS docs; CREATE TABLE docs (id bigint, site {scope}, fp \
                fingerprint); \
             INSERT INTO docs SELECT n, (SELECT {of_k} FROM (SELECT nullif(n % 9, 0) AS k) AS \
             one), \
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
fn scopes_of_all_sizes_answer_as_the_sequential_scan() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    // Site 0 has most rows. Sites from 1 to 8 have a few leaves or a part of one, and the others
    // two rows. All values are in 40 dense balls, so that each site has some of each.
    client.batch_execute(
        "CREATE TABLE docs (id bigint, site int, fp fingerprint); \
         INSERT INTO docs SELECT n, \
             CASE WHEN n % 2 = 0 THEN 0 WHEN n % 16 < 15 THEN n % 8 + 1 ELSE 10 + n / 32 END, \
             (hashint8extended(n % 40, 1) # (1::bigint << (n % 37)::int) \
                 # (1::bigint << (n / 40 % 41)::int) # (1::bigint << (n / 160 % \
                 43)::int))::fingerprint \
             FROM generate_series(1::bigint, 60000) AS n; \
         CREATE INDEX docs_fp ON docs USING neardup (site, fp) WITH (fillfactor = 50); \
         INSERT INTO docs SELECT id + 100000, site, fp FROM docs WHERE id % 7 = 0",
    )?;
    let mut rows = 0;
    for site in [0, 1, 2, 8, 25, 26, 1_000] {
        for (center, radius) in [(3, 0), (3, 3), (5, 5), (5, 8), (7, 12), (7, 20), (9, 28)] {
            let query = format!(
                "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM docs WHERE site = {site} \
                 AND fp <@ ball((hashint8extended({center}, 1) # 1)::fingerprint, {radius})"
            );
            Way::Sequential.set(&mut client)?;
            let expected: Vec<i64> = value(&mut client, &query)?;
            rows += expected.len();
            for way in Way::INDEXED {
                assert_way(&mut client, way, "docs_fp", &query)?;
                let found: Vec<i64> = value(&mut client, &query)?;
                assert!(found == expected, "site {site}, radius {radius}, {way:?}");
            }
        }
    }
    assert!(rows > 5_000, "{rows}");
    // Searches alternate between sites.
    let pairs = "SELECT coalesce(array_agg(a.id * 1000000 + b.id ORDER BY 1), '{}') \
        FROM (SELECT * FROM docs WHERE id % 197 = 0) a \
        JOIN docs b ON b.site = a.site AND b.fp <@ ball(a.fp, 4)";
    Way::Sequential.set(&mut client)?;
    let mut expected: Vec<i64> = value(&mut client, pairs)?;
    expected.sort_unstable();
    for way in Way::INDEXED {
        assert_way(&mut client, way, "docs_fp", pairs)?;
        let mut found: Vec<i64> = value(&mut client, pairs)?;
        found.sort_unstable();
        assert!(
            found == expected,
            "{way:?}: {} of {}",
            found.len(),
            expected.len()
        );
    }
    assert!(expected.len() > 1_000, "{}", expected.len());
    Ok(())
}

#[test]
fn a_query_without_the_scope_is_priced_as_what_it_is() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id bigint, site int, kind int, fp fingerprint); \
         INSERT INTO docs SELECT n, n % 500, n % 2, (hashint8extended(n, 1))::fingerprint \
             FROM generate_series(1::bigint, 100000) AS n; \
         CREATE INDEX docs_scoped ON docs USING neardup (site, kind, fp); \
         ANALYZE docs; \
         CREATE FUNCTION cost(query text) RETURNS float8 LANGUAGE plpgsql AS $$ \
         DECLARE plan json; \
         BEGIN EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan; \
             RETURN plan->0->'Plan'->>'Total Cost'; END $$",
    )?;
    let near = "fp <~> '0123456789abcdef' <= 3";
    let query = |scope: &str| format!("SELECT * FROM docs WHERE {scope}{near}");
    let mut cost = |way: Way, scope: &str| -> anyhow::Result<f64> {
        let query = query(scope);
        let index = if way == Way::Sequential {
            ""
        } else {
            "docs_scoped"
        };
        assert_way(&mut client, way, index, &query)?;
        value(&mut client, &format!("SELECT cost($query${query}$query$)"))
    };
    // A search in one site reads a leaf or two. A search without a site reads the leaves of
    // 100,000 rows, which costs as much as the table itself, not a thousandth.
    let in_scope = cost(Way::Index, "site = 7 AND kind = 1 AND ")?;
    for part in [
        "",
        "site = 7 AND ",
        "kind = 1 AND ",
        "site > 7 AND kind = 1 AND ",
    ] {
        let cheapest = cost(Way::Index, part)?.min(cost(Way::Bitmap, part)?);
        let sequential = cost(Way::Sequential, part)?;
        assert!(
            cheapest > 50.0 * in_scope && cheapest > 0.1 * sequential,
            "\"{part}\": {cheapest}, in a scope {in_scope}, sequential {sequential}"
        );
    }
    // With an index on the fingerprint alone as well, each query uses the index made for it.
    client.batch_execute("CREATE INDEX docs_plain ON docs USING neardup (fp); RESET ALL")?;
    for (scope, index) in [
        ("site = 7 AND kind = 1 AND ", "docs_scoped"),
        ("site = 7 AND ", "docs_plain"),
        ("", "docs_plain"),
    ] {
        let plan = plan(&mut client, &query(scope))?;
        assert!(plan.contains(index), "\"{scope}\": {plan}");
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
        ("('a', 1, '000000000000007f')", true),
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
