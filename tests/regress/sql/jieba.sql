-- Chinese words by jieba. The text crate freezes the words of texts. tests/server/dictionary.rs
-- tests user words and preloading, which need a server of their own.
SELECT string_agg(feature, ' ' ORDER BY feature COLLATE "C") AS words
    FROM neardup_features('小明硕士毕业于中国科学院计算所，后在日本京都大学深造', tokens => 'jieba', shingle => 1);
SELECT string_agg(feature, ' ' ORDER BY feature COLLATE "C") AS words
    FROM neardup_features('小明硕士毕业于中国科学院计算所，后在日本京都大学深造', tokens => 'jieba_search', shingle => 1);
SELECT * FROM neardup_features('图书馆昨天宣布，图书馆的阅览室将在下个月向公众开放，阅览室有WiFi。', tokens => 'jieba_tfidf',
    weight => 'tf');
SELECT * FROM neardup_features('图书馆昨天宣布，图书馆的阅览室将在下个月向公众开放，阅览室有WiFi。', tokens => 'jieba_tfidf:2');

-- Versions guarantee the values.
SELECT tokens, simhash('图书馆昨天宣布，新的阅览室将在下个月向公众开放。', tokens => tokens),
    simhash128('图书馆昨天宣布，新的阅览室将在下个月向公众开放。', tokens => tokens)
FROM unnest('{word,jieba,jieba_search,jieba_tfidf,jieba_tfidf:3}'::text[]) AS tokens;
-- The distance of a change
SELECT tokens, simhash('图书馆昨天宣布，新的阅览室将在下个月向公众开放。',
    tokens => tokens) <~> simhash('图书馆今天宣布，新的阅览室将在下个月向公众开放！', tokens => tokens) AS distance
FROM unnest('{word,jieba,jieba_search}'::text[]) AS tokens;
SELECT jaccard_similarity('我来到北京清华大学', '我来到上海交通大学', tokens => 'jieba', shingle => 1) AS jaccard,
       neardup_explain('图书馆开放', '图书馆关门', tokens => 'jieba_tfidf:4') -> 'options' -> 'tokens' AS
       tokens;
-- Case, width and form are ignored; other scripts are split as by 'word'.
SELECT simhash('他在Ｔ台上穿Ｔ恤，ＯＫ', tokens => 'jieba') = simhash('他在t台上穿t恤,ok',
    tokens => 'jieba') AS width,
       simhash('The quick brown fox', tokens => 'jieba') = simhash('The quick brown fox') AS
       english, simhash('。！', tokens => 'jieba') IS NULL AS no_word;

-- Refused
SELECT simhash('x', tokens => 'jieba_tfidf:0');
\echo :SQLSTATE
SELECT simhash('x', tokens => 'jieba_tfidf:10001');
\echo :SQLSTATE
SELECT simhash('x', tokens => 'jieba_tfidf:');
\echo :SQLSTATE
SELECT simhash('x', tokens => 'jieba:3');
\echo :SQLSTATE
SET neardup.jieba_user_words = '北京大学';
\echo :SQLSTATE

-- In a generated column and an index; a long computation can be cancelled.
CREATE TEMPORARY TABLE docs (body text, fp fingerprint GENERATED ALWAYS AS (simhash(body,
    tokens => 'jieba')) STORED);
CREATE INDEX ON docs USING neardup (simhash(body, tokens => 'jieba_tfidf'));
INSERT INTO docs VALUES ('我来到北京清华大学'), ('我来到北京清华大学！');
SELECT count(DISTINCT fp) FROM docs;
SELECT count(*) FROM docs WHERE simhash(body, tokens => 'jieba_tfidf') <~> simhash('我来到北京清华大学',
    tokens => 'jieba_tfidf') <= 3;
CREATE TEMPORARY TABLE long AS SELECT repeat('图书馆昨天宣布，新的阅览室将在下个月向公众开放。', 500000) AS body;
\set VERBOSITY terse
SET statement_timeout = '50ms';
SELECT simhash(body, tokens => 'jieba') IS NULL FROM long;
\echo :SQLSTATE
SELECT simhash(body, tokens => 'jieba_tfidf') IS NULL FROM long;
\echo :SQLSTATE
RESET statement_timeout;
