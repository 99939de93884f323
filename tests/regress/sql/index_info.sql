-- Inspection of an index: its pages, their fill, and the distribution of its keys.
CREATE SCHEMA index_info_test;
SET search_path = index_info_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never

-- 4,000 uniform fingerprints, and 1,000 that share all but their last 12 bits: in three of four
-- permutations they share one bucket. Ten rows have none.
CREATE TABLE docs (id int, site text, fp fingerprint);
INSERT INTO docs SELECT i, 'site ' || i % 3, hashint8extended(i, 1)::fingerprint
    FROM generate_series(1, 4000) i;
INSERT INTO docs SELECT i, 'site ' || i % 3, (4886718345 << 24 | i)::fingerprint
    FROM generate_series(1, 1000) i;
INSERT INTO docs SELECT i, 'site 0', NULL FROM generate_series(1, 10) i;
CREATE INDEX docs_fp ON docs USING neardup (fp) WITH (radius = 3);
CREATE INDEX docs_site ON docs USING neardup (site, fp) WITH (radius = 2, blocks = 4, fillfactor =
    100);
\x on
SELECT * FROM neardup_index_info('docs_fp');
SELECT * FROM neardup_expert_index_statistics('docs_fp');
SELECT * FROM neardup_index_info('docs_site');
SELECT * FROM neardup_expert_index_statistics('docs_site');
\x off
-- It agrees with the check, and with the size of the file.
SELECT i.rows = c.rows AND i.null_rows = c.null_rows AND s.entries = c.entries AND s.inner_pages =
    c.inner_pages AND leaf_pages + empty_pages = leaves AS as_checked,
       pages = pg_relation_size('docs_fp') / 8192 AS all_pages, 1 + s.inner_pages + leaf_pages +
       empty_pages + unused_pages = pages AS each_of_one_kind,
       bytes_per_row = round((pages * 8192.0 / (i.rows + i.null_rows)), 2) AS per_row
FROM neardup_index_info('docs_fp') i, neardup_expert_index_statistics('docs_fp') s,
    neardup_index_check('docs_fp') c;
-- The candidates equal a self-join on each permutation's leading bits, 16 bits each.
SELECT round(sum(n * n) / 5000, 2) = (SELECT candidates FROM neardup_index_info('docs_fp'))
    AS counted
FROM (SELECT count(*) AS n FROM docs, generate_series(0, 3) block WHERE fp IS NOT NULL
    GROUP BY block, (fp::bigint >> 16 * block) & 65535) groups;
-- The rows of the largest bucket. The index names one row of it.
SELECT count(*) = max(largest_bucket_entries) AS all_found, bool_or(docs.ctid = largest_bucket_row)
    AS with_the_named
FROM docs, neardup_index_info('docs_fp'), neardup_expert_index_statistics('docs_fp')
    WHERE fp::bit(64) & largest_bucket_mask = largest_bucket_bits;
-- Within the scope of the named row.
SELECT count(*) = max(largest_bucket_entries) AS all_found, bool_or(docs.ctid = largest_bucket_row)
    AS with_the_named
FROM docs, neardup_index_info('docs_site'), neardup_expert_index_statistics('docs_site')
    WHERE fp::bit(64) & largest_bucket_mask = largest_bucket_bits AND site = (SELECT site FROM docs
    WHERE ctid = largest_bucket_row);
-- The largest radius at which a search, by its plan, does not read any permutation whole.
CREATE TABLE many AS SELECT i, hashint8extended(i, 3)::fingerprint AS fp,
    md5(i::text)::fingerprint128 AS wide FROM generate_series(1, 60000) i;
CREATE INDEX many_fp ON many USING neardup (fp);
CREATE INDEX many_5 ON many USING neardup (fp) WITH (radius = 5);
CREATE INDEX many_wide ON many USING neardup (wide);
CREATE INDEX many_wide_3 ON many USING neardup (wide) WITH (radius = 3);
CREATE INDEX many_scope ON many USING neardup ((i % 10), fp);
CREATE INDEX many_few ON many USING neardup (fp) WHERE i < 100;
SELECT index, radius, guaranteed_radius, permutations, rows, probed_radius
FROM unnest(ARRAY['many_fp', 'many_5', 'many_wide', 'many_wide_3', 'many_scope', 'many_few']) index,
    neardup_index_info(index::regclass);
DROP TABLE many;

-- After deletions leaves are emptier, until REINDEX.
DELETE FROM docs WHERE id % 10 > 0 OR id > 3000;
VACUUM (INDEX_CLEANUP ON) docs;
SELECT rows, null_rows, entries, leaf_pages, empty_pages, leaf_fill
    FROM neardup_index_info('docs_fp'), neardup_expert_index_statistics('docs_fp');
DELETE FROM docs;
VACUUM (INDEX_CLEANUP ON) docs;
SELECT rows, null_rows, entries, leaf_pages, empty_pages, bytes_per_row, leaf_fill, candidates
    FROM neardup_index_info('docs_fp'), neardup_expert_index_statistics('docs_fp');
SELECT largest_bucket_entries, largest_bucket_permutation, largest_bucket_mask, largest_bucket_bits,
    largest_bucket_row FROM neardup_index_info('docs_fp'),
    neardup_expert_index_statistics('docs_fp');
REINDEX TABLE docs;
SELECT pages, inner_pages, leaf_pages, empty_pages, height FROM neardup_index_info('docs_fp'),
    neardup_expert_index_statistics('docs_fp');

-- Every width, unlogged and temporary tables, balls, and bigint.
CREATE UNLOGGED TABLE hashes AS SELECT i, hashint8extended(i % 50, 2)
    AS b, md5((i % 50)::text)::uuid::fingerprint128 AS f, decode(md5((i % 50)::text) || md5('x' || i
    % 50), 'hex')::fingerprint256 AS g FROM generate_series(1, 2000) i;
CREATE INDEX hashes_b ON hashes USING neardup (b bigint_hamming_ops);
CREATE INDEX hashes_f ON hashes USING neardup (f);
CREATE INDEX hashes_g ON hashes USING neardup (g) WITH (radius = 1);
CREATE INDEX hashes_i_g ON hashes USING neardup ((i % 2), g);
CREATE INDEX hashes_ball ON hashes USING neardup (ball(f, 9));
CREATE TEMPORARY TABLE temporary AS SELECT * FROM hashes;
CREATE INDEX temporary_b ON temporary USING neardup (b bigint_hamming_ops) WITH (radius = 0);
SELECT index, fingerprint_bits AS bits, scope_columns AS scope, guaranteed_radius, blocks,
    permutations, leading_bits AS leading, rows, candidates, largest_bucket_entries,
    length(largest_bucket_mask) AS mask,
    length(replace(largest_bucket_mask::text, '0', '')) AS looked_up
FROM unnest(ARRAY['hashes_b', 'hashes_f', 'hashes_g', 'hashes_i_g', 'hashes_ball', 'temporary_b'])
    index, neardup_index_info(index::regclass), neardup_expert_index_statistics(index::regclass);
SELECT count(*) = max(largest_bucket_entries) AS bucket_of_bigint FROM hashes,
    neardup_index_info('hashes_b'), neardup_expert_index_statistics('hashes_b')
    WHERE b::bit(64) & largest_bucket_mask = largest_bucket_bits;
SELECT count(*) = max(largest_bucket_entries) AS bucket_of_128 FROM hashes,
    neardup_index_info('hashes_f'), neardup_expert_index_statistics('hashes_f')
    WHERE f::bit(128) & largest_bucket_mask = largest_bucket_bits;
SELECT count(*) = max(largest_bucket_entries) AS bucket_of_256 FROM hashes,
    neardup_index_info('hashes_g'), neardup_expert_index_statistics('hashes_g')
    WHERE g::bit(256) & largest_bucket_mask = largest_bucket_bits;

-- Relations that cannot be inspected.
CREATE TABLE parts (id int PRIMARY KEY, fp fingerprint) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE INDEX parts_fp ON parts USING neardup (fp);
SELECT neardup_index_info('parts_fp');
\echo :SQLSTATE
SELECT neardup_index_check('parts_fp');
SELECT neardup_index_info('parts_pkey');
SELECT rows, pages FROM neardup_index_info('parts_1_fp_idx');
SELECT neardup_index_info('docs');
SELECT neardup_expert_index_statistics('docs');
\echo :SQLSTATE
SELECT neardup_index_info('parts_1_pkey');
SELECT neardup_index_info(0);
\echo :SQLSTATE
SELECT neardup_index_info(NULL) IS NULL AS of_null;

SET client_min_messages = warning;
DROP SCHEMA index_info_test CASCADE;
