//! Distributed tables: the extension on all nodes, whole-table functions, and moves of shards.
use super::{Cluster, distributed, each, holds_on_all, host};
use crate::distributed::statements::sums;
use crate::support::Outcome;
use crate::support::table::value;
use crate::support::waiting::wait_until;
use anyhow::ensure;
use neardup_tests::connect;
use postgres::Client;
use postgres::error::SqlState;

const ROWS: &str = "SELECT n::bigint AS id, \
    (hashint8extended(n / 3, 1) # (n % 3))::bigint::fingerprint AS fp \
    FROM generate_series(1, 3000) AS n";

#[test]
fn tables_of_citus_are_as_those_of_one_server() -> Outcome {
    let Some(cluster) = Cluster::create("tables", &[])? else {
        return Ok(());
    };
    let client = &mut cluster.connect()?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    holds_on_all(
        client,
        "count(*) = 1 FROM pg_extension WHERE extname = 'neardup'",
    )?;
    let digest: String = value(client, "SELECT neardup_expert_settings_digest()")?;
    holds_on_all(
        client,
        &format!("neardup_expert_settings_digest() = '{digest}'"),
    )?;
    words_of_one_node(client, &cluster)?;
    client.batch_execute(&format!(
        "CREATE TABLE single AS {ROWS}; CREATE INDEX ON single USING neardup (fp); \
         CREATE TABLE docs (id bigint PRIMARY KEY, fp fingerprint); \
         CREATE INDEX docs_fp ON docs USING neardup (fp); INSERT INTO docs {ROWS}"
    ))?;
    let before = pairs(client, "docs")?;
    ensure!(before.0 == 2_998, "{before:?}");
    // Existing rows remain as a stale copy in the coordinator's local table.
    client.batch_execute("SELECT create_distributed_table('docs', 'id')")?;
    refused(client)?;
    within_shards(client)?;
    searches(client)?;
    moved(client, &cluster)?;
    generated(client)
}

fn pairs(client: &mut Client, table: &str) -> anyhow::Result<(i64, i64, i64, i64)> {
    let query = format!(
        "SELECT a, b, distance FROM neardup_pairs_by_key(NULL::bigint, '{table}', 3, key => 'id')"
    );
    sums(client, &query)
}

/// The digests reveal user words that only one node has.
fn words_of_one_node(client: &mut Client, cluster: &Cluster) -> Outcome {
    let digests = |count: u32| {
        format!(
            "SELECT count(DISTINCT result) = {count} \
             FROM run_command_on_all_nodes('SELECT neardup_expert_settings_digest()') \
             WHERE success"
        )
    };
    let mut worker = connect(&cluster.nodes[1].conninfo("postgres"))?;
    worker.batch_execute("SELECT neardup_expert_settings_digest()")?;
    for (change, count) in [
        ("SET neardup.jieba_user_words = '云计算 5'", 2),
        ("RESET neardup.jieba_user_words", 1),
    ] {
        worker.batch_execute(&format!("ALTER SYSTEM {change}"))?;
        worker.batch_execute("SELECT pg_reload_conf()")?;
        wait_until(client, &digests(count))?;
    }
    Ok(())
}

/// Functions that read tables without the executor raise an error that names the rows' location.
fn refused(client: &mut Client) -> Outcome {
    client.batch_execute("CREATE TABLE shared (LIKE docs INCLUDING ALL)")?;
    client.batch_execute("SELECT create_reference_table('shared')")?;
    for table in ["docs", "shared"] {
        let index: String = value(
            client,
            &format!(
                "SELECT indexrelid::regclass::text FROM pg_index \
                 WHERE indrelid = '{table}'::regclass AND NOT indisprimary"
            ),
        )?;
        for call in [
            "neardup_pairs('TABLE', 3)",
            "neardup_pairs('INDEX', 3)",
            "neardup_pairs_by_key(NULL::bigint, 'TABLE', 3)",
            "neardup_clusters('TABLE', 3)",
            "neardup_clusters_by_key(NULL::bigint, 'TABLE', 3)",
            "neardup_distance_histogram('TABLE', 3)",
            "neardup_distance_histogram('TABLE', 3, sample_rows => NULL)",
            "neardup_index_info('INDEX')",
            "neardup_expert_index_statistics('INDEX')",
            "neardup_index_check('INDEX', true)",
        ] {
            let call = call.replace("TABLE", table).replace("INDEX", &index);
            let Err(error) = client.batch_execute(&format!("SELECT * FROM {call}")) else {
                anyhow::bail!("{call} of rows in shards");
            };
            ensure!(
                error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED),
                "{call}: {error:?}"
            );
            let error = error
                .as_db_error()
                .map(|error| error.hint().unwrap_or_default());
            ensure!(
                error.is_some_and(|hint| hint.contains("run_command_on_shards")),
                "{call}: {error:?}"
            );
        }
    }
    // Citus requires an unsafe setting for the trigger on a distributed table.
    let trigger = "CREATE TRIGGER dedup BEFORE INSERT ON docs FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp')";
    ensure!(
        client.batch_execute(trigger).is_err(),
        "a trigger on shards"
    );
    Ok(())
}

/// Runs the statements of the hints on each shard.
fn within_shards(client: &mut Client) -> Outcome {
    let on_shards = |call: &str| {
        format!("SELECT * FROM run_command_on_shards('docs', $cmd$SELECT {call}$cmd$)")
    };
    let listed =
        on_shards("json_agg(p) FROM neardup_pairs_by_key(NULL::bigint, '%s', 6, key => 'id') p");
    let found = sums(
        client,
        &format!(
            "SELECT (p ->> 'a')::bigint, (p ->> 'b')::bigint, (p ->> 'distance')::bigint \
             FROM ({listed}) AS shard, json_array_elements(result::json) AS p \
             WHERE result <> '' AND success"
        ),
    )?;
    let expected = sums(
        client,
        "SELECT a.id, b.id, a.fp <#> b.fp FROM single a JOIN single b ON a.id < b.id \
            AND a.fp <~> b.fp <= 3 \
         WHERE get_shard_id_for_distribution_column('docs', a.id) \
            = get_shard_id_for_distribution_column('docs', b.id)",
    )?;
    ensure!(found == expected && found.0 > 20, "{found:?} {expected:?}");
    for (call, condition) in [
        (
            "count(*) FROM neardup_clusters('%s', 3)",
            "sum(result::int) > 20",
        ),
        (
            "sum(rows) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                JOIN pg_am a ON a.oid = c.relam, neardup_index_check(i.indexrelid, true) \
                WHERE i.indrelid = '%s'::regclass AND a.amname = 'neardup'",
            "sum(result::int) = 3000",
        ),
    ] {
        let holds: bool = value(
            client,
            &format!(
                "SELECT bool_and(success) AND {condition} AND count(*) = 32 FROM ({}) AS shard",
                on_shards(call)
            ),
        )?;
        ensure!(holds, "{call}");
    }
    Ok(())
}

/// Searches all shards, by their indexes.
fn searches(client: &mut Client) -> Outcome {
    each(client, "ANALYZE docs; ANALYZE single")?;
    let mut seen = 0;
    for n in (1..3000).step_by(97) {
        let q: String = value(
            client,
            &format!("SELECT fp::text FROM single WHERE id = {n}"),
        )?;
        let [near, near_one] = ["docs", "single"].map(|table| {
            value::<Vec<i64>>(
                client,
                &format!("SELECT array_agg(id ORDER BY id) FROM {table} WHERE fp <~> '{q}' <= 3"),
            )
        });
        let near = near?;
        ensure!(near == near_one? && near.len() >= 2, "{q}: {near:?}");
        let [first, first_one] = ["docs", "single"].map(|table| {
            value::<Vec<i32>>(
                client,
                &format!(
                    "SELECT array_agg(d ORDER BY d) FROM (SELECT (fp <~> '{q}')::int AS d \
                     FROM {table} ORDER BY fp <~> '{q}' LIMIT 10) AS rows"
                ),
            )
        });
        ensure!(first? == first_one?, "the nearest of {q}");
        seen += near.len();
    }
    ensure!(seen > 60, "{seen}");
    let q: String = value(client, "SELECT fp::text FROM single WHERE id = 99")?;
    // For so few rows a scan would be as fast.
    client.batch_execute("SET citus.propagate_set_commands = 'local'")?;
    let mut transaction = client.transaction()?;
    transaction.batch_execute("SET LOCAL enable_seqscan = off")?;
    let query = format!("EXPLAIN (COSTS OFF) SELECT id FROM docs ORDER BY fp <~> '{q}' LIMIT 10");
    let plan: String = (transaction.query(&query, &[])?.iter())
        .map(|row| row.get::<_, String>(0) + "\n")
        .collect();
    transaction.commit()?;
    ensure!(plan.contains("Index Scan using docs_fp_"), "{plan}");
    Ok(())
}

/// Moved and split shards keep their indexes.
fn moved(client: &mut Client, cluster: &Cluster) -> Outcome {
    let count = "SELECT count(*) FROM docs WHERE fp <~> \
        (SELECT fp FROM single WHERE id = 99) <= 3";
    let before: i64 = value(client, count)?;
    let [first, second] = [&cluster.nodes[1], &cluster.nodes[2]].map(host);
    let shard: i64 = value(
        client,
        &format!(
            "SELECT shardid FROM citus_shards WHERE table_name = 'docs'::regclass \
             AND nodename = {first} LIMIT 1"
        ),
    )?;
    for mode in ["block_writes", "force_logical"] {
        let [from, to] = match mode {
            "block_writes" => [&first, &second],
            _ => [&second, &first],
        };
        client.batch_execute(&format!(
            "SELECT citus_move_shard_placement({shard}, {from}, 5432, {to}, 5432, '{mode}')"
        ))?;
        let after: i64 = value(client, count)?;
        ensure!(
            after == before && before > 0,
            "{mode}: {after}, not {before}"
        );
    }
    let (low, nodes): (i32, String) = {
        let row = client.query_one(
            "SELECT (shardminvalue::bigint + 1000)::int, \
                (SELECT string_agg(nodeid::text, ',') FROM pg_dist_node WHERE groupid > 0) \
             FROM pg_dist_shard WHERE shardid = $1",
            &[&shard],
        )?;
        (row.get(0), row.get(1))
    };
    client.batch_execute(&format!(
        "SELECT citus_split_shard_by_split_points({shard}, ARRAY['{low}'], ARRAY[{nodes}], \
            'block_writes')"
    ))?;
    let after: i64 = value(client, count)?;
    let shards: i64 = value(
        client,
        "SELECT count(*) FROM run_command_on_shards('docs', $cmd$SELECT count(*) FROM pg_index i \
            JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam \
            WHERE i.indrelid = '%s'::regclass AND a.amname = 'neardup'$cmd$) WHERE result = '1'",
    )?;
    ensure!(
        after == before && shards == 33,
        "{after}, {before}, {shards} shards"
    );
    Ok(())
}

/// Generated columns and COPY; the constraint with the distribution column as a scope.
fn generated(client: &mut Client) -> Outcome {
    distributed(
        client,
        "pages",
        "site int, body text, fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED",
        "site",
    )?;
    client.batch_execute(
        "ALTER TABLE pages ADD CONSTRAINT apart EXCLUDE USING neardup (site WITH =, fp WITH ~=)",
    )?;
    let mut copy = client.copy_in("COPY pages (site, body) FROM STDIN")?;
    for site in 0..20 {
        let line = format!("{site}\tthe first page of the site with {site} words and more\n");
        std::io::Write::write_all(&mut copy, line.as_bytes())?;
    }
    copy.finish()?;
    let same: bool = value(
        client,
        "SELECT count(*) = 20 AND bool_and(fp = simhash(body)) FROM pages",
    )?;
    ensure!(same);
    let again = "INSERT INTO pages (site, body) SELECT site, body FROM pages WHERE site = 7";
    let code = client
        .batch_execute(again)
        .err()
        .and_then(|error| error.code().cloned());
    ensure!(code == Some(SqlState::EXCLUSION_VIOLATION), "{code:?}");
    Ok(())
}
