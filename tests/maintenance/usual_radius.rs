//! Radius and similarity that an index reports, their sources, and the layout made for them.
use crate::support::Outcome;
use crate::support::table::value;
use neardup_tests::Database;
use postgres::Client;

/// Columns of the table, and its indexes with the radius that each must have.
const COLUMNS: &str = "body text, part text, site text, n bigint, narrow fingerprint, \
    middle fingerprint128, wide fingerprint256, \
    m64 fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED, \
    m128 fingerprint128 GENERATED ALWAYS AS (minhash128(body)) STORED, \
    s64 fingerprint GENERATED ALWAYS AS (simhash(body)) STORED, \
    s128 fingerprint128 GENERATED ALWAYS AS (simhash128(body)) STORED, \
    own fp64 GENERATED ALWAYS AS (simhash(body)) STORED, \
    number bigint GENERATED ALWAYS AS (simhash(body)::bigint) STORED, \
    nested fingerprint GENERATED ALWAYS AS \
        (CASE WHEN part IS NULL THEN simhash(body) ELSE simhash(part) END) STORED, \
    mixed fingerprint GENERATED ALWAYS AS \
        (coalesce(minhash64(part), simhash(body))) STORED";

const RADII: [(&str, i32); 30] = [
    // Radius from the width, where the application made the values.
    ("(narrow)", 6),
    ("(middle)", 12),
    ("(wide)", 31),
    ("(n bigint_hamming_ops)", 6),
    // Radius from the function of a generated column.
    ("(m64)", 6),
    ("(m128)", 12),
    ("(s64)", 3),
    ("(s128)", 6),
    ("(own)", 3),
    ("(number bigint_hamming_ops)", 3),
    ("(nested)", 3),
    // Functions with different radii: the radius is from the width.
    ("(mixed)", 6),
    // Radius from the function of an expression.
    ("(minhash64(body))", 6),
    ("(minhash128(body))", 12),
    ("(simhash(body))", 3),
    ("(simhash128(body))", 6),
    ("((simhash(body)::bigint) bigint_hamming_ops)", 3),
    ("(coalesce(s64, simhash(part)))", 3),
    // A wrapper in SQL, which the server inlines.
    ("(wrapped(body))", 3),
    // With a scope; the function of the scope's expression is ignored.
    ("(site, s64)", 3),
    ("(lower(site), simhash(body))", 3),
    ("((simhash(part)::bigint), minhash64(body))", 6),
    // Radius from a ball, for any expression of its centre.
    ("(ball(narrow, 5))", 5),
    ("(ball(s64, 9))", 9),
    ("(site, ball(middle, 2))", 2),
    ("(ball(narrow, 1000))", 64),
    ("(ball(s64, length(body)))", 3),
    // The option takes precedence.
    ("(s64) WITH (radius = 0)", 0),
    ("(ball(narrow, 5)) WITH (radius = 11)", 11),
    ("(wide) WITH (radius = 256)", 256),
];

fn with_table() -> anyhow::Result<(Database, Client)> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(&format!(
        "CREATE DOMAIN fp64 AS fingerprint CHECK (VALUE IS NOT NULL); \
         CREATE FUNCTION wrapped(text) RETURNS fingerprint LANGUAGE sql IMMUTABLE \
            AS 'SELECT public.simhash($1)'; \
         CREATE TABLE docs ({COLUMNS})"
    ))?;
    Ok((database, client))
}

/// Radius of the index `docs_i`.
fn radius(client: &mut Client) -> anyhow::Result<i32> {
    value(client, "SELECT radius FROM neardup_index_info('docs_i')")
}

#[test]
fn the_radius_follows_from_option_ball_function_and_width() -> Outcome {
    let (_database, mut client) = with_table()?;
    for (columns, expected) in RADII {
        client.batch_execute(&format!(
            "DROP INDEX IF EXISTS docs_i; CREATE INDEX docs_i ON docs USING neardup {columns}"
        ))?;
        assert_eq!(radius(&mut client)?, expected, "{columns}");
    }
    // Rebuilding an index keeps the radius, although no command has the text of CREATE INDEX.
    client.batch_execute(
        "DROP INDEX docs_i; CREATE INDEX docs_i ON docs USING neardup (simhash(body))",
    )?;
    for command in [
        "REINDEX INDEX docs_i",
        "REINDEX INDEX CONCURRENTLY docs_i",
        "VACUUM FULL docs",
        "TRUNCATE docs",
        "ALTER TABLE docs ALTER n TYPE integer",
    ] {
        client.batch_execute(command)?;
        assert_eq!(radius(&mut client)?, 3, "{command}");
    }
    Ok(())
}

#[test]
fn the_radius_is_found_while_the_table_is_made() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let of = "SELECT radius FROM neardup_index_info($1::text::regclass)";
    client.batch_execute(
        "CREATE TABLE docs (body text, fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED, \
            CONSTRAINT by_column EXCLUDE USING neardup (fp WITH ~=), \
            CONSTRAINT by_expression EXCLUDE USING neardup (simhash(body) WITH ~=), \
            CONSTRAINT by_ball EXCLUDE USING neardup (ball(fp, 4) WITH ~=)); \
         CREATE UNLOGGED TABLE fast (body text); \
         CREATE INDEX by_init ON fast USING neardup (simhash(body)); \
         CREATE TABLE parts (n int, body text, \
            fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED) PARTITION BY LIST (n); \
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1); \
         CREATE INDEX ON parts USING neardup (fp); \
         CREATE TABLE part_2 PARTITION OF parts FOR VALUES IN (2); \
         CREATE TABLE later (body text, fp fingerprint); \
         CREATE MATERIALIZED VIEW seen AS SELECT 1 AS n, simhash(body) AS fp FROM docs; \
         CREATE INDEX seen_fp ON seen USING neardup (fp)",
    )?;
    for (index, radius) in [
        ("by_column", 3),
        ("by_expression", 3),
        ("by_ball", 4),
        ("by_init", 3),
        ("part_1_fp_idx", 3),
        ("part_2_fp_idx", 3),
        // The catalog does not have the function that made the rows of a view.
        ("seen_fp", 6),
    ] {
        let found: i32 = client.query_one(of, &[&index])?.get(0);
        assert_eq!(found, radius, "{index}");
    }
    // A user without rights on the other objects in the catalog can build, too.
    client.batch_execute(
        "CREATE SCHEMA other; CREATE ROLE usual_radius_user; \
         GRANT ALL ON SCHEMA other TO usual_radius_user; \
         SET ROLE usual_radius_user; SET search_path = other, public; \
         CREATE TABLE other.docs (body text, \
            fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED); \
         CREATE INDEX theirs ON other.docs USING neardup (fp)",
    )?;
    let found: i32 = client.query_one(of, &[&"other.theirs"])?.get(0);
    assert_eq!(found, 3);
    client.batch_execute(
        "RESET ROLE; DROP OWNED BY usual_radius_user; DROP ROLE usual_radius_user",
    )?;
    Ok(())
}

#[test]
fn an_index_on_signatures_states_its_similarity() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute("CREATE TABLE docs (sig minhash_signature, tags bigint[])")?;
    for (columns, expected) in [
        ("(sig)", Some(0.8)),
        ("(sig) WITH (similarity = 0.9)", Some(0.9)),
        ("(sig) WITH (bands = 16, rows = 8)", Some(0.8)),
        (
            "(sig) WITH (similarity = 0.7, bands = 16, rows = 8)",
            Some(0.7),
        ),
        ("(tags)", None),
    ] {
        client.batch_execute(&format!(
            "DROP INDEX IF EXISTS docs_i; CREATE INDEX docs_i ON docs USING neardup {columns}"
        ))?;
        let row = client.query_one(
            "SELECT similarity, radius FROM neardup_index_info('docs_i')",
            &[],
        )?;
        let (similarity, radius): (Option<f64>, Option<i32>) = (row.get(0), row.get(1));
        assert_eq!((similarity, radius), (expected, None), "{columns}");
    }
    Ok(())
}

#[test]
fn a_reindex_chooses_the_layout_again() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (fp fingerprint); \
         INSERT INTO docs SELECT hashint8extended(n, 1)::fingerprint \
            FROM generate_series(1::bigint, 20000) AS n; \
         CREATE INDEX docs_i ON docs USING neardup (fp) WITH (radius = 3)",
    )?;
    let row = client.query_one(
        "SELECT radius, guaranteed_radius, blocks, permutations, advice \
         FROM neardup_index_info('docs_i')",
        &[],
    )?;
    let layout: [i32; 4] = [0, 1, 2, 3].map(|column| row.get(column));
    assert_eq!(layout, [3, 3, 4, 4]);
    assert_eq!(row.get::<_, Option<&str>>(4), None);
    client.batch_execute("ALTER INDEX docs_i SET (radius = 0)")?;
    let next = "REINDEX changes the layout: radius 0, guaranteed radius 0, 1 block, 1 permutation";
    let row = client.query_one(
        "SELECT radius, permutations, advice FROM neardup_index_info('docs_i')",
        &[],
    )?;
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i32>(1)), (3, 4));
    assert_eq!(row.get::<_, Option<&str>>(2), Some(next));
    client.batch_execute("REINDEX INDEX docs_i")?;
    let row = client.query_one(
        "SELECT radius, permutations, advice FROM neardup_index_info('docs_i')",
        &[],
    )?;
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i32>(1)), (0, 1));
    assert_eq!(row.get::<_, Option<&str>>(2), None);
    Ok(())
}

#[test]
fn altered_options_are_noticed() -> Outcome {
    let database = Database::create()?;
    let (sender, notices) = std::sync::mpsc::channel();
    let mut config: postgres::Config = database.conninfo().parse()?;
    config.notice_callback(move |notice| drop(sender.send(notice)));
    let mut client = config.connect(postgres::NoTls)?;
    client.batch_execute(
        "CREATE TABLE docs (body text, fp fingerprint, sig minhash_signature); \
         CREATE INDEX docs_i ON docs USING neardup (fp) WITH (radius = 3); \
         CREATE INDEX docs_s ON docs USING neardup (sig)",
    )?;
    let mut notice = |command: &str| -> anyhow::Result<Option<postgres::error::DbError>> {
        client.batch_execute(command)?;
        Ok(notices.try_iter().last())
    };
    let noticed = notice("ALTER INDEX docs_i SET (radius = 6)")?.expect("a notice");
    assert_eq!(noticed.code().code(), "00000");
    assert_eq!(
        noticed.message(),
        "index \"docs_i\" keeps its layout until it is rebuilt"
    );
    assert_eq!(
        noticed.detail(),
        Some(
            "The index now has radius 3, guaranteed radius 3, 4 blocks, 4 permutations. After \
             REINDEX, it will have radius 6, guaranteed radius 6, 7 blocks, 7 permutations."
        )
    );
    assert_eq!(
        noticed.hint(),
        Some("REINDEX INDEX CONCURRENTLY public.docs_i;")
    );
    let noticed = notice("ALTER INDEX docs_s SET (similarity = 0.9)")?.expect("a notice");
    let detail = noticed.detail().unwrap_or_default();
    assert!(
        detail.contains("After REINDEX, it will have similarity 0.9"),
        "{detail}"
    );
    // Commands that do not change the layout, and an option that restores it.
    for command in [
        "ALTER INDEX docs_i SET (radius = 3)",
        "ALTER INDEX docs_i SET (fillfactor = 80)",
        "ALTER INDEX docs_i RENAME TO docs_j",
        "ALTER INDEX docs_j RENAME TO docs_i",
        "ALTER TABLE docs ALTER body SET STATISTICS 10",
        "CREATE INDEX docs_k ON docs USING neardup (fp) WITH (radius = 9)",
        "REINDEX INDEX CONCURRENTLY docs_k",
    ] {
        assert!(notice(command)?.is_none(), "{command}");
    }
    // A radius beyond the width is refused at once.
    let error = client
        .batch_execute("ALTER INDEX docs_i SET (radius = 65)")
        .unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("22023"));
    Ok(())
}
