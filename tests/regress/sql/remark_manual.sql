-- neardup_remark(manual => ...): marks that people have set persist.
\set VERBOSITY default
CREATE SCHEMA remark_manual;
SET search_path = remark_manual, public;
-- Values 1 to 4 are near one another, 5 is far off, 6 is near 4 only.
CREATE FUNCTION seed(n int) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    $$ SELECT (ARRAY[0, 1, 3, 7, 255, 127])[n]::bigint $$;
CREATE FUNCTION words(n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg('w' || i, ' ') FROM generate_series(
        CASE n WHEN 5 THEN 1000 WHEN 6 THEN 16 ELSE n END,
        CASE n WHEN 5 THEN 1100 WHEN 6 THEN 116 ELSE 100 + n END) i $$;
CREATE FUNCTION value_of(name text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE name
        WHEN 'middle' THEN 'lpad(to_hex(seed(n)), 32, ''0'')::fingerprint128'
        WHEN 'wide' THEN 'lpad(to_hex(seed(n)), 64, ''0'')::fingerprint256'
        WHEN 'hashed' THEN 'seed(n)'
        WHEN 'signed' THEN 'minhash(words(n), shingle => 1)'
        ELSE 'seed(n)::fingerprint' END $$;
CREATE DOMAIN mark AS int CHECK (VALUE <> 13);
CREATE TABLE narrow (id int PRIMARY KEY, fp fingerprint, dup int, checked boolean);
CREATE TABLE whole (id int PRIMARY KEY, fp fingerprint, dup mark, checked boolean);
CREATE TABLE middle (id int PRIMARY KEY, fp fingerprint128, dup int, checked boolean);
CREATE TABLE wide (id int PRIMARY KEY, fp fingerprint256, dup int, checked boolean);
CREATE TABLE hashed (id int PRIMARY KEY, fp bigint, dup int, checked boolean);
CREATE TABLE signed (id int PRIMARY KEY, fp minhash_signature, dup int, checked boolean);
CREATE TABLE within (id int PRIMARY KEY, fp fingerprint, dup int, checked boolean,
    site text DEFAULT 'x');
CREATE TABLE parted (id int, fp fingerprint, dup int, checked boolean, part int DEFAULT 1)
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
                'neardup_dedup(''fp'', ''action=mark'', ''mark=dup'', ''key=id''%s)',
                split_part(timing, ' ', 1) || '_', timing, name,
                CASE name WHEN 'within' THEN ', ''scope=site'', ''radius=3'''
                WHEN 'signed' THEN ', ''similarity=0.8''' ELSE ', ''radius=3''' END);
        END LOOP;
    END LOOP;
END $$;
-- Runs a statement on each of them, and shows the changes of neardup_remark, twice: the tables
-- grouped by result.
CREATE FUNCTION each(statement text, triggers boolean DEFAULT true)
    RETURNS TABLE (changed bigint, again bigint, marks text, names text) LANGUAGE plpgsql AS $$
DECLARE name text; key text;
BEGIN
    CREATE TEMP TABLE results (name text, changed bigint, again bigint, marks text);
    FOR name IN SELECT t.name FROM tables t LOOP
        IF NOT triggers THEN EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', name); END IF;
        EXECUTE replace(replace(statement, '{}', name), '{fp}', value_of(name));
        IF NOT triggers THEN EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', name); END IF;
        changed := neardup_remark(name::regclass, manual => 'checked');
        again := neardup_remark(name::regclass, manual => 'checked');
        EXECUTE format('SELECT string_agg(id || CASE WHEN checked THEN ''!'' ELSE '''' END
            || coalesce(''->'' || dup, ''''), '' '' ORDER BY id) FROM %I', name) INTO marks;
        INSERT INTO results VALUES (name, changed, again, marks);
    END LOOP;
    RETURN QUERY SELECT r.changed, r.again, r.marks, string_agg(r.name, ' ' ORDER BY r.name)
        FROM results r GROUP BY 1, 2, 3 ORDER BY 4;
    DROP TABLE results;
END $$;

SELECT * FROM each('INSERT INTO {} (id, fp) SELECT n * 10, {fp} FROM generate_series(1, 6) n');
-- An original by hand persists and may have duplicates; so does a mark that names a far row.
SELECT * FROM each('UPDATE {} SET dup = NULL, checked = true WHERE id = 20');
SELECT * FROM each('UPDATE {} SET dup = 50, checked = true WHERE id = 10');
-- The row that a kept mark names is an original, although it is near others.
SELECT * FROM each('UPDATE {} SET checked = id = 50, dup = CASE id WHEN 50 THEN 40 END
    WHERE id <> 30', false);
-- No chains, for any written marks: a mark that names a marked row leads to that row's original.
SELECT * FROM each('UPDATE {} SET checked = id IN (20, 50, 60),
    dup = CASE id WHEN 60 THEN 20 WHEN 20 THEN 50 WHEN 50 THEN 30 END', false);
-- Circles, the row itself, and rows that do not exist are not valid as marks by hand.
SELECT * FROM each('UPDATE {} SET checked = true,
    dup = CASE id WHEN 10 THEN 20 WHEN 20 THEN 10 WHEN 30 THEN 30 WHEN 50 THEN 99
    WHEN 60 THEN 50 END', false);
-- Without the parameter, no mark persists.
SELECT name, neardup_remark(name::regclass) FROM tables ORDER BY 1;
SELECT id, dup FROM narrow ORDER BY id;
-- A column with the author of the mark; a row whose flag is NULL, and whose fingerprint is NULL.
ALTER TABLE narrow DISABLE TRIGGER USER;
UPDATE narrow SET checked = NULL;
UPDATE narrow SET fp = NULL, dup = 10, checked = true WHERE id = 30;
ALTER TABLE narrow ENABLE TRIGGER USER;
SELECT neardup_remark('narrow', 'before_', 'checked AND now() > ''2026-01-01'' -- by hand');
SELECT id, dup FROM narrow ORDER BY id;
-- Valid and invalid conditions.
SELECT neardup_remark('narrow', manual => 'checkd');
SELECT neardup_remark('narrow', manual => 'checked; DELETE FROM narrow');
SELECT neardup_remark('narrow', manual => 'true) OR (true');
SELECT neardup_remark('narrow', manual => '');
SELECT neardup_remark('narrow', manual => '1 / (id - id) = 1');
SELECT neardup_remark('narrow', manual => NULL);
-- It runs with the rights of the owner, who calls the function.
CREATE ROLE regress_neardup_marker LOGIN;
GRANT ALL ON SCHEMA remark_manual TO regress_neardup_marker;
ALTER TABLE narrow OWNER TO regress_neardup_marker;
\set admin :USER
\c - regress_neardup_marker
SET search_path = remark_manual, public;
SELECT neardup_remark('narrow', manual => 'id IN (SELECT id FROM whole)');
SELECT neardup_remark('narrow', manual => 'current_user = ''regress_neardup_marker''');
\c - :admin
SET client_min_messages = warning;
DROP SCHEMA remark_manual CASCADE;
DROP ROLE regress_neardup_marker;
