-- The trigger neardup_dedup on signatures.
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE SCHEMA minhash_dedup_test;
SET search_path = minhash_dedup_test, public;
CREATE TABLE pages (id bigint PRIMARY KEY, body text, sig minhash_signature);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'body', 'similarity=0.7', 'action=skip', 'shingle=1');
-- No index, and one that does not guarantee this similarity: a search would read all of it.
INSERT INTO pages VALUES (1, 'The quick brown fox jumps over the lazy dog');
CREATE INDEX pages_sig ON pages USING neardup (sig);
INSERT INTO pages VALUES (1, 'The quick brown fox jumps over the lazy dog');
DROP INDEX pages_sig;
CREATE INDEX pages_sig ON pages USING neardup (sig) WITH (similarity = 0.7);
INSERT INTO pages VALUES (1, 'The quick brown fox jumps over the lazy dog'),
    (2, 'The quick brown fox jumps over the lazy dog indeed'),
    (3, 'Something else altogether, of which nobody has written before'),
    (4, '...'), (5, NULL), (6, '...')
    RETURNING id, sig = minhash(body, shingle => 1) AS computed;
COPY pages (id, body) FROM stdin;
7	A quick brown fox jumps over the lazy dog
8	Nothing of the kind was ever seen in this town or the next
9	nothing of the kind was ever seen in this town, or in the next
\.
SELECT id, body FROM pages ORDER BY id;
-- A row is not compared with its own former version; an update to another's text is skipped.
UPDATE pages SET body = 'the quick brown fox jumps over a lazy dog.' WHERE id = 1;
UPDATE pages SET body = 'The quick brown fox jumps over the lazy dog' WHERE id = 3;
UPDATE pages SET body = 'A text that is new' WHERE id = 3;
SELECT id, body, sig = minhash(body, shingle => 1) AS computed FROM pages WHERE id IN (1, 3)
    ORDER BY id;
-- No lock outlives its statement.
BEGIN;
INSERT INTO pages VALUES (10, 'A statement of its own, in a transaction that goes on');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
ROLLBACK;

-- error
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'body', 'similarity=0.7', 'action=error', 'shingle=1');
INSERT INTO pages VALUES (20, 'Nothing of the kind was ever seen in this town or the next');

-- mark, with signatures stored by the client: the mark is the nearest original.
CREATE TABLE marked (id int PRIMARY KEY, sig minhash_signature, duplicate_of int REFERENCES marked);
CREATE INDEX ON marked USING neardup (sig) WHERE duplicate_of IS NULL;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF sig, duplicate_of ON marked FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'action=mark', 'mark=duplicate_of', 'similarity=0.8');
CREATE TRIGGER dedup_marks AFTER UPDATE OR DELETE ON marked FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'action=mark', 'mark=duplicate_of', 'similarity=0.8');
CREATE FUNCTION range(int, int) RETURNS minhash_signature LANGUAGE sql IMMUTABLE AS
    'SELECT minhash(ARRAY(SELECT n::text FROM generate_series($1, $2) n))';
INSERT INTO marked VALUES (1, range(1, 100)), (2, range(31, 130)), (3, range(18, 117)),
    (4, range(10, 109)), (5, range(1, 100)), (6, range(500, 600)), (7, NULL);
SELECT id, duplicate_of, (SELECT o.sig <%> m.sig FROM marked o
    WHERE o.id = m.duplicate_of) <= 0.2 AS near,
    NOT EXISTS (SELECT FROM marked o WHERE o.duplicate_of IS NULL AND o.id < m.id
    AND o.sig <%> m.sig < (SELECT k.sig <%> m.sig FROM marked k WHERE k.id = m.duplicate_of)) AS
    nearest
    FROM marked m ORDER BY id;
UPDATE marked SET sig = range(900, 999) WHERE id = 5;
SELECT id, duplicate_of FROM marked WHERE id = 5;
-- A signature of another kind is near nothing, and one of another length is refused.
INSERT INTO marked VALUES (8, minhash(ARRAY(SELECT n::text FROM generate_series(1, 100) n),
    seed => 1));
SELECT id, duplicate_of FROM marked WHERE id = 8;
INSERT INTO marked VALUES (9, minhash(ARRAY['x'], 64));

-- log, of a generated column, within a scope
CREATE TABLE site_pages (url text PRIMARY KEY, site text, body text, sig minhash_signature GENERATED
    ALWAYS AS (minhash(body, shingle => 1, hashes => 64)) STORED);
CREATE TABLE dropped (kept text, distance float8, dropped jsonb);
CREATE TRIGGER dedup BEFORE INSERT ON site_pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('sig', 'action=log', 'log=dropped', 'similarity=0.75',
    'scope=site');
INSERT INTO site_pages VALUES ('a', 'x', 'One page and its text, as it was first found');
CREATE INDEX ON site_pages USING neardup (site, sig) WITH (hashes = 64, similarity = 0.75);
INSERT INTO site_pages VALUES ('a', 'x', 'One page and its text, as it was first found'),
    ('b', 'x', 'one page and its text; as it was first found'),
    ('c', 'y', 'One page and its text, as it was first found'),
    ('d', NULL, 'One page and its text, as it was first found');
SELECT url FROM site_pages ORDER BY url;
SELECT kept, distance, dropped->>'url' AS url FROM dropped;

-- Invalid arguments.
CREATE TABLE bad (id int, body text, sig minhash_signature, fp fingerprint);
CREATE INDEX ON bad USING neardup (sig);
CREATE INDEX ON bad USING neardup (fp);
CREATE FUNCTION try(VARIADIC arguments text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER dedup BEFORE INSERT ON bad FOR EACH ROW EXECUTE '
        'FUNCTION neardup_dedup(%s)',
        (SELECT string_agg(quote_literal(a), ', ') FROM unnest(arguments) AS a));
    INSERT INTO bad VALUES (1, 'text');
    RETURN NEXT 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN NEXT SQLSTATE || ': ' || SQLERRM;
    RETURN NEXT '    ' || detail;
END $$;
SELECT try('sig', 'radius=3');
SELECT try('sig', 'distance=0.2');
SELECT try('sig', 'similarity=-0.1');
SELECT try('sig', 'similarity=NaN');
SELECT try('sig', 'similarity=high');
SELECT try('sig', 'similarity=0.8', 'radius=0.2');
SELECT try('sig', 'similarity=0.5');
SELECT try('fp', 'similarity=0.8');
SELECT try('fp', 'similarity=1.5');
SELECT try('fp', 'body', 'function=simhash', 'similarity=0.8');
SELECT try('fp', 'radius=0.2');
SELECT try('sig', 'body', 'colour=red');
SELECT try('sig', 'body', 'hashes=64');
SELECT try('sig', 'body', 'hashes=128', 'seed=0', 'tokens=char', 'similarity=0.8');

SET client_min_messages = warning;
DROP SCHEMA minhash_dedup_test CASCADE;
