-- ------------------------------------------------------------------------------------------------
-- Comparisons of Hamming distances with numbers
-- ------------------------------------------------------------------------------------------------

-- They compute what the server's own comparisons of integers compute, and exist for their support
-- functions. One for each integer type: drivers send small numbers as int2. There is none for two
-- distances: an untyped parameter would become a hamming, which not every driver can send. So it is
-- an integer, by the server's own operators, which the planner rewrites
-- (src/planner/conditions.rs).
--
-- One for each floating-point type too, as clients without integers send them. None for numeric: an
-- operator for (hamming, numeric) would make integer <= numeric ambiguous, in any query.
-- Comparisons with numeric are the server's, which the planner rewrites (src/planner/forms.rs).

{% for name, op, commutator, negator, class, hashes in [
    ("lt", "<", ">", ">=", "scalarlt", "false"), ("le", "<=", ">=", ">", "scalarle", "false"),
    ("eq", "=", "=", "<>", "eq", "true"), ("ne", "<>", "<>", "=", "neq", "false"),
    ("ge", ">=", "<=", "<", "scalarge", "false"), ("gt", ">", "<", "<=", "scalargt", "false")
] %}
{% for type, right, left in [("int2", 42, 24), ("int4", 4, 4), ("int8", 48, 84)] %}
CREATE FUNCTION _neardup_hamming_{{ name }}(hamming, {{ type }}) RETURNS boolean
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT _neardup_{{ name }}_support AS 'int{{ right }}{{ name }}';
CREATE FUNCTION _neardup_hamming_{{ name }}({{ type }}, hamming) RETURNS boolean
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT _neardup_{{ name }}_support AS 'int{{ left }}{{ name }}';
CREATE OPERATOR {{ op }} (
    LEFTARG = hamming, RIGHTARG = {{ type }}, FUNCTION = _neardup_hamming_{{ name }},
    HASHES = {{ hashes }},
    COMMUTATOR = {{ commutator }}, NEGATOR = {{ negator }},
    RESTRICT = {{ class }}sel, JOIN = {{ class }}joinsel
);
CREATE OPERATOR {{ op }} (
    LEFTARG = {{ type }}, RIGHTARG = hamming, FUNCTION = _neardup_hamming_{{ name }},
    HASHES = {{ hashes }},
    COMMUTATOR = {{ commutator }}, NEGATOR = {{ negator }},
    RESTRICT = {{ class }}sel, JOIN = {{ class }}joinsel
);
{% endfor %}
{% for type in ["float8", "float4"] %}
CREATE FUNCTION _neardup_hamming_{{ name }}(hamming, {{ type }}) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_{{ name }}_support
    AS 'MODULE_PATHNAME', 'hamming_{{ name }}_{{ type }}';
CREATE FUNCTION _neardup_hamming_{{ name }}({{ type }}, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT _neardup_{{ name }}_support
    AS 'MODULE_PATHNAME', 'hamming_{{ name }}_from_{{ type }}';
CREATE OPERATOR {{ op }} (
    LEFTARG = hamming, RIGHTARG = {{ type }}, FUNCTION = _neardup_hamming_{{ name }},
    COMMUTATOR = {{ commutator }}, NEGATOR = {{ negator }},
    RESTRICT = {{ class }}sel, JOIN = {{ class }}joinsel
);
CREATE OPERATOR {{ op }} (
    LEFTARG = {{ type }}, RIGHTARG = hamming, FUNCTION = _neardup_hamming_{{ name }},
    COMMUTATOR = {{ commutator }}, NEGATOR = {{ negator }},
    RESTRICT = {{ class }}sel, JOIN = {{ class }}joinsel
);
{% endfor %}
{% endfor %}

-- Row comparisons such as (a <~> b, id) > (3, 100), which page through ordered results, need
-- operators that belong to a btree family; IN lists and joins on a distance, to a hash family.
CREATE OPERATOR FAMILY hamming_ops USING btree;
CREATE OPERATOR FAMILY hamming_ops USING hash;
{% for left, right, function in [
    ("hamming", "int2", 42), ("hamming", "int4", 4), ("hamming", "int8", 48),
    ("int2", "hamming", 24), ("int4", "hamming", 4), ("int8", "hamming", 84)
] %}
ALTER OPERATOR FAMILY hamming_ops USING btree ADD
    OPERATOR 1 < ({{ left }}, {{ right }}), OPERATOR 2 <= ({{ left }}, {{ right }}),
    OPERATOR 3 = ({{ left }}, {{ right }}), OPERATOR 4 >= ({{ left }}, {{ right }}),
    OPERATOR 5 > ({{ left }}, {{ right }}),
    FUNCTION 1 ({{ left }}, {{ right }}) btint{{ function }}cmp;
ALTER OPERATOR FAMILY hamming_ops USING hash ADD OPERATOR 1 = ({{ left }}, {{ right }});
{% endfor %}
{% for type, function in [
    ("hamming", "hashint4"), ("int2", "hashint2"), ("int4", "hashint4"), ("int8", "hashint8")
] %}
ALTER OPERATOR FAMILY hamming_ops USING hash ADD
    FUNCTION 1 ({{ type }}, {{ type }}) {{ function }},
    FUNCTION 2 ({{ type }}, {{ type }}) {{ function }}extended;
{% endfor %}
