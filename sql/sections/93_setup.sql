-- ------------------------------------------------------------------------------------------------
-- Statements that set a table up
-- ------------------------------------------------------------------------------------------------

-- It reads catalogs and changes nothing. The table may be temporary.
CREATE FUNCTION neardup_setup(relation regclass, text_column name, action text DEFAULT 'search',
    similarity float8 DEFAULT 0.8, options text[] DEFAULT '{}',
    keep text DEFAULT NULL, OUT step integer, OUT part text, OUT statement text, OUT note text)
    RETURNS SETOF record LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED COST 1000
    ROWS 10 AS 'MODULE_PATHNAME', 'neardup_setup';
COMMENT ON FUNCTION neardup_setup(regclass, name, text, float8, text[], text) IS
    'statements that add a search, or a rule for near-duplicates, to a table in use, and '
    'statements that remove it; runs none of them';
