-- The declaration of every function of the extension. A new function that follows the rules
-- changes nothing here; a function that breaks one appears in this output for review.
CREATE TEMP VIEW members AS
SELECT p.*, p.oid::regprocedure::text COLLATE "C" AS signature, internal.takes
FROM pg_proc p JOIN pg_depend d ON objid = p.oid AND classid = 'pg_proc'::regclass AND deptype = 'e'
CROSS JOIN LATERAL (SELECT 'internal'::regtype = ANY (p.proargtypes) AS takes) internal
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension
    WHERE extname = 'neardup');
SELECT count(*) > 300 AS many FROM members;
-- No function runs with another role's rights. None is written in SQL or PL/pgSQL, where names are
-- resolved by search_path, and none has its own settings. PUBLIC may not call only the functions
-- that report on other sessions.
SELECT signature FROM members WHERE prosecdef OR proconfig IS NOT NULL OR proacl IS NOT NULL
    OR prolang NOT IN (SELECT oid FROM pg_language WHERE lanname IN ('c', 'internal'));
-- Neither volatile nor stable: immutable.
SELECT signature, provolatile FROM members WHERE provolatile <> 'i' AND prokind = 'f'
    AND proname !~ '_support$' ORDER BY 1;
-- Called on NULL.
SELECT signature FROM members WHERE NOT proisstrict AND prokind = 'f' ORDER BY 1;
-- Not parallel safe.
SELECT signature, proparallel FROM members WHERE proparallel <> 's' AND proname !~ '_support$'
    ORDER BY 1;
-- Support functions are called by the planner alone.
SELECT signature FROM members WHERE proname ~ '_support$' AND NOT (takes AND pronargs = 1
    AND prorettype = 'internal'::regtype);
-- Functions with an internal argument cannot be called from SQL.
SELECT signature FROM members WHERE takes AND proname !~ '_(support|sortsupport|recv)$' ORDER BY 1;
-- Functions that read a text or a whole table have a higher cost than a comparison.
SELECT signature, procost FROM members WHERE prokind = 'f' AND procost = 1
    AND (proargtypes[0] IN ('text'::regtype, 'text[]'::regtype, 'tsvector'::regtype,
    'regclass'::regtype, 'bigint[]'::regtype)) ORDER BY 1;
SELECT signature, prorows FROM members WHERE proretset ORDER BY 1;
-- Comparisons that are not leakproof.
SELECT signature FROM members WHERE prorettype = 'boolean'::regtype AND NOT proleakproof
    AND prokind = 'f' ORDER BY 1;
-- Aggregates that cannot be shared by workers.
SELECT signature FROM members JOIN pg_aggregate ON aggfnoid = members.oid WHERE aggcombinefn = 0
    ORDER BY 1;
