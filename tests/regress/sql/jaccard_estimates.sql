-- Expected number of rows of conditions on signatures, at every length, and expected cost of
-- searches beyond the bands.
CREATE SCHEMA jaccard_estimates_test;
SET search_path = jaccard_estimates_test, public;
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;
SET jit = off;

-- Chains of ten documents that share most of their features. Every tenth document is the same one.
CREATE TABLE docs AS
    SELECT id, minhash(f, 128) AS s128, minhash(f, 252) AS s252, minhash(f, 253) AS s253,
        minhash(f, 256) AS s256, minhash(f, 512) AS s512, minhash(f, 1024) AS s1024
    FROM (SELECT id, ARRAY(SELECT (CASE WHEN id % 10 = 0 THEN 0 ELSE id / 10 END) || ':' || n
        FROM generate_series(id % 10, id % 10 + 39) n) AS f
        FROM generate_series(1, 3000) id OFFSET 0) features;
INSERT INTO docs (id) SELECT generate_series(3001, 3300);
ANALYZE docs;
-- Values that are not too wide have the server's statistics kinds, and wide values have ours. The
-- width is the width of the stored datum, a TOAST pointer.
SELECT attname, stadistinct < 0, stanullfrac > 0.09, stawidth, array(SELECT k
    FROM unnest(ARRAY[stakind1, stakind2, stakind3]) k
    WHERE k <> 0), array_length(stanumbers1, 1) > 0
FROM pg_statistic JOIN pg_attribute ON attrelid = starelid AND attnum = staattnum
    WHERE starelid = 'docs'::regclass AND attname LIKE 's%' ORDER BY attnum;

CREATE FUNCTION expected(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
CREATE FUNCTION counted(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE n float8;
BEGIN
    EXECUTE 'SELECT count(*) FROM (' || query || ') q' INTO n;
    RETURN n;
END $$;
-- Shows whether the estimate is within a factor of three of the rows, or else one of the figures.
CREATE FUNCTION judged(query text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN greatest(e, 1) / greatest(n, 1) BETWEEN 1 / 3.0
        AND 3 THEN 'near' ELSE format('%s of %s', e, n) END
        FROM (SELECT expected(query), counted(query)) x(e, n)
$$;
CREATE FUNCTION q(k int, of int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE sig minhash_signature;
BEGIN
    EXECUTE format('SELECT s%s FROM docs WHERE id = %s', k, of) INTO sig;
    RETURN quote_literal(sig) || '::minhash_signature';
END $$;
SELECT k, judged(format('SELECT FROM docs WHERE s%s <%%> %s <= 0.2', k, q(k, 10))) AS common,
    judged(format('SELECT FROM docs WHERE s%s ~= %s', k, q(k, 10))) AS conventional,
    judged(format('SELECT FROM docs WHERE s%s <%%> %s <= 0.6', k, q(k, 14))) AS kin,
        judged(format('SELECT FROM docs WHERE minhash_similarity(s%s, %s) > 0.8', k, q(k, 10))) AS
        similar,
    judged(format('SELECT FROM docs WHERE s%s <%%> minhash(''nothing like it'', hashes => %s) <= '
        '0.2',
    k, k)) AS none,
    judged(format('SELECT FROM docs WHERE s%s <%%> %s <= 1', k, q(k, 14))) AS "all"
FROM unnest(ARRAY[128, 252, 253, 256, 512, 1024]) k;
-- Joins, compared with their estimate at 128 values.
SELECT k, e / e128 BETWEEN 1 / 3.0 AND 3 AS as_for_128
FROM (SELECT k, e, first_value(e) OVER (ORDER BY k) AS e128
    FROM (SELECT k, expected(format('SELECT FROM docs a JOIN docs b ON a.s%s <%%> b.s%s <= 0.2', k,
    k)) AS e FROM unnest(ARRAY[128, 256, 512, 1024]) k) x) y;
-- Equality: with the most common value, and with a unique one.
SELECT k, judged(format('SELECT FROM docs WHERE s%s = %s', k, q(k, 10))) AS common,
    judged(format('SELECT FROM docs WHERE s%s = %s', k, q(k, 14))) AS single
FROM unnest(ARRAY[128, 256, 512, 1024]) k;
-- With little memory, values that do not fit are counted as before.
SET maintenance_work_mem = '1MB';
ANALYZE docs (s1024);
SELECT stawidth, array(SELECT k FROM unnest(ARRAY[stakind1, stakind2, stakind3]) k WHERE k <> 0)
    FROM pg_statistic JOIN pg_attribute ON attrelid = starelid AND attnum = staattnum
    WHERE starelid = 'docs'::regclass AND attname = 's1024';
RESET maintenance_work_mem;
-- Columns of several lengths, of NULLs, and of nothing.
CREATE TABLE mixed AS SELECT id, CASE WHEN id % 2 = 0 THEN s128 ELSE s1024 END AS sig,
    NULL::minhash_signature AS none FROM docs;
ANALYZE mixed;
SELECT judged(format('SELECT FROM mixed WHERE sig <%%> %s <= 0.2', q(128, 10))),
    judged(format('SELECT FROM mixed WHERE none <%%> %s <= 0.2', q(128, 10)));
CREATE TABLE empty (sig minhash_signature);
ANALYZE empty;

-- The radius of a ball may be known without its centre: beyond the bands an index reads all
-- sketches.
CREATE INDEX docs_sig ON docs USING neardup (s128);
CREATE FUNCTION scans(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; found text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        found := found || coalesce(substring(line
            FROM '(?:Index|Index Only|Seq|Bitmap Heap) Scan') || ' ', '');
    END LOOP;
    RETURN found;
END $$;
SELECT scans('SELECT FROM docs a JOIN docs b ON a.s128 <%> b.s128 <= 0.1'),
    scans('SELECT FROM docs a JOIN docs b ON minhash_similarity(a.s128, b.s128) >= 0.85'),
    scans('SELECT FROM docs a JOIN docs b ON a.s128 ~= b.s128');
SELECT scans('SELECT FROM docs a JOIN docs b ON a.s128 <%> b.s128 <= 0.6'),
    scans('SELECT FROM docs a JOIN docs b ON minhash_similarity(a.s128, b.s128) > 0.4'),
    scans('SELECT FROM docs a JOIN docs b ON a.s128 <@ minhash_ball(b.s128, 0.6)');
SELECT scans('SELECT FROM docs WHERE s128 <%> (SELECT s128 FROM docs WHERE id = 7) <= 0.1'),
    scans('SELECT FROM docs WHERE s128 <%> (SELECT s128 FROM docs WHERE id = 7) <= 0.6');
-- The same question of fingerprints.
CREATE TABLE prints AS
    SELECT id, hashint8extended(id, 1)::fingerprint AS fp FROM generate_series(1, 3000) id;
CREATE INDEX ON prints USING neardup (fp);
ANALYZE prints;
SELECT scans('SELECT FROM prints a JOIN prints b ON a.fp <~> b.fp <= 3');

SET client_min_messages = warning;
DROP SCHEMA jaccard_estimates_test CASCADE;
