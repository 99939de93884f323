//! Every public function with a numeric parameter, called with the numbers that drivers send.
//!
//! A driver chooses the type of a parameter: psycopg sends smallint for 1, asyncpg and
//! node-postgres leave the type to the server. A call must return what it returns with a literal,
//! or raise an error. It must never choose another function or meaning.
use super::programs::{Call, Value, in_node, in_python};
use crate::support::Outcome;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::types::{ToSql, Type};
use postgres::{Client, SimpleQueryMessage};
use std::collections::{HashMap, HashSet};

/// A table with both kinds of columns: rows 1 and 2 have equal values, the others are unrelated.
const TABLE: &str = "CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint, \
        sig minhash_signature GENERATED ALWAYS AS (minhash(body, hashes => 64)) STORED); \
    INSERT INTO docs SELECT id, body, ('x' || left(md5(body), 16))::bit(64)::fingerprint \
        FROM generate_series(1, 60) AS id, LATERAL (SELECT string_agg(md5(greatest(id, 2) || '/' \
            || n), ' ') AS body FROM generate_series(1, 12) AS n) AS b; \
    CREATE INDEX ON docs USING neardup (fp); \
    CREATE INDEX ON docs USING neardup (sig) WITH (hashes = 64); \
    CREATE TABLE unrelated AS SELECT * FROM docs WHERE id <> 1; \
    ALTER TABLE unrelated ADD PRIMARY KEY (id); \
    CREATE INDEX ON unrelated USING neardup (fp); \
    CREATE INDEX ON unrelated USING neardup (sig) WITH (hashes = 64)";

/// Statements that delete rows if an integer becomes a similarity or a distance of signatures.
const DELETES: [&str; 2] = [
    "WITH gone AS (DELETE FROM unrelated AS t USING neardup_clusters('unrelated', {}) AS c \
        WHERE t.ctid = c.member AND c.member <> c.representative RETURNING 1) \
     SELECT count(*)::text FROM gone",
    "WITH gone AS (DELETE FROM unrelated AS t \
        USING neardup_clusters_by_key(NULL::int, 'unrelated', {}) AS c \
        WHERE t.id = c.member AND c.member <> c.representative RETURNING 1) \
     SELECT count(*)::text FROM gone",
];

const FP: &str = "'0123456789abcdef'::fingerprint";
const FP128: &str = "repeat('0123456789abcdef', 2)::fingerprint128";
const FP256: &str = "repeat('0123456789abcdef', 4)::fingerprint256";
const HASH: &str = "81985529216486895::bigint";
const SIG: &str = "minhash('a b c d e f g', hashes => 16)";
const BODY: &str = "'one two three four five six seven eight nine ten'";
const OTHER: &str = "'one two three four five six seven eight nine eleven'";
const SET2: &str = "(SELECT neardup_common_features(body, 0.5, 'word', 2) FROM docs)";
const SET3: &str = "(SELECT neardup_common_features(body, 0.5, 'word', 3) FROM docs)";

/// Calls with the arguments as SQL, in the order of the parameters; an empty argument is omitted.
/// Every numeric parameter of every public function has a number in one of the calls.
const CALLS: &[(&str, &[&str])] = &[
    ("fingerprint(smallint)", &["5"]),
    ("fingerprint(integer)", &["5"]),
    ("fingerprint(numeric)", &["5"]),
    ("fingerprint128(smallint)", &["5"]),
    ("fingerprint128(integer)", &["5"]),
    ("fingerprint128(bigint)", &["5"]),
    ("fingerprint128(numeric)", &["5"]),
    ("fingerprint256(smallint)", &["5"]),
    ("fingerprint256(integer)", &["5"]),
    ("fingerprint256(bigint)", &["5"]),
    ("fingerprint256(numeric)", &["5"]),
    ("ball(text,integer)", &["'0123456789abcdef'", "3"]),
    ("ball(fingerprint,integer)", &[FP, "3"]),
    ("ball(fingerprint128,integer)", &[FP128, "3"]),
    ("ball(fingerprint256,integer)", &[FP256, "3"]),
    ("ball(bigint,integer)", &[HASH, "3"]),
    ("ball(bigint,integer)", &["7", "3"]),
    (
        "minhash_ball(minhash_signature,double precision)",
        &[SIG, "0.2"],
    ),
    ("fingerprint_similarity(bigint,bigint)", &["7", "5"]),
    (
        "neardup_radius(text,double precision)",
        &["'minhash64'", "0.8"],
    ),
    (
        "simhash(text,text,integer,text,boolean,text,text)",
        &[BODY, "'word'", "2"],
    ),
    (
        "simhash128(text,text,integer,text,boolean,text,text)",
        &[BODY, "'word'", "2"],
    ),
    (
        "simhash_without(text,bytea,text,integer,text,boolean,text,text)",
        &[BODY, SET2, "'word'", "2"],
    ),
    (
        "simhash128_without(text,bytea,text,integer,text,boolean,text,text)",
        &[BODY, SET2, "'word'", "2"],
    ),
    (
        "minhash64(text,text,integer,boolean,text,text)",
        &[BODY, "'word'", "2"],
    ),
    (
        "minhash128(text,text,integer,boolean,text,text)",
        &[BODY, "'word'", "2"],
    ),
    (
        "minhash64_without(text,bytea,text,integer,boolean,text,text)",
        &[BODY, SET3, "'word'", "3"],
    ),
    (
        "minhash128_without(text,bytea,text,integer,boolean,text,text)",
        &[BODY, SET3, "'word'", "3"],
    ),
    (
        "minhash(text,text,integer,boolean,text,text,integer,bigint,text)",
        &[BODY, "'word'", "2", "", "", "", "16", "7"],
    ),
    (
        "minhash_without(text,bytea,text,integer,boolean,text,text,integer,bigint,text)",
        &[BODY, SET3, "'word'", "3", "", "", "", "16", "7"],
    ),
    (
        "minhash(text[],integer,bigint,text)",
        &["ARRAY['a', 'b']", "16", "7"],
    ),
    (
        "minhash(tsvector,integer,bigint,text)",
        &["'a b'::tsvector", "16", "7"],
    ),
    ("minhash_agg(text,integer)", &["'w' || n", "16"]),
    ("minhash_agg(text,integer,bigint)", &["'w' || n", "16", "7"]),
    (
        "minhash_agg(text,integer,bigint,text)",
        &["'w' || n", "16", "7", "'neardup1'"],
    ),
    (
        "minhash_from_values(bigint[],bigint,text)",
        &["array_fill(7, ARRAY[16])::bigint[]", "7"],
    ),
    ("simhash_agg(text,double precision)", &["'w' || n", "2"]),
    ("simhash128_agg(text,double precision)", &["'w' || n", "2"]),
    (
        "neardup_features(text,text,integer,text,boolean,text,text)",
        &[BODY, "'word'", "2"],
    ),
    (
        "neardup_explain(text,text,text,integer,text,boolean,text,text,integer,text)",
        &[BODY, OTHER, "'word'", "2", "", "", "", "", "3"],
    ),
    (
        "jaccard_similarity(text,text,text,integer,boolean,text,text)",
        &[BODY, OTHER, "'word'", "2"],
    ),
    (
        "containment(text,text,text,integer,boolean,text,text)",
        &[BODY, OTHER, "'word'", "2"],
    ),
    (
        "longest_sentences_hash(text,integer)",
        &["'One. Two. Three. Four.'", "2"],
    ),
    (
        "neardup_common_features(text,double precision)",
        &[BODY, "0.5"],
    ),
    (
        "neardup_common_features(text,double precision,text,integer)",
        &[BODY, "0.5", "'word'", "2"],
    ),
    (
        "neardup_common_features(text,double precision,text,integer,boolean,text,text)",
        &[BODY, "0.5", "'word'", "2", "false", "'keep'", "'keep'"],
    ),
    (
        "passages(text,integer,text,integer,boolean,text,text)",
        &[BODY, "8", "'word'", "2"],
    ),
    (
        "passages_without(text,bytea,integer,text,integer,boolean,text,text)",
        &[BODY, SET2, "8", "'word'", "2"],
    ),
    (
        "shared_passages(text,text,integer,text,boolean,text,text)",
        &[BODY, OTHER, "3"],
    ),
    ("neardup_diff_html(text,text,integer)", &[BODY, OTHER, "1"]),
    ("neardup_diff_ansi(text,text,integer)", &[BODY, OTHER, "1"]),
    (
        "neardup_pairs(regclass,integer,double precision,name,text,boolean,text,text,interval)",
        &["'docs'", "1"],
    ),
    (
        "neardup_pairs(regclass,integer,double precision,name,text,boolean,text,text,interval)",
        &["'docs'", "", "0.9"],
    ),
    (
        "neardup_clusters(regclass,integer,double precision,text,text,name,text,boolean,boolean,\
         text,text,interval)",
        &["'docs'", "1"],
    ),
    (
        "neardup_clusters(regclass,integer,double precision,text,text,name,text,boolean,boolean,\
         text,text,interval)",
        &["'docs'", "NULL", "0.9"],
    ),
    (
        "neardup_pairs_by_key(anyelement,regclass,integer,double precision,text,name,text,boolean,\
         text,text,interval)",
        &["NULL::int", "'docs'", "1"],
    ),
    (
        "neardup_pairs_by_key(anyelement,regclass,integer,double precision,text,name,text,boolean,\
         text,text,interval)",
        &["NULL::int", "'docs'", "", "0.9"],
    ),
    (
        "neardup_clusters_by_key(anyelement,regclass,integer,double precision,text,text,text,name,\
         text,boolean,boolean,text,text,interval)",
        &["NULL::int", "'docs'", "1"],
    ),
    (
        "neardup_clusters_by_key(anyelement,regclass,integer,double precision,text,text,text,name,\
         text,boolean,boolean,text,text,interval)",
        &["NULL::int", "'docs'", "", "0.9"],
    ),
    (
        "neardup_repeated_passages(anyelement,regclass,text,integer,text,text,text,text,boolean,\
         text,text)",
        &["NULL::int", "'docs'", "'body'", "3", "'id'"],
    ),
    (
        "neardup_distance_histogram(regclass,integer,double precision,integer,name,integer,boolean,\
         text)",
        &["'docs'", "1", "", "30", "", "2"],
    ),
    (
        "neardup_distance_histogram(regclass,integer,double precision,integer,name,integer,boolean,\
         text)",
        &["'docs'", "", "0.9"],
    ),
    (REPORT, &["'docs'", "1"]),
    (REPORT, &["'docs'", "", "0.9"]),
    (
        REPORT,
        &[
            "'docs'", "1", "", "", "", "", "", "", "", "", "", "2", "3", "50", "40",
        ],
    ),
    (
        "neardup_evaluate(double precision[],boolean[],double precision[],double precision)",
        &["'{1,2}'", "'{t,f}'", "", "0.5"],
    ),
    (
        "neardup_setup(regclass,name,text,double precision,text[],text)",
        &["'docs'", "'body'", "'search'", "0.9"],
    ),
    (
        "neardup_tune(double precision,double precision,integer,bigint)",
        &["0.8", "0.9", "64", "1000"],
    ),
    (
        "neardup_tune_radius(integer,integer,bigint,integer)",
        &["64", "1", "1000", "2"],
    ),
    ("neardup_keys(text,integer)", &["'0123456789abcdef'", "3"]),
    (
        "neardup_keys(text,integer,integer)",
        &["'0123456789abcdef'", "3", "5"],
    ),
    ("neardup_keys(fingerprint,integer)", &[FP, "3"]),
    ("neardup_keys(fingerprint,integer,integer)", &[FP, "3", "5"]),
    ("neardup_keys(fingerprint128,integer)", &[FP128, "3"]),
    (
        "neardup_keys(fingerprint128,integer,integer)",
        &[FP128, "3", "5"],
    ),
    ("neardup_keys(fingerprint256,integer)", &[FP256, "3"]),
    (
        "neardup_keys(fingerprint256,integer,integer)",
        &[FP256, "3", "5"],
    ),
    ("neardup_keys(bigint,integer)", &["7", "3"]),
    ("neardup_keys(bigint,integer,integer)", &["7", "3", "5"]),
    (
        "neardup_band_keys(text,integer,integer)",
        &["'0123456789abcdef'", "4", "16"],
    ),
    (
        "neardup_band_keys(fingerprint,integer,integer)",
        &[FP, "4", "16"],
    ),
    (
        "neardup_band_keys(fingerprint128,integer,integer)",
        &[FP128, "4", "16"],
    ),
    (
        "neardup_band_keys(fingerprint256,integer,integer)",
        &[FP256, "4", "16"],
    ),
    (
        "neardup_band_keys(bigint,integer,integer)",
        &["7", "4", "16"],
    ),
    (
        "neardup_band_keys(minhash_signature,integer,integer)",
        &[SIG, "4", "2"],
    ),
    (
        "minhash_keys(minhash_signature,double precision)",
        &[SIG, "0.8"],
    ),
    (
        "minhash_keys(minhash_signature,double precision,integer)",
        &[SIG, "0.8", "4"],
    ),
    (
        "neardup_meet(bigint,fingerprint,fingerprint,integer)",
        &["6872999467700036", FP, FP, "3"],
    ),
    (
        "neardup_meet(bigint,fingerprint,fingerprint,integer,integer)",
        &["6926756267524739", FP, FP, "3", "5"],
    ),
    (
        "neardup_meet(bigint,fingerprint128,fingerprint128,integer)",
        &["78928044465142931", FP128, FP128, "3"],
    ),
    (
        "neardup_meet(bigint,fingerprint128,fingerprint128,integer,integer)",
        &["78960867602751010", FP128, FP128, "3", "5"],
    ),
    (
        "neardup_meet(bigint,fingerprint256,fingerprint256,integer)",
        &["150986152382424483", FP256, FP256, "3"],
    ),
    (
        "neardup_meet(bigint,fingerprint256,fingerprint256,integer,integer)",
        &["151015678556516632", FP256, FP256, "3", "5"],
    ),
    (
        "neardup_meet(bigint,bigint,bigint,integer)",
        &["6860952557322240", "6", "5", "3"],
    ),
    (
        "neardup_meet(bigint,bigint,bigint,integer,integer)",
        &["6896136929411072", "6", "5", "3", "5"],
    ),
    (
        "minhash_meet(bigint,minhash_signature,minhash_signature,double precision)",
        &["981783074499416", SIG, SIG, "0.8"],
    ),
    (
        "minhash_meet(bigint,minhash_signature,minhash_signature,double precision,integer)",
        &["981783074499416", SIG, SIG, "0.8", "4"],
    ),
];

const REPORT: &str = "neardup_report(regclass,integer,double precision,text,text,text,text,name,\
    text,integer[],double precision[],integer,integer,integer,integer,boolean)";

/// The public functions with a numeric parameter, except functions that operators, indexes or the
/// server itself call.
const FUNCTIONS: &str = "SELECT p.oid::regprocedure::text, p.proname::text, p.prokind = 'a', \
        ARRAY(SELECT coalesce(p.proargnames[i], '') FROM generate_series(1, p.pronargs) AS i), \
        ARRAY(SELECT t IN (SELECT oid FROM pg_type WHERE typname IN \
                ('int2', 'int4', 'int8', 'float4', 'float8', 'numeric')) \
            FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS u (t, i) ORDER BY i), \
        ARRAY(SELECT t IN ('float4'::regtype, 'float8'::regtype, 'numeric'::regtype) \
            FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS u (t, i) ORDER BY i) \
    FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid \
    JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid \
    WHERE e.extname = 'neardup' AND d.deptype = 'e' AND p.proname !~ '^_' \
    AND p.proargtypes::oid[] && '{int2,int4,int8,float4,float8,numeric}'::regtype[]::oid[] \
    AND NOT p.proargtypes::oid[] && '{internal,cstring}'::regtype[]::oid[] \
    AND NOT EXISTS (SELECT FROM pg_operator WHERE oprcode = p.oid) \
    AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = p.oid)";

/// Function as the catalog describes it.
struct Function {
    name: String,
    is_aggregate: bool,
    names: Vec<String>,
    is_numeric: Vec<bool>,
    has_fractions: Vec<bool>,
}

/// Query with one number, at the position of `{}`.
struct Case {
    query: String,
    value: String,
    /// Result with the number as a literal; `None` for an error.
    expected: Option<String>,
}

fn functions(client: &mut Client) -> Result<HashMap<String, Function>> {
    let rows = client.query(FUNCTIONS, &[])?;
    let function = |row: &postgres::Row| {
        let function = Function {
            name: row.get(1),
            is_aggregate: row.get(2),
            names: row.get(3),
            is_numeric: row.get(4),
            has_fractions: row.get(5),
        };
        (row.get(0), function)
    };
    Ok(rows.iter().map(function).collect())
}

impl Function {
    /// Returns the query for the result of a call as text.
    fn query(&self, arguments: &[&str]) -> String {
        let mut listed = Vec::new();
        let mut is_positional = true;
        for (argument, name) in arguments.iter().zip(&self.names) {
            is_positional &= !argument.is_empty();
            match (argument.is_empty(), is_positional) {
                (true, _) => (),
                (false, true) => listed.push((*argument).to_owned()),
                (false, false) => listed.push(format!("{name} => {argument}")),
            }
        }
        let call = format!("{}({})", self.name, listed.join(", "));
        match self.is_aggregate {
            true => format!("SELECT {call}::text FROM generate_series(1, 4) AS n"),
            // A report contains the minute of its creation.
            false => format!(
                "SELECT string_agg(regexp_replace(r::text, 'As of [^<]*', ''), ';' \
                     ORDER BY r::text COLLATE \"C\") FROM {call} AS r"
            ),
        }
    }
}

/// The first value of a query as text; `None` for an error.
fn text(client: &mut Client, query: &str) -> Option<String> {
    let messages = client.simple_query(query).ok()?;
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
        _ => None,
    })
}

fn is_whole(value: &str) -> bool {
    !value.contains('.')
}

/// Returns all cases. Fails if the calls omit a numeric parameter of a public function.
fn cases(client: &mut Client) -> Result<Vec<Case>> {
    let functions = functions(client)?;
    let mut left: HashSet<(&str, usize)> = HashSet::new();
    for (signature, function) in &functions {
        let numbers = (0..).zip(&function.is_numeric);
        left.extend(
            numbers
                .filter(|(_, is)| **is)
                .map(|(n, _)| (signature.as_str(), n)),
        );
    }
    let mut cases = Vec::new();
    for (signature, arguments) in CALLS {
        let function = functions
            .get(*signature)
            .with_context(|| format!("no public function {signature}"))?;
        for (n, argument) in arguments.iter().enumerate() {
            if !function.is_numeric[n] || argument.parse::<f64>().is_err() {
                continue;
            }
            left.remove(&(*signature, n));
            // An integer can be a similarity or a share as well.
            let whole: &[&str] = if function.has_fractions[n] {
                &["1", "0"]
            } else {
                &[]
            };
            for value in [argument].into_iter().chain(whole) {
                let mut arguments = arguments.to_vec();
                arguments[n] = value;
                let literal = function.query(&arguments);
                let expected = text(client, &literal);
                let is_own = value == argument;
                ensure!(expected.is_some() || !is_own, "{literal} is an error");
                arguments[n] = "{}";
                cases.push(Case {
                    query: function.query(&arguments),
                    value: (*value).to_owned(),
                    expected,
                });
            }
        }
    }
    ensure!(left.is_empty(), "no call has a number for {left:?}");
    for query in DELETES {
        let expected = text(client, &query.replace("{}", "1"));
        ensure!(expected.as_deref() == Some("0"), "{query}: {expected:?}");
        cases.push(Case {
            query: query.to_owned(),
            value: "1".to_owned(),
            expected,
        });
    }
    Ok(cases)
}

/// A database with the table, a connection and the cases.
fn prepared() -> Result<(Database, Client, Vec<Case>)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    let cases = cases(&mut client)?;
    Ok((database, client, cases))
}

/// Compares the results of calls. An error is allowed, but a third of the calls must succeed.
fn compare(found: impl Iterator<Item = (String, Option<String>, Option<String>)>) -> Outcome {
    let (mut all, mut returned) = (0, 0);
    for (what, found, expected) in found {
        all += 1;
        if let Some(found) = found {
            returned += 1;
            let is_same = expected.as_ref() == Some(&found);
            let start = |text: &str| text.chars().take(200).collect::<String>();
            ensure!(
                is_same,
                "{what}: {:?} instead of {:?}",
                start(&found),
                expected.as_deref().map(start)
            );
        }
    }
    ensure!(
        returned * 2 > all,
        "only {returned} of {all} calls returned"
    );
    Ok(())
}

/// Every type that a driver can use for a number, and no type.
#[test]
fn a_number_of_any_type_means_what_the_literal_means() -> Outcome {
    let (_database, mut client, cases) = prepared()?;
    let mut found = Vec::new();
    for case in &cases {
        let of_whole = ["int2", "int4", "int8", "float4", "float8", "numeric"];
        let types = match is_whole(&case.value) {
            true => &of_whole[..],
            false => &of_whole[4..],
        };
        let typed = (types.iter()).map(|name| format!("{}::{name}", case.value));
        for value in typed.chain([format!("'{}'", case.value)]) {
            let query = case.query.replace("{}", &value);
            let result = text(&mut client, &query);
            found.push((query, result, case.expected.clone()));
        }
    }
    compare(found.into_iter())
}

#[test]
fn rust_sends_numbers_to_every_function() -> Outcome {
    let (_database, mut client, cases) = prepared()?;
    let mut found = Vec::new();
    for case in &cases {
        let result = sent(&mut client, case);
        found.push((case.query.clone(), result, case.expected.clone()));
    }
    compare(found.into_iter())
}

/// Returns the result for a number of the type that the server reports; `None` for an error.
fn sent(client: &mut Client, case: &Case) -> Option<String> {
    let statement = client.prepare(&case.query.replace("{}", "$1")).ok()?;
    let value = &case.value;
    let parameter: Box<dyn ToSql + Sync> = match statement.params()[0] {
        Type::INT2 => Box::new(value.parse::<i16>().ok()?),
        Type::INT4 => Box::new(value.parse::<i32>().ok()?),
        Type::INT8 => Box::new(value.parse::<i64>().ok()?),
        Type::FLOAT4 => Box::new(value.parse::<f32>().ok()?),
        Type::FLOAT8 => Box::new(value.parse::<f64>().ok()?),
        _ => return None,
    };
    let row = client.query_one(&statement, &[&*parameter]).ok()?;
    Some(row.get::<_, Option<String>>(0).unwrap_or("NULL".to_owned()))
}

/// The cases as calls with the number as their only parameter.
fn calls(cases: &[Case]) -> Vec<Call<'_>> {
    fn call(case: &Case) -> Call<'_> {
        Call {
            query: case.query.replace("{}", "$1"),
            values: vec![Value::Number(&case.value)],
        }
    }
    cases.iter().map(call).collect()
}

fn compare_with(driver: &str, cases: &[Case], results: Option<Vec<Option<String>>>) -> Outcome {
    let Some(results) = results else {
        return Ok(());
    };
    compare(cases.iter().zip(results).map(|(case, result)| {
        let what = format!("{driver}, {}, {}", case.query, case.value);
        (what, result, case.expected.clone())
    }))
}

fn by_python(driver: &str) -> Outcome {
    let (database, _client, cases) = prepared()?;
    let results = in_python(&database, &calls(&cases), driver)?;
    compare_with(driver, &cases, results)
}

#[test]
fn psycopg_sends_numbers_as_text_to_every_function() -> Outcome {
    by_python("psycopg-text")
}

#[test]
fn psycopg_sends_numbers_in_binary_to_every_function() -> Outcome {
    by_python("psycopg-binary")
}

#[test]
fn asyncpg_sends_numbers_to_every_function() -> Outcome {
    by_python("asyncpg")
}

#[test]
fn node_postgres_sends_numbers_to_every_function() -> Outcome {
    let (database, _client, cases) = prepared()?;
    let results = in_node(&database, &calls(&cases))?;
    compare_with("node-postgres", &cases, results)
}
