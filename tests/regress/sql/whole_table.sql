-- Jobs over a whole table: distance or similarity, filters, single rows, and refused work.
CREATE SCHEMA whole_table_test;
SET search_path = whole_table_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never

-- 1, 2 and 4 are a chain: 2 bits each. 5 and 6 are equal. 7 is alone. 8 has none.
CREATE TABLE prints (id int PRIMARY KEY, site bigint, day date, fp fingerprint,
    wide fingerprint128);
INSERT INTO prints SELECT id, id % 2, date '2026-01-01' + id, fp,
    (fp::text || fp::text)::fingerprint128
FROM (VALUES (1, '0000000000000000'::fingerprint), (2, '0000000000000003'),
    (4, '000000000000000f'), (5, '00ff000000000000'), (6, '00ff000000000000'),
    (7, 'ffffffff00000000'), (8, NULL)) v (id, fp);
CREATE INDEX prints_fp ON prints USING neardup (fp);
CREATE INDEX prints_wide ON prints USING neardup (wide);
CREATE INDEX prints_site ON prints USING neardup (site, fp);
-- Sets of ten words: 1 and 2 share nine of eleven, 3 and 4 share all, 5 shares nothing.
CREATE TABLE signed (id int PRIMARY KEY, sig minhash_signature);
INSERT INTO signed SELECT id, minhash(ARRAY(SELECT 'w' || n FROM generate_series(a, a + 9) n))
FROM (VALUES (1, 0), (2, 1), (3, 100), (4, 100), (5, 1000)) v (id, a);
INSERT INTO signed VALUES (6, NULL);
CREATE INDEX signed_sig ON signed USING neardup (sig);

CREATE FUNCTION ids(members tid[], t regclass) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE found int[];
BEGIN
    EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %s WHERE ctid = ANY ($1)', t)
    INTO found USING members;
    RETURN found;
END $$;

-- A similarity instead of a radius: for signatures, and for fingerprints 64 and 128 bits wide.
SELECT ids(ARRAY[a, b], 'signed') AS pair, distance, similarity
    FROM neardup_pairs('signed', similarity => 0.6) ORDER BY 1;
SELECT count(*) FROM neardup_pairs('signed', similarity => 1);
SELECT ids(array_agg(member), 'signed') FROM neardup_clusters('signed', similarity => 0.6)
    GROUP BY representative ORDER BY 1;
SELECT count(*), max(distance), min(similarity)
    FROM neardup_pairs('prints_fp', similarity => 0.93);
SELECT count(*), max(distance), min(similarity)
    FROM neardup_pairs('prints_wide', similarity => 0.93);
SELECT count(*), max(distance) FROM neardup_pairs('prints_wide', similarity => 0.95);
SELECT count(*) FROM neardup_clusters('prints_fp', similarity => 1.0);
-- One of the two, and in its range.
SELECT * FROM neardup_pairs('signed', 3, similarity => 0.8);
SELECT * FROM neardup_pairs('signed');
SELECT * FROM neardup_clusters('signed', NULL::int);
SELECT * FROM neardup_clusters('prints_fp', 3, similarity => 0.8);
SELECT * FROM neardup_clusters('signed', similarity => 80);
SELECT * FROM neardup_clusters('signed', similarity => -0.1);
SELECT * FROM neardup_pairs('signed', similarity => 'NaN');
SELECT * FROM neardup_pairs('signed', -1);
SELECT * FROM neardup_pairs('signed', 3);
SELECT * FROM neardup_clusters('signed', radius => 0);
SELECT * FROM neardup_distance_histogram('signed', radius => 3, sample_rows => NULL);
SELECT * FROM neardup_distance_histogram('signed', 3, similarity => 0.8);
-- The type of a number has no effect: a radius in any numeric type is an integer.
SELECT count(*) FROM neardup_clusters('prints_fp', 3);
SELECT count(*) FROM neardup_clusters('prints_fp', 3::smallint);
SELECT count(*) FROM neardup_clusters('prints_fp', '3');
SELECT count(*) FROM neardup_clusters('prints_fp', 3::bigint);
SELECT count(*) FROM neardup_clusters('prints_fp', 3.0);
SELECT count(*) FROM neardup_clusters('signed', 0.3);
SELECT count(*) FROM neardup_pairs('signed', similarity => 1::smallint);
PREPARE untyped AS SELECT count(*) FROM neardup_clusters($1, $2);
EXECUTE untyped('prints_fp', 2);
EXECUTE untyped('signed', 2);
PREPARE named AS SELECT count(*) FROM neardup_clusters($1, similarity => $2, keep => $3);
EXECUTE named('signed', 0.6, 'id');

-- The rows that meet a condition.
SELECT ids(ARRAY[a, b], 'prints') FROM neardup_pairs('prints_fp', 2, filter => 'id <> 2');
SELECT ids(ARRAY[a, b], 'prints') FROM neardup_pairs('prints_fp', 4,
    filter => 'day >= ''2026-01-02'' AND day < date ''2026-01-06'' -- a comment') ORDER BY 1;
-- Rows that connect others must meet the filter, too. A row equal to an excluded one can connect.
SELECT ids(array_agg(member), 'prints')
    FROM neardup_clusters('prints_fp', 2, method => 'connected') GROUP BY representative ORDER BY 1;
SELECT ids(array_agg(member), 'prints')
    FROM neardup_clusters('prints_fp', 2, method => 'connected', filter => 'id NOT IN (2, 5)')
    GROUP BY representative ORDER BY 1;
SELECT count(*) FROM neardup_clusters('prints_site', 4, filter => 'site = 0');
SELECT count(*) FROM neardup_pairs('signed', similarity => 0.6, filter => 'id <> 3');
SELECT count(*) FROM neardup_pairs('signed', similarity => 0, filter => 'id <> 3');
SELECT ids(array_agg(member), 'signed')
    FROM neardup_clusters('signed', similarity => 0.6, filter => 'id <> 3')
    GROUP BY representative ORDER BY 1;
SELECT count(*) FROM neardup_clusters('signed', similarity => 0.6, filter => 'NULL');
SELECT count(*) FROM neardup_pairs('signed', similarity => 0.6, filter => 'false');
-- Rows moved within their page, and new rows.
UPDATE prints SET day = day + 100 WHERE id IN (1, 5);
UPDATE prints SET day = day + 100 WHERE id IN (1, 5);
INSERT INTO prints VALUES (9, 1, '2026-12-01', '00ff000000000001');
SELECT ids(array_agg(member), 'prints') FROM neardup_clusters('prints_fp', 2,
    filter => 'day > ''2026-06-01''') GROUP BY representative ORDER BY 1;
SELECT ids(ARRAY[a, b], 'prints') FROM neardup_pairs('prints_fp', 1,
    filter => 'day > ''2026-06-01''');
-- The filter is a condition with the caller's rights, and nothing else.
SELECT * FROM neardup_clusters('prints_fp', 2, filter => 'id > 1 ORDER BY id');
SELECT * FROM neardup_clusters('prints_fp', 2, filter => 'true) OR (true');
SELECT * FROM neardup_clusters('prints_fp', 2, filter => 'true; DROP TABLE prints');
SELECT * FROM neardup_clusters('prints_fp', 2, filter => 'true LIMIT 1');
SELECT * FROM neardup_pairs('prints_fp', 2, filter => '');
SELECT * FROM neardup_pairs('prints_fp', 2, filter => 'id +');
SELECT * FROM neardup_pairs('prints_fp', 2, filter => 'ids > 1');
SELECT * FROM neardup_pairs('prints_fp', 2, filter => 'id');
SELECT * FROM neardup_pairs('prints_fp', 2, filter => 'count(*) > 1');
SELECT * FROM neardup_pairs('prints_fp', 2, filter => 'id > 1 ORDER BY 1');
SELECT * FROM neardup_clusters('prints_fp', 2, keep => 'id) WHERE (true');
CREATE ROLE neardup_some;
GRANT USAGE ON SCHEMA whole_table_test TO neardup_some;
GRANT SELECT ON prints TO neardup_some;
SET ROLE neardup_some;
SELECT count(*) FROM neardup_pairs('prints_fp', 2, filter => 'id < 5');
SELECT count(*) FROM neardup_pairs('prints_fp', 2, filter => 'id IN (SELECT id FROM signed)');
SELECT count(*) FROM neardup_clusters('prints_fp', 2, filter => 'id IN (SELECT id FROM signed)');
RESET ROLE;

-- Rows without near rows, each as its own cluster.
SELECT ids(array_agg(member), 'prints'), min(size), max(distance)
    FROM neardup_clusters('prints_fp', 2, keep => 'id', singletons => true)
    GROUP BY representative ORDER BY 1;
SELECT ids(array_agg(member), 'prints'), min(size)
    FROM neardup_clusters('prints_fp', 2, method => 'connected', singletons => true)
    GROUP BY representative ORDER BY 1;
SELECT ids(array_agg(member), 'prints'), min(size)
    FROM neardup_clusters('prints_site', 2, singletons => true, filter => 'id <> 4')
    GROUP BY representative ORDER BY 1;
SELECT ids(array_agg(member), 'signed'), min(size), bool_and(member = representative)
    FROM neardup_clusters('signed', similarity => 0.6, singletons => true, filter => 'id <> 4')
    GROUP BY representative ORDER BY 1;
SELECT count(*), sum(size)
    FROM neardup_clusters('signed', similarity => 1, method => 'connected', singletons => true);

-- Work beyond the guarantee of an index is refused if it is large, and done if it is little.
SELECT count(*) FROM neardup_clusters('signed', similarity => 0.2);
CREATE TABLE many (id int, sig minhash_signature, fp fingerprint);
INSERT INTO many SELECT i, minhash(ARRAY[i::text]),
    ('x' || left(md5(i::text), 16))::bit(64)::bigint::fingerprint FROM generate_series(1, 7000) i;
CREATE INDEX many_sig ON many USING neardup (sig);
SELECT * FROM neardup_clusters('many', similarity => 0.2);
SELECT * FROM neardup_clusters('many', similarity => 0.2);
SELECT (neardup_pairs('many', similarity => 0.2, column_name => 'sig')).a;
-- A mistake in an expression is found first.
SELECT * FROM neardup_clusters('many', similarity => 0.2, keep => 'identity');
SELECT * FROM neardup_clusters('many', similarity => 0.2, keep => 'id', filter => 'identity = 1');
SELECT (neardup_pairs('many', similarity => 0.2, filter => 'identity = 1')).a;
-- A few rows are little work, and a caller can request large work.
SELECT count(*) FROM neardup_clusters('many', similarity => 0.2, filter => 'id <= 100');
SET statement_timeout = '100ms';
SELECT count(*)
    FROM (SELECT neardup_pairs('many', similarity => 0.2, exhaustive => true) OFFSET 0) p;
SELECT count(*) FROM neardup_clusters('many', similarity => 0.2, exhaustive => true);
RESET statement_timeout;
-- Indexes with another length, with a scope, and of some rows.
CREATE TABLE "Other" (id int, "Site" int, sig minhash_signature);
INSERT INTO "Other" SELECT i, 0, minhash(ARRAY[i::text], 64) FROM generate_series(1, 7000) i;
CREATE INDEX ON "Other" USING neardup ("Site", sig) WITH (hashes = 64, similarity = 0.9)
    WHERE id > 0;
SELECT * FROM neardup_clusters('"Other_Site_sig_idx"', similarity => 0.1);
DELETE FROM "Other" WHERE id % 10 <> 0;
VACUUM "Other";
SELECT count(*) FROM neardup_clusters('"Other_Site_sig_idx"', similarity => 0.1);
-- Fingerprints.
INSERT INTO many SELECT i, NULL, ('x' || left(md5(i::text), 16))::bit(64)::bigint::fingerprint
    FROM generate_series(7001, 30000) i;
CREATE INDEX many_fp ON many USING neardup (fp);
SELECT count(*) FROM neardup_clusters('many', 8);
SELECT * FROM neardup_clusters('many', 32);
SELECT (neardup_pairs('many', 32)).a;
SELECT count(*) FROM (SELECT neardup_pairs('many', 32, exhaustive => true) LIMIT 1) p;

-- Number of pairs of signatures at each distance, equal to a join's, in steps of 0.02.
CREATE TABLE texts (id int, site int, sig minhash_signature);
INSERT INTO texts SELECT i, i % 2, minhash(ARRAY(SELECT i / 12 || 'w' || n
    FROM generate_series(i % 4, i % 4 + 20) n)) FROM generate_series(1, 300) i;
CREATE INDEX texts_sig ON texts USING neardup (sig);
CREATE INDEX texts_site ON texts USING neardup (site, sig);
DELETE FROM texts WHERE id % 17 = 0;
UPDATE texts SET id = -id WHERE id % 13 = 0;
CREATE FUNCTION wrong(index regclass, bound float8, sample int, is_distinct boolean DEFAULT false)
    RETURNS TABLE (lines bigint, total numeric, wrong bigint) LANGUAGE sql AS $$
    WITH found AS (SELECT similarity, pairs
            FROM neardup_distance_histogram(index, similarity => bound, sample_rows => sample,
                distinct_values => is_distinct)),
        rows AS (SELECT min(id) AS id, CASE WHEN index = 'texts_site'::regclass THEN site END AS s,
            sig FROM texts GROUP BY sig, 2, CASE WHEN is_distinct THEN 0 ELSE id END),
        joined AS (SELECT floor(round(minhash_similarity(a.sig, b.sig)::numeric, 7) * 50) / 50
                AS similarity
            FROM rows a JOIN rows b ON a.id < b.id AND a.s IS NOT DISTINCT FROM b.s
            WHERE minhash_similarity(a.sig, b.sig) >= bound),
        counted AS (SELECT similarity::float8, count(*) FROM joined GROUP BY 1)
    SELECT count(*), sum(pairs), count(*) FILTER (WHERE pairs <> coalesce(c.count, 0))
    FROM found f LEFT JOIN counted c ON abs(c.similarity - f.similarity) < 0.001
$$;
SELECT * FROM wrong('texts_sig', 0.5, 1000);
SELECT * FROM wrong('texts_sig', 0.5, 1000, true);
SELECT * FROM wrong('texts_site', 0.67, 1000);
SELECT * FROM wrong('texts_site', 0.67, 1000, true);
SELECT * FROM wrong('texts_sig', 0.8, NULL);
SELECT * FROM wrong('texts_sig', 0.5, NULL, true);
SELECT * FROM wrong('texts_sig', 0, 1000);
SELECT similarity, distance, pairs, bar, cardinality(a) AS shown
    FROM neardup_distance_histogram('texts_sig', similarity => 0.96) ORDER BY 1 DESC;
-- Of a table, its index is taken.
SELECT count(*), sum(pairs) FROM neardup_distance_histogram('signed', similarity => 0.5);
SELECT * FROM neardup_distance_histogram('signed', similarity => 2.5);
-- Without a bound: signatures down to a similarity of 0.5, fingerprints up to 16 bits.
SELECT count(*), min(similarity), max(distance) FROM neardup_distance_histogram('signed_sig');
SELECT count(*), min(similarity), max(distance) FROM neardup_distance_histogram('signed');
SELECT count(*), min(similarity), max(distance) FROM neardup_distance_histogram('prints_fp');
SELECT count(*), min(similarity), max(distance) FROM neardup_distance_histogram('prints',
    column_name => 'fp');
SELECT count(*) FROM neardup_distance_histogram('many', similarity => 0.1, sample_rows => NULL,
    column_name => 'sig');
-- One of each run of equal fingerprints, by the column and by the index, by a sample or all.
SELECT array_agg(pairs ORDER BY distance) FROM neardup_distance_histogram('prints', 5,
    column_name => 'fp');
SELECT array_agg(pairs ORDER BY distance) FROM neardup_distance_histogram('prints', 5,
    column_name => 'fp', distinct_values => true);
SELECT array_agg(pairs ORDER BY distance) FROM neardup_distance_histogram('prints_fp', 5,
    distinct_values => true);
SELECT array_agg(pairs ORDER BY distance)
    FROM neardup_distance_histogram('prints_fp', 5, sample_rows => NULL, distinct_values => true);
DELETE FROM prints WHERE id = 5;
SELECT array_agg(pairs ORDER BY distance)
    FROM neardup_distance_histogram('prints_fp', 5, sample_rows => NULL, distinct_values => true);
SELECT array_agg(pairs ORDER BY distance), min(similarity)
    FROM neardup_distance_histogram('prints_fp', similarity => 0.84);

-- A similarity is known for fingerprints made by minhash64 or minhash128, undefined for simhash and
-- bigint, and for others what the caller says.
CREATE TABLE made (id int PRIMARY KEY, body text, plain fingerprint, hash bigint,
    mh fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED,
    mh128 fingerprint128 GENERATED ALWAYS AS (minhash128(body, shingle => 2)) STORED,
    sh fingerprint GENERATED ALWAYS AS (simhash(body)) STORED,
    sh128 fingerprint128 GENERATED ALWAYS AS (simhash128(body)) STORED,
    mhb bigint GENERATED ALWAYS AS (minhash64(body)::bigint) STORED,
    shb bigint GENERATED ALWAYS AS (simhash(body)::bigint) STORED);
INSERT INTO made (id, body, plain, hash)
    SELECT n, 'the same text', '0000000000000001', 7 FROM generate_series(1, 2) n;
CREATE INDEX made_plain ON made USING neardup (plain);
CREATE INDEX made_hash ON made USING neardup (hash bigint_hamming_ops);
CREATE INDEX made_mh ON made USING neardup (mh);
CREATE INDEX made_mh128 ON made USING neardup (mh128);
CREATE INDEX made_sh ON made USING neardup (sh);
CREATE INDEX made_sh128 ON made USING neardup (sh128);
CREATE INDEX made_mhb ON made USING neardup (mhb bigint_hamming_ops);
CREATE INDEX made_shb ON made USING neardup (shb bigint_hamming_ops);
CREATE INDEX made_mh_ball ON made USING neardup (ball(mh, 3));
CREATE INDEX made_sh_ball ON made USING neardup (ball(sh, 3));
CREATE INDEX made_hash_ball ON made USING neardup (ball(hash, 3));
CREATE INDEX made_mh_expression ON made USING neardup (id, minhash64(body || 'x'));
CREATE INDEX made_sh_expression ON made USING neardup (simhash(body || 'x'));
\set VERBOSITY terse
CREATE FUNCTION by_similarity(index regclass) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT format('%s, %s', p.distance, p.similarity)
        FROM neardup_pairs(index, similarity => 0.9) p);
EXCEPTION WHEN invalid_parameter_value THEN RETURN sqlerrm;
END $$;
SELECT indexrelid::regclass AS index, p.distance, p.similarity, by_similarity(indexrelid)
    FROM pg_index LEFT JOIN LATERAL neardup_pairs(indexrelid, radius => 3) p ON true
    WHERE indrelid = 'made'::regclass AND NOT indisprimary ORDER BY indexrelid;
\set VERBOSITY default
SELECT * FROM neardup_clusters('made', similarity => 0.9, column_name => 'sh');
SELECT * FROM neardup_distance_histogram('made', similarity => 0.9, column_name => 'hash');
SELECT c.distance, c.similarity, c.size FROM neardup_clusters('made_mh', radius => 3) c;
SELECT h.distance, h.similarity, h.pairs FROM neardup_distance_histogram('made', radius => 2,
    column_name => 'mh') h;
SELECT h.distance, h.similarity, h.pairs FROM neardup_distance_histogram('made_sh', radius => 1) h;
SELECT k.* FROM neardup_pairs_by_key(0, 'made_mh', similarity => 0.9) k;
SELECT k.* FROM neardup_clusters_by_key(0, 'made_sh', radius => 1) k;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA whole_table_test CASCADE;
DROP ROLE neardup_some;
