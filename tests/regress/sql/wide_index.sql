-- Indexes on fingerprint128 and fingerprint256 return the same rows as a scan of the table.
CREATE SCHEMA wide_index_test;
SET search_path = wide_index_test, public;
SET client_min_messages = warning;

-- A pattern with `n` bits flipped, as `seed` says; the bits drawn twice stay.
CREATE FUNCTION flipped(pattern bytea, n int, seed int) RETURNS bytea LANGUAGE plpgsql
    IMMUTABLE AS $$
DECLARE
    at int;
BEGIN
    FOR i IN 1..n LOOP
        at := abs(hashint8extended(seed * 1000 + i, 5) % (8 * length(pattern)));
        pattern := set_bit(pattern, at, 1 - get_bit(pattern, at));
    END LOOP;
    RETURN pattern;
END $$;
-- Returns `bytes` random-looking bytes.
CREATE FUNCTION pattern(seed int, bytes int) RETURNS bytea LANGUAGE sql IMMUTABLE AS
    $$SELECT decode(substr(string_agg(md5(seed || '/' || i), ''), 1, 2 * bytes), 'hex')
    FROM generate_series(1, 2) i$$;
-- Rows around 60 centres up to 45 bits away, equal rows, rows anywhere, rows of one block only, and
-- NULL.
CREATE FUNCTION rows_of(bytes int) RETURNS TABLE (id int, fp bytea) LANGUAGE sql AS $$
    SELECT i, flipped(pattern(i % 60, bytes), i / 60 % 46, i) FROM generate_series(1, 6000) i
    UNION ALL SELECT 10000 + i, pattern(1, bytes) FROM generate_series(1, 300) i
    UNION ALL SELECT 20000 + i, pattern(i, bytes) FROM generate_series(1000, 4000) i
    UNION ALL SELECT 30000 + i, set_byte(pattern(2, bytes), bytes - 1, i)
    FROM generate_series(0, 255) i
    UNION ALL SELECT 40000 + i, NULL FROM generate_series(1, 20) i $$;
CREATE TABLE d128 AS SELECT id, id % 5 AS site, fp::fingerprint128 FROM rows_of(16);
CREATE TABLE d256 AS SELECT id, id % 5 AS site, fp::fingerprint256 FROM rows_of(32);
CREATE TABLE q128 AS SELECT i AS id, i % 5 AS site, flipped(pattern(i, 16), i,
    i)::fingerprint128 AS fp FROM generate_series(0, 9) i;
CREATE TABLE q256 AS SELECT i AS id, i % 5 AS site, flipped(pattern(i, 32), i,
    i)::fingerprint256 AS fp FROM generate_series(0, 9) i;
INSERT INTO q128 SELECT 100, 0, fp FROM d128 WHERE id = 10001;
INSERT INTO q256 SELECT 100, 0, fp FROM d256 WHERE id = 10001;
VACUUM ANALYZE d128, d256, q128, q256;

-- What `<#>` says row by row, which no index answers: for each query and row at most 60 bits away.
CREATE TABLE t128 AS SELECT q.id AS query, d.id AS id, d.fp <#> q.fp AS distance,
    d.site = q.site AS same_site FROM q128 q JOIN d128 d ON d.fp <#> q.fp <= 60;
CREATE TABLE t256 AS SELECT q.id AS query, d.id AS id, d.fp <#> q.fp AS distance,
    d.site = q.site AS same_site FROM q256 q JOIN d256 d ON d.fp <#> q.fp <= 60;

-- Asks the index for each query at radii from -1 to 40 (conditions), in the order of distance
-- (with and without one), and for equal values. `wrong` counts answers that differ from the truth.
CREATE FUNCTION compare(width int, extra text DEFAULT '', step int DEFAULT 1, OUT plans text,
    OUT asked bigint, OUT hits bigint, OUT wrong bigint) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    d text := 'd' || width; q text := 'q' || width; t text := 't' || width;
    also text := CASE WHEN extra = '' THEN '' ELSE 'AND same_site' END;
    query text; line text; kind text;
BEGIN
    SET LOCAL enable_seqscan = off;
    SET LOCAL jit = off;
    FOREACH kind IN ARRAY ARRAY['index', 'bitmap', 'ordered', 'nearest', 'near', 'equal'] LOOP
        PERFORM set_config('enable_bitmapscan', (kind = 'bitmap')::text, true),
        set_config('enable_indexscan', (kind <> 'bitmap')::text, true);
        query := CASE
            WHEN kind IN ('index', 'bitmap') THEN format($q$SELECT q.id AS query, r,
            (SELECT array_agg(d.id ORDER BY d.id) FROM %1$I d WHERE d.fp <~> q.fp <= r %3$s) AS got,
                (SELECT array_agg(t.id ORDER BY t.id) FROM %4$I t WHERE t.query = q.id
                AND distance <= r %5$s) AS truth FROM %2$I q, generate_series(-1, 40, %7$s) r$q$, d,
                q, extra, t, also, CASE width WHEN 128 THEN 12 ELSE 31 END, step)
            WHEN kind = 'ordered' THEN format($q$SELECT q.id AS query, r,
            (SELECT array_agg(distance) FROM (SELECT d.fp <~> q.fp AS distance FROM %1$I d
            WHERE d.fp <~> q.fp <= r %3$s ORDER BY d.fp <~> q.fp) s) AS got,
                (SELECT array_agg(distance::hamming ORDER BY distance) FROM %4$I t
                WHERE t.query = q.id AND distance <= r %5$s) AS truth FROM %2$I q,
                generate_series(-1, 40, 4 + %7$s) r$q$, d, q, extra, t, also, CASE width WHEN 128
                THEN 12 ELSE 31 END, step)
            WHEN kind = 'nearest' THEN format($q$SELECT q.id AS query, 0 AS r,
            (SELECT array_agg(distance) FROM (SELECT d.fp <~> q.fp AS distance FROM %1$I d
            WHERE true %3$s ORDER BY d.fp <~> q.fp LIMIT 12) s) AS got,
                (SELECT (array_agg(distance::hamming ORDER BY distance))[:12] FROM %4$I t
                WHERE t.query = q.id %5$s) AS truth FROM %2$I q$q$, d, q, extra, t, also,
                CASE width WHEN 128 THEN 12 ELSE 31 END, step)
            WHEN kind = 'near' THEN format($q$SELECT q.id AS query, 0 AS r,
            (SELECT array_agg(d.id ORDER BY d.id) FROM %1$I d WHERE d.fp ~= q.fp %3$s) AS got,
                (SELECT array_agg(t.id ORDER BY t.id) FROM %4$I t WHERE t.query = q.id
                AND distance <= %6$s %5$s) AS truth FROM %2$I q$q$, d, q, extra, t, also,
                CASE width WHEN 128 THEN 12 ELSE 31 END, step)
            ELSE format($q$SELECT q.id AS query, 0 AS r, (SELECT array_agg(d.id ORDER BY d.id)
            FROM %1$I d WHERE d.fp = q.fp %3$s) AS got,
                (SELECT array_agg(t.id ORDER BY t.id) FROM %4$I t WHERE t.query = q.id
                AND distance = 0 %5$s) AS truth FROM %2$I q$q$, d, q, extra, t, also,
                CASE width WHEN 128 THEN 12 ELSE 31 END, step)
        END;
        plans := NULL;
        FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
            IF line ~ ' on d(128|256)|Index Cond|Order By' AND line !~ 'Bitmap Heap' THEN
                plans := concat_ws('; ', plans, trim(both ' ->' FROM line));
            END IF;
        END LOOP;
        plans := kind || ': ' || plans;
        EXECUTE format('SELECT count(*), sum(cardinality(got)), count(*) FILTER (WHERE got IS '
            'DISTINCT FROM "truth") FROM (%s) s',
        query) INTO asked, hits, wrong;
        RETURN NEXT;
    END LOOP;
END $$;

-- Built over existing rows
CREATE INDEX i128 ON d128 USING neardup (fp);
CREATE INDEX i256 ON d256 USING neardup (fp);
SELECT * FROM compare(128);
SELECT * FROM compare(256);
SELECT rows, null_rows FROM neardup_index_check('i128', true);
SELECT rows, null_rows FROM neardup_index_check('i256', true);
-- Every distance that an index can guarantee, with few blocks and with more, and grown by inserts
CREATE FUNCTION designs(width int, OUT distance int, OUT blocks int, OUT asked bigint,
    OUT hits bigint, OUT wrong bigint, OUT rows bigint) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    d text := 'd' || width;
BEGIN
    FOR distance, blocks IN VALUES (0, 1), (1, 2), (2, 6), (3, 4), (4, 6), (6, 8), (8, 9) LOOP
        EXECUTE format('DROP INDEX IF EXISTS i%s', width);
        IF distance % 2 = 0 THEN
            EXECUTE format('CREATE INDEX i%s ON %s USING neardup (fp) WITH (radius = %s, '
                'blocks = %s)',
            width, d, distance, blocks);
        ELSE
            EXECUTE format('CREATE TABLE copy AS SELECT * FROM %1$s; TRUNCATE %1$s; CREATE INDEX '
                'i%2$s ON %1$s USING neardup (fp) WITH (radius = %3$s, blocks = %4$s)',
            d, width, distance, blocks);
            EXECUTE format('INSERT INTO %1$s SELECT * FROM copy; DROP TABLE copy; ANALYZE %1$s', d);
        END IF;
        SELECT sum(c.asked), sum(c.hits), sum(c.wrong) INTO asked, hits, wrong
        FROM compare(width, step => 8) c;
        EXECUTE format('SELECT rows FROM neardup_index_check(''i%s'', true)', width) INTO rows;
        RETURN NEXT;
    END LOOP;
END $$;
SELECT * FROM designs(128);
SELECT * FROM designs(256);

-- After rows were deleted and inserted elsewhere
DELETE FROM d256 WHERE id % 11 = 0;
VACUUM d256;
UPDATE d256 SET fp = (SELECT fp FROM d256 WHERE id = 10001) WHERE id % 7 = 0 AND fp IS NOT NULL;
DROP TABLE t256;
CREATE TABLE t256 AS SELECT q.id AS query, d.id AS id, d.fp <#> q.fp AS distance,
    d.site = q.site AS same_site FROM q256 q JOIN d256 d ON d.fp <#> q.fp <= 60;
SELECT sum(asked) AS asked, sum(hits) AS hits, sum(wrong) AS wrong FROM compare(256, step => 4);
-- Rows without a fingerprint are last, and none is missing.
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM d128 ORDER BY fp <~> '0123456789abcdef0123456789abcdef';
SELECT count(*) = (SELECT count(*) FROM d128) AS all_rows,
    max(n) FILTER (WHERE fp IS NOT NULL) < min(n) FILTER (WHERE fp IS NULL) AS nulls_last,
    count(*) FILTER (WHERE farther) AS out_of_order
FROM (SELECT fp, row_number() OVER () AS n,
    fp <~> '0123456789abcdef0123456789abcdef' < lag(fp <~> '0123456789abcdef0123456789abcdef') OVER
    () AS farther
      FROM (SELECT fp FROM d128 ORDER BY fp <~> '0123456789abcdef0123456789abcdef') s) s;
RESET enable_seqscan;

-- With a scope
DROP INDEX i128, i256;
CREATE INDEX s128 ON d128 USING neardup (site, fp);
CREATE INDEX s256 ON d256 USING neardup (site, fp) WITH (radius = 4);
SELECT * FROM compare(128, 'AND d.site = q.site', 2);
SELECT sum(asked) AS asked, sum(hits) AS hits, sum(wrong) AS wrong
    FROM compare(256, 'AND d.site = q.site', 4);
-- Without it the index may be read whole; the answer is the same.
SELECT sum(asked) AS asked, sum(hits) AS hits, sum(wrong) AS wrong FROM compare(256, step => 4);
SELECT rows, null_rows FROM neardup_index_check('s256', true);

-- Constraints: 31 of 256 bits, 6 of 128, and any radius by balls
CREATE TABLE kept (id int, site int, fp fingerprint256, EXCLUDE USING neardup (fp WITH ~=));
INSERT INTO kept VALUES (1, 1, repeat('0', 64)::fingerprint256);
INSERT INTO kept VALUES (2, 1, ('7fffffff' || repeat('0', 56))::fingerprint256);
\echo :SQLSTATE
INSERT INTO kept VALUES (3, 1, ('ffffffff' || repeat('0', 56))::fingerprint256), (4, 1, NULL),
    (5, 1, NULL);
INSERT INTO kept SELECT id, site, fp FROM d256 ORDER BY id ON CONFLICT DO NOTHING;
SELECT count(*) > 2000 AS many, count(*) < (SELECT count(*) FROM d256) AS fewer FROM kept;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM kept a JOIN kept b ON a.fp <#> b.fp <= 31 AND a.ctid < b.ctid;
SELECT count(*) FROM d256 d WHERE fp IS NOT NULL AND NOT EXISTS (SELECT FROM kept k
    WHERE d.fp <#> k.fp <= 31);
RESET enable_indexscan;
RESET enable_bitmapscan;
CREATE TABLE kept128 (id int, site text, fp fingerprint128, EXCLUDE USING neardup (site WITH =, fp
    WITH ~=));
INSERT INTO kept128 VALUES (1, 'a', repeat('0', 32)::fingerprint128),
    (2, 'b', repeat('0', 32)::fingerprint128);
INSERT INTO kept128 VALUES (3, 'a', (repeat('0', 29) || 'fff')::fingerprint128);
\echo :SQLSTATE
INSERT INTO kept128 VALUES (4, 'a', (repeat('0', 28) || '1fff')::fingerprint128),
    (5, 'c', (repeat('0', 30) || '3f')::fingerprint128);
CREATE TABLE balls (id int, site int, fp fingerprint256, EXCLUDE USING neardup (ball(fp, 40)
    WITH ~=), EXCLUDE USING neardup (site WITH =, ball(fp, 60) WITH ~=));
INSERT INTO balls VALUES (1, 1, repeat('0', 64)::fingerprint256);
INSERT INTO balls VALUES (2, 2, ('ffffffffff' || repeat('0', 54))::fingerprint256);
\echo :SQLSTATE
INSERT INTO balls VALUES (3, 1, ('ffffffffff1' || repeat('0', 53))::fingerprint256);
\echo :SQLSTATE
INSERT INTO balls VALUES (4, 2, ('ffffffffff1' || repeat('0', 53))::fingerprint256);
SELECT id FROM balls ORDER BY id;
CREATE TABLE balls128 (fp fingerprint128, EXCLUDE USING neardup (ball(fp, 10) WITH ~=));
INSERT INTO balls128 VALUES (repeat('0', 32)::fingerprint128),
    ((repeat('0', 29) || '7ff')::fingerprint128);
INSERT INTO balls128 VALUES ((repeat('0', 29) || '3ff')::fingerprint128);
\echo :SQLSTATE

-- A plain count does not require columns that an index cannot return.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
VACUUM balls128, kept128, d256;
EXPLAIN (COSTS OFF) SELECT count(*) FROM balls128;
SELECT (SELECT count(*) FROM balls128) AS balls, (SELECT count(*) FROM kept128) AS scope,
    (SELECT count(*) FROM d256) = (SELECT count(id) FROM d256) AS same;
EXPLAIN (COSTS OFF) SELECT fp FROM kept WHERE fp <~> repeat('0', 64)::fingerprint256 <= 32
    ORDER BY fp <~> repeat('0', 64)::fingerprint256;
SELECT fp FROM kept WHERE fp <~> repeat('0', 64)::fingerprint256 <= 32 ORDER BY fp <~> repeat('0',
    64)::fingerprint256;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- The planner: conditions that use the index, and its row estimates
DROP INDEX s128, s256;
CREATE INDEX i256 ON d256 USING neardup (fp);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM d256 WHERE fp <~> repeat('0', 64)::fingerprint256 < 32;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT b.id FROM unnest(ARRAY[repeat('0', 64)::fingerprint256]) AS a (fp)
    JOIN d256 b ON a.fp <~> b.fp <= 31;
EXPLAIN (COSTS OFF) SELECT id FROM d256 WHERE fp <~> repeat('0', 64)::fingerprint256 <= 31
    ORDER BY fp <~> repeat('0', 64)::fingerprint256 LIMIT 10;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- Hashes in columns of other types, by an index on the cast
CREATE TABLE raw AS SELECT id, fp::bytea AS hash, md5(id::text)::uuid AS u, fp::bit(256) AS bits
    FROM d256;
CREATE INDEX ON raw USING neardup ((hash::fingerprint256));
CREATE INDEX ON raw USING neardup ((u::fingerprint128));
CREATE INDEX ON raw USING neardup ((bits::fingerprint256));
ANALYZE raw;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM raw
    WHERE u::fingerprint128 <~> 'c4ca4238-a0b9-2382-0dcc-509a6f75849b'::uuid::fingerprint128 <= 6;
SELECT (SELECT array_agg(id ORDER BY id) FROM raw WHERE hash::fingerprint256 <~> q.fp <= 31) = t.ids
    AS by_bytea, (SELECT array_agg(id ORDER BY id) FROM raw
    WHERE bits::fingerprint256 <~> q.fp <= 31) = t.ids AS by_bit,
       (SELECT array_agg(id) FROM raw
       WHERE u::fingerprint128 <~> md5(q.id::text)::uuid::fingerprint128 <= 6) = ARRAY[q.id] AS
       by_uuid
FROM q256 q JOIN (SELECT query, array_agg(id ORDER BY id) AS ids FROM t256 WHERE distance <= 31
    GROUP BY query) t ON t.query = q.id WHERE q.id = 1;
RESET enable_seqscan;
RESET enable_bitmapscan;
CREATE FUNCTION estimate(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP RETURN substring(line FROM 'rows=(\d+)'); END LOOP;
END $$;
CREATE TABLE even AS SELECT i AS id, pattern(i, 32)::fingerprint256 AS fp
    FROM generate_series(1, 20000) i;
ANALYZE even;
-- 17 % of uniform fingerprints are within 120 bits of any point and half within 127, up to the
-- error of a sample. Almost none are within 64, which is everything for 64 bits.
SELECT r, abs(estimate(format('SELECT FROM even WHERE fp <~> repeat(''0'', 64)::fingerprint256 '
    '<= %s',
    r)) - (SELECT count(*) FROM even WHERE fp <#> repeat('0', 64)::fingerprint256 <= r)) < 3000 AS
    close
FROM unnest(ARRAY[31, 64, 120, 127, 255, 256]) r;
-- The planner assumes the radius of ~= for a radius that is a parameter.
SELECT estimate('SELECT FROM d256 a, q256 b WHERE a.fp <~> b.fp <= b.site') =
    estimate('SELECT FROM d256 a, q256 b WHERE a.fp ~= b.fp') AS usual_radius;

DROP SCHEMA wide_index_test CASCADE;
