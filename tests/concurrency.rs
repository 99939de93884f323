//! Many clients at once on one index.
use crate::support::Outcome;
use crate::support::crowd::{self, TABLE, Work};
use neardup_tests::Database;

#[test]
fn clients_that_insert_change_search_vacuum_and_build_agree() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    crowd::prepare(&mut client, 5_000)?;
    let works = [
        Work::Insert,
        Work::Insert,
        Work::Insert,
        Work::Change,
        Work::Vacuum,
        Work::Search,
        Work::Search,
        Work::Build,
    ];
    crowd::work(database.conninfo(), &works, 1, false, || crowd::wait(5_000))?;
    crowd::holds(&mut client, 2)?;
    client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
    crowd::holds(&mut client, 3)
}

#[test]
fn many_inserters_of_equal_values_lose_none() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    TABLE.create_indexed(&mut client, &[Some(1); 100], "")?;
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
    let rows = TABLE.agree(&mut client, &[equal])?;
    assert_eq!(rows as i64, 100 + CLIENTS * BATCHES * 50);
    TABLE.is_sound(&mut client)
}
