-- All pairs and clusters of signatures, and the description of an index on them.
CREATE SCHEMA minhash_pairs_test;
SET search_path = minhash_pairs_test, public;
\pset format unaligned
\pset tuples_only on

-- Chains of sets, each next to the one before with a few features changed; equal ones; and none.
CREATE TABLE docs (id int PRIMARY KEY, site int, body text, sig minhash_signature);
INSERT INTO docs
    SELECT id, id % 3, repeat('x', id % 7), minhash(ARRAY(SELECT (id / 50) || ':' || n
    FROM generate_series(3 * (id % 50), 3 * (id % 50) + 59) n))
    FROM generate_series(1, 600) id;
INSERT INTO docs SELECT id, id % 3, 'equal', (SELECT sig FROM docs WHERE id = 70)
    FROM generate_series(601, 660) id;
INSERT INTO docs SELECT id, NULL, 'none', NULL FROM generate_series(661, 670) id;
-- Dead rows, updated rows, and rows inserted since the build.
UPDATE docs SET body = body || '!' WHERE id % 5 = 0;
CREATE INDEX docs_sig ON docs USING neardup (sig);
UPDATE docs SET sig = minhash(ARRAY[id::text]) WHERE id % 29 = 0;
DELETE FROM docs WHERE id % 31 = 0;
UPDATE docs SET body = body || '?' WHERE id % 3 = 0;
INSERT INTO docs SELECT id + 700, site, body, sig FROM docs WHERE id BETWEEN 200 AND 230;

-- The pairs equal the result of a join, each once, at any distance: within the guarantee of the
-- bands and beyond.
CREATE FUNCTION compare(index regclass, distance float8, condition text DEFAULT 'true') RETURNS
    TABLE (pairs bigint, wrong bigint, twice bigint) LANGUAGE sql AS $$
    WITH found AS (SELECT a.id AS a, b.id AS b, p.similarity FROM neardup_pairs(index,
    similarity => 1 - compare.distance) p JOIN docs a ON a.ctid = p.a JOIN docs b ON b.ctid = p.b),
        once AS (SELECT DISTINCT least(a, b) AS a, greatest(a, b) AS b, similarity FROM found),
        expected AS (SELECT a.id AS a, b.id AS b,
        minhash_similarity(a.sig, b.sig)::float8 AS similarity
        FROM docs a JOIN docs b ON a.id < b.id
            WHERE minhash_similarity(a.sig, b.sig) >= 1 - compare.distance AND CASE condition WHEN
            'true' THEN true ELSE a.site = b.site END)
    SELECT (SELECT count(*) FROM expected),
        (SELECT count(*) FROM (TABLE once EXCEPT TABLE expected UNION ALL (TABLE expected EXCEPT
        TABLE once)) w),
        (SELECT count(*) FROM found) - (SELECT count(*) FROM once)
$$;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT d, (compare('docs_sig', d)).* FROM unnest(ARRAY[0, 0.125, 0.1875, 0.25, 0.5, 1]) d;
-- Little memory: candidates go to files, and parts of the index are compared one after the other.
SET work_mem = 64;
SELECT (compare('docs_sig', 0.1875)).*, (compare('docs_sig', 0.25)).*;
RESET work_mem;
SELECT bool_and(a < b) FROM neardup_pairs('docs_sig', similarity => 0.8);
SELECT count(*) FROM (SELECT neardup_pairs('docs_sig', similarity => 0.9) LIMIT 5) p;
SELECT count(*) > 0 FROM neardup_pairs('docs_sig', similarity => 1::smallint);

-- Within a scope, and of a partial index.
CREATE INDEX docs_site ON docs USING neardup (site, sig);
SELECT d, (compare('docs_site', d, 'site')).* FROM unnest(ARRAY[0, 0.1875, 0.5]) d;
CREATE INDEX docs_part ON docs USING neardup (sig) WHERE id < 100;
SELECT count(*) = (SELECT count(*) FROM docs a JOIN docs b ON a.sig ~= b.sig AND a.id < b.id
    AND b.id < 100) FROM neardup_pairs('docs_part', similarity => 0.8);
-- Scopes with the same hash.
CREATE TABLE same_hash (site bigint, sig minhash_signature);
INSERT INTO same_hash SELECT s, minhash(ARRAY['x', 'y']) FROM unnest(ARRAY[1, 1, 4294967296, NULL,
    NULL]) s;
CREATE INDEX same_hash_sig ON same_hash USING neardup (site, sig);
SELECT count(*) FROM neardup_pairs('same_hash_sig', similarity => 0.8);
SELECT size, similarity FROM neardup_clusters('same_hash_sig', similarity => 0.8);
-- Signatures of different kinds are near nothing of another kind.
CREATE TABLE kinds (sig minhash_signature);
CREATE INDEX kinds_sig ON kinds USING neardup (sig);
INSERT INTO kinds SELECT minhash(ARRAY['x', 'y'], seed => seed) FROM unnest(ARRAY[0, 0, 1, 1, 2])
    seed;
SELECT similarity, count(*) FROM neardup_pairs('kinds_sig', similarity => 0.8) GROUP BY 1;
SELECT similarity, count(*) FROM neardup_pairs('kinds_sig', similarity => 0.1) GROUP BY 1;
-- Of an expression.
CREATE TABLE texts (id int, body text);
INSERT INTO texts VALUES (1, 'the quick brown fox jumps over the lazy dog'),
    (2, 'The quick brown fox jumps over the lazy dog!'), (3, 'something else'), (4, NULL);
CREATE INDEX texts_sig ON texts USING neardup (minhash(body));
SELECT a.id, b.id, p.distance, p.similarity FROM neardup_pairs('texts_sig', similarity => 0.8) p
    JOIN texts a ON a.ctid = p.a JOIN texts b ON b.ctid = p.b;

-- Clusters by definition.
CREATE FUNCTION stars(distance float8) RETURNS TABLE (member int, kept int) LANGUAGE plpgsql AS $$
DECLARE d record; taken int[] := '{}'; mine int[];
BEGIN
    FOR d IN SELECT * FROM docs WHERE sig IS NOT NULL ORDER BY length(body) DESC, id LOOP
        CONTINUE WHEN d.id = ANY (taken);
        SELECT array_agg(o.id) INTO mine FROM docs o WHERE minhash_similarity(o.sig, d.sig) >= 1 -
        distance AND o.id <> ALL (taken);
        taken := taken || mine;
        IF array_length(mine, 1) > 1 THEN
            RETURN QUERY SELECT m, d.id FROM unnest(mine) m;
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION clustered(distance float8, method text DEFAULT 'star') RETURNS TABLE (member int,
    kept int, size bigint, alike float8) LANGUAGE sql AS $$
    SELECT m.id, r.id, c.size, c.similarity FROM neardup_clusters('docs_sig',
    similarity => 1 - clustered.distance, method => method, keep => 'length(body) DESC, id') c
        JOIN docs m ON m.ctid = c.member JOIN docs r ON r.ctid = c.representative
$$;
SELECT d, (SELECT count(*) FROM stars(d)),
    (SELECT count(*) FROM (SELECT member, kept FROM clustered(d) EXCEPT SELECT * FROM stars(d)
    UNION ALL (SELECT * FROM stars(d) EXCEPT SELECT member, kept FROM clustered(d))) w) AS wrong
    FROM unnest(ARRAY[0, 0.125, 0.1875, 0.3]) d;
SELECT count(*) FILTER (WHERE c.alike <> minhash_similarity(m.sig, k.sig)) AS wrong_similarity,
    min(alike) >= 1 - 0.1875,
    count(*) FILTER (WHERE size <> (SELECT count(*) FROM clustered(0.1875) o WHERE o.kept = c.kept))
    AS wrong_size
    FROM clustered(0.1875) c JOIN docs m ON m.id = c.member JOIN docs k ON k.id = c.kept;
WITH RECURSIVE edges AS (SELECT a.id AS a, b.id AS b FROM docs a JOIN docs b
    ON minhash_similarity(a.sig, b.sig) >= 1 - 0.1875),
    reach AS (TABLE edges UNION SELECT r.a, e.b FROM reach r JOIN edges e ON e.a = r.b),
    parts AS (SELECT a, array_agg(b ORDER BY b) AS part FROM reach GROUP BY a HAVING count(*) > 1),
    found AS (SELECT member, array_agg(other ORDER BY other) AS part FROM (SELECT x.member, y.member
    AS other FROM clustered(0.1875, 'connected') x JOIN clustered(0.1875, 'connected') y
    USING (kept)) p GROUP BY member)
SELECT (SELECT count(*) FROM parts), (SELECT count(*) FROM (TABLE parts EXCEPT TABLE found
    UNION ALL (TABLE found EXCEPT TABLE parts)) w);
SELECT count(*) FILTER (WHERE c.alike <> minhash_similarity(m.sig, k.sig))
    FROM clustered(0.1875, 'connected') c JOIN docs m ON m.id = c.member
    JOIN docs k ON k.id = c.kept;
-- Many equal rows do not take quadratic work.
CREATE TABLE crowd (id int, sig minhash_signature);
INSERT INTO crowd SELECT id, minhash(ARRAY['a', 'b', 'c']) FROM generate_series(1, 30000) id;
CREATE INDEX crowd_sig ON crowd USING neardup (sig);
SELECT count(*), min(size), max(size), min(similarity), max(distance)
    FROM neardup_clusters('crowd_sig', similarity => 0.8);

-- Bounds of the other kind, and out of range.
SELECT * FROM neardup_pairs('docs_sig', 1);
SELECT * FROM neardup_clusters('docs_sig', 1);
SELECT * FROM neardup_pairs('docs_sig', similarity => -0.5);
SELECT * FROM neardup_clusters('docs_sig', similarity => 'NaN');
SELECT * FROM neardup_distance_histogram('docs_sig', 16);
SET maintenance_work_mem = '1MB';
SELECT count(*) FROM (SELECT neardup_pairs('crowd_sig', similarity => 0.8) LIMIT 100000) p;
SELECT count(*) FROM neardup_clusters('crowd_sig', similarity => 0.8);
RESET maintenance_work_mem;
CREATE TABLE prints (id int, fp fingerprint);
INSERT INTO prints VALUES (1, '0000000000000000'), (2, '0000000000000003'), (3, 'ffffffffffffffff');
CREATE INDEX prints_fp ON prints USING neardup (fp);
SELECT distance, similarity FROM neardup_pairs('prints_fp', 2::smallint);
SELECT size, distance, similarity FROM neardup_clusters('prints_fp', similarity => 0.8);
SELECT * FROM neardup_clusters('prints_fp', 0.2);

-- Inspection of an index.
\pset expanded on
\pset tuples_only off
SELECT radius, similarity, guaranteed_similarity, permutations, rows, null_rows,
    candidates > 30 AS candidates,
    largest_bucket_entries > 50 AS bucket, largest_bucket_row IS NOT NULL AS bucket_row
FROM neardup_index_info('docs_sig');
SELECT fingerprint_bits, scope_columns, leading_bits, hashes, bands, band_rows, entries,
    largest_bucket_mask, largest_bucket_bits
FROM neardup_expert_index_statistics('docs_sig');
SELECT scope_columns, permutations, hashes, bands, band_rows, similarity
FROM neardup_index_info('docs_site'), neardup_expert_index_statistics('docs_site');
\pset expanded off
SELECT hashes, bands, band_rows, similarity
FROM neardup_index_info('prints_fp'), neardup_expert_index_statistics('prints_fp');

SET client_min_messages = warning;
DROP SCHEMA minhash_pairs_test CASCADE;
