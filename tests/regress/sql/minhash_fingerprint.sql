-- minhash64, minhash128: fingerprints whose distance estimates the Jaccard similarity. The golden
-- vectors of the text crate freeze the values.
CREATE SCHEMA minhash_fingerprint_test;
SET search_path = minhash_fingerprint_test, public;

SELECT pg_typeof(minhash64('abc')), pg_typeof(minhash128('abc')),
    minhash64('abc') = minhash64(body => 'abc') AS named,
    minhash64('abc'::varchar) = minhash64('abc') AS varchar,
       minhash64('{a,b}') = minhash64('{a,b}'::text) AS literal_is_text,
       minhash64('{a,b}') <> minhash64('{a,b}'::text[]) AS features,
       minhash64('a b') <> minhash64('a b'::tsvector) AS tsvector;
SELECT minhash64('The quick brown fox jumps over the lazy dog'),
    minhash128('The quick brown fox jumps over the lazy dog');
-- The features are the same as in minhash: three words, each once.
SELECT minhash64('one two three four') = minhash64('{one two three,two three four}'::text[]) AS
    three_words, minhash64('one two', shingle => 1) = minhash64('{two,one,two}'::text[]) AS a_set,
       minhash128('one two three four') = minhash128('{one two three,two three four}'::text[]) AS
       wide, minhash64('one ONE  one, one') = minhash64('one one one') AS repeated,
       minhash64(to_tsvector('english', 'the cats of the cat')) = minhash64('{cat}'::text[]) AS
       lexemes, minhash128('b:1 a:2,3A'::tsvector) = minhash128('{a,b}'::text[]) AS
       labels_are_nothing,
       minhash64('abcde', 'char', 2) = minhash64('{ab,bc,cd,de}'::text[]) AS characters;
SELECT minhash64('') IS NULL AS empty, minhash64('!?') IS NULL AS no_word,
    minhash64(NULL) IS NULL AS unknown, minhash64('{}'::text[]) IS NULL AS no_features,
    minhash128(''::tsvector) IS NULL AS no_lexemes;
SELECT minhash64('{a,NULL}'::text[]);
\echo :SQLSTATE
SELECT minhash64('abc', weight => 'tf');
\echo :SQLSTATE
SELECT minhash64('abc', shingle => 0);
\echo :SQLSTATE

-- Documents of 300 words, some of them replaced: the estimate by distance, and the truth.
CREATE TABLE docs (id int, edit int, body text, fp fingerprint GENERATED ALWAYS AS (minhash64(body))
    STORED, wide fingerprint128 GENERATED ALWAYS AS (minhash128(body)) STORED);
INSERT INTO docs (id, edit, body)
    SELECT d, e, string_agg(CASE WHEN w % 100 < e THEN 'new' ELSE '' END || md5(d || ' ' || w), ' '
    ORDER BY w) FROM generate_series(1, 100) d, unnest('{0,1,3,10,30}'::int[]) e,
    generate_series(1, 300) w GROUP BY d, e;
SELECT b.edit, round(avg(jaccard_similarity(a.body, b.body))::numeric, 2) AS jaccard,
    abs(avg(1 - (a.fp <~> b.fp) / 32.0) - avg(jaccard_similarity(a.body, b.body))) < 0.05 AS
    as_64_bits_tell,
       abs(avg(1 - (a.wide <~> b.wide) / 64.0) - avg(jaccard_similarity(a.body, b.body))) < 0.04 AS
       as_128_bits_tell
FROM docs a JOIN docs b USING (id) WHERE a.edit = 0 GROUP BY b.edit ORDER BY b.edit;
SELECT count(*) FILTER (WHERE a.fp <~> b.fp <= 8) AS unrelated_found FROM docs a JOIN docs b
    ON a.id < b.id;

-- In an index
CREATE INDEX docs_fp ON docs USING neardup (fp);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE fp <~> minhash64('some text') <= 3;
SELECT count(*) FROM docs a JOIN docs b ON a.fp <~> b.fp <= 6 WHERE a.edit = 0 AND b.edit = 1;
RESET enable_seqscan;
SELECT count(*) FROM docs a JOIN docs b ON hamming(a.fp <~> b.fp) <= 6
    WHERE a.edit = 0 AND b.edit = 1;

-- A long computation can be cancelled, also one whose features are all alike.
\set VERBOSITY terse
SET statement_timeout = '20ms';
SELECT minhash64(repeat('many words of some length ', 4000000)) IS NULL;
\echo :SQLSTATE
RESET statement_timeout;
\set VERBOSITY default

SET client_min_messages = warning;
DROP SCHEMA minhash_fingerprint_test CASCADE;
