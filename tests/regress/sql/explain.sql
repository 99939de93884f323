-- neardup_explain: each function with its own defaults, distance and estimate; features in the
-- order of the text, with their positions.
CREATE SCHEMA explain_test;
SET search_path = explain_test, public;
CREATE TABLE texts (a text, b text);
INSERT INTO texts VALUES
    ('The library will reopen on Monday, the council said; all its rooms were painted in spring.',
     'The library will  REOPEN on Tuesday — the council said; all its rooms were painted in May.');

-- Distances, estimates and similarities equal the results of the functions themselves.
SELECT f.function, e->>'function' = f.function AS named, e->'options'->'shingle' AS shingle,
    e->'options'->'weight' AS weight, e->'distance' AS distance, round((e->>'estimate')::numeric,
    4) AS estimate, round((e->>'jaccard')::numeric, 4) AS jaccard,
    (e->>'jaccard')::float8 = jaccard_similarity(a, b, shingle => shingle) AS exact,
    (e->>'distance')::float8 = own AS same_distance, e->'a'->>'fingerprint' = text_a AS same_a,
    e->'a'->'features' AS features
FROM texts, LATERAL (VALUES
    ('simhash', 2, simhash(a) <~> simhash(b), simhash(a)::text),
    ('simhash128', 2, simhash128(a) <~> simhash128(b), simhash128(a)::text),
    ('minhash64', 3, minhash64(a) <~> minhash64(b), minhash64(a)::text),
    ('minhash128', 3, minhash128(a) <~> minhash128(b), minhash128(a)::text),
    ('minhash', 3, minhash(a) <%> minhash(b), NULL)) f (function, shingle, own, text_a),
    LATERAL neardup_explain(a, b, function => f.function) e;
-- An estimate is not below 0; options are passed on; a shingle set by the caller.
SELECT neardup_explain('one two three', 'four five six',
    function => 'minhash128')->'estimate' AS least,
    neardup_explain('one two', 'two one', shingle => 1, function => 'minhash64')->'distance' AS set,
    neardup_explain('call 12', 'call 99', digits => 'zero',
    function => 'minhash')->'estimate' AS zeros;

-- Features are in text order, independent of weight. The heaviest are shown; ties go to the first.
SELECT jsonb_path_query_array(e, '$.only_a.heaviest[*].feature') AS only_a,
    jsonb_path_query_array(e, '$.shared.heaviest[*].feature') AS shared, e->'shared'->'features' AS
    all_shared
FROM texts, neardup_explain(a, b, top => 3, function => 'minhash64') e;
SELECT jsonb_path_query_array(neardup_explain('z z y y x w w', 'z y x w v v', shingle => 1,
    top => top, weight => 'tf', function => 'simhash'), '$.shared.heaviest[*].feature')
FROM generate_series(0, 4) top;

-- Positions refer to the original text: substr returns the passage.
SELECT x->>'feature' AS feature, substr(a, (x->>'start')::int, (x->>'length')::int) AS in_a
FROM texts, jsonb_array_elements(neardup_explain(a, b,
    function => 'minhash128')->'only_a'->'heaviest') x;
SELECT x->>'feature' AS feature, substr(a, (x->>'start_a')::int, (x->>'length_a')::int) AS in_a,
    substr(b, (x->>'start_b')::int, (x->>'length_b')::int) AS in_b
FROM texts, jsonb_array_elements(neardup_explain(a, b, top => 4,
    function => 'minhash')->'shared'->'heaviest') x;
-- Decomposed and compatibility characters, soft hyphens
SELECT x->>'feature' AS feature, x->'start' AS start, x->'length' AS length
FROM jsonb_array_elements(neardup_explain(E'Cafe\u0301 u\u0308ber \uff21\uff22\uff23 co\u00ADop ㌖',
    'x', shingle => 1, function => 'minhash64')->'only_a'->'heaviest') x;

-- Chinese
SELECT tokens, x->>'feature' AS feature, substr(a, (x->>'start')::int, (x->>'length')::int) AS in_a
FROM (VALUES ('图书馆昨天宣布，新的阅览室将在下个月向公众开放。', '图书馆今天宣布，新的阅览室将在下个月向读者开放。')) t (a, b),
    (VALUES ('word', 3), ('char', 3), ('jieba', 2), ('jieba_search', 1)) o (tokens, shingle),
    jsonb_array_elements(neardup_explain(a, b, tokens, shingle, top => 5,
    function => 'minhash128')->'only_a'->'heaviest') x;
SELECT jsonb_path_query_array(neardup_explain('我来到北京清华大学，清华大学很好', '我来到上海', 'jieba_tfidf:3',
    function => 'minhash64'), '$.only_a.heaviest[*]');
-- Lines
SELECT x->>'feature' AS feature, x->'start' AS start, x->'length' AS length
FROM jsonb_array_elements(neardup_explain(E'One  line\r\n\n  another one\nlast', 'last', 'line', 1,
    function => 'minhash64')->'only_a'->'heaviest') x;

-- For an HTML page, positions refer to html_text.
SELECT x->>'feature' AS feature, substr(html_text(page), (x->>'start')::int,
    (x->>'length')::int) AS in_text
FROM (VALUES ('<title>No</title><h1>Caf&eacute; <b>re</b>opens</h1>
    <p>on &quot;Monday&quot;')) t (page),
    jsonb_array_elements(neardup_explain(page, '<p>on Monday', shingle => 1, html => true,
    function => 'minhash64')->'only_a'->'heaviest') x;

-- Differences, a line for each change, in the order of the text
CREATE FUNCTION changes(comparison jsonb) RETURNS TABLE (a text, b text, a_at int4range,
    b_at int4range, features text) LANGUAGE sql AS $$
    SELECT x->'a'->>'text', x->'b'->>'text',
        int4range((x->'a'->>'start')::int, ((x->'a'->>'start')::int + (x->'a'->>'length')::int)),
        int4range((x->'b'->>'start')::int, ((x->'b'->>'start')::int + (x->'b'->>'length')::int)),
        concat_ws(', ', x->'a'->>'features', x->'b'->>'features')
    FROM jsonb_array_elements(comparison->'changes'->'largest') x $$;
SELECT c.* FROM texts, changes(neardup_explain(a, b)) c;
SELECT c.a, c.b FROM texts, changes(neardup_explain(a, b, shingle => 1)) c;
SELECT e->'changes'->'count' AS count, c.a, c.b FROM texts,
    neardup_explain(a, b, top => 1, function => 'simhash') e, changes(e) c;
SELECT neardup_explain(a, b, top => 0)->'changes' AS none,
    neardup_explain(a, a)->'changes' AS same FROM texts;
SELECT c.* FROM changes(neardup_explain('one two three four five six',
    'zero one two three five six seven')) c;
SELECT c.a, c.b FROM changes(neardup_explain('图书馆昨天宣布，新的阅览室将在下个月向公众开放。',
    '图书馆今天宣布，新的阅览室将在下个月向读者开放。', 'char', 3)) c;
SELECT c.a, c.b FROM changes(neardup_explain('<h1>Caf&eacute;</h1><p>opens on <b>Mon</b>day',
    '<p>Caf&eacute; opens in May', shingle => 1, html => true)) c;
SELECT c.a, c.b FROM changes(neardup_explain('我来到北京清华大学，清华大学很好', '我来到上海', 'jieba_tfidf:3')) c;

-- The bits of each change: for minima they add up to the distance.
SELECT f.function, e->'distance' AS distance, e->'changes'->'count' AS changes,
    jsonb_path_query_array(e, '$.changes.largest[*].bits') AS bits,
    (SELECT sum((x->>'bits')::int) FROM jsonb_array_elements(e->'changes'->'largest') x)
        = (e->>'distance')::numeric AS all_of_them
FROM texts, (VALUES ('minhash64'), ('minhash128'), ('simhash'), ('simhash128'), ('minhash'))
    f (function), LATERAL neardup_explain(a, b, function => f.function) e;
-- A single change has the whole distance. Its number of bits does not depend on "top".
SELECT f.function, e->'distance' = e->'changes'->'largest'->0->'bits' AS of_one
FROM (VALUES ('minhash64'), ('minhash128'), ('simhash'), ('simhash128')) f (function),
    LATERAL neardup_explain('one two three four five', 'one two new four five', weight =>
    CASE WHEN f.function ~ 'sim' THEN 'set' END, function => f.function) e;
SELECT e->'changes'->'largest'->0->'bits' = one->'changes'->'largest'->0->'bits' AS same
FROM texts, neardup_explain(a, b) e, neardup_explain(a, b, top => 1) one;
SELECT jsonb_path_query_array(neardup_explain('a b c', '', function => f),
    '$.changes.largest[*].bits') AS without_a_distance
FROM unnest('{simhash,minhash64,minhash}'::text[]) f;

-- Texts without features, NULL, and invalid arguments
SELECT neardup_explain('!', '', function => f)
FROM unnest('{simhash128,minhash64,minhash}'::text[]) f;
SELECT neardup_explain('a', NULL, function => 'minhash') IS NULL AS text,
    neardup_explain('a', 'b', function => NULL) IS NULL AS function,
    neardup_explain('a', 'b', tokens => NULL) IS NULL AS tokens,
    neardup_explain('a', 'b', top => NULL) IS NULL AS top,
    neardup_explain('a b', 'b', shingle => NULL,
    weight => NULL) = neardup_explain('a b', 'b') AS own;
SELECT neardup_explain('a', 'b', function => 'bbit');
\echo :SQLSTATE
SELECT neardup_explain('a', 'b', weight => 'tf');
\echo :SQLSTATE
SELECT neardup_explain('a', 'b', shingle => 0, function => 'minhash64');
\echo :SQLSTATE

SET client_min_messages = warning;
DROP SCHEMA explain_test CASCADE;
