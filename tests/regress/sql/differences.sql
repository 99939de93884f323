-- neardup_diff, neardup_diff_html, neardup_diff_ansi: spans that add up to both texts, escaped.
SELECT * FROM neardup_diff('The cat sat on the mat.', 'The dog sat on a big mat');
SELECT * FROM neardup_diff(E'one\ntwo\nthree', E'one\nthree\nfour');
SELECT ordinal, kind, a_text, b_text FROM neardup_diff('图书馆昨天宣布，将在下个月开放。',
    '图书馆今天宣布，将于下个月开放！');
-- White space only; empty texts; one empty text.
SELECT kind, a_text, replace(b_text, E'\n', '\n') AS b_text FROM neardup_diff('a b  c', E'a\nb c');
SELECT * FROM neardup_diff('', '');
SELECT kind, a_text, b_text FROM neardup_diff('same', 'same');
SELECT kind, a_start, a_end, b_start, b_end, b_text FROM neardup_diff('', 'all of it');
SELECT count(*) FROM neardup_diff(NULL, 'a');
-- Positions are substr positions, in characters.
SELECT bool_and(substr(a, a_start, a_end - a_start) = a_text) AS offsets_a,
    bool_and(substr(b, b_start, b_end - b_start) = b_text) AS offsets_b,
    string_agg(a_text, '' ORDER BY ordinal) = a AS all_a,
    string_agg(b_text, '' ORDER BY ordinal) = b AS all_b
FROM (VALUES ('é ж 一 x', 'é я 一 二 y'), (E'e\u0301 \r\n z', E'\u00e9 \n z')) t (a, b),
    neardup_diff(a, b) GROUP BY a, b;
-- A long text with one change in the middle
SELECT kind, a_start, b_end, length(a_text), length(b_text), left(b_text, 20)
FROM (SELECT string_agg(md5(n::text), ' ') FROM generate_series(1, 20000) n) t (body),
    neardup_diff(body, overlay(body placing 'something new' from 330001 for 32));

SELECT neardup_diff_html('a <b> & "c" x', 'a <i> & "c" y''');
SELECT neardup_diff_html(E'x\x1b[31m\r\n\x07', E'x\u202e\r\n</del><script>alert(1)</script>');
SELECT neardup_diff_html('1 2 3 4 5 6 7 8 old 1 2 3 4 5 6 7 8 9',
    '1 2 3 4 5 6 7 8 new 1 2 3 4 5 6 7 8 9', context) AS html
FROM (VALUES (NULL), (0), (1), (3), (100)) c (context);
SELECT neardup_diff_html('a', NULL) IS NULL AS b, neardup_diff_html(NULL, 'b', 1) IS NULL AS a,
    neardup_diff_ansi(NULL, NULL) IS NULL AS ansi;
SELECT replace(neardup_diff_ansi(E'on Monday\x1b]0;x\x07 at 3', 'on Friday at 3 pm'),
    E'\x1b', 'ESC');
SELECT replace(neardup_diff_ansi('1 2 3 4 5 6 7 8 old', '1 2 3 4 5 6 7 8', 2), E'\x1b', 'ESC');

-- Invalid arguments
SELECT neardup_diff_html('a', 'b', -1);
\echo :SQLSTATE
SELECT neardup_diff_ansi('a', 'b', context => -5);
\echo :SQLSTATE
SELECT count(*) FROM neardup_diff(repeat('a, ', 300000), 'a');
\echo :SQLSTATE
SELECT length(neardup_diff_html('a', repeat('long ', 4000000)));
\echo :SQLSTATE
-- As long as texts may be, and nothing in common
SELECT count(*) > 0 AS done FROM neardup_diff(repeat('a ', 500000), repeat('b ', 500000));

-- An index on an expression requires immutable functions.
CREATE TABLE differences_test (a text, b text);
CREATE INDEX ON differences_test (md5(neardup_diff_html(a, b)));
INSERT INTO differences_test VALUES ('a b', 'a c');
DROP TABLE differences_test;
