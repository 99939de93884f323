-- Indexes on MinHash signatures.
CREATE SCHEMA minhash_index_test;
SET search_path = minhash_index_test, public;
\pset format unaligned
\pset tuples_only on

-- Chains of sets, each next to the one before with a few features changed, and some without any.
CREATE TABLE docs (id int PRIMARY KEY, site int, sig minhash_signature);
INSERT INTO docs
    SELECT id, id % 3, minhash(ARRAY(SELECT (id / 50) || ':' || n
    FROM generate_series(3 * (id % 50), 3 * (id % 50) + 59) n))
    FROM generate_series(1, 2000) id;
INSERT INTO docs SELECT id, id % 3, (SELECT sig FROM docs WHERE id = 700) FROM generate_series(2001,
    2050) id;
INSERT INTO docs SELECT id, id % 3, NULL FROM generate_series(2051, 2060) id;
CREATE INDEX docs_sig ON docs USING neardup (sig);
ANALYZE docs;
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'minhash_ops';
SELECT rows, null_rows, entries FROM neardup_index_check('docs_sig', true);

CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        RETURN NEXT regexp_replace(line, '/[0-9a-f]{64,}', '/...', 'g');
    END LOOP;
END $$;
CREATE FUNCTION q(int) RETURNS minhash_signature LANGUAGE sql
    STABLE AS 'SELECT sig FROM docs WHERE id = $1';

-- Conditions that use the index.
SELECT plan('SELECT id FROM docs WHERE sig <%> minhash(ARRAY[''x'']) <= 0.2');
SELECT plan('SELECT id FROM docs WHERE minhash_similarity(minhash(ARRAY[''x'']), sig) >= 0.85');
SELECT plan('SELECT id FROM docs WHERE sig ~= minhash(ARRAY[''x''])');
SELECT plan('SELECT id FROM docs WHERE sig = minhash(ARRAY[''x''])');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT plan('SELECT a.id, b.id FROM docs a JOIN docs b ON a.sig <%> b.sig <= 0.1 AND a.id < b.id');
SELECT plan('SELECT a.id, b.id FROM docs a JOIN docs b ON a.sig ~= b.sig');
PREPARE near(minhash_signature, float8) AS SELECT count(*) FROM docs WHERE sig <%> $1 <= $2;
SET plan_cache_mode = force_generic_plan;
SELECT plan('EXECUTE near(minhash(ARRAY[''x'']), 0.1)');
RESET plan_cache_mode;

-- The index gives the same rows at every distance: within the guarantee of the bands, and beyond.
CREATE FUNCTION agrees(distances float8[], ids int[]) RETURNS TABLE (searches bigint, rows bigint,
    wrong bigint) LANGUAGE plpgsql AS $$
DECLARE r float8; near int; center minhash_signature; found int[]; expected int[];
BEGIN
    searches := 0; rows := 0; wrong := 0;
    FOREACH r IN ARRAY distances LOOP
        FOREACH near IN ARRAY ids LOOP
            SELECT sig INTO center FROM docs d WHERE d.id = near;
            SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
            SET LOCAL enable_indexscan = on;
            EXECUTE 'SELECT array_agg(id ORDER BY id) FROM docs WHERE sig <%> $1 <= $2' INTO found
            USING center, r;
            SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off;
            EXECUTE 'SELECT array_agg(id ORDER BY id) FROM docs WHERE sig <%> $1 <= $2' INTO
            expected USING center, r;
            SET LOCAL enable_indexscan = on;
            searches := searches + 1;
            rows := rows + coalesce(array_length(expected, 1), 0);
            wrong := wrong + (found IS DISTINCT FROM expected)::int;
        END LOOP;
    END LOOP;
    RETURN NEXT;
END $$;
SELECT * FROM agrees('{-0.1,0,0.05,0.1,0.2,0.21,0.25,0.3,0.5,0.8,0.99,1,2}',
    '{1,77,700,1234,1999,2040}');
SET enable_indexscan = off;
SET enable_seqscan = off;
SELECT plan('SELECT count(*) FROM docs WHERE sig <%> minhash(ARRAY[''x'']) <= 0.2');
SELECT count(*) FROM docs WHERE sig <%> q(700) <= 0.2;
RESET enable_seqscan;
RESET enable_indexscan;
SET enable_bitmapscan = off;
SELECT count(*), count(DISTINCT (a.id, b.id)) FROM docs a JOIN docs b ON a.sig <%> b.sig <= 0.2
    WHERE a.id <= 200;
SET enable_indexscan = off;
SELECT count(*), count(DISTINCT (a.id, b.id)) FROM docs a JOIN docs b ON a.sig <%> b.sig <= 0.2
    WHERE a.id <= 200;
RESET enable_indexscan;
RESET enable_bitmapscan;

-- All rows, those without a signature too.
SET enable_seqscan = off;
SELECT count(*), count(sig) FROM docs;
SELECT count(*) FROM docs WHERE sig <%> NULL <= 0.2;
RESET enable_seqscan;

-- Changes.
UPDATE docs SET sig = minhash(ARRAY[id::text]) WHERE id % 7 = 0;
DELETE FROM docs WHERE id % 11 = 0;
SELECT * FROM agrees('{0,0.1,0.2,0.3}', '{1,78,701,1235,1999,2040}');
VACUUM docs;
SELECT * FROM agrees('{0,0.1,0.2,0.3}', '{1,78,701,1235,1999,2040}');
SELECT rows, null_rows FROM neardup_index_check('docs_sig', true);

-- Memory for a few entries only: rows are found in several passes, each once.
SET work_mem = 64;
INSERT INTO docs SELECT id, 0, q(700) FROM generate_series(10000, 12000) id;
SELECT * FROM agrees('{0,0.1,0.2}', '{700,1}');
RESET work_mem;
DELETE FROM docs WHERE id >= 10000;

-- Options.
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (similarity = 0.9);
SELECT * FROM agrees('{0,0.1,0.2,0.3}', '{1,78,701,1235,1999,2040}');
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (bands = 43, rows = 2);
SELECT * FROM agrees('{0,0.1,0.2,0.3,0.32,0.33}', '{1,78,701,1235,1999,2040}');
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (rows = 1);
SELECT * FROM agrees('{0,0.1,0.3,0.9}', '{1,78,701}');
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (hashes = 64);
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (similarity = 0.8, bands = 16);
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (bands = 17, rows = 8);
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (radius = 5);
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (hashes = 8);
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (similarity = 1.5);
CREATE INDEX docs_sig ON docs USING neardup (sig, id);
CREATE TABLE long (sig minhash_signature);
CREATE INDEX ON long USING neardup (sig) WITH (hashes = 1024, similarity = 0.5);
CREATE INDEX ON long USING neardup (sig) WITH (hashes = 1024);
INSERT INTO long SELECT minhash(ARRAY(SELECT 'f' || n FROM generate_series(id, id + 99) n), 1024)
    FROM generate_series(1, 40) id;
INSERT INTO long VALUES (minhash(ARRAY['x']));
SET enable_seqscan = off;
SELECT count(*) FROM long WHERE sig ~= (SELECT sig FROM long LIMIT 1);
SELECT count(*) FROM long WHERE sig ~= minhash(ARRAY['x']);
RESET enable_seqscan;
CREATE INDEX ON docs USING neardup (id int4_scope_ops);
CREATE TABLE prints (fp fingerprint);
CREATE INDEX ON prints USING neardup (fp) WITH (bands = 26);

-- Approximate bands: only if the session allows them, and visible in the plan.
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (bands = 16, rows = 8);
SELECT * FROM agrees('{0,0.1,0.2,0.3}', '{1,78,701,1235,1999,2040}');
SET enable_seqscan = off;
SET neardup.allow_approximate = on;
SELECT plan('SELECT id FROM docs WHERE sig <%> minhash(ARRAY[''x'']) <= 0.2');
PREPARE approximate AS SELECT count(*) < 6 FROM docs WHERE sig <%> (SELECT sig FROM docs
    WHERE id = 1) <= 0.6;
SET plan_cache_mode = force_generic_plan;
EXECUTE approximate;
RESET neardup.allow_approximate;
-- The plan allows approximate bands, but the session no longer does.
EXECUTE approximate;
RESET plan_cache_mode;
RESET enable_seqscan;

-- Constraints.
CREATE TABLE unalike (id int, sig minhash_signature, EXCLUDE USING neardup (sig WITH ~=));
INSERT INTO unalike SELECT id, sig FROM docs WHERE id <= 49 AND sig IS NOT NULL
    ON CONFLICT DO NOTHING;
SELECT count(*) BETWEEN 5 AND 25, (SELECT count(*) FROM unalike a JOIN unalike b
    ON a.sig ~= b.sig AND a.id < b.id) FROM unalike;
\set VERBOSITY terse
INSERT INTO unalike SELECT 100, sig FROM unalike LIMIT 1;
\set VERBOSITY default
INSERT INTO unalike VALUES (101, NULL), (102, NULL);
CREATE TABLE loose (sig minhash_signature, EXCLUDE USING neardup (sig WITH ~=)
    WITH (bands = 16, rows = 8));
CREATE TABLE exact (sig minhash_signature, EXCLUDE USING neardup (sig WITH =)
    WITH (bands = 16, rows = 8));
CREATE TABLE by_site (site text, sig minhash_signature, EXCLUDE USING neardup (site WITH =, sig
    WITH ~=));
INSERT INTO by_site SELECT s, minhash(ARRAY['x', 'y']) FROM unnest(ARRAY['a', 'b', 'a']) s
    ON CONFLICT DO NOTHING;
SELECT site FROM by_site ORDER BY 1;

-- With a scope.
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING neardup (site, sig);
SELECT rows, null_rows FROM neardup_index_check('docs_sig', true);
SET enable_seqscan = off;
SELECT plan('SELECT id FROM docs WHERE site = 1 AND sig <%> minhash(ARRAY[''x'']) <= 0.2');
SELECT count(*) FROM docs WHERE site = 1 AND sig <%> q(701) <= 0.2;
SELECT count(*) FROM docs WHERE sig <%> q(701) <= 0.2;
SELECT count(*) FROM docs WHERE site = 1;
SELECT count(*) FROM docs WHERE site IN (0, 1) AND sig <%> q(701) <= 0.5;
RESET enable_seqscan;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM docs WHERE site = 1 AND sig <%> q(701) <= 0.2;
SELECT count(*) FROM docs WHERE sig <%> q(701) <= 0.2;
SELECT count(*) FROM docs WHERE site = 1;
SELECT count(*) FROM docs WHERE site IN (0, 1) AND sig <%> q(701) <= 0.5;

SET client_min_messages = warning;
DROP SCHEMA minhash_index_test CASCADE;
