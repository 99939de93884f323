-- neardup_distance_histogram(filter => ...): the pairs of the rows that meet a condition, of each
-- kind of value, by the index and by the column, all and by a sample, of equal rows or not.
CREATE SCHEMA histogram_filter;
SET search_path = histogram_filter, public;
\set VERBOSITY default
CREATE TABLE docs (id int PRIMARY KEY, site int, fp fingerprint, wide fingerprint128,
    widest fingerprint256, hash bigint, sig minhash_signature);
INSERT INTO docs SELECT i, i % 3, hash::fingerprint,
    lpad(to_hex(hash), 32, '0')::fingerprint128, lpad(to_hex(hash), 64, '0')::fingerprint256, hash,
    minhash(ARRAY(SELECT i / 12 || 'w' || n FROM generate_series(i % 4, i % 4 + 20) n))
FROM (SELECT i, ((i / 8)::bigint << 32) + (1 << (i % 4)) AS hash FROM generate_series(1, 200) i) d;
CREATE INDEX docs_fp ON docs USING neardup (fp);
CREATE INDEX docs_site ON docs USING neardup (site, fp);
CREATE INDEX docs_wide ON docs USING neardup (wide);
CREATE INDEX docs_widest ON docs USING neardup (widest);
CREATE INDEX docs_hash ON docs USING neardup (hash bigint_hamming_ops);
CREATE INDEX docs_sig ON docs USING neardup (sig);
-- Entries of deleted rows, of rows moved within their page, and of new rows.
DELETE FROM docs WHERE id % 17 = 0;
UPDATE docs SET id = -id WHERE id % 13 = 0;

-- The difference from a join over the filtered rows.
CREATE FUNCTION wrong(source text, col text, bound text, sample int, is_distinct boolean,
    filter text) RETURNS TABLE (pairs numeric, wrong bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format($query$
        WITH found AS (SELECT coalesce(distance, similarity)::numeric AS line, pairs
            FROM neardup_distance_histogram(%L, %s, sample_rows => %s,
                column_name => %s, distinct_values => %L, filter => %L)),
            rows AS (SELECT min(id) AS id, %s AS s, %I AS v FROM docs WHERE %s
                GROUP BY 3, 2, CASE WHEN %L THEN 0 ELSE id END),
            joined AS (SELECT %s AS line FROM rows a JOIN rows b ON a.id < b.id AND a.s = b.s),
            counted AS (SELECT line, count(*) FROM joined GROUP BY 1)
        SELECT sum(pairs), count(*) FILTER (WHERE pairs <> coalesce(c.count, 0))
        FROM found f LEFT JOIN counted c ON abs(c.line - f.line) < 0.001 $query$,
        source, bound, coalesce(sample::text, 'NULL'),
        CASE source WHEN 'docs' THEN quote_literal(col) ELSE 'NULL' END, is_distinct, filter,
        CASE source WHEN 'docs_site' THEN 'site' ELSE '0' END, col, filter, is_distinct,
        CASE col WHEN 'sig' THEN 'floor(round(minhash_similarity(a.v, b.v)::numeric, 7) * 50) / 50'
            ELSE '(a.v <~> b.v)::numeric' END);
END $$;
SELECT source, col, sample, is_distinct, w.*
FROM (VALUES ('docs_fp', 'fp', 'radius => 3'), ('docs', 'fp', 'radius => 3'),
    ('docs_site', 'fp', 'radius => 3'), ('docs_wide', 'wide', 'radius => 3'),
    ('docs', 'wide', 'radius => 3'), ('docs_widest', 'widest', 'radius => 3'),
    ('docs_hash', 'hash', 'radius => 3'), ('docs', 'hash', 'radius => 3'),
    ('docs_sig', 'sig', 'similarity => 0.8'), ('docs', 'sig', 'similarity => 0.8'))
    s (source, col, bound),
    (VALUES (1000), (NULL)) n (sample), (VALUES (false), (true)) d (is_distinct),
    wrong(source, col, bound, sample, is_distinct, 'id % 5 < 3 AND id < 150') w
WHERE NOT (source = 'docs' AND col = 'fp' AND sample IS NULL)
ORDER BY 1, 2, 3, 4;
-- Of equal values, the first that meets the filter is counted.
SELECT distance, pairs FROM neardup_distance_histogram('docs_fp', 2, sample_rows => NULL,
    distinct_values => true, filter => 'id BETWEEN 5 AND 7') ORDER BY 1;
SELECT sum(pairs) FROM neardup_distance_histogram('docs_fp', 3, filter => 'false');
SELECT sum(pairs) FROM neardup_distance_histogram('docs', 3, column_name => 'fp',
    filter => 'NULL');
SELECT sum(pairs) FROM neardup_distance_histogram('docs', similarity => 0.1, filter => 'false',
    column_name => 'sig');
SELECT sum(pairs) = (SELECT sum(pairs)
    FROM neardup_distance_histogram('docs_fp', 3, sample_rows => NULL)) AS same
FROM neardup_distance_histogram('docs_fp', 3, sample_rows => NULL, filter => NULL);

-- An error names the parameter that causes it.
SELECT * FROM neardup_distance_histogram('docs', 3, column_name => 'fp', filter => 'ids > 1');
SELECT * FROM neardup_distance_histogram('docs_fp', 3, filter => 'ids > 1');
SELECT * FROM neardup_distance_histogram('docs', similarity => 0.8, filter => 'id / 0 > 1',
    column_name => 'sig');
SELECT * FROM neardup_distance_histogram('docs_fp', 3, filter => 'id > 1 LIMIT 1');
SELECT * FROM neardup_clusters('docs_fp', 3, keep => 'ids');
SELECT * FROM neardup_clusters('docs_fp', 3, keep => '1 / (id - id)');
SELECT * FROM neardup_clusters('docs_fp', 3, keep => 'id', filter => 'ids = 1');
SELECT (neardup_pairs('docs_fp', 3, filter => 'ids = 1')).a;
-- So does an error raised by a function of the caller.
CREATE FUNCTION fails(n int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'not %', n;
END $$;
SELECT * FROM neardup_distance_histogram('docs_fp', 3, filter => 'fails(id)');
-- A function in the filter may call the same function.
CREATE FUNCTION counted() RETURNS numeric LANGUAGE sql VOLATILE AS
    $$ SELECT sum(pairs) FROM neardup_distance_histogram('docs_sig', similarity => 0.9,
        filter => 'id > 190') $$;
SELECT sum(pairs) FROM neardup_distance_histogram('docs_fp', 1,
    filter => 'counted() >= 0 AND id < 9');
CREATE ROLE regress_neardup_reader;
GRANT USAGE ON SCHEMA histogram_filter TO regress_neardup_reader;
GRANT SELECT (fp) ON docs TO regress_neardup_reader;
SET ROLE regress_neardup_reader;
SELECT count(*) FROM neardup_distance_histogram('docs_fp', 3);
SELECT count(*) FROM neardup_distance_histogram('docs_fp', 3, filter => 'true');
SELECT count(*) FROM neardup_distance_histogram('docs', 3, column_name => 'fp', filter => 'true');
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA histogram_filter CASCADE;
DROP ROLE regress_neardup_reader;
