-- The access method: types, queries, errors, and inspection.
CREATE SCHEMA index_test;
SET search_path = index_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never

CREATE TABLE docs (id int PRIMARY KEY, site text, fp fingerprint);
-- 1,000 fingerprints of few bits with many neighbours, and some NULLs.
INSERT INTO docs
    SELECT i, 'site ' || i % 3, (1::bigint << i % 50 | 1::bigint << i % 7)::fingerprint
    FROM generate_series(1, 1000) i;
INSERT INTO docs SELECT i, 'site 0', NULL FROM generate_series(1001, 1010) i;
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE INDEX docs_site ON docs USING neardup (site, fp) WITH (radius = 2, blocks = 4,
    fillfactor = 100);
VACUUM ANALYZE docs;

-- Inspection.
SELECT * FROM neardup_index_check('docs_fp');
SELECT * FROM neardup_index_check('docs_site', heap => true);

-- Conditions that use the index.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE fp <~> '0000000000000003' <= 3;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE fp ~= '0000000000000003';
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE fp = '0000000000000003';
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE site = 'site 1' AND fp <~> '0000000000000003' <= 1;
EXPLAIN (COSTS OFF) SELECT id FROM docs ORDER BY fp <~> '0000000000000003' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT fp FROM docs WHERE fp <~> '0000000000000003' <= 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM docs;
SELECT count(*), count(fp) FROM docs;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000003' <= 1;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000003' <= 20;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000003' <= -1;
SELECT count(*) FROM docs WHERE site = 'site 1' AND fp <~> '0000000000000003' <= 1;
SELECT DISTINCT fp, fp <~> '0000000000000003' AS distance
    FROM (SELECT fp FROM docs ORDER BY fp <~> '0000000000000003' LIMIT 50) near ORDER BY 2, 1
    LIMIT 4;
SELECT count(*) FROM (SELECT fp FROM docs ORDER BY fp <~> '0000000000000003' OFFSET 1000) last
    WHERE fp IS NULL;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE fp <~> '0000000000000003' <= 3;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000003' <= 1;
SELECT count(*) FROM docs WHERE fp IN ('0000000000000003', '0000000000000006');
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_bitmapscan;

-- Constraints.
CREATE TABLE kept (id int, fp fingerprint, CONSTRAINT kept_once EXCLUDE USING neardup (fp WITH ~=));
INSERT INTO kept VALUES (1, '00000000000000ff');
INSERT INTO kept VALUES (2, '00000000000000fc');
INSERT INTO kept VALUES (3, '00000000000000fc'), (4, '0000000000000f0f'), (5, NULL), (6, NULL)
    ON CONFLICT DO NOTHING;
SELECT id FROM kept ORDER BY id;
CREATE TABLE kept_far (site int, fp fingerprint,
    CONSTRAINT kept_far_once EXCLUDE USING neardup (site WITH =, ball(fp, 8) WITH ~=));
INSERT INTO kept_far VALUES (1, '00000000000000ff'), (2, '00000000000000ff');
INSERT INTO kept_far VALUES (1, '0000000000000000');
INSERT INTO kept_far VALUES (1, '0000000000000100') ON CONFLICT DO NOTHING;
SELECT * FROM kept_far ORDER BY 1, 2;

-- A bigint column names its operator class.
CREATE TABLE images (id int, hash bigint);
INSERT INTO images VALUES (1, 0), (2, 7), (3, -1);
CREATE INDEX ON images USING neardup (hash bigint_hamming_ops);
SELECT id FROM images WHERE hash <~> 1 <= 2 ORDER BY id;
CREATE INDEX ON images USING neardup (hash);

-- Errors.
CREATE INDEX ON docs USING neardup (fp, site);
CREATE INDEX ON docs USING neardup (fp) WITH (radius = 65);
CREATE INDEX ON docs USING neardup (fp) WITH (distance = 3);
CREATE INDEX ON docs USING neardup (fp) WITH (radius = 3, blocks = 9);
CREATE INDEX ON docs USING neardup (fp) WITH (fillfactor = 101);
CREATE UNIQUE INDEX ON docs USING neardup (fp);
SELECT neardup_index_check('docs_pkey');
SELECT neardup_index_check('docs');

-- Every operator class is sound.
SELECT opcname, amvalidate(c.oid)
    FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'neardup' ORDER BY 1;

SET client_min_messages = warning;
DROP SCHEMA index_test CASCADE;
