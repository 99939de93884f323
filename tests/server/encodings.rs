//! Positions in databases of many encodings: a passage that a function returns equals `substr` of
//! the text, in the database's characters.
use crate::support::Outcome;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;

/// Encodings and the characters of their texts: hexadecimal bytes of single characters, or of the
/// first and the last character of a range. In a range, each byte counts up.
const ENCODINGS: [(&str, &[(&str, &str)]); 12] = [
    (
        "UTF8",
        &[
            ("c3a9", "c3bf"),
            ("e4b8ad", "e4b8bf"),
            ("f09f9880", "f09f988f"),
            ("cc81", "cc81"),
        ],
    ),
    (
        "SQL_ASCII",
        &[
            ("c3a9", "c3bf"),
            ("e4b8ad", "e4b8bf"),
            ("f09f9880", "f09f988f"),
            ("cc81", "cc81"),
        ],
    ),
    ("LATIN1", &[("a0", "ff")]),
    ("LATIN10", &[("a0", "ff")]),
    ("WIN1251", &[("80", "ff")]),
    ("WIN1258", &[("80", "ff")]),
    ("KOI8R", &[("80", "ff")]),
    ("EUC_CN", &[("a1a1", "a1fe"), ("b0a1", "bcfe")]),
    ("EUC_KR", &[("a1a1", "a1fe"), ("b0a1", "bcfe")]),
    (
        "EUC_TW",
        &[("a1a1", "a1fe"), ("c4a1", "cafe"), ("8ea2a1a1", "8ea2a3fe")],
    ),
    (
        "EUC_JP",
        &[
            ("a1a1", "a5fe"),
            ("ada1", "adfe"),
            ("8ea1", "8edf"),
            ("8fa2a1", "8fb0fe"),
        ],
    ),
    // The last five ranges have all characters that are two code points, and their parts.
    (
        "EUC_JIS_2004",
        &[
            ("a1a1", "a3fe"),
            ("8ea1", "8edf"),
            ("a4ab", "a4fb"),
            ("a5ab", "a5fe"),
            ("a6ee", "a6f8"),
            ("abc0", "abef"),
            ("abe0", "abe9"),
        ],
    ),
];

/// Functions that check texts, in a schema on the `search_path`. Bytes that are invalid in the
/// encoding, or that have no counterpart in UTF-8, are not characters of texts.
const CHECKS: &str = r#"
CREATE FUNCTION alphabet(first bytea, last bytea) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    size int := length(first);
    found text[] := '{}';
    character text;
    bytes bytea := first;
    at int;
BEGIN
    LOOP
        BEGIN
            character := convert_from(bytes, getdatabaseencoding());
            IF getdatabaseencoding() NOT IN ('UTF8', 'SQL_ASCII') THEN
                PERFORM convert_to(character, 'UTF8');
            END IF;
            found := found || character;
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
        at := size - 1;
        WHILE at >= 0 AND get_byte(bytes, at) >= get_byte(last, at) LOOP
            bytes := set_byte(bytes, at, get_byte(first, at));
            at := at - 1;
        END LOOP;
        EXIT WHEN at < 0;
        bytes := set_byte(bytes, at, get_byte(bytes, at) + 1);
    END LOOP;
    RETURN found;
END $$;

CREATE TABLE characters (character text);

CREATE FUNCTION random_text(length int) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT string_agg(CASE WHEN random() < 0.6 THEN c.all[1 + floor(random() * c.n)] ELSE
        (ARRAY['a', 'b.', ' ', E'\n', '. C', 'd e'])[1 + floor(random() * 6)] END, '')
    FROM (SELECT array_agg(character) AS all, count(*) AS n FROM characters) c,
        generate_series(1, length)
$$;

CREATE FUNCTION shown(what text, body text, other text) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s of %s and %s', what, encode(convert_to(body, getdatabaseencoding()), 'hex'),
        encode(convert_to(other, getdatabaseencoding()), 'hex'))
$$;

-- Some encodings have a character twice. JSON is made of UTF-8, and so has one of the two.
CREATE FUNCTION same(a text, b text) RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE WHEN getdatabaseencoding() IN ('UTF8', 'SQL_ASCII') THEN a = b
        ELSE convert_to(a, 'UTF8') = convert_to(b, 'UTF8') END
$$;

-- What is wrong with the positions in two texts. The second text may write a passage in another
-- way, and a mark at the start of a passage has its base character there.
CREATE FUNCTION wrong(a text, b text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    page_a text := replace(a, '&', '') || '<p>&euro;&#x304B;&#x309A;&#x2E5;&#x2E9;x&#x309A;<b>'
        || replace(b, '&', '') || '</b>&eacute;';
    page_b text := '<i>' || replace(b, '&', '') || '&#x304B;&#x309A;</i>' || replace(a, '&', '');
    unit text;
BEGIN
    FOREACH unit IN ARRAY ARRAY['paragraph', 'line', 'sentence'] LOOP
        RETURN QUERY SELECT shown('segment by ' || unit, a, s.segment)
            FROM neardup_segments(a, unit) s
            WHERE substr(a, s.start, length(s.segment)) <> s.segment;
        RETURN QUERY SELECT shown('order by ' || unit, a, '') FROM (SELECT s.start,
                lag(s.start + length(s.segment), 1, 1) OVER (ORDER BY s.ordinal) AS least
            FROM neardup_segments(a, unit) s) o WHERE o.start < o.least;
    END LOOP;
    RETURN QUERY SELECT shown('difference', a, b) FROM neardup_diff(a, b) d
        WHERE substr(a, d.a_start, d.a_end - d.a_start) <> d.a_text
        OR substr(b, d.b_start, d.b_end - d.b_start) <> d.b_text;
    RETURN QUERY SELECT shown('whole', a, b)
        FROM (SELECT string_agg(d.a_text, '' ORDER BY d.ordinal) AS of_a,
            string_agg(d.b_text, '' ORDER BY d.ordinal) AS of_b, max(d.a_end) AS end_a,
            max(d.b_end) AS end_b FROM neardup_diff(a, b) d) d
        WHERE of_a <> a OR of_b <> b OR end_a <> length(a) + 1 OR end_b <> length(b) + 1;
    RETURN QUERY SELECT shown('passage', a, b) FROM shared_passages(a, b, 8, 'char') p
        WHERE substr(a, p.a_start, p.a_end - p.a_start) <> p.passage
        OR jaccard_similarity(substr(b, p.b_start, p.b_end - p.b_start), p.passage, 'char', 1)
            < 0.5;
    RETURN QUERY SELECT shown('passage of pages', page_a, page_b)
        FROM shared_passages(page_a, page_b, 2, 'char', html => true) p
        WHERE substr(html_text(page_a), p.a_start, p.a_end - p.a_start) <> p.passage;
    RETURN QUERY SELECT shown('change', a, b)
        FROM jsonb_path_query(neardup_explain(a, b, 'char', 3), '$.changes.largest[*].a') c
        WHERE jsonb_typeof(c) = 'object' AND
            NOT same(left(substr(a, (c ->> 'start')::int, (c ->> 'length')::int),
                length(c ->> 'text')), c ->> 'text');
    RETURN QUERY SELECT shown('change of pages', page_a, page_b)
        FROM jsonb_path_query(neardup_explain(page_a, page_b, 'char', 3, html => true),
            '$.changes.largest[*].a') c
        WHERE jsonb_typeof(c) = 'object' AND NOT same(left(substr(html_text(page_a),
            (c ->> 'start')::int, (c ->> 'length')::int), length(c ->> 'text')), c ->> 'text');
    RETURN QUERY SELECT shown('remainder', a, b)
        FROM neardup_text_without(a, (SELECT neardup_common_features(f, 0.9, 'char', 2)
            FROM unnest(ARRAY[b, b || 'x']) f)) rest, regexp_split_to_table(rest, E'\n') part
        WHERE position(part IN a) = 0;
END $$;
"#;

/// Runs the checks in a database of an encoding. Returns the failures.
fn wrong(encoding: &str, ranges: &[(&str, &str)], texts: i32) -> Result<Vec<String>> {
    let database = Database::create_encoded(encoding)?;
    let mut client = database.connect()?;
    client.batch_execute(CHECKS)?;
    for (first, last) in ranges {
        let statement =
            format!("INSERT INTO characters SELECT unnest(alphabet('\\x{first}', '\\x{last}'))");
        client.batch_execute(&statement)?;
    }
    let found: i64 = client
        .query_one("SELECT count(*) FROM characters", &[])?
        .get(0);
    ensure!(found >= 20, "{encoding}: {found} characters");
    let rows = client.query(
        "SELECT w.* FROM (SELECT random_text(40) AS a, random_text(12) AS b, random_text(30) AS c \
         FROM (SELECT setseed(0.5)) seed, generate_series(1, $1)) t, \
         LATERAL wrong(t.a || t.b || t.c, t.c || t.b || t.a) w LIMIT 5",
        &[&texts],
    )?;
    Ok(rows
        .iter()
        .map(|row| format!("{encoding}: {}", row.get::<_, String>(0)))
        .collect())
}

#[test]
fn positions_are_those_of_substr_in_every_encoding() -> Outcome {
    let mut all = Vec::new();
    for (encoding, ranges) in ENCODINGS {
        all.extend(wrong(encoding, ranges, 60).with_context(|| encoding)?);
    }
    ensure!(all.is_empty(), "{}", all.join("\n"));
    Ok(())
}
