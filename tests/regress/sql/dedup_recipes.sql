-- The recipes of docs/dedup.md, and the plans of the joins. Recipes that move documents between
-- tables are in tests/dedup/deliveries.rs.
CREATE SCHEMA recipes_test;
SET search_path = recipes_test, public;
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;

-- 20,000 documents; each tenth has a copy with up to two other bits and a longer text.
CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint, duplicate_of int);
INSERT INTO docs SELECT i, 'text', ('x' || left(md5(i::text), 16))::bit(64)::fingerprint
    FROM generate_series(1, 20000) i;
INSERT INTO docs SELECT 100000 + id, body || ' and more',
    (fp::bigint # (1::bigint << id % 64) # (1::bigint << id / 64 % 64))::fingerprint FROM docs
    WHERE id % 10 = 0;
CREATE INDEX docs_fp ON docs USING neardup (fp);
VACUUM ANALYZE docs;

-- Pairs, by a join and by one pass: the same.
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM docs a JOIN docs b ON a.fp <~> b.fp <= 6 AND a.id < b.id;
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM docs a JOIN docs b ON a.fp <~> b.fp <= 8 AND a.id < b.id;
SELECT count(*) FROM (
    SELECT a.id AS a, b.id AS b FROM docs a JOIN docs b ON a.fp <~> b.fp <= 6 AND a.id < b.id
    EXCEPT
    SELECT least(a.id, b.id), greatest(a.id, b.id) FROM neardup_pairs('docs', 6) p
        JOIN docs a ON a.ctid = p.a JOIN docs b ON b.ctid = p.b) differing;
SELECT count(*) FROM neardup_pairs('docs', 6);

-- A report.
SELECT representative AS kept, array_agg(member ORDER BY distance, member) AS dropped
FROM neardup_clusters_by_key(NULL::int, 'docs', 6, keep => 'length(body) DESC, id')
WHERE member <> representative GROUP BY 1 ORDER BY 1 LIMIT 3;

-- Stable numbers of clusters.
CREATE TABLE stories AS
SELECT member AS id, min(member) OVER (PARTITION BY representative) AS story,
    representative AS kept, size
FROM neardup_clusters_by_key(NULL::int, 'docs', 6, keep => 'length(body) DESC, id',
    singletons => true);
SELECT count(*), count(DISTINCT id), count(DISTINCT story), max(size),
    count(*) FILTER (WHERE story > 100000) AS of_copies, bool_and(story = kept) FILTER
    (WHERE size = 1) AS alone FROM stories;
SELECT count(*) FROM neardup_clusters('docs', 6, filter => 'id % 100 = 0');

-- Numbers that persist while members are deleted and inserted, each night in other windows.
CREATE SEQUENCE story_numbers;
CREATE TABLE story_of (id int PRIMARY KEY, story bigint NOT NULL);
WITH grouped AS MATERIALIZED (
    SELECT c.member AS id, c.representative AS kept, s.story AS before
    FROM neardup_clusters_by_key(NULL::int, 'docs', 6, keep => 'length(body) DESC, id',
        singletons => true, filter => 'id % 7 <> 1') c LEFT JOIN story_of s ON s.id = c.member
), carried AS (
    SELECT DISTINCT ON (before) before, kept FROM grouped WHERE before IS NOT NULL
    GROUP BY before, kept ORDER BY before, count(*) DESC, kept
), numbered AS MATERIALIZED (
    SELECT kept, coalesce(min(c.before), nextval('story_numbers')) AS story
    FROM (SELECT DISTINCT kept FROM grouped) g LEFT JOIN carried c USING (kept) GROUP BY kept
)
INSERT INTO story_of SELECT g.id, n.story FROM grouped g JOIN numbered n USING (kept)
ON CONFLICT (id) DO UPDATE SET story = EXCLUDED.story WHERE story_of.story <> EXCLUDED.story;
CREATE TABLE first_night AS SELECT * FROM story_of;
SELECT count(*) > 0 AS some, count(DISTINCT story) = max(story) AS each_number_once FROM story_of;
WITH grouped AS MATERIALIZED (
    SELECT c.member AS id, c.representative AS kept, s.story AS before
    FROM neardup_clusters_by_key(NULL::int, 'docs', 6, keep => 'length(body) DESC, id',
        singletons => true, filter => 'id % 7 <> 1') c LEFT JOIN story_of s ON s.id = c.member
), carried AS (
    SELECT DISTINCT ON (before) before, kept FROM grouped WHERE before IS NOT NULL
    GROUP BY before, kept ORDER BY before, count(*) DESC, kept
), numbered AS MATERIALIZED (
    SELECT kept, coalesce(min(c.before), nextval('story_numbers')) AS story
    FROM (SELECT DISTINCT kept FROM grouped) g LEFT JOIN carried c USING (kept) GROUP BY kept
)
INSERT INTO story_of SELECT g.id, n.story FROM grouped g JOIN numbered n USING (kept)
ON CONFLICT (id) DO UPDATE SET story = EXCLUDED.story WHERE story_of.story <> EXCLUDED.story;
SELECT count(*) AS changed FROM story_of JOIN first_night f USING (id)
WHERE f.story <> story_of.story;
WITH grouped AS MATERIALIZED (
    SELECT c.member AS id, c.representative AS kept, s.story AS before
    FROM neardup_clusters_by_key(NULL::int, 'docs', 6, keep => 'length(body) DESC, id',
        singletons => true, filter => 'id % 7 <> 2') c LEFT JOIN story_of s ON s.id = c.member
), carried AS (
    SELECT DISTINCT ON (before) before, kept FROM grouped WHERE before IS NOT NULL
    GROUP BY before, kept ORDER BY before, count(*) DESC, kept
), numbered AS MATERIALIZED (
    SELECT kept, coalesce(min(c.before), nextval('story_numbers')) AS story
    FROM (SELECT DISTINCT kept FROM grouped) g LEFT JOIN carried c USING (kept) GROUP BY kept
)
INSERT INTO story_of SELECT g.id, n.story FROM grouped g JOIN numbered n USING (kept)
ON CONFLICT (id) DO UPDATE SET story = EXCLUDED.story WHERE story_of.story <> EXCLUDED.story;
SELECT count(*) AS changed FROM story_of JOIN first_night f USING (id)
WHERE f.story <> story_of.story;
-- Numbers distinguish clusters.
SELECT count(*) AS wrong FROM neardup_clusters('docs', 6, keep => 'length(body) DESC, id',
    filter => 'id % 7 <> 2') c
JOIN docs m ON m.ctid = c.member JOIN docs r ON r.ctid = c.representative
JOIN story_of a ON a.id = m.id JOIN story_of b ON b.id = r.id WHERE a.story <> b.story;
SELECT count(*) AS shared FROM (SELECT a.story FROM neardup_clusters('docs', 6,
    keep => 'length(body) DESC, id', filter => 'id % 7 <> 2', singletons => true) c
    JOIN docs m ON m.ctid = c.member JOIN story_of a ON a.id = m.id
    GROUP BY a.story HAVING count(DISTINCT c.representative) > 1) several;
DROP TABLE story_of, first_night;
DROP SEQUENCE story_numbers;

-- Mark.
WITH dropped AS MATERIALIZED (
    SELECT c.member, r.id AS kept
    FROM neardup_clusters('docs', 6, keep => 'length(body) DESC, id') c
    JOIN docs r ON r.ctid = c.representative
    WHERE c.member <> c.representative
)
UPDATE docs d SET duplicate_of = x.kept
FROM docs o LEFT JOIN dropped x ON x.member = o.ctid
WHERE o.id = d.id AND d.duplicate_of IS DISTINCT FROM x.kept;
SELECT count(*), count(duplicate_of), min(duplicate_of) FROM docs;

-- Move to an archive, with the original of each document.
CREATE TABLE archive (LIKE docs, distance int, archived timestamptz DEFAULT now());
BEGIN;
LOCK TABLE docs IN SHARE ROW EXCLUSIVE MODE;
WITH found AS MATERIALIZED (
    SELECT c.member, r.id AS kept, c.distance
    FROM neardup_clusters('docs', 6, keep => 'length(body) DESC, id') c JOIN docs r
    ON r.ctid = c.representative
    WHERE c.member <> c.representative AND r.id > 110000
), moved AS (
    DELETE FROM docs d USING found f WHERE d.ctid = f.member RETURNING d.id, d.body, d.fp, f.kept,
    f.distance
)
INSERT INTO archive (id, body, fp, duplicate_of, distance) SELECT * FROM moved;
COMMIT;
SELECT count(*), min(duplicate_of), max(distance) FROM archive;

-- Delete in batches: store the keys first, which stay valid between transactions.
CREATE TABLE doomed AS
SELECT member AS id, representative AS kept
FROM neardup_clusters_by_key(NULL::int, 'docs', 6, keep => 'length(body) DESC, id')
WHERE member <> representative;
SELECT count(*) FROM doomed;
DELETE FROM docs WHERE id = (SELECT min(kept) FROM doomed);
DO $$
DECLARE
    taken int[];
BEGIN
    LOOP
        SELECT array_agg(id) INTO taken FROM (SELECT id FROM doomed ORDER BY id LIMIT 300) next;
        EXIT WHEN taken IS NULL;
        -- A row stays if its kept row was deleted or changed meanwhile.
        PERFORM FROM docs k WHERE k.id IN (SELECT kept FROM doomed WHERE id = ANY (taken))
        ORDER BY k.id FOR SHARE;
        DELETE FROM docs d USING doomed x, docs k
        WHERE d.id = ANY (taken) AND x.id = d.id AND k.id = x.kept AND k.fp <~> d.fp <= 6;
        DELETE FROM doomed WHERE id = ANY (taken);
        COMMIT;
    END LOOP;
END $$;
SELECT count(*) FROM docs;
SELECT count(*) FROM neardup_pairs('docs', 6);
SELECT rows > 0 AS sound FROM neardup_index_check('docs_fp', true);

-- Or at once.
INSERT INTO docs SELECT 200000 + id, body, fp FROM docs WHERE id < 100;
DELETE FROM docs d USING neardup_clusters('docs', 6, keep => 'id') c
WHERE d.ctid = c.member AND c.member <> c.representative;
SELECT count(*), max(id) < 200000 AS originals_kept FROM docs;

-- A staging table against the main one.
CREATE TABLE staging (id int PRIMARY KEY, body text, fp fingerprint);
INSERT INTO staging SELECT 300000 + id, body, (fp::bigint # 5)::fingerprint FROM docs
    WHERE id BETWEEN 1 AND 50;
INSERT INTO staging SELECT 310000 + i, 'new',
    ('x' || left(md5('new' || i), 16))::bit(64)::fingerprint FROM generate_series(1, 50) i;
INSERT INTO staging SELECT id + 10000, body, (fp::bigint # 1)::fingerprint FROM staging
    WHERE body = 'new' AND id % 5 = 0;
INSERT INTO staging VALUES (399999, '', NULL);
VACUUM ANALYZE docs;
ANALYZE staging;
-- Documents that are already in the table, and documents like them.
EXPLAIN (COSTS OFF) SELECT s.id, m.id, s.fp <~> m.fp FROM staging s JOIN docs m
    ON m.fp <~> s.fp <= 6;
SELECT count(DISTINCT s.id), count(*), max(s.fp <~> m.fp) FROM staging s JOIN docs m
    ON m.fp <~> s.fp <= 6;
-- The nearest of each, if any.
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT s.id, m.id FROM staging s CROSS JOIN LATERAL (SELECT id, fp FROM docs d
    WHERE d.fp <~> s.fp <= 6 ORDER BY d.fp <~> s.fp LIMIT 1) m;
RESET enable_memoize;
SELECT count(*) FROM staging s CROSS JOIN LATERAL (SELECT id FROM docs d WHERE d.fp <~> s.fp <= 6
    ORDER BY d.fp <~> s.fp LIMIT 1) m;
-- Documents without a near-duplicate in the table.
EXPLAIN (COSTS OFF) SELECT s.id FROM staging s WHERE NOT EXISTS (SELECT FROM docs m
    WHERE m.fp <~> s.fp <= 6);
SELECT count(*) FROM staging s WHERE NOT EXISTS (SELECT FROM docs m WHERE m.fp <~> s.fp <= 6);
DROP SCHEMA recipes_test CASCADE;
