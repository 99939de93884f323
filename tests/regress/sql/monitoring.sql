-- Monitoring: members of pg_monitor inspect other roles' indexes without seeing values, and
-- functions that read an index directly count as its use.
CREATE SCHEMA monitoring_test;
SET search_path = monitoring_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE docs (id int, fp fingerprint, sig minhash_signature);
INSERT INTO docs SELECT i, hashint8extended(i, 1)::fingerprint, minhash(ARRAY['a', i::text])
    FROM generate_series(1, 100) i;
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE INDEX docs_sig ON docs USING neardup (sig);
CREATE ROLE neardup_watcher;
CREATE ROLE neardup_stranger;
GRANT pg_monitor TO neardup_watcher;
GRANT USAGE ON SCHEMA monitoring_test TO neardup_watcher, neardup_stranger;

SET ROLE neardup_watcher;
SELECT rows, permutations, largest_bucket_entries FROM neardup_index_info('docs_fp');
SELECT rows, permutations FROM neardup_index_info('docs_sig');
SELECT largest_bucket_permutation IS NULL AS no_permutation, largest_bucket_mask,
    largest_bucket_bits
FROM neardup_expert_index_statistics('docs_fp');
SELECT rows FROM neardup_index_check('docs_fp', heap => true, concurrently => true);
SELECT rows FROM neardup_index_check('docs_sig', heap => true, concurrently => true);
-- Only the owner may take a lock that blocks writers.
SELECT rows FROM neardup_index_check('docs_fp');
SELECT count(*) FROM neardup_pairs('docs', 3);
SELECT count(*) FROM neardup_expert_rows_in_flight();
SET ROLE neardup_stranger;
SELECT rows FROM neardup_index_info('docs_fp');
SELECT rows FROM neardup_index_check('docs_fp', concurrently => true);
RESET ROLE;
SELECT largest_bucket_bits IS NOT NULL AS owner_sees_bits FROM
    neardup_expert_index_statistics('docs_fp');

-- Each of these counts as a use, so that no script considers the index unused.
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset();
SELECT count(*) FROM neardup_pairs('docs', 3);
SELECT count(*) FROM neardup_clusters('docs', 3);
SELECT count(*) > 0 AS some FROM neardup_distance_histogram('docs_fp', 3);
SELECT count(*) FROM neardup_pairs('docs_sig', similarity => 0.9);
SELECT count(*) FROM neardup_clusters('docs_sig', similarity => 0.9);
SELECT pg_stat_force_next_flush();
SELECT indexrelname, idx_scan FROM pg_stat_user_indexes
WHERE schemaname = 'monitoring_test' ORDER BY 1;

DROP SCHEMA monitoring_test CASCADE;
DROP ROLE neardup_watcher;
DROP ROLE neardup_stranger;
