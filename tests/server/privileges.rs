//! Code written by the owner of a table never runs with the rights of the caller, and code of the
//! caller never runs with the rights of the owner.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::roles::Role;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect};
use postgres::Client;
use postgres::error::SqlState;

/// Tables of the owner. The indexes and the casts of `traps` call `planted` in every way an index
/// can. The indexes of `rows` call it once per row. An ordinary SELECT from `traps` calls
/// `planted` too: the planner folds the constants of indexes with the caller's rights.
const TABLES: &str = "\
    CREATE FUNCTION planted(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE \
        AS 'BEGIN RETURN n; END'; \
    CREATE FUNCTION through(fp fingerprint) RETURNS fingerprint LANGUAGE plpgsql IMMUTABLE \
        PARALLEL SAFE AS 'BEGIN PERFORM owned.planted(1); RETURN fp; END'; \
    CREATE FUNCTION through(sig minhash_signature) RETURNS minhash_signature LANGUAGE plpgsql \
        IMMUTABLE PARALLEL SAFE AS 'BEGIN PERFORM owned.planted(1); RETURN sig; END'; \
    CREATE FUNCTION same(sig minhash_signature, n int) RETURNS minhash_signature \
        LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN sig; END'; \
    CREATE TABLE traps (site int, fp fingerprint, sig minhash_signature); \
    INSERT INTO traps SELECT 1, i::bigint::fingerprint, minhash(ARRAY['some', 'words']) \
        FROM generate_series(1, 4) i; \
    CREATE INDEX traps_always ON traps USING neardup (fp) WHERE planted(1) = 1; \
    CREATE INDEX traps_part ON traps USING neardup (fp) WHERE site = planted(1); \
    CREATE INDEX traps_ball ON traps USING neardup (ball(fp, planted(3))); \
    CREATE INDEX traps_scope ON traps USING neardup ((site + planted(0)), fp); \
    CREATE INDEX traps_all ON traps USING neardup ((planted(site)), (through(fp))) \
        WHERE planted(1) = 1; \
    CREATE INDEX traps_sig ON traps USING neardup (same(sig, planted(1))) WHERE planted(1) = 1; \
    CREATE TYPE mood AS ENUM ('a', 'b', 'c', 'd'); \
    CREATE TYPE other_mood AS ENUM ('a', 'b', 'c', 'd'); \
    CREATE TABLE rows (id mood PRIMARY KEY, site int, fp fingerprint, sig minhash_signature); \
    INSERT INTO rows SELECT (enum_range(NULL::mood))[i], site, fp, sig \
        FROM (SELECT row_number() OVER () AS i, * FROM traps) t; \
    CREATE INDEX rows_fp ON rows USING neardup ((planted(site)), (through(fp))); \
    CREATE INDEX rows_sig ON rows USING neardup (through(sig)); \
    CREATE FUNCTION shown(id mood) RETURNS text LANGUAGE plpgsql \
        AS 'BEGIN RETURN owned.planted(1); END'; \
    CREATE FUNCTION changed(id mood) RETURNS other_mood LANGUAGE plpgsql \
        AS 'BEGIN PERFORM owned.planted(1); RETURN enum_first(NULL::owned.other_mood); END'; \
    CREATE CAST (mood AS text) WITH FUNCTION shown(mood); \
    CREATE CAST (mood AS other_mood) WITH FUNCTION changed(mood) AS IMPLICIT;";

/// Body of `planted` that fails unless it runs as the owner, with a restricted `search_path`. It
/// may run in parallel workers.
const GUARD: &str = "BEGIN \
    IF current_user <> 'OWNER' OR current_setting('search_path') <> 'pg_catalog, pg_temp' THEN \
        RAISE EXCEPTION 'run as % with %', current_user, current_setting('search_path'); \
    END IF; \
    RETURN n; END";

/// Body of `planted` that tries to get the caller's rights, and records its successes.
const ATTACK: &str = "BEGIN PERFORM owned.attack(); RETURN n; END";

/// Each statement is refused in an operation that is restricted for security.
const ATTACK_TABLES: &str = "\
    CREATE TABLE seen (run_as name, did text); \
    CREATE TABLE later (n int); \
    CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        ALTER ROLE OWNER SUPERUSER; RETURN NULL; END $$; \
    CREATE CONSTRAINT TRIGGER later AFTER INSERT ON later DEFERRABLE INITIALLY DEFERRED \
        FOR EACH ROW EXECUTE FUNCTION later(); \
    CREATE FUNCTION attack() RETURNS void LANGUAGE plpgsql AS $$ \
    DECLARE statement text; \
    BEGIN \
        FOREACH statement IN ARRAY ARRAY['RESET ROLE', 'SET ROLE ADMIN', \
            'RESET SESSION AUTHORIZATION', 'ALTER ROLE OWNER SUPERUSER', \
            'CREATE TEMPORARY TABLE planted_table ()', 'INSERT INTO owned.later VALUES (1)'] \
        LOOP \
            BEGIN \
                EXECUTE statement; \
                INSERT INTO owned.seen VALUES (current_user, statement); \
            EXCEPTION WHEN OTHERS THEN NULL; \
            END; \
        END LOOP; \
        INSERT INTO owned.seen VALUES (current_user, NULL); \
    END $$;";

/// The owner of the schema `owned`, in a database.
struct Owner<'a> {
    role: Role<'a>,
    client: Client,
    admin: String,
}

impl<'a> Owner<'a> {
    fn create(database: &'a Database) -> Result<Self> {
        let role = Role::create(database)?;
        let mut superuser = database.connect()?;
        let admin = value::<String>(&mut superuser, "SELECT current_user::text")?;
        superuser.batch_execute(&format!("CREATE SCHEMA owned AUTHORIZATION {}", role.name))?;
        let mut client = role.connect()?;
        client.batch_execute("SET search_path = owned, public")?;
        Ok(Owner {
            role,
            client,
            admin,
        })
    }

    /// Runs statements with the names of the roles substituted for OWNER and ADMIN.
    fn run(&mut self, statements: &str) -> Outcome {
        let statements = statements.replace("OWNER", &self.role.name);
        self.client
            .batch_execute(&statements.replace("ADMIN", &self.admin))?;
        Ok(())
    }

    /// Replaces the body of `planted`. Existing index entries do not change.
    fn plant(&mut self, body: &str) -> Outcome {
        self.run(&format!(
            "CREATE OR REPLACE FUNCTION planted(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE \
             PARALLEL SAFE AS $${body}$$"
        ))
    }

    fn is_superuser(&mut self) -> Result<bool> {
        value(
            &mut self.client,
            "SELECT rolsuper FROM pg_roles WHERE rolname = current_user",
        )
    }
}

/// Calls of every function that reads an index. The result of each is a number.
fn calls() -> Vec<String> {
    let mut calls =
        vec!["count(*) FROM neardup_pairs('owned.traps', 3, column_name => 'fp')".to_owned()];
    for index in ["always", "part", "ball", "scope", "all"] {
        let index = format!("'owned.traps_{index}'");
        calls.extend([
            format!("count(*) FROM neardup_pairs({index}, 3)"),
            format!("count(*) FROM (SELECT neardup_pairs({index}, 3)) AS p"),
            format!("count(*) FROM neardup_clusters({index}, 3)"),
            format!("count(*) FROM neardup_clusters({index}, 3, method => 'star')"),
            format!("sum(pairs)::bigint FROM neardup_distance_histogram({index}, 3)"),
        ]);
    }
    let signatures = "'owned.traps_sig', similarity => 0.8";
    calls.extend([
        format!("count(*) FROM neardup_pairs({signatures})"),
        format!("count(*) FROM neardup_clusters({signatures})"),
    ]);
    for index in ["always", "part", "ball", "scope", "all", "sig"] {
        let index = format!("'owned.traps_{index}'");
        calls.extend([
            format!("rows FROM neardup_index_info({index})"),
            format!("count(*) FROM neardup_expert_index_statistics({index})"),
            format!("rows FROM neardup_index_check({index}, heap => true)"),
            format!("rows FROM neardup_index_check({index}, heap => true, concurrently => true)"),
        ]);
    }
    // Adds queries of the table by the caller.
    calls.extend([
        "count(*) FROM neardup_pairs('owned.rows_fp', 3, filter => 'site > 0')".to_owned(),
        "count(*) FROM neardup_clusters('owned.rows_fp', 3, keep => 'id')".to_owned(),
        "count(*) FROM neardup_pairs('owned.rows_sig', similarity => 0.8, filter => 'site > 0')"
            .to_owned(),
        "count(*) FROM neardup_pairs_by_key(NULL::owned.mood, 'owned.rows_fp', 3)".to_owned(),
        "count(*) FROM neardup_clusters_by_key(NULL::owned.mood, 'owned.rows_fp', 3)".to_owned(),
        "length(neardup_report('owned.rows_fp'))::bigint".to_owned(),
        "length(neardup_report('owned.rows_sig', body => 'id', key => 'id'))::bigint".to_owned(),
    ]);
    calls
}

/// Has a superuser call each function in a new session, whose caches are empty, with this number of
/// parallel workers.
fn call_all(database: &Database, workers: u32, mut check: impl FnMut(&str) -> Outcome) -> Outcome {
    for call in calls() {
        let mut superuser = database.connect()?;
        superuser.batch_execute(&format!(
            "SET parallel_setup_cost = 0; SET min_parallel_index_scan_size = 0; \
             SET max_parallel_workers_per_gather = {workers}"
        ))?;
        let number: i64 =
            value(&mut superuser, &format!("SELECT {call}")).with_context(|| call.clone())?;
        ensure!(number > 0, "{call}: {number}");
        let same = "SELECT current_user = session_user AND current_setting('search_path') \
            <> 'pg_catalog, pg_temp'";
        ensure!(
            value::<bool>(&mut superuser, same)?,
            "{call}: not itself again"
        );
        check(&call)?;
    }
    Ok(())
}

#[test]
fn functions_of_an_index_run_as_the_owner() -> Outcome {
    let database = Database::create()?;
    let mut owner = Owner::create(&database)?;
    owner.run(TABLES)?;
    owner.plant(GUARD)?;
    call_all(&database, 2, |_| Ok(()))
}

#[test]
fn functions_of_an_index_cannot_take_the_rights_of_the_caller() -> Outcome {
    let database = Database::create()?;
    let mut owner = Owner::create(&database)?;
    owner.run(TABLES)?;
    owner.run(ATTACK_TABLES)?;
    owner.plant(ATTACK)?;
    let mut runs = 0;
    // Parallel workers may not write.
    call_all(&database, 0, |call| {
        let seen = owner.client.query("SELECT run_as, did FROM seen", &[])?;
        for row in &seen {
            let (run_as, did): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
            ensure!(
                run_as == owner.role.name && did.is_none(),
                "{call}: {run_as} did {did:?}"
            );
        }
        runs += seen.len();
        owner.client.batch_execute("DELETE FROM seen")?;
        ensure!(!owner.is_superuser()?, "{call}: the owner is a superuser");
        Ok(())
    })?;
    ensure!(runs > 0, "the function was never called");
    Ok(())
}

/// The parser calls the function of an implicit cast for the caller.
#[test]
fn keys_are_not_cast_by_functions_of_the_owner() -> Outcome {
    let database = Database::create()?;
    let mut owner = Owner::create(&database)?;
    owner.run(TABLES)?;
    let mut superuser = database.connect()?;
    for function in ["neardup_pairs_by_key", "neardup_clusters_by_key"] {
        let cast = format!("SELECT FROM {function}(NULL::owned.other_mood, 'owned.rows_fp', 3)");
        let refused = superuser.batch_execute(&cast);
        assert_eq!(code(&refused), Some(SqlState::DATATYPE_MISMATCH));
    }
    Ok(())
}

/// A reader, with SELECT only, has functions and operators that match an unqualified name in the
/// owner's function.
#[test]
fn functions_of_an_index_run_nothing_of_a_reader() -> Outcome {
    let database = Database::create()?;
    let mut owner = Owner::create(&database)?;
    owner.run(
        "CREATE FUNCTION helped(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN \
             RETURN helper(n) + 0; \
         EXCEPTION WHEN undefined_function THEN RETURN n + 0; END $$; \
         CREATE TABLE docs (site int, fp fingerprint); \
         INSERT INTO docs SELECT 1, i::bigint::fingerprint FROM generate_series(1, 4) i; \
         CREATE INDEX docs_fp ON docs USING neardup ((helped(site)), fp) WHERE helped(1) = 1; \
         GRANT USAGE ON SCHEMA owned TO PUBLIC; GRANT SELECT ON docs TO PUBLIC;",
    )?;
    let reader = Role::create(&database)?;
    database.connect()?.batch_execute(&format!(
        "CREATE SCHEMA reading AUTHORIZATION {}",
        reader.name
    ))?;
    let mut client = reader.connect()?;
    client.batch_execute(
        "GRANT USAGE ON SCHEMA reading TO PUBLIC; \
         CREATE TABLE reading.seen (run_as name DEFAULT current_user); \
         GRANT INSERT ON reading.seen TO PUBLIC; \
         CREATE FUNCTION reading.helper(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO reading.seen DEFAULT VALUES; RETURN n; END $$; \
         CREATE FUNCTION reading.sum(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO reading.seen DEFAULT VALUES; RETURN int4pl(a, b); END $$; \
         CREATE OPERATOR reading.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = reading.sum); \
         SET search_path = reading, pg_catalog, public",
    )?;
    for call in [
        "neardup_pairs('owned.docs_fp', 3)",
        "neardup_clusters('owned.docs_fp', 3)",
        "neardup_distance_histogram('owned.docs_fp', 3)",
    ] {
        let rows: i64 = value(&mut client, &format!("SELECT count(*) FROM {call}"))?;
        assert!(rows > 0, "{call}");
        let seen: i64 = value(&mut client, "SELECT count(*) FROM reading.seen")?;
        assert_eq!(seen, 0, "{call}");
    }
    Ok(())
}

/// A table with marks. A trigger tries to make the owner a superuser at the end of a transaction
/// that wrote marks.
const MARKED: &str = "\
    CREATE TABLE docs (id int PRIMARY KEY, fp fingerprint, duplicate_of int); \
    CREATE INDEX docs_fp ON docs USING neardup (fp); \
    INSERT INTO docs SELECT i, i::bigint::fingerprint FROM generate_series(1, 3) i; \
    CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3'); \
    CREATE TRIGGER dedup_after AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3'); \
    CREATE FUNCTION attack() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        RESET SESSION AUTHORIZATION; RESET ROLE; ALTER ROLE OWNER SUPERUSER; RETURN NULL; \
    EXCEPTION WHEN insufficient_privilege THEN RETURN NULL; END $$; \
    CREATE CONSTRAINT TRIGGER attack AFTER UPDATE ON docs DEFERRABLE INITIALLY DEFERRED \
        FOR EACH ROW EXECUTE FUNCTION attack(); \
    CREATE FUNCTION remark() RETURNS bigint LANGUAGE sql SECURITY DEFINER \
        AS 'SELECT neardup_remark(''owned.docs'')'; \
    GRANT USAGE ON SCHEMA owned TO PUBLIC;";

const REMARK: &str = "SELECT neardup_remark('owned.docs')";

/// Removes all marks, so that the next call writes some.
fn unmark(owner: &mut Owner) -> Outcome {
    owner.run(
        "ALTER TABLE docs DISABLE TRIGGER USER; UPDATE docs SET duplicate_of = NULL; \
         ALTER TABLE docs ENABLE TRIGGER USER",
    )
}

#[test]
fn marks_are_set_again_in_a_session_of_the_owner_only() -> Outcome {
    let database = Database::create()?;
    let mut owner = Owner::create(&database)?;
    let name = owner.role.name.clone();
    let member = Role::create(&database)?;
    owner.run(MARKED)?;
    let grant = format!("GRANT {name} TO {}", member.name);
    database.connect()?.batch_execute(&grant)?;

    let superuser = database.conninfo().to_owned();
    let as_member = member.conninfo(&database);
    for (conninfo, statement) in [
        (&superuser, REMARK.to_owned()),
        (&superuser, format!("SET ROLE {name}; {REMARK}")),
        (
            &superuser,
            format!("SET SESSION AUTHORIZATION {name}; {REMARK}"),
        ),
        (&superuser, "SELECT owned.remark()".to_owned()),
        (&as_member, REMARK.to_owned()),
        (&as_member, format!("SET ROLE {name}; {REMARK}")),
        (&as_member, "SELECT owned.remark()".to_owned()),
    ] {
        let mut client = connect(conninfo)?;
        let refused = client.batch_execute(&statement);
        assert_eq!(
            code(&refused),
            Some(SqlState::INSUFFICIENT_PRIVILEGE),
            "{statement}"
        );
        assert!(!owner.is_superuser()?, "{statement}");
    }

    assert_eq!(value::<i64>(&mut owner.client, REMARK)?, 2);
    unmark(&mut owner)?;
    assert_eq!(value::<i64>(&mut owner.client, "SELECT owned.remark()")?, 2);
    assert!(!owner.is_superuser()?);
    Ok(())
}

/// Each partition has its own owner, whose triggers fire.
#[test]
fn partitions_of_another_owner_are_refused() -> Outcome {
    let database = Database::create()?;
    let mut owner = Owner::create(&database)?;
    let other = Role::create(&database)?;
    owner.run(
        "CREATE TABLE docs (id int PRIMARY KEY, fp fingerprint, duplicate_of int) \
             PARTITION BY RANGE (id); \
         CREATE TABLE docs_1 PARTITION OF docs FOR VALUES FROM (0) TO (10); \
         CREATE TABLE docs_2 PARTITION OF docs FOR VALUES FROM (10) TO (20); \
         CREATE INDEX docs_fp ON docs USING neardup (fp); \
         CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW \
             EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3'); \
         CREATE TRIGGER dedup_after AFTER UPDATE OR DELETE ON docs FOR EACH ROW \
             EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3'); \
         INSERT INTO docs VALUES (1, '0000000000000000'); \
         GRANT USAGE ON SCHEMA owned TO PUBLIC",
    )?;
    assert_eq!(value::<i64>(&mut owner.client, REMARK)?, 0);
    database
        .connect()?
        .batch_execute(&format!("ALTER TABLE owned.docs_2 OWNER TO {}", other.name))?;
    let refused = owner.client.batch_execute(REMARK);
    assert_eq!(code(&refused), Some(SqlState::INSUFFICIENT_PRIVILEGE));
    Ok(())
}
