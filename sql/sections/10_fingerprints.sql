-- ------------------------------------------------------------------------------------------------
-- Fingerprints of 64, 128 and 256 bits: types, casts, number of ones
-- ------------------------------------------------------------------------------------------------

{% for type, bits, bytes, by_value in [
    ("fingerprint", 64, 8, "true"), ("fingerprint128", 128, 16, "false"),
    ("fingerprint256", 256, 32, "false")
] %}
CREATE TYPE {{ type }};
CREATE FUNCTION _neardup_{{ type }}_in(cstring) RETURNS {{ type }}
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_in';
CREATE FUNCTION _neardup_{{ type }}_out({{ type }}) RETURNS cstring
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_out';
CREATE FUNCTION _neardup_{{ type }}_recv(internal) RETURNS {{ type }}
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_recv';
CREATE FUNCTION _neardup_{{ type }}_send({{ type }}) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_send';
CREATE TYPE {{ type }} (
    INPUT = _neardup_{{ type }}_in, OUTPUT = _neardup_{{ type }}_out,
    RECEIVE = _neardup_{{ type }}_recv, SEND = _neardup_{{ type }}_send,
    INTERNALLENGTH = {{ bytes }}, PASSEDBYVALUE = {{ by_value }},
    ALIGNMENT = double, STORAGE = plain
);

CREATE FUNCTION {{ type }}(bit) RETURNS {{ type }}
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_from_bit';
CREATE FUNCTION {{ type }}(bytea) RETURNS {{ type }}
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_from_bytea';
CREATE FUNCTION _neardup_bit({{ type }}) RETURNS bit
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_to_bit';
CREATE CAST (bit AS {{ type }}) WITH FUNCTION {{ type }}(bit);
CREATE CAST (bytea AS {{ type }}) WITH FUNCTION {{ type }}(bytea);
CREATE CAST ({{ type }} AS bit) WITH FUNCTION _neardup_bit({{ type }});
CREATE CAST ({{ type }} AS bytea) WITH FUNCTION _neardup_{{ type }}_send({{ type }});
COMMENT ON FUNCTION {{ type }}(bit) IS
    'the fingerprint with these {{ bits }} bits';
COMMENT ON FUNCTION {{ type }}(bytea) IS
    'the fingerprint with these {{ bytes }} bytes, most significant first';
COMMENT ON FUNCTION _neardup_bit({{ type }}) IS
    'the bits of a fingerprint; implementation of the cast to bit';

-- Hashes that other programs keep as unsigned decimals, beyond the range of bigint.
CREATE FUNCTION {{ type }}(numeric) RETURNS {{ type }}
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_from_numeric';
CREATE FUNCTION _neardup_numeric({{ type }}) RETURNS numeric
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_to_numeric';
CREATE CAST (numeric AS {{ type }}) WITH FUNCTION {{ type }}(numeric) AS ASSIGNMENT;
CREATE CAST ({{ type }} AS numeric)
    WITH FUNCTION _neardup_numeric({{ type }}) AS ASSIGNMENT;
COMMENT ON FUNCTION {{ type }}(numeric) IS
    'the fingerprint whose bits are this number, from 0 to 2^{{ bits }} - 1';
COMMENT ON FUNCTION _neardup_numeric({{ type }}) IS
    'the bits of a fingerprint as an unsigned number; implementation of the cast to numeric';

{% for integer, argument in [("int2", "smallint"), ("int4", "integer"), ("int8", "bigint")] %}
{% if bits > 64 or integer != "int8" %}
CREATE FUNCTION {{ type }}({{ argument }}) RETURNS {{ type }}
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '{{ type }}_from_{{ integer }}';
CREATE CAST ({{ argument }} AS {{ type }}) WITH FUNCTION {{ type }}({{ argument }}) AS ASSIGNMENT;
COMMENT ON FUNCTION {{ type }}({{ argument }}) IS
    'the fingerprint with the bits of this integer
    {%- if bits == 64 %}, extended by its sign{% else %}, which is not negative{% endif %}';
{% endif %}
{% endfor %}

CREATE FUNCTION bit_count({{ type }}) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_bit_count';
COMMENT ON FUNCTION bit_count({{ type }}) IS 'the number of bits that are 1';

{% endfor %}
COMMENT ON TYPE fingerprint IS
    '64-bit similarity hash: similar documents have fingerprints that differ in few bits; '
    'written as 16 hexadecimal digits';
COMMENT ON TYPE fingerprint128 IS
    '128-bit similarity hash: similar documents have fingerprints that differ in few bits; '
    'written as 32 hexadecimal digits';
COMMENT ON TYPE fingerprint256 IS
    '256-bit similarity hash, such as PDQ of an image; written as 64 hexadecimal digits';

-- Assignment casts let a driver store an integer in a fingerprint column and read a bigint back.
-- Shorter integers have casts of their own, because drivers send small numbers as smallint.
-- None is implicit: an implicit one would let integers reach the fingerprint operators by mistake.
CREATE CAST (fingerprint AS bigint) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (bigint AS fingerprint) WITHOUT FUNCTION AS ASSIGNMENT;

-- A uuid has 128 bits too, and every driver has a type for it: it can be stored and read back.
CREATE FUNCTION fingerprint128(uuid) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_from_uuid';
CREATE FUNCTION _neardup_uuid(fingerprint128) RETURNS uuid
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_to_uuid';
CREATE CAST (uuid AS fingerprint128) WITH FUNCTION fingerprint128(uuid) AS ASSIGNMENT;
CREATE CAST (fingerprint128 AS uuid) WITH FUNCTION _neardup_uuid(fingerprint128) AS ASSIGNMENT;
COMMENT ON FUNCTION fingerprint128(uuid) IS 'the fingerprint with the bits of this uuid';
COMMENT ON FUNCTION _neardup_uuid(fingerprint128) IS
    'the bits of a fingerprint as a uuid; implementation of the cast to uuid';
