//! Options that CREATE INDEX and ALTER INDEX refuse, and their messages.
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::table::{FINGERPRINT, Table, value};
use anyhow::Context;
use neardup_tests::Database;

/// A statement, the SQLSTATE of its error, and what the message, detail or hint says.
const REFUSED: [(&str, &str, &str); 41] = [
    (
        "WITH (distance = 9)",
        "22023",
        "largest distance of fingerprints of this width is 8",
    ),
    ("WITH (distance = 32)", "22023", "between \"0\" and \"31\""),
    ("WITH (distance = -1)", "22023", "out of bounds"),
    (
        "WITH (distance = much)",
        "22023",
        "invalid value for integer option",
    ),
    ("WITH (blocks = 65)", "22023", "between \"0\" and \"64\""),
    ("WITH (blocks = -1)", "22023", "out of bounds"),
    (
        "WITH (blocks = 3)",
        "22023",
        "cannot index distance 3 with 3 blocks",
    ),
    ("WITH (blocks = 3)", "22023", "needs at least 4 blocks"),
    (
        "WITH (blocks = 9)",
        "22023",
        "would need 84 tables; an index can have 64",
    ),
    ("WITH (blocks = 9)", "22023", "Leave out \"blocks\""),
    (
        "WITH (distance = 8, blocks = 8)",
        "22023",
        "needs at least 9 blocks",
    ),
    (
        "WITH (distance = 31, blocks = 64)",
        "22023",
        "would need billions of tables; an index can have 64",
    ),
    (
        "WITH (fillfactor = 49)",
        "22023",
        "between \"50\" and \"100\"",
    ),
    ("WITH (fillfactor = 101)", "22023", "out of bounds"),
    (
        "WITH (lists = 5)",
        "22023",
        "unrecognized parameter \"lists\"",
    ),
    (
        "(id)",
        "42P17",
        "needs one fingerprint, signature or bigint[], as its last column",
    ),
    (
        "(id)",
        "42P17",
        "name the operator class: (hash bigint_hamming_ops)",
    ),
    ("(note)", "42P17", "needs one fingerprint"),
    ("(spot)", "42704", "no default operator class"),
    (
        "(id fingerprint_ops)",
        "42804",
        "does not accept data type bigint",
    ),
    (
        "(fp bigint_hamming_ops)",
        "42804",
        "does not accept data type fingerprint",
    ),
    (
        "(fp int8_ops)",
        "42704",
        "does not exist for access method \"neardup\"",
    ),
    ("(fp, id bigint_hamming_ops)", "42P17", "as its last column"),
    ("(fp, fp)", "42P17", "needs one fingerprint"),
    ("(fp, note)", "42P17", "as its last column"),
    ("(spot point_ops, fp)", "42704", "does not exist"),
    ("(spot, fp)", "42704", "no default operator class"),
    (
        "(spots, fp)",
        "42883",
        "could not identify an extended hash function for type point[]",
    ),
    (
        "(spots, fp)",
        "42883",
        "These need a type with a default hash operator class",
    ),
    ("(ball(fp, 3), fp)", "42P17", "needs one fingerprint"),
    ("(fp, ball(fp, 3))", "42P17", "needs one fingerprint"),
    (
        "(fp fingerprint128_ops)",
        "42804",
        "does not accept data type fingerprint",
    ),
    (
        "(fp fingerprint_ball_ops)",
        "42804",
        "does not accept data type fingerprint",
    ),
    (
        "(fp fingerprint_ops (distance = 3))",
        "22023",
        "has no options",
    ),
    ("((fp <~> fp))", "42P17", "needs one fingerprint"),
    (
        "(fp) INCLUDE (id)",
        "0A000",
        "does not support included columns",
    ),
    ("(fp DESC)", "0A000", "does not support ASC/DESC"),
    (
        "(fp NULLS FIRST)",
        "0A000",
        "does not support NULLS FIRST/LAST",
    ),
    (
        "(fp COLLATE \"C\")",
        "42804",
        "collations are not supported",
    ),
    ("UNIQUE", "0A000", "does not support unique indexes"),
    ("CLUSTER", "0A000", "does not support clustering"),
];

#[test]
fn what_cannot_be_indexed_is_refused_with_a_reason() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id bigint, fp fingerprint, note text, spot point, spots point[]); \
         CREATE INDEX docs_kept ON docs USING neardup (fp)",
    )?;
    for (what, code, text) in REFUSED {
        let statement = match what {
            "UNIQUE" => "CREATE UNIQUE INDEX ON docs USING neardup (fp)".to_owned(),
            "CLUSTER" => "CLUSTER docs USING docs_kept".to_owned(),
            _ if what.starts_with("WITH") => {
                format!("CREATE INDEX ON docs USING neardup (fp) {what}")
            }
            _ => format!("CREATE INDEX ON docs USING neardup {what}"),
        };
        let error = match client.batch_execute(&statement) {
            Ok(()) => panic!("not refused: {statement}"),
            Err(error) => error,
        };
        assert_eq!(
            error.code().map(|code| code.code()),
            Some(code),
            "{statement}: {error:?}"
        );
        let error = error.as_db_error().expect("an error of the server's");
        let said = format!("{error} {:?} {:?}", error.detail(), error.hint());
        assert!(said.replace('\\', "").contains(text), "{statement}: {said}");
    }
    let indexes: i64 = value(
        &mut client,
        "SELECT count(*) FROM pg_index WHERE indrelid = 'docs'::regclass",
    )?;
    assert_eq!(indexes, 1);
    Ok(())
}

#[test]
fn an_altered_option_waits_for_the_next_reindex() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create_indexed(
        &mut client,
        &Shape::Balls.values(10_000, 1),
        "distance = 1, blocks = 2",
    )?;
    let size = "SELECT pg_relation_size('docs_fp')";
    let two_tables: i64 = value(&mut client, size)?;

    client.batch_execute("ALTER INDEX docs_fp SET (distance = 3, blocks = 5)")?;
    table.holds(&mut client, 2)?;
    client.batch_execute("INSERT INTO docs SELECT id + 10000, fp FROM docs WHERE id < 1000")?;
    table.holds(&mut client, 3)?;
    assert!(value::<i64>(&mut client, size)? < 2 * two_tables);

    client.batch_execute("REINDEX INDEX docs_fp")?;
    table.holds(&mut client, 4)?;
    let ten_tables: i64 = value(&mut client, size)?;
    assert!(
        ten_tables > 4 * two_tables,
        "{ten_tables} bytes against {two_tables}"
    );

    client.batch_execute("ALTER INDEX docs_fp RESET (distance, blocks)")?;
    client.batch_execute("ALTER INDEX docs_fp SET (fillfactor = 50)")?;
    client.batch_execute("REINDEX INDEX docs_fp")?;
    table.holds(&mut client, 5)?;

    for refused in ["SET (distance = 32)", "SET (blocks = 3)", "SET (lists = 1)"] {
        let error = client
            .batch_execute(&format!("ALTER INDEX docs_fp {refused}"))
            .unwrap_err();
        assert_eq!(
            error.code().map(|code| code.code()),
            Some("22023"),
            "{refused}: {error:?}"
        );
    }
    table.holds(&mut client, 6)
}

#[test]
fn a_fuller_index_is_smaller() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let values = Shape::Uniform.values(20_000, 7);
    let mut sizes = Vec::new();
    for options in ["fillfactor = 50", "", "fillfactor = 100"] {
        table.create_indexed(&mut client, &values, options)?;
        sizes.push(value::<i64>(
            &mut client,
            "SELECT pg_relation_size('docs_fp')",
        )?);
        // Full leaves split at the first insert.
        table.append(&mut client, 20_000, &Shape::Uniform.values(2_000, 8))?;
        table.holds(&mut client, 9)?;
    }
    assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    Ok(())
}

#[test]
fn the_default_distance_goes_by_the_width() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (narrow fingerprint, middle fingerprint128, wide fingerprint256); \
         INSERT INTO docs SELECT hash::fingerprint, left(bits, 32)::fingerprint128, \
         bits::fingerprint256 \
         FROM (SELECT hashint8extended(n, 1) AS hash, md5(n::text) || md5(n || 'x') AS bits \
               FROM generate_series(1::bigint, 4000) AS n) AS hashes",
    )?;
    let mut blocks = |column: &str, options: &str| -> anyhow::Result<i64> {
        client.batch_execute(&format!(
            "DROP INDEX IF EXISTS docs_fp; CREATE INDEX docs_fp ON docs USING neardup ({column}) \
                {options}"
        ))?;
        client.batch_execute("SELECT neardup_index_check('docs_fp', true)")?;
        value(&mut client, "SELECT pg_relation_size('docs_fp') / 8192")
    };
    for (column, distance, other) in [("narrow", 3, 4), ("middle", 6, 7), ("wide", 15, 14)] {
        let chosen = blocks(column, "")?;
        assert_eq!(
            chosen,
            blocks(column, &format!("WITH (distance = {distance})"))?
        );
        assert_ne!(
            chosen,
            blocks(column, &format!("WITH (distance = {other})"))?
        );
    }
    // Blocks alone must fit that distance.
    assert!(blocks("wide", "WITH (blocks = 16)").is_ok());
    let error = blocks("wide", "WITH (blocks = 4)").unwrap_err();
    assert!(
        format!("{error:?}").contains("cannot index distance 15 with 4 blocks"),
        "{error:?}"
    );
    Ok(())
}

#[test]
fn a_distance_that_makes_searches_slower_is_noticed() -> Outcome {
    let database = Database::create()?;
    let (sender, notices) = std::sync::mpsc::channel();
    let mut config: postgres::Config = database.conninfo().parse()?;
    config.notice_callback(move |notice| drop(sender.send(notice)));
    let mut client = config.connect(postgres::NoTls)?;
    // With fewer rows no distance has both more tables and slower searches than the default.
    client.batch_execute(
        "SET maintenance_work_mem = '512MB'; CREATE UNLOGGED TABLE docs AS \
         SELECT hashint8extended(i, 1) AS hash \
         FROM generate_series(1, 5000000) i",
    )?;
    let mut notice = |index: &str| -> anyhow::Result<Option<postgres::error::DbError>> {
        client.batch_execute(&format!(
            "CREATE INDEX docs_h ON docs USING neardup {index}"
        ))?;
        client.batch_execute("DROP INDEX docs_h")?;
        Ok(notices.try_iter().last())
    };
    let slower = "(hash bigint_hamming_ops) WITH (distance = 7, blocks = 8)";
    let noticed = notice(slower)?.context("a notice")?;
    assert_eq!(noticed.code().code(), "00000");
    assert!(
        noticed.message().contains("index \"docs_h\" is larger"),
        "{noticed:?}"
    );
    let detail = noticed.detail().unwrap_or_default();
    assert!(detail.contains("there are 8 tables"), "{detail}");
    assert!(detail.contains("With distance = 3 there are 4"), "{detail}");
    let hint = noticed.hint().unwrap_or_default();
    assert!(
        hint.contains("neardup_tune_radius(64, 7, 5000000)"),
        "{hint}"
    );
    // The default, a distance below it, and fewer rows.
    for silent in [
        "(hash bigint_hamming_ops) WHERE hash % 9 = 0",
        "(hash bigint_hamming_ops) WITH (distance = 1) WHERE hash % 9 = 0",
        "(hash bigint_hamming_ops) WITH (distance = 7, blocks = 8) WHERE hash % 9 = 0",
    ] {
        assert!(notice(silent)?.is_none(), "{silent}");
    }
    Ok(())
}
