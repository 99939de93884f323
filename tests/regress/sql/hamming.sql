-- Distances: the operators <~>, <#>, ~= and the domain hamming.
CREATE SCHEMA hamming_test;
SET search_path = hamming_test, public;

SELECT '0000000000000000'::fingerprint <~> '000000000000000f' AS four,
    '0000000000000000'::fingerprint <~> 'ffffffffffffffff' AS all_bits,
       '0123456789abcdef'::fingerprint <~> '0123456789abcdef' AS none,
       NULL::fingerprint <~> '0123456789abcdef' AS unknown;
SELECT '0000000000000000'::fingerprint <#> '000000000000000f' AS four,
    0::bigint <#> (-1)::bigint AS all_bits, 1::bigint <~> 2::bigint AS two, 1 <~> 2 AS two_again;

-- Unknown literals get the other side's type; two unknown literals are ambiguous.
SELECT '000000000000000f' <~> '0000000000000000'::fingerprint AS four, 7::bigint <~> '0' AS three;
SELECT '000000000000000f' <~> '0000000000000000';
\echo :SQLSTATE
SELECT '0000000000000000'::fingerprint <~> 5::bigint;
\echo :SQLSTATE

-- Type for drivers: an integer.
SELECT pg_typeof('0000000000000000'::fingerprint <~> '000000000000000f'),
    pg_typeof('0000000000000000'::fingerprint <#> '000000000000000f'),
       pg_typeof(('0000000000000000'::fingerprint <~> '000000000000000f') + 1),
       pg_typeof(sum(1 <~> 2)), pg_typeof(max(1 <~> 2));
SELECT '0000000000000000'::fingerprint <~> '000000000000000f' AS distance,
    1 <~> 2 AS of_bigint \gdesc

-- ~=: at most six bits
SELECT '0000000000000000'::fingerprint ~= '000000000000003f' AS six,
    '0000000000000000'::fingerprint ~= '000000000000007f' AS seven,
    0::bigint ~= 63 AS six, 0::bigint ~= 127 AS seven, NULL::fingerprint ~= '000000000000000f' AS
    unknown;

-- Every comparison with every integer type, from both sides, against the server's own on int4.
CREATE TABLE d AS SELECT i::bigint AS h, i::bigint::fingerprint AS fp
    FROM generate_series(0, 300) i;
DO $$
DECLARE
    comparison text;
    integer_type text;
    n int;
    wrong bigint;
BEGIN
    FOREACH comparison IN ARRAY '{<,<=,=,<>,>=,>}'::text[] LOOP
        FOREACH integer_type IN ARRAY '{int2,int4,int8,hamming}'::text[] LOOP
            FOREACH n IN ARRAY '{-32768,-1,0,1,2,3,63,64,65,32767}'::int[] LOOP
                EXECUTE format('SELECT count(*) FROM d WHERE ((fp <~> %L) %s %L::%s) <> ((fp <#> '
                    '%L) %s %s)',
                '00000000000000a5', comparison, n, integer_type, '00000000000000a5', comparison,
                n) INTO wrong;
                ASSERT wrong = 0, format('fp <~> q %s %s::%s: %s wrong', comparison, n,
                integer_type, wrong);
                EXECUTE format('SELECT count(*) FROM d WHERE (%L::%s %s (fp <~> %L)) <> (%s %s '
                    '(fp <#> %L))',
                n, integer_type, comparison, '00000000000000a5', n, comparison,
                '00000000000000a5') INTO wrong;
                ASSERT wrong = 0, format('%s::%s %s fp <~> q: %s wrong', n, integer_type,
                comparison, wrong);
                -- and as conditions, negated, on bigint, and with a radius that is a column
                EXECUTE format('SELECT count(*) FROM (SELECT h FROM d WHERE NOT (h <~> 165) %s '
                    '%L::%s) a FULL JOIN (SELECT h FROM d WHERE NOT (h <#> 165) %s %s) b USING '
                    '(h) WHERE a.h IS NULL OR b.h IS NULL',
                comparison, n, integer_type, comparison, n) INTO wrong;
                ASSERT wrong = 0, format('NOT h <~> q %s %s::%s: %s wrong', comparison, n,
                integer_type, wrong);
                EXECUTE format('SELECT count(*) FROM (SELECT h FROM d, (VALUES (%L::%s)) v (r) '
                    'WHERE h <~> 165 %s r OFFSET 0) a FULL JOIN (SELECT h FROM d WHERE h <#> 165 '
                    '%s %s) b USING (h) WHERE a.h IS NULL OR b.h IS NULL',
                n, integer_type, comparison, comparison, n) INTO wrong;
                ASSERT wrong = 0, format('h <~> q %s r (%s::%s): %s wrong', comparison, n,
                integer_type, wrong);
                EXECUTE format('SELECT count(*) FROM (SELECT x.h, y.fp FROM d x, d y, (VALUES '
                    '(%L::%s)) v (r) WHERE x.h < 20 AND y.h < 20 AND x.fp <~> y.fp %s r) a FULL '
                    'JOIN (SELECT x.h, y.fp FROM d x, d y WHERE x.h < 20 AND y.h < 20 AND x.fp '
                    '<#> y.fp %s %s) b USING (h, fp) WHERE a.h IS NULL OR b.h IS NULL',
                n, integer_type, comparison, comparison, n) INTO wrong;
                ASSERT wrong = 0, format('a <~> b %s r (%s::%s): %s wrong', comparison, n,
                integer_type, wrong);
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
-- Radii beyond int4
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' <= 9223372036854775807;
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' < -9223372036854775808;
SELECT count(*) FROM d, (VALUES ((-9223372036854775808)::bigint)) v (r)
    WHERE fp <~> '00000000000000a5' < r;
SELECT count(*) FROM d, (VALUES ((-2147483648)::int)) v (r) WHERE fp <~> '00000000000000a5' < r;
SELECT count(*) FROM d, (VALUES (9223372036854775807)) v (r) WHERE fp <~> '00000000000000a5' < r;
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' <= NULL;
SELECT count(*) FROM d WHERE fp <~> NULL <= 3;
SELECT count(*) FROM d WHERE (fp <~> NULL <= 3) IS NULL;

-- Other forms of comparisons
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' BETWEEN 1 AND 3;
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' NOT BETWEEN 1 AND 3;
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' IN (1, 3);
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' = ANY ('{1,3}'::int[]);
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' IN (SELECT generate_series(1, 3));
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' NOT IN (SELECT generate_series(1, 3));
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' IS DISTINCT FROM 3;
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' <= 2.5;
SELECT count(*) FROM d WHERE fp <~> '00000000000000a5' <= '3';
SELECT count(*) FROM d WHERE (fp <~> '00000000000000a5', h) <= (1, 165);
SELECT count(*) FROM d WHERE (fp <~> '00000000000000a5', h) > (1::bigint, 165);
SELECT count(*) FROM d WHERE CASE fp <~> '00000000000000a5' WHEN 1 THEN true END;
SELECT count(*) FROM d WHERE COALESCE(fp <~> '00000000000000a5', 64) <= 1;
SELECT count(*) FROM d WHERE _neardup_within(fp, '00000000000000a5', 1);

-- Sorting, grouping, aggregates, arithmetic
SELECT fp <~> '00000000000000a5' AS distance, count(*) FROM d GROUP BY 1 ORDER BY 1;
SELECT DISTINCT fp <~> '00000000000000a5' AS distance FROM d ORDER BY distance DESC LIMIT 3;
SELECT h FROM d ORDER BY fp <~> '00000000000000a5', h LIMIT 5;
SELECT min(fp <~> '00000000000000a5'), max(fp <~> '00000000000000a5'),
    sum(fp <~> '00000000000000a5'), round(avg(fp <~> '00000000000000a5'), 3) FROM d;
SELECT rank() OVER (ORDER BY fp <~> '00000000000000a5'), h FROM d ORDER BY 1, 2 LIMIT 4;
SELECT 64 - (1 <~> 2) AS difference, 1 - (1 <~> 2) / 64.0 AS similarity,
    (1 <~> 2)::text || ' bits' AS text;

-- Columns of the domain
CREATE TABLE stored (id int, d hamming);
INSERT INTO stored SELECT h, fp <~> '0000000000000000' FROM d;
CREATE INDEX ON stored (d);
SELECT count(*) FROM stored WHERE d = 3;
SELECT count(*) FROM stored WHERE d <= 3::bigint AND 1::smallint < d;
SELECT count(*) FROM stored a JOIN stored b USING (d);
SELECT count(*) FROM stored a WHERE EXISTS (SELECT FROM stored b WHERE a.d = b.d AND a.id <> b.id);
SELECT max(d), min(d) FROM stored;
SELECT d, count(*) FROM stored GROUP BY d HAVING d > 7 ORDER BY d;
-- The server's own operators are found where the domain is not involved.
CREATE DOMAIN small AS int CHECK (VALUE < 10);
SELECT 3::small < 4, 3::small = 3::bigint, 3::smallint = 3::small, 3::small <= '4', 3 = 3::oid,
    3::smallint < 4::bigint;

-- Both families are complete enough for the operators that they hold.
SELECT amname, count(*) FROM pg_amop p JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a
    ON a.oid = opfmethod WHERE opfname = 'hamming_ops' GROUP BY 1 ORDER BY 1;

-- Each operator has its counterparts, and each function behind one is safe to run anywhere.
SELECT oprname, oprleft::regtype, oprright::regtype FROM pg_operator o
WHERE oprcode::oid IN (SELECT objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass
    AND deptype = 'e' AND classid = 'pg_proc'::regclass
                       AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'neardup'))
  AND (oprcom = 0 OR oprname IN ('=', '<>', '<', '<=', '>', '>=') AND oprnegate = 0);
SELECT p.oid::regprocedure FROM pg_operator o JOIN pg_proc p ON p.oid = oprcode
WHERE p.oid IN (SELECT objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass
    AND deptype = 'e' AND classid = 'pg_proc'::regclass
                AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'neardup'))
  -- Not strict: NULL sorts before all numbers.
  AND proname <> '_neardup_hamming_nulls_first'
  AND NOT (provolatile = 'i' AND proisstrict AND proparallel = 's' AND proleakproof);

SET client_min_messages = warning;
DROP SCHEMA hamming_test CASCADE;
