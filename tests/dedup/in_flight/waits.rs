//! Waits between two or three sessions.
use super::cases::{BITS, BY_EVENT, CASES, SIGNATURES};
use super::nothing_in_flight;
use super::sessions::{FIXTURES, SCHEMA, blocked, process, published, session};
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::table::value;
use crate::support::waiting::wait_while_running;
use anyhow::anyhow;
use neardup_tests::Database;
use postgres::error::SqlState;

#[test]
fn a_row_that_waits_holds_up_no_unrelated_row() -> Outcome {
    let database = Database::create()?;
    let [mut holder, mut waiting, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    for client in [&mut holder, &mut waiting] {
        client.batch_execute("SET deadlock_timeout = '10ms'")?;
    }
    let backend = process(&mut waiting)?;
    for case in CASES {
        // Rows of site 2 wait.
        for fixture in FIXTURES.iter().filter(|_| !case.scoped) {
            let context = format!("{case:?}, {}", fixture.name);
            holder.batch_execute(&case.schema())?;
            holder.batch_execute(SCHEMA)?;
            holder.batch_execute(fixture.make)?;
            let waits = case
                .insert(2, &case.value(1, 0))
                .replace("(id,", "(site, id,");
            let waits = waits.replace("VALUES (", "VALUES (2, ");
            let far = case.insert(5, &case.value(1, case.far_off()));
            holder.batch_execute("BEGIN")?;
            holder.batch_execute(fixture.hold)?;
            std::thread::scope(|scope| -> Outcome {
                let waiter = scope.spawn(|| waiting.batch_execute(&waits));
                blocked(&mut watcher, backend, &waiter)?;
                // A wait for the other session would be a deadlock.
                let result = holder.batch_execute(&far);
                assert!(result.is_ok(), "{context}: {result:?}");
                holder.batch_execute("COMMIT")?;
                let result = waiter.join().map_err(|_| anyhow!("a client panicked"))?;
                match fixture.name {
                    "a unique key" => assert_eq!(code(&result), Some(SqlState::UNIQUE_VIOLATION)),
                    "a foreign key" => {
                        assert_eq!(code(&result), Some(SqlState::FOREIGN_KEY_VIOLATION));
                    }
                    _ => assert!(result.is_ok(), "{context}: {result:?}"),
                }
                Ok(())
            })?;
            nothing_in_flight(&mut watcher)?;
        }
    }
    Ok(())
}

#[test]
fn triggers_with_different_distances_see_each_others_rows() -> Outcome {
    let database = Database::create()?;
    let [mut inserting, mut updating, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    watcher.batch_execute(&BY_EVENT.schema())?;
    watcher.batch_execute(SCHEMA)?;
    watcher.batch_execute(FIXTURES[0].make)?;
    watcher.batch_execute(&BY_EVENT.insert(1, &BY_EVENT.value(2, 0)))?;
    let backend = process(&mut updating)?;
    watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
    let insert = format!(
        "INSERT INTO t (id, site, v) VALUES (2, 2, '{}')",
        BY_EVENT.value(1, 0)
    );
    let update = format!("UPDATE t SET v = '{}' WHERE id = 1", BY_EVENT.value(1, 3));
    std::thread::scope(|scope| -> Outcome {
        let insert = scope.spawn(|| inserting.batch_execute(&insert));
        published(&mut watcher, &insert)?;
        let update = scope.spawn(|| updating.batch_execute(&update));
        blocked(&mut watcher, backend, &update)?;
        watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
        for client in [insert, update] {
            client.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(())
    })?;
    let pairs = "SELECT count(*) FROM t a, t b WHERE a.id < b.id AND a.v <#> b.v <= 8";
    assert_eq!(value::<i64>(&mut watcher, pairs)?, 0);
    nothing_in_flight(&mut watcher)
}

/// The trigger for INSERT compares rows of one site, the one for UPDATE all rows. An update to a
/// value near that of a row that is being inserted at another site waits for that row.
#[test]
fn triggers_with_different_scopes_see_each_others_rows() -> Outcome {
    let database = Database::create()?;
    let [mut inserting, mut updating, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    // A signature has several slots, shared by the groups of both scopes.
    for case in [BITS, SIGNATURES] {
        let (arguments, column) = (case.arguments(), case.target());
        watcher.batch_execute(&case.schema())?;
        watcher.batch_execute(&format!(
            "DROP TRIGGER dedup ON t; CREATE INDEX t_site_v ON t USING neardup (site, v); \
             CREATE TRIGGER dedup BEFORE INSERT ON t FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup({arguments}, 'scope=site'); \
             CREATE TRIGGER dedup_too BEFORE UPDATE ON t FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup({arguments});"
        ))?;
        watcher.batch_execute(SCHEMA)?;
        watcher.batch_execute(FIXTURES[0].make)?;
        watcher.batch_execute(&case.insert(1, &case.value(2, 0)))?;
        let backend = process(&mut updating)?;
        watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
        let insert = format!(
            "INSERT INTO t (id, site, {column}) VALUES (2, 2, '{}')",
            case.value(1, 0)
        );
        let update = format!(
            "UPDATE t SET {column} = '{}' WHERE id = 1",
            case.value(1, case.near_by())
        );
        std::thread::scope(|scope| -> Outcome {
            let insert = scope.spawn(|| inserting.batch_execute(&insert));
            published(&mut watcher, &insert)?;
            let update = scope.spawn(|| updating.batch_execute(&update));
            blocked(&mut watcher, backend, &update)?;
            watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
            for client in [insert, update] {
                client.join().map_err(|_| anyhow!("a client panicked"))??;
            }
            Ok(())
        })?;
        let pairs = format!(
            "SELECT count(*) FROM t a, t b WHERE a.id < b.id AND {}",
            case.near
        );
        assert_eq!(value::<i64>(&mut watcher, &pairs)?, 0, "{case:?}");
        nothing_in_flight(&mut watcher)?;
    }
    Ok(())
}

/// An index whose expression waits for the holder of 42, for rows of site 2.
const HALFWAY: &str = "CREATE OR REPLACE FUNCTION halfway(site bigint) RETURNS bigint \
        LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN \
            IF site = 2 THEN \
                PERFORM pg_advisory_lock_shared(42); PERFORM pg_advisory_unlock_shared(42); \
            END IF; \
            RETURN site; \
        END $$; \
    CREATE INDEX t_halfway ON t (halfway(site));";

/// Other sessions may search another index than the one that receives the row first.
#[test]
fn a_row_stays_in_flight_until_it_stands_in_every_index() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut second, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    let waiting = process(&mut second)?;
    for case in CASES
        .iter()
        .filter(|case| !case.scoped && !case.partitioned)
    {
        watcher.batch_execute(&case.schema())?;
        // The trigger does not search a partial index.
        watcher.batch_execute("DROP INDEX t_v")?;
        let index = |name: &str| format!("CREATE INDEX {name} ON t USING neardup {}", case.index());
        watcher.batch_execute(&format!("{} WHERE site = 2", index("t_part")))?;
        watcher.batch_execute(HALFWAY)?;
        watcher.batch_execute(&index("t_whole"))?;
        watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
        let insert = format!(
            "INSERT INTO t (id, site, {}) VALUES (2, 2, '{}')",
            case.target(),
            case.value(1, 0)
        );
        let near = case.insert(3, &case.value(1, case.near_by()));
        std::thread::scope(|scope| -> Outcome {
            let insert = scope.spawn(|| first.batch_execute(&insert));
            published(&mut watcher, &insert)?;
            let near = scope.spawn(|| second.batch_execute(&near));
            blocked(&mut watcher, waiting, &near)?;
            watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
            for client in [insert, near] {
                client.join().map_err(|_| anyhow!("a client panicked"))??;
            }
            Ok(())
        })?;
        assert_eq!(
            value::<i64>(&mut watcher, "SELECT count(*) FROM t")?,
            1,
            "{case:?}"
        );
        nothing_in_flight(&mut watcher)?;
    }
    Ok(())
}

/// If another row gets the same key during the write of a row with ON CONFLICT, the server removes
/// this row. It writes the row again once the other row is gone, without firing the trigger again.
#[test]
fn a_row_that_is_taken_back_and_written_again_stays_in_flight() -> Outcome {
    let database = Database::create()?;
    let [mut first, mut second, mut other, mut watcher] = [
        session(&database)?,
        session(&database)?,
        session(&database)?,
        session(&database)?,
    ];
    let (writing, waiting) = (process(&mut first)?, process(&mut second)?);
    let rival = process(&mut other)?;
    watcher.batch_execute(&BITS.schema())?;
    watcher.batch_execute(HALFWAY)?;
    watcher.batch_execute("CREATE UNIQUE INDEX t_body ON t (body)")?;
    watcher.batch_execute("SELECT pg_advisory_lock(42)")?;
    let row = |id, site, body, value| {
        format!("INSERT INTO t VALUES ({id}, {site}, '{body}', '{value}') ON CONFLICT DO NOTHING")
    };
    let insert = row(2, 2, "key", BITS.value(1, 0));
    let near = row(3, 1, "other key", BITS.value(1, 3));
    std::thread::scope(|scope| -> Outcome {
        let insert = scope.spawn(|| first.batch_execute(&insert));
        blocked(&mut watcher, writing, &insert)?;
        other.batch_execute("BEGIN")?;
        other.batch_execute(&row(4, 1, "key", BITS.value(50, 0)))?;
        watcher.batch_execute("SELECT pg_advisory_unlock(42)")?;
        let taken_back = format!("SELECT {rival} = ANY (pg_blocking_pids({writing}))");
        wait_while_running(&mut watcher, &taken_back, &insert)?;
        let near = scope.spawn(|| second.batch_execute(&near));
        blocked(&mut watcher, waiting, &near)?;
        other.batch_execute("ROLLBACK")?;
        for client in [insert, near] {
            client.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(())
    })?;
    assert_eq!(
        value::<i64>(&mut watcher, "SELECT sum(id)::bigint FROM t")?,
        2
    );
    nothing_in_flight(&mut watcher)
}
