-- ------------------------------------------------------------------------------------------------
-- Similarity estimated from fingerprints, and radii that belong to a similarity
-- ------------------------------------------------------------------------------------------------

-- Returns the domain jaccard: comparisons with numbers are the server's own, which the planner
-- rewrites (src/planner/conditions.rs).
{% for type in ["fingerprint", "fingerprint128", "fingerprint256", "bigint"] %}
CREATE FUNCTION fingerprint_similarity({{ type }}, {{ type }}) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_estimate_support
    AS 'MODULE_PATHNAME', '{{ type }}_similarity';
COMMENT ON FUNCTION fingerprint_similarity({{ type }}, {{ type }}) IS
    'Jaccard similarity, from 0 to 1, that the distance of two fingerprints made by minhash64 or '
    'minhash128 estimates; says nothing about others';
{% endfor %}
CREATE FUNCTION fingerprint_similarity(minhash_signature, minhash_signature) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_estimate_support
    AS 'MODULE_PATHNAME', 'minhash_similarity';
COMMENT ON FUNCTION fingerprint_similarity(minhash_signature, minhash_signature) IS
    'Jaccard similarity, from 0 to 1, that two signatures estimate: the same as '
    'minhash_similarity';

CREATE FUNCTION neardup_radius(function text, similarity float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'neardup_radius';
COMMENT ON FUNCTION neardup_radius(text, float8) IS
    'greatest distance of two fingerprints made by a function (minhash64, minhash128) whose '
    'fingerprint_similarity is a number or more';

{% for form, bound in [
    ("similarity_radius", "a number or more"), ("similarity_radius_above", "above a number")
] %}
CREATE FUNCTION _neardup_{{ form }}(similarity float8, bits integer) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '_neardup_{{ form }}';
COMMENT ON FUNCTION _neardup_{{ form }}(float8, integer) IS
    'greatest distance of fingerprints of a width whose fingerprint_similarity is '
    '{{ bound }}; the planned form of such a condition';
{% endfor %}
