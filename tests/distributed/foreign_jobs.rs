//! The jobs over keys on two foreign servers: joins run there, and a gate works across them.
use crate::distributed::foreign::options;
use crate::distributed::statements::sums;
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::skip::skip_optional;
use crate::support::table::{TYPES, Table, Type, value};
use anyhow::{Context, Result, ensure};
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::Client;
use postgres::error::SqlState;

/// The front server, which clients query, and the two servers that have the rows.
pub struct Front {
    pub front: Server,
    pub shards: Vec<Server>,
}

impl Front {
    /// Starts the servers of the test `name` with these settings. Without postgres_fdw, reports a
    /// skip and returns `None`.
    ///
    /// # Errors
    /// When a server does not start.
    pub fn create(name: &str, settings: &[(&str, &str)]) -> Result<Option<Self>> {
        let front = own_server(&format!("{name}-front"), settings)?;
        let mut client = connect(&front.conninfo("postgres"))?;
        let is_available: bool = value(
            &mut client,
            "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw')",
        )?;
        if !is_available {
            skip_optional("the server has no postgres_fdw")?;
            return Ok(None);
        }
        client.batch_execute("CREATE EXTENSION neardup; CREATE EXTENSION postgres_fdw")?;
        let mut shards = Vec::new();
        for i in 0..2 {
            let shard = own_server(&format!("{name}-shard-{i}"), settings)?;
            connect(&shard.conninfo("postgres"))?.batch_execute("CREATE EXTENSION neardup")?;
            client.batch_execute(&format!(
                "CREATE SERVER shard_{i} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({}, \
                    extensions 'neardup', use_remote_estimate 'true', async_capable 'true', \
                    fetch_size '10000', batch_size '1000'); \
                 CREATE USER MAPPING FOR CURRENT_USER SERVER shard_{i}",
                options(&shard)
            ))?;
            shards.push(shard);
        }
        Ok(Some(Front { front, shards }))
    }

    /// Opens a connection to the front.
    ///
    /// # Errors
    /// When it refuses.
    pub fn connect(&self) -> Result<Client> {
        connect(&self.front.conninfo("postgres"))
    }

    /// Runs statements on each shard.
    ///
    /// # Errors
    /// When one fails.
    pub fn on_shards(&self, statements: impl Fn(usize) -> String) -> Outcome {
        for (i, shard) in self.shards.iter().enumerate() {
            connect(&shard.conninfo("postgres"))?.batch_execute(&statements(i))?;
        }
        Ok(())
    }

    /// Makes a table on both shards, and a table on the front with the shards as hash partitions.
    ///
    /// # Errors
    /// When a server refuses.
    pub fn spread(&self, client: &mut Client, table: &str, columns: &str, key: &str) -> Outcome {
        self.on_shards(|_| {
            format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns})")
        })?;
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS {table}; \
             CREATE TABLE {table} ({columns}) PARTITION BY HASH ({key})"
        ))?;
        for i in 0..self.shards.len() {
            client.batch_execute(&format!(
                "CREATE FOREIGN TABLE {table}_{i} PARTITION OF {table} \
                    FOR VALUES WITH (MODULUS 2, REMAINDER {i}) SERVER shard_{i} \
                    OPTIONS (table_name '{table}')"
            ))?;
        }
        Ok(())
    }
}

fn plan(client: &mut Client, query: &str) -> Result<String> {
    let rows = client.query(&format!("EXPLAIN (VERBOSE, COSTS OFF) {query}"), &[])?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}

#[test]
fn jobs_over_two_foreign_servers_find_what_the_index_finds() -> Outcome {
    let Some(front) = Front::create("jobs", &[("fsync", "off")])? else {
        return Ok(());
    };
    let client = &mut front.connect()?;
    client.batch_execute("SET enable_partitionwise_join = on")?;
    for fp in TYPES {
        let mut values = Shape::Balls.values(1_000, 91);
        values.extend(Shape::Uniform.values(1_000, 92));
        Table::new(fp).create_indexed(client, &values, "")?;
        let columns = format!("key bigint, id bigint, fp {}", fp.name);
        front.spread(client, "keys", &columns, "key")?;
        client.batch_execute(
            "INSERT INTO keys SELECT unnest(neardup_keys(fp, 3)), id, fp FROM docs \
             WHERE fp IS NOT NULL",
        )?;
        front.on_shards(|_| "ANALYZE keys".to_owned())?;
        all_pairs(client, fp)?;
        searches(client, fp, &values)?;
        gate(client, &front, fp)?;
    }
    Ok(())
}

fn all_pairs(client: &mut Client, fp: Type) -> Outcome {
    let by_keys = "SELECT a.id, b.id, a.fp <#> b.fp FROM keys a JOIN keys b USING (key) \
        WHERE a.id < b.id AND neardup_meet(key, a.fp, b.fp, 3)";
    let shown = plan(client, by_keys)?;
    let joins = shown.matches(" INNER JOIN ").count();
    let sent = shown.matches("neardup_meet(").count();
    ensure!(
        joins >= 2 && sent >= 2 && !shown.contains("Filter"),
        "{shown}"
    );
    let found = sums(client, by_keys)?;
    let expected = sums(
        client,
        "SELECT a, b, distance FROM neardup_pairs_by_key(NULL::bigint, 'docs', 3, key => 'id')",
    )?;
    ensure!(
        found == expected && found.0 > 50,
        "{}: {found:?} {expected:?}",
        fp.name
    );
    Ok(())
}

fn searches(client: &mut Client, fp: Type, values: &[Option<u64>]) -> Outcome {
    let mut one_server = 0;
    for center in values.iter().flatten().step_by(211) {
        let q = fp.literal(center ^ 0b10001);
        let by_keys = format!(
            "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM keys \
             WHERE key = ANY (neardup_keys({q}, 3)) AND fp <~> {q} <= 3 \
                AND neardup_meet(key, fp, {q}, 3)"
        );
        let all = format!(
            "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM docs WHERE fp <~> {q} <= 3"
        );
        let [found, expected] = [&by_keys, &all].map(|query| value::<Vec<i64>>(client, query));
        ensure!(found? == expected?, "{by_keys}");
        let shown = plan(client, &by_keys)?;
        let asked = shown.matches("Remote SQL").count();
        ensure!(
            (1..=2).contains(&asked) && !shown.contains("Filter"),
            "{shown}"
        );
        one_server += usize::from(asked == 1);
    }
    // With probability 1/8, one of the two servers has all four keys.
    println!("{}: {one_server} searches asked one server", fp.name);
    Ok(())
}

fn gate(client: &mut Client, front: &Front, fp: Type) -> Outcome {
    let columns = format!("key bigint, id bigint, fp {}", fp.name);
    front.spread(client, "gate", &columns, "key")?;
    front.on_shards(|_| {
        format!(
            "ALTER TABLE gate ADD EXCLUDE USING neardup (key WITH =, fp {} WITH ~=)",
            fp.opclass
        )
    })?;
    front.spread(client, "kept", &format!("id bigint, fp {}", fp.name), "id")?;
    let mut kept = 0;
    for (id, bits) in Shape::Balls.values(100, 93).iter().flatten().enumerate() {
        let q = fp.literal(*bits);
        let clash: bool = value(
            client,
            &format!("SELECT EXISTS (SELECT FROM kept WHERE fp ~= {q})"),
        )?;
        let inserted = client.batch_execute(&format!(
            "WITH row AS (INSERT INTO kept VALUES ({id}, {q}) RETURNING *) \
             INSERT INTO gate SELECT unnest(neardup_keys(fp, {})), id, fp FROM row",
            fp.near
        ));
        match inserted {
            Ok(()) => ensure!(!clash, "{}: a near-duplicate of {q} got in", fp.name),
            Err(error) => {
                let is_refused = error.code() == Some(&SqlState::EXCLUSION_VIOLATION);
                ensure!(is_refused && clash, "{}: {q}: {error:?}", fp.name);
            }
        }
        kept += i64::from(!clash);
    }
    let rows: i64 = value(client, "SELECT count(*) FROM kept")?;
    ensure!(
        rows == kept && (2..90).contains(&kept),
        "{rows} rows, {kept} were let in"
    );
    Ok(())
}

/// Sentences of docs/distributed.md on the options `import_generated` and `use_remote_estimate`.
#[test]
fn options_of_foreign_tables_do_what_the_document_says() -> Outcome {
    let Some(front) = Front::create("options", &[("fsync", "off")])? else {
        return Ok(());
    };
    let client = &mut front.connect()?;
    connect(&front.shards[0].conninfo("postgres"))?.batch_execute(
        "CREATE TABLE pages (id int, body text, \
            fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED); \
         CREATE TABLE docs AS SELECT n AS id, hashint8extended(n / 3, 1)::fingerprint AS fp \
            FROM generate_series(1, 9000) n; \
         CREATE INDEX ON docs USING neardup (fp); ANALYZE docs",
    )?;
    import_generated(client)?;
    remote_estimate(client, &mut connect(&front.shards[0].conninfo("postgres"))?)
}

fn import_generated(client: &mut Client) -> Outcome {
    const INSERT: &str = "INSERT INTO pages (id, body) VALUES (1, 'a page of some words') \
        RETURNING fp = simhash(body)";
    const IMPORT: &str = "IMPORT FOREIGN SCHEMA public LIMIT TO (pages) FROM SERVER shard_0 \
        INTO public";
    client.batch_execute(IMPORT)?;
    let is_generated = "SELECT attgenerated = 's' FROM pg_attribute \
        WHERE attrelid = 'pages'::regclass AND attname = 'fp'";
    ensure!(value::<bool>(client, is_generated)?);
    ensure!(value::<bool>(client, INSERT)?);
    client.batch_execute("DROP FOREIGN TABLE pages")?;
    client.batch_execute(&format!("{IMPORT} OPTIONS (import_generated 'false')"))?;
    ensure!(!value::<bool>(client, is_generated)?);
    let refused = client
        .query(INSERT, &[])
        .err()
        .and_then(|error| error.code().cloned());
    ensure!(refused == Some(SqlState::GENERATED_ALWAYS), "{refused:?}");
    // A search needs the column only, not its expression.
    let found: i64 = value(
        client,
        "SELECT count(*) FROM pages WHERE fp <~> simhash('a page of some words') <= 3",
    )?;
    ensure!(found == 1);
    Ok(())
}

fn remote_estimate(client: &mut Client, shard: &mut Client) -> Outcome {
    let rows = |client: &mut Client| -> Result<String> {
        let q = "hashint8extended(5, 1)::fingerprint";
        let plan = client.query(
            &format!("EXPLAIN SELECT id FROM docs WHERE fp <~> {q} <= 3"),
            &[],
        )?;
        let line: String = plan[0].get(0);
        let (_, rest) = line.split_once(" rows=").context("an estimate")?;
        Ok(rest.split(' ').next().unwrap_or_default().to_owned())
    };
    client.batch_execute(
        "CREATE FOREIGN TABLE docs (id int, fp fingerprint) SERVER shard_0 \
         OPTIONS (table_name 'docs')",
    )?;
    let expected = rows(shard)?;
    ensure!(
        rows(client)? == expected,
        "the estimate of the server: {expected}"
    );
    client.batch_execute("ALTER FOREIGN TABLE docs OPTIONS (ADD use_remote_estimate 'false')")?;
    let guessed = rows(client)?;
    ensure!(
        guessed != expected,
        "{guessed} rows without the server's estimate"
    );
    Ok(())
}
