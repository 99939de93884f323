-- ------------------------------------------------------------------------------------------------
-- The differences of two texts, by words
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION neardup_diff(
    a text, b text,
    OUT ordinal integer, OUT kind text, OUT a_start integer, OUT a_end integer, OUT a_text text,
    OUT b_start integer, OUT b_end integer, OUT b_text text
) RETURNS SETOF record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5000 ROWS 20
    AS 'MODULE_PATHNAME', 'neardup_diff';
COMMENT ON FUNCTION neardup_diff(text, text) IS
    'two texts divided by words into equal, deleted, inserted and replaced spans, with their '
    'offsets in characters; together the rows contain both texts';

-- Called on NULL input: context may be NULL. A NULL elsewhere gives NULL.
CREATE FUNCTION neardup_diff_html(a text, b text, context integer DEFAULT NULL) RETURNS text
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5000
    AS 'MODULE_PATHNAME', 'neardup_diff_html';
CREATE FUNCTION neardup_diff_ansi(a text, b text, context integer DEFAULT NULL) RETURNS text
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5000
    AS 'MODULE_PATHNAME', 'neardup_diff_ansi';
COMMENT ON FUNCTION neardup_diff_html(text, text, integer) IS
    'two texts as one in HTML, escaped, with del and ins around what differs; with context, equal '
    'text more than that number of words from a change is left out';
COMMENT ON FUNCTION neardup_diff_ansi(text, text, integer) IS
    'two texts as one for a terminal, with differences in colour; with context, without equal '
    'text more than that number of words from a change';
