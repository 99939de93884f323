-- Passages: their hashes, an index over them, and the runs that two texts share.
\set VERBOSITY default
CREATE SCHEMA passages_test;
SET search_path = passages_test, public;

-- The values never change.
SELECT passages('The old swing bridge will stay closed until the end of May', 6, shingle => 3);
SELECT passages('The old swing bridge will stay closed until the end of May', 3, shingle => 3);
SELECT passages('图书馆重新开放，欢迎大家来', 6, 'char', 3) AS chars,
    passages('图书馆重新开放，欢迎大家来', 3, 'jieba', 2) AS words;
SELECT passages('') AS empty, passages('...') AS no_word, passages('One word') AS short,
    (passages('One word'))[1] = simhash(ARRAY['one word'])::bigint AS one_hash,
    passages(NULL) IS NULL AS null, pg_typeof(passages('a'));
-- With fewer tokens than a passage but at least a shingle: the smallest of all its hashes.
SELECT cardinality(passages(body)) AS hashes, passages(body) = passages(upper(body)) AS folded,
    (passages(body))[1]::bit(64)
    = (array_agg(hash::bigint::bit(64) ORDER BY hash::bigint::bit(64)))[1] AS least
FROM (SELECT string_agg('w' || i, ' ') FROM generate_series(1, 23) i) t (body),
    neardup_features(body, shingle => 8) GROUP BY body;

-- The definition in SQL: the smallest hash of each window.
CREATE FUNCTION defined(body text, length int, shingle int) RETURNS bigint[] LANGUAGE sql AS $$
    WITH words AS (
        SELECT word, n FROM regexp_split_to_table(body, ' ') WITH ORDINALITY w (word, n)
    ), hashes AS (
        SELECT n, simhash(ARRAY[string_agg(word, ' ') OVER w])::bigint::bit(64) AS hash,
            count(*) OVER w AS words
        FROM words WINDOW w AS (ORDER BY n ROWS BETWEEN CURRENT ROW AND shingle - 1 FOLLOWING)
    ), minima AS (
        SELECT (array_agg(hash) OVER w) AS window_hashes, count(*) OVER w AS hashes
        FROM hashes WHERE words = shingle
        WINDOW w AS (ORDER BY n ROWS BETWEEN CURRENT ROW AND length - shingle FOLLOWING)
    )
    SELECT array_agg(DISTINCT least::bigint ORDER BY least::bigint)
    FROM minima, LATERAL (
        SELECT (array_agg(hash ORDER BY hash))[1] FROM unnest(window_hashes) hash
    ) m (least)
    WHERE hashes = length - shingle + 1
$$;
SELECT length, shingle, passages(body, length, shingle => shingle)
    = defined(body, length, shingle) AS same
FROM (SELECT string_agg(md5((i % 170)::text), ' ' ORDER BY i) FROM generate_series(1, 400) i)
    t (body), (VALUES (24, 8), (9, 9), (30, 1), (100, 100), (400, 3)) v (length, shingle);

-- The hashes of a greater length are a subset of the hashes of a smaller one.
SELECT count(*) FILTER (WHERE passages(body, length) <@ passages(body, length - 1)) AS parts,
    bool_and(passages(body, length) && passages(body)) AS all_share, count(*)
FROM (SELECT string_agg(md5(i::text), ' ' ORDER BY i) FROM generate_series(1, 60) i) t (body),
    generate_series(9, 80) length;

-- Shared text is found at any position, and by an index without a stored column.
CREATE TABLE docs (id int PRIMARY KEY, body text);
INSERT INTO docs SELECT i, string_agg(md5((i * 1000 + n)::text), ' ' ORDER BY n)
FROM generate_series(1, 300) i, generate_series(1, 120) n GROUP BY i;
UPDATE docs SET body = 'Something before. ' || (SELECT string_agg(md5(n::text), ' ' ORDER BY n)
    FROM generate_series(7041, 7064) n) || ', and after ' || body WHERE id = 11;
CREATE INDEX docs_passages ON docs USING gin (passages(body));
ANALYZE docs;
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE passages(body) && passages('a passage');
SELECT id, passages_in_common(passages(body), q.hashes) > 0 AS shares, a_start, a_end, b_start,
    b_end,
    token_count, a_share, left(passage, 20) AS begins
FROM (SELECT body, passages(body) FROM docs WHERE id = 7) q (query, hashes), docs,
    shared_passages(query, body) s
WHERE passages(body) && q.hashes AND id <> 7;
RESET enable_seqscan;
-- In a generated column of a partitioned table, and by parallel workers.
CREATE TABLE parts (id int, body text,
    hashes bigint[] GENERATED ALWAYS AS (passages(body, length => 20)) STORED)
    PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (1000);
CREATE INDEX parts_hashes ON parts USING gin (hashes);
INSERT INTO parts SELECT id, body FROM docs;
UPDATE parts SET body = replace(body, 'Something before', '') WHERE id = 11;
SELECT b.id, passages_in_common(a.hashes, b.hashes) > 0 AS shares
FROM parts a JOIN parts b ON a.hashes && b.hashes AND a.id <> b.id WHERE a.id = 7;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT count(*) AS parallel FROM docs WHERE passages(body) && (SELECT hashes FROM parts
    WHERE id = 250) AND passages(body, 20) = (SELECT hashes FROM parts WHERE id = 250);
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
-- No shared run has 25 words.
SELECT count(*) FROM shared_passages((SELECT body FROM docs WHERE id = 7),
    (SELECT body FROM docs WHERE id = 11), 25);
SELECT count(*) AS offsets, count(*) FILTER (WHERE passages(concat_ws(' ', before, passage, after))
    && passages(passage)) AS found
FROM (SELECT string_agg(md5(n::text), ' ') FROM generate_series(1, 24) n) p (passage),
    (SELECT string_agg(md5((-n)::text), ' ') FILTER (WHERE n < at),
        string_agg(md5((-n)::text), ' ') FILTER (WHERE n >= at)
     FROM generate_series(1, 90) n, generate_series(1, 90) at GROUP BY at) o (before, after);

-- Numbers of shared hashes, of any arrays
SELECT passages_in_common('{1,2,3}', '{2,3,4}') AS two, passages_in_common('{}', '{1}') AS none,
    passages_in_common('{3,1,3,-5}', '{-5,3,3}') AS unsorted,
    passages_in_common('{{1,2},{3,4}}', '[5:6]={4,9}') AS shapes,
    passages_in_common(NULL, '{1}') IS NULL AS null;
SELECT passages_in_common('{1,NULL}', '{1}');
\echo :SQLSTATE

-- Shared runs: the longest first, each token of a in one run at most, with substr positions.
SELECT * FROM shared_passages('One: the old bridge stays closed. Two: divers found cracks.',
    'DIVERS found cracks; the Old Bridge stays closed, divers found cracks.', 3);
SELECT s.passage = substr(a, a_start, a_end - a_start) AS in_a,
    substr(b, b_start, b_end - b_start) AS in_b, round(a_share::numeric, 4) AS share
FROM (VALUES ('Äpfel, ﬁnd the “old” bridge — stays', 'x y äpfel ﬁnd THE old Bridge stays z'))
    t (a, b), shared_passages(a, b, 5) s;
SELECT passage, b_start FROM shared_passages('a b a b a b a', 'a b a b', 1);
SELECT token_count, count(*) FROM shared_passages(repeat('la ', 100000), repeat('la ', 30000))
GROUP BY 1 ORDER BY 1 DESC;
SELECT a_start, a_end, b_start, b_end, passage FROM shared_passages(
    '<p>T&uuml;ren <b>auf</b> und zu', '<i>t&#252;ren auf</i> und zu', 4, html => true);
SELECT passage, token_count
FROM shared_passages('图书馆重新开放，欢迎。', '欢迎！图书馆 重新开放', 2, 'jieba');
SELECT passage FROM shared_passages('图书馆重新开放，欢迎。', '欢迎！图书馆重新开放', 4, 'char');
SELECT passage FROM shared_passages(E'a\nB  c\nd\n', E'x\nb c\nd', 2, 'line');
SELECT passage FROM shared_passages('Café 12 Türen', 'cafe 99 turen', 3, accents => 'remove',
    digits => 'zero');
SELECT count(*) FROM shared_passages('', 'a', 1);
SELECT count(*) FROM shared_passages(NULL, 'a');

-- Frames are skipped, and a passage within a frame is not a shared passage.
CREATE TABLE pages (id int PRIMARY KEY, body text);
INSERT INTO pages SELECT i, frame || ' ' || md5(i::text) || ' ' || md5((i * i)::text) || ' '
    || repeat(md5((i + 1000)::text) || ' ', 9) || frame
FROM generate_series(1, 50) i,
    (SELECT string_agg('frame' || n, ' ') FROM generate_series(1, 40) n) f (frame);
CREATE TABLE common AS SELECT neardup_common_features(body, 0.5, 'word', 8) AS features FROM pages;
SELECT count(*) FILTER (WHERE passages(a.body) && passages(b.body)) AS whole,
    count(*) FILTER (WHERE passages_without(a.body, features)
        && passages_without(b.body, features)) AS without
FROM pages a JOIN pages b ON a.id < b.id, common;
SELECT passages_without(body, without => '\x6e6446010008000000000000') = passages(body)
    AS empty_set,
    cardinality(passages_without(substr(body, 1, 150), features)) AS frame_alone FROM pages, common
WHERE id = 1;
SELECT passages_without('a', NULL::bytea) = passages('a') AS no_set,
    passages_without('a', NULL, NULL) IS NULL AS no_length;

-- Refused
SELECT passages('a', 0);
\echo :SQLSTATE
SELECT passages('a', 10001);
\echo :SQLSTATE
SELECT passages('a', 7);
\echo :SQLSTATE
SELECT passages('a', shingle => 0);
\echo :SQLSTATE
SELECT passages('a', shingle => 101);
\echo :SQLSTATE
SELECT passages('a', tokens => 'sentence');
\echo :SQLSTATE
SELECT passages('a', tokens => 'jieba_tfidf');
\echo :SQLSTATE
SELECT passages_without('a', features, shingle => 9) FROM common;
\echo :SQLSTATE
SELECT shared_passages('a', 'b', -1);
\echo :SQLSTATE
SELECT shared_passages('a', 'b', tokens => 'jieba_tfidf:5');
\echo :SQLSTATE

SET client_min_messages = warning;
DROP SCHEMA passages_test CASCADE;
