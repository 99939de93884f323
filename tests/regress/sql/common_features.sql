-- Text that many documents share: neardup_common_features, and fingerprints without it.
CREATE SCHEMA common_features_test;
SET search_path = common_features_test, public;
CREATE FUNCTION words(seed text, n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(translate(left(md5(seed || i), 7), '0123456789', 'ghijklmnop'), ' '
    ORDER BY i) FROM generate_series(1, n) i
$$;
-- Each article appears on two of five sites.
CREATE TABLE pages (id int PRIMARY KEY, article int, site int, body text);
INSERT INTO pages SELECT i, i / 2, i % 5, words('site ' || i % 5, 80) || ' ' ||
    words('article ' || i / 2, 50) || ' number ' || i FROM generate_series(2, 401) i;
CREATE TABLE sets (name text PRIMARY KEY, features bytea);
INSERT INTO sets SELECT 'all', neardup_common_features(body, 0.02) FROM pages;
-- 78 features of each of five sites; no feature joins a frame and an article.
SELECT (length(features) - 12) / 8 AS features, left(features::text, 42) AS start FROM sets;

-- As the definition says
CREATE TABLE common AS
SELECT feature FROM pages, neardup_features(body, shingle => 3)
GROUP BY feature HAVING count(*) > 0.02 * (SELECT count(*) FROM pages);
CREATE VIEW rare AS
SELECT id, array_agg(feature) AS features FROM pages, neardup_features(body, shingle => 3) f
WHERE NOT EXISTS (SELECT FROM common c WHERE c.feature = f.feature) GROUP BY id;
SELECT count(*) AS pages,
    bool_and(minhash64_without(body, without => s.features) = minhash64(r.features)) AS minhash64,
    bool_and(minhash128_without(body,
    s.features) = minhash128(r.features)) AS minhash128, bool_and(minhash_without(body, s.features,
    hashes => 16, seed => 3) = minhash(r.features, 16, 3)) AS minhash,
    bool_and(simhash_without(body,
    s.features, shingle => 3) = simhash(r.features)) AS simhash, bool_and(simhash128_without(body,
    s.features, shingle => 3, weight => 'tf') = simhash128(r.features)) AS simhash128
FROM pages JOIN rare r USING (id), sets s;
-- Purpose
SELECT a.article = b.article AS same_article, count(*) AS pairs,
       count(*) FILTER (WHERE a.whole <~> b.whole <= 8) AS found_whole,
       count(*) FILTER (WHERE a.fp <~> b.fp <= 8) AS found_rare
FROM (SELECT p.*, minhash64(body) AS whole, minhash64_without(body, s.features) AS fp FROM pages p,
    sets s
      OFFSET 0) a
JOIN (SELECT p.*, minhash64(body) AS whole, minhash64_without(body, s.features) AS fp FROM pages p,
    sets s
      OFFSET 0) b ON a.id < b.id GROUP BY 1 ORDER BY 1;

-- Values never change.
SELECT neardup_common_features(body, 0.6) AS set,
    neardup_common_features(body, 0.6, 'char', 2) AS characters,
    neardup_common_features(body, 0.6, 'word', 1, true, 'remove', 'zero') AS other
FROM (VALUES ('dear reader, this is one'), ('Dear Reader, this is two'), ('dear reader')) t (body);
SELECT minhash64_without('dear reader, this is a letter', set) AS minhash64,
    minhash128_without('dear reader, this is a letter', set) AS minhash128,
    minhash_without('dear reader, this is a letter', set, hashes => 16) AS minhash,
    simhash_without('dear reader, this is a letter', set, shingle => 3) AS simhash,
    simhash128_without('dear reader, this is a letter', set, shingle => 3) AS simhash128
FROM (SELECT neardup_common_features(body, 0.6) AS set FROM (VALUES ('dear reader, this is one'),
    ('dear reader, this is two'), ('x')) t (body)) s;
-- Chinese words, and keywords
SELECT minhash64_without('点击这里订阅，图书馆开放', set, 'jieba', 1) = minhash64('图书馆开放', 'jieba', 1)
    AS jieba,
    simhash_without('点击这里订阅，图书馆开放', keywords, 'jieba_tfidf', 1) = simhash('图书馆开放', 'jieba_tfidf')
    AS
    keywords
FROM (SELECT neardup_common_features(body, 0.6, 'jieba', 1) AS set,
    neardup_common_features(body, 0.6, 'jieba_tfidf', 1) AS keywords
    FROM (VALUES ('点击这里订阅，天气'), ('点击这里订阅，经济'), ('点击这里订阅')) t (body)) s;

-- No common features, no rare features, no features
SELECT minhash64_without('one two three', set) = minhash64('one two three') AS none_common,
    minhash64_without('a b c', all_common) IS NULL AS none_rare, minhash64_without('!', set) IS NULL
    AS no_feature,
    minhash64_without('one two three', NULL::bytea) = minhash64('one two three') AS no_set,
    minhash64_without(NULL, set) IS NULL AS no_text
FROM (SELECT neardup_common_features(body, 0.5) AS set FROM (VALUES ('a b c'), ('d e f'), (NULL),
    ('')) t (body)) s, (SELECT neardup_common_features(body, 0.5) AS all_common
    FROM (VALUES ('a b c'), ('a, b, c')) t (body)) c;
SELECT neardup_common_features(body, 0.5) IS NULL AS of_no_row FROM pages WHERE false;
SELECT neardup_common_features(NULL, 0.5) IS NULL AS of_null_rows FROM pages;
SELECT length(neardup_common_features('', 0.5)) AS of_empty_texts FROM pages;

-- Overload resolution: text remains text.
SELECT minhash64('a b c', 'char') = minhash64('a b c', tokens => 'char') AS tokens,
    minhash('a b c', 'char', 5) = minhash('a b c', tokens => 'char', shingle => 5) AS signature,
    simhash128('a b c', 'line') = simhash128('a b c', tokens => 'line') AS wide;

-- A set in another order, in groups, in a window, in parallel
SELECT neardup_common_features(body, 0.02 ORDER BY md5(body)) = features AS any_order
FROM pages, sets GROUP BY features;
SELECT site, (length(neardup_common_features(body, 0.5)) - 12) / 8 AS features FROM pages
GROUP BY site ORDER BY site;
-- A NULL set has no features, so a document of a group without a set has all its features.
SELECT site, bool_or(features IS NULL) AS no_set, count(*) AS pages,
    count(minhash64_without(body, features)) AS minhash64,
    count(minhash128_without(body, features)) AS minhash128,
    count(minhash_without(body, features)) AS minhash,
    count(simhash_without(body, features, shingle => 3)) AS simhash,
    count(simhash128_without(body, features, shingle => 3)) AS simhash128,
    bool_and(minhash64_without(body, features) = minhash64(body)) AS like_without
FROM pages LEFT JOIN (SELECT site, neardup_common_features(body, 0.5) AS features FROM pages
    WHERE site > 1 GROUP BY site) f USING (site) GROUP BY site ORDER BY site;
SELECT minhash128_without('a b c', NULL) = minhash128('a b c') AS minhash128,
    minhash_without('a b c', NULL, hashes => 16) = minhash('a b c', hashes => 16) AS minhash,
    simhash_without('a b c', NULL) = simhash('a b c') AS simhash,
    simhash128_without('a b c', NULL) = simhash128('a b c') AS simhash128,
    neardup_text_without('<p>a b', NULL, html => true) AS text,
    neardup_text_without(' ', NULL) IS NULL AS no_text,
    simhash_without('a b c', NULL, weight => NULL) IS NULL AS no_weight;
CREATE INDEX pages_without_null ON pages USING neardup (minhash64_without(body, NULL::bytea));
SELECT count(*) > 0 AS confirmed, count(*) FILTER (WHERE similarity = jaccard_similarity(a.body,
    b.body)) = count(*) AS of_all_features
FROM neardup_pairs_by_key(NULL::int, 'pages_without_null', similarity => 0.3, confirm => 'body',
    radius => 20) p
JOIN pages a ON a.id = p.a JOIN pages b ON b.id = p.b;
DROP INDEX pages_without_null;
SELECT id, (length(neardup_common_features(body, 0.5) OVER (ORDER BY id)) - 12) / 8 AS features
FROM pages WHERE id < 6 ORDER BY id;
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT neardup_common_features(body, 0.02) FROM pages;
SELECT neardup_common_features(body, 0.02) = (SELECT features FROM sets) AS parallel FROM pages;
-- With little memory, from a sample
SET LOCAL maintenance_work_mem = '1MB';
CREATE TEMP TABLE sampled AS SELECT neardup_common_features(body, 0.1) AS features FROM pages;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT neardup_common_features(body, 0.1) = (SELECT features FROM sampled) AS same_sample,
    neardup_common_features(body, 0.1) = (SELECT features FROM sets) AS same_set,
    (length(neardup_common_features(body || repeat(' ' || md5(body) || id, 30), 0.1)) - 12) / 8 AS
    longer
FROM pages;
COMMIT;

-- Several sets in one query, by row; and a TOASTed one
INSERT INTO sets SELECT 'site ' || site, neardup_common_features(body, 0.5) FROM pages
GROUP BY site;
SELECT count(*) AS pages, count(DISTINCT name) AS sets, bool_and(minhash64_without(body,
    s.features) = minhash64(r.features)) AS same
FROM pages JOIN sets s ON name = 'site ' || site JOIN rare r USING (id);
ALTER TABLE sets ALTER features SET STORAGE external;
INSERT INTO sets SELECT 'large', neardup_common_features(words(n::text, 3000) || ' ' || i, 0.2)
FROM generate_series(1, 3) n, generate_series(1, 3) i;
SELECT pg_column_size(features) > 8192 AS large, minhash64_without(words('2', 3000) || ' and more',
    features) = minhash64((SELECT array_agg(feature) FROM neardup_features(words('2',
    3000) || ' and more', shingle => 3)
    WHERE feature LIKE '% more' OR feature LIKE '% and')) AS rest FROM sets WHERE name = 'large';
SELECT name, count(DISTINCT minhash64_without(body, features)) AS fingerprints
FROM sets, pages WHERE name IN ('all', 'large') AND id < 12 GROUP BY name ORDER BY name;

-- In a generated column, where the set is a constant, and in a function of PL/pgSQL
SELECT features AS frame FROM sets WHERE name = 'site 1' \gset
CREATE TABLE generated (body text,
    fp fingerprint GENERATED ALWAYS AS (minhash64_without(body, without => :'frame'::bytea))
    STORED);
INSERT INTO generated SELECT body FROM pages WHERE site = 1;
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.fp := minhash64_without(NEW.body, (SELECT features FROM sets WHERE name = 'site 1'));
    RETURN NEW;
END $$;
CREATE TABLE filled (body text, fp fingerprint);
CREATE TRIGGER fill BEFORE INSERT ON filled FOR EACH ROW EXECUTE FUNCTION fill();
INSERT INTO filled SELECT body FROM pages WHERE site = 1;
SELECT count(*) AS pages, count(DISTINCT g.fp) AS fingerprints, bool_and(g.fp = f.fp) AS same
FROM generated g JOIN filled f USING (body);

-- The trigger has it as an option, like all parameters.
SELECT 'without=' || neardup_common_features(body, 0.02, 'word', 2)::text AS without FROM pages
\gset
CREATE TABLE kept (id int, body text, fp fingerprint);
CREATE INDEX ON kept USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT ON kept FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'function=simhash', 'radius=12', :'without');
INSERT INTO kept SELECT id, body FROM pages ORDER BY id;
SELECT count(*) AS kept, count(DISTINCT article) AS articles FROM kept JOIN pages USING (id);

-- Refused
SELECT minhash64_without('a', '\x00'::bytea);
\echo :SQLSTATE
SELECT minhash64_without('a', features || '\x00'::bytea) FROM sets WHERE name = 'all';
SELECT minhash64_without('a', features, shingle => 2) FROM sets WHERE name = 'all';
\echo :SQLSTATE
SELECT minhash_without('a', features, tokens => 'char', digits => 'zero') FROM sets
    WHERE name = 'all';
SELECT simhash_without('a', features) FROM sets WHERE name = 'all';
SELECT neardup_common_features(body, 2) FROM pages;
\echo :SQLSTATE
SELECT neardup_common_features(body, 'NaN') FROM pages;
SELECT neardup_common_features(body, NULL) FROM pages;
\echo :SQLSTATE
SELECT neardup_common_features(body, 0.1, 'words', 3) FROM pages;
SELECT neardup_common_features(body, 0.1, 'word', 1 + id % 2) FROM pages;
\echo :SQLSTATE
SELECT neardup_common_features(body, 0.1, 'word', 0) FROM pages;

SET client_min_messages = warning;
DROP SCHEMA common_features_test CASCADE;
