//! A trusted extension: a role that owns only its database creates it, uses it, dumps and restores
//! it, and drops it. The extension does not give the role other rights.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::roles::Role;
use crate::support::table::value;
use neardup_tests::{Database, client_program, connect};
use postgres::error::SqlState;
use std::process::Stdio;

/// Members of the extension that the bootstrap superuser does not own.
const NOT_OF_THE_SERVER: &str = "SELECT count(*) FROM pg_depend d \
    JOIN pg_extension e ON e.oid = refobjid AND refclassid = 'pg_extension'::regclass \
    LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = objid \
    LEFT JOIN pg_operator o ON d.classid = 'pg_operator'::regclass AND o.oid = objid \
    LEFT JOIN pg_opclass c ON d.classid = 'pg_opclass'::regclass AND c.oid = objid \
    LEFT JOIN pg_opfamily f ON d.classid = 'pg_opfamily'::regclass AND f.oid = objid \
    LEFT JOIN pg_type t ON d.classid = 'pg_type'::regclass AND t.oid = objid \
    WHERE extname = 'neardup' AND deptype = 'e' AND \
    coalesce(proowner, oprowner, opcowner, opfowner, typowner, 10) <> 10";

const WORK: &str = "\
    CREATE TABLE docs (id int PRIMARY KEY, body text, \
        fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED, sig minhash_signature); \
    INSERT INTO docs (id, body, sig) \
        SELECT n, 'words of the document number ' || n / 2, \
        minhash('words of the document number ' || n / 2) FROM generate_series(1, 200) AS n; \
    CREATE INDEX docs_fp ON docs USING neardup (fp); \
    CREATE INDEX docs_sig ON docs USING neardup (sig); \
    CREATE TABLE kept (fp fingerprint, EXCLUDE USING neardup (fp WITH ~=)); \
    INSERT INTO kept VALUES ('0000000000000000'); \
    INSERT INTO kept VALUES ('0000000000000001') ON CONFLICT DO NOTHING; \
    CREATE TABLE checked (fp fingerprint); \
    CREATE INDEX checked_fp ON checked USING neardup (fp); \
    CREATE TRIGGER dedup BEFORE INSERT ON checked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=skip'); \
    INSERT INTO checked VALUES ('0000000000000000'), ('0000000000000001'); \
    ANALYZE docs; SET neardup.allow_approximate = on; RESET neardup.allow_approximate";

/// Counts of the objects that [`WORK`] makes, as a role sees them.
const RESULT: &str = "SELECT format('%s %s %s %s %s %s %s %s', \
    (SELECT count(*) FROM docs WHERE fp <~> (SELECT fp FROM docs WHERE id = 7) <= 3), \
    (SELECT count(*) FROM docs a JOIN docs b ON a.fp <~> b.fp <= 3), \
    (SELECT count(*) FROM docs a JOIN docs b ON a.sig <%> b.sig <= 0.3), \
    (SELECT count(*) FROM neardup_pairs('docs_fp', 3)), \
    (SELECT count(*) FROM neardup_clusters('docs_sig', similarity => 0.7)), \
    (SELECT count(*) FROM kept), (SELECT count(*) FROM checked), \
    (SELECT i.rows + c.rows FROM neardup_index_info('docs_fp') i, \
        neardup_index_check('docs_sig', true) c))";

#[test]
fn the_owner_of_a_database_creates_uses_dumps_and_drops_it() -> Outcome {
    let (database, copy) = (Database::create()?, Database::create()?);
    let mut admin = database.connect()?;
    for database in [&database, &copy] {
        database
            .connect()?
            .batch_execute("DROP EXTENSION neardup")?;
    }
    let role = Role::create(&database)?;
    // A role that does not own the database may not create the extension.
    admin.batch_execute("GRANT CREATE ON SCHEMA public TO PUBLIC")?;
    let refused = role.connect()?.batch_execute("CREATE EXTENSION neardup");
    assert_eq!(code(&refused), Some(SqlState::INSUFFICIENT_PRIVILEGE));

    role.take_over(&database)?;
    let mut client = role.connect()?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    assert!(!value::<bool>(
        &mut client,
        "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
    )?);
    assert_eq!(value::<i64>(&mut admin, NOT_OF_THE_SERVER)?, 0);
    client.batch_execute(WORK)?;
    let result: String = value(&mut client, RESULT)?;
    assert!(result.ends_with(" 1 1 400"), "{result}");

    // The role makes a dump, which contains the extension, and restores it.
    copy.connect()?
        .batch_execute(&format!("GRANT ALL ON SCHEMA public TO {}", role.name))?;
    role.take_over(&copy)?;
    let mut dump = client_program("pg_dump")?
        .arg(format!("--dbname={}", role.conninfo(&database)))
        .stdout(Stdio::piped())
        .spawn()?;
    let restored = client_program("psql")?
        .args([
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
        ])
        .arg(format!("--dbname={}", role.conninfo(&copy)))
        .stdin(dump.stdout.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .status()?;
    assert!(dump.wait()?.success() && restored.success());
    let mut other = connect(&role.conninfo(&copy))?;
    other.batch_execute("ANALYZE")?;
    assert_eq!(value::<String>(&mut other, RESULT)?, result);

    // The bootstrap superuser owns the members: the role can neither change nor move any.
    for forbidden in [
        "ALTER EXTENSION neardup SET SCHEMA elsewhere",
        "ALTER FUNCTION _neardup_hamming(bigint, bigint) SECURITY DEFINER",
        "CREATE OR REPLACE FUNCTION _neardup_hamming(bigint, bigint) RETURNS integer \
            LANGUAGE sql AS 'SELECT 0'",
        "CREATE OPERATOR CLASS mine FOR TYPE text USING neardup AS OPERATOR 3 = (text, text)",
        "ALTER OPERATOR FAMILY text_scope_ops USING neardup ADD OPERATOR 3 = (text, name)",
    ] {
        client.batch_execute("CREATE SCHEMA IF NOT EXISTS elsewhere")?;
        let refused = client.batch_execute(forbidden);
        assert_eq!(
            code(&refused),
            Some(SqlState::INSUFFICIENT_PRIVILEGE),
            "{forbidden}"
        );
    }
    // A superuser moves the extension, and the role can still use it.
    admin.batch_execute("ALTER EXTENSION neardup SET SCHEMA elsewhere")?;
    client.batch_execute("SET search_path = public, elsewhere")?;
    assert_eq!(value::<String>(&mut client, RESULT)?, result);

    client.batch_execute("DROP EXTENSION neardup CASCADE")?;
    let left = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal";
    assert_eq!(value::<i64>(&mut client, left)?, 0);
    client.batch_execute("CREATE EXTENSION neardup WITH SCHEMA elsewhere")?;
    assert_eq!(value::<i64>(&mut client, "SELECT (1 <~> 2)::bigint")?, 2);
    Ok(())
}

#[test]
fn only_the_owner_of_a_table_looks_into_its_index() -> Outcome {
    let database = Database::create()?;
    let mut admin = database.connect()?;
    let (owner, member, other) = (
        Role::create(&database)?,
        Role::create(&database)?,
        Role::create(&database)?,
    );
    admin.batch_execute(&format!(
        "CREATE TABLE docs (fp fingerprint, sig minhash_signature); \
         INSERT INTO docs SELECT n::bigint::fingerprint, minhash(n::text, shingle => 1) \
             FROM generate_series(1, 10) AS n; \
         CREATE INDEX docs_fp ON docs USING neardup (fp); \
         CREATE INDEX docs_sig ON docs USING neardup (sig); \
         GRANT SELECT ON docs TO PUBLIC; \
         ALTER TABLE docs OWNER TO {}; GRANT {} TO {}",
        owner.name, owner.name, member.name
    ))?;
    for index in ["docs_fp", "docs_sig"] {
        for call in [
            format!("SELECT rows FROM neardup_index_check('{index}', true)"),
            format!("SELECT rows FROM neardup_index_info('{index}')"),
        ] {
            for role in [&owner, &member] {
                assert_eq!(value::<i64>(&mut role.connect()?, &call)?, 10, "{call}");
            }
            // The statement fails without waiting for a lock.
            let mut locking = admin.transaction()?;
            locking.batch_execute("LOCK TABLE docs IN ACCESS EXCLUSIVE MODE")?;
            let refused = other.connect()?.simple_query(&call);
            assert_eq!(
                code(&refused),
                Some(SqlState::INSUFFICIENT_PRIVILEGE),
                "{call}"
            );
            locking.rollback()?;
        }
    }
    Ok(())
}

#[test]
fn the_script_takes_nothing_from_the_schema_that_it_runs_in() -> Outcome {
    let database = Database::create()?;
    let mut admin = database.connect()?;
    let attacker = Role::create(&database)?;
    // Makes every object that a plain role can leave under a name in the script: types, functions
    // and operators with the server's names, and shell operators.
    admin.batch_execute(&format!(
        "DROP EXTENSION neardup; CREATE SCHEMA trap AUTHORIZATION {}",
        attacker.name
    ))?;
    attacker.connect()?.batch_execute(
        "SET search_path = trap, pg_catalog; \
         CREATE DOMAIN trap.int4 AS pg_catalog.text; CREATE DOMAIN trap.bytea AS pg_catalog.text; \
         CREATE FUNCTION trap.btint4cmp(pg_catalog.int4, pg_catalog.int4) \
             RETURNS pg_catalog.int4 LANGUAGE sql IMMUTABLE AS 'SELECT 0'; \
         CREATE FUNCTION trap.hashint4(pg_catalog.int4) \
             RETURNS pg_catalog.int4 LANGUAGE sql IMMUTABLE AS 'SELECT 0'; \
         CREATE FUNCTION trap.btequalimage(oid) \
             RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'; \
         CREATE FUNCTION trap.eq(pg_catalog.int4, pg_catalog.int4) \
             RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'; \
         CREATE OPERATOR trap.= (LEFTARG = pg_catalog.int4, RIGHTARG = pg_catalog.int4, \
             FUNCTION = trap.eq); \
         CREATE FUNCTION trap.eq(text, text) \
             RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'; \
         CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.eq)",
    )?;
    admin.batch_execute("CREATE EXTENSION neardup WITH SCHEMA trap")?;
    let foreign = "\
        WITH members AS (SELECT classid, objid FROM pg_depend \
            WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'neardup') \
            AND deptype = 'e'), \
        own AS (SELECT classid, objid FROM members UNION \
            SELECT d.classid, d.objid FROM pg_depend d JOIN members m \
            ON d.refclassid = m.classid AND d.refobjid = m.objid AND d.deptype IN ('i', 'a')) \
        SELECT count(*) FROM own o JOIN pg_depend d ON d.classid = o.classid AND d.objid = o.objid \
        LEFT JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid \
        LEFT JOIN pg_operator q ON d.refclassid = 'pg_operator'::regclass AND q.oid = d.refobjid \
        LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid \
        WHERE coalesce(pronamespace, oprnamespace, typnamespace) = 'trap'::regnamespace \
        AND (d.refclassid, d.refobjid) NOT IN (SELECT classid, objid FROM own)";
    assert_eq!(value::<i64>(&mut admin, foreign)?, 0);
    admin.batch_execute("DROP EXTENSION neardup")?;

    // The script does not adopt a shell of an operator that it defines.
    attacker.connect()?.batch_execute(
        "CREATE FUNCTION trap.f(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'; \
         CREATE OPERATOR trap.!~ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.f, \
             COMMUTATOR = OPERATOR(trap.<~>))",
    )?;
    let refused = admin.batch_execute("CREATE EXTENSION neardup WITH SCHEMA trap");
    assert!(code(&refused).is_some(), "{refused:?}");
    Ok(())
}

#[test]
fn estimators_survive_operators_on_other_types() -> Outcome {
    let database = Database::create()?;
    // Older minor releases let any role name an estimator that is not the server's own; current
    // ones require a superuser.
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE SCHEMA own; SET search_path = own, public; \
         CREATE TABLE docs AS SELECT n AS i, n::bigint AS b, n::text AS t, n::float8 AS f, \
             (n % 3)::bigint::fingerprint AS fp, md5((n % 3)::text)::fingerprint128 AS wide, \
             repeat(md5((n % 3)::text), 2)::fingerprint256 AS wider, \
             minhash((n % 3)::text, shingle => 1) AS sig, ball((n % 3)::bigint, 3) AS ball, \
             minhash_ball(minhash((n % 3)::text, shingle => 1), 0.2) AS sig_ball, ARRAY[n] AS a \
             FROM generate_series(1, 3000) AS n; \
         ANALYZE docs",
    )?;
    let columns = [
        "i", "b", "t", "f", "fp", "wide", "wider", "sig", "ball", "sig_ball", "a",
    ];
    for left in columns {
        for right in columns {
            let types = format!(
                "SELECT format('%s, %s', format_type(l.atttypid, NULL), \
                     format_type(r.atttypid, NULL)) FROM pg_attribute l, pg_attribute r \
                 WHERE l.attrelid = 'docs'::regclass AND l.attname = '{left}' \
                 AND r.attrelid = 'docs'::regclass AND r.attname = '{right}'"
            );
            let types: String = value(&mut client, &types)?;
            let (left_type, right_type) = types.split_once(", ").unwrap_or_default();
            client.batch_execute(&format!(
                "BEGIN; CREATE FUNCTION own.f({types}) RETURNS boolean LANGUAGE plpgsql \
                     IMMUTABLE AS $$ BEGIN RETURN true; END $$; \
                 CREATE OPERATOR own.### (LEFTARG = {left_type}, RIGHTARG = {right_type}, \
                     FUNCTION = own.f, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel)"
            ))?;
            let constant = format!("(SELECT {right} FROM docs LIMIT 1)");
            let literal: String = value(
                &mut client,
                &format!("SELECT quote_literal({constant}::text)"),
            )?;
            for condition in [
                format!("SELECT FROM docs WHERE {left} ### {literal}::{right_type}"),
                format!("SELECT FROM docs WHERE {left} ### {constant}"),
                format!("SELECT FROM docs WHERE {left} ### NULL::{right_type}"),
                format!("SELECT FROM docs x JOIN docs y ON x.{left} ### y.{right}"),
                format!(
                    "SELECT FROM docs x WHERE EXISTS \
                     (SELECT FROM docs y WHERE x.{left} ### y.{right})"
                ),
            ] {
                client
                    .batch_execute(&format!("EXPLAIN {condition}"))
                    .map_err(|error| anyhow::anyhow!("{condition}: {error:?}"))?;
            }
            client.batch_execute("ROLLBACK")?;
        }
    }
    Ok(())
}
