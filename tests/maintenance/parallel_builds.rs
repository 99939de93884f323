//! Indexes that several processes build together.
//!
//! The start-up time of a worker must not decide the subject of a test. So the predicate of a
//! partial index makes the leader slow (`test.leader` is its process id): the workers read nearly
//! all rows.
use crate::support::Outcome;
use crate::support::clients::{cancel_when, code};
use crate::support::oracle::until_old_enough;
use crate::support::table::value;
use crate::support::waiting::{reconnect, wait_until};
use crate::support::with;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::Client;
use postgres::error::SqlState;

const ROWS: i64 = 4_000;

/// A column of each kind, with one NULL in 16 rows, and functions that identify their process.
const SETUP: &str = "
    CREATE TABLE docs (id bigint, tenant int, fp fingerprint, number bigint, wide fingerprint128,
        widest fingerprint256, body text, signature minhash_signature)
        WITH (parallel_workers = 2);
    CREATE FUNCTION multiples(id bigint) RETURNS bigint[] IMMUTABLE PARALLEL SAFE LANGUAGE sql
        RETURN (SELECT array_agg(n * id) FROM generate_series(1,
            CASE WHEN id % 1000 = 7 THEN 10000 ELSE id % 16 END) n);
    CREATE FUNCTION in_leader() RETURNS boolean STABLE PARALLEL SAFE LANGUAGE sql
        RETURN current_setting('test.leader', true) = pg_backend_pid()::text;
    CREATE FUNCTION workers_first(id bigint) RETURNS boolean IMMUTABLE PARALLEL SAFE
        LANGUAGE plpgsql AS $$
        BEGIN
            IF in_leader() THEN PERFORM pg_catalog.pg_sleep(0.001); END IF;
            RETURN true;
        END $$ SET search_path FROM CURRENT;
    CREATE FUNCTION not_by_workers(id bigint) RETURNS boolean IMMUTABLE PARALLEL SAFE
        LANGUAGE plpgsql AS $$
        BEGIN
            IF NOT in_leader() THEN
                RAISE 'not by a worker' USING ERRCODE = 'data_corrupted';
            END IF;
            PERFORM pg_catalog.pg_sleep(0.001);
            RETURN true;
        END $$ SET search_path FROM CURRENT;
    CREATE FUNCTION slowly(id bigint) RETURNS boolean IMMUTABLE PARALLEL SAFE
        LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_catalog.pg_sleep(0.02); RETURN true; END $$";

/// Makes the table with these rows.
fn fill(client: &mut Client, rows: i64) -> Result<()> {
    client.batch_execute(SETUP)?;
    client.batch_execute(&format!(
        "INSERT INTO docs
         SELECT n, n % 7, simhash(body), simhash(body)::bigint, simhash128(body), \
            (simhash128(body)::text || simhash128(body)::text)::fingerprint256, body, \
            minhash(body, hashes => 32)
         FROM (SELECT n, CASE WHEN n % 16 > 0 THEN concat_ws(' ', n % 4001, n % 53, 'of', n % 11, \
                'rows and some more words', n % 997) END AS body \
            FROM generate_series(1, {rows}) n) AS texts"
    ))?;
    Ok(())
}

/// Makes the session build with workers, or alone.
fn set_workers(client: &mut Client, with_workers: bool) -> Result<()> {
    let (workers, leader) = match with_workers {
        true => (2, value::<i32>(client, "SELECT pg_backend_pid()")?),
        false => (0, 0),
    };
    client.batch_execute(&format!(
        "SET max_parallel_maintenance_workers = {workers}; SET test.leader = {leader}"
    ))?;
    Ok(())
}

/// Returns the pages of an index on disk, without their LSNs.
fn pages(client: &mut Client, index: &str) -> Result<Vec<u8>> {
    client.batch_execute("CHECKPOINT")?;
    let mut bytes: Vec<u8> = value(
        client,
        &format!("SELECT pg_read_binary_file(pg_relation_filepath('{index}'))"),
    )?;
    for page in bytes.chunks_mut(8192) {
        // The LSN and the checksum.
        page[..10].fill(0);
    }
    Ok(bytes)
}

/// Condition that this many workers help a backend.
fn workers_of(leader: i32, comparison: &str) -> String {
    format!("SELECT count(*) {comparison} FROM pg_stat_activity WHERE leader_pid = {leader}")
}

#[test]
fn workers_make_the_same_index() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fill(&mut client, ROWS)?;
    for (memory, definition) in [
        ("64MB", "(fp)"),
        ("1MB", "(fp) WITH (radius = 3, blocks = 6)"),
        ("64MB", "(number bigint_hamming_ops)"),
        ("64MB", "(wide)"),
        ("64MB", "(widest)"),
        ("64MB", "(tenant, fp)"),
        ("64MB", "(tenant, (id % 3), widest)"),
        ("64MB", "((ball(fp, 2)))"),
        ("64MB", "((simhash(body)))"),
        ("64MB", "(signature) WITH (hashes = 32)"),
        ("64MB", "((multiples(id)))"),
        ("1MB", "(tenant, (multiples(id)))"),
        (
            "1MB",
            "(tenant, (minhash(body, hashes => 64))) WITH (hashes = 64, bands = 20)",
        ),
    ] {
        client.batch_execute(&format!("SET maintenance_work_mem = '{memory}'"))?;
        let columns = definition
            .split_once(" WITH ")
            .map_or(definition, |it| it.0);
        let options = &definition[columns.len()..];
        let build = |name: &str| {
            format!(
                "CREATE INDEX {name} ON docs USING neardup {columns}{options} \
                 WHERE workers_first(id)"
            )
        };
        set_workers(&mut client, false)?;
        client.batch_execute(&build("serial"))?;
        set_workers(&mut client, true)?;
        client.batch_execute(&build("parallel"))?;
        ensure!(
            pages(&mut client, "serial")? == pages(&mut client, "parallel")?,
            "{definition}"
        );
        client.query("SELECT neardup_index_check('parallel', heap => true)", &[])?;
        client.batch_execute("DROP INDEX serial, parallel")?;
    }
    Ok(())
}

#[test]
fn workers_help_every_command_that_builds() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fill(&mut client, ROWS)?;
    client.batch_execute(
        "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE workers_first(id)",
    )?;
    let expected = pages(&mut client, "docs_near")?;
    set_workers(&mut client, true)?;
    for command in [
        "DROP INDEX docs_near; \
         CREATE INDEX docs_near ON docs USING neardup (fp) WHERE workers_first(id)",
        "REINDEX INDEX docs_near",
        "REINDEX TABLE docs",
    ] {
        client.batch_execute(command)?;
        ensure!(pages(&mut client, "docs_near")? == expected, "{command}");
    }
    for command in [
        "REINDEX INDEX CONCURRENTLY docs_near",
        "DROP INDEX CONCURRENTLY docs_near",
        "CREATE INDEX CONCURRENTLY docs_near ON docs USING neardup (fp) WHERE workers_first(id)",
    ] {
        client.batch_execute(command)?;
    }
    ensure!(pages(&mut client, "docs_near")? == expected, "concurrently");
    // Builds in a serializable transaction, and in a transaction that has changed the table.
    client.batch_execute(
        "BEGIN ISOLATION LEVEL SERIALIZABLE; DROP INDEX docs_near;
         UPDATE docs SET fp = (fp::bigint # 1)::fingerprint WHERE id % 3 = 0;
         DELETE FROM docs WHERE id % 3 = 1;
         CREATE INDEX docs_near ON docs USING neardup (fp) WHERE workers_first(id); COMMIT",
    )?;
    let check = "SELECT neardup_index_check('docs_near', heap => true)";
    // The table has HOT chains, and other tests may have older transactions.
    until_old_enough(&mut client, "docs_near")?;
    client.query(check, &[])?;
    // Commands that rewrite a table rebuild its indexes.
    client.batch_execute("VACUUM FULL docs")?;
    client.query(check, &[])?;
    client.batch_execute("ALTER TABLE docs SET UNLOGGED")?;
    client.query(check, &[])?;
    // The build of an exclusion constraint must find near rows.
    let error = client
        .batch_execute(
            "ALTER TABLE docs ADD CONSTRAINT docs_apart \
             EXCLUDE USING neardup (fp WITH ~=) WHERE (workers_first(id))",
        )
        .unwrap_err();
    assert_eq!(
        error.code(),
        Some(&SqlState::EXCLUSION_VIOLATION),
        "{error:?}"
    );
    client.batch_execute(
        "ALTER TABLE docs ADD CONSTRAINT docs_apart \
         EXCLUDE USING neardup (id WITH =, fp WITH ~=) WHERE (workers_first(id))",
    )?;
    client.query(
        "SELECT neardup_index_check('docs_apart', heap => true)",
        &[],
    )?;
    Ok(())
}

#[test]
fn workers_read_partitions() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fill(&mut client, ROWS)?;
    client.batch_execute(
        "CREATE TABLE parts (LIKE docs) PARTITION BY HASH (id);
         CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0)
            WITH (parallel_workers = 2);
         CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1)
            WITH (parallel_workers = 2);
         INSERT INTO parts SELECT * FROM docs",
    )?;
    set_workers(&mut client, true)?;
    client.batch_execute(
        "CREATE INDEX parts_near ON parts USING neardup (tenant, fp) WHERE workers_first(id)",
    )?;
    let checked = client.query(
        "SELECT neardup_index_check(inhrelid, heap => true) FROM pg_inherits \
         WHERE inhparent = 'parts_near'::regclass",
        &[],
    )?;
    ensure!(checked.len() == 2);
    Ok(())
}

#[test]
fn the_error_of_a_worker_is_the_error_of_the_build() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fill(&mut client, ROWS)?;
    set_workers(&mut client, true)?;
    let build = "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE not_by_workers(id)";
    let error = client.batch_execute(build).unwrap_err();
    let error = error.as_db_error().context("an error of the server's")?;
    assert_eq!(
        (error.code(), error.message()),
        (&SqlState::DATA_CORRUPTED, "not by a worker")
    );
    // Raises an error of neardup's own, in a worker or in the leader.
    client.batch_execute(
        "UPDATE docs SET signature = minhash(body, hashes => 16) WHERE id % 8 = 1",
    )?;
    let error = client
        .batch_execute(
            "CREATE INDEX docs_near ON docs USING neardup (signature) WITH (hashes = 32) \
             WHERE workers_first(id)",
        )
        .unwrap_err();
    let error = error.as_db_error().context("an error of the server's")?;
    assert_eq!(
        (error.code(), error.message()),
        (
            &SqlState::DATA_EXCEPTION,
            "signature length does not match index \"docs_near\""
        )
    );
    assert!(
        error.detail().is_some() && error.hint().is_some(),
        "{error:?}"
    );
    // The session continues without workers. A transaction of another test may keep old row
    // versions, which would make the index too young for the check.
    client.batch_execute("VACUUM FULL docs")?;
    client.batch_execute(
        "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE workers_first(id)",
    )?;
    client.query("SELECT neardup_index_check('docs_near', heap => true)", &[])?;
    let leader: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
    wait_until(&mut client, &workers_of(leader, "= 0"))
}

#[test]
fn without_workers_the_leader_builds_alone() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fill(&mut client, 2_000)?;
    set_workers(&mut client, true)?;
    client.batch_execute(
        "CREATE FUNCTION only_in_leader(id bigint) RETURNS boolean IMMUTABLE PARALLEL UNSAFE
            LANGUAGE plpgsql AS 'BEGIN RETURN not_by_workers(id); END'
            SET search_path FROM CURRENT;
         CREATE TEMP TABLE own WITH (parallel_workers = 2) AS SELECT * FROM docs",
    )?;
    for (setting, table, predicate) in [
        // No process may start a worker.
        ("SET max_parallel_workers = 0", "docs", "not_by_workers"),
        (
            "SET max_parallel_maintenance_workers = 0",
            "docs",
            "not_by_workers",
        ),
        // The predicate is not parallel safe; a worker cannot read a temporary table.
        ("", "docs", "only_in_leader"),
        ("", "own", "not_by_workers"),
    ] {
        client.batch_execute(setting)?;
        client.batch_execute(&format!(
            "CREATE INDEX alone ON {table} USING neardup (fp) WHERE {predicate}(id)"
        ))?;
        client.query("SELECT neardup_index_check('alone', heap => true)", &[])?;
        client.batch_execute("DROP INDEX alone; RESET max_parallel_workers")?;
        set_workers(&mut client, true)?;
    }
    Ok(())
}

#[test]
fn a_chain_of_updates_that_a_worker_finds_broken_is_noted() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let mut older = database.connect()?;
    fill(&mut client, ROWS)?;
    // Leaves room for new versions on the pages of the old ones.
    client.batch_execute("ALTER TABLE docs SET (fillfactor = 40)")?;
    client.batch_execute("VACUUM FULL docs")?;
    older.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM docs")?;
    // Skips the first pages, which the leader may read itself.
    client.batch_execute(
        "UPDATE docs SET fp = (fp::bigint # 1)::fingerprint WHERE id BETWEEN 2500 AND 3500",
    )?;
    set_workers(&mut client, true)?;
    client.batch_execute(
        "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE workers_first(id)",
    )?;
    ensure!(value::<bool>(
        &mut client,
        "SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'docs_near'::regclass"
    )?);
    older.batch_execute("COMMIT")?;
    until_old_enough(&mut client, "docs_near")?;
    client.query("SELECT neardup_index_check('docs_near', heap => true)", &[])?;
    Ok(())
}

#[test]
fn a_build_with_workers_can_be_cancelled() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    fill(&mut client, ROWS)?;
    set_workers(&mut client, true)?;
    let leader: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
    let result = cancel_when(
        &database,
        &mut client,
        &workers_of(leader, "= 2"),
        "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE slowly(id)",
        "DROP INDEX docs_near",
    )?;
    assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
    wait_until(&mut client, &workers_of(leader, "= 0"))?;
    ensure!(value::<bool>(
        &mut client,
        "SELECT to_regclass('docs_near') IS NULL"
    )?);
    // A worker that is terminated ends the build as well.
    let mut other = database.connect()?;
    let result = std::thread::scope(|scope| -> Result<_> {
        let build = scope.spawn(|| {
            client
                .batch_execute("CREATE INDEX docs_near ON docs USING neardup (fp) WHERE slowly(id)")
        });
        wait_until(&mut other, &workers_of(leader, "= 2"))?;
        other.batch_execute(&format!(
            "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity \
             WHERE leader_pid = {leader}"
        ))?;
        build
            .join()
            .map_err(|_| anyhow::anyhow!("the client panicked"))
    })?;
    assert_eq!(code(&result), Some(SqlState::ADMIN_SHUTDOWN), "{result:?}");
    client.batch_execute(
        "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE workers_first(id)",
    )?;
    client.query("SELECT neardup_index_check('docs_near', heap => true)", &[])?;
    Ok(())
}

#[test]
fn a_killed_worker_leaves_a_server_that_recovers() -> Outcome {
    with(
        own_server("build-workers", &[("fsync", "off")])?,
        |server| {
            let conninfo = server.conninfo("postgres");
            let mut client = connect(&conninfo)?;
            client.batch_execute("CREATE EXTENSION neardup")?;
            fill(&mut client, ROWS)?;
            set_workers(&mut client, true)?;
            let leader: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
            let mut other = connect(&conninfo)?;
            let result = std::thread::scope(|scope| -> Result<_> {
                let build = scope.spawn(|| {
                    client.batch_execute(
                        "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE slowly(id)",
                    )
                });
                wait_until(&mut other, &workers_of(leader, "= 2"))?;
                let worker: i32 = value(
                    &mut other,
                    &format!("SELECT min(pid) FROM pg_stat_activity WHERE leader_pid = {leader}"),
                )?;
                server.kill_9_child(worker)?;
                build
                    .join()
                    .map_err(|_| anyhow::anyhow!("the client panicked"))
            })?;
            ensure!(result.is_err(), "the build went on");
            let mut client = reconnect(&conninfo)?;
            ensure!(value::<bool>(
                &mut client,
                "SELECT to_regclass('docs_near') IS NULL"
            )?);
            set_workers(&mut client, true)?;
            client.batch_execute(
                "CREATE INDEX docs_near ON docs USING neardup (fp) WHERE workers_first(id)",
            )?;
            client.query("SELECT neardup_index_check('docs_near', heap => true)", &[])?;
            Ok(())
        },
    )
}
