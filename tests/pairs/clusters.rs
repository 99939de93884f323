//! `neardup_clusters` of many rows in little memory: the same result, within the limit.
use crate::support::Outcome;
use crate::support::memory::most_memory;
use crate::support::table::value;
use anyhow::{Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use std::collections::HashSet;

/// 600,000 rows. Three rows have each fingerprint, and every other fingerprint is one bit from
/// another one. Adds 3,000 different fingerprints in a ball, and some rows of other scopes.
const ROWS: &str = "CREATE TABLE docs (id int, site int, fp fingerprint, wide fingerprint128); \
    INSERT INTO docs SELECT i, i % 2, fp, (fp::text || fp::text)::fingerprint128 FROM ( \
        SELECT i, (('x' || left(md5((i / 6)::text), 16))::bit(64)::bigint # i / 3 % 2) \
            ::fingerprint AS fp \
        FROM generate_series(0, 599999) i \
        UNION ALL SELECT 600000 + 64 * a + b, ((1::bigint << a) # (1::bigint << b))::fingerprint \
        FROM generate_series(0, 62) a, generate_series(0, 62) b WHERE a > b) s; \
    CREATE INDEX docs_fp ON docs USING neardup (fp); \
    CREATE INDEX docs_site ON docs USING neardup (site, fp); \
    CREATE INDEX docs_wide ON docs USING neardup (wide)";

/// Returns the number of rows in clusters, and a number that depends on each of them.
fn digest(client: &mut Client, call: &str) -> Result<(i64, i64)> {
    let query = format!(
        "SELECT count(*), sum(hashtext(c::text || n)) FROM neardup_clusters({call}) \
         WITH ORDINALITY c (member, representative, size, distance, similarity, n)"
    );
    let row = client.query_one(&query, &[])?;
    Ok((row.get(0), row.get(1)))
}

#[test]
fn little_memory_is_enough_for_many_members() -> Outcome {
    let database = Database::create()?;
    database.connect()?.batch_execute(ROWS)?;
    let calls = [
        "'docs_fp', 3",
        "'docs_fp', 3, keep => 'id DESC'",
        "'docs_fp', 3, method => 'connected', keep => 'id % 1000, id'",
        "'docs_site', 3, keep => 'id'",
        "'docs_wide', 6",
    ];
    for call in calls {
        // Each call has a new backend, because the peak of a backend never falls.
        let mut client = database.connect()?;
        client.batch_execute("SET maintenance_work_mem = '1MB'; SET work_mem = '1MB'")?;
        let before = most_memory(&mut client)?;
        let found = digest(&mut client, call)?;
        let taken = most_memory(&mut client)?.saturating_sub(before);
        ensure!(found.0 > 500_000, "{call}: {} members", found.0);
        let limit = 40 << 20;
        ensure!(
            taken < limit,
            "{call}: {taken} bytes were taken, and {limit} are the limit"
        );
        client.batch_execute("SET maintenance_work_mem = '1GB'; SET work_mem = '64MB'")?;
        ensure!(
            digest(&mut client, call)? == found,
            "{call}: another answer in more memory"
        );
    }
    Ok(())
}

/// The first pairs of equal signatures are returned at once, before all have been collected.
#[test]
fn the_first_pairs_of_equal_signatures_need_no_other() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT i AS id, minhash(ARRAY['a', 'b']) AS sig \
            FROM generate_series(1, 20000) i; \
         INSERT INTO docs SELECT 20000 + i, minhash(ARRAY[i::text]) FROM generate_series(1, 10) i; \
         INSERT INTO docs SELECT 30000, minhash(ARRAY['5']); \
         CREATE INDEX docs_sig ON docs USING neardup (sig)",
    )?;
    // All pairs would take some ten gigabytes.
    client.batch_execute("SET temp_file_limit = '64MB'")?;
    let first =
        "SELECT count(*) FROM (SELECT neardup_pairs('docs', similarity => 0.8) LIMIT 100000) p";
    ensure!(value::<i64>(&mut client, first)? == 100_000);
    // Stops in the middle, with and without an error. The files must be removed.
    client.batch_execute("DELETE FROM docs WHERE id > 3 AND id <= 20000; SET work_mem = '64kB'")?;
    let all = "SELECT count(*) FROM (SELECT neardup_pairs('docs', similarity => 0.8) OFFSET 0) p";
    ensure!(value::<i64>(&mut client, all)? == 4);
    for end in ["COMMIT", "ROLLBACK", "SELECT 1 / 0"] {
        client.batch_execute(
            "BEGIN; DECLARE found NO SCROLL CURSOR FOR \
             SELECT neardup_pairs('docs', similarity => 0.001)",
        )?;
        client.batch_execute("SAVEPOINT a; FETCH 4 FROM found; RELEASE a; FETCH 10 FROM found")?;
        let ended = client.batch_execute(end);
        ensure!(ended.is_err() == end.contains('/'), "{end}");
        client.batch_execute("ROLLBACK")?;
        ensure!(value::<i64>(&mut client, all)? == 4, "{end}");
    }
    Ok(())
}

/// 67,500 rows with signatures of 64 values: three rows for each of 20,000 signatures, every other
/// of them different from the one before in a few positions; 1,500 rows of two signatures that are
/// near each other; and 6,000 deleted rows of one signature.
const SIGNATURES: &str = "CREATE TABLE signed (id int, site int, sig minhash_signature); \
    INSERT INTO signed SELECT i, i / 3 % 4 / 2, minhash(array(SELECT n::text || 'x' || i / 6 \
            FROM generate_series(1, 20 + i / 3 % 2) n), 64) \
        FROM generate_series(0, 59999) i; \
    INSERT INTO signed SELECT 60000 + i, i % 2, minhash(array(SELECT n::text FROM \
            generate_series(1, CASE WHEN i % 2 = 0 THEN 20 ELSE 20 + i % 40 / 20 END) n), 64) \
        FROM generate_series(0, 1499) i; \
    INSERT INTO signed SELECT 70000 + i, 0, minhash(ARRAY['gone'], 64) \
        FROM generate_series(0, 5999) i; \
    DELETE FROM signed WHERE id >= 70003; \
    CREATE INDEX signed_sig ON signed USING neardup (sig) WITH (hashes = 64); \
    CREATE INDEX signed_site ON signed USING neardup (site, sig) WITH (hashes = 64)";

/// Returns the number of pairs, and a number that depends on each of them.
fn digest_of_pairs(client: &mut Client, call: &str) -> Result<(i64, i64)> {
    let query = format!("SELECT count(*), sum(hashtext(p::text)) FROM neardup_pairs({call}) p");
    let row = client.query_one(&query, &[])?;
    Ok((row.get(0), row.get(1)))
}

#[test]
fn little_memory_is_enough_for_many_equal_signatures() -> Outcome {
    let database = Database::create()?;
    database.connect()?.batch_execute(SIGNATURES)?;
    let calls = [
        (true, "'signed_sig', similarity => 0.8"),
        (
            true,
            "'signed_sig', similarity => 0.8, method => 'connected', keep => 'id DESC'",
        ),
        (
            true,
            "'signed_site', similarity => 0.8, keep => 'id % 100, id'",
        ),
        (true, "'signed_sig', similarity => 1"),
        (false, "'signed_sig', similarity => 0.8"),
        (false, "'signed_site', similarity => 0.9"),
    ];
    for (of_clusters, call) in calls {
        let digest = if of_clusters { digest } else { digest_of_pairs };
        // Each call has a new backend, because the peak of a backend never falls.
        let mut client = database.connect()?;
        client.batch_execute("SET maintenance_work_mem = '1MB'; SET work_mem = '1MB'")?;
        let before = most_memory(&mut client)?;
        let found = digest(&mut client, call)?;
        let taken = most_memory(&mut client)?.saturating_sub(before);
        ensure!(found.0 > 50_000, "{call}: {} rows", found.0);
        let limit = 40 << 20;
        ensure!(
            taken < limit,
            "{call}: {taken} bytes were taken, and {limit} are the limit"
        );
        client.batch_execute("SET maintenance_work_mem = '1GB'; SET work_mem = '64MB'")?;
        ensure!(
            digest(&mut client, call)? == found,
            "{call}: another answer in more memory"
        );
    }
    Ok(())
}

/// 1,953 fingerprints in a ball, whose pairs would take 60 MB, and 3,000 chains of three rows with
/// the middle row deleted. VACUUM has removed nothing.
const DELETED: &str = "CREATE TABLE dead (id int, site bigint, fp fingerprint); \
    INSERT INTO dead SELECT 64 * a + b, 1, ((1::bigint << a) # (1::bigint << b))::fingerprint \
        FROM generate_series(0, 62) a, generate_series(0, 62) b WHERE a > b; \
    INSERT INTO dead SELECT 10000 + i, 1, \
        (('x' || left(md5((i / 3)::text), 16))::bit(64)::bigint \
            # ((8 << 3 * (i % 3)) - 8))::fingerprint \
        FROM generate_series(0, 8999) i; \
    INSERT INTO dead SELECT id + 20000, 1, fp FROM dead WHERE id % 7 = 0; \
    CREATE INDEX dead_fp ON dead USING neardup (fp); \
    CREATE INDEX dead_site ON dead USING neardup (site, fp); \
    DELETE FROM dead WHERE id >= 10000 AND id % 3 = 2 OR id < 10000 AND id % 100 = 7";

#[test]
fn deleted_rows_connect_nothing_and_bring_no_quadratic_work() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(DELETED)?;
    client.batch_execute(
        "SET maintenance_work_mem = '1MB'; SET work_mem = '1MB'; SET temp_file_limit = '40MB'",
    )?;
    let calls = [
        "'dead_fp', 4, method => 'connected'",
        "'dead_site', 4, method => 'connected', keep => 'id DESC'",
        "'dead_fp', 4",
    ];
    let before: Vec<_> = (calls.iter())
        .map(|call| digest(&mut client, call))
        .collect::<Result<_>>()?;
    ensure!(before.iter().all(|found| found.0 > 2_000), "{before:?}");
    client.batch_execute("VACUUM dead")?;
    for (call, before) in calls.iter().zip(before) {
        let after = digest(&mut client, call)?;
        ensure!(
            after == before,
            "{call}: {before:?}, and {after:?} after VACUUM"
        );
    }
    Ok(())
}

/// 900 different signatures of two sites with equal hashes. 700 of them are around one text, one
/// to ten words from it.
const WORKLOAD: &str = "CREATE TABLE crowd AS SELECT i AS id, \
        CASE i % 2 WHEN 0 THEN 1 ELSE 4294967296 END AS site, minhash(array( \
            SELECT n::text FROM generate_series(1, 60) n WHERE i >= 700 OR n % 61 <> i % 60 \
            UNION ALL SELECT i || 'x' || n FROM generate_series(0, \
                CASE WHEN i < 700 THEN i % 10 ELSE 300 END) n), 64) AS sig \
        FROM generate_series(0, 899) i; \
    CREATE INDEX crowd_sig ON crowd USING neardup (sig) WITH (hashes = 64); \
    CREATE INDEX crowd_site ON crowd USING neardup (site, sig) WITH (hashes = 64); \
    DELETE FROM crowd WHERE id % 50 = 3";

/// Returns the representative of each member, from the pairs and the definition of a method.
fn expected(client: &mut Client, call: &str, method: &str, keep: &str) -> Result<Vec<(i32, i32)>> {
    let pairs = client.query(
        &format!(
            "SELECT a.id, b.id FROM neardup_pairs({call}) p JOIN crowd a ON a.ctid = p.a \
             JOIN crowd b ON b.ctid = p.b"
        ),
        &[],
    )?;
    let pairs: HashSet<(i32, i32)> = (pairs.iter())
        .flat_map(|row| [(row.get(0), row.get(1)), (row.get(1), row.get(0))])
        .collect();
    let order = client.query(&format!("SELECT id FROM crowd ORDER BY {keep}"), &[])?;
    let mut left: Vec<i32> = order.iter().map(|row| row.get(0)).collect();
    let mut found = Vec::new();
    while !left.is_empty() {
        let center = left.remove(0);
        let (mut members, mut open) = (Vec::new(), vec![center]);
        while let Some(other) = open.pop() {
            let is_member = |id: &i32| pairs.contains(&(other, *id));
            let next: Vec<i32> = left.iter().copied().filter(is_member).collect();
            left.retain(|id| !is_member(id));
            members.extend(&next);
            if method == "connected" {
                open.extend(next);
            }
        }
        if !members.is_empty() {
            found.extend([center].into_iter().chain(members).map(|id| (id, center)));
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[test]
fn clusters_of_crowded_signatures_are_as_by_definition() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(WORKLOAD)?;
    for (call, method, keep) in [
        ("'crowd_sig', similarity => 0.8", "star", "id"),
        ("'crowd_sig', similarity => 0.9", "star", "id * 7919 % 1009"),
        ("'crowd_site', similarity => 0.8", "star", "id DESC"),
        ("'crowd_sig', similarity => 0.92", "connected", "id"),
        (
            "'crowd_sig', similarity => 0.94",
            "connected",
            "id * 7919 % 1009",
        ),
        ("'crowd_site', similarity => 0.94", "connected", "id DESC"),
    ] {
        let expected = expected(&mut client, call, method, keep)?;
        ensure!(expected.len() > 200, "{call}: {} members", expected.len());
        for memory in ["1MB", "64MB"] {
            client.batch_execute(&format!(
                "SET maintenance_work_mem = '{memory}'; SET work_mem = '{memory}'"
            ))?;
            let found = client.query(
                &format!(
                    "SELECT m.id, r.id \
                     FROM neardup_clusters({call}, method => '{method}', keep => '{keep}') c \
                     JOIN crowd m ON m.ctid = c.member JOIN crowd r ON r.ctid = c.representative \
                     ORDER BY 1"
                ),
                &[],
            )?;
            let found: Vec<(i32, i32)> =
                (found.iter()).map(|row| (row.get(0), row.get(1))).collect();
            ensure!(
                found == expected,
                "{call}, {method}, {keep}, {memory}: {found:?}"
            );
        }
    }
    Ok(())
}

/// Several scopes with one hash have three thousand fingerprints near each other. Chains within
/// each scope are found without storing all pairs.
#[test]
fn scopes_of_one_hash_bring_no_quadratic_work() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    // The hash of a bigint combines its halves: these scopes have the hash of 7.
    client.batch_execute(
        "CREATE TABLE scoped AS SELECT i AS id, i % 3 AS plain, \
            ((i % 3)::bigint << 32) + ((i % 3) # 7) AS folded, fp \
        FROM generate_series(0, 8999) i, \
            LATERAL (SELECT ((i / 3 # i / 6)::bigint)::fingerprint AS fp) f; \
        INSERT INTO scoped SELECT 9000 + i, i % 3, ((i % 3)::bigint << 32) + ((i % 3) # 7), \
            (1::bigint << 40 + i)::fingerprint FROM generate_series(0, 8) i; \
        DELETE FROM scoped WHERE id % 100 = 7; \
        CREATE INDEX plain_fp ON scoped USING neardup (plain, fp); \
        CREATE INDEX folded_fp ON scoped USING neardup (folded, fp); \
        CREATE INDEX some_fp ON scoped USING neardup (folded, fp) WHERE id % 7 > 0; \
        CREATE INDEX some_plain_fp ON scoped USING neardup (plain, fp) WHERE id % 7 > 0; \
        SET temp_file_limit = '40MB'; SET maintenance_work_mem = '1MB'; SET work_mem = '1MB'",
    )?;
    let mut clusters = |index: &str, arguments: &str| {
        digest(
            &mut client,
            &format!("'{index}', 6, method => 'connected', keep => 'id', {arguments}"),
        )
    };
    for (plain, folded) in [("plain_fp", "folded_fp"), ("some_plain_fp", "some_fp")] {
        for arguments in [
            "singletons => false",
            "singletons => true",
            "filter => 'id % 5 <> 2'",
        ] {
            let expected = clusters(plain, arguments)?;
            ensure!(expected.0 > 5_000, "{expected:?}");
            let found = clusters(folded, arguments)?;
            ensure!(
                found == expected,
                "{folded} {arguments}: {found:?}, not {expected:?}"
            );
        }
    }
    Ok(())
}
