-- Pairs, clusters and histograms by the name of a table: the choice of the index.
CREATE SCHEMA by_table_test;
SET search_path = by_table_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE docs (id int PRIMARY KEY, site int, fp fingerprint, other fingerprint, hash bigint,
    sig minhash_signature, wide fingerprint128);
INSERT INTO docs SELECT i, i % 2, (i / 2 * 4096)::bigint::fingerprint,
    (~(i / 3 * 4096)::bigint)::fingerprint,
    i / 4 * 4096, minhash(ARRAY[(i / 5)::text, 'x']), NULL FROM generate_series(1, 12) i;

-- No index: the hint has the statement that makes one.
SELECT * FROM neardup_pairs('docs', 0);
SELECT * FROM neardup_pairs('docs', 0, column_name => 'other');
SELECT * FROM neardup_pairs('docs', 0, column_name => 'hash');
SELECT * FROM neardup_pairs('docs', similarity => 1, column_name => 'sig');
SELECT * FROM neardup_clusters('docs', 0, column_name => 'wide');
SELECT * FROM neardup_distance_histogram('docs', 0, sample_rows => NULL);
SELECT * FROM neardup_pairs('docs', 0, column_name => 'nothing');
-- One index.
CREATE INDEX docs_fp ON docs USING neardup (fp);
SELECT count(*) FROM neardup_pairs('docs', 0);
SELECT count(*) FROM neardup_pairs('docs', similarity => 1);
SELECT count(*) FROM neardup_pairs('docs', 0, column_name => 'fp');
SELECT count(*) FROM neardup_clusters('docs', 0);
SELECT * FROM neardup_distance_histogram('docs', 0, sample_rows => NULL);
SELECT * FROM neardup_pairs('docs', 0, column_name => 'other');
-- NULL means the default.
SELECT count(*) FROM neardup_pairs('docs', 0, column_name => NULL);
SELECT count(*) FROM neardup_pairs(NULL::regclass, 0);
SELECT count(*) FROM neardup_pairs('docs', NULL::int);
SELECT count(*) FROM neardup_pairs('docs', similarity => NULL);
-- An index on signatures is not used for a radius, and is preferred for a similarity.
CREATE INDEX docs_sig ON docs USING neardup (sig);
SELECT count(*) FROM neardup_pairs('docs', 0);
SELECT count(*) FROM neardup_pairs('docs', similarity => 1);
SELECT count(*) FROM neardup_pairs('docs', similarity => 1, column_name => 'fp');
SELECT count(*) FROM neardup_pairs('docs', 0, column_name => 'sig');
SELECT count(*) FROM neardup_clusters('docs', similarity => 1);
SELECT * FROM neardup_clusters('docs', 0, column_name => 'sig');
SELECT * FROM neardup_distance_histogram('docs', 0, sample_rows => NULL, column_name => 'sig');
-- Several columns.
CREATE INDEX docs_other ON docs USING neardup (other);
CREATE INDEX docs_hash ON docs USING neardup (hash bigint_hamming_ops);
SELECT * FROM neardup_pairs('docs', 0);
SELECT count(*) FROM neardup_pairs('docs', 0, column_name => 'fp');
SELECT count(*) FROM neardup_pairs('docs', 0, column_name => 'other');
SELECT count(*) FROM neardup_clusters('docs', 0, column_name => 'hash');
SELECT pairs FROM neardup_distance_histogram('docs', 0, sample_rows => NULL,
    column_name => 'other');
DROP INDEX docs_other, docs_hash;
-- Two equivalent indexes, and a constraint's index on balls of the same column.
CREATE INDEX docs_fp2 ON docs USING neardup (fp) WITH (radius = 2);
CREATE INDEX docs_ball ON docs USING neardup (ball(fp, 8));
SELECT count(*) FROM neardup_pairs('docs', 0);
-- An index with a scope has another result: the name of a table means all its rows.
CREATE INDEX docs_site ON docs USING neardup (site, fp);
SELECT * FROM neardup_pairs('docs', 0);
SELECT count(*) FROM neardup_pairs('docs_site', 0);
DROP INDEX docs_fp, docs_fp2;
SELECT * FROM neardup_pairs('docs', 0);
-- With several scoped indexes only, the choice is ambiguous.
BEGIN;
DROP INDEX docs_ball;
CREATE INDEX docs_two ON docs USING neardup (site, id, fp);
SELECT * FROM neardup_pairs('docs', 0);
ROLLBACK;
DROP INDEX docs_site;
-- An index on an expression only.
SELECT count(*) FROM neardup_pairs('docs', 0);
SELECT count(*) FROM neardup_pairs('docs', 0, column_name => 'fp');
DROP INDEX docs_ball;
-- Partial indexes do not count.
CREATE INDEX docs_part ON docs USING neardup (fp) WHERE id < 5;
SELECT * FROM neardup_pairs('docs', 0);
SELECT count(*) FROM neardup_pairs('docs_part', 0);
CREATE INDEX docs_fp ON docs USING neardup (fp);
SELECT count(*) FROM neardup_pairs('docs', 0);
-- Invalid indexes do not count.
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'docs_fp'::regclass;
DROP INDEX docs_part;
SELECT * FROM neardup_pairs('docs', 0);
CREATE INDEX docs_fp2 ON docs USING neardup (fp);
SELECT count(*) FROM neardup_pairs('docs', 0);
-- column_name is valid with a table only.
SELECT * FROM neardup_pairs('docs_fp2', 0, column_name => 'fp');
SELECT * FROM neardup_clusters('docs_fp2', 0, column_name => 'fp');
-- Materialized views, partitioned tables and their partitions, and a name that is not a table.
CREATE MATERIALIZED VIEW seen AS SELECT * FROM docs;
CREATE INDEX ON seen USING neardup (fp);
SELECT count(*) FROM neardup_pairs('seen', 0);
CREATE TABLE parted (fp fingerprint) PARTITION BY HASH (fp);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE INDEX ON parted USING neardup (fp);
INSERT INTO parted SELECT fp FROM docs;
SELECT * FROM neardup_pairs('parted', 0);
SELECT * FROM neardup_clusters('parted', 0);
SELECT * FROM neardup_distance_histogram('parted', 0);
SELECT count(*) FROM neardup_pairs('parted_0', 0);
CREATE VIEW looking AS SELECT * FROM docs;
SELECT * FROM neardup_pairs('looking', 0);
-- The functions need the same rights as the table.
CREATE ROLE neardup_by_table;
GRANT USAGE ON SCHEMA by_table_test TO neardup_by_table;
SET ROLE neardup_by_table;
SELECT * FROM neardup_pairs('docs', 0);
SELECT * FROM neardup_clusters('docs', 0);
RESET ROLE;
GRANT SELECT (fp) ON docs TO neardup_by_table;
SET ROLE neardup_by_table;
SELECT count(*) FROM neardup_pairs('docs', 0);
SELECT count(*) FROM neardup_pairs('docs', similarity => 1);
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA by_table_test CASCADE;
DROP ROLE neardup_by_table;
