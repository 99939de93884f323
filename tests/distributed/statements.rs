//! The jobs over keys of near-duplicates as single statements, on partitions instead of machines,
//! return the same results as the index on one table.
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::table::{TYPES, Table, value};
use anyhow::{Context, Result, bail, ensure};
use neardup_tests::{Database, project_path};
use postgres::Client;
use postgres::error::SqlState;

/// The partitions of the keys.
const PARTITIONS: u32 = 8;

/// Count of pairs, and sums of their ids and distances.
pub type Sums = (i64, i64, i64, i64);

/// Returns the count and the sums of the pairs of a query: two ids, and the distance.
pub fn sums(client: &mut Client, pairs: &str) -> Result<Sums> {
    let row = client.query_one(
        &format!(
            "SELECT count(*), coalesce(sum(least(a, b)), 0)::bigint, \
             coalesce(sum(greatest(a, b)), 0)::bigint, coalesce(sum(d), 0)::bigint \
             FROM ({pairs}) AS pairs (a, b, d)"
        ),
        &[],
    )?;
    Ok((row.get(0), row.get(1), row.get(2), row.get(3)))
}

/// Makes a table that is partitioned by hash, and its partitions.
fn partitioned(client: &mut Client, table: &str, columns: &str, key: &str) -> Outcome {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns}) PARTITION BY HASH ({key})"
    ))?;
    for i in 0..PARTITIONS {
        client.batch_execute(&format!(
            "CREATE TABLE {table}_{i} PARTITION OF {table} \
             FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {i})"
        ))?;
    }
    Ok(())
}

/// The tables that a plan reads.
fn tables_read(client: &mut Client, query: &str) -> Result<Vec<String>> {
    let rows = client.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[])?;
    let mut names: Vec<String> = (rows.iter())
        .map(|row| row.get::<_, String>(0))
        .filter_map(|line| {
            let rest = line.split_once(" on routed_")?.1;
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            Some(format!("routed_{number}"))
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

#[test]
fn all_pairs_by_keys_are_those_of_the_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute("SET enable_partitionwise_join = on; SET work_mem = '64MB'")?;
    let mut seen = 0;
    for fp in TYPES {
        let table = Table::new(fp);
        let mut values = Shape::Balls.values(2_000, 21);
        values.extend(Shape::Uniform.values(2_000, 22));
        table.create_indexed(&mut client, &values, "")?;
        for (distance, blocks) in [(0, None), (2, None), (3, None), (3, Some(5)), (4, None)] {
            let by_index = format!(
                "SELECT x.id, y.id, p.distance FROM neardup_pairs('docs', {distance}) AS p \
                 JOIN docs x ON x.ctid = p.a JOIN docs y ON y.ctid = p.b"
            );
            let expected = sums(&mut client, &by_index)?;
            let blocks = blocks.map_or(String::new(), |blocks| format!(", {blocks}"));
            let columns = format!("key bigint, id bigint, fp {}", fp.name);
            partitioned(&mut client, "keys", &columns, "key")?;
            client.batch_execute(&format!(
                "INSERT INTO keys SELECT unnest(neardup_keys(fp, {distance}{blocks})), id, fp \
                 FROM docs WHERE fp IS NOT NULL; ANALYZE keys"
            ))?;
            let by_keys = format!(
                "SELECT a.id, b.id, a.fp <#> b.fp FROM keys a JOIN keys b USING (key) \
                 WHERE a.id < b.id AND neardup_meet(key, a.fp, b.fp, {distance}{blocks})"
            );
            let found = sums(&mut client, &by_keys)?;
            ensure!(
                found == expected,
                "{}, {distance}{blocks}: {found:?} instead of {expected:?}",
                fp.name
            );
            seen += found.0;
        }
    }
    ensure!(seen > 10_000, "{seen} pairs");
    Ok(())
}

#[test]
fn all_pairs_of_signatures_by_keys_are_those_of_the_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT id, minhash(ARRAY(SELECT 'word ' || id / 5 || ' ' || i \
             FROM generate_series(id % 5 * 3, 60) AS i)) AS sig FROM generate_series(1, 800) id; \
         CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (similarity = 0.7)",
    )?;
    let mut seen = 0;
    for (similarity, bands) in [("0.8", ""), ("0.8", ", 26"), ("0.7", "")] {
        let by_index = format!(
            "SELECT x.id, y.id, round(128 * (1 - p.similarity)) \
             FROM neardup_pairs('docs', similarity => {similarity}) AS p \
             JOIN docs x ON x.ctid = p.a JOIN docs y ON y.ctid = p.b"
        );
        let expected = sums(&mut client, &by_index)?;
        let columns = "key bigint, id bigint, sig minhash_signature";
        partitioned(&mut client, "keys", columns, "key")?;
        client.batch_execute(&format!(
            "INSERT INTO keys SELECT unnest(minhash_keys(sig, {similarity}{bands})), id, sig \
             FROM docs"
        ))?;
        let by_keys = format!(
            "SELECT a.id, b.id, round(128 * (a.sig <%> b.sig)) FROM keys a JOIN keys b USING (key) \
             WHERE a.id < b.id AND minhash_meet(key, a.sig, b.sig, {similarity}{bands})"
        );
        let found = sums(&mut client, &by_keys)?;
        ensure!(
            found == expected,
            "{similarity}{bands}: {found:?}, {expected:?}"
        );
        seen += found.0;
    }
    ensure!(seen > 1_000, "{seen} pairs");
    Ok(())
}

#[test]
fn a_search_by_keys_reads_the_partitions_of_the_keys_alone() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for fp in TYPES {
        let table = Table::new(fp);
        let mut values = Shape::Balls.values(2_000, 31);
        values.extend(Shape::Uniform.values(1_000, 32));
        table.create_indexed(&mut client, &values, "")?;
        let columns = format!("key bigint, id bigint, fp {}", fp.name);
        partitioned(&mut client, "routed", &columns, "key")?;
        client.batch_execute(&format!(
            "INSERT INTO routed SELECT unnest(neardup_keys(fp, 3)), id, fp FROM docs \
                WHERE fp IS NOT NULL; \
             CREATE INDEX ON routed USING neardup (fp {}); ANALYZE routed",
            fp.opclass
        ))?;
        let mut pruned = 0;
        for center in values.iter().flatten().step_by(101) {
            let q = fp.literal(center ^ 0b10001);
            let query = format!(
                "SELECT count(*), sum(id)::bigint FROM routed \
                 WHERE key = ANY (neardup_keys({q}, 3)) AND fp <~> {q} <= 3 \
                    AND neardup_meet(key, fp, {q}, 3)"
            );
            let all = format!("SELECT count(*), sum(id)::bigint FROM docs WHERE fp <~> {q} <= 3");
            let [found, expected] = [&query, &all].map(|query| {
                let row = client.query_one(query.as_str(), &[])?;
                anyhow::Ok((row.get::<_, i64>(0), row.get::<_, Option<i64>>(1)))
            });
            ensure!(found? == expected?, "{query}");
            // The planner sees the array of keys as a constant.
            let keys: Vec<String> = (client.query(
                &format!(
                    "SELECT DISTINCT tableoid::regclass::text FROM routed \
                     WHERE key = ANY (neardup_keys({q}, 3))"
                ),
                &[],
            )?)
            .iter()
            .map(|row| row.get(0))
            .collect();
            let read = tables_read(&mut client, &query)?;
            ensure!(keys.iter().all(|name| read.contains(name)) && read.len() <= 4);
            pruned += usize::from(read.len() < PARTITIONS as usize);
        }
        ensure!(pruned > 20, "{pruned}");
    }
    Ok(())
}

/// A table of keys in addition to the rows, with a constraint on each partition.
#[test]
fn a_gate_by_keys_keeps_near_duplicates_out_of_all_partitions() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for fp in TYPES {
        let columns = format!("key bigint, id bigint, fp {}", fp.name);
        partitioned(&mut client, "gate", &columns, "key")?;
        for i in 0..PARTITIONS {
            client.batch_execute(&format!(
                "ALTER TABLE gate_{i} ADD EXCLUDE USING neardup (key WITH =, fp {} WITH ~=)",
                fp.opclass
            ))?;
        }
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS kept; CREATE TABLE kept (id bigint, fp {})",
            fp.name
        ))?;
        let mut kept = 0;
        let values = Shape::Balls.values(400, 41);
        for (id, bits) in values.iter().flatten().enumerate() {
            let q = fp.literal(*bits);
            let clash: bool = value(
                &mut client,
                &format!("SELECT EXISTS (SELECT FROM kept WHERE fp ~= {q})"),
            )?;
            // Inserts the row and its keys in one statement.
            let inserted = client.batch_execute(&format!(
                "WITH row AS (INSERT INTO kept VALUES ({id}, {q}) RETURNING *) \
                 INSERT INTO gate SELECT unnest(neardup_keys(fp, {})), id, fp FROM row",
                fp.near
            ));
            match inserted {
                Ok(()) => ensure!(!clash, "{}: a near-duplicate of {q} got in", fp.name),
                Err(error) => {
                    ensure!(
                        error.code() == Some(&SqlState::EXCLUSION_VIOLATION),
                        "{error:?}"
                    );
                    ensure!(clash, "{}: {q} was refused", fp.name);
                }
            }
            kept += usize::from(!clash);
        }
        ensure!((2..values.len()).contains(&kept), "{kept}");
        let pairs: i64 = value(
            &mut client,
            "SELECT count(*) FROM kept a JOIN kept b ON a.fp ~= b.fp AND a.id < b.id",
        )?;
        ensure!(pairs == 0);
        // Deleting a row frees its keys.
        client.batch_execute("DELETE FROM gate; DELETE FROM kept")?;
        let again = format!(
            "INSERT INTO gate SELECT unnest(neardup_keys({0}, {1})), 1, {0}",
            fp.literal(values.iter().flatten().next().copied().context("a value")?),
            fp.near
        );
        client.batch_execute(&again)?;
    }
    Ok(())
}

/// The partition of its first shared key returns each pair. So partitions, or machines, can be
/// processed one by one, and an interrupted job can continue.
#[test]
fn pairs_of_all_partitions_by_themselves_are_all_pairs() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(TYPES[0]);
    table.create_indexed(&mut client, &Shape::Balls.values(3_000, 51), "")?;
    let columns = "key bigint, id bigint, fp fingerprint";
    partitioned(&mut client, "keys", columns, "key")?;
    client.batch_execute(
        "INSERT INTO keys SELECT unnest(neardup_keys(fp, 3)), id, fp FROM docs \
             WHERE fp IS NOT NULL",
    )?;
    let by_index = "SELECT x.id, y.id, p.distance FROM neardup_pairs('docs', 3) AS p \
         JOIN docs x ON x.ctid = p.a JOIN docs y ON y.ctid = p.b";
    let expected = sums(&mut client, by_index)?;
    let mut total = (0, 0, 0, 0);
    for i in 0..PARTITIONS {
        let of = |table: &str| {
            format!(
                "SELECT a.id, b.id, a.fp <#> b.fp FROM {table} a JOIN {table} b USING (key) \
                 WHERE a.id < b.id AND neardup_meet(key, a.fp, b.fp, 3)"
            )
        };
        let part = sums(&mut client, &of(&format!("keys_{i}")))?;
        total.0 += part.0;
        total.1 += part.1;
        total.2 += part.2;
        total.3 += part.3;
    }
    ensure!(
        total == expected && total.0 > 1_000,
        "{total:?} {expected:?}"
    );
    Ok(())
}

/// The server's approximate keys are the golden vectors, which the crate and the package for Python
/// also return.
#[test]
fn band_keys_are_the_golden_vectors() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let path = project_path("crates/blocktree/tests/golden_band_keys.tsv");
    let mut count = 0;
    for line in std::fs::read_to_string(path)?.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, text, bands, rows, keys] = columns[..] else {
            bail!("{line}");
        };
        let query = format!("SELECT neardup_band_keys('{text}'::{name}, {bands}, {rows})");
        let found: Vec<i64> = value(&mut client, &query)?;
        let keys: Vec<i64> = keys.split(',').map(str::parse).collect::<Result<_, _>>()?;
        ensure!(found == keys, "{line}");
        count += 1;
    }
    ensure!(count >= 24, "{count} lines");
    Ok(())
}

/// An approximate index finds the pairs that share one of its bands. So the join by approximate
/// keys finds no other pairs, and not all pairs. The index may find more, because a search also
/// compares the sketches on a leaf.
#[test]
fn pairs_by_band_keys_are_pairs_of_the_approximate_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT id, minhash(ARRAY(SELECT 'word ' || id / 5 || ' ' || i \
             FROM generate_series(id % 5 * 3, 60) AS i)) AS sig FROM generate_series(1, 800) id; \
         CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (bands = 12, rows = 10); \
         ANALYZE docs; SET enable_seqscan = off; SET neardup.allow_approximate = on",
    )?;
    let by_index = "SELECT a.id, b.id, round(128 * (a.sig <%> b.sig)) FROM docs a JOIN docs b \
         ON b.sig <@ minhash_ball(a.sig, 0.8) WHERE a.id < b.id";
    let plan: Vec<String> = (client.query(&format!("EXPLAIN {by_index}"), &[])?.iter())
        .map(|row| row.get(0))
        .collect();
    ensure!(plan.join("\n").contains("docs_sig"), "{plan:?}");
    let by_keys = |keys: &str| {
        format!(
            "WITH keys AS (SELECT id, sig, unnest({keys}) AS key FROM docs) \
             SELECT DISTINCT a.id, b.id, round(128 * (a.sig <%> b.sig)) \
             FROM keys a JOIN keys b USING (key) \
             WHERE a.id < b.id AND minhash_similarity(a.sig, b.sig) >= 0.8"
        )
    };
    let band_keys = by_keys("neardup_band_keys(sig, 12, 10)");
    let other: i64 = value(
        &mut client,
        &format!("SELECT count(*) FROM ({band_keys} EXCEPT ({by_index})) AS other"),
    )?;
    ensure!(other == 0, "{other} pairs that the index does not find");
    let [found, all] =
        [band_keys, by_keys("minhash_keys(sig, 0.8)")].map(|pairs| sums(&mut client, &pairs));
    let (found, all) = (found?.0, all?.0);
    ensure!(500 < found && found < all, "{found} of {all}");
    Ok(())
}
