-- Uses the extension in a new database, and fails if it does not work. `make installcheck` and the
-- scripts try-*.sh in this folder run these statements. The scripts also compare the output of the
-- last query.
\set ON_ERROR_STOP on
CREATE EXTENSION neardup;
SELECT extversion FROM pg_extension WHERE extname = 'neardup';
CREATE TABLE docs (id bigint, body text, fp fingerprint GENERATED ALWAYS AS (simhash(body)) STORED);
CREATE INDEX docs_fp ON docs USING neardup (fp);
INSERT INTO docs SELECT i, 'The harbour authority said that bridge number ' || i || ' stays closed'
FROM generate_series(1, 1000) i;
INSERT INTO docs SELECT 1001, upper(body) FROM docs WHERE id = 7;
SET enable_seqscan = off;
CREATE TABLE found AS SELECT id FROM docs
WHERE fp <~> simhash('the harbour authority said that bridge number 7 stays closed') <= 0;
DO $$
DECLARE
    line text;
    plan text := '';
BEGIN
    FOR line IN EXPLAIN SELECT id FROM docs WHERE fp <~> simhash('a b c') <= 0 LOOP
        plan := plan || line || chr(10);
    END LOOP;
    IF strpos(plan, 'docs_fp') = 0 THEN
        RAISE 'the index does not serve the search' USING DETAIL = plan;
    END IF;
END $$;
SELECT neardup_index_check('docs_fp');
DROP EXTENSION neardup CASCADE;
SELECT count(*) FROM pg_am WHERE amname = 'neardup';
DO $$
BEGIN
    IF (SELECT array_agg(id ORDER BY id) FROM found) IS DISTINCT FROM '{7,1001}'::bigint[] THEN
        RAISE 'the index did not find the two equal texts';
    END IF;
END $$;
SELECT string_agg(id::text, ' ' ORDER BY id) FROM found;
