-- The trigger neardup_dedup with action=mark: marks stay valid when originals are deleted,
-- changed, or marked themselves.
\set VERBOSITY default
\set SHOW_CONTEXT never

-- Nothing is marked without the prerequisites of valid marks. The hints are statements to run.
CREATE TABLE "Pages, all" ("the id" int PRIMARY KEY, "fp=" fingerprint, "o'mark,""" int);
CREATE INDEX ON "Pages, all" USING neardup ("fp=") WHERE "o'mark,""" IS NULL;
CREATE INDEX ON "Pages, all" ("o'mark,""");
CREATE TRIGGER "Dedup" BEFORE INSERT OR UPDATE OF "fp=" ON "Pages, all" FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('"fp="', 'action=mark', 'mark="o''mark,"""', 'radius=3');
INSERT INTO "Pages, all" VALUES (1, '0000000000000000');
CREATE OR REPLACE TRIGGER "Dedup" BEFORE INSERT OR UPDATE ON public."Pages, all"
    FOR EACH ROW EXECUTE FUNCTION public.neardup_dedup('"fp="', 'action=mark', 'mark="o''mark,"""',
    'radius=3');
INSERT INTO "Pages, all" VALUES (1, '0000000000000000');
CREATE TRIGGER "Dedup_marks" AFTER UPDATE OR DELETE ON public."Pages, all"
    FOR EACH ROW EXECUTE FUNCTION public.neardup_dedup('"fp="', 'action=mark', 'mark="o''mark,"""',
    'radius=3');
INSERT INTO "Pages, all" VALUES (1, '0000000000000000'), (2, '0000000000000001');
ALTER TABLE "Pages, all" DISABLE TRIGGER "Dedup_marks";
INSERT INTO "Pages, all" VALUES (3, '0000000000000003');
ALTER TABLE "Pages, all" ENABLE TRIGGER "Dedup_marks";
INSERT INTO "Pages, all" VALUES (3, '0000000000000003');
DELETE FROM "Pages, all" WHERE "the id" = 1;
SELECT * FROM "Pages, all" ORDER BY 1;
DROP TABLE "Pages, all";

-- Tables of each kind of value, with a partial index and with a whole one, with a scope, and
-- partitioned. Each has an original 1 with the duplicates 2 to 4, and 5 apart.
CREATE FUNCTION seed(n int) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    $$ SELECT (ARRAY[0, 1, 7, 6, 1023])[n]::bigint $$;
CREATE FUNCTION words(n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg('w' || i, ' ')
        FROM generate_series(CASE n WHEN 5 THEN 1000 ELSE n END, CASE n WHEN 5 THEN 1100 ELSE 100 +
        n END) i $$;
CREATE FUNCTION value_of(name text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE name
        WHEN 'middle' THEN 'lpad(to_hex(seed(n)), 32, ''0'')::fingerprint128'
        WHEN 'wide' THEN 'lpad(to_hex(seed(n)), 64, ''0'')::fingerprint256'
        WHEN 'hashed' THEN 'seed(n)'
        WHEN 'signed' THEN 'minhash(words(n), shingle => 1)'
        ELSE 'seed(n)::fingerprint' END $$;
CREATE TABLE narrow (id int PRIMARY KEY, fp fingerprint, dup int);
CREATE TABLE whole (id int PRIMARY KEY, fp fingerprint, dup int);
CREATE TABLE middle (id int PRIMARY KEY, fp fingerprint128, dup int);
CREATE TABLE wide (id int PRIMARY KEY, fp fingerprint256, dup int);
CREATE TABLE hashed (id int PRIMARY KEY, fp bigint, dup int);
CREATE TABLE signed (id int PRIMARY KEY, fp minhash_signature, dup int);
CREATE TABLE within (id int PRIMARY KEY, fp fingerprint, dup int, site text DEFAULT 'x');
CREATE TABLE parted (id int, fp fingerprint, dup int, part int DEFAULT 1) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE INDEX ON narrow USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON whole USING neardup (fp);
CREATE INDEX ON middle USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON wide USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON hashed USING neardup (fp bigint_hamming_ops) WHERE dup IS NULL;
CREATE INDEX ON signed USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON within USING neardup (site, fp) WHERE dup IS NULL;
CREATE INDEX ON parted USING neardup (fp) WHERE dup IS NULL;
CREATE FUNCTION rows_of(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE
        format('SELECT string_agg(id || coalesce(''->'' || dup, ''''), '' '' ORDER BY id) FROM %I',
        name);
END $$;
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY '{narrow,whole,middle,wide,hashed,signed,within,parted}'::text[] LOOP
        EXECUTE format('CREATE INDEX ON %I (dup)', name);
        EXECUTE
            format('CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION
            neardup_dedup(''fp'', ''action=mark'', ''mark=dup'', ''key=id'' %s)', name,
            CASE name WHEN 'within' THEN ', ''scope=site'', ''radius=3'''
            WHEN 'signed' THEN ', ''similarity=0.8''' ELSE ', ''radius=3''' END);
        EXECUTE
            format('CREATE TRIGGER marks AFTER UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION
            neardup_dedup(''fp'', ''action=mark'', ''mark=dup'', ''key=id'' %s)', name,
            CASE name WHEN 'within' THEN ', ''scope=site'', ''radius=3'''
            WHEN 'signed' THEN ', ''similarity=0.8''' ELSE ', ''radius=3''' END);
        EXECUTE format('INSERT INTO %I (id, fp) SELECT n, %s FROM generate_series(1, 5) n', name,
            value_of(name));
    END LOOP;
END $$;
-- Runs a statement on each of them, and shows all rows with their marks.
CREATE FUNCTION each(statement text) RETURNS TABLE (name text, marks text) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH name IN ARRAY '{narrow,whole,middle,wide,hashed,signed,within,parted}'::text[] LOOP
        EXECUTE replace(replace(statement, '{}', name), '{fp}', value_of(name));
        SELECT rows_of(name) INTO marks;
        RETURN NEXT;
    END LOOP;
END $$;
SELECT * FROM each('SELECT');
-- The first of the marked rows becomes the original of the others.
SELECT * FROM each('DELETE FROM {} WHERE id = 1');
-- Its key changes.
SELECT * FROM each('UPDATE {} SET id = 20 WHERE id = 2');
-- It moves far away, and back: then it is a duplicate itself.
SELECT * FROM each('UPDATE {} SET fp = (SELECT {fp} FROM (VALUES (5)) v (n)) WHERE id = 20');
SELECT * FROM each('UPDATE {} SET fp = (SELECT {fp} FROM (VALUES (2)) v (n)) WHERE id = 20');
-- One statement deletes an original and one of its rows.
SELECT * FROM each('DELETE FROM {} WHERE id IN (3, 4)');
SELECT * FROM each('INSERT INTO {} (id, fp) SELECT n, {fp} FROM generate_series(1, 4) n');
-- NULL is near no row.
SELECT * FROM each('UPDATE {} SET fp = NULL WHERE id = 3');
SELECT * FROM each('UPDATE {} SET fp = NULL WHERE id = 20');
SELECT * FROM each('DELETE FROM {}');

-- A row that leaves the scope, or the partition, or has none.
INSERT INTO within SELECT n, seed(n)::fingerprint FROM generate_series(1, 4) n;
UPDATE within SET site = 'y' WHERE id = 1;
SELECT rows_of('within');
UPDATE within SET site = 'y' WHERE id = 3;
UPDATE within SET site = NULL WHERE id = 4;
SELECT rows_of('within');
UPDATE within SET site = NULL WHERE id = 1;
SELECT rows_of('within');
INSERT INTO parted SELECT n, seed(n)::fingerprint FROM generate_series(1, 4) n;
UPDATE parted SET part = 2 WHERE id = 1;
SELECT rows_of('parted');
UPDATE parted SET part = 2 WHERE id = 3;
SELECT rows_of('parted');
-- The hint for a partitioned table names that table, not the partition.
DROP TRIGGER marks ON parted;
INSERT INTO parted VALUES (9, 'ffffffffffffffff');

-- Marks in the inserted row, and marks set by hand.
INSERT INTO narrow VALUES (1, '0000000000000000', 77), (2, '0000000000000001', NULL), (3,
    '0000000000000003', 2),
    (4, 'ffffffffffffffff', 1), (5, 'fffffffffffffff0', 4);
SELECT rows_of('narrow');
-- The trigger obeys NULL: both rows are originals then. It compares the row again when it changes.
UPDATE narrow SET dup = NULL WHERE id = 2;
SELECT rows_of('narrow');
UPDATE narrow SET fp = '0000000000000000' WHERE id = 2;
SELECT rows_of('narrow');
-- The trigger obeys another original. A marked row leads to its original, and the rows that were
-- marked with it follow.
UPDATE narrow SET dup = 5 WHERE id = 3;
SELECT rows_of('narrow');
UPDATE narrow SET dup = 2 WHERE id = 3;
SELECT rows_of('narrow');
UPDATE narrow SET dup = 4 WHERE id = 1;
SELECT rows_of('narrow');
-- No row; itself; a row that is marked with its key.
UPDATE narrow SET dup = 99 WHERE id = 5;
UPDATE narrow SET dup = 5 WHERE id = 5;
UPDATE narrow SET dup = 1 WHERE id = 4;
SELECT rows_of('narrow');
UPDATE narrow SET dup = NULL;
SELECT rows_of('narrow');
DELETE FROM narrow;

-- Foreign keys on the mark: rows whose mark a deletion sets to NULL are compared again. A deferred
-- check finds the new marks.
ALTER TABLE narrow ADD FOREIGN KEY (dup) REFERENCES narrow ON DELETE SET NULL ON UPDATE CASCADE;
INSERT INTO narrow SELECT n, seed(n)::fingerprint FROM generate_series(1, 5) n;
UPDATE narrow SET id = 10 WHERE id = 1;
SELECT rows_of('narrow');
DELETE FROM narrow WHERE id = 10;
SELECT rows_of('narrow');
ALTER TABLE narrow DROP CONSTRAINT narrow_dup_fkey;
ALTER TABLE narrow ADD FOREIGN KEY (dup) REFERENCES narrow;
DELETE FROM narrow WHERE id = 2;
ALTER TABLE narrow ALTER CONSTRAINT narrow_dup_fkey DEFERRABLE INITIALLY DEFERRED;
DELETE FROM narrow WHERE id = 2;
SELECT rows_of('narrow');
DELETE FROM narrow;

-- ON CONFLICT: the row itself is not compared; its duplicates get its new original.
INSERT INTO narrow SELECT n, seed(n)::fingerprint FROM generate_series(1, 4) n;
INSERT INTO narrow VALUES (1, '00000000000000ff')
    ON CONFLICT (id) DO UPDATE SET fp = EXCLUDED.fp, dup = EXCLUDED.dup;
SELECT rows_of('narrow');
INSERT INTO narrow VALUES (1, '0000000000000001')
    ON CONFLICT (id) DO UPDATE SET fp = EXCLUDED.fp, dup = EXCLUDED.dup;
SELECT rows_of('narrow');
DELETE FROM narrow;

-- Fingerprints that the triggers compute, and generated ones.
CREATE TABLE bodies (id int PRIMARY KEY, body text, fp fingerprint, dup int);
CREATE INDEX ON bodies USING neardup (fp) WHERE dup IS NULL;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body, dup ON bodies FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'action=mark', 'mark=dup', 'shingle=1',
    'radius=3');
CREATE TRIGGER marks AFTER UPDATE OR DELETE ON bodies FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'action=mark', 'mark=dup', 'shingle=1',
    'radius=3');
CREATE TABLE generated (id int PRIMARY KEY, body text, fp fingerprint GENERATED ALWAYS AS
    (simhash(body)) STORED, dup int);
CREATE INDEX ON generated USING neardup (fp) WHERE dup IS NULL;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body, dup ON generated FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
CREATE TRIGGER marks AFTER UPDATE OR DELETE ON generated FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
INSERT INTO bodies VALUES (1, 'The library reopens on Monday.'), (2,
    'the library reopens on monday'), (3, 'The LIBRARY reopens on Monday!');
INSERT INTO generated SELECT id, body FROM bodies;
UPDATE bodies SET body = 'Rain is expected all over the country.' WHERE id = 1;
UPDATE generated SET body = 'Rain is expected all over the country.' WHERE id = 1;
SELECT rows_of('bodies'), rows_of('generated'), (SELECT bool_and(fp = minhash64(body, shingle => 1))
    FROM bodies) AS computed;

-- A NULL key cannot be a mark, nor be logged.
CREATE TABLE keyless (url text, fp fingerprint, dup text);
CREATE INDEX ON keyless USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON keyless FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'key=url', 'radius=3');
CREATE TRIGGER marks AFTER UPDATE OR DELETE ON keyless FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'key=url', 'radius=3');
INSERT INTO keyless VALUES (NULL, '0000000000000000');
INSERT INTO keyless VALUES ('a', '0000000000000001');
SELECT * FROM keyless;

-- If a mark cannot be renewed, that is an error; the mark does not become wrong.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER a BEFORE UPDATE ON bodies FOR EACH ROW EXECUTE FUNCTION refuse();
DELETE FROM bodies WHERE id = 2;
SELECT rows_of('bodies');
DROP TRIGGER a ON bodies;
CREATE TRIGGER z BEFORE UPDATE ON bodies FOR EACH ROW EXECUTE FUNCTION refuse();
DELETE FROM bodies WHERE id = 2;
DROP TRIGGER z ON bodies;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body, dup ON bodies
    FOR EACH ROW WHEN (NEW.body IS NULL)
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'action=mark', 'mark=dup', 'shingle=1',
    'radius=3');
DELETE FROM bodies WHERE id = 2;
CREATE TRIGGER late AFTER INSERT ON bodies FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp');
INSERT INTO bodies VALUES (9);
DROP TRIGGER late ON bodies;
CREATE TRIGGER late AFTER UPDATE ON bodies FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp');
UPDATE bodies SET body = 'Other' WHERE id = 3;
DROP TRIGGER late ON bodies;

-- Writers must not learn the key of a hidden row: missing rights, or row security. Marks of other
-- rows are renewed with the rights of the table's owner.
CREATE ROLE regress_neardup_author;
CREATE TABLE shared (id int PRIMARY KEY, fp fingerprint, dup int, author name DEFAULT current_user);
CREATE INDEX ON shared USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON shared (dup);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON shared FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
CREATE TRIGGER marks AFTER UPDATE OR DELETE ON shared FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
INSERT INTO shared VALUES (1, '0000000000000000');
GRANT INSERT ON shared TO regress_neardup_author;
SET ROLE regress_neardup_author;
INSERT INTO shared VALUES (2, '0000000000000001');
RESET ROLE;
GRANT SELECT (id, author), UPDATE (dup, fp), DELETE ON shared TO regress_neardup_author;
SET ROLE regress_neardup_author;
INSERT INTO shared VALUES (2, '0000000000000001');
RESET ROLE;
ALTER TABLE shared ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON shared USING (author = current_user);
SET ROLE regress_neardup_author;
INSERT INTO shared VALUES (3, '0000000000000001');
INSERT INTO shared VALUES (4, 'ffffffffffffffff');
INSERT INTO shared VALUES (5, 'fffffffffffffff0'), (6, 'fffffffffffffff1'), (7, 'ffffffffffffff11');
-- The mark of 2 names a row that its author cannot see. This must not reveal more.
UPDATE shared SET dup = 2 WHERE id = 4;
RESET ROLE;
UPDATE shared SET author = 'postgres' WHERE id = 6;
SET ROLE regress_neardup_author;
DELETE FROM shared WHERE id = 5;
RESET ROLE;
SELECT rows_of('shared');
DROP OWNED BY regress_neardup_author;
DROP ROLE regress_neardup_author;
