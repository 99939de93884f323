-- Every extension that this server offers is created in one schema with neardup, before it and
-- after it.
-- An extension that can be created without neardup (some need a preloaded library or another
-- language) must be creatable with it. Two extensions that define the same name would fail here.
-- Needs: btree_gist, pg_trgm, cube, hstore, intarray, citext
SET client_min_messages = warning;
DROP EXTENSION neardup;
CREATE FUNCTION create_all() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT e.name FROM pg_available_extensions e WHERE e.name <> 'neardup'
    AND e.installed_version IS NULL ORDER BY 1 LOOP
        BEGIN
            EXECUTE format('CREATE EXTENSION IF NOT EXISTS %I WITH SCHEMA contrib_test CASCADE',
            name);
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
    RETURN ARRAY(SELECT extname::text FROM pg_extension WHERE extname <> 'neardup');
END $$;
CREATE SCHEMA contrib_test;
CREATE TABLE alone AS SELECT unnest(create_all()) AS name;
DROP SCHEMA contrib_test CASCADE;
SELECT count(*) AS present FROM alone WHERE name IN ('btree_gist', 'pg_trgm', 'cube', 'hstore',
    'intarray', 'citext');

-- neardup first
CREATE SCHEMA contrib_test;
CREATE EXTENSION neardup WITH SCHEMA contrib_test;
SELECT name AS conflict FROM alone EXCEPT SELECT unnest(create_all());
-- Its operators are still found, and so are the other extensions' operators.
SET search_path = contrib_test;
SELECT '0000000000000000'::fingerprint <~> '000000000000000f' AS four, 1 <~> 2 AS two,
    '0000000000000000'::fingerprint ~= '0000000000000007' AS near,
       '0000000000000000'::fingerprint <@ ball('000000000000000f'::fingerprint, 4) AS inside,
       5::bigint <@ '<5,0>' AS literal, simhash('abc') IS NOT NULL AS hashed,
       1 <~> 2 <= 3 AS compared, 3::int2 > 1 <~> 2 AS commuted;
SELECT 3 <-> 5 AS btree_gist, 'word' <-> 'two words' > 0 AS pg_trgm,
    '(1,2)'::cube <#> '(3,4)'::cube AS cube, 'a=>1'::hstore <@ 'a=>1,b=>2'::hstore AS hstore,
       '{1}'::int[] <@ '{1,2}'::int[] AS intarray,
       simhash('abc'::citext) = simhash('abc'::text) AS citext;

-- neardup last
RESET search_path;
DROP EXTENSION neardup;
CREATE EXTENSION neardup WITH SCHEMA contrib_test;
SET search_path = contrib_test;
SELECT 1 <~> 2 AS found;

RESET search_path;
DROP SCHEMA contrib_test CASCADE;
DROP TABLE alone;
DROP FUNCTION create_all;
CREATE EXTENSION neardup;
