-- Tables whose rows are stored elsewhere: functions that read a table without the executor refuse
-- them, since they would see an empty table.
CREATE SCHEMA other_engines;
SET search_path = other_engines, public;
\set VERBOSITY default
\set SHOW_CONTEXT never

-- Citus's metadata, as in 8.0 to 13.2. There is no Citus here: the table lacks the rows that it
-- would have in shards.
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (
    logicalrelid regclass NOT NULL, partmethod "char" NOT NULL, partkey text,
    colocationid integer DEFAULT 0 NOT NULL, repmodel "char" DEFAULT 'c' NOT NULL,
    autoconverted boolean DEFAULT false
);
CREATE UNIQUE INDEX pg_dist_partition_logical_relid_index ON pg_catalog.pg_dist_partition
    (logicalrelid);
GRANT SELECT ON pg_catalog.pg_dist_partition TO public;
RESET allow_system_table_mods;

CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint, sig minhash_signature, dup int);
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE INDEX docs_sig ON docs USING neardup (sig);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=mark', 'mark=dup');
CREATE TRIGGER dedup_marks AFTER UPDATE OR DELETE ON docs FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=mark', 'mark=dup');
CREATE TABLE docs_102008 (LIKE docs INCLUDING ALL);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs_102008 FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=mark', 'mark=dup');
CREATE TRIGGER dedup_marks AFTER UPDATE OR DELETE ON docs_102008 FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=mark', 'mark=dup');
INSERT INTO docs_102008 SELECT i, 'text', (i / 2 * 4096 - 1)::bigint::fingerprint,
    minhash(ARRAY[(i / 2)::text]) FROM generate_series(2, 7) i;

-- Before it is distributed, the table is an ordinary one.
SELECT count(*) FROM neardup_pairs('docs', 0);
INSERT INTO pg_catalog.pg_dist_partition VALUES ('docs', 'h', 'id', 1, 's');
SELECT * FROM neardup_pairs('docs', 0);
SELECT * FROM neardup_pairs('docs_fp', 0);
SELECT * FROM neardup_pairs('docs', similarity => 1);
SELECT * FROM neardup_clusters('docs', 0);
SELECT * FROM neardup_clusters('docs', similarity => 0.9);
SELECT * FROM neardup_clusters('docs_sig', similarity => 1);
SELECT neardup_remark('docs');
\set VERBOSITY terse
SELECT * FROM neardup_distance_histogram('docs', 3);
SELECT * FROM neardup_distance_histogram('docs', 3, sample_rows => NULL);
SELECT * FROM neardup_distance_histogram('docs_fp', 3);
SELECT * FROM neardup_distance_histogram('docs', similarity => 0.5);
SELECT * FROM neardup_index_info('docs_fp');
SELECT * FROM neardup_expert_index_statistics('docs_sig');
SELECT * FROM neardup_index_check('docs_fp');
SELECT * FROM neardup_index_check('docs_fp', heap => true, concurrently => true);
\set VERBOSITY default
INSERT INTO docs VALUES (1, 'text', '0000000000000000');
UPDATE pg_catalog.pg_dist_partition SET partmethod = 'n', partkey = NULL, repmodel = 't';
\set VERBOSITY terse
SELECT * FROM neardup_pairs('docs', 0);
-- Its shards are tables of this server.
SELECT a.id, b.id, distance FROM neardup_pairs('docs_102008', 0) p
    JOIN docs_102008 a ON a.ctid = p.a JOIN docs_102008 b ON b.ctid = p.b ORDER BY 1;
SELECT count(*) FROM neardup_clusters('docs_102008', similarity => 1);
SELECT pairs FROM neardup_distance_histogram('docs_102008', 0);
SELECT rows FROM neardup_index_info('docs_102008_fp_idx');
SELECT rows FROM neardup_index_check('docs_102008_fp_idx', true);
SELECT neardup_remark('docs_102008');
-- The statements of the hints, as run_command_on_shards fills them in.
SELECT json_array_length(json_agg(p)) FROM neardup_pairs_by_key(NULL::bigint,
    'other_engines.docs_102008', 0, key => 'id') p;
SELECT json_array_length(json_agg(neardup_index_info(i.indexrelid))) FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    WHERE i.indrelid = 'other_engines.docs_102008'::regclass AND a.amname = 'neardup';
SELECT neardup_remark('other_engines.docs_102008');
INSERT INTO docs_102008 VALUES (8, 'text', (4095)::bigint::fingerprint) RETURNING dup;
-- A role that may not read a table gets this error, and no other information.
CREATE ROLE other_engines_reader;
GRANT USAGE ON SCHEMA other_engines TO other_engines_reader;
SET ROLE other_engines_reader;
SELECT * FROM neardup_pairs('docs', 0);
RESET ROLE;
GRANT SELECT ON docs TO other_engines_reader;
SET ROLE other_engines_reader;
SELECT * FROM neardup_pairs('docs', 0);
RESET ROLE;
-- Without Citus the table is one of this server's.
DELETE FROM pg_catalog.pg_dist_partition;
SELECT count(*) FROM neardup_pairs('docs', 0);
SET allow_system_table_mods = on;
DROP TABLE pg_catalog.pg_dist_partition;
RESET allow_system_table_mods;
SELECT count(*) FROM neardup_pairs('docs', 0);

-- Foreign tables.
\set VERBOSITY default
CREATE FOREIGN DATA WRAPPER other_engines;
CREATE SERVER far_away FOREIGN DATA WRAPPER other_engines;
CREATE FOREIGN TABLE far (id int, body text, fp fingerprint, sig minhash_signature, dup int)
    SERVER far_away;
SELECT * FROM neardup_pairs('far', 3);
\set VERBOSITY terse
SELECT * FROM neardup_pairs('far', 3, column_name => 'fp');
SELECT * FROM neardup_clusters('far', similarity => 0.8);
SELECT * FROM neardup_distance_histogram('far', 3);
SELECT * FROM neardup_index_info('far');
SELECT * FROM neardup_index_check('far');
SELECT neardup_remark('far');
SET ROLE other_engines_reader;
SELECT * FROM neardup_pairs('far', 3);
RESET ROLE;
-- A foreign partition, through its partitioned table.
CREATE TABLE parts (id int, fp fingerprint, dup int) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE parts_far PARTITION OF parts FOR VALUES FROM (0) TO (9) SERVER far_away;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON parts FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'radius=3', 'action=mark', 'mark=dup', 'key=id');
SELECT * FROM neardup_pairs('parts', 3);
SELECT * FROM neardup_pairs('parts_far', 3);
\set VERBOSITY default
SELECT neardup_remark('parts');

-- Views, and tables that others inherit from.
\set VERBOSITY default
CREATE VIEW few AS SELECT * FROM docs_102008 WHERE id < 5;
SELECT * FROM neardup_pairs('few', 3);
CREATE TABLE parent (id int, fp fingerprint);
CREATE INDEX parent_fp ON parent USING neardup (fp);
INSERT INTO parent VALUES (1, '0000000000000000'), (2, '0000000000000001');
CREATE TABLE child () INHERITS (parent);
CREATE INDEX child_fp ON child USING neardup (fp);
INSERT INTO child VALUES (3, '0000000000000000'), (4, '0000000000000001');
SELECT * FROM neardup_pairs('parent', 3);
\set VERBOSITY terse
SELECT * FROM neardup_clusters('parent', 3);
SELECT * FROM neardup_distance_histogram('parent', 3);
SELECT * FROM neardup_distance_histogram('parent', 3, sample_rows => NULL);
-- The parent's index has its own rows only. Naming the index is accepted.
SELECT count(*) FROM neardup_pairs('parent_fp', 3);
SELECT count(*) FROM neardup_pairs('child', 3);
ALTER TABLE child NO INHERIT parent;
SELECT count(*) FROM neardup_pairs('parent', 3);

DROP SCHEMA other_engines CASCADE;
DROP FOREIGN DATA WRAPPER other_engines CASCADE;
DROP ROLE other_engines_reader;
