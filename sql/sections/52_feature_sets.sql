-- ------------------------------------------------------------------------------------------------
-- Sets of common features, and texts without these features
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION neardup_expert_feature_set_info(
    feature_set bytea,
    OUT features bigint, OUT tokens text, OUT shingle integer, OUT accents text, OUT digits text
) RETURNS record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'neardup_expert_feature_set_info';
CREATE FUNCTION neardup_expert_feature_set_contains(feature_set bytea, hash fingerprint) RETURNS
    boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'neardup_expert_feature_set_contains';
CREATE FUNCTION neardup_text_without(body text, without bytea, html boolean DEFAULT false)
    RETURNS text
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 3000
    AS 'MODULE_PATHNAME', 'neardup_text_without';
COMMENT ON FUNCTION neardup_expert_feature_set_info(bytea) IS
    'number of features of a set that neardup_common_features has made, and the options that they '
    'were made with';
COMMENT ON FUNCTION neardup_expert_feature_set_contains(bytea, fingerprint) IS
    'true if a set that neardup_common_features has made has a feature of this hash, as '
    'neardup_features gives it';
COMMENT ON FUNCTION neardup_text_without(text, bytea, boolean) IS
    'the parts of a text that have features which a set of common features does not have, one a '
    'line; NULL if there are none';
