-- ------------------------------------------------------------------------------------------------
-- Deduplication: whole tables, and the trigger
-- ------------------------------------------------------------------------------------------------

-- They see what the query's snapshot sees, check the caller's rights on the table themselves, and
-- evaluate expressions of the caller, which may do anything: hence VOLATILE and PARALLEL UNSAFE.
-- Each takes either a radius or a similarity, by one signature: the meaning of a bound must not
-- depend on the type that a driver gives to a number.
CREATE FUNCTION neardup_pairs(relation regclass, radius integer DEFAULT NULL,
    similarity float8 DEFAULT NULL, column_name name DEFAULT NULL, filter text DEFAULT NULL,
    exhaustive boolean DEFAULT false, confirm text DEFAULT NULL, row_time text DEFAULT NULL,
    within interval DEFAULT NULL,
    OUT a tid, OUT b tid, OUT distance integer, OUT similarity float8)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_pairs';
COMMENT ON FUNCTION
    neardup_pairs(regclass, integer, float8, name, text, boolean, text, text, interval) IS
    'all pairs of rows within a radius or with a similarity, found by passes over a neardup index';

CREATE FUNCTION neardup_clusters(relation regclass, radius integer DEFAULT NULL,
    similarity float8 DEFAULT NULL, method text DEFAULT 'star', keep text DEFAULT NULL,
    column_name name DEFAULT NULL, filter text DEFAULT NULL, singletons boolean DEFAULT false,
    exhaustive boolean DEFAULT false, confirm text DEFAULT NULL, row_time text DEFAULT NULL,
    within interval DEFAULT NULL,
    OUT member tid, OUT representative tid, OUT size bigint, OUT distance integer,
    OUT similarity float8)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_clusters';
COMMENT ON FUNCTION
    neardup_clusters(regclass, integer, float8, text, text, name, text, boolean, boolean, text,
        text, interval) IS
    'clusters of near-duplicate rows, each with the row to keep by the order given';

CREATE FUNCTION neardup_distance_histogram(
    relation regclass, radius integer DEFAULT NULL, similarity float8 DEFAULT NULL,
    sample_rows integer DEFAULT 1000, column_name name DEFAULT NULL, examples integer DEFAULT 3,
    distinct_values boolean DEFAULT false, filter text DEFAULT NULL,
    OUT distance integer, OUT similarity float8, OUT pairs bigint, OUT margin bigint,
    OUT bar text, OUT a tid[], OUT b tid[]
) RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 17
    AS 'MODULE_PATHNAME', 'neardup_distance_histogram';
COMMENT ON FUNCTION
    neardup_distance_histogram(regclass, integer, float8, integer, name, integer, boolean, text) IS
    'how many pairs of rows there are at each distance or similarity, with a few of them, for '
    'choosing a bound';

CREATE FUNCTION neardup_dedup()
    RETURNS trigger LANGUAGE C VOLATILE AS 'MODULE_PATHNAME', 'neardup_dedup';
COMMENT ON FUNCTION neardup_dedup() IS
    'row trigger that skips, refuses, marks or logs rows that are near-duplicates of rows that '
    'are there';

CREATE FUNCTION neardup_remark(relation regclass, trigger_name name DEFAULT NULL,
    manual text DEFAULT NULL, keep text DEFAULT NULL)
    RETURNS bigint LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000000
    AS 'MODULE_PATHNAME', 'neardup_remark';
COMMENT ON FUNCTION neardup_remark(regclass, name, text, text) IS
    'sets all marks of a table as its trigger neardup_dedup would have set them for rows in an '
    'order of preference, but for marks set by hand; returns how many rows it has changed';

CREATE FUNCTION neardup_expert_rows_in_flight(OUT pid integer, OUT relation regclass, OUT
    column_name name)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10
    AS 'MODULE_PATHNAME', 'neardup_expert_rows_in_flight';
COMMENT ON FUNCTION neardup_expert_rows_in_flight()
    IS 'rows that neardup_dedup has compared and that are not in their indexes yet';
REVOKE ALL ON FUNCTION neardup_expert_rows_in_flight() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION neardup_expert_rows_in_flight() TO pg_monitor;
