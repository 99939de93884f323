-- Pairs and clusters of signatures beyond what an index's bands guarantee, by bands alone, where
-- the session allows it.
CREATE SCHEMA approximate_pairs;
SET search_path = approximate_pairs, public;
\set VERBOSITY default
\set SHOW_CONTEXT never
-- Forty texts of twelve versions each, which share half of their words and more.
CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature);
INSERT INTO docs SELECT i, minhash(ARRAY(SELECT i / 12 || 'w' || n
    FROM generate_series((i % 12) * 2, (i % 12) * 2 + 40) n)) FROM generate_series(0, 479) i;
CREATE INDEX docs_sig ON docs USING neardup (sig);
CREATE VIEW near AS SELECT a.id AS a, b.id AS b,
    minhash_similarity(a.sig, b.sig)::float8 AS similarity
    FROM docs a JOIN docs b ON a.id < b.id AND a.id / 12 = b.id / 12
    WHERE minhash_similarity(a.sig, b.sig) >= 0.5;
SELECT count(*) FROM near;

-- Exact without the setting. With it, most pairs are found, and no others.
SELECT count(*) - (SELECT count(*) FROM near) AS missed
FROM neardup_pairs('docs', similarity => 0.5);
SET neardup.allow_approximate = on;
CREATE TABLE found AS SELECT least(x.id, y.id) AS a, greatest(x.id, y.id) AS b, p.similarity
    FROM neardup_pairs('docs', similarity => 0.5) p JOIN docs x ON x.ctid = p.a
    JOIN docs y ON y.ctid = p.b;
SELECT count(*) > 0.8 * (SELECT count(*) FROM near) AS most,
    count(*) < (SELECT count(*) FROM near) AS but_not_all,
    count(*) = count(DISTINCT (a, b)) AS each_once FROM found;
SELECT count(*) AS wrong FROM (TABLE found EXCEPT TABLE near) f;
-- All pairs that share a band: the result is the same in little memory, with several batches.
SET work_mem = '64kB';
SELECT count(*) = (SELECT count(*) FROM found) AS same
FROM neardup_pairs('docs', similarity => 0.5);
RESET work_mem;
-- Within the guarantee of the bands, nothing changes, and there is no notice.
SELECT count(*) - (SELECT count(*) FROM near WHERE similarity >= 0.8) AS missed
FROM neardup_pairs('docs', similarity => 0.8);
-- Clusters are chains of the pairs found. With "keep", a cluster has the rows found near one row.
WITH RECURSIVE edges AS (SELECT a, b FROM found UNION SELECT b, a FROM found),
    reached (id, other) AS (SELECT id, id FROM docs UNION
        SELECT r.id, e.b FROM reached r JOIN edges e ON e.a = r.other),
    least AS (SELECT id, min(other) AS root FROM reached GROUP BY id),
    expected AS (SELECT id, root FROM least
        WHERE root IN (SELECT root FROM least GROUP BY root HAVING count(*) > 1)),
    clustered AS (SELECT m.id, r.id AS root
        FROM neardup_clusters('docs', similarity => 0.5, method => 'connected', keep => 'id') c
        JOIN docs m ON m.ctid = c.member JOIN docs r ON r.ctid = c.representative)
SELECT (SELECT count(*) FROM clustered) > 400 AS many,
    (SELECT count(*) FROM (TABLE clustered EXCEPT TABLE expected) x)
    + (SELECT count(*) FROM (TABLE expected EXCEPT TABLE clustered) x) AS differing;
SELECT count(*) > 400 AS many, count(*) FILTER (WHERE c.similarity < 0.5) AS too_far,
    count(*) FILTER (WHERE m.id <> r.id AND NOT EXISTS (SELECT FROM found
        WHERE a = least(m.id, r.id) AND b = greatest(m.id, r.id))) AS not_found
FROM neardup_clusters('docs', similarity => 0.5, keep => 'id') c
    JOIN docs m ON m.ctid = c.member JOIN docs r ON r.ctid = c.representative;
-- A filter, and counts.
SELECT count(*) = (SELECT count(*) FROM found WHERE a > 100 AND b > 100) AS same
FROM neardup_pairs('docs', similarity => 0.5, filter => 'id > 100');
SELECT sum(pairs) = (SELECT count(*) FROM found) AS same
FROM neardup_distance_histogram('docs', similarity => 0.5, sample_rows => NULL);
-- With the setting on, a search runs that is otherwise refused. The refusal states its recall.
CREATE TABLE many (id int, sig minhash_signature);
INSERT INTO many SELECT i, minhash(ARRAY[(i / 2)::text]) FROM generate_series(1, 7000) i;
CREATE INDEX many_sig ON many USING neardup (sig);
SELECT count(*), min(similarity) FROM neardup_pairs('many', similarity => 0.2);
SELECT count(*) FROM neardup_clusters('many', similarity => 0.2);
RESET neardup.allow_approximate;
INSERT INTO many SELECT i, minhash(ARRAY[(i / 2)::text]) FROM generate_series(7001, 20000) i;
CREATE INDEX many_bands ON many USING neardup (sig) WITH (bands = 64);
SELECT count(*) FROM neardup_clusters('many_sig', similarity => 0.2);
SELECT count(*) FROM neardup_clusters('many_bands', similarity => 0.2);
DROP INDEX many_sig;
-- The textbook's bands guarantee neither all pairs of 0.8 nor all pairs of less.
CREATE INDEX few_bands ON docs USING neardup (sig) WITH (bands = 16, rows = 8);
SET neardup.allow_approximate = on;
SELECT count(*) > 0 AS some FROM neardup_pairs('few_bands', similarity => 0.8);
DROP INDEX few_bands;
-- With several indexes, the best one for the similarity is used: there is no notice if one
-- guarantees the similarity, and otherwise one of the widest is used.
CREATE INDEX narrow ON docs USING neardup (sig) WITH (similarity = 0.95);
CREATE INDEX wide ON docs USING neardup (sig) WITH (similarity = 0.7);
SELECT count(*) > 0 AS some FROM neardup_pairs('docs', similarity => 0.7);
SELECT count(*) > 0 AS some
FROM neardup_clusters_by_key(NULL::bigint, 'docs', similarity => 0.72, key => 'id');
SELECT count(*) > 0 AS some FROM neardup_pairs('docs', similarity => 0.65);
SELECT count(*) > 0 AS some
FROM neardup_distance_histogram('docs', similarity => 0.65, sample_rows => NULL);
BEGIN;
DROP INDEX wide;
SELECT count(*) > 0 AS some FROM neardup_pairs('docs', similarity => 0.7);
ROLLBACK;
DROP INDEX narrow, wide;
-- Every search for fingerprints is exact.
ALTER TABLE many ADD fp fingerprint;
UPDATE many SET fp = id::bigint::fingerprint;
CREATE INDEX many_fp ON many USING neardup (fp);
SELECT count(*) > 0 AS some FROM neardup_pairs('many_fp', 1);
SET client_min_messages = warning;
DROP SCHEMA approximate_pairs CASCADE;
