//! kill -9 of a whole server in the middle of its work, and recovery.
use crate::support::crowd::{self, Work};
use crate::support::data::{Random, Shape};
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::{Outcome, with};
use neardup_tests::{connect, own_server};

/// More rounds for a longer run, for which a developer sets this.
const ROUNDS: &str = "NEARDUP_TEST_CRASH_ROUNDS";

const CROWD: [Work; 7] = [
    Work::Insert,
    Work::Insert,
    Work::Insert,
    Work::Change,
    Work::Vacuum,
    Work::Search,
    Work::Build,
];

#[test]
fn after_kill_9_amid_inserts_splits_vacuums_and_builds_the_index_holds() -> Outcome {
    let rounds = std::env::var(ROUNDS)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6);
    // The files are in the system's cache when a process dies: fsync would change nothing.
    // Checkpoints come from the crowd alone, so that recovery replays most of a round.
    let settings = [
        ("fsync", "off"),
        ("max_wal_size", "4GB"),
        ("checkpoint_timeout", "1h"),
    ];
    with(own_server("crash", &settings)?, |server| {
        let conninfo = server.conninfo("postgres");
        let mut client = connect(&conninfo)?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        crowd::prepare(&mut client, 3_000)?;
        let mut random = Random::new(1);
        for round in 0..rounds {
            let pause = 200 + random.below(500);
            crowd::work(&conninfo, &CROWD, round, true, || {
                crowd::wait(pause)?;
                server.kill_9()
            })?;
            server.start()?;
            client = connect(&conninfo)?;
            crowd::answers(&mut client, round)?;
            // What died half-way is taken away, and the table stays small.
            client.batch_execute("DELETE FROM docs WHERE id % 2 = 0 AND id > 10000")?;
            client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
            crowd::holds(&mut client, round)?;
        }
        Ok(())
    })
}

#[test]
fn a_row_that_a_crash_left_in_some_tables_is_no_damage() -> Outcome {
    with(own_server("partial", &[("fsync", "off")])?, |server| {
        let conninfo = server.conninfo("postgres");
        let mut client = connect(&conninfo)?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        // 56 tables: hardly ever does the log end between two rows.
        let table = Table::new(FINGERPRINT);
        table.create_indexed(&mut client, &[], "distance = 3, blocks = 8")?;
        for round in 0..4 {
            let insert = "INSERT INTO docs SELECT n, hashint8extended(n, 1)::fingerprint \
                          FROM generate_series(1, 10000000) AS n";
            std::thread::scope(|scope| -> Outcome {
                let cut = scope.spawn(|| client.batch_execute(insert));
                crowd::wait(400)?;
                server.kill_9()?;
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
        // At commit new files are synced, or logged whole when they are small.
        for (seed, threshold) in (1..).zip(["0", "1GB"]) {
            let mut client = connect(&conninfo)?;
            client.batch_execute(&format!("SET wal_skip_threshold = '{threshold}'"))?;
            client.batch_execute("DROP TABLE IF EXISTS docs; CHECKPOINT; BEGIN")?;
            client.batch_execute("CREATE TABLE docs (id bigint, fp fingerprint)")?;
            table.append(&mut client, 0, &Shape::Balls.values(10_000, seed))?;
            client.batch_execute(&table.index_command(""))?;
            // Inserts, splits and a savepoint that is rolled back, into an index that is not logged.
            table.append(&mut client, 10_000, &Shape::Uniform.values(10_000, seed))?;
            client.batch_execute("SAVEPOINT s; REINDEX INDEX docs_fp; ROLLBACK TO s; COMMIT")?;
            // From here on changes are logged.
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
