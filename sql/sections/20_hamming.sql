-- ------------------------------------------------------------------------------------------------
-- Hamming distances of fingerprints
-- ------------------------------------------------------------------------------------------------

-- A domain: clients and arithmetic see an integer, yet comparisons with it are operators of this
-- extension, which the planner can turn into index conditions.
CREATE DOMAIN hamming AS integer;
COMMENT ON DOMAIN hamming IS 'Hamming distance in bits: what <~> returns';

{% for support in ["distance", "within", "at_distance", "lt", "le", "eq", "ne", "ge", "gt"] %}
CREATE FUNCTION _neardup_{{ support }}_support(internal) RETURNS internal
    LANGUAGE C STRICT AS 'MODULE_PATHNAME', '_neardup_{{ support }}_support';
{% endfor %}
CREATE FUNCTION _neardup_sel(internal, oid, internal, integer) RETURNS float8
    LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '_neardup_sel';
CREATE FUNCTION _neardup_joinsel(internal, oid, internal, smallint, internal) RETURNS float8
    LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '_neardup_joinsel';

{% for type, near in [
    ("fingerprint", 6), ("fingerprint128", 12), ("fingerprint256", 31), ("bigint", 6)
] %}
CREATE FUNCTION _neardup_hamming({{ type }}, {{ type }}) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_distance';
CREATE FUNCTION _neardup_distance({{ type }}, {{ type }}) RETURNS hamming
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_distance_support
    AS 'MODULE_PATHNAME', '{{ type }}_distance';
CREATE FUNCTION _neardup_hamming_nulls_first({{ type }}, {{ type }}) RETURNS integer
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_distance_nulls_first';
COMMENT ON FUNCTION _neardup_hamming_nulls_first({{ type }}, {{ type }}) IS
    'implementation of <#|> operator';
COMMENT ON FUNCTION _neardup_hamming({{ type }}, {{ type }}) IS
    'implementation of <#> operator';
COMMENT ON FUNCTION _neardup_distance({{ type }}, {{ type }}) IS
    'implementation of <~> operator';
CREATE OPERATOR <#> (
    LEFTARG = {{ type }}, RIGHTARG = {{ type }}, FUNCTION = _neardup_hamming,
    COMMUTATOR = <#>
);
CREATE OPERATOR <~> (
    LEFTARG = {{ type }}, RIGHTARG = {{ type }}, FUNCTION = _neardup_distance,
    COMMUTATOR = <~>
);
CREATE OPERATOR <#|> (
    LEFTARG = {{ type }}, RIGHTARG = {{ type }}, FUNCTION = _neardup_hamming_nulls_first,
    COMMUTATOR = <#|>
);
COMMENT ON OPERATOR <#|> ({{ type }}, {{ type }}) IS
    'Hamming distance, or -1 for NULL; planned form of an order by similarity that has rows '
    'without a fingerprint first';
COMMENT ON OPERATOR <#> ({{ type }}, {{ type }}) IS
    'Hamming distance as a plain integer, the form that index order is planned with';
COMMENT ON OPERATOR <~> ({{ type }}, {{ type }}) IS
    'Hamming distance: the number of bits that differ';

CREATE FUNCTION _neardup_similar({{ type }}, {{ type }}) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_similar';
COMMENT ON FUNCTION _neardup_similar({{ type }}, {{ type }}) IS
    'implementation of ~= operator';
CREATE OPERATOR ~= (
    LEFTARG = {{ type }}, RIGHTARG = {{ type }}, FUNCTION = _neardup_similar,
    COMMUTATOR = ~=, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel
);
COMMENT ON OPERATOR ~= ({{ type }}, {{ type }}) IS
    'near-duplicates: at most {{ near }} bits differ';

CREATE FUNCTION _neardup_within({{ type }}, {{ type }}, integer) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_within_support
    AS 'MODULE_PATHNAME', '{{ type }}_within';
COMMENT ON FUNCTION _neardup_within({{ type }}, {{ type }}, integer) IS
    'true if at most radius bits differ; planned form of a <~> b <= radius in joins';
CREATE FUNCTION _neardup_at_distance({{ type }}, {{ type }}, integer) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_at_distance_support
    AS 'MODULE_PATHNAME', '{{ type }}_at_distance';
COMMENT ON FUNCTION _neardup_at_distance({{ type }}, {{ type }}, integer) IS
    'whether exactly this many bits differ; the planned form of a <~> b = distance';

{% endfor %}
CREATE FUNCTION _neardup_radius(bigint) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', '_neardup_radius';
COMMENT ON FUNCTION _neardup_radius(bigint) IS
    'radius limited to the range of integer; planned form of a bigint radius';
CREATE FUNCTION _neardup_radius_below(bigint) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '_neardup_radius_below';
COMMENT ON FUNCTION _neardup_radius_below(bigint) IS
    'radius - 1 without overflow; the planned form of the radius in a <~> b < radius';
CREATE FUNCTION _neardup_floor_radius(float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '_neardup_floor_radius';
COMMENT ON FUNCTION _neardup_floor_radius(float8) IS
    'the greatest integer not above a number; the planned form of a float8 radius';
CREATE FUNCTION _neardup_floor_radius_below(float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '_neardup_floor_radius_below';
COMMENT ON FUNCTION _neardup_floor_radius_below(float8) IS
    'the greatest integer below a number; the planned form of the radius in a <~> b < number';
CREATE FUNCTION _neardup_whole_radius(float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '_neardup_whole_radius';
COMMENT ON FUNCTION _neardup_whole_radius(float8) IS
    'a whole number as it is, any other as -1; the planned form of a <~> b = number';
{% for form in ["floor_radius", "floor_radius_below", "whole_radius"] %}
CREATE FUNCTION _neardup_{{ form }}(numeric) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_numeric_{{ form }}';
COMMENT ON FUNCTION _neardup_{{ form }}(numeric) IS 'the same of a numeric';
{% endfor %}
