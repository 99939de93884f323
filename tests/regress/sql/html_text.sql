-- html_text, and html => true. The text crate freezes the texts of pages.
CREATE SCHEMA html_test;
SET search_path = html_test, public;

SELECT html_text($$<!DOCTYPE html><html><head><title>Not shown</title><style>p { color: red
    }</style></head>
<body onload="go()"><h1>Headline</h1><script>document.write('<p>no</p>')</script>
<p>First paragraph, with <b>bo</b>ld &amp; <a href="x" title="no">link</a>.<p>Second&nbsp;one<br>on
    two lines
<!-- no --><div hidden>no</div><ul><li>item<li>item</ul><table><tr><td>cell<td>cell</table><img
    alt="no">&#x4e2d;&#25991;
</body></html>$$) AS text;
SELECT html_text('') = '' AS empty, html_text('<p>') = '' AS nothing,
    html_text(NULL) IS NULL AS unknown, html_text('no page at all') AS plain,
    html_text('1 < 2 & 3 > 2') AS signs;

-- The same words with and without markup
SELECT simhash('<h1>The Quick</h1><p>br<i>own</i> fox',
    html => true) = simhash('the quick brown fox') AS same,
       simhash(html_text('<h1>The Quick</h1><p>br<i>own</i> fox')) = simhash('the quick brown fox')
       AS by_hand,
       simhash128('<p>a<p>b', html => true) = simhash128('a b') AS wide, simhash('<p>The quick',
       html => false) = simhash('p The quick') AS as_text,
       simhash('<script>words and words</script>', html => true) IS NULL AS no_word;
SELECT feature FROM neardup_features('<p>中文&#22312;<b>这</b>里</p><title>no</title>',
    tokens => 'jieba', shingle => 1, html => true) ORDER BY 1;

-- In an index, as any immutable function
CREATE TABLE pages (page text, fp fingerprint GENERATED ALWAYS AS (simhash(page, html => true))
    STORED);
CREATE INDEX ON pages (md5(html_text(page)));
INSERT INTO pages VALUES ('<p>one two three'), ('<div>one</div> two <b>three</b>');
SELECT count(DISTINCT fp) AS fingerprints, count(DISTINCT html_text(page)) AS texts FROM pages;

-- Deep, long, malformed pages: the function ends, and can be cancelled.
SELECT html_text(repeat('<div><b>', 500000) || 'deep') AS deep,
    length(html_text(repeat('<p>word', 100000))) AS long,
    length(html_text('<p ' || repeat('a=b ', 500000) || '>x')) AS attributes;
CREATE TABLE long AS SELECT repeat('<p>many <b>words</b> of some length ', 2000000) AS page;
\set VERBOSITY terse
SET statement_timeout = '50ms';
SELECT html_text(page) IS NULL FROM long;
\echo :SQLSTATE
RESET statement_timeout;
\set VERBOSITY default

-- Characters missing in another encoding are question marks, but count in fingerprints.
SELECT simhash('<p>Gr&uuml;&szlig;e &#20013;&#25991;', html => true) AS utf8 \gset
CREATE DATABASE neardup_html_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
SELECT current_database() AS home \gset
\c neardup_html_latin1
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
SELECT html_text('<p>Grüße &#20013;&#25991;'), simhash('<p>Grüße &#20013;&#25991;',
    html => true) = :'utf8' AS same;
\c :home
DROP DATABASE neardup_html_latin1;

SET client_min_messages = warning;
DROP SCHEMA html_test CASCADE;
