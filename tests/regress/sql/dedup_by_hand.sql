-- neardup_dedup with manual=<condition>: rows that meet it keep the marks that people set.
\set VERBOSITY default
CREATE SCHEMA by_hand;
SET search_path = by_hand, public;
-- Values 1 to 4 are near one another. Values 5 and 6 are far from all others.
CREATE FUNCTION seed(n int) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    $$ SELECT (ARRAY[0, 1, 3, 7, 1048575, 1099510579200])[n]::bigint $$;
CREATE FUNCTION words(n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg('w' || i, ' ') FROM generate_series(
        CASE WHEN n > 4 THEN n * 1000 ELSE n END,
        CASE WHEN n > 4 THEN n * 1000 + 100 ELSE 100 + n END) i $$;
CREATE FUNCTION value_of(name text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE name
        WHEN 'middle' THEN 'lpad(to_hex(by_hand.seed(n)), 32, ''0'')::fingerprint128'
        WHEN 'wide' THEN 'lpad(to_hex(by_hand.seed(n)), 64, ''0'')::fingerprint256'
        WHEN 'hashed' THEN 'by_hand.seed(n)'
        WHEN 'signed' THEN 'minhash(by_hand.words(n), shingle => 1)'
        ELSE 'by_hand.seed(n)::fingerprint' END $$;
CREATE TABLE narrow (id int PRIMARY KEY, fp fingerprint, dup int, checked_by text);
CREATE TABLE whole (id int PRIMARY KEY, fp fingerprint, dup int, checked_by text);
CREATE TABLE middle (id int PRIMARY KEY, fp fingerprint128, dup int, checked_by text);
CREATE TABLE wide (id int PRIMARY KEY, fp fingerprint256, dup int, checked_by text);
CREATE TABLE hashed (id int PRIMARY KEY, fp bigint, dup int, checked_by text);
CREATE TABLE signed (id int PRIMARY KEY, fp minhash_signature, dup int, checked_by text);
CREATE TABLE within (id int PRIMARY KEY, fp fingerprint, dup int, checked_by text,
    site text DEFAULT 'x');
CREATE TABLE parted (id int, fp fingerprint, dup int, checked_by text, part int DEFAULT 1)
    PARTITION BY LIST (part);
CREATE TABLE part_one PARTITION OF parted FOR VALUES IN (1);
CREATE INDEX ON narrow USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON whole USING neardup (fp);
CREATE INDEX ON middle USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON wide USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON hashed USING neardup (fp bigint_hamming_ops) WHERE dup IS NULL;
CREATE INDEX ON signed USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON within USING neardup (site, fp) WHERE dup IS NULL;
CREATE INDEX ON parted USING neardup (fp) WHERE dup IS NULL;
CREATE TABLE tables AS SELECT unnest(
    '{narrow,whole,middle,wide,hashed,signed,within,parted}'::text[]) AS name;
DO $$
DECLARE name text; timing text;
BEGIN
    FOR name IN SELECT t.name FROM tables t LOOP
        FOREACH timing IN ARRAY '{BEFORE INSERT OR UPDATE,AFTER UPDATE OR DELETE}'::text[] LOOP
            EXECUTE format('CREATE TRIGGER %s %s ON %I FOR EACH ROW EXECUTE FUNCTION '
                'neardup_dedup(''fp'', ''action=mark'', ''mark=dup'', ''key=id'', '
                '''manual=checked_by IS NOT NULL'', ''%s''%s)',
                split_part(timing, ' ', 1) || '_', timing, name,
                CASE name WHEN 'signed' THEN 'similarity=0.8' ELSE 'radius=6' END,
                CASE name WHEN 'within' THEN ', ''scope=site''' ELSE '' END);
        END LOOP;
    END LOOP;
END $$;
-- Runs a statement on each of the tables. Shows the marks, and which tables have them. A row that
-- meets the condition has an exclamation mark. neardup_remark finds nothing to change.
CREATE FUNCTION each(statement text) RETURNS TABLE (marks text, names text) LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
    CREATE TEMP TABLE results (name text, marks text);
    FOR name IN SELECT t.name FROM tables t LOOP
        EXECUTE replace(replace(statement, '{}', name), '{fp}', value_of(name));
        EXECUTE format('SELECT string_agg(id || CASE WHEN checked_by > '''' THEN ''!'' ELSE '''' END
            || coalesce(''->'' || dup, ''''), '' '' ORDER BY id) FROM %I', name) INTO marks;
        INSERT INTO results VALUES (name, marks);
    END LOOP;
    RETURN QUERY SELECT r.marks, string_agg(r.name, ' ' ORDER BY r.name)
        FROM results r GROUP BY 1 ORDER BY 2;
    DROP TABLE results;
END $$;

SELECT * FROM each('INSERT INTO {} (id, fp, dup)
    SELECT n * 10, {fp}, CASE n WHEN 5 THEN 10 END FROM generate_series(1, 6) n');
-- A client that writes all columns back changes no mark.
SELECT * FROM each('UPDATE {} SET dup = CASE id WHEN 60 THEN 10 END');
-- An editor makes a row an original, and it stays one. New rows find it.
SELECT * FROM each('UPDATE {} SET dup = NULL, checked_by = ''ann'' WHERE id = 40');
SELECT * FROM each('UPDATE {} SET id = id, fp = {fp} FROM (SELECT 3 AS n) v WHERE id = 40');
SELECT * FROM each('INSERT INTO {} (id, fp) SELECT 41, {fp} FROM (SELECT 4 AS n) v');
-- An editor marks a row. The mark lasts when the text of either row changes.
SELECT * FROM each('UPDATE {} SET dup = 50, checked_by = ''ann'' WHERE id = 30');
SELECT * FROM each('UPDATE {} SET fp = {fp} FROM (SELECT 2 AS n) v WHERE id IN (30, 50)');
-- A row without its flag is compared, and so is the row of its mark when its text changes.
SELECT * FROM each('UPDATE {} SET checked_by = NULL WHERE id = 30');
SELECT * FROM each('UPDATE {} SET fp = {fp} FROM (SELECT 1 AS n) v WHERE id = 50');
-- A mark by hand follows its original when that is marked by hand.
SELECT * FROM each('UPDATE {} SET dup = 60, checked_by = ''ann'' WHERE id IN (20, 30)');
SELECT * FROM each('UPDATE {} SET dup = 10, checked_by = ''bob'' WHERE id = 60');
-- Without their original the rows are compared.
SELECT * FROM each('DELETE FROM {} WHERE id = 10');
-- INSERT obeys the mark as well, and rows without a fingerprint have marks by hand.
SELECT * FROM each('INSERT INTO {} (id, fp, dup, checked_by)
    SELECT n, {fp}, CASE n WHEN 2 THEN 60 END, ''bob'' FROM generate_series(1, 2) n');
SELECT * FROM each('UPDATE {} SET fp = NULL WHERE id IN (2, 60)');
SELECT * FROM each('UPDATE {} SET fp = {fp} FROM (SELECT 5 AS n) v WHERE id = 60');
-- neardup_remark takes the condition from the trigger. Other marks may change with the order.
SELECT name, neardup_remark(name::regclass) > 0 AS changed, neardup_remark(name::regclass)
    FROM tables ORDER BY name;
SELECT * FROM each('UPDATE {} SET dup = dup');
SELECT neardup_remark('narrow', manual => 'false') > 0 AS changed;

-- Errors: the row itself, rows that do not exist, invalid conditions.
UPDATE narrow SET dup = 1, checked_by = 'ann' WHERE id = 1;
UPDATE narrow SET dup = 99, checked_by = 'ann' WHERE id = 1;
INSERT INTO narrow (id, fp, dup, checked_by) VALUES (7, '0000000000000000', 99, 'ann');
CREATE FUNCTION with_condition(condition text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER before_ BEFORE INSERT OR UPDATE ON narrow '
        'FOR EACH ROW EXECUTE FUNCTION neardup_dedup(''fp'', ''action=mark'', ''mark=dup'', '
        '''key=id'', ''radius=6'', %L)',
        'manual=' || condition);
    UPDATE narrow SET checked_by = checked_by WHERE id = 40;
END $$;
SELECT with_condition('checkd_by IS NOT NULL');
SELECT with_condition('checked_by');
SELECT with_condition('true) OR (true');
SELECT with_condition('');
SELECT with_condition('1 / (id - id) = 1');
SELECT with_condition('narrow.checked_by = ''ann'' -- a comment');
SELECT with_condition('yes');
-- A session follows changes of the columns.
ALTER TABLE narrow DROP checked_by, ADD checked_by boolean NOT NULL DEFAULT true;
SELECT with_condition('checked_by');
UPDATE narrow SET dup = 60 WHERE id = 50;
UPDATE narrow SET dup = 60, checked_by = false WHERE id = 40;
SELECT id, dup FROM narrow WHERE id IN (40, 50) ORDER BY id;
ALTER TABLE narrow DROP checked_by, ADD checked_by boolean NOT NULL DEFAULT true;
UPDATE narrow SET dup = NULL WHERE id = 50;
SELECT id, dup FROM narrow WHERE id = 50;
ALTER TABLE narrow DROP checked_by, ADD checked_by text;
-- The trigger sees each change of the condition's columns.
CREATE OR REPLACE TRIGGER before_ BEFORE INSERT OR UPDATE OF fp, dup ON narrow FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'key=id', 'radius=6',
        'manual=checked_by = ''ann''');
UPDATE narrow SET fp = fp;

-- Conditions on generated columns, with a generated fingerprint and a generated key.
CREATE TABLE made (url text, body text, editor text,
    id text PRIMARY KEY GENERATED ALWAYS AS (lower(url)) STORED,
    fp fingerprint GENERATED ALWAYS AS (minhash64(body, shingle => 1)) STORED, dup text,
    is_checked boolean GENERATED ALWAYS AS (editor IS NOT NULL) STORED);
CREATE INDEX ON made USING neardup (fp) WHERE dup IS NULL;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON made FOR EACH ROW EXECUTE FUNCTION
    neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=6',
        'manual=is_checked AND fp IS NOT NULL');
CREATE TRIGGER dedup_marks AFTER UPDATE OR DELETE ON made FOR EACH ROW EXECUTE FUNCTION
    neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=6',
        'manual=is_checked AND fp IS NOT NULL');
INSERT INTO made (url, body) VALUES ('A', 'a b c d'), ('B', 'a b c d');
INSERT INTO made (url, body, editor) VALUES ('C', 'a b c d', 'ann');
UPDATE made SET dup = 'c', editor = 'ann' WHERE id = 'a';
UPDATE made SET body = 'x y z' WHERE id = 'c';
SELECT id, dup, is_checked FROM made ORDER BY id;

-- The condition is evaluated as the writer, with names from pg_catalog. For renewed marks the
-- writer is the table's owner, so another writer's objects must not be called.
CREATE ROLE regress_neardup_writer;
GRANT USAGE, CREATE ON SCHEMA by_hand TO regress_neardup_writer;
CREATE TABLE owned (id int PRIMARY KEY, fp fingerprint, dup int, flag text);
CREATE INDEX ON owned USING neardup (fp) WHERE dup IS NULL;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON owned FOR EACH ROW EXECUTE FUNCTION
    neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=6', 'manual=upper(flag) = ''X''');
CREATE TRIGGER dedup_marks AFTER UPDATE OR DELETE ON owned FOR EACH ROW EXECUTE FUNCTION
    neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=6', 'manual=upper(flag) = ''X''');
GRANT SELECT, INSERT, UPDATE, DELETE ON owned TO regress_neardup_writer;
INSERT INTO owned VALUES (1, '0000000000000000', NULL), (2, '0000000000000001', NULL),
    (3, '0000000000000003', NULL);
SET ROLE regress_neardup_writer;
CREATE FUNCTION upper(text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'called as %', current_user; END $$;
SET search_path = by_hand, pg_catalog, public;
UPDATE owned SET flag = 'x', dup = NULL WHERE id = 3;
DELETE FROM owned WHERE id = 1;
SELECT id, dup, flag FROM owned ORDER BY id;
RESET ROLE;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA by_hand CASCADE;
DROP ROLE regress_neardup_writer;
