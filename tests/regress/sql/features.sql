-- Ready-made features and hashes: weights, schemes, NULL, invalid arguments. The text crate
-- freezes the values of other programs; this file has some of them, and the calls for them.
CREATE SCHEMA features_test;
SET search_path = features_test, public;

-- Overload resolution: arrays of any type with an implicit cast to text[] or bigint[], and any
-- weights.
SELECT simhash(ARRAY['a', 'b'], ARRAY[1, 2]) = simhash('{a,b}'::text[], '{1,2}') AS integers,
       simhash(ARRAY['a', 'b'], ARRAY[0.5, 1]::real[]) = simhash(ARRAY['a', 'b'],
       '{0.5,1}') AS reals,
       simhash(ARRAY['a', 'b'], ARRAY[0.5, 1]) = simhash(ARRAY['a', 'b'], '{1,2}') AS numerics,
       simhash(ARRAY['a', 'b']::varchar[]) = simhash(ARRAY['a', 'b']) AS varchars,
       simhash(features => '{a,b}', weights => '{1,2}') = simhash(ARRAY['a', 'b'],
       '{1,2}') AS named,
       simhash(hashes => '{1,2}') = simhash(ARRAY[1, 2]) AS hashes;

-- Weights are doubles, and sums are exact: the doubles 0.1 and 0.2 are each above the decimal
-- number, 0.3 is below.
SELECT simhash(ARRAY[1, 1, 0], ARRAY[0.1, 0.2, 0.3])::bigint AS above, simhash(ARRAY[0, 0, 1],
    ARRAY[0.1, 0.2, 0.3])::bigint AS below,
       simhash(ARRAY[1, 0, 1], ARRAY[1e308, 1e308, 5e-324])::bigint AS tiny;
-- A single-precision number has another value.
SELECT simhash(ARRAY[1, 0], ARRAY[0.1, 0.1::real::float8])::bigint AS smaller,
    simhash(ARRAY[0, 1], ARRAY[0.1, 0.1::real::float8])::bigint AS larger;

-- Hashes as they are, 64 bits
SELECT simhash(ARRAY[x'deadbeef'::bigint]), simhash(ARRAY[-1]), simhash(ARRAY[43981, 48350, 52719]),
    simhash(ARRAY[37, 43], ARRAY[4, 5])::bigint::bit(6) AS manku;
SELECT simhash(ARRAY[simhash('one')::bigint, simhash('two')::bigint], ARRAY[1,
    2]) = simhash(ARRAY['one', 'two'], ARRAY[1, 2]) AS of_words;

-- Other programs
SELECT scheme, simhash(ARRAY['the quick', 'quick brown', 'brown fox', '你好', '😀', ''],
    scheme => scheme),
       simhash(ARRAY['the quick', 'quick brown', 'brown fox', '你好', '😀', ''], ARRAY[0.5, 1.5, 2.5,
       3.5, 4.5, 5.5], scheme) AS weighted,
       simhash(ARRAY['abc'], scheme => scheme) AS of_one, simhash('{}'::text[],
       scheme => scheme) AS of_none, simhash('{}'::bigint[], '{}', scheme) AS of_no_hash
FROM unnest('{neardup,python_simhash,simhash_py,yanyiwu_simhash,md5_middle}'::text[]) AS scheme;
-- As they publish them
SELECT simhash(ARRAY['aaa', 'bbb'], scheme => 'python_simhash')::bigint AS pypi,
       simhash(ARRAY[x'abcd'::bigint, x'bcde'::bigint, x'cdef'::bigint],
       scheme => 'simhash_py') AS cpp,
       simhash(ARRAY['蓝翔', 'CEO', '升职', '加薪', '手扶拖拉机'], ARRAY[11.7392, 11.7392, 10.8562, 10.6426,
       10.0089], 'yanyiwu_simhash')::bigint + 18446744073709551616 AS yanyiwu;
-- Their sums are rounded.
SELECT simhash(ARRAY['b', 'a', 'c', 'e'], ARRAY[0.3, 0.3, 0.7, 0.1],
    'python_simhash')::bigint AS rounded;

-- No features
SELECT simhash(NULL::text[]) IS NULL AS no_features, simhash(NULL::bigint[],
    '{1}') IS NULL AS no_hashes,
    simhash('{a}'::text[], NULL) = simhash('{a}'::text[]) AS no_weights,
       simhash('{a}'::text[], scheme => NULL) IS NULL AS no_scheme, simhash('{a}'::text[],
       '{0}') IS NULL AS no_weight, simhash('{a}'::text[], '{0}', 'simhash_py') AS of_py;

-- Refused
SELECT simhash('{a}'::text[], scheme => 'md5');
\echo :SQLSTATE
SELECT simhash('{a,b}'::text[], '{1,-0.5}', 'python_simhash');
\echo :SQLSTATE
SELECT simhash('{1,2}'::bigint[], '{1,NaN}', 'yanyiwu_simhash');
\echo :SQLSTATE
SELECT simhash('{1,2}'::bigint[], '{1}');
\echo :SQLSTATE
SELECT simhash('{1,NULL}'::bigint[]);
\echo :SQLSTATE
SELECT simhash('{1,2}'::bigint[], '{1,NULL}');
\echo :SQLSTATE
SELECT simhash128('{a,b}'::text[], '{1,Infinity}');
\echo :SQLSTATE

-- In generated columns
CREATE TABLE docs (keywords text[], weights double precision[],
    fp fingerprint GENERATED ALWAYS AS (simhash(keywords, weights, 'yanyiwu_simhash')) STORED);
INSERT INTO docs VALUES ('{蓝翔,CEO,升职,加薪,手扶拖拉机}', '{11.7392,11.7392,10.8562,10.6426,10.0089}');
SELECT fp FROM docs;

SET client_min_messages = warning;
DROP SCHEMA features_test CASCADE;
