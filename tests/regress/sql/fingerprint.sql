-- The type fingerprint: text and binary form, casts, order, hashing.
CREATE SCHEMA fingerprint_test;
SET search_path = fingerprint_test, public;

-- Text form
SELECT '0123456789abcdef'::fingerprint, '0123456789ABCDEF'::fingerprint,
    fingerprint '0000000000000000', fingerprint('ffffffffffffffff');
SELECT '0123456789abcde'::fingerprint;
\echo :SQLSTATE
SELECT '0123456789abcdef0'::fingerprint;
\echo :SQLSTATE
SELECT ''::fingerprint;
\echo :SQLSTATE
SELECT ' 0123456789abcdef'::fingerprint;
\echo :SQLSTATE
SELECT '0x23456789abcdef'::fingerprint;
\echo :SQLSTATE
SELECT '+123456789abcdef'::fingerprint;
\echo :SQLSTATE
SELECT 'ünïcödé'::fingerprint;
\echo :SQLSTATE
SELECT repeat('x', 100)::fingerprint;
\echo :SQLSTATE
SELECT NULL::fingerprint IS NULL AS is_null;

-- Casts
SELECT 'ffffffffffffffff'::fingerprint::bigint, '7fffffffffffffff'::fingerprint::bigint,
    (-2)::bigint::fingerprint, fingerprint(5::bigint);
SELECT '8000000000000001'::fingerprint::bit(64),
    '8000000000000001'::fingerprint::bit(64)::fingerprint, b'1'::bit(64)::fingerprint;
SELECT '0123456789abcdef'::fingerprint::bytea, '\x0123456789abcdef'::bytea::fingerprint;
SELECT '0123456789abcdef'::fingerprint::text, '0123456789abcdef'::text::fingerprint;
SELECT b'101'::bit(3)::fingerprint;
\echo :SQLSTATE
SELECT repeat('1', 72)::bit(72)::fingerprint;
\echo :SQLSTATE
SELECT '\x01'::bytea::fingerprint;
\echo :SQLSTATE
SELECT repeat('a', 20000)::bytea::fingerprint;
\echo :SQLSTATE
-- No implicit cast: an integer becomes a fingerprint only by a cast or an assignment.
SELECT '0123456789abcdef'::fingerprint = 5::bigint;
\echo :SQLSTATE
SELECT '0123456789abcdef'::fingerprint = 5;
\echo :SQLSTATE
-- Integers of all widths, with the bits of a bigint.
SELECT 255::fingerprint, 255::smallint::fingerprint, 3000000000::fingerprint,
    255::fingerprint = 255::bigint::fingerprint AS same;
SELECT (-1)::fingerprint, (-1)::smallint::fingerprint, fingerprint(-1), fingerprint(-1::smallint);
CREATE TABLE stored (fp fingerprint, h bigint);
INSERT INTO stored VALUES (255, NULL), (255::smallint, NULL), (255::bigint,
    '00000000000000ff'::fingerprint);
SELECT * FROM stored;
SELECT castsource::regtype, casttarget::regtype, castcontext, castmethod
FROM pg_cast WHERE 'fingerprint'::regtype IN (castsource, casttarget) ORDER BY 1, 2;

-- Order: as unsigned numbers
CREATE TABLE f (id int, fp fingerprint);
INSERT INTO f VALUES (1, '8000000000000000'), (2, '7fffffffffffffff'), (3, '0000000000000000'),
    (4, 'ffffffffffffffff'), (5, NULL), (6, '7fffffffffffffff');
SELECT fp FROM f ORDER BY fp, id;
SELECT fp, count(*) FROM f GROUP BY fp ORDER BY fp DESC NULLS LAST;
SELECT DISTINCT fp FROM f ORDER BY fp;
SELECT a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt
FROM (VALUES ('7fffffffffffffff'::fingerprint, '8000000000000000'::fingerprint),
             ('8000000000000000', '8000000000000000'),
             ('8000000000000000', '7fffffffffffffff')) AS v (a, b);
SELECT _neardup_fingerprint_cmp('7fffffffffffffff', '8000000000000000') AS lt,
    _neardup_fingerprint_cmp('8000000000000000', '8000000000000000') AS eq,
       _neardup_fingerprint_cmp('8000000000000000', '7fffffffffffffff') AS gt;
-- A larger sort, which uses the sort support function, agrees with the operators.
CREATE TABLE many AS SELECT i, (hashint8extended(i, 0))::fingerprint AS fp
    FROM generate_series(1, 20000) i;
SELECT count(*) FROM (SELECT fp, lag(fp) OVER (ORDER BY fp) AS before FROM many) s
    WHERE before > fp;

-- Indexes
CREATE UNIQUE INDEX many_btree ON many (fp);
CREATE INDEX many_hash ON many USING hash (fp);
VACUUM ANALYZE many;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT fp FROM many WHERE fp > '8000000000000000' ORDER BY fp LIMIT 1;
SELECT count(*) > 0 AS above, bool_and(fp > '8000000000000000') AS right FROM many
    WHERE fp > '8000000000000000';
DROP INDEX many_btree;
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE fp = hashint8extended(7, 0)::fingerprint;
SELECT i FROM many WHERE fp = hashint8extended(7, 0)::fingerprint;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT amname, opcname, opcdefault, amvalidate(o.oid)
FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod WHERE opcintype = 'fingerprint'::regtype
    AND amname IN ('btree', 'hash') ORDER BY 1;
INSERT INTO f VALUES (7, '8000000000000000');
CREATE UNIQUE INDEX ON f (fp);
\echo :SQLSTATE

-- Joins by hash and by merge; partitions by hash
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
CREATE TABLE parted (fp fingerprint) PARTITION BY HASH (fp);
CREATE TABLE parted0 PARTITION OF parted FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES WITH (modulus 2, remainder 1);
INSERT INTO parted SELECT fp FROM many;
SELECT (SELECT count(*) FROM parted) AS all_rows, (SELECT count(*) > 9000 FROM parted0) AS half,
    (SELECT count(*) > 9000 FROM parted1) AS other_half;
SELECT count(*) FROM many WHERE _neardup_fingerprint_hash(fp) <>
    (_neardup_fingerprint_hash_extended(fp,
    0) & 4294967295)::bit(32)::int;

-- Binary form, through COPY and the send function
SELECT _neardup_fingerprint_send('0123456789abcdef');
\copy (SELECT i, fp FROM many WHERE i <= 1000) TO 'fingerprint.bin' (FORMAT binary)
CREATE TABLE copied (LIKE many);
\copy copied FROM 'fingerprint.bin' (FORMAT binary)
SELECT count(*), count(*) FILTER (WHERE a.fp = b.fp) AS equal FROM copied a JOIN many b USING (i);
-- A message of another length is an error.
CREATE TABLE narrow (i int, fp int);
INSERT INTO narrow VALUES (1, 2);
\copy narrow TO 'fingerprint.bin' (FORMAT binary)
\set VERBOSITY sqlstate
\copy copied FROM 'fingerprint.bin' (FORMAT binary)
\set VERBOSITY default
-- The binary form of an integer column is valid for a fingerprint.
CREATE TABLE wide (i int, h bigint);
INSERT INTO wide VALUES (0, 255);
\copy wide TO 'fingerprint.bin' (FORMAT binary)
\copy copied FROM 'fingerprint.bin' (FORMAT binary)
SELECT fp FROM copied WHERE i = 0;

SET client_min_messages = warning;
DROP SCHEMA fingerprint_test CASCADE;
