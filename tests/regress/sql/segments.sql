-- neardup_segments: paragraphs, lines, sentences; positions and hashes.
SELECT * FROM neardup_segments(E' Title\r\n\r\nThe first line\nand the second.\n \t\nThe end ');
SELECT ordinal, start, segment FROM neardup_segments(E'one\rtwo\r\n\n three\u2028four\f', 'line');
SELECT ordinal, start, segment FROM neardup_segments(
    E'One two. Three! "Four?" It is 3.14, e.g. pi.\nA line ---------------------- more.',
    'sentence');
SELECT ordinal, start, segment FROM neardup_segments('你好，世界。再见！真的？यह एक है। दूसरा।',
    unit => 'sentence');
-- Texts without segments; NULL.
SELECT count(*) FROM neardup_segments(E' \n\n');
SELECT count(*) FROM neardup_segments(NULL);
SELECT count(*) FROM neardup_segments('a', NULL);
-- Positions are substr positions.
SELECT unit, bool_and(substr(body, start, length(segment)) = segment) AS offsets, count(*)
FROM (VALUES (E'é ж。一 二!\n\n 三. Four\nfive')) t (body),
    (VALUES ('paragraph'), ('line'), ('sentence')) u (unit), neardup_segments(body, unit)
GROUP BY unit ORDER BY unit;
-- Differences that the hash ignores, and one that it keeps; a line is a feature.
SELECT count(DISTINCT hash) AS one FROM neardup_segments(
    E'One  line of Text\n\none line\nOF TEXT\n\nｏｎｅ line of text\n');
SELECT count(DISTINCT hash) AS two FROM neardup_segments(E'one\n\none.');
SELECT s.hash = f.hash::bigint AS is_feature
FROM neardup_segments('The  Line') s, neardup_features('The  Line', 'line', 1) f;
-- Many
SELECT count(*), count(DISTINCT hash), max(start), max(ordinal)
FROM neardup_segments((SELECT string_agg('line ' || n % 1000, E'\n')
    FROM generate_series(1, 20000) n), 'line');
-- A row per call, where a function is not in FROM.
SELECT (neardup_segments(E'one\n\ntwo\n\nthree')).* LIMIT 2;
SELECT count(*) FROM (SELECT neardup_segments(E'one\n\ntwo') OFFSET 0) s;
-- Errors
SELECT count(*) FROM neardup_segments('a', 'word');
\echo :SQLSTATE
SELECT count(*) FROM neardup_segments('a', '');
\echo :SQLSTATE

-- neardup_cut_segments: everything else stays byte for byte.
SELECT unit, n, neardup_cut_segments(body, ARRAY[n], unit) AS without
FROM (VALUES (E'\n  One. Two.\r\n\tThree\n \n\n    é四。 Five\n\nSix')) t (body),
    (VALUES ('paragraph'), ('line'), ('sentence')) u (unit), generate_series(1, 3) n
ORDER BY unit, n;
SELECT neardup_cut_segments(E'  a\n b\nc', '{3,1,3}', 'line') AS without_two,
    neardup_cut_segments(E' a\n\n b ', '{}') = E' a\n\n b ' AS without_none,
    neardup_cut_segments(E' a\n\n b ', '{1,2}') = '' AS without_all,
    neardup_cut_segments('a', NULL) IS NULL AS nothing;
SELECT neardup_cut_segments(E'a\n\nb', '{1,3}');
\echo :SQLSTATE
SELECT neardup_cut_segments(E'a\n\nb', '{0}');
\echo :SQLSTATE
SELECT neardup_cut_segments(E'a\n\nb', '{1,NULL}');
\echo :SQLSTATE
SELECT neardup_cut_segments('a', '{1}', 'word');
\echo :SQLSTATE
-- In other encodings too, with characters that are two in UTF-8.
SELECT current_database() AS home \gset
SET client_min_messages = warning;
CREATE DATABASE neardup_segments ENCODING 'EUC_JIS_2004' LOCALE 'C' TEMPLATE template0;
\c neardup_segments
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
SELECT neardup_cut_segments(E'一か゚\n\n  か゚二\n\n三か゚\n', '{2}') = E'一か゚\n\n三か゚\n' AS middle,
    neardup_cut_segments(E'一か゚\n\n  か゚二\n\n三か゚\n', '{1,3}') = E'  か゚二\n\n' AS ends;
\c :home
DROP DATABASE neardup_segments;
SET client_min_messages = warning;
CREATE DATABASE neardup_segments ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
\c neardup_segments
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'UTF8';
SELECT neardup_cut_segments(E'é\n\tü\nö', '{2}', 'line') = E'é\nö' AS same;
\c :home
DROP DATABASE neardup_segments;
SET client_min_messages = warning;
CREATE DATABASE neardup_segments ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
\c neardup_segments
SET client_min_messages = warning;
CREATE EXTENSION neardup;
SET client_encoding = 'SQL_ASCII';
SELECT neardup_cut_segments(E'é\n\tü\nö', '{2}', 'line') = E'é\nö' AS same;
\c :home
DROP DATABASE neardup_segments;
