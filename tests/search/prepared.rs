//! Prepared transactions, as in Citus and other coordinators of two-phase commits. Until they end,
//! near-duplicates of their rows wait, also after a crash.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::table::{TYPES, Type, value};
use crate::support::with;
use anyhow::ensure;
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::Client;
use postgres::error::SqlState;

/// A trigger or constraint against near-duplicates, on the table `docs (key int, fp)`.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Constraint,
    Trigger,
}

impl Rule {
    fn statement(self, fp: Type) -> String {
        match self {
            Rule::Constraint => format!(
                "ALTER TABLE docs ADD EXCLUDE USING neardup (key WITH =, fp {} WITH ~=)",
                fp.opclass
            ),
            Rule::Trigger => format!(
                "CREATE INDEX ON docs USING neardup (fp {}); \
                 CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
                    EXECUTE FUNCTION neardup_dedup('fp', 'radius=3')",
                fp.opclass
            ),
        }
    }
}

#[test]
fn near_duplicates_of_a_prepared_row_wait_until_it_is_decided() -> Outcome {
    let server = own_server(
        "prepared",
        &[("max_prepared_transactions", "10"), ("fsync", "off")],
    )?;
    with(server, |server| {
        connect(&server.conninfo("postgres"))?.batch_execute("CREATE EXTENSION neardup")?;
        for fp in TYPES {
            for rule in [Rule::Constraint, Rule::Trigger] {
                for decision in ["ROLLBACK", "COMMIT"] {
                    decided(server, fp, rule, decision)?;
                }
            }
        }
        Ok(())
    })
}

fn decided(server: &mut Server, fp: Type, rule: Rule, decision: &str) -> Outcome {
    let what = format!("{}, {rule:?}, {decision}", fp.name);
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS docs; CREATE TABLE docs (key int, fp {}); {}",
        fp.name,
        rule.statement(fp)
    ))?;
    let (first, near, far) = (fp.literal(0xff), fp.literal(0xfe), fp.literal(u64::MAX));
    client.batch_execute(&format!(
        "BEGIN; INSERT INTO docs VALUES (1, {first}); PREPARE TRANSACTION 'in doubt'"
    ))?;
    let in_flight: i64 = value(
        &mut client,
        "SELECT count(*) FROM neardup_expert_rows_in_flight()",
    )?;
    ensure!(in_flight == 0, "{what}: {in_flight} rows are in flight");
    waits(&mut client, &near, &what)?;
    // After recovery from a crash, the server still has the transaction and its rows.
    server.kill_9()?;
    server.start()?;
    let mut client = connect(&server.conninfo("postgres"))?;
    waits(&mut client, &near, &what)?;
    client.batch_execute(&format!("INSERT INTO docs VALUES (1, {far})"))?;
    client.batch_execute(&format!("{decision} PREPARED 'in doubt'"))?;
    let inserted = client.execute(&format!("INSERT INTO docs VALUES (1, {near})"), &[]);
    match (decision, rule) {
        ("ROLLBACK", _) => ensure!(matches!(inserted, Ok(1)), "{what}: {inserted:?}"),
        (_, Rule::Trigger) => ensure!(matches!(inserted, Ok(0)), "{what}: {inserted:?}"),
        (_, Rule::Constraint) => ensure!(
            code(&inserted) == Some(SqlState::EXCLUSION_VIOLATION),
            "{what}: {inserted:?}"
        ),
    }
    let rows: i64 = value(&mut client, "SELECT count(*) FROM docs")?;
    ensure!(rows == 2, "{what}: {rows} rows");
    Ok(())
}

/// Asserts that inserting a row waits, and is not refused.
fn waits(client: &mut Client, value: &str, what: &str) -> Outcome {
    client.batch_execute("SET lock_timeout = '50ms'")?;
    let waited = client.batch_execute(&format!("INSERT INTO docs VALUES (1, {value})"));
    ensure!(
        code(&waited) == Some(SqlState::LOCK_NOT_AVAILABLE),
        "{what}: {waited:?}"
    );
    client.batch_execute("RESET lock_timeout")?;
    Ok(())
}
