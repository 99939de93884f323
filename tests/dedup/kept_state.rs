//! State that a session keeps for a trigger from one statement to the next: after each kind of
//! change, the next statement works as in a new session.
use crate::support::Outcome;
use crate::support::roles::Role;
use crate::support::table::value;
use anyhow::{Result, ensure};
use neardup_tests::Database;
use postgres::{Client, SimpleQueryMessage};

/// Definitions of a table, with near-duplicates of one row, and a change that affects its trigger.
struct Case {
    name: &'static str,
    /// Statements that make the table, its index and its triggers. Names in braces stand for the
    /// constants below, and `{role}` for a role.
    setup: &'static str,
    /// Statements whose outcome is compared. They are rolled back.
    probe: &'static str,
    change: &'static str,
    /// Probe after the change.
    after: &'static str,
    /// True if the change must change the outcome of the probe.
    differs: bool,
    /// True if a role that is not a superuser runs the probes.
    as_role: bool,
}

/// Probe that most cases use.
const INSERT: &str = "INSERT INTO t (id, fp) VALUES (2, '0000000000000003') RETURNING id, dup";

/// Probe with a text.
const INSERT_TEXT: &str = "INSERT INTO t (id, body) VALUES (2, 'a b c d e f') RETURNING id";

/// Table with one row and an index.
const TABLE: &str = "CREATE TABLE t (id bigint PRIMARY KEY, body text, site text, \
        at timestamptz DEFAULT 'epoch', dup bigint, fp fingerprint); \
    CREATE INDEX t_fp ON t USING neardup (fp); \
    INSERT INTO t (id, fp, site) VALUES (1, '0000000000000000', 'a'); ";

/// Triggers that mark rows within 3 bits.
const MARK: &str = "CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3'); \
    CREATE TRIGGER mark_after AFTER UPDATE OR DELETE ON t FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3'); ";

/// Trigger that skips rows within 3 bits.
const SKIP: &str = "CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
    EXECUTE FUNCTION neardup_dedup('fp', 'radius=3'); ";

const CASES: &[Case] = &[
    Case {
        name: "the trigger is replaced by one with another radius",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "CREATE OR REPLACE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'radius=1')",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the trigger is dropped and created with another action",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "DROP TRIGGER skip ON t; {mark}",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the trigger gets invalid arguments",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "CREATE OR REPLACE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'radius=three')",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a column is renamed",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "ALTER TABLE t RENAME fp TO print",
        after: "INSERT INTO t (id, print) VALUES (2, '3') RETURNING id",
        differs: true,
        as_role: false,
    },
    Case {
        name: "a column is dropped and added",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "ALTER TABLE t DROP fp; ALTER TABLE t ADD fp fingerprint; \
                 CREATE INDEX ON t USING neardup (fp)",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a column gets another number",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "ALTER TABLE t DROP fp; ALTER TABLE t ADD fp fingerprint; \
                 CREATE INDEX ON t USING neardup (fp); UPDATE t SET fp = '0000000000000000'",
        after: INSERT,
        differs: false,
        as_role: false,
    },
    Case {
        name: "a column gets another type",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "DROP INDEX t_fp; ALTER TABLE t ALTER fp TYPE bigint USING fp::bigint; \
                 CREATE INDEX ON t USING neardup (fp bigint_hamming_ops)",
        after: "INSERT INTO t (id, fp) VALUES (2, 3) RETURNING id",
        differs: false,
        as_role: false,
    },
    Case {
        name: "the mark column gets another type",
        setup: "{table}{mark}",
        probe: INSERT,
        change: "ALTER TABLE t ALTER dup TYPE text",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the index is dropped",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "DROP INDEX t_fp",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the index is made again",
        setup: "{table}{mark}",
        probe: INSERT,
        change: "DROP INDEX t_fp; CREATE INDEX t_fp ON t USING neardup (fp) WHERE dup IS NULL",
        after: INSERT,
        differs: false,
        as_role: false,
    },
    Case {
        name: "the index is built again with another radius",
        setup: "CREATE TABLE t (id bigint, dup bigint, fp fingerprint); \
            CREATE INDEX t_fp ON t USING neardup (fp) WITH (radius = 3); \
            INSERT INTO t (fp) VALUES ('0000000000000000'); \
            CREATE TRIGGER skip BEFORE INSERT ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp')",
        probe: INSERT,
        change: "ALTER INDEX t_fp SET (radius = 1); REINDEX INDEX t_fp",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a second index has another radius",
        setup: "CREATE TABLE t (id bigint, dup bigint, fp fingerprint); \
            CREATE INDEX ON t USING neardup (fp) WITH (radius = 3); \
            INSERT INTO t (fp) VALUES ('0000000000000000'); \
            CREATE TRIGGER skip BEFORE INSERT ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp')",
        probe: INSERT,
        change: "CREATE INDEX ON t USING neardup (fp) WITH (radius = 1)",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the index becomes invalid",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_fp'::regclass",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the table is truncated",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "TRUNCATE t",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the primary key is dropped",
        setup: "{table}{mark}",
        probe: INSERT,
        change: "ALTER TABLE t DROP CONSTRAINT t_pkey",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the AFTER trigger is dropped",
        setup: "{table}{mark}",
        probe: INSERT,
        change: "DROP TRIGGER mark_after ON t",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the AFTER trigger fires in other sessions",
        setup: "{table}{mark}",
        probe: INSERT,
        change: "ALTER TABLE t ENABLE REPLICA TRIGGER mark_after",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    // Deleting the original runs the statements of the AFTER trigger.
    Case {
        name: "the table is renamed",
        setup: "{table}{mark}",
        probe: "INSERT INTO t (id, fp) VALUES (2, '0000000000000003'); \
                DELETE FROM t WHERE id = 1; SELECT id, dup FROM t",
        change: "ALTER TABLE t RENAME TO u",
        after: "INSERT INTO u (id, fp) VALUES (2, '0000000000000003'); \
                DELETE FROM u WHERE id = 1; SELECT id, dup FROM u",
        differs: false,
        as_role: false,
    },
    Case {
        name: "the key is renamed",
        setup: "{table}{mark}",
        probe: "INSERT INTO t (id, fp) VALUES (2, '0000000000000003'); \
                DELETE FROM t WHERE id = 1; SELECT id, dup FROM t",
        change: "ALTER TABLE t RENAME id TO number",
        after: "INSERT INTO t (number, fp) VALUES (2, '0000000000000003'); \
                DELETE FROM t WHERE number = 1; SELECT number, dup FROM t",
        differs: false,
        as_role: false,
    },
    Case {
        name: "the schema is renamed",
        setup: "CREATE SCHEMA s; SET search_path = s, public; {table}{mark}",
        probe: "INSERT INTO s.t (id, fp) VALUES (2, '0000000000000003'); \
                DELETE FROM s.t WHERE id = 1; SELECT id, dup FROM s.t",
        change: "ALTER SCHEMA s RENAME TO s2",
        after: "INSERT INTO s2.t (id, fp) VALUES (2, '0000000000000003'); \
                DELETE FROM s2.t WHERE id = 1; SELECT id, dup FROM s2.t",
        differs: false,
        as_role: false,
    },
    Case {
        name: "the extension moves to another schema",
        setup: "CREATE SCHEMA s; {table} UPDATE t SET fp = minhash64('a b c d e f'); \
            CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'body', 'radius=3')",
        probe: INSERT_TEXT,
        change: "ALTER EXTENSION neardup SET SCHEMA s",
        after: INSERT_TEXT,
        differs: false,
        as_role: false,
    },
    Case {
        name: "a type of the extension is renamed",
        setup: "{table}{skip}",
        probe: INSERT,
        change: "ALTER TYPE fingerprint RENAME TO print",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "an inlined function of a generated column changes",
        setup: "CREATE FUNCTION make(text) RETURNS fingerprint LANGUAGE sql IMMUTABLE STRICT \
                AS $$ SELECT minhash64($1) $$; {generated}",
        probe: INSERT_TEXT,
        change: "CREATE OR REPLACE FUNCTION make(text) RETURNS fingerprint LANGUAGE sql IMMUTABLE \
                 STRICT AS $$ SELECT (~minhash64($1)::bigint)::fingerprint $$",
        after: INSERT_TEXT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a called function of a generated column changes",
        setup: "CREATE FUNCTION make(text) RETURNS fingerprint LANGUAGE plpgsql IMMUTABLE STRICT \
                AS $$ BEGIN RETURN minhash64($1); END $$; {generated}",
        probe: INSERT_TEXT,
        change: "CREATE OR REPLACE FUNCTION make(text) RETURNS fingerprint LANGUAGE plpgsql \
                 IMMUTABLE STRICT AS $$ BEGIN RETURN (~minhash64($1)::bigint)::fingerprint; END $$",
        after: INSERT_TEXT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a generated column becomes an ordinary column",
        setup: "CREATE FUNCTION make(text) RETURNS fingerprint LANGUAGE sql IMMUTABLE STRICT \
                AS $$ SELECT minhash64($1) $$; {generated}",
        probe: INSERT_TEXT,
        change: "ALTER TABLE t ALTER fp DROP EXPRESSION",
        after: INSERT_TEXT,
        differs: true,
        as_role: false,
    },
    // Both functions break their promise to be immutable. The server plans a generated column in
    // each statement, so it computes the new value.
    Case {
        name: "a table changes that a function of a generated column reads",
        setup: "CREATE TABLE salt AS SELECT ''::text AS word; \
                CREATE FUNCTION salt() RETURNS text LANGUAGE plpgsql IMMUTABLE \
                    AS 'BEGIN RETURN (SELECT word FROM public.salt); END'; \
                CREATE FUNCTION make(text) RETURNS fingerprint LANGUAGE plpgsql IMMUTABLE STRICT \
                    AS 'BEGIN RETURN minhash64($1); END'; \
                CREATE FUNCTION make(text, text) RETURNS fingerprint LANGUAGE plpgsql IMMUTABLE \
                    AS 'BEGIN RETURN minhash64($1 || $2); END'; \
                {generated} ALTER TABLE t DROP fp; ALTER TABLE t ADD \
                    fp fingerprint GENERATED ALWAYS AS (make(body, salt())) STORED; \
                CREATE INDEX ON t USING neardup (fp)",
        probe: INSERT_TEXT,
        change: "UPDATE salt SET word = ' u v w x y z'",
        after: INSERT_TEXT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a setting changes that an inlined function of a generated column reads",
        setup: "CREATE FUNCTION make(text) RETURNS fingerprint LANGUAGE sql IMMUTABLE \
                AS $$ SELECT minhash64($1 || current_setting('test.salt', true)) $$; \
                SET test.salt = ''; {generated}",
        probe: "SET LOCAL test.salt = ''; INSERT INTO t (id, body) VALUES (2, 'a b c d e f') \
                RETURNING id",
        change: "",
        after: "SET LOCAL test.salt = ' u v w x y z'; \
                INSERT INTO t (id, body) VALUES (2, 'a b c d e f') RETURNING id",
        differs: true,
        as_role: false,
    },
    Case {
        name: "a domain below the column's domain gets a constraint",
        setup: "CREATE DOMAIN d1 AS fingerprint; CREATE DOMAIN d2 AS d1; \
                CREATE TABLE t (id bigint PRIMARY KEY, body text, \
                    fp d2 GENERATED ALWAYS AS (minhash64(body)) STORED); \
                CREATE INDEX ON t USING neardup (fp); INSERT INTO t VALUES (1, 'a b c d e f'); \
                {skip}",
        probe: INSERT_TEXT,
        change: "ALTER DOMAIN d1 ADD CHECK (value IS NULL OR value = 'ffffffffffffffff') NOT VALID",
        after: INSERT_TEXT,
        differs: true,
        as_role: false,
    },
    // The trigger skips the row, so the server does not call the function itself.
    Case {
        name: "a role loses the right to call a function of a generated column",
        setup: "CREATE FUNCTION make(text) RETURNS fingerprint LANGUAGE sql IMMUTABLE STRICT \
                AS $$ SELECT minhash64($1) $$; {generated} \
                GRANT SELECT, INSERT ON t TO {role}",
        probe: INSERT_TEXT,
        change: "REVOKE EXECUTE ON FUNCTION make(text) FROM PUBLIC",
        after: INSERT_TEXT,
        differs: true,
        as_role: true,
    },
    Case {
        name: "another role must not call a function of a generated column",
        setup: "CREATE FUNCTION make(text) RETURNS fingerprint LANGUAGE sql IMMUTABLE STRICT \
                AS $$ SELECT minhash64($1) $$; {generated} \
                REVOKE EXECUTE ON FUNCTION make(text) FROM PUBLIC; \
                GRANT SELECT, INSERT ON t TO {role}",
        probe: INSERT_TEXT,
        change: "",
        after: "SET LOCAL ROLE {role}; INSERT INTO t (id, body) VALUES (2, 'a b c d e f')",
        differs: true,
        as_role: false,
    },
    Case {
        name: "a domain gets a constraint",
        setup: "CREATE DOMAIN print AS fingerprint; \
            CREATE TABLE t (id bigint PRIMARY KEY, body text, fp print); \
            CREATE INDEX ON t USING neardup (fp); \
            CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'body', 'radius=3'); \
            INSERT INTO t VALUES (1, 'a b c d e f', NULL)",
        probe: INSERT_TEXT,
        change: "ALTER DOMAIN print ADD CHECK (VALUE IS NULL OR VALUE = 'ffffffffffffffff') \
                 NOT VALID",
        after: INSERT_TEXT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "intervals are read in another style",
        setup: "{table} CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'time=at', \
                'within=-1 days 25 hours')",
        probe: INSERT,
        change: "",
        after: "SET LOCAL intervalstyle = sql_standard; \
                INSERT INTO t (id, fp) VALUES (2, '0000000000000003') RETURNING id",
        differs: true,
        as_role: false,
    },
    Case {
        name: "the condition of marks set by hand changes",
        setup: "{table} CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3', \
                    'manual=id > 1'); \
            CREATE TRIGGER mark_after AFTER UPDATE OR DELETE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3', \
                    'manual=id > 1')",
        probe: INSERT,
        change: "CREATE OR REPLACE TRIGGER mark BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3', \
                    'manual=id > 2'); \
            CREATE OR REPLACE TRIGGER mark_after AFTER UPDATE OR DELETE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3', \
                    'manual=id > 2')",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "the log table is replaced",
        setup: "{table} CREATE TABLE log (kept bigint, distance int, dropped jsonb); \
            CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=log', 'log=log')",
        probe: "INSERT INTO t (id, fp) VALUES (2, '0000000000000003'); SELECT kept FROM log",
        change: "DROP TABLE log; CREATE TABLE log (kept text, distance int, dropped jsonb, \
                     fingerprint fingerprint)",
        after: "INSERT INTO t (id, fp) VALUES (2, '0000000000000003'); \
                SELECT kept, fingerprint FROM log",
        differs: true,
        as_role: false,
    },
    Case {
        name: "the trigger of a partitioned table is replaced",
        setup: "{partitioned}{skip}",
        probe: INSERT,
        change: "DROP TRIGGER skip ON t; CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t \
                 FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius=1')",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a partition is replaced",
        setup: "{partitioned}{skip}",
        probe: INSERT,
        change: "ALTER TABLE t DETACH PARTITION t1; \
                 CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (0) TO (100)",
        after: INSERT,
        differs: true,
        as_role: false,
    },
    Case {
        name: "a detached partition gets a trigger of its own",
        setup: "{partitioned}{skip}",
        probe: "INSERT INTO t1 (id, fp) VALUES (2, '0000000000000003') RETURNING id",
        change: "ALTER TABLE t DETACH PARTITION t1; \
                 CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t1 FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'radius=1')",
        after: "INSERT INTO t1 (id, fp) VALUES (2, '0000000000000003') RETURNING id",
        differs: true,
        as_role: false,
    },
];

/// Table whose fingerprint a function `make` computes.
const GENERATED: &str = "CREATE TABLE t (id bigint PRIMARY KEY, body text, \
        fp fingerprint GENERATED ALWAYS AS (make(body)) STORED); \
    CREATE INDEX ON t USING neardup (fp); INSERT INTO t VALUES (1, 'a b c d e f'); \
    CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'radius=3'); ";

/// Table with one partition.
const PARTITIONED: &str = "CREATE TABLE t (id bigint PRIMARY KEY, fp fingerprint, dup bigint) \
        PARTITION BY RANGE (id); \
    CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100); \
    CREATE INDEX ON t USING neardup (fp); INSERT INTO t VALUES (1, '0000000000000000'); ";

/// Session and transaction that make the change.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    /// Another session.
    Other,
    /// The session that keeps the state.
    Same,
    /// A transaction of the session that keeps the state. It is rolled back.
    RolledBack,
    /// A subtransaction of the session that keeps the state. It is rolled back.
    Subtransaction,
}

/// Returns the rows that statements return, or the error. Rolls the statements back.
fn outcome(client: &mut Client, statements: &str) -> Result<String> {
    let rolled_back = format!("SAVEPOINT probe; {statements}");
    let result = client.simple_query(&rolled_back);
    client.batch_execute("ROLLBACK TO probe")?;
    Ok(match result {
        Ok(messages) => (messages.iter())
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            })
            .map(|row| {
                format!(
                    "{:?}; ",
                    (0..row.len()).map(|at| row.get(at)).collect::<Vec<_>>()
                )
            })
            .collect(),
        Err(error) => match error.as_db_error() {
            Some(error) => format!("{} {}", error.code().code(), error.message()),
            None => return Err(error.into()),
        },
    })
}

/// Returns the outcome in a transaction of its own.
fn outcome_alone(client: &mut Client, statements: &str) -> Result<String> {
    client.batch_execute("BEGIN")?;
    let result = outcome(client, statements);
    client.batch_execute("ROLLBACK")?;
    result
}

fn ensure_equal(when: &str, outcome: &str, expected: &str) -> Outcome {
    ensure!(
        outcome == expected,
        "{when}: {outcome} instead of {expected}"
    );
    Ok(())
}

/// A case in a database of its own, with the statements of the case.
struct Scene<'a> {
    case: &'a Case,
    database: Database,
    /// Role that runs the probes, if it is not the superuser.
    role: Option<&'a str>,
    probe: String,
    change: String,
    after: String,
}

impl<'a> Scene<'a> {
    fn set(case: &'a Case, role: &'a str) -> Result<Self> {
        let sql = |text: &str| {
            [
                ("{table}", TABLE),
                ("{generated}", GENERATED),
                ("{partitioned}", PARTITIONED),
                ("{mark}", MARK),
                ("{skip}", SKIP),
                ("{role}", role),
            ]
            .into_iter()
            .fold(text.to_owned(), |text, (name, sql)| text.replace(name, sql))
        };
        let database = Database::create()?;
        database.connect()?.batch_execute(&sql(case.setup))?;
        Ok(Scene {
            case,
            database,
            role: case.as_role.then_some(role),
            probe: sql(case.probe),
            change: sql(case.change),
            after: sql(case.after),
        })
    }

    fn connect(&self) -> Result<Client> {
        let mut client = self.database.connect()?;
        self.take_role(&mut client)?;
        Ok(client)
    }

    fn take_role(&self, client: &mut Client) -> Outcome {
        if let Some(role) = self.role {
            client.batch_execute(&format!("SET ROLE {role}"))?;
        }
        Ok(())
    }

    /// Opens a session that keeps the state of the trigger. Also returns the outcome of the probe.
    fn session(&self) -> Result<(Client, String)> {
        let mut client = self.connect()?;
        let before = outcome_alone(&mut client, &self.probe)?;
        let again = outcome_alone(&mut client, &self.probe)?;
        ensure_equal("the second time", &again, &before)?;
        Ok((client, before))
    }

    fn change(&self, client: &mut Client) -> Outcome {
        client.batch_execute("RESET ROLE")?;
        client.batch_execute(&self.change)?;
        self.take_role(client)
    }

    /// Makes the change and rolls it back.
    fn roll_back(&self, by: By) -> Outcome {
        let (mut client, before) = self.session()?;
        client.batch_execute("BEGIN; SAVEPOINT change")?;
        self.change(&mut client)?;
        let changed = outcome(&mut client, &self.after)?;
        let again = outcome(&mut client, &self.after)?;
        ensure_equal("the second time in the transaction", &again, &changed)?;
        let again = match by {
            By::Subtransaction => {
                client.batch_execute("ROLLBACK TO change")?;
                outcome(&mut client, &self.probe)?
            }
            _ => {
                client.batch_execute("ROLLBACK")?;
                outcome_alone(&mut client, &self.probe)?
            }
        };
        ensure_equal("after the rollback", &again, &before)
    }

    /// Makes the change, and compares the session with a new session.
    fn commit(&self, by: By) -> Outcome {
        let (mut client, before) = self.session()?;
        match by {
            By::Other => self.change(&mut self.connect()?)?,
            _ => self.change(&mut client)?,
        }
        let kept = outcome_alone(&mut client, &self.after)?;
        let new = outcome_alone(&mut self.connect()?, &self.after)?;
        ensure_equal("in the old session", &kept, &new)?;
        let has_effect = !self.case.differs || kept != before;
        ensure!(has_effect, "the change has no effect: {kept}");
        Ok(())
    }
}

#[test]
fn a_session_follows_changes_of_what_it_keeps() -> Outcome {
    let database = Database::create()?;
    let role = Role::create(&database)?;
    let mut wrong = String::new();
    for case in CASES {
        // A committed change needs a new database.
        for last in [By::Other, By::Same] {
            let scene = Scene::set(case, &role.name)?;
            for by in [By::RolledBack, By::Subtransaction, last] {
                let result = match by {
                    By::RolledBack | By::Subtransaction => scene.roll_back(by),
                    By::Other | By::Same => scene.commit(by),
                };
                if let Err(error) = result {
                    wrong += &format!("{}, by {by:?}: {error:#}\n", case.name);
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}

/// An error while a session prepares the state, such as one of a function that the planner calls,
/// has no effect on the next statement.
#[test]
fn an_error_while_state_is_prepared_leaves_no_trace() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE FUNCTION part(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN \
            IF current_setting('test.fails', true) = 'yes' THEN RAISE 'no plan'; END IF; \
            RETURN ' x'; END $$; \
         CREATE TABLE t (id bigint PRIMARY KEY, body text, dup bigint, \
            fp fingerprint GENERATED ALWAYS AS (minhash64(body || part(1))) STORED); \
         CREATE INDEX ON t USING neardup (fp); INSERT INTO t (id, body) VALUES (1, 'a b c d e f');",
    )?;
    client.batch_execute(MARK)?;
    let insert = "INSERT INTO t (id, body) VALUES (2, 'a b c d e f') RETURNING id, dup";
    let marked = outcome_alone(&mut client, insert)?;
    ensure!(marked == "[Some(\"2\"), Some(\"1\")]; ", "{marked}");
    let failing = format!("SET LOCAL test.fails = 'yes'; {insert}");
    let kept = outcome_alone(&mut client, &failing)?;
    // The server plans the expression itself in each statement.
    ensure!(kept == "P0001 no plan", "{kept}");
    for change in [
        "ALTER TABLE t SET (fillfactor = 90)",
        "CREATE OR REPLACE FUNCTION unrelated() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "REINDEX TABLE t",
    ] {
        client.batch_execute(change)?;
        let failed = outcome_alone(&mut client, &failing)?;
        ensure_equal(change, &failed, "P0001 no plan")?;
        ensure_equal(change, &outcome_alone(&mut client, insert)?, &marked)?;
        client.batch_execute(&format!("BEGIN; {change}"))?;
        let failed = outcome(&mut client, &failing)?;
        ensure_equal(change, &failed, "P0001 no plan")?;
        ensure_equal(change, &outcome(&mut client, insert)?, &marked)?;
        client.batch_execute("ROLLBACK")?;
        ensure_equal(change, &outcome_alone(&mut client, insert)?, &marked)?;
    }
    Ok(())
}

/// A function that a statement calls replaces the trigger, before the trigger fires for the first
/// row. The server fires the old trigger for the rows of this statement.
#[test]
fn a_statement_that_replaces_its_trigger_leaves_no_trace() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&format!(
        "{TABLE}{SKIP} CREATE FUNCTION replaced() RETURNS fingerprint LANGUAGE plpgsql AS $$ BEGIN \
            CREATE OR REPLACE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW \
                EXECUTE FUNCTION neardup_dedup('fp', 'radius=1'); \
            RETURN 'ffffffffffffffff'; END $$"
    ))?;
    client.batch_execute("BEGIN; INSERT INTO t (id, fp) SELECT 10, replaced()")?;
    ensure_equal(
        "the row is 2 bits from row 1",
        &outcome(&mut client, INSERT)?,
        "[Some(\"2\"), None]; ",
    )?;
    client.batch_execute("ROLLBACK")?;
    ensure_equal(
        "after the rollback",
        &outcome_alone(&mut client, INSERT)?,
        "",
    )
}

/// A session keeps the state of a limited number of triggers, and releases the state of dropped
/// triggers.
#[test]
fn a_session_keeps_a_limited_number_of_states() -> Outcome {
    const PARTITIONS: i64 = 300;
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&format!(
        "CREATE TABLE t (id bigint, body text, \
            fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED) PARTITION BY LIST (id); \
         CREATE INDEX ON t USING neardup (fp); {SKIP} \
         DO $$ BEGIN FOR i IN 1 .. {PARTITIONS} LOOP \
            EXECUTE format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s)', i, i); \
         END LOOP; END $$",
    ))?;
    // The plan cache has one context for each generated column of a kept state.
    let contexts =
        "SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'CachedExpression'";
    let insert = |first: i64, last: i64| {
        format!("INSERT INTO t SELECT i, 'a b c d e' FROM generate_series({first}, {last}) i")
    };
    client.batch_execute(&insert(1, 10))?;
    ensure!(value::<i64>(&mut client, contexts)? == 10);
    for _ in 0..2 {
        client.batch_execute(&insert(1, PARTITIONS))?;
        let kept = value::<i64>(&mut client, contexts)?;
        ensure!(kept == 256, "{kept}");
    }
    client.batch_execute("DROP TABLE t")?;
    client.batch_execute(&format!("{TABLE}{SKIP}{INSERT}"))?;
    let kept = value::<i64>(&mut client, contexts)?;
    ensure!(kept == 0, "{kept}");
    Ok(())
}
