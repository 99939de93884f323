//! Renewal of marks when an original is deleted or changed: the work and the index used.
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Result, ensure};
use neardup_tests::Database;
use postgres::Client;

/// A table of copies of one original.
#[derive(Clone, Copy, Debug)]
struct Copies {
    /// The column's type, with its operator class.
    kind: &'static str,
    opclass: &'static str,
    /// The value of row `i`. Row 1 is the original.
    value: &'static str,
    /// The condition of near-duplicates `a` and `b`, without the index.
    near: &'static str,
}

const COPIES: [Copies; 5] = [
    Copies {
        kind: "fingerprint",
        opclass: "fingerprint_ops",
        value: "0::bigint::fingerprint",
        near: "a.fp <#> b.fp <= 3",
    },
    // Copies are at most 2 bits from the original, and up to 4 from each other.
    Copies {
        kind: "fingerprint",
        opclass: "fingerprint_ops",
        value: "CASE i WHEN 1 THEN 0 ELSE (1::bigint << (i % 60)) | (1::bigint << (i * 7 % 60)) \
                END::bigint::fingerprint",
        near: "a.fp <#> b.fp <= 3",
    },
    Copies {
        kind: "bigint",
        opclass: "bigint_hamming_ops",
        value: "(i % 2)::bigint",
        near: "a.fp <#> b.fp <= 3",
    },
    Copies {
        kind: "fingerprint256",
        opclass: "fingerprint256_ops",
        value: "repeat('0', 63) || (i % 4)::text",
        near: "a.fp <#> b.fp <= 3",
    },
    Copies {
        kind: "minhash_signature",
        opclass: "minhash_ops",
        value: "minhash('a b c d e f g h i j k l m n o p q r s t u v w x ' || i % 2, \
                shingle => 1)",
        near: "a.fp ~= b.fp",
    },
];

/// Statements after which row 1 is no longer an original.
const ENDS: [&str; 2] = [
    "DELETE FROM docs WHERE id = 1",
    "UPDATE docs SET fp = NULL WHERE id = 1",
];

impl Copies {
    /// Makes the table of an original and its copies, with marks.
    fn create(self, client: &mut Client, count: u32, predicate: &str, reference: &str) -> Outcome {
        let Copies {
            kind,
            opclass,
            value,
            ..
        } = self;
        let bound = match kind {
            "minhash_signature" => "similarity=0.8",
            _ => "radius=3",
        };
        let arguments = format!("'fp', 'action=mark', 'mark=dup', 'scope=site', '{bound}'");
        client.batch_execute(&format!(
            "CREATE TABLE docs (id bigint PRIMARY KEY, site int, fp {kind}, \
                 dup bigint {reference}); \
             INSERT INTO docs SELECT i, 1, ({value})::{kind}, CASE WHEN i > 1 THEN 1 END \
                 FROM generate_series(1, {count} + 1) AS i; \
             CREATE INDEX ON docs USING neardup (site, fp {opclass}) {predicate}; \
             CREATE INDEX ON docs (dup); \
             CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup({arguments}); \
             CREATE TRIGGER marks AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup({arguments}); \
             ANALYZE docs"
        ))?;
        Ok(())
    }

    /// Runs a statement after which row 1 is no longer an original. Returns the number of index
    /// entries, rows and pages that this session has read for it.
    fn work(self, client: &mut Client, end: &str) -> Result<i64> {
        const WORK: &str = "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid) \
                 + pg_stat_get_xact_tuples_fetched(c.oid) \
                 + pg_stat_get_xact_blocks_fetched(c.oid))::bigint \
             FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid \
             WHERE 'docs'::regclass IN (c.oid, i.indrelid)";
        let mut transaction = client.transaction()?;
        let before: i64 = value(&mut transaction, WORK)?;
        transaction.batch_execute(end)?;
        let after: i64 = value(&mut transaction, WORK)?;
        transaction.commit()?;
        let untrue: i64 = value(
            client,
            &format!(
                "SELECT count(*) FROM docs a LEFT JOIN docs b ON b.id = a.dup \
                 WHERE a.dup IS NOT NULL AND (b.dup IS NULL AND b.id > 1 AND {}) IS NOT TRUE",
                self.near
            ),
        )?;
        ensure!(untrue == 0, "{self:?}: {untrue} marks are not true");
        let near: i64 = value(
            client,
            &format!(
                "SELECT count(*) FROM docs a, docs b WHERE a.id < b.id AND a.dup IS NULL \
                 AND b.dup IS NULL AND {}",
                self.near
            ),
        )?;
        ensure!(near == 0, "{self:?}: originals that are near each other");
        Ok(after - before)
    }
}

#[test]
fn work_for_an_original_that_goes_grows_in_proportion_to_its_copies() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute("SET client_min_messages = warning")?;
    for copies in COPIES {
        for predicate in ["", "WHERE dup IS NULL"] {
            for reference in ["", "REFERENCES docs ON DELETE SET NULL"] {
                for end in ENDS {
                    let mut work = |count| {
                        copies.create(&mut client, count, predicate, reference)?;
                        let work = copies.work(&mut client, end)?;
                        client.batch_execute("DROP TABLE docs")?;
                        anyhow::Ok(work)
                    };
                    let (few, many) = (work(200)?, work(800)?);
                    println!("{few} and {many}: {copies:?} '{predicate}' '{reference}' {end}");
                    // At most four times the work for four times the copies, plus pages for
                    // descents.
                    assert!(
                        many < 5 * few,
                        "{few} and {many}: {copies:?} '{predicate}' '{reference}' {end}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Returns the number of searches of an index by this session so far.
fn searches(client: &mut Client, index: &str) -> Result<i64> {
    let query = format!("SELECT pg_stat_get_xact_numscans('{index}'::regclass)");
    value(client, &query)
}

/// Returns the indexes that the trigger searches when a copy of row 1 is inserted.
fn searched<'a>(client: &mut Client, indexes: &[&'a str]) -> Result<Vec<&'a str>> {
    client.batch_execute("BEGIN")?;
    let before: Vec<i64> = (indexes.iter())
        .map(|index| searches(client, index))
        .collect::<Result<_>>()?;
    client.batch_execute("INSERT INTO docs SELECT -1, site, fp FROM docs WHERE id = 1")?;
    let mut used = Vec::new();
    for (index, before) in indexes.iter().zip(before) {
        if searches(client, index)? > before {
            used.push(*index);
        }
    }
    client.batch_execute("ROLLBACK")?;
    Ok(used)
}

#[test]
fn index_that_is_searched_does_not_depend_on_which_was_made_first() -> Outcome {
    // In order of preference for a trigger with a radius of 3: indexes without marked rows, then
    // by the cost of a search, then by name.
    let indexes = [
        ("c_partial", "WITH (radius = 3) WHERE dup IS NULL"),
        ("d_partial", "WITH (radius = 3) WHERE dup IS NULL"),
        ("b_full", "WITH (radius = 3)"),
        ("a_full", "WITH (radius = 8)"),
    ];
    let database = Database::create()?;
    let mut client = database.connect()?;
    for backwards in [false, true] {
        COPIES[0].create(&mut client, 3, "", "")?;
        client.batch_execute(
            "DROP INDEX docs_site_fp_idx; ALTER TABLE docs DISABLE TRIGGER USER; \
             INSERT INTO docs \
                 SELECT i, 1, ('x' || left(md5(i::text), 16))::bit(64)::bigint::fingerprint \
                 FROM generate_series(100, 20000) AS i; \
             ALTER TABLE docs ENABLE TRIGGER USER",
        )?;
        let mut left = indexes.to_vec();
        if backwards {
            left.reverse();
        }
        for (name, options) in &left {
            client.batch_execute(&format!(
                "CREATE INDEX {name} ON docs USING neardup (site, fp) {options}"
            ))?;
        }
        for (best, _) in indexes {
            let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
            assert_eq!(searched(&mut client, &names)?, [best]);
            // The index gets another OID, which is the highest.
            for name in &names {
                client.batch_execute(&format!("REINDEX INDEX CONCURRENTLY {name}"))?;
                assert_eq!(searched(&mut client, &names)?, [best], "after {name}");
            }
            client.batch_execute(&format!("DROP INDEX {best}"))?;
            left.retain(|(name, _)| *name != best);
        }
        client.batch_execute("DROP TABLE docs")?;
    }
    Ok(())
}
