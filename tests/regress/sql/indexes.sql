-- The view of all neardup indexes, for each kind of index and each role.
CREATE SCHEMA indexes_test;
SET search_path = indexes_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
-- Other scripts leave tables.
\set schemas '(''indexes_test''::regnamespace, pg_my_temp_schema())'
\set own 'relation IN (SELECT oid FROM pg_class WHERE relnamespace IN ':schemas')'
CREATE TABLE docs (id int, site text, hash bigint, fp fingerprint, wide fingerprint128,
    pdq fingerprint256, sig minhash_signature);
INSERT INTO docs SELECT i, 'site ' || i % 3, hashint8extended(i, 1),
    hashint8extended(i, 1)::fingerprint, md5(i::text)::fingerprint128,
    decode(md5(i::text) || md5('x' || i), 'hex')::fingerprint256, minhash(ARRAY['a', i::text])
FROM generate_series(1, 1000) i;
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE INDEX docs_few ON docs USING neardup (site, fp) WITH (radius = 4, fillfactor = 100)
    WHERE id <= 10;
CREATE INDEX docs_hash ON docs USING neardup (hash bigint_hamming_ops);
CREATE INDEX docs_wide ON docs USING neardup (wide);
CREATE INDEX docs_pdq ON docs USING neardup (pdq);
CREATE INDEX docs_sig ON docs USING neardup (sig) WITH (similarity = 0.7);
CREATE INDEX docs_expression ON docs USING neardup ((hash::fingerprint));
ALTER TABLE docs ADD CONSTRAINT docs_alone EXCLUDE USING neardup (ball(fp, 2) WITH ~=);
-- The view excludes indexes of other access methods.
CREATE INDEX docs_btree ON docs (fp);
CREATE UNLOGGED TABLE volatile_docs (fp fingerprint);
CREATE INDEX volatile_fp ON volatile_docs USING neardup (fp);
CREATE TEMPORARY TABLE own_docs (fp fingerprint);
CREATE INDEX own_fp ON own_docs USING neardup (fp);
CREATE MATERIALIZED VIEW seen AS SELECT id, fp FROM docs;
CREATE INDEX seen_fp ON seen USING neardup (fp);
CREATE TABLE parts (id int, fp fingerprint) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id);
CREATE TABLE parts_1a PARTITION OF parts_1 FOR VALUES FROM (0) TO (50);
INSERT INTO parts SELECT id, fp FROM docs WHERE id < 50;
CREATE INDEX parts_fp ON parts USING neardup (fp);
CREATE INDEX parts_later ON ONLY parts USING neardup (fp);
-- An index of a failed build.
CREATE TABLE broken AS SELECT 0 AS id;
CREATE INDEX CONCURRENTLY broken_fp ON broken USING neardup (((1 / id)::bigint::fingerprint));

SELECT relation, index, partition_of, columns, options
FROM neardup_indexes WHERE :own ORDER BY index::text COLLATE "C";
SELECT index, persistence, is_valid, is_partial, is_constraint, rows,
    bytes = pg_relation_size(index) AS bytes_right, dead_rows, last_vacuum IS NOT NULL AS vacuumed
FROM neardup_indexes WHERE :own ORDER BY index::text COLLATE "C";
-- neardup_index_info returns the same for indexes that have storage.
SELECT count(*), bool_and(pages * 8192 = bytes AND info.rows + info.null_rows = v.rows) AS same
FROM neardup_indexes v, neardup_index_info(v.index) info WHERE v.bytes IS NOT NULL AND v.is_valid
    AND v.rows IS NOT NULL AND :own;

-- Use, dead rows and VACUUM.
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset();
SET enable_seqscan = off;
SELECT count(*) FROM docs WHERE wide <~> md5('7')::fingerprint128 <= 3;
DELETE FROM docs WHERE id % 4 = 0;
SELECT pg_stat_force_next_flush();
SELECT index, scans, rows_read, dead_rows, last_vacuum FROM neardup_indexes
WHERE index IN ('docs_wide'::regclass, 'docs_pdq') ORDER BY index::text;
VACUUM (INDEX_CLEANUP ON) docs;
SELECT index, rows, dead_rows, last_vacuum > now() - interval '1 day' AS vacuumed
FROM neardup_indexes WHERE index IN ('docs_fp'::regclass, 'docs_few') ORDER BY index::text;

-- Any role sees them, like the catalogs, without rights on the tables.
CREATE ROLE neardup_watcher;
CREATE ROLE neardup_stranger;
GRANT pg_monitor TO neardup_watcher;
SET ROLE neardup_watcher;
SELECT count(*), count(bytes) AS with_bytes FROM public.neardup_indexes WHERE :own;
SET ROLE neardup_stranger;
SELECT count(*), count(bytes) AS with_bytes FROM public.neardup_indexes WHERE :own;
RESET ROLE;
DROP ROLE neardup_watcher;
DROP ROLE neardup_stranger;

-- It moves with the extension.
ALTER EXTENSION neardup SET SCHEMA indexes_test;
SELECT count(*) FROM indexes_test.neardup_indexes WHERE :own;
ALTER EXTENSION neardup SET SCHEMA public;
SET client_min_messages = warning;
DROP SCHEMA indexes_test CASCADE;
