//! The jobs over keys on Citus return the same results as the index on one table.
use super::{Cluster, distributed, each, tasks};
use crate::distributed::statements::sums;
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Shape;
use crate::support::table::{TYPES, Table, Type, value};
use anyhow::ensure;
use postgres::Client;
use postgres::error::SqlState;

/// Runs all jobs on one cluster, which takes some seconds to start.
#[test]
fn jobs_on_citus_find_what_the_index_finds() -> Outcome {
    let Some(cluster) = Cluster::with_neardup("jobs", &[])? else {
        return Ok(());
    };
    let client = &mut cluster.connect()?;
    for fp in TYPES {
        let mut values = Shape::Balls.values(1_500, 71);
        values.extend(Shape::Uniform.values(1_500, 72));
        // A local table of the coordinator.
        Table::new(fp).create_indexed(client, &values, "")?;
        all_pairs(client, fp)?;
        searches(client, fp, &values)?;
        gate(client, fp)?;
    }
    signatures(client)
}

fn all_pairs(client: &mut Client, fp: Type) -> Outcome {
    for (distance, blocks) in [(0, ""), (3, ""), (3, ", 5")] {
        let by_index = format!(
            "SELECT a, b, distance FROM neardup_pairs_by_key(NULL::bigint, 'docs', {distance}, \
                key => 'id')"
        );
        let expected = sums(client, &by_index)?;
        distributed(
            client,
            "spread",
            &format!("id bigint, fp {}", fp.name),
            "id",
        )?;
        distributed(
            client,
            "keys",
            &format!("key bigint, id bigint, fp {}", fp.name),
            "key",
        )?;
        distributed(client, "pairs", "a bigint, b bigint, distance int", "a")?;
        client.batch_execute(&format!(
            "INSERT INTO spread SELECT id, fp FROM docs; \
             INSERT INTO keys SELECT unnest(neardup_keys(fp, {distance}{blocks})), id, fp \
                FROM spread WHERE fp IS NOT NULL; \
             INSERT INTO pairs SELECT a.id, b.id, a.fp <#> b.fp \
                FROM keys a JOIN keys b USING (key) \
                WHERE a.id < b.id AND neardup_meet(key, a.fp, b.fp, {distance}{blocks})"
        ))?;
        let found = sums(client, "SELECT a, b, distance FROM pairs")?;
        ensure!(
            found == expected && found.0 > 50,
            "{}, {distance}{blocks}: {found:?} instead of {expected:?}",
            fp.name
        );
    }
    Ok(())
}

fn searches(client: &mut Client, fp: Type, values: &[Option<u64>]) -> Outcome {
    let columns = format!("key bigint, id bigint, fp {}", fp.name);
    distributed(client, "routed", &columns, "key")?;
    each(
        client,
        &format!(
            "INSERT INTO routed SELECT unnest(neardup_keys(fp, 3)), id, fp FROM spread \
            WHERE fp IS NOT NULL; \
         CREATE INDEX routed_fp ON routed USING neardup (fp {}); ANALYZE routed",
            fp.opclass
        ),
    )?;
    let mut found_rows = 0;
    for center in values.iter().flatten().step_by(307) {
        let q = fp.literal(center ^ 0b10001);
        let query = format!(
            "SELECT count(*), coalesce(sum(id), 0)::bigint FROM routed \
             WHERE key = ANY (neardup_keys({q}, 3)) AND fp <~> {q} <= 3 \
                AND neardup_meet(key, fp, {q}, 3)"
        );
        let all = "SELECT count(*), coalesce(sum(id), 0)::bigint FROM TABLE WHERE fp <~> Q <= 3"
            .replace('Q', &q);
        let everywhere = all.replace("TABLE", "spread");
        let [found, spread, expected] =
            [&query, &everywhere, &all.replace("TABLE", "docs")].map(|query| {
                let row = client.query_one(query.as_str(), &[])?;
                anyhow::Ok((row.get::<_, i64>(0), row.get::<_, i64>(1)))
            });
        let (found, expected) = (found?, expected?);
        ensure!(found == expected && spread? == expected, "{query}");
        found_rows += found.0;
        ensure!(tasks(client, &everywhere)? == 32);
        let shards: i64 = value(
            client,
            &format!(
                "SELECT count(DISTINCT get_shard_id_for_distribution_column('routed', key)) \
                 FROM unnest(neardup_keys({q}, 3)) AS key"
            ),
        )?;
        ensure!(tasks(client, &query)? == usize::try_from(shards)? && shards <= 4);
    }
    ensure!(found_rows > 10, "{found_rows} rows found");
    Ok(())
}

fn gate(client: &mut Client, fp: Type) -> Outcome {
    let columns = format!("key bigint, id bigint, fp {}", fp.name);
    distributed(client, "gate", &columns, "key")?;
    client.batch_execute(&format!(
        "ALTER TABLE gate ADD CONSTRAINT gate_fp EXCLUDE USING neardup \
            (key WITH =, fp {} WITH ~=)",
        fp.opclass
    ))?;
    distributed(client, "kept", &format!("id bigint, fp {}", fp.name), "id")?;
    let mut kept = 0;
    for (id, bits) in Shape::Balls.values(120, 73).iter().flatten().enumerate() {
        let q = fp.literal(*bits);
        let clash: bool = value(
            client,
            &format!("SELECT EXISTS (SELECT id FROM kept WHERE fp ~= {q})"),
        )?;
        let mut transaction = client.transaction()?;
        let inserted = transaction.batch_execute(&format!(
            "INSERT INTO kept VALUES ({id}, {q}); \
             INSERT INTO gate SELECT unnest(neardup_keys({q}, {near})), {id}, {q}",
            near = fp.near
        ));
        match inserted {
            Ok(()) => {
                transaction.commit()?;
                ensure!(!clash, "{}: a near-duplicate of {q} got in", fp.name);
            }
            Err(error) => {
                transaction.rollback()?;
                // For copied rows, Citus keeps the message, but not the SQLSTATE.
                let is_refused = (error.as_db_error()).is_some_and(|error| {
                    error.message().contains("exclusion constraint \"gate_fp")
                });
                ensure!(is_refused && clash, "{}: {q}: {error:?}", fp.name);
            }
        }
        kept += i64::from(!clash);
    }
    ensure!((2..110).contains(&kept), "{kept}");
    let rows: i64 = value(client, "SELECT count(*) FROM kept")?;
    ensure!(rows == kept, "{rows} rows, {kept} were let in");
    // With keys from the client, the constraint raises the error.
    let of_one = format!(
        "SELECT string_agg(format('(%s, -1, %L)', key, fp), ', ') \
         FROM (SELECT fp FROM kept ORDER BY id LIMIT 1) AS one, \
            unnest(neardup_keys(fp, {})) AS key",
        fp.near
    );
    let values: String = value(client, &of_one)?;
    let inserted = client.batch_execute(&format!("INSERT INTO gate VALUES {values}"));
    let code = code(&inserted);
    ensure!(
        code == Some(SqlState::EXCLUSION_VIOLATION),
        "{}: {inserted:?}",
        fp.name
    );
    Ok(())
}

fn signatures(client: &mut Client) -> Outcome {
    client.batch_execute(
        "DROP TABLE docs; \
         CREATE TABLE docs AS SELECT id, minhash(ARRAY(SELECT 'word ' || id / 5 || ' ' || i \
             FROM generate_series(id % 5 * 3, 60) AS i)) AS sig FROM generate_series(1, 600) id; \
         CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (similarity = 0.7)",
    )?;
    distributed(client, "spread", "id bigint, sig minhash_signature", "id")?;
    client.batch_execute("INSERT INTO spread SELECT * FROM docs")?;
    for similarity in ["0.8", "0.7"] {
        let by_index = format!(
            "SELECT a, b, round(128 * (1 - similarity)) \
             FROM neardup_pairs_by_key(NULL::bigint, 'docs', similarity => {similarity}, \
                key => 'id')"
        );
        let expected = sums(client, &by_index)?;
        let columns = "key bigint, id bigint, sig minhash_signature";
        distributed(client, "keys", columns, "key")?;
        client.batch_execute(&format!(
            "INSERT INTO keys SELECT unnest(minhash_keys(sig, {similarity})), id, sig FROM spread"
        ))?;
        let by_keys = format!(
            "SELECT a.id, b.id, round(128 * (a.sig <%> b.sig)) FROM keys a JOIN keys b USING (key) \
             WHERE a.id < b.id AND minhash_meet(key, a.sig, b.sig, {similarity})"
        );
        let found = sums(client, &by_keys)?;
        ensure!(
            found == expected && found.0 > 300,
            "{similarity}: {found:?} instead of {expected:?}"
        );
    }
    Ok(())
}
