-- ------------------------------------------------------------------------------------------------
-- A report to look at
-- ------------------------------------------------------------------------------------------------

-- It runs queries with expressions of the caller, as the functions of whole tables do: hence
-- VOLATILE and PARALLEL UNSAFE.
CREATE FUNCTION neardup_report(relation regclass, radius integer DEFAULT NULL,
    similarity float8 DEFAULT NULL, body text DEFAULT NULL, key text DEFAULT NULL,
    keep text DEFAULT NULL, title text DEFAULT NULL, column_name name DEFAULT NULL,
    filter text DEFAULT NULL, radii integer[] DEFAULT NULL, similarities float8[] DEFAULT NULL,
    clusters integer DEFAULT 20, members integer DEFAULT 12, characters integer DEFAULT 20000,
    sample_rows integer DEFAULT 1000, exhaustive boolean DEFAULT false)
    RETURNS text LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000000
    AS 'MODULE_PATHNAME', 'neardup_report';
COMMENT ON FUNCTION neardup_report(regclass, integer, float8, text, text, text, text, name, text,
    integer[], float8[], integer, integer, integer, integer, boolean) IS
    'the near-duplicates of a table as one HTML page: numbers, histogram, the largest clusters '
    'with marked differences';
