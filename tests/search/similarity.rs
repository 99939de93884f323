//! Conditions on `fingerprint_similarity`. Each returns the same rows by the index as by a
//! sequential scan, for each type, with bounds between two radii, at the ends and beyond.
use crate::search::forms::{create, with_center};
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::oracle::{Way, assert_way, compare, plan};
use crate::support::table::{TYPES, Type, value};
use anyhow::Result;
use neardup_tests::Database;
use postgres::Client;

/// Bounds in SQL: some are radii of 64 or 128 bits, some are next to and between radii, and there
/// are the ends. Larger bounds are an error.
const BOUNDS: [&str; 18] = [
    "0.8",
    "0.8125",
    "0.812500000000001",
    "0.81::float4",
    "0.828125",
    "0.9",
    "0.75::float8",
    "0.01",
    "1e-300",
    "0",
    "0::smallint",
    "-0.1",
    "'-Infinity'",
    "1",
    "1::bigint",
    "0.9999999999999999",
    "'NaN'",
    "'NaN'::float4",
];

/// Returns the similarity in terms of a distance that the planner does not recognize.
fn oracle(fp: Type) -> String {
    let bits = match fp.name {
        "fingerprint128" => 128,
        "fingerprint256" => 256,
        _ => 64,
    };
    // greatest() would return 0 for NULL.
    format!(
        "(CASE WHEN fp IS NOT NULL THEN greatest(0, 1 - 2 * {{d}}::float8 / {bits}) END)::float8"
    )
}

/// Conditions that an index serves, and the equivalent condition for the sequential scan. `{j}` is
/// the similarity and `{s}` the bound.
const INDEXED: [(&str, &str); 8] = [
    ("fingerprint_similarity(fp, {q}) >= {s}", "{j} >= {s}"),
    ("fingerprint_similarity({q}, fp) >= {s}", "{j} >= {s}"),
    ("{s} <= fingerprint_similarity(fp, {q})", "{j} >= {s}"),
    ("NOT fingerprint_similarity(fp, {q}) < {s}", "{j} >= {s}"),
    ("fingerprint_similarity(fp, {q}) > {s}", "{j} > {s}"),
    ("{s} < fingerprint_similarity({q}, fp)", "{j} > {s}"),
    ("NOT fingerprint_similarity(fp, {q}) <= {s}", "{j} > {s}"),
    (
        "fingerprint_similarity(fp, {q}) BETWEEN {s} AND 0.95",
        "{j} >= {s} AND {j} <= 0.95",
    ),
];

/// The opposite conditions, and equality, for which a table may be read whole.
const OTHERS: [(&str, &str); 6] = [
    ("fingerprint_similarity(fp, {q}) < {s}", "{j} < {s}"),
    ("fingerprint_similarity(fp, {q}) <= {s}", "{j} <= {s}"),
    ("{s} > fingerprint_similarity(fp, {q})", "{j} < {s}"),
    ("{s} = fingerprint_similarity(fp, {q})", "{j} = {s}"),
    ("fingerprint_similarity(fp, {q}) <> {s}", "{j} <> {s}"),
    (
        "(fingerprint_similarity(fp, {q}) >= {s}) IS NOT TRUE",
        "({j} >= {s}) IS NOT TRUE",
    ),
];

/// The sorted numbers that a query returns as an array.
fn ids(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let mut ids: Vec<i64> = value(client, query)?;
    ids.sort_unstable();
    Ok(ids)
}

#[test]
fn every_bound_finds_what_a_sequential_scan_finds() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        let filled = |form: &str, bound: &str| {
            with_center(fp, &form.replace("{j}", &oracle(fp)).replace("{s}", bound))
        };
        let all: i64 = value(&mut client, "SELECT count(fp) FROM docs")?;
        for bound in BOUNDS {
            for (form, filter) in INDEXED {
                let (forms, filter) = ([filled(form, bound)], filled(filter, bound));
                let found = compare(&mut client, "docs", table.index, &filter, &forms, true)?;
                if ["0", "-0.1", "'-Infinity'"].contains(&bound) && form.contains(">= {s}") {
                    assert_eq!(found as i64, all, "{bound}");
                }
            }
            for (form, filter) in OTHERS {
                let (forms, filter) = ([filled(form, bound)], filled(filter, bound));
                compare(&mut client, "docs", table.index, &filter, &forms, false)?;
            }
        }
        let exactly = filled("fingerprint_similarity(fp, {q}) = 1", "");
        let filter = filled("{j} = 1", "");
        compare(&mut client, "docs", table.index, &filter, &[exactly], true)?;
        let none = filled("fingerprint_similarity(fp, {q}) >= NULL::float8", "");
        let found = compare(&mut client, "docs", table.index, "false", &[none], true)?;
        assert_eq!(found, 0);
    }
    Ok(())
}

#[test]
fn parameters_reach_the_index_in_generic_plans() -> Outcome {
    const BOUNDS: [&str; 10] = [
        "0.8",
        "0.8125",
        "0.5",
        "0",
        "-1",
        "1",
        "1.5",
        "'NaN'",
        "'Infinity'",
        "NULL",
    ];
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        client.batch_execute("SET plan_cache_mode = force_generic_plan")?;
        let center = fp.literal(Shape::Balls.center(1));
        let mut rows = 0;
        for comparison in [">=", ">"] {
            client.batch_execute(&format!(
                "DEALLOCATE ALL; PREPARE search ({}, float8) AS SELECT coalesce(array_agg(id), \
                 '{{}}') FROM docs WHERE fingerprint_similarity(fp, $1) {comparison} $2",
                fp.name
            ))?;
            for bound in BOUNDS {
                Way::Sequential.set(&mut client)?;
                let filter = format!("{} {comparison} {bound}::float8", oracle(fp));
                let expected = ids(
                    &mut client,
                    &format!(
                        "SELECT coalesce(array_agg(id), '{{}}') FROM docs WHERE {}",
                        with_center(fp, &filter)
                    ),
                )?;
                let execute = format!("EXECUTE search ({center}, {bound})");
                for way in Way::INDEXED {
                    // A generic plan outlives the settings at planning time.
                    client.batch_execute("DISCARD PLANS")?;
                    assert_way(&mut client, way, table.index, &execute)?;
                    let found = ids(&mut client, &execute)?;
                    assert!(found == expected, "{way:?}, {}: {bound}", fp.name);
                    rows += found.len();
                }
            }
        }
        assert!(rows > 0, "{}", fp.name);
    }
    Ok(())
}

#[test]
fn joins_are_searched_from_either_side_with_bounds_from_columns_too() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        for (condition, bound) in [
            ("fingerprint_similarity(a.fp, docs.fp) >= 0.9", "0.9"),
            ("0.9 <= fingerprint_similarity(docs.fp, a.fp)", "0.9"),
            (
                "fingerprint_similarity(a.fp, docs.fp) >= a.bound",
                "a.bound",
            ),
        ] {
            let query = |condition: &str| {
                format!(
                    "SELECT array_agg(a.id * 1000000 + docs.id) FROM \
                     (SELECT *, 0.8 + id % 20 / 100.0::float8 AS bound FROM docs \
                      WHERE id <= 100 OFFSET 0) a JOIN docs ON {condition}"
                )
            };
            let estimate = oracle(fp)
                .replace("{d}", "abs(a.fp <#> docs.fp)")
                .replace("WHEN fp IS", "WHEN docs.fp IS");
            Way::Sequential.set(&mut client)?;
            let expected = ids(&mut client, &query(&format!("{estimate} >= {bound}")))?;
            assert!(expected.len() > 100, "{} pairs", expected.len());
            Way::Index.set(&mut client)?;
            let shown = plan(&mut client, &query(condition))?;
            let mark = format!("Index Scan using {} on docs", table.index);
            assert!(shown.contains(&mark), "{shown}");
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
fn a_radius_is_that_of_its_similarity() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (function, bits) in [("minhash64", 64), ("minhash128", 128)] {
        let wrong: i64 = value(
            &mut client,
            &format!(
                "SELECT count(*) FROM generate_series(0, 1000) n, generate_series(0, {bits}) d \
                 WHERE (greatest(0, 1 - 2 * d::float8 / {bits}) >= n / 1000.0::float8) \
                 <> (d <= neardup_radius('{function}', n / 1000.0))"
            ),
        )?;
        assert_eq!(wrong, 0, "{function}");
    }
    Ok(())
}
