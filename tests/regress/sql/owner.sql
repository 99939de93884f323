-- The constants of an index's expressions and predicate are folded with the rights of the owner,
-- for every reader of the index, with a cold cache: each statement runs in a new session.
CREATE SCHEMA owner_test;
SET client_min_messages = error;
CREATE ROLE neardup_owner;
GRANT USAGE, CREATE ON SCHEMA owner_test TO neardup_owner;
SET ROLE neardup_owner;
CREATE FUNCTION owner_test.told(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    RAISE WARNING 'folded by %', current_user;
    RETURN n;
END $$;
CREATE FUNCTION owner_test.same(sig minhash_signature, n int) RETURNS minhash_signature
    LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN sig; END $$;
CREATE TABLE owner_test.traps (site int, fp fingerprint, sig minhash_signature);
INSERT INTO owner_test.traps SELECT 1, i::bigint::fingerprint, minhash(ARRAY['some', 'words'])
    FROM generate_series(1, 2) i;
CREATE INDEX traps_ball ON owner_test.traps USING neardup (ball(fp, owner_test.told(3)));
CREATE INDEX traps_part ON owner_test.traps USING neardup (fp) WHERE site = owner_test.told(1);
CREATE INDEX traps_scope ON owner_test.traps USING neardup ((site + owner_test.told(1)), fp);
CREATE INDEX traps_sig ON owner_test.traps USING neardup (owner_test.same(sig, owner_test.told(1)));
RESET ROLE;
\c -
SELECT count(*) FROM neardup_pairs('owner_test.traps_ball', 3);
\c -
SELECT count(*) FROM neardup_pairs('owner_test.traps_part', 3);
\c -
SELECT count(*) FROM neardup_pairs('owner_test.traps_scope', 3);
\c -
SELECT count(*) FROM (SELECT neardup_pairs('owner_test.traps_scope', 3)) p;
\c -
SELECT count(*) FROM neardup_pairs('owner_test.traps_sig', similarity => 0.8);
\c -
SELECT count(*) FROM neardup_clusters('owner_test.traps_ball', 3);
\c -
SELECT count(*) FROM neardup_clusters('owner_test.traps_scope', 3);
\c -
SELECT count(*) FROM neardup_clusters('owner_test.traps_sig', similarity => 0.8);
\c -
SELECT sum(pairs) FROM neardup_distance_histogram('owner_test.traps_part', 3, sample_rows => NULL);
\c -
SELECT sum(pairs) FROM neardup_distance_histogram('owner_test.traps_scope', 3, sample_rows => 10);
\c -
SELECT rows FROM neardup_index_info('owner_test.traps_ball');
\c -
SELECT rows FROM neardup_index_check('owner_test.traps_ball');
\c -
SELECT rows FROM neardup_index_check('owner_test.traps_part', heap => true);
\c -
SELECT rows FROM neardup_index_check('owner_test.traps_sig', heap => true);
-- By the table: all of its indexes are read to find the one.
\c -
SELECT * FROM neardup_pairs('owner_test.traps', 3);
SELECT current_user = session_user AS myself_again;
SET client_min_messages = error;
DROP SCHEMA owner_test CASCADE;
DROP ROLE neardup_owner;
