//! Marks by hand (`manual=<condition>`) under many clients: editors, a crawler that writes back
//! all columns, and deletions.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use anyhow::{Result, bail};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

const CLIENTS: u64 = 6;
const TRANSACTIONS: u32 = 200;
/// Centres around which all clients write.
const CENTERS: u64 = 12;
/// Keys that clients share.
const KEYS: u64 = 150;

const SCHEMA: &str = "CREATE TABLE pages (id bigint PRIMARY KEY, fp fingerprint, \
        checked boolean NOT NULL DEFAULT false, \
        dup bigint REFERENCES pages DEFERRABLE INITIALLY DEFERRED); \
    CREATE INDEX ON pages USING neardup (fp) WHERE dup IS NULL; \
    CREATE INDEX ON pages (dup); \
    CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON pages FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=6', \
            'manual=checked'); \
    CREATE TRIGGER mark_after AFTER UPDATE OR DELETE ON pages FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=6', \
            'manual=checked');";

/// Returns a statement of a client. No statement deletes or releases rows with marks by hand, so
/// that the rows named by these marks stay originals.
fn statement(random: &mut Random) -> String {
    let center = Random::new(random.below(CENTERS)).bits();
    let fp = format!("'{:016x}'", random.near(center, 4));
    let (key, other) = (random.below(KEYS), random.below(KEYS));
    match random.below(10) {
        0..4 => format!(
            "INSERT INTO pages (id, fp, checked) VALUES ({key}, {fp}, {other} < 5) \
             ON CONFLICT DO NOTHING"
        ),
        4 => format!("UPDATE pages SET fp = {fp} WHERE id = {key}"),
        // The client has read the row some time ago.
        5 => format!("UPDATE pages SET fp = {fp}, dup = NULL WHERE id = {key} AND NOT checked"),
        6 => {
            format!("UPDATE pages SET dup = NULL, checked = true WHERE id = {key} AND NOT checked")
        }
        7 => format!(
            "UPDATE pages SET dup = (SELECT id FROM pages WHERE id = {other}), checked = true \
             WHERE id = {key} AND NOT checked"
        ),
        8 => format!("UPDATE pages SET checked = false WHERE id = {key} AND dup IS NULL"),
        _ => format!("DELETE FROM pages WHERE id = {key} AND NOT checked"),
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
            // Deadlocks, and editors who mark a row with itself or with a deleted row.
            Some(state)
                if [
                    SqlState::T_R_DEADLOCK_DETECTED,
                    SqlState::CHECK_VIOLATION,
                    SqlState::FOREIGN_KEY_VIOLATION,
                ]
                .contains(&state) =>
            {
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
        &format!("SELECT count(*) FROM pages a, pages b WHERE {condition}"),
    )
}

#[test]
fn marks_by_hand_last_under_many_clients() -> Outcome {
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
    // Every mark names an original. Other marks than those by hand are within the radius.
    let all: i64 = value(&mut admin, "SELECT count(dup) FROM pages")?;
    assert!(all > 0, "nothing is marked");
    let marks = "a.dup = b.id AND b.dup IS NULL";
    assert_eq!(count(&mut admin, marks)?, all);
    let far = format!("{marks} AND a.fp <#> b.fp > 6");
    assert_eq!(count(&mut admin, &format!("{far} AND NOT a.checked"))?, 0);
    assert!(count(&mut admin, &far)? > 0, "no mark by hand is left");
    // Editors may make two near originals.
    let near = "a.id < b.id AND a.fp <#> b.fp <= 6 AND a.dup IS NULL AND b.dup IS NULL";
    let by_hand = |row: &str| {
        format!(
            "({row}.checked OR EXISTS (SELECT FROM pages c WHERE c.checked AND c.dup = {row}.id))"
        )
    };
    let (a, b) = (by_hand("a"), by_hand("b"));
    assert_eq!(
        count(&mut admin, &format!("{near} AND NOT {a} AND NOT {b}"))?,
        0
    );
    assert!(count(&mut admin, near)? > 0, "no original by hand is left");
    Ok(())
}
