-- Keys that near-duplicates share, for joins by equality.
CREATE SCHEMA shared_keys_test;
SET search_path = shared_keys_test, public;
-- Stored on many machines: the keys never change.
SELECT neardup_keys('0123456789abcdef'::fingerprint, 3);
SELECT neardup_keys(81985529216486895, 3) = neardup_keys('0123456789abcdef'::fingerprint, 3)
    AS same;
SELECT neardup_keys(repeat('0123456789abcdef', 2)::fingerprint128, 6);
SELECT cardinality(neardup_keys(repeat('0123456789abcdef', 4)::fingerprint256, 15));
SELECT (minhash_keys(minhash(ARRAY['a', 'b', 'c'], hashes => 16), 0.8));
-- Width and distance determine the number of keys.
SELECT distance, cardinality(neardup_keys('0123456789abcdef'::fingerprint, distance)) AS keys
    FROM generate_series(0, 8) AS distance;
SELECT blocks, cardinality(neardup_keys('0123456789abcdef'::fingerprint, 3, blocks)) AS keys
    FROM generate_series(4, 8) AS blocks;
SELECT similarity, cardinality(minhash_keys(minhash('{a}'::text[]), similarity)) AS keys
    FROM unnest('{1, 0.9, 0.8, 0.7, 0.5}'::float8[]) AS similarity;

-- Folded to a constant.
EXPLAIN (VERBOSE, COSTS OFF) SELECT neardup_keys('0123456789abcdef'::fingerprint, 0);
-- NULL in, NULL out.
SELECT neardup_keys(NULL::fingerprint, 3) IS NULL AND neardup_keys(1::bigint, NULL) IS NULL
    AND neardup_keys(1::bigint, 3, NULL) IS NULL AND neardup_meet(1, 1::bigint, NULL, 3) IS NULL
    AS nulls;

-- Values at distances 0 to 5 of each type: near ones meet in exactly one of their keys.
CREATE TABLE near AS SELECT n, fp, (fp # bits)::bigint AS other, bits FROM (
    SELECT n, hashint8extended(n, 1) AS fp,
        (SELECT bit_or(1::bigint << (hashint8extended(n, 7 + i) & 63)::int)
            FROM generate_series(1, n % 6) AS i) AS flipped FROM generate_series(1, 600) AS n) s,
    LATERAL (SELECT coalesce(flipped, 0) AS bits) b;
CREATE FUNCTION wide(x bigint) RETURNS fingerprint128 LANGUAGE sql IMMUTABLE
    RETURN (int8send(x & 71777214294589695) || int8send(x & ~71777214294589695))::fingerprint128;
CREATE FUNCTION widest(x bigint) RETURNS fingerprint256 LANGUAGE sql IMMUTABLE
    RETURN (int8send(x) || int8send(5) || int8send(6) || int8send(7))::fingerprint256;
WITH met AS (
    SELECT n, (fp <~> other)::int <= 3 AS is_near,
        (SELECT count(*) FROM unnest(neardup_keys(fp, 3)) AS key
            WHERE neardup_meet(key, fp, other, 3)) AS bigints,
        (SELECT count(*) FROM unnest(neardup_keys(fp::fingerprint, 3, 6)) AS key
            WHERE neardup_meet(key, other::fingerprint, fp::fingerprint, 3, 6)) AS fingerprints,
        (SELECT count(*) FROM unnest(neardup_keys(wide(fp), 3)) AS key
            WHERE neardup_meet(key, wide(fp), wide(other), 3)) AS of_128,
        (SELECT count(*) FROM unnest(neardup_keys(widest(other), 3)) AS key
            WHERE neardup_meet(key, widest(fp), widest(other), 3)) AS of_256
    FROM near)
SELECT is_near, bigints, fingerprints, of_128, of_256, count(*) > 100 AS many FROM met
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 1;
-- Signatures.
WITH texts AS (
    SELECT n, minhash((SELECT array_agg('w' || i) FROM generate_series(1, 100) AS i)) AS a,
        minhash((SELECT array_agg('w' || i) FROM generate_series(1 + n, 100) AS i)) AS b
    FROM generate_series(0, 40) AS n)
SELECT minhash_similarity(a, b) >= 0.8 AS is_near, met, met_by_bands, count(*) > 5 AS many
    FROM texts,
    LATERAL (SELECT count(*) AS met FROM unnest(minhash_keys(a, 0.8)) AS key
        WHERE minhash_meet(key, a, b, 0.8)) m,
    LATERAL (SELECT count(*) AS met_by_bands FROM unnest(minhash_keys(b, 0.8, 26)) AS key
        WHERE minhash_meet(key, a, b, 0.8, 26)) s
    GROUP BY 1, 2, 3 ORDER BY 1;
-- Incomparable signatures share no key, and the result for them is NULL.
SELECT minhash_keys(minhash('{a}'::text[]), 0.8)
        && minhash_keys(minhash('{a}'::text[], seed => 1), 0.8)
    AS shared,
    minhash_meet(1, minhash('{a}'::text[]), minhash('{a}'::text[], seed => 1), 0.8) AS met;

-- Keys of other parameters are rejected for these values: they would silently miss pairs.
SELECT neardup_meet(k, 5::bigint, 5::bigint, 3) FROM unnest(neardup_keys(5::bigint, 3, 5)) AS k;
SELECT neardup_meet(k, 5::bigint, 5::bigint, 2, 4) FROM unnest(neardup_keys(5::bigint, 3)) AS k;
SELECT neardup_meet(k, wide(5), wide(5), 3, 4) FROM unnest(neardup_keys(5::bigint, 3)) AS k;
SELECT neardup_meet(-1, 5::bigint, 5::bigint, 3);
SELECT minhash_meet(k, s, s, 0.8) FROM minhash('{a}'::text[]) AS s,
    unnest(minhash_keys(s, 0.8, 26)) AS k;
-- The same for text, as drivers send it.
SELECT neardup_keys('0123456789abcdef', 3) = neardup_keys('0123456789abcdef'::fingerprint, 3)
    AS keys, neardup_keys(repeat('0', 32)::varchar, 3, 5)
    = neardup_keys(repeat('0', 32)::fingerprint128, 3, 5) AS wide,
    neardup_keys(repeat('0', 64), 3) = neardup_keys(repeat('0', 64)::fingerprint256, 3)
    AS widest;
SELECT neardup_keys('7', 3);

-- Impossible parameters.
SELECT neardup_keys(1::bigint, -1);
SELECT neardup_keys(1::bigint, 9);
SELECT neardup_keys(wide(1), 17);
SELECT neardup_keys(1::bigint, 3, 3);
SELECT neardup_keys(1::bigint, 3, -4);
SELECT neardup_keys(1::bigint, 0, 65);
SELECT neardup_keys(1::bigint, 3, 9);
SELECT neardup_meet(1, 1::bigint, 1::bigint, 64);
SELECT minhash_keys(minhash('{a}'::text[]), 0);
SELECT minhash_keys(minhash('{a}'::text[]), 'NaN');
SELECT minhash_keys(minhash('{a}'::text[]), 1.1);
SELECT minhash_keys(minhash('{a}'::text[]), 0.8, 25);
SELECT minhash_keys(minhash('{a}'::text[]), 0.8, 129);
SELECT minhash_keys(minhash('{a}'::text[], hashes => 1024), 0.5);
SELECT minhash_meet(1, minhash('{a}'::text[]), minhash('{a}'::text[]), 2);

-- Approximate keys, of any number and length. NULL, untyped text, and impossible numbers.
SELECT neardup_band_keys('0123456789abcdef'::fingerprint, 2, 16);
SELECT neardup_band_keys(81985529216486895, 20, 24)
    = neardup_band_keys('0123456789abcdef', 20, 24) AS bigint,
    (neardup_band_keys('0123456789abcdef', 20, 24))[:10]
    = neardup_band_keys('0123456789abcdef', 10, 24) AS first_keys,
    neardup_band_keys(repeat('0', 32), 5, 30)
    = neardup_band_keys(repeat('0', 32)::fingerprint128, 5, 30) AS wide,
    neardup_band_keys(repeat('0', 64), 5, 30)
    = neardup_band_keys(repeat('0', 64)::fingerprint256, 5, 30) AS widest;
SELECT neardup_band_keys(minhash(ARRAY['a', 'b', 'c'], hashes => 16), bands => 2, rows => 8);
SELECT neardup_band_keys(NULL::fingerprint, 4, 16) IS NULL
    AND neardup_band_keys(1::bigint, NULL, 16) IS NULL
    AND neardup_band_keys(minhash(NULL::text[]), 4, 16) IS NULL AS nulls;
SELECT neardup_band_keys(minhash('{a}'::text[]), 16, 8)
        && neardup_band_keys(minhash('{a}'::text[], seed => 1), 16, 8) AS other_seed,
    neardup_band_keys(minhash('{a}'::text[]), 16, 8)
        && neardup_band_keys(minhash('{a}'::text[]), 16, 7) AS other_rows;
SELECT neardup_band_keys(1::bigint, 0, 16);
SELECT neardup_band_keys(1::bigint, 65, 16);
SELECT neardup_band_keys(wide(1), 4, -1);
SELECT neardup_band_keys(wide(1), 4, 129);
SELECT neardup_band_keys('7', 4, 16);
SELECT neardup_band_keys(minhash('{a}'::text[]), 129, 1);
SELECT neardup_band_keys(minhash('{a}'::text[]), 17, 8);
SELECT neardup_band_keys(minhash('{a}'::text[]), 1, 65);
SELECT neardup_meet(k, 5::bigint, 5::bigint, 3)
    FROM unnest(neardup_band_keys(5::bigint, 4, 16)) AS k;

-- Settings on which fingerprints depend.
SELECT neardup_expert_settings_digest();
DROP SCHEMA shared_keys_test CASCADE;
