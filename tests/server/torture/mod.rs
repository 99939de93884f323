//! Servers that are killed during every kind of work, again and again, and their recovery.
//!
//! The tests run a few rounds. `cargo xtask torture` runs any number, with the settings below. The
//! seed determines the work of a round, but not the moment of death.
mod death;
mod report;

use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::fixtures::{self, CROWDED, FIXTURES, Fixture};
use crate::support::table::value;
use crate::support::waiting::moment;
use crate::support::workload::{self, Job, Work};
use anyhow::{Context, Result, ensure};
use death::Death;
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server, setting};
use postgres::Client;
use postgres::error::SqlState;
use report::{Report, Round};
use std::time::Instant;

/// Rows of each table when a round begins.
const ROWS: u64 = 4_000;

/// Work of the clients in each round; the tables are random.
const WORKS: [Work; 9] = [
    Work::Insert,
    Work::Insert,
    Work::Fill,
    Work::Change,
    Work::Change,
    Work::Vacuum,
    Work::Vacuum,
    Work::Search,
    Work::Search,
];

/// Work in [`CROWDED`], where a deadlock is an error.
const CROWD: [Work; 6] = [
    Work::Single,
    Work::Single,
    Work::Single,
    Work::Single,
    Work::Search,
    Work::Vacuum,
];

/// All tables.
fn fixtures() -> Vec<&'static Fixture> {
    FIXTURES.into_iter().chain([&CROWDED]).collect()
}

#[test]
fn killed_at_random_moments_the_index_holds() -> Outcome {
    let rounds = setting("ROUNDS", 3)?;
    let seed = setting("SEED", 1)?;
    let milliseconds = setting("MILLISECONDS", 600)?;
    // The system's cache keeps the files when a process dies, so fsync would change nothing. Only
    // the workload writes checkpoints, so that recovery has something to replay.
    let settings = [
        ("fsync", "off"),
        ("max_wal_size", "4GB"),
        ("checkpoint_timeout", "1h"),
        ("autovacuum_naptime", "1s"),
        ("log_line_prefix", "%m [%p] %b "),
    ];
    let mut server = own_server(&format!("killed-{seed}"), &settings)?;
    let mut report = Report::default();
    let result = torture(&mut server, rounds, seed, milliseconds, &mut report);
    println!("{report}");
    if let Err(error) = result {
        // Stops without a checkpoint. A panic keeps the data.
        server.stop_immediately().ok();
        let home = server.home().display();
        panic!("seed {seed}: {error:?}\nthe server's data and log are left in {home}");
    }
    Ok(())
}

fn torture(
    server: &mut Server,
    rounds: u64,
    seed: u64,
    milliseconds: u64,
    report: &mut Report,
) -> Outcome {
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    fixtures::prepare(&mut client, &fixtures(), ROWS)?;
    drop(client);
    for number in 0..rounds {
        let start = Instant::now();
        let mut random = Random::new(Random::new(seed ^ (number << 32)).bits());
        let mut round = Round::new(number + 1, rounds);
        live_and_die(server, &mut random, milliseconds, &mut round)
            .and_then(|()| recovered(server, &mut random, &mut round))
            .with_context(|| round.to_string())?;
        round.took = start.elapsed();
        println!("{round}");
        report.add(&round);
    }
    Ok(())
}

/// Runs a round until the server accepts clients again.
fn live_and_die(
    server: &mut Server,
    random: &mut Random,
    milliseconds: u64,
    round: &mut Round,
) -> Outcome {
    let mut client = connect(&server.conninfo("postgres"))?;
    // Sometimes replay compares each page with the page on the server that died.
    let checking = random.pick(&["", "", "generic"]);
    client.batch_execute(&format!(
        "ALTER SYSTEM SET wal_consistency_checking = '{checking}'"
    ))?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    let threshold = old_snapshot_threshold(&mut client, random)?;
    let death = Death::new(round.number, &mut client, random)?;
    drop(client);
    let mut jobs = jobs(random);
    if threshold == "0" {
        // The server prunes at once, and reports it only for snapshots older than 5 s. Younger
        // ones may miss rows, in any table.
        jobs.retain(|job| job.0 != Work::Search);
    }
    let pause = 20 + random.below(milliseconds.max(1));
    let conninfo = server.conninfo("postgres");
    let from = workload::run(&conninfo, &jobs, random.below(1 << 32), true, |workload| {
        moment(pause);
        round.busy = workload
            .iter()
            .map(|busy| (busy.doing(), busy.job))
            .collect();
        death.befall(server, workload, random, round)
    })?;
    death::recover(server, from, random, round)
}

/// Draws `old_snapshot_threshold` for the server's next start. Returns the current one; empty on
/// versions that do not have it.
fn old_snapshot_threshold(client: &mut Client, random: &mut Random) -> Result<String> {
    let setting = "SELECT coalesce(current_setting('old_snapshot_threshold', true), '')";
    let current: String = value(client, setting)?;
    let next = random.pick(&["-1", "0", "0", "1min"]);
    if !current.is_empty() {
        client.batch_execute(&format!(
            "ALTER SYSTEM SET old_snapshot_threshold = '{next}'"
        ))?;
    }
    Ok(current)
}

fn jobs(random: &mut Random) -> Vec<Job> {
    let mut fixtures = FIXTURES;
    fixtures.rotate_left(random.below(FIXTURES.len() as u64) as usize);
    // One fixture has one client, or nearly so: VACUUM truncates an index only then.
    let (alone, others) = (fixtures[0], &fixtures[1..]);
    let mut jobs = vec![Job(Work::Drain, alone)];
    jobs.extend(WORKS.map(|work| match random.below(40) {
        0 => Job(work, alone),
        _ => Job(work, random.pick(others)),
    }));
    jobs.extend(CROWD.map(|work| Job(work, &CROWDED)));
    // One client per fixture makes the second index, so that builds do not collide.
    jobs.extend(
        others
            .iter()
            .step_by(2)
            .map(|fixture| Job(Work::Rebuild, fixture)),
    );
    jobs
}

/// Asserts the conditions that hold after a crash, before and after VACUUM.
fn recovered(server: &Server, random: &mut Random, round: &mut Round) -> Outcome {
    let client = &mut connect(&server.conninfo("postgres"))?;
    let seed = random.bits();
    let fixtures = fixtures();
    fixtures::refill(client, &fixtures, ROWS)?;
    for (index, table) in fixtures::unfinished(client)? {
        round.unfinished += 1;
        finish(client, random, &index, &table).with_context(|| index)?;
    }
    round.indexes = fixtures::hold(client, &fixtures, seed)?;
    let rows: i64 = value(
        client,
        "SELECT count(*) FROM neardup_expert_rows_in_flight()",
    )?;
    ensure!(rows == 0, "{rows} rows are in flight");
    for index in fixtures::spare(client)? {
        client.batch_execute(&format!("DROP INDEX {index}"))?;
    }
    for fixture in &fixtures {
        client.batch_execute(&fixture.insert(100))?;
        fixture.trim(client, ROWS)?;
        client.batch_execute(&format!("VACUUM (INDEX_CLEANUP ON) {}", fixture.table))?;
    }
    fixtures::check(client, &fixtures)?;
    death::no_alarm(server)
}

/// Uses a table that has a half-built index, and then drops or rebuilds the index.
fn finish(client: &mut Client, random: &mut Random, index: &str, table: &str) -> Outcome {
    let fixture = fixtures()
        .into_iter()
        .find(|fixture| fixture.table == table)
        .context("an index on an unknown table")?;
    let check = client.batch_execute(&format!("SELECT neardup_index_check('{index}', true)"));
    ensure!(
        code(&check) == Some(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE),
        "the check of an index that is not valid: {check:?}"
    );
    // An index receives inserts from a certain phase of its build on.
    client.batch_execute(&fixture.insert(200))?;
    client.batch_execute(&format!("DELETE FROM {table} WHERE id % 7 = 0"))?;
    client.batch_execute(&format!("VACUUM (INDEX_CLEANUP ON) {table}"))?;
    let end = random.pick(&["REINDEX INDEX", "REINDEX INDEX CONCURRENTLY", "DROP INDEX"]);
    client.batch_execute(&format!("{end} {index}"))?;
    // Drops the index that a concurrent command left next to this one.
    let again: Result<Vec<_>> = fixtures::unfinished(client);
    for (left, _) in again?.iter().filter(|(left, _)| left.starts_with(index)) {
        client.batch_execute(&format!("DROP INDEX {left}"))?;
    }
    Ok(())
}
