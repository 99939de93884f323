-- The trigger neardup_dedup: its actions, its arguments, and access rights.
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE docs (id bigint PRIMARY KEY, body text, fp fingerprint);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'radius=3', 'action=skip');
-- Without an index, a search would read the table for each row.
INSERT INTO docs VALUES (1, 'The quick brown fox jumps over the lazy dog');
CREATE INDEX docs_fp ON docs USING neardup (fp);

-- skip
INSERT INTO docs VALUES (1, 'The quick brown fox jumps over the lazy dog'),
    (2, 'the QUICK brown fox jumps over the lazy dog!'),
    (3, 'Something else altogether, of which nobody has written before'),
    (4, '...'), (5, NULL), (6, '...')
    RETURNING id, fp = minhash64(body) AS computed;
COPY docs (id, body) FROM stdin;
7	The quick brown fox jumps over the lazy dog
8	Nothing of the kind was ever seen in this town or the next
9	nothing of the kind was ever seen in this town, or the next
\.
SELECT id, body FROM docs ORDER BY id;
-- A row is not compared with its own former version; an update to another's text is skipped.
UPDATE docs SET body = 'the quick brown fox jumps over the lazy dog.' WHERE id = 1;
UPDATE docs SET body = 'The quick brown fox jumps over the lazy dog' WHERE id = 3;
UPDATE docs SET body = 'A text that is new' WHERE id = 3;
SELECT id, body, fp = minhash64(body) AS computed FROM docs WHERE id IN (1, 3) ORDER BY id;
INSERT INTO docs SELECT 100 + n, 'Something else altogether, of which nobody has written before'
    FROM generate_series(1, 3) AS n;
SELECT count(*) FROM docs WHERE id > 100;
-- No lock outlives its statement.
BEGIN;
INSERT INTO docs VALUES (10, 'A statement of its own, in a transaction that goes on');
COPY docs (id, body) FROM stdin;
11	Another row that nothing here resembles in the least
\.
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
ROLLBACK;

-- error
CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON docs FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'action=error');
INSERT INTO docs VALUES (20, 'Nothing of the kind was ever seen in this town or the next');
\set VERBOSITY sqlstate
INSERT INTO docs VALUES (20, 'Nothing of the kind was ever seen in this town or the next');
\set VERBOSITY default

-- mark: the nearest original, and never a row that is marked itself
CREATE TABLE marked (id int PRIMARY KEY, fp fingerprint, duplicate_of int REFERENCES marked);
CREATE INDEX ON marked USING neardup (fp) WHERE duplicate_of IS NULL;
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp, duplicate_of ON marked FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3');
CREATE TRIGGER dedup_marks AFTER UPDATE OR DELETE ON marked FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=duplicate_of', 'radius=3');
INSERT INTO marked SELECT i, v::bigint::fingerprint FROM (VALUES (1, 0), (2, 1), (3, 15), (4, 7),
    (5, 7), (6, 31), (7, NULL)) AS t(i, v);
SELECT * FROM marked ORDER BY id;
UPDATE marked SET fp = 'ffffffffffffffff' WHERE id = 2;
UPDATE marked SET fp = '0000000000000000' WHERE id = 2;
SELECT * FROM marked WHERE id = 2;
UPDATE marked SET fp = 'ffffffffffffffff' WHERE id = 2;
SELECT * FROM marked WHERE id = 2;

-- The log is in the schema of the table, independent of the search_path
CREATE SCHEMA apart;
CREATE TABLE apart.pages (url text PRIMARY KEY, body text,
    fp fingerprint128 GENERATED ALWAYS AS (simhash128(body)) STORED);
CREATE INDEX ON apart.pages USING neardup (fp);
CREATE TABLE apart.dropped (kept text, distance int, dropped jsonb, note text DEFAULT 'by default');
CREATE TRIGGER dedup BEFORE INSERT ON apart.pages FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'action=log', 'log=dropped', 'radius=6');
INSERT INTO apart.pages VALUES ('a', 'One page and its text, as it was first found'),
    ('b', 'one page and its text; as it was first found'), ('c', 'Another');
SELECT url FROM apart.pages ORDER BY url;
SELECT * FROM apart.dropped;

-- scope: within equal values of all its columns
CREATE TABLE scoped (id int PRIMARY KEY, site text COLLATE "C", lang char(2), hash bigint);
CREATE INDEX ON scoped USING neardup (hash bigint_hamming_ops);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON scoped FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('hash', 'scope=lang, site', 'radius=8');
INSERT INTO scoped VALUES (1, 'x', 'en', 0);
CREATE INDEX ON scoped USING neardup (site, lang, hash bigint_hamming_ops) WITH (radius = 5);
INSERT INTO scoped VALUES (1, 'x', 'en', 0), (2, 'x', 'en', 255), (3, 'x', 'de', 0),
    (4, 'y', 'en', 0), (5, NULL, 'en', 0), (6, NULL, 'en', 0), (7, 'x', 'en', 511);
UPDATE scoped SET site = 'x' WHERE id = 4;
UPDATE scoped SET site = 'z' WHERE id = 4;
SELECT id, site, lang FROM scoped ORDER BY id;

-- Parameters of simhash and simhash128, by the same names
CREATE TABLE computed (id int PRIMARY KEY, body varchar, fp fingerprint, wide fingerprint128);
CREATE INDEX ON computed USING neardup (fp);
CREATE INDEX ON computed USING neardup (wide);
CREATE TRIGGER narrow BEFORE INSERT OR UPDATE ON computed FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp', 'body', 'function=simhash', 'tokens=char',
    'shingle = 5', 'weight=log', 'html=true', 'accents=remove', 'digits=zero', 'radius=0');
CREATE TRIGGER wide BEFORE INSERT OR UPDATE ON computed FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('wide', 'body', 'function=simhash128', 'tokens=jieba_tfidf:2',
    'html=on', 'radius=0');
INSERT INTO computed VALUES (1, '<p>Le Café du Port, 12 rue Basse</p>'),
    (2, '<div>Le CAFE du <b>Port</b>, 99 rue Basse'), (3, '<p>图书馆昨天宣布，图书馆将开放'),
    (4, '<script>x</script>');
SET search_path = '';
INSERT INTO public.computed VALUES (5, '<p>le cafe du port, 00 rue basse'),
    (6, '<p>Le Café du Nord');
RESET search_path;
SELECT id, fp = simhash(body, tokens => 'char', shingle => 5, weight => 'log', html => true,
    accents => 'remove', digits => 'zero') AS narrow,
    wide = simhash128(body, tokens => 'jieba_tfidf:2', html => true) AS wide FROM computed
    ORDER BY id;

-- Invalid arguments, each with the expected values
CREATE TABLE bad (id int, body text, fp fingerprint, n int, v varchar(10));
CREATE INDEX ON bad USING neardup (fp);
CREATE FUNCTION try(VARIADIC arguments text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER dedup BEFORE INSERT ON bad FOR EACH ROW EXECUTE '
        'FUNCTION neardup_dedup(%s)',
        (SELECT string_agg(quote_literal(a), ', ') FROM unnest(arguments) AS a));
    INSERT INTO bad VALUES (1, 'text', '0000000000000000');
    RETURN NEXT 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN NEXT SQLSTATE || ': ' || SQLERRM;
    RETURN NEXT '    ' || detail;
END $$;
CREATE TRIGGER dedup BEFORE INSERT ON bad FOR EACH ROW EXECUTE FUNCTION neardup_dedup();
INSERT INTO bad VALUES (1, 'text', '0000000000000000');
SELECT try('nothing');
SELECT try('fp', 'nothing');
SELECT try('fp', 'body', 'v');
SELECT try('fp', 'n');
SELECT try('n', 'body');
SELECT try('fp', 'distance=3');
SELECT try('fp', 'radius=-1');
SELECT try('fp', 'radius=many');
SELECT try('fp', 'radius=1', 'radius=2');
SELECT try('fp', 'action=remove');
SELECT try('fp', 'action=mark');
SELECT try('fp', 'action=skip', 'mark=n');
SELECT try('fp', 'action=mark', 'mark=n');
SELECT try('fp', 'action=mark', 'mark=n', 'key=body');
SELECT try('fp', 'action=log', 'log=nowhere', 'key=id');
SELECT try('fp', 'scope=,');
SELECT try('fp', 'scope=n');
SELECT try('fp', 'colour=red');
SELECT try('fp', 'body', 'colour=red');
SELECT try('fp', 'tokens=char');
SELECT try('fp', 'body', 'tokens=words');
SELECT try('fp', 'body', 'weight=log', 'weight=tf');
SELECT try('fp', 'body', 'shingle=0');
SELECT try('fp', 'body', 'shingle=five');
SELECT try('fp', 'body', 'html=maybe');
SELECT try('fp', 'body', 'body=body');
SELECT try('fp', 'body', 'tokens=word''); DROP TABLE bad; --');
SELECT try('fp', 'v');
CREATE TRIGGER late AFTER INSERT ON bad FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp');
INSERT INTO bad VALUES (2, 'other text', '1111111111111111');
DROP TRIGGER late ON bad;
CREATE OR REPLACE TRIGGER dedup BEFORE DELETE ON bad FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp');
DELETE FROM bad;
SELECT neardup_dedup();

-- A row with an existing unique key is not a near-duplicate of that row, but the same row.
CREATE TABLE pages_by_url (id int PRIMARY KEY, url text UNIQUE, fp fingerprint,
    visits int DEFAULT 1);
CREATE INDEX ON pages_by_url USING neardup (fp);
CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp ON pages_by_url FOR EACH ROW
    EXECUTE FUNCTION neardup_dedup('fp');
INSERT INTO pages_by_url VALUES (1, 'a', '0000000000000000'), (2, 'b', 'ffffffffffffffff'),
    (3, NULL, '00000000ffffffff');
INSERT INTO pages_by_url VALUES (4, 'a', '0000000000000001') ON CONFLICT (url) DO UPDATE
    SET fp = EXCLUDED.fp, visits = pages_by_url.visits + 1;
INSERT INTO pages_by_url VALUES (1, 'a', '0000000000000003') ON CONFLICT (id) DO UPDATE
    SET fp = EXCLUDED.fp, visits = pages_by_url.visits + 1;
-- An upsert near another row is skipped, and so is a near-duplicate that shares no key with it.
INSERT INTO pages_by_url VALUES (2, 'b', '0000000000000001') ON CONFLICT (id) DO UPDATE
    SET fp = EXCLUDED.fp, visits = pages_by_url.visits + 1;
INSERT INTO pages_by_url VALUES (5, 'c', '0000000000000001'), (6, NULL, '00000000fffffffe');
INSERT INTO pages_by_url VALUES (1, 'd', '0000000000000001');
SELECT * FROM pages_by_url ORDER BY id;

-- Two triggers on one table, and nested statements: each has its own locks.
CREATE TABLE two (id int PRIMARY KEY, a fingerprint, b fingerprint);
CREATE INDEX ON two USING neardup (a);
CREATE INDEX ON two USING neardup (b);
CREATE TRIGGER a BEFORE INSERT ON two FOR EACH ROW EXECUTE FUNCTION neardup_dedup('a');
CREATE TRIGGER b BEFORE INSERT ON two FOR EACH ROW EXECUTE FUNCTION neardup_dedup('b');
CREATE FUNCTION nested() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id < 10 THEN
        INSERT INTO two VALUES (NEW.id + 10, ~NEW.a::bigint, ~NEW.b::bigint);
    END IF;
    BEGIN
        INSERT INTO two VALUES (NEW.id + 10, '5555555555555555', '5555555555555555');
        RAISE EXCEPTION 'undone';
    EXCEPTION WHEN OTHERS THEN
    END;
    RETURN NEW;
END $$;
CREATE TRIGGER c BEFORE INSERT ON two FOR EACH ROW WHEN (NEW.id < 10) EXECUTE FUNCTION nested();
BEGIN;
INSERT INTO two VALUES (1, '0000000000000000', '0000000000000000'), (2, '00000000000000ff',
    '0000000000000000'), (3, '00000000000000ff', '00000000000000ff');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
COMMIT;
SELECT * FROM two ORDER BY id;

-- An unprivileged user: the search needs no rights, only readers see the key of the row found, and
-- the log is written with the user's own rights.
CREATE ROLE regress_neardup_writer;
GRANT INSERT ON docs TO regress_neardup_writer;
GRANT USAGE ON SCHEMA apart TO regress_neardup_writer;
GRANT INSERT ON apart.pages TO regress_neardup_writer;
SET ROLE regress_neardup_writer;
INSERT INTO docs VALUES (20, 'Nothing of the kind was ever seen in this town or the next');
INSERT INTO apart.pages VALUES ('d', 'another');
RESET ROLE;
GRANT INSERT ON apart.dropped TO regress_neardup_writer;
GRANT SELECT (id) ON docs TO regress_neardup_writer;
SET ROLE regress_neardup_writer;
INSERT INTO apart.pages VALUES ('d', 'another');
INSERT INTO docs VALUES (20, 'Nothing of the kind was ever seen in this town or the next');
RESET ROLE;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_in ON docs FOR INSERT WITH CHECK (true);
SET ROLE regress_neardup_writer;
INSERT INTO docs VALUES (20, 'Nothing of the kind was ever seen in this town or the next');
RESET ROLE;
SELECT count(*) FROM apart.dropped WHERE kept = 'c';
DROP OWNED BY regress_neardup_writer;
DROP ROLE regress_neardup_writer;
