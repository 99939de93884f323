//! `neardup_pairs` and `neardup_clusters` against the comparison of all pairs of rows in SQL.
use crate::support::clients::code;
use crate::support::data::{Random, Shape};
use crate::support::oracle::Way;
use crate::support::table::{BIGINT, FINGERPRINT, Table, value};
use crate::support::waiting::{moment, wait_while_running};
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::error::SqlState;
use postgres::{Client, GenericClient};
use std::collections::{BTreeMap, BTreeSet};

type Pair = (i64, i64, i32);

fn pairs(client: &mut impl GenericClient, radius: i32) -> Result<Vec<Pair>> {
    let query = format!(
        "SELECT least(a.id, b.id), greatest(a.id, b.id), p.distance \
         FROM neardup_pairs('docs_fp', {radius}) p \
         JOIN docs a ON a.ctid = p.a JOIN docs b ON b.ctid = p.b ORDER BY 1, 2"
    );
    let rows = client.query(&query, &[])?;
    let pairs: Vec<Pair> = (rows.iter())
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    // Each address leads to a row, so that no pair is lost in the join.
    let given: i64 = value(
        client,
        &format!("SELECT count(*) FROM neardup_pairs('docs_fp', {radius})"),
    )?;
    ensure!(
        given == pairs.len() as i64,
        "{given} pairs, {} rows joined",
        pairs.len()
    );
    Ok(pairs)
}

fn expected(client: &mut impl GenericClient, radius: i32) -> Result<Vec<Pair>> {
    Way::Sequential.set(client)?;
    let query = format!(
        "SELECT a.id, b.id, (a.fp <~> b.fp)::int FROM docs a JOIN docs b \
         ON a.id < b.id AND (a.fp <~> b.fp)::int <= {radius} ORDER BY 1, 2"
    );
    let rows = client.query(&query, &[])?;
    Ok((rows.iter())
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect())
}

fn agree(client: &mut impl GenericClient, radii: &[i32], what: &str) -> Result<()> {
    for &radius in radii {
        let (found, expected) = (pairs(client, radius)?, expected(client, radius)?);
        ensure!(
            found == expected,
            "{what}, radius {radius}: {} pairs instead of {}",
            found.len(),
            expected.len()
        );
    }
    Ok(())
}

#[test]
fn all_pairs_of_every_shape() -> Result<()> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        let table = Table::new(if i % 2 == 0 { FINGERPRINT } else { BIGINT });
        let rows = if shape == Shape::Equal { 200 } else { 800 };
        let values = shape.values(rows, 40 + i as u64);
        for options in ["", "radius = 1", "radius = 2, blocks = 5"] {
            table.create_indexed(&mut client, &values, options)?;
            for memory in ["64kB", "4MB"] {
                client.batch_execute(&format!("SET work_mem = '{memory}'"))?;
                agree(
                    &mut client,
                    &[0, 3, 6],
                    &format!("{shape:?}, {options}, {memory}"),
                )?;
            }
        }
        agree(&mut client, &[11], &format!("{shape:?}"))?;
    }
    Ok(())
}

#[test]
fn after_updates_deletes_and_vacuum() -> Result<()> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(2_000, 51), "")?;
    client.batch_execute("ALTER TABLE docs ADD note int; SET work_mem = '64kB'")?;
    for round in 0..4 {
        // Row versions within a page. The index has the address of the first of their chain only.
        client.batch_execute(&format!(
            "UPDATE docs SET note = {round} WHERE id % 3 = {}; DELETE FROM docs WHERE id % 7 = \
                {round}; \
             UPDATE docs SET fp = (fp::bigint # 1)::fingerprint WHERE id % 11 = {round}",
            round % 3
        ))?;
        agree(&mut client, &[2, 5], "after changes")?;
        if round % 2 == 1 {
            client.batch_execute("VACUUM docs")?;
            agree(&mut client, &[2, 5], "after VACUUM")?;
        }
        let more = Shape::Balls.values(200, 51);
        table.append(&mut client, 10_000 + 1_000 * round, &more)?;
    }
    agree(&mut client, &[3], "in the end")
}

#[test]
fn a_snapshot_sees_its_pairs_whatever_happens() -> Result<()> {
    let database = Database::create()?;
    let (mut reader, mut writer) = (database.connect()?, database.connect()?);
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut reader, &Shape::Uniform.values(3_000, 61), "")?;
    reader.batch_execute("SET work_mem = '64kB'")?;
    let mut transaction = reader
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .start()?;
    let before = expected(&mut transaction, 8)?;
    ensure!(before.len() > 50);
    // The cursor is open while leaves split, rows are deleted, and VACUUM runs.
    transaction.batch_execute(
        "DECLARE found NO SCROLL CURSOR FOR SELECT (p).a, (p).b, (p).distance \
         FROM (SELECT neardup_pairs('docs_fp', 8) AS p) AS pairs",
    )?;
    let mut given: BTreeMap<(String, String), i32> = BTreeMap::new();
    for round in 0.. {
        let rows = transaction.query("FETCH 20 FROM found", &[])?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let (a, b): (Raw, Raw) = (row.get(0), row.get(1));
            let again = given.insert((a.0, b.0), row.get(2));
            ensure!(again.is_none(), "a pair was given twice");
        }
        if round < 20 {
            let values = Shape::Uniform.values(1_000, 61 + round);
            table.append(&mut writer, 100_000 + 1_000 * round as i64, &values)?;
            writer.batch_execute(&format!(
                "DELETE FROM docs WHERE id % 40 = {round}; \
                 UPDATE docs SET fp = (~fp::bigint)::fingerprint WHERE id % 41 = {round}"
            ))?;
            writer.batch_execute("VACUUM docs")?;
        }
    }
    ensure!(
        given.len() == before.len(),
        "{} pairs instead of {}",
        given.len(),
        before.len()
    );
    let mut distances: Vec<i32> = given.into_values().collect();
    let mut of_before: Vec<i32> = before.iter().map(|pair| pair.2).collect();
    distances.sort_unstable();
    of_before.sort_unstable();
    ensure!(distances == of_before);
    agree(&mut transaction, &[8], "the same snapshot later")
}

/// A row address in the binary protocol: block and line.
struct Raw(String);

impl<'a> postgres::types::FromSql<'a> for Raw {
    fn from_sql(
        _: &postgres::types::Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(format!("{raw:?}")))
    }
    fn accepts(other: &postgres::types::Type) -> bool {
        *other == postgres::types::Type::TID
    }
}

/// Returns the expected clusters of rows, given in the order in which they are kept.
fn clustered(order: &[i64], pairs: &[Pair], connected: bool) -> BTreeMap<i64, BTreeSet<i64>> {
    let mut near: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for &(a, b, _) in pairs {
        near.entry(a).or_default().push(b);
        near.entry(b).or_default().push(a);
    }
    let mut taken = BTreeSet::new();
    let mut clusters: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for &row in order {
        if !taken.insert(row) {
            continue;
        }
        let mut members = BTreeSet::from([row]);
        let mut next = vec![row];
        while let Some(from) = next.pop() {
            for &other in near.get(&from).into_iter().flatten() {
                if taken.insert(other) {
                    members.insert(other);
                    if connected {
                        next.push(other);
                    }
                }
            }
        }
        if members.len() > 1 {
            clusters.insert(row, members);
        }
    }
    clusters
}

fn clusters_agree(client: &mut Client, radius: i32, keep: &str) -> Result<usize> {
    let pairs = expected(client, radius)?;
    let order: Vec<i64> = value(
        client,
        &format!("SELECT array_agg(id ORDER BY {keep}, ctid) FROM docs"),
    )?;
    let mut rows_seen = 0;
    for method in ["star", "connected"] {
        let rows = client.query(
            "SELECT r.id, m.id, c.size, c.distance, (r.fp <~> m.fp)::int \
             FROM neardup_clusters('docs_fp', $1::integer, method => $2, keep => $3) c \
             JOIN docs r ON r.ctid = c.representative JOIN docs m ON m.ctid = c.member",
            &[&radius, &method, &keep],
        )?;
        let mut found: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        let mut sizes = BTreeMap::new();
        for row in &rows {
            let (kept, member): (i64, i64) = (row.get(0), row.get(1));
            let (given, measured): (i32, i32) = (row.get(3), row.get(4));
            ensure!(given == measured && (method == "connected" || given <= radius));
            ensure!(
                found.entry(kept).or_default().insert(member),
                "{member} twice"
            );
            sizes.insert(kept, row.get::<_, i64>(2));
        }
        let expected = clustered(&order, &pairs, method == "connected");
        ensure!(
            found == expected,
            "{method}, {radius}, {keep}: {} clusters instead of {}",
            found.len(),
            expected.len()
        );
        let all = |(kept, members): (&i64, &BTreeSet<i64>)| sizes[kept] == members.len() as i64;
        ensure!(expected.iter().all(all), "{method}: wrong sizes");
        rows_seen += rows.len();
    }
    Ok(rows_seen)
}

#[test]
fn clusters_of_every_shape() -> Result<()> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut seen = 0;
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        let table = Table::new(if i % 2 == 0 { BIGINT } else { FINGERPRINT });
        let rows = if shape == Shape::Equal { 200 } else { 1_000 };
        table.create_indexed(&mut client, &shape.values(rows, 70 + i as u64), "")?;
        client.batch_execute(
            "UPDATE docs SET id = id WHERE id % 5 = 0; DELETE FROM docs WHERE id % 13 = 1",
        )?;
        for (radius, keep) in [
            (0, "id"),
            (3, "id DESC"),
            (3, "id % 10, hashint8(id)"),
            (9, "id % 3"),
        ] {
            seen += clusters_agree(&mut client, radius, keep)?;
        }
    }
    ensure!(seen > 1_000);
    Ok(())
}

#[test]
fn what_takes_long_can_be_cancelled() -> Result<()> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    // 5,000 million pairs.
    client.batch_execute(
        "CREATE TABLE docs AS SELECT i AS id, '0'::bigint AS fp FROM generate_series(1, 100000) i; \
         CREATE INDEX docs_fp ON docs USING neardup (fp bigint_hamming_ops)",
    )?;
    let backend: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
    let mut other = database.connect()?;
    let result = std::thread::scope(|scope| -> Result<_> {
        let query = scope.spawn(|| {
            client.batch_execute(
                "SELECT count(*) FROM (SELECT neardup_pairs('docs_fp', 3) OFFSET 0) AS pairs",
            )
        });
        let runs = format!(
            "SELECT state = 'active' AND query LIKE '%pairs%' FROM pg_stat_activity \
             WHERE pid = {backend}"
        );
        wait_while_running(&mut other, &runs, &query)?;
        // By then it reads pairs of equal values, and can notice the request nowhere else.
        moment(50);
        other.execute("SELECT pg_cancel_backend($1)", &[&backend])?;
        query.join().ok().context("the client panicked")
    })?;
    assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
    let first: i64 = value(
        &mut client,
        "SELECT count(*) FROM (SELECT neardup_pairs('docs_fp', 3) LIMIT 5) AS pairs",
    )?;
    ensure!(first == 5);
    Ok(())
}

#[test]
fn a_sample_of_all_rows_counts_all_pairs() -> Result<()> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut random = Random::new(81);
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(1_500, random.bits()), "")?;
    client.batch_execute("DELETE FROM docs WHERE id % 4 = 0; UPDATE docs SET id = id")?;
    let count = |client: &mut Client, call: &str| -> Result<Vec<i64>> {
        let query = format!(
            "SELECT array_agg(pairs ORDER BY distance) FROM neardup_distance_histogram({call})"
        );
        value(client, &query)
    };
    let mut expected_counts = vec![0i64; 13];
    for (_, _, distance) in expected(&mut client, 12)? {
        expected_counts[distance as usize] += 1;
    }
    ensure!(expected_counts.iter().sum::<i64>() > 1_000);
    ensure!(count(&mut client, "'docs_fp', 12, sample_rows => NULL")? == expected_counts);
    ensure!(count(&mut client, "'docs', 12, sample_rows => 100000")? == expected_counts);
    // The index keeps entries of dead versions until VACUUM, and the sample has them as well.
    client.batch_execute("VACUUM docs")?;
    ensure!(count(&mut client, "'docs_fp', 12, sample_rows => 100000")? == expected_counts);
    Ok(())
}
