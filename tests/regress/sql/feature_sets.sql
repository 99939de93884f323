-- Sets of common features: their contents, and a text without them.
\set VERBOSITY default
CREATE SCHEMA feature_sets;
SET search_path = feature_sets, public;
CREATE TABLE pages (id int PRIMARY KEY, body text);
INSERT INTO pages SELECT i, 'Home | News | Sport | Contact us now' || E'\n' || md5(i::text) || ' '
    || md5((i * i)::text) || ' ' || md5((i + 1000)::text) || E'.\nAll rights reserved, of course.'
FROM generate_series(1, 50) i;
CREATE TABLE common AS SELECT neardup_common_features(body, 0.5) AS features,
    neardup_common_features(body, 0.5, 'char', 4) AS chars,
    neardup_common_features(body, 0.5, 'word', 1, true, 'remove', 'zero') AS words FROM pages;
SELECT (neardup_expert_feature_set_info(features)).*, length(features) AS bytes FROM common;
SELECT i.features > 10 AS several, i.tokens, i.shingle, i.accents, i.digits
FROM common, neardup_expert_feature_set_info(chars) i;
SELECT i.* FROM common, neardup_expert_feature_set_info(words) i;
SELECT i.* FROM neardup_expert_feature_set_info((SELECT neardup_common_features(n || ' jieba', 0.5,
    'jieba_tfidf:5', 1) FROM generate_series(1, 3) n)) i;
SELECT neardup_expert_feature_set_info(NULL);
SELECT neardup_expert_feature_set_info('\x00');
\echo :SQLSTATE

-- The texts of its features are in the documents that have them.
SELECT f.feature, count(*) FROM common, pages, neardup_features(body) f
WHERE neardup_expert_feature_set_contains(features, f.hash) GROUP BY 1 ORDER BY 1;
SELECT count(DISTINCT f.feature) = (SELECT i.features
    FROM common, neardup_expert_feature_set_info(chars) i) AS same
FROM common, pages, neardup_features(body, 'char', 4) f
WHERE neardup_expert_feature_set_contains(chars, f.hash);
SELECT neardup_expert_feature_set_contains(NULL, 'ffffffffffffffff'),
    neardup_expert_feature_set_contains(features, NULL),
    neardup_expert_feature_set_contains(features, 'ffffffffffffffff') FROM common;
SELECT neardup_expert_feature_set_contains('abc', 'ffffffffffffffff');

-- The remaining text.
SELECT neardup_text_without(body, features) FROM pages, common WHERE id = 7;
SELECT neardup_text_without(body, chars) FROM pages, common WHERE id = 7;
SELECT neardup_text_without(body, words) FROM pages, common WHERE id = 7;
-- All compared features remain: the fingerprints of single words do not change.
SELECT count(*) FILTER (WHERE minhash64_without(body, words, 'word', 1, true, 'remove', 'zero') IS
    DISTINCT
    FROM minhash64(neardup_text_without(body, words), 'word', 1, true, 'remove', 'zero')) AS wrong
FROM pages, common;
SELECT neardup_text_without('home news sport contact', features) IS NULL AS nothing,
    neardup_text_without('', features) IS NULL AS empty,
    neardup_text_without(NULL, features) IS NULL AS no_text,
    neardup_text_without('a b c', NULL) = 'a b c' AS no_set,
    neardup_text_without('<p>a <b>b</b>&eacute; c', features, html => true) AS html,
    neardup_text_without('<p>a <b>b</b>', features) AS markup FROM common;
SELECT neardup_text_without('a', '\x6e6446');
SELECT neardup_text_without('版权所有 图书馆重新开放', (SELECT neardup_common_features(body, 0.5, 'jieba', 1)
    FROM (VALUES ('版权所有'), ('版权所有'), ('版权所有 北京')) v (body))) AS jieba;
-- Once with the set of a constant, and in an expression index.
CREATE INDEX ON pages (length(neardup_text_without(body, '\x6e6446010003000000000000')));
SET client_min_messages = warning;
DROP SCHEMA feature_sets CASCADE;
