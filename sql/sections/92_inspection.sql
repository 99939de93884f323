-- ------------------------------------------------------------------------------------------------
-- Choosing a radius and an index's options, and inspecting an index
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION neardup_tune(
    similarity float8, recall float8 DEFAULT 1, hashes integer DEFAULT 128,
    rows_expected bigint DEFAULT 1000000,
    OUT bands integer, OUT "rows" integer, OUT exact boolean, OUT found_at_50 float8,
    OUT found_at_60 float8, OUT found_at_70 float8, OUT found_at_80 float8, OUT found_at_90 float8,
    OUT candidates float8, OUT bytes_per_row float8, OUT options text
) RETURNS record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_tune';
-- Its name differs because integers of drivers would choose neardup_tune(float8, ...).
CREATE FUNCTION neardup_tune_radius(
    bits integer, radius integer, rows_expected bigint DEFAULT 1000000,
    search_radius integer DEFAULT NULL,
    OUT guaranteed_radius integer, OUT blocks integer, OUT permutations integer,
    OUT leading_bits integer,
    OUT candidates float8, OUT bytes_per_row float8, OUT options text,
    OUT search_cost float8, OUT default_cost float8
) RETURNS record
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'neardup_tune_radius';
COMMENT ON FUNCTION neardup_tune(float8, float8, integer, bigint) IS
    'options for an index on signatures that finds this share (recall) of all pairs of a '
    'similarity; recall 1 finds all, exactly';
COMMENT ON FUNCTION neardup_tune_radius(integer, integer, bigint, integer) IS
    'index on fingerprints of a width that is made for a radius, with the cost of searches in it '
    'and in an index with default options';

-- Called on NULL input because weights and max_loss may be NULL.
CREATE FUNCTION neardup_evaluate(
    distances float8[], duplicates boolean[], weights float8[] DEFAULT NULL,
    max_loss float8 DEFAULT NULL,
    OUT radius float8, OUT pairs bigint, OUT duplicates bigint, OUT "precision" float8,
    OUT recall float8, OUT f1 float8
) RETURNS SETOF record
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000 ROWS 20
    AS 'MODULE_PATHNAME', 'neardup_evaluate';
COMMENT ON FUNCTION neardup_evaluate(float8[], boolean[], float8[], float8) IS
    'precision, recall and F1 at each radius, or at the smallest radius that misses few '
    'duplicates, by pairs that are labelled as duplicates or not';

-- They raise an error unless the caller owns the index's table.
CREATE FUNCTION neardup_index_check(
    index regclass, heap boolean DEFAULT false, concurrently boolean DEFAULT false,
    OUT rows bigint, OUT null_rows bigint, OUT entries bigint,
    OUT leaves bigint, OUT inner_pages bigint
) RETURNS record
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000000
    AS 'MODULE_PATHNAME', 'neardup_index_check';
COMMENT ON FUNCTION neardup_index_check(regclass, boolean, boolean) IS
    'checks every invariant of a neardup index and, with heap, that each row of its table '
    'occurs in it once; concurrently: while others write';
CREATE FUNCTION neardup_index_info(
    index regclass,
    OUT radius int, OUT similarity float8, OUT guaranteed_radius int,
    OUT guaranteed_similarity float8, OUT probed_radius int, OUT blocks int,
    OUT permutations int, OUT advice text,
    OUT rows bigint, OUT null_rows bigint, OUT pages bigint, OUT unused_pages bigint,
    OUT bytes_per_row float8, OUT leaf_fill float8,
    OUT candidates float8, OUT largest_bucket_entries bigint, OUT largest_bucket_row tid
) RETURNS record
    LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 1000000
    AS 'MODULE_PATHNAME', 'neardup_index_info';
COMMENT ON FUNCTION neardup_index_info(regclass) IS
    'radius, layout, size and load of a neardup index; reads all of it';
CREATE FUNCTION neardup_expert_index_statistics(
    index regclass,
    OUT fingerprint_bits int, OUT scope_columns int, OUT leading_bits int,
    OUT hashes int, OUT bands int, OUT band_rows int, OUT height int, OUT inner_pages bigint,
    OUT leaf_pages bigint, OUT empty_pages bigint, OUT entries bigint,
    OUT largest_bucket_permutation int, OUT largest_bucket_mask varbit,
    OUT largest_bucket_bits varbit
) RETURNS record
    LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 1000000
    AS 'MODULE_PATHNAME', 'neardup_expert_index_statistics';
COMMENT ON FUNCTION neardup_expert_index_statistics(regclass) IS
    'parameters of a neardup index, its pages by kind, and the bits that its largest bucket '
    'shares; reads all of it';
