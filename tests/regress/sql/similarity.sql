-- Similarity estimated from fingerprints: its values, radii, and conditions that use an index.
CREATE SCHEMA similarity_test;
SET search_path = similarity_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
SET max_parallel_workers_per_gather = 0;

-- Each bit of 64 costs 1/32, down to 0; with 128 and 256 bits a half and a quarter of that.
SELECT d, fingerprint_similarity(a, b) AS of_64, fingerprint_similarity(a::bigint, b::bigint)
    AS of_bigint
FROM unnest(ARRAY[0, 1, 6, 16, 31, 32, 33, 64]) d
CROSS JOIN LATERAL (SELECT repeat('0', 64)::bit(64)::fingerprint AS a,
    (repeat('1', d) || repeat('0', 64 - d))::bit(64)::fingerprint AS b) v;
SELECT fingerprint_similarity(repeat('0', 32)::fingerprint128, (repeat('0', 29) || 'fff')
    ::fingerprint128) AS of_128, fingerprint_similarity(repeat('0', 64)::fingerprint256,
    (repeat('0', 61) || 'fff')::fingerprint256) AS of_256;
SELECT fingerprint_similarity(NULL::fingerprint, '0000000000000000') IS NULL AS of_null,
    pg_typeof(fingerprint_similarity(1::bigint, 1::bigint));
SELECT fingerprint_similarity(a, b) = minhash_similarity(a, b) AS same,
    fingerprint_similarity(a, minhash(ARRAY['x'], 16, seed => 1)) IS NULL AS other_seed
FROM minhash(ARRAY['x', 'y', 'z'], 16) a, minhash(ARRAY['x', 'y'], 16) b;
-- Untyped arguments, and text as some drivers send it: of any width, the same for both.
SELECT fingerprint_similarity('0000000000000000', '00000000000000ff') AS of_64,
    fingerprint_similarity(repeat('0', 32), repeat('0', 30) || 'ff') AS of_128,
    fingerprint_similarity(repeat('0', 64)::varchar, repeat('0', 62) || 'ff') AS of_256,
    fingerprint_similarity(NULL, '00000000000000ff') IS NULL AS of_null,
    fingerprint_similarity('00000000000000ff'::fingerprint, '0000000000000000') AS of_one_type;
SELECT fingerprint_similarity('0000000000000000', repeat('0', 32));
\echo :SQLSTATE
SELECT fingerprint_similarity('7', '9');
\echo :SQLSTATE
SELECT fingerprint_similarity('000000000000000g', '0000000000000000');

-- The radius is the largest distance at that similarity; the radius of 0 includes all.
SELECT s, neardup_radius('minhash64', s) AS of_64, neardup_radius('minhash128', s) AS of_128
FROM unnest(ARRAY[1, 0.95, 0.9, 0.85, 0.8125, 0.8, 0.7, 0.5, 0.001, 0]) s;
SELECT neardup_radius('simhash', 0.8);
\echo :SQLSTATE
SELECT neardup_radius('minhash', 0.8);
SELECT neardup_radius('MinHash64', 0.8);
SELECT neardup_radius('minhash64', 80);
\echo :SQLSTATE
SELECT neardup_radius('minhash64', -0.01);
SELECT neardup_radius('minhash64', 'NaN');
SELECT neardup_radius(NULL, 0.8) IS NULL AS of_null;

-- 5,000 articles: in each ten some have copies that differ in a few bits.
CREATE TABLE articles (id int PRIMARY KEY, site int, fp fingerprint, hash bigint,
    wide fingerprint128);
INSERT INTO articles
SELECT i, i % 2, (base # ((1::bigint << i % 10) - 1) << i % 7)::fingerprint, base # (i % 8),
    left(md5((i / 10)::text), 32)::fingerprint128
FROM (SELECT i, hashint8extended(i / 10, 1) AS base FROM generate_series(1, 5000) i) x;
INSERT INTO articles (id) VALUES (0);
CREATE INDEX articles_fp ON articles USING neardup (fp);
CREATE INDEX articles_site ON articles USING neardup (site, fp);
CREATE INDEX articles_hash ON articles USING neardup (hash bigint_hamming_ops);
CREATE INDEX articles_wide ON articles USING neardup (wide);
VACUUM ANALYZE articles;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line ~ 'Disabled: true';
        line = regexp_replace(line, ' \(returns \$\d\)', '');
        RETURN NEXT replace(line, '(InitPlan 1).col1', '$0');
    END LOOP;
END $$;
\pset tuples_only on
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
-- In a new session, where planning the condition loads the library.
\c
SET search_path = similarity_test, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SET max_parallel_workers_per_gather = 0;
SELECT plan('SELECT id FROM articles
    WHERE fingerprint_similarity(fp, ''00000000000000ff'') >= 0.8');
SELECT plan('SELECT id FROM articles WHERE fingerprint_similarity(fp, ''00000000000000ff'') > 1');
SELECT plan('SELECT id FROM articles
    WHERE 0.8125 < fingerprint_similarity(''00000000000000ff'', fp)');
SELECT plan('SELECT id FROM articles
    WHERE wide <~> repeat(''0f'', 16)::fingerprint128 <= neardup_radius(''minhash128'', 0.8)');
SELECT plan('SELECT id FROM articles WHERE site = 1
    AND fingerprint_similarity(fp, ''00000000000000ff'') >= 1');
SELECT plan('SELECT id FROM articles WHERE fingerprint_similarity(hash, 255) >= 0.8');
SELECT plan('SELECT id FROM articles WHERE fingerprint_similarity(wide,
    (SELECT wide FROM articles WHERE id = 7)) >= 0.8');
SELECT plan('SELECT a.id FROM articles a JOIN articles b
    ON fingerprint_similarity(a.fp, b.fp) >= 0.9 AND a.id < b.id WHERE a.id < 10');
SET plan_cache_mode = force_generic_plan;
PREPARE near AS SELECT id FROM articles WHERE fingerprint_similarity(fp, $1) >= $2;
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'near';
SELECT plan('EXECUTE near(''00000000000000ff'', 0.8)');
RESET plan_cache_mode;
-- On partitions, over expressions, below OR and NOT, and in a view.
CREATE TABLE parts (id int, fp fingerprint128) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (10000);
INSERT INTO parts SELECT id, wide FROM articles WHERE id < 1000;
CREATE INDEX ON parts USING neardup (fp);
CREATE INDEX articles_of_hash ON articles USING neardup ((hash::fingerprint));
ANALYZE parts;
SELECT plan('SELECT id FROM parts WHERE fingerprint_similarity(fp, ''00000000000000ff'
    '00000000000000ff'') >= 0.8');
SELECT plan('SELECT id FROM articles
    WHERE fingerprint_similarity(hash::fingerprint, ''00000000000000ff'') >= 0.8');
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT plan('SELECT id FROM articles WHERE fingerprint_similarity(fp, ''00000000000000ff'') >= 0.9
    OR NOT fingerprint_similarity(hash, 255) < 0.9');
RESET enable_indexscan;
SET enable_bitmapscan = off;
CREATE VIEW similar_to AS SELECT a.id, b.id AS other, fingerprint_similarity(a.fp, b.fp)
    AS similarity FROM articles a, articles b WHERE a.id <> b.id;
SELECT plan('SELECT other FROM similar_to WHERE similarity >= 0.8 AND id = 7');
-- For signatures.
CREATE TABLE signed (id int PRIMARY KEY, sig minhash_signature);
INSERT INTO signed SELECT i, minhash(ARRAY(SELECT i / 4 || 'w' || n
    FROM generate_series(i % 4, i % 4 + 20) n)) FROM generate_series(1, 400) i;
CREATE INDEX signed_sig ON signed USING neardup (sig);
SELECT plan('SELECT id FROM signed WHERE fingerprint_similarity(sig,
    (SELECT sig FROM signed WHERE id = 7)) >= 0.8');
SELECT plan('SELECT id FROM signed
    WHERE 0.8 <= fingerprint_similarity((SELECT sig FROM signed WHERE id = 7), sig)');
SELECT count(*) > 100 AS some, count(*) = (SELECT count(*) FROM signed a JOIN signed b
    ON a.id < b.id AND (a.sig <%> b.sig)::float8 + 0 <= 0.2) AS same
FROM signed a JOIN signed b ON fingerprint_similarity(a.sig, b.sig) >= 0.8 AND a.id < b.id;
-- Without a bound, and without a usable index, it is an ordinary function.
SELECT count(*), min(fingerprint_similarity(fp, '00000000000000ff')) < 0.3 FROM articles;
SELECT count(fp) = (SELECT count(*) FROM articles
    WHERE fingerprint_similarity(fp, '00000000000000ff') >= 0) FROM articles;
SELECT count(*) FROM articles WHERE fingerprint_similarity(fp, '00000000000000ff') > 1;

-- Estimates equal the estimates of the radius.
SET enable_seqscan = on;
CREATE FUNCTION estimated(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    EXECUTE 'EXPLAIN ' || query INTO line;
    RETURN substring(line FROM 'rows=(\d+)');
END $$;
SELECT s, estimated(format('SELECT FROM articles WHERE fingerprint_similarity(fp, '
    '''00000000000000ff'') >= %s', s)) = estimated(format('SELECT FROM articles WHERE fp <~> '
    '''00000000000000ff'' <= %s', neardup_radius('minhash64', s))) AS as_radius
FROM unnest(ARRAY[0, 0.5, 0.8, 1]) s;

-- Pages of ten by percent, each starting after the last row of the one before, are the whole list.
CREATE FUNCTION page(center fingerprint, share float8, after_distance int, after_id int)
RETURNS TABLE (id int, percent int, distance int) LANGUAGE sql STABLE AS $$
    SELECT a.id, round(100 * fingerprint_similarity(a.fp, center))::int, (a.fp <~> center)::int
    FROM articles a
    WHERE fingerprint_similarity(a.fp, center) >= share
        AND (a.fp <~> center, a.id) > (after_distance, after_id)
    ORDER BY a.fp <~> center, a.id LIMIT 10
$$;
-- Removes rows that PostgreSQL 17 and later sort in another way.
SELECT trim(line) FROM plan('SELECT * FROM page(''00000000000000ff'', 0.5, -1, 0)') line
    WHERE line ~ 'Index|Filter';
CREATE FUNCTION pages(center fingerprint, share float8) RETURNS TABLE (n int, id int, distance int)
LANGUAGE plpgsql AS $$
BEGIN
    n = 0; id = 0; distance = -1;
    LOOP
        FOR id, distance IN SELECT p.id, p.distance FROM page(center, share, distance, id) p LOOP
            n = n + 1;
            RETURN NEXT;
        END LOOP;
        EXIT WHEN NOT FOUND;
    END LOOP;
END $$;
SELECT share, count(*), count(*) = count(DISTINCT pages.id) AS each_once,
    bool_and(pages.id = expected.id) AS in_order
FROM unnest(ARRAY[0.25, 0.4, 0.9]) share, articles a
CROSS JOIN LATERAL pages(a.fp, share) LEFT JOIN LATERAL (
    SELECT o.id, row_number() OVER (ORDER BY abs(o.fp <#> a.fp), o.id) AS n FROM articles o
    WHERE 1 - abs(o.fp <#> a.fp) / 32.0 >= share) expected ON expected.n = pages.n
WHERE a.id = 1234 GROUP BY share ORDER BY share;
SELECT share, count(*) FROM unnest(ARRAY[0.25, 0.4, 0.9]) share, articles a, articles o
WHERE a.id = 1234 AND 1 - abs(o.fp <#> a.fp) / 32.0 >= share GROUP BY share ORDER BY share;

SET client_min_messages = warning;
DROP SCHEMA similarity_test CASCADE;
