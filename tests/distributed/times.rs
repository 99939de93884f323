//! All pairs of the same rows by each way of docs/distributed.md: equal results, and run times.
//!
//! The tests use a few rows. The table of the document is the output with
//! `NEARDUP_TEST_DISTRIBUTED_ROWS=2000000`, with Citus, and with Spark (see
//! tests/distributed/engines.rs).
use crate::distributed::citus::{self, Cluster};
use crate::distributed::engines::{self, InPython};
use crate::distributed::foreign_jobs::Front;
use crate::distributed::statements::{Sums, sums};
use crate::support::Outcome;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect, setting};
use postgres::Client;
use std::fmt;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Settings of all servers.
const SETTINGS: [(&str, &str); 5] = [
    ("fsync", "off"),
    ("max_wal_size", "512MB"),
    ("shared_buffers", "512MB"),
    ("work_mem", "256MB"),
    ("maintenance_work_mem", "512MB"),
];

/// Returns rows; every 53rd is 2 bits from the one before it.
fn rows(count: u64) -> String {
    format!(
        "SELECT n AS id, (hashint8extended(n - CASE n % 53 WHEN 0 THEN 1 ELSE 0 END, 1) \
            # CASE n % 53 WHEN 0 THEN 5 ELSE 0 END)::bigint::fingerprint AS fp \
         FROM generate_series(1, {count}) AS n"
    )
}

const KEYS: &str = "INSERT INTO keys SELECT unnest(neardup_keys(fp, 3, 5)), id, fp FROM docs";

const JOIN: &str = "INSERT INTO pairs SELECT a.id, b.id, a.fp <#> b.fp \
    FROM keys a JOIN keys b USING (key) \
    WHERE a.id < b.id AND neardup_meet(key, a.fp, b.fp, 3, 5)";

const KEY_COLUMNS: &str = "key bigint, id bigint, fp fingerprint";

const PAIRS: &str = "CREATE TABLE pairs (a bigint, b bigint, distance int)";

/// A way to all pairs, with the times of its two steps.
struct Way {
    name: &'static str,
    before: Duration,
    join: Duration,
    sums: Sums,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, join) = (self.before.as_secs_f64(), self.join.as_secs_f64());
        write!(
            f,
            "| {} | {before:.1} s | {join:.1} s | {:?}",
            self.name, self.sums
        )
    }
}

fn timed(client: &mut Client, statement: &str) -> Result<Duration> {
    let start = Instant::now();
    client.batch_execute(statement)?;
    Ok(start.elapsed())
}

/// The rows, as a file of COPY.
fn copied(client: &mut Client) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    client
        .copy_out("COPY docs TO STDOUT")?
        .read_to_end(&mut file)?;
    Ok(file)
}

fn copy_in(client: &mut Client, file: &[u8]) -> Outcome {
    let mut copy = client.copy_in("COPY docs FROM STDIN")?;
    copy.write_all(file)?;
    copy.finish()?;
    Ok(())
}

#[test]
fn all_pairs_by_every_way_are_the_same() -> Outcome {
    let count = setting("DISTRIBUTED_ROWS", 20_000)?;
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "SET work_mem = '256MB'; SET maintenance_work_mem = '512MB'; \
         CREATE TABLE docs (id bigint, fp fingerprint)",
    )?;
    client.batch_execute(&format!("INSERT INTO docs {}; ANALYZE docs", rows(count)))?;
    let mut ways = vec![by_index(&mut client)?];
    println!("{count} rows\n{}", ways[0]);
    let mut add = |way: Way| {
        println!("{way}");
        ways.push(way);
    };
    add(by_table(&mut client)?);
    let file = copied(&mut client)?;
    if let Some(way) = by_foreign_servers(&file)? {
        add(way);
    }
    if let Some(way) = by_citus(&file)? {
        add(way);
    }
    let in_python = [
        ("DuckDB", engines::PYTHON, "duckdb-postgres"),
        ("Spark", engines::SPARK, "spark"),
    ];
    for (name, variable, engine) in in_python {
        let found = engines::in_python(variable, engine, database.conninfo(), "fingerprint")?;
        if let Some(InPython { sums, seconds }) = found {
            let [before, join] = seconds.map(Duration::from_secs_f64);
            let sums = (sums[0], sums[1], sums[2], sums[3]);
            add(Way {
                name,
                before,
                join,
                sums,
            });
        }
    }
    let expected = ways[0].sums;
    ensure!(expected.0 >= (count / 53) as i64, "{expected:?}");
    for way in &ways {
        ensure!(way.sums == expected, "{way}, not {expected:?}");
    }
    Ok(())
}

fn by_index(client: &mut Client) -> Result<Way> {
    let before = timed(client, "CREATE INDEX docs_fp ON docs USING neardup (fp)")?;
    client.batch_execute(PAIRS)?;
    let join = timed(
        client,
        "INSERT INTO pairs SELECT least(x.id, y.id), greatest(x.id, y.id), distance \
         FROM neardup_pairs('docs', 3) p JOIN docs x ON x.ctid = p.a JOIN docs y ON y.ctid = p.b",
    )?;
    let sums = sums(client, "SELECT * FROM pairs")?;
    client.batch_execute("DROP INDEX docs_fp; DROP TABLE pairs")?;
    Ok(Way {
        name: "`neardup_pairs`, by the index",
        before,
        join,
        sums,
    })
}

fn by_table(client: &mut Client) -> Result<Way> {
    client.batch_execute(&format!("CREATE TABLE keys ({KEY_COLUMNS}); {PAIRS}"))?;
    let before = timed(client, &format!("{KEYS}; ANALYZE keys"))?;
    let join = timed(client, JOIN)?;
    let sums = sums(client, "SELECT * FROM pairs")?;
    client.batch_execute("DROP TABLE keys, pairs")?;
    Ok(Way {
        name: "PostgreSQL, a table of keys",
        before,
        join,
        sums,
    })
}

/// One server has the rows with odd ids, the other the even ones. The hash of a key places it.
fn by_foreign_servers(file: &[u8]) -> Result<Option<Way>> {
    let Some(front) = Front::create("times", &SETTINGS)? else {
        return Ok(None);
    };
    let mut client = front.connect()?;
    client.batch_execute(&format!(
        "CREATE TABLE docs (id bigint, fp fingerprint) PARTITION BY LIST ((id % 2)); {PAIRS}"
    ))?;
    for (i, shard) in front.shards.iter().enumerate() {
        let mut shard = connect(&shard.conninfo("postgres"))?;
        shard.batch_execute("CREATE TABLE docs (id bigint, fp fingerprint)")?;
        copy_in(&mut shard, file)?;
        shard.batch_execute(&format!("DELETE FROM docs WHERE id % 2 <> {i}"))?;
        shard.batch_execute("VACUUM (FULL, ANALYZE) docs")?;
        client.batch_execute(&format!(
            "CREATE FOREIGN TABLE docs_{i} PARTITION OF docs FOR VALUES IN ({i}) \
                SERVER shard_{i} OPTIONS (table_name 'docs')"
        ))?;
    }
    front.spread(&mut client, "keys", KEY_COLUMNS, "key")?;
    let start = Instant::now();
    client.batch_execute(KEYS)?;
    front.on_shards(|_| "ANALYZE keys".to_owned())?;
    let before = start.elapsed();
    let join = timed(
        &mut client,
        &format!("SET enable_partitionwise_join = on; {JOIN}"),
    )?;
    let sums = sums(&mut client, "SELECT * FROM pairs")?;
    Ok(Some(Way {
        name: "postgres_fdw, two servers",
        before,
        join,
        sums,
    }))
}

fn by_citus(file: &[u8]) -> Result<Option<Way>> {
    let Some(cluster) = Cluster::with_neardup("times", &SETTINGS)? else {
        return Ok(None);
    };
    let mut client = cluster.connect()?;
    citus::distributed(&mut client, "docs", "id bigint, fp fingerprint", "id")?;
    copy_in(&mut client, file)?;
    citus::distributed(&mut client, "keys", KEY_COLUMNS, "key")?;
    citus::distributed(
        &mut client,
        "pairs",
        "a bigint, b bigint, distance int",
        "a",
    )?;
    let before = timed(&mut client, KEYS)? + timed(&mut client, "ANALYZE keys")?;
    let join = timed(&mut client, JOIN)?;
    let sums = sums(&mut client, "SELECT * FROM pairs").context("pairs of Citus")?;
    Ok(Some(Way {
        name: "Citus, coordinator and two workers",
        before,
        join,
        sums,
    }))
}

/// Searches per second of one client: of all shards, with the setting named in the document, and
/// of the shards of the query's keys.
#[test]
fn searches_of_citus_by_every_way_find_the_same() -> Outcome {
    let count = setting("DISTRIBUTED_ROWS", 20_000)?;
    let searches = setting("SEARCHES", 40)?;
    let Some(cluster) = Cluster::with_neardup("searches", &SETTINGS)? else {
        return Ok(());
    };
    let mut client = cluster.connect()?;
    citus::distributed(&mut client, "docs", "id bigint, fp fingerprint", "id")?;
    citus::distributed(&mut client, "keys", KEY_COLUMNS, "key")?;
    citus::each(
        &mut client,
        &format!(
            "CREATE TABLE local AS {}; INSERT INTO docs SELECT * FROM local; \
         CREATE INDEX docs_fp ON docs USING neardup (fp); \
         INSERT INTO keys SELECT unnest(neardup_keys(fp, 3)), id, fp FROM docs; \
         CREATE INDEX keys_key ON keys (key); ANALYZE docs; ANALYZE keys",
            rows(count)
        ),
    )?;
    let probes = client.query(
        &format!(
            "SELECT fp::text FROM local WHERE id % {} = 0",
            (count / searches).max(1)
        ),
        &[],
    )?;
    let probes: Vec<String> = probes.iter().map(|row| row.get(0)).collect();
    let all = "SELECT count(*) FROM docs WHERE fp <~> 'PROBE' <= 3";
    let by_keys = "SELECT count(*) FROM keys \
        WHERE key = ANY (neardup_keys('PROBE'::fingerprint, 3)) \
            AND fp <~> 'PROBE' <= 3 AND neardup_meet(key, fp, 'PROBE', 3)";
    let mut totals = Vec::new();
    for (name, pool, query) in [
        ("all shards", 16, all),
        ("all shards, one connection to a node", 1, all),
        ("by keys", 16, by_keys),
        ("by keys, one connection to a node", 1, by_keys),
    ] {
        client.batch_execute(&format!(
            "SET citus.max_adaptive_executor_pool_size = {pool}"
        ))?;
        let start = Instant::now();
        let mut total = 0;
        for probe in &probes {
            let found: i64 = client
                .query_one(&query.replace("PROBE", probe), &[])?
                .get(0);
            total += found;
        }
        let rate = probes.len() as f64 / start.elapsed().as_secs_f64();
        println!("| {name} | {rate:.0} searches a second | {total} rows");
        totals.push(total);
    }
    let found = totals[0];
    ensure!(
        found >= probes.len() as i64 && totals.iter().all(|total| *total == found),
        "{totals:?}"
    );
    Ok(())
}
