//! A crowd: clients that insert, change, search, vacuum and build at once.
use super::data::{RADII, Random, probes};
use super::table::{FINGERPRINT, Table, value};
use anyhow::{Context, Result, bail};
use neardup_tests::connect;
use postgres::{Client, Error, IsolationLevel, Transaction};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The table that crowds work on; clusters of near values, single values, and NULLs.
const SCHEMA: &str = "CREATE SEQUENCE ids; CREATE TABLE docs (id bigint, fp fingerprint); \
    CREATE FUNCTION fp_of(n bigint) RETURNS fingerprint IMMUTABLE RETURN \
        CASE WHEN n % 20 > 0 THEN (hashint8extended(CASE n % 3 WHEN 0 THEN n ELSE n % 25 END, 5) \
            # (1::bigint << (n % 64)::int))::fingerprint END; \
    CREATE INDEX docs_fp ON docs USING neardup (fp);";

/// The crowd's table.
pub const TABLE: Table = Table::new(FINGERPRINT);

/// Makes the table with `rows` rows in it.
pub fn prepare(client: &mut Client, rows: u32) -> Result<()> {
    client.batch_execute(SCHEMA)?;
    client.batch_execute(&insert(rows))?;
    Ok(())
}

fn insert(rows: u32) -> String {
    format!(
        "INSERT INTO docs SELECT id, fp_of(id) \
         FROM (SELECT nextval('ids') AS id FROM generate_series(1, {rows})) AS new"
    )
}

/// What a client does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Inserts 1 to 100 rows in a transaction, some of which are rolled back.
    Insert,
    /// Deletes or updates some rows.
    Change,
    Vacuum,
    /// Builds a second index and drops it.
    Build,
    /// Asserts that the index answers as the sequential scan does, in one snapshot.
    Search,
}

impl Work {
    fn once(self, client: &mut Client, random: &mut Random) -> Result<()> {
        let statement = match self {
            Work::Insert => {
                let end = random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]);
                let rows = random.pick(&[1, 1, 10, 100]);
                format!("BEGIN; {}; {end}", insert(rows))
            }
            Work::Change => match random.below(3) {
                0 => format!("DELETE FROM docs WHERE id % 40 = {}", random.below(40)),
                1 => format!(
                    "UPDATE docs SET id = id WHERE id % 50 = {}",
                    random.below(50)
                ),
                _ => format!(
                    "UPDATE docs SET fp = (fp::bigint # {})::fingerprint WHERE id % 60 = {}",
                    1u64 << random.below(63),
                    random.below(60)
                ),
            },
            Work::Vacuum if random.below(4) == 0 => "CHECKPOINT".to_owned(),
            Work::Vacuum => "VACUUM (INDEX_CLEANUP ON) docs".to_owned(),
            Work::Build if random.below(2) == 0 => "DROP INDEX IF EXISTS docs_other".to_owned(),
            Work::Build => "CREATE INDEX IF NOT EXISTS docs_other ON docs USING neardup (fp) \
                            WITH (distance = 2, blocks = 5)"
                .to_owned(),
            Work::Search => return search(client, random.bits()),
        };
        Ok(client.batch_execute(&statement)?)
    }
}

/// Two probes around values of the table, in one snapshot.
pub fn search(client: &mut Client, seed: u64) -> Result<()> {
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()?;
    let near: i64 = transaction
        .query_one(
            "SELECT coalesce(fp_of($1)::bigint, 0)",
            &[&((seed % 5_000) as i64)],
        )?
        .get(0);
    let radius = RADII[(seed % RADII.len() as u64) as usize];
    let probes = probes(&[Some(near as u64)], &[radius, 3], seed);
    // Either index may be taken.
    Table {
        index: "docs_",
        ..TABLE
    }
    .agree(&mut transaction, &probes)?;
    transaction.commit()?;
    Ok(())
}

/// Asserts that each of the crowd's indexes holds.
pub fn holds(client: &mut Client, seed: u64) -> Result<()> {
    each_index(client, |table, transaction| table.holds(transaction, seed))
}

/// Asserts that each of the crowd's indexes answers right, whatever dead entries it has.
pub fn answers(client: &mut Client, seed: u64) -> Result<()> {
    each_index(client, |table, transaction| {
        table.answers(transaction, &RADII, seed)
    })
}

fn each_index(
    client: &mut Client,
    test: impl Fn(Table, &mut Transaction) -> Result<()>,
) -> Result<()> {
    const OTHER: Table = Table {
        index: "docs_other",
        ..TABLE
    };
    for (table, hidden) in [(TABLE, OTHER), (OTHER, TABLE)] {
        let mut transaction = client.transaction()?;
        let query = format!("SELECT to_regclass('{}') IS NOT NULL", table.index);
        if value(&mut transaction, &query)? {
            // Out of the planner's sight until the transaction is rolled back.
            transaction.batch_execute(&format!("DROP INDEX IF EXISTS {}", hidden.index))?;
            test(table, &mut transaction)?;
        }
    }
    Ok(())
}

/// Lets clients work until `pause` returns, one for each entry of `works`.
///
/// # Errors
/// The first error of a client, and an error if one of them got nothing done. Where `may_end`,
/// clients may lose their connection.
pub fn work(
    conninfo: &str,
    works: &[Work],
    seed: u64,
    may_end: bool,
    pause: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let done = AtomicBool::new(false);
    let run = |work: Work, seed: u64| -> Result<u32> {
        let mut client = connect(conninfo)?;
        let mut random = Random::new(seed);
        let mut rounds = 0;
        while !done.load(Ordering::Relaxed) {
            match work.once(&mut client, &mut random) {
                Err(error) if may_end && is_cut_off(&error) => break,
                result => result.with_context(|| format!("{work:?}, round {rounds}"))?,
            }
            rounds += 1;
        }
        Ok(rounds)
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (seed * 1_000..)
            .zip(works)
            .map(|(seed, &work)| scope.spawn(move || (work, run(work, seed))))
            .collect();
        let paused = pause();
        done.store(true, Ordering::Relaxed);
        for client in clients {
            let Ok((work, rounds)) = client.join() else {
                bail!("a client panicked");
            };
            if rounds? == 0 && !may_end {
                bail!("{work:?} got nothing done");
            }
        }
        paused
    })
}

/// Whether the connection ended under the client, as a killed server's does.
fn is_cut_off(error: &anyhow::Error) -> bool {
    let error = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>());
    error.is_some_and(|error| error.is_closed() || error.code().is_none())
}

/// A pause of so many milliseconds.
pub fn wait(milliseconds: u64) -> Result<()> {
    std::thread::sleep(Duration::from_millis(milliseconds));
    Ok(())
}
