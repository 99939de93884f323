//! Crashes in certain states, and recovery. Crashes at random moments are in `torture`.
use crate::support::data::Shape;
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::waiting::kill_while_index_grows;
use crate::support::{Outcome, with};
use neardup_tests::{connect, own_server};

#[test]
fn a_row_that_a_crash_left_in_some_permutations_is_no_damage() -> Outcome {
    with(own_server("partial", &[("fsync", "off")])?, |server| {
        let conninfo = server.conninfo("postgres");
        let mut client = connect(&conninfo)?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        // 56 permutations: hardly ever does the log end between two rows.
        let table = Table::new(FINGERPRINT);
        table.create_indexed(&mut client, &[], "radius = 3, blocks = 8")?;
        for round in 0..4 {
            let insert = "INSERT INTO docs SELECT n, hashint8extended(n, 1)::fingerprint \
                          FROM generate_series(1, 10000000) AS n";
            std::thread::scope(|scope| -> Outcome {
                let cut = scope.spawn(|| client.batch_execute(insert));
                kill_while_index_grows(server, "docs_fp", 4 << 20, &cut)?;
                let result = cut
                    .join()
                    .map_err(|_| anyhow::anyhow!("the client panicked"))?;
                assert!(result.is_err());
                Ok(())
            })?;
            server.start()?;
            client = connect(&conninfo)?;
            table.append(&mut client, 0, &Shape::Balls.values(500, round))?;
            table.holds(&mut client, round)?;
        }
        Ok(())
    })
}

#[test]
fn what_minimal_wal_does_not_log_survives_a_crash_after_commit() -> Outcome {
    let settings = [("wal_level", "minimal"), ("max_wal_senders", "0")];
    with(own_server("minimal", &settings)?, |server| {
        let conninfo = server.conninfo("postgres");
        let table = Table::new(FINGERPRINT);
        connect(&conninfo)?.batch_execute("CREATE EXTENSION neardup")?;
        // At commit the server syncs new files, or logs them whole when they are small.
        for (seed, threshold) in (1..).zip(["0", "1GB"]) {
            let mut client = connect(&conninfo)?;
            client.batch_execute(&format!("SET wal_skip_threshold = '{threshold}'"))?;
            client.batch_execute("DROP TABLE IF EXISTS docs; CHECKPOINT; BEGIN")?;
            client.batch_execute("CREATE TABLE docs (id bigint, fp fingerprint)")?;
            table.append(&mut client, 0, &Shape::Balls.values(10_000, seed))?;
            client.batch_execute(&table.index_command(""))?;
            // Inserts, splits and a savepoint that is rolled back, in an index without logging.
            table.append(&mut client, 10_000, &Shape::Uniform.values(10_000, seed))?;
            client.batch_execute("SAVEPOINT s; REINDEX INDEX docs_fp; ROLLBACK TO s; COMMIT")?;
            // Later changes are logged.
            table.append(&mut client, 20_000, &Shape::Balls.values(2_000, seed + 7))?;
            server.kill_9()?;
            server.start()?;
            let mut client = connect(&conninfo)?;
            assert_eq!(
                value::<i64>(&mut client, "SELECT count(*) FROM docs")?,
                22_000
            );
            table.holds(&mut client, seed)?;
        }
        Ok(())
    })
}
