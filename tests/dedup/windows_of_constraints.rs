//! EXCLUDE USING neardup (ball(fp, 6) WITH ~=, during WITH &&) refuses near-duplicates whose ranges
//! overlap.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::texts::FAMILIES;
use crate::support::timed_rows::keep;
use anyhow::{Context, Result, bail, ensure};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

/// Table with a constraint.
#[derive(Clone, Copy)]
struct Constrained {
    /// Definitions of the columns `fp` and `during`.
    columns: &'static str,
    /// Elements of the constraint.
    elements: &'static str,
    /// Column that statements write besides `fp` or `body`, and SQL of a random value. `{n}` is a
    /// number from 0 to 999.
    time: [&'static str; 2],
    /// Condition that the rows `k` and `t` conflict.
    near: &'static str,
}

const TABLES: [Constrained; 7] = [
    Constrained {
        columns: "fp fingerprint, during tstzrange",
        elements: "ball(fp, 6) WITH ~=, during WITH &&",
        time: [
            "during",
            "CASE {n} % 20 WHEN 0 THEN NULL WHEN 1 THEN 'empty' WHEN 2 THEN '(,2024-01-02)' ELSE \
             tstzrange(timestamptz '2024-01-01' + {n} * interval '1 hour', \
                 timestamptz '2024-01-01' + ({n} + 5 + {n} % 30) * interval '1 hour', \
                 substr('[)[]', 1 + 2 * ({n} % 2), 2)) END",
        ],
        near: "k.fp <#> t.fp <= 6 AND k.during && t.during",
    },
    // The range is generated. `timestamptz + interval` is not immutable, but this is.
    Constrained {
        columns: "fp fingerprint, at timestamptz, during tsrange GENERATED ALWAYS AS \
            (tsrange(at AT TIME ZONE 'UTC', at AT TIME ZONE 'UTC' + interval '2 days')) STORED",
        elements: "fp WITH ~=, during WITH &&",
        time: ["at", "timestamptz '2024-03-20' + {n} * interval '1 hour'"],
        near: "k.fp <#> t.fp <= 6 AND greatest(k.at, t.at) - least(k.at, t.at) < interval '2 days'",
    },
    // The range is an expression of the index.
    Constrained {
        columns: "fp fingerprint128, at date",
        elements: "ball(fp, 4) WITH ~=, daterange(at, at + 3, '[]') WITH &&",
        time: ["at", "date '2024-01-01' + {n} / 10"],
        near: "k.fp <#> t.fp <= 4 AND abs(k.at - t.at) <= 3",
    },
    Constrained {
        columns: "fp bigint, at bigint, during int8range GENERATED ALWAYS AS \
            (CASE WHEN at IS NOT NULL THEN int8range(at, at + 20) END) STORED",
        elements: "site WITH =, ball(fp, 5) WITH ~=, during WITH &&",
        time: ["at", "CASE WHEN {n} % 30 > 0 THEN {n} END"],
        near: "k.site = t.site AND k.fp <#> t.fp <= 5 AND abs(k.at - t.at) < 20",
    },
    // Any range type, and several ranges.
    Constrained {
        columns: "fp fingerprint256, during numrange",
        elements: "site WITH =, ball(fp, 3) WITH ~=, during WITH &&, int4range(id, id + 9) WITH &&",
        time: ["during", "numrange({n} / 10.0, {n} / 10.0 + {n} % 7)"],
        near: "k.site = t.site AND k.fp <#> t.fp <= 3 AND k.during && t.during \
               AND abs(k.id - t.id) < 9",
    },
    // Equal ranges.
    Constrained {
        columns: "fp fingerprint, during int4range",
        elements: "ball(fp, 6) WITH ~=, during WITH =",
        time: ["during", "int4range({n} / 200, {n} / 200 + 1)"],
        near: "k.fp <#> t.fp <= 6 AND k.during = t.during",
    },
    Constrained {
        columns: "fp minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED, \
                  during int8range",
        elements: "fp WITH ~=, during WITH &&",
        time: [
            "during",
            "CASE WHEN {n} % 30 > 0 THEN int8range({n} / 4, {n} / 4 + 20) END",
        ],
        near: "k.fp ~= t.fp AND k.during && t.during",
    },
];

impl Constrained {
    fn constraint(self) -> String {
        format!(
            "ADD CONSTRAINT docs_window EXCLUDE USING neardup ({})",
            self.elements
        )
    }

    fn create(self, client: &mut Client) -> Outcome {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs, kept; \
             CREATE TABLE docs (id int PRIMARY KEY, site int, body text, {})",
            self.columns
        ))?;
        Ok(())
    }

    fn insert(self, id: u64, random: &mut Random) -> String {
        let (number, center) = (random.below(1000), random.below(4));
        let bits = random.near(Random::new(center).bits(), 4);
        let (column, value) = match self.columns {
            it if it.contains("minhash") => ("body", format!("family_text({center}, {})", id % 4)),
            it if it.contains("256") => ("fp", format!("'{bits:064x}'")),
            it if it.contains("128") => ("fp", format!("'{bits:032x}'")),
            it if it.contains("bigint") => ("fp", format!("'{bits:016x}'::fingerprint::bigint")),
            _ => ("fp", format!("'{bits:016x}'")),
        };
        let [time, at] = self.time;
        let at = at.replace("{n}", &number.to_string());
        let site = random.below(2);
        format!(
            "INSERT INTO docs (id, site, {column}, {time}) VALUES ({id}, {site}, {value}, {at})"
        )
    }
}

fn database() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(FAMILIES)?;
    client.batch_execute("SET timezone = 'Europe/Berlin'")?;
    Ok((database, client))
}

fn pairs(client: &mut Client, near: &str) -> Result<i64> {
    client.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    let pairs = format!("SELECT count(*) FROM docs k, docs t WHERE k.id < t.id AND {near}");
    let count = value(client, &pairs)?;
    client.batch_execute("RESET enable_indexscan; RESET enable_bitmapscan")?;
    Ok(count)
}

#[test]
fn rows_conflict_as_the_condition_in_sql_says() -> Outcome {
    let (_database, mut client) = database()?;
    for (table, seed) in TABLES.into_iter().zip(0..) {
        table.create(&mut client)?;
        let mut random = Random::new(seed);
        let rows: Vec<String> = (0..250).map(|id| table.insert(id, &mut random)).collect();
        client.batch_execute(&rows.join("; "))?;
        keep(&mut client, "docs", table.near)?;
        // The constraint is refused for the rows as they are.
        let result = client.batch_execute(&format!("ALTER TABLE docs {}", table.constraint()));
        ensure!(
            code(&result) == Some(SqlState::EXCLUSION_VIOLATION),
            "{result:?}"
        );
        client.batch_execute(&format!(
            "TRUNCATE docs; ALTER TABLE docs {}",
            table.constraint()
        ))?;
        client
            .batch_execute(&(rows.join(" ON CONFLICT DO NOTHING; ") + " ON CONFLICT DO NOTHING"))?;
        let same = "SELECT array_agg(id ORDER BY id) \
            = (SELECT array_agg(id ORDER BY id) FROM kept) FROM docs";
        ensure!(
            value::<bool>(&mut client, same)?,
            "{}: other rows",
            table.near
        );
        let count: i64 = value(&mut client, "SELECT count(*) FROM docs")?;
        ensure!((15..248).contains(&count), "{}: {count} rows", table.near);
        // The constraint as the server writes it, on the same rows.
        let definition: String = value(
            &mut client,
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'docs_window'",
        )?;
        client.batch_execute(&format!(
            "ALTER TABLE docs DROP CONSTRAINT docs_window; \
             ALTER TABLE docs ADD CONSTRAINT docs_window {definition}; \
             SELECT neardup_index_check('docs_window', true); \
             REINDEX INDEX docs_window"
        ))?;
        client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
        let mut refused = 0;
        for row in rows {
            let moved = row.replacen("VALUES (", "VALUES (1000 + ", 1);
            let result = client.batch_execute(&moved);
            match code(&result) {
                None => (),
                Some(SqlState::EXCLUSION_VIOLATION) => refused += 1,
                Some(_) => result?,
            }
        }
        ensure!(refused >= 3, "{}: {refused}", table.near);
        ensure!(
            pairs(&mut client, table.near)? == 0,
            "{}: pairs",
            table.near
        );
    }
    Ok(())
}

#[test]
fn an_update_of_the_range_alone_is_checked() -> Outcome {
    let (_database, mut client) = database()?;
    for deferrable in ["", "DEFERRABLE INITIALLY DEFERRED"] {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs; CREATE TABLE docs (id int, fp fingerprint, during \
                daterange, EXCLUDE USING neardup (ball(fp, 6) WITH ~=, during WITH &&) \
                {deferrable}); \
             INSERT INTO docs SELECT n, '0000000000000007', daterange('2024-01-01'::date + 7 * n, \
                '2024-01-01'::date + 7 * n + 7) FROM generate_series(0, 9) n; \
             INSERT INTO docs VALUES (10, '0000000000000007', NULL), (11, '0000000000000007', \
                'empty')"
        ))?;
        for (allowed, update) in [
            (
                false,
                "UPDATE docs SET during = '[2024-01-20,2024-01-21)' WHERE id = 10",
            ),
            (
                false,
                "UPDATE docs SET during = '[2024-01-20,2024-01-21)' WHERE id = 11",
            ),
            (false, "UPDATE docs SET during = '(,)' WHERE id = 0"),
            (
                true,
                "UPDATE docs SET during = '[2023-01-01,2024-01-03)' WHERE id = 0",
            ),
            (
                true,
                "UPDATE docs SET during = '[2024-01-03,2024-01-08)' WHERE id = 11",
            ),
            (true, "UPDATE docs SET during = NULL WHERE id = 3"),
            (
                true,
                "UPDATE docs SET during = '[2024-01-22,2024-01-29)' WHERE id = 10",
            ),
            (
                false,
                "UPDATE docs SET fp = '0000000000000001', during = '[2024-02-01,)' WHERE id = 3",
            ),
            (
                true,
                "UPDATE docs SET fp = 'ffffffffffffffff', during = '[2024-02-01,)' WHERE id = 3",
            ),
        ] {
            let result = client.batch_execute(update);
            let expected = (!allowed).then_some(SqlState::EXCLUSION_VIOLATION);
            ensure!(
                code(&result) == expected,
                "{deferrable}: {update}: {result:?}"
            );
        }
    }
    Ok(())
}

/// Searches may use the index of a constraint. Their conditions on ranges are checked in the table.
#[test]
fn searches_of_the_index_find_what_the_table_has() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE docs (id int, site int, fp fingerprint, during int4range, \
            CONSTRAINT docs_window EXCLUDE USING neardup (fp WITH ~=, during WITH &&)); \
         INSERT INTO docs SELECT n, n % 3, (hashint8extended(n % 50, 1) # (n % 5))::fingerprint, \
            CASE WHEN n % 11 > 0 THEN int4range(n * 10, n * 10 + 10) END \
            FROM generate_series(1, 2000) n; \
         INSERT INTO docs VALUES (3000, 1, NULL, '[5,6)'), (3001, 1, NULL, NULL)",
    )?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    let query = "(SELECT fp FROM docs WHERE id = 77)";
    for condition in [
        format!("fp <~> {query} <= 3"),
        format!("fp <~> {query} <= 3 AND during && int4range(100, 5000)"),
        format!("fp <~> {query} <= 3 AND during IS NULL"),
        format!("fp <~> {query} <= 3 AND during IS NOT NULL"),
        format!("fp ~= {query} AND during = int4range(770, 780)"),
        "during && int4range(100, 500)".to_owned(),
        "during IS NULL".to_owned(),
        "fp IS NULL".to_owned(),
        "fp IS NULL AND during && int4range(0, 10)".to_owned(),
    ] {
        let ids = format!("SELECT array_agg(id ORDER BY id) FROM docs WHERE {condition}");
        client.batch_execute(
            "SET enable_indexscan = off; SET enable_bitmapscan = off; \
            SET enable_indexonlyscan = off; SET enable_seqscan = on",
        )?;
        let expected: Option<Vec<i32>> = value(&mut client, &ids)?;
        client.batch_execute("SET enable_seqscan = off")?;
        for setting in ["enable_indexscan", "enable_bitmapscan"] {
            client.batch_execute(&format!("SET {setting} = on"))?;
            let plan: String = client
                .query(&format!("EXPLAIN {ids}"), &[])?
                .iter()
                .map(|row| row.get::<_, String>(0))
                .collect();
            ensure!(plan.contains("docs_window"), "{condition}: {plan}");
            let found: Option<Vec<i32>> = value(&mut client, &ids)?;
            ensure!(
                found == expected,
                "{condition}: {found:?} instead of {expected:?}"
            );
        }
    }
    client.batch_execute("RESET ALL; SET enable_seqscan = off")?;
    let nearest = "SELECT fp, fp <~> '0123456789abcdef' AS d FROM docs WHERE fp IS NOT NULL \
        ORDER BY fp <~> '0123456789abcdef' LIMIT 5";
    let sorted: String = value(
        &mut client,
        &format!("SELECT string_agg(d::text, ' ') FROM ({nearest}) n"),
    )?;
    client.batch_execute(
        "SET enable_seqscan = on; SET enable_indexscan = off; \
        SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
    )?;
    let expected: String = value(
        &mut client,
        &format!("SELECT string_agg(d::text, ' ') FROM ({nearest}) n"),
    )?;
    ensure!(sorted == expected, "{sorted} instead of {expected}");
    // Functions for whole tables use the index, too.
    let pairs: i64 = value(&mut client, "SELECT count(*) FROM neardup_pairs('docs', 3)")?;
    let expected: i64 = value(
        &mut client,
        "SELECT count(*) FROM docs a, docs b WHERE a.id < b.id AND a.fp <#> b.fp <= 3",
    )?;
    ensure!(
        pairs == expected && pairs > 1000,
        "{pairs} instead of {expected}"
    );
    Ok(())
}

#[test]
fn ranges_in_other_places_are_errors() -> Outcome {
    let (_database, mut client) = database()?;
    client.batch_execute("CREATE TABLE docs (id int, fp fingerprint, during daterange)")?;
    for (statement, shown) in [
        (
            "CREATE INDEX ON docs USING neardup (fp, during)",
            "Only an exclusion constraint can have ranges after this column",
        ),
        (
            "ALTER TABLE docs ADD EXCLUDE USING neardup (during WITH &&, ball(fp, 6) WITH ~=)",
            "must follow the fingerprint",
        ),
        (
            "ALTER TABLE docs ADD EXCLUDE USING neardup (during WITH &&)",
            "must have exactly one fingerprint",
        ),
        (
            "ALTER TABLE docs ADD EXCLUDE USING neardup (ball(fp, 6) WITH ~=, id WITH =)",
            "must have exactly one fingerprint",
        ),
        (
            "ALTER TABLE docs ADD EXCLUDE USING neardup (ball(fp, 6) WITH ~=, during WITH @>)",
            "@>",
        ),
    ] {
        let error = client.batch_execute(statement).err().context(statement)?;
        let error = error.as_db_error().context("of the server")?;
        let text = format!("{} {}", error.message(), error.detail().unwrap_or_default());
        ensure!(text.contains(shown), "{statement}: {text}");
    }
    // A range is still a scope, which is compared for equality.
    client.batch_execute(
        "CREATE INDEX ON docs USING neardup (during, fp); \
        ALTER TABLE docs ADD EXCLUDE USING neardup (during WITH =, ball(fp, 6) WITH ~=)",
    )?;
    Ok(())
}

/// Inserts and moves rows near a few centres.
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
        let hours = random.below(2400);
        let during = format!(
            "tsrange(timestamp '2024-01-01' + {hours} * interval '1 hour', \
            timestamp '2024-01-01' + {} * interval '1 hour')",
            hours + 24
        );
        let statement = match random.below(8) {
            0..3 => format!("INSERT INTO docs VALUES ({id}, '{bits:016x}', {during})"),
            3..5 => format!(
                "INSERT INTO docs VALUES ({id}, '{bits:016x}', {during}) \
                ON CONFLICT DO NOTHING"
            ),
            5..7 => format!("UPDATE docs SET during = {during} WHERE id = {other}"),
            _ => format!("DELETE FROM docs WHERE id = {other}"),
        };
        let result = client.batch_execute(&statement);
        match code(&result) {
            None => written += 1,
            Some(SqlState::EXCLUSION_VIOLATION | SqlState::T_R_DEADLOCK_DETECTED) => (),
            Some(_) => result?,
        }
    }
    Ok(written)
}

#[test]
fn concurrent_writers_leave_no_overlap() -> Outcome {
    let (database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE docs (id int, fp fingerprint, during tsrange, \
            CONSTRAINT docs_window EXCLUDE USING neardup (ball(fp, 6) WITH ~=, during WITH &&))",
    )?;
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
    ensure!(pairs(&mut client, "k.fp <#> t.fp <= 6 AND k.during && t.during")? == 0);
    let same: i64 = pairs(&mut client, "k.fp <#> t.fp <= 6")?;
    ensure!(same > 500, "{same}");
    client.batch_execute("SELECT neardup_index_check('docs_window', true)")?;
    Ok(())
}
