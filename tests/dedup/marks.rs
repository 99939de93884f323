//! The trigger's marks while many clients insert, change and delete originals and duplicates.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::texts::FAMILIES;
use anyhow::{Result, bail};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::ScopedJoinHandle;

/// Centres around which all clients write.
const CENTERS: u64 = 12;
/// Keys and URLs that clients share.
const KEYS: u64 = 150;
const TRANSACTIONS: u32 = 150;

/// A table with marks.
#[derive(Clone, Copy)]
struct Marked {
    name: &'static str,
    /// Definitions of the columns by which rows are compared.
    columns: &'static str,
    /// The column of these that statements write.
    written: &'static str,
    /// Last part of the index's definition, from its last column.
    index: &'static str,
    /// Arguments of the triggers about the compared columns and the bound.
    arguments: &'static str,
    /// The condition of near-duplicates `a` and `b`, without the index.
    near: &'static str,
}

const TABLES: [Marked; 10] = [
    Marked {
        name: "partial",
        columns: "fp fingerprint",
        written: "fp",
        index: "fp) WHERE dup IS NULL",
        arguments: "'fp', 'radius=3'",
        near: "a.fp <#> b.fp <= 3",
    },
    Marked {
        name: "whole",
        columns: "fp fingerprint",
        written: "fp",
        index: "fp)",
        arguments: "'fp', 'radius=3'",
        near: "a.fp <#> b.fp <= 3",
    },
    Marked {
        name: "hashed",
        columns: "fp bigint",
        written: "fp",
        index: "fp bigint_hamming_ops) WHERE dup IS NULL",
        arguments: "'fp', 'radius=3'",
        near: "a.fp <#> b.fp <= 3",
    },
    Marked {
        name: "wide",
        columns: "fp fingerprint256",
        written: "fp",
        index: "fp) WHERE dup IS NULL",
        arguments: "'fp', 'radius=3'",
        near: "a.fp <#> b.fp <= 3",
    },
    Marked {
        name: "signed",
        columns: "fp minhash_signature",
        written: "fp",
        index: "fp) WHERE dup IS NULL",
        arguments: "'fp', 'similarity=0.8'",
        near: "a.fp ~= b.fp",
    },
    Marked {
        name: "confirmed",
        columns: "body text, fp fingerprint",
        written: "body",
        index: "fp) WHERE dup IS NULL",
        arguments: "'fp', 'body', 'confirm=body', 'similarity=0.8'",
        near: "a.fp <#> b.fp <= 10 AND jaccard_similarity(a.body, b.body) >= 0.8",
    },
    // All fingerprints are equal, so the texts alone decide.
    Marked {
        name: "alike",
        columns: "body text, fp fingerprint DEFAULT '0000000000000007'",
        written: "body",
        index: "fp)",
        arguments: "'fp', 'confirm=body', 'radius=3'",
        near: "jaccard_similarity(a.body, b.body) >= 0.8",
    },
    Marked {
        name: "signed_texts",
        columns: "body text, \
                  fp minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED",
        written: "body",
        index: "fp) WITH (similarity = 0.75) WHERE dup IS NULL",
        arguments: "'fp', 'confirm=body', 'similarity=0.8'",
        near: "a.fp <%> b.fp <= 31 / 128.0 AND jaccard_similarity(a.body, b.body) >= 0.8",
    },
    // All fingerprints are equal, so the times alone decide. Updates move rows in and out of the
    // window without a change of an indexed column.
    Marked {
        name: "timed",
        columns: "at timestamptz, fp fingerprint DEFAULT '0000000000000007'",
        written: "at",
        index: "fp) WHERE dup IS NULL",
        arguments: "'fp', 'radius=3', 'time=at', 'within=2 days'",
        near: "CASE WHEN isfinite(a.at) AND isfinite(b.at) \
               THEN a.at - b.at BETWEEN interval '-2 days' AND interval '2 days' \
               ELSE a.at = b.at END",
    },
    Marked {
        name: RANGED,
        columns: "during int8range \
                  GENERATED ALWAYS AS (int8range(id % 40, id % 40 + 6)) STORED, fp fingerprint",
        written: "fp",
        index: "fp) WHERE dup IS NULL",
        arguments: "'fp', 'radius=3', 'time=during'",
        near: "a.fp <#> b.fp <= 3 AND a.during && b.during",
    },
];

/// Table in which the keys determine which rows are near.
const RANGED: &str = "ranged";

impl Marked {
    fn create(self, client: &mut Client) -> Outcome {
        let Marked {
            name,
            columns,
            index,
            arguments,
            ..
        } = self;
        let arguments = format!("{arguments}, 'action=mark', 'mark=dup', 'scope=site'");
        client.batch_execute(&format!(
            "CREATE TABLE {name} (id bigint PRIMARY KEY, url text, site int, {columns}, \
                 dup bigint, seen int DEFAULT 0); \
             CREATE UNIQUE INDEX ON {name} (lower(url)); \
             CREATE INDEX ON {name} (dup); \
             CREATE INDEX {name}_fp ON {name} USING neardup (site, {index}; \
             CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON {name} FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup({arguments}); \
             CREATE TRIGGER marks AFTER UPDATE OR DELETE ON {name} FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup({arguments});"
        ))?;
        Ok(())
    }

    fn has_signatures(self) -> bool {
        self.columns.contains("minhash_signature")
    }

    /// Returns a value near one of the centres, as an SQL expression.
    fn value(self, random: &mut Random) -> String {
        let center = random.below(CENTERS);
        if self.written == "body" {
            return format!("family_text({center}, {})", random.below(8));
        }
        if self.written == "at" {
            return match random.below(20) {
                0 => "'infinity'".to_owned(),
                1 => "'-infinity'".to_owned(),
                _ => format!(
                    "timestamptz '2024-01-01' + {} * interval '1 hour'",
                    random.below(40 * 24)
                ),
            };
        }
        if self.has_signatures() {
            let from = random.below(12);
            let words: String = (from..from + 60)
                .map(|w| format!("c{center}w{w} "))
                .collect();
            return format!("minhash('{words}', shingle => 1)");
        }
        let bits = random.near(Random::new(center).bits(), 4);
        match self.columns {
            "fp fingerprint256" => format!("'{bits:064x}'::fingerprint256"),
            "fp bigint" => format!("'{bits:016x}'::fingerprint::bigint"),
            _ => format!("'{bits:016x}'::fingerprint"),
        }
    }

    /// Returns the distance of two rows, as an SQL expression.
    fn distance(self, a: &str, b: &str) -> String {
        let operator = match self.has_signatures() {
            true => "<%>",
            false => "<#>",
        };
        format!("({a}.fp {operator} {b}.fp)")
    }

    /// One statement of a client.
    fn statement(self, random: &mut Random) -> String {
        let Marked { name, written, .. } = self;
        let value = self.value(random);
        let (key, url, site) = (random.below(KEYS), random.below(KEYS), random.below(2));
        let other = random.below(KEYS);
        match random.below(12) {
            0..4 => format!(
                "INSERT INTO {name} (id, url, site, {written}) \
                 VALUES ({key}, 'U{url}', {site}, {value}) ON CONFLICT DO NOTHING"
            ),
            4..6 => format!(
                "INSERT INTO {name} (id, url, site, {written}) \
                 VALUES ({key}, 'u{url}', {site}, {value}) \
                 ON CONFLICT (lower(url)) DO UPDATE SET url = EXCLUDED.url, \
                 {written} = EXCLUDED.{written}, site = EXCLUDED.site"
            ),
            6 => format!("UPDATE {name} SET {written} = {value} WHERE id = {key}"),
            7 => format!("UPDATE {name} SET site = 1 - site WHERE id = {key}"),
            8 => format!("UPDATE {name} SET id = {other} WHERE id = {key}"),
            9 => format!("UPDATE {name} SET seen = seen + 1 WHERE id = {key}"),
            10 => format!("UPDATE {name} SET {written} = NULL WHERE id = {key}"),
            _ => format!("DELETE FROM {name} WHERE id IN ({key}, {other})"),
        }
    }

    /// Asserts that all marks are valid, and that no original is near another one.
    fn check(self, client: &mut Client) -> Outcome {
        let Marked { name, near, .. } = self;
        let count = |client: &mut Client, query: String| value::<i64>(client, &query);
        let marks = count(client, format!("SELECT count(dup) FROM {name}"))?;
        assert!(marks > 0, "{name}: nothing is marked");
        let untrue = count(
            client,
            format!(
                "SELECT count(*) FROM {name} a LEFT JOIN {name} b ON b.id = a.dup \
                 WHERE a.dup IS NOT NULL AND (b.id <> a.id AND b.dup IS NULL \
                     AND a.site = b.site AND {near}) IS NOT TRUE"
            ),
        )?;
        assert_eq!(untrue, 0, "{name}: marks that are not true");
        let near = count(
            client,
            format!(
                "SELECT count(*) FROM {name} a, {name} b WHERE a.id < b.id AND a.site = b.site \
                 AND a.dup IS NULL AND b.dup IS NULL AND {near}"
            ),
        )?;
        assert_eq!(near, 0, "{name}: originals that are near each other");
        client.batch_execute(&format!("SELECT neardup_index_check('{name}_fp', true)"))?;
        Ok(())
    }
}

/// Runs transactions of one to four statements, in all isolation levels; some are rolled back.
fn client(conninfo: &str, seed: u64, table: Marked) -> Result<u32> {
    let mut client = connect(conninfo)?;
    client.batch_execute("SET deadlock_timeout = '20ms'")?;
    let mut random = Random::new(seed);
    let mut committed = 0;
    for _ in 0..TRANSACTIONS {
        let level = random.pick(&[
            "READ COMMITTED",
            "READ COMMITTED",
            "REPEATABLE READ",
            "SERIALIZABLE",
        ]);
        let statements: Vec<String> = (0..=random.below(4))
            .map(|_| table.statement(&mut random))
            .collect();
        let end = random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]);
        let result = client.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL {level}; {}; {end}",
            statements.join("; ")
        ));
        match code(&result) {
            // Deadlocks, a snapshot that is too old, or a duplicate key.
            Some(state)
                if [
                    SqlState::T_R_DEADLOCK_DETECTED,
                    SqlState::T_R_SERIALIZATION_FAILURE,
                    SqlState::UNIQUE_VIOLATION,
                    SqlState::CARDINALITY_VIOLATION,
                ]
                .contains(&state) =>
            {
                client.batch_execute("ROLLBACK")?;
            }
            _ => {
                result?;
                committed += u32::from(end == "COMMIT");
            }
        }
    }
    Ok(committed)
}

/// Runs two clients for each table, and concurrently a function until the clients have finished.
fn beside_clients(
    database: &Database,
    beside: impl FnMut(&dyn Fn() -> bool) -> Outcome + Send,
) -> Outcome {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| -> Outcome {
        let clients = TABLES.iter().chain(&TABLES);
        let running: Vec<_> = (clients.zip(1..))
            .map(|(&table, seed)| {
                let conninfo = database.conninfo();
                scope.spawn(move || client(conninfo, seed, table))
            })
            .collect();
        let (mut beside, ended) = (beside, &ended);
        let other = scope.spawn(move || beside(&|| ended.load(Relaxed)));
        let outcomes: Vec<_> = running.into_iter().map(ScopedJoinHandle::join).collect();
        ended.store(true, Relaxed);
        let Ok(other) = other.join() else {
            bail!("what ran beside the clients panicked");
        };
        other?;
        for outcome in outcomes {
            match outcome {
                Ok(committed) => assert!(committed? > 0, "nothing was committed"),
                Err(_) => bail!("a client panicked"),
            }
        }
        Ok(())
    })
}

/// Makes a database with the functions that the values of the tables need.
fn create() -> Result<(Database, Client)> {
    let database = Database::create()?;
    let mut admin = database.connect()?;
    admin.batch_execute(FAMILIES)?;
    Ok((database, admin))
}

/// Clients that insert copies of one original, and the number of statements of each.
const COUNTING_CLIENTS: u32 = 8;
const COUNTED: u32 = 50;

/// An ordinary trigger counts the copies of an original. No single-row insert fails.
#[test]
fn copies_are_counted_by_triggers_without_deadlocks() -> Outcome {
    let (database, mut admin) = create()?;
    admin.batch_execute(
        "CREATE FUNCTION count_copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             EXECUTE format('UPDATE %I SET seen = seen + 1 WHERE id = $1', TG_TABLE_NAME) \
                 USING NEW.dup; \
             RETURN NEW; \
         END $$",
    )?;
    // The counter fires before or after the row is written, with and without a foreign key.
    let timings = ["AFTER", "BEFORE"];
    let references = ["", "REFERENCES {} ON DELETE SET NULL"];
    let tables = TABLES.into_iter().filter(|table| table.name != RANGED);
    for (table, at) in tables.zip(0..) {
        let (name, written, timing) = (table.name, table.written, timings[at % 2]);
        table.create(&mut admin)?;
        let reference = references[at / 2 % 2].replace("{}", name);
        if !reference.is_empty() {
            admin.batch_execute(&format!(
                "ALTER TABLE {name} ADD FOREIGN KEY (dup) {reference}"
            ))?;
        }
        let original = table.value(&mut Random::new(1));
        admin.batch_execute(&format!(
            "CREATE TRIGGER z_count {timing} INSERT ON {name} FOR EACH ROW \
                 EXECUTE FUNCTION count_copy(); \
             INSERT INTO {name} (id, site, {written}) VALUES (0, 1, {original})"
        ))?;
        std::thread::scope(|scope| -> Outcome {
            let clients: Vec<_> = (0..COUNTING_CLIENTS)
                .map(|client| (scope, client, database.conninfo()))
                .map(|(scope, client, conninfo)| {
                    scope.spawn(move || -> Outcome {
                        let mut connection = connect(conninfo)?;
                        connection.batch_execute("SET deadlock_timeout = '20ms'")?;
                        for row in 0..COUNTED {
                            let id = 1 + client * COUNTED + row;
                            connection.batch_execute(&format!(
                                "INSERT INTO {name} (id, site, {written}) \
                                 SELECT {id}, 1, {written} FROM {name} WHERE id = 0"
                            ))?;
                        }
                        Ok(())
                    })
                })
                .collect();
            for client in clients {
                match client.join() {
                    Ok(outcome) => outcome?,
                    Err(_) => bail!("a client panicked"),
                }
            }
            Ok(())
        })?;
        let copies = i64::from(COUNTING_CLIENTS * COUNTED);
        let count = |query: &str| format!("SELECT {query} FROM {name}");
        let seen: i64 = value(
            &mut admin,
            &count("(max(seen) FILTER (WHERE id = 0))::bigint"),
        )?;
        let marked: i64 = value(&mut admin, &count("count(*) FILTER (WHERE dup = 0)"))?;
        assert_eq!([seen, marked], [copies; 2], "{name}");
    }
    Ok(())
}

fn check_all(admin: &mut Client) -> Outcome {
    // The checks must not use the index that they check.
    admin.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    TABLES.iter().try_for_each(|table| table.check(admin))
}

#[test]
fn marks_stay_true_under_many_clients() -> Outcome {
    let (database, mut admin) = create()?;
    for table in TABLES {
        table.create(&mut admin)?;
    }
    beside_clients(&database, |_| Ok(()))?;
    check_all(&mut admin)
}

/// Runs `neardup_remark` concurrently with the clients, with a foreign key on the marks. No client
/// may ever see a mark that names a marked row or no row.
#[test]
fn remarking_keeps_marks_true_beside_many_clients() -> Outcome {
    let (database, mut admin) = create()?;
    for table in TABLES {
        table.create(&mut admin)?;
        let name = table.name;
        admin.batch_execute(&format!(
            "ALTER TABLE {name} ADD FOREIGN KEY (dup) REFERENCES {name} \
                 DEFERRABLE INITIALLY DEFERRED"
        ))?;
    }
    let mut remarker = database.connect()?;
    let (mut rounds, mut changed) = (0, 0);
    beside_clients(&database, |ended| {
        while !ended() {
            for table in TABLES {
                let name = table.name;
                let wrote: i64 = value(&mut remarker, &format!("SELECT neardup_remark('{name}')"))?;
                changed += wrote;
                let untrue: i64 = value(
                    &mut remarker,
                    &format!(
                        "SELECT count(*) FROM {name} a LEFT JOIN {name} b ON b.id = a.dup \
                         WHERE a.dup IS NOT NULL AND (b.dup IS NULL AND b.id <> a.id) IS NOT TRUE"
                    ),
                )?;
                assert_eq!(untrue, 0, "{name}: marks that are not true");
            }
            rounds += 1;
        }
        Ok(())
    })?;
    assert!(
        rounds > 0 && changed > 0,
        "{rounds} rounds, {changed} marks"
    );
    for table in TABLES {
        let remark = format!("SELECT neardup_remark('{}')", table.name);
        value::<i64>(&mut admin, &remark)?;
        assert_eq!(value::<i64>(&mut admin, &remark)?, 0, "{}", table.name);
    }
    check_all(&mut admin)
}

/// The marks equal the trigger's marks for rows inserted in key order, or in the order `keep`.
#[test]
fn remarking_is_what_the_trigger_does_in_an_order() -> Outcome {
    let (_database, mut admin) = create()?;
    // The check must not use the index.
    admin.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    let orders = [("NULL", "id"), ("'id % 7 DESC -- best'", "id % 7 DESC, id")];
    for (table, (keep, order)) in
        (TABLES.iter()).flat_map(|table| orders.map(|order| (table, order)))
    {
        table.create(&mut admin)?;
        let Marked { name, written, .. } = table;
        let mut random = Random::new(7);
        let mut ids: Vec<u64> = (0..KEYS).collect();
        for i in (1..ids.len()).rev() {
            ids.swap(i, random.below(i as u64 + 1) as usize);
        }
        for id in ids {
            let (value, site) = (table.value(&mut random), random.below(2));
            admin.batch_execute(&format!(
                "INSERT INTO {name} (id, url, site, {written}) \
                 VALUES ({id}, {id}, {site}, {value})"
            ))?;
        }
        let remark = format!("SELECT neardup_remark('{name}', keep => {keep})");
        let changed: i64 = value(&mut admin, &remark)?;
        assert!(changed > 0, "{name}");
        admin.batch_execute(&format!(
            "CREATE TABLE remarked AS SELECT * FROM {name}; TRUNCATE {name}; \
             INSERT INTO {name} (id, url, site, {written}) \
                 SELECT id, url, site, {written} FROM remarked ORDER BY {order}"
        ))?;
        // The trigger takes any of several equally near originals.
        let originals: i64 = value(
            &mut admin,
            &format!(
                "SELECT count(*) FROM {name} JOIN remarked r USING (id) \
                 WHERE ({name}.dup IS NULL) <> (r.dup IS NULL)"
            ),
        )?;
        assert_eq!(originals, 0, "{name}");
        let farther: i64 = value(
            &mut admin,
            &format!(
                "SELECT count(*) FROM remarked r JOIN {name} k ON k.id = r.dup \
                 JOIN {name} t ON t.id = r.id JOIN {name} o ON o.id = t.dup \
                 WHERE {} <> {}",
                table.distance("r", "k"),
                table.distance("r", "o"),
            ),
        )?;
        assert_eq!(farther, 0, "{name}");
        table.check(&mut admin)?;
        admin.batch_execute(&format!("DROP TABLE remarked, {name}"))?;
    }
    Ok(())
}
