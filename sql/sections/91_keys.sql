-- ------------------------------------------------------------------------------------------------
-- Rows named by keys, and clusters of keys from pairs that were found anywhere
-- ------------------------------------------------------------------------------------------------

-- They run queries with expressions of the caller, which may do anything: hence VOLATILE and
-- PARALLEL UNSAFE. The parser finds the type of a polymorphic column only by arguments that are
-- neither omitted nor named, so key_type is the first argument, as in jsonb_populate_record.
CREATE FUNCTION neardup_pairs_by_key(key_type anyelement, relation regclass,
    radius integer DEFAULT NULL, similarity float8 DEFAULT NULL, key text DEFAULT NULL,
    column_name name DEFAULT NULL, filter text DEFAULT NULL, exhaustive boolean DEFAULT false,
    confirm text DEFAULT NULL, row_time text DEFAULT NULL, within interval DEFAULT NULL,
    OUT a anyelement, OUT b anyelement, OUT distance integer, OUT similarity float8)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_pairs_by_key';
COMMENT ON FUNCTION
    neardup_pairs_by_key(anyelement, regclass, integer, float8, text, name, text, boolean, text,
        text, interval) IS
    'all pairs of rows within a radius or with a similarity, as neardup_pairs finds them, named by '
    'a key';

CREATE FUNCTION neardup_clusters_by_key(key_type anyelement, relation regclass,
    radius integer DEFAULT NULL, similarity float8 DEFAULT NULL, key text DEFAULT NULL,
    method text DEFAULT 'star', keep text DEFAULT NULL, column_name name DEFAULT NULL,
    filter text DEFAULT NULL, singletons boolean DEFAULT false, exhaustive boolean DEFAULT false,
    confirm text DEFAULT NULL, row_time text DEFAULT NULL, within interval DEFAULT NULL,
    OUT member anyelement, OUT representative anyelement, OUT size bigint, OUT distance integer,
    OUT similarity float8)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_clusters_by_key';
COMMENT ON FUNCTION
    neardup_clusters_by_key(anyelement, regclass, integer, float8, text, text, text, name, text,
        boolean, boolean, text, text, interval) IS
    'clusters of near-duplicate rows, as neardup_clusters makes them, named by a key';

CREATE FUNCTION neardup_repeated_passages(key_type anyelement, relation regclass, body text,
    length integer DEFAULT 50, key text DEFAULT NULL, keep text DEFAULT NULL,
    filter text DEFAULT NULL, tokens text DEFAULT 'word', html boolean DEFAULT false,
    accents text DEFAULT 'keep', digits text DEFAULT 'keep',
    OUT document anyelement, OUT passage_start integer, OUT passage_end integer,
    OUT token_count integer, OUT original anyelement)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_repeated_passages';
COMMENT ON FUNCTION
    neardup_repeated_passages(anyelement, regclass, text, integer, text, text, text, text, boolean,
        text, text) IS
    'passages of at least length tokens that an earlier document, or an earlier part of the same '
    'document, contains, with their positions and that document';

CREATE FUNCTION neardup_components(query text,
    OUT member bigint, OUT representative bigint, OUT size bigint)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_components';
CREATE FUNCTION neardup_components(key_type anyelement, query text,
    method text DEFAULT 'connected', keep text DEFAULT NULL,
    OUT member anyelement, OUT representative anyelement, OUT size bigint)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_components_of';
COMMENT ON FUNCTION neardup_components(text) IS
    'connected components of the pairs of keys that a query returns, each with its lowest key';
COMMENT ON FUNCTION neardup_components(anyelement, text, text, text) IS
    'clusters of the pairs of keys, of a type, that a query returns, each with the key that '
    'another query prefers';
