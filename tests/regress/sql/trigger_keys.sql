-- The trigger neardup_dedup: unique keys of every kind identify the same row, and the log, domains
-- and names.
-- Needs: citext
\set VERBOSITY default
\set SHOW_CONTEXT never

-- By an expression, a predicate, several columns, a generated column.
CREATE TABLE pages (id int GENERATED ALWAYS AS IDENTITY, url text, live boolean DEFAULT true, site
    int, path text,
    norm text GENERATED ALWAYS AS (rtrim(url, '/')) STORED, code int, fp fingerprint, visits int
        DEFAULT 1);
CREATE INDEX ON pages USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp ON pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp');
INSERT INTO pages (url, site, path, code, fp) VALUES ('http://a', 1, 'x', NULL, '0000000000000000');
CREATE FUNCTION again(conflict text, url text, site int, path text, code int, fp fingerprint, live
    boolean DEFAULT true) RETURNS text LANGUAGE plpgsql AS $$
DECLARE count int;
BEGIN
    EXECUTE
        format('INSERT INTO pages (url, site, path, code, fp, live) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT %s DO UPDATE SET fp = EXCLUDED.fp, visits = pages.visits + 1', conflict)
        USING url, site, path, code, fp, live;
    GET DIAGNOSTICS count = ROW_COUNT;
    RETURN count || ': ' || (SELECT string_agg(format('%s %s %s', p.url, p.fp, p.visits), ', '
        ORDER BY id) FROM pages p);
END $$;
CREATE UNIQUE INDEX lower_url ON pages (lower(url));
SELECT again('(lower(url))', 'HTTP://A', 2, 'x', 1, '0000000000000001');
-- Another URL: an ordinary near-duplicate.
SELECT again('(lower(url))', 'HTTP://B', 2, 'x', 1, '0000000000000001');
DROP INDEX lower_url;
CREATE UNIQUE INDEX partial ON pages (url) WHERE live;
SELECT again('(url) WHERE live', 'http://a', 2, 'x', 1, '0000000000000003');
-- A row outside the partial index is another row: first the new one, then the old one.
SELECT again('(url) WHERE live', 'http://a', 2, 'x', 1, '0000000000000001', false);
UPDATE pages SET live = false;
SELECT again('(url) WHERE live', 'http://a', 2, 'x', 1, '0000000000000001');
UPDATE pages SET live = true;
DROP INDEX partial;
CREATE UNIQUE INDEX site_path ON pages (site, upper(path));
SELECT again('(site, upper(path))', 'http://c', 1, 'X', 1, '0000000000000007');
SELECT again('(site, upper(path))', 'http://c', 2, 'X', 1, '0000000000000007');
SELECT again('(site, upper(path))', 'http://c', 1, NULL, 1, '0000000000000007');
DROP INDEX site_path;
CREATE UNIQUE INDEX normal ON pages (norm);
SELECT again('(norm)', 'http://a//', 3, 'y', 1, '000000000000000f');
DROP INDEX normal;
CREATE UNIQUE INDEX normal ON pages (upper(norm)) WHERE norm <> '';
SELECT again('(upper(norm)) WHERE norm <> ''''', 'HTTP://a/', 3, 'y', 1, '0000000000000007');
DROP INDEX normal;
-- NULLs are distinct in a unique index by default.
CREATE UNIQUE INDEX code ON pages (code);
SELECT again('(code)', 'http://d', 3, 'y', NULL, '0000000000000003');
DROP INDEX code;
CREATE UNIQUE INDEX code ON pages (code) NULLS NOT DISTINCT;
SELECT again('(code)', 'http://d', 3, 'y', NULL, '0000000000000003');
DROP INDEX code;
-- A deferred constraint does not identify rows.
ALTER TABLE pages ADD CONSTRAINT later UNIQUE (path) DEFERRABLE;
INSERT INTO pages (url, path, fp) VALUES ('http://e', 'x', '0000000000000001');
SELECT count(*) FROM pages;

-- Partitions, with signatures.
CREATE TABLE parts (site int, url text, body text, sig minhash_signature) PARTITION BY LIST (site);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE UNIQUE INDEX ON parts (site, lower(url));
CREATE INDEX ON parts USING neardup (sig);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON parts FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'body', 'shingle=1');
INSERT INTO parts VALUES (1, 'a',
    'The library reopens on Monday, after a year of repairs, says the mayor of the town');
INSERT INTO parts VALUES (1, 'A',
    'The library reopens on Monday, after a year of repairs, says the mayor of this town')
    ON CONFLICT (site, lower(url)) DO UPDATE SET body = EXCLUDED.body;
INSERT INTO parts VALUES (1, 'B',
    'The library reopens on Monday, after a year of repairs, says the mayor of the town')
    ON CONFLICT (site, lower(url)) DO UPDATE SET body = EXCLUDED.body;
SELECT url, body FROM parts;

-- The log has the complete row, with its generated columns; on UPDATE too.
CREATE TABLE logged (id int PRIMARY KEY, body text, twice int GENERATED ALWAYS AS (2 * id) STORED,
    fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED, size int GENERATED ALWAYS AS
        (length(body)) STORED);
CREATE INDEX ON logged USING neardup (fp);
CREATE TABLE dropped (kept int, distance int, dropped jsonb);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON logged FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=log', 'log=dropped');
INSERT INTO logged VALUES (1, 'The library reopens on Monday'), (2,
    'the library reopens on Monday!!'), (3, 'Rain is expected');
UPDATE logged SET body = 'the library reopens: on Monday' WHERE id = 3;
SELECT kept, distance, dropped, dropped->>'fp' = simhash(dropped->>'body')::text AS computed
    FROM dropped;

-- Domains: of a fingerprint, of each width; of a key; of a text. Their conditions hold.
CREATE DOMAIN page_fp AS fingerprint CHECK (VALUE <> '0000000000000000');
CREATE DOMAIN page_fp128 AS fingerprint128;
CREATE DOMAIN page_sig AS minhash_signature;
CREATE DOMAIN page_id AS int;
CREATE DOMAIN original AS int CHECK (VALUE < 100);
CREATE DOMAIN page_body AS text;
CREATE TABLE domains (id page_id PRIMARY KEY, body page_body, fp page_fp, fp128 page_fp128, sig
    page_sig, dup original);
CREATE INDEX ON domains USING neardup (fp);
CREATE INDEX ON domains USING neardup (fp128);
CREATE INDEX ON domains USING neardup (sig);
CREATE INDEX ON domains (dup);
CREATE TRIGGER a BEFORE INSERT OR UPDATE ON domains FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp128', 'body', 'radius=0');
CREATE TRIGGER b BEFORE INSERT OR UPDATE ON domains FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'body', 'similarity=1');
CREATE TRIGGER c BEFORE INSERT OR UPDATE ON domains FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'action=mark', 'mark=dup', 'radius=20',
    'shingle=1');
CREATE TRIGGER c_marks AFTER UPDATE OR DELETE ON domains FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'action=mark', 'mark=dup', 'radius=20',
    'shingle=1');
INSERT INTO domains VALUES (1, 'The library reopens on Monday'), (2,
    'The library reopens on Monday'), (3, 'The old library reopens on Monday');
SELECT id, fp = minhash64(body, shingle => 1) AS computed, fp128 = minhash128(body) AS computed128,
    sig = minhash(body) AS signed, dup FROM domains ORDER BY id;
INSERT INTO domains VALUES (200, 'Rain is expected in all of the country today');
INSERT INTO domains VALUES (201, 'Rain is expected in all of the country on this day');
ALTER DOMAIN page_fp ADD CONSTRAINT never CHECK (false) NOT VALID;
INSERT INTO domains VALUES (4, 'Nothing like it');

-- citext is text.
CREATE SCHEMA ext;
CREATE EXTENSION citext SCHEMA ext;
CREATE DOMAIN loud AS ext.citext;
CREATE TABLE cited (id int PRIMARY KEY, body ext.citext, title loud, fp fingerprint, other
    fingerprint);
CREATE INDEX ON cited USING neardup (fp);
CREATE INDEX ON cited USING neardup (other);
CREATE TRIGGER a BEFORE INSERT ON cited FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'radius=0');
CREATE TRIGGER b BEFORE INSERT ON cited FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('other', 'title', 'radius=0');
INSERT INTO cited VALUES (1, 'The library', 'reopens'), (2, 'THE LIBRARY', 'closes'), (3,
    'The school', 'reopens'), (4, 'The school', 'closes');
SELECT id, fp = minhash64(body::text) AS computed, other = minhash64(title::text) AS computed
    FROM cited ORDER BY id;

-- Names: quoted as in SQL, or as they are.
CREATE TABLE "odd ""table""" ("a=b" int PRIMARY KEY, "x,y" text, " z " text, "Body ""it""" text,
    "f=p" fingerprint, UPPER int);
CREATE INDEX ON "odd ""table""" USING neardup ("x,y", " z ", "f=p");
CREATE OR REPLACE FUNCTION try(VARIADIC arguments text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
    EXECUTE
        format('CREATE OR REPLACE TRIGGER dedup BEFORE INSERT ON "odd ""table""" '
            'FOR EACH ROW EXECUTE FUNCTION neardup_dedup(%s)',
        (SELECT string_agg(quote_literal(a), ', ') FROM unnest(arguments) AS a));
    INSERT INTO "odd ""table""" VALUES (1, 'x', 'z', 'text'), (2, 'x', 'z', 'TEXT'), (3, 'x', 'y',
        'text');
    RETURN NEXT (SELECT string_agg("a=b"::text, ' ') FROM "odd ""table""");
    DELETE FROM "odd ""table""";
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN NEXT SQLSTATE || ': ' || SQLERRM;
    RETURN NEXT '    ' || detail;
    RETURN NEXT '    ' || hint;
END $$;
SELECT try('"f=p"', '"Body ""it"""', 'scope=" z ", "x,y"');
SELECT try('"f=p"', 'Body "it"', 'scope="x,y"," z "', 'key="a=b"', 'action=error');
SELECT try('"f=p"', 'Body "it"', 'scope=" z "');
SELECT try('"f=p"', 'Body "it"', 'scope="x,y", " z " upper');
SELECT try('"f=p"', 'Body "it"', 'scope="x,y", ');
SELECT try('"f=p"', 'Body "it"', 'scope=x,y');
SELECT try('"f=p', 'Body "it"');
SELECT try('"f=p" x');
SELECT try('""');
SELECT try('f=p', 'Body "it"');
SELECT try('"f=p"', 'UPPER');
SELECT try('"f=p"', 'upper');
SELECT try('"f=p"', 'key=');
SELECT try('"f=p"', 'action=mark', 'mark="a');
