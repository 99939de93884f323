//! EXCLUDE USING neardup (fp WITH ~=) refuses near-duplicates of every user at any time.
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::oracle::Way;
use crate::support::table::{BIGINT, FINGERPRINT, Table, value};
use anyhow::Result;
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;

/// Counts pairs within the radius of `~=`, by a join without an index.
fn pairs(client: &mut Client) -> Result<i64> {
    Way::Sequential.set(client)?;
    value(
        client,
        "SELECT count(*) FROM docs a JOIN docs b ON a.fp <~> b.fp <= 6 AND a.id < b.id",
    )
}

#[test]
fn a_near_duplicate_is_refused_and_what_is_far_gets_in() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for fp in [FINGERPRINT, BIGINT] {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs; CREATE TABLE docs (id bigint, fp {0}, \
             CONSTRAINT docs_fp EXCLUDE USING neardup (fp {1} WITH ~=) WITH (radius = 3)); \
             INSERT INTO docs VALUES (0, 0::bigint::{0}), (1, NULL), (2, NULL)",
            fp.name, fp.opclass
        ))?;
        let mut insert = |bits: u64| {
            let row = format!("INSERT INTO docs VALUES (3, {})", fp.literal(bits));
            match client.batch_execute(&row) {
                Ok(()) => true,
                Err(error) => {
                    assert_eq!(
                        error.code(),
                        Some(&SqlState::EXCLUSION_VIOLATION),
                        "{error:?}"
                    );
                    false
                }
            }
        };
        assert!(!insert(0) && !insert(1) && !insert(0x3f) && !insert(0x3f << 58));
        assert!(insert(0x7f));
        // This value is within 6 bits of the new one, though not of the first.
        assert!(!insert(0x1fff) && insert(u64::MAX));

        for (allowed, update) in [
            (true, "UPDATE docs SET id = id + 1"),
            (true, "UPDATE docs SET fp = fp"),
            (
                false,
                "UPDATE docs SET fp = (0::bigint)::TYPE WHERE fp IS NULL",
            ),
            (
                true,
                "DELETE FROM docs WHERE fp = (0::bigint)::TYPE; INSERT INTO docs VALUES (9, \
                    (1::bigint << 40)::TYPE)",
            ),
            (
                true,
                "BEGIN; DELETE FROM docs WHERE fp = (1::bigint << 40)::TYPE; \
                    INSERT INTO docs VALUES (10, (3::bigint << 40)::TYPE); COMMIT",
            ),
        ] {
            let result = client.batch_execute(&update.replace("TYPE", fp.name));
            assert_eq!(result.is_ok(), allowed, "{update}: {result:?}");
        }
        assert_eq!(pairs(&mut client)?, 0);
        Table::new(fp).holds(&mut client, 1)?;
    }
    Ok(())
}

#[test]
fn a_constraint_is_refused_on_a_table_with_near_duplicates() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &[Some(0), Some(0xff), Some(0xf8), None, None])?;
    let constraint = "ALTER TABLE docs ADD CONSTRAINT docs_fp EXCLUDE USING neardup (fp WITH ~=)";
    let error = client.batch_execute(constraint).unwrap_err();
    assert_eq!(
        error.code(),
        Some(&SqlState::EXCLUSION_VIOLATION),
        "{error:?}"
    );
    client.batch_execute("DELETE FROM docs WHERE id = 2")?;
    client.batch_execute(constraint)?;
    let conflict = "INSERT INTO docs VALUES (5, '0000000000000001')";
    assert!(client.batch_execute(conflict).is_err());
    // The server rejects `<@`, which is not commutative.
    let error = client
        .batch_execute("ALTER TABLE docs ADD EXCLUDE USING neardup (fp WITH <@)")
        .unwrap_err();
    assert!(error.code().is_some());
    Ok(())
}

#[test]
fn a_deferred_constraint_is_checked_at_commit() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id bigint, fp fingerprint, CONSTRAINT docs_fp \
         EXCLUDE USING neardup (fp WITH ~=) DEFERRABLE INITIALLY DEFERRED)",
    )?;
    let both = "BEGIN; INSERT INTO docs VALUES (1, '0000000000000000'), (2, '0000000000000001');";
    let error = client.batch_execute(&format!("{both} COMMIT")).unwrap_err();
    assert_eq!(
        error.code(),
        Some(&SqlState::EXCLUSION_VIOLATION),
        "{error:?}"
    );
    client.batch_execute(&format!("{both} DELETE FROM docs WHERE id = 1; COMMIT"))?;
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM docs")?, 1);
    assert_eq!(pairs(&mut client)?, 0);
    Ok(())
}

#[test]
fn concurrent_inserters_leave_no_pair() -> Outcome {
    const CLIENTS: u64 = 5;
    const ROWS: usize = 400;
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id bigint, fp fingerprint, \
         CONSTRAINT docs_fp EXCLUDE USING neardup (fp WITH ~=))",
    )?;
    // All clients insert near the same few centres at the same time.
    let insert = |seed: u64| -> Result<(u32, u32)> {
        let mut client = database.connect()?;
        client.batch_execute("SET deadlock_timeout = '20ms'")?;
        let mut random = Random::new(seed);
        let (mut inserted, mut refused) = (0, 0);
        for i in 0..ROWS {
            let center = Random::new(random.below(60)).bits();
            let fp = FINGERPRINT.literal(random.near(center, 8));
            let end = ["", "ON CONFLICT DO NOTHING"][(i + seed as usize) % 2];
            let id = seed * 1_000_000 + i as u64;
            match client.execute(&format!("INSERT INTO docs VALUES ({id}, {fp}) {end}"), &[]) {
                Ok(1) => inserted += 1,
                Ok(_) => refused += 1,
                // Each of two inserters waits for the other: the server cancels one.
                Err(error)
                    if error.code() == Some(&SqlState::EXCLUSION_VIOLATION)
                        || error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) =>
                {
                    refused += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok((inserted, refused))
    };
    let insert = &insert;
    let counts = std::thread::scope(|scope| -> Result<Vec<(u32, u32)>> {
        let inserters: Vec<_> = (1..=CLIENTS)
            .map(|seed| scope.spawn(move || insert(seed)))
            .collect();
        inserters
            .into_iter()
            .map(|inserter| {
                inserter
                    .join()
                    .map_err(|_| anyhow::anyhow!("a client panicked"))?
            })
            .collect()
    })?;
    assert_eq!(pairs(&mut client)?, 0, "near-duplicates got in");
    let inserted: i64 = counts.iter().map(|count| i64::from(count.0)).sum();
    assert_eq!(
        value::<i64>(&mut client, "SELECT count(*) FROM docs")?,
        inserted
    );
    assert!(
        inserted >= 60 && counts.iter().any(|count| count.1 > 0),
        "{counts:?}"
    );
    let table = Table::new(FINGERPRINT);
    client.batch_execute("VACUUM (INDEX_CLEANUP ON) docs")?;
    table.holds(&mut client, 2)
}
