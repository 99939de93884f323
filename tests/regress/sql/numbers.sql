-- Fingerprints as numbers: casts to and from numeric, bit_count, min and max.
\set VERBOSITY default
SELECT 18446744073709551615::fingerprint AS most, 0::numeric::fingerprint AS least,
       9223372036854775808::fingerprint AS beyond_bigint, 1.000::fingerprint AS whole,
       1e3::numeric::fingerprint AS thousand, (-0.0)::fingerprint AS minus_zero;
SELECT 'ffffffffffffffff'::fingerprint::numeric AS most,
    '0000000000000000'::fingerprint::numeric AS least,
       '8000000000000000'::fingerprint::numeric AS half;
SELECT 340282366920938463463374607431768211455::fingerprint128 AS most,
       18446744073709551616::fingerprint128 AS second_word,
       10000000000000000000::fingerprint128 AS twenty_digits;
SELECT repeat('f', 32)::fingerprint128::numeric AS most,
       '00000000000000010000000000000000'::fingerprint128::numeric AS second_word;
SELECT (2::numeric ^ 256 - 1)::fingerprint256 AS most,
    (2::numeric ^ 192)::fingerprint256 AS first_word;
SELECT repeat('f', 64)::fingerprint256::numeric AS most;
-- There and back, for numbers of all lengths.
SELECT count(*) AS numbers,
       count(*) FILTER (WHERE b < 64 AND n::fingerprint::numeric <> n) AS wrong64,
       count(*) FILTER (WHERE b < 128 AND n::fingerprint128::numeric <> n) AS wrong128,
       count(*) FILTER (WHERE n::fingerprint256::numeric <> n) AS wrong256
FROM (SELECT b, trunc(2::numeric ^ b) + d AS n FROM generate_series(0, 255) b, generate_series(-1,
    1) d) x;
-- The same number as through the bits.
SELECT count(*) FROM (SELECT i * 6148914691236517205 AS b FROM generate_series(-1::bigint, 1) i) x
WHERE b::fingerprint::numeric = CASE WHEN b < 0 THEN b + 18446744073709551616 ELSE b END;
-- Assignment: a column takes the decimals that another program has written.
CREATE TEMP TABLE decimals (fp fingerprint, n numeric);
INSERT INTO decimals (fp) VALUES (14242959524133701664), (7.0);
INSERT INTO decimals (fp) SELECT 12345678901234567890::numeric;
UPDATE decimals SET n = fp;
SELECT * FROM decimals ORDER BY fp;
-- Numbers that are too large, or not whole.
SELECT 18446744073709551616::fingerprint;
\echo :SQLSTATE
SELECT 340282366920938463463374607431768211456::fingerprint128;
\echo :SQLSTATE
SELECT ((2::numeric ^ 256)::text::numeric(81, 2))::fingerprint256;
\echo :SQLSTATE
SELECT (1e1000::numeric)::fingerprint256;
\echo :SQLSTATE
SELECT (-1)::numeric::fingerprint;
\echo :SQLSTATE
SELECT 'NaN'::numeric::fingerprint;
\echo :SQLSTATE
SELECT '-Infinity'::numeric::fingerprint128;
\echo :SQLSTATE
SELECT 1.5::fingerprint;
\echo :SQLSTATE
SELECT 0.0001::fingerprint256;
\echo :SQLSTATE
-- No implicit cast: the operators of fingerprints do not accept numbers.
SELECT '00000000000000ff'::fingerprint <~> 1.0;
\echo :SQLSTATE
SELECT '00000000000000ff'::fingerprint + 1.0;
\echo :SQLSTATE

SELECT bit_count('0123456789abcdef'::fingerprint) AS f64, bit_count(repeat('f',
    32)::fingerprint128) AS f128,
       bit_count(('8' || repeat('0', 62) || '1')::fingerprint256) AS f256,
    bit_count('0000000000000000'::fingerprint) AS none,
       bit_count(b'1011') AS server_bit, bit_count('\xff'::bytea) AS server_bytea;
SELECT count(*) FROM (SELECT hashint8extended(i, 0)::fingerprint AS fp FROM generate_series(1,
    100) i) x
WHERE bit_count(fp) <> fp <~> '0000000000000000' OR bit_count(fp) <> bit_count(fp::bit(64));

CREATE TEMP TABLE prints AS
SELECT i, hashint8extended(i, 0)::fingerprint AS fp, md5(i::text)::fingerprint128 AS wide,
       (md5(i::text) || md5((i + 1)::text))::fingerprint256 AS wider FROM generate_series(1,
    1000) i;
INSERT INTO prints VALUES (0, NULL, NULL, NULL);
SELECT min(fp) = (SELECT fp FROM prints ORDER BY fp LIMIT 1) AS min64, max(fp) = (SELECT fp
    FROM prints ORDER BY fp DESC NULLS LAST LIMIT 1) AS max64,
       min(wide) = (SELECT wide FROM prints ORDER BY wide LIMIT 1) AS min128,
    max(wide) = (SELECT wide FROM prints ORDER BY wide DESC NULLS LAST LIMIT 1) AS max128,
       min(wider) = (SELECT wider FROM prints ORDER BY wider LIMIT 1) AS min256,
    max(wider) = (SELECT wider FROM prints ORDER BY wider DESC NULLS LAST LIMIT 1) AS max256
FROM prints;
SELECT min(fp), max(wide), min(wider) FROM prints WHERE i < 0;
SELECT i % 2 AS odd, min(fp) < max(fp) AS fp, min(wide) < max(wide) AS wide,
    min(wider) < max(wider) AS wider FROM prints WHERE i > 0 GROUP BY 1 ORDER BY 1;
SELECT count(*) FILTER (WHERE lowest <> fp) AS moved FROM (SELECT fp,
    min(fp) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND CURRENT ROW) AS lowest FROM prints
    WHERE i > 0) x;
-- A btree index serves min and max from its ends.
CREATE INDEX prints_fp ON prints (fp);
CREATE INDEX prints_wide ON prints (wide);
CREATE INDEX prints_wider ON prints (wider);
ANALYZE prints;
SET enable_seqscan = off;
CREATE FUNCTION index_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan text := '';
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        plan := plan || line;
    END LOOP;
    RETURN substring(plan FROM 'Index Only Scan[a-zA-Z ]* using ([a-z_]+)');
END $$;
SELECT index_of('SELECT min(fp) FROM prints') AS fp,
    index_of('SELECT max(wide) FROM prints') AS wide,
       index_of('SELECT max(wider) FROM prints') AS wider;
DROP FUNCTION index_of;
RESET enable_seqscan;
-- Parallel workers share them.
CREATE TABLE shared_prints AS SELECT * FROM prints;
ALTER TABLE shared_prints SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT min(fp), max(wide), min(wider) FROM shared_prints;
SELECT min(s.fp) = (SELECT min(fp) FROM prints) AS fp, max(s.wide) = (SELECT max(wide)
    FROM prints) AS wide, min(s.wider) = (SELECT min(wider) FROM prints) AS wider
    FROM shared_prints s;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP TABLE shared_prints;

-- Balls are equal if their centres and radii are.
CREATE TEMP TABLE balls AS
SELECT c, r, ball(c::bigint::fingerprint, r) AS b64, ball(lpad(to_hex(c), 32,
    '0')::fingerprint128, r) AS b128,
       ball(lpad(to_hex(c), 64, '0')::fingerprint256, r) AS b256, ball(c::bigint, r) AS big,
       minhash_ball(minhash(ARRAY['a', 'b', c::text]), r / 10.0::float8) AS sig
FROM generate_series(0, 2) c, unnest(ARRAY[-5, -1, 0, 3, 3]) r;
SELECT count(*) AS rows, count(DISTINCT b64) AS b64, count(DISTINCT b128) AS b128,
    count(DISTINCT b256) AS b256, count(DISTINCT big) AS big, count(DISTINCT sig) AS sig FROM balls;
SELECT count(*) FROM balls a JOIN balls b ON a.b64 = b.b64;
SELECT count(*) FROM balls a JOIN balls b ON a.b128 = b.b128 AND a.b256 = b.b256 AND a.big = b.big
    AND a.sig = b.sig;
SELECT count(*) FROM balls a JOIN balls b ON a.b64 <> b.b64 AND a.sig <> b.sig;
SET enable_hashagg = off;
SELECT count(*) FROM (SELECT b64, b128, b256, big, sig FROM balls GROUP BY 1, 2, 3, 4, 5) g;
RESET enable_hashagg;
SET enable_sort = off;
SELECT count(*) FROM (SELECT b64, b128, b256, big, sig FROM balls GROUP BY 1, 2, 3, 4, 5) g;
RESET enable_sort;
SELECT bool_and((a.b64 < b.b64) = ((a.c, greatest(a.r, -1)) < (b.c, greatest(b.r, -1)))) AS b64,
       bool_and((a.b256 >= b.b256) = ((a.c, greatest(a.r, -1)) >= (b.c, greatest(b.r,
    -1)))) AS b256,
       bool_and((a.sig <= b.sig) <> (a.sig > b.sig) AND (a.sig < b.sig) <> (a.sig >= b.sig)) AS sig
FROM balls a, balls b;
CREATE TABLE ball_parts (b fingerprint_ball, s minhash_ball) PARTITION BY HASH (b, s);
CREATE TABLE ball_parts_0 PARTITION OF ball_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE ball_parts_1 PARTITION OF ball_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO ball_parts SELECT b64, sig FROM balls;
SELECT count(*) FROM ball_parts WHERE b = ball(1::bigint::fingerprint, 3);
DROP TABLE ball_parts;
CREATE UNIQUE INDEX ON balls (b64, b128, b256, big);
\echo :SQLSTATE

-- Settings of this extension that do not exist are refused.
LOAD 'neardup';
SET neardup.allow_aproximate = on;
\echo :SQLSTATE
SET neardup.allow_approximate = on;
RESET neardup.allow_approximate;
