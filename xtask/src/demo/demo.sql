-- The demo's statements. `cargo xtask demo` runs them with psql, and writes the documents to its
-- standard input. Variables: source, describes the documents; report, names a file (optional).
\set QUIET on
\set ON_ERROR_STOP on
\set VERBOSITY terse
\pset pager off
\pset footer off
SET client_min_messages = warning;
-- One process does the work of every query, so that times can be compared.
SET max_parallel_workers_per_gather = 0;
SET jit = off;

\set ECHO queries
CREATE TABLE docs (id bigint PRIMARY KEY, name text, body text,
    fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED);
\set ECHO none
\copy docs (id, name, body) FROM pstdin
VACUUM ANALYZE docs;

-- Six bits are a Jaccard similarity of about 0.8.
\set ECHO queries
\timing on
CREATE INDEX docs_fp ON docs USING neardup (fp) WITH (radius = 6);
CREATE TABLE clusters AS
SELECT member AS id, representative AS kept, distance
FROM neardup_clusters_by_key(NULL::bigint, 'docs', radius => 6, keep => 'id');
\timing off
\set ECHO none

-- Distinct texts of each cluster. Each text has the number of the first document with it.
CREATE TEMPORARY TABLE texts AS
SELECT kept, min(id) AS id, min(distance) AS distance, count(*) AS copies
FROM clusters JOIN docs USING (id) GROUP BY kept, md5(body);
CREATE TEMPORARY TABLE found AS
SELECT kept, sum(copies) AS documents, count(*) AS texts, max(distance) AS farthest
FROM texts GROUP BY kept;
-- A terminal must not obey control characters in names.
CREATE TEMPORARY TABLE names AS
SELECT id, left(regexp_replace(name, '[[:cntrl:]]', '', 'g'), 80) AS name
FROM docs JOIN texts USING (id);

\echo
\echo Documents: :source
SELECT (SELECT count(*) FROM docs) AS documents,
    (SELECT pg_size_pretty(sum(octet_length(body))) FROM docs) AS size,
    (SELECT count(*) FROM docs WHERE fp IS NULL) AS without_words,
    count(*) AS clusters, count(*) FILTER (WHERE texts > 1) AS with_differences,
    coalesce(sum(documents) - count(*), 0) AS near_duplicates,
    pg_size_pretty(pg_relation_size('docs_fp')) AS index_size
FROM found;

\echo 'Largest clusters with differences, and the farthest member of each in bits:'
CREATE TEMPORARY TABLE largest AS
SELECT row_number() OVER (ORDER BY documents DESC, kept) AS cluster, *
FROM found WHERE texts > 1 ORDER BY documents DESC, kept LIMIT 10;
SELECT cluster, documents, texts, farthest, name
FROM largest JOIN names ON names.id = kept ORDER BY cluster;

\echo 'Largest clusters of identical copies:'
SELECT documents, name FROM found JOIN names ON names.id = kept
WHERE texts = 1 ORDER BY documents DESC, kept LIMIT 3;

-- The nearest text, one in the middle and the farthest show more of a cluster than the nearest.
\echo 'Differences from the first text of a cluster:'
\pset format unaligned
\pset tuples_only on
WITH ranked AS (
    SELECT cluster, kept, id, texts.distance, copies,
        row_number() OVER (PARTITION BY kept ORDER BY texts.distance, copies DESC, id) AS nth,
        count(*) OVER (PARTITION BY kept) AS others
    FROM largest JOIN texts USING (kept) WHERE id <> kept
), compared AS (
    SELECT ranked.*, regexp_replace(a.body, '\s+', ' ', 'g') AS a,
        regexp_replace(b.body, '\s+', ' ', 'g') AS b
    FROM ranked JOIN docs a ON a.id = kept JOIN docs b ON b.id = ranked.id
    WHERE nth IN (1, others / 2 + 1, others)
)
SELECT format(E'%s. %s, distance %s, %s\n   %s', cluster, name, distance,
    CASE copies WHEN 1 THEN 'one document' ELSE copies || ' identical copies' END,
    CASE
        WHEN octet_length(a) + octet_length(b) > 1000000 THEN 'too long to be compared here'
        WHEN a = b THEN 'the same words, other white space'
        -- Without colours, which the end of an excerpt could leave switched on.
        ELSE left(regexp_replace(neardup_diff_ansi(a, b, context => 5), '\x1B\[[0-9]*m', '', 'g'),
            240)
    END)
FROM compared JOIN names USING (id) ORDER BY cluster, nth;

-- Fewer probes among more documents, since the sequential scans take about 0.1 us a comparison.
-- Neighbours are often alike, so a hash of the identifier chooses them.
CREATE TEMPORARY TABLE probes AS
SELECT id, fp FROM docs WHERE fp IS NOT NULL ORDER BY hashint8(id), id
LIMIT (SELECT greatest(20, 30000000 / greatest(count(*), 1)) FROM docs);
ANALYZE probes;
\set search 'SELECT count(*) FROM probes a JOIN docs b ON a.fp <~> b.fp <= 6 AND a.id <> b.id'
-- Scans of a few documents are cheaper than the index.
SET enable_seqscan = off;
\echo
\echo 'Plan of' :search
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) :search;

-- EXPLAIN has run the search, so everything is in memory.
SELECT clock_timestamp() AS start \gset
SELECT (:search) AS matches \gset index_
SELECT clock_timestamp() AS stop \gset index_
RESET enable_seqscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SELECT (:search) AS matches \gset scan_
SELECT clock_timestamp() AS stop \gset scan_
RESET ALL;
\echo
\echo 'Time of this search, with everything in memory:'
\pset format aligned
\pset tuples_only off
SELECT method, searches, matches, round(ms::numeric, 1) AS ms,
    round((ms / greatest(searches, 1))::numeric, 4) AS ms_each,
    round((max(ms) OVER () / ms)::numeric, 1) AS times_as_fast
FROM (SELECT count(*) AS searches FROM probes) AS counted,
    (VALUES
        ('index', :index_matches,
            1e3 * extract(epoch FROM timestamptz :'index_stop' - timestamptz :'start')),
        ('sequential scan', :scan_matches,
            1e3 * extract(epoch FROM timestamptz :'scan_stop' - timestamptz :'index_stop'))
    ) AS measured (method, matches, ms);
SELECT :index_matches <> :scan_matches AS differ \gset
\if :differ
    \echo 'The numbers of matches differ. This is a bug.'
\endif

\if :{?report}
    \pset format unaligned
    \pset tuples_only on
    \o :report
    SELECT neardup_report('docs', 6, title => 'What repeats: ' || :'source', key => 'name',
        keep => 'id');
    \o
    \echo 'Report:' :report
\endif
\echo 'The tables docs and clusters are still there: cargo xtask psql'
