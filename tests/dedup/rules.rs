//! Two triggers on one table, under many clients. One skips near-duplicates within a site, and the
//! other marks them across sites.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use anyhow::{Result, bail};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

const CLIENTS: u64 = 6;
const TRANSACTIONS: u32 = 150;
/// Centres around which all clients write.
const CENTERS: u64 = 12;
/// Keys that clients share.
const KEYS: u64 = 200;

/// The site is a generated column: a part of the URL.
const SCHEMA: &str = "CREATE TABLE stories (id bigint PRIMARY KEY, url text, \
        site text GENERATED ALWAYS AS (split_part(url, '/', 1)) STORED, fp fingerprint, \
        dup bigint REFERENCES stories DEFERRABLE INITIALLY DEFERRED); \
    CREATE INDEX ON stories USING neardup (site, fp); \
    CREATE INDEX ON stories USING neardup (fp) WHERE dup IS NULL; \
    CREATE INDEX ON stories (dup); \
    CREATE TRIGGER a_skip BEFORE INSERT OR UPDATE OF fp, url ON stories FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'scope=site', 'radius=3'); \
    CREATE TRIGGER b_mark BEFORE INSERT OR UPDATE OF fp, dup ON stories FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'manual=false', \
            'radius=3'); \
    CREATE TRIGGER b_mark_after AFTER UPDATE OR DELETE ON stories FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'manual=false', \
            'radius=3');";

fn statement(random: &mut Random) -> String {
    let center = Random::new(random.below(CENTERS)).bits();
    let fp = format!("'{:016x}'", random.near(center, 4));
    let (key, site) = (random.below(KEYS), random.below(4));
    match random.below(8) {
        0..4 => format!(
            "INSERT INTO stories (id, url, fp) VALUES ({key}, 's{site}/{key}', {fp}) \
             ON CONFLICT DO NOTHING"
        ),
        4 => format!("UPDATE stories SET fp = {fp} WHERE id = {key}"),
        5 => format!("UPDATE stories SET url = 's{site}/{key}' WHERE id = {key}"),
        6 => format!("UPDATE stories SET dup = NULL WHERE id = {key}"),
        _ => format!("DELETE FROM stories WHERE id = {key}"),
    }
}

/// Runs transactions of one to three statements. Returns how many were committed.
fn client(conninfo: &str, seed: u64) -> Result<u32> {
    let mut client = connect(conninfo)?;
    client.batch_execute("SET deadlock_timeout = '20ms'")?;
    let mut random = Random::new(seed);
    let mut committed = 0;
    for _ in 0..TRANSACTIONS {
        let statements: Vec<String> = (0..=random.below(3))
            .map(|_| statement(&mut random))
            .collect();
        let result = client.batch_execute(&format!("BEGIN; {}; COMMIT", statements.join("; ")));
        match code(&result) {
            // Deadlocks.
            Some(state) if state == SqlState::T_R_DEADLOCK_DETECTED => {
                client.batch_execute("ROLLBACK")?;
            }
            _ => {
                result?;
                committed += 1;
            }
        }
    }
    Ok(committed)
}

fn count(admin: &mut Client, condition: &str) -> Result<i64> {
    value(
        admin,
        &format!("SELECT count(*) FROM stories a, stories b WHERE {condition}"),
    )
}

#[test]
fn two_rules_compose_under_many_clients() -> Outcome {
    let database = Database::create()?;
    let mut admin = database.connect()?;
    admin.batch_execute(SCHEMA)?;
    std::thread::scope(|scope| -> Outcome {
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|seed| {
                let conninfo = database.conninfo();
                scope.spawn(move || client(conninfo, seed))
            })
            .collect();
        for client in clients {
            match client.join() {
                Ok(committed) => assert!(committed? > 0, "nothing was committed"),
                Err(_) => bail!("a client panicked"),
            }
        }
        Ok(())
    })?;
    // The checks must not use the index that they check.
    admin.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    let near = "a.id < b.id AND a.fp <#> b.fp <= 3";
    assert_eq!(
        count(&mut admin, &format!("{near} AND a.site = b.site"))?,
        0
    );
    let originals = format!("{near} AND a.dup IS NULL AND b.dup IS NULL");
    assert_eq!(count(&mut admin, &originals)?, 0);
    let (marks, truth) = ("a.dup = b.id", "b.dup IS NULL AND a.fp <#> b.fp <= 3");
    let marked = count(&mut admin, marks)?;
    assert!(marked > 0, "nothing is marked");
    assert_eq!(count(&mut admin, &format!("{marks} AND {truth}"))?, marked);
    let all: i64 = value(&mut admin, "SELECT count(dup) FROM stories")?;
    assert_eq!(marked, all);
    Ok(())
}
