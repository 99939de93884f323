//! Orders by distance: from the index where it pays, page by page, without rows that have no
//! fingerprint, and at a cost that tells what is read before the first row.
use crate::search::forms::{create, with_center};
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::oracle::{Way, assert_way, explain, plan};
use crate::support::table::{FINGERPRINT, TYPES, Table, value};
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;

#[test]
fn nulls_are_left_out_of_an_order_if_asked() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        let center = fp.literal(Shape::Balls.center(1));
        let query = |distance: &str| {
            format!(
                "SELECT coalesce(array_agg(({distance})::bigint), '{{}}') FROM (SELECT fp FROM \
                    docs \
                 WHERE fp IS NOT NULL ORDER BY fp <~> {center}) near"
            )
        };
        let distance = format!("fp <#> {center}");
        Way::Sequential.set(&mut client)?;
        let expected: Vec<i64> = value(&mut client, &query(&distance))?;
        assert_way(&mut client, Way::Index, table.index, &query(&distance))?;
        client.batch_execute("SET enable_sort = off")?;
        let shown = plan(&mut client, &query(&distance))?;
        assert!(
            shown.contains("Order By: ") && shown.contains("IS NOT NULL"),
            "{shown}"
        );
        let found: Vec<i64> = value(&mut client, &query(&distance))?;
        assert!(found == expected && found.is_sorted(), "{}", fp.name);
    }
    Ok(())
}

/// The first page of the nearest, those equally far by their number: the form for versions that
/// cannot sort an index's order any further.
const FIRST_PAGE: &str = "SELECT id FROM (SELECT id, fp <~> {q} AS d FROM docs ORDER BY fp <~> {q} \
                          FETCH FIRST 20 ROWS WITH TIES) near ORDER BY d, id LIMIT 20";

#[test]
fn pages_of_the_nearest_come_from_the_index() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        let all = with_center(fp, "SELECT id FROM docs ORDER BY {d}, id");
        let ids_of = |client: &mut Client, query: &str| -> Result<Vec<i64>> {
            value(
                client,
                &format!("SELECT array_agg(id) FROM ({query}) AS page"),
            )
        };
        client.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
        let expected = ids_of(&mut client, &all)?;
        client.batch_execute("RESET enable_indexscan; RESET enable_bitmapscan")?;

        let first = with_center(fp, FIRST_PAGE);
        let shown = plan(&mut client, &first)?;
        let mark = format!("Index Scan using {} on docs", table.index);
        assert!(
            shown.contains(&mark) && shown.contains("Order By: "),
            "{shown}"
        );
        let page = ids_of(&mut client, &first)?;
        assert_eq!(page, expected[..20]);

        // The next page, from the last row of the one before.
        let last = page[19];
        let distance: i32 = value(
            &mut client,
            &with_center(
                fp,
                &format!("SELECT fp <#> {{q}} FROM docs WHERE id = {last}"),
            ),
        )?;
        let after = format!("FROM docs WHERE (fp <~> {{q}}, id) > ({distance}, {last})");
        let next = with_center(fp, &FIRST_PAGE.replace("FROM docs", &after));
        let shown = plan(&mut client, &next)?;
        assert!(
            shown.contains(&mark) && shown.contains("Order By: "),
            "{shown}"
        );
        assert_eq!(ids_of(&mut client, &next)?, expected[20..40]);

        // From version 17 on the server sorts what comes from the index any further by itself.
        let version: i32 = value(
            &mut client,
            "SELECT current_setting('server_version_num')::int",
        )?;
        let plain = with_center(fp, "SELECT id FROM docs ORDER BY fp <~> {q}, id LIMIT 20");
        let shown = plan(&mut client, &plain)?;
        assert_eq!(
            shown.contains("Incremental Sort"),
            version >= 170_000,
            "{shown}"
        );
        assert_eq!(ids_of(&mut client, &plain)?, expected[..20]);
    }
    Ok(())
}

/// The costs of a plan: until the first row, and until the last.
fn costs(client: &mut Client, query: &str) -> Result<(f64, f64)> {
    let shown = explain(client, "COSTS", query)?;
    ensure!(shown.starts_with("Index"), "{shown}");
    let range = shown.split("cost=").nth(1).unwrap_or_default();
    let (first, rest) = range.split_once("..").context("a range of costs")?;
    let all = rest.split(' ').next().unwrap_or_default();
    Ok((first.parse()?, all.parse()?))
}

#[test]
fn rows_that_are_sorted_first_are_paid_for_first() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Uniform.values(60_000, 6), "")?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    client.batch_execute("SET jit = off; SET max_parallel_workers_per_gather = 0")?;
    // What a plan chosen by cost looks like.
    let all = "SELECT fp FROM docs ORDER BY fp <~> '0123456789abcdef'";
    assert!(plan(&mut client, all)?.starts_with("Sort"));
    let ten = format!("{all} LIMIT 10");
    assert!(plan(&mut client, &ten)?.contains("Index Only Scan"));

    client.batch_execute(
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off",
    )?;
    let near = "SELECT id FROM docs WHERE fp <~> '0123456789abcdef' <= 24";
    let (unordered, _) = costs(&mut client, near)?;
    let by_center = format!("{near} ORDER BY fp <~> '0123456789abcdef'");
    let (by_center, by_center_to_all) = costs(&mut client, &by_center)?;
    let by_another = format!("{near} ORDER BY fp <~> 'fedcba9876543210'");
    let (by_another, _) = costs(&mut client, &by_another)?;
    assert!(unordered < by_center, "{unordered} {by_center}");
    assert!(by_center < by_another, "{by_center} {by_another}");
    assert!(by_center < by_center_to_all / 2.0);
    // The same as parameters of a generic plan.
    client.batch_execute(
        "SET plan_cache_mode = force_generic_plan; \
         PREPARE by_center(fingerprint) AS SELECT id FROM docs WHERE fp <~> $1 <= 24 \
         ORDER BY fp <~> $1; \
         PREPARE by_another(fingerprint, fingerprint) AS SELECT id FROM docs \
         WHERE fp <~> $1 <= 24 ORDER BY fp <~> $2",
    )?;
    let q = "'0123456789abcdef'";
    let (by_center, _) = costs(&mut client, &format!("EXECUTE by_center({q})"))?;
    let (by_another, _) = costs(&mut client, &format!("EXECUTE by_another({q}, {q})"))?;
    assert!(by_center < by_another, "{by_center} {by_another}");

    // Index-only, each row is looked up once more.
    client.batch_execute("SET enable_indexonlyscan = on")?;
    let (_, alone) = costs(&mut client, all)?;
    let unordered = "SELECT fp FROM docs WHERE fp <~> '0123456789abcdef' <= 64";
    let (_, unordered) = costs(&mut client, unordered)?;
    assert!(alone > 3.0 * unordered, "{alone} {unordered}");
    Ok(())
}
