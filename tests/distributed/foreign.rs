//! Searches of tables on another server, by postgres_fdw.
use crate::support::Outcome;
use crate::support::skip::skip_optional;
use crate::support::table::value;
use anyhow::ensure;
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::Client;

/// Rows of the shard SHARD: near-duplicates in threes, within one shard and across both.
const ROWS: &str = "SELECT 2 * n + SHARD AS id, \
    (hashint8extended(n / 3, 1) # (n % 3 + 8 * SHARD))::bigint::fingerprint AS fp \
    FROM generate_series(1, 600) AS n";

/// The settings of libpq for a server, as options of a foreign server and of a user.
pub fn options(server: &Server) -> String {
    let socket = server.socket_dir().display().to_string();
    format!(
        "host '{}', port '{}', dbname 'postgres'",
        socket.replace('\'', "''"),
        server.port()
    )
}

fn plan(client: &mut Client, query: &str) -> anyhow::Result<String> {
    let rows = client.query(&format!("EXPLAIN (VERBOSE, COSTS OFF) {query}"), &[])?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}

#[test]
fn conditions_and_orders_are_sent_to_foreign_servers() -> Outcome {
    let shards = [own_server("shard-0", &[])?, own_server("shard-1", &[])?];
    let words = "云计算 5, 创新办";
    let front = own_server("front", &[("neardup.jieba_user_words", words)])?;
    let mut client = connect(&front.conninfo("postgres"))?;
    let available: bool = value(
        &mut client,
        "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw')",
    )?;
    if !available {
        return skip_optional("the server has no postgres_fdw");
    }
    client.batch_execute(
        "CREATE EXTENSION neardup; CREATE EXTENSION postgres_fdw; \
         CREATE TABLE docs (id bigint, fp fingerprint) PARTITION BY LIST ((id % 2)); \
         CREATE TABLE local (id bigint, fp fingerprint)",
    )?;
    for (i, shard) in shards.iter().enumerate() {
        let rows = ROWS.replace("SHARD", &i.to_string());
        connect(&shard.conninfo("postgres"))?.batch_execute(&format!(
            "CREATE EXTENSION neardup; CREATE TABLE docs AS {rows}; \
             CREATE INDEX docs_fp ON docs USING neardup (fp); ANALYZE docs"
        ))?;
        client.batch_execute(&format!(
            "INSERT INTO local {rows}; \
             CREATE SERVER shard_{i} FOREIGN DATA WRAPPER postgres_fdw \
                OPTIONS ({}, extensions 'neardup', use_remote_estimate 'true', \
                    async_capable 'true'); \
             CREATE USER MAPPING FOR CURRENT_USER SERVER shard_{i}; \
             CREATE FOREIGN TABLE docs_{i} PARTITION OF docs FOR VALUES IN ({i}) \
                SERVER shard_{i} OPTIONS (table_name 'docs')",
            options(shard)
        ))?;
    }
    // Evaluated once, on this server, so that the planner considers the condition shippable.
    let q = "hashint8extended(5, 1)::fingerprint";
    let search = format!("SELECT array_agg(id ORDER BY id) FROM TABLE WHERE fp <~> {q} <= 3");
    let [found, expected] = ["docs", "local"]
        .map(|table| value::<Vec<i64>>(&mut client, &search.replace("TABLE", table)));
    let (found, expected) = (found?, expected?);
    ensure!(
        found == expected && found.len() >= 3,
        "{found:?} {expected:?}"
    );
    let shown = plan(&mut client, &search.replace("TABLE", "docs"))?;
    // The planner sends the condition in a form that an index serves.
    let sent = shown.matches("Remote SQL").count() == 2 && shown.matches("WHERE ((fp").count() == 2;
    ensure!(sent && !shown.contains("Filter"), "{shown}");

    // Nearest rows: each server sends its rows in order, and this server sorts them.
    let nearest = format!(
        "SELECT array_agg(d) FROM (SELECT fp <~> {q} AS d FROM TABLE ORDER BY 1 LIMIT 10) AS rows"
    );
    let [found, expected] = ["docs", "local"].map(|table| {
        let query = nearest.replace("array_agg(d)", "array_agg(d::int ORDER BY d)");
        value::<Vec<i32>>(&mut client, &query.replace("TABLE", table))
    });
    ensure!(found? == expected?);
    let each = format!("SELECT id FROM docs_0 ORDER BY fp <~> {q} LIMIT 10");
    let shown = plan(&mut client, &each)?;
    ensure!(
        shown.contains("ORDER BY") && shown.contains("LIMIT"),
        "{shown}"
    );

    // Computes all pairs within and across both servers, by keys in a local table.
    client.batch_execute(
        "CREATE TABLE keys AS SELECT unnest(neardup_keys(fp, 3)) AS key, id, fp FROM docs; \
         CREATE INDEX local_fp ON local USING neardup (fp); ANALYZE keys",
    )?;
    let by_keys = "SELECT count(*), sum(a.id)::bigint, sum(b.id)::bigint FROM keys a \
         JOIN keys b USING (key) WHERE a.id < b.id AND neardup_meet(key, a.fp, b.fp, 3)";
    let by_index = "SELECT count(*), sum(least(x.id, y.id))::bigint, \
         sum(greatest(x.id, y.id))::bigint FROM neardup_pairs('local', 3) p \
         JOIN local x ON x.ctid = p.a JOIN local y ON y.ctid = p.b";
    let [found, expected] = [by_keys, by_index].map(|query| {
        let row = client.query_one(query, &[])?;
        anyhow::Ok([0, 1, 2].map(|column| row.get::<_, i64>(column)))
    });
    let (found, expected) = (found?, expected?);
    ensure!(
        found == expected && found[0] > 600,
        "{found:?} {expected:?}"
    );

    words_of_one_server_alone(&front, &shards[0])
}

/// One server has user words that the other has not. The digests differ, and a session that
/// segments Chinese texts gets a warning until the database sets the words that it expects.
fn words_of_one_server_alone(front: &Server, shard: &Server) -> Outcome {
    let digest = "SELECT neardup_expert_settings_digest()";
    let mut client = connect(&front.conninfo("postgres"))?;
    let here: String = value(&mut client, digest)?;
    let there: String = value(&mut connect(&shard.conninfo("postgres"))?, digest)?;
    let without_words = |digest: &str| digest.rsplit_once(' ').map(|(front, _)| front.to_owned());
    ensure!(
        without_words(&here) == without_words(&there) && here != there,
        "{here}, {there}"
    );
    ensure!(there.ends_with(" none"), "{there}");
    let said = || -> anyhow::Result<String> {
        let words = "SELECT simhash('云计算方面的专家', tokens => 'jieba')";
        let output = front
            .psql("postgres")
            .args(["-X", "-c", words, "-c", words])
            .output()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let warned = said()?;
    ensure!(
        warned.matches("WARNING").count() == 1 && warned.contains("postgres_fdw"),
        "{warned}"
    );
    let hash: String = value(&mut client, "SELECT neardup_jieba_words_hash()")?;
    client.batch_execute(&format!(
        "ALTER DATABASE postgres SET neardup.jieba_words_hash = '{hash}'"
    ))?;
    let quiet = said()?;
    ensure!(quiet.is_empty(), "{quiet}");
    Ok(())
}
