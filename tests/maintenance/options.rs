//! Options that CREATE INDEX and ALTER INDEX refuse, and their messages.
use crate::support::Outcome;
use crate::support::data::Shape;
use crate::support::table::{FINGERPRINT, Table, value};
use neardup_tests::Database;

/// A statement, the SQLSTATE of its error, and a part of the message, detail or hint.
const REFUSED: [(&str, &str, &str); 41] = [
    ("WITH (radius = 65)", "22023", "radius 65 is out of range"),
    (
        "WITH (radius = 65)",
        "22023",
        "Fingerprints of this index have 64 bits",
    ),
    ("WITH (radius = 257)", "22023", "between \"0\" and \"256\""),
    (
        "WITH (distance = 3)",
        "22023",
        "unrecognized parameter \"distance\"",
    ),
    ("WITH (radius = -1)", "22023", "out of bounds"),
    (
        "WITH (radius = much)",
        "22023",
        "invalid value for integer option",
    ),
    ("WITH (blocks = 65)", "22023", "between \"0\" and \"64\""),
    ("WITH (blocks = -1)", "22023", "out of bounds"),
    (
        "WITH (blocks = 10)",
        "22023",
        "cannot divide fingerprints into 10 blocks for radius 6",
    ),
    (
        "WITH (radius = 3, blocks = 9)",
        "22023",
        "need 84 permutations, but an index can have at most 64",
    ),
    ("WITH (radius = 3, blocks = 9)", "22023", "Omit \"blocks\""),
    (
        "WITH (radius = 31, blocks = 64)",
        "22023",
        "need billions of permutations, but an index can have at most 64",
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
        "must have exactly one fingerprint, signature or bigint[] column, and it must be the last",
    ),
    (
        "(id)",
        "42P17",
        "Write USING neardup (id bigint_hamming_ops)",
    ),
    ("(note)", "42P17", "must have exactly one fingerprint"),
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
    (
        "(fp, id bigint_hamming_ops)",
        "42P17",
        "it must be the last column",
    ),
    ("(fp, fp)", "42P17", "must have exactly one fingerprint"),
    ("(fp, note)", "42P17", "it must be the last column"),
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
        "Use columns whose type has a default hash operator class",
    ),
    (
        "(ball(fp, 3), fp)",
        "42P17",
        "must have exactly one fingerprint",
    ),
    (
        "(fp, ball(fp, 3))",
        "42P17",
        "must have exactly one fingerprint",
    ),
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
        "(fp fingerprint_ops (radius = 3))",
        "22023",
        "has no options",
    ),
    (
        "((fp <~> fp))",
        "42P17",
        "must have exactly one fingerprint",
    ),
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
        "radius = 1, blocks = 2",
    )?;
    let size = "SELECT pg_relation_size('docs_fp')";
    let two_permutations: i64 = value(&mut client, size)?;

    client.batch_execute("ALTER INDEX docs_fp SET (radius = 3, blocks = 5)")?;
    table.holds(&mut client, 2)?;
    client.batch_execute("INSERT INTO docs SELECT id + 10000, fp FROM docs WHERE id < 1000")?;
    table.holds(&mut client, 3)?;
    assert!(value::<i64>(&mut client, size)? < 2 * two_permutations);

    client.batch_execute("REINDEX INDEX docs_fp")?;
    table.holds(&mut client, 4)?;
    let ten_permutations: i64 = value(&mut client, size)?;
    assert!(
        ten_permutations > 4 * two_permutations,
        "{ten_permutations} bytes against {two_permutations}"
    );

    client.batch_execute("ALTER INDEX docs_fp RESET (radius, blocks)")?;
    client.batch_execute("ALTER INDEX docs_fp SET (fillfactor = 50)")?;
    client.batch_execute("REINDEX INDEX docs_fp")?;
    table.holds(&mut client, 5)?;

    for refused in [
        "SET (radius = 257)",
        "SET (radius = 3, blocks = 9)",
        "SET (lists = 1)",
    ] {
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
