-- ------------------------------------------------------------------------------------------------
-- Passages: runs of tokens that texts share
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION passages(
    body text, length integer DEFAULT 24, tokens text DEFAULT 'word', shingle integer DEFAULT 8,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'passages_text';
CREATE FUNCTION passages_without(
    body text, without bytea, length integer DEFAULT 24, tokens text DEFAULT 'word',
    shingle integer DEFAULT 8, html boolean DEFAULT false, accents text DEFAULT 'keep',
    digits text DEFAULT 'keep'
) RETURNS bigint[]
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1500
    AS 'MODULE_PATHNAME', 'passages_without';
CREATE FUNCTION passages_in_common(a bigint[], b bigint[]) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'passages_in_common';
CREATE FUNCTION shared_passages(
    a text, b text, length integer DEFAULT 24, tokens text DEFAULT 'word',
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep',
    OUT a_start integer, OUT a_end integer, OUT b_start integer, OUT b_end integer,
    OUT token_count integer, OUT a_share double precision, OUT passage text
) RETURNS SETOF record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10000 ROWS 5
    AS 'MODULE_PATHNAME', 'shared_passages';
COMMENT ON FUNCTION passages(text, integer, text, integer, boolean, text, text) IS
    'hashes of the passages of a text: any run of at least length tokens that two texts share '
    'puts a common hash into both arrays; ascending, for && and an index by gin';
COMMENT ON FUNCTION passages_without(text, bytea, integer, text, integer, boolean, text, text) IS
    'hashes of the passages of a text without the features of a set of common features';
COMMENT ON FUNCTION passages_in_common(bigint[], bigint[]) IS
    'number of different hashes that two arrays share';
COMMENT ON FUNCTION shared_passages(text, text, integer, text, boolean, text, text) IS
    'the passages of at least length tokens that two texts share, the longest first, with their '
    'positions in both';
