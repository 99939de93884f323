-- ------------------------------------------------------------------------------------------------
-- Equality and order of every type, for sorting, grouping, joins and the server's own indexes
-- ------------------------------------------------------------------------------------------------

-- Fingerprints have the order of their bits as an unsigned number. Signatures of different kinds
-- are unequal here, and ordered; only their estimates are NULL. The order of balls and signatures
-- has no meaning of its own.
CREATE FUNCTION _neardup_signature_eqsel(internal, oid, internal, integer) RETURNS float8
    LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '_neardup_signature_eqsel';

{% for type, eqsel in [
    ("fingerprint", "eqsel"), ("fingerprint128", "eqsel"), ("fingerprint256", "eqsel"),
    ("fingerprint_ball", "eqsel"), ("fingerprint128_ball", "eqsel"),
    ("fingerprint256_ball", "eqsel"), ("bigint_ball", "eqsel"),
    ("minhash_signature", "_neardup_signature_eqsel"), ("minhash_ball", "eqsel")
] %}
CREATE FUNCTION _neardup_{{ type }}_cmp({{ type }}, {{ type }})
    RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_cmp';
{% for name in ["eq", "ne", "lt", "le", "gt", "ge"] %}
CREATE FUNCTION _neardup_{{ type }}_{{ name }}({{ type }}, {{ type }})
    RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_{{ name }}';
{% endfor %}
CREATE FUNCTION _neardup_{{ type }}_hash({{ type }})
    RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_hash';
CREATE FUNCTION _neardup_{{ type }}_hash_extended({{ type }}, bigint)
    RETURNS bigint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_hash_extended';
CREATE OPERATOR = (
    LEFTARG = {{ type }}, RIGHTARG = {{ type }},
    FUNCTION = _neardup_{{ type }}_eq, HASHES, MERGES,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = {{ eqsel }}, JOIN = eqjoinsel
);
{% for op, name, commutator, negator, class in [
    ("<>", "ne", "<>", "=", "neq"), ("<", "lt", ">", ">=", "scalarlt"),
    ("<=", "le", ">=", ">", "scalarle"), (">", "gt", "<", "<=", "scalargt"),
    (">=", "ge", "<=", "<", "scalarge")
] %}
CREATE OPERATOR {{ op }} (
    LEFTARG = {{ type }}, RIGHTARG = {{ type }},
    FUNCTION = _neardup_{{ type }}_{{ name }},
    COMMUTATOR = {{ commutator }}, NEGATOR = {{ negator }},
    RESTRICT = {{ class }}sel, JOIN = {{ class }}joinsel
);
{% endfor %}
CREATE OPERATOR CLASS {{ type }}_hash_ops DEFAULT FOR TYPE {{ type }}
    USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 _neardup_{{ type }}_hash({{ type }}),
    FUNCTION 2 _neardup_{{ type }}_hash_extended({{ type }}, bigint);
{% endfor %}

{% for type in ["fingerprint", "fingerprint128", "fingerprint256"] %}
CREATE FUNCTION _neardup_{{ type }}_sortsupport(internal) RETURNS void
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_sortsupport';
CREATE OPERATOR CLASS {{ type }}_btree_ops DEFAULT FOR TYPE {{ type }}
    USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 _neardup_{{ type }}_cmp({{ type }}, {{ type }}),
    FUNCTION 2 _neardup_{{ type }}_sortsupport(internal),
    FUNCTION 4 btequalimage(oid);
{% endfor %}
{% for type in [
    "fingerprint_ball", "fingerprint128_ball", "fingerprint256_ball", "bigint_ball",
    "minhash_signature", "minhash_ball"
] %}
CREATE OPERATOR CLASS {{ type }}_btree_ops DEFAULT FOR TYPE {{ type }}
    USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 _neardup_{{ type }}_cmp({{ type }}, {{ type }}),
    FUNCTION 4 btequalimage(oid);
{% endfor %}

-- The sort operators let a btree index answer them.
{% for type in ["fingerprint", "fingerprint128", "fingerprint256"] %}
{% for name, which, sort, extreme in [
    ("min", "smaller", "<", "least"), ("max", "larger", ">", "greatest")
] %}
CREATE FUNCTION _neardup_{{ type }}_{{ which }}({{ type }}, {{ type }})
    RETURNS {{ type }} LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', '{{ type }}_{{ which }}';
CREATE AGGREGATE {{ name }}({{ type }}) (
    SFUNC = _neardup_{{ type }}_{{ which }}, STYPE = {{ type }},
    COMBINEFUNC = _neardup_{{ type }}_{{ which }},
    SORTOP = {{ sort }}, PARALLEL = SAFE
);
COMMENT ON AGGREGATE {{ name }}({{ type }}) IS
    'the {{ extreme }} fingerprint, by the order of the bits as an unsigned number';
{% endfor %}
{% endfor %}
