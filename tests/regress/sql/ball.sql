-- Balls: the types, <@, @> and ~=.
CREATE SCHEMA ball_test;
SET search_path = ball_test, public;

SELECT ball('0123456789abcdef'::fingerprint, 3), ball(81985529216486895, 3), ball(5, 0),
    ball((-5)::bigint, 64);
SELECT pg_typeof(ball('0123456789abcdef'::fingerprint, 3)), pg_typeof(ball(5, 3));
SELECT '<0123456789ABCDEF,3>'::fingerprint_ball, '<-1,10>'::bigint_ball,
    '<9223372036854775807,0>'::bigint_ball;
-- A radius beyond the width is the width, and every negative radius is the empty ball.
SELECT ball(5, 65), ball(5, 2147483647), ball(5, -1), ball(5, (-2147483648)), '<5,-7>'::bigint_ball,
    '<0123456789abcdef,1000>'::fingerprint_ball;
-- There is a ball for each fingerprint type. A bare literal, or text, is a fingerprint of 64 bits.
SELECT ball('0123456789abcdef', 3), ball('0123456789abcdef'::text, 3::smallint),
    pg_typeof(ball('0123456789abcdef'::varchar, 3));
SELECT ball('5', 3);
\echo :SQLSTATE
SELECT ball(repeat('0', 32), 3);
\echo :SQLSTATE
SELECT ball(repeat('g', 64), 3);
SELECT ball(5, 3000000000);
\echo :SQLSTATE
SELECT ball(NULL::fingerprint, 3) IS NULL AS no_center, ball(5, NULL) IS NULL AS no_radius;

SELECT '0123456789abcdef,3'::fingerprint_ball;
\echo :SQLSTATE
SELECT '<0123456789abcdef>'::fingerprint_ball;
\echo :SQLSTATE
SELECT '<0123456789abcde,3>'::fingerprint_ball;
\echo :SQLSTATE
SELECT '<0123456789abcdef,3.5>'::fingerprint_ball;
\echo :SQLSTATE
SELECT '<0123456789abcdef,3000000000>'::fingerprint_ball;
\echo :SQLSTATE
SELECT '<0123456789abcdef,3,>'::fingerprint_ball;
\echo :SQLSTATE
SELECT ''::fingerprint_ball;
\echo :SQLSTATE
SELECT '<9223372036854775808,3>'::bigint_ball;
\echo :SQLSTATE
SELECT '<0123456789abcdef,3>'::bigint_ball;
\echo :SQLSTATE

-- Membership
SELECT r, '000000000000000f' <@ ball('0000000000000000'::fingerprint, r) AS of_fingerprint,
    ball('0000000000000000'::fingerprint, r) @> '000000000000000f' AS commuted,
       15::bigint <@ ball(0, r) AS of_bigint, ball(0, r) @> 15::bigint AS bigint_commuted
FROM generate_series(-1, 5) r;
SELECT '0000000000000000'::fingerprint <@ ball('ffffffffffffffff'::fingerprint, 63) AS no,
    '0000000000000000'::fingerprint <@ ball('ffffffffffffffff'::fingerprint, 64) AS yes,
       '0000000000000000'::fingerprint <@ ball('0000000000000000'::fingerprint, -1) AS empty;
SELECT '0000000000000000'::fingerprint <@ '<000000000000000f,4>' AS unknown_literal,
    1 <@ '<0,1>'::bigint_ball AS int4, NULL::fingerprint <@ '<000000000000000f,4>' AS unknown;

-- Near each other: each centre within the other's radius
SELECT a, b, ball(0, a) ~= ball(7, b) AS near FROM generate_series(2, 4) a, generate_series(2, 4) b
    ORDER BY a, b;
SELECT ball('0000000000000000'::fingerprint, 3) ~= ball('0000000000000007'::fingerprint, 3) AS near,
    ball('0000000000000000'::fingerprint, -1) ~= ball('0000000000000000'::fingerprint, 3) AS empty;

-- The operators do not hide the server's own of the same names.
SELECT 3 <@ int4range(1, 5), 5::bigint <@ int8range(1, 10), ARRAY[1] <@ ARRAY[1, 2],
    point '(1,1)' <@ box '(0,0),(2,2)', '{"a":1}'::jsonb @> '{}',
    box '(0,0),(1,1)' ~= box '(0,0),(1,1)';

-- Binary form
SELECT _neardup_fingerprint_ball_send(ball('0123456789abcdef'::fingerprint, 3)),
    _neardup_bigint_ball_send(ball(1, -1));
CREATE TABLE balls (i int, f fingerprint_ball, b bigint_ball);
INSERT INTO balls SELECT i, ball(hashint8extended(i, 0)::fingerprint, i),
    ball(hashint8extended(i, 1), i) FROM generate_series(-1, 64) i;
INSERT INTO balls VALUES (65, NULL, NULL);
CREATE TABLE copied (LIKE balls);
\copy balls TO 'ball.bin' (FORMAT binary)
\copy copied FROM 'ball.bin' (FORMAT binary)
SELECT count(*), count(c.f) AS balls, count(*) FILTER (WHERE c.f::text = b.f::text
    AND c.b::text = b.b::text) AS equal FROM copied c JOIN balls b USING (i);
-- A radius out of range in a message is clamped, as everywhere.
CREATE TABLE raw (f bytea);
INSERT INTO raw VALUES ('\x0123456789abcdef7fffffff');
\copy raw TO 'ball.bin' (FORMAT binary)
CREATE TABLE one (f fingerprint_ball);
\copy one FROM 'ball.bin' (FORMAT binary)
SELECT * FROM one;

SET client_min_messages = warning;
DROP SCHEMA ball_test CASCADE;
