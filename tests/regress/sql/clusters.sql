-- Near-duplicates of a whole table: pairs, clusters, and the number of pairs at each distance.
CREATE SCHEMA clusters_test;
SET search_path = clusters_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never

CREATE TABLE docs (id int PRIMARY KEY, site bigint, body text, fp fingerprint);
-- 1, 2 and 4 are a chain: 2 bits each. 5 and 6 are equal. 7 is alone. 8 and 9 have none.
INSERT INTO docs VALUES
    (1, 1, 'short', '0000000000000000'), (2, 1, 'longer', '0000000000000003'),
    (4, 1, 'the longest', '000000000000000f'), (5, 1, 'five', '00ff000000000000'),
    (6, 2, 'six', '00ff000000000000'), (7, 2, 'seven', 'ffffffff00000000'),
    (8, 1, 'none', NULL), (9, 2, 'none', NULL);
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE VIEW pairs2 AS SELECT a.id AS a, b.id AS b, p.distance FROM neardup_pairs('docs_fp', 2) p
    JOIN docs a ON a.ctid = p.a JOIN docs b ON b.ctid = p.b;

SELECT * FROM neardup_pairs('docs_fp', 2) ORDER BY a, b;
SELECT * FROM pairs2 ORDER BY a, b;
SELECT count(*) FROM neardup_pairs('docs_fp', 3);
SELECT count(*) FROM neardup_pairs('docs_fp', 4);
-- Far beyond the index's guaranteed radius: all pairs of the six rows with a fingerprint.
SELECT count(*), max(distance) FROM neardup_pairs('docs_fp', 1000);
SELECT count(*) FROM neardup_pairs('docs_fp', 0);
SELECT count(*) FROM neardup_pairs('docs_fp', NULL);
SELECT count(*) FROM neardup_pairs('docs_fp', '2');
SELECT neardup_pairs('docs_fp', -1);

-- The addresses are the visible versions' addresses, also after updates within a page.
UPDATE docs SET body = body || '!' WHERE id IN (2, 5);
UPDATE docs SET body = body || '!' WHERE id IN (2, 5);
SELECT * FROM pairs2 ORDER BY a, b;
DELETE FROM docs WHERE id = 6;
SELECT * FROM pairs2 ORDER BY a, b;
INSERT INTO docs VALUES (6, 2, 'six', '00ff000000000000');
VACUUM docs;
SELECT * FROM pairs2 ORDER BY a, b;
-- In the middle of a transaction, and back.
BEGIN;
UPDATE docs SET fp = '0000000000000001' WHERE id = 7;
SELECT * FROM pairs2 WHERE 7 IN (a, b) ORDER BY a, b;
ROLLBACK;
SELECT count(*) FROM pairs2;

-- Clusters: no member is further from its representative than the distance, ...
CREATE FUNCTION shown(distance int, method text DEFAULT 'star', keep text DEFAULT 'id')
    RETURNS TABLE (kept int, id int, size bigint, far int) LANGUAGE sql AS $$
    SELECT r.id, m.id, c.size, c.distance
    FROM neardup_clusters('docs_fp', $1, method => $2, keep => $3)
        WITH ORDINALITY c (member, representative, size, distance, similarity, n)
    JOIN docs r ON r.ctid = c.representative JOIN docs m ON m.ctid = c.member ORDER BY n
$$;
SELECT * FROM shown(2);
SELECT * FROM shown(2, keep => 'length(body) DESC, id');
SELECT * FROM shown(2, keep => 'id = 2 DESC, id');
-- ... or chains are followed.
SELECT * FROM shown(2, 'connected');
SELECT * FROM shown(2, 'connected', 'length(body) DESC, id -- a comment');
SELECT * FROM shown(0);
-- Without an order, the first row in the table is kept.
SELECT count(*), sum((member = representative)::int) FROM neardup_clusters('docs_fp', 2);
-- The order may be any ORDER BY list, and nothing else.
SELECT * FROM shown(2,
    keep => '(SELECT count(*) FROM docs d WHERE d.id > docs.id), body COLLATE "C"');
SELECT * FROM shown(2, keep => 'id; DROP TABLE docs');
SELECT * FROM shown(2, keep => 'id LIMIT 1');
SELECT * FROM shown(2, keep => 'id FOR UPDATE');
SELECT * FROM shown(2, keep => 'id) FROM docs; --');
SELECT * FROM shown(2, keep => 'id,');
SELECT * FROM shown(2, keep => '');
SELECT * FROM shown(2, keep => 'id DESC /*');
SELECT * FROM shown(2, keep => 'nothing');
SELECT * FROM shown(2, keep => 'generate_series(1, 2)');
SELECT * FROM shown(2, 'both');
SELECT * FROM neardup_clusters('docs_fp', -1);
SELECT * FROM neardup_clusters('docs_fp', 2, method => NULL);
SELECT * FROM neardup_clusters(NULL, 2);

-- With a scope, pairs are within it. 1 and 2^32 are different scopes with the same hash; NULL
-- equals nothing.
CREATE TABLE scoped (id int, site bigint, lang text, fp fingerprint);
INSERT INTO scoped SELECT i, (ARRAY[1, 4294967296, 2, NULL])[i % 4 + 1], 'l' || i / 8,
    '00000000000000ff' FROM generate_series(0, 15) i;
CREATE INDEX scoped_fp ON scoped USING neardup (site, lang, fp);
SELECT array_agg(id ORDER BY id) AS ids, site, lang FROM neardup_clusters('scoped_fp', 3,
    keep => 'id') JOIN scoped ON ctid = member GROUP BY representative, site, lang ORDER BY 1;
SELECT a.id, b.id FROM neardup_pairs('scoped_fp', 3) p JOIN scoped a ON a.ctid = p.a JOIN scoped b
    ON b.ctid = p.b ORDER BY 1, 2;
SELECT count(*) FROM scoped a JOIN scoped b USING (site, lang)
    WHERE a.id < b.id AND a.fp <~> b.fp <= 3;

-- The row between two rows is in another scope with the same hash. The two rows are near each
-- other without it.
CREATE TABLE linked (site bigint, fp fingerprint);
INSERT INTO linked VALUES (4294967296, '0000000000000100'), (1, '0000000000000101'),
    (1, '0000000000000102');
CREATE INDEX ON linked USING neardup (site, fp);
SELECT count(*), max(size) FROM neardup_clusters('linked', 2, method => 'connected');

-- Other widths, expressions, parts of a table, balls.
CREATE TABLE others (id int, wide fingerprint256, hash bigint);
INSERT INTO others SELECT i, repeat(lpad(to_hex(i / 2 * 7), 16, '0'), 4)::fingerprint256, i / 2 * 7
    FROM generate_series(1, 9) i;
CREATE INDEX others_wide ON others USING neardup (wide);
CREATE INDEX others_hash ON others USING neardup ((hash # 1) bigint_hamming_ops) WHERE id <> 3;
CREATE INDEX others_ball ON others USING neardup (ball(hash, 8));
SELECT count(*) FROM neardup_pairs('others_wide', 31);
SELECT count(*) FROM others a JOIN others b ON a.id < b.id AND a.wide <~> b.wide <= 31;
SELECT count(*) FROM neardup_pairs('others_hash', 1);
SELECT count(*) FROM others a JOIN others b ON a.id < b.id AND a.hash <~> b.hash <= 1
    AND 3 NOT IN (a.id, b.id);
SELECT count(*) FROM neardup_pairs('others_ball', 1);

-- Number of pairs at each distance, ...
SELECT distance, pairs, bar, cardinality(a) AS shown FROM neardup_distance_histogram('docs_fp',
    8, sample_rows => NULL);
SELECT distance, pairs FROM neardup_distance_histogram('docs_fp', 2);
SELECT distance, pairs FROM neardup_distance_histogram('docs', 2);
SELECT distance, pairs FROM neardup_distance_histogram('scoped_fp', 1);
SELECT distance, pairs FROM neardup_distance_histogram('others', 1, column_name => 'hash');
-- ... and examples.
SELECT h.distance, a.id, b.id FROM neardup_distance_histogram('docs_fp', 2) h,
    unnest(h.a, h.b) s (a, b)
    JOIN docs a ON a.ctid = s.a JOIN docs b ON b.ctid = s.b ORDER BY 1, 2, 3;
SELECT * FROM neardup_distance_histogram('others');
SELECT * FROM neardup_distance_histogram('others', column_name => 'id');
SELECT * FROM neardup_distance_histogram('docs', sample_rows => NULL);
SELECT * FROM neardup_distance_histogram('docs_fp', column_name => 'fp');
SELECT * FROM neardup_distance_histogram('docs_fp', sample_rows => 0);
-- More examples on request: distinct pairs of that distance, up to all of them, by the index, of a
-- sample of it, and of the table.
CREATE TABLE ones AS SELECT i AS id, (1::bigint << i)::fingerprint AS fp
FROM generate_series(0, 39) i;
CREATE INDEX ones_fp ON ones USING neardup (fp);
SELECT of, n, max(pairs) AS pairs, count(DISTINCT (s.a, s.b)) FILTER (WHERE s.a IS NOT NULL) AS
    shown, bool_and(x.fp <~> y.fp = h.distance) AS at_distance
FROM (VALUES (0), (1), (3), (20), (1000)) v (n),
    (VALUES ('ones_fp', NULL), ('ones_fp', 1000), ('ones', 1000)) c (of, sample),
    neardup_distance_histogram(of::regclass, 2, sample_rows => sample, examples => n) h
    LEFT JOIN LATERAL unnest(h.a, h.b) s (a, b) ON true
    LEFT JOIN ones x ON x.ctid = s.a LEFT JOIN ones y ON y.ctid = s.b
GROUP BY of, sample, n ORDER BY of, sample, n;
SELECT cardinality(a.a) AS fewer, a.a <@ b.a AS are_among_the_more
FROM neardup_distance_histogram('ones', 2, examples => 5) a
JOIN neardup_distance_histogram('ones', 2, examples => 30) b USING (distance);
SELECT * FROM neardup_distance_histogram('docs_fp', examples => -1);
SELECT * FROM neardup_distance_histogram('docs_fp', examples => 1001);
SELECT * FROM neardup_distance_histogram('docs_fp', examples => NULL);
SELECT * FROM neardup_distance_histogram('pairs2');

-- Relations that are not neardup indexes.
SELECT * FROM neardup_pairs('docs_pkey', 3);
SELECT * FROM neardup_clusters('docs_pkey', 3);
CREATE TABLE parted (fp fingerprint) PARTITION BY HASH (fp);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE INDEX parted_fp ON parted USING neardup (fp);
SELECT * FROM neardup_pairs('parted_fp', 3);
SELECT * FROM neardup_pairs('parted_0_fp_idx', 3);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'docs_fp'::regclass;
SELECT * FROM neardup_pairs('docs_fp', 3);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'docs_fp'::regclass;

-- Many pairs are returned one by one; a component of 100,000 equal rows takes no quadratic work.
CREATE TABLE same AS SELECT i AS id, '00000000000000ff'::fingerprint AS fp
    FROM generate_series(1, 100000) i;
INSERT INTO same VALUES (0, '00000000000000fe');
CREATE INDEX same_fp ON same USING neardup (fp);
SELECT count(*) FROM (SELECT neardup_pairs('same_fp', 3) LIMIT 20000) first;
SELECT count(*), count(DISTINCT representative), max(size), max(c.distance)
    FROM neardup_clusters('same_fp', 3, keep => 'id DESC') c;
SET maintenance_work_mem = '1MB';
SELECT count(*) FROM neardup_clusters('same_fp', 3);
RESET maintenance_work_mem;
-- A cursor fails when its index is rebuilt.
BEGIN;
DECLARE walk CURSOR FOR SELECT neardup_pairs('same_fp', 0);
MOVE 1 FROM walk;
REINDEX INDEX same_fp;
MOVE 100000 FROM walk;
ROLLBACK;

-- An ordinary role sees the rows that it may read.
CREATE ROLE neardup_reader;
GRANT USAGE ON SCHEMA clusters_test TO neardup_reader;
SET ROLE neardup_reader;
SELECT count(*) FROM neardup_pairs('clusters_test.docs_fp', 2);
SELECT count(*) FROM neardup_clusters('clusters_test.docs_fp', 2);
SELECT count(*) FROM neardup_distance_histogram('clusters_test.docs_fp', 2);
SELECT count(*) FROM neardup_distance_histogram('clusters_test.docs', 2);
RESET ROLE;
GRANT SELECT (id, fp) ON docs TO neardup_reader;
GRANT SELECT (id, site) ON scoped TO neardup_reader;
GRANT SELECT (id) ON others TO neardup_reader;
SET ROLE neardup_reader;
SELECT count(*) FROM neardup_pairs('clusters_test.docs_fp', 2);
SELECT count(*) FROM neardup_distance_histogram('clusters_test.docs', 2);
-- A column of the index that is hidden, one in its expression, one that the order uses.
SELECT count(*) FROM neardup_pairs('clusters_test.scoped_fp', 2);
SELECT count(*) FROM neardup_pairs('clusters_test.others_hash', 2);
SELECT count(*) FROM neardup_distance_histogram('clusters_test.others', 2, column_name => 'hash');
SELECT count(*) FROM neardup_clusters('clusters_test.docs_fp', 2, keep => 'length(body)');
RESET ROLE;
GRANT SELECT ON docs TO neardup_reader;
SET ROLE neardup_reader;
SELECT count(*) FROM neardup_clusters('clusters_test.docs_fp', 2, keep => 'length(body)');
-- The order is SQL of the caller: names are resolved by the caller, with the caller's rights.
SELECT count(*) FROM neardup_clusters('clusters_test.docs_fp', 2,
    keep => '(SELECT count(*) FROM clusters_test.others)');
SELECT count(*) FROM neardup_clusters('clusters_test.docs_fp', 2,
    keep => '(SELECT max(hash) FROM clusters_test.others)');
SET search_path = '';
SELECT count(*) FROM clusters_test.docs, public.neardup_clusters('clusters_test.docs_fp', 2,
    keep => 'id') WHERE ctid = member;
RESET search_path;
RESET ROLE;
-- Row security.
ALTER TABLE clusters_test.docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY low ON clusters_test.docs USING (id < 5);
SET ROLE neardup_reader;
SELECT count(*) FROM neardup_pairs('clusters_test.docs_fp', 2);
SELECT count(*) FROM neardup_clusters('clusters_test.docs_fp', 2);
SELECT count(*) FROM neardup_distance_histogram('clusters_test.docs_fp', 2);
SELECT count(*) FROM neardup_distance_histogram('clusters_test.docs', 2);
RESET ROLE;
-- It does not apply to the owner.
SELECT count(*) FROM neardup_pairs('clusters_test.docs_fp', 2);
SET client_min_messages = warning;
DROP SCHEMA clusters_test CASCADE;
DROP ROLE neardup_reader;
