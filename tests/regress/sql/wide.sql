-- The types fingerprint128 and fingerprint256: text and binary form, casts, order, distance, balls.
CREATE SCHEMA wide_test;
SET search_path = wide_test, public;

-- Text form
SELECT '0123456789abcdef0123456789ABCDEF'::fingerprint128,
    fingerprint128 '00000000000000000000000000000001',
    fingerprint128('ffffffffffffffffffffffffffffffff');
SELECT '0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF'::fingerprint256;
SELECT '0123456789abcdef'::fingerprint128;
\echo :SQLSTATE
SELECT '0123456789abcdef0123456789abcdef0'::fingerprint128;
\echo :SQLSTATE
SELECT '0123456789abcdef0123456789abcdef'::fingerprint256;
\echo :SQLSTATE
SELECT (repeat('0', 63) || 'x')::fingerprint256;
\echo :SQLSTATE
SELECT (repeat('0', 16) || '+' || repeat('0', 15))::fingerprint128;
\echo :SQLSTATE
SELECT '01234567-89ab-cdef-0123-456789abcdef'::fingerprint128;
\echo :SQLSTATE
SELECT ''::fingerprint256;
\echo :SQLSTATE

-- Casts
SELECT '0123456789abcdeffedcba9876543210'::fingerprint128::uuid,
    '01234567-89ab-cdef-fedc-ba9876543210'::uuid::fingerprint128;
SELECT '0123456789abcdeffedcba9876543210'::fingerprint128::bytea,
    '\x0123456789abcdeffedcba9876543210'::bytea::fingerprint128;
SELECT decode(repeat('0123456789abcdef', 3) || 'fedcba9876543210', 'hex')::fingerprint256::bytea;
SELECT '80000000000000000000000000000001'::fingerprint128::bit(128), b'1'::bit(128)::fingerprint128;
SELECT b'01'::bit(256)::fingerprint256,
    ('1' || repeat('0', 254) || '1')::bit(256)::fingerprint256 = ('8' || repeat('0',
    62) || '1')::fingerprint256 AS both_ends;
-- Integers of all widths, as unsigned numbers.
SELECT 255::fingerprint128, 255::smallint::fingerprint128, 3000000000::fingerprint128,
    255::fingerprint128 = 255::numeric::fingerprint128 AS same, fingerprint128(7);
SELECT 3000000000::fingerprint256 = 3000000000::numeric::fingerprint256 AS big,
    255::fingerprint256 = 255::smallint::fingerprint256 AS small;
SELECT (-1)::fingerprint128;
\echo :SQLSTATE
SELECT (-1)::bigint::fingerprint256;
\echo :SQLSTATE
SELECT '\x0123456789abcdef'::bytea::fingerprint128;
\echo :SQLSTATE
SELECT decode(repeat('00', 33), 'hex')::fingerprint256;
\echo :SQLSTATE
SELECT b'101'::bit(3)::fingerprint256;
\echo :SQLSTATE
-- There is neither a cast nor an operator between widths.
SELECT '0123456789abcdef'::fingerprint::fingerprint128;
\echo :SQLSTATE
SELECT repeat('0', 32)::fingerprint128 <~> repeat('0', 64)::fingerprint256;
\echo :SQLSTATE
SELECT castsource::regtype, casttarget::regtype, castcontext, castmethod
FROM pg_cast WHERE 'fingerprint128'::regtype IN (castsource, casttarget)
    OR 'fingerprint256'::regtype IN (castsource, casttarget) ORDER BY 1, 2;
CREATE TABLE stored (fp fingerprint128, u uuid);
INSERT INTO stored VALUES ('01234567-89ab-cdef-fedc-ba9876543210'::uuid,
    '0123456789abcdeffedcba9876543210'::fingerprint128);
SELECT * FROM stored;

-- Order: as unsigned numbers, in all their words
CREATE TABLE f (id int, fp fingerprint128);
INSERT INTO f VALUES (1, '80000000000000000000000000000000'),
    (2, '7fffffffffffffffffffffffffffffff'), (3, '00000000000000000000000000000000'),
    (4, '7fffffffffffffff8000000000000000'), (5, NULL), (6, '7fffffffffffffffffffffffffffffff'),
    (7, '7fffffffffffffff7fffffffffffffff');
SELECT fp FROM f ORDER BY fp, id;
SELECT fp, count(*) FROM f GROUP BY fp ORDER BY fp DESC NULLS LAST;
SELECT a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt
FROM (VALUES ('7fffffffffffffff7fffffffffffffff'::fingerprint128,
    '7fffffffffffffff8000000000000000'::fingerprint128),
             ('80000000000000008000000000000000', '80000000000000008000000000000000'),
             ('80000000000000000000000000000000', '7fffffffffffffffffffffffffffffff')) AS v (a, b);
-- A larger sort, which uses the sort support function and first words that are often equal,
-- agrees with the operators and with the text.
CREATE FUNCTION fp256(a bigint, b bigint) RETURNS fingerprint256 LANGUAGE sql IMMUTABLE AS
    $$SELECT decode(lpad(to_hex(a), 16, '0') || lpad(to_hex(b), 16,
    '0') || lpad(to_hex(hashint8extended(b, 1)), 16, '0') || lpad(to_hex(hashint8extended(b, 2)),
    16, '0'), 'hex')::fingerprint256$$;
CREATE TABLE many AS SELECT i, fp256(hashint8extended(i % 1000, 0), hashint8extended(i / 2000,
    0)) AS fp FROM generate_series(1, 20000) i;
SELECT count(*) FROM (SELECT fp, lag(fp) OVER (ORDER BY fp) AS before FROM many) s
    WHERE before > fp;
SELECT array_agg(fp::text ORDER BY fp) = array_agg(fp::text
    ORDER BY fp::text COLLATE "C") AS as_text FROM many;

-- btree and hash
CREATE INDEX many_btree ON many (fp);
VACUUM ANALYZE many;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT fp FROM many WHERE fp > ('8' || repeat('0', 63))::fingerprint256
    ORDER BY fp LIMIT 1;
SELECT count(*) > 0 AS above, bool_and(fp > ('8' || repeat('0', 63))::fingerprint256) AS right
    FROM many WHERE fp > ('8' || repeat('0', 63))::fingerprint256;
DROP INDEX many_btree;
CREATE INDEX many_hash ON many USING hash (fp);
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE fp = fp256(hashint8extended(7, 0),
    hashint8extended(3, 0));
SELECT i FROM many WHERE fp = fp256(hashint8extended(7, 0), hashint8extended(3, 0)) ORDER BY i;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT amname, opcname, opcdefault, amvalidate(o.oid) FROM pg_opclass o JOIN pg_am a
    ON a.oid = opcmethod
WHERE opcintype IN ('fingerprint128'::regtype, 'fingerprint256'::regtype,
    'fingerprint128_ball'::regtype, 'fingerprint256_ball'::regtype) ORDER BY 1, 2;
CREATE UNIQUE INDEX ON f (fp);
\echo :SQLSTATE
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM many a JOIN many b ON a.fp = b.fp;
SELECT count(*) FROM many a JOIN many b ON a.fp = b.fp;
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SELECT count(*) FROM many a JOIN many b ON a.fp = b.fp;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET enable_hashjoin;
CREATE TABLE parted (fp fingerprint256) PARTITION BY HASH (fp);
CREATE TABLE parted0 PARTITION OF parted FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES WITH (modulus 2, remainder 1);
INSERT INTO parted SELECT fp FROM many;
SELECT (SELECT count(*) FROM parted) AS all_rows, (SELECT count(*) > 9000 FROM parted0) AS half,
    (SELECT count(*) > 9000 FROM parted1) AS other_half;
SELECT count(*) FROM many WHERE _neardup_fingerprint256_hash(fp) <>
    (_neardup_fingerprint256_hash_extended(fp,
    0) & 4294967295)::bit(32)::int;

-- Binary form: the bytes in the order of the digits
SELECT _neardup_fingerprint128_send('0123456789abcdeffedcba9876543210'),
    _neardup_fingerprint128_ball_send(ball('0123456789abcdeffedcba9876543210'::fingerprint128, 6));
CREATE TABLE sent (i int, a fingerprint128, b fingerprint256, c fingerprint128_ball,
    d fingerprint256_ball);
INSERT INTO sent SELECT i, decode(md5(i::text), 'hex')::fingerprint128, fp,
    ball(decode(md5(i::text), 'hex')::fingerprint128, i - 2), ball(fp, i * 3) FROM many
    WHERE i < 100;
INSERT INTO sent VALUES (0);
CREATE TABLE copied (LIKE sent);
\copy sent TO 'wide.bin' (FORMAT binary)
\copy copied FROM 'wide.bin' (FORMAT binary)
SELECT count(*), count(y.b) AS filled, count(*) FILTER (WHERE x::text = y::text) AS equal
    FROM sent x JOIN copied y USING (i);

-- Distance: against the bits counted one by one
SELECT count(*), max(a <~> b) > 75 AS far,
    count(*) FILTER (WHERE a <~> b <> bit_count(a::bit(128) # b::bit(128))) AS wrong
FROM (SELECT decode(md5(i::text), 'hex')::fingerprint128 AS a, decode(md5((i + 1)::text),
    'hex')::fingerprint128 AS b FROM generate_series(1, 1000) i) v;
SELECT count(*), max(a.fp <~> b.fp) > 140 AS far,
    count(*) FILTER (WHERE a.fp <~> b.fp <> bit_count(a.fp::bit(256) # b.fp::bit(256))) AS wrong
    FROM many a JOIN many b ON b.i = a.i + 7;
SELECT repeat('0', 32)::fingerprint128 <~> 'ffffffffffffffffffffffffffffffff' AS all_128,
    repeat('0', 64)::fingerprint256 <~> repeat('f', 64)::fingerprint256 AS all_256,
       repeat('0', 64)::fingerprint256 <#> (repeat('0', 16) || '1' || repeat('0',
       47))::fingerprint256 AS one, pg_typeof(repeat('0', 64)::fingerprint256 <~> repeat('f',
       64)::fingerprint256) AS type;
-- The conventional threshold: 12 of 128 bits, 31 of 256
SELECT repeat('0', 32)::fingerprint128 ~= 'ff00000000000000000000000000000f' AS twelve,
    repeat('0', 32)::fingerprint128 ~= 'ff10000000000000000000000000000f' AS thirteen,
       repeat('0', 64)::fingerprint256 ~= ('7fffffff' || repeat('0', 56))::fingerprint256 AS
       thirty_one, repeat('0', 64)::fingerprint256 ~= ('ffffffff' || repeat('0',
       56))::fingerprint256 AS thirty_two;
SELECT r, _neardup_within(repeat('0', 64)::fingerprint256,
    ('f' || repeat('0', 62) || 'f')::fingerprint256, r) AS within FROM generate_series(-1, 9, 5) r
    UNION ALL
SELECT 8, _neardup_within(repeat('0', 64)::fingerprint256,
    ('f' || repeat('0', 62) || 'f')::fingerprint256, 8);

-- Balls
SELECT ball('0123456789abcdef0123456789abcdef'::fingerprint128, 6),
    ball('0123456789abcdef0123456789abcdef'::fingerprint128, 129),
    ball('0123456789abcdef0123456789abcdef'::fingerprint128, -5);
SELECT ('<' || repeat('AB', 32) || ',1000>')::fingerprint256_ball,
    pg_typeof(ball(repeat('0', 64)::fingerprint256, 31));
SELECT '<0123456789abcdef,3>'::fingerprint128_ball;
\echo :SQLSTATE
SELECT ('<' || repeat('0', 64) || '>')::fingerprint256_ball;
\echo :SQLSTATE
SELECT r, ('f' || repeat('0', 30) || '1')::fingerprint128 <@ ball(repeat('0', 32)::fingerprint128,
    r) AS contained, ball(repeat('0', 32)::fingerprint128, r) @> ('f' || repeat('0',
    30) || '1')::fingerprint128 AS contains
FROM generate_series(3, 6) r;
SELECT a, b, ball(repeat('0', 64)::fingerprint256,
    a) ~= ball(('f' || repeat('0', 62) || 'f')::fingerprint256, b) AS near
    FROM generate_series(7, 8) a, generate_series(7, 8) b ORDER BY a, b;
-- A bare literal next to an integer is still taken as a number.
SELECT ball(5, 3);

-- simhash128: the features and weights of simhash, in twice the bits
SELECT simhash128('The quick brown fox jumps over the lazy dog');
SELECT pg_typeof(simhash128('abc')), simhash128('abc') = simhash128(body => 'abc') AS named,
    simhash128('{a,b}') = simhash128('{a,b}'::text[]) AS literal_is_no_array,
       simhash128('GRÜßE welt') = simhash128('grüße, WELT!') AS case_and_punctuation,
       simhash128('Hello, World!') = simhash128('hello world') AS ascii;
SELECT simhash128('') IS NULL AS empty, simhash128('!?') IS NULL AS no_word,
    simhash128(NULL) IS NULL AS unknown, simhash128('{}'::text[]) IS NULL AS no_features,
       simhash128(NULL::text[]) IS NULL AS unknown_features, simhash128('{a}'::text[],
       '{0}') IS NULL AS no_weight;
SELECT simhash128(ARRAY['']) AS published_xxh3, simhash128('{a,b,c}'::text[],
    '{2,1,1}') = simhash128('{a,a,b,c}'::text[]) AS weight_is_repetition,
       simhash128('The quick brown fox') = simhash128('{the quick,quick brown,brown fox}'::text[])
       AS own_features;
SELECT simhash128('{a,NULL}'::text[]);
\echo :SQLSTATE
SELECT simhash128('{a,b}'::text[], '{1}');
\echo :SQLSTATE
SELECT simhash128('{a,b}'::text[], '{1,-0.5}');
\echo :SQLSTATE
CREATE TABLE docs (body text, fp fingerprint128 GENERATED ALWAYS AS (simhash128(body)) STORED);
INSERT INTO docs SELECT string_agg(md5(i::text), ' ') FROM generate_series(1, 2000) i;
INSERT INTO docs SELECT replace(body, md5('77'), md5('x')) FROM docs;
SELECT a.fp <~> b.fp BETWEEN 1 AND 12 AS near FROM docs a JOIN docs b ON a.fp < b.fp;

SET client_min_messages = warning;
DROP SCHEMA wide_test CASCADE;
