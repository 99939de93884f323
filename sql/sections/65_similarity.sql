-- ------------------------------------------------------------------------------------------------
-- Similarity estimated from fingerprints, and radii that belong to a similarity
-- ------------------------------------------------------------------------------------------------

-- Returns the domain jaccard: comparisons with numbers are the server's own, which the planner
-- rewrites (src/planner/conditions.rs).
{% for type in ["fingerprint", "fingerprint128", "fingerprint256", "bigint"] %}
CREATE FUNCTION fingerprint_similarity(a {{ type }}, b {{ type }}) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_estimate_support
    AS 'MODULE_PATHNAME', '{{ type }}_similarity';
COMMENT ON FUNCTION fingerprint_similarity({{ type }}, {{ type }}) IS
    'Jaccard similarity, from 0 to 1, that the distance of two fingerprints made by minhash64 or '
    'minhash128 estimates; says nothing about others';
{% endfor %}
CREATE FUNCTION fingerprint_similarity(a minhash_signature, b minhash_signature) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_estimate_support
    AS 'MODULE_PATHNAME', 'minhash_similarity';
COMMENT ON FUNCTION fingerprint_similarity(minhash_signature, minhash_signature) IS
    'the same as minhash_similarity: programs and ORMs have one name for all types';
-- Resolves a call with two untyped arguments. No column is compared, so it needs no support.
CREATE FUNCTION fingerprint_similarity(a text, b text) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'text_similarity';
COMMENT ON FUNCTION fingerprint_similarity(text, text) IS
    'the same of two fingerprints of one width, written as hexadecimal digits';

CREATE FUNCTION neardup_radius(function text, similarity float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'neardup_radius';
COMMENT ON FUNCTION neardup_radius(text, float8) IS
    'maximum distance of two fingerprints made by a function (minhash64, minhash128) whose '
    'fingerprint_similarity is at least a number';

{% for form, bound in [
    ("similarity_radius", "a number or more"), ("similarity_radius_above", "above a number")
] %}
CREATE FUNCTION _neardup_{{ form }}(similarity float8, bits integer) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '_neardup_{{ form }}';
COMMENT ON FUNCTION _neardup_{{ form }}(float8, integer) IS
    'maximum distance of fingerprints of a width whose fingerprint_similarity is '
    '{{ bound }}; planned form of such a condition';
{% endfor %}

CREATE FUNCTION _neardup_inverse(
    step integer, constant float8, comparison integer, bound float8
) RETURNS float8
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '_neardup_inverse';
COMMENT ON FUNCTION _neardup_inverse(integer, float8, integer, float8) IS
    'last number for which a step of arithmetic with a constant (0: y + c, 1: y - c, 2: c - y, '
    '3: y * c, 4: y / c) compares with a bound (0: <, 1: <=, 2: >=, 3: >); the planned form of '
    'such comparisons of a similarity';
