-- Databases in other encodings: texts are converted, so that all results are the same as in UTF-8.
\set make 'CREATE FUNCTION everything(b text) RETURNS text LANGUAGE sql AS $$ SELECT'
\set make :make ' md5(concat_ws('','', simhash(b), simhash128(b), simhash(b, ''char'', 3),'
\set make :make ' simhash(b, ''line'', 1), simhash(b, ''jieba'', 1),'
\set make :make ' simhash(b, ''jieba_search''), simhash(b, ''jieba_tfidf''), simhash(b, accents'
\set make :make ' => ''remove'', digits => ''zero''), simhash(''<p>'' || b || ''<p>'' || b, html'
\set make :make ' => true), simhash(html_text(''<h1>'' || b || ''</h1>'')), minhash(b, hashes =>'
\set make :make ' 16), minhash(b, ''jieba'', hashes => 16), minhash64(b),'
\set make :make ' minhash128(b, ''char''), longest_sentences_hash(b), jaccard_similarity(b, b ||'
\set make :make ' b), containment(b, b || b), neardup_explain(b, b || b) -> ''distance'','
\set make :make ' simhash(ARRAY[b, ''x'']), simhash(ARRAY[b], scheme => ''yanyiwu_simhash''),'
\set make :make ' simhash128(ARRAY[b, ''x'']), minhash(ARRAY[b, ''x''], 16),'
\set make :make ' minhash64(ARRAY[b, ''x'']), (SELECT concat(simhash_agg(f, 2), simhash128_agg(f,'
\set make :make ' 2), minhash_agg(f, 16)) FROM unnest(ARRAY[b, ''x'']) f), (SELECT'
\set make :make ' string_agg(hash::text, '''' ORDER BY hash) FROM neardup_features(b)),'
\set make :make ' simhash(array_to_tsvector(ARRAY[b])), simhash128(array_to_tsvector(ARRAY[b])),'
\set make :make ' minhash(array_to_tsvector(ARRAY[b]), 16),'
\set make :make ' minhash128(array_to_tsvector(ARRAY[b])), neardup_text_length(b),'
\set make :make ' jsonb_path_query_array(neardup_explain(b, b || '' x'', function => ''minhash''),'
\set make :make ' ''$.shared.heaviest[*].weight_a''), minhash64_without(b || '' y z'', (SELECT'
\set make :make ' neardup_common_features(f, 0.6) FROM unnest(ARRAY[b, b || '' x'']) f)))) $$;'
\set german 'Größe ½ µm, naïve CAFÉ: 3 × 4. Übergröße 12'
\set chinese '图书馆昨天宣布，新的阅览室将在下个月向公众开放。读者很多！'
\set japanese '全文検索とは何か。カナも漢字も。'
\set russian 'Съешь же ещё этих мягких французских булок, да выпей чаю.'
\set SHOW_CONTEXT never
SELECT current_database() AS home \gset
CREATE SCHEMA encodings_test;
SET search_path = encodings_test, public;
:make
SELECT everything(:'german') AS german, everything(:'chinese') AS chinese,
    everything(:'japanese') AS japanese, everything(:'russian') AS russian \gset utf8_
SELECT count(DISTINCT v) FROM unnest(ARRAY[:'utf8_german', :'utf8_chinese', :'utf8_japanese',
    :'utf8_russian']) v;
SET client_min_messages = warning;
DROP SCHEMA encodings_test CASCADE;

CREATE DATABASE neardup_encoding ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
\c neardup_encoding
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
:make
SELECT getdatabaseencoding(), everything(:'german') = :'utf8_german' AS same;
-- The trigger converts as well, and so do errors.
CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint);
CREATE INDEX ON docs USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT ON docs FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'body',
    'tokens=char', 'shingle=3');
INSERT INTO docs VALUES (1, :'german'), (2, :'german');
SELECT id, fp = minhash64(body, 'char', 3) AS same FROM docs;
-- A report is in ASCII, whose bytes are the same everywhere, with references to other characters.
CREATE TABLE pages AS SELECT n AS id, :'german' || n AS body, n::bigint::fingerprint AS fp
    FROM generate_series(1, 2) n;
CREATE INDEX pages_fp ON pages USING neardup (fp);
SELECT page ~ '^[\x01-\x7f]+$' AS is_ascii, page ~ '<h1><bdi>Gr&#252;&#223;e</bdi></h1>' AS title,
    page ~ '<del>[^<]*1</del>' AS marked, page ~ '&#\d{3};.*<del>' AS texts
FROM neardup_report('pages', 3, body => 'body', key => 'body', title => 'Grüße') page;
-- Characters that the encoding does not have take as little time as others.
SET statement_timeout = '60s';
SELECT length(euros), left(euros, 12) AS euros FROM html_text(repeat('&#8364;', 6e6::int)) euros;
SELECT length(mixed), right(mixed, 14) AS mixed FROM html_text(repeat('a&#8364;&uuml;&#128512;',
    1e6::int)) mixed;
SELECT length(han), right(han, 12) AS han
    FROM html_text((SELECT string_agg('&#' || 19968 + n % 20000 || ';', '')
    FROM generate_series(1, 1000000) n)) han;
RESET statement_timeout;
SELECT simhash('a', tokens => 'wörter');
\c :home
DROP DATABASE neardup_encoding;

CREATE DATABASE neardup_encoding ENCODING 'EUC_CN' LOCALE 'C' TEMPLATE template0;
\c neardup_encoding
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
:make
SELECT getdatabaseencoding(), everything(:'chinese') = :'utf8_chinese' AS same;
SELECT string_agg(feature, ' ' ORDER BY feature COLLATE "C") AS words
    FROM neardup_features(:'chinese', 'jieba', 1);
\c :home
DROP DATABASE neardup_encoding;

CREATE DATABASE neardup_encoding ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0;
\c neardup_encoding
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
:make
SELECT getdatabaseencoding(), everything(:'japanese') = :'utf8_japanese' AS same;
-- A character that the encoding does not have is a question mark everywhere.
SELECT html_text('a&euro;b') AS page, passage,
    neardup_explain('a&euro;b', 'ab', 'char', 1, html => true) #>> '{only_a,heaviest,0,feature}'
        AS feature,
    neardup_explain('a&euro;b', 'ab', 'char', 1, html => true) #>> '{changes,largest,0,a,text}'
        AS change
FROM shared_passages('ab&euro;', 'b&euro;', 1, 'char', html => true);
\c :home
DROP DATABASE neardup_encoding;

CREATE DATABASE neardup_encoding ENCODING 'KOI8R' LOCALE 'C' TEMPLATE template0;
\c neardup_encoding
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
:make
SELECT getdatabaseencoding(), everything(:'russian') = :'utf8_russian' AS same;
\c :home
DROP DATABASE neardup_encoding;

-- SQL_ASCII does not define the meaning of bytes: they are UTF-8, or an error.
CREATE DATABASE neardup_encoding ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
\c neardup_encoding
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'SQL_ASCII';
:make
SELECT getdatabaseencoding(), everything(:'german') = :'utf8_german' AS german,
    everything(:'chinese') = :'utf8_chinese' AS chinese,
    everything(:'russian') = :'utf8_russian' AS russian;
-- A report shows bytes that are not UTF-8 as such.
CREATE TABLE pages AS SELECT n AS id, E'Gr\xfc\xdfe ' || n AS body, n::bigint::fingerprint AS fp
    FROM generate_series(1, 2) n;
CREATE INDEX pages_fp ON pages USING neardup (fp);
SELECT page ~ '^[\x01-\x7f]+$' AS is_ascii, page ~ 'Gr&#65533;&#65533;e <del>' AS texts
FROM neardup_report('pages', 3, body => 'body', key => 'body') page;
-- Characters stay whole where the server counts bytes.
CREATE TABLE cut AS SELECT n AS id, 'x' || repeat('é', 900) || n AS body,
    n::bigint::fingerprint AS fp FROM generate_series(1, 2) n;
CREATE INDEX cut_fp ON cut USING neardup (fp);
SELECT page LIKE '%' || repeat('&#233;', 450) || '%' AS texts, page ~ '&#65533;' AS halves
FROM neardup_report('cut', 3, body => 'body', key => 'body', characters => 1000) page;
CREATE FUNCTION refused(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE made text;
BEGIN
    EXECUTE 'SELECT (' || replace(expression, 'BAD', 'E''Gr\xfc\xdfe''') || ')::text' INTO made;
    RETURN 'taken as ' || made;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ': ' || SQLERRM;
END $$;
SELECT expression, refused(expression) FROM unnest(ARRAY['simhash(BAD)', 'simhash128(BAD)',
    'simhash(BAD, html => true)', 'simhash(BAD, ''jieba'')', 'minhash(BAD)', 'minhash64(BAD)',
    'minhash128(BAD)', 'html_text(BAD)', 'longest_sentences_hash(BAD)',
    'jaccard_similarity(''a'', BAD)', 'containment(BAD, ''a'')', 'neardup_explain(''a'', BAD)',
    '(SELECT count(*) FROM neardup_features(BAD))', 'simhash(ARRAY[BAD])',
    'simhash(ARRAY[BAD], scheme => ''simhash_py'')', 'simhash128(ARRAY[BAD])',
    'minhash(ARRAY[BAD])',
    'minhash64(ARRAY[BAD])', '(SELECT simhash_agg(BAD, 1))', '(SELECT simhash128_agg(BAD, 1))',
    '(SELECT minhash_agg(BAD))', 'simhash(array_to_tsvector(ARRAY[BAD]))',
    'simhash128(array_to_tsvector(ARRAY[BAD]))', 'minhash(array_to_tsvector(ARRAY[BAD]))',
    'minhash64(array_to_tsvector(ARRAY[BAD]))', 'neardup_text_length(BAD)',
    '(SELECT neardup_common_features(BAD, 0.5))']) expression;
SELECT simhash(E'Gr\xfc\xdfe');
\c :home
DROP DATABASE neardup_encoding;

-- There is no conversion between this encoding and UTF-8: texts are in ASCII.
CREATE DATABASE neardup_encoding ENCODING 'MULE_INTERNAL' LOCALE 'C' TEMPLATE template0;
\c -reuse-previous=on "dbname=neardup_encoding client_encoding=SQL_ASCII"
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SELECT getdatabaseencoding(), start, segment FROM neardup_segments(E'one\n\ntwo');
SELECT html_text('1&euro;, 2&yen; &amp; 3');
SELECT start FROM neardup_segments(convert_from('\x81e9', 'MULE_INTERNAL'));
\c :home
DROP DATABASE neardup_encoding;
