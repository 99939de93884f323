-- ------------------------------------------------------------------------------------------------
-- Balls: all fingerprints within a radius of a centre
-- ------------------------------------------------------------------------------------------------

{% for type, length, item in [
    ("fingerprint", 16, "fingerprint"), ("fingerprint128", 24, "fingerprint"),
    ("fingerprint256", 40, "fingerprint"), ("bigint", 16, "value")
] %}
CREATE TYPE {{ type }}_ball;
CREATE FUNCTION _neardup_{{ type }}_ball_in(cstring) RETURNS {{ type }}_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_ball_in';
CREATE FUNCTION _neardup_{{ type }}_ball_out({{ type }}_ball) RETURNS cstring
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_ball_out';
CREATE FUNCTION _neardup_{{ type }}_ball_recv(internal) RETURNS {{ type }}_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_ball_recv';
CREATE FUNCTION _neardup_{{ type }}_ball_send({{ type }}_ball) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_ball_send';
CREATE TYPE {{ type }}_ball (
    INPUT = _neardup_{{ type }}_ball_in, OUTPUT = _neardup_{{ type }}_ball_out,
    RECEIVE = _neardup_{{ type }}_ball_recv, SEND = _neardup_{{ type }}_ball_send,
    INTERNALLENGTH = {{ length }}, ALIGNMENT = double, STORAGE = plain
);

CREATE FUNCTION ball(center {{ type }}, radius integer) RETURNS {{ type }}_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', '{{ type }}_ball';
COMMENT ON FUNCTION ball({{ type }}, integer) IS
    'the ball of this centre and radius; a negative radius makes the empty ball';

CREATE FUNCTION _neardup_contained({{ type }}, {{ type }}_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_contained';
CREATE FUNCTION _neardup_contains({{ type }}_ball, {{ type }}) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_contains';
CREATE FUNCTION _neardup_similar({{ type }}_ball, {{ type }}_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_ball_similar';
COMMENT ON FUNCTION _neardup_contained({{ type }}, {{ type }}_ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION _neardup_contains({{ type }}_ball, {{ type }}) IS
    'implementation of @> operator';
COMMENT ON FUNCTION _neardup_similar({{ type }}_ball, {{ type }}_ball) IS
    'implementation of ~= operator';
CREATE OPERATOR <@ (
    LEFTARG = {{ type }}, RIGHTARG = {{ type }}_ball, FUNCTION = _neardup_contained,
    COMMUTATOR = @>, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel
);
CREATE OPERATOR @> (
    LEFTARG = {{ type }}_ball, RIGHTARG = {{ type }}, FUNCTION = _neardup_contains,
    COMMUTATOR = <@, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel
);
CREATE OPERATOR ~= (
    LEFTARG = {{ type }}_ball, RIGHTARG = {{ type }}_ball, FUNCTION = _neardup_similar,
    COMMUTATOR = ~=, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel
);
COMMENT ON OPERATOR <@ ({{ type }}, {{ type }}_ball) IS 'the {{ item }} lies in the ball';
COMMENT ON OPERATOR @> ({{ type }}_ball, {{ type }}) IS 'the ball contains the {{ item }}';
COMMENT ON OPERATOR ~= ({{ type }}_ball, {{ type }}_ball) IS
    'each centre lies within the other''s radius';

{% endfor %}
-- Resolves a call with an untyped center, or with text as JDBC and Npgsql send it. Without this
-- function the parser cannot choose among the types above.
CREATE FUNCTION ball(center text, radius integer) RETURNS fingerprint_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'text_ball';
COMMENT ON FUNCTION ball(text, integer) IS
    'the ball of this radius whose center is a fingerprint written as 16 hexadecimal digits';

COMMENT ON TYPE fingerprint_ball IS
    'all fingerprints within a radius of a centre, written <0123456789abcdef,3>';
COMMENT ON TYPE fingerprint128_ball IS
    'all 128-bit fingerprints within a radius of a centre, written <digits,radius>';
COMMENT ON TYPE fingerprint256_ball IS
    'all 256-bit fingerprints within a radius of a centre, written <digits,radius>';
COMMENT ON TYPE bigint_ball IS
    'all bigint values within a radius of a centre, in differing bits, '
    'written <81985529216486895,3>';
