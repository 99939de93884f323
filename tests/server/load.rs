//! Many pgbench clients with mixed statements. A search compares the index with the table in one
//! snapshot. A difference ends the client and fails the test.
use crate::support::fixtures::{self, LOGGED};
use crate::support::{Outcome, with};
use anyhow::{Context, ensure};
use neardup_tests::{client_program, connect, own_server, project_path, setting};

/// The scripts, with their weights.
const SCRIPTS: [(&str, u32); 9] = [
    ("insert", 20),
    ("rollback", 2),
    ("update", 10),
    ("delete", 5),
    ("probe", 30),
    ("count", 10),
    ("nearest", 10),
    ("apart", 20),
    ("vacuum", 4),
];

/// Transactions per client, unless `cargo xtask torture` sets a duration.
const TRANSACTIONS: u64 = 25;

#[test]
fn many_clients_with_pgbench_agree() -> Outcome {
    let seconds = setting("LOAD_SECONDS", 0)?;
    let clients = setting("CLIENTS", 8)?;
    let seed = setting("SEED", 1)?;
    let settings = [
        ("fsync", "off"),
        ("deadlock_timeout", "50ms"),
        ("autovacuum_naptime", "1s"),
        ("enable_seqscan", "off"),
        ("jit", "off"),
        ("max_connections", "200"),
    ];
    with(own_server("load", &settings)?, |server| {
        let conninfo = server.conninfo("postgres");
        let folder = project_path("tests/pgbench");
        let mut client = connect(&conninfo)?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        fixtures::prepare(&mut client, &LOGGED, 3_000)?;
        client.batch_execute(&std::fs::read_to_string(folder.join("functions.sql"))?)?;

        let mut pgbench = client_program("pgbench")?;
        pgbench.args(["--no-vacuum", "--jobs=2"]);
        pgbench.arg(format!("--client={clients}"));
        pgbench.arg(format!("--random-seed={seed}"));
        match seconds {
            0 => pgbench.arg(format!("--transactions={TRANSACTIONS}")),
            _ => pgbench.args([format!("--time={seconds}"), "--progress=30".to_owned()]),
        };
        for (script, weight) in SCRIPTS {
            let path = folder.join(format!("{script}.sql"));
            pgbench.arg(format!("--file={}@{weight}", path.display()));
        }
        let output = pgbench
            .arg(&conninfo)
            .output()
            .context("cannot run pgbench")?;
        let (report, errors) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        println!("{report}");
        ensure!(
            output.status.success() && !errors.contains("aborted"),
            "pgbench ended ({}):\n{errors}",
            output.status
        );
        fixtures::hold(&mut client, &LOGGED, seed)?;
        for fixture in LOGGED {
            client.batch_execute(&format!("VACUUM (INDEX_CLEANUP ON) {}", fixture.table))?;
        }
        fixtures::hold(&mut client, &LOGGED, seed + 1)?;
        Ok(())
    })
}
