-- A transaction keeps the state of a scan for the next scan of the same index. The state serves
-- one scan at a time, and is dropped when the index is rebuilt, and with the subtransaction.
CREATE SCHEMA kept_scans;
SET search_path = kept_scans, public;
CREATE VIEW kept AS
    SELECT count(*) <= 9 AS few, coalesce(sum(total_bytes), 0) < 100000 AS small
    FROM pg_backend_memory_contexts WHERE name = 'neardup scan';
CREATE FUNCTION number(n bigint) RETURNS fingerprint LANGUAGE sql IMMUTABLE AS
    $$ SELECT (hashint8extended(n, 1))::fingerprint $$;

-- Errors that end scans in subtransactions, and more indexes than are remembered: 40 partitions,
-- each with a constraint that refuses every third row.
CREATE TABLE parts (id bigint, part int, fp fingerprint) PARTITION BY LIST (part);
DO $$
BEGIN
    FOR n IN 0..39 LOOP
        EXECUTE format('CREATE TABLE part_%1$s PARTITION OF parts FOR VALUES IN (%1$s)', n);
        EXECUTE format('ALTER TABLE part_%s ADD EXCLUDE USING neardup (fp WITH ~=)', n);
    END LOOP;
END $$;
DO $$
DECLARE
    refused int := 0;
    state kept;
BEGIN
    FOR n IN 1..1200 LOOP
        BEGIN
            INSERT INTO parts VALUES (n, n / 3 % 40, number(n - (n % 3) / 2));
        EXCEPTION WHEN exclusion_violation THEN
            refused := refused + 1;
        END;
    END LOOP;
    SELECT * FROM kept INTO state;
    RAISE NOTICE '% rows refused; %', refused, state;
END $$;
SELECT count(*) FROM parts;
-- Without errors, all in one subtransaction.
DO $$
DECLARE
    state kept;
BEGIN
    TRUNCATE parts;
    INSERT INTO parts
        SELECT n, n / 3 % 40, number(n - (n % 3) / 2) FROM generate_series(1, 1200) AS n
        ON CONFLICT DO NOTHING;
    SELECT * FROM kept INTO state;
    RAISE NOTICE '%', state;
END $$;
SELECT count(*) FROM parts;
DROP TABLE parts;

-- The index is rebuilt, replaced and emptied between the rows of a transaction.
CREATE TABLE docs (id bigint, fp fingerprint,
    CONSTRAINT apart EXCLUDE USING neardup (fp WITH ~=));
BEGIN;
INSERT INTO docs VALUES (1, '0000000000000000') ON CONFLICT DO NOTHING;
INSERT INTO docs VALUES (2, '0000000000000001') ON CONFLICT DO NOTHING;
REINDEX INDEX apart;
INSERT INTO docs VALUES (3, '0000000000000003') ON CONFLICT DO NOTHING;
TRUNCATE docs;
INSERT INTO docs VALUES (4, '0000000000000007') ON CONFLICT DO NOTHING;
SAVEPOINT before;
TRUNCATE docs;
INSERT INTO docs VALUES (5, '0000000000000003') ON CONFLICT DO NOTHING;
ROLLBACK TO before;
INSERT INTO docs VALUES (6, '0000000000000003') ON CONFLICT DO NOTHING;
ALTER TABLE docs DROP CONSTRAINT apart;
INSERT INTO docs VALUES (7, '0000000000000003') ON CONFLICT DO NOTHING;
DELETE FROM docs WHERE id = 4;
ALTER TABLE docs ADD CONSTRAINT apart EXCLUDE USING neardup (fp WITH ~=) WITH (radius = 5);
INSERT INTO docs VALUES (8, '0000000000000000') ON CONFLICT DO NOTHING;
ALTER TABLE docs SET UNLOGGED;
INSERT INTO docs VALUES (9, '0000000000000001') ON CONFLICT DO NOTHING;
INSERT INTO docs VALUES (10, 'ffffffffffffffff') ON CONFLICT DO NOTHING;
SELECT id FROM docs ORDER BY id;
COMMIT;

-- One statement writes a row twice, and a retry after an error.
INSERT INTO docs VALUES (11, '00000000ffffffff'), (12, '00000000fffffffe') ON CONFLICT DO NOTHING;
DO $$
BEGIN
    FOR n IN 1..3 LOOP
        BEGIN
            INSERT INTO docs VALUES (20 + n, '00000000fffffff0'::fingerprint);
        EXCEPTION WHEN exclusion_violation THEN
            DELETE FROM docs WHERE id IN (11, 21, 22);
            INSERT INTO docs VALUES (20 + n, '00000000fffffffc'::fingerprint);
        END;
    END LOOP;
END $$;
SELECT id FROM docs ORDER BY id;

-- Open scans of one index at the same time that end in another order, or by an error.
CREATE TABLE many (id bigint, fp fingerprint);
INSERT INTO many SELECT n, ('x' || lpad(to_hex(n % 4), 16, '0'))::bit(64)::bigint::fingerprint
    FROM generate_series(1, 40) AS n;
CREATE INDEX ON many USING neardup (fp);
VACUUM many;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
BEGIN;
DECLARE a CURSOR FOR SELECT id > 0 FROM many WHERE fp <~> '0000000000000000' <= 3;
DECLARE b CURSOR FOR SELECT fp FROM many WHERE fp <~> '0000000000000000' <= 0;
FETCH 2 FROM a;
FETCH 2 FROM b;
CLOSE a;
SELECT count(*) FROM many WHERE fp <~> '0000000000000000' <= 3;
SELECT count(fp) FROM (SELECT fp FROM many ORDER BY fp <~> '0000000000000000' LIMIT 25) AS nearest;
FETCH 2 FROM b;
SAVEPOINT one;
SELECT count(*) FROM many WHERE fp <~> '0000000000000001' <= 0;
DECLARE c CURSOR FOR SELECT fp FROM many WHERE fp <~> '0000000000000003' <= 0;
FETCH 2 FROM c;
ROLLBACK TO one;
SELECT count(*) FROM many WHERE fp <~> '0000000000000001' <= 0;
SAVEPOINT two;
DECLARE d CURSOR FOR SELECT fp FROM many WHERE fp <~> '0000000000000003' <= 0;
FETCH 2 FROM d;
RELEASE two;
SELECT count(*) FROM many WHERE fp <~> '0000000000000002' <= 0;
FETCH 2 FROM d;
CLOSE d;
MOVE ALL FROM b;
SELECT * FROM kept;
COMMIT;
SELECT * FROM kept;

-- The scan of a cursor begins with its first row, in a subtransaction that it outlives.
BEGIN;
DECLARE a CURSOR FOR SELECT id > 0 FROM many WHERE fp <~> '0000000000000000' <= 3;
DECLARE b CURSOR FOR SELECT fp FROM many WHERE fp <~> '0000000000000000' <= 0;
DECLARE c CURSOR FOR SELECT fp FROM many ORDER BY fp <~> '0000000000000000';
SAVEPOINT one;
FETCH 2 FROM a;
FETCH 2 FROM b;
FETCH 2 FROM c;
ROLLBACK TO one;
SELECT count(*) FROM many WHERE fp <~> '0000000000000001' <= 0;
MOVE ALL FROM a;
FETCH 2 FROM b;
MOVE ALL FROM c;
COMMIT;
SELECT * FROM kept;

-- Ordered scans hold many rows, and free them at the end of the scan.
DO $$
DECLARE
    state kept;
    found bigint := 0;
BEGIN
    FOR n IN 1..300 LOOP
        found := found + (SELECT count(fp) FROM
            (SELECT fp FROM many ORDER BY fp <~> number(n) LIMIT 30) AS nearest);
    END LOOP;
    SELECT * FROM kept INTO state;
    RAISE NOTICE '%; %', found, state;
END $$;

-- The index grows while scans of one transaction go on.
CREATE TABLE grown (id bigint, fp fingerprint,
    CONSTRAINT grown_apart EXCLUDE USING neardup (fp WITH ~=));
INSERT INTO grown SELECT n, number(n - (n % 10) / 7 * 7) FROM generate_series(0, 9999) AS n
    ON CONFLICT DO NOTHING;
SELECT count(*) FROM grown;
SELECT count(*) FROM neardup_pairs('grown_apart', 3);

DROP TABLE docs, many, grown;
DROP VIEW kept;
DROP FUNCTION number;
DROP SCHEMA kept_scans;
