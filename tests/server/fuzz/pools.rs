//! Arguments of random calls: SQL expressions of each type.
use std::collections::BTreeMap;

use neardup_sketch::foreign_schemes::SimhashScheme;
use neardup_sketch::minhash::Scheme;
use neardup_sketch::options::{Accents, Digits, NamedOption, Tokens, Weight};
use neardup_sketch::segments::Unit;

/// Expressions by the name of their type.
pub type Pools = BTreeMap<&'static str, Vec<String>>;

/// Pools of all types. Names of options come from the options themselves.
pub fn pools() -> Pools {
    let fixed = fixed_pools().into_iter();
    let mut pools: Pools = fixed
        .map(|(name, pool)| (name, pool.into_iter().map(str::to_owned).collect()))
        .collect();
    let texts = pools.entry("text").or_default();
    add_names::<Tokens>(texts);
    add_names::<Weight>(texts);
    add_names::<Accents>(texts);
    add_names::<Digits>(texts);
    add_names::<Unit>(texts);
    add_names::<Scheme>(texts);
    add_names::<SimhashScheme>(texts);
    pools
}

/// Adds the names of an option as literals.
fn add_names<T: NamedOption>(pool: &mut Vec<String>) {
    pool.extend(T::NAMES.iter().map(|(name, _)| format!("'{name}'")));
}

/// Expressions of each type, including the smallest, the largest, empty and huge values.
fn fixed_pools() -> BTreeMap<&'static str, Vec<&'static str>> {
    let texts = vec![
        "''",
        "'a'",
        "' '",
        "'words of a text, in a row'",
        "'unique'",
        "'strip'",
        "'drop'",
        "'minhash64'",
        "'minhash128'",
        "'pypi'",
        "'star'",
        "'components'",
        "'search'",
        "'skip'",
        "'mark'",
        "'id DESC'",
        "'id > 1'",
        "'id; DROP TABLE t'",
        "'id --'",
        "'1/0'",
        "'(SELECT 1)'",
        "'\u{4e2d}\u{6587}\u{6587}\u{672c}\u{6307}\u{7eb9}'",
        "E'\\x01\\t\\r\\n'",
        "'e\u{301}\u{200d}\u{1f469}\u{200d}\u{1f469}\u{fe0f}'",
        "'\u{10ffff}\u{202e}\u{feff}'",
        "'<p>a<!-- b --><script>c</script>&#8364;&#x110000;&nbsp;<b'",
        "repeat('<div>', 5000)",
        "repeat('a', 100000)",
        "repeat('ab ', 30000)",
        "repeat('\u{e9}', 20000)",
        "repeat('1 ', 3000)",
        "repeat(E'line\\n', 3000)",
        "'A1b2-C3_d4@e.f'",
        "'fp'",
        "'t_fp'",
        "'id'",
        "'VALUES (1, 2), (3, 2), (7, 7)'",
        "'VALUES (1, 2), (2, 1), (3, NULL)'",
        "'SELECT id, id / 2 FROM t'",
        "'SELECT id, bits FROM t WHERE id > 0'",
        "'SELECT 1, 2 WHERE false'",
    ];
    let integers = vec![
        "0",
        "1",
        "-1",
        "2",
        "3",
        "5",
        "8",
        "16",
        "24",
        "63",
        "64",
        "65",
        "128",
        "255",
        "256",
        "257",
        "1024",
        "1025",
        "65535",
        "65536",
        "1000000",
        "2147483647",
        "(-2147483648)",
    ];
    let floats = vec![
        "0",
        "'-0'",
        "0.5",
        "0.8",
        "1",
        "-1",
        "1.0000001",
        "1e308",
        "'-1e308'",
        "4.9e-324",
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "0.2",
    ];
    let sixteen = "'0123456789abcdef'";
    BTreeMap::from([
        ("text", texts),
        ("boolean", vec!["true", "false"]),
        ("smallint", vec!["0", "1", "-1", "32767", "(-32768)", "3"]),
        ("integer", integers.clone()),
        ("hamming", integers.clone()),
        (
            "bigint",
            [
                &integers[..],
                &["9223372036854775807", "(-9223372036854775808)"],
            ]
            .concat(),
        ),
        ("oid", vec!["0", "1", "4294967295"]),
        (
            "real",
            vec![
                "0",
                "1",
                "-1",
                "0.5",
                "'NaN'",
                "'Infinity'",
                "3e38",
                "1e-45",
            ],
        ),
        ("double precision", floats.clone()),
        ("jaccard", floats),
        (
            "numeric",
            vec![
                "0",
                "1.5",
                "-1",
                "'NaN'",
                "'Infinity'",
                "18446744073709551615",
                "1e400",
                "-1e-400",
                "0.2",
                "2::numeric ^ 255",
            ],
        ),
        (
            "name",
            vec![
                "'fp'", "'sig'", "'nope'", "''", "'wide'", "'bits'", "'body'",
            ],
        ),
        (
            "anyelement",
            vec![
                "NULL::bigint",
                "0",
                "NULL::text",
                "NULL::tid",
                "NULL::int[]",
                "NULL::t",
                "NULL::json",
                "ROW(1)",
            ],
        ),
        (
            "uuid",
            vec!["'00000000-0000-0000-0000-000000000000'", "md5('a')::uuid"],
        ),
        (
            "bytea",
            vec![
                "'\\x'",
                "'\\x00'",
                "'\\x0102030405060708'",
                "decode(md5('a'), 'hex')",
                "sha256('a')",
                "'\\x010203040506070809'",
                "sha512('b')",
                "decode(repeat('ff', 4000), 'hex')",
                "'\\x6e6446010003000000000000'",
                "(SELECT neardup_common_features('a b c', 0.5) FROM generate_series(1, 3))",
                "(SELECT neardup_common_features('a', 0.5, 'word', 8) FROM generate_series(1, 3))",
            ],
        ),
        (
            "bit",
            vec![
                "b''",
                "b'1'",
                "1::bit(64)",
                "(-1)::bit(64)",
                "1::bit(128)",
                "2::bit(256)",
                "5::bit(63)",
                "5::bit(257)",
            ],
        ),
        (
            "text[]",
            vec![
                "'{}'",
                "'{NULL}'",
                "'{a,b,c}'",
                "'{a,NULL}'",
                "'{{a,b},{c,d}}'",
                "'[5:6]={x,y}'",
                "'{\"\"}'",
                "array_fill('x'::text, ARRAY[20000])",
                "(SELECT array_agg(i::text) FROM generate_series(1, 5000) i)",
            ],
        ),
        (
            "boolean[]",
            vec!["'{}'", "'{NULL}'", "'{t,f,t}'", "'{t}'", "'{{t,f}}'"],
        ),
        (
            "double precision[]",
            vec![
                "'{}'",
                "'{NULL}'",
                "'{1,2,3}'",
                "'{0,0,0}'",
                "'{-1}'",
                "'{NaN,1}'",
                "'{Infinity,-Infinity}'",
                "'{1e308,1e308,1e308}'",
                "'{4.9e-324}'",
                "'{{1,2}}'",
                "array_fill(1::float8, ARRAY[20000])",
            ],
        ),
        (
            "integer[]",
            vec![
                "'{}'",
                "'{NULL}'",
                "'{1}'",
                "'{2,1,2}'",
                "'{0}'",
                "'{-2147483648,2147483647}'",
                "'{{1,2},{3,4}}'",
                "'[0:1]={1,2}'",
                "array_fill(1, ARRAY[70000])",
            ],
        ),
        (
            "bigint[]",
            vec![
                "'{}'",
                "'{NULL}'",
                "'{1,2,3}'",
                "'{-1}'",
                "'{4294967295,0}'",
                "'{4294967296}'",
                "'{9223372036854775807,-9223372036854775808}'",
                "'{{1,2},{3,4}}'",
                "'[0:1]={7,8}'",
                "array_fill(9::bigint, ARRAY[128])",
                "array_fill(7::bigint, ARRAY[70000])",
                "passages('a b c d e f g h i j k l', 9)",
            ],
        ),
        (
            "tsvector",
            vec![
                "''",
                "'a'",
                "'a:1A b:2,3B c:16383'",
                "to_tsvector('english', 'fat cats ate fat rats')",
                "(SELECT array_to_tsvector(array_agg(i::text)) FROM generate_series(1, 5000) i)",
            ],
        ),
        (
            "fingerprint",
            vec![
                "'0000000000000000'",
                "'ffffffffffffffff'",
                sixteen,
                "(-77)::bigint::fingerprint",
            ],
        ),
        (
            "fingerprint128",
            vec!["repeat('0', 32)", "repeat('f', 32)", "md5('a')"],
        ),
        (
            "fingerprint256",
            vec!["repeat('0', 64)", "repeat('f', 64)", "md5('a') || md5('b')"],
        ),
        (
            "fingerprint_ball",
            vec![
                "'<0123456789abcdef,3>'",
                "'<0000000000000000,-7>'",
                "'<ffffffffffffffff,2147483647>'",
            ],
        ),
        (
            "fingerprint128_ball",
            vec![
                "'<' || md5('a') || ',3>'",
                "'<' || md5('b') || ',-1>'",
                "'<' || md5('a') || ',999>'",
            ],
        ),
        (
            "fingerprint256_ball",
            vec![
                "'<' || md5('a') || md5('a') || ',31>'",
                "'<' || md5('b') || md5('a') || ',-1>'",
            ],
        ),
        (
            "bigint_ball",
            vec!["'<-5,3>'", "'<9223372036854775807,-1>'", "'<0,64>'"],
        ),
        (
            "minhash_signature",
            vec![
                "minhash('some words of a text')",
                "minhash('some words of a test')",
                "minhash('x', hashes => 16, shingle => 1)",
                "minhash(ARRAY['a','b'], hashes => 1024)",
                "minhash(ARRAY['a','b'], seed => 7)",
                "minhash(ARRAY['a'], scheme => 'datasketch1')",
                "minhash_from_values(array_fill(5::bigint, ARRAY[16]))",
                "minhash_from_values(array_fill(4294967295, ARRAY[17]), 9)",
            ],
        ),
        (
            "minhash_ball",
            vec![
                "minhash_ball(minhash('some words of a text'), 0.2)",
                "minhash_ball(minhash('some words of it'), -1)",
                "minhash_ball(minhash(ARRAY['a','b'], hashes => 17), 1)",
                "_neardup_approximate(minhash_ball(minhash('some words of a text'), 0.9))",
            ],
        ),
        (
            "regclass",
            vec![
                "'t'",
                "'t_fp'",
                "'t_site'",
                "'t_wide'",
                "'t_bits'",
                "'t_ball'",
                "'t_sig'",
                "'t_part'",
                "'t_pkey'",
                "'nothing'",
                "'nothing_fp'",
                "'nothing_sig'",
                "'parts'",
                "'marked'",
                "'marked'",
                "'marked'",
                "'marked_fp'",
                "'parts_fp'",
                "'parts_1_fp_idx'",
                "'v'",
                "'m'",
                "'s'",
                "'pg_class'",
                "'pg_class_oid_index'",
                "'0'",
                "'4294967295'",
            ],
        ),
        (
            "cstring",
            vec![
                "''",
                "'0123456789abcdef'",
                "'0123456789ABCDEg'",
                "'-123456789abcdef'",
                "'<0123456789abcdef,3>'",
                "'<0123456789abcdef,3'",
                "'<,>'",
                "'<1,2147483648>'",
                "'<5,3>'",
                "'<-7,0>'",
                "'<0,64>'",
                "'<' || repeat('0', 32) || ',3>'",
                "repeat('f', 32)",
                "repeat('f', 64)",
                "'neardup1:0:1:AAAA'",
                "minhash('some words of a text')::text",
                "left(minhash('some words')::text, 40)",
                "'<' || minhash('some words of a text')::text || ',7,approximate>'",
                "repeat('x', 100000)",
                "'NaN'",
                "'0.5'",
                "E'\\x01'",
            ],
        ),
    ])
}
