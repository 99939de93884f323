//! Rows named by keys, and clusters of keys that any query pairs. Compares them with joins by
//! address and a union-find, with as little memory as the server allows.
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::memory::most_memory;
use crate::support::table::value;
use anyhow::ensure;
use neardup_tests::Database;
use postgres::Client;
use std::collections::{BTreeMap, BTreeSet};

/// 380,000 pairs of 200,000 keys: long chains, and keys with many others.
const MANY: &str = "CREATE TABLE many AS SELECT \
        hashint8extended(i / 50 * 50, 1) % 1000000000 AS a, \
        hashint8extended(i, 1) % 1000000000 AS b FROM generate_series(0, 199999) i \
    UNION ALL SELECT hashint8extended(i, 1) % 1000000000, hashint8extended(i + 7, 1) % 1000000000 \
        FROM generate_series(0, 199999) i WHERE i % 100 < 90";

/// Smallest memory settings of the server. JIT is off, because it takes 60 MB.
const LITTLE: &str = "SET work_mem = '64kB'; SET maintenance_work_mem = '1MB'; SET jit = off";

/// A member, its representative, and the size of its cluster.
type Rows = Vec<(i64, i64, i64)>;

/// Returns rows from the representatives by member.
fn rows(representatives: BTreeMap<i64, i64>) -> Rows {
    let mut sizes = BTreeMap::new();
    for representative in representatives.values() {
        *sizes.entry(*representative).or_insert(0) += 1;
    }
    let mut rows: Rows = representatives
        .into_iter()
        .map(|(member, representative)| (member, representative, sizes[&representative]))
        .collect();
    rows.sort_unstable_by_key(|&(member, representative, _)| (representative, member));
    rows
}

/// Computes chains of pairs with a union-find. The smallest key of a chain represents it.
fn connected(pairs: &[(i64, i64)]) -> Rows {
    fn root(parents: &mut BTreeMap<i64, i64>, key: i64) -> i64 {
        let parent = *parents.entry(key).or_insert(key);
        if parent == key {
            return key;
        }
        let root = root(parents, parent);
        parents.insert(key, root);
        root
    }
    let mut parents = BTreeMap::new();
    for &(a, b) in pairs {
        let (a, b) = (root(&mut parents, a), root(&mut parents, b));
        parents.insert(a.max(b), a.min(b));
    }
    let keys: Vec<i64> = parents.keys().copied().collect();
    rows(
        (keys.into_iter())
            .map(|key| (key, root(&mut parents, key)))
            .collect(),
    )
}

/// In ascending order, each key without a representative represents the keys paired with it.
fn star(pairs: &[(i64, i64)]) -> Rows {
    let mut near: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for &(a, b) in pairs {
        near.entry(a).or_default().insert(b);
        near.entry(b).or_default().insert(a);
    }
    let mut taken = BTreeMap::new();
    for (&key, others) in &near {
        if taken.contains_key(&key) {
            continue;
        }
        for &other in others.iter().chain([&key]) {
            taken.entry(other).or_insert(key);
        }
    }
    rows(taken)
}

/// Returns the clusters of a query's pairs from the function.
fn clusters(client: &mut Client, call: &str) -> anyhow::Result<Rows> {
    let statement = format!("SELECT member::bigint, representative::bigint, size FROM {call}");
    let found = client.query(&statement, &[])?;
    Ok(found
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect())
}

/// Random pairs: few or many for each key, chains, equal pairs, and keys paired with themselves.
fn random_pairs(random: &mut Random) -> Vec<(i64, i64)> {
    let (keys, count) = (1 + random.below(400), random.below(600));
    let mut pairs: Vec<(i64, i64)> = (0..count)
        .map(|_| [random.below(keys), random.below(keys)].map(|key| key as i64 * 7 - 900))
        .map(|[a, b]| (a, b))
        .collect();
    for link in 0..random.below(50) as i64 {
        pairs.push((1_000_000 + link, 1_000_001 + link));
    }
    if let Some(&again) = pairs.first() {
        pairs.extend([again, (again.1, again.0)]);
    }
    pairs
}

#[test]
fn components_are_those_of_a_union_find() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(LITTLE)?;
    client.batch_execute("CREATE TABLE pairs (n int, a bigint, b bigint)")?;
    let mut random = Random::new(12);
    for _ in 0..40 {
        let pairs = random_pairs(&mut random);
        client.batch_execute("TRUNCATE pairs")?;
        let (a, b): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
        client.execute(
            "INSERT INTO pairs SELECT hashint8(a # b), a, b \
             FROM unnest($1::bigint[], $2::bigint[]) AS p (a, b)",
            &[&a, &b],
        )?;
        let expected = [connected(&pairs), star(&pairs)];
        // Pairs in any order, with either end first, once or twice.
        for query in [
            "SELECT a, b FROM pairs",
            "SELECT b, a FROM pairs ORDER BY n, a",
            "SELECT a, b FROM pairs UNION ALL SELECT b, a FROM pairs ORDER BY 1 DESC",
        ] {
            let calls = [
                format!("neardup_components('{query}')"),
                format!("neardup_components(NULL::bigint, '{query}', 'star')"),
            ];
            for (call, expected) in calls.iter().zip(&expected) {
                ensure!(
                    clusters(&mut client, call)? == *expected,
                    "{call}: {pairs:?}"
                );
            }
        }
        // Texts of equal length are ordered like numbers.
        let query = "SELECT lpad((a + 10000)::text, 10, ''0''), lpad((b + 10000)::text, 10, ''0'') \
                     FROM pairs";
        let shifted: Vec<(i64, i64)> = (pairs.iter())
            .map(|(a, b)| (a + 10_000, b + 10_000))
            .collect();
        let call = format!("neardup_components(NULL::text, '{query}')");
        ensure!(
            clusters(&mut client, &call)? == connected(&shifted),
            "{pairs:?}"
        );
    }
    Ok(())
}

/// Returns the keys of pairs in the order of preference: first those in `preferred`, each at its
/// first position, then the others in ascending order.
fn in_order(pairs: &[(i64, i64)], preferred: &[i64]) -> Vec<i64> {
    let mut left: BTreeSet<i64> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    let mut order: Vec<i64> = (preferred.iter().copied())
        .filter(|key| left.remove(key))
        .collect();
    order.extend(left);
    order
}

/// The clusters with an order of preference are those of pairs whose keys are numbered in this
/// order.
#[test]
fn components_keep_the_preferred_keys() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(LITTLE)?;
    client.batch_execute(
        "CREATE TABLE pairs (a bigint, b bigint); CREATE TABLE preferred (n bigint, key int)",
    )?;
    let mut random = Random::new(13);
    for round in 0..40 {
        let pairs = random_pairs(&mut random);
        // Some of the keys, some of these twice, and keys that are in no pair.
        let mut preferred: Vec<i64> = (pairs.iter())
            .flat_map(|&(a, b)| [a, b, a + 3])
            .filter(|_| random.below(4) < round % 4)
            .collect();
        for i in (1..preferred.len()).rev() {
            preferred.swap(i, random.below(i as u64 + 1) as usize);
        }
        client
            .batch_execute("TRUNCATE pairs, preferred; INSERT INTO preferred VALUES (0, NULL)")?;
        let (a, b): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
        client.execute(
            "INSERT INTO pairs SELECT a, b FROM unnest($1::bigint[], $2::bigint[]) AS p (a, b)",
            &[&a, &b],
        )?;
        client.execute(
            "INSERT INTO preferred SELECT n, key FROM unnest($1::bigint[]) WITH ORDINALITY \
                AS k (key, n) ORDER BY hashint8(key)",
            &[&preferred],
        )?;
        let order = in_order(&pairs, &preferred);
        let number = |key: i64| {
            order
                .iter()
                .position(|&other| other == key)
                .map(|n| n as i64)
        };
        let numbered: Option<Vec<(i64, i64)>> = (pairs.iter())
            .map(|&(a, b)| Some((number(a)?, number(b)?)))
            .collect();
        let numbered = numbered.expect("all keys are in the order");
        let key = |number: i64| order[number as usize];
        for (method, expected) in [
            ("star", star(&numbered)),
            ("connected", connected(&numbered)),
        ] {
            let expected: Rows = (expected.into_iter())
                .map(|(member, representative, size)| (key(member), key(representative), size))
                .collect();
            let call = format!(
                "neardup_components(NULL::bigint, 'SELECT a, b FROM pairs', '{method}', \
                    'SELECT key FROM preferred ORDER BY n')"
            );
            let found = clusters(&mut client, &call)?;
            ensure!(found == expected, "{method}: {pairs:?}, {preferred:?}");
        }
    }
    Ok(())
}

#[test]
fn little_memory_is_enough_for_many_pairs() -> Outcome {
    let database = Database::create()?;
    database.connect()?.batch_execute(MANY)?;
    for call in [
        "neardup_components('SELECT a, b FROM many')",
        "neardup_components(NULL::bigint, 'SELECT b, a FROM many', 'star')",
        "neardup_components(NULL::text, 'SELECT ''key '' || a, ''key '' || b FROM many')",
        "neardup_components(NULL::bigint, 'SELECT a, b FROM many', 'star', \
            'SELECT a FROM many ORDER BY b DESC, a')",
    ] {
        let query = format!(
            "SELECT count(*)::text || ' ' || sum(hashtext(c::text || n)) FROM {call} \
             WITH ORDINALITY c (member, representative, size, n)"
        );
        // Each call has a new backend, because the peak of a backend never falls.
        let mut client = database.connect()?;
        client.batch_execute(LITTLE)?;
        let before = most_memory(&mut client)?;
        let little: String = value(&mut client, &query)?;
        let taken = most_memory(&mut client)?.saturating_sub(before);
        // The memory of the library, the server's memory for a query outside work_mem, and 1 MB of
        // lists. The ends of pairs and the keys are 50 MB in memory.
        ensure!(taken < 16 << 20, "{call}: {taken} bytes");
        let mut client = database.connect()?;
        client.batch_execute("SET work_mem = '1GB'; SET maintenance_work_mem = '1GB'")?;
        let much: String = value(&mut client, &query)?;
        ensure!(little == much, "{call}: {little} and {much}");
    }
    Ok(())
}

/// Every kind of index, with its name, its columns and a bound.
const INDEXES: [(&str, &str, &str); 9] = [
    ("docs_fp", "(fp)", "3"),
    ("docs_wide", "(wide)", "6"),
    ("docs_widest", "(widest)", "9"),
    ("docs_hash", "(hash bigint_hamming_ops)", "3"),
    ("docs_ball", "(ball(fp, 3))", "3"),
    ("docs_sig", "(sig)", "similarity => 0.8"),
    ("docs_scope", "(site, fp)", "3"),
    (
        "docs_expression",
        "((fp::bigint # 85) bigint_hamming_ops)",
        "3",
    ),
    ("docs_part", "(fp) WHERE site = 1", "3"),
];

#[test]
fn keys_are_those_of_the_rows() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE parted (id bigint, site int, fp fingerprint, wide fingerprint128, \
             widest fingerprint256, hash bigint, sig minhash_signature) PARTITION BY LIST (site); \
         CREATE TABLE docs PARTITION OF parted FOR VALUES IN (0, 1); \
         CREATE TABLE rest PARTITION OF parted DEFAULT; \
         INSERT INTO parted SELECT i, i % 3, fp, (fp::text || fp)::fingerprint128, \
             repeat(fp::text, 4)::fingerprint256, fp::bigint, minhash(ARRAY[(i / 4)::text, 'x']) \
         FROM (SELECT i, (hashint8extended(i / 8, 1) # (1::bigint << i % 60))::fingerprint AS fp \
             FROM generate_series(1, 3000) i) f; \
         DELETE FROM docs WHERE id % 7 = 0; \
         UPDATE docs SET id = id + 0 WHERE id % 5 = 0",
    )?;
    for (name, columns, bound) in INDEXES {
        client.batch_execute(&format!(
            "CREATE INDEX {name} ON docs USING neardup {columns}"
        ))?;
        let pairs = format!(
            "SELECT least(a.id, b.id), greatest(a.id, b.id), p.distance, p.similarity \
             FROM neardup_pairs('{name}', {bound}) p JOIN docs a ON a.ctid = p.a \
             JOIN docs b ON b.ctid = p.b"
        );
        let pairs_by_key = format!(
            "SELECT a, b, distance, similarity \
             FROM neardup_pairs_by_key(NULL::bigint, '{name}', {bound}, key => 'id')"
        );
        let clusters = format!(
            "SELECT m.id, r.id, c.size, c.distance, c.similarity, ordinal \
             FROM neardup_clusters('{name}', {bound}, keep => 'id') WITH ORDINALITY \
             AS c (member, representative, size, distance, similarity, ordinal) \
             JOIN docs m ON m.ctid = c.member JOIN docs r ON r.ctid = c.representative"
        );
        let clusters_by_key = format!(
            "SELECT member, representative, size, distance, similarity, ordinal \
             FROM neardup_clusters_by_key(NULL::bigint, '{name}', {bound}, key => 'id', \
                keep => 'id') \
             WITH ORDINALITY AS c (member, representative, size, distance, similarity, ordinal)"
        );
        for (known, by_key) in [(pairs, pairs_by_key), (clusters, clusters_by_key)] {
            let differing = format!(
                "SELECT count(*) FROM (({known}) EXCEPT ALL ({by_key})) d \
                 UNION ALL SELECT count(*) FROM (({by_key}) EXCEPT ALL ({known})) d \
                 UNION ALL SELECT -count(*) FROM ({by_key}) d ORDER BY 1"
            );
            let counts: Vec<i64> = (client.query(&differing, &[])?.iter())
                .map(|row| row.get(0))
                .collect();
            ensure!(
                counts[0] < -100 && counts[1..] == [0, 0],
                "{name}: {counts:?}"
            );
        }
    }
    Ok(())
}
