//! Nodes that die during a load and during a job. Recorded work stays, and the rest is repeated,
//! as docs/distributed.md describes.
use crate::distributed::citus::{self, Cluster};
use crate::distributed::foreign_jobs::Front;
use crate::distributed::statements::sums;
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::waiting::{moment, poll};
use crate::support::with;
use anyhow::{Result, ensure};
use neardup_pgserver::Server;
use neardup_tests::connect;
use postgres::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Ranges of rows, and parts of the keys: each is a transaction.
const STEPS: i64 = 32;
const ROWS_OF_STEP: i64 = 400;

/// A job in steps. Each step is a transaction that inserts a note.
#[derive(Clone, Copy)]
struct Job {
    /// Table of the notes, on the server that clients query.
    notes: &'static str,
    /// The work of step STEP.
    step: &'static str,
}

const LOAD: Job = Job {
    notes: "loaded",
    step: "INSERT INTO keys SELECT unnest(neardup_keys(fp, 3, 5)), id, fp FROM single \
        WHERE id / 400 = STEP",
};
const JOIN: Job = Job {
    notes: "joined",
    step: "INSERT INTO pairs SELECT a.id, b.id, a.fp <#> b.fp FROM keys a JOIN keys b USING (key) \
        WHERE a.id < b.id AND neardup_meet(key, a.fp, b.fp, 3, 5) AND key & 31 = STEP",
};
/// Servers commit one after the other, so a step first deletes the rows of an earlier attempt that
/// only one server has committed.
const LOAD_AGAIN: Job = Job {
    notes: "loaded",
    step: "DELETE FROM keys WHERE id / 400 = STEP; \
        INSERT INTO keys SELECT unnest(neardup_keys(fp, 3, 5)), id, fp FROM single \
        WHERE id / 400 = STEP",
};

impl Job {
    /// Runs the steps without a note. The last one waits until a node is dead.
    fn run(self, conninfo: &str, is_killed: &AtomicBool) -> Result<()> {
        let mut client = connect(conninfo)?;
        let Job { notes, step } = self;
        let left = format!(
            "SELECT coalesce(array_agg(step ORDER BY step), '{{}}') \
             FROM generate_series(0, {STEPS} - 1) AS step \
             WHERE step NOT IN (SELECT step FROM {notes})"
        );
        let left: Vec<i32> = value(&mut client, &left)?;
        for (i, number) in left.iter().enumerate() {
            if i + 1 == left.len() {
                poll("a node is killed", || Ok(is_killed.load(Ordering::SeqCst)))?;
            }
            let mut transaction = client.transaction()?;
            transaction.batch_execute(&step.replace("STEP", &number.to_string()))?;
            transaction.execute(&format!("INSERT INTO {notes} VALUES ($1)"), &[number])?;
            transaction.commit()?;
        }
        Ok(())
    }

    /// Runs the job, and kills and restarts each node once. Clients query the first node.
    fn run_through_deaths(
        self,
        nodes: &mut [&mut Server],
        recover: &dyn Fn(&mut Client) -> Outcome,
    ) -> Outcome {
        let mut random = Random::new(81);
        let conninfo = nodes[0].conninfo("postgres");
        for (victim, done) in [(1, STEPS / 5), (2, STEPS / 2), (0, 3 * STEPS / 4)] {
            let is_killed = Arc::new(AtomicBool::new(false));
            let worker = {
                let (conninfo, is_killed) = (conninfo.clone(), Arc::clone(&is_killed));
                thread::spawn(move || self.run(&conninfo, &is_killed))
            };
            let mut client = connect(&conninfo)?;
            let noted = format!("SELECT count(*) FROM {}", self.notes);
            poll("enough steps are done", || {
                // An error of the worker is reported below.
                Ok(worker.is_finished() || value::<i64>(&mut client, &noted)? >= done)
            })?;
            if worker.is_finished() {
                anyhow::bail!("it ended by itself: {:?}", worker.join());
            }
            moment(random.below(60));
            nodes[victim].kill_9()?;
            is_killed.store(true, Ordering::SeqCst);
            let result = worker.join().expect("no panic");
            ensure!(result.is_err(), "the job went on without node {victim}");
            if victim > 0 {
                // No query returns a part of the rows.
                let rest = connect(&conninfo)?.query("SELECT count(*) FROM keys", &[]);
                ensure!(rest.is_err(), "rows were counted without node {victim}");
            }
            nodes[victim].start()?;
            recover(&mut connect(&conninfo)?)?;
        }
        self.run(&conninfo, &AtomicBool::new(true))
    }
}

/// Makes the rows, and the tables of the notes. Returns the sums of their pairs.
fn prepare(client: &mut Client) -> Result<(i64, i64, i64, i64)> {
    client.batch_execute(&format!(
        "CREATE TABLE single AS SELECT n AS id, \
            (hashint8extended(n / 3, 1) # (n % 3))::bigint::fingerprint AS fp \
            FROM generate_series(0, {STEPS} * {ROWS_OF_STEP} - 1) AS n; \
         CREATE INDEX ON single USING neardup (fp); \
         CREATE TABLE loaded (step int PRIMARY KEY); CREATE TABLE joined (LIKE loaded)"
    ))?;
    sums(
        client,
        "SELECT a, b, distance FROM neardup_pairs_by_key(NULL::bigint, 'single', 3, key => 'id')",
    )
}

/// Asserts that each key exists once, and that all pairs are found.
fn check(client: &mut Client, expected: (i64, i64, i64, i64)) -> Outcome {
    let rows = STEPS * ROWS_OF_STEP;
    let keys: i64 = value(client, "SELECT count(*) FROM keys")?;
    ensure!(keys == 10 * rows, "{keys} keys of {rows} rows");
    let found = sums(client, "SELECT a, b, distance FROM pairs")?;
    ensure!(
        found == expected && found.0 >= rows - 3,
        "{found:?}, {expected:?}"
    );
    Ok(())
}

#[test]
fn a_node_of_citus_that_dies_in_the_middle_changes_no_result() -> Outcome {
    let Some(cluster) = Cluster::with_neardup("failures", &[])? else {
        return Ok(());
    };
    with(cluster, |cluster| {
        let mut client = cluster.connect()?;
        let expected = prepare(&mut client)?;
        citus::distributed(
            &mut client,
            "keys",
            "key bigint, id bigint, fp fingerprint",
            "key",
        )?;
        citus::distributed(
            &mut client,
            "pairs",
            "a bigint, b bigint, distance int",
            "a",
        )?;
        // Resolves transactions that were in doubt when a node died. Citus does this every minute.
        let recover = |client: &mut Client| {
            client.batch_execute("SELECT recover_prepared_transactions()")?;
            citus::holds_on_all(client, "count(*) = 0 FROM pg_prepared_xacts")
        };
        let mut nodes: Vec<&mut Server> = cluster.nodes.iter_mut().collect();
        LOAD.run_through_deaths(&mut nodes, &recover)?;
        JOIN.run_through_deaths(&mut nodes, &recover)?;
        check(&mut cluster.connect()?, expected)
    })
}

#[test]
fn a_foreign_server_that_dies_in_the_middle_changes_no_result() -> Outcome {
    let Some(front) = Front::create("failures", &[("fsync", "off")])? else {
        return Ok(());
    };
    with(front, |front| {
        let mut client = front.connect()?;
        let expected = prepare(&mut client)?;
        front.spread(
            &mut client,
            "keys",
            "key bigint, id bigint, fp fingerprint",
            "key",
        )?;
        // The front stores the pairs, like the notes.
        client.batch_execute("CREATE TABLE pairs (a bigint, b bigint, distance int)")?;
        let [first, second] = &mut front.shards[..] else {
            anyhow::bail!("two servers");
        };
        let nodes = &mut [&mut front.front, first, second];
        LOAD_AGAIN.run_through_deaths(nodes, &|_| Ok(()))?;
        JOIN.run_through_deaths(nodes, &|_| Ok(()))?;
        check(&mut front.connect()?, expected)
    })
}
