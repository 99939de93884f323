-- The SQL objects of neardup. The library's symbols are exported by src/types, src/functions,
-- src/planner, src/dedup and src/am. Nothing here names a schema: the extension can live in any,
-- and be moved.
\echo Use "CREATE EXTENSION neardup" to load this file. \quit
