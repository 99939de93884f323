-- Numbers of pairs: counted, or estimated from a sample with a margin.
CREATE SCHEMA estimates_test;
SET search_path = estimates_test, public;
\set VERBOSITY default
\pset format unaligned
-- 3,000 fingerprints: 80 are equal, and 600 are 1 or 2 bits from another one.
CREATE TABLE prints (id int PRIMARY KEY, fp fingerprint, sig minhash_signature);
INSERT INTO prints SELECT i, hash::fingerprint, minhash(ARRAY['w' || hash, 'x' || hash, 'y' ||
    hash])
FROM generate_series(1, 3000) i, LATERAL (SELECT CASE
    WHEN i <= 80 THEN 7
    WHEN i <= 680 THEN ('x' || left(md5((i / 2)::text), 16))::bit(64)::bigint # (i % 2 * (i % 3))
    ELSE ('x' || left(md5(i::text), 16))::bit(64)::bigint END AS hash) h;
CREATE INDEX prints_fp ON prints USING neardup (fp);
CREATE INDEX prints_sig ON prints USING neardup (sig);
VACUUM ANALYZE prints;

-- With all pairs there is no margin, whether the index or a sample of all rows counts them.
SELECT distance, pairs, margin FROM neardup_distance_histogram('prints_fp', 3, sample_rows => NULL);
SELECT distance, pairs, margin FROM neardup_distance_histogram('prints_fp', 3, sample_rows => 3000);
-- The margin of a sample covers the true number, at distances with few pairs and with many.
SELECT count(*) AS distances, min(e.margin) > 0 AS have_margins,
    count(*) FILTER (WHERE abs(e.pairs - c.pairs) > e.margin) <= 3 AS nearly_all_covered,
    sum(e.margin) FILTER (WHERE distance >= 20) < sum(c.pairs) FILTER (WHERE distance >= 20) / 10
        AS small_margins
FROM neardup_distance_histogram('prints_fp', 28, sample_rows => 500) e
JOIN neardup_distance_histogram('prints_fp', 28, sample_rows => NULL) c USING (distance);
SELECT min(e.margin) > 0 AS have_margins,
    count(*) FILTER (WHERE abs(e.pairs - c.pairs) > e.margin) AS uncovered
FROM neardup_distance_histogram('prints_sig', similarity => 0.8, sample_rows => 500) e
JOIN neardup_distance_histogram('prints_sig', similarity => 0.8, sample_rows => NULL) c
    USING (similarity);
-- With more rows the margin is smaller.
SELECT (SELECT sum(margin) FROM neardup_distance_histogram('prints_fp', 28, sample_rows => 2000)) <
    (SELECT sum(margin) FROM neardup_distance_histogram('prints_fp', 28, sample_rows => 200)) AS
    less;

-- A report counts what takes less than a second.
CREATE FUNCTION parts(page text, pattern text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(regexp_replace(regexp_replace(m[1], '<[^>]*?>', ' ', 'g'), '\s+', ' ', 'g'))
    FROM regexp_matches(page, pattern, 'g') m $$;
SELECT neardup_report('prints_fp', 6, sample_rows => 300) AS page \gset
SELECT parts(:'page', '<tr class="row within-[^>]*?>(.*?)</tr>') AS "distance, pairs within";
SELECT parts(:'page', '<desc id="chart-desc">(.*?)</desc>') AS description;
SELECT parts(neardup_report('prints_sig', sample_rows => 300, clusters => 0),
    '<tr class="row within-[^>]*?>(.*?)</tr>') AS "similarity, pairs within";
-- The control has every radius.
SELECT array_agg(parts) FROM parts(neardup_report('prints_fp', 13),
    '<input[^>]*?><span>(.*?)</span>');
SELECT array_agg(parts) FROM parts(neardup_report('prints_fp', 20),
    '<input[^>]*?><span>(.*?)</span>');

-- Distances of perceptual hashes are even.
CREATE TABLE images (hash bigint);
-- Half of the bits of each are set.
INSERT INTO images SELECT (('x' || half)::bit(32)::bigint << 32) | (~('x' || half)::bit(32))::bigint
FROM generate_series(1, 400) n, LATERAL (SELECT left(md5(n::text), 8) AS half) h;
CREATE INDEX ON images USING neardup (hash bigint_hamming_ops);
SELECT neardup_report('images', 4) LIKE '%Nearly all distances are even%' AS of_images,
    neardup_report('prints_fp', 4) LIKE '%Nearly all distances are even%' AS of_texts;
DROP SCHEMA estimates_test CASCADE;
