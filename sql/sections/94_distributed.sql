-- ------------------------------------------------------------------------------------------------
-- Beyond one machine: keys for joins by equality, and the settings of a node
-- ------------------------------------------------------------------------------------------------

-- Immutable, so that they fold to constants when a query is planned, and an array of keys prunes
-- partitions and shards. Strict: the last parameter has overloads instead of a default NULL.
{% for type in ["fingerprint", "fingerprint128", "fingerprint256", "bigint"] %}
CREATE FUNCTION neardup_keys(fp {{ type }}, radius integer) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_keys';
CREATE FUNCTION neardup_keys(fp {{ type }}, radius integer, blocks integer) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_keys';
COMMENT ON FUNCTION neardup_keys({{ type }}, integer) IS
    'keys; two values within the radius share at least one; their number follows from the '
    'width and the radius';
COMMENT ON FUNCTION neardup_keys({{ type }}, integer, integer) IS
    'keys, by a number of blocks; two values within the radius share at least one';
CREATE FUNCTION neardup_meet(
    key bigint, a {{ type }}, b {{ type }}, radius integer
) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_meet';
CREATE FUNCTION neardup_meet(
    key bigint, a {{ type }}, b {{ type }}, radius integer, blocks integer
) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_meet';
COMMENT ON FUNCTION neardup_meet(bigint, {{ type }}, {{ type }}, integer) IS
    'two values are within the radius, and the key is the first that they share';
COMMENT ON FUNCTION neardup_meet(bigint, {{ type }}, {{ type }}, integer, integer) IS
    'two values are within the radius, and the key, by a number of blocks, is the first that '
    'they share';
CREATE FUNCTION neardup_band_keys(fp {{ type }}, bands integer, rows integer) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '{{ type }}_band_keys';
COMMENT ON FUNCTION neardup_band_keys({{ type }}, integer, integer) IS
    'a number of keys of some bits each; near-duplicates most likely share one';
{% endfor %}

-- Resolves a call with an untyped value: an application looks up the keys of a fingerprint that it
-- sends as text.
CREATE FUNCTION neardup_keys(fp text, radius integer) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'text_keys';
CREATE FUNCTION neardup_keys(fp text, radius integer, blocks integer) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'text_keys';
COMMENT ON FUNCTION neardup_keys(text, integer) IS
    'the same keys of a fingerprint of any width, written as hexadecimal digits';
COMMENT ON FUNCTION neardup_keys(text, integer, integer) IS
    'the same keys of a fingerprint of any width, written as hexadecimal digits';
CREATE FUNCTION neardup_band_keys(fp text, bands integer, rows integer) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'text_band_keys';
COMMENT ON FUNCTION neardup_band_keys(text, integer, integer) IS
    'the same keys of a fingerprint of any width, written as hexadecimal digits';
CREATE FUNCTION neardup_band_keys(
    sig minhash_signature, bands integer, rows integer
) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'minhash_band_keys';
COMMENT ON FUNCTION neardup_band_keys(minhash_signature, integer, integer) IS
    'a number of keys of some values each; near-duplicates most likely share one';

-- Their names differ: a similarity in float8 would win every call with untyped arguments.
CREATE FUNCTION minhash_keys(sig minhash_signature, similarity float8) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'minhash_keys';
CREATE FUNCTION minhash_keys(
    sig minhash_signature, similarity float8, bands integer
) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'minhash_keys';
COMMENT ON FUNCTION minhash_keys(minhash_signature, float8) IS
    'keys; two signatures of at least this similarity share at least one; their number follows '
    'from the length of the signature and the similarity';
COMMENT ON FUNCTION minhash_keys(minhash_signature, float8, integer) IS
    'keys, by a number of bands; two signatures of at least this similarity share at least one';
CREATE FUNCTION minhash_meet(
    key bigint, a minhash_signature, b minhash_signature, similarity float8
) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_meet';
CREATE FUNCTION minhash_meet(
    key bigint, a minhash_signature, b minhash_signature, similarity float8, bands integer
) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_meet';
COMMENT ON FUNCTION minhash_meet(bigint, minhash_signature, minhash_signature, float8) IS
    'two signatures have the similarity or more, and the key is the first that they share';
COMMENT ON FUNCTION minhash_meet(bigint, minhash_signature, minhash_signature, float8, integer) IS
    'two signatures have the similarity or more, and the key, by a number of bands, is the first '
    'that they share';

-- The user words may change at a reload of the configuration: hence STABLE.
CREATE FUNCTION neardup_expert_settings_digest() RETURNS text
    LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'neardup_expert_settings_digest';
COMMENT ON FUNCTION neardup_expert_settings_digest() IS
    'version, algorithms and user words that fingerprints are made with here, to compare servers '
    'with';
