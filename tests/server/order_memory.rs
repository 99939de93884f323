//! Ordered searches stay within `work_mem`, and still return every row in order.
use crate::support::Outcome;
use crate::support::oracle::{Way, plan};
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::{Client, GenericClient};

/// Returns the peak of a backend's own memory so far, in kB. Subtracts pages of shared memory,
/// which stay mapped after they are read. `None` on systems without /proc.
fn peak(client: &mut impl GenericClient) -> Result<Option<i64>> {
    let status = "SELECT pg_read_file('/proc/' || pg_backend_pid() || '/status', 0, 10000, true)";
    let Some(status) = value::<Option<String>>(client, status)? else {
        return Ok(None);
    };
    let number = |name: &str| -> Result<i64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.with_context(|| name.to_owned())?.parse()?)
    };
    Ok(Some(number("VmHWM:")? - number("RssShmem:")?))
}

/// Fingerprint types, each with an operator class and an expression for a value made from `n`.
/// Most rows have one of the five values, so that many rows are equally far from a query.
const TYPES: [(&str, &str, &str); 4] = [
    (
        "fingerprint",
        "",
        "(CASE WHEN n % 9 > 0 THEN 5 ELSE n % 5 << 40 END)::bigint::fingerprint",
    ),
    (
        "bigint",
        "bigint_hamming_ops",
        "CASE WHEN n % 9 > 0 THEN 5 ELSE n % 5 << 40 END",
    ),
    (
        "fingerprint128",
        "",
        "(repeat(to_hex(CASE WHEN n % 9 > 0 THEN 5 ELSE n % 5 END | 1::bigint << 62), 2)) \
            ::fingerprint128",
    ),
    (
        "fingerprint256",
        "",
        "(repeat(to_hex(CASE WHEN n % 9 > 0 THEN 5 ELSE n % 5 END | 1::bigint << 62), 4)) \
            ::fingerprint256",
    ),
];

/// Ordered searches of all kinds, around rare and common values.
fn searches(scoped: bool) -> Vec<String> {
    let mut searches: Vec<String> = [
        ("true", "fp <~> value_of(9)"),
        ("true", "fp <~> value_of(1)"),
        // The order uses another distance than the condition.
        ("fp <~> value_of(9) <= 40", "fp <~> value_of(18)"),
        (
            "fp <~> value_of(9) <= 250",
            "fp <~> value_of(18), fp <~> value_of(1)",
        ),
        ("fp <~> value_of(9) <= 40", "fp <~> value_of(9)"),
    ]
    .map(|(filter, order)| format!("WHERE {filter} ORDER BY {order}"))
    .to_vec();
    if scoped {
        searches.push("WHERE site = 1 ORDER BY fp <~> value_of(9)".to_owned());
    }
    searches
}

fn create(client: &mut Client, of_type: (&str, &str, &str), scoped: bool, rows: i64) -> Result<()> {
    let (name, class, of) = of_type;
    let columns = if scoped { "site, " } else { "" };
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS docs; DROP FUNCTION IF EXISTS value_of; \
         CREATE FUNCTION value_of(n bigint) RETURNS {name} IMMUTABLE RETURN {of}; \
         CREATE TABLE docs AS SELECT n AS id, (n % 3)::int AS site, \
             CASE WHEN n % 50 > 0 THEN {of} END AS fp \
             FROM generate_series(1::bigint, {rows}) AS n; \
         CREATE INDEX docs_fp ON docs USING neardup ({columns}fp {class})"
    ))?;
    Way::Index.set(client)?;
    client.batch_execute("SET enable_sort = off; SET work_mem = '64kB'")?;
    Ok(())
}

#[test]
fn every_row_comes_once_and_in_order_with_little_memory() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for of_type in TYPES {
        for scoped in [false, true] {
            create(&mut client, of_type, scoped, 8_000)?;
            for search in searches(scoped) {
                let order = search.split("ORDER BY ").nth(1).context("an order")?;
                let keys: Vec<String> = order
                    .split(", ")
                    .map(|key| format!("({key})::int"))
                    .collect();
                let query = format!("SELECT id, ARRAY[{}] FROM docs {search}", keys.join(", "));
                let shown = plan(&mut client, &query)?;
                ensure!(
                    shown.contains("Order By") && !shown.contains("Sort"),
                    "{query}: {shown}"
                );
                type Row = (Vec<Option<i32>>, i64);
                let row = |row: &postgres::Row| -> Row { (row.get(1), row.get(0)) };
                let found: Vec<Row> = client.query(&query, &[])?.iter().map(row).collect();
                let in_order = |rows: &[Row]| {
                    let far = |row: &Row| row.0.clone();
                    rows.windows(2).all(|pair| {
                        // Rows without a fingerprint are last.
                        far(&pair[1])[0].is_none()
                            || far(&pair[0])[0].is_some() && far(&pair[0]) <= far(&pair[1])
                    })
                };
                ensure!(in_order(&found), "{query}");
                Way::Sequential.set(&mut client)?;
                let mut expected: Vec<Row> = client.query(&query, &[])?.iter().map(row).collect();
                Way::Index.set(&mut client)?;
                let mut found = found;
                found.sort();
                expected.sort();
                ensure!(found.len() > 100, "{query} finds nothing: no test at all");
                ensure!(
                    found == expected,
                    "{query}: {} of {}",
                    found.len(),
                    expected.len()
                );
            }
        }
    }
    Ok(())
}

#[test]
fn an_ordered_search_takes_no_more_memory_than_work_mem() -> Outcome {
    const ROWS: i64 = 500_000;
    // All rows would take 12 MB, or 24 MB while a list of them grows.
    const SLACK: i64 = 2_000;
    let database = Database::create()?;
    for scoped in [false, true] {
        create(&mut database.connect()?, TYPES[0], scoped, ROWS)?;
        let mut client = database.connect()?;
        Way::Index.set(&mut client)?;
        client.batch_execute("SET enable_sort = off; SET work_mem = '64kB'")?;
        // Fills the caches of the backend.
        for n in [1, 9, 18] {
            for radius in [3, 8, 64] {
                let ball = format!("fp <@ ball(value_of({n}), {radius})");
                client.execute(&format!("SELECT count(id) FROM docs WHERE {ball}"), &[])?;
            }
        }
        for search in searches(scoped) {
            let query = format!("SELECT id FROM docs {search} LIMIT 10");
            let shown = plan(&mut client, &query)?;
            ensure!(
                shown.contains("Order By") && !shown.contains("Sort"),
                "{query}: {shown}"
            );
            let Some(before) = peak(&mut client)? else {
                return Ok(());
            };
            client.execute(&query, &[])?;
            let more = peak(&mut client)?.unwrap_or(before) - before;
            println!("{more} kB more: {query}");
            ensure!(more < SLACK, "{more} kB more: {query}");
        }
    }
    Ok(())
}
