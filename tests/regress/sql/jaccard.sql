-- Estimates of signatures as numbers, conditions on them, and signatures of different kinds.
CREATE SCHEMA jaccard_test;
SET search_path = jaccard_test, public;
\pset format unaligned
\pset tuples_only on

-- Rows in chains: neighbours share most of their features.
CREATE TABLE docs (id int PRIMARY KEY, kind text NOT NULL, secret boolean NOT NULL, sig
    minhash_signature);
INSERT INTO docs SELECT id, 'usual', id % 5 = 0, minhash(f)
    FROM (SELECT id, ARRAY(SELECT (id / 20) || ':' || n
    FROM generate_series(id % 20, id % 20 + 39) n) AS f FROM generate_series(1, 600) id) x;
CREATE TABLE pairs_of AS TABLE docs;
CREATE INDEX docs_sig ON docs USING neardup (sig);
ANALYZE docs;

-- A domain over double precision.
SELECT typtype, typbasetype::regtype FROM pg_type WHERE typname = 'jaccard';
SELECT sig <%> sig AS distance, minhash_similarity(sig, sig) AS similarity FROM docs
    WHERE id = 1 \gdesc
PREPARE untyped AS SELECT id FROM docs WHERE sig <%> $1 <= $2 AND minhash_similarity($1, sig) > $3;
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped';
SELECT coalesce(sig <%> NULL, 1), pg_typeof(coalesce(sig <%> sig, 1)), greatest(sig <%> sig, 0.5),
    CASE WHEN id = 1 THEN sig <%> sig ELSE 0.5 END, to_jsonb(sig <%> sig), nullif(sig <%> sig, 0)
    IS NULL FROM docs WHERE id = 1;
SELECT sig <%> sig FROM docs WHERE id = 1 UNION SELECT 1 UNION SELECT 0.5 ORDER BY 1;
SELECT pg_typeof(d), d FROM (SELECT sig <%> sig AS d FROM docs WHERE id = 1
    UNION ALL SELECT 0.5::real) s;
SELECT sum(d) = 0, avg(d), max(d), min(d), pg_typeof(sum(d)), count(DISTINCT d)
    FROM (SELECT sig <%> sig AS d FROM docs) s;
SELECT d, count(*) FROM (SELECT sig <%> sig AS d FROM docs) s GROUP BY d;
SELECT array_agg(d::float8) FROM (SELECT sig <%> sig AS d FROM docs WHERE id < 4) s;
SELECT (d, 1) > (0, 0), d IN (0, 1), d = ANY ('{0,1}'), d BETWEEN 0 AND 0.5, d = d
    FROM (SELECT sig <%> sig AS d FROM docs WHERE id = 1 OFFSET 0) s;
-- The server's own comparisons are unchanged, also with other domains.
SELECT 1 <= 2.5, 2.5 >= 1, 1::int2 < 2.5, 1::bigint <> 1.0, 1::real = 1.0, 0.5::float8 < 1, 1 <
    0.5::float8, 2.5 < 3::real, '3' < 4.0;
CREATE DOMAIN share AS double precision;
SELECT 0.5::share <= 0.5, 1 > 0.5::share, 0.5::share < 1::share;

-- Conditions, also when planning is the first to load the library: a new session for each.
-- The names of subqueries in PostgreSQL 17 and 18 and added lines are normalized to those in 15.
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line ~ 'Disabled: true|IS NOT NULL';
        line = regexp_replace(line, ' \(returns \$\d\)', '');
        line = replace(replace(line, '(InitPlan 1).col1', '$0'), '(InitPlan 2).col1', '$1');
        RETURN NEXT regexp_replace(line, '/[0-9a-f]{64,}', '/...', 'g');
    END LOOP;
END $$;
\c
SET search_path = jaccard_test, public; SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT plan('SELECT a.id FROM docs a JOIN docs b ON a.sig <%> b.sig <= 0.2');
\c
SET search_path = jaccard_test, public; SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT
    plan('SELECT a.id FROM pairs_of a LEFT JOIN docs b ON minhash_similarity(a.sig, b.sig) >= 0.8');
\c
SET search_path = jaccard_test, public; SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT plan('SELECT id FROM docs WHERE sig <%> (SELECT sig FROM pairs_of WHERE id = 7) < 0.2');
\c
SET search_path = jaccard_test, public; SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT
    plan('SELECT id FROM (SELECT id, sig <%> (SELECT sig FROM pairs_of WHERE id = 7) AS d FROM '
        'docs) s WHERE d <= 0.1::real');
\c
SET search_path = jaccard_test, public; SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT
    plan('SELECT id FROM (TABLE docs UNION ALL TABLE docs) s WHERE 0.8 <= '
        'minhash_similarity(sig, (SELECT sig FROM pairs_of WHERE id = 7))');
\c
SET search_path = jaccard_test, public; SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT
    plan('SELECT id FROM pairs_of a WHERE EXISTS (SELECT FROM (TABLE docs UNION ALL TABLE docs) '
        'b WHERE b.id <> a.id AND a.sig <%> b.sig = 0)');
SELECT plan('DELETE FROM docs WHERE sig <%> (SELECT sig FROM pairs_of WHERE id = 7) <= 0.2');
SELECT
    plan('SELECT id FROM docs WHERE NOT (sig <%> (SELECT sig FROM pairs_of WHERE id = 7) > 0.2 '
        'OR id = 3)');
SELECT
    plan('SELECT min(id) FROM docs WHERE sig <%> (SELECT sig FROM pairs_of WHERE id = 7) <= 0.2');
SET enable_bitmapscan = on;
SELECT
    plan('SELECT id FROM docs WHERE sig <%> (SELECT sig FROM pairs_of WHERE id = 7) <= 0.2 OR '
        'sig <%> (SELECT sig FROM pairs_of WHERE id = 8) <= 0.1');
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE untyped AS SELECT id FROM docs WHERE sig <%> $1 <= $2;
SELECT plan('EXECUTE untyped(NULL, 0.2)');
RESET plan_cache_mode;
-- A partial index whose predicate is such a condition, and a view's column.
CREATE INDEX docs_like ON docs (id) WHERE sig <%> minhash(ARRAY['x']) <= 0.5;
SELECT plan('SELECT id FROM docs WHERE sig <%> minhash(ARRAY[''x'']) <= 0.5 AND id < 7');
DROP INDEX docs_like;
CREATE VIEW distances AS SELECT a.id, b.id AS other, a.sig <%> b.sig AS distance
    FROM pairs_of a, docs b;
SELECT plan('SELECT * FROM distances WHERE distance <= 0.2 AND id = 7');
-- Commands that plan without a query.
CREATE INDEX ON docs (kind);
CREATE TABLE wide AS SELECT repeat('x', 100) AS t;
CLUSTER docs USING docs_pkey;
SET max_parallel_maintenance_workers = 2;
REINDEX TABLE docs;
RESET max_parallel_maintenance_workers;

-- Signatures of different kinds have no estimate, and no condition on an estimate is true.
INSERT INTO docs SELECT id + 1000, 'seed', id % 5 = 0, minhash_from_values(minhash_values(sig),
    seed => 1) FROM docs WHERE kind = 'usual' AND id <= 200;
INSERT INTO docs SELECT id + 2000, 'scheme', id % 5 = 0, minhash_from_values(minhash_values(sig),
    scheme => 'datasketch1') FROM docs WHERE kind = 'usual' AND id <= 200;
INSERT INTO docs VALUES (3000, 'null', false, NULL);
ANALYZE docs;
SELECT a.sig <%> b.sig IS NULL, minhash_similarity(a.sig, b.sig) IS NULL, a.sig ~= b.sig, a.sig =
    b.sig, a.sig <@ minhash_ball(b.sig, 1) IS NULL, minhash_ball(b.sig, 1) @> a.sig IS NULL,
    _neardup_within(a.sig,
    b.sig, 1, 0) IS NULL,
    (a.sig <%> b.sig > 0.5) IS NULL FROM docs a, docs b WHERE a.id = 1 AND b.id = 1001;
SELECT minhash('a') <%> minhash('a', hashes => 64) IS NULL, minhash('a') ~= minhash('a', hashes =>
    64), minhash('a') <@ minhash_ball(minhash('a', hashes => 64), 1) IS NULL;
SELECT _neardup_within(sig, sig, 0, 9) IS NULL FROM docs WHERE id = 1;
-- The index and the sequential scan agree on all of them, with row security and without.
CREATE TABLE asked (id int, q minhash_signature);
INSERT INTO asked SELECT id, sig FROM docs WHERE id IN (7, 150, 1007, 1150, 2007, 2150);
INSERT INTO asked SELECT 10, minhash(ARRAY['0:1'], hashes => 64);
INSERT INTO asked SELECT 11, minhash(ARRAY['0:1'], hashes => 1024);
CREATE FUNCTION answers(condition text, by_index boolean) RETURNS TABLE (query int, ids int[])
    LANGUAGE plpgsql AS $$
DECLARE q record;
BEGIN
    PERFORM set_config('enable_seqscan', (NOT by_index)::text, true),
        set_config('enable_indexscan', by_index::text, true), set_config('enable_bitmapscan',
        'off', true);
    FOR q IN TABLE asked LOOP
        query := q.id;
        EXECUTE 'SELECT coalesce(array_agg(id ORDER BY id), ''{}'') FROM docs WHERE ' || condition
            INTO ids USING q.q;
        RETURN NEXT;
    END LOOP;
END $$;
CREATE FUNCTION compared() RETURNS TABLE (condition text, answers bigint, rows bigint, wrong
    bigint) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH condition IN ARRAY ARRAY['sig <%> $1 <= 0.2', 'sig <%> $1 < 0.7', 'sig <%> $1 <= 1',
        'sig <%> $1 <= ''Infinity''', 'sig <%> $1 > 0.2', 'NOT sig <%> $1 > 0.2', 'sig <%> $1 = 0',
            'minhash_similarity(sig, $1) >= 0.8', 'minhash_similarity(sig, $1) >= 0',
                'minhash_similarity(sig, $1) < 0.3', 'sig ~= $1', 'NOT sig ~= $1', 'sig = $1',
                'sig <@ minhash_ball($1, 0.3)', 'minhash_ball($1, 1) @> sig'] LOOP
        SELECT count(*), sum(cardinality(i.ids)), count(*) FILTER (WHERE i.ids <> s.ids)
            INTO answers, rows, wrong FROM answers(condition, true) i
                JOIN answers(condition, false) s USING (query);
        RETURN NEXT;
    END LOOP;
END $$;
RESET enable_seqscan;
SELECT * FROM compared();
-- The same comparisons in the select list.
SELECT count(*) FILTER (WHERE a.sig <%> q <= 1), count(*) FILTER (WHERE NOT a.sig <%> q <= 1),
    count(*) FILTER (WHERE a.sig <%> q IS NULL), count(*) FROM docs a, asked WHERE sig IS NOT NULL;
SELECT count(*) FILTER (WHERE d <= 0.2), count(*) FILTER (WHERE d > 0.2), count(*) FILTER (WHERE d
    IS NULL) FROM (SELECT a.sig <%> b.sig AS d FROM docs a, docs b WHERE a.id % 100 = 7 OFFSET 0) s;
SELECT count(*) FILTER (WHERE a.sig <%> b.sig <= 0.2), count(*) FILTER (WHERE a.sig <%> b.sig >
    0.2) FROM docs a, docs b WHERE a.id % 100 = 7;
-- All pairs and clusters equal the result of a join.
SELECT count(*) = (SELECT count(*) FROM docs a JOIN docs b ON a.sig <%> b.sig <= 0.2
    AND a.id < b.id), count(*) FROM neardup_pairs('docs_sig', similarity => 0.8);
SELECT count(*) = (SELECT count(*) FROM docs a JOIN docs b ON a.sig <%> b.sig <= 0.7
    AND a.id < b.id), count(*) FROM neardup_pairs('docs_sig', similarity => 0.3);
SELECT count(*) FROM neardup_clusters('docs_sig', similarity => 0.8) c
    JOIN docs m ON m.ctid = c.member
    JOIN docs r ON r.ctid = c.representative WHERE m.kind <> r.kind;
-- An exclusion constraint compares only values of its own kind.
CREATE TABLE kept (id int, sig minhash_signature, EXCLUDE USING neardup (sig WITH ~=));
INSERT INTO kept SELECT id, sig FROM docs WHERE id % 1000 = 7 ORDER BY id ON CONFLICT DO NOTHING;
INSERT INTO kept SELECT id, sig FROM docs WHERE id % 1000 IN (7, 8)
    ORDER BY id ON CONFLICT DO NOTHING;
SELECT array_agg(id ORDER BY id) FROM kept;
-- Unions need signatures of one kind, and otherwise raise an error.
SELECT minhash_union(minhash('a'), minhash('a', seed => 1));
\echo :SQLSTATE

-- Row security keeps the index: the conditions are leakproof and may run first.
CREATE ROLE jaccard_reader;
GRANT USAGE ON SCHEMA jaccard_test TO jaccard_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA jaccard_test TO jaccard_reader;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY open ON docs USING (NOT secret);
SET ROLE jaccard_reader;
SET enable_seqscan = off;
SELECT plan('SELECT id FROM docs WHERE sig <%> minhash(ARRAY[''x'']) <= 0.2');
SELECT plan('SELECT id FROM docs WHERE minhash_similarity(sig, minhash(ARRAY[''x''])) > 0.8');
SELECT plan('SELECT id FROM docs WHERE sig ~= minhash(ARRAY[''x''])');
SELECT plan('SELECT id FROM docs WHERE sig = minhash(ARRAY[''x''])');
SELECT plan('SELECT a.id FROM pairs_of a JOIN docs b ON a.sig <%> b.sig <= 0.2');
SELECT plan('SELECT a.id FROM pairs_of a JOIN docs b ON minhash_similarity(a.sig, b.sig) > 0.8');
RESET enable_seqscan;
SELECT * FROM compared();
RESET ROLE;
SELECT p.oid::regprocedure FROM pg_operator o JOIN pg_proc p ON p.oid = oprcode
    WHERE 'minhash_signature'::regtype IN (oprleft, oprright) AND NOT proleakproof;

SET client_min_messages = warning;
DROP SCHEMA jaccard_test CASCADE;
DROP ROLE jaccard_reader;
