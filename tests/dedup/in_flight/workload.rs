//! Many clients that write near-duplicates in every possible way, while indexes are built and
//! backends are terminated. Afterwards there must be neither near-duplicates nor rows in flight.
use super::cases::{CASES, Case};
use super::{LINGER, nothing_in_flight};
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::data::Random;
use crate::support::table::value;
use crate::support::waiting::{poll, wait_until};
use anyhow::{Context, Result, bail};
use neardup_tests::Database;
use postgres::error::{DbError, SqlState};
use postgres::{Client, Error};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const CLIENTS: u64 = 5;
const STEPS: usize = 30;
/// Steps of all clients between two terminations.
const STEPS_PER_DEATH: usize = 10;
/// Number of families of values. All clients write members of all families.
const FAMILIES: usize = 12;

/// Makes one step of a client.
fn step(case: &Case, families: &[u64], random: &mut Random, id: &mut u64) -> String {
    let column = case.target();
    let mut content = || {
        let away = random.below(u64::from(2 * case.far_off().min(16))) as u32;
        case.value(families[random.below(families.len() as u64) as usize], away)
    };
    let contents = [content(), content(), content()];
    let site = if case.scoped { 1 + random.below(2) } else { 1 };
    let mut row = |content: &str| {
        *id += 1;
        format!("({id}, {site}, '{content}')")
    };
    let rows = [row(&contents[0]), row(&contents[1]), row(&contents[2])];
    let [first, second, third] = &rows;
    let insert = format!("INSERT INTO t (id, site, {column}) VALUES");
    let (low, old) = (*id & !0xffff_ffff, 1 + random.below(60));
    match random.below(12) {
        0..3 => format!("{insert} {first}"),
        3 => format!("BEGIN; {insert} {first}; {insert} {second}; {insert} {third}; COMMIT"),
        4 => format!("{insert} {first}, {second}, {third}"),
        5 => format!(
            "BEGIN; SAVEPOINT s; {insert} {first}; ROLLBACK TO s; {insert} {second}; COMMIT"
        ),
        // Waits after the search, and before the row is written.
        6 => format!(
            "INSERT INTO t (id, site, {column}) VALUES ({id}, -1, '{}')",
            contents[0]
        ),
        // Another client's row may have this key, and may be deleted concurrently.
        7 => format!(
            "INSERT INTO t (id, site, {column}) VALUES ({old}, {site}, '{}') \
             ON CONFLICT (id) DO NOTHING",
            contents[0]
        ),
        8 => format!(
            "INSERT INTO t (id, site, {column}) VALUES ({old}, {site}, '{}') \
             ON CONFLICT (id) DO UPDATE SET {column} = EXCLUDED.{column}",
            contents[0]
        ),
        9 => format!(
            "UPDATE t SET {column} = '{}' WHERE id = {}",
            contents[0],
            low + old
        ),
        10 => format!("DELETE FROM t WHERE id IN ({old}, {})", low + old),
        _ => format!(
            "DO $$ BEGIN FOR n IN 1..3 LOOP BEGIN {insert} {first}; {insert} {second}; \
             RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; \
             {insert} {third}; END $$"
        ),
    }
}

/// Returns whether this test provokes an error of this kind.
fn is_expected(error: &Error) -> bool {
    let expected = [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::CHECK_VIOLATION,
        SqlState::UNIQUE_VIOLATION,
        SqlState::ADMIN_SHUTDOWN,
    ];
    // PostgreSQL looks for the indexes of ON CONFLICT again in the partition of the row, and may
    // find none or two while REINDEX CONCURRENTLY replaces one (ExecInitPartitionInfo).
    let replaced = |error: &DbError| error.message() == "invalid arbiter index list";
    // An error without a code is a lost connection.
    error.code().is_none_or(|code| expected.contains(code))
        || error.as_db_error().is_some_and(replaced)
}

fn client(
    database: &Database,
    case: &Case,
    families: &[u64],
    number: u64,
    steps: &AtomicUsize,
) -> Outcome {
    let connect = || -> Result<Client> {
        loop {
            let mut client = database.connect()?;
            let set = "SET deadlock_timeout = '10ms'; SET application_name = 'victim'";
            match client.batch_execute(set) {
                Err(error) if is_expected(&error) => continue,
                done => done?,
            }
            return Ok(client);
        }
    };
    let mut random = Random::new(number);
    let mut id = number << 32;
    let mut connection = connect()?;
    for _ in 0..STEPS {
        let statements = step(case, families, &mut random, &mut id);
        if let Err(error) = connection.batch_execute(&statements) {
            if !is_expected(&error) {
                return Err(error).context(statements);
            }
            if connection.batch_execute("ROLLBACK").is_err() {
                connection = connect()?;
            }
        }
        steps.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Builds indexes concurrently until told to stop. A build may fail in a deadlock.
fn build(database: &Database, case: &Case, stop: &AtomicBool) -> Outcome {
    let table = if case.partitioned { "t0" } else { "t" };
    let statements = [
        "REINDEX TABLE CONCURRENTLY t".to_owned(),
        format!(
            "CREATE INDEX CONCURRENTLY t_other ON {table} USING neardup {}",
            case.index()
        ),
        "DROP INDEX CONCURRENTLY IF EXISTS t_other".to_owned(),
    ];
    let mut client = database.connect()?;
    client.batch_execute("SET deadlock_timeout = '10ms'")?;
    for statement in statements.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let result = client.batch_execute(statement);
        let expected = [
            None,
            Some(SqlState::T_R_DEADLOCK_DETECTED),
            // A failed build left its index.
            Some(SqlState::DUPLICATE_TABLE),
            Some(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE),
        ];
        if !expected.contains(&code(&result)) {
            result?;
        }
    }
    Ok(())
}

/// Terminates a client after every few steps of the clients, until told to stop.
fn terminate(database: &Database, steps: &AtomicUsize, stop: &AtomicBool) -> Outcome {
    let mut client = database.connect()?;
    let mut next = STEPS_PER_DEATH;
    while !stop.load(Ordering::Relaxed) {
        poll("the clients have made some steps", || {
            Ok(stop.load(Ordering::Relaxed) || steps.load(Ordering::Relaxed) >= next)
        })?;
        client.batch_execute(
            "SELECT pg_terminate_backend((SELECT pid FROM pg_stat_activity \
             WHERE application_name = 'victim' AND datname = current_database() \
             ORDER BY random() LIMIT 1))",
        )?;
        next += STEPS_PER_DEATH;
    }
    Ok(())
}

#[test]
fn whatever_happens_to_writers_there_are_no_near_duplicates() -> Outcome {
    let database = Database::create()?;
    let mut watcher = database.connect()?;
    watcher.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    for case in &CASES {
        watcher.batch_execute(&case.schema())?;
        watcher.batch_execute(LINGER)?;
        let families = case.families(FAMILIES);
        let (steps, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| -> Outcome {
            let builder = scope.spawn(|| build(&database, case, &stop));
            let killer = scope.spawn(|| terminate(&database, &steps, &stop));
            let (families, database, steps) = (&families, &database, &steps);
            let clients: Vec<_> = (1..=CLIENTS)
                .map(|number| scope.spawn(move || client(database, case, families, number, steps)))
                .collect();
            let mut outcome = Ok(());
            for client in clients {
                outcome = outcome.and(match client.join() {
                    Ok(result) => result,
                    Err(_) => bail!("a client panicked"),
                });
            }
            stop.store(true, Ordering::Relaxed);
            for other in [builder, killer] {
                outcome = outcome.and(match other.join() {
                    Ok(result) => result,
                    Err(_) => bail!("a client panicked"),
                });
            }
            outcome
        })?;
        wait_until(
            &mut watcher,
            "SELECT count(*) = 0 FROM pg_stat_activity \
             WHERE application_name = 'victim' AND datname = current_database()",
        )?;
        let (rows, pairs): (i64, i64) = (
            value(&mut watcher, "SELECT count(*) FROM t")?,
            value(&mut watcher, &pairs(case))?,
        );
        assert_eq!(pairs, 0, "{case:?}");
        assert!(rows >= FAMILIES as i64 / 2, "{rows} rows: {case:?}");
        nothing_in_flight(&mut watcher)?;
    }
    Ok(())
}

/// Returns a query that counts pairs of near-duplicates, within partitions.
fn pairs(case: &Case) -> String {
    format!(
        "SELECT count(*) FROM t a, t b \
         WHERE a.id < b.id AND a.tableoid = b.tableoid AND {}",
        case.near
    )
}
