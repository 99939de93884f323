//! Random calls of every SQL function with odd arguments. The server must stay up, and an error
//! must have a specific SQLSTATE, not the one of an internal error.
use crate::support::Outcome;
use crate::support::data::Random;
use anyhow::{Context, Result, bail, ensure};
use neardup_tests::{Database, setting};
use postgres::error::SqlState;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Error};
use std::collections::BTreeMap;

mod pools;
use pools::{Pools, pools};

/// The seed of the calls; `NEARDUP_TEST_FUZZ_SEED` sets another one.
const SEED: u64 = 10;
/// Calls in a run of the tests; `NEARDUP_TEST_FUZZ_CALLS` sets another number.
const CALLS: u64 = 20_000;
/// Further calls, only of functions that have refused all calls so far.
const MORE_CALLS: u64 = 1_000_000;

const SETUP: &str = "\
    CREATE TABLE t (id int PRIMARY KEY, body text, fp fingerprint, wide fingerprint256, \
        bits bigint, sig minhash_signature, site text); \
    INSERT INTO t SELECT n, 'some body of text ' || n, simhash('body ' || n), \
        repeat(md5(n::text), 2)::fingerprint256, n * 77, minhash('body of ' || n / 2), \
        's' || n % 3 \
        FROM generate_series(1, 300) AS n; \
    INSERT INTO t (id) VALUES (0), (-1); \
    CREATE INDEX t_fp ON t USING neardup (fp); \
    CREATE INDEX t_site ON t USING neardup (site, fp); \
    CREATE INDEX t_wide ON t USING neardup (wide); \
    CREATE INDEX t_bits ON t USING neardup (bits bigint_hamming_ops); \
    CREATE INDEX t_ball ON t USING neardup (ball(fp, 8)); \
    CREATE INDEX t_sig ON t USING neardup (sig); \
    CREATE INDEX t_part ON t USING neardup (fp) WHERE id % 2 = 0; \
    CREATE TABLE nothing (fp fingerprint, sig minhash_signature); \
    CREATE INDEX nothing_fp ON nothing USING neardup (fp); \
    CREATE INDEX nothing_sig ON nothing USING neardup (sig); \
    CREATE TABLE parts (id int, fp fingerprint) PARTITION BY RANGE (id); \
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (9); \
    CREATE INDEX parts_fp ON parts USING neardup (fp); \
    CREATE TABLE marked (id int PRIMARY KEY, fp fingerprint, dup int); \
    INSERT INTO marked SELECT n, (n / 3)::bigint::fingerprint, n % 7 \
        FROM generate_series(1, 60) AS n; \
    CREATE INDEX marked_fp ON marked USING neardup (fp); \
    CREATE TRIGGER fp BEFORE INSERT OR UPDATE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3'); \
    CREATE TRIGGER marks AFTER UPDATE OR DELETE ON marked FOR EACH ROW \
        EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3'); \
    CREATE VIEW v AS SELECT * FROM t; \
    CREATE MATERIALIZED VIEW m AS SELECT id, fp FROM t; \
    CREATE SEQUENCE s; \
    SET client_min_messages = error; SET statement_timeout = '20s'; \
    SET max_parallel_workers_per_gather = 0";

/// Signature of a function.
struct Function {
    name: String,
    arguments: Vec<String>,
    /// Leading arguments without a default.
    required: usize,
    is_aggregate: bool,
    /// True if its result has a text form.
    is_shown: bool,
}

fn functions(client: &mut Client) -> Result<Vec<Function>> {
    let rows = client.query(
        "SELECT proname::text, ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) t), \
             pronargs - pronargdefaults, prokind = 'a', \
             prorettype <> ALL (ARRAY['trigger', 'void', 'internal']::regtype[]) \
         FROM pg_proc p JOIN pg_depend d ON objid = p.oid AND classid = 'pg_proc'::regclass \
         WHERE deptype = 'e' \
         AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'neardup') \
         AND 'internal'::regtype <> ALL (proargtypes) ORDER BY p.oid::regprocedure::text",
        &[],
    )?;
    Ok(rows
        .iter()
        .map(|row| Function {
            name: row.get(0),
            arguments: row.get(1),
            required: row.get::<_, i16>(2) as usize,
            is_aggregate: row.get(3),
            is_shown: row.get(4),
        })
        .collect())
}

/// A call with random arguments.
fn call(function: &Function, pools: &Pools, random: &mut Random) -> String {
    let spare = function.arguments.len() - function.required;
    // Few optional arguments rather than many: with more arguments, a refusal is likelier.
    let [more, or_less] = [(); 2].map(|()| random.below(spare as u64 + 1) as usize);
    let count = function.required + more.min(or_less);
    let arguments: Vec<String> = (function.arguments[..count].iter())
        .map(|argument| {
            let pool = pools.get(argument.as_str()).map_or(&[][..], Vec::as_slice);
            // Any one type is valid.
            if argument == "anyelement" {
                return random.pick(pool);
            }
            // One argument in eight is NULL, and so is each argument of a type without a pool.
            if pool.is_empty() || random.below(8) == 0 {
                return format!("NULL::{argument}");
            }
            // The parser would apply a plain cast to hamming or jaccard to the literal's type.
            format!("({})::{argument}", random.pick(pool))
        })
        .collect();
    let call = format!("{}({})", function.name, arguments.join(", "));
    let shown = match (
        function.is_shown,
        function.is_aggregate && random.below(4) == 0,
    ) {
        (true, true) => format!("length(({call} OVER (ORDER BY i))::text)"),
        (true, false) => format!("length(({call})::text)"),
        (false, _) => call,
    };
    match function.is_aggregate {
        true => format!(
            "SELECT {shown} FROM generate_series(1, {}) i",
            random.below(4)
        ),
        false => format!("SELECT {shown} LIMIT 50"),
    }
}

/// Asserts that an error is meaningful to a user, and that the server is up.
fn check(what: &str, error: &Error) -> Outcome {
    let Some(code) = error.code() else {
        bail!("the server closed the connection at {what}: {error:?}");
    };
    ensure!(
        *code != SqlState::INTERNAL_ERROR && !code.code().starts_with("XX"),
        "{what}: {error:?}"
    );
    ensure!(
        *code != SqlState::QUERY_CANCELED,
        "{what} takes more than 20 s"
    );
    Ok(())
}

#[test]
fn random_calls_of_every_function_end_well() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    let functions = functions(&mut client)?;
    assert!(functions.len() > 200, "{}", functions.len());
    let (calls, seed) = (setting("FUZZ_CALLS", CALLS)?, setting("FUZZ_SEED", SEED)?);
    let (mut random, pools) = (Random::new(seed), pools());
    let mut answered: BTreeMap<&str, u64> = BTreeMap::new();
    // Calls each function in turn, so that chance omits none. Then repeats functions without a
    // result so far, because few arguments suit them.
    let more = MORE_CALLS * u64::from(calls >= 8 * functions.len() as u64);
    for n in 0..calls + more {
        let function = &functions[(n % functions.len() as u64) as usize];
        let has_answered = answered.get(function.name.as_str()).is_some_and(|&n| n > 0);
        if n >= calls && has_answered {
            continue;
        }
        let statement = call(function, &pools, &mut random);
        let answers: &mut u64 = answered.entry(function.name.as_str()).or_default();
        match client.simple_query(&statement) {
            Ok(_) => *answers += 1,
            Err(error) => check(&statement, &error)?,
        }
    }
    // A function that refuses every call is not tested at all.
    let silent: Vec<_> = (answered.iter())
        .filter(|(_, answers)| **answers == 0)
        .collect();
    if calls >= 8 * functions.len() as u64 {
        assert!(
            silent.iter().all(|(name, _)| **name == "neardup_dedup"),
            "{silent:?}"
        );
    }
    for index in [
        "t_fp", "t_site", "t_wide", "t_bits", "t_ball", "t_sig", "t_part",
    ] {
        client.batch_execute(&format!("SELECT neardup_index_check('{index}', true)"))?;
    }
    Ok(())
}

#[test]
fn functions_of_the_planner_cannot_be_called() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let calls: Vec<String> = client
        .query_one(
            "SELECT array_agg(format('SELECT %s(%s)', proname, (SELECT string_agg(\
                 CASE t WHEN 'internal'::regtype THEN 'NULL' \
                 ELSE format('NULL::%s', format_type(t, NULL)) END, ', ') \
                 FROM unnest(proargtypes) t))) \
             FROM pg_proc p JOIN pg_depend d ON objid = p.oid AND classid = 'pg_proc'::regclass \
             WHERE deptype = 'e' \
             AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'neardup') \
             AND 'internal'::regtype = ANY (proargtypes)",
            &[],
        )?
        .get(0);
    assert!(calls.len() > 30, "{}", calls.len());
    for call in calls {
        match client.simple_query(&call) {
            // For NULL, the server returns NULL without calling a strict function.
            Ok(_) => (),
            Err(error) => check(&call, &error)?,
        }
    }
    Ok(())
}

/// Bytes sent as the binary form of a parameter, for any type.
#[derive(Debug)]
struct Raw(Vec<u8>);

impl ToSql for Raw {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Changes, cuts or lengthens bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(4) {
        match random.below(4) {
            0 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
            1 => bytes.extend(random.bits().to_le_bytes()),
            _ if bytes.is_empty() => (),
            _ => {
                // Mostly in the header, which has lengths and kinds.
                let end = match random.below(2) {
                    0 => bytes.len(),
                    _ => bytes.len().min(24),
                };
                let at = random.below(end as u64) as usize;
                bytes[at] = {
                    let any = random.bits() as u8;
                    random.pick(&[0, 1, 0x7f, 0x80, 0xff, any])
                };
            }
        }
    }
}

#[test]
fn random_binary_input_ends_well() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let pools = pools();
    let calls = setting("FUZZ_CALLS", CALLS)?;
    let mut random = Random::new(setting("FUZZ_SEED", SEED)?);
    for (name, pool) in &pools {
        if !name.contains("ball") && !name.contains("fingerprint") && !name.contains("signature") {
            continue;
        }
        // An accepted value has a text form, equals itself and hashes.
        let statement = client.prepare(&format!(
            "SELECT x::text::{name} = x, hash_record(ROW(x)) FROM (SELECT $1::{name} AS x) q"
        ))?;
        let mut accepted = 0;
        for _ in 0..calls / 10 {
            let valid = random.pick(pool);
            let send = format!("SELECT _neardup_{name}_send(({valid})::{name})");
            let mut bytes: Vec<u8> = client.query_one(&send, &[])?.get(0);
            mutate(&mut bytes, &mut random);
            match client.query_one(&statement, &[&Raw(bytes.clone())]) {
                Ok(row) => {
                    accepted += 1;
                    ensure!(row.get::<_, bool>(0), "{name}: {bytes:02x?}");
                }
                Err(error) => check(name, &error).with_context(|| format!("{bytes:02x?}"))?,
            }
        }
        assert!(accepted > 0, "{name}: nothing is accepted");
    }
    Ok(())
}
