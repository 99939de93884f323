-- Indexes on arrays of bigint, such as the hashes of passages: searches by &&, @> and =.
\set VERBOSITY default
CREATE SCHEMA array_index_test;
SET search_path = array_index_test, public;
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'bigint_array_ops';

-- Arrays of any shape: without elements, with NULLs, repeated elements, several dimensions.
CREATE TABLE sets (id int PRIMARY KEY, site text, tags bigint[]);
INSERT INTO sets SELECT id, 'site' || id % 3, CASE id % 97
    WHEN 1 THEN NULL
    WHEN 2 THEN '{}'
    WHEN 3 THEN '{NULL}'
    WHEN 4 THEN ARRAY[id, NULL, id, 5]
    WHEN 5 THEN ARRAY[[id, 7], [7, -id]]
    WHEN 6 THEN ('[5:7]={' || id || ',' || id + 1 || ',NULL}')::bigint[]
    ELSE ARRAY(SELECT (id * n * 7919) % 1500 - 100 FROM generate_series(1, id % 9) n)
        || CASE WHEN id % 10 = 0 THEN '{-9223372036854775808, 9223372036854775807, 0}'::bigint[]
           ELSE '{}' END
    END FROM generate_series(1, 4000) id;
CREATE INDEX sets_tags ON sets USING neardup (tags) WITH (fillfactor = 50);
CREATE INDEX sets_site ON sets USING neardup (site, tags);
ANALYZE sets;
SELECT * FROM neardup_index_check('sets_tags', true);
SELECT * FROM neardup_index_check('sets_site', true, true);

-- Each condition by an index, by a bitmap of it and by a sequential scan.
CREATE FUNCTION ids(condition text, seqscan bool, indexscan bool, bitmapscan bool) RETURNS int[]
LANGUAGE plpgsql AS $$
DECLARE result int[];
BEGIN
    PERFORM set_config('enable_seqscan', seqscan::text, true),
        set_config('enable_indexscan', indexscan::text, true),
        set_config('enable_bitmapscan', bitmapscan::text, true),
        set_config('enable_indexonlyscan', indexscan::text, true);
    EXECUTE 'SELECT array_agg(id ORDER BY id) FROM sets WHERE ' || condition INTO result;
    RETURN result;
END $$;
CREATE FUNCTION agree(condition text, OUT "rows" int, OUT same bool) LANGUAGE plpgsql AS $$
DECLARE expected int[] := ids(condition, true, false, false);
BEGIN
    "rows" := coalesce(cardinality(expected), 0);
    same := ids(condition, false, true, false) IS NOT DISTINCT FROM expected
        AND ids(condition, false, false, true) IS NOT DISTINCT FROM expected;
END $$;
CREATE TABLE conditions (condition text);
INSERT INTO conditions VALUES
    ($$tags && '{17}'$$), ($$tags && '{-1,0,1,17,1499}'$$), ($$tags && '{{1,2},{3,NULL}}'$$),
    ($$tags && '{}'$$), ($$tags && '{NULL}'$$), ($$tags && NULL$$),
    ($$tags && '{-9223372036854775808}'$$), ($$tags && '{9223372036854775807,0}'$$),
    ($$tags && ARRAY(SELECT generate_series(-2000, 2000)::bigint)$$),
    ($$tags && '{7}' AND tags && '{0,1,2,3}'$$), ($$tags && '{7}' AND tags IS NOT NULL$$),
    ($$tags && '{7}' AND tags IS NULL$$), ($$tags IS NULL$$), ($$tags IS NOT NULL$$),
    ($$tags && '{7}' OR tags && '{0}'$$), ($$NOT tags && '{7}'$$),
    ($$tags = '{}'$$), ($$tags = '{NULL}'$$), ($$tags = '{{5,7},{7,-5}}'$$),
    ($$tags = '{5,7,-5}'$$), ($$tags = '[5:7]={6,7,NULL}'$$), ($$tags = '{6,7,NULL}'$$),
    ($$tags = (SELECT tags FROM sets WHERE id = 1234)$$), ($$tags = NULL$$),
    ($$tags @> '{17}'$$), ($$tags @> '{17,17}'$$), ($$tags @> '{}'$$), ($$tags @> '{NULL}'$$),
    ($$tags @> '{7,NULL}'$$), ($$tags @> NULL$$), ($$tags @> '{{5},{7}}'$$), ($$tags @> '{0,1}'$$),
    ($$tags @> '{5,7,123456}'$$), ($$'{17,0}' <@ tags$$), ($$tags <@ '{17,0}'$$),
    ($$tags @> ARRAY[9223372036854775807, -9223372036854775808, 0]$$),
    ($$tags @> (SELECT tags FROM sets WHERE id = 1234)$$), ($$tags @> '{7}' AND tags && '{5}'$$),
    ($$tags @> '{}' AND tags IS NULL$$), ($$tags @> '{}' AND tags && '{7}'$$),
    ($$tags @> '{7}' OR tags @> '{}'$$), ($$NOT tags @> '{7}'$$),
    ($$tags @> '{5}' AND tags = '{}'$$),
    ($$site = 'site1' AND tags @> '{17,0}'$$), ($$site = 'site1' AND tags @> '{}'$$),
    ($$site IS NULL AND tags @> '{17}'$$), ($$site > 'site1' AND tags @> '{17,0}'$$),
    ($$site = 'site1' AND tags && '{17,0}'$$), ($$site = 'site1' AND tags IS NULL$$),
    ($$site = 'site1'$$), ($$site IS NULL AND tags && '{17}'$$),
    ($$site = 'site2' AND tags = '{}'$$), ($$site = 'site1' AND site = 'site2'$$);
SELECT condition, a.* FROM conditions, agree(condition) a;
-- The index on the tags alone serves none of these.
BEGIN;
DROP INDEX sets_tags;
SELECT condition, a.* FROM conditions, agree(condition) a WHERE NOT same;
ROLLBACK;
-- Memory for a few rows only: rows are found in several passes, each once.
SET work_mem = 64;
INSERT INTO sets SELECT id, 'many', ARRAY[-77, -78, id] FROM generate_series(10001, 25000) id;
SELECT * FROM agree('tags && ''{-77,-78,-79}''');
SELECT * FROM agree('tags && ''{-77,-78,-79}'' AND site = ''many''');
RESET work_mem;

-- Exact conditions without the table's rows; other conditions with them.
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT id FROM sets WHERE tags && '{17,18}';
EXPLAIN (COSTS off) SELECT id FROM sets WHERE site = 'site1' AND tags && '{17,18}';
EXPLAIN (COSTS off) SELECT id FROM sets WHERE tags @> '{17}';
EXPLAIN (COSTS off) SELECT id FROM sets WHERE '{17,18}' <@ tags;
EXPLAIN (COSTS off) SELECT a.id FROM sets a JOIN sets b ON a.tags && b.tags WHERE b.id = 3;
-- A few rows of many, and most of them.
ANALYZE sets;
RESET enable_seqscan;
EXPLAIN (COSTS off) SELECT count(*) FROM sets WHERE tags && '{17}';
EXPLAIN (COSTS off) SELECT count(*) FROM sets WHERE tags && '{-77,-78,0}';
EXPLAIN (COSTS off) SELECT count(*) FROM sets WHERE tags @> '{17,1}';
EXPLAIN (COSTS off) SELECT count(*) FROM sets WHERE tags @> '{}';
-- The search uses the rare element of two, at any position.
CREATE FUNCTION found_by_index(condition text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json, ANALYZE, TIMING off) SELECT FROM sets WHERE ' || condition
        INTO plan;
    RETURN (plan #>> '{0,Plan,Plans,0,Actual Rows}')::numeric;
END $$;
SELECT found_by_index('tags @> ''{-77,12345}'''), found_by_index('tags @> ''{-999,-77}''');
-- All rows, each once, by the index alone.
VACUUM sets;
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT count(*) FROM sets;
SELECT count(*) FROM sets;
RESET enable_seqscan;

-- Rows are deleted, inserted and changed.
DELETE FROM sets WHERE id > 20000 OR id % 7 = 0;
UPDATE sets SET tags = tags || 17::bigint WHERE id % 11 = 0 AND array_ndims(tags) = 1;
UPDATE sets SET tags = NULL WHERE id % 13 = 0;
VACUUM (INDEX_CLEANUP on) sets;
SELECT * FROM neardup_index_check('sets_tags', true);
SELECT condition, a.* FROM conditions, agree(condition) a WHERE NOT same;
SELECT condition, a.* FROM conditions, agree(condition) a LIMIT 3;
REINDEX TABLE sets;
SELECT condition, a.* FROM conditions, agree(condition) a WHERE NOT same;
SELECT reltuples = (SELECT count(*) FROM sets) AS counted FROM pg_class
    WHERE relname = 'sets_tags';

-- Information about the index.
SELECT radius, similarity, guaranteed_radius, guaranteed_similarity, probed_radius, blocks,
    permutations, advice, rows, null_rows, bytes_per_row > 0 AS has_size,
    leaf_fill > 40 AS is_filled, candidates > 1 AS has_candidates, largest_bucket_entries
FROM neardup_index_info('sets_tags');
SELECT fingerprint_bits, scope_columns, leading_bits, hashes, bands, band_rows, entries,
    largest_bucket_permutation, largest_bucket_mask = repeat('1', 64)::varbit AS mask,
    largest_bucket_bits::bit(64)::bigint AS element
FROM neardup_expert_index_statistics('sets_tags');
SELECT index, columns, options, is_constraint FROM neardup_indexes
    WHERE relation = 'sets'::regclass ORDER BY 1;

-- There is no distance, and its options do not exist.
SELECT * FROM neardup_pairs('sets_tags', 3);
SELECT * FROM neardup_clusters('sets_tags', 3);
SELECT * FROM neardup_clusters('sets', 3);
SELECT * FROM neardup_distance_histogram('sets_tags');
SELECT * FROM neardup_pairs_by_key(NULL::int, 'sets_tags', 3, key => 'id');
SELECT neardup_report('sets_tags');
CREATE INDEX ON sets USING neardup (tags) WITH (radius = 3);
CREATE INDEX ON sets USING neardup (tags) WITH (similarity = 0.5);
CREATE INDEX ON sets USING neardup ((tags::int[]));
CREATE INDEX ON sets USING neardup ((tags::int[]) bigint_array_ops);
CREATE INDEX ON sets USING neardup (tags array_scope_ops);
SELECT id FROM sets ORDER BY tags <#> '{1}' LIMIT 1;

-- A scope of arrays, which is compared for equality.
CREATE TABLE groups (id int, tags bigint[], fp fingerprint);
INSERT INTO groups SELECT id, ARRAY[id % 3, 5], fingerprint(id) FROM generate_series(1, 300) id;
CREATE INDEX ON groups USING neardup (tags, fp);
SET enable_seqscan = off;
SELECT count(*) FROM groups WHERE tags = '{1,5}' AND fp <~> fingerprint(7) <= 2;
SELECT count(*) FROM groups WHERE tags && '{1}' AND fp <~> fingerprint(7) <= 2;
SELECT count(*) FROM groups WHERE tags && '{1}';
SELECT count(*) FROM groups WHERE tags @> '{5,1}' AND fp <~> fingerprint(7) <= 2;
SELECT count(*) FROM groups WHERE tags && '{5}' AND tags = '{2,5}';
EXPLAIN (COSTS off) SELECT count(*) FROM groups WHERE tags && '{1}' AND fp <~> fingerprint(7) <= 2;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_seqscan = on;
SELECT count(*) FILTER (WHERE tags = '{1,5}'), count(*) FILTER (WHERE tags && '{1}') FROM groups
    WHERE fp <~> fingerprint(7) <= 2;
RESET enable_indexscan;
RESET enable_bitmapscan;

-- Constraints: no two rows that share an element.
CREATE TABLE apart (id int, site text, tags bigint[],
    EXCLUDE USING neardup (site WITH =, tags WITH &&));
INSERT INTO apart VALUES (1, 'a', '{1,2}'), (2, 'a', '{3}'), (3, 'b', '{1}'), (4, 'a', NULL),
    (5, 'a', '{}'), (6, 'a', '{NULL}'), (7, 'a', '{}');
\set VERBOSITY terse
INSERT INTO apart VALUES (8, 'a', '{9,2}');
UPDATE apart SET tags = '{2,3}' WHERE id = 2;
\set VERBOSITY default
INSERT INTO apart VALUES (9, 'b', '{8,1}'), (10, 'c', '{8,1}') ON CONFLICT DO NOTHING;
SELECT id, tags FROM apart ORDER BY id;

CREATE TABLE unequal (tags bigint[], EXCLUDE USING neardup (tags WITH =));
INSERT INTO unequal VALUES ('{1,2}'), ('{2,1}'), ('{1,2,2}'), ('{1,2}'), ('{}'), (NULL), (NULL),
    ('{}') ON CONFLICT DO NOTHING;
SELECT tags FROM unequal;

-- A function that changes its result, and one that returns an array in pieces.
CREATE FUNCTION lying(id int) RETURNS bigint[] IMMUTABLE LANGUAGE sql
    AS $$ SELECT ARRAY[id, current_setting('array_index_test.lie')::bigint] $$;
SET array_index_test.lie = 1;
CREATE TABLE lies AS SELECT id FROM generate_series(1, 10) id;
CREATE INDEX lies_index ON lies USING neardup (lying(id));
SELECT * FROM neardup_index_check('lies_index', true);
SET array_index_test.lie = 2;
SELECT * FROM neardup_index_check('lies_index', true);
CREATE FUNCTION expanded(id int) RETURNS bigint[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE result bigint[]; BEGIN result[id] := id; result[id + 1] := 77; RETURN result; END $$;
CREATE INDEX lies_expanded ON lies USING neardup (expanded(id));
INSERT INTO lies VALUES (20);
SELECT * FROM neardup_index_check('lies_expanded', true);
SELECT count(*) FROM lies WHERE expanded(id) && '{77}';
SELECT id FROM lies WHERE expanded(id) && expanded(20) AND expanded(id) && '{20,7}' ORDER BY id;

-- Passages: no stored column; a partial index; partitions; an unlogged table; a domain.
CREATE TABLE docs (id int, site int, body text) PARTITION BY HASH (site);
CREATE TABLE docs_0 PARTITION OF docs FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE docs_1 PARTITION OF docs FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX docs_passages ON docs USING neardup (passages(body));
INSERT INTO docs SELECT i, i, string_agg(md5((i * 1000 + n)::text), ' ' ORDER BY n)
FROM generate_series(1, 300) i, generate_series(1, 120) n GROUP BY i;
UPDATE docs SET body = 'Before. ' || (SELECT string_agg(md5(n::text), ' ' ORDER BY n)
    FROM generate_series(7041, 7064) n) || ', and after ' || body WHERE id = 11;
ANALYZE docs;
SELECT id FROM docs WHERE passages(body) && passages((SELECT string_agg(md5(n::text), ' '
    ORDER BY n) FROM generate_series(7041, 7064) n)) ORDER BY id;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE passages(body) && '{1,2}';
SELECT a.id, b.id FROM docs a JOIN docs b ON passages(a.body) && passages(b.body) AND a.id < b.id;
CREATE UNLOGGED TABLE few (hashes bigint[]);
CREATE INDEX few_index ON few USING neardup (hashes) WHERE hashes && '{1,2,3}';
INSERT INTO few SELECT ARRAY[n, n + 1] FROM generate_series(1, 100) n;
SELECT count(*) FROM few WHERE hashes && '{1,2,3}';
SELECT count(*) FROM few WHERE hashes && '{1,2,3}' AND hashes && '{4}';
SELECT count(*) FROM few WHERE hashes && '{1,2,3}' AND hashes @> '{3,4}';
SELECT rows, entries FROM neardup_index_check('few_index', true);
CREATE DOMAIN hashes AS bigint[] CHECK (cardinality(VALUE) > 0);
CREATE TABLE of_domain (h hashes);
CREATE INDEX ON of_domain USING neardup (h);
INSERT INTO of_domain VALUES ('{1,2}'), ('{2,3}'), (NULL);
SELECT h FROM of_domain WHERE h && '{1}';
SELECT h FROM of_domain WHERE h = '{2,3}';
RESET enable_seqscan;

SET client_min_messages = warning;
DROP SCHEMA array_index_test CASCADE;
