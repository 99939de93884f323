-- From texts to features: options, invalid options, and how to inspect the result.
-- The golden vectors of the text crate freeze the values.
CREATE SCHEMA text_test;
SET search_path = text_test, public;

-- The defaults, written out.
SELECT simhash(body) = simhash(body, 'word', 2, 'sqrt', false, 'keep', 'keep') AS defaults,
       simhash(body) = simhash(body, tokens => 'word', digits => 'keep',
       weight => 'sqrt') AS by_name,
       simhash128(body) = simhash128(body => body, shingle => 2) AS wide
FROM (VALUES ('The quick brown fox, the quick brown dog')) v (body);
-- A single feature is its own fingerprint, so each choice of features can be compared.
SELECT simhash('Abc', 'char', 3) = simhash(ARRAY['abc']) AS chars, simhash(E' A  b\nC', 'char',
    5) = simhash(ARRAY['a b c']) AS spaces,
       simhash('One line', 'line') = simhash(ARRAY['one line']) AS line,
       simhash(E'One\n\n two  \r\n', 'line') = simhash(ARRAY[E'one\ntwo']) AS lines,
       simhash('a b c d', shingle => 4) = simhash(ARRAY['a b c d']) AS four,
       simhash('a b', shingle => 100) = simhash(ARRAY['a b']) AS fewer,
       simhash('!!', 'char', 2) = simhash(ARRAY['!!']) AS any_character,
       simhash(E' \t\n', 'char') IS NULL AS blank, simhash(E'\n \n', 'line') IS NULL AS no_line;
-- Upper case, full width, compatibility characters, ignorable characters: alike by default.
SELECT simhash('STRASSE') = simhash('Straße') AS sharp_s,
    simhash('ΟΔΟΣ') = simhash('οδος') AS sigma, simhash('ＡＢＣ １２') = simhash('abc 12') AS full_width,
       simhash(U&'co\00ADoperate') = simhash('cooperate') AS soft_hyphen,
       simhash('ﬁne') = simhash('fine') AS ligature,
       simhash(U&'cafe\0301') = simhash('café') AS composed;
SELECT simhash('café') = simhash('cafe') AS accents,
    simhash('café', accents => 'remove') = simhash('cafe') AS removed,
       simhash('call 555-1234') = simhash('call 555-9876') AS digits, simhash('call 555-1234',
       digits => 'zero') = simhash('call 000-0000') AS zero,
       simhash('Été ２０２４', accents => 'remove', digits => 'zero') = simhash('ete 0000') AS both;
-- Weights: how much a feature that occurs four times counts against others.
SELECT w, array_agg(weight ORDER BY feature) AS "a once, b 4 times, c 9 times"
FROM (VALUES ('tf'), ('sqrt'), ('log'), ('set')) v (w),
    LATERAL neardup_features('a' || repeat(' b', 4) || repeat(' c', 9), shingle => 1, weight => w)
    GROUP BY w ORDER BY w;

-- NULL anywhere gives NULL.
SELECT simhash('a', tokens => NULL) IS NULL AS tokens,
    simhash('a', shingle => NULL) IS NULL AS shingle,
    simhash128('a', weight => NULL) IS NULL AS weight,
       jaccard_similarity('a', NULL) IS NULL AS jaccard, neardup_explain(NULL,
       'a') IS NULL AS explain, count(*) AS features FROM neardup_features(NULL);

-- Errors
SELECT simhash('a', tokens => 'words');
\echo :SQLSTATE
SELECT simhash('a', tokens => '');
SELECT simhash('a', weight => 'SQRT');
SELECT simhash('a', accents => 'yes');
SELECT simhash('a', digits => 'drop');
SELECT simhash128('a', shingle => 0);
\echo :SQLSTATE
SELECT simhash('a', shingle => 101);
SELECT simhash('a', shingle => -2147483648);
SELECT jaccard_similarity('a', 'b', tokens => E'caf\u00e9');
SELECT neardup_explain('a', 'b', top => -1);
\echo :SQLSTATE
SELECT * FROM neardup_features('a', weight => 'none');

-- Features: the input of the fingerprint, sufficient to compute it again
SELECT * FROM neardup_features('To be or not to be, that is the question. To be?');
SELECT o.*, count(*) AS features, simhash(array_agg(feature), array_agg(f.weight)) = simhash(body,
    tokens, shingle, o.weight) AS same
FROM (VALUES ('word', 1, 'tf'), ('word', 2, 'sqrt'), ('word', 3, 'log'), ('char', 4, 'log'),
    ('char', 2, 'tf'), ('line', 1, 'set')) o (tokens, shingle, weight),
     (SELECT string_agg(md5((i % 60)::text), CASE WHEN i % 7 = 0 THEN E'\n' ELSE ' ' END ORDER BY i)
     FROM generate_series(1, 2000) i) t (body),
     LATERAL neardup_features(body, tokens, shingle, o.weight) f GROUP BY o.tokens, o.shingle,
     o.weight, body ORDER BY 1, 2, 3;
SELECT feature, hash = simhash(ARRAY[feature]) AS hash FROM neardup_features('x') LIMIT 1;
SELECT count(*) FROM neardup_features('');
SELECT (neardup_features('in the select list')).feature LIMIT 2;

-- Jaccard
SELECT jaccard_similarity('a b c d', 'a b c e') AS a_third, jaccard_similarity('a b c', 'c b a',
    shingle => 1) AS one, jaccard_similarity('abcd', 'bcde', 'char', 2) AS half,
       jaccard_similarity('a', '') AS zero, jaccard_similarity('', '') IS NULL AS neither,
       jaccard_similarity('Café 12', 'cafe 99', shingle => 1, accents => 'remove',
       digits => 'zero') AS alike;
SELECT jaccard_similarity(string_agg(i::text, ' '), string_agg((i + 100)::text, ' '),
    shingle => 1) = 900 / 1100.0::float8 AS exact FROM generate_series(1, 1000) i;

-- Explained
SELECT jsonb_pretty(neardup_explain('The committee will meet on Tuesday',
    'The committee "may" meet on Tuesday, on Tuesday', shingle => 1, top => 3));
SELECT neardup_explain('!', 'word', top => 0);
SELECT e->'a'->>'fingerprint' = minhash64(a)::text AS a,
    (e->>'distance')::int = minhash64(a) <~> minhash64(b) AS distance,
    (e->>'jaccard')::float8 = jaccard_similarity(a, b) AS jaccard,
       (e->'shared'->>'features')::int + (e->'only_a'->>'features')::int = (SELECT count(*)
       FROM neardup_features(a)) AS features, jsonb_array_length(e->'only_b'->'heaviest') AS listed
FROM (VALUES (repeat('to be or not to be ', 3), (SELECT string_agg('word' || i, ' ')
    FROM generate_series(1, 90) i))) v (a, b), LATERAL neardup_explain(a, b) e;

-- Generated columns, expression indexes, partial ones; with an empty search_path too
CREATE TABLE docs (id int PRIMARY KEY, body text, lang text,
    fp fingerprint GENERATED ALWAYS AS (simhash(body, tokens => 'char', shingle => 5,
    accents => 'remove')) STORED);
CREATE INDEX docs_wide ON docs USING neardup (simhash128(body, weight => 'log', digits => 'zero'));
CREATE INDEX docs_options ON docs (simhash(body, CASE lang WHEN 'zh' THEN 'char' ELSE 'word' END,
    3));
INSERT INTO docs SELECT i, 'document number ' || i || ' about ' || md5((i / 2)::text),
    CASE i % 2 WHEN 0 THEN 'zh' ELSE 'en' END FROM generate_series(1, 100) i;
SELECT count(*) AS same FROM docs WHERE fp = simhash(body, 'char', 5, accents => 'remove');
SELECT count(*) AS found FROM docs WHERE simhash(body, CASE lang WHEN 'zh' THEN 'char'
    ELSE 'word' END, 3) = simhash((SELECT body FROM docs WHERE id = 8), 'char', 3);
SET enable_seqscan = off;
SELECT id FROM docs WHERE simhash128(body, weight => 'log',
    digits => 'zero') <~> simhash128('document number 8 about ' || md5('4'), weight => 'log',
    digits => 'zero') <= 0 ORDER BY id;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE simhash128(body, weight => 'log',
    digits => 'zero') <~> simhash128('x', weight => 'log') <= 3;
RESET enable_seqscan;
REINDEX TABLE docs;
-- Options from a column and from parameters of a function that is called again and again
CREATE FUNCTION fingerprint_of(t text, tokens text, n int) RETURNS fingerprint LANGUAGE
    plpgsql AS 'BEGIN RETURN simhash(t, tokens, n); END';
SELECT count(DISTINCT fingerprint_of('some words and characters', tokens, n)) AS different
FROM (VALUES ('word', 1), ('char', 1), ('word', 2), ('char', 2), ('line', 1), ('word', 1),
    ('char', 2)) v (tokens, n);
PREPARE by_option (text, int) AS SELECT simhash('some words and characters', $1, $2);
EXECUTE by_option('word', 1);
EXECUTE by_option('char', 1);
EXECUTE by_option('chars', 1);

-- Other server encodings: converted, with the same fingerprints. A character of a normal form that
-- the encoding does not have is a question mark.
SELECT simhash('Größe ½ µm', 'char', 3) AS latin, simhash('全文検索とは何か。ｶﾅも', 'char', 2) AS japanese
    \gset
CREATE DATABASE neardup_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
CREATE DATABASE neardup_euc_jp ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0;
CREATE DATABASE neardup_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
SELECT current_database() AS home \gset
\c neardup_latin1
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
SELECT simhash('Größe ½ µm', 'char', 3) = :'latin' AS same;
SELECT feature, hash FROM neardup_features('Größe ½ µm', shingle => 1) ORDER BY feature;
SELECT neardup_explain('µm', 'µm "ä"', 'char', 2)->'shared' AS shared, neardup_explain('ä', 'µ',
    'char', 1)->'only_b' AS only_b;
\c neardup_euc_jp
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
SELECT simhash('全文検索とは何か。ｶﾅも', 'char', 2) = :'japanese' AS same, jaccard_similarity('全文検索',
    '全文ｹﾝｻｸ', 'char', 1) AS jaccard;
SELECT feature FROM neardup_features('検索ｶﾅ', 'char', 2) ORDER BY feature COLLATE "C";
\c neardup_ascii
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'SQL_ASCII';
SELECT jaccard_similarity('ü', 'u', 'char', 1, accents => 'remove') AS taken_as_utf8;
SELECT count(*) FROM neardup_features(E'Gr\xfc\xdfe');
\echo :SQLSTATE
SELECT jaccard_similarity('a', E'\xe4\xb8');
\echo :SQLSTATE
\c :home
DROP DATABASE neardup_latin1;
DROP DATABASE neardup_euc_jp;
DROP DATABASE neardup_ascii;
