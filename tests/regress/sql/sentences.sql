-- longest_sentences_hash: a key for copies with different frames.
SELECT longest_sentences_hash('The committee will meet on Tuesday at ten. Coffee is served. '
    'Everyone who wants to speak has to register before Monday noon. The old library stays '
    'closed until the works are done. Bring a chair.')
    AS key \gset
SELECT longest_sentences_hash(E'CITY NEWS, 12 May\n\nThe committee will meet on Tuesday, at ten! '
    'Everyone who wants to speak has to register before Monday noon.\nThe old library stays '
    'closed until the works are done.\nShare | Print')
    = :key AS framed,
       longest_sentences_hash('The old library stays closed until the works are done. Everyone '
           'who wants to speak has to register before Monday noon. The committee will meet on '
           'Tuesday at ten.')
       = :key AS order_is_nothing,
       longest_sentences_hash('The committee will meet on Tuesday at eleven. Coffee is served. '
           'Everyone who wants to speak has to register before Monday noon. The old library '
           'stays closed until the works are done. Bring a chair.')
       = :key AS another_word,
       longest_sentences_hash(html_text('<p>The committee will meet on Tuesday at ten.'
           '<p>Everyone who wants to speak has to register before Monday noon.<p>The old library '
           'stays closed until the works are done.'))
       = :key AS page;
-- Versions guarantee the values.
SELECT longest_sentences_hash('One. Two three. Four', 2),
    longest_sentences_hash('图书馆昨天宣布，新的阅览室将开放。读者很多！停车位不足？是的。'), longest_sentences_hash(body => 'one',
    n => 1000);
SELECT pg_typeof(longest_sentences_hash('a')), longest_sentences_hash('') IS NULL AS empty,
    longest_sentences_hash('... !') IS NULL AS no_word,
    longest_sentences_hash(NULL) IS NULL AS unknown,
    longest_sentences_hash('a', NULL) IS NULL AS unknown_n;
SELECT longest_sentences_hash('a', 0);
\echo :SQLSTATE
SELECT longest_sentences_hash('a', 1001);
\echo :SQLSTATE

-- A unique key, an index, a long computation
CREATE TEMPORARY TABLE articles (body text,
    key bigint GENERATED ALWAYS AS (longest_sentences_hash(body)) STORED UNIQUE);
INSERT INTO articles VALUES ('One sentence. Another one.'), ('Another one! One sentence?')
    ON CONFLICT DO NOTHING;
SELECT count(*) FROM articles;
CREATE TEMPORARY TABLE long AS SELECT repeat('Many words of some length. ', 2000000) AS body;
\set VERBOSITY terse
SET statement_timeout = '50ms';
SELECT longest_sentences_hash(body) IS NULL FROM long;
\echo :SQLSTATE
RESET statement_timeout;
