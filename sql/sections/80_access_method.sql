-- ------------------------------------------------------------------------------------------------
-- The access method and its operator classes
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION _neardup_handler(internal)
    RETURNS index_am_handler LANGUAGE C PARALLEL SAFE AS 'MODULE_PATHNAME', '_neardup_handler';
CREATE ACCESS METHOD neardup TYPE INDEX HANDLER _neardup_handler;
COMMENT ON ACCESS METHOD neardup IS
    'exact search by Hamming distance, over block-permutation keys, for MinHash signatures, over '
    'bands, and for arrays of bigint that overlap';

{% for type in ["fingerprint", "fingerprint128", "fingerprint256"] %}
CREATE OPERATOR CLASS {{ type }}_ops DEFAULT FOR TYPE {{ type }} USING neardup AS
    OPERATOR 1 <@ ({{ type }}, {{ type }}_ball),
    OPERATOR 2 ~= ({{ type }}, {{ type }}),
    OPERATOR 3 = ({{ type }}, {{ type }}),
    OPERATOR 4 <#> ({{ type }}, {{ type }}) FOR ORDER BY integer_ops,
    OPERATOR 6 <#|> ({{ type }}, {{ type }}) FOR ORDER BY integer_ops;
{% endfor %}
CREATE OPERATOR CLASS bigint_hamming_ops FOR TYPE bigint USING neardup AS
    OPERATOR 1 <@ (bigint, bigint_ball),
    OPERATOR 2 ~= (bigint, bigint),
    OPERATOR 3 = (bigint, bigint),
    OPERATOR 4 <#> (bigint, bigint) FOR ORDER BY integer_ops,
    OPERATOR 6 <#|> (bigint, bigint) FOR ORDER BY integer_ops;
-- Small literals are integer, and clients send small numbers as smallint.
ALTER OPERATOR FAMILY bigint_hamming_ops USING neardup ADD
    OPERATOR 3 = (bigint, integer), OPERATOR 3 = (bigint, smallint);

CREATE OPERATOR CLASS minhash_ops DEFAULT FOR TYPE minhash_signature USING neardup AS
    OPERATOR 1 <@ (minhash_signature, minhash_ball),
    OPERATOR 2 ~= (minhash_signature, minhash_signature),
    OPERATOR 3 = (minhash_signature, minhash_signature);

-- Constraints of any radius: EXCLUDE USING neardup (ball(fp, 8) WITH ~=).
{% for type in ["fingerprint", "fingerprint128", "fingerprint256", "bigint"] %}
CREATE OPERATOR CLASS {{ type }}_ball_ops DEFAULT FOR TYPE {{ type }}_ball USING neardup AS
    OPERATOR 2 ~= ({{ type }}_ball, {{ type }}_ball), STORAGE {{ type }};
{% endfor %}

-- Columns in front of the fingerprint: a scope, within which rows are compared. Equality is that
-- of the type's hash operator class, whose hash the index keeps.
CREATE OPERATOR FAMILY integer_scope_ops USING neardup;
CREATE OPERATOR FAMILY float_scope_ops USING neardup;
{% for type, family in [
    ("int2", "integer"), ("int4", "integer"), ("int8", "integer"), ("float4", "float"),
    ("float8", "float")
] %}
CREATE OPERATOR CLASS {{ type }}_scope_ops DEFAULT FOR TYPE {{ type }} USING neardup
    FAMILY {{ family }}_scope_ops AS OPERATOR 3 = ({{ type }}, {{ type }});
{% endfor %}
ALTER OPERATOR FAMILY integer_scope_ops USING neardup ADD
    OPERATOR 3 = (int2, int4), OPERATOR 3 = (int2, int8), OPERATOR 3 = (int4, int2),
    OPERATOR 3 = (int4, int8), OPERATOR 3 = (int8, int2), OPERATOR 3 = (int8, int4);
ALTER OPERATOR FAMILY float_scope_ops USING neardup ADD
    OPERATOR 3 = (float4, float8), OPERATOR 3 = (float8, float4);
{% for name, type in [
    ("bool", "boolean"), ("text", "text"), ("bpchar", "bpchar"), ("name", "name"), ("uuid", "uuid"),
    ("bytea", "bytea"), ("date", "date"), ("timestamp", "timestamp"),
    ("timestamptz", "timestamptz"), ("time", "time"), ("timetz", "timetz"),
    ("interval", "interval"), ("numeric", "numeric"), ("inet", "inet"), ("oid", "oid"),
    ("char", '"char"'), ("macaddr", "macaddr"), ("macaddr8", "macaddr8"), ("pg_lsn", "pg_lsn"),
    ("jsonb", "jsonb"), ("range", "anyrange"), ("multirange", "anymultirange"), ("enum", "anyenum"),
    ("array", "anyarray")
] %}
CREATE OPERATOR CLASS {{ name }}_scope_ops DEFAULT FOR TYPE {{ type }} USING neardup AS
    OPERATOR 3 = ({{ type }}, {{ type }});
{% endfor %}

-- Ranges behind the fingerprint of a constraint: EXCLUDE USING neardup (ball(fp, 6) WITH ~=, during
-- WITH &&). The server compares them in the table.
ALTER OPERATOR FAMILY range_scope_ops USING neardup ADD OPERATOR 8 && (anyrange, anyrange);
