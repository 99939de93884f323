-- simhash(tsvector): the lexemes of text search as features.
CREATE SCHEMA tsvector_test;
SET search_path = tsvector_test, public;

-- Overload resolution: a literal stays a text.
SELECT simhash('fat cats') = simhash('fat cats'::text) AS literal_is_text,
    simhash('fat cats') <> simhash('fat cats'::tsvector) AS tsvector,
       simhash(NULL) IS NULL AS unknown, simhash(NULL::tsvector) IS NULL AS no_tsvector,
       simhash('{a,b}'::text[]) = simhash('a b'::tsvector) AS features;
SELECT pg_typeof(simhash(to_tsvector('english', 'x y z'))),
    pg_typeof(simhash128(to_tsvector('english', 'x y z'))),
    simhash(vector => 'a'::tsvector) = simhash('{a}'::text[]) AS named;
PREPARE untyped AS SELECT simhash($1) = simhash('fat cats'::text);
EXECUTE untyped('fat cats');

-- The dictionary defines stems and stop words.
SELECT simhash(to_tsvector('english', 'The cats were sitting on the mats')) =
    simhash(to_tsvector('english', 'a cat sits on a mat')) AS english,
       simhash(to_tsvector('german', 'Die Häuser der Nachbarn')) = simhash(to_tsvector('german',
       'das Haus des Nachbarn')) AS german;
-- Without stemming and stop words, lexemes are the words of the text.
SELECT simhash(to_tsvector('simple', body)) = simhash(body, shingle => 1) AS words,
    simhash128(to_tsvector('simple', body)) = simhash128(body, shingle => 1) AS words128
FROM (VALUES ('the cat sat on the mat and the dog sat on the cat')) v (body);

-- Nothing to hash
SELECT simhash(''::tsvector) IS NULL AS empty,
    simhash(to_tsvector('english', 'the of and')) IS NULL AS stop_words,
    simhash128(''::tsvector) IS NULL AS empty128;

-- Frequency is the number of positions; a lexeme without positions counts like one position.
SELECT simhash('a:1,2,3,4 b:5 c:6') = simhash('{a,b,c}'::text[], '{2,1,1}') AS text_not_tsvector,
       simhash('a:1,2,3,4 b:5 c:6'::tsvector) = simhash('{a,b,c}'::text[],
       '{2,1,1}') AS root_of_four,
       simhash('a b c'::tsvector) = simhash('{a,b,c}'::text[]) AS stripped,
       simhash(strip('a:1,2,3,4 b:5 c:6'::tsvector)) = simhash('a b c'::tsvector) AS strip,
       simhash('a:1 b:2'::tsvector || 'c'::tsvector) = simhash('a:1 b:2 c:3'::tsvector) AS mixed;
-- Labels have the weights of ts_rank: A ten times D, B four times, C twice.
SELECT simhash('a:1A b:2B c:3C d:4'::tsvector) = simhash('{a,b,c,d}'::text[],
    '{1,0.4,0.2,0.1}') AS labels,
       simhash('a:1A,2,3,4,5 b:6B,7C c:8,9,10,11'::tsvector) = simhash('{a,b,c}'::text[],
       '{12,6,2}') AS added,
       simhash(setweight('a:1 b:2,3 c:4'::tsvector, 'A')) = simhash('a:1 b:2,3 c:4'::tsvector) AS
       only_ratios_count;
SELECT simhash(setweight(to_tsvector('english', 'A walk along the river'),
    'A') || setweight(to_tsvector('english', body), 'D'))
   <~> simhash(setweight(to_tsvector('english', 'A walk along the river'),
   'A') || setweight(to_tsvector('english', body || ' the end'), 'D')) AS same_title
FROM (VALUES ('We went on Sunday, past the mill and the two bridges, and came back by bus.')) v
    (body);
-- Lexemes of all lengths, of odd and even bytes, with and without positions: short and long
-- headers, toasted.
SELECT bool_and(simhash(v) = simhash(ARRAY(SELECT lexeme FROM unnest(v)),
    ARRAY(SELECT coalesce(sqrt(cardinality(positions)), 1)::real FROM unnest(v)))) AS lengths
FROM (SELECT string_agg(repeat(chr(97 + i % 26), i) || CASE i % 3 WHEN 0 THEN '' WHEN 1
    THEN ':' || i ELSE ':' || i || ',9,77,78' END, ' ')::tsvector AS v
      FROM generate_series(1, 60) i GROUP BY i / 20) s;
SELECT simhash(('ü' || repeat('ß', 900) || ' 中文:3 é:1,5,6,7')::tsvector) =
    simhash(ARRAY['ü' || repeat('ß', 900), '中文', 'é'], '{1,1,2}') AS any_script;

-- Generated columns, indexes, long documents
CREATE TABLE docs (id int, title text, body text,
    fp fingerprint GENERATED ALWAYS AS (simhash(to_tsvector('english', body))) STORED,
    wide fingerprint128 GENERATED ALWAYS AS (simhash128(setweight(to_tsvector('english', title),
    'A') || to_tsvector('english', body))) STORED);
CREATE INDEX ON docs USING neardup (fp);
CREATE INDEX ON docs USING neardup (simhash(to_tsvector('english', body)));
INSERT INTO docs SELECT 1, 'One', string_agg(md5(i::text), ' ') FROM generate_series(1, 5000) i;
INSERT INTO docs SELECT 2, title, replace(body, md5('72'), md5('x72')) FROM docs;
INSERT INTO docs VALUES (3, 'Cats', 'The cats are sitting on the mat'),
    (4, 'Cats', 'A cat sits on mats!'), (5, NULL, 'of the'), (6, 'Dog', NULL);
SELECT id, fp IS NULL AS no_fp, wide IS NULL AS no_wide,
    fp = simhash(to_tsvector('english', body)) AS same FROM docs ORDER BY id;
SELECT a.id, b.id FROM docs a JOIN docs b ON a.fp <~> b.fp <= 3 AND a.id < b.id ORDER BY 1, 2;
CREATE TABLE vectors AS SELECT id, to_tsvector('english', body) AS v FROM docs;
SELECT bool_and(simhash(v) = fp) AS toasted FROM vectors JOIN docs USING (id);

-- Other encodings of the database
SELECT simhash('Grüße:1 Köln:2,3'::tsvector) AS utf8 \gset
CREATE DATABASE neardup_tsvector ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
SELECT current_database() AS home \gset
\c neardup_tsvector
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
SELECT simhash('Grüße:1 Köln:2,3'::tsvector) = :'utf8' AS same;
\c :home
DROP DATABASE neardup_tsvector;

SET client_min_messages = warning;
DROP SCHEMA tsvector_test CASCADE;
