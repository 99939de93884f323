-- Domains over fingerprints: operators, conditions, indexes and functions treat them like the base
-- type.
CREATE DOMAIN page_fp AS fingerprint;
CREATE DOMAIN news_fp AS page_fp CHECK (VALUE IS NOT NULL);
CREATE DOMAIN image_fp AS fingerprint256;
CREATE DOMAIN wide_fp AS fingerprint128;
CREATE DOMAIN phash AS bigint;
CREATE DOMAIN page_sig AS minhash_signature;
CREATE DOMAIN body_text AS text;
CREATE TABLE pages (id int, body body_text, fp page_fp GENERATED ALWAYS AS (simhash(body)) STORED,
    news news_fp, image image_fp, wide wide_fp, hash phash, sig page_sig);
INSERT INTO pages (id, body, news, image, wide, hash, sig)
SELECT i, 'page ' || i, i::bigint::fingerprint, lpad(to_hex(i), 64, '0')::fingerprint256,
    lpad(to_hex(i), 32, '0')::fingerprint128, i,
       minhash(ARRAY['a', 'b', (i / 2)::text])
FROM generate_series(1, 200) i;
SELECT count(*) FROM pages WHERE fp IS NOT NULL AND fp = simhash(body);
CREATE INDEX pages_fp ON pages USING neardup (fp);
CREATE INDEX pages_news ON pages USING neardup (news);
CREATE INDEX pages_image ON pages USING neardup (image);
CREATE INDEX pages_wide ON pages USING neardup (wide);
CREATE INDEX pages_hash ON pages USING neardup (hash bigint_hamming_ops);
CREATE INDEX pages_sig ON pages USING neardup (sig);
CREATE INDEX pages_order ON pages (fp);
ANALYZE pages;
CREATE FUNCTION conditions(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ '(Cond|Filter|Order By):' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
SET enable_seqscan = off;
SELECT conditions($$SELECT id FROM pages WHERE news <~> '0000000000000007' <= 1$$);
SELECT conditions($$SELECT id FROM pages WHERE 1 >= '0000000000000007' <~> news$$);
SELECT conditions($$SELECT id FROM pages WHERE news <~> 7::bigint::page_fp <= 1$$);
SELECT conditions($$SELECT id FROM pages WHERE image <~> lpad('7', 64, '0')::image_fp < 2$$);
SELECT conditions($$SELECT id FROM pages WHERE wide ~= lpad('7', 32, '0')::fingerprint128$$);
SELECT conditions($$SELECT id FROM pages WHERE hash <~> 7::phash <= 1$$);
SELECT conditions($$SELECT id FROM pages WHERE news = 7::bigint::fingerprint$$);
SELECT conditions($$SELECT id FROM pages ORDER BY news <~> '0000000000000007' LIMIT 3$$);
SELECT conditions($$SELECT a.id FROM pages a JOIN pages b ON a.news <~> b.news <= 1$$);
SELECT conditions($$SELECT id FROM pages WHERE news <@ ball('0000000000000007'::page_fp, 1)$$);
SELECT count(*) FROM pages WHERE news <~> '0000000000000007' <= 1;
SELECT count(*) FROM pages WHERE image <~> lpad('7', 64, '0')::image_fp < 2;
SELECT count(*) FROM pages WHERE wide ~= lpad('7', 32, '0')::fingerprint128;
SELECT count(*) FROM pages WHERE hash <~> 7::phash <= 1;
SELECT count(*) FROM pages WHERE sig ~= (SELECT sig FROM pages WHERE id = 10);
SELECT array_agg(id) FROM (SELECT id FROM pages ORDER BY news <~> '0000000000000007', id LIMIT 3) x;
SELECT count(*) FROM pages a JOIN pages b ON a.news <~> b.news <= 1 AND a.id < b.id;
SELECT count(*) FROM neardup_pairs('pages_news', 1);
SELECT count(*) FROM neardup_pairs('pages_hash', 1);
SELECT count(*) > 100 AS members, max(distance) FROM neardup_clusters('pages_image', 1);
SELECT distance, pairs > 0 AS some FROM neardup_distance_histogram('pages', 1,
    column_name => 'news');
RESET enable_seqscan;
-- Functions, casts, aggregates and grouping.
SELECT 7::numeric::page_fp, 'ff00000000000000'::page_fp::numeric, 7::bigint::page_fp,
    '0000000000000007'::page_fp::bigint,
       bit_count('00000000000000ff'::page_fp) AS ones, ball('0000000000000007'::page_fp,
    1) = ball('0000000000000007'::fingerprint, 1) AS same_ball;
SELECT min(news), max(news), count(DISTINCT news) FROM pages;
SELECT pg_typeof(min(image)), pg_typeof(max(wide)) FROM pages;
SELECT neardup_index_check('pages_news', true) IS NOT NULL AS sound,
    neardup_index_check('pages_image', true) IS NOT NULL AS sound256;
-- Constraints of the table, and of a domain.
CREATE TABLE apart (fp page_fp, EXCLUDE USING neardup (fp WITH ~=));
INSERT INTO apart VALUES ('0000000000000000');
INSERT INTO apart VALUES ('0000000000000001');
\echo :SQLSTATE
CREATE TABLE far_apart (fp page_fp, EXCLUDE USING neardup (ball(fp, 8) WITH ~=));
INSERT INTO far_apart VALUES ('0000000000000000');
INSERT INTO far_apart VALUES ('00000000000000ff');
\echo :SQLSTATE
DROP TABLE pages, apart, far_apart;
DROP FUNCTION conditions;
DROP DOMAIN news_fp, page_fp, image_fp, wide_fp, phash, page_sig, body_text;
