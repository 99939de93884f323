-- ------------------------------------------------------------------------------------------------
-- Paragraphs, lines and sentences of a text
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION neardup_segments(
    body text, unit text DEFAULT 'paragraph',
    OUT ordinal integer, OUT start integer, OUT segment text, OUT hash bigint
) RETURNS SETOF record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200 ROWS 30
    AS 'MODULE_PATHNAME', 'neardup_segments';
COMMENT ON FUNCTION neardup_segments(text, text) IS
    'the paragraphs, lines or sentences of a text in its order, each with its position in '
    'characters and a hash of its normal form';

CREATE FUNCTION neardup_cut_segments(
    body text, ordinals integer[], unit text DEFAULT 'paragraph'
) RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500
    AS 'MODULE_PATHNAME', 'neardup_cut_segments';
COMMENT ON FUNCTION neardup_cut_segments(text, integer[], text) IS
    'a text without some of its paragraphs, lines or sentences; all other bytes stay as they are';
