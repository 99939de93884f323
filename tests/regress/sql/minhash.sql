-- MinHash signatures: construction, text form, comparison and unions.
CREATE SCHEMA minhash_test;
SET search_path = minhash_test, public;
\pset format unaligned
\pset tuples_only on

-- A signature holds its scheme, length and seed.
SELECT minhash('the quick brown fox', hashes => 16);
SELECT minhash('the quick brown fox', hashes => 16, seed => -7);
SELECT minhash('The quick, brown FOX!', hashes => 16) = minhash(ARRAY['the quick brown',
    'quick brown fox'], 16);
SELECT minhash('the quick', hashes => 16) = minhash(ARRAY['the quick'], 16);
SELECT minhash(to_tsvector('english', 'the quick brown foxes'), 16) = minhash(ARRAY['quick',
    'brown', 'fox'], 16);
SELECT length(minhash('the quick brown fox')::text), pg_column_size(minhash('the quick brown fox'));
-- Without features the result is NULL.
SELECT minhash('...') IS NULL, minhash('') IS NULL, minhash('{}'::text[]) IS NULL,
    minhash(NULL::text) IS NULL, minhash(''::tsvector) IS NULL;
-- The text options work as in simhash.
SELECT minhash('abcd', tokens => 'char', shingle => 2, hashes => 16) = minhash(ARRAY['ab', 'bc',
    'cd'], 16);

-- Values of the Python package datasketch: MinHash(16, 1), legacy and affine32, after "a", "b" and
-- "the quick".
SELECT (minhash_values(minhash(ARRAY['a', 'b', 'the quick'], 16, 1, 'datasketch1')))[1:6];
SELECT minhash_from_values(minhash_values(minhash(ARRAY['x'], 16, 5, 'datasketch2')), 5,
    'datasketch2') = minhash(ARRAY['x'], 16, 5, 'datasketch2');
SELECT minhash_values(minhash(ARRAY['Hello', 'world', '近似'], 16, 7,
    'datasketch1')) = '{808476264,1423028510,422030900,1156971463,477104940,1726541394,'
        '1875367959,1761839564,193063674,226215420,1505580330,1604074635,2159467694,6296716,'
        '94595212,1614532816}'::bigint[],
    minhash_values(minhash(ARRAY['Hello', 'world', '近似'], 16, 7,
    'datasketch2')) = '{701510031,303381451,42396827,615393269,2666574986,673955028,2206988931,'
        '516904459,156781320,1835104500,2280007018,560623629,844336036,1639973079,1636806002,'
        '1002320398}'::bigint[];

-- Text form.
SELECT 'neardup1/16/0/000000000000000100000002000000030000000400000005000000060000000700000008000'
    '0000900000010000000110000001200000013000000140000001F'::minhash_signature;
SELECT s::minhash_signature FROM (VALUES ('')) v(s);
SELECT s::minhash_signature FROM (VALUES ('neardup1/16/0/00')) v(s);
SELECT s::minhash_signature FROM (VALUES ('neardup2/16/0/' || repeat('0', 128))) v(s);
SELECT s::minhash_signature FROM (VALUES ('neardup1/+16/0/' || repeat('0', 128))) v(s);
SELECT s::minhash_signature FROM (VALUES ('neardup1/16/00/' || repeat('0', 128))) v(s);
SELECT s::minhash_signature FROM (VALUES ('neardup1/15/0/' || repeat('0', 120))) v(s);
SELECT s::minhash_signature FROM (VALUES ('neardup1/16/0/' || repeat('0', 127) || 'g')) v(s);
SELECT s::minhash_signature FROM (VALUES ('datasketch1/16/-1/' || repeat('0', 128))) v(s);

-- Binary form.
CREATE TABLE signatures AS
    SELECT id, minhash(ARRAY(SELECT 'f' || n FROM generate_series(id, id + 19) n)) AS sig
    FROM generate_series(1, 30) id;
INSERT INTO signatures VALUES (31, NULL);
SELECT encode(_neardup_minhash_signature_send(minhash('the quick brown fox', hashes => 16)),
    'hex');
CREATE TABLE copied (LIKE signatures);
\set file `mktemp`
\copy signatures TO :file (FORMAT binary)
\copy copied FROM :file (FORMAT binary)
SELECT count(*) FROM signatures a JOIN copied b USING (id, sig);

-- Estimates: the share of differing and of equal values.
SELECT minhash(ARRAY['a']) <%> minhash(ARRAY['a']), minhash(ARRAY['a']) <%> minhash(ARRAY['b']),
    minhash_similarity(minhash(ARRAY['a']), minhash(ARRAY['a']));
SELECT pg_typeof(sig <%> sig) FROM signatures LIMIT 1;
-- Windows of 20 features, each shifted by one: the similarity of i and i + d is (20 - d) / (20 +
-- d).
SELECT d, round(avg(minhash_similarity(a.sig, b.sig))::numeric, 2) AS estimate,
    round((20.0 - d) / (20 + d), 2) AS similarity
FROM signatures a JOIN signatures b ON b.id > a.id, LATERAL (SELECT b.id - a.id) x(d)
    WHERE d IN (1, 2, 5, 10) GROUP BY d ORDER BY d;

-- An estimate is an ordinary number: sums, order, casts, and its use by clients and with other
-- types.
SELECT minhash_similarity(sig, sig) + 1, round((sig <%> sig)::numeric, 1), 1 - (sig <%> sig),
    pg_typeof(avg(sig <%> sig)) FROM signatures WHERE id = 1 GROUP BY sig;
SELECT array_agg(id ORDER BY sig <%> (SELECT sig FROM signatures WHERE id = 5), id) FROM signatures
    WHERE id BETWEEN 4 AND 7;
SELECT count(*), count(DISTINCT d) FROM (SELECT sig <%> sig AS d FROM signatures) s;
SELECT (a.sig <%> b.sig) < (a.sig <%> c.sig) FROM signatures a, signatures b, signatures c
    WHERE (a.id, b.id, c.id) = (1, 2, 12);
CREATE TABLE estimates AS SELECT sig <%> sig AS d, minhash_similarity(sig, sig)::real AS s
    FROM signatures;
SELECT pg_typeof(d), pg_typeof(s) FROM estimates LIMIT 1;
-- The server's own comparisons are unchanged.
SELECT 1 <= 2.5, 2.5 >= 1, 1::int2 < 2.5, 1::bigint <> 1.0, 1::real = 1.0, 0.5::float8 < 1,
    1 < 0.5::float8, 2.5 < 3::real, '3' < 4.0, 1.0 = 1::bigint;

-- Incomparable values have no distance; their union is an error.
SELECT minhash('a') <%> minhash('a', hashes => 64);
SELECT minhash('a') <%> minhash('a', seed => 1);
SELECT minhash_similarity(minhash('a'), minhash('a', scheme => 'datasketch1'));
SELECT minhash('a') ~= minhash('a', seed => 1);
SELECT minhash_union(minhash('a'), minhash('a', seed => 1));
-- Equality and order are not estimates, and compare all signatures.
SELECT minhash('a') = minhash('a', seed => 1), minhash('a') < minhash('a', seed => 1);
SELECT count(DISTINCT sig) FROM signatures;

-- Errors.
SELECT minhash('a', hashes => 15);
SELECT minhash('a', hashes => 1025);
SELECT minhash('a', scheme => 'sha');
SELECT minhash('a', seed => 4294967296, scheme => 'datasketch1');
SELECT minhash(ARRAY['a', NULL]);
SELECT minhash_from_values('{1,2}');
SELECT minhash_from_values(array_fill(4294967296, ARRAY[16]));

-- Aggregates.
SELECT minhash_agg(f) = minhash(array_agg(f)) FROM unnest(ARRAY['a', 'b', NULL, 'c']) f
    WHERE f IS NOT NULL;
SELECT minhash_agg(f) = minhash(ARRAY['a', 'b']) FROM unnest(ARRAY['a', NULL, 'b', 'a']) f;
SELECT minhash_agg(f, 64, 3) = minhash(ARRAY['a', 'b'], 64, 3), minhash_agg(f, 64, 3,
    'datasketch2') = minhash(ARRAY['a', 'b'], 64, 3, 'datasketch2') FROM unnest(ARRAY['a', 'b']) f;
SELECT minhash_agg(f) IS NULL FROM unnest(ARRAY[NULL]::text[]) f;
SELECT minhash_union_agg(sig) = minhash(ARRAY(SELECT 'f' || n FROM generate_series(1, 49) n))
    FROM signatures;
SELECT (minhash_union_agg(sig) OVER (ORDER BY id)) = minhash(ARRAY(SELECT 'f' || n
    FROM generate_series(1, id + 19) n)) FROM signatures WHERE id <= 3;
SELECT (minhash_agg(f) OVER (ORDER BY f)) = minhash(CASE f WHEN 'a' THEN ARRAY['a'] ELSE ARRAY['a',
    'b'] END) FROM unnest(ARRAY['a', 'b']) f;
SELECT minhash_union(a.sig, b.sig) = minhash(ARRAY(SELECT 'f' || n FROM generate_series(1, 21) n))
    FROM signatures a, signatures b WHERE a.id = 1 AND b.id = 2;
-- The arguments of a union do not change.
SELECT count(*) FROM signatures JOIN copied USING (id, sig);
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
ALTER TABLE signatures SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT minhash_union_agg(sig) FROM signatures;
SELECT minhash_union_agg(sig) = minhash(ARRAY(SELECT 'f' || n FROM generate_series(1, 49) n))
    FROM signatures;
ROLLBACK;


-- Containment is exact, of the texts themselves.
SELECT containment('the quick brown fox', 'see the quick brown fox run'),
    containment('see the quick brown fox run', 'the quick brown fox'), containment('', 'a') IS NULL;
SELECT containment('abc', 'xabx', tokens => 'char', shingle => 2);

-- Comparisons of estimates become balls, for every type of the bound and on either side.
-- The names of subqueries in PostgreSQL 17 are normalized to those in 15.
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        line = regexp_replace(line, ' \(returns \$\d\)', '');
        line = replace(line, '(InitPlan 1).col1', '$0');
        RETURN NEXT regexp_replace(line, '/[0-9a-f]{64,}', '/...', 'g');
    END LOOP;
END $$;
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) <= 0.2');
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) < 0.203125::float8');
SELECT plan('SELECT FROM signatures WHERE 0.2::real >= minhash(ARRAY[''x'']) <%> sig');
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) <= 1');
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) <= 1::bigint');
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) = 0');
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) <= ''0.2''');
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) > 0.2');
SELECT plan('SELECT FROM signatures WHERE NOT sig <%> minhash(ARRAY[''x'']) > 0.2');
SELECT plan('SELECT FROM signatures WHERE minhash_similarity(sig, minhash(ARRAY[''x''])) >= 0.8');
SELECT plan('SELECT FROM signatures WHERE 0.8 < minhash_similarity(sig, minhash(ARRAY[''x'']))');
SELECT plan('SELECT FROM signatures WHERE minhash_similarity(sig, minhash(ARRAY[''x''])) = 1');
SELECT plan('SELECT FROM signatures WHERE minhash_similarity(sig, minhash(ARRAY[''x''])) BETWEEN '
    '0.5 AND 0.8');
SELECT plan('SELECT FROM signatures a JOIN copied b ON a.sig <%> b.sig <= 0.2');
SELECT plan('SELECT FROM signatures a JOIN copied b ON minhash_similarity(a.sig, b.sig) > 0.8');
SET neardup.allow_approximate = on;
SELECT plan('SELECT FROM signatures WHERE sig <%> minhash(ARRAY[''x'']) <= 0.2');
SELECT plan('SELECT FROM signatures a, LATERAL (SELECT FROM copied b WHERE b.sig <%> (SELECT '
    'minhash(''x'')) < 0.2 LIMIT 1) c');
RESET neardup.allow_approximate;

-- The rewritten form is equivalent at every bound, on its last bit and beyond all bounds.
CREATE FUNCTION counts(a minhash_signature, bound float8) RETURNS bigint[] LANGUAGE sql AS $$
    SELECT ARRAY[
        count(*) FILTER (WHERE a <%> sig <= bound), count(*) FILTER (WHERE a <%> sig < bound),
        count(*) FILTER (WHERE a <%> sig > bound), count(*) FILTER (WHERE a <%> sig >= bound),
        count(*) FILTER (WHERE minhash_similarity(a, sig) >= bound),
        count(*) FILTER (WHERE minhash_similarity(a, sig) > bound),
        count(*) FILTER (WHERE minhash_similarity(a, sig) < bound),
        count(*) FILTER (WHERE minhash_similarity(a, sig) <= bound)]
    FROM signatures
$$;
CREATE FUNCTION plain_counts(a minhash_signature, bound float8) RETURNS bigint[] LANGUAGE sql AS $$
    SELECT ARRAY[
        count(*) FILTER (WHERE d <= bound), count(*) FILTER (WHERE d < bound),
        count(*) FILTER (WHERE d > bound), count(*) FILTER (WHERE d >= bound),
        count(*) FILTER (WHERE s >= bound), count(*) FILTER (WHERE s > bound),
        count(*) FILTER (WHERE s < bound), count(*) FILTER (WHERE s <= bound)]
    FROM (SELECT (a <%> sig)::float8 AS d, minhash_similarity(a, sig)::float8 AS s
    FROM signatures OFFSET 0) estimates
$$;
SELECT count(*), bool_and(counts(sig, bound) = plain_counts(sig, bound))
FROM signatures, LATERAL (
    SELECT n / 128.0::float8 + e FROM generate_series(-1, 129, 5) n, unnest(ARRAY[0, 1e-12, -1e-12])
    e
    UNION ALL SELECT unnest(ARRAY['NaN', 'Infinity', '-Infinity', 0.2, 0.8]::float8[])) b(bound)
WHERE id IN (1, 5, 20);
SELECT count(*) FILTER (WHERE sig ~= b), count(*) FILTER (WHERE minhash_similarity(sig, b) >= 0.8),
    count(*) FILTER (WHERE sig <%> b <= 0.2)
FROM signatures, (SELECT sig FROM signatures WHERE id = 10) q(b);
-- Without a rewrite: a precomputed distance.
SELECT d <= 0.2, d <= 1, 0 < d, 0.5 >= d FROM (SELECT (sig <%> sig) AS d FROM signatures
    WHERE id = 1 OFFSET 0) s;

-- Balls.
SELECT minhash_ball(minhash(ARRAY['x'], 16), 0.25)::text ~ '^<neardup1/16/0/[0-9a-f]{128},4>$',
    minhash_ball(minhash(ARRAY['x'], 16), -1)::text ~ ',-1>$', minhash_ball(minhash(ARRAY['x'],
    16),
    7)::text ~ ',16>$';
SELECT _neardup_approximate(minhash_ball(minhash(ARRAY['x'], 16), 0.25))::text ~
    ',4,approximate>$';
SELECT minhash_ball(minhash(ARRAY['x']), 0.25) @> minhash(ARRAY['x']),
    minhash(ARRAY['y']) <@ minhash_ball(minhash(ARRAY['x']), 0.25),
    minhash(ARRAY['x']) <@ minhash_ball(minhash(ARRAY['x']), -0.1);
SELECT minhash_ball(minhash(ARRAY['x'], 16), 0.25)::text::minhash_ball::text =
    minhash_ball(minhash(ARRAY['x'], 16),
    0.25)::text;
SELECT 'x'::minhash_ball;
SELECT _neardup_ball(minhash('x'), 0.2, 4);

SET client_min_messages = warning;
DROP SCHEMA minhash_test CASCADE;
