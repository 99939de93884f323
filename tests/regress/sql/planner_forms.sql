-- The forms of comparisons of distances: which use an index, and which do not. Shows conditions
-- only: the rest of a plan differs by server version.
CREATE SCHEMA forms_test;
SET search_path = forms_test, public;
CREATE FUNCTION conditions(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ '(Cond|Filter|Order By|Sort Key):' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
CREATE TABLE d (id bigint, fp fingerprint, h bigint, r4 int4, r8 int8, x4 float4, x8 float8);
CREATE TABLE e (LIKE d);
CREATE INDEX d_fp ON d USING neardup (fp);
CREATE INDEX d_h ON d USING neardup (h bigint_hamming_ops);
CREATE INDEX e_fp ON e USING neardup (fp);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
\t on
\pset format unaligned

\echo -- Floating-point radii are rounded down
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 3.9::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < 3.9::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < 4::float8$$);
SELECT conditions($$SELECT FROM d WHERE 3.5::float4 >= fp <~> '0123456789abcdef'$$);
SELECT conditions($$SELECT FROM d WHERE 4::float4 > h <~> 5$$);
SELECT conditions($$SELECT FROM d WHERE NOT fp <~> '0123456789abcdef' > 3.5::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 'NaN'::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' < 'Infinity'::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= '-Infinity'::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 1e300::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= -1e300::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= -0.5::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef'
    BETWEEN 0.5::float8 AND 3.5::float8$$);
SELECT conditions('SELECT e.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp <~> e.fp <= d.x4');
SELECT conditions('SELECT e.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp <~> e.fp < d.x8');

\echo -- Equal distances
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 2$$);
SELECT conditions($$SELECT FROM d WHERE 2::bigint = h <~> 5$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 2::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 2.5::float8$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = -1$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 65$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 0::float4$$);
SELECT conditions('SELECT e.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON d.fp <~> e.fp = 2');
SELECT conditions('SELECT e.id FROM (SELECT * FROM d OFFSET 0) d JOIN e ON e.fp <~> d.fp = 2');
\echo -- Equal to a column: an operator that tables can be joined by
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT conditions($$SELECT e.id FROM d JOIN e ON d.fp <~> '0123456789abcdef' = e.r4$$);
RESET enable_nestloop;
RESET enable_mergejoin;

\echo -- Rows without a fingerprint
SELECT conditions('SELECT FROM d WHERE fp IS NULL');
SELECT conditions('SELECT FROM d WHERE h IS NULL');
SELECT conditions($$SELECT id FROM d WHERE fp IS NOT NULL
    ORDER BY fp <~> '0123456789abcdef' LIMIT 3$$);
SET enable_bitmapscan = on;
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 3 OR fp IS NULL$$);
SET enable_bitmapscan = off;

\echo -- bigint against shorter integers
SELECT conditions('SELECT FROM d WHERE h <~> 5 <= 3');
SELECT conditions('SELECT FROM d WHERE 5::smallint <~> h <= 3');
SELECT conditions('SELECT FROM d WHERE h ~= 5');
SELECT conditions('SELECT FROM d WHERE h <@ ball(5, 3)');
SELECT conditions('SELECT FROM d WHERE h = 5');
SELECT conditions('SELECT FROM d WHERE (-5)::smallint = h');
SELECT conditions('SELECT id FROM d ORDER BY h <~> 5 LIMIT 3');

\echo -- Prepared statements with a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE by_float8(float8) AS SELECT FROM d WHERE fp <~> '0123456789abcdef' <= $1;
SELECT conditions('EXECUTE by_float8(3.5)');
PREPARE by_float4(fingerprint, float4) AS SELECT FROM d WHERE $2 > $1 <~> fp;
SELECT conditions($$EXECUTE by_float4('0123456789abcdef', 3.5)$$);
PREPARE equal_int(int) AS SELECT FROM d WHERE fp <~> '0123456789abcdef' = $1;
SELECT conditions('EXECUTE equal_int(2)');
PREPARE equal_float(float8) AS SELECT FROM d WHERE fp <~> '0123456789abcdef' = $1;
SELECT conditions('EXECUTE equal_float(2)');
PREPARE by_int4(int4) AS SELECT FROM d WHERE h <~> $1 <= 3;
SELECT conditions('EXECUTE by_int4(5)');
RESET plan_cache_mode;

\echo -- Forms of operators of the server alone
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 2.5$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 2.99999999999999999999999$$);
SELECT conditions($$SELECT FROM d WHERE 4.0 > fp <~> '0123456789abcdef'$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= 'NaN'::numeric$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= -1e300$$);
SELECT conditions($$SELECT FROM d WHERE h <~> 5 < 1e300$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 2.0$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = 2.5$$);
SELECT conditions($$SELECT FROM d WHERE (fp <~> '0123456789abcdef')::int <= 3$$);
SELECT conditions($$SELECT FROM d WHERE (fp <~> '0123456789abcdef')::bigint < 3$$);
SELECT conditions($$SELECT FROM d WHERE (h <~> 5)::numeric <= 3.5$$);
SELECT conditions($$SELECT FROM d WHERE (h <~> 5)::float8 <= 3.5$$);
SELECT conditions($$SELECT FROM d WHERE fp <#> '0123456789abcdef' <= 3$$);
SELECT conditions($$SELECT FROM d WHERE (fp <~> '0123456789abcdef') + 1 <= 4$$);
SELECT conditions($$SELECT FROM d WHERE (fp <~> '0123456789abcdef') - 1 < 3$$);
SELECT conditions($$SELECT FROM d WHERE 64 - (fp <~> '0123456789abcdef') >= 61$$);
SELECT conditions($$SELECT FROM d WHERE coalesce(fp <~> '0123456789abcdef', 64) <= 3$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' IN (0, 1, 2, 3)$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' = ANY ('{2}'::bigint[])$$);
SET enable_bitmapscan = on;
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' IN (0, 1, 2, 3, 5)$$);
SET enable_bitmapscan = off;
PREPARE by_numeric(numeric) AS SELECT FROM d WHERE fp <~> '0123456789abcdef' <= $1;
SET plan_cache_mode = force_generic_plan;
SELECT conditions('EXECUTE by_numeric(2.5)');
RESET plan_cache_mode;
\echo -- Without an index: NULL counts as false above, and not here
SET enable_seqscan = on;
SELECT conditions($$SELECT FROM d WHERE coalesce(fp <~> '0123456789abcdef', 0) <= 3$$);
SELECT conditions($$SELECT FROM d WHERE NOT (coalesce(fp <~> '0123456789abcdef', 64) <= 3)$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' <= ANY ('{2,3}'::int[])$$);
SELECT conditions($$SELECT FROM d WHERE fp <~> '0123456789abcdef' IN (1, NULL, 2)$$);
SET enable_seqscan = off;

\echo -- Stored distances against floating-point numbers
CREATE TABLE s (id int, d hamming);
INSERT INTO s SELECT i, i FROM generate_series(-3, 6) i;
INSERT INTO s VALUES (7, NULL), (8, 2147483647), (9, -2147483648);
SELECT conditions('SELECT FROM s WHERE d <= 3.5::float8 AND 2.5::float4 < d AND d <> 5::float8');
SELECT conditions('SELECT FROM s WHERE d < 4::float8 AND 2::float4 <= d AND d = 3::float8');
DO $$
DECLARE
    comparison text;
    number text;
    wrong bigint;
BEGIN
    FOREACH comparison IN ARRAY '{<,<=,=,<>,>=,>}'::text[] LOOP
        FOREACH number IN ARRAY ('{-3,-1,-0.5,0,2,2.5,3,1e10,-1e10,2147483647,-2147483648,'
            || 'NaN,Infinity,-Infinity}')::text[] LOOP
            EXECUTE format('SELECT count(*) FROM s
                WHERE (d %1$s %2$L::float8) IS DISTINCT FROM (d::int::float8 %1$s %2$L::float8)
                OR (d %1$s %2$L::float4) IS DISTINCT FROM (d::int::float8 %1$s %2$L::float4)
                OR (%2$L::float8 %1$s d) IS DISTINCT FROM (%2$L::float8 %1$s d::int::float8)
                OR (%2$L::float4 %1$s d) IS DISTINCT FROM (%2$L::float4 %1$s d::int::float8)',
                comparison, number) INTO wrong;
            ASSERT wrong = 0, format('d %s %s: %s wrong', comparison, number, wrong);
            EXECUTE format('SELECT count(*) FROM s, (VALUES (%2$L::float8)) v (x)
                WHERE (d %1$s x) IS DISTINCT FROM (d::int::float8 %1$s x)
                OR (x %1$s d) IS DISTINCT FROM (x %1$s d::int::float8)',
                comparison, number) INTO wrong;
            ASSERT wrong = 0, format('d %s x (%s): %s wrong', comparison, number, wrong);
        END LOOP;
    END LOOP;
END $$;

\echo -- What other types are compared by is as without the extension.
SELECT 1 <= 2.5, 1::smallint <= 2.5, 1::bigint <= 2.5, 1 <= 2.5::float8, 1::smallint < 2.5::float8,
    1 < 2.5::float4, 1::bigint <> 2.5::float4, 2.5 > 1, 2.5::float4 >= 1,
    '2' > 1, 2.5::float8 > '1';

\echo -- Estimates: within a factor of what is there
CREATE TABLE u AS SELECT i AS id, hashint8extended(i, 0)::fingerprint AS fp
    FROM generate_series(1, 20000) i;
-- Three fifths of the rows have one of 12 values; 8000 values occur once.
CREATE TABLE k AS SELECT i AS id, CASE WHEN i % 5 < 3 THEN hashint8extended(i % 20, 1)
    ELSE hashint8extended(i, 2) END::fingerprint AS fp FROM generate_series(1, 20000) i;
-- Rows to add: 1000 with those 12 values, 650 with values that occur once, 347 with new values,
-- and 3 without a value.
CREATE TABLE a AS SELECT i AS id, CASE WHEN i <= 1000 THEN hashint8extended(i % 4 * 5 + i % 3, 1)
    WHEN i <= 1650 THEN hashint8extended((i - 1000) * 10 + 3, 2)
    WHEN i <= 1997 THEN hashint8extended(i, 3) END::fingerprint AS fp
    FROM generate_series(1, 2000) i;
-- Reads all rows: a sample would differ each time.
ALTER TABLE u ALTER fp SET STATISTICS 10000;
ALTER TABLE k ALTER fp SET STATISTICS 10000;
ALTER TABLE a ALTER fp SET STATISTICS 10000;
ANALYZE u, k, a;
CREATE FUNCTION judge(query text, factor float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan json; expected float8; n float8;
BEGIN
    EXECUTE 'SELECT count(*) FROM (' || query || ') q' INTO n;
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    expected := plan -> 0 -> 'Plan' ->> 'Plan Rows';
    RETURN format('%s rows, %s %s', n, CASE
        WHEN greatest(expected, 1) BETWEEN greatest(n, 1) / factor AND greatest(n, 1) * factor
        THEN 'as expected:' ELSE 'where ' || expected || ' were expected:' END, query);
END $$;
SET max_parallel_workers_per_gather = 0;
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' = 2$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' = 24$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' = 32$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' <> 32$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' <= 24.9::float8$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' < 25::float4$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' <= 'NaN'::float8$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' <= 24.5$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' <= 2.5$$, 1.5);
SELECT judge($$SELECT FROM u WHERE (fp <~> '0123456789abcdef')::int <= 24$$, 1.5);
SELECT judge($$SELECT FROM u WHERE fp <~> '0123456789abcdef' IN (23, 24)$$, 1.5);
SELECT judge($$SELECT FROM a x JOIN a y ON x.fp <~> y.fp = 32$$, 2);
SELECT judge('SELECT FROM a JOIN k ON a.fp <~> k.fp <= 3', 1.5);
SELECT judge('SELECT FROM k JOIN a ON a.fp <~> k.fp <= 3', 1.5);
SELECT judge('SELECT FROM k JOIN a ON a.fp ~= k.fp', 1.5);
SELECT judge('SELECT FROM a WHERE EXISTS (SELECT FROM k WHERE k.fp <~> a.fp <= 3)', 1.5);
SELECT judge('SELECT FROM a WHERE NOT EXISTS (SELECT FROM k WHERE k.fp <~> a.fp <= 3)', 1.5);
SELECT judge('SELECT FROM a WHERE NOT EXISTS (SELECT FROM k WHERE a.fp <~> k.fp = 0)', 1.5);
SELECT judge('SELECT FROM a WHERE NOT EXISTS (SELECT FROM k WHERE a.fp ~= k.fp)', 1.5);
SELECT judge('SELECT FROM a WHERE NOT EXISTS (SELECT FROM u WHERE a.fp <~> u.fp <= 3)', 2);
SELECT judge('SELECT FROM k WHERE EXISTS (SELECT FROM a WHERE k.fp <~> a.fp <= 3)', 2);
SELECT judge('SELECT FROM k x WHERE NOT EXISTS (SELECT FROM k y WHERE x.fp <~> y.fp <= 3)', 1.5);
SELECT judge('SELECT FROM k x WHERE EXISTS
    (SELECT FROM k y WHERE x.fp <~> y.fp <= 3 AND y.id <= 200)', 2);
SELECT judge('SELECT FROM a WHERE EXISTS (SELECT FROM k WHERE k.fp <~> a.fp <= 64)', 1.5);

SET client_min_messages = warning;
DROP SCHEMA forms_test CASCADE;
