//! `neardup_pairs` in parallel: the same pairs as in one process, errors, and termination.
//!
//! The start-up time of a worker must not decide the subject of a test. So the leader leaves all
//! work to the workers, by `parallel_leader_participation`, unless a test sets it otherwise.
use crate::support::Outcome;
use crate::support::clients::{cancel_when, code, time_out};
use crate::support::data::{Random, Shape};
use crate::support::memory::most_memory;
use crate::support::table::{BIGINT, FINGERPRINT, TYPES, Table, value};
use crate::support::waiting::wait_until;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::error::SqlState;
use postgres::{Client, GenericClient, NoTls};

/// Processes that search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crew {
    Alone,
    /// Only this many workers.
    Workers(u32),
    /// The leader and this many workers.
    Together(u32),
}

const CREWS: [Crew; 3] = [Crew::Workers(1), Crew::Workers(3), Crew::Together(2)];

/// Makes the session start workers for tables of any size.
fn set_crew(client: &mut impl GenericClient, crew: Crew) -> Result<()> {
    let (workers, leader) = match crew {
        Crew::Alone => (0, "on"),
        Crew::Workers(workers) => (workers, "off"),
        Crew::Together(workers) => (workers, "on"),
    };
    client.batch_execute(&format!(
        "SET parallel_setup_cost = 0; SET min_parallel_index_scan_size = 0; \
         SET max_parallel_workers_per_gather = {workers}; SET parallel_leader_participation = \
         {leader}; ALTER TABLE IF EXISTS docs SET (parallel_workers = 3)"
    ))?;
    Ok(())
}

/// A connection that keeps its NOTICEs.
fn with_notices(database: &Database) -> Result<(Client, std::sync::mpsc::Receiver<String>)> {
    let (sender, notices) = std::sync::mpsc::channel();
    let mut config: postgres::Config = database.conninfo().parse()?;
    config.notice_callback(move |notice| drop(sender.send(notice.message().to_owned())));
    Ok((config.connect(NoTls)?, notices))
}

type Pairs = Vec<(String, String, i32)>;

/// All pairs by their addresses, in order.
fn pairs(client: &mut impl GenericClient, call: &str) -> Result<Pairs> {
    let rows = client.query(
        &format!("SELECT a::text, b::text, distance FROM neardup_pairs({call}) ORDER BY a, b"),
        &[],
    )?;
    Ok((rows.iter())
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect())
}

/// Checks that every crew finds the same pairs as one process. Returns their number.
fn agree(client: &mut impl GenericClient, calls: &[&str], what: &str) -> Result<usize> {
    let mut all = 0;
    for call in calls {
        set_crew(client, Crew::Alone)?;
        let expected = pairs(client, call)?;
        ensure!(
            expected.windows(2).all(|two| two[0] != two[1]),
            "{what}, {call}: a pair comes twice"
        );
        for crew in CREWS {
            set_crew(client, crew)?;
            let found = pairs(client, call)?;
            ensure!(
                found == expected,
                "{what}, {call}, {crew:?}: {} pairs instead of {}",
                found.len(),
                expected.len()
            );
        }
        all += expected.len();
    }
    Ok(all)
}

/// Condition that this many workers help a backend.
fn workers_of(leader: i32, comparison: &str) -> String {
    format!("SELECT count(*) {comparison} FROM pg_stat_activity WHERE leader_pid = {leader}")
}

#[test]
fn workers_find_the_pairs_of_every_type_and_shape() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let (mut seed, mut all) = (40, 0);
    for fp in TYPES {
        let table = Table::new(fp);
        for shape in Shape::ALL {
            seed += 1;
            let rows = if shape == Shape::Equal { 150 } else { 800 };
            table.create_indexed(&mut client, &shape.values(rows, seed), "")?;
            client.batch_execute(
                "UPDATE docs SET id = id WHERE id % 5 = 0; DELETE FROM docs WHERE id % 13 = 1",
            )?;
            let calls = [
                "'docs', 0",
                "'docs', 3",
                "'docs', 9, filter => 'id % 3 > 0'",
            ];
            all += agree(&mut client, &calls, &format!("{fp:?}, {shape:?}"))?;
        }
    }
    ensure!(all > 10_000, "{all} pairs");
    Ok(())
}

/// Returns rows in chains: most are within two bits of the row before.
fn chains(rows: usize, random: &mut Random) -> Vec<Option<u64>> {
    let mut last = random.bits();
    let mut next = || {
        last = match random.below(20) {
            0 => random.bits(),
            _ => random.near(last, 2),
        };
        Some(last)
    };
    (0..rows).map(|_| next()).collect()
}

#[test]
fn workers_draw_many_parts_of_each_table() -> Outcome {
    let database = Database::create()?;
    let (mut client, notices) = with_notices(&database)?;
    let table = Table::new(FINGERPRINT);
    let mut random = Random::new(7);
    let uniform = Shape::Uniform.values(100_000, random.bits());
    for (values, what) in [
        (uniform, "uniform"),
        (chains(60_000, &mut random), "chains"),
    ] {
        table.create_indexed(&mut client, &values, "")?;
        for memory in ["64kB", "4MB"] {
            client.batch_execute(&format!(
                "SET work_mem = '{memory}'; SET neardup.progress = off"
            ))?;
            let all = agree(&mut client, &["'docs', 3", "'docs', 5"], what)?;
            ensure!(all > 1_000, "{what}: {all} pairs");
            set_crew(&mut client, Crew::Together(2))?;
            client.batch_execute("SET neardup.progress = on")?;
            let _ = notices.try_iter().count();
            pairs(&mut client, "'docs', 3")?;
            let told: Vec<String> = notices.try_iter().collect();
            let parts = told.iter().find_map(|message| {
                let (_, rest) = message.split_once("in 3 processes: 0 of ")?;
                rest.strip_suffix(" parts of permutations")?
                    .parse::<u32>()
                    .ok()
            });
            let parts = parts.with_context(|| format!("{told:?}"))?;
            ensure!(parts >= 12, "{parts} parts");
        }
    }
    Ok(())
}

#[test]
fn workers_see_what_their_leader_sees() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(BIGINT);
    table.create_indexed(&mut client, &Shape::Balls.values(1_200, 5), "")?;
    set_crew(&mut client, Crew::Alone)?;
    let calls = ["'docs_fp', 3", "'docs_fp', 6, filter => 'id % 2 = 0'"];
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let mut transaction = client.transaction()?;
        transaction.batch_execute(&format!("SET TRANSACTION ISOLATION LEVEL {isolation}"))?;
        let before = agree(&mut transaction, &calls, isolation)?;
        // Rows of this transaction: some are deleted again, and some are rolled back.
        transaction.batch_execute(
            "INSERT INTO docs SELECT id + 10000, fp # 1 FROM docs WHERE id % 3 = 0; \
             DELETE FROM docs WHERE id % 7 = 1; UPDATE docs SET fp = fp # 6 WHERE id % 11 = 2; \
             UPDATE docs SET id = id + 1 WHERE id % 11 = 3; \
             SAVEPOINT inner_one; DELETE FROM docs WHERE id % 5 = 1",
        )?;
        let without = agree(&mut transaction, &calls, isolation)?;
        transaction.batch_execute("ROLLBACK TO inner_one")?;
        let with = agree(&mut transaction, &calls, isolation)?;
        ensure!(
            before != without && without < with,
            "{before} {without} {with}"
        );
        // Uses a table that is not visible to others yet.
        transaction.batch_execute(
            "CREATE TABLE fresh WITH (parallel_workers = 3) AS SELECT * FROM docs; \
             CREATE INDEX fresh_fp ON fresh USING neardup (fp bigint_hamming_ops)",
        )?;
        ensure!(agree(&mut transaction, &["'fresh', 3"], isolation)? > 100);
        // The transaction may write again.
        transaction.batch_execute("UPDATE docs SET id = id WHERE id % 100 = 0")?;
        transaction.rollback()?;
    }
    // An older snapshot still sees rows that others have deleted since.
    let mut other = database.connect()?;
    let mut transaction = (client.build_transaction())
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .start()?;
    let before = pairs(&mut transaction, calls[0])?;
    for statement in [
        "DELETE FROM docs WHERE id % 2 = 0",
        "VACUUM docs",
        "UPDATE docs SET fp = ~fp WHERE id % 3 = 0",
    ] {
        other.batch_execute(statement)?;
    }
    agree(&mut transaction, &calls, "older snapshot")?;
    ensure!(pairs(&mut transaction, calls[0])? == before);
    Ok(())
}

#[test]
fn workers_compare_scopes() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (columns, what) in [
        ("site, fp", "numbers whose hashes agree"),
        ("name, fp", "texts"),
        ("(id % 4), site, fp", "an expression in front"),
    ] {
        // Sites 1 and 4294967296 have the same hash.
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs; \
             CREATE TABLE docs AS SELECT n AS id, CASE n % 5 WHEN 0 THEN 1 WHEN 1 THEN 4294967296 \
                WHEN 2 THEN NULL ELSE n % 7 END::bigint AS site, 'site ' || n % 9 AS name, \
                (hashint8extended(n % 60, 1) # (1::bigint << (n % 40)::int))::fingerprint AS fp \
                FROM generate_series(1, 4000) n; \
             CREATE INDEX docs_fp ON docs USING neardup ({columns}); \
             DELETE FROM docs WHERE id % 17 = 0"
        ))?;
        let calls = ["'docs_fp', 3", "'docs_fp', 3, filter => 'id > 1000'"];
        let all = agree(&mut client, &calls, what)?;
        ensure!(all > 1_000, "{what}: {all} pairs");
    }
    Ok(())
}

#[test]
fn functions_over_pairs_have_workers_too() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(2_000, 9), "")?;
    client.batch_execute("ALTER TABLE docs ADD PRIMARY KEY (id)")?;
    let mut answers = Vec::new();
    for crew in [Crew::Alone, Crew::Workers(2)] {
        set_crew(&mut client, crew)?;
        let answer: Vec<String> = [
            "SELECT string_agg(h::text, ' ') FROM neardup_distance_histogram('docs', 8) h",
            "SELECT md5(string_agg(p::text, ' ' ORDER BY p)) \
             FROM neardup_pairs_by_key(NULL::bigint, 'docs', 3) p",
            "SELECT count(*)::text FROM neardup_pairs(NULL, 3)",
        ]
        .into_iter()
        .map(|query| value(&mut client, query))
        .collect::<Result<_>>()?;
        answers.push(answer);
    }
    ensure!(answers[0] == answers[1], "{answers:?}");
    // The caller of the pairs may write.
    client.batch_execute(
        "CREATE TABLE found AS SELECT * FROM neardup_pairs('docs', 3); \
         INSERT INTO found SELECT * FROM neardup_pairs('docs', 3); \
         DO $$ DECLARE pair record; BEGIN
            FOR pair IN SELECT * FROM neardup_pairs('docs', 3) LOOP
                INSERT INTO found VALUES (pair.a, pair.b, pair.distance);
            END LOOP; END $$",
    )?;
    let triples: bool = value(
        &mut client,
        "SELECT count(*) = 3 * (SELECT count(*) FROM neardup_pairs('docs', 3)) FROM found",
    )?;
    ensure!(triples);
    Ok(())
}

/// Makes a table whose scope expression reports its process; `test.leader` is the leader's id.
fn with_telling_scope(client: &mut Client, scope: &str) -> Result<i32> {
    let leader: i32 = value(client, "SELECT pg_backend_pid()")?;
    client.batch_execute(&format!(
        "SET max_parallel_maintenance_workers = 0; SET test.leader = {leader}; \
         CREATE FUNCTION in_leader() RETURNS boolean STABLE PARALLEL SAFE LANGUAGE sql
            RETURN current_setting('test.leader', true) = pg_backend_pid()::text;
         CREATE FUNCTION not_by_workers(id bigint) RETURNS boolean IMMUTABLE PARALLEL SAFE
            LANGUAGE plpgsql AS $$
            BEGIN
                IF NOT in_leader() THEN
                    RAISE 'not by a worker' USING ERRCODE = 'data_corrupted';
                END IF;
                RETURN true;
            END $$ SET search_path FROM CURRENT;
         CREATE FUNCTION only_in_leader(id bigint) RETURNS boolean IMMUTABLE PARALLEL RESTRICTED
            LANGUAGE plpgsql AS 'BEGIN RETURN not_by_workers(id); END'
            SET search_path FROM CURRENT;
         CREATE FUNCTION slowly(id bigint) RETURNS boolean IMMUTABLE PARALLEL SAFE
            LANGUAGE plpgsql AS $$
            BEGIN
                IF current_setting('test.slow', true) = 'on' THEN
                    PERFORM pg_catalog.pg_sleep(0.01);
                END IF;
                RETURN true;
            END $$ SET search_path FROM CURRENT;
         CREATE TABLE docs AS SELECT n AS id,
            hashint8extended(n / 2, 1) # (n % 2 << (n % 62)::int) AS fp
            FROM generate_series(1::bigint, 40000) n; \
         CREATE INDEX docs_fp ON docs USING neardup (({scope}(id)), fp bigint_hamming_ops)"
    ))?;
    set_crew(client, Crew::Workers(2))?;
    Ok(leader)
}

/// All rows but two are near one other row, so that each part of each permutation has work.
const COUNT: &str = "SELECT count(*) FROM neardup_pairs('docs_fp', 1)";

#[test]
fn the_error_of_a_worker_is_the_error_of_the_call() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let leader = with_telling_scope(&mut client, "not_by_workers")?;
    let error = client.query(COUNT, &[]).unwrap_err();
    let error = error.as_db_error().context("an error of the server's")?;
    assert_eq!(
        (error.code(), error.message()),
        (&SqlState::DATA_CORRUPTED, "not by a worker")
    );
    // The session continues with and without workers, and so does a transaction after the error.
    set_crew(&mut client, Crew::Alone)?;
    let expected: i64 = value(&mut client, COUNT)?;
    set_crew(&mut client, Crew::Workers(2))?;
    client.batch_execute(&format!(
        "DO $$ BEGIN
            PERFORM * FROM ({COUNT}) AS pairs;
            RAISE 'no error';
         EXCEPTION WHEN data_corrupted THEN INSERT INTO docs VALUES (-1, 1 << 30); END $$"
    ))?;
    wait_until(&mut client, &workers_of(leader, "= 0"))?;
    set_crew(&mut client, Crew::Alone)?;
    ensure!(value::<i64>(&mut client, COUNT)? == expected);
    Ok(())
}

#[test]
fn a_search_with_workers_can_be_ended() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let leader = with_telling_scope(&mut client, "slowly")?;
    client.batch_execute("SET test.slow = on")?;
    for crew in [Crew::Workers(2), Crew::Together(2)] {
        set_crew(&mut client, crew)?;
        let two = workers_of(leader, "= 2");
        let result = cancel_when(&database, &mut client, &two, COUNT, "SELECT 1")?;
        assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
        wait_until(&mut client, &workers_of(leader, "= 0"))?;
    }
    let result = time_out(&mut client, COUNT, "SELECT 1")?;
    assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
    wait_until(&mut client, &workers_of(leader, "= 0"))?;
    // A worker that is terminated ends the call as well.
    let mut other = database.connect()?;
    let result = std::thread::scope(|scope| -> Result<_> {
        let call = scope.spawn(|| client.batch_execute(COUNT));
        wait_until(&mut other, &workers_of(leader, "= 2"))?;
        other.batch_execute(&format!(
            "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity \
             WHERE leader_pid = {leader}"
        ))?;
        call.join()
            .map_err(|_| anyhow::anyhow!("the client panicked"))
    })?;
    assert_eq!(code(&result), Some(SqlState::ADMIN_SHUTDOWN), "{result:?}");
    wait_until(&mut client, &workers_of(leader, "= 0"))?;
    client.batch_execute("SET test.slow = off")?;
    client.batch_execute(COUNT)?;
    Ok(())
}

#[test]
fn one_process_searches_where_workers_cannot() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    with_telling_scope(&mut client, "not_by_workers")?;
    ensure!(client.query(COUNT, &[]).is_err(), "no worker has searched");
    for (setting, query) in [
        // Workers are not allowed, or not worth their cost.
        ("SET max_parallel_workers = 0", COUNT),
        ("SET max_parallel_workers_per_gather = 0", COUNT),
        ("SET parallel_setup_cost = 1000000", COUNT),
        ("ALTER TABLE docs SET (parallel_workers = 0)", COUNT),
        (
            "ALTER TABLE docs RESET (parallel_workers); SET min_parallel_index_scan_size = '1GB'",
            COUNT,
        ),
        // The caller reads pair by pair, and may write in between.
        (
            "",
            "SELECT count(*) FROM (SELECT neardup_pairs('docs_fp', 1) OFFSET 0) AS pairs",
        ),
        // Called in parallel mode, by a function wrongly declared parallel safe.
        (
            "SELECT set_config(name, 'on', false) FROM pg_settings \
                WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
            "SELECT counted()",
        ),
        // Workers cannot read temporary tables.
        ("", "SELECT count(*) FROM neardup_pairs('own_fp', 1)"),
        // An expression of the index must not run in a worker.
        (
            "DROP INDEX docs_fp; CREATE INDEX docs_fp ON docs USING neardup \
                ((only_in_leader(id)), fp bigint_hamming_ops)",
            COUNT,
        ),
    ] {
        client.batch_execute(
            "CREATE TABLE IF NOT EXISTS plain WITH (parallel_workers = 3) AS SELECT * FROM docs; \
             CREATE INDEX IF NOT EXISTS plain_fp ON plain \
                USING neardup (fp bigint_hamming_ops); \
             CREATE OR REPLACE FUNCTION counted() RETURNS bigint PARALLEL SAFE LANGUAGE sql
                AS 'SELECT count(*) FROM neardup_pairs(''plain_fp'', 1)'; \
             CREATE TEMP TABLE IF NOT EXISTS own AS SELECT * FROM docs; \
             CREATE INDEX IF NOT EXISTS own_fp ON own USING neardup \
                ((not_by_workers(id)), fp bigint_hamming_ops); \
             ALTER TABLE own SET (parallel_workers = 3)",
        )?;
        client.batch_execute(setting)?;
        let result = value::<i64>(&mut client, query);
        let count = result.with_context(|| format!("{setting}; {query}"))?;
        ensure!(count >= 19_999, "{setting}; {query}: {count}");
        client.batch_execute(
            "RESET max_parallel_workers; SELECT set_config(name, 'off', false) FROM pg_settings \
                WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
        )?;
        set_crew(&mut client, Crew::Workers(2))?;
    }
    Ok(())
}

#[test]
fn a_filter_may_do_anything() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(1_500, 11), "")?;
    // The expression writes, which is not allowed in any process while workers run.
    client.batch_execute(
        "CREATE TABLE asked (id bigint); \
         CREATE FUNCTION is_wanted(id bigint) RETURNS boolean LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO asked VALUES (id); RETURN id % 3 > 0; END $$",
    )?;
    let calls = [
        "'docs', 3, filter => 'is_wanted(id)'",
        "'docs', 3, filter => 'id < 0'",
        "'docs', 3, filter => 'id IN (SELECT max(id) FROM asked) OR id % 2 = 0'",
    ];
    ensure!(agree(&mut client, &calls, "filters")? > 1_000);
    // Nearly all rows of a dense ball are skipped.
    client.batch_execute(
        "CREATE TABLE dense AS SELECT n AS id, '0000000000000007'::fingerprint AS fp \
            FROM generate_series(1, 60000) n; \
         CREATE INDEX ON dense USING neardup (fp); ALTER TABLE dense SET (parallel_workers = 3)",
    )?;
    for crew in CREWS {
        set_crew(&mut client, crew)?;
        let count: i64 = value(
            &mut client,
            "SELECT count(*) FROM neardup_pairs('dense', 3, filter => 'id < 3')",
        )?;
        ensure!(count == 1, "{crew:?}: {count}");
    }
    Ok(())
}

#[test]
fn a_filter_of_a_large_table_stays_with_one_process() -> Outcome {
    let database = Database::create()?;
    let (mut client, notices) = with_notices(&database)?;
    // The pages have so many lines that a bitmap of all lines of all pages exceeds 64 kB.
    client.batch_execute(
        "CREATE TABLE docs (id bigint, fp bigint, pad text); \
         ALTER TABLE docs ALTER pad SET STORAGE PLAIN; \
         INSERT INTO docs SELECT n, hashint8extended(n / 2, 1), CASE WHEN n > 300 THEN \
            repeat('x', 3900) END FROM generate_series(1, 7000) n; \
         CREATE INDEX docs_fp ON docs USING neardup (fp bigint_hamming_ops); \
         SET neardup.progress = on",
    )?;
    set_crew(&mut client, Crew::Workers(2))?;
    let mut processes = |memory: &str, call: &str| -> Result<(usize, bool)> {
        client.batch_execute(&format!("SET work_mem = '{memory}'"))?;
        let _ = notices.try_iter().count();
        let found = pairs(&mut client, call)?.len();
        let told: Vec<String> = notices.try_iter().collect();
        ensure!(!told.is_empty());
        Ok((
            found,
            told.iter().any(|message| message.contains("processes")),
        ))
    };
    ensure!(processes("64kB", "'docs', 3")? == (3_499, true));
    let filtered = "'docs', 3, filter => 'id <> 2'";
    ensure!(processes("64kB", filtered)? == (3_498, false));
    ensure!(processes("4MB", filtered)? == (3_498, true));
    Ok(())
}

#[test]
fn workers_do_not_see_more_than_the_caller_may() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(1_000, 12), "")?;
    let role = format!("reader_{}", std::process::id());
    client.batch_execute(&format!("CREATE ROLE {role}"))?;
    let outcome = (|| -> Result<()> {
        set_crew(&mut client, Crew::Workers(2))?;
        let query = "SELECT count(*) FROM neardup_pairs('docs', 3)";
        let all: i64 = value(&mut client, query)?;
        let as_role = format!("SET ROLE {role}");
        client.batch_execute(&as_role)?;
        let refused = client.query(query, &[]);
        assert_eq!(code(&refused), Some(SqlState::INSUFFICIENT_PRIVILEGE));
        client.batch_execute(&format!(
            "RESET ROLE; GRANT SELECT ON docs TO {role}; {as_role}"
        ))?;
        ensure!(value::<i64>(&mut client, query)? == all);
        client.batch_execute(&format!(
            "RESET ROLE; ALTER TABLE docs ENABLE ROW LEVEL SECURITY; {as_role}"
        ))?;
        let refused = client.query(query, &[]);
        assert_eq!(code(&refused), Some(SqlState::INSUFFICIENT_PRIVILEGE));
        Ok(())
    })();
    client.batch_execute(&format!(
        "RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}"
    ))?;
    outcome
}

#[test]
fn a_cursor_that_is_closed_early_leaves_nothing() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(&mut client, &Shape::Balls.values(3_000, 13), "")?;
    set_crew(&mut client, Crew::Together(2))?;
    let leader: i32 = value(&mut client, "SELECT pg_backend_pid()")?;
    for call in [
        "SELECT * FROM neardup_pairs('docs', 6)",
        "SELECT neardup_pairs('docs', 6)",
    ] {
        let mut transaction = client.transaction()?;
        transaction.batch_execute(&format!("DECLARE some_pairs CURSOR FOR {call}"))?;
        ensure!(transaction.query("FETCH 5 FROM some_pairs", &[])?.len() == 5);
        ensure!(value::<bool>(&mut transaction, &workers_of(leader, "= 0"))?);
        // Between two rows the caller may write, and start workers itself.
        transaction.batch_execute("UPDATE docs SET id = id WHERE id = 7")?;
        pairs(&mut transaction, "'docs', 1")?;
        ensure!(transaction.query("FETCH 5 FROM some_pairs", &[])?.len() == 5);
        transaction.batch_execute("CLOSE some_pairs")?;
        transaction.commit()?;
        let some = client.query(&format!("SELECT * FROM ({call} LIMIT 3) AS p"), &[])?;
        ensure!(some.len() == 3);
    }
    ensure!(value::<bool>(&mut client, &workers_of(leader, "= 0"))?);
    Ok(())
}

#[test]
fn pairs_wait_within_the_memory_of_the_caller() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    // Two million pairs, which take 100 MB.
    client.batch_execute(
        "CREATE TABLE docs AS SELECT n AS id, '0000000000000007'::fingerprint AS fp \
            FROM generate_series(1, 2000) n; CREATE INDEX docs_fp ON docs USING neardup (fp)",
    )?;
    client.batch_execute("SET work_mem = '1MB'")?;
    set_crew(&mut client, Crew::Workers(2))?;
    pairs(&mut client, "'docs', 0, filter => 'id < 10'")?;
    let before = most_memory(&mut client)?;
    let count: i64 = value(&mut client, "SELECT count(*) FROM neardup_pairs('docs', 0)")?;
    ensure!(count == 1_999_000, "{count} pairs");
    let more = most_memory(&mut client)?.saturating_sub(before);
    ensure!(more < 20 << 20, "{} kB more", more >> 10);
    Ok(())
}
