-- simhash: overload resolution, NULL, invalid arguments. The golden vectors of the text crate
-- freeze the values; this file compares values with each other.
CREATE SCHEMA simhash_test;
SET search_path = simhash_test, public;

-- A literal is text, not an array.
SELECT pg_typeof(simhash('abc')), simhash('abc') = simhash(body => 'abc') AS named,
    simhash('abc') = simhash('abc'::varchar) AS varchar,
       simhash('{a,b}') = simhash('{a,b}'::text[]) AS literal_is_no_array;
SELECT simhash('The quick brown fox jumps over the lazy dog');
SELECT simhash('The quick brown fox jumps over the lazy dog') <~>
    simhash('the QUICK brown fox, jumps over the lazy dog!') AS case_and_punctuation;
-- One word is one feature, so two single words agree in half of their bits, as all unrelated
-- features do.
SELECT simhash('word') <> simhash('other') AS different;

-- Nothing to hash: NULL, never one value that all empty documents share.
SELECT simhash('') IS NULL AS empty, simhash(E' \t\n') IS NULL AS blank,
    simhash('!?...') IS NULL AS no_word, simhash(NULL::text) IS NULL AS unknown,
       simhash('{}'::text[]) IS NULL AS no_features,
       simhash(NULL::text[]) IS NULL AS unknown_features, simhash('{a}'::text[],
       '{0}') IS NULL AS no_weight;
-- NULL is not ambiguous: text is preferred.
SELECT simhash(NULL) IS NULL AS unknown;
-- So are two literals: the second one then names tokens.
SELECT simhash('{a,b}', '{1,2}');
\echo :SQLSTATE
SELECT simhash('english', 'The body of a text');
\echo :SQLSTATE

-- Features and weights
SELECT simhash('{a,b,c}'::text[]) = simhash('{a,b,c}'::text[], '{1,1,1}') AS weight_one,
    simhash('{a,b,c}'::text[], NULL) = simhash('{c,b,a}'::text[]) AS order_is_nothing,
       simhash('{a,b,c}'::text[], '{2,1,1}') = simhash('{a,a,b,c}'::text[]) AS weight_is_repetition,
       simhash('{a,b}'::text[], '{1,0}') = simhash('{a}'::text[]) AS weight_zero,
       simhash('{{a,b},{c,d}}'::text[]) = simhash('{a,b,c,d}'::text[]) AS dimensions_are_nothing,
       simhash(features => '{a}', weights => '{1}') = simhash(ARRAY['a']) AS named,
       simhash('{a,b}'::text[], '{1e38,1e-38}') = simhash('{a}'::text[]) AS far_apart;
SELECT simhash('{a,NULL}'::text[]);
\echo :SQLSTATE
SELECT simhash('{a,b}'::text[], '{1,NULL}');
\echo :SQLSTATE
SELECT simhash('{a,b}'::text[], '{1}');
\echo :SQLSTATE
SELECT simhash('{a}'::text[], '{1,2}');
\echo :SQLSTATE
SELECT simhash('{}'::text[], '{1}');
\echo :SQLSTATE
SELECT simhash('{a,b}'::text[], '{1,NaN}');
\echo :SQLSTATE
SELECT simhash('{a,b}'::text[], '{Infinity,1}');
\echo :SQLSTATE
SELECT simhash('{a,b}'::text[], '{1,-0.5}');
\echo :SQLSTATE
SELECT simhash('{a,b}'::text[], '{1,-0}') = simhash('{a}'::text[]) AS negative_zero;

-- A generated column, an expression index, toasted and long texts
CREATE TABLE docs (id int, body text, fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED);
CREATE INDEX ON docs (simhash(body));
INSERT INTO docs SELECT 1, string_agg(md5(i::text), ' ') FROM generate_series(1, 20000) i;
INSERT INTO docs SELECT 2, replace(body, md5('77'), md5('x')) FROM docs;
SELECT fp = simhash(body || '') AS toasted FROM docs ORDER BY id;
SELECT a.fp <~> b.fp <= 3 AS near FROM docs a, docs b WHERE a.id = 1 AND b.id = 2;
-- A long computation can be cancelled.
CREATE TABLE long AS SELECT repeat('many words of some length ', 2000000) AS body;
\set VERBOSITY terse
SET statement_timeout = '50ms';
SELECT simhash(body) IS NULL FROM long;
\echo :SQLSTATE
RESET statement_timeout;
\set VERBOSITY default

-- Other server encodings give the same fingerprints; bytes that are not text are refused.
SELECT simhash('Grüße aus Köln an alle Bürger') AS utf8 \gset
CREATE DATABASE neardup_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
CREATE DATABASE neardup_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
SELECT current_database() AS home \gset
\c neardup_latin1
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
SELECT octet_length('ü') AS bytes, simhash('Grüße aus Köln an alle Bürger') = :'utf8' AS same,
    simhash(ARRAY['ü']) = simhash(ARRAY['Ã¼']) AS as_bytes;
\c neardup_ascii
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'SQL_ASCII';
SELECT simhash('Grüße aus Köln an alle Bürger') = :'utf8' AS same;
SELECT simhash(E'Gr\xfc\xdfe aus K\xf6ln');
\echo :SQLSTATE
-- as the hint says
SELECT simhash(convert_from(convert(convert_to(E'Gr\xfc\xdfe aus K\xf6ln an alle B\xfcrger',
    'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII')) = :'utf8' AS same;
\c :home
DROP DATABASE neardup_latin1;
DROP DATABASE neardup_ascii;

SET client_min_messages = warning;
DROP SCHEMA simhash_test CASCADE;
