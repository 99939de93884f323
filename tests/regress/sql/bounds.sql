-- An omitted bound is the bound of the index: in functions over a whole table, in the report and
-- in the trigger.
CREATE SCHEMA bounds_test;
SET search_path = bounds_test, public;
SET client_min_messages = warning;

-- Near-duplicates by ~=, at the last bit of each width and beyond it.
SELECT '0000000000000000'::fingerprint ~= '000000000000003f' AS six,
    '0000000000000000'::fingerprint ~= '000000000000007f' AS seven,
    0::bigint ~= 63 AS six_of_bigint, 0::bigint ~= 127 AS seven_of_bigint,
    repeat('0', 32)::fingerprint128 ~= (repeat('0', 29) || 'fff')::fingerprint128 AS twelve,
    repeat('0', 32)::fingerprint128 ~= (repeat('0', 28) || '1fff')::fingerprint128 AS thirteen;

-- Rows at distances 2, 5, 6 and more.
CREATE TABLE docs (id int PRIMARY KEY, fp fingerprint, wide fingerprint128, hash bigint);
INSERT INTO docs SELECT id, bits::bigint::fingerprint,
    (repeat('0', 16) || lpad(to_hex(bits), 16, '0'))::fingerprint128, bits
    FROM (VALUES (1, 0), (2, 3), (3, 127 - 3), (4, 8188)) v (id, bits);
CREATE FUNCTION try(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
    RETURN QUERY EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN NEXT SQLSTATE || ': ' || SQLERRM;
    RETURN NEXT '    ' || detail;
    RETURN NEXT '    ' || hint;
END $$;
CREATE FUNCTION pairs(relation text, arguments text DEFAULT '') RETURNS SETOF text LANGUAGE sql
    AS $$ SELECT try(format('SELECT format(''%%s-%%s %%s'', a, b, distance)
        FROM neardup_pairs_by_key(NULL::int, %L, key => ''id''%s) ORDER BY a, b', relation,
        arguments)) $$;

-- Without an index there is no bound.
SELECT pairs('docs');
CREATE INDEX docs_fp ON docs USING neardup (fp);
SELECT pairs('docs');
SELECT pairs('docs', ', radius => 4');
SELECT pairs('docs', ', radius => 2, similarity => 0.8');
SELECT count(*) FROM neardup_pairs('docs');
SELECT count(*) FROM neardup_pairs('docs_fp');
SELECT count(*) FROM neardup_clusters('docs');
SELECT member, representative FROM neardup_clusters_by_key(NULL::int, 'docs') ORDER BY 1;
SELECT neardup_report('docs') LIKE '%6 bits%' AS shows_six;

-- The radius of the index.
CREATE INDEX docs_fp_2 ON docs USING neardup (fp) WITH (radius = 2);
SELECT pairs('docs_fp_2');
SELECT pairs('docs_fp');
-- Two indexes on one column with two radii.
SELECT pairs('docs');
SELECT pairs('docs', ', radius => 5');
SELECT try($$SELECT count(*)::text FROM neardup_pairs('docs')$$);
SELECT try($$SELECT count(*)::text FROM neardup_clusters('docs')$$);
SELECT try($$SELECT count(*)::text FROM neardup_clusters_by_key(NULL::int, 'docs')$$);
SELECT try($$SELECT neardup_report('docs')$$);
-- A histogram has its own range.
SELECT count(*) > 0 AS counted FROM neardup_distance_histogram('docs', sample_rows => NULL,
    column_name => 'fp');
DROP INDEX docs_fp;
SELECT pairs('docs');
-- A partial index and one in scopes do not count.
CREATE INDEX docs_partial ON docs USING neardup (fp) WITH (radius = 8) WHERE id > 0;
CREATE INDEX docs_scope ON docs USING neardup (id, fp) WITH (radius = 8);
SELECT pairs('docs');
-- A new radius applies from the next build on.
ALTER INDEX docs_fp_2 SET (radius = 5);
SELECT pairs('docs');
REINDEX INDEX docs_fp_2;
SELECT pairs('docs');
DROP INDEX docs_fp_2, docs_partial, docs_scope;

-- Other widths, bigint, balls and expressions.
CREATE INDEX docs_wide ON docs USING neardup (wide);
SELECT pairs('docs');
CREATE INDEX docs_hash ON docs USING neardup (hash bigint_hamming_ops) WITH (radius = 2);
SELECT pairs('docs');
SELECT pairs('docs', ', column_name => ''hash''');
DROP INDEX docs_wide, docs_hash;
CREATE INDEX docs_ball ON docs USING neardup (ball(fp, 2));
SELECT pairs('docs');
DROP INDEX docs_ball;
CREATE INDEX docs_expression ON docs USING neardup ((fp::bigint) bigint_hamming_ops)
    WITH (radius = 5);
SELECT pairs('docs');
DROP INDEX docs_expression;

-- Signatures have a similarity.
CREATE TABLE texts (id int PRIMARY KEY, sig minhash_signature, fp fingerprint);
INSERT INTO texts SELECT id, minhash('a b c d e f g h i j k l m n o p q r s t'
    || repeat(' u', id / 2) || repeat(' 0 1 2 3 4 5 6 7 8 9', id / 3),
    shingle => 1), id::bigint::fingerprint
    FROM generate_series(1, 3) AS id;
CREATE INDEX texts_sig ON texts USING neardup (sig);
SELECT a, b, similarity >= 0.8 AS near FROM neardup_pairs_by_key(NULL::int, 'texts');
CREATE INDEX texts_low ON texts USING neardup (sig) WITH (similarity = 0.5);
SELECT count(*) FROM neardup_pairs('texts_low');
SELECT try($$SELECT count(*)::text FROM neardup_pairs('texts')$$);
DROP INDEX texts_low;
-- Fingerprints and signatures are on different columns.
CREATE INDEX texts_fp ON texts USING neardup (fp);
SELECT try($$SELECT count(*)::text FROM neardup_pairs('texts')$$);
SELECT count(*) FROM neardup_pairs('texts', column_name => 'sig');
SELECT count(*) FROM neardup_pairs('texts', radius => 1);

-- The trigger.
CREATE TABLE news (id int PRIMARY KEY, fp fingerprint, dup int);
CREATE FUNCTION define(VARIADIC arguments text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE list text := (SELECT string_agg(quote_literal(a), ', ') FROM unnest(arguments) a);
BEGIN
    TRUNCATE news;
    EXECUTE format('CREATE OR REPLACE TRIGGER dedup BEFORE INSERT OR UPDATE ON news FOR EACH ROW '
        'EXECUTE FUNCTION neardup_dedup(%s)', list);
    EXECUTE format('CREATE OR REPLACE TRIGGER marks AFTER UPDATE OR DELETE ON news FOR EACH ROW '
        'EXECUTE FUNCTION neardup_dedup(%s)', list);
END $$;
CREATE FUNCTION load() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT try('INSERT INTO news SELECT id, fp FROM docs ORDER BY id RETURNING id::text') $$;
CREATE INDEX news_fp ON news USING neardup (fp);
SELECT define('fp');
SELECT load();
SELECT define('fp', 'radius=1');
SELECT load();
DROP INDEX news_fp;
CREATE INDEX news_fp ON news USING neardup (fp) WITH (radius = 2);
SELECT define('fp');
SELECT load();
CREATE INDEX news_fp_5 ON news USING neardup (fp) WITH (radius = 5);
SELECT define('fp');
SELECT load();
SELECT define('fp', 'radius=5');
SELECT load();
DROP INDEX news_fp_5;
-- Marks need their own bound.
SELECT define('fp', 'action=mark', 'mark=dup');
SELECT load();
SELECT define('fp', 'action=mark', 'mark=dup', 'radius=2');
SELECT load();
-- Names of bounds.
SELECT define('fp', 'distance=2');
SELECT load();
SELECT define('fp', 'radius=2', 'similarity=0.8');
SELECT load();
SELECT define('fp', 'radius=2.5');
SELECT load();

DROP SCHEMA bounds_test CASCADE;
