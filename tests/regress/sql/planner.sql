-- The plans of comparisons of distances, and their use of indexes on either side of a join. Shows
-- conditions only: the rest of a plan differs by server version.
CREATE SCHEMA planner_test;
SET search_path = planner_test, public;
CREATE FUNCTION conditions(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ '(Cond|Filter|Order By|Sort Key):' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
CREATE TABLE d (id bigint, fp fingerprint, h bigint, body text, r2 int2, r4 int4, r8 int8);
CREATE TABLE e (LIKE d);
\t on
\pset format unaligned

\echo -- Without an index: the forms
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 3$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < 4::int8$$);
SELECT conditions($$SELECT FROM d WHERE 3::int2 >= '0123456789abcdef' <~> fp$$);
SELECT conditions($$SELECT FROM d WHERE 4::hamming > '0123456789abcdef' <~> fp$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= -1$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 9223372036854775807$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < (-9223372036854775808)::int8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' > 3$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' >= 3$$);
SELECT conditions($$SELECT FROM d WHERE NOT fp <~> '0123456789abcdef' > 3$$);
SELECT conditions($$SELECT FROM d WHERE NOT fp <~> '0123456789abcdef' <= 3$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 0$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <> 0$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 2$$);
SELECT conditions($$SELECT FROM d WHERE simhash(body) <~> '0123456789abcdef' = 2$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <> 2$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' BETWEEN 1 AND 3$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= r2$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < r2$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= r4$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < r4$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= r8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < r8$$);
SELECT conditions($$SELECT FROM d WHERE h <~> 5 <= 3$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> h::fingerprint <= 3$$);
SELECT conditions($$SELECT FROM d WHERE _neardup_within(fp, '0123456789abcdef', 3)$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> simhash('some words') <= 3$$);
SELECT conditions($$SELECT FROM d ORDER BY fp <~> '0123456789abcdef'$$);
SELECT conditions($$SELECT FROM d WHERE (SELECT count(*) FROM e WHERE e.fp <~> d.fp <= 3) > 0$$);
\echo -- A literal NULL decides at once.
EXPLAIN (COSTS OFF) SELECT FROM d WHERE fp <~> '0123456789abcdef' <= NULL;
EXPLAIN (COSTS OFF) SELECT '0123456789abcdef'::fingerprint <~> '0123456789abcdee' <= 3 AS folded;

\echo -- Stored distances: integer operators of the server
CREATE TABLE s (id int, d hamming);
SELECT conditions('SELECT FROM s WHERE d <= 3 AND 2::int8 < d AND d <> 5::int2');
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT conditions('SELECT FROM s a JOIN s b USING (d)');
SELECT conditions('WITH c AS MATERIALIZED (SELECT d FROM s) SELECT FROM c a JOIN c b USING (d)');
RESET enable_nestloop;
RESET enable_mergejoin;

\echo -- Indexes
CREATE INDEX d_fp ON d USING neardup (fp);
CREATE INDEX d_h ON d USING neardup (h bigint_hamming_ops);
CREATE INDEX d_body ON d USING neardup (simhash(body));
CREATE INDEX e_fp ON e USING neardup (fp);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT conditions($$SELECT id FROM d WHERE fp <~> '0123456789abcdef' <= 3$$);
SELECT conditions($$SELECT id FROM d WHERE 4 > '0123456789abcdef' <~> fp$$);
SELECT conditions($$SELECT id FROM d WHERE fp <~> '0123456789abcdef' BETWEEN 1 AND 3$$);
SELECT conditions($$SELECT id FROM d WHERE fp <~> '0123456789abcdef' = 2$$);
SELECT conditions($$SELECT id FROM d WHERE NOT fp <~> '0123456789abcdef' >= 4$$);
SELECT conditions($$SELECT id FROM d WHERE ball('0123456789abcdef'::fingerprint, 3) @> fp$$);
SELECT conditions($$SELECT id FROM d WHERE fp ~= '0123456789abcdef'$$);
SELECT conditions($$SELECT id FROM d WHERE '0123456789abcdef' ~= fp$$);
SELECT conditions($$SELECT id FROM d WHERE h <~> 5 <= 3::int8$$);
SELECT conditions($$SELECT id FROM d WHERE simhash(body) <~> simhash('some words') <= 3$$);
\echo -- A radius from the same row cannot be an index condition.
SET enable_seqscan = on;
SELECT conditions($$SELECT id FROM d WHERE fp <~> '0123456789abcdef' <= r4$$);
SET enable_seqscan = off;

\echo -- Views, subqueries, functions, partitions
CREATE VIEW v AS SELECT id, fp <~> '0123456789abcdef' AS distance FROM d;
CREATE VIEW u AS SELECT id, fp <~> '0123456789abcdef' AS distance FROM d UNION ALL SELECT id,
    fp <~> '0123456789abcdef' FROM e;
CREATE VIEW g AS SELECT DISTINCT id, fp <~> '0123456789abcdef' AS distance FROM d;
CREATE FUNCTION near(a fingerprint, b fingerprint) RETURNS boolean LANGUAGE sql
    IMMUTABLE AS 'SELECT a <~> b <= 3';
SELECT conditions('SELECT id FROM v WHERE distance <= 3');
SELECT conditions('SELECT id FROM u WHERE distance <= 3');
SELECT * FROM conditions('SELECT id FROM g WHERE distance <= 3') c WHERE c !~ 'Sort';
SELECT * FROM conditions('SELECT id FROM g WHERE 4.5::float8 > distance') c WHERE c !~ 'Sort';
SELECT * FROM conditions($$SELECT id, fp <~> '0123456789abcdef' FROM d GROUP BY 1, 2
    HAVING fp <~> '0123456789abcdef' <= 3$$) c WHERE c !~ 'Sort';
SELECT conditions($$SELECT id FROM d WHERE near('0123456789abcdef', fp)$$);
CREATE TABLE p (id int, fp fingerprint) PARTITION BY HASH (id);
CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (modulus 2, remainder 1);
CREATE INDEX ON p USING neardup (fp);
SELECT conditions($$SELECT id FROM p WHERE fp <~> '0123456789abcdef' <= 3$$);
CREATE INDEX d_part ON d (id) WHERE fp <~> '0123456789abcdef' <= 3;
SELECT conditions($$SELECT id FROM d WHERE id = 1 AND fp <~> '0123456789abcdef' < 4$$);
DROP INDEX d_part;

\echo -- Joins, from either side
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp <~> e.fp <= 3');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON e.fp <~> d.fp < 4');
SELECT conditions('SELECT d.id FROM (SELECT * FROM e OFFSET 0) e JOIN d ON d.fp <~> e.fp <= 3');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp <~> e.fp <= d.r4');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp <~> e.fp < d.r8');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d LEFT JOIN e ON d.fp <~> e.fp <= '
    '3');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d WHERE EXISTS (SELECT FROM e '
    'WHERE d.fp <~> e.fp <= 3)');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d WHERE NOT EXISTS (SELECT FROM e '
    'WHERE d.fp <~> e.fp <= 3)');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d, LATERAL (SELECT * FROM e WHERE '
    'd.fp <~> e.fp <= 3 LIMIT 5) e');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON near(d.fp, e.fp)');
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp ~= e.fp');
SELECT conditions('SELECT d.id FROM (SELECT * FROM e OFFSET 0) e JOIN d ON d.h <~> e.h <= 3');
\echo -- A radius from the indexed table cannot be an index condition.
SET enable_seqscan = on;
SELECT conditions('SELECT d.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp <~> e.fp <= e.r4');
SET enable_seqscan = off;

\echo -- Nearest first
SELECT conditions($$SELECT id FROM d ORDER BY fp <~> '0123456789abcdef' LIMIT 10$$);
SELECT conditions($$SELECT id, '0123456789abcdef' <~> fp AS distance FROM d ORDER BY distance
    LIMIT 10$$);
SELECT conditions($$SELECT id FROM d WHERE fp <~> '0123456789abcdef' <= 10
    ORDER BY fp <~> '0123456789abcdef' LIMIT 10$$);
SELECT conditions($$SELECT id FROM d ORDER BY h <~> 5 LIMIT 10$$);
SELECT conditions($$SELECT id FROM d ORDER BY simhash(body) <~> simhash('some words') LIMIT 10$$);
SELECT conditions($$SELECT id FROM v ORDER BY distance LIMIT 10$$);
SELECT * FROM conditions($$SELECT id FROM p ORDER BY fp <~> '0123456789abcdef' LIMIT 10$$) c
    WHERE c !~ 'Sort';
SELECT conditions('SELECT n.* FROM (SELECT * FROM d OFFSET 0) d, LATERAL (SELECT e.id FROM e '
    'ORDER BY e.fp <~> d.fp LIMIT 3) n');
SELECT conditions('SELECT n.* FROM (SELECT * FROM d OFFSET 0) d, LATERAL (SELECT e.id FROM e '
    'WHERE e.fp <~> d.fp <= 8 ORDER BY e.fp <~> d.fp LIMIT 3) n');

\echo -- Prepared statements with a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE untyped AS SELECT id FROM d WHERE fp <~> $1 <= $2;
SELECT conditions($$EXECUTE untyped('0123456789abcdef', 3)$$);
PREPARE below AS SELECT id FROM d WHERE $1 <~> fp < $2;
SELECT conditions($$EXECUTE below('0123456789abcdef', 3)$$);
PREPARE typed2(fingerprint, int2) AS SELECT id FROM d WHERE fp <~> $1 <= $2;
SELECT conditions($$EXECUTE typed2('0123456789abcdef', 3)$$);
PREPARE typed8(fingerprint, int8) AS SELECT id FROM d WHERE $2 >= $1 <~> fp;
SELECT conditions($$EXECUTE typed8('0123456789abcdef', 3)$$);
PREPARE range AS SELECT id FROM d WHERE fp <~> $1 BETWEEN $2 AND $3;
SELECT conditions($$EXECUTE range('0123456789abcdef', 1, 3)$$);
PREPARE nearest AS SELECT id FROM d ORDER BY fp <~> $1 LIMIT $2;
SELECT conditions($$EXECUTE nearest('0123456789abcdef', 10)$$);
PREPARE words AS SELECT id FROM d WHERE simhash(body) <~> simhash($1) <= 3;
SELECT conditions($$EXECUTE words('some words')$$);
SET plan_cache_mode = force_custom_plan;
SELECT conditions($$EXECUTE untyped('0123456789abcdef', 3)$$);
RESET plan_cache_mode;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

\echo -- Estimates: within a factor of two of what is there
DROP TABLE d, e CASCADE;
SELECT setseed(0.25);
CREATE TABLE d AS SELECT i AS id, hashint8extended(i, 0)::fingerprint AS fp
    FROM generate_series(1, 50000) i;
CREATE TABLE c AS SELECT i AS id, CASE i % 4 WHEN 0 THEN 'ffffffffffffffff'::fingerprint WHEN 1
    THEN NULL ELSE hashint8extended(i % 1000, 7)::fingerprint END AS fp
    FROM generate_series(1, 20000) i;
-- Reads all rows: a sample would differ each time.
ALTER TABLE d ALTER fp SET STATISTICS 10000;
ANALYZE d, c;
CREATE FUNCTION estimate(query text, low float8, high float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan json; n float8;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    n := plan -> 0 -> 'Plan' ->> 'Plan Rows';
    RETURN CASE WHEN n BETWEEN low AND high THEN 'as expected: ' ELSE n || ' rows: ' END || query;
END $$;
SET max_parallel_workers_per_gather = 0;
SELECT estimate($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 3$$, 1, 1);
SELECT estimate($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 24$$, 700, 3000);
SELECT estimate($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 32$$, 25000, 50000);
SELECT estimate($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 64$$, 50000, 50000);
SELECT estimate($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= -1$$, 1, 1);
SELECT estimate($$SELECT FROM d WHERE fp <~> '0123456789abcdef' > 3$$, 49999, 50000);
SELECT estimate($$SELECT FROM d WHERE fp ~= '0123456789abcdef'$$, 1, 1);
SELECT estimate($$SELECT FROM d WHERE '0123456789abcdef'::fingerprint ~= fp$$, 1, 1);
SELECT estimate($$SELECT FROM d WHERE ball('0123456789abcdef'::fingerprint, 64) @> fp$$, 50000,
    50000);
SELECT estimate('SELECT FROM d a JOIN d b ON a.fp <~> b.fp <= 3', 50000, 100000);
SELECT estimate('SELECT FROM d a JOIN d b ON a.fp ~= b.fp', 50000, 100000);
SELECT estimate('SELECT FROM d a JOIN d b ON a.fp <@ ball(b.fp, 3)', 50000, 100000);
SELECT estimate('SELECT FROM d a JOIN d b ON a.fp <~> b.fp <= 64', 2.5e9, 2.5e9);
SELECT estimate('SELECT FROM d a WHERE EXISTS (SELECT FROM d b WHERE a.fp <~> b.fp <= 3)', 25000,
    50000);
SELECT estimate($$SELECT FROM c WHERE fp <~> 'ffffffffffffffff' <= 3$$, 4500, 5500);
SELECT estimate($$SELECT FROM c WHERE fp <~> 'fffffffffffffff0' <= 8$$, 4500, 5500);
SELECT estimate($$SELECT FROM c WHERE fp <~> '0123456789abcdef' <= 3$$, 5, 80);
SELECT estimate($$SELECT FROM c WHERE fp <~> '0123456789abcdef' <= 64$$, 14500, 15500);
\echo -- Never analyzed: different documents have different fingerprints.
CREATE TABLE fresh WITH (autovacuum_enabled = off) AS SELECT * FROM d;
SELECT estimate($$SELECT FROM fresh WHERE fp <~> '0123456789abcdef' <= 3$$, 1, 10);

SET client_min_messages = warning;
DROP SCHEMA planner_test CASCADE;
