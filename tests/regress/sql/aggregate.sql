-- simhash_agg, simhash128_agg: features stored one per row.
CREATE SCHEMA aggregate_test;
SET search_path = aggregate_test, public;
CREATE TABLE features (doc int, feature text, weight real);
INSERT INTO features SELECT i % 50, md5((i % 977)::text), (1 + i % 7) * 10.0 ^ (i % 11 - 5)
    FROM generate_series(1, 20000) i;

-- The same as the arrays, in any order.
CREATE VIEW expected AS SELECT doc, simhash(array_agg(feature), array_agg(weight)) AS fp,
    simhash128(array_agg(feature), array_agg(weight)) AS fp128 FROM features GROUP BY doc;
SELECT count(*), bool_and(a.fp = e.fp AND a.fp128 = e.fp128) AS same,
    count(DISTINCT a.fp) AS different
FROM (SELECT doc, simhash_agg(feature, weight) AS fp, simhash128_agg(feature, weight) AS fp128
    FROM features GROUP BY doc) a JOIN expected e USING (doc);
SELECT count(*), bool_and(a.fp = e.fp AND a.fp128 = e.fp128) AS same
FROM (SELECT doc, simhash_agg(feature, weight ORDER BY weight DESC, feature) AS fp,
    simhash128_agg(feature, weight ORDER BY feature) AS fp128 FROM features GROUP BY doc) a
    JOIN expected e USING (doc);
SELECT simhash_agg(feature, weight) FILTER (WHERE doc = 7) = (SELECT fp FROM expected
    WHERE doc = 7) AS filter,
       simhash_agg(DISTINCT feature, 1) = simhash(ARRAY(SELECT DISTINCT feature
       FROM features)) AS distinct_features FROM features;
-- As a window
SELECT bool_and(fp = (SELECT simhash_agg(feature, weight) FROM features f
    WHERE f.doc = 3 AND f.feature <= w.feature)) AS running
FROM (SELECT feature, simhash_agg(feature, weight) OVER (ORDER BY feature) AS fp FROM features
    WHERE doc = 3) w;

-- By parallel workers
ALTER TABLE features SET (parallel_workers = 3);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT simhash_agg(feature, weight), simhash128_agg(feature, weight)
    FROM features;
CREATE TABLE parallel AS SELECT simhash_agg(feature, weight) AS fp, simhash128_agg(feature,
    weight) AS fp128, simhash_agg(feature, weight) FILTER (WHERE false) AS none FROM features;
CREATE TABLE parallel_groups AS SELECT doc, simhash_agg(feature, weight) AS fp,
    simhash128_agg(feature, weight) AS fp128 FROM features GROUP BY doc;
SET max_parallel_workers_per_gather = 0;
SELECT p.fp = simhash_agg(feature, weight) AS same, p.fp128 = simhash128_agg(feature,
    weight) AS same128, p.none IS NULL AS none FROM features, parallel p GROUP BY p.fp, p.fp128,
    p.none;
SELECT count(*), bool_and(p.fp = e.fp AND p.fp128 = e.fp128) AS same FROM parallel_groups p
    JOIN expected e USING (doc);
-- Groups that do not fit into memory are written out and read back.
SET work_mem = '64kB';
SET enable_sort = off;
CREATE TABLE spilled AS SELECT (doc * 7919 + length(feature)) % 50 AS doc, feature, weight
    FROM features;
SELECT count(*) FROM (SELECT feature, simhash_agg(feature, weight) AS fp FROM features
    GROUP BY feature) s WHERE fp = simhash(ARRAY[feature]);
RESET enable_sort;
RESET work_mem;

-- NULL: such rows are skipped. Without a feature of positive weight: NULL.
SELECT simhash_agg(f, w) = simhash('{a,b}'::text[], '{2,3}') AS passed_over
    FROM (VALUES ('a', 2), (NULL, 5), ('b', 3), ('c', NULL), (NULL, NULL)) v (f, w);
SELECT simhash_agg(f, w) IS NULL AS no_row, simhash128_agg(f, w) IS NULL AS no_row128
    FROM (VALUES ('a', 1)) v (f, w) WHERE false;
SELECT simhash_agg(f, w) IS NULL AS only_null FROM (VALUES (NULL, 1), ('a', NULL)) v (f, w);
SELECT simhash_agg(f, w) IS NULL AS only_zero, simhash_agg(f, -w) IS NULL AS negative_zero
    FROM (VALUES ('a', 0::real)) v (f, w);
SELECT simhash_agg(f, w) = simhash('{a}'::text[]) AS zero_is_nothing
    FROM (VALUES ('a', 1), ('b', 0)) v (f, w);
SELECT simhash_agg(f, w) = simhash('{a}'::text[]) AS far_apart
    FROM (VALUES ('a', 1e38), ('b', 1e-38), ('b', 1e-44)) v (f, w);

-- Invalid weights, with the errors of simhash(text[], real[])
SELECT simhash_agg('a', 'NaN');
\echo :SQLSTATE
SELECT simhash_agg('a', 'Infinity');
\echo :SQLSTATE
SELECT simhash128_agg('a', -0.5);
\echo :SQLSTATE
-- There is no form with one argument, and the support functions cannot be called.
\set VERBOSITY terse
SELECT simhash_agg('a');
SELECT _neardup_simhash_agg_add(NULL, 'a', 1);
\echo :SQLSTATE
\set VERBOSITY default

-- Importance levels 1 to 5: a feature of level 5 outweighs those below it where they disagree.
CREATE TABLE leveled (doc int, feature text, level int);
INSERT INTO leveled VALUES (1, 'harbour', 5), (1, 'bridge', 4), (1, 'closed', 2), (1, 'may', 1),
    (2, 'harbour', 5), (2, 'bridge', 4), (2, 'closed', 2), (2, 'june', 1);
WITH l AS (SELECT doc, simhash_agg(feature, level) AS fp, simhash_agg(feature, 1) AS unweighted
    FROM leveled GROUP BY doc)
SELECT a.fp <~> b.fp AS distance, a.unweighted <~> b.unweighted AS unweighted FROM l a, l b
    WHERE a.doc = 1 AND b.doc = 2;
SELECT simhash_agg(f, w) = simhash('{b}'::text[]) AS heavier FROM (VALUES ('a', 4), ('b', 5)) v (f,
    w);

-- Weights from the whole collection (IDF), as docs/quality.md does it: the table is made once and
-- then frozen.
CREATE TABLE docs (id int PRIMARY KEY, body text,
    lexemes tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED);
INSERT INTO docs (id, body) SELECT i,
    'Dear reader, this article number ' || i || ' is about ' || md5((i / 2)::text) || ' and ' ||
    md5((i / 2 + 1000)::text) FROM generate_series(2, 101) i;
CREATE TABLE idf AS SELECT word AS lexeme,
    ln((SELECT count(*) FROM docs)::float8 / ndoc)::real AS weight
    FROM ts_stat('SELECT lexemes FROM aggregate_test.docs');
CREATE FUNCTION simhash_idf(lexemes tsvector) RETURNS fingerprint LANGUAGE sql STABLE STRICT
    PARALLEL SAFE
BEGIN ATOMIC
    SELECT simhash_agg(l.lexeme, (sqrt(coalesce(cardinality(l.positions), 1)) * coalesce(i.weight,
    (SELECT max(weight) FROM idf)))::real)
    FROM unnest(lexemes) l LEFT JOIN idf i USING (lexeme);
END;
SELECT count(*) FROM idf WHERE weight = 0;
CREATE TABLE fingerprints AS SELECT id, simhash(lexemes) AS plain, simhash_idf(lexemes) AS idf
    FROM docs;
-- Pairs of articles are the same except for their number. The words that all articles share no
-- longer reduce the distance of the others.
SELECT round(avg(a.plain <~> b.plain) FILTER (WHERE a.id / 2 = b.id / 2)) <
    round(avg(a.plain <~> b.plain) FILTER (WHERE a.id / 2 <> b.id / 2)) AS plain,
       round(avg(a.idf <~> b.idf) FILTER (WHERE a.id / 2 <> b.id / 2)) AS unrelated_idf,
       round(avg(a.plain <~> b.plain) FILTER (WHERE a.id / 2 <> b.id / 2)) AS unrelated_plain
FROM fingerprints a JOIN fingerprints b ON a.id < b.id;
SELECT simhash_idf('nowhere:1'::tsvector) = simhash('{nowhere}'::text[]) AS unseen,
    simhash_idf('') IS NULL AS nothing;

SET client_min_messages = warning;
DROP SCHEMA aggregate_test CASCADE;
