-- Pairs and clusters by keys, and clusters of keys that are paired anywhere.
CREATE SCHEMA keys_test;
SET search_path = keys_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE docs (id int PRIMARY KEY, url text NOT NULL, site text, nr int, uid uuid,
    maybe bigint, fp fingerprint, wide fingerprint256, sig minhash_signature, hash bigint);
INSERT INTO docs SELECT i, 'http://' || i, 's' || i % 2, i / 2,
    ('00000000-0000-0000-0000-' || lpad((99 - i)::text, 12, '0'))::uuid, nullif(i, 3),
    (i / 3 * 4096)::bigint::fingerprint, repeat(md5((i / 3)::text), 2)::fingerprint256,
    minhash(ARRAY[(i / 3)::text, 'x']), i / 3 * 4096
    FROM generate_series(9, 1, -1) i;
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE INDEX docs_wide ON docs USING neardup (wide);
CREATE INDEX docs_sig ON docs USING neardup (sig);
CREATE INDEX docs_hash ON docs USING neardup (hash bigint_hamming_ops);

-- The columns have the type of key_type. A key is an expression as in a select list; the default
-- is the primary key. In a pair, a is the row with the smaller key.
SELECT *, pg_typeof(a), pg_typeof(distance) FROM neardup_pairs_by_key(NULL::bigint, 'docs',
    0, column_name => 'fp', key => 'id') ORDER BY a, b;
SELECT * FROM neardup_pairs_by_key(NULL::int, 'docs_fp', 0) ORDER BY a, b;
SELECT * FROM neardup_pairs_by_key(NULL::uuid, 'docs', 0, column_name => 'wide', key => 'uid')
    ORDER BY a, b;
SELECT *, pg_typeof(a), pg_typeof(distance) FROM neardup_pairs_by_key(NULL::text, 'docs',
    similarity => 0.9,
    key => 'url') ORDER BY a, b;
SELECT * FROM neardup_pairs_by_key(0, 'docs', 0, column_name => 'hash',
    key => 'docs.id -- the key')
    ORDER BY a, b;
SELECT * FROM neardup_pairs_by_key(NULL::int[], 'docs', 0, column_name => 'fp',
    key => 'ARRAY[nr, id]',
    filter => 'id < 6') ORDER BY a, b;
CREATE TYPE address AS (site text, nr int);
SELECT (a).site, (a).nr, b FROM neardup_pairs_by_key(NULL::address, 'docs', 0,
    column_name => 'fp', key => 'ROW(site, nr)::address') ORDER BY a, b;
SELECT (neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp')).b AS b ORDER BY b;
-- An address is a valid key.
SELECT count(*) FROM neardup_pairs('docs', 0, column_name => 'fp') p
    JOIN neardup_pairs_by_key(NULL::tid, 'docs', 0, key => 'ctid', column_name => 'fp') k
    ON (p.a, p.b) = (k.a, k.b);
SELECT count(*) FROM neardup_pairs_by_key(NULL::bigint, NULL::regclass, 0, key => 'id');
SELECT member, representative, size, distance, pg_typeof(member)
    FROM neardup_clusters_by_key(NULL::bigint, 'docs', 0,
    column_name => 'fp', key => 'id');
SELECT * FROM neardup_clusters_by_key(NULL::text, 'docs', 0, keep => 'id DESC',
    column_name => 'fp',
    key => 'url', singletons => true);
SELECT * FROM neardup_clusters_by_key(NULL::int, 'docs', similarity => 0.9, keep => 'id');
SELECT * FROM neardup_clusters_by_key(NULL::uuid, 'docs', 4096, method => 'connected',
    keep => 'id', column_name => 'hash', key => 'uid');
-- As statements use them.
DELETE FROM docs d USING neardup_clusters_by_key(NULL::int, 'docs', 0, keep => 'url',
    column_name => 'fp') c
    WHERE d.id = c.member AND c.member <> c.representative AND c.representative > 5;
CREATE VIEW pairs_of_docs AS SELECT * FROM neardup_pairs_by_key(NULL::int, 'docs', 0,
    column_name => 'fp');
SELECT * FROM pairs_of_docs ORDER BY 1, 2;
PREPARE of(text, float8) AS SELECT count(*) FROM neardup_pairs_by_key(NULL::text, 'docs',
    similarity => $2, key => $1);
EXECUTE of('url', 0.5);
EXECUTE of('site', 0.5);
-- Invalid calls.
SELECT * FROM neardup_pairs_by_key(NULL::tid, 'docs', 0, column_name => 'fp', key => 'id');
SELECT * FROM neardup_pairs_by_key(relation => 'docs_fp', radius => 0, key_type => 1);
SELECT * FROM neardup_pairs_by_key(key_type => 1, radius => 4096, relation => 'docs_hash',
    filter => 'id < 3');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp', key => 'url');
SELECT * FROM neardup_clusters_by_key(0, 'docs', 0, column_name => 'fp', key => 'maybe');
SELECT * FROM neardup_pairs_by_key(NULL, 'docs', 0, column_name => 'fp', key => 'id');
SELECT * FROM neardup_pairs_by_key(ROW(1, 2), 'docs', 0, column_name => 'fp', key => 'ROW(1)');
SELECT * FROM neardup_pairs_by_key(NULL::json, 'docs', 0, column_name => 'fp',
    key => '''{}''::json');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp',
    key => 'maybe');
SELECT * FROM neardup_clusters_by_key(NULL::bigint, 'docs', 0, column_name => 'fp',
    key => 'maybe');
SELECT count(*) FROM neardup_clusters_by_key(NULL::bigint, 'docs', 0, column_name => 'fp',
    key => 'maybe', filter => 'maybe IS NOT NULL');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp',
    key => 'nothing');
\set VERBOSITY terse
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp', key => '');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp', key => 'id,
    url');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp',
    key => 'id AS key');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp',
    key => 'id FROM docs');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, column_name => 'fp',
    key => 'DISTINCT id');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp',
    key => 'id; DROP TABLE docs');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp', key => 'id)
    FROM docs; --');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp',
    key => 'id UNION SELECT 1');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp', key => 'id WHERE true');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp', key => '*');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp',
    key => 'generate_series(1, 2)');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp', key => 'max(id)');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, column_name => 'fp', key => '1 / (id - 4)');
SELECT * FROM neardup_clusters_by_key(NULL::bigint, NULL::regclass, 0, key => 'id');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', 0, key => 'id');
SELECT * FROM neardup_pairs_by_key(NULL::bigint, 'docs', -1, column_name => 'fp', key => 'id');
SELECT * FROM neardup_pairs_by_key(1, 'docs', 0, key => 'id', column_name => 'fp',
    filter => 'nothing > 1');
\set VERBOSITY default
CREATE TABLE bare (id int, fp fingerprint, PRIMARY KEY (id, fp));
CREATE INDEX bare_fp ON bare USING neardup (fp);
SELECT * FROM neardup_pairs_by_key(NULL::int, 'bare', 0);
-- With a scope: one notice.
CREATE TABLE scoped (id int PRIMARY KEY, site int, fp fingerprint);
CREATE INDEX scoped_fp ON scoped USING neardup (site, fp);
INSERT INTO scoped SELECT i, i % 2, '0000000000000000' FROM generate_series(1, 4) i;
SELECT * FROM neardup_pairs_by_key(NULL::int, 'scoped', 0) ORDER BY a;
-- The caller needs rights on the key, too, and cannot bypass policies.
CREATE ROLE keys_reader;
GRANT USAGE ON SCHEMA keys_test TO keys_reader;
GRANT SELECT (fp, id) ON docs TO keys_reader;
SET ROLE keys_reader;
\set VERBOSITY terse
SELECT count(*) FROM neardup_pairs_by_key(NULL::int, 'docs', 0, column_name => 'fp',
    key => 'id');
SELECT count(*) FROM neardup_pairs_by_key(NULL::text, 'docs', 0, column_name => 'fp',
    key => 'url');
SELECT count(*) FROM neardup_pairs_by_key(NULL::int, 'docs', 0, column_name => 'hash',
    key => 'id');
SELECT count(*) FROM neardup_pairs_by_key(NULL::int, 'scoped', 0);
RESET ROLE;
GRANT SELECT ON docs TO keys_reader;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON docs TO keys_reader USING (id % 2 = 1);
SET ROLE keys_reader;
SELECT count(*) FROM neardup_pairs_by_key(NULL::int, 'docs', 0, column_name => 'fp',
    key => 'id');
SELECT count(*) FROM neardup_clusters_by_key(NULL::int, 'docs', 0, column_name => 'fp');
SELECT a.id, b.id FROM docs a JOIN docs b ON a.fp <~> b.fp <= 0 AND a.id < b.id ORDER BY 1, 2;
SELECT * FROM neardup_components('SELECT a.id, b.id
    FROM docs a JOIN docs b ON a.fp <~> b.fp <= 0');
RESET ROLE;
ALTER TABLE docs DISABLE ROW LEVEL SECURITY;

-- Components.
\set VERBOSITY default
SELECT *, pg_typeof(member) FROM neardup_components('VALUES (1, 2), (3, 2), (5, 4), (7, 7)');
SELECT * FROM neardup_components(NULL::bigint, 'VALUES (1, 2), (3, 2), (5, 4), (3, 4), (7,
    7)', 'star');
SELECT * FROM neardup_components(NULL::text, 'SELECT a, b
    FROM neardup_pairs_by_key(NULL::text, ''docs'', 4096,
    column_name => ''hash'', key => ''url'');');
SELECT * FROM neardup_components(NULL::tid, 'SELECT a, b FROM neardup_pairs(''docs'', 0,
    column_name => ''fp'')') c JOIN docs ON ctid = member ORDER BY id LIMIT 0;
-- Each key appears once: a key paired with itself is a cluster.
SELECT * FROM neardup_components('SELECT id, id FROM docs UNION ALL VALUES (1, 2) -- more');
-- Equal keys that look different are one key. Its form does not depend on the order of the pairs.
SELECT * FROM neardup_components(NULL::numeric, 'VALUES (1.0, 2.00), (2, 3), (1.00, 1)',
    'star');
SELECT * FROM neardup_components(NULL::numeric, 'VALUES (2, 3), (1.00, 1), (1.0, 2.00)',
    'star');
SELECT * FROM neardup_components(0::float8, 'VALUES (''-0''::float8, 0.0), (2, 0.0)');
SELECT * FROM neardup_components(NULL::address, 'VALUES (ROW(''b'', 1)::address, ROW(''a'',
    2)::address)');
SELECT * FROM neardup_components('SELECT 1, 2 WHERE false');
SELECT * FROM neardup_components('WITH p AS (SELECT 1 AS a, 2 AS b) TABLE p');
SELECT (neardup_components('VALUES (1, 2), (3, 2)')).*;
-- Order of preference: the first position counts, and keys without a position follow.
SELECT * FROM neardup_components(NULL::bigint, 'VALUES (1, 2), (3, 2), (5, 4), (3, 4), (7,
    7)', 'star', 'VALUES (4), (NULL), (9), (3), (4), (2); -- best first');
SELECT * FROM neardup_components(NULL::bigint, 'VALUES (1, 2), (3, 2), (5, 4)',
    keep => 'SELECT n FROM generate_series(1, 9) n ORDER BY n DESC');
SELECT * FROM neardup_components(NULL::numeric, 'VALUES (1.0, 2.00), (2, 3)',
    keep => 'VALUES (2.000)');
SELECT * FROM neardup_components(NULL::bigint, 'VALUES (1, 2)', keep => 'SELECT 2 WHERE false');
-- Queries that do not return pairs.
SELECT * FROM neardup_components('SELECT 1');
SELECT * FROM neardup_components(NULL::tid, 'SELECT a, b, distance
    FROM neardup_pairs(''docs'', 0, column_name => ''fp'')');
SELECT * FROM neardup_components('SELECT 1, NULL::int');
SELECT * FROM neardup_components('SELECT 1, ''a''::text');
SELECT * FROM neardup_components('SELECT ''a''::text, ''b''::text');
SELECT * FROM neardup_components(NULL::json, 'SELECT ''{}''::json, ''{}''::json');
SELECT * FROM neardup_components(NULL::bigint, 'SELECT 1, 2', 'nearest');
SELECT * FROM neardup_components('SELECT 1, 2; SELECT 3, 4');
SELECT * FROM neardup_components('SELEC 1, 2');
SELECT * FROM neardup_components(NULL::bigint, 'SELECT 1, 2', keep => 'SELECT 2, 1');
SELECT * FROM neardup_components(NULL::bigint, 'SELECT 1, 2', keep => 'SELECT ''b''::text');
SELECT * FROM neardup_components(NULL::bigint, 'SELECT 1, 2', keep => 'id DESC');
\set VERBOSITY terse
SELECT * FROM neardup_components(NULL);
SELECT * FROM neardup_components(NULL::bigint, 'SELECT 1, 2', NULL);
SELECT * FROM neardup_components('');
SELECT * FROM neardup_components('SELECT 1, 2) AS q; DROP TABLE docs; --');
SELECT * FROM neardup_components('DELETE FROM docs RETURNING id, id');
SELECT * FROM neardup_components('WITH d AS (DELETE FROM docs RETURNING id) SELECT id,
    id FROM d');
SELECT * FROM neardup_components('SELECT id, id INTO other FROM docs');
SELECT * FROM neardup_components('SELECT id, id FROM docs FOR UPDATE');
SELECT * FROM neardup_components('SELECT 1 / 0, 1');
SELECT * FROM neardup_components('SELECT node, node FROM "neardup keys"');
SELECT count(*) FROM docs;
SET client_min_messages = warning;
DROP SCHEMA keys_test CASCADE;
DROP ROLE keys_reader;
