-- Rights: an ordinary role uses everything and installs nothing.
CREATE SCHEMA rights_test;
SET search_path = rights_test, public;
SET client_min_messages = warning;
CREATE FUNCTION conditions(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ '(Cond|Filter):' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
CREATE ROLE neardup_user;
GRANT USAGE, CREATE ON SCHEMA rights_test TO neardup_user;
CREATE TABLE d AS SELECT i AS id, i::bigint::fingerprint AS fp, i % 2 = 0 AS visible
    FROM generate_series(1, 100) i;
CREATE INDEX ON d USING neardup (fp);
ANALYZE d;
ALTER TABLE d ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON d USING (visible);
GRANT SELECT ON d TO neardup_user;

SET ROLE neardup_user;
SELECT '0000000000000000'::fingerprint <~> '000000000000000f' <= 4 AS near,
    simhash('some words') IS NOT NULL AS hashed, ball(5, 3) ~= ball(6, 3) AS balls;
CREATE TABLE own (fp fingerprint);
CREATE INDEX ON own USING neardup (fp);
INSERT INTO own VALUES ('0000000000000000');
-- Leakproof operators use the index below the policy's filter, and see only rows that it passes.
SET enable_seqscan = off;
SELECT conditions($$SELECT id FROM d WHERE fp <~> '0000000000000007' <= 1$$);
SELECT conditions($$SELECT id FROM d WHERE fp ~= '0000000000000007'$$);
SELECT id FROM d WHERE fp <~> '0000000000000007' <= 1 ORDER BY id;
RESET enable_seqscan;
-- The functions that only the server may call cannot be called.
SELECT _neardup_le_support(NULL);
\echo :SQLSTATE
SELECT _neardup_sel(NULL, 0, NULL, 0);
\echo :SQLSTATE
SELECT _neardup_fingerprint_recv('x');
\echo :SQLSTATE
DROP EXTENSION neardup;
\echo :SQLSTATE
ALTER EXTENSION neardup SET SCHEMA rights_test;
\echo :SQLSTATE
-- Only the owner of a table may inspect its indexes.
SELECT rows FROM neardup_index_check('own_fp_idx', heap => true);
SELECT rows FROM neardup_index_info('own_fp_idx');
SELECT neardup_index_check('d_fp_idx');
\echo :SQLSTATE
SELECT rows FROM neardup_index_info('d_fp_idx');
\echo :SQLSTATE
-- An index's expression runs as the owner, when another user checks the index.
CREATE FUNCTION who(fp fingerprint) RETURNS fingerprint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    RAISE WARNING 'run by %', current_user;
    RETURN fp;
END $$;
CREATE INDEX own_who ON own USING neardup (who(fp));
RESET ROLE;
SELECT rows FROM neardup_index_check('own_who', heap => true);
SELECT current_user = session_user AS myself_again;
-- So does a search for all pairs, where rows are fetched again.
SET ROLE neardup_user;
CREATE FUNCTION who(site int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    RAISE WARNING 'run by %', current_user;
    RETURN site;
END $$;
CREATE FUNCTION who(sig minhash_signature) RETURNS minhash_signature LANGUAGE plpgsql
    IMMUTABLE AS $$ BEGIN
    RAISE WARNING 'run by %', current_user;
    RETURN sig;
END $$;
CREATE TABLE traps (site int, fp fingerprint, sig minhash_signature);
INSERT INTO traps VALUES (1, '0000000000000000', minhash('some words')), (1, '0000000000000001',
    minhash('some words'));
SET client_min_messages = error;
CREATE INDEX traps_site ON traps USING neardup (who(site), fp);
CREATE INDEX traps_sig ON traps USING neardup (who(sig));
SET client_min_messages = warning;
RESET ROLE;
SELECT * FROM neardup_pairs('traps_site', 3);
SELECT * FROM neardup_clusters('traps_site', 3);
SELECT * FROM neardup_pairs('traps_sig', similarity => 0.8);
SELECT * FROM neardup_clusters('traps_sig', similarity => 0.8);
SELECT current_user = session_user AS myself_still;

-- Everything that users can call has a comment.
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d
    ON objid = p.oid AND classid = 'pg_proc'::regclass AND deptype = 'e'
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension
    WHERE extname = 'neardup')
  AND proname !~ '^_neardup_(fingerprint(128|256)?|bigint|hamming|minhash_signature|minhash_ball)_'
  AND proname !~ '_(support|sel|eqsel|joinsel|handler)$' AND proname NOT IN ('_neardup_sel',
  '_neardup_joinsel')
  AND obj_description(p.oid, 'pg_proc') IS NULL;
SELECT o.oid::regoperator FROM pg_operator o JOIN pg_depend d
    ON objid = o.oid AND classid = 'pg_operator'::regclass AND deptype = 'e'
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension
    WHERE extname = 'neardup')
  AND oprname NOT IN ('<', '<=', '=', '<>', '>=', '>') AND obj_description(o.oid,
  'pg_operator') IS NULL;
SELECT t.oid::regtype FROM pg_type t JOIN pg_depend d
    ON objid = t.oid AND classid = 'pg_type'::regclass AND deptype = 'e'
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension
    WHERE extname = 'neardup')
  AND typtype IN ('b', 'd') AND typcategory <> 'A' AND obj_description(t.oid, 'pg_type') IS NULL;

-- The extension is trusted: roles that may create in the database may create and drop it.
DROP EXTENSION neardup CASCADE;
SET ROLE neardup_user;
\set VERBOSITY sqlstate
CREATE EXTENSION neardup WITH SCHEMA rights_test;
\set VERBOSITY default
RESET ROLE;
SELECT current_database() AS database \gset
GRANT CREATE ON DATABASE :"database" TO neardup_user;
SET ROLE neardup_user;
CREATE EXTENSION neardup WITH SCHEMA rights_test;
SELECT 1 <~> 2 AS two;
DROP EXTENSION neardup;
RESET ROLE;
REVOKE CREATE ON DATABASE :"database" FROM neardup_user;
DROP SCHEMA rights_test CASCADE;
DROP ROLE neardup_user;
CREATE EXTENSION neardup WITH SCHEMA public;
