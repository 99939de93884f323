-- neardup_report: the page's numbers and structure. tests/clients/report.rs uses a browser.
CREATE SCHEMA report_test;
SET search_path = report_test, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
\pset format unaligned
-- Clusters of 1, 2, 3 and so on: texts of fifty words with one different word.
CREATE FUNCTION words(n int, own text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT string_agg(CASE WHEN i = 25 THEN own ELSE 'w' || left(md5(n || ' ' || i), 5) END, ' '
        ORDER BY i) FROM generate_series(1, 50) i $$;
CREATE TABLE docs (id int PRIMARY KEY, site text, body text, hash bigint,
    fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED,
    fp128 fingerprint128 GENERATED ALWAYS AS (minhash128(body)) STORED,
    fp256 fingerprint256, sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
INSERT INTO docs (id, site, body, hash, fp256)
SELECT n * 10 + copy, 's' || copy % 2, text, minhash64(text)::bigint,
    repeat(minhash64(text)::text, 4)::fingerprint256
FROM generate_series(1, 4) n, generate_series(1, n) copy,
    words(n, CASE WHEN copy > 1 THEN 'other' ELSE 'own' END) text;
CREATE INDEX docs_fp ON docs USING neardup (fp);

-- Plain text of the elements that match the pattern.
CREATE FUNCTION parts(page text, pattern text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(regexp_replace(regexp_replace(m[1], '<[^>]*?>', ' ', 'g'), '\s+', ' ', 'g'))
    FROM regexp_matches(page, pattern, 'g') m $$;
SELECT neardup_report('docs', 8) AS page \gset
SELECT parts(:'page', '<title>(.*?)</title>');
SELECT parts(:'page', '<h[12][^>]*?>(.*?)</h[12]>') AS headings;
SELECT parts(:'page', '(<summary><h3>.*?)</summary>') AS clusters;
SELECT parts(:'page', '<tr class="of[^>]*?>(.*?)</tr>') AS "radius, clusters, rows, share, text";
SELECT parts(:'page', '<dl class="figures at at-8 chosen">(.*?)</dl>') AS figures;
SELECT parts(:'page', '<li class="member[^>]*?>(.*?)</summary>') AS members;
SELECT parts(:'page', '<tr class="row within-[^>]*?>(.*?)</tr>') AS "distance, pairs within";
SELECT DISTINCT parts(:'page', '<del>(.*?)</del>') AS deleted,
    parts(:'page', '<ins>(.*?)</ins>') AS inserted;
SELECT parts(:'page', '<dl class="about">(.*?)</dl>') AS about;
SELECT parts(:'page', '<pre class="at at-8 [^>]*?>(.*?)</pre>') AS statement;
-- The statement runs, and removes the number of rows shown.
SELECT regexp_replace(replace(replace(replace(m[1], '&gt;', '>'), '&lt;', '<'), '&#39;', ''''),
    '^BEGIN;|COMMIT;$', '', 'g') AS statement
    FROM regexp_matches(:'page', '<pre class="at at-8 [^>]*?><code>(.*?)</code>') m \gset
BEGIN;
:statement
SELECT count(*) FROM docs;
ROLLBACK;
-- No script, no external resource, and each id once.
SELECT :'page' !~* '<script|<link|<iframe|<img|\son[a-z]+=|url\(|https?:' AS harmless;
SELECT count(*) - count(DISTINCT id) AS twice FROM parts(:'page', '\sid="([^"]+)"') id;

-- Any index. The default radius is the radius of the index.
CREATE FUNCTION about(page text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', (SELECT parts(page, '<header>.*?<p>(.*?) As of')),
        (SELECT parts(page, '<dt>Texts</dt><dd>(.*?)</dd>')),
        (SELECT string_agg(p, '; ')
            FROM parts(page, '<dl class="figures[^>]*?chosen">(.*?)</dl>') p),
        (SELECT string_agg(p, ', ') FROM parts(page, '<input[^>]*?><span>(.*?)</span>') p)) $$;
CREATE INDEX docs_fp128 ON docs USING neardup (fp128);
CREATE INDEX docs_fp256 ON docs USING neardup (fp256);
CREATE INDEX docs_hash ON docs USING neardup (hash bigint_hamming_ops);
CREATE INDEX docs_sig ON docs USING neardup (sig);
CREATE INDEX docs_ball ON docs USING neardup (ball(fp, 6));
CREATE INDEX docs_expression ON docs USING neardup (simhash(body));
CREATE INDEX docs_site ON docs USING neardup (site, fp);
CREATE INDEX docs_part ON docs USING neardup (fp) WHERE id > 40;
SELECT about(neardup_report(i)) FROM unnest('{docs_fp, docs_fp128, docs_fp256, docs_hash, docs_sig,
    docs_ball, docs_expression, docs_site, docs_part}'::regclass[]) i;
SELECT about(neardup_report('docs', column_name => 'sig', similarity => 0.7));
SELECT about(neardup_report('docs_fp', similarity => 0.8));
SELECT about(neardup_report('docs_fp', 6, filter => 'id > 30', radii => '{2,10,2}'));
SELECT about(neardup_report('docs_fp', 6, radii => '{}'));
CREATE MATERIALIZED VIEW seen AS SELECT * FROM docs WHERE id < 40;
CREATE INDEX seen_fp ON seen USING neardup (fp);
SELECT about(neardup_report('seen', 8));
CREATE TABLE parted (id int, body text,
    fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE INDEX ON parted USING neardup (fp);
INSERT INTO parted SELECT id, body FROM docs;
SELECT about(neardup_report('parted_1', 8));
SELECT neardup_report('parted');
-- A table with indexes on fingerprints and on signatures: a bound or a column chooses.
SELECT about(neardup_report('docs'));
-- An empty table, and one without near-duplicates.
CREATE TABLE none (body text);
CREATE INDEX none_body ON none USING neardup (minhash64(body));
SELECT about(page), parts(page, '<h2 id="clusters">.*?<p>(.*?)</p>')
FROM neardup_report('none') page;
INSERT INTO none VALUES ('one text'), ('and another one'), (NULL), ('...');
SELECT about(page), parts(page, '<h2 id="clusters">.*?<p>(.*?)</p>')
FROM neardup_report('none') page;

-- Names, order and title are the caller's; a name is cut when it is long, and may be NULL.
SELECT parts(page, '<h1>(.*?)</h1>') AS title, parts(page, '<li class="member[^>]*?>(.*?)</bdi>')
FROM neardup_report('docs_fp', 8, key => 'NULLIF(site, ''s1'')', keep => 'id DESC', clusters => 1,
    title => 'A <b>title</b>') page;
SELECT length(k) FROM parts(neardup_report('docs_fp', 8, key => 'repeat(''k'', 1000)',
    clusters => 1, members => 2), '<h3>.*?<bdi>(.*?)</bdi>') k;
-- Limits on clusters, rows and characters; the page states what it omits.
SELECT parts(page, '<h2 id="clusters">.*?<p>(.*?)</p>') AS clusters,
    parts(page, '<p class="note">(.*?)</p>') AS notes
FROM neardup_report('docs_fp', 8, clusters => 1, members => 2, characters => 40) page;
SELECT neardup_report('docs_fp', 8, clusters => 0) ~ '<details' AS has_clusters;
SELECT parts(neardup_report('docs_fp', 8, sample_rows => 3), '<figcaption>(.*?)</figcaption>');
-- Without a text, the page has names and distances and explains how to add texts.
SELECT parts(neardup_report('docs_hash', 8), '<p class="note">(.*?)</p>');
SELECT parts(neardup_report('docs_hash', 8, body => 'site || ''.'' || body', clusters => 1,
    members => 2), '<td class="new">(.*?)</td>');

-- Markup in texts is always escaped.
CREATE TABLE hostile (id text, body text, fp fingerprint);
CREATE INDEX hostile_fp ON hostile USING neardup (fp);
INSERT INTO hostile VALUES
    ('<script>alert(1)</script>', '</td><script>alert(2)</script>', '0000000000000000'),
    ('"><img src=x onerror=alert(3)>', E'</table>\x1b\u202e<b onclick=x>', '0000000000000001');
SELECT p ~ '<script|<img|onerror=a[^l]' AS runs, p ~ '&lt;script&gt;alert\(1\)' AS name,
    p ~ '&lt;/table&gt;' AS body, p ~ 'neardup-control' AS control
FROM neardup_report('hostile', 2, body => 'body', key => 'id', keep => 'body /* <script> */',
    title => '</title><script>', filter => 'body <> ''<script>''') p;

-- Errors are raised before any search.
SELECT neardup_report(NULL);
SELECT neardup_report('docs_fp', 2.5);
SELECT neardup_report('docs_fp', -1);
SELECT neardup_report('docs_sig', 2);
SELECT neardup_report('docs_fp', 3, similarity => 0.8);
SELECT neardup_report('docs_fp', similarity => 'NaN');
SELECT neardup_report('docs_fp', radii => '{1}', similarities => '{0.9}');
SELECT neardup_report('docs_fp', radii => '{-1}');
SELECT neardup_report('docs_sig', radii => '{1}');
SELECT neardup_report('docs_sig', similarities => '{0.1,1.5}');
SELECT neardup_report('docs_fp', radii => '{1,NULL}');
SELECT neardup_report('docs_fp', radii => array_fill(1, ARRAY[17]));
SELECT neardup_report('docs_fp', clusters => -1);
SELECT neardup_report('docs_fp', clusters => NULL);
SELECT neardup_report('docs_fp', members => 1);
SELECT neardup_report('docs_fp', clusters => 1000, members => 1000);
SELECT neardup_report('docs_fp', characters => 100001);
SELECT neardup_report('docs_fp', sample_rows => 0);
SELECT neardup_report('docs_fp', body => 'nope');
SELECT neardup_report('docs_fp', body => 'body, id');
SELECT neardup_report('docs_fp', key => 'id FROM docs; DROP TABLE docs');
SELECT neardup_report('docs_fp', key => '1 / (id - id)');
SELECT neardup_report('docs_fp', keep => 'nope');
SELECT neardup_report('docs_fp', filter => 'id >');
SELECT neardup_report('docs_pkey');

-- Access: roles that may read the table, if no policy hides rows from them.
CREATE ROLE neardup_reader;
GRANT USAGE ON SCHEMA report_test TO neardup_reader;
SET ROLE neardup_reader;
SELECT neardup_report('docs_fp');
RESET ROLE;
GRANT SELECT (id, fp) ON docs TO neardup_reader;
SET ROLE neardup_reader;
SELECT neardup_report('docs_fp');
SELECT neardup_report('docs_fp', body => 'site');
SELECT neardup_report('docs_expression');
RESET ROLE;
GRANT SELECT ON docs TO neardup_reader;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
SET ROLE neardup_reader;
SELECT neardup_report('docs_fp');
RESET ROLE;
ALTER TABLE docs DISABLE ROW LEVEL SECURITY;
-- It only reads, and sees what the transaction sees.
BEGIN READ ONLY;
SELECT about(neardup_report('docs_fp', 8));
COMMIT;
BEGIN;
DELETE FROM docs WHERE id > 41;
SELECT about(neardup_report('docs_fp', 8));
ROLLBACK;
DROP SCHEMA report_test CASCADE;
DROP ROLE neardup_reader;
