//! ORDER BY distance through the index: sorted, with rows without a fingerprint last.
use crate::support::Outcome;
use crate::support::data::{Random, Shape};
use crate::support::oracle::{Way, plan};
use crate::support::table::{FINGERPRINT, TYPES, Table, value};
use anyhow::{Result, ensure};
use neardup_tests::Database;
use postgres::Client;

/// Asserts that the rows nearest to `center` that meet `filter` (a WHERE clause or nothing) are
/// ordered by distance. Rows at one distance may be in any order.
fn nearest(client: &mut Client, table: &Table, center: u64, filter: &str, limit: i64) -> Outcome {
    let distance = format!("(fp <~> {})::int", table.fp.literal(center));
    let query = format!(
        "SELECT id, {distance} FROM docs {filter} ORDER BY fp <~> {} LIMIT {limit}",
        table.fp.literal(center)
    );
    let mut rows = |way: Way| -> Result<Vec<(Option<i32>, i64)>> {
        way.set(client)?;
        if way == Way::Index {
            let plan = plan(client, &query)?;
            let ordered = plan.contains("Index Scan using docs_fp") && plan.contains("Order By");
            ensure!(ordered, "{query}:\n{plan}");
        }
        let rows = client.query(&query, &[])?;
        Ok(rows.iter().map(|row| (row.get(1), row.get(0))).collect())
    };
    let (expected, mut found) = (rows(Way::Sequential)?, rows(Way::Index)?);
    let distances = |rows: &[(Option<i32>, i64)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
    ensure!(
        distances(&found) == distances(&expected),
        "other distances: {query}"
    );
    // The limit may choose among rows at the farthest distance; all nearer rows are the same.
    let last = found.last().map(|row| row.0);
    let mut nearer = expected;
    let whole = (found.len() as i64) < limit;
    found.retain(|row| whole || Some(row.0) != last);
    nearer.retain(|row| whole || Some(row.0) != last);
    found.sort_unstable();
    nearer.sort_unstable();
    ensure!(found == nearer, "other rows: {query}");
    Ok(())
}

#[test]
fn the_nearest_rows_of_every_shape() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (seed, shape) in (1..).zip(Shape::ALL) {
        let table = Table::new(TYPES[seed as usize % 4]);
        let values = shape.values(12_000, seed);
        table.create_indexed(&mut client, &values, "fillfactor = 50")?;
        let known = values.iter().copied().flatten().next().unwrap_or_default();
        for center in [shape.center(seed), known, Random::new(seed + 9).bits()] {
            let within = format!("WHERE fp <~> {} <= 12", table.fp.literal(center));
            for (filter, limit) in [
                ("", 1),
                ("", 10),
                ("", 700),
                ("", 100_000),
                ("WHERE id % 3 = 0", 20),
                (&within, 10),
                (&within, 100_000),
            ] {
                nearest(&mut client, &table, center, filter, limit)?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_nearest_rows_after_changes_and_with_a_large_table() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(
        &mut client,
        &Shape::Uniform.values(100_000, 3),
        "radius = 2",
    )?;
    for change in [
        "INSERT INTO docs SELECT id + 100000, fp FROM docs WHERE id % 5 = 0",
        "UPDATE docs SET fp = (fp::bigint # 3)::fingerprint WHERE id % 4 = 0",
        "DELETE FROM docs WHERE id % 3 = 0",
        "VACUUM (INDEX_CLEANUP ON) docs",
    ] {
        client.batch_execute(change)?;
        for seed in 0..4 {
            let near: i64 = value(
                &mut client,
                &format!(
                    "SELECT fp::bigint FROM docs WHERE id > 20000 + {seed} AND fp IS NOT NULL \
                        LIMIT 1"
                ),
            )?;
            let center = Random::new(seed).near(near as u64, 6);
            nearest(&mut client, &table, center, "", 25)?;
        }
    }
    Ok(())
}

#[test]
fn the_nearest_of_each_row_of_another_table() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    Table::new(FINGERPRINT).create_indexed(&mut client, &Shape::Balls.values(20_000, 5), "")?;
    client.batch_execute(
        "CREATE TABLE asked AS SELECT row_number() OVER () AS n, fp FROM docs WHERE id % 400 = 0",
    )?;
    // Compares distances only, because ties may be broken differently.
    let query = "SELECT array_agg(coalesce(d, -1)::bigint ORDER BY n, d) FROM asked CROSS JOIN \
        LATERAL \
        (SELECT (docs.fp <~> asked.fp)::int AS d FROM docs ORDER BY docs.fp <~> asked.fp LIMIT 5) \
        AS near";
    Way::Sequential.set(&mut client)?;
    let expected: Vec<i64> = value(&mut client, query)?;
    Way::Index.set(&mut client)?;
    let shown = plan(&mut client, query)?;
    assert!(shown.contains("Order By"), "{shown}");
    let found: Vec<i64> = value(&mut client, query)?;
    assert_eq!(found.len(), 250);
    assert_eq!(found, expected);
    Ok(())
}
