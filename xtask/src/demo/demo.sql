-- Statements of the demo. `cargo xtask demo` runs them with psql and writes the documents to psql's
-- standard input. Variables of psql: source describes the documents, report is the path of the
-- report.
\set QUIET on
\set ON_ERROR_STOP on
\set VERBOSITY terse
\pset pager off
\pset footer off
SET client_min_messages = warning;
CREATE TABLE docs (id bigint PRIMARY KEY, name text, body text,
    fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED);
\copy docs (id, name, body) FROM pstdin
VACUUM ANALYZE docs;
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE TABLE clusters AS
SELECT member AS id, representative AS kept, similarity
FROM neardup_clusters_by_key(NULL::bigint, 'docs', similarity => 0.8, keep => 'id');

-- Distinct texts of each cluster. A text has the id of the first document that has this text.
CREATE TEMPORARY TABLE texts AS
SELECT kept, min(id) AS id, max(similarity) AS similarity, count(*) AS copies
FROM clusters JOIN docs USING (id) GROUP BY kept, md5(body);
CREATE TEMPORARY TABLE found AS
SELECT kept, sum(copies) AS documents, count(*) AS texts, min(similarity) AS similarity
FROM texts GROUP BY kept;
-- Names of documents without control characters, which the terminal would obey.
CREATE TEMPORARY TABLE names AS
SELECT id, left(regexp_replace(name, '[[:cntrl:]]', '', 'g'), 80) AS name
FROM docs JOIN texts USING (id);

\pset format unaligned
\pset tuples_only on
\o :report
SELECT neardup_report('docs', similarity => 0.8, title => 'What repeats: ' || :'source',
    key => 'name', keep => 'id');
\o
SELECT format('Near-duplicates: %s of %s documents (%s). Clusters: %s.',
    coalesce(sum(documents) - count(*), 0), (SELECT count(*) FROM docs),
    (SELECT pg_size_pretty(sum(octet_length(body))) FROM docs), count(*))
FROM found;
\echo 'Documents:' :source
\echo 'Report with all differences, for a browser:' :report
\pset format aligned
\pset tuples_only off

\echo
\echo 'Largest clusters with differences, and the similarity of the least similar member:'
CREATE TEMPORARY TABLE largest AS
SELECT row_number() OVER (ORDER BY documents DESC, kept) AS cluster, *
FROM found WHERE texts > 1 ORDER BY documents DESC, kept LIMIT 10;
SELECT cluster, documents, texts, round(100 * similarity::numeric) || ' %' AS similarity, name
FROM largest JOIN names ON names.id = kept ORDER BY cluster;

\echo 'Largest clusters of identical copies:'
SELECT documents, name FROM found JOIN names ON names.id = kept
WHERE texts = 1 ORDER BY documents DESC, kept LIMIT 3;

-- Compares three texts of each cluster with its first text: the most similar one, one in the middle
-- and the least similar one.
\echo 'Differences from the first text of a cluster, {+added+} and [-removed-]:'
\pset format unaligned
\pset tuples_only on
WITH ranked AS (
    SELECT cluster, kept, id, texts.similarity, copies,
        row_number() OVER (
            PARTITION BY kept ORDER BY texts.similarity DESC, copies DESC, id) AS nth,
        count(*) OVER (PARTITION BY kept) AS others
    FROM largest JOIN texts USING (kept) WHERE id <> kept
), compared AS (
    SELECT ranked.*, regexp_replace(a.body, '\s+', ' ', 'g') AS a,
        regexp_replace(b.body, '\s+', ' ', 'g') AS b
    FROM ranked JOIN docs a ON a.id = kept JOIN docs b ON b.id = ranked.id
    WHERE nth IN (1, others / 2 + 1, others)
)
SELECT format(E'%s. %s, %s %%, %s\n   %s', cluster, name, round(100 * similarity::numeric),
    CASE copies WHEN 1 THEN 'one document' ELSE copies || ' identical copies' END,
    CASE
        WHEN octet_length(a) + octet_length(b) > 1000000 THEN 'too long to be compared here'
        WHEN a = b THEN 'the same words, other white space'
        -- Without colours, which the end of an excerpt could leave switched on.
        ELSE left(regexp_replace(neardup_diff_ansi(a, b, context => 5), '\x1B\[[0-9]*m', '', 'g'),
            240)
    END)
FROM compared JOIN names USING (id) ORDER BY cluster, nth;

\echo
\echo 'Statements of this demo: xtask/src/demo/demo.sql. Its tables: cargo xtask psql'
