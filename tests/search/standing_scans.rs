//! Scans that pause while VACUUM removes dead rows. Every kind of scan, with every operator class,
//! must return the rows of its snapshot, also when no column is needed and the server trusts the
//! visibility map instead of fetching the rows.
use crate::server::standby::wait_for_replay;
use crate::support::oracle::plan;
use crate::support::table::value;
use crate::support::waiting::poll;
use crate::support::{Outcome, with};
use anyhow::{Context, Result, bail, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::{Client, Transaction};
use std::collections::BTreeMap;

pub const ROWS: i64 = 700;

/// An operator class for the last column of an index.
pub struct Class {
    pub name: String,
    of_type: String,
    /// Its operators for searches, each with the type on the right side.
    searches: Vec<(String, String)>,
    /// Its operators for orders.
    orders: Vec<String>,
}

/// All operator classes of the extension but those for scope columns.
pub fn classes(client: &mut Client) -> Result<Vec<Class>> {
    let query = "SELECT opcname::text, opcintype::regtype::text, amopopr::regoper::text, \
            amoprighttype::regtype::text, amoppurpose = 'o', oprname::text \
         FROM pg_opclass JOIN pg_am ON pg_am.oid = opcmethod AND amname = 'neardup' \
         JOIN pg_amop ON amopfamily = opcfamily AND amoplefttype = opcintype \
         JOIN pg_operator ON pg_operator.oid = amopopr \
         WHERE opcname NOT LIKE '%\\_scope\\_ops' ORDER BY opcname, amopstrategy";
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    for row in client.query(query, &[])? {
        let name: String = row.get(0);
        let class = classes.entry(name.clone()).or_insert_with(|| Class {
            name,
            of_type: row.get(1),
            searches: Vec::new(),
            orders: Vec::new(),
        });
        let operator: String = row.get(5);
        match row.get(4) {
            true => class.orders.push(operator),
            false => class.searches.push((operator, row.get(3))),
        }
    }
    Ok(classes.into_values().collect())
}

/// Returns an expression for a value of a type, made from a number `n`. The values are clusters.
fn value_of(of_type: &str) -> Result<String> {
    let bits = "(hashint8extended(n % 9, 1) # (1::bigint << (n % 50)::int))";
    Ok(match of_type {
        "bigint" => bits.to_owned(),
        "fingerprint" => format!("{bits}::fingerprint"),
        "fingerprint128" => {
            format!("(repeat(to_hex({bits} | 1::bigint << 62), 2))::fingerprint128")
        }
        "fingerprint256" => {
            format!("(repeat(to_hex({bits} | 1::bigint << 62), 4))::fingerprint256")
        }
        "minhash_signature" => "minhash(ARRAY(SELECT (n % 9) || ':' || word \
             FROM generate_series(n % 5, n % 5 + 30) AS word), 32)"
            .to_owned(),
        "minhash_ball" => format!("minhash_ball({}, 0.2)", value_of("minhash_signature")?),
        ball => match ball.strip_suffix("_ball") {
            Some(center) => format!("ball({}, 2)", value_of(center)?),
            None => bail!("this test makes no values of type {of_type}"),
        },
    })
}

impl Class {
    /// Makes the tables `source` and `docs`, with `docs` empty, and a function for values. VACUUM
    /// does not wait for scans of `docs` in order to truncate it.
    pub fn prepare(&self, client: &mut Client) -> Result<()> {
        let Class { of_type, .. } = self;
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs, source; DROP FUNCTION IF EXISTS value_of; \
             CREATE FUNCTION value_of(n bigint) RETURNS {of_type} IMMUTABLE LANGUAGE sql AS \
                 $$ SELECT {} $$; \
             CREATE TABLE source AS SELECT n AS id, (n % 3)::int AS site, \
                 CASE WHEN n % 16 > 0 THEN value_of(n) END AS fp \
                 FROM generate_series(1::bigint, {ROWS}) AS n; \
             CREATE TABLE docs (LIKE source) \
                 WITH (autovacuum_enabled = off, vacuum_truncate = off)",
            value_of(of_type)?
        ))?;
        Ok(())
    }

    /// Columns and conditions of indexes of this class.
    pub fn indexes(&self) -> [(&'static str, String); 3] {
        let with = match self.of_type.as_str() {
            "minhash_signature" => " WITH (hashes = 32)",
            _ => "",
        };
        let name = &self.name;
        [
            ("plain", format!("(fp {name}){with}")),
            ("scoped", format!("(site, fp {name}){with}")),
            ("partial", format!("(fp {name}){with} WHERE id > 5")),
        ]
    }

    /// Returns queries that such an index can serve.
    pub fn queries(&self, index: &str) -> Result<Vec<String>> {
        let everywhere = match index {
            "partial" => "id > 5",
            _ => "true",
        };
        let mut queries = vec![format!("SELECT 1 FROM docs WHERE {everywhere}")];
        let mut conditions = Vec::new();
        for (operator, right) in &self.searches {
            let center = "value_of(5)";
            conditions.extend(match (right == &self.of_type, right.as_str()) {
                (true, _) => vec![format!("fp {operator} {center}")],
                // These scans equal the scan for a bigint. No value here is so short.
                (_, "integer" | "smallint") => Vec::new(),
                (_, "minhash_ball") => [0.2, 0.95]
                    .map(|radius| format!("fp {operator} minhash_ball({center}, {radius})"))
                    .to_vec(),
                _ => [3, 60]
                    .map(|radius| format!("fp {operator} ball({center}, {radius})"))
                    .to_vec(),
            });
        }
        let order = |n: i64| -> Vec<String> {
            (self.orders.iter())
                .map(|operator| format!("ORDER BY fp {operator} value_of({n})"))
                .collect()
        };
        for condition in &conditions {
            queries.push(format!(
                "SELECT 1 FROM docs WHERE {everywhere} AND {condition}"
            ));
            if index == "scoped" {
                queries.push(format!("SELECT 1 FROM docs WHERE site = 2 AND {condition}"));
            }
        }
        if let Some(condition) = conditions.first() {
            for order in [order(5), order(7)].concat() {
                let filter = format!("{everywhere} AND {condition}");
                queries.push(format!("SELECT 1 FROM docs WHERE {filter} {order}"));
            }
        }
        for order in order(5) {
            queries.push(format!("SELECT 1 FROM docs WHERE {everywhere} {order}"));
        }
        if index == "scoped" {
            queries.push("SELECT 1 FROM docs WHERE site = 2".to_owned());
        }
        Ok(queries)
    }
}

/// Ways in which the executor fetches the rows, each with a text that identifies its plan.
pub const WAYS: [(&str, &str, &str); 3] = [
    ("index only", "", "Index Only Scan using docs_fp"),
    (
        "index",
        "SET LOCAL enable_indexonlyscan = off;",
        "Index Scan using docs_fp",
    ),
    (
        "bitmap",
        "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; \
         SET LOCAL enable_bitmapscan = on;",
        "Bitmap Index Scan on docs_fp",
    ),
];

/// Servers of the writer and of the reader.
struct Servers<'a> {
    writer: &'a mut Client,
    reader: &'a mut Client,
    /// Connects to the server of the reader, and to that of the writer.
    watch: &'a dyn Fn() -> Result<Client>,
    vacuum: &'a dyn Fn() -> Result<Client>,
    /// True if the reader uses a standby.
    standby: bool,
}

/// Opens a cursor, vacuums rows that died before, and reads on. Returns whether the query was
/// planned in this way.
fn round(servers: &mut Servers, query: &str, way: (&str, &str, &str)) -> Result<bool> {
    let (name, settings, mark) = way;
    for step in [
        "TRUNCATE docs",
        "INSERT INTO docs SELECT * FROM source",
        "VACUUM (ANALYZE) docs",
        "DELETE FROM docs WHERE id % 2 = 0",
    ] {
        servers.writer.batch_execute(step)?;
    }
    // TRUNCATE must have invalidated the reader's plan for the old size of the table.
    follow(servers)?;
    let mut reader = (servers.reader.build_transaction())
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .start()?;
    reader.batch_execute(
        "SET LOCAL jit = off; SET LOCAL enable_indexscan = off; \
                          SET LOCAL enable_bitmapscan = off",
    )?;
    let count = format!("SELECT count(*) FROM ({query}) AS found");
    let expected: i64 = value(&mut reader, &count)?;
    ensure!(expected > 0, "{query} finds nothing: no test at all");
    reader.batch_execute(&format!(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; \
         SET LOCAL enable_indexscan = on; {settings}"
    ))?;
    let declare = format!("DECLARE c CURSOR FOR {query}");
    let shown = plan(&mut reader, &declare)?;
    if !shown.contains(mark) {
        reader.rollback()?;
        return Ok(false);
    }
    reader.batch_execute(&declare)?;
    let mut found = fetch(&mut reader, "1")?;
    let rest = std::thread::scope(|scope| -> Result<i64> {
        let mut client = (servers.vacuum)()?;
        let backend: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
        let vacuum = scope.spawn(move || client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs"));
        let mut watcher = (servers.watch)()?;
        poll("VACUUM waits for the scan or ends", || {
            let done = vacuum.is_finished();
            Ok(match (servers.standby, done) {
                (false, true) => true,
                (false, false) => is_held_up(&mut watcher, &format!("pid = {backend}"))?,
                // Waits for replay to stop or to finish.
                (true, true) => {
                    is_held_up(&mut watcher, "backend_type = 'startup'")?
                        || has_replayed(servers.writer, &mut watcher)?
                }
                (true, false) => false,
            })
        })?;
        let rest = fetch(&mut reader, "ALL")?;
        reader.commit()?;
        match vacuum.join() {
            Ok(result) => result?,
            Err(_) => bail!("the client panicked"),
        }
        Ok(rest)
    });
    found += rest?;
    ensure!(
        found == expected,
        "{name}: {found} rows instead of {expected}: {query}\n{shown}"
    );
    Ok(true)
}

fn fetch(reader: &mut Transaction, rows: &str) -> Result<i64> {
    let rows = reader.query(&format!("FETCH {rows} FROM c"), &[])?;
    Ok(rows.len() as i64)
}

/// Returns whether a process waits for a page that another process has pinned.
fn is_held_up(watcher: &mut Client, process: &str) -> Result<bool> {
    let query = format!(
        "SELECT count(*) > 0 FROM pg_stat_activity \
         WHERE {process} AND wait_event_type = 'BufferPin'"
    );
    value(watcher, &query)
}

fn has_replayed(writer: &mut Client, watcher: &mut Client) -> Result<bool> {
    let position: String = value(writer, "SELECT pg_current_wal_flush_lsn()::text")?;
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{position}'");
    value(watcher, &replayed)
}

fn follow(servers: &mut Servers) -> Result<()> {
    if servers.standby {
        wait_for_replay(servers.writer, servers.reader)?;
    }
    Ok(())
}

/// Runs all queries of all classes on these indexes. Returns the uses of each way, by class.
fn all_rounds(
    servers: &mut Servers,
    kinds: &[&str],
    wanted: impl Fn(usize) -> bool,
) -> Result<BTreeMap<(String, &'static str), u32>> {
    let mut taken = BTreeMap::new();
    for class in classes(servers.writer)? {
        class.prepare(servers.writer)?;
        for (kind, index) in class.indexes() {
            if !kinds.contains(&kind) {
                continue;
            }
            servers.writer.batch_execute(&format!(
                "DROP INDEX IF EXISTS docs_fp; CREATE INDEX docs_fp ON docs USING neardup {index}"
            ))?;
            for (number, query) in class.queries(kind)?.iter().enumerate() {
                for way in WAYS {
                    let on = || format!("{}, {kind}", class.name);
                    if wanted(number) && round(servers, query, way).with_context(on)? {
                        *taken.entry((class.name.clone(), way.0)).or_insert(0) += 1;
                    }
                }
            }
        }
    }
    Ok(taken)
}

#[test]
fn scans_of_every_kind_return_what_their_snapshot_sees_while_vacuum_runs() -> Outcome {
    let database = Database::create()?;
    let (mut writer, mut reader) = (database.connect()?, database.connect()?);
    let connect = || database.connect();
    let mut servers = Servers {
        writer: &mut writer,
        reader: &mut reader,
        watch: &connect,
        vacuum: &connect,
        standby: false,
    };
    let taken = all_rounds(&mut servers, &["plain", "scoped", "partial"], |_| true)?;
    for class in classes(&mut writer)? {
        // Each class must use each way, also to read the whole index.
        for way in ["index only", "index", "bitmap"] {
            let rounds = taken.get(&(class.name.clone(), way)).copied().unwrap_or(0);
            ensure!(rounds >= 3, "{}, {way}: {rounds} rounds", class.name);
        }
    }
    Ok(())
}

#[test]
fn scans_on_a_standby_return_what_their_snapshot_sees_while_a_vacuum_is_replayed() -> Outcome {
    let primary = own_server("standing", &[("fsync", "off"), ("autovacuum", "off")])?;
    with(primary, |primary| {
        let mut writer = connect(&primary.conninfo("postgres"))?;
        writer.batch_execute("CREATE EXTENSION neardup")?;
        let settings = [
            ("fsync", "off"),
            ("hot_standby_feedback", "off"),
            ("max_standby_streaming_delay", "-1"),
        ];
        let standby = primary.standby("test-standing-replica", &settings)?;
        with(standby, |standby| {
            let mut reader = connect(&standby.conninfo("postgres"))?;
            let watch = || connect(&standby.conninfo("postgres"));
            let vacuum = || connect(&primary.conninfo("postgres"));
            let mut servers = Servers {
                writer: &mut writer,
                reader: &mut reader,
                watch: &watch,
                vacuum: &vacuum,
                standby: true,
            };
            let taken = all_rounds(&mut servers, &["plain", "partial"], |number| number < 2)?;
            for class in classes(&mut writer)? {
                let rounds = |way| taken.get(&(class.name.clone(), way)).copied().unwrap_or(0);
                // Replay does not wait for a scan that keeps a leaf pinned.
                ensure!(rounds("index only") == 0, "{} on a standby", class.name);
                ensure!(rounds("index") >= 3, "{} on a standby", class.name);
            }
            Ok(())
        })
    })
}
