//! Orders by distance: the index is used where it is cheaper, page by page, without rows that have
//! no fingerprint, and its start-up cost includes the pages read before the first row.
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

/// The first page of the nearest rows, ties ordered by number, in a form for versions that cannot
/// sort an index's order further.
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

        // The next page starts after the last row of the one before.
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

        // From version 17 on, the server itself sorts rows from the index by further keys.
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

/// Returns the costs of a plan: to the first row, and to the last.
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
    // Form of a plan chosen by cost.
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

    // An index-only scan looks up each row once more.
    client.batch_execute("SET enable_indexonlyscan = on")?;
    let (_, alone) = costs(&mut client, all)?;
    let unordered = "SELECT fp FROM docs WHERE fp <~> '0123456789abcdef' <= 64";
    let (_, unordered) = costs(&mut client, unordered)?;
    assert!(alone > 3.0 * unordered, "{alone} {unordered}");
    Ok(())
}

#[test]
fn the_most_similar_come_from_the_index() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, table) = create(fp)?;
        client.batch_execute("SET enable_seqscan = off; SET enable_sort = off; SET jit = off")?;
        let s = with_center(fp, "fingerprint_similarity(fp, {q})");
        // NULLs are first, as DESC requires.
        let nulls: i64 = value(&mut client, "SELECT count(*) FROM docs WHERE fp IS NULL")?;
        let all = nulls + 50;
        for (order, limit, operator) in [
            (format!("{s} DESC"), all, "<#|>"),
            (format!("{s} DESC"), 10_000, "<#|>"),
            (format!("{s} DESC NULLS LAST"), 50, "<#>"),
            (format!("{s} DESC NULLS LAST"), 10_000, "<#>"),
            (format!("1 - {s}"), 50, "<#>"),
            (format!("1 - {s} NULLS FIRST"), all, "<#|>"),
            (format!("round(100 * {s}::numeric) DESC"), all, "<#|>"),
        ] {
            let page = format!("SELECT id, fp FROM docs ORDER BY {order} LIMIT {limit}");
            let query = format!(
                "SELECT array_agg(coalesce((1000 * {s})::bigint, -1) ORDER BY n) FROM \
                 (SELECT fp, row_number() OVER () AS n FROM ({page}) page) docs"
            );
            let shown = plan(&mut client, &query)?;
            ensure!(
                shown.contains(&format!("Order By: (fp {operator} ")),
                "{shown}"
            );
            let found: Vec<i64> = value(&mut client, &query)?;
            // With a second sort key, the planner does not rewrite the query.
            let plain = format!("SELECT id, fp FROM docs ORDER BY {order}, 1 LIMIT {limit}");
            let expected: Vec<i64> = value(&mut client, &query.replace(&page, &plain))?;
            assert_eq!(found, expected, "{}: {order}", fp.name);
        }
        // The output is still the similarity, and the condition excludes NULL.
        let query = format!(
            "SELECT array_agg((1000 * s)::bigint) FROM (SELECT {s} AS s FROM docs \
             WHERE {s} > 0.5 ORDER BY s DESC LIMIT 50) page"
        );
        assert_way(&mut client, Way::Index, table.index, &query)?;
        let found: Vec<i64> = value(&mut client, &query)?;
        assert!(
            found.is_sorted_by(|a, b| a >= b) && found.len() == 50,
            "{found:?}"
        );
        // The next key orders ties; a grouped query has no rows to order.
        for query in [
            format!("SELECT id FROM docs ORDER BY {s} DESC, id LIMIT 10"),
            format!("SELECT DISTINCT {s} FROM docs ORDER BY {s} DESC"),
            format!("SELECT {s}, count(*) FROM docs GROUP BY 1 ORDER BY {s} DESC"),
            format!("SELECT id FROM docs ORDER BY {s} LIMIT 10"),
            format!("SELECT id FROM docs ORDER BY {s} + random() DESC LIMIT 10"),
        ] {
            let shown = plan(&mut client, &query)?;
            ensure!(!shown.contains("<#"), "{query}:\n{shown}");
            client.batch_execute(&query)?;
        }
        let greatest = format!("SELECT max({s})::float8 FROM docs");
        let found: f64 = value(&mut client, &greatest)?;
        Way::Sequential.set(&mut client)?;
        assert_eq!(
            found,
            value::<f64>(&mut client, &format!("{greatest} OFFSET 0"))?
        );
    }
    Ok(())
}

#[test]
fn the_most_similar_of_scopes_parts_and_generic_plans() -> Outcome {
    let (_database, mut client, _table) = create(FINGERPRINT)?;
    client.batch_execute(
        "CREATE TABLE parts (id bigint, site int, fp fingerprint) PARTITION BY HASH (id); \
         CREATE TABLE part_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
         INSERT INTO parts SELECT id, id % 3, fp FROM docs; \
         CREATE INDEX ON parts USING neardup (site, fp); ANALYZE parts; \
         SET enable_seqscan = off; SET enable_sort = off; SET jit = off; \
         SET plan_cache_mode = force_generic_plan; \
         PREPARE page(fingerprint, int, int) AS SELECT fp FROM parts WHERE site = $2 \
         ORDER BY fingerprint_similarity(fp, $1) DESC LIMIT $3",
    )?;
    let q = FINGERPRINT.literal(Shape::Balls.center(1));
    let execute = |limit: usize| format!("EXECUTE page({q}, 1, {limit})");
    let shown = plan(&mut client, &execute(9))?;
    ensure!(
        shown.matches("Order By: (fp <#|> $1)").count() == 2,
        "{shown}"
    );
    let expected: Vec<Option<i64>> = {
        let query =
            format!("SELECT array_agg(fp::bigint ORDER BY fp <#|> {q}) FROM docs WHERE id % 3 = 1");
        client.query_one(&query, &[])?.get(0)
    };
    for limit in [1, 40, 400, 4_000] {
        let mut found = Vec::new();
        for message in client.simple_query(&execute(limit))? {
            if let postgres::SimpleQueryMessage::Row(row) = message {
                found.push(row.get(0).map(str::to_owned));
            }
        }
        assert_eq!(found.len(), limit.min(expected.len()));
        let far = |text: &Option<String>| match text {
            None => -1,
            Some(text) => (u64::from_str_radix(text, 16).unwrap_or_default()
                ^ Shape::Balls.center(1))
            .count_ones() as i32,
        };
        let found: Vec<i32> = found.iter().map(far).collect();
        let expected = expected.iter().map(|bits| match bits {
            None => -1,
            Some(bits) => (*bits as u64 ^ Shape::Balls.center(1)).count_ones() as i32,
        });
        assert!(found.iter().copied().eq(expected.take(limit)), "{found:?}");
    }
    Ok(())
}
