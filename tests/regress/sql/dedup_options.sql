-- The trigger neardup_dedup: the function that it computes, the contents of its log, notices, and
-- column lists (UPDATE OF) that hide changes from it.
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE SCHEMA options;
SET search_path = options, public;

-- Each function with its options. The column's type or the option selects the function.
CREATE TABLE texts (n int, body text);
INSERT INTO texts SELECT n, 'Word ' || string_agg('w' || i, ' ' ORDER BY i)
    FROM generate_series(1, 3) n, generate_series(n * 100, n * 100 + 60) i GROUP BY n;
INSERT INTO texts SELECT 10 + n, upper(body) || '!' FROM texts;
CREATE FUNCTION computed(type text, arguments text, expression text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    EXECUTE format('CREATE TABLE made (id int PRIMARY KEY, body text, fp %s)', type);
    EXECUTE format('CREATE INDEX ON made USING neardup (fp %s)',
        CASE type WHEN 'bigint' THEN 'bigint_hamming_ops' ELSE '' END);
    EXECUTE format('CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON made FOR EACH ROW '
        'EXECUTE FUNCTION neardup_dedup(''fp'', ''body''%s)', arguments);
    INSERT INTO made SELECT n, body FROM texts ORDER BY n;
    EXECUTE format('SELECT count(*) || '' rows, '' || CASE WHEN bool_and(fp = %s) '
        'THEN ''as told'' ELSE ''otherwise'' END FROM made', expression) INTO result;
    DROP TABLE made;
    RETURN result;
END $$;
SELECT computed('fingerprint', '', 'minhash64(body)');
SELECT computed('fingerprint', ', ''function=simhash'', ''weight=log''',
    'simhash(body, weight => ''log'')');
SELECT computed('fingerprint', ', ''function=minhash64''', 'minhash64(body)');
SELECT computed('fingerprint', ', ''function=minhash64'', ''tokens=char'', ''shingle=5''',
    'minhash64(body, tokens => ''char'', shingle => 5)');
SELECT computed('fingerprint128', '', 'minhash128(body)');
SELECT computed('fingerprint128', ', ''function=simhash128'', ''digits=zero''',
    'simhash128(body, digits => ''zero'')');
SELECT computed('fingerprint128', ', ''radius=18'', ''function=minhash128'', ''html=true''',
    'minhash128(body, html => true)');
SELECT computed('minhash_signature', '', 'minhash(body)');
SELECT computed('minhash_signature', ', ''function=minhash'', ''shingle=2''',
    'minhash(body, shingle => 2)');
SELECT computed('bigint', ', ''function=minhash64''', 'minhash64(body)::bigint');
SELECT computed('bigint', ', ''function=simhash'', ''shingle=1''',
    'simhash(body, shingle => 1)::bigint');
CREATE DOMAIN broad AS fingerprint128;
SELECT computed('broad', ', ''function=minhash128''', 'minhash128(body)');
-- Values that the trigger does not compute, and columns of the wrong type: use a generated column.
SELECT computed('fingerprint', ', ''function=minhash128''', 'NULL');
SELECT computed('minhash_signature', ', ''function=minhash64''', 'NULL');
SELECT computed('bigint', ', ''function=minhash''', 'NULL');
SELECT computed('bigint', '', 'NULL');
SELECT computed('fingerprint256', '', 'NULL');
SELECT computed('fingerprint256', ', ''function=simhash''', 'NULL');
SELECT computed('fingerprint', ', ''function=pg_sleep''', 'NULL');
SELECT computed('fingerprint', ', ''function=minhash64'', ''weight=log''', 'NULL');
SELECT computed('fingerprint', ', ''window=5''', 'NULL');

-- The log: omitted columns, the fingerprint in a separate column (also a generated one), and each
-- near-duplicate once.
CREATE SCHEMA site;
CREATE TABLE site.pages (url text PRIMARY KEY, body text,
    sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
CREATE INDEX ON site.pages USING neardup (sig);
CREATE TABLE site.dropped (kept text, distance float8, dropped jsonb, fingerprint minhash_signature,
    seen int DEFAULT 1);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON site.pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'action=log', 'log=dropped', 'omit=sig, body');
INSERT INTO site.pages SELECT 'http://a/' || n, body FROM texts WHERE n IN (1, 2);
INSERT INTO site.pages SELECT 'http://b/' || n, body FROM texts WHERE n IN (11, 12);
INSERT INTO site.pages SELECT 'http://b/' || n, body FROM texts WHERE n IN (11, 12);
SELECT kept, distance, dropped, fingerprint = minhash(body) AS computed, seen
    FROM site.dropped JOIN texts ON dropped->>'url' = 'http://b/' || n ORDER BY 1;
-- A unique index defines which log lines are the same: here, by key and fingerprint.
TRUNCATE site.dropped;
CREATE UNIQUE INDEX ON site.dropped ((dropped->>'url'), fingerprint);
INSERT INTO site.pages SELECT 'http://b/' || n, body FROM texts WHERE n IN (11, 12);
INSERT INTO site.pages SELECT 'http://b/' || n, body FROM texts WHERE n IN (11, 12);
INSERT INTO site.pages SELECT 'http://b/11', body FROM texts WHERE n = 12;
UPDATE site.pages SET body = (SELECT body FROM texts WHERE n = 2) WHERE url = 'http://a/1';
UPDATE site.pages SET body = (SELECT body FROM texts WHERE n = 2) WHERE url = 'http://a/1';
SELECT dropped->>'url' AS url, kept FROM site.dropped ORDER BY 1, 2;
-- A column of another type keeps its default; a deferred constraint is not used.
DROP INDEX site.dropped_expr_fingerprint_idx;
ALTER TABLE site.dropped ALTER fingerprint TYPE text USING 'mine', ALTER fingerprint SET DEFAULT
    'mine';
INSERT INTO site.pages SELECT 'http://c/' || n, body FROM texts WHERE n IN (11, 12);
SELECT dropped->>'url' AS url, fingerprint FROM site.dropped WHERE dropped->>'url' LIKE '%/c/%'
    ORDER BY 1;
DROP TABLE site.dropped;
CREATE TABLE site.dropped (kept text, distance float8, dropped jsonb, line int DEFAULT 1
    UNIQUE DEFERRABLE INITIALLY DEFERRED, other int UNIQUE);
INSERT INTO site.pages SELECT 'http://c/' || n, body FROM texts WHERE n = 11;
INSERT INTO site.pages SELECT 'http://c/' || n, body FROM texts WHERE n = 12;
-- A log that is a view.
DROP TABLE site.dropped;
CREATE TABLE site.lines (kept text UNIQUE, distance float8, dropped jsonb);
CREATE VIEW site.dropped AS SELECT * FROM site.lines;
INSERT INTO site.pages SELECT 'http://c/' || n, body FROM texts WHERE n = 11;
SELECT kept, dropped FROM site.lines;
CREATE RULE twice AS ON INSERT TO site.lines DO ALSO SELECT 1;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON site.pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'action=log', 'log=lines', 'omit=body,sig');
INSERT INTO site.pages SELECT 'http://c/' || n, body FROM texts WHERE n = 12;
SELECT kept FROM site.lines ORDER BY 1;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON site.pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'action=log', 'log=lines', 'omit=nothing');
INSERT INTO site.pages SELECT 'http://c/' || n, body FROM texts WHERE n = 12;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON site.pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'action=skip', 'omit=body');
INSERT INTO site.pages SELECT 'http://c/' || n, body FROM texts WHERE n = 12;
-- A similarity of fingerprints by minhash64 and minhash128: 6 bits of 64, 12 of 128.
CREATE TABLE narrow (id int PRIMARY KEY, fp fingerprint);
CREATE TABLE wide (id int PRIMARY KEY, fp fingerprint128);
CREATE INDEX ON narrow USING neardup (fp);
CREATE INDEX ON wide USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT ON narrow FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'similarity=0.8');
CREATE TRIGGER dedup BEFORE INSERT ON wide FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'similarity=0.8');
INSERT INTO narrow VALUES (1, repeat('0', 16)::fingerprint), (2, '000000000000003f'),
    (3, '000000000000007f');
INSERT INTO wide SELECT n, (repeat('0', 28) || last)::fingerprint128
FROM unnest(ARRAY['0000', '0fff', '1fff']) WITH ORDINALITY AS v (last, n) ORDER BY n;
SELECT array_agg(id ORDER BY id) AS narrow, (SELECT array_agg(id ORDER BY id) FROM wide) AS wide
FROM narrow;

DROP SCHEMA site CASCADE;

-- Notices of skipped rows. Only roles that may read the key see it.
CREATE TABLE told (id int PRIMARY KEY, fp fingerprint, seen int DEFAULT 0);
CREATE INDEX ON told USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON told FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'notice=true');
INSERT INTO told VALUES (1, '0000000000000000'), (2, '0000000000000003'), (3, 'ffffffffffffffff');
UPDATE told SET fp = '0000000000000007' WHERE id = 3;
UPDATE told SET seen = 1;
INSERT INTO told VALUES (3, '0000000000000001') ON CONFLICT (id) DO UPDATE SET fp = EXCLUDED.fp;
SELECT id, fp, seen FROM told ORDER BY id;
CREATE ROLE regress_neardup_teller;
GRANT INSERT, UPDATE (fp) ON told TO regress_neardup_teller;
SET ROLE regress_neardup_teller;
INSERT INTO told VALUES (2, '0000000000000003');
UPDATE told SET fp = '0000000000000001';
RESET ROLE;
DROP OWNED BY regress_neardup_teller;
DROP ROLE regress_neardup_teller;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON told FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'notice=off');
INSERT INTO told VALUES (2, '0000000000000003');
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON told FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'notice=loud');
INSERT INTO told VALUES (2, '0000000000000003');
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON told FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=error', 'notice=true');
INSERT INTO told VALUES (2, '0000000000000003');
DROP TABLE told;

-- UPDATE OF without a column that is compared: a warning, once per session.
CREATE TABLE scoped (id int PRIMARY KEY, site text, body text, fp fingerprint);
CREATE INDEX ON scoped USING neardup (site, fp);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'scope=site');
INSERT INTO scoped VALUES (1, 'x', 'one text');
INSERT INTO scoped VALUES (2, 'y', 'one text');
UPDATE scoped SET site = 'x' WHERE id = 2;
SELECT id, site FROM scoped ORDER BY id;
-- The same for the text's column, without which fingerprints are not updated.
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'scope=site');
INSERT INTO scoped VALUES (3, 'z', 'one text');
-- Another trigger on that column is sufficient, if it compares the same rows.
CREATE TRIGGER rest BEFORE UPDATE OF body, site ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body');
CREATE INDEX ON scoped USING neardup (fp);
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'scope=site');
\c -
\set SHOW_CONTEXT never
SET search_path = options, public;
INSERT INTO scoped VALUES (4, 'v', 'one text');
CREATE OR REPLACE TRIGGER rest BEFORE UPDATE OF site ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'scope=site');
\c -
\set SHOW_CONTEXT never
SET search_path = options, public;
INSERT INTO scoped VALUES (5, 'u', 'one text');
CREATE OR REPLACE TRIGGER rest BEFORE UPDATE OF site ON scoped FOR EACH ROW
    WHEN (NEW.id < 10) EXECUTE FUNCTION neardup_dedup('fp', 'body', 'scope=site');
INSERT INTO scoped VALUES (6, 't', 'one text');
-- A trigger that uses the fingerprint computed by another one must fire on the text.
CREATE OR REPLACE TRIGGER rest BEFORE UPDATE OF fp ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp');
UPDATE scoped SET fp = '0123456789abcdef' WHERE id = 6;
-- The fingerprint's own column, computed by the trigger: if listed, changes of it are reverted.
DROP TRIGGER rest ON scoped;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body, site, fp ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'scope=site');
UPDATE scoped SET fp = 'fedcba9876543210' WHERE id = 6;
SELECT fp = minhash64(body) AS computed FROM scoped WHERE id = 6;
-- Triggers without a list, and triggers without UPDATE, do not warn.
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'scope=site');
\c -
\set SHOW_CONTEXT never
SET search_path = options, public;
INSERT INTO scoped VALUES (7, 's', 'one text');
-- Generated columns: a list with their base columns sees all changes, and so does one with them.
CREATE TABLE made (id int PRIMARY KEY, title text, body text, url text,
    site text GENERATED ALWAYS AS (split_part(url, '/', 1)) STORED,
    fp fingerprint GENERATED ALWAYS AS (simhash(title || ' ' || body)) STORED);
CREATE INDEX ON made USING neardup (site, fp);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON made FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'scope=site');
INSERT INTO made VALUES (1, 'a title', 'and a text', 'x/1'), (2, 'a title', 'and a text', 'x/2'),
    (3, 'a title', 'and a text', 'y/2');
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body, title, site ON made FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'scope=site');
INSERT INTO made VALUES (5, 'a title', 'and a text', 'x/2');
UPDATE made SET url = 'x/3' WHERE id = 3;
SELECT id, url FROM made ORDER BY id;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp, url ON made FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'scope=site');
INSERT INTO made VALUES (4, 'another title', 'of another text', 'x/4');
UPDATE made SET title = 'a title', body = 'and a text' WHERE id = 4;
SELECT id, title FROM made ORDER BY id;
-- The text and the key may be generated, too; a mark cannot be.
CREATE TABLE joined (url text, title text, body text,
    id text PRIMARY KEY GENERATED ALWAYS AS (lower(url)) STORED,
    whole text GENERATED ALWAYS AS (title || ' ' || body) STORED,
    fp fingerprint, dup text, made text GENERATED ALWAYS AS (upper(url)) STORED);
CREATE INDEX ON joined USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON joined FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'whole', 'action=mark', 'mark=dup', 'shingle=1',
    'radius=3');
CREATE TRIGGER marks AFTER UPDATE OR DELETE ON joined FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'whole', 'action=mark', 'mark=dup', 'shingle=1',
    'radius=3');
INSERT INTO joined VALUES ('A', 'a title', 'and a text'), ('B', 'A title', 'and a TEXT'),
    ('a', 'a title', 'of the same key') ON CONFLICT (id) DO NOTHING;
SELECT id, dup, fp = minhash64(whole, shingle => 1) AS computed FROM joined ORDER BY id;
UPDATE joined SET dup = 'b' WHERE id = 'b';
UPDATE joined SET dup = 'a' WHERE id = 'a';
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON joined FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'whole', 'action=mark', 'mark=made', 'radius=3');
INSERT INTO joined VALUES ('C', 'another title', 'and a text');
-- With marks, which would become wrong, it is an error.
ALTER TABLE made ADD dup int;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE OF body, dup, url ON made FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'scope=site', 'action=mark', 'mark=dup', 'radius=3');
INSERT INTO made VALUES (5, 'a title', 'and a text', 'x/5');

-- Marks that statements set, and marks that they do not set.
CREATE TABLE kept (id int PRIMARY KEY, fp fingerprint, seen int DEFAULT 0,
    dup int REFERENCES kept ON DELETE SET NULL ON UPDATE CASCADE);
CREATE INDEX ON kept USING neardup (fp) WHERE dup IS NULL;
CREATE INDEX ON kept (dup);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON kept FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'manual=false', 'radius=3');
CREATE TRIGGER marks AFTER UPDATE OR DELETE ON kept FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'manual=false', 'radius=3');
INSERT INTO kept (id, fp, dup) VALUES (1, '0000000000000000', 2), (2, '0000000000000001', NULL),
    (3, '0000000000000003', NULL), (4, 'ffffffffffffffff', 1);
UPDATE kept SET dup = CASE id WHEN 3 THEN 4 WHEN 4 THEN 1 END, seen = 1;
SELECT * FROM kept ORDER BY id;
UPDATE kept SET id = 10 WHERE id = 1;
SELECT * FROM kept ORDER BY id;
DELETE FROM kept WHERE id = 2;
UPDATE kept SET fp = 'fffffffffffffff0', dup = NULL WHERE id = 3;
SELECT * FROM kept ORDER BY id;
UPDATE kept SET fp = 'fffffffffffffffe', dup = NULL WHERE id = 3;
UPDATE kept SET dup = NULL;
SELECT * FROM kept ORDER BY id;
DELETE FROM kept WHERE id = 4;
SELECT * FROM kept ORDER BY id;
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON kept FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'manual=false');
UPDATE kept SET seen = 2;

-- An upsert of a page whose new text is like another's: the constraint raises an error, and the
-- trigger takes its action. A text like the page's own has neither effect.
CREATE TABLE refused (url text PRIMARY KEY, fp fingerprint, EXCLUDE USING neardup (fp WITH ~=));
CREATE TABLE marked_pages (url text PRIMARY KEY, fp fingerprint, dup text);
CREATE INDEX ON marked_pages USING neardup (fp) WHERE dup IS NULL;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON marked_pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
CREATE TRIGGER marks AFTER UPDATE OR DELETE ON marked_pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=dup', 'radius=3');
INSERT INTO refused VALUES ('a', '0000000000000000'), ('b', 'ffffffffffffffff');
INSERT INTO marked_pages SELECT * FROM refused;
INSERT INTO refused VALUES ('a', '0000000000000001')
    ON CONFLICT (url) DO UPDATE SET fp = EXCLUDED.fp;
INSERT INTO refused VALUES ('b', '0000000000000000')
    ON CONFLICT (url) DO UPDATE SET fp = EXCLUDED.fp;
INSERT INTO marked_pages VALUES ('a', '0000000000000001'), ('b', '0000000000000000')
    ON CONFLICT (url) DO UPDATE SET fp = EXCLUDED.fp;
SELECT * FROM marked_pages ORDER BY url;

-- Two triggers together: near-duplicates within a site are skipped, across sites they are marked.
CREATE TABLE news (id int PRIMARY KEY, site text, fp fingerprint, duplicate_of int);
CREATE INDEX ON news USING neardup (site, fp);
CREATE INDEX ON news USING neardup (fp) WHERE duplicate_of IS NULL;
CREATE INDEX ON news (duplicate_of);
CREATE TRIGGER a_skip BEFORE INSERT OR UPDATE OF fp, site ON news FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'scope=site', 'action=skip');
CREATE TRIGGER b_mark BEFORE INSERT OR UPDATE OF fp, duplicate_of ON news FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3');
CREATE TRIGGER c_marks AFTER UPDATE OR DELETE ON news FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3');
INSERT INTO news VALUES (1, 'x', '0000000000000000'), (2, 'x', '0000000000000001'),
    (3, 'y', '0000000000000001'), (4, 'y', '0000000000000000'), (5, 'z', '0000000000000003'),
    (6, 'z', 'ffffffffffffffff');
SELECT id, site, duplicate_of FROM news ORDER BY id;
UPDATE news SET site = 'y' WHERE id = 5;
UPDATE news SET fp = '0000000000000000' WHERE id = 6;
DELETE FROM news WHERE id = 1;
SELECT id, site, duplicate_of FROM news ORDER BY id;
INSERT INTO news VALUES (7, 'x', '0000000000000000');
SELECT id, site, duplicate_of FROM news ORDER BY id;
SELECT neardup_remark('news');
