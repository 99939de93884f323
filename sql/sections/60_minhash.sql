-- ------------------------------------------------------------------------------------------------
-- minhash_signature: estimates of the Jaccard similarity of sets
-- ------------------------------------------------------------------------------------------------

CREATE TYPE minhash_signature;
CREATE FUNCTION _neardup_minhash_signature_in(cstring) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_in';
CREATE FUNCTION _neardup_minhash_signature_out(minhash_signature) RETURNS cstring
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_out';
CREATE FUNCTION _neardup_minhash_signature_recv(internal) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_recv';
CREATE FUNCTION _neardup_minhash_signature_send(minhash_signature) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_send';
CREATE FUNCTION _neardup_minhash_signature_analyze(internal) RETURNS boolean LANGUAGE C STABLE
    STRICT
    AS 'MODULE_PATHNAME', 'minhash_signature_analyze';
-- External: its values are random bits, which do not compress.
CREATE TYPE minhash_signature (
    INPUT = _neardup_minhash_signature_in, OUTPUT = _neardup_minhash_signature_out,
    RECEIVE = _neardup_minhash_signature_recv, SEND = _neardup_minhash_signature_send,
    ANALYZE = _neardup_minhash_signature_analyze,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE minhash_signature IS
    'MinHash signature of a set of features, with its scheme and seed; the share of equal values '
    'estimates the Jaccard similarity';

CREATE FUNCTION minhash(
    body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false,
    accents text DEFAULT 'keep', digits text DEFAULT 'keep', hashes integer DEFAULT 128,
    seed bigint DEFAULT 0, scheme text DEFAULT 'neardup1'
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash_text';
CREATE FUNCTION minhash_without(
    body text, without bytea, tokens text DEFAULT 'word', shingle integer DEFAULT 3,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep',
    hashes integer DEFAULT 128, seed bigint DEFAULT 0, scheme text DEFAULT 'neardup1'
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1500
    AS 'MODULE_PATHNAME', 'minhash_without';
CREATE FUNCTION minhash(
    features text[], hashes integer DEFAULT 128, seed bigint DEFAULT 0,
    scheme text DEFAULT 'neardup1'
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'minhash_features';
CREATE FUNCTION minhash(
    vector tsvector, hashes integer DEFAULT 128, seed bigint DEFAULT 0,
    scheme text DEFAULT 'neardup1'
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'minhash_tsvector';
COMMENT ON FUNCTION minhash(text, text, integer, boolean, text, text, integer, bigint, text) IS
    'MinHash signature of a text''s set of features; NULL if it has none';
COMMENT ON FUNCTION minhash_without(
    text, bytea, text, integer, boolean, text, text, integer, bigint, text
) IS
    'MinHash signature of the features of a text that a set of common features does not have; '
    'NULL if there are none';
COMMENT ON FUNCTION minhash(text[], integer, bigint, text) IS
    'MinHash signature of ready-made features; NULL if there are none';
COMMENT ON FUNCTION minhash(tsvector, integer, bigint, text) IS
    'MinHash signature of the lexemes of a tsvector; NULL if there are none';

CREATE FUNCTION minhash_union(a minhash_signature, b minhash_signature) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_union';
CREATE FUNCTION _neardup_minhash_accumulate(minhash_signature,
    feature text) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_minhash_accumulate';
CREATE FUNCTION _neardup_minhash_accumulate(
    minhash_signature, feature text, hashes integer
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_minhash_accumulate';
CREATE FUNCTION _neardup_minhash_accumulate(
    minhash_signature, feature text, hashes integer, seed bigint
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_minhash_accumulate';
CREATE FUNCTION _neardup_minhash_accumulate(
    minhash_signature, feature text, hashes integer, seed bigint, scheme text
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_minhash_accumulate';
CREATE AGGREGATE minhash_agg(feature text) (
    SFUNC = _neardup_minhash_accumulate, STYPE = minhash_signature, SSPACE = 528,
    COMBINEFUNC = minhash_union, PARALLEL = SAFE
);
CREATE AGGREGATE minhash_agg(feature text, hashes integer) (
    SFUNC = _neardup_minhash_accumulate, STYPE = minhash_signature, SSPACE = 528,
    COMBINEFUNC = minhash_union, PARALLEL = SAFE
);
CREATE AGGREGATE minhash_agg(feature text, hashes integer, seed bigint) (
    SFUNC = _neardup_minhash_accumulate, STYPE = minhash_signature, SSPACE = 528,
    COMBINEFUNC = minhash_union, PARALLEL = SAFE
);
CREATE AGGREGATE minhash_agg(feature text, hashes integer, seed bigint, scheme text) (
    SFUNC = _neardup_minhash_accumulate, STYPE = minhash_signature, SSPACE = 528,
    COMBINEFUNC = minhash_union, PARALLEL = SAFE
);
CREATE AGGREGATE minhash_union_agg(signature minhash_signature) (
    SFUNC = minhash_union, STYPE = minhash_signature, SSPACE = 528,
    COMBINEFUNC = minhash_union, PARALLEL = SAFE
);
COMMENT ON FUNCTION minhash_union(minhash_signature, minhash_signature) IS
    'the signature of the union of two sets, from their signatures';
COMMENT ON FUNCTION _neardup_minhash_accumulate(minhash_signature, text) IS
    'implementation of minhash_agg';
COMMENT ON FUNCTION _neardup_minhash_accumulate(minhash_signature, text, integer) IS
    'implementation of minhash_agg';
COMMENT ON FUNCTION _neardup_minhash_accumulate(minhash_signature, text, integer, bigint) IS
    'implementation of minhash_agg';
COMMENT ON FUNCTION _neardup_minhash_accumulate(minhash_signature, text, integer, bigint, text) IS
    'implementation of minhash_agg';
COMMENT ON AGGREGATE minhash_agg(text) IS
    'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_agg(text, integer) IS
    'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_agg(text, integer, bigint) IS
    'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_agg(text, integer, bigint, text) IS
    'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_union_agg(minhash_signature) IS
    'the signature of the union of all sets';

CREATE FUNCTION minhash_values(signature minhash_signature) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_values';
CREATE FUNCTION minhash_from_values(
    "values" bigint[], seed bigint DEFAULT 0, scheme text DEFAULT 'neardup1'
) RETURNS minhash_signature
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_from_values';
COMMENT ON FUNCTION minhash_values(minhash_signature) IS 'the values of a signature';
COMMENT ON FUNCTION minhash_from_values(bigint[], bigint, text) IS
    'a signature from its values, made elsewhere with this seed and scheme';

CREATE FUNCTION containment(
    a text, b text, tokens text DEFAULT 'word', shingle integer DEFAULT 3,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS double precision
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2000
    AS 'MODULE_PATHNAME', 'containment_texts';
COMMENT ON FUNCTION containment(text, text, text, integer, boolean, text, text) IS
    'exact share of the first text''s features that the second has too; NULL if the first has '
    'none';

-- A domain: clients and arithmetic see a double precision. It has no operators of its own. Those on
-- (jaccard, numeric), which 0.2 would need, make the server's own integer <= numeric ambiguous, and
-- with those on (jaccard, jaccard) an untyped parameter becomes a jaccard, which not every driver
-- can send. The planner rewrites the server's own comparisons (src/planner/conditions.rs).
CREATE DOMAIN jaccard AS double precision;
COMMENT ON DOMAIN jaccard IS
    'estimated Jaccard distance or similarity, from 0 to 1: what <%>, minhash_similarity and '
    'fingerprint_similarity return';
CREATE FUNCTION _neardup_estimate_support(internal) RETURNS internal LANGUAGE C STRICT
    AS 'MODULE_PATHNAME', '_neardup_estimate_support';

CREATE FUNCTION _neardup_distance(minhash_signature, minhash_signature) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT _neardup_estimate_support AS 'MODULE_PATHNAME', 'minhash_distance';
CREATE FUNCTION minhash_similarity(a minhash_signature, b minhash_signature) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT _neardup_estimate_support AS 'MODULE_PATHNAME', 'minhash_similarity';
CREATE FUNCTION _neardup_similar(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_similar';
CREATE FUNCTION _neardup_within(minhash_signature, minhash_signature, bound float8, kind integer)
    RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT _neardup_within_support AS 'MODULE_PATHNAME', 'minhash_within';
COMMENT ON FUNCTION _neardup_distance(minhash_signature, minhash_signature) IS
    'implementation of <%> operator';
COMMENT ON FUNCTION minhash_similarity(minhash_signature, minhash_signature) IS
    'estimated Jaccard similarity: the share of equal values';
COMMENT ON FUNCTION _neardup_similar(minhash_signature, minhash_signature) IS
    'implementation of ~= operator';
COMMENT ON FUNCTION _neardup_within(minhash_signature, minhash_signature, float8, integer) IS
    'whether the distance (kind 0: at most, 1: below) or the similarity (2: at least, 3: above) '
    'keeps to a bound; the planned form of such comparisons in joins';
CREATE OPERATOR <%> (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _neardup_distance,
    COMMUTATOR = <%>
);
CREATE OPERATOR ~= (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _neardup_similar,
    COMMUTATOR = ~=, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel
);
COMMENT ON OPERATOR <%> (minhash_signature, minhash_signature) IS
    'estimated Jaccard distance: the share of differing values';
COMMENT ON OPERATOR ~= (minhash_signature, minhash_signature) IS
    'near-duplicates: estimated Jaccard similarity of 0.8 or more';

-- ------------------------------------------------------------------------------------------------
-- Balls of signatures
-- ------------------------------------------------------------------------------------------------

CREATE TYPE minhash_ball;
CREATE FUNCTION _neardup_minhash_ball_in(cstring) RETURNS minhash_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_in';
CREATE FUNCTION _neardup_minhash_ball_out(minhash_ball) RETURNS cstring
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_out';
CREATE FUNCTION _neardup_minhash_ball_recv(internal) RETURNS minhash_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_recv';
CREATE FUNCTION _neardup_minhash_ball_send(minhash_ball) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_send';
CREATE TYPE minhash_ball (
    INPUT = _neardup_minhash_ball_in, OUTPUT = _neardup_minhash_ball_out,
    RECEIVE = _neardup_minhash_ball_recv, SEND = _neardup_minhash_ball_send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE minhash_ball IS
    'all signatures that differ from a centre in at most a number of values, written '
    '<signature,mismatches>';
-- Its name differs from ball: a radius in float8 would win every call with untyped arguments.
CREATE FUNCTION minhash_ball(center minhash_signature, radius float8) RETURNS minhash_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball';
CREATE FUNCTION _neardup_ball(
    center minhash_signature, bound float8, kind integer
) RETURNS minhash_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_of_kind';
CREATE FUNCTION _neardup_approximate(minhash_ball) RETURNS minhash_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_ball_approximate';
CREATE FUNCTION _neardup_contained(minhash_signature, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_contained';
CREATE FUNCTION _neardup_contains(minhash_ball, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_contains';
COMMENT ON FUNCTION minhash_ball(minhash_signature, float8) IS
    'the ball of all signatures within a radius, an estimated Jaccard distance; a negative one '
    'makes the empty ball';
COMMENT ON FUNCTION _neardup_ball(minhash_signature, float8, integer) IS
    'the ball of the signatures whose distance (kind 0: at most, 1: below) or similarity (2: at '
    'least, 3: above) keeps to a bound; the planned form of such comparisons';
COMMENT ON FUNCTION _neardup_approximate(minhash_ball) IS
    'the same ball, for a search that may miss rows; planned form while '
    'neardup.allow_approximate is on';
COMMENT ON FUNCTION _neardup_contained(minhash_signature, minhash_ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION _neardup_contains(minhash_ball, minhash_signature) IS
    'implementation of @> operator';
CREATE OPERATOR <@ (
    LEFTARG = minhash_signature, RIGHTARG = minhash_ball, FUNCTION = _neardup_contained,
    COMMUTATOR = @>, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel
);
CREATE OPERATOR @> (
    LEFTARG = minhash_ball, RIGHTARG = minhash_signature, FUNCTION = _neardup_contains,
    COMMUTATOR = <@, RESTRICT = _neardup_sel, JOIN = _neardup_joinsel
);
COMMENT ON OPERATOR <@ (minhash_signature, minhash_ball) IS 'whether a signature lies in a ball';
COMMENT ON OPERATOR @> (minhash_ball, minhash_signature) IS 'whether a ball contains a signature';
