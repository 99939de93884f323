-- Unreasonable uses of an index: each gives the right answer, or an error that explains the fix.
CREATE SCHEMA bad_input_test;
SET search_path = bad_input_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never

CREATE TABLE docs (id bigint, fp fingerprint, wide fingerprint128, spot point, spots point[]);
INSERT INTO docs SELECT i, i::bigint::fingerprint, md5(i::text)::uuid::fingerprint128
    FROM generate_series(1, 100) i;
CREATE INDEX docs_fp ON docs USING neardup (fp);
VACUUM ANALYZE docs;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- Radii that are negative, huge, not integers, unknown, or not numbers.
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= -1;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= -9223372036854775808;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= 9223372036854775807;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' < -9223372036854775808;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= 99999999999999999999;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= 2.5;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= 'Infinity'::float8;
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= NULL;
SELECT count(*) FROM docs WHERE fp <@ ball('0000000000000000'::fingerprint, -2147483648);
SELECT count(*) FROM docs WHERE fp <@ ball('0000000000000000'::fingerprint, 2147483647);
SELECT count(*) FROM docs WHERE fp <@ ball('0000000000000000'::fingerprint, NULL);
SELECT count(*) FROM docs WHERE fp <@ ball(NULL::fingerprint, 3);
SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= 'three';
SELECT count(*) FROM docs WHERE fp <@ ball('0000000000000000'::fingerprint, 2147483648);
-- Known only when the query runs.
PREPARE within(bigint) AS SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' <= $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE within(-9223372036854775808);
EXECUTE within(9223372036854775807);
EXECUTE within(NULL);
PREPARE below(bigint) AS SELECT count(*) FROM docs WHERE fp <~> '0000000000000000' < $1;
EXECUTE below(-9223372036854775808);
EXECUTE below(9223372036854775807);
RESET plan_cache_mode;

-- Centres of other types and widths.
SELECT count(*) FROM docs WHERE fp <~> 'no fingerprint' <= 3;
SELECT count(*) FROM docs WHERE fp <~> '00ff' <= 3;
SELECT count(*) FROM docs WHERE fp <~> wide <= 3;
SELECT count(*) FROM docs WHERE fp <@ ball(wide, 3);
SELECT count(*) FROM docs WHERE fp <~> 5 <= 3;
SELECT id FROM docs ORDER BY fp <~> '00ff' LIMIT 2;
-- An unknown centre is at the same distance from every row.
SELECT count(*) FROM (SELECT id FROM docs ORDER BY fp <~> NULL LIMIT 2) any_two;

-- Constraints.
\set VERBOSITY sqlstate
ALTER TABLE docs ADD EXCLUDE USING neardup (fp WITH <~>);
ALTER TABLE docs ADD EXCLUDE USING neardup (id WITH ~=, fp WITH ~=);
\set VERBOSITY default
ALTER TABLE docs ADD EXCLUDE USING neardup (fp WITH <@);
ALTER TABLE docs ADD EXCLUDE USING neardup (spots WITH =, fp WITH ~=);
CREATE TABLE kept (fp fingerprint, radius int,
    EXCLUDE USING neardup (ball(fp, 1000) WITH ~=) WHERE (radius = 1000),
    EXCLUDE USING neardup (ball(fp, -1) WITH ~=) WHERE (radius = -1),
    EXCLUDE USING neardup (ball(fp, radius) WITH ~=) WHERE (radius BETWEEN 0 AND 64),
    EXCLUDE USING neardup (fp WITH =) WHERE (radius IS NULL));
-- A radius of 1000 bits contains everything; a negative one contains nothing, not even equals.
INSERT INTO kept VALUES ('0000000000000000', 1000);
INSERT INTO kept VALUES ('ffffffffffffffff', 1000);
INSERT INTO kept VALUES ('0000000000000000', -1), ('0000000000000000', -1);
-- Each of two balls must contain the other's centre.
INSERT INTO kept VALUES ('0000000000000000', 2), ('000000000000000f', 64), ('00000000000000ff', 3);
INSERT INTO kept VALUES ('000000000000001f', 2);
INSERT INTO kept VALUES ('0000000000000000', NULL), ('0000000000000001', NULL);
INSERT INTO kept VALUES ('0000000000000001', NULL);
SELECT * FROM kept ORDER BY radius, fp;

-- Operator classes of other authors that would misinterpret values.
CREATE OPERATOR CLASS wrong_ball FOR TYPE float8 USING neardup AS OPERATOR 1 = (float8, float8);
CREATE OPERATOR CLASS wrong_store FOR TYPE fingerprint128_ball USING neardup AS
    OPERATOR 2 ~= (fingerprint128_ball, fingerprint128_ball), STORAGE fingerprint;
CREATE OPERATOR CLASS no_hash FOR TYPE point USING neardup AS OPERATOR 3 ~= (point, point);
CREATE OPERATOR CLASS other_scope FOR TYPE float8 USING neardup AS OPERATOR 3 = (float8, float8);
\set VERBOSITY terse
SELECT opcname, amvalidate(oid) FROM pg_opclass WHERE opcname IN ('wrong_ball', 'other_scope')
    ORDER BY 1;
\set VERBOSITY default
CREATE TABLE numbers (x float8);
CREATE INDEX ON numbers USING neardup (x wrong_ball);
CREATE INDEX ON docs USING neardup (ball(wide, 3) wrong_store);
CREATE INDEX ON docs USING neardup (spot no_hash, fp);
-- This operator class is as good as neardup's own.
CREATE INDEX ON docs USING neardup ((id / 2.0::float8) other_scope, fp);
CREATE OPERATOR CLASS unknown_strategy FOR TYPE float8 USING neardup AS OPERATOR 9 = (float8,
    float8);
-- Sets are arrays of bigint only.
CREATE OPERATOR CLASS any_set FOR TYPE anyarray USING neardup AS OPERATOR 5 && (anyarray, anyarray);
CREATE OPERATOR CLASS int_set FOR TYPE int[] USING neardup AS OPERATOR 5 && (anyarray, anyarray);
CREATE OPERATOR CLASS text_set FOR TYPE text USING neardup AS OPERATOR 5 = (text, text);
CREATE INDEX ON docs USING neardup ((ARRAY[id::bigint]) any_set);
CREATE INDEX ON docs USING neardup ((ARRAY[id::int]) int_set);
CREATE INDEX ON docs USING neardup ((id::text) text_set);
CREATE OPERATOR CLASS has_function FOR TYPE float8 USING neardup AS OPERATOR 3 = (float8, float8),
    FUNCTION 1 btfloat8cmp(float8, float8);

-- Functions that inspect indexes.
SELECT neardup_index_check(4294967295);
SELECT neardup_index_check('docs_fp', NULL) IS NULL AS of_null;
SELECT neardup_index_info('docs_fp_there_is_none');

SET client_min_messages = warning;
DROP SCHEMA bad_input_test CASCADE;
