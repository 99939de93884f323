//! `neardup_setup` with further arguments for its triggers.
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Result, ensure};
use neardup_tests::Database;
use postgres::Client;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, site text, body text, checked bool); \
    INSERT INTO t VALUES (1, 'a', '<p>The library reopens on Monday.'), \
        (2, 'a', '<div>The <b>library</b> reopens on Monday</div>'), \
        (3, 'b', '<p>The library reopens on Monday.')";

/// Runs the statements of a part of the result. The last argument is SQL for `options`.
fn run(client: &mut Client, action: &str, options: &str, part: &str) -> Outcome {
    let query = format!(
        "SELECT statement FROM neardup_setup('t', 'body', '{action}', 0.8, {options}) \
         WHERE part = '{part}' ORDER BY step"
    );
    for row in client.query(&query, &[])? {
        client.batch_execute(row.get(0))?;
    }
    Ok(())
}

fn rows(client: &mut Client, columns: &str) -> Result<String> {
    value(
        client,
        &format!("SELECT string_agg(concat_ws(' ', {columns}), ', ' ORDER BY id) FROM t"),
    )
}

/// Scope, parameters of the function and confirmation: existing rows and new ones.
#[test]
fn options_apply_to_existing_and_new_rows() -> Outcome {
    let options = "ARRAY['scope=site', 'html=true', 'confirm=body', 'notice=true']";
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    for _ in 0..2 {
        run(&mut client, "skip", options, "add")?;
    }
    let wrong: i64 = value(
        &mut client,
        "SELECT count(*) FROM t WHERE body_neardup_fp IS DISTINCT FROM \
            minhash64(body, html => true)",
    )?;
    ensure!(
        wrong == 0,
        "{wrong} fingerprints were made with other options"
    );
    client.batch_execute(
        "INSERT INTO t VALUES (4, 'b', 'the library reopens on monday'), \
            (5, 'c', '<i>the library reopens on monday'), \
            (6, NULL, 'the library reopens on monday')",
    )?;
    ensure!(rows(&mut client, "id")? == "1, 2, 3, 5, 6");
    // An update of the scope is compared, too.
    client.batch_execute("UPDATE t SET site = 'a' WHERE id = 5")?;
    let site: String = value(&mut client, "SELECT site FROM t WHERE id = 5")?;
    ensure!(site == "c", "{site}");
    run(&mut client, "skip", options, "remove")?;
    let columns: i64 = value(
        &mut client,
        "SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 \
            AND NOT attisdropped",
    )?;
    ensure!(columns == 4);
    Ok(())
}

/// Marks that editors set, in rows that meet a condition.
#[test]
fn editors_set_marks() -> Outcome {
    let options = "ARRAY['manual=checked', 'html=true']";
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    let error = run(&mut client, "mark", "'{manual=nothing}'", "add").expect_err("no such column");
    ensure!(format!("{error:?}").contains("does not exist"), "{error:?}");
    run(&mut client, "mark", options, "add")?;
    client.batch_execute("SELECT neardup_remark('t')")?;
    ensure!(rows(&mut client, "id, body_neardup_of")? == "1, 2 1, 3 1");
    client.batch_execute(
        "UPDATE t SET body_neardup_of = NULL WHERE id = 2; \
         UPDATE t SET body_neardup_of = NULL, checked = true WHERE id = 3",
    )?;
    ensure!(rows(&mut client, "id, body_neardup_of")? == "1, 2 1, 3");
    // Without the options, the statements would replace or drop other triggers.
    let error = run(&mut client, "mark", "'{}'", "remove").expect_err("other options");
    ensure!(format!("{error:?}").contains("already exists"), "{error:?}");
    run(&mut client, "mark", options, "remove")
}

/// The oldest row of each cluster becomes the original, also if the statement was interrupted.
/// The columns have names of variables of the statement.
#[test]
fn existing_rows_become_originals_in_an_order() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE t (id int PRIMARY KEY, site text, body text, done int, row_key int); \
         INSERT INTO t SELECT i, 'a', string_agg(md5(i % 400 || ' ' || n), ' ' ORDER BY n), -i \
            FROM generate_series(1, 1200) i, generate_series(1, 5) n GROUP BY i; \
         INSERT INTO t VALUES (0, 'a', '...'), (-1, 'a', NULL)",
    )?;
    let options = "'{}', 'done -- oldest'";
    let wrong = "SELECT count(*) FROM t LEFT JOIN \
        (SELECT body, max(id) AS oldest FROM t GROUP BY body) o USING (body) WHERE id > 0 \
        AND t.body_neardup_of IS DISTINCT FROM nullif(o.oldest, id)";
    run(&mut client, "mark", options, "add")?;
    ensure!(value::<i64>(&mut client, wrong)? == 0);
    // As if the statement had been interrupted after the oldest rows.
    client.batch_execute(
        "ALTER TABLE t DISABLE TRIGGER USER; \
         UPDATE t SET body_neardup_fp = NULL, body_neardup_of = NULL WHERE id < 900; \
         ALTER TABLE t ENABLE TRIGGER USER",
    )?;
    run(&mut client, "mark", options, "add")?;
    ensure!(value::<i64>(&mut client, wrong)? == 0);
    Ok(())
}

/// A search within a scope, with parameters of the function.
#[test]
fn a_search_has_a_scope_and_parameters() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    run(
        &mut client,
        "search",
        "ARRAY['scope=site', 'html=true']",
        "add",
    )?;
    let index: String = value(
        &mut client,
        "SELECT pg_get_indexdef('t_body_neardup'::regclass)",
    )?;
    ensure!(
        index.contains("(site, minhash64(body, html => true))"),
        "{index}"
    );
    run(
        &mut client,
        "search",
        "ARRAY['scope=site', 'html=true']",
        "remove",
    )
}
