-- Passages that earlier documents of a table contain.
CREATE SCHEMA repeated_passages_test;
SET search_path = repeated_passages_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE docs (id int PRIMARY KEY, site text, body text);
INSERT INTO docs VALUES (1, 'a', 'One, two, three, four; five!'),
    (2, 'b', '“TWO  three four” six'), (3, 'a', 'six. two three four five six'),
    (4, 'b', NULL), (5, 'b', ''),
    (6, 'b', 'two three'),
    (7, 'b', 'x y z x y z x y z'), (8, 'c', 'ünde Größe Straße'),
    (9, 'c', 'UNDE GRÖẞE STRASSE: ünde grösse strasse');
CREATE FUNCTION repeated(length int, keep text DEFAULT NULL, filter text DEFAULT NULL)
    RETURNS TABLE (document int, original int, tokens int, passage text) LANGUAGE sql AS $$
    SELECT p.document, p.original, token_count, substr(body, passage_start,
        passage_end - passage_start)
    FROM neardup_repeated_passages(NULL::int, 'docs', 'body', length, keep => keep,
        filter => filter) p JOIN docs ON id = p.document ORDER BY 1, passage_start
$$;
SELECT * FROM repeated(3);
SELECT * FROM repeated(3, 'length(body) DESC NULLS LAST -- the longest');
SELECT * FROM repeated(3, 'body IS NULL, id DESC', 'site <> ''a'' -- not a');
SELECT * FROM repeated(2, filter => 'id IN (1, 3, 6)');
SELECT * FROM repeated(1, filter => 'id IN (2, 6)');
SELECT count(*) FROM repeated(10000);
-- Keys and texts are expressions; keys have the type of key_type.
SELECT *, pg_typeof(document) FROM neardup_repeated_passages(NULL::text, 'docs', 'body', 3,
    key => 'site || id', filter => 'id < 4');
SELECT * FROM neardup_repeated_passages(NULL::int[], 'docs', 'site || '' '' || body', 4,
    key => 'ARRAY[id, 0]');
SELECT * FROM neardup_repeated_passages(NULL::bigint, 'docs', 'id', 1, key => 'id');
-- Rows with the same key are documents of their own.
SELECT * FROM neardup_repeated_passages(NULL::text, 'docs', 'body', 3, key => 'site',
    keep => 'id', filter => 'id < 4');
-- Text options
SELECT token_count FROM neardup_repeated_passages(NULL::int, 'docs', 'body', 3,
    filter => 'id > 7', accents => 'remove');
SELECT document, passage_start, passage_end, token_count FROM neardup_repeated_passages(NULL::int,
    'docs', 'body', 9, tokens => 'char', filter => 'id < 4');
CREATE TABLE pages (id int PRIMARY KEY, body text);
INSERT INTO pages VALUES (1, '<p>one <b>two</b> three four'), (2, '<i>zero</i> ONE<br>two three');
SELECT p.*, substr(html_text(body), passage_start, passage_end - passage_start) AS passage
FROM neardup_repeated_passages(NULL::int, 'pages', 'body', 3, html => true) p
JOIN pages ON id = document ORDER BY id;
INSERT INTO pages VALUES (3, '我来到北京清华大学'), (4, '他也来到北京清华大学，很好');
SELECT p.*, substr(body, passage_start, passage_end - passage_start) AS passage
FROM neardup_repeated_passages(NULL::int, 'pages', 'body', 3, tokens => 'jieba') p
JOIN pages ON id = document ORDER BY id;
INSERT INTO pages VALUES (5, E'a b\n\n  c d\ne'), (6, E'x\nC  D\ne\ny');
SELECT document, token_count, original FROM neardup_repeated_passages(NULL::int, 'pages', 'body', 2,
    tokens => 'line');
-- Views, partitions and tables that inherit
CREATE VIEW of_a AS SELECT id, body FROM docs WHERE site = 'a';
SELECT document, original FROM neardup_repeated_passages(NULL::int, 'of_a', 'body', 3, key => 'id');
CREATE TABLE parts (id int, body text) PARTITION BY LIST (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts VALUES (2, 'a b c'), (1, 'a b c');
SELECT document, original FROM neardup_repeated_passages(NULL::int, 'parts', 'body', 3,
    key => 'id');
CREATE TABLE child () INHERITS (pages);
INSERT INTO child VALUES (10, 'the p, one b');
SELECT document, original FROM neardup_repeated_passages(NULL::int, 'pages', 'body', 3,
    filter => 'id IN (1, 10)');
-- Invalid calls
SELECT * FROM neardup_repeated_passages(NULL::int, NULL, 'body');
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', NULL);
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', NULL);
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', tokens => NULL);
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', 0);
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', 10001);
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', tokens => 'jieba_tfidf');
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'text');
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body, id');
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', keep => 'id LIMIT 1');
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', filter => 'true; SELECT 1');
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', filter => 'nothing');
SELECT * FROM neardup_repeated_passages(NULL::text, 'docs', 'body');
SELECT * FROM neardup_repeated_passages(NULL::json, 'docs', 'body', key => '''{}''::json');
SELECT * FROM neardup_repeated_passages(NULL::int, 'docs', 'body', 3, key => 'nullif(id, 1)');
SELECT * FROM neardup_repeated_passages(NULL::int, 'of_a', 'body');
SET client_min_messages = warning;
DROP SCHEMA repeated_passages_test CASCADE;
