//! Options `time=` and `within=` of the trigger: only rows whose times are near are compared.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::texts::FAMILIES;
use crate::support::timed_rows::{Times, Values, combinations, keep, random_rows};
use anyhow::{Context, Result, bail, ensure};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

/// Creates the table `docs` with a trigger that runs `action`, which is written as arguments.
fn create(client: &mut Client, values: Values, times: Times, action: &str) -> Outcome {
    values.create(client, times, action.contains("action=mark"))?;
    let arguments = format!(
        "{}, {}, {action}, 'scope=site'",
        values.options, times.options
    );
    client.batch_execute(&format!(
        "CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup({arguments})"
    ))?;
    if action.contains("action=mark") {
        client.batch_execute(&format!(
            "CREATE TRIGGER marks AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup({arguments})"
        ))?;
    }
    Ok(())
}

/// Asserts that no two rows that meet `condition` are near each other.
fn check_no_pair(client: &mut Client, near: &str, condition: &str) -> Outcome {
    let pairs: i64 = value(
        client,
        &format!(
            "SELECT count(*) FROM (SELECT * FROM docs WHERE {condition}) k, \
            (SELECT * FROM docs WHERE {condition}) t WHERE k.id < t.id AND {near}"
        ),
    )?;
    ensure!(pairs == 0, "{near}: {pairs} pairs");
    Ok(())
}

fn database() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(FAMILIES)?;
    client.batch_execute(
        "SET timezone = 'Europe/Berlin'; SET enable_indexscan = off; SET enable_bitmapscan = off",
    )?;
    Ok((database, client))
}

#[test]
fn rows_are_skipped_as_the_condition_in_sql_says() -> Outcome {
    let (_database, mut client) = database()?;
    for ((values, times), seed) in combinations().zip(0..) {
        let near = values.near(times);
        let rows = random_rows(values, times, 150, &mut Random::new(seed));
        create(&mut client, values, times, "'action=skip'")?;
        client.batch_execute("ALTER TABLE docs DISABLE TRIGGER dedup")?;
        client.batch_execute(&rows.concat())?;
        keep(&mut client, "docs", &near)?;
        client.batch_execute("TRUNCATE docs; ALTER TABLE docs ENABLE TRIGGER dedup")?;
        client.batch_execute(&rows.concat())?;
        let same = "SELECT array_agg(id ORDER BY id) \
            = (SELECT array_agg(id ORDER BY id) FROM kept) FROM docs";
        ensure!(value::<bool>(&mut client, same)?, "{near}: other rows");
        let count: i64 = value(&mut client, "SELECT count(*) FROM docs")?;
        ensure!((15..148).contains(&count), "{near}: {count} rows");
    }
    Ok(())
}

/// Rows move in and out of windows by updates of the time alone. All marks stay right, and
/// `neardup_remark` then sets the marks of the rows in key order.
#[test]
fn marks_follow_the_times() -> Outcome {
    let (_database, mut client) = database()?;
    for ((values, times), seed) in combinations().zip(100..) {
        let near = values.near(times);
        let mut random = Random::new(seed);
        create(&mut client, values, times, "'action=mark', 'mark=dup'")?;
        client.batch_execute(&random_rows(values, times, 150, &mut random).concat())?;
        let check = |client: &mut Client| -> Outcome {
            check_no_pair(client, &near, "dup IS NULL")?;
            let untrue: i64 = value(
                client,
                &format!(
                    "SELECT count(*) FROM docs t LEFT JOIN docs k ON k.id = t.dup \
                    WHERE t.dup IS NOT NULL AND (k.dup IS NULL AND k.id <> t.id AND {near}) \
                    IS NOT TRUE"
                ),
            )?;
            ensure!(untrue == 0, "{near}: {untrue} untrue marks");
            Ok(())
        };
        check(&mut client)?;
        for _ in 0..60 {
            let id = random.below(150);
            let at = times.value.replace("{n}", &random.below(1000).to_string());
            client.batch_execute(&match random.below(5) {
                0 => format!("DELETE FROM docs WHERE id = {id}"),
                1 => format!(
                    "UPDATE docs SET {} = {} WHERE id = {id}",
                    values.written(),
                    values.value(&mut random)
                ),
                _ => format!("UPDATE docs SET at = {at} WHERE id = {id}"),
            })?;
        }
        check(&mut client)?;
        let marked: i64 = value(&mut client, "SELECT count(dup) FROM docs")?;
        ensure!(marked > 0, "{near}: no marks");
        value::<i64>(&mut client, "SELECT neardup_remark('docs')")?;
        check(&mut client)?;
        ensure!(value::<i64>(&mut client, "SELECT neardup_remark('docs')")? == 0);
        keep(&mut client, "docs", &near)?;
        let same = "SELECT array_agg(id ORDER BY id) FILTER (WHERE dup IS NULL) \
            = (SELECT array_agg(id ORDER BY id) FROM kept) FROM docs";
        ensure!(value::<bool>(&mut client, same)?, "{near}: other originals");
        let farther: i64 = value(
            &mut client,
            &format!(
                "SELECT count(*) FROM docs t JOIN docs o ON o.id = t.dup, \
                LATERAL (SELECT min({0}) FROM kept k WHERE k.id < t.id AND {near}) best (d) \
                WHERE {1} <> best.d",
                values.distance,
                values.distance.replace("k.", "o.")
            ),
        )?;
        ensure!(
            farther == 0,
            "{near}: marks with an original that is not the nearest"
        );
    }
    Ok(())
}

fn insert(client: &mut Client, id: i32, at: &str) -> Result<bool> {
    let statement = format!("INSERT INTO docs (id, at) VALUES ({id}, {at})");
    let result = client.batch_execute(&statement);
    match code(&result) {
        None => Ok(true),
        Some(SqlState::EXCLUSION_VIOLATION) => Ok(false),
        Some(_) => {
            result.context(statement)?;
            Ok(false)
        }
    }
}

/// Creates the table `docs`, in which all fingerprints are equal, with the action `error`.
fn create_alike(client: &mut Client, column: &str, options: &str) -> Outcome {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS docs; \
         CREATE TABLE docs (id int PRIMARY KEY, at {column}, fp fingerprint DEFAULT \
            '0000000000000007'); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp, at ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=error', {options})"
    ))?;
    Ok(())
}

#[test]
fn the_bounds_are_included() -> Outcome {
    let (_database, mut client) = database()?;
    create_alike(&mut client, "timestamptz", "'time=at', 'within=7 days'")?;
    ensure!(insert(&mut client, 1, "'2024-03-28 12:00'")?);
    // Summer time began on 31 March, so 7 days of 24 hours end at 13:00.
    ensure!(!insert(&mut client, 2, "'2024-04-04 12:00:00.000001'")?);
    ensure!(!insert(&mut client, 2, "'2024-04-04 13:00'")?);
    ensure!(insert(&mut client, 2, "'2024-04-04 13:00:00.000001'")?);
    ensure!(!insert(&mut client, 3, "'2024-03-21 12:00'")?);
    ensure!(insert(&mut client, 3, "'2024-03-21 11:59:59.999999'")?);
    // The same times without a zone.
    create_alike(&mut client, "timestamp", "'time=at', 'within=7 days'")?;
    ensure!(insert(&mut client, 1, "'2024-03-28 12:00'")?);
    ensure!(!insert(&mut client, 2, "'2024-04-04 12:00'")?);
    ensure!(insert(&mut client, 2, "'2024-04-04 12:00:00.000001'")?);
    create_alike(&mut client, "date", "'time=at', 'within=7 days'")?;
    ensure!(insert(&mut client, 1, "'2024-03-28'")?);
    ensure!(!insert(&mut client, 2, "'2024-04-04'")?);
    ensure!(insert(&mut client, 2, "'2024-04-05'")?);
    // An interval of no length: only equal times are near.
    create_alike(&mut client, "date", "'time=at', 'within=0'")?;
    ensure!(insert(&mut client, 1, "'2024-03-28'")?);
    ensure!(!insert(&mut client, 2, "'2024-03-28'")?);
    ensure!(insert(&mut client, 2, "'2024-03-29'")?);
    Ok(())
}

#[test]
fn null_is_near_nothing_and_infinity_only_itself() -> Outcome {
    let (_database, mut client) = database()?;
    // A window that is longer than the time from the last finite timestamp to the internal value
    // of infinity.
    for column in ["timestamptz", "timestamp", "date"] {
        create_alike(&mut client, column, "'time=at', 'within=1000 days'")?;
        ensure!(insert(&mut client, 1, "NULL")? && insert(&mut client, 2, "NULL")?);
        ensure!(insert(&mut client, 3, "'infinity'")? && insert(&mut client, 4, "'-infinity'")?);
        ensure!(!insert(&mut client, 5, "'infinity'")? && !insert(&mut client, 5, "'-infinity'")?);
        let last = match column {
            "date" => "'5874897-12-31'",
            _ => "'294276-12-31'",
        };
        ensure!(insert(&mut client, 5, last)? && insert(&mut client, 6, "'4713-02-01 BC'")?);
        ensure!(insert(&mut client, 7, "'2024-01-01'")?);
        let update = client.batch_execute("UPDATE docs SET at = '2024-02-01' WHERE id = 1");
        ensure!(
            code(&update) == Some(SqlState::EXCLUSION_VIOLATION),
            "{update:?}"
        );
        client.batch_execute("UPDATE docs SET at = NULL WHERE id = 7")?;
        client.batch_execute("UPDATE docs SET at = '2024-02-01' WHERE id = 1")?;
    }
    create_alike(&mut client, "tstzrange", "'time=at'")?;
    ensure!(insert(&mut client, 1, "NULL")? && insert(&mut client, 2, "NULL")?);
    ensure!(insert(&mut client, 3, "'empty'")? && insert(&mut client, 4, "'empty'")?);
    ensure!(insert(&mut client, 5, "'[2024-01-01,)'")?);
    ensure!(!insert(&mut client, 6, "'[infinity,infinity]'")?);
    ensure!(insert(&mut client, 6, "'(,2024-01-01)'")? && !insert(&mut client, 7, "'(,)'")?);
    Ok(())
}

#[test]
fn domains_and_a_range_type_of_ones_own_are_times() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE DOMAIN moment AS timestamp; CREATE DOMAIN span AS tsrange; \
         CREATE TYPE days AS RANGE (subtype = date); \
         CREATE DOMAIN key AS bigint; CREATE TYPE keys AS RANGE (subtype = key)",
    )?;
    create_alike(&mut client, "moment", "'time=at', 'within=1 hour'")?;
    ensure!(insert(&mut client, 1, "'2024-01-01 10:00'")?);
    ensure!(!insert(&mut client, 2, "'2024-01-01 11:00'")?);
    for column in ["span", "days"] {
        create_alike(&mut client, column, "'time=at'")?;
        ensure!(insert(&mut client, 1, "'[2024-01-01,2024-01-03)'")?);
        ensure!(!insert(&mut client, 2, "'[2024-01-02,2024-01-05]'")?);
        ensure!(insert(&mut client, 2, "'[2024-01-03,2024-01-05]'")?);
    }
    create_alike(&mut client, "keys", "'time=at'")?;
    ensure!(insert(&mut client, 1, "'[1,3]'")? && !insert(&mut client, 2, "'[3,4)'")?);
    // Toasted ranges have the same bounds.
    create_alike(&mut client, "numrange", "'time=at'")?;
    let error = client.batch_execute("INSERT INTO docs (id, at) VALUES (1, '[1,2]')");
    ensure!(
        code(&error) == Some(SqlState::INVALID_PARAMETER_VALUE),
        "{error:?}"
    );
    Ok(())
}

/// A partition is searched alone, so a window ends at the boundary of the partition.
#[test]
fn a_window_ends_at_the_boundary_of_a_partition() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE docs (id int, at timestamptz NOT NULL, fp fingerprint DEFAULT \
            '0000000000000007') PARTITION BY RANGE (at); \
         CREATE TABLE january PARTITION OF docs FOR VALUES FROM ('2024-01-01') TO ('2024-02-01'); \
         CREATE TABLE february PARTITION OF docs FOR VALUES FROM ('2024-02-01') TO ('2024-03-01'); \
         CREATE INDEX ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp, at ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=error', 'time=at', \
                'within=7 days')",
    )?;
    ensure!(insert(&mut client, 1, "'2024-01-10'")?);
    ensure!(!insert(&mut client, 2, "'2024-01-17'")? && insert(&mut client, 2, "'2024-01-31'")?);
    ensure!(insert(&mut client, 3, "'2024-02-01'")? && !insert(&mut client, 4, "'2024-02-02'")?);
    // An UPDATE that moves a row to another partition compares it there.
    let update = client.batch_execute("UPDATE docs SET at = '2024-02-03' WHERE id = 2");
    ensure!(
        code(&update) == Some(SqlState::EXCLUSION_VIOLATION),
        "{update:?}"
    );
    client.batch_execute("UPDATE docs SET at = '2024-02-20' WHERE id = 2")?;
    Ok(())
}

/// A row waits for the transaction of an uncommitted row only within the window.
#[test]
fn an_uncommitted_row_outside_the_window_is_not_waited_for() -> Outcome {
    let (database, mut client) = database()?;
    create_alike(&mut client, "date", "'time=at', 'within=7 days'")?;
    let mut other = database.connect()?;
    other.batch_execute("BEGIN; INSERT INTO docs (id, at) VALUES (1, '2024-01-01')")?;
    client.batch_execute("SET lock_timeout = '2s'")?;
    ensure!(insert(&mut client, 2, "'2024-01-09'")?);
    let waits = "INSERT INTO docs (id, at) VALUES (3, '2024-01-01')";
    let result = client.batch_execute(waits);
    ensure!(
        code(&result) == Some(SqlState::LOCK_NOT_AVAILABLE),
        "{result:?}"
    );
    // The uncommitted row leaves the window, by an UPDATE of the time alone. Its old version may
    // still become visible.
    other.batch_execute("UPDATE docs SET at = '2020-01-01' WHERE id = 1; COMMIT")?;
    let result = client.batch_execute("INSERT INTO docs (id, at) VALUES (3, '2024-01-01')");
    ensure!(code(&result).is_none(), "{result:?}");
    // An uncommitted UPDATE moves a row into the window.
    other.batch_execute("BEGIN; UPDATE docs SET at = '2030-01-01' WHERE id = 1")?;
    let result = client.batch_execute("INSERT INTO docs (id, at) VALUES (4, '2030-01-05')");
    ensure!(
        code(&result) == Some(SqlState::LOCK_NOT_AVAILABLE),
        "{result:?}"
    );
    other.batch_execute("ROLLBACK")?;
    client.batch_execute("INSERT INTO docs (id, at) VALUES (4, '2030-01-05')")?;
    Ok(())
}

/// Writes rows near a few centres at random times, and moves and deletes rows.
fn write(conninfo: &str, seed: u64) -> Result<u32> {
    let mut client = connect(conninfo)?;
    client.batch_execute("SET deadlock_timeout = '20ms'")?;
    let mut random = Random::new(seed);
    let mut written = 0;
    for row in 0..250 {
        let center = Random::new(random.below(3)).bits();
        let bits = random.near(center, 2);
        let (id, other) = (
            seed * 1000 + row,
            random.below(6) * 1000 + random.below(250),
        );
        let at = format!(
            "timestamptz '2024-01-01' + {} * interval '1 hour'",
            random.below(2400)
        );
        let insert = format!("INSERT INTO docs (id, at, fp) VALUES ({id}, {at}, '{bits:016x}')");
        let update = format!("UPDATE docs SET at = {at} WHERE id = {other}");
        let statement = match random.below(8) {
            0..4 => insert,
            4..6 => update,
            6 => format!("BEGIN; {insert}; {update}; COMMIT"),
            _ => format!("DELETE FROM docs WHERE id = {other}"),
        };
        let result = client.batch_execute(&statement);
        match code(&result) {
            None => written += 1,
            Some(SqlState::EXCLUSION_VIOLATION | SqlState::T_R_DEADLOCK_DETECTED) => {
                client.batch_execute("ROLLBACK")?;
            }
            Some(_) => result?,
        }
    }
    Ok(written)
}

#[test]
fn concurrent_writers_leave_no_pair_in_a_window() -> Outcome {
    let (database, mut client) = database()?;
    create_alike(&mut client, "timestamptz", "'time=at', 'within=1 day'")?;
    std::thread::scope(|scope| -> Outcome {
        let writers: Vec<_> = (0..6)
            .map(|seed| (seed, database.conninfo()))
            .map(|(seed, conninfo)| scope.spawn(move || write(conninfo, seed)))
            .collect();
        for writer in writers {
            match writer.join() {
                Ok(written) => ensure!(written? > 50),
                Err(_) => bail!("a writer panicked"),
            }
        }
        Ok(())
    })?;
    let near = "k.fp <#> t.fp <= 3 AND k.at - t.at BETWEEN interval '-1 day' AND interval '1 day'";
    check_no_pair(&mut client, near, "true")?;
    // The same rows at any time are near each other.
    let pairs: i64 = value(
        &mut client,
        "SELECT count(*) FROM docs k, docs t \
        WHERE k.id < t.id AND k.fp <#> t.fp <= 3",
    )?;
    ensure!(pairs > 500, "{pairs}");
    Ok(())
}

/// The log has the rows that were skipped, and a mark that an editor sets stays.
#[test]
fn logs_and_marks_by_editors_have_windows() -> Outcome {
    let (_database, mut client) = database()?;
    create_alike(&mut client, "date", "'time=at', 'within=7 days'")?;
    client.batch_execute(
        "CREATE TABLE dropped (kept int, distance int, dropped jsonb); \
         CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp, at ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=log', 'log=dropped', \
                'time=at', 'within=7 days'); \
         INSERT INTO docs (id, at) VALUES (1, '2024-01-01'), (2, '2024-01-08'), (3, '2024-01-09'), \
            (4, '2024-01-10')",
    )?;
    let dropped = "SELECT string_agg(concat(dropped->>'id', ':', kept), ' ') FROM dropped";
    ensure!(value::<String>(&mut client, dropped)? == "2:1 4:3");
    let arguments = "'fp', 'radius=3', 'action=mark', 'mark=dup', 'manual=signed', 'time=at', \
        'within=7 days'";
    client.batch_execute(&format!(
        "ALTER TABLE docs ADD dup int, ADD signed boolean; \
         DROP TRIGGER dedup ON docs; \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup({arguments}); \
         CREATE TRIGGER marks AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup({arguments}); \
         INSERT INTO docs (id, at, dup, signed) VALUES (5, '2024-01-12', NULL, true), \
            (6, '2025-01-01', 1, true), (7, '2025-01-02', 1, false), (8, '2024-01-14', NULL, false)"
    ))?;
    let marks = "SELECT string_agg(concat(id, ':', dup), ' ' ORDER BY id) FROM docs";
    let found: String = value(&mut client, marks)?;
    ensure!(
        found == "1: 3: 5: 6:1 7: 8:3" || found == "1: 3: 5: 6:1 7: 8:5",
        "{found}"
    );
    // The signed row outside the window keeps its mark when its original moves.
    client.batch_execute("UPDATE docs SET at = '2023-01-01' WHERE id = 1")?;
    let found: String = value(&mut client, marks)?;
    ensure!(found.contains("6:1 7:"), "{found}");
    Ok(())
}

#[test]
fn mistakes_in_the_options_are_errors() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, at timestamptz, during tstzrange, prices numrange, \
            fp fingerprint DEFAULT '0000000000000007'); \
         CREATE INDEX ON docs USING neardup (fp)",
    )?;
    let invalid = SqlState::INVALID_PARAMETER_VALUE;
    let mistakes = [
        (
            "'time=then', 'within=1 day'",
            SqlState::UNDEFINED_COLUMN,
            "",
        ),
        ("'time=at'", invalid.clone(), "\"within\" is missing"),
        (
            "'within=1 day'",
            invalid.clone(),
            "requires the option \"time\"",
        ),
        (
            "'time=during', 'within=1 day'",
            invalid.clone(),
            "\"within\" is not allowed",
        ),
        (
            "'time=at', 'within=1 month'",
            invalid.clone(),
            "contains months or years",
        ),
        ("'time=at', 'within=-1 day'", invalid.clone(), "is negative"),
        (
            "'time=at', 'within=soon'",
            SqlState::INVALID_DATETIME_FORMAT,
            "",
        ),
        (
            "'time=id', 'within=1 day'",
            invalid.clone(),
            "have type integer",
        ),
        ("'time=prices'", invalid, "have type numrange"),
    ];
    for (options, expected, detail) in mistakes {
        client.batch_execute(&format!(
            "CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
             EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', {options})"
        ))?;
        let result = client.batch_execute("INSERT INTO docs (id) VALUES (1)");
        ensure!(code(&result) == Some(expected), "{options}: {result:?}");
        let error = result.err().context("an error")?;
        let shown = error
            .as_db_error()
            .and_then(|error| error.detail())
            .unwrap_or_default();
        ensure!(shown.contains(detail), "{options}: {shown}");
    }
    Ok(())
}

/// The triggers of marks must fire for changes of the time, and must agree about its column.
#[test]
fn the_triggers_of_marks_see_changes_of_the_time() -> Outcome {
    let (_database, mut client) = database()?;
    for (columns, after, works) in [
        ("fp, dup", "'time=at', 'within=7 days'", false),
        ("fp, dup, at", "", false),
        ("fp, dup, at", "'time=at', 'within=7 days'", true),
    ] {
        let options = "'fp', 'radius=3', 'action=mark', 'mark=dup'";
        let separator = if after.is_empty() { "" } else { ", " };
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs; \
             CREATE TABLE docs (id int PRIMARY KEY, at date, dup int, fp fingerprint DEFAULT \
                '0000000000000007'); \
             CREATE INDEX ON docs USING neardup (fp); \
             CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF {columns} ON docs FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup({options}, 'time=at', 'within=7 days'); \
             CREATE TRIGGER marks AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup({options}{separator}{after})"
        ))?;
        let result = client.batch_execute("INSERT INTO docs VALUES (1, '2024-01-01')");
        let expected = (!works).then_some(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
        ensure!(code(&result) == expected, "{columns}, {after}: {result:?}");
    }
    Ok(())
}

#[test]
fn the_statements_of_a_setup_have_the_window() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE news (id bigint PRIMARY KEY, body text, published timestamptz); \
         INSERT INTO news VALUES (1, 'The library reopens on Monday.', '2024-01-01'), \
            (2, 'The library reopens on Monday.', '2024-01-05'), \
            (3, 'The library reopens on Monday.', '2025-01-01')",
    )?;
    let setup = "neardup_setup('news', 'body', 'mark', \
        options => ARRAY['time=published', 'within=7 days'], keep => 'id')";
    let statements = format!("SELECT statement FROM {setup} WHERE part = 'add' ORDER BY step");
    for row in client.query(&statements, &[])? {
        client.batch_execute(row.get(0))?;
    }
    let marks = "SELECT string_agg(concat(id, ':', body_neardup_of), ' ' ORDER BY id) FROM news";
    ensure!(value::<String>(&mut client, marks)? == "1: 2:1 3:");
    client.batch_execute("UPDATE news SET published = '2024-12-31' WHERE id = 2")?;
    ensure!(value::<String>(&mut client, marks)? == "1: 2:3 3:");
    let mistake =
        "SELECT neardup_setup('news', 'body', 'skip', options => ARRAY['time=published'])";
    let result = client.batch_execute(mistake);
    ensure!(
        code(&result) == Some(SqlState::INVALID_PARAMETER_VALUE),
        "{result:?}"
    );
    Ok(())
}
