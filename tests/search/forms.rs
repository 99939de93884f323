//! Conditions on a distance in every form. Each returns the same rows by the index as by a
//! sequential scan, for each type, with literals and with parameters, and for rows without a
//! fingerprint.
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::oracle::{Way, assert_way, compare, plan};
use crate::support::table::{FINGERPRINT, TYPES, Table, Type, value};
use anyhow::Result;
use neardup_tests::Database;
use postgres::Client;

const ROWS: usize = 4_000;

/// Conditions, and the equivalent condition for the sequential scan. `{d}` is a distance that the
/// planner does not recognize.
const FORMS: [(&str, &str); 43] = [
    ("fp <~> {q} <= 9.5::float8", "{d} <= 9"),
    ("fp <~> {q} <= 9::float8", "{d} <= 9"),
    ("fp <~> {q} < 9::float8", "{d} < 9"),
    ("9.99::float4 >= {q} <~> fp", "{d} <= 9"),
    ("9::float4 > fp <~> {q}", "{d} < 9"),
    ("NOT fp <~> {q} > 6.5::float8", "{d} <= 6"),
    ("NOT 7::float4 <= fp <~> {q}", "{d} < 7"),
    ("fp <~> {q} <= 'NaN'::float8", "fp IS NOT NULL"),
    ("fp <~> {q} < 'NaN'::float4", "fp IS NOT NULL"),
    ("fp <~> {q} < 'Infinity'::float8", "fp IS NOT NULL"),
    ("fp <~> {q} <= '-Infinity'::float8", "false"),
    ("fp <~> {q} <= 1e300::float8", "fp IS NOT NULL"),
    ("fp <~> {q} <= -0.5::float8", "false"),
    ("fp <~> {q} < 0.5::float8", "{d} = 0"),
    (
        "fp <~> {q} BETWEEN 2.5::float8 AND 7.5::float8",
        "{d} BETWEEN 3 AND 7",
    ),
    ("fp <~> {q} = 5", "{d} = 5"),
    ("5::bigint = {q} <~> fp", "{d} = 5"),
    ("fp <~> {q} = 5::float8", "{d} = 5"),
    ("fp <~> {q} = 0::float4", "{d} = 0"),
    ("fp <~> {q} = 5.5::float8", "false"),
    ("fp <~> {q} = -1", "false"),
    ("fp <~> {q} = 1000", "false"),
    ("fp <~> {q} <= 9.5", "{d} <= 9"),
    ("fp <~> {q} <= 8.9999999999999999999999", "{d} <= 8"),
    ("9.0 > fp <~> {q}", "{d} < 9"),
    ("fp <~> {q} < 'NaN'::numeric", "fp IS NOT NULL"),
    ("fp <~> {q} <= 1e400", "fp IS NOT NULL"),
    ("fp <~> {q} <= -0.5", "false"),
    ("fp <~> {q} = 5.0", "{d} = 5"),
    ("fp <~> {q} = 5.5", "false"),
    ("(fp <~> {q})::int <= 9", "{d} <= 9"),
    ("9 > ({q} <~> fp)::bigint", "{d} < 9"),
    ("NOT (fp <~> {q})::float8 > 7.5", "{d} <= 7"),
    ("(fp <~> {q}) + 3 <= 9", "{d} <= 6"),
    ("60 - (fp <~> {q}) > 52", "{d} < 8"),
    ("coalesce(fp <~> {q}, 1000) <= 9", "{d} <= 9"),
    ("fp <~> {q} IN (0, 1, 2, 3)", "{d} <= 3"),
    ("fp <~> {q} = ANY ('{7,7,2000,-1}'::bigint[])", "{d} = 7"),
    ("fp <~> {q} IN (-1, 2000)", "false"),
    ("fp IS NULL", "{d} IS NULL"),
    ("fp IS NOT NULL", "{d} IS NOT NULL"),
    ("fp IS NOT NULL AND fp <~> {q} <= 9", "{d} <= 9"),
    ("fp IS NULL AND fp <~> {q} <= 9", "false"),
];

/// Returns a form with a type's literal for `{q}` and a distance for `{d}`.
pub fn with_center(fp: Type, form: &str) -> String {
    form.replace("{d}", "abs(fp <#> {q})")
        .replace("{q}", &fp.literal(Shape::Balls.center(1)))
}

/// A database with an indexed table of a type.
pub fn create(fp: Type) -> Result<(Database, Client, Table)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(fp);
    table.create_indexed(&mut client, &Shape::Balls.values(ROWS, 1), "")?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    Ok((database, client, table))
}

#[test]
fn each_form_finds_what_a_sequential_scan_finds() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        let mut found = 0;
        for (form, filter) in FORMS {
            let (form, filter) = (with_center(fp, form), with_center(fp, filter));
            let forms = [form];
            found += compare(&mut client, "docs", table.index, &filter, &forms, true)?;
        }
        assert!(found > ROWS, "{}: {found} rows", fp.name);
        // OR takes two scans, which only a bitmap combines.
        for (either, filter) in [
            ("fp <~> {q} <= 3 OR fp IS NULL", "{d} <= 3 OR fp IS NULL"),
            ("fp <~> {q} IN (5, 0, 1, 7)", "{d} IN (5, 0, 1, 7)"),
        ] {
            let (either, filter) = (with_center(fp, either), with_center(fp, filter));
            let query = format!("SELECT id FROM docs WHERE {either}");
            assert_way(&mut client, Way::Bitmap, table.index, &query)?;
            compare(&mut client, "docs", table.index, &filter, &[either], false)?;
        }
        // Below NOT, NULL and false differ; a rewrite must not confuse them.
        for (form, filter) in [
            (
                "NOT coalesce(fp <~> {q}, 64) <= 9",
                "NOT coalesce({d}, 64) <= 9",
            ),
            ("coalesce(fp <~> {q}, 0) <= 9", "coalesce({d}, 0) <= 9"),
            ("fp <~> {q} NOT IN (5, 0, 7)", "{d} NOT IN (5, 0, 7)"),
            ("NOT (fp <~> {q})::int = 5", "NOT {d} = 5"),
            ("(fp <~> {q} <= 9.5) IS NOT TRUE", "({d} <= 9) IS NOT TRUE"),
        ] {
            let count = |condition: &str| {
                format!(
                    "SELECT count(*) FROM docs WHERE {}",
                    with_center(fp, condition)
                )
            };
            let found: i64 = value(&mut client, &count(form))?;
            assert_eq!(found, value::<i64>(&mut client, &count(filter))?, "{form}");
        }
    }
    Ok(())
}

/// The sorted numbers that a query returns as an array.
fn ids(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let mut ids: Vec<i64> = value(client, query)?;
    ids.sort_unstable();
    Ok(ids)
}

#[test]
fn parameters_of_every_type_reach_the_index_in_generic_plans() -> Outcome {
    const PARAMETERS: [(&str, &str, &[&str]); 8] = [
        (
            "numeric",
            "fp <~> $1 <= $2",
            &["8.5", "9", "'NaN'", "-0.1", "1e400", "NULL"],
        ),
        ("numeric", "$2 = fp <~> $1", &["5", "5.0", "5.5", "'NaN'"]),
        (
            "float8",
            "fp <~> $1 <= $2",
            &["8.5", "9", "'NaN'", "'Infinity'", "'-Infinity'", "-0.1"],
        ),
        (
            "float8",
            "$2 > fp <~> $1",
            &["8.5", "9", "'NaN'", "'Infinity'", "0", "NULL"],
        ),
        ("float4", "fp <~> $1 < $2", &["8.5", "9", "'NaN'", "1e38"]),
        ("int", "fp <~> $1 = $2", &["0", "5", "-1", "2000", "NULL"]),
        (
            "bigint",
            "$2 = $1 <~> fp",
            &["0", "5", "'-9223372036854775808'"],
        ),
        (
            "float8",
            "fp <~> $1 = $2",
            &["0", "5", "5.5", "'NaN'", "-0.0"],
        ),
    ];
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        client.batch_execute("SET plan_cache_mode = force_generic_plan")?;
        let center = fp.literal(Shape::Balls.center(1));
        let mut rows = 0;
        for (number_type, condition, numbers) in PARAMETERS {
            client.batch_execute(&format!(
                "DEALLOCATE ALL; PREPARE search ({}, {number_type}) AS \
                 SELECT coalesce(array_agg(id), '{{}}') FROM docs WHERE {condition}",
                fp.name
            ))?;
            for number in numbers {
                Way::Sequential.set(&mut client)?;
                let literal = condition
                    .replace("fp <~> $1", "abs(fp <#> $1)")
                    .replace("$1 <~> fp", "abs($1 <#> fp)")
                    .replace("$1", &center)
                    .replace("$2", &format!("{number}::{number_type}"));
                let expected = ids(
                    &mut client,
                    &format!("SELECT coalesce(array_agg(id), '{{}}') FROM docs WHERE {literal}"),
                )?;
                let execute = format!("EXECUTE search ({center}, {number})");
                for way in Way::INDEXED {
                    // A generic plan outlives the settings at planning time.
                    client.batch_execute("DISCARD PLANS")?;
                    assert_way(&mut client, way, table.index, &execute)?;
                    let found = ids(&mut client, &execute)?;
                    assert!(
                        found == expected,
                        "{way:?}, {}: {condition}, {number}",
                        fp.name
                    );
                    rows += found.len();
                }
            }
        }
        assert!(rows > ROWS, "{}: {rows} rows", fp.name);
    }
    Ok(())
}

#[test]
fn forms_in_views_reach_the_index_with_an_empty_search_path() -> Outcome {
    let (database, mut client, table) = create(FINGERPRINT)?;
    client.batch_execute(&with_center(
        FINGERPRINT,
        "CREATE VIEW distances AS SELECT id, fp <~> {q} AS d FROM docs; \
         CREATE VIEW near AS SELECT id FROM distances WHERE d <= 7.5::float8; \
         CREATE VIEW at AS SELECT id FROM distances WHERE d = 5; \
         CREATE VIEW none AS SELECT id FROM docs WHERE fp IS NULL",
    ))?;
    let mut elsewhere = database.connect()?;
    elsewhere.batch_execute("SET search_path = ''")?;
    for (view, filter) in [
        ("near", "{d} <= 7"),
        ("at", "{d} = 5"),
        ("none", "fp IS NULL"),
    ] {
        Way::Sequential.set(&mut client)?;
        let filter = with_center(FINGERPRINT, filter);
        let all = format!("SELECT coalesce(array_agg(id), '{{}}') FROM docs WHERE {filter}");
        let expected = ids(&mut client, &all)?;
        assert!(!expected.is_empty(), "{view}");
        let query = format!("SELECT coalesce(array_agg(id), '{{}}') FROM public.{view}");
        for way in Way::INDEXED {
            assert_way(&mut elsewhere, way, table.index, &query)?;
            assert!(ids(&mut elsewhere, &query)? == expected, "{view}");
        }
    }
    Ok(())
}

#[test]
fn a_join_at_one_distance_is_searched_from_either_side() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        for condition in ["a.fp <~> docs.fp = 4", "4 = docs.fp <~> a.fp"] {
            let query = |condition: &str| {
                format!(
                    "SELECT array_agg(a.id * 1000000 + docs.id) FROM \
                     (SELECT * FROM docs WHERE id <= 100 OFFSET 0) a JOIN docs ON {condition}"
                )
            };
            Way::Sequential.set(&mut client)?;
            let expected = ids(&mut client, &query("abs(a.fp <#> docs.fp) = 4"))?;
            assert!(expected.len() > 100, "{} pairs", expected.len());
            Way::Index.set(&mut client)?;
            let shown = plan(&mut client, &query(condition))?;
            let mark = format!("Index Scan using {} on docs", table.index);
            assert!(shown.matches(&mark).count() >= 1, "{shown}");
            assert!(shown.contains("Index Cond: (fp <@ ball("), "{shown}");
            assert!(
                ids(&mut client, &query(condition))? == expected,
                "{condition}"
            );
        }
    }
    Ok(())
}

#[test]
fn rows_without_values_are_found_beside_a_scope() -> Outcome {
    let (_database, mut client, _table) = create(FINGERPRINT)?;
    client.batch_execute(
        "ALTER TABLE docs ADD site int; UPDATE docs SET site = nullif(id % 5, 0); \
         DROP INDEX docs_fp; CREATE INDEX docs_site ON docs USING neardup (site, fp)",
    )?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    for (form, filter) in [
        ("site IS NULL", "site IS NULL"),
        ("site IS NOT NULL", "site IS NOT NULL"),
        ("site IS NULL AND fp IS NULL", "site IS NULL AND fp IS NULL"),
        ("site = 3 AND fp IS NULL", "site = 3 AND {d} IS NULL"),
        ("site IS NOT NULL AND fp IS NULL", "site > 0 AND fp IS NULL"),
        ("site = 3 AND fp IS NOT NULL", "site = 3 AND {d} >= 0"),
        (
            "site IS NULL AND fp <~> {q} <= 9",
            "site IS NULL AND {d} <= 9",
        ),
        (
            "site IS NOT NULL AND fp <~> {q} <= 9",
            "site > 0 AND {d} <= 9",
        ),
        ("site = 3 AND site IS NULL", "false"),
    ] {
        let (form, filter) = (
            with_center(FINGERPRINT, form),
            with_center(FINGERPRINT, filter),
        );
        let found = compare(&mut client, "docs", "docs_site", &filter, &[form], true)?;
        assert!(found > 0 || filter == "false", "{filter}");
    }
    Ok(())
}

#[test]
fn rows_without_balls_and_signatures_are_found() -> Outcome {
    let (_database, mut client, _table) = create(FINGERPRINT)?;
    client.batch_execute(
        "DROP INDEX docs_fp; CREATE INDEX docs_ball ON docs USING neardup (ball(fp, 3)); \
         ALTER TABLE docs ADD sig minhash_signature; \
         UPDATE docs SET sig = minhash('some words of row ' || id % 50) WHERE id % 7 <> 0; \
         CREATE INDEX docs_sig ON docs USING neardup (sig)",
    )?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    for (index, form, filter) in [
        ("docs_ball", "ball(fp, 3) IS NULL", "fp IS NULL"),
        ("docs_ball", "ball(fp, 3) IS NOT NULL", "fp IS NOT NULL"),
        ("docs_sig", "sig IS NULL", "id % 7 = 0"),
        ("docs_sig", "sig IS NOT NULL", "id % 7 <> 0"),
    ] {
        let form = [form.to_owned()];
        let found = compare(&mut client, "docs", index, filter, &form, true)?;
        assert!(found > 0, "{filter}");
    }
    Ok(())
}

#[test]
fn bigints_equal_to_shorter_integers_are_found() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT i::bigint AS id, CASE WHEN i % 9 > 0 THEN i - 2000 \
            END::bigint \
         AS h FROM generate_series(1, 4000) i; INSERT INTO docs VALUES (5000, 4294967295), \
         (5001, 65535), (5002, -4294967297); \
         CREATE INDEX docs_h ON docs USING neardup (h bigint_hamming_ops); ANALYZE docs",
    )?;
    for number in [
        "-1::int",
        "-1::smallint",
        "7",
        "32767::smallint",
        "-1999",
        "1900::smallint",
    ] {
        let forms = [format!("h = {number}"), format!("{number} = h")];
        let filter = format!("h + 0 = {number}");
        compare(&mut client, "docs", "docs_h", &filter, &forms, true)?;
        // The elements of an array are searched one by one, into a bitmap.
        let any = format!("h = ANY (ARRAY[{number}])");
        let query = format!("SELECT id FROM docs WHERE {any}");
        assert_way(&mut client, Way::Bitmap, "docs_h", &query)?;
        compare(&mut client, "docs", "docs_h", &filter, &[any], false)?;
    }
    Ok(())
}
