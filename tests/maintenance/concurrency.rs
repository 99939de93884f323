//! Many clients at once on one index.
use crate::support::Outcome;
use crate::support::fixtures::{self, DOCS, SCOPED, WIDE};
use crate::support::table::{FINGERPRINT, Table};
use crate::support::workload::{self, Job, Work};
use neardup_tests::Database;

/// Statements of each client.
const STATEMENTS: u32 = 5;

#[test]
fn clients_that_insert_change_search_vacuum_and_build_agree() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let fixtures = [&DOCS, &WIDE, &SCOPED];
    fixtures::prepare(&mut client, &fixtures, 5_000)?;
    let jobs = [
        Job(Work::Insert, &DOCS),
        Job(Work::Insert, &DOCS),
        Job(Work::Fill, &DOCS),
        Job(Work::Change, &DOCS),
        Job(Work::Vacuum, &DOCS),
        Job(Work::Search, &DOCS),
        Job(Work::Search, &DOCS),
        Job(Work::Build, &DOCS),
        Job(Work::Insert, &WIDE),
        Job(Work::Vacuum, &WIDE),
        Job(Work::Search, &WIDE),
        Job(Work::Insert, &SCOPED),
        Job(Work::Vacuum, &SCOPED),
        Job(Work::Search, &SCOPED),
    ];
    workload::run(database.conninfo(), &jobs, 1, false, |clients| {
        workload::until_each_has_done(clients, STATEMENTS)
    })?;
    fixtures::hold(&mut client, &fixtures, 2)?;
    for fixture in fixtures {
        client.batch_execute(&format!("VACUUM (INDEX_CLEANUP ON) {}", fixture.table))?;
    }
    fixtures::hold(&mut client, &fixtures, 3)?;
    Ok(())
}

#[test]
fn many_inserters_of_equal_values_lose_none() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &[Some(1); 100], "")?;
    const CLIENTS: i64 = 6;
    const BATCHES: i64 = 40;
    std::thread::scope(|scope| -> Outcome {
        let inserters: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| -> Outcome {
                    let mut client = database.connect()?;
                    for _ in 0..BATCHES {
                        client.batch_execute(
                            "INSERT INTO docs SELECT n, 1::bigint::fingerprint \
                             FROM generate_series(1, 50) AS n",
                        )?;
                    }
                    Ok(())
                })
            })
            .collect();
        for inserter in inserters {
            inserter
                .join()
                .map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(())
    })?;
    let equal = crate::support::data::Probe {
        center: 1,
        radius: 0,
    };
    let rows = table.agree(&mut client, &[equal])?;
    assert_eq!(rows as i64, 100 + CLIENTS * BATCHES * 50);
    table.is_sound(&mut client)
}
