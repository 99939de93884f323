//! Equality in scopes: the index, the constraint, the trigger and all pairs compare values of a
//! column before the fingerprint exactly as the type's own `=` does.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::oracle::{Way, assert_way};
use crate::support::skip::skip_case;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;

/// Types that an index accepts as a scope, and values of each, including equal values that are
/// written or stored differently.
const TYPES: &[(&str, &[&str])] = &[
    ("smallint", &["0", "-1", "32767"]),
    ("integer", &["0", "-1", "1"]),
    ("bigint", &["0", "-1", "1", "4294967296"]),
    ("boolean", &["true", "false"]),
    ("\"char\"", &["a", "A", ""]),
    ("text", &["a", "A", "a ", "", "a\u{301}", "\u{e1}"]),
    ("varchar(20)", &["a", "A", "a ", ""]),
    ("character(5)", &["a", "a  ", "A", "", " "]),
    ("text COLLATE \"C\"", &["a", "A", "a "]),
    (
        "text COLLATE nocase",
        &["a", "A", "a ", "\u{e1}", "a\u{301}", "\u{c1}"],
    ),
    ("varchar(9) COLLATE nocase", &["a", "A", "b"]),
    ("character(9) COLLATE nocase", &["a", "A ", "b"]),
    ("text[] COLLATE nocase", &["{a}", "{A}", "{b}", "{a,NULL}"]),
    ("name", &["a", "A", "a "]),
    (
        "uuid",
        &[
            "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
    ),
    ("bytea", &["\\x", "\\x00", "\\x0000"]),
    ("date", &["2000-01-01", "infinity", "-infinity"]),
    ("time", &["10:00", "10:00:00.000001", "24:00"]),
    ("timetz", &["10:00+00", "11:00+01", "10:00-00"]),
    ("timestamp", &["2000-01-01 00:00", "infinity"]),
    (
        "timestamptz",
        &["2000-01-01 00:00+00", "2000-01-01 01:00+01", "infinity"],
    ),
    (
        "interval",
        &["1 day", "24 hours", "1 month", "30 days", "-1 day"],
    ),
    (
        "numeric",
        &[
            "1", "1.0", "1.000", "0", "-0.0", "NaN", "Infinity", "1e3", "1000.00",
        ],
    ),
    ("real", &["0", "-0", "NaN", "-NaN", "0.1", "1e30"]),
    (
        "double precision",
        &["0", "-0", "NaN", "-NaN", "0.1", "Infinity"],
    ),
    ("inet", &["10.0.0.1", "10.0.0.1/32", "10.0.0.1/24", "::1"]),
    ("cidr", &["10.0.0.0/24", "10.0.0.0/25", "10/8"]),
    (
        "macaddr",
        &["08:00:2b:01:02:03", "08002b010203", "08-00-2b-01-02-04"],
    ),
    (
        "macaddr8",
        &[
            "08:00:2b:01:02:03:04:05",
            "08002b0102030405",
            "08:00:2b:01:02:03",
        ],
    ),
    ("pg_lsn", &["0/0", "0/10", "00/10"]),
    ("oid", &["0", "4294967295"]),
    ("regclass", &["pg_class", "pg_catalog.pg_class", "pg_type"]),
    ("regtype", &["int4", "integer", "text"]),
    (
        "jsonb",
        &[
            "{\"a\": 1}",
            "{\"a\": 1.00}",
            "1",
            "\"1\"",
            "{\"b\":2,\"a\":1}",
            "{\"a\":1,\"b\":2}",
        ],
    ),
    ("colour", &["red", "green"]),
    ("int4range", &["[1,2]", "[1,3)", "(0,3)", "empty", "[1,)"]),
    ("numrange", &["[1,2]", "[1.0,2.00]", "[1,2)", "empty"]),
    (
        "tstzrange",
        &["[2000-01-01 00:00+00,)", "[2000-01-01 01:00+01,)"],
    ),
    ("int4multirange", &["{[1,3),[5,6)}", "{[1,2],[5,5]}", "{}"]),
    (
        "integer[]",
        &["{1,2}", "[0:1]={1,2}", "{}", "{NULL}", "{{1,2}}", "{2,1}"],
    ),
    ("numeric[]", &["{1.0}", "{1}", "{1.00,NULL}"]),
    ("double precision[]", &["{0}", "{-0}", "{NaN}"]),
    ("text[]", &["{a}", "{A}", "{\"\"}"]),
    ("citext[]", &["{a}", "{A}", "{b}"]),
    ("colour[]", &["{red}", "{green,red}"]),
    ("word", &["a", "A", "b"]),
    ("amount", &["1", "1.0"]),
    ("numbers", &["{1}", "[0:0]={1}"]),
    ("span", &["[1,2]", "[1,3)"]),
];

/// Types that are refused, each with the SQLSTATE.
fn refused() -> Vec<(&'static str, SqlState)> {
    vec![
        ("citext", SqlState::FEATURE_NOT_SUPPORTED),
        ("email", SqlState::FEATURE_NOT_SUPPORTED),
        ("pair", SqlState::UNDEFINED_OBJECT),
        ("json", SqlState::UNDEFINED_OBJECT),
        ("point", SqlState::UNDEFINED_OBJECT),
        ("bit(8)", SqlState::UNDEFINED_OBJECT),
        ("money", SqlState::UNDEFINED_OBJECT),
        ("point[]", SqlState::UNDEFINED_FUNCTION),
        ("bit(3)[]", SqlState::UNDEFINED_FUNCTION),
        ("fingerprint", SqlState::INVALID_OBJECT_DEFINITION),
    ]
}

const SETUP: &str = "\
    CREATE TYPE colour AS ENUM ('red', 'green', 'blue'); \
    CREATE TYPE pair AS (a int, b text); \
    CREATE DOMAIN word AS text; CREATE DOMAIN amount AS numeric; CREATE DOMAIN numbers AS int[]; \
    CREATE DOMAIN span AS int4range; \
    CREATE FUNCTION disagreements() RETURNS SETOF text LANGUAGE plpgsql AS $$ \
    DECLARE a record; b record; same boolean; refused boolean; stored int; \
    BEGIN \
        FOR a IN SELECT * FROM raw LOOP FOR b IN SELECT * FROM raw LOOP \
            SELECT x.site = y.site INTO same FROM raw x, raw y WHERE x.n = a.n AND y.n = b.n; \
            DELETE FROM kept; DELETE FROM checked; \
            INSERT INTO kept SELECT site, '0' FROM raw WHERE n = a.n; \
            INSERT INTO checked SELECT site, '0' FROM raw WHERE n = a.n; \
            refused := false; \
            BEGIN INSERT INTO kept SELECT site, '1' FROM raw WHERE n = b.n; \
            EXCEPTION WHEN exclusion_violation THEN refused := true; END; \
            INSERT INTO checked SELECT site, '1' FROM raw WHERE n = b.n; \
            GET DIAGNOSTICS stored = ROW_COUNT; \
            IF same IS DISTINCT FROM refused THEN \
                RETURN NEXT format('constraint: %s and %s', a.site, b.site); END IF; \
            IF same IS DISTINCT FROM (stored = 0) THEN \
                RETURN NEXT format('trigger: %s and %s', a.site, b.site); END IF; \
        END LOOP; END LOOP; \
    END $$";

const CITEXT: &str = "CREATE EXTENSION citext; CREATE DOMAIN email AS citext";
const NOCASE: &str = "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', \
    deterministic = false)";

/// Optional features of servers: ICU and citext.
struct Available {
    icu: bool,
    citext: bool,
}

impl Available {
    fn has(&self, scope: &str) -> bool {
        (self.icu || !scope.ends_with("nocase"))
            && (self.citext || !["citext", "citext[]", "email"].contains(&scope))
    }
}

/// Creates the types of these tests that the server supports.
fn set_up(client: &mut Client) -> Result<Available> {
    client.batch_execute(SETUP)?;
    let nocase = client.batch_execute(NOCASE);
    let icu = code(&nocase) != Some(SqlState::FEATURE_NOT_SUPPORTED);
    if icu {
        nocase?;
    }
    let citext = value(
        client,
        "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citext')",
    )?;
    if citext {
        client.batch_execute(CITEXT)?;
    }
    for (is_available, what) in [(icu, "ICU"), (citext, "citext")] {
        if !is_available {
            skip_case(format!("some scopes: the server has no {what}"))?;
        }
    }
    Ok(Available { icu, citext })
}

/// Tables with a column of a type: `raw` has each value, `docs` each with many fingerprints.
fn create_tables(client: &mut Client, scope: &str, values: &[&str]) -> Result<()> {
    let plain = scope.split(" COLLATE").next().unwrap_or(scope);
    let rows: Vec<String> = (values.iter().enumerate())
        .map(|(n, value)| format!("({n}, '{value}'::{plain})"))
        .collect();
    client.batch_execute(&format!(
        "SET enable_seqscan = on; \
         DROP TABLE IF EXISTS raw, docs, kept, checked; \
         CREATE TABLE raw (n int, site {scope}); INSERT INTO raw VALUES {}; \
         CREATE TABLE docs (id bigint, site {scope}, fp bigint); \
         INSERT INTO docs SELECT row_number() OVER (), site, hashint8(k % 7) # (1 << (k % 5)) \
             FROM raw, generate_series(1, 60) AS k; \
         INSERT INTO docs VALUES (0, NULL, 0), (-1, NULL, 0); \
         CREATE INDEX docs_fp ON docs USING neardup (site, fp bigint_hamming_ops); \
         CREATE TABLE kept (site {scope}, fp bigint, \
             EXCLUDE USING neardup (site WITH =, fp bigint_hamming_ops WITH ~=)); \
         CREATE TABLE checked (site {scope}, fp bigint); \
         CREATE INDEX ON checked USING neardup (site, fp bigint_hamming_ops); \
         CREATE TRIGGER dedup BEFORE INSERT ON checked FOR EACH ROW \
             EXECUTE FUNCTION neardup_dedup('fp', 'scope=site', 'radius=3', 'action=skip')",
        rows.join(", ")
    ))?;
    Ok(())
}

fn compare(client: &mut Client, scope: &str, values: &[&str]) -> Outcome {
    create_tables(client, scope, values)?;
    let mut queries: Vec<String> = (0..values.len())
        .flat_map(|n| {
            let near = [
                "",
                " AND fp ~= hashint8(3)::bigint",
                " AND fp <~> hashint8(5) <= 9",
            ];
            near.map(|near| {
                format!(
                    "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM docs \
                     WHERE site = (SELECT site FROM raw WHERE n = {n}){near}"
                )
            })
        })
        .collect();
    queries.push(
        "SELECT array_agg(d.id * 1000 + r.n ORDER BY 1) FROM raw r JOIN docs d \
         ON d.site = r.site AND d.fp ~= hashint8(3)::bigint"
            .to_owned(),
    );
    for query in queries {
        Way::Sequential.set(client)?;
        let mut expected: Vec<i64> = value(client, &query)?;
        expected.sort_unstable();
        ensure!(!expected.is_empty(), "{query} finds nothing");
        for way in Way::INDEXED {
            assert_way(client, way, "docs_fp", &query)?;
            let mut found: Vec<i64> = value(client, &query)?;
            found.sort_unstable();
            ensure!(
                found == expected,
                "{way:?}, {query}: {found:?} instead of {expected:?}"
            );
        }
    }
    Way::Sequential.set(client)?;
    let expected: i64 = value(
        client,
        "SELECT count(*) FROM docs a JOIN docs b \
         ON a.site = b.site AND a.fp <~> b.fp <= 3 AND a.ctid < b.ctid",
    )?;
    let pairs: i64 = value(client, "SELECT count(*) FROM neardup_pairs('docs_fp', 3)")?;
    ensure!(
        pairs == expected,
        "all pairs: {pairs} instead of {expected}"
    );
    client.batch_execute("RESET ALL; SELECT neardup_index_check('docs_fp', true)")?;
    let disagreements: Vec<String> = value(client, "SELECT ARRAY(SELECT disagreements())")?;
    ensure!(disagreements.is_empty(), "{disagreements:?}");
    Ok(())
}

#[test]
fn a_scope_of_any_type_is_compared_by_the_equality_of_the_type() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let available = set_up(&mut client)?;
    for (scope, values) in TYPES.iter().filter(|(scope, _)| available.has(scope)) {
        compare(&mut client, scope, values).with_context(|| (*scope).to_owned())?;
    }
    Ok(())
}

#[test]
fn a_scope_whose_operator_class_compares_otherwise_is_refused() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let available = set_up(&mut client)?;
    for (scope, expected) in refused() {
        if !available.has(scope) {
            continue;
        }
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs; CREATE TABLE docs (site {scope}, fp bigint, \
             sig minhash_signature, print fingerprint)"
        ))?;
        for columns in [
            "site, fp bigint_hamming_ops",
            "site, ball(fp, 8)",
            "site, sig",
            "fp, site, print",
        ] {
            let index = format!("CREATE INDEX ON docs USING neardup ({columns})");
            let result = client.batch_execute(&index);
            assert_eq!(
                code(&result).as_ref(),
                Some(&expected),
                "{scope}: {result:?}"
            );
        }
        // Unlogged tables write an empty index as well; a partition's index is built later.
        client.batch_execute("ALTER TABLE docs SET UNLOGGED")?;
        let result = client.batch_execute("CREATE INDEX ON docs USING neardup (site, print)");
        assert_eq!(
            code(&result).as_ref(),
            Some(&expected),
            "{scope}: {result:?}"
        );
    }
    Ok(())
}

#[test]
fn the_error_names_the_column_and_its_hints_work() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    if !set_up(&mut client)?.citext {
        return Ok(());
    }
    client.batch_execute(
        "CREATE TABLE docs (id int, site citext, fp fingerprint); \
         INSERT INTO docs VALUES (1, 'a', '0000000000000000'), (2, 'A', '0000000000000001')",
    )?;
    let error = (client.batch_execute("CREATE INDEX ON docs USING neardup (site, fp)"))
        .expect_err("a citext is no text");
    let error = error.as_db_error().context("the server refuses it")?;
    // Since version 17 the server makes indexes with a restricted search_path.
    let plain = |text: Option<&str>| text.map(|text| text.replace("public.", ""));
    assert_eq!(
        plain(Some(error.message())).as_deref(),
        Some("column \"site\" of type citext cannot be compared in a neardup index")
    );
    assert_eq!(
        plain(error.detail()).as_deref(),
        Some(
            "The operator class compares the column's values as text. The types citext and text \
             have different rules for equality."
        )
    );
    let hint = error.hint().unwrap_or_default();
    assert!(
        hint.contains("(lower(site::text))") && hint.contains("(site::text)"),
        "{hint}"
    );
    let class = hint.split(": ").last().unwrap_or_default();
    let class = class
        .trim_end_matches('.')
        .replace("CLASS name", "CLASS citext_scope");

    let count = "SELECT count(*) FROM neardup_pairs('docs_fp', 3)";
    for (column, pairs) in [("(lower(site::text))", 1), ("(site::text)", 0)] {
        client.batch_execute(&format!(
            "CREATE INDEX docs_fp ON docs USING neardup ({column}, fp)"
        ))?;
        assert_eq!(value::<i64>(&mut client, count)?, pairs, "{column}");
        client.batch_execute("DROP INDEX docs_fp")?;
    }
    client.batch_execute(&class)?;
    client.batch_execute("DROP TABLE docs")?;
    compare(&mut client, "citext", &["a", "A", "b", "a "])?;
    compare(&mut client, "email", &["a", "A", "b"])
}

#[test]
fn no_hashable_type_of_the_catalogue_is_forgotten() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let available = set_up(&mut client)?;
    // Checks each type that has an operator class for this access method, directly or as an array,
    // range or enumeration. Balls, fingerprints and signatures cannot be scopes.
    let forgotten: Vec<String> = value(
        &mut client,
        &format!(
            "SELECT ARRAY(SELECT opcname::text FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod \
             WHERE amname = 'neardup' AND opcname ~ 'scope_ops$' AND opckeytype = 0 \
             AND opcintype::regtype::text NOT IN ('anyarray', 'anyenum', 'anyrange', \
                 'anymultirange') \
             AND opcintype <> ALL (ARRAY[{}]::regtype[]))",
            (TYPES.iter())
                .filter(|(name, _)| available.has(name))
                .filter_map(|(name, _)| name.split(['(', ' ']).next())
                .map(|name| format!("'{}'", name.replace("double", "double precision")))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    )?;
    assert!(
        forgotten.is_empty(),
        "{forgotten:?} have no values in this test"
    );
    Ok(())
}
