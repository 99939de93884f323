-- The extension works in any schema, with any search_path, after it has been moved, and after it
-- has been dropped and created again, within one session that keeps OIDs in its caches.
CREATE SCHEMA relocate_test;
CREATE SCHEMA "Odd Schema";
CREATE TABLE relocate_test.d AS SELECT i AS id, i::bigint::public.fingerprint AS fp
    FROM generate_series(1, 100) i;
CREATE TABLE relocate_test.v (id int, body text);
CREATE INDEX ON relocate_test.v (public.simhash(body));
CREATE INDEX ON relocate_test.d USING neardup (fp);
SET enable_seqscan = off;
CREATE FUNCTION relocate_test.conditions(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ '(Cond|Filter):' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;

SET search_path = '';
SELECT relocate_test.conditions($$SELECT count(*) FROM relocate_test.d
    WHERE fp OPERATOR(public.<~>) '0000000000000007' OPERATOR(public.<=) 1$$);
SELECT count(*) FROM relocate_test.d WHERE fp OPERATOR(public.<~>) '0000000000000007'
    OPERATOR(public.<=) 1;
INSERT INTO relocate_test.v VALUES (1, 'some words');
SELECT a.id, b.id FROM relocate_test.d a JOIN relocate_test.d b
    ON a.fp OPERATOR(public.<~>) b.fp OPERATOR(public.<=) 1 AND a.id < b.id ORDER BY 1, 2 LIMIT 3;
-- With core's comparison instead of ours the result is the same, but no index can be used.
SELECT count(*) FROM relocate_test.d WHERE fp OPERATOR(public.<~>) '0000000000000007' <= 1;

ALTER EXTENSION neardup SET SCHEMA "Odd Schema";
SELECT relocate_test.conditions($$SELECT count(*) FROM relocate_test.d
    WHERE fp OPERATOR("Odd Schema".<~>) '0000000000000007' OPERATOR("Odd Schema".<=) 1$$);
SELECT count(*) FROM relocate_test.d WHERE fp OPERATOR("Odd Schema".<~>) '0000000000000007'
    OPERATOR("Odd Schema".<=) 1;
SET search_path = "Odd Schema";
SELECT count(*) FROM relocate_test.d WHERE fp <~> '0000000000000007' <= 1;
INSERT INTO relocate_test.v VALUES (2, 'other words');

SET search_path = public;
ALTER EXTENSION neardup SET SCHEMA public;
SELECT count(*) FROM relocate_test.d WHERE fp <~> '0000000000000007' <= 1;

-- Objects of the same names earlier in the search_path are not used instead of the extension's.
CREATE SCHEMA decoy;
CREATE FUNCTION decoy.ball(fingerprint, int) RETURNS fingerprint_ball LANGUAGE
    sql AS $$SELECT NULL::fingerprint_ball$$;
CREATE FUNCTION decoy._neardup_within(fingerprint, fingerprint, int) RETURNS boolean LANGUAGE
    sql AS 'SELECT false';
CREATE FUNCTION decoy.refuse(fingerprint, fingerprint_ball) RETURNS boolean LANGUAGE
    sql AS 'SELECT false';
CREATE OPERATOR decoy.<@ (LEFTARG = fingerprint, RIGHTARG = fingerprint_ball,
    FUNCTION = decoy.refuse);
SET search_path = decoy, public;
SELECT count(*) FROM relocate_test.d WHERE fp <~> '0000000000000007' <= 1;
SELECT count(*) FROM relocate_test.d a JOIN relocate_test.d b ON a.fp <~> b.fp <= 1;
SET search_path = public;

SET client_min_messages = warning;
DROP SCHEMA decoy CASCADE;
DROP EXTENSION neardup CASCADE;
CREATE EXTENSION neardup WITH SCHEMA relocate_test;
SET search_path = relocate_test;
DROP TABLE d;
CREATE TABLE d AS SELECT i AS id, i::bigint::fingerprint AS fp FROM generate_series(1, 100) i;
SELECT relocate_test.conditions($$SELECT count(*) FROM d WHERE fp <~> '0000000000000007' <= 1$$);
SELECT count(*) FROM d WHERE fp <~> '0000000000000007' <= 1;
-- Nothing remains, and no object has a schema fixed by the extension.
SELECT count(*) FROM pg_depend JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension
    WHERE extname = 'neardup') AND pronamespace <> 'relocate_test'::regnamespace;
DROP EXTENSION neardup CASCADE;
SET search_path = public;
DROP SCHEMA relocate_test, "Odd Schema" CASCADE;
CREATE EXTENSION neardup;
