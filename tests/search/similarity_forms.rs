//! Conditions on functions of a similarity, such as `1 - s <= 0.2`. The index returns the rows of
//! a stored similarity, at and next to every bound where the result changes.
use crate::support::Outcome;
use crate::support::clients::code;
use crate::support::oracle::plan;
use crate::support::table::{FINGERPRINT, TYPES, Type, value};
use anyhow::{Result, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::error::SqlState;

/// Conditions on a similarity `{s}`, with its bound `{b}` and the bound of the function, `{x}`.
const FORMS: [(&str, &str); 22] = [
    ("1 - {s} <= {x}", "1 - {b}"),
    ("1 - {s} < {x}", "1 - {b}"),
    ("{x} > 1 - {s}", "1 - {b}"),
    ("NOT 1 - {s} > {x}", "1 - {b}"),
    ("100 * {s} >= {x}", "100 * {b}"),
    ("{s} * 100 > {x}", "{b} * 100"),
    ("{x} <= {s} * 0.3 + 0.1", "{b} * 0.3 + 0.1"),
    ("{s} / 3 >= {x}", "{b} / 3"),
    ("-{s} <= {x}", "-{b}"),
    ("(1 - {s}) * 100 <= {x}", "(1 - {b}) * 100"),
    ("1 - {s} BETWEEN 0.01 AND {x}", "1 - {b}"),
    ("coalesce({s}, 0) >= {x}", "greatest({b}, 1e-9)"),
    ("1 - coalesce({s}, 0) <= {x}", "least(1 - {b}, 1 - 1e-9)"),
    ("coalesce(1 - {s}, 1) < {x}", "1 - {b}"),
    ("{s}::numeric >= {x}", "{b}::numeric"),
    ("round({s}::numeric, 2) >= {x}", "round({b}::numeric, 2)"),
    ("100 * {s}::numeric > {x}", "100 * {b}::numeric"),
    ("({s} * 100)::int >= {x}", "({b} * 100)::int"),
    ("{s}::float4 >= {x}", "{b}::float4"),
    ("{s} = {x}", "{b}"),
    ("1 - {s} = {x}", "1 - {b}"),
    ("{s} IN ({x}, 1.0)", "{b}"),
];

/// Makes a database with rows at every distance from a value `q`. The table stores the similarity.
/// Returns also the SQL of the similarity.
fn distances(fp: Type) -> Result<(Database, Client, String)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let q = fp.literal(0x0123_4567_89ab_cdef);
    client.batch_execute(&format!("CREATE TABLE docs (id int, fp {})", fp.name))?;
    for distance in 0..=64 {
        let bits = 0x0123_4567_89ab_cdef ^ ((1_u128 << distance) - 1) as u64;
        let insert = format!("INSERT INTO docs VALUES ({distance}, {})", fp.literal(bits));
        client.batch_execute(&insert)?;
    }
    client.batch_execute(&format!(
        "INSERT INTO docs (id) VALUES (1000); \
         CREATE INDEX docs_fp ON docs USING neardup (fp {})",
        fp.opclass
    ))?;
    let similarity = format!("fingerprint_similarity(fp, {q})");
    finish(&mut client, &similarity)?;
    Ok((database, client, similarity))
}

/// The same with signatures of 40 values.
fn signatures() -> Result<(Database, Client, String)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT id, minhash_from_values(array(SELECT \
             CASE WHEN n <= id THEN 1000 + id ELSE n END::bigint \
             FROM generate_series(1, 40) n)) AS fp FROM generate_series(0, 40) id; \
         INSERT INTO docs (id) VALUES (1000); \
         CREATE INDEX docs_fp ON docs USING neardup (fp) WITH (hashes = 40)",
    )?;
    let q: String = value(&mut client, "SELECT fp::text FROM docs WHERE id = 0")?;
    let similarity = format!("minhash_similarity(fp, '{q}')");
    finish(&mut client, &similarity)?;
    Ok((database, client, similarity))
}

/// Stores the similarity, and makes a function that compares two conditions.
fn finish(client: &mut Client, similarity: &str) -> Result<()> {
    client.batch_execute(&format!(
        "ALTER TABLE docs ADD s float8; UPDATE docs SET s = {similarity}; \
         CREATE FUNCTION found(condition text) RETURNS text LANGUAGE plpgsql AS $$ \
         DECLARE ids text; BEGIN \
             EXECUTE 'SELECT string_agg(id::text, '' '' ORDER BY id) FROM docs WHERE ' \
             || condition INTO ids; RETURN coalesce(ids, ''); END $$"
    ))?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    client
        .batch_execute("SET jit = off; SET enable_seqscan = off; SET enable_indexonlyscan = off")?;
    Ok(())
}

/// The similarities of the rows, and the adjacent numbers, in SQL.
fn bounds(client: &mut Client) -> Result<Vec<String>> {
    let known: Vec<f64> = value(
        client,
        "SELECT array_agg(DISTINCT s) FROM docs WHERE s IS NOT NULL",
    )?;
    // Skips the numbers next to 0, because the server's multiplication would underflow.
    let beside = known.iter().flat_map(|s| match s {
        0.0 => [-1e-30, 0.0, 1e-30],
        s => [s.next_down(), *s, s.next_up()],
    });
    Ok(beside.map(|s| format!("'{s:e}'::float8")).collect())
}

/// Asserts that all forms return the same rows as the stored similarity, at all bounds.
fn check(client: &mut Client, similarity: &str) -> Outcome {
    let bounds = bounds(client)?;
    let (mut compared, mut rows) = (0, 0);
    for (form, at) in FORMS {
        for bound in &bounds {
            let x: String = value(
                client,
                &format!("SELECT ({})::text", at.replace("{b}", bound)),
            )?;
            let x = if at.contains("numeric") || at.contains("int") {
                x
            } else {
                format!("'{x}'::float8")
            };
            let condition = form.replace("{x}", &x);
            let written = condition.replace("{s}", similarity);
            // A bound of the plain similarity right above 1 may be rejected.
            let [found, expected] = [written.clone(), condition.replace("{s}", "s")]
                .map(|it| value::<String>(client, &format!("SELECT found($c${it}$c$)")));
            let (found, expected) = (found?, expected?);
            ensure!(
                found == expected,
                "{written}: {found} instead of {expected}"
            );
            compared += 1;
            rows += found.split_whitespace().count();
        }
        let at = at.replace("{b}", "0.9");
        let at: String = value(client, &format!("SELECT ({at})::text"))?;
        let written = form.replace("{x}", &at).replace("{s}", similarity);
        let shown = plan(client, &format!("SELECT id FROM docs WHERE {written}"))?;
        ensure!(
            shown.contains("on docs_fp") || shown.contains("using docs_fp"),
            "{written}:\n{shown}"
        );
    }
    ensure!(compared > 1000 && rows > 1000, "{compared} {rows}");
    Ok(())
}

#[test]
fn every_bound_of_fingerprints_is_exact() -> Outcome {
    for fp in TYPES {
        let (_database, mut client, similarity) = distances(fp)?;
        check(&mut client, &similarity)?;
    }
    Ok(())
}

#[test]
fn every_bound_of_signatures_is_exact() -> Outcome {
    let (_database, mut client, similarity) = signatures()?;
    check(&mut client, &similarity)?;
    // The distance instead of the similarity has other rounding errors.
    let distance = similarity.replace("minhash_similarity(fp, ", "(fp <%> ");
    client.batch_execute(&format!("UPDATE docs SET s = {distance}"))?;
    for bound in bounds(&mut client)? {
        for form in [
            "1 - {s} >= {b}",
            "100 * {s} < {b}",
            "{s} = {b}",
            "{b} = 1 - {s}",
        ] {
            let condition = form.replace("{b}", &bound);
            let [found, expected] = [distance.as_str(), "s"].map(|s| {
                let condition = condition.replace("{s}", s);
                value::<String>(&mut client, &format!("SELECT found($c${condition}$c$)"))
            });
            assert_eq!(found?, expected?, "{condition}");
        }
    }
    Ok(())
}

#[test]
fn parameters_are_exact_in_generic_plans() -> Outcome {
    for (_database, mut client, similarity) in [distances(FINGERPRINT)?, signatures()?] {
        client.batch_execute("SET plan_cache_mode = force_generic_plan")?;
        let bounds = bounds(&mut client)?;
        for form in [
            "1 - {s} <= {b}",
            "{b} > 1 - {s}",
            "100 * {s} >= {b}",
            "({s} + 1) / 3 > {b}",
            "{s} = {b}",
            "-{s} < {b}",
        ] {
            let written = form.replace("{s}", &similarity).replace("{b}", "$1");
            client.batch_execute(&format!(
                "DEALLOCATE ALL; PREPARE search(float8) AS \
                 SELECT coalesce(string_agg(id::text, ' ' ORDER BY id), '') FROM docs \
                 WHERE {written}"
            ))?;
            let shown = plan(&mut client, "EXECUTE search(0.8)")?;
            ensure!(shown.contains("docs_fp"), "{written}:\n{shown}");
            let others = ["'NaN'", "'Infinity'", "'-Infinity'", "NULL", "80", "-1"];
            let others = others.map(|other| format!("{other}::float8"));
            for bound in bounds.iter().chain(&others) {
                // The bound at which the form's result changes.
                let at = form.replace("{s}", &format!("({bound})"));
                let at = (at.split(['<', '>', '=']))
                    .find(|part| !part.is_empty() && !part.contains("{b}"));
                for bound in [bound, at.unwrap_or_default()] {
                    let condition = form
                        .replace("{s}", "s")
                        .replace("{b}", &format!("({bound})"));
                    let expected = format!("SELECT found($c${condition}$c$)");
                    let expected: String = value(&mut client, &expected)?;
                    let found: String = value(&mut client, &format!("EXECUTE search({bound})"))?;
                    assert_eq!(found, expected, "{written}, {bound}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn null_is_told_from_false() -> Outcome {
    let (_database, mut client, similarity) = distances(FINGERPRINT)?;
    for form in [
        "NOT coalesce({s}, 0) >= 0.8",
        "coalesce({s}, 1) >= 0.8",
        "coalesce({s}, 0) >= 0",
        "1 - coalesce({s}, 1) <= 0.2",
        "coalesce({s}, 'NaN') >= 0.8",
        "(1 - {s} <= 0.2) IS NOT TRUE",
        "NOT ({s} IN (0.5, 1))",
        "{s} NOT IN (0.5, 1)",
        "({s} = 0.5) IS NOT TRUE",
        "abs({s} - 0.5) <= 0.2",
        "0 * {s} <= 0.2",
        "1 / ({s} + 1) <= 0.6",
        "({s} * 0.3)::numeric > 0",
        "({s} * 0.3)::float4 <= 0",
    ] {
        let [found, expected] = [similarity.as_str(), "s"].map(|s| {
            let condition = form.replace("{s}", s);
            value::<String>(&mut client, &format!("SELECT found($c${condition}$c$)"))
        });
        assert_eq!(found?, expected?, "{form}");
    }
    Ok(())
}

#[test]
fn views_joins_and_parts_reach_the_index() -> Outcome {
    let (_database, mut client, similarity) = distances(FINGERPRINT)?;
    client.batch_execute(&format!(
        "CREATE VIEW compared AS SELECT id, 1 - {similarity} AS far, s FROM docs; \
         CREATE TABLE more AS SELECT * FROM docs; CREATE INDEX ON more USING neardup (fp); \
         ANALYZE more"
    ))?;
    let both = "(SELECT id, fp, s FROM docs UNION ALL SELECT id, fp, s FROM more)";
    for (query, expected) in [
        (
            "SELECT count(*) FROM compared WHERE far <= 0.25".to_owned(),
            "SELECT count(*) FROM docs WHERE 1 - s <= 0.25",
        ),
        (
            format!(
                "SELECT count(*) FROM {both} either WHERE 100 * {} >= 75",
                similarity.replace("(fp", "(either.fp")
            ),
            "SELECT 2 * count(*) FROM docs WHERE 100 * s >= 75",
        ),
        (
            "SELECT count(*) FROM (SELECT * FROM docs WHERE id < 9 OFFSET 0) a JOIN docs b \
             ON 1 - fingerprint_similarity(a.fp, b.fp) <= 0.25"
                .to_owned(),
            "SELECT count(*) FROM docs a, docs b WHERE a.id < 9 AND abs(a.id - b.id) <= 8 AND \
             b.id < 100",
        ),
    ] {
        let shown = plan(&mut client, &query)?;
        ensure!(shown.contains("Index Cond: (fp <@"), "{query}:\n{shown}");
        let (found, expected): (i64, i64) =
            (value(&mut client, &query)?, value(&mut client, expected)?);
        assert_eq!(found, expected, "{query}");
    }
    Ok(())
}

#[test]
fn conditions_of_policies_reach_the_index() -> Outcome {
    let (_database, mut client, similarity) = distances(FINGERPRINT)?;
    let role = format!(
        "{}_reader",
        value::<String>(&mut client, "SELECT current_database()::text")?
    );
    client.batch_execute(&format!(
        "CREATE ROLE {role}; GRANT SELECT ON docs TO {role}; \
         ALTER TABLE docs ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY near ON docs USING (1 - {similarity} = 0.25); SET ROLE {role}"
    ))?;
    let shown = plan(&mut client, "SELECT id FROM docs")?;
    ensure!(shown.contains("Index Cond: (fp <@"), "{shown}");
    let found: i64 = value(&mut client, "SELECT count(*) FROM docs")?;
    client.batch_execute("RESET ROLE")?;
    let expected: i64 = value(&mut client, "SELECT count(*) FROM docs WHERE 1 - s = 0.25")?;
    assert_eq!(found, expected);
    client.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))?;
    Ok(())
}

#[test]
fn a_percentage_is_rejected() -> Outcome {
    for (_database, mut client, similarity) in [distances(FINGERPRINT)?, signatures()?] {
        for condition in [
            "{s} >= 80",
            "{s} > 80",
            "80 <= {s}",
            "{s} = 80",
            "NOT {s} < 1.5",
        ] {
            let condition = condition.replace("{s}", &similarity);
            let query = format!("SELECT id FROM docs WHERE {condition}");
            let result = client.batch_execute(&query);
            assert_eq!(
                code(&result),
                Some(SqlState::INVALID_PARAMETER_VALUE),
                "{condition}"
            );
        }
        // These are true of some rows, or stand where an error would be in the way of all queries.
        client.batch_execute(&format!(
            "CREATE INDEX docs_percent ON docs (id) WHERE {similarity} >= 80"
        ))?;
        for condition in [
            "{s} < 80",
            "{s} BETWEEN 0.5 AND 100",
            "{s} >= 1.0000000000000002",
        ] {
            let condition = condition.replace("{s}", &similarity);
            client.batch_execute(&format!("SELECT id FROM docs WHERE {condition}"))?;
        }
    }
    Ok(())
}
