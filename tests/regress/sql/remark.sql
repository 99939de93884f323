-- neardup_remark: the marks of a table as its trigger would have set them for rows in the order of
-- their keys.
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE SCHEMA remark;
SET search_path = remark, public;

-- Tables of each kind of value, with a partial index and with a whole one, with a scope, with a
-- domain, and partitioned. Values 1 to 4 are near one another, 5 is far off, 6 is near 4 only.
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
CREATE TABLE narrow (id int PRIMARY KEY, fp fingerprint, dup int);
CREATE TABLE whole (id int PRIMARY KEY, fp fingerprint, dup mark);
CREATE TABLE middle (id int PRIMARY KEY, fp fingerprint128, dup int);
CREATE TABLE wide (id int PRIMARY KEY, fp fingerprint256, dup int);
CREATE TABLE hashed (id int PRIMARY KEY, fp bigint, dup int);
CREATE TABLE signed (id int PRIMARY KEY, fp minhash_signature, dup int);
CREATE TABLE within (id int PRIMARY KEY, fp fingerprint, dup int, site text DEFAULT 'x');
CREATE TABLE parted (id int, fp fingerprint, dup int, part int DEFAULT 1) PARTITION BY LIST (part);
CREATE TABLE part_one PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE part_two PARTITION OF parted FOR VALUES IN (2);
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
-- Runs a statement on each of them, and shows what neardup_remark changes, twice.
CREATE FUNCTION each(statement text) RETURNS TABLE (name text, changed bigint, again bigint,
    marks text) LANGUAGE plpgsql AS $$
BEGIN
    FOR name IN SELECT t.name FROM tables t LOOP
        EXECUTE replace(replace(statement, '{}', name), '{fp}', value_of(name));
        changed := neardup_remark(name::regclass);
        again := neardup_remark(name::regclass);
        marks := rows_of(name);
        RETURN NEXT;
    END LOOP;
END $$;

-- The marks that the trigger sets in the order of keys are valid already.
SELECT * FROM each('INSERT INTO {} (id, fp) SELECT n * 10, {fp} FROM generate_series(1, 6) n');
-- Rows inserted in another order: the trigger's original is the first row inserted.
SELECT * FROM each('DELETE FROM {}; INSERT INTO {} (id, fp)
    SELECT n * 10, {fp} FROM generate_series(6, 1, -1) n');
-- Loaded while the triggers are off, with marks that are wrong in each way: chains, circles, a row
-- itself, none at all, of a row that does not exist.
SELECT * FROM each('ALTER TABLE {} DISABLE TRIGGER USER; DELETE FROM {};
    INSERT INTO {} (id, fp, dup) SELECT n * 10, {fp}, (ARRAY[20, 30, 10, 40, 10, 99])[n]
    FROM generate_series(1, 6) n');
SELECT * FROM each('ALTER TABLE {} ENABLE TRIGGER USER');
-- Marks by hand and originals by hand do not persist.
SELECT * FROM each('UPDATE {} SET dup = 50 WHERE id = 10; UPDATE {} SET dup = NULL WHERE id = 20');
-- A row that has lost its fingerprint, and any number of equal rows.
SELECT * FROM each('ALTER TABLE {} DISABLE TRIGGER USER; UPDATE {} SET fp = NULL WHERE id = 20;
    INSERT INTO {} (id, fp) SELECT 100 + i, {fp} FROM generate_series(1, 3) n,
    generate_series(n, 9, 3) i; ALTER TABLE {} ENABLE TRIGGER USER');
-- The triggers continue from there.
SELECT * FROM each('DELETE FROM {} WHERE id IN (10, 101)');
SELECT * FROM each('DELETE FROM {} WHERE id > 100');

-- Scopes, and partitions, keep rows apart.
UPDATE within SET site = 'y' WHERE id IN (40, 60);
ALTER TABLE within DISABLE TRIGGER USER;
UPDATE within SET site = NULL WHERE id = 30;
UPDATE within SET dup = 30;
ALTER TABLE within ENABLE TRIGGER USER;
SELECT neardup_remark('within');
SELECT rows_of('within');
ALTER TABLE parted DISABLE TRIGGER USER;
UPDATE parted SET part = 2 WHERE id IN (40, 60);
ALTER TABLE parted ENABLE TRIGGER USER;
SELECT neardup_remark('parted');
SELECT rows_of('parted');
SELECT neardup_remark('part_two');

-- A foreign key on the mark, text keys, and triggers of the user's that write to the table.
CREATE TABLE pages (url text PRIMARY KEY, fp fingerprint,
    original text REFERENCES pages ON DELETE SET NULL ON UPDATE CASCADE, copies int DEFAULT 0);
CREATE INDEX ON pages USING neardup (fp) WHERE original IS NULL;
CREATE INDEX ON pages (original);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3');
CREATE TRIGGER dedup_marks AFTER UPDATE OR DELETE ON pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3');
CREATE FUNCTION count_copies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pages p SET copies = (SELECT count(*) FROM pages c WHERE c.original = p.url)
    WHERE p.url IN (OLD.original, NEW.original);
    RETURN NULL;
END $$;
CREATE TRIGGER counts AFTER UPDATE OF original ON pages FOR EACH ROW
    WHEN (OLD.original IS DISTINCT FROM NEW.original) EXECUTE FUNCTION count_copies();
ALTER TABLE pages DISABLE TRIGGER USER;
INSERT INTO pages SELECT chr(96 + n), seed(n)::fingerprint FROM generate_series(1, 6) n;
UPDATE pages SET original = 'f' WHERE url < 'e';
ALTER TABLE pages ENABLE TRIGGER USER;
SELECT neardup_remark('pages');
SELECT url, original, copies FROM pages ORDER BY url;
DELETE FROM pages WHERE url = 'a';
SELECT url, original FROM pages ORDER BY url;
SELECT neardup_remark('pages');

-- Reasons why it fails, and roles that may not call it.
CREATE FUNCTION forbid() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER forbid BEFORE UPDATE ON narrow FOR EACH ROW EXECUTE FUNCTION forbid();
ALTER TABLE narrow DISABLE TRIGGER before_;
INSERT INTO narrow VALUES (200, '0000000000000000');
SELECT neardup_remark('narrow');
DROP TRIGGER forbid ON narrow;
SELECT neardup_remark('narrow');
SELECT neardup_remark(NULL);
SELECT neardup_remark('narrow_pkey');
SELECT neardup_remark('tables');
SELECT neardup_remark('narrow', 'nothing');
ALTER TABLE narrow ADD far int;
CREATE INDEX ON narrow USING neardup (fp) WHERE far IS NULL;
CREATE TRIGGER second BEFORE INSERT OR UPDATE ON narrow FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=far', 'radius=8');
CREATE TRIGGER second_after AFTER UPDATE OR DELETE ON narrow FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=far', 'radius=8');
SELECT neardup_remark('narrow');
SELECT neardup_remark('narrow', 'second');
SELECT id, dup, far FROM narrow WHERE id < 100 OR id = 200 ORDER BY id;
SELECT neardup_remark('narrow', 'before_');
-- A trigger for some of the rows.
CREATE TABLE chosen (id int PRIMARY KEY, lang text, fp fingerprint, dup int);
CREATE INDEX ON chosen USING neardup (fp);
CREATE TRIGGER marks BEFORE INSERT OR UPDATE ON chosen FOR EACH ROW WHEN (NEW.lang = 'zh')
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
SELECT neardup_remark('chosen');
-- Several triggers: one that is for all rows may be named, and one must be named.
CREATE TRIGGER others BEFORE INSERT OR UPDATE ON chosen FOR EACH ROW WHEN (NEW.lang <> 'zh')
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
SELECT neardup_remark('chosen');
SELECT neardup_remark('chosen', 'others');
ALTER TABLE chosen ADD far int;
CREATE TRIGGER wider BEFORE INSERT OR UPDATE ON chosen FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=far', 'radius=8');
SELECT neardup_remark('chosen');
DROP TRIGGER others ON chosen;
SELECT neardup_remark('chosen');
SELECT neardup_remark('chosen', 'wider');
CREATE ROLE regress_neardup_marker LOGIN;
GRANT ALL ON SCHEMA remark TO regress_neardup_marker;
GRANT ALL ON narrow TO regress_neardup_marker;
SET ROLE regress_neardup_marker;
SELECT neardup_remark('narrow');
RESET ROLE;
-- The owner may call it, also where row security is forced.
ALTER TABLE pages OWNER TO regress_neardup_marker;
ALTER TABLE pages ENABLE ROW LEVEL SECURITY;
ALTER TABLE pages FORCE ROW LEVEL SECURITY;
CREATE POLICY few ON pages USING (url = 'b');
ALTER TABLE pages DISABLE TRIGGER USER;
UPDATE pages SET original = NULL;
ALTER TABLE pages ENABLE TRIGGER USER;
ALTER TABLE pages DISABLE TRIGGER counts;
\set admin :USER
SET ROLE regress_neardup_marker;
SELECT neardup_remark('pages');
RESET ROLE;
\c - regress_neardup_marker
SET search_path = remark, public;
SELECT neardup_remark('pages');
\c - :admin
SET search_path = remark, public;
ALTER ROLE regress_neardup_marker NOLOGIN;
SELECT neardup_remark('pages');
SELECT url, original FROM pages ORDER BY url;
DROP OWNED BY regress_neardup_marker;
DROP ROLE regress_neardup_marker;
