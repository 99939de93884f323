//! Statements over long texts, cancelled at any moment.
use crate::support::clients::code;
use crate::support::table::value;
use crate::support::waiting::{moment, wait_until};
use anyhow::{bail, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;
use std::time::{Duration, Instant};

type Outcome = anyhow::Result<()>;

/// Each takes about a second.
const LONG: &[&str] = &[
    "SELECT minhash(t, shingle => 1, hashes => 1024, scheme => 'datasketch1') FROM words",
    "SELECT neardup_explain(t, t || 'x', top => 3) FROM word",
    "SELECT neardup_explain(t, t || 'x', 'char', 50) FROM word",
    "SELECT neardup_explain(t, t || 'x') FROM words",
    "SELECT neardup_explain(t, t || 'x', 'char', 9, top => 99999, function => 'minhash') FROM word",
    "SELECT count(*) FROM words, left(t, 2000000) l, neardup_diff(l, reverse(l))",
    "SELECT neardup_diff_html(l, reverse(l), 3) FROM words, left(t, 2000000) l",
    "SELECT count(hash) FROM words, neardup_segments(replace(t, ' ', E'\\n'), 'line')",
    "SELECT length(neardup_cut_segments(t, '{1}', 'sentence')) FROM words",
    "SELECT neardup_common_features(t || n, 0.5, 'word', 2) FROM words, generate_series(1, 3) n",
    "SELECT count(*) FROM words, shared_passages(t, t || ' x', 2)",
    "SELECT count(*) FROM word, shared_passages(t, t, 2, 'char')",
];

/// The same functions on short texts, with all state that a cancelled call may leave half-done.
const SHORT: &str = "SELECT concat(simhash(t), simhash128(t), minhash64(t), minhash128(t), \
        minhash(t, hashes => 1024, scheme => 'datasketch1'), simhash(t, 'char', 50), \
        neardup_explain(t, t || ' x'), neardup_explain(t, t || ' x', 'char', 50), \
        neardup_diff_html(t, t || ' x'), (SELECT max(hash) FROM neardup_segments(t)), \
        neardup_text_length(t), minhash64_without(t, (SELECT neardup_common_features(v, 0.6) \
            FROM (VALUES ('1 2 3'), ('4 5 6')) v (v))), passages(t), \
        (SELECT sum(b_start) FROM shared_passages(t, 'x' || t))) \
    FROM (SELECT string_agg(md5(n::text), ' ') AS t FROM generate_series(1, 99) n) AS text";

/// Time after which a statement counts as hanging, on any machine.
const HANGS: Duration = Duration::from_secs(120);
/// Milliseconds from the start of a statement to its end.
const MOMENTS: [u64; 5] = [1, 5, 20, 60, 150];

fn database() -> anyhow::Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE words AS SELECT string_agg(n::text, ' ') AS t FROM generate_series(1, \
            1000000) n;
         CREATE TABLE word AS SELECT repeat('éж', 5000000) AS t",
    )?;
    Ok((database, client))
}

/// Checks that a failed statement has error 57014. Returns whether it failed: on a fast machine it
/// may finish first.
fn was_ended(result: &Result<(), postgres::Error>, about: &str) -> anyhow::Result<bool> {
    let code = code(result);
    ensure!(
        code.is_none() || code == Some(SqlState::QUERY_CANCELED),
        "{about}: {code:?}"
    );
    Ok(code.is_some())
}

#[test]
fn timeouts_end_long_statements() -> Outcome {
    let (_database, mut client) = database()?;
    let short: String = value(&mut client, SHORT)?;
    for statement in LONG {
        let mut ended = 0;
        for milliseconds in MOMENTS {
            let about = format!("{statement} after {milliseconds} ms");
            client.batch_execute(&format!("SET statement_timeout = '{milliseconds}ms'"))?;
            let start = Instant::now();
            let result = client.batch_execute(statement);
            ensure!(start.elapsed() < HANGS, "{about}");
            // A timeout that fires while the statement ends cancels the next one.
            let reset = "SET statement_timeout = 0";
            (client.batch_execute(reset)).or_else(|_| client.batch_execute(reset))?;
            ended += u32::from(was_ended(&result, &about)?);
            ensure!(value::<String>(&mut client, SHORT)? == short, "{about}");
        }
        ensure!(ended > 0, "nothing ends {statement}");
    }
    Ok(())
}

#[test]
fn cancels_end_long_statements() -> Outcome {
    let (database, mut client) = database()?;
    let mut other = database.connect()?;
    let short: String = value(&mut client, SHORT)?;
    let backend: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
    for (n, statement) in LONG.iter().enumerate() {
        let mut ended = 0;
        for milliseconds in MOMENTS {
            let about = format!("{statement} after {milliseconds} ms");
            // True once the statement has begun, even if it has finished.
            let begun = format!(
                "SELECT query LIKE '%-- {n} {milliseconds}' FROM pg_stat_activity \
                 WHERE pid = {backend}"
            );
            let result = std::thread::scope(|scope| -> anyhow::Result<_> {
                let canceller = scope.spawn(|| -> Outcome {
                    wait_until(&mut other, &begun)?;
                    moment(milliseconds);
                    other.execute("SELECT pg_cancel_backend($1)", &[&backend])?;
                    Ok(())
                });
                let start = Instant::now();
                let result = client.batch_execute(&format!("{statement} -- {n} {milliseconds}"));
                let elapsed = start.elapsed();
                match canceller.join() {
                    Ok(cancelled) => cancelled?,
                    Err(_) => bail!("the canceller panicked"),
                }
                ensure!(elapsed < HANGS, "{about}");
                Ok(result)
            })?;
            ended += u32::from(was_ended(&result, &about)?);
            if result.is_ok() {
                // A signal that arrives late cancels at most this statement.
                client.batch_execute("SELECT 1").ok();
            }
            ensure!(value::<String>(&mut client, SHORT)? == short, "{about}");
        }
        ensure!(ended > 0, "nothing ends {statement}");
    }
    Ok(())
}
