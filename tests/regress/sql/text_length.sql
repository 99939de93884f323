-- neardup_text_length ignores the differences that copies have.
CREATE SCHEMA text_length_test;
SET search_path = text_length_test, public;

SELECT neardup_text_length('The café opens') AS plain,
    neardup_text_length(E'  The  café\t\r\n\n opens \u00a0') AS spaced,
    neardup_text_length(E'THE CAFE\u0301 o\u00ADpens') AS decomposed,
    neardup_text_length(normalize('The café opens', NFKD)) AS nfkd,
    neardup_text_length('Ｔｈｅ　ｃａｆé ｏｐｅｎｓ') AS wide,
    length(E'  The  café\t\r\n\n opens \u00a0') AS length;
SELECT neardup_text_length('<nav hidden>Home</nav><div><p>The caf&eacute; <b>op</b>ens</div>',
    html => true) AS page, neardup_text_length('<p>The café opens') AS markup_counts,
    neardup_text_length('שָׁלוֹם', accents => 'remove') AS without_points,
    neardup_text_length('图书馆，开放。') AS chinese, neardup_text_length('') AS empty,
    neardup_text_length(E' \n\u3000') AS spaces, neardup_text_length(NULL) IS NULL AS null,
    pg_typeof(neardup_text_length('a'));
-- As many as there are features of one character, except for repetitions
SELECT neardup_text_length(body) = sum(weight) AS characters
FROM (SELECT string_agg(md5(i::text) || E' \n É', ' ㌖ ') FROM generate_series(1, 500) i) t (body),
    neardup_features(body, 'char', 1, 'tf') GROUP BY body;
SELECT neardup_text_length('a', accents => 'strip');
\echo :SQLSTATE

-- The copy to keep has the most text, by a stored column: neither the copy with doubled spaces nor
-- the one with markup.
CREATE TABLE docs (id int PRIMARY KEY, body text,
    fp fingerprint GENERATED ALWAYS AS (minhash64(body, html => true)) STORED,
    text_length bigint GENERATED ALWAYS AS (neardup_text_length(body, html => true)) STORED);
CREATE INDEX ON docs USING neardup (fp);
INSERT INTO docs (id, body)
SELECT id, format(frame, replace(text, ' ', space))
FROM (SELECT string_agg(md5(i::text), ' ' ORDER BY i) FROM generate_series(1, 60) i) t (text),
    (VALUES (1, '%s', '   '), (2, '<div class="a very long name"><p>%s</p></div>', ' '),
        (3, '%s and more', ' '), (4, '%s', ' ')) c (id, frame, space);
SELECT id, length(body), text_length FROM docs ORDER BY id;
SELECT DISTINCT d.id AS kept, c.size FROM neardup_clusters('docs', 6,
    keep => 'text_length DESC, id') c JOIN docs d ON d.ctid = c.representative;

SET client_min_messages = warning;
DROP SCHEMA text_length_test CASCADE;
