//! Concurrent sessions that load the same texts: the methods of docs/dedup.md that avoid deadlocks
//! or retry after them.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use anyhow::{Result, bail};
use neardup_tests::{Database, connect};
use postgres::error::SqlState;
use postgres::{Client, Error};
use std::io::Write;

/// Concurrent sessions.
const SESSIONS: u64 = 4;
/// Texts that each session loads.
const TEXTS: u64 = 300;
/// Rows of a batch.
const BATCH: usize = 30;

const SCHEMA: &str = "CREATE TABLE docs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
        body text, fp fingerprint); \
    CREATE INDEX ON docs USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON docs FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'body', 'function=minhash64', 'radius=6');";

/// Unrelated texts.
fn texts() -> Vec<String> {
    let text = |n| {
        let words = (0..30).map(|word| format!("t{n}w{word}"));
        words.collect::<Vec<_>>().join(" ")
    };
    (0..TEXTS).map(text).collect()
}

/// Returns the texts in a different order for each session.
fn shuffled(seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut texts = texts();
    for i in (1..texts.len()).rev() {
        texts.swap(i, random.below(i as u64 + 1) as usize);
    }
    texts
}

fn copy(client: &mut Client, texts: &[String]) -> Result<(), Error> {
    let mut writer = client.copy_in("COPY docs (body) FROM stdin")?;
    for text in texts {
        // `finish` returns an error of the server.
        writeln!(writer, "{text}").ok();
    }
    writer.finish().map(drop)
}

/// Runs the sessions, and returns the number of deadlock victims. Afterwards the table must
/// contain each text once.
fn load(session: impl Fn(&mut Client, u64) -> Result<u32> + Sync) -> Result<u32> {
    let database = Database::create()?;
    let mut admin = database.connect()?;
    admin.batch_execute(SCHEMA)?;
    let session = &session;
    let mut deadlocks = 0;
    std::thread::scope(|scope| -> Result<()> {
        let sessions: Vec<_> = (1..=SESSIONS)
            .map(|seed| {
                let conninfo = database.conninfo();
                scope.spawn(move || -> Result<u32> {
                    let mut client = connect(conninfo)?;
                    client.batch_execute("SET deadlock_timeout = '20ms'")?;
                    session(&mut client, seed)
                })
            })
            .collect();
        for session in sessions {
            match session.join() {
                Ok(victim) => deadlocks += victim?,
                Err(_) => bail!("a session panicked"),
            }
        }
        Ok(())
    })?;
    let rows: i64 = value(&mut admin, "SELECT count(*) FROM docs")?;
    assert_eq!(rows, TEXTS as i64);
    let texts: i64 = value(&mut admin, "SELECT count(DISTINCT body) FROM docs")?;
    assert_eq!(texts, rows);
    Ok(deadlocks)
}

/// Returns whether a load was the victim of a deadlock. Any other error is returned.
fn is_victim(result: Result<(), Error>) -> Result<bool> {
    match code(&result) {
        Some(state) if state == SqlState::T_R_DEADLOCK_DETECTED => Ok(true),
        _ => Ok(result.map(|()| false)?),
    }
}

/// Repeats a load until it succeeds. Returns the number of deadlocks before.
fn repeated(client: &mut Client, texts: &[String]) -> Result<u32> {
    let mut victim = 0;
    while is_victim(copy(client, texts))? {
        victim += 1;
    }
    Ok(victim)
}

#[test]
fn batches_that_are_repeated_lose_nothing() -> Outcome {
    load(|client, seed| {
        let texts = shuffled(seed);
        (texts.chunks(BATCH)).try_fold(0, |sum, batch| Ok(sum + repeated(client, batch)?))
    })?;
    Ok(())
}

#[test]
fn whole_loads_in_the_order_of_fingerprints_wait_but_never_deadlock() -> Outcome {
    let victims = load(|client, seed| {
        client.batch_execute("CREATE TEMPORARY TABLE staged (body text)")?;
        let mut writer = client.copy_in("COPY staged FROM stdin")?;
        for text in shuffled(seed) {
            writeln!(writer, "{text}")?;
        }
        writer.finish()?;
        let insert = "INSERT INTO docs (body) SELECT body FROM staged ORDER BY minhash64(body)";
        Ok(u32::from(is_victim(client.batch_execute(insert))?))
    })?;
    assert_eq!(victims, 0);
    Ok(())
}

#[test]
fn loads_under_an_advisory_lock_never_deadlock() -> Outcome {
    let victims = load(|client, seed| {
        let texts = shuffled(seed);
        (texts.chunks(BATCH)).try_fold(0, |sum, batch| {
            client
                .batch_execute("BEGIN; SELECT pg_advisory_xact_lock('docs'::regclass::bigint)")?;
            let victim = is_victim(copy(client, batch))?;
            client.batch_execute("COMMIT")?;
            Ok(sum + u32::from(victim))
        })
    })?;
    assert_eq!(victims, 0);
    Ok(())
}
