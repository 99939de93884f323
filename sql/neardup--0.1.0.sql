-- neardup 0.1.0: the SQL objects. The library's symbols are exported by src/types, src/functions
-- and src/planner. Nothing here names a schema: the extension can live in any, and be moved.
\echo Use "CREATE EXTENSION neardup" to load this file. \quit

-- ------------------------------------------------------------------------------------------------
-- fingerprint: 64 bits
-- ------------------------------------------------------------------------------------------------

CREATE TYPE fingerprint;

CREATE FUNCTION fingerprint_in(cstring) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_in';
CREATE FUNCTION fingerprint_out(fingerprint) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_out';
CREATE FUNCTION fingerprint_recv(internal) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_recv';
CREATE FUNCTION fingerprint_send(fingerprint) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_send';

CREATE TYPE fingerprint (
    INPUT = fingerprint_in, OUTPUT = fingerprint_out, RECEIVE = fingerprint_recv, SEND = fingerprint_send,
    INTERNALLENGTH = 8, PASSEDBYVALUE, ALIGNMENT = double, STORAGE = plain
);
COMMENT ON TYPE fingerprint IS '64-bit similarity hash: similar documents have fingerprints that differ in few bits; written as 16 hexadecimal digits';

-- Assignment casts let a driver store a 64-bit integer in a fingerprint column and read one back.
-- None is implicit: an implicit one would let integers reach the fingerprint operators by mistake.
CREATE CAST (fingerprint AS bigint) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (bigint AS fingerprint) WITHOUT FUNCTION AS ASSIGNMENT;

CREATE FUNCTION fingerprint(bit) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_from_bit';
CREATE FUNCTION fingerprint(bytea) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_from_bytea';
CREATE FUNCTION neardup_bit(fingerprint) RETURNS bit LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_to_bit';
CREATE CAST (bit AS fingerprint) WITH FUNCTION fingerprint(bit);
CREATE CAST (bytea AS fingerprint) WITH FUNCTION fingerprint(bytea);
CREATE CAST (fingerprint AS bit) WITH FUNCTION neardup_bit(fingerprint);
CREATE CAST (fingerprint AS bytea) WITH FUNCTION fingerprint_send(fingerprint);
COMMENT ON FUNCTION fingerprint(bit) IS 'the fingerprint with these 64 bits';
COMMENT ON FUNCTION fingerprint(bytea) IS 'the fingerprint with these 8 bytes, most significant first';
COMMENT ON FUNCTION neardup_bit(fingerprint) IS 'the bits of a fingerprint; implementation of the cast to bit';

CREATE FUNCTION fingerprint_cmp(fingerprint, fingerprint) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_cmp';
CREATE FUNCTION fingerprint_eq(fingerprint, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_eq';
CREATE FUNCTION fingerprint_ne(fingerprint, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ne';
CREATE FUNCTION fingerprint_lt(fingerprint, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_lt';
CREATE FUNCTION fingerprint_le(fingerprint, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_le';
CREATE FUNCTION fingerprint_gt(fingerprint, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_gt';
CREATE FUNCTION fingerprint_ge(fingerprint, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ge';
CREATE FUNCTION fingerprint_sortsupport(internal) RETURNS void LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_sortsupport';
CREATE FUNCTION fingerprint_hash(fingerprint) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_hash';
CREATE FUNCTION fingerprint_hash_extended(fingerprint, bigint) RETURNS bigint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_hash_extended';

CREATE OPERATOR = (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = fingerprint_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = fingerprint_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = fingerprint_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = fingerprint_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR > (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = fingerprint_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR >= (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = fingerprint_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);

CREATE OPERATOR CLASS fingerprint_btree_ops DEFAULT FOR TYPE fingerprint USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 fingerprint_cmp(fingerprint, fingerprint),
    FUNCTION 2 fingerprint_sortsupport(internal),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS fingerprint_hash_ops DEFAULT FOR TYPE fingerprint USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 fingerprint_hash(fingerprint),
    FUNCTION 2 fingerprint_hash_extended(fingerprint, bigint);

-- ------------------------------------------------------------------------------------------------
-- fingerprint128: 128 bits, by reference
-- ------------------------------------------------------------------------------------------------

CREATE TYPE fingerprint128;

CREATE FUNCTION fingerprint128_in(cstring) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_in';
CREATE FUNCTION fingerprint128_out(fingerprint128) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_out';
CREATE FUNCTION fingerprint128_recv(internal) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_recv';
CREATE FUNCTION fingerprint128_send(fingerprint128) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_send';

CREATE TYPE fingerprint128 (
    INPUT = fingerprint128_in, OUTPUT = fingerprint128_out, RECEIVE = fingerprint128_recv, SEND = fingerprint128_send,
    INTERNALLENGTH = 16, ALIGNMENT = double, STORAGE = plain
);
COMMENT ON TYPE fingerprint128 IS '128-bit similarity hash: similar documents have fingerprints that differ in few bits; written as 32 hexadecimal digits';

CREATE FUNCTION fingerprint128(bit) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_from_bit';
CREATE FUNCTION fingerprint128(bytea) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_from_bytea';
CREATE FUNCTION neardup_bit(fingerprint128) RETURNS bit LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_to_bit';
CREATE CAST (bit AS fingerprint128) WITH FUNCTION fingerprint128(bit);
CREATE CAST (bytea AS fingerprint128) WITH FUNCTION fingerprint128(bytea);
CREATE CAST (fingerprint128 AS bit) WITH FUNCTION neardup_bit(fingerprint128);
CREATE CAST (fingerprint128 AS bytea) WITH FUNCTION fingerprint128_send(fingerprint128);
-- A uuid has as many bits, and every driver has a type for it: it can be stored and read back.
CREATE FUNCTION fingerprint128(uuid) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_from_uuid';
CREATE FUNCTION neardup_uuid(fingerprint128) RETURNS uuid LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_to_uuid';
CREATE CAST (uuid AS fingerprint128) WITH FUNCTION fingerprint128(uuid) AS ASSIGNMENT;
CREATE CAST (fingerprint128 AS uuid) WITH FUNCTION neardup_uuid(fingerprint128) AS ASSIGNMENT;
COMMENT ON FUNCTION fingerprint128(uuid) IS 'the fingerprint with the bits of this uuid';
COMMENT ON FUNCTION neardup_uuid(fingerprint128) IS 'the bits of a fingerprint as a uuid; implementation of the cast to uuid';
COMMENT ON FUNCTION fingerprint128(bit) IS 'the fingerprint with these 128 bits';
COMMENT ON FUNCTION fingerprint128(bytea) IS 'the fingerprint with these 16 bytes, most significant first';
COMMENT ON FUNCTION neardup_bit(fingerprint128) IS 'the bits of a fingerprint; implementation of the cast to bit';

CREATE FUNCTION fingerprint128_cmp(fingerprint128, fingerprint128) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_cmp';
CREATE FUNCTION fingerprint128_eq(fingerprint128, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_eq';
CREATE FUNCTION fingerprint128_ne(fingerprint128, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_ne';
CREATE FUNCTION fingerprint128_lt(fingerprint128, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_lt';
CREATE FUNCTION fingerprint128_le(fingerprint128, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_le';
CREATE FUNCTION fingerprint128_gt(fingerprint128, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_gt';
CREATE FUNCTION fingerprint128_ge(fingerprint128, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_ge';
CREATE FUNCTION fingerprint128_sortsupport(internal) RETURNS void LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_sortsupport';
CREATE FUNCTION fingerprint128_hash(fingerprint128) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_hash';
CREATE FUNCTION fingerprint128_hash_extended(fingerprint128, bigint) RETURNS bigint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_hash_extended';

CREATE OPERATOR = (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = fingerprint128_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = fingerprint128_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = fingerprint128_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = fingerprint128_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR > (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = fingerprint128_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR >= (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = fingerprint128_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);

CREATE OPERATOR CLASS fingerprint128_btree_ops DEFAULT FOR TYPE fingerprint128 USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 fingerprint128_cmp(fingerprint128, fingerprint128),
    FUNCTION 2 fingerprint128_sortsupport(internal),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS fingerprint128_hash_ops DEFAULT FOR TYPE fingerprint128 USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 fingerprint128_hash(fingerprint128),
    FUNCTION 2 fingerprint128_hash_extended(fingerprint128, bigint);

-- ------------------------------------------------------------------------------------------------
-- fingerprint256: 256 bits, by reference
-- ------------------------------------------------------------------------------------------------

CREATE TYPE fingerprint256;

CREATE FUNCTION fingerprint256_in(cstring) RETURNS fingerprint256 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_in';
CREATE FUNCTION fingerprint256_out(fingerprint256) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_out';
CREATE FUNCTION fingerprint256_recv(internal) RETURNS fingerprint256 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_recv';
CREATE FUNCTION fingerprint256_send(fingerprint256) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_send';

CREATE TYPE fingerprint256 (
    INPUT = fingerprint256_in, OUTPUT = fingerprint256_out, RECEIVE = fingerprint256_recv, SEND = fingerprint256_send,
    INTERNALLENGTH = 32, ALIGNMENT = double, STORAGE = plain
);
COMMENT ON TYPE fingerprint256 IS '256-bit similarity hash, such as PDQ of an image; written as 64 hexadecimal digits';

CREATE FUNCTION fingerprint256(bit) RETURNS fingerprint256 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_from_bit';
CREATE FUNCTION fingerprint256(bytea) RETURNS fingerprint256 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_from_bytea';
CREATE FUNCTION neardup_bit(fingerprint256) RETURNS bit LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_to_bit';
CREATE CAST (bit AS fingerprint256) WITH FUNCTION fingerprint256(bit);
CREATE CAST (bytea AS fingerprint256) WITH FUNCTION fingerprint256(bytea);
CREATE CAST (fingerprint256 AS bit) WITH FUNCTION neardup_bit(fingerprint256);
CREATE CAST (fingerprint256 AS bytea) WITH FUNCTION fingerprint256_send(fingerprint256);
COMMENT ON FUNCTION fingerprint256(bit) IS 'the fingerprint with these 256 bits';
COMMENT ON FUNCTION fingerprint256(bytea) IS 'the fingerprint with these 32 bytes, most significant first';
COMMENT ON FUNCTION neardup_bit(fingerprint256) IS 'the bits of a fingerprint; implementation of the cast to bit';

CREATE FUNCTION fingerprint256_cmp(fingerprint256, fingerprint256) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_cmp';
CREATE FUNCTION fingerprint256_eq(fingerprint256, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_eq';
CREATE FUNCTION fingerprint256_ne(fingerprint256, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_ne';
CREATE FUNCTION fingerprint256_lt(fingerprint256, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_lt';
CREATE FUNCTION fingerprint256_le(fingerprint256, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_le';
CREATE FUNCTION fingerprint256_gt(fingerprint256, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_gt';
CREATE FUNCTION fingerprint256_ge(fingerprint256, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_ge';
CREATE FUNCTION fingerprint256_sortsupport(internal) RETURNS void LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_sortsupport';
CREATE FUNCTION fingerprint256_hash(fingerprint256) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_hash';
CREATE FUNCTION fingerprint256_hash_extended(fingerprint256, bigint) RETURNS bigint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_hash_extended';

CREATE OPERATOR = (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = fingerprint256_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = fingerprint256_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = fingerprint256_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = fingerprint256_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR > (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = fingerprint256_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR >= (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = fingerprint256_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);

CREATE OPERATOR CLASS fingerprint256_btree_ops DEFAULT FOR TYPE fingerprint256 USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 fingerprint256_cmp(fingerprint256, fingerprint256),
    FUNCTION 2 fingerprint256_sortsupport(internal),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS fingerprint256_hash_ops DEFAULT FOR TYPE fingerprint256 USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 fingerprint256_hash(fingerprint256),
    FUNCTION 2 fingerprint256_hash_extended(fingerprint256, bigint);

-- ------------------------------------------------------------------------------------------------
-- Fingerprints as numbers: casts to and from numeric, number of ones, least and greatest
-- ------------------------------------------------------------------------------------------------

-- Hashes that other programs keep as unsigned decimals, beyond the range of bigint.
CREATE FUNCTION fingerprint(numeric) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_from_numeric';
CREATE FUNCTION neardup_numeric(fingerprint) RETURNS numeric
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_to_numeric';
CREATE CAST (numeric AS fingerprint) WITH FUNCTION fingerprint(numeric) AS ASSIGNMENT;
CREATE CAST (fingerprint AS numeric) WITH FUNCTION neardup_numeric(fingerprint) AS ASSIGNMENT;
COMMENT ON FUNCTION fingerprint(numeric) IS
    'the fingerprint whose bits are this number, from 0 to 2^64 - 1';
COMMENT ON FUNCTION neardup_numeric(fingerprint) IS
    'the bits of a fingerprint as an unsigned number; implementation of the cast to numeric';
CREATE FUNCTION fingerprint128(numeric) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_from_numeric';
CREATE FUNCTION neardup_numeric(fingerprint128) RETURNS numeric
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_to_numeric';
CREATE CAST (numeric AS fingerprint128) WITH FUNCTION fingerprint128(numeric) AS ASSIGNMENT;
CREATE CAST (fingerprint128 AS numeric) WITH FUNCTION neardup_numeric(fingerprint128) AS ASSIGNMENT;
COMMENT ON FUNCTION fingerprint128(numeric) IS
    'the fingerprint whose bits are this number, from 0 to 2^128 - 1';
COMMENT ON FUNCTION neardup_numeric(fingerprint128) IS
    'the bits of a fingerprint as an unsigned number; implementation of the cast to numeric';
CREATE FUNCTION fingerprint256(numeric) RETURNS fingerprint256
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_from_numeric';
CREATE FUNCTION neardup_numeric(fingerprint256) RETURNS numeric
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_to_numeric';
CREATE CAST (numeric AS fingerprint256) WITH FUNCTION fingerprint256(numeric) AS ASSIGNMENT;
CREATE CAST (fingerprint256 AS numeric) WITH FUNCTION neardup_numeric(fingerprint256) AS ASSIGNMENT;
COMMENT ON FUNCTION fingerprint256(numeric) IS
    'the fingerprint whose bits are this number, from 0 to 2^256 - 1';
COMMENT ON FUNCTION neardup_numeric(fingerprint256) IS
    'the bits of a fingerprint as an unsigned number; implementation of the cast to numeric';

CREATE FUNCTION bit_count(fingerprint) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint_bit_count';
COMMENT ON FUNCTION bit_count(fingerprint) IS 'the number of bits that are 1';
CREATE FUNCTION bit_count(fingerprint128) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_bit_count';
COMMENT ON FUNCTION bit_count(fingerprint128) IS 'the number of bits that are 1';
CREATE FUNCTION bit_count(fingerprint256) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_bit_count';
COMMENT ON FUNCTION bit_count(fingerprint256) IS 'the number of bits that are 1';

-- The sort operators let a btree index answer them.
CREATE FUNCTION fingerprint_smaller(fingerprint, fingerprint) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_smaller';
CREATE AGGREGATE min(fingerprint) (
    SFUNC = fingerprint_smaller, STYPE = fingerprint, COMBINEFUNC = fingerprint_smaller,
    SORTOP = <, PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(fingerprint) IS
    'the least fingerprint, by the order of the bits as an unsigned number';
CREATE FUNCTION fingerprint_larger(fingerprint, fingerprint) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_larger';
CREATE AGGREGATE max(fingerprint) (
    SFUNC = fingerprint_larger, STYPE = fingerprint, COMBINEFUNC = fingerprint_larger,
    SORTOP = >, PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(fingerprint) IS
    'the greatest fingerprint, by the order of the bits as an unsigned number';
CREATE FUNCTION fingerprint128_smaller(fingerprint128, fingerprint128) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_smaller';
CREATE AGGREGATE min(fingerprint128) (
    SFUNC = fingerprint128_smaller, STYPE = fingerprint128, COMBINEFUNC = fingerprint128_smaller,
    SORTOP = <, PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(fingerprint128) IS
    'the least fingerprint, by the order of the bits as an unsigned number';
CREATE FUNCTION fingerprint128_larger(fingerprint128, fingerprint128) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_larger';
CREATE AGGREGATE max(fingerprint128) (
    SFUNC = fingerprint128_larger, STYPE = fingerprint128, COMBINEFUNC = fingerprint128_larger,
    SORTOP = >, PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(fingerprint128) IS
    'the greatest fingerprint, by the order of the bits as an unsigned number';
CREATE FUNCTION fingerprint256_smaller(fingerprint256, fingerprint256) RETURNS fingerprint256
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_smaller';
CREATE AGGREGATE min(fingerprint256) (
    SFUNC = fingerprint256_smaller, STYPE = fingerprint256, COMBINEFUNC = fingerprint256_smaller,
    SORTOP = <, PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(fingerprint256) IS
    'the least fingerprint, by the order of the bits as an unsigned number';
CREATE FUNCTION fingerprint256_larger(fingerprint256, fingerprint256) RETURNS fingerprint256
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_larger';
CREATE AGGREGATE max(fingerprint256) (
    SFUNC = fingerprint256_larger, STYPE = fingerprint256, COMBINEFUNC = fingerprint256_larger,
    SORTOP = >, PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(fingerprint256) IS
    'the greatest fingerprint, by the order of the bits as an unsigned number';

-- ------------------------------------------------------------------------------------------------
-- Distances
-- ------------------------------------------------------------------------------------------------

-- A domain: clients and arithmetic see an integer, yet comparisons with it are operators of this
-- extension, which the planner can turn into index conditions.
CREATE DOMAIN hamming AS integer;
COMMENT ON DOMAIN hamming IS 'Hamming distance in bits: what <~> returns';

CREATE FUNCTION neardup_distance_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_distance_support';
CREATE FUNCTION neardup_within_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_within_support';
CREATE FUNCTION neardup_at_distance_support(internal) RETURNS internal
    LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_at_distance_support';
CREATE FUNCTION neardup_lt_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_lt_support';
CREATE FUNCTION neardup_le_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_le_support';
CREATE FUNCTION neardup_eq_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_eq_support';
CREATE FUNCTION neardup_ne_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_ne_support';
CREATE FUNCTION neardup_ge_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_ge_support';
CREATE FUNCTION neardup_gt_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_gt_support';
CREATE FUNCTION neardup_sel(internal, oid, internal, integer) RETURNS float8 LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_sel';
CREATE FUNCTION neardup_joinsel(internal, oid, internal, smallint, internal) RETURNS float8 LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_joinsel';

CREATE FUNCTION neardup_hamming(fingerprint, fingerprint) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_distance';
CREATE FUNCTION neardup_hamming(fingerprint128, fingerprint128) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_distance';
CREATE FUNCTION neardup_hamming(fingerprint256, fingerprint256) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_distance';
CREATE FUNCTION neardup_hamming(bigint, bigint) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_distance';
CREATE FUNCTION neardup_distance(fingerprint, fingerprint) RETURNS hamming LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_distance_support AS 'MODULE_PATHNAME', 'fingerprint_distance';
CREATE FUNCTION neardup_distance(fingerprint128, fingerprint128) RETURNS hamming LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_distance_support AS 'MODULE_PATHNAME', 'fingerprint128_distance';
CREATE FUNCTION neardup_distance(fingerprint256, fingerprint256) RETURNS hamming LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_distance_support AS 'MODULE_PATHNAME', 'fingerprint256_distance';
CREATE FUNCTION neardup_distance(bigint, bigint) RETURNS hamming LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_distance_support AS 'MODULE_PATHNAME', 'bigint_distance';
COMMENT ON FUNCTION neardup_hamming(fingerprint, fingerprint) IS 'implementation of <#> operator';
COMMENT ON FUNCTION neardup_hamming(fingerprint128, fingerprint128) IS 'implementation of <#> operator';
COMMENT ON FUNCTION neardup_hamming(fingerprint256, fingerprint256) IS 'implementation of <#> operator';
COMMENT ON FUNCTION neardup_hamming(bigint, bigint) IS 'implementation of <#> operator';
COMMENT ON FUNCTION neardup_distance(fingerprint, fingerprint) IS 'implementation of <~> operator';
COMMENT ON FUNCTION neardup_distance(fingerprint128, fingerprint128) IS 'implementation of <~> operator';
COMMENT ON FUNCTION neardup_distance(fingerprint256, fingerprint256) IS 'implementation of <~> operator';
COMMENT ON FUNCTION neardup_distance(bigint, bigint) IS 'implementation of <~> operator';

CREATE OPERATOR <#> (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = neardup_hamming, COMMUTATOR = <#>);
CREATE OPERATOR <#> (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = neardup_hamming, COMMUTATOR = <#>);
CREATE OPERATOR <#> (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = neardup_hamming, COMMUTATOR = <#>);
CREATE OPERATOR <#> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = neardup_hamming, COMMUTATOR = <#>);
CREATE OPERATOR <~> (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = neardup_distance, COMMUTATOR = <~>);
CREATE OPERATOR <~> (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = neardup_distance, COMMUTATOR = <~>);
CREATE OPERATOR <~> (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = neardup_distance, COMMUTATOR = <~>);
CREATE OPERATOR <~> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = neardup_distance, COMMUTATOR = <~>);
COMMENT ON OPERATOR <#> (fingerprint, fingerprint) IS 'Hamming distance as a plain integer, the form that index order is planned with';
COMMENT ON OPERATOR <#> (fingerprint128, fingerprint128) IS 'Hamming distance as a plain integer, the form that index order is planned with';
COMMENT ON OPERATOR <#> (fingerprint256, fingerprint256) IS 'Hamming distance as a plain integer, the form that index order is planned with';
COMMENT ON OPERATOR <#> (bigint, bigint) IS 'Hamming distance as a plain integer, the form that index order is planned with';
COMMENT ON OPERATOR <~> (fingerprint, fingerprint) IS 'Hamming distance: the number of bits that differ';
COMMENT ON OPERATOR <~> (fingerprint128, fingerprint128) IS 'Hamming distance: the number of bits that differ';
COMMENT ON OPERATOR <~> (fingerprint256, fingerprint256) IS 'Hamming distance: the number of bits that differ';
COMMENT ON OPERATOR <~> (bigint, bigint) IS 'Hamming distance: the number of bits that differ';

CREATE FUNCTION neardup_similar(fingerprint, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_similar';
CREATE FUNCTION neardup_similar(fingerprint128, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_similar';
CREATE FUNCTION neardup_similar(fingerprint256, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_similar';
CREATE FUNCTION neardup_similar(bigint, bigint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_similar';
COMMENT ON FUNCTION neardup_similar(fingerprint, fingerprint) IS 'implementation of ~= operator';
COMMENT ON FUNCTION neardup_similar(fingerprint128, fingerprint128) IS 'implementation of ~= operator';
COMMENT ON FUNCTION neardup_similar(fingerprint256, fingerprint256) IS 'implementation of ~= operator';
COMMENT ON FUNCTION neardup_similar(bigint, bigint) IS 'implementation of ~= operator';
CREATE OPERATOR ~= (LEFTARG = fingerprint, RIGHTARG = fingerprint, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR ~= (LEFTARG = fingerprint128, RIGHTARG = fingerprint128, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR ~= (LEFTARG = fingerprint256, RIGHTARG = fingerprint256, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR ~= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
COMMENT ON OPERATOR ~= (fingerprint, fingerprint) IS 'near-duplicates: at most 3 bits differ';
COMMENT ON OPERATOR ~= (fingerprint128, fingerprint128) IS 'near-duplicates: at most 6 bits differ';
COMMENT ON OPERATOR ~= (fingerprint256, fingerprint256) IS 'near-duplicates: at most 31 bits differ';
COMMENT ON OPERATOR ~= (bigint, bigint) IS 'near-duplicates: at most 3 bits differ';

CREATE FUNCTION neardup_within(fingerprint, fingerprint, integer) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_within_support AS 'MODULE_PATHNAME', 'fingerprint_within';
CREATE FUNCTION neardup_within(fingerprint128, fingerprint128, integer) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_within_support AS 'MODULE_PATHNAME', 'fingerprint128_within';
CREATE FUNCTION neardup_within(fingerprint256, fingerprint256, integer) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_within_support AS 'MODULE_PATHNAME', 'fingerprint256_within';
CREATE FUNCTION neardup_within(bigint, bigint, integer) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_within_support AS 'MODULE_PATHNAME', 'bigint_within';
COMMENT ON FUNCTION neardup_within(fingerprint, fingerprint, integer) IS 'whether at most so many bits differ; the planned form of a <~> b <= radius in joins';
COMMENT ON FUNCTION neardup_within(fingerprint128, fingerprint128, integer) IS 'whether at most so many bits differ; the planned form of a <~> b <= radius in joins';
COMMENT ON FUNCTION neardup_within(fingerprint256, fingerprint256, integer) IS 'whether at most so many bits differ; the planned form of a <~> b <= radius in joins';
COMMENT ON FUNCTION neardup_within(bigint, bigint, integer) IS 'whether at most so many bits differ; the planned form of a <~> b <= radius in joins';

CREATE FUNCTION neardup_at_distance(fingerprint, fingerprint, integer) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_at_distance_support
    AS 'MODULE_PATHNAME', 'fingerprint_at_distance';
CREATE FUNCTION neardup_at_distance(fingerprint128, fingerprint128, integer) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_at_distance_support
    AS 'MODULE_PATHNAME', 'fingerprint128_at_distance';
CREATE FUNCTION neardup_at_distance(fingerprint256, fingerprint256, integer) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_at_distance_support
    AS 'MODULE_PATHNAME', 'fingerprint256_at_distance';
CREATE FUNCTION neardup_at_distance(bigint, bigint, integer) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_at_distance_support
    AS 'MODULE_PATHNAME', 'bigint_at_distance';
COMMENT ON FUNCTION neardup_at_distance(fingerprint, fingerprint, integer) IS
    'whether exactly this many bits differ; the planned form of a <~> b = distance';
COMMENT ON FUNCTION neardup_at_distance(fingerprint128, fingerprint128, integer) IS
    'whether exactly this many bits differ; the planned form of a <~> b = distance';
COMMENT ON FUNCTION neardup_at_distance(fingerprint256, fingerprint256, integer) IS
    'whether exactly this many bits differ; the planned form of a <~> b = distance';
COMMENT ON FUNCTION neardup_at_distance(bigint, bigint, integer) IS
    'whether exactly this many bits differ; the planned form of a <~> b = distance';

CREATE FUNCTION neardup_radius(bigint) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'neardup_radius';
CREATE FUNCTION neardup_radius_below(bigint) RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'neardup_radius_below';
COMMENT ON FUNCTION neardup_radius(bigint) IS 'a radius brought into the range of integer; the planned form of a bigint radius';
COMMENT ON FUNCTION neardup_radius_below(bigint) IS 'radius - 1 without overflow; the planned form of the radius in a <~> b < radius';
CREATE FUNCTION neardup_floor_radius(float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'neardup_floor_radius';
COMMENT ON FUNCTION neardup_floor_radius(float8) IS
    'the greatest integer not above a number; the planned form of a float8 radius';
CREATE FUNCTION neardup_floor_radius_below(float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'neardup_floor_radius_below';
COMMENT ON FUNCTION neardup_floor_radius_below(float8) IS
    'the greatest integer below a number; the planned form of the radius in a <~> b < number';
CREATE FUNCTION neardup_whole_radius(float8) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'neardup_whole_radius';
COMMENT ON FUNCTION neardup_whole_radius(float8) IS
    'a whole number as it is, any other as -1; the planned form of a <~> b = number';
CREATE FUNCTION neardup_floor_radius(numeric) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'neardup_numeric_floor_radius';
COMMENT ON FUNCTION neardup_floor_radius(numeric) IS 'the same of a numeric';
CREATE FUNCTION neardup_floor_radius_below(numeric) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'neardup_numeric_floor_radius_below';
COMMENT ON FUNCTION neardup_floor_radius_below(numeric) IS 'the same of a numeric';
CREATE FUNCTION neardup_whole_radius(numeric) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'neardup_numeric_whole_radius';
COMMENT ON FUNCTION neardup_whole_radius(numeric) IS 'the same of a numeric';

-- ------------------------------------------------------------------------------------------------
-- Balls
-- ------------------------------------------------------------------------------------------------

CREATE TYPE fingerprint_ball;
CREATE FUNCTION fingerprint_ball_in(cstring) RETURNS fingerprint_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_ball_in';
CREATE FUNCTION fingerprint_ball_out(fingerprint_ball) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_ball_out';
CREATE FUNCTION fingerprint_ball_recv(internal) RETURNS fingerprint_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_ball_recv';
CREATE FUNCTION fingerprint_ball_send(fingerprint_ball) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint_ball_send';
CREATE TYPE fingerprint_ball (
    INPUT = fingerprint_ball_in, OUTPUT = fingerprint_ball_out, RECEIVE = fingerprint_ball_recv, SEND = fingerprint_ball_send,
    INTERNALLENGTH = 16, ALIGNMENT = double, STORAGE = plain
);
COMMENT ON TYPE fingerprint_ball IS 'all fingerprints within a radius of a centre, written <0123456789abcdef,3>';

CREATE TYPE fingerprint128_ball;
CREATE FUNCTION fingerprint128_ball_in(cstring) RETURNS fingerprint128_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_ball_in';
CREATE FUNCTION fingerprint128_ball_out(fingerprint128_ball) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_ball_out';
CREATE FUNCTION fingerprint128_ball_recv(internal) RETURNS fingerprint128_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_ball_recv';
CREATE FUNCTION fingerprint128_ball_send(fingerprint128_ball) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint128_ball_send';
CREATE TYPE fingerprint128_ball (
    INPUT = fingerprint128_ball_in, OUTPUT = fingerprint128_ball_out, RECEIVE = fingerprint128_ball_recv, SEND = fingerprint128_ball_send,
    INTERNALLENGTH = 24, ALIGNMENT = double, STORAGE = plain
);
COMMENT ON TYPE fingerprint128_ball IS 'all 128-bit fingerprints within a radius of a centre, written <digits,radius>';

CREATE TYPE fingerprint256_ball;
CREATE FUNCTION fingerprint256_ball_in(cstring) RETURNS fingerprint256_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_ball_in';
CREATE FUNCTION fingerprint256_ball_out(fingerprint256_ball) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_ball_out';
CREATE FUNCTION fingerprint256_ball_recv(internal) RETURNS fingerprint256_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_ball_recv';
CREATE FUNCTION fingerprint256_ball_send(fingerprint256_ball) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'fingerprint256_ball_send';
CREATE TYPE fingerprint256_ball (
    INPUT = fingerprint256_ball_in, OUTPUT = fingerprint256_ball_out, RECEIVE = fingerprint256_ball_recv, SEND = fingerprint256_ball_send,
    INTERNALLENGTH = 40, ALIGNMENT = double, STORAGE = plain
);
COMMENT ON TYPE fingerprint256_ball IS 'all 256-bit fingerprints within a radius of a centre, written <digits,radius>';

CREATE TYPE bigint_ball;
CREATE FUNCTION bigint_ball_in(cstring) RETURNS bigint_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'bigint_ball_in';
CREATE FUNCTION bigint_ball_out(bigint_ball) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'bigint_ball_out';
CREATE FUNCTION bigint_ball_recv(internal) RETURNS bigint_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'bigint_ball_recv';
CREATE FUNCTION bigint_ball_send(bigint_ball) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'bigint_ball_send';
CREATE TYPE bigint_ball (
    INPUT = bigint_ball_in, OUTPUT = bigint_ball_out, RECEIVE = bigint_ball_recv, SEND = bigint_ball_send,
    INTERNALLENGTH = 16, ALIGNMENT = double, STORAGE = plain
);
COMMENT ON TYPE bigint_ball IS 'all bigint values within a radius of a centre, in differing bits, written <81985529216486895,3>';

CREATE FUNCTION ball(center fingerprint, radius integer) RETURNS fingerprint_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball';
CREATE FUNCTION ball(center fingerprint128, radius integer) RETURNS fingerprint128_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_ball';
CREATE FUNCTION ball(center fingerprint256, radius integer) RETURNS fingerprint256_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_ball';
CREATE FUNCTION ball(center bigint, radius integer) RETURNS bigint_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball';
COMMENT ON FUNCTION ball(fingerprint, integer) IS 'the ball of this centre and radius; a negative radius makes the empty ball';
COMMENT ON FUNCTION ball(fingerprint128, integer) IS 'the ball of this centre and radius; a negative radius makes the empty ball';
COMMENT ON FUNCTION ball(fingerprint256, integer) IS 'the ball of this centre and radius; a negative radius makes the empty ball';
COMMENT ON FUNCTION ball(bigint, integer) IS 'the ball of this centre and radius; a negative radius makes the empty ball';

CREATE FUNCTION neardup_contained(fingerprint, fingerprint_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_contained';
CREATE FUNCTION neardup_contained(fingerprint128, fingerprint128_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_contained';
CREATE FUNCTION neardup_contained(fingerprint256, fingerprint256_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_contained';
CREATE FUNCTION neardup_contained(bigint, bigint_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_contained';
CREATE FUNCTION neardup_contains(fingerprint_ball, fingerprint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_contains';
CREATE FUNCTION neardup_contains(fingerprint128_ball, fingerprint128) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_contains';
CREATE FUNCTION neardup_contains(fingerprint256_ball, fingerprint256) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_contains';
CREATE FUNCTION neardup_contains(bigint_ball, bigint) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_contains';
CREATE FUNCTION neardup_similar(fingerprint_ball, fingerprint_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball_similar';
CREATE FUNCTION neardup_similar(fingerprint128_ball, fingerprint128_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint128_ball_similar';
CREATE FUNCTION neardup_similar(fingerprint256_ball, fingerprint256_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint256_ball_similar';
CREATE FUNCTION neardup_similar(bigint_ball, bigint_ball) RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_similar';
COMMENT ON FUNCTION neardup_contained(fingerprint, fingerprint_ball) IS 'implementation of <@ operator';
COMMENT ON FUNCTION neardup_contained(fingerprint128, fingerprint128_ball) IS 'implementation of <@ operator';
COMMENT ON FUNCTION neardup_contained(fingerprint256, fingerprint256_ball) IS 'implementation of <@ operator';
COMMENT ON FUNCTION neardup_contained(bigint, bigint_ball) IS 'implementation of <@ operator';
COMMENT ON FUNCTION neardup_contains(fingerprint_ball, fingerprint) IS 'implementation of @> operator';
COMMENT ON FUNCTION neardup_contains(fingerprint128_ball, fingerprint128) IS 'implementation of @> operator';
COMMENT ON FUNCTION neardup_contains(fingerprint256_ball, fingerprint256) IS 'implementation of @> operator';
COMMENT ON FUNCTION neardup_contains(bigint_ball, bigint) IS 'implementation of @> operator';
COMMENT ON FUNCTION neardup_similar(fingerprint_ball, fingerprint_ball) IS 'implementation of ~= operator';
COMMENT ON FUNCTION neardup_similar(fingerprint128_ball, fingerprint128_ball) IS 'implementation of ~= operator';
COMMENT ON FUNCTION neardup_similar(fingerprint256_ball, fingerprint256_ball) IS 'implementation of ~= operator';
COMMENT ON FUNCTION neardup_similar(bigint_ball, bigint_ball) IS 'implementation of ~= operator';

CREATE OPERATOR <@ (LEFTARG = fingerprint, RIGHTARG = fingerprint_ball, FUNCTION = neardup_contained, COMMUTATOR = @>, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR <@ (LEFTARG = fingerprint128, RIGHTARG = fingerprint128_ball, FUNCTION = neardup_contained, COMMUTATOR = @>, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR <@ (LEFTARG = fingerprint256, RIGHTARG = fingerprint256_ball, FUNCTION = neardup_contained, COMMUTATOR = @>, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR <@ (LEFTARG = bigint, RIGHTARG = bigint_ball, FUNCTION = neardup_contained, COMMUTATOR = @>, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR @> (LEFTARG = fingerprint_ball, RIGHTARG = fingerprint, FUNCTION = neardup_contains, COMMUTATOR = <@, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR @> (LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128, FUNCTION = neardup_contains, COMMUTATOR = <@, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR @> (LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256, FUNCTION = neardup_contains, COMMUTATOR = <@, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR @> (LEFTARG = bigint_ball, RIGHTARG = bigint, FUNCTION = neardup_contains, COMMUTATOR = <@, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR ~= (LEFTARG = fingerprint_ball, RIGHTARG = fingerprint_ball, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR ~= (LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128_ball, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR ~= (LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256_ball, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
CREATE OPERATOR ~= (LEFTARG = bigint_ball, RIGHTARG = bigint_ball, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_sel, JOIN = neardup_joinsel);
COMMENT ON OPERATOR <@ (fingerprint, fingerprint_ball) IS 'the fingerprint lies in the ball';
COMMENT ON OPERATOR <@ (fingerprint128, fingerprint128_ball) IS 'the fingerprint lies in the ball';
COMMENT ON OPERATOR <@ (fingerprint256, fingerprint256_ball) IS 'the fingerprint lies in the ball';
COMMENT ON OPERATOR <@ (bigint, bigint_ball) IS 'the value lies in the ball';
COMMENT ON OPERATOR @> (fingerprint_ball, fingerprint) IS 'the ball holds the fingerprint';
COMMENT ON OPERATOR @> (fingerprint128_ball, fingerprint128) IS 'the ball holds the fingerprint';
COMMENT ON OPERATOR @> (fingerprint256_ball, fingerprint256) IS 'the ball holds the fingerprint';
COMMENT ON OPERATOR @> (bigint_ball, bigint) IS 'the ball holds the value';
COMMENT ON OPERATOR ~= (fingerprint_ball, fingerprint_ball) IS 'each centre lies within the other''s radius';
COMMENT ON OPERATOR ~= (fingerprint128_ball, fingerprint128_ball) IS 'each centre lies within the other''s radius';
COMMENT ON OPERATOR ~= (fingerprint256_ball, fingerprint256_ball) IS 'each centre lies within the other''s radius';
COMMENT ON OPERATOR ~= (bigint_ball, bigint_ball) IS 'each centre lies within the other''s radius';

-- Equality of balls, for GROUP BY, DISTINCT and UNION, and an order, which means nothing.
CREATE FUNCTION fingerprint_ball_cmp(fingerprint_ball, fingerprint_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint_ball_cmp';
CREATE FUNCTION fingerprint_ball_eq(fingerprint_ball, fingerprint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball_eq';
CREATE FUNCTION fingerprint_ball_ne(fingerprint_ball, fingerprint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball_ne';
CREATE FUNCTION fingerprint_ball_lt(fingerprint_ball, fingerprint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball_lt';
CREATE FUNCTION fingerprint_ball_le(fingerprint_ball, fingerprint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball_le';
CREATE FUNCTION fingerprint_ball_gt(fingerprint_ball, fingerprint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball_gt';
CREATE FUNCTION fingerprint_ball_ge(fingerprint_ball, fingerprint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'fingerprint_ball_ge';
CREATE FUNCTION fingerprint_ball_hash(fingerprint_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint_ball_hash';
CREATE FUNCTION fingerprint_ball_hash_extended(fingerprint_ball, bigint) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint_ball_hash_extended';
CREATE OPERATOR = (
    LEFTARG = fingerprint_ball, RIGHTARG = fingerprint_ball, FUNCTION = fingerprint_ball_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = fingerprint_ball, RIGHTARG = fingerprint_ball, FUNCTION = fingerprint_ball_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = fingerprint_ball, RIGHTARG = fingerprint_ball, FUNCTION = fingerprint_ball_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = fingerprint_ball, RIGHTARG = fingerprint_ball, FUNCTION = fingerprint_ball_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = fingerprint_ball, RIGHTARG = fingerprint_ball, FUNCTION = fingerprint_ball_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = fingerprint_ball, RIGHTARG = fingerprint_ball, FUNCTION = fingerprint_ball_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS fingerprint_ball_btree_ops DEFAULT FOR TYPE fingerprint_ball USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 fingerprint_ball_cmp(fingerprint_ball, fingerprint_ball),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS fingerprint_ball_hash_ops DEFAULT FOR TYPE fingerprint_ball USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 fingerprint_ball_hash(fingerprint_ball),
    FUNCTION 2 fingerprint_ball_hash_extended(fingerprint_ball, bigint);

CREATE FUNCTION fingerprint128_ball_cmp(fingerprint128_ball, fingerprint128_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_cmp';
CREATE FUNCTION fingerprint128_ball_eq(fingerprint128_ball, fingerprint128_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_eq';
CREATE FUNCTION fingerprint128_ball_ne(fingerprint128_ball, fingerprint128_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_ne';
CREATE FUNCTION fingerprint128_ball_lt(fingerprint128_ball, fingerprint128_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_lt';
CREATE FUNCTION fingerprint128_ball_le(fingerprint128_ball, fingerprint128_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_le';
CREATE FUNCTION fingerprint128_ball_gt(fingerprint128_ball, fingerprint128_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_gt';
CREATE FUNCTION fingerprint128_ball_ge(fingerprint128_ball, fingerprint128_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_ge';
CREATE FUNCTION fingerprint128_ball_hash(fingerprint128_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_hash';
CREATE FUNCTION fingerprint128_ball_hash_extended(fingerprint128_ball, bigint) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint128_ball_hash_extended';
CREATE OPERATOR = (
    LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128_ball,
    FUNCTION = fingerprint128_ball_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128_ball,
    FUNCTION = fingerprint128_ball_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128_ball,
    FUNCTION = fingerprint128_ball_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128_ball,
    FUNCTION = fingerprint128_ball_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128_ball,
    FUNCTION = fingerprint128_ball_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = fingerprint128_ball, RIGHTARG = fingerprint128_ball,
    FUNCTION = fingerprint128_ball_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS fingerprint128_ball_btree_ops DEFAULT FOR TYPE fingerprint128_ball
    USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 fingerprint128_ball_cmp(fingerprint128_ball, fingerprint128_ball),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS fingerprint128_ball_hash_ops DEFAULT FOR TYPE fingerprint128_ball
    USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 fingerprint128_ball_hash(fingerprint128_ball),
    FUNCTION 2 fingerprint128_ball_hash_extended(fingerprint128_ball, bigint);

CREATE FUNCTION fingerprint256_ball_cmp(fingerprint256_ball, fingerprint256_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_cmp';
CREATE FUNCTION fingerprint256_ball_eq(fingerprint256_ball, fingerprint256_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_eq';
CREATE FUNCTION fingerprint256_ball_ne(fingerprint256_ball, fingerprint256_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_ne';
CREATE FUNCTION fingerprint256_ball_lt(fingerprint256_ball, fingerprint256_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_lt';
CREATE FUNCTION fingerprint256_ball_le(fingerprint256_ball, fingerprint256_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_le';
CREATE FUNCTION fingerprint256_ball_gt(fingerprint256_ball, fingerprint256_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_gt';
CREATE FUNCTION fingerprint256_ball_ge(fingerprint256_ball, fingerprint256_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_ge';
CREATE FUNCTION fingerprint256_ball_hash(fingerprint256_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_hash';
CREATE FUNCTION fingerprint256_ball_hash_extended(fingerprint256_ball, bigint) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'fingerprint256_ball_hash_extended';
CREATE OPERATOR = (
    LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256_ball,
    FUNCTION = fingerprint256_ball_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256_ball,
    FUNCTION = fingerprint256_ball_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256_ball,
    FUNCTION = fingerprint256_ball_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256_ball,
    FUNCTION = fingerprint256_ball_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256_ball,
    FUNCTION = fingerprint256_ball_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = fingerprint256_ball, RIGHTARG = fingerprint256_ball,
    FUNCTION = fingerprint256_ball_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS fingerprint256_ball_btree_ops DEFAULT FOR TYPE fingerprint256_ball
    USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 fingerprint256_ball_cmp(fingerprint256_ball, fingerprint256_ball),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS fingerprint256_ball_hash_ops DEFAULT FOR TYPE fingerprint256_ball
    USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 fingerprint256_ball_hash(fingerprint256_ball),
    FUNCTION 2 fingerprint256_ball_hash_extended(fingerprint256_ball, bigint);

CREATE FUNCTION bigint_ball_cmp(bigint_ball, bigint_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_cmp';
CREATE FUNCTION bigint_ball_eq(bigint_ball, bigint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_eq';
CREATE FUNCTION bigint_ball_ne(bigint_ball, bigint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_ne';
CREATE FUNCTION bigint_ball_lt(bigint_ball, bigint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_lt';
CREATE FUNCTION bigint_ball_le(bigint_ball, bigint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_le';
CREATE FUNCTION bigint_ball_gt(bigint_ball, bigint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_gt';
CREATE FUNCTION bigint_ball_ge(bigint_ball, bigint_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_ge';
CREATE FUNCTION bigint_ball_hash(bigint_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'bigint_ball_hash';
CREATE FUNCTION bigint_ball_hash_extended(bigint_ball, bigint) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'bigint_ball_hash_extended';
CREATE OPERATOR = (
    LEFTARG = bigint_ball, RIGHTARG = bigint_ball, FUNCTION = bigint_ball_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = bigint_ball, RIGHTARG = bigint_ball, FUNCTION = bigint_ball_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = bigint_ball, RIGHTARG = bigint_ball, FUNCTION = bigint_ball_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = bigint_ball, RIGHTARG = bigint_ball, FUNCTION = bigint_ball_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = bigint_ball, RIGHTARG = bigint_ball, FUNCTION = bigint_ball_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = bigint_ball, RIGHTARG = bigint_ball, FUNCTION = bigint_ball_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS bigint_ball_btree_ops DEFAULT FOR TYPE bigint_ball USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 bigint_ball_cmp(bigint_ball, bigint_ball),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS bigint_ball_hash_ops DEFAULT FOR TYPE bigint_ball USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 bigint_ball_hash(bigint_ball),
    FUNCTION 2 bigint_ball_hash_extended(bigint_ball, bigint);

-- ------------------------------------------------------------------------------------------------
-- Comparisons of distances with integers
-- ------------------------------------------------------------------------------------------------

-- They compute what the server's own integer comparisons compute, and exist for their support
-- functions. One for each integer type: drivers send small numbers as int2. There is none for two
-- distances: an untyped parameter would become a hamming, which not every driver can send. So it is
-- an integer, by the server's own operators, which the planner rewrites
-- (src/planner/conditions.rs).
CREATE FUNCTION hamming_lt(hamming, int2) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support AS 'int42lt';
CREATE FUNCTION hamming_lt(hamming, int4) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support AS 'int4lt';
CREATE FUNCTION hamming_lt(hamming, int8) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support AS 'int48lt';
CREATE FUNCTION hamming_lt(int2, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support AS 'int24lt';
CREATE FUNCTION hamming_lt(int4, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support AS 'int4lt';
CREATE FUNCTION hamming_lt(int8, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support AS 'int84lt';
CREATE FUNCTION hamming_le(hamming, int2) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support AS 'int42le';
CREATE FUNCTION hamming_le(hamming, int4) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support AS 'int4le';
CREATE FUNCTION hamming_le(hamming, int8) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support AS 'int48le';
CREATE FUNCTION hamming_le(int2, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support AS 'int24le';
CREATE FUNCTION hamming_le(int4, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support AS 'int4le';
CREATE FUNCTION hamming_le(int8, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support AS 'int84le';
CREATE FUNCTION hamming_eq(hamming, int2) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support AS 'int42eq';
CREATE FUNCTION hamming_eq(hamming, int4) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support AS 'int4eq';
CREATE FUNCTION hamming_eq(hamming, int8) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support AS 'int48eq';
CREATE FUNCTION hamming_eq(int2, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support AS 'int24eq';
CREATE FUNCTION hamming_eq(int4, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support AS 'int4eq';
CREATE FUNCTION hamming_eq(int8, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support AS 'int84eq';
CREATE FUNCTION hamming_ne(hamming, int2) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support AS 'int42ne';
CREATE FUNCTION hamming_ne(hamming, int4) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support AS 'int4ne';
CREATE FUNCTION hamming_ne(hamming, int8) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support AS 'int48ne';
CREATE FUNCTION hamming_ne(int2, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support AS 'int24ne';
CREATE FUNCTION hamming_ne(int4, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support AS 'int4ne';
CREATE FUNCTION hamming_ne(int8, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support AS 'int84ne';
CREATE FUNCTION hamming_ge(hamming, int2) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support AS 'int42ge';
CREATE FUNCTION hamming_ge(hamming, int4) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support AS 'int4ge';
CREATE FUNCTION hamming_ge(hamming, int8) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support AS 'int48ge';
CREATE FUNCTION hamming_ge(int2, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support AS 'int24ge';
CREATE FUNCTION hamming_ge(int4, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support AS 'int4ge';
CREATE FUNCTION hamming_ge(int8, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support AS 'int84ge';
CREATE FUNCTION hamming_gt(hamming, int2) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support AS 'int42gt';
CREATE FUNCTION hamming_gt(hamming, int4) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support AS 'int4gt';
CREATE FUNCTION hamming_gt(hamming, int8) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support AS 'int48gt';
CREATE FUNCTION hamming_gt(int2, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support AS 'int24gt';
CREATE FUNCTION hamming_gt(int4, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support AS 'int4gt';
CREATE FUNCTION hamming_gt(int8, hamming) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support AS 'int84gt';

CREATE OPERATOR < (LEFTARG = hamming, RIGHTARG = int2, FUNCTION = hamming_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR < (LEFTARG = hamming, RIGHTARG = int4, FUNCTION = hamming_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR < (LEFTARG = hamming, RIGHTARG = int8, FUNCTION = hamming_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR < (LEFTARG = int2, RIGHTARG = hamming, FUNCTION = hamming_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR < (LEFTARG = int4, RIGHTARG = hamming, FUNCTION = hamming_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR < (LEFTARG = int8, RIGHTARG = hamming, FUNCTION = hamming_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = hamming, RIGHTARG = int2, FUNCTION = hamming_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <= (LEFTARG = hamming, RIGHTARG = int4, FUNCTION = hamming_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <= (LEFTARG = hamming, RIGHTARG = int8, FUNCTION = hamming_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <= (LEFTARG = int2, RIGHTARG = hamming, FUNCTION = hamming_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <= (LEFTARG = int4, RIGHTARG = hamming, FUNCTION = hamming_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <= (LEFTARG = int8, RIGHTARG = hamming, FUNCTION = hamming_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = hamming, RIGHTARG = int2, FUNCTION = hamming_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR = (LEFTARG = hamming, RIGHTARG = int4, FUNCTION = hamming_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR = (LEFTARG = hamming, RIGHTARG = int8, FUNCTION = hamming_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR = (LEFTARG = int2, RIGHTARG = hamming, FUNCTION = hamming_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR = (LEFTARG = int4, RIGHTARG = hamming, FUNCTION = hamming_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR = (LEFTARG = int8, RIGHTARG = hamming, FUNCTION = hamming_eq, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = hamming, RIGHTARG = int2, FUNCTION = hamming_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR <> (LEFTARG = hamming, RIGHTARG = int4, FUNCTION = hamming_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR <> (LEFTARG = hamming, RIGHTARG = int8, FUNCTION = hamming_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR <> (LEFTARG = int2, RIGHTARG = hamming, FUNCTION = hamming_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR <> (LEFTARG = int4, RIGHTARG = hamming, FUNCTION = hamming_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR <> (LEFTARG = int8, RIGHTARG = hamming, FUNCTION = hamming_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = hamming, RIGHTARG = int2, FUNCTION = hamming_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR >= (LEFTARG = hamming, RIGHTARG = int4, FUNCTION = hamming_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR >= (LEFTARG = hamming, RIGHTARG = int8, FUNCTION = hamming_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR >= (LEFTARG = int2, RIGHTARG = hamming, FUNCTION = hamming_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR >= (LEFTARG = int4, RIGHTARG = hamming, FUNCTION = hamming_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR >= (LEFTARG = int8, RIGHTARG = hamming, FUNCTION = hamming_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = hamming, RIGHTARG = int2, FUNCTION = hamming_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR > (LEFTARG = hamming, RIGHTARG = int4, FUNCTION = hamming_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR > (LEFTARG = hamming, RIGHTARG = int8, FUNCTION = hamming_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR > (LEFTARG = int2, RIGHTARG = hamming, FUNCTION = hamming_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR > (LEFTARG = int4, RIGHTARG = hamming, FUNCTION = hamming_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR > (LEFTARG = int8, RIGHTARG = hamming, FUNCTION = hamming_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);

-- Floating-point numbers, as clients without integers send them. Not numeric: an operator for
-- (hamming, numeric) would make integer <= numeric ambiguous, in any query. Comparisons with
-- numeric are the server's, which the planner rewrites (src/planner/forms.rs).
CREATE FUNCTION hamming_lt(hamming, float8) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support
    AS 'MODULE_PATHNAME', 'hamming_lt_float8';
CREATE FUNCTION hamming_lt(float8, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support
    AS 'MODULE_PATHNAME', 'hamming_lt_from_float8';
CREATE FUNCTION hamming_le(hamming, float8) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support
    AS 'MODULE_PATHNAME', 'hamming_le_float8';
CREATE FUNCTION hamming_le(float8, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support
    AS 'MODULE_PATHNAME', 'hamming_le_from_float8';
CREATE FUNCTION hamming_eq(hamming, float8) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support
    AS 'MODULE_PATHNAME', 'hamming_eq_float8';
CREATE FUNCTION hamming_eq(float8, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support
    AS 'MODULE_PATHNAME', 'hamming_eq_from_float8';
CREATE FUNCTION hamming_ne(hamming, float8) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support
    AS 'MODULE_PATHNAME', 'hamming_ne_float8';
CREATE FUNCTION hamming_ne(float8, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support
    AS 'MODULE_PATHNAME', 'hamming_ne_from_float8';
CREATE FUNCTION hamming_ge(hamming, float8) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support
    AS 'MODULE_PATHNAME', 'hamming_ge_float8';
CREATE FUNCTION hamming_ge(float8, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support
    AS 'MODULE_PATHNAME', 'hamming_ge_from_float8';
CREATE FUNCTION hamming_gt(hamming, float8) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support
    AS 'MODULE_PATHNAME', 'hamming_gt_float8';
CREATE FUNCTION hamming_gt(float8, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support
    AS 'MODULE_PATHNAME', 'hamming_gt_from_float8';
CREATE FUNCTION hamming_lt(hamming, float4) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support
    AS 'MODULE_PATHNAME', 'hamming_lt_float4';
CREATE FUNCTION hamming_lt(float4, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_lt_support
    AS 'MODULE_PATHNAME', 'hamming_lt_from_float4';
CREATE FUNCTION hamming_le(hamming, float4) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support
    AS 'MODULE_PATHNAME', 'hamming_le_float4';
CREATE FUNCTION hamming_le(float4, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_le_support
    AS 'MODULE_PATHNAME', 'hamming_le_from_float4';
CREATE FUNCTION hamming_eq(hamming, float4) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support
    AS 'MODULE_PATHNAME', 'hamming_eq_float4';
CREATE FUNCTION hamming_eq(float4, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_eq_support
    AS 'MODULE_PATHNAME', 'hamming_eq_from_float4';
CREATE FUNCTION hamming_ne(hamming, float4) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support
    AS 'MODULE_PATHNAME', 'hamming_ne_float4';
CREATE FUNCTION hamming_ne(float4, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ne_support
    AS 'MODULE_PATHNAME', 'hamming_ne_from_float4';
CREATE FUNCTION hamming_ge(hamming, float4) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support
    AS 'MODULE_PATHNAME', 'hamming_ge_float4';
CREATE FUNCTION hamming_ge(float4, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_ge_support
    AS 'MODULE_PATHNAME', 'hamming_ge_from_float4';
CREATE FUNCTION hamming_gt(hamming, float4) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support
    AS 'MODULE_PATHNAME', 'hamming_gt_float4';
CREATE FUNCTION hamming_gt(float4, hamming) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF SUPPORT neardup_gt_support
    AS 'MODULE_PATHNAME', 'hamming_gt_from_float4';

CREATE OPERATOR < (LEFTARG = hamming, RIGHTARG = float8, FUNCTION = hamming_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR < (LEFTARG = float8, RIGHTARG = hamming, FUNCTION = hamming_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = hamming, RIGHTARG = float8, FUNCTION = hamming_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <= (LEFTARG = float8, RIGHTARG = hamming, FUNCTION = hamming_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = hamming, RIGHTARG = float8, FUNCTION = hamming_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR = (LEFTARG = float8, RIGHTARG = hamming, FUNCTION = hamming_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR <> (LEFTARG = hamming, RIGHTARG = float8, FUNCTION = hamming_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR <> (LEFTARG = float8, RIGHTARG = hamming, FUNCTION = hamming_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = hamming, RIGHTARG = float8, FUNCTION = hamming_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR >= (LEFTARG = float8, RIGHTARG = hamming, FUNCTION = hamming_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = hamming, RIGHTARG = float8, FUNCTION = hamming_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR > (LEFTARG = float8, RIGHTARG = hamming, FUNCTION = hamming_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = hamming, RIGHTARG = float4, FUNCTION = hamming_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR < (LEFTARG = float4, RIGHTARG = hamming, FUNCTION = hamming_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = hamming, RIGHTARG = float4, FUNCTION = hamming_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <= (LEFTARG = float4, RIGHTARG = hamming, FUNCTION = hamming_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = hamming, RIGHTARG = float4, FUNCTION = hamming_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR = (LEFTARG = float4, RIGHTARG = hamming, FUNCTION = hamming_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR <> (LEFTARG = hamming, RIGHTARG = float4, FUNCTION = hamming_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR <> (LEFTARG = float4, RIGHTARG = hamming, FUNCTION = hamming_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = hamming, RIGHTARG = float4, FUNCTION = hamming_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR >= (LEFTARG = float4, RIGHTARG = hamming, FUNCTION = hamming_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = hamming, RIGHTARG = float4, FUNCTION = hamming_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR > (LEFTARG = float4, RIGHTARG = hamming, FUNCTION = hamming_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);

-- Row comparisons such as (a <~> b, id) > (3, 100), which page through ordered results, need
-- operators that belong to a btree family; IN lists and joins on a distance, to a hash family.
CREATE OPERATOR FAMILY hamming_ops USING btree;
ALTER OPERATOR FAMILY hamming_ops USING btree ADD
    OPERATOR 1 < (hamming, int2), OPERATOR 2 <= (hamming, int2), OPERATOR 3 = (hamming, int2), OPERATOR 4 >= (hamming, int2), OPERATOR 5 > (hamming, int2),
    FUNCTION 1 (hamming, int2) btint42cmp(int4, int2),
    OPERATOR 1 < (hamming, int4), OPERATOR 2 <= (hamming, int4), OPERATOR 3 = (hamming, int4), OPERATOR 4 >= (hamming, int4), OPERATOR 5 > (hamming, int4),
    FUNCTION 1 (hamming, int4) btint4cmp(int4, int4),
    OPERATOR 1 < (hamming, int8), OPERATOR 2 <= (hamming, int8), OPERATOR 3 = (hamming, int8), OPERATOR 4 >= (hamming, int8), OPERATOR 5 > (hamming, int8),
    FUNCTION 1 (hamming, int8) btint48cmp(int4, int8),
    OPERATOR 1 < (int2, hamming), OPERATOR 2 <= (int2, hamming), OPERATOR 3 = (int2, hamming), OPERATOR 4 >= (int2, hamming), OPERATOR 5 > (int2, hamming),
    FUNCTION 1 (int2, hamming) btint24cmp(int2, int4),
    OPERATOR 1 < (int4, hamming), OPERATOR 2 <= (int4, hamming), OPERATOR 3 = (int4, hamming), OPERATOR 4 >= (int4, hamming), OPERATOR 5 > (int4, hamming),
    FUNCTION 1 (int4, hamming) btint4cmp(int4, int4),
    OPERATOR 1 < (int8, hamming), OPERATOR 2 <= (int8, hamming), OPERATOR 3 = (int8, hamming), OPERATOR 4 >= (int8, hamming), OPERATOR 5 > (int8, hamming),
    FUNCTION 1 (int8, hamming) btint84cmp(int8, int4);

CREATE OPERATOR FAMILY hamming_ops USING hash;
ALTER OPERATOR FAMILY hamming_ops USING hash ADD
    OPERATOR 1 = (hamming, int2), OPERATOR 1 = (hamming, int4), OPERATOR 1 = (hamming, int8),
        OPERATOR 1 = (int2, hamming), OPERATOR 1 = (int4, hamming), OPERATOR 1 = (int8, hamming),
    FUNCTION 1 (hamming, hamming) hashint4(int4), FUNCTION 2 (hamming, hamming) hashint4extended(int4, int8),
    FUNCTION 1 (int2, int2) hashint2(int2), FUNCTION 2 (int2, int2) hashint2extended(int2, int8),
    FUNCTION 1 (int4, int4) hashint4(int4), FUNCTION 2 (int4, int4) hashint4extended(int4, int8),
    FUNCTION 1 (int8, int8) hashint8(int8), FUNCTION 2 (int8, int8) hashint8extended(int8, int8);

-- ------------------------------------------------------------------------------------------------
-- Text to fingerprints
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION simhash(body text, tokens text DEFAULT 'word', shingle integer DEFAULT 2, weight text DEFAULT 'sqrt', html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep')
    RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'simhash_text';
CREATE FUNCTION simhash128(body text, tokens text DEFAULT 'word', shingle integer DEFAULT 2, weight text DEFAULT 'sqrt', html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep')
    RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'simhash128_text';
COMMENT ON FUNCTION simhash(text, text, integer, text, boolean, text, text) IS 'fingerprint of a text: similar texts have fingerprints that differ in few bits; NULL if the text has no feature';
COMMENT ON FUNCTION simhash128(text, text, integer, text, boolean, text, text) IS '128-bit fingerprint of a text: as simhash, with less chance in the distances; NULL if the text has no feature';

CREATE FUNCTION neardup_features(body text, tokens text DEFAULT 'word', shingle integer DEFAULT 2, weight text DEFAULT 'sqrt', html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep', OUT feature text, OUT weight real, OUT hash fingerprint)
    RETURNS SETOF record LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 ROWS 200 AS 'MODULE_PATHNAME', 'neardup_features';
COMMENT ON FUNCTION neardup_features(text, text, integer, text, boolean, text, text) IS 'the distinct features of a text that its fingerprint is made of, each with its weight and hash, the heaviest first';
CREATE FUNCTION neardup_explain(a text, b text, tokens text DEFAULT 'word', shingle integer DEFAULT 2, weight text DEFAULT 'sqrt', html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep', top integer DEFAULT 20)
    RETURNS jsonb LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'neardup_explain';
COMMENT ON FUNCTION neardup_explain(text, text, text, integer, text, boolean, text, text, integer) IS 'two texts compared: fingerprints, distance, Jaccard similarity, and the heaviest features that they share and that only one has';
CREATE FUNCTION jaccard_similarity(a text, b text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep')
    RETURNS double precision LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2000 AS 'MODULE_PATHNAME', 'jaccard_similarity';
COMMENT ON FUNCTION jaccard_similarity(text, text, text, integer, boolean, text, text) IS 'exact Jaccard similarity of two texts'' sets of features, from 0 to 1; NULL if neither has any';

-- STABLE: a reload of the configuration changes it.
CREATE FUNCTION neardup_jieba_words_hash()
    RETURNS text LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'neardup_jieba_words_hash';
COMMENT ON FUNCTION neardup_jieba_words_hash() IS
    'hash of the words in neardup.jieba_user_words: to find out which fingerprints were made with others';

-- ------------------------------------------------------------------------------------------------
-- Ready-made features to fingerprints
-- ------------------------------------------------------------------------------------------------

-- Called on NULL input because weights may be NULL; the other arguments may not.
CREATE FUNCTION simhash(features text[], weights double precision[] DEFAULT NULL, scheme text DEFAULT 'neardup')
    RETURNS fingerprint LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'simhash_features';
CREATE FUNCTION simhash(hashes bigint[], weights double precision[] DEFAULT NULL, scheme text DEFAULT 'neardup')
    RETURNS fingerprint LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'simhash_hashes';
CREATE FUNCTION simhash128(features text[], weights double precision[] DEFAULT NULL)
    RETURNS fingerprint128 LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'simhash128_features';
COMMENT ON FUNCTION simhash(text[], double precision[], text) IS 'fingerprint of ready-made features, each with a weight (default 1), as this extension or another program makes it; NULL if there are none';
COMMENT ON FUNCTION simhash(bigint[], double precision[], text) IS 'fingerprint of the hashes of features, each with a weight (default 1), as this extension or another program makes it; NULL if there are none';
COMMENT ON FUNCTION simhash128(text[], double precision[]) IS '128-bit fingerprint of ready-made features, each with a weight (default 1); NULL if there are none';

-- ------------------------------------------------------------------------------------------------
-- HTML, and keys of texts
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION html_text(html text) RETURNS text LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'html_text';
CREATE FUNCTION longest_sentences_hash(body text, n integer DEFAULT 3) RETURNS bigint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'longest_sentences_hash';
COMMENT ON FUNCTION html_text(text) IS 'the text of an HTML page as a reader sees it: without scripts, styles, markup and what is hidden';
COMMENT ON FUNCTION longest_sentences_hash(text, integer) IS 'hash of the longest sentences of a text: equal for copies that differ in what frames them only; NULL if the text has no word';

-- ------------------------------------------------------------------------------------------------
-- Fingerprints whose distance tells the Jaccard similarity
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION minhash64(body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep')
    RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash64_text';
CREATE FUNCTION minhash64(features text[]) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash64_features';
CREATE FUNCTION minhash64(vector tsvector) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'minhash64_tsvector';
CREATE FUNCTION minhash128(body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep')
    RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash128_text';
CREATE FUNCTION minhash128(features text[]) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash128_features';
CREATE FUNCTION minhash128(vector tsvector) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'minhash128_tsvector';
COMMENT ON FUNCTION minhash64(text, text, integer, boolean, text, text) IS 'fingerprint of a text''s set of features, a bit of each of many minima: of a Jaccard similarity J, 32 * (1 - J) bits are expected to differ; NULL if it has no feature';
COMMENT ON FUNCTION minhash64(text[]) IS 'fingerprint of a set of ready-made features, a bit of each of many minima; NULL if there are none';
COMMENT ON FUNCTION minhash64(tsvector) IS 'fingerprint of the set of lexemes that text search finds in a document, a bit of each of many minima; NULL if there are none';
COMMENT ON FUNCTION minhash128(text, text, integer, boolean, text, text) IS '128-bit fingerprint of a text''s set of features, a bit of each of many minima: of a Jaccard similarity J, 64 * (1 - J) bits are expected to differ; NULL if it has no feature';
COMMENT ON FUNCTION minhash128(text[]) IS '128-bit fingerprint of a set of ready-made features, a bit of each of many minima; NULL if there are none';
COMMENT ON FUNCTION minhash128(tsvector) IS '128-bit fingerprint of the set of lexemes that text search finds in a document, a bit of each of many minima; NULL if there are none';

-- ------------------------------------------------------------------------------------------------
-- Features from elsewhere: of text search, and from rows
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION simhash(vector tsvector) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'simhash_tsvector';
CREATE FUNCTION simhash128(vector tsvector) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'simhash128_tsvector';
COMMENT ON FUNCTION simhash(tsvector) IS 'fingerprint of the lexemes that text search finds in a document, weighted by their frequency and labels; NULL if there are none';
COMMENT ON FUNCTION simhash128(tsvector) IS '128-bit fingerprint of the lexemes that text search finds in a document, weighted by their frequency and labels; NULL if there are none';

-- Features that stand in rows. The sums are exact, so neither the order of the rows matters nor how
-- parallel workers share them. There is no form with one argument: f(x ORDER BY a, b) for
-- f(x, a ORDER BY b) would then be wrong without an error.

CREATE FUNCTION simhash_agg_add(internal, text, real) RETURNS internal LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash_agg_add';
CREATE FUNCTION simhash_agg_merge(internal, internal) RETURNS internal LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash_agg_merge';
CREATE FUNCTION simhash_agg_save(internal) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash_agg_save';
CREATE FUNCTION simhash_agg_load(bytea, internal) RETURNS internal LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash_agg_load';
CREATE FUNCTION simhash_agg_finish(internal) RETURNS fingerprint LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash_agg_finish';
CREATE FUNCTION simhash128_agg_add(internal, text, real) RETURNS internal LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash128_agg_add';
CREATE FUNCTION simhash128_agg_merge(internal, internal) RETURNS internal LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash128_agg_merge';
CREATE FUNCTION simhash128_agg_finish(internal) RETURNS fingerprint128 LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'simhash128_agg_finish';
COMMENT ON FUNCTION simhash_agg_add(internal, text, real) IS 'part of simhash_agg: takes in a row';
COMMENT ON FUNCTION simhash_agg_merge(internal, internal) IS 'part of simhash_agg: merges the sums of two processes';
COMMENT ON FUNCTION simhash_agg_save(internal) IS 'part of simhash_agg and simhash128_agg: sums for another process';
COMMENT ON FUNCTION simhash_agg_load(bytea, internal) IS 'part of simhash_agg and simhash128_agg: sums of another process';
COMMENT ON FUNCTION simhash_agg_finish(internal) IS 'part of simhash_agg: the fingerprint';
COMMENT ON FUNCTION simhash128_agg_add(internal, text, real) IS 'part of simhash128_agg: takes in a row';
COMMENT ON FUNCTION simhash128_agg_merge(internal, internal) IS 'part of simhash128_agg: merges the sums of two processes';
COMMENT ON FUNCTION simhash128_agg_finish(internal) IS 'part of simhash128_agg: the fingerprint';

CREATE AGGREGATE simhash_agg(feature text, weight real) (
    SFUNC = simhash_agg_add, STYPE = internal, SSPACE = 640, FINALFUNC = simhash_agg_finish,
    COMBINEFUNC = simhash_agg_merge, SERIALFUNC = simhash_agg_save, DESERIALFUNC = simhash_agg_load, PARALLEL = SAFE
);
CREATE AGGREGATE simhash128_agg(feature text, weight real) (
    SFUNC = simhash128_agg_add, STYPE = internal, SSPACE = 1152, FINALFUNC = simhash128_agg_finish,
    COMBINEFUNC = simhash128_agg_merge, SERIALFUNC = simhash_agg_save, DESERIALFUNC = simhash_agg_load, PARALLEL = SAFE
);
COMMENT ON AGGREGATE simhash_agg(text, real) IS 'fingerprint of features that stand in rows, each with a weight; NULL if there are none';
COMMENT ON AGGREGATE simhash128_agg(text, real) IS '128-bit fingerprint of features that stand in rows, each with a weight; NULL if there are none';

-- ------------------------------------------------------------------------------------------------
-- minhash_signature: estimates of the Jaccard similarity of sets
-- ------------------------------------------------------------------------------------------------

CREATE TYPE minhash_signature;
CREATE FUNCTION minhash_signature_in(cstring) RETURNS minhash_signature LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_in';
CREATE FUNCTION minhash_signature_out(minhash_signature) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_out';
CREATE FUNCTION minhash_signature_recv(internal) RETURNS minhash_signature LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_recv';
CREATE FUNCTION minhash_signature_send(minhash_signature) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_signature_send';
CREATE FUNCTION minhash_signature_analyze(internal) RETURNS boolean LANGUAGE C STABLE STRICT
    AS 'MODULE_PATHNAME', 'minhash_signature_analyze';
-- External: its values are random bits, which do not compress.
CREATE TYPE minhash_signature (
    INPUT = minhash_signature_in, OUTPUT = minhash_signature_out, RECEIVE = minhash_signature_recv, SEND = minhash_signature_send,
    ANALYZE = minhash_signature_analyze,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE minhash_signature IS 'MinHash signature of a set of features, with its scheme and seed; the share of equal values estimates the Jaccard similarity';

CREATE FUNCTION minhash_signature_eq(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_eq';
CREATE FUNCTION minhash_signature_ne(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_ne';
CREATE FUNCTION minhash_signature_lt(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_lt';
CREATE FUNCTION minhash_signature_le(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_le';
CREATE FUNCTION minhash_signature_gt(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_gt';
CREATE FUNCTION minhash_signature_ge(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_ge';
CREATE FUNCTION minhash_signature_cmp(minhash_signature, minhash_signature) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_cmp';
CREATE FUNCTION minhash_signature_hash(minhash_signature) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_hash';
CREATE FUNCTION minhash_signature_hash_extended(minhash_signature, bigint) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_signature_hash_extended';

CREATE FUNCTION neardup_signature_eqsel(internal, oid, internal, integer) RETURNS float8
    LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_signature_eqsel';
CREATE OPERATOR = (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = neardup_signature_eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
CREATE OPERATOR <> (LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_ne, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_lt, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_le, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR > (LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_gt, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR >= (LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_ge, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);

-- Signatures of different kinds are unequal here, and ordered; only their estimates are NULL.
CREATE OPERATOR CLASS minhash_signature_btree_ops DEFAULT FOR TYPE minhash_signature USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 minhash_signature_cmp(minhash_signature, minhash_signature),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS minhash_signature_hash_ops DEFAULT FOR TYPE minhash_signature USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 minhash_signature_hash(minhash_signature),
    FUNCTION 2 minhash_signature_hash_extended(minhash_signature, bigint);

CREATE FUNCTION minhash(body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep', hashes integer DEFAULT 128, seed bigint DEFAULT 0, scheme text DEFAULT 'neardup1')
    RETURNS minhash_signature LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash_text';
CREATE FUNCTION minhash(features text[], hashes integer DEFAULT 128, seed bigint DEFAULT 0, scheme text DEFAULT 'neardup1')
    RETURNS minhash_signature LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash_features';
CREATE FUNCTION minhash(vector tsvector, hashes integer DEFAULT 128, seed bigint DEFAULT 0, scheme text DEFAULT 'neardup1')
    RETURNS minhash_signature LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash_tsvector';
COMMENT ON FUNCTION minhash(text, text, integer, boolean, text, text, integer, bigint, text) IS 'MinHash signature of a text''s set of features; NULL if it has none';
COMMENT ON FUNCTION minhash(text[], integer, bigint, text) IS 'MinHash signature of ready-made features; NULL if there are none';
COMMENT ON FUNCTION minhash(tsvector, integer, bigint, text) IS 'MinHash signature of the lexemes of a tsvector; NULL if there are none';

CREATE FUNCTION minhash_union(minhash_signature, minhash_signature) RETURNS minhash_signature LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_union';
CREATE FUNCTION minhash_accumulate(minhash_signature, feature text) RETURNS minhash_signature LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_accumulate';
CREATE FUNCTION minhash_accumulate(minhash_signature, feature text, hashes integer) RETURNS minhash_signature LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_accumulate';
CREATE FUNCTION minhash_accumulate(minhash_signature, feature text, hashes integer, seed bigint) RETURNS minhash_signature LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_accumulate';
CREATE FUNCTION minhash_accumulate(minhash_signature, feature text, hashes integer, seed bigint, scheme text) RETURNS minhash_signature LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_accumulate';
CREATE AGGREGATE minhash_agg(feature text) (SFUNC = minhash_accumulate, STYPE = minhash_signature, SSPACE = 528, COMBINEFUNC = minhash_union, PARALLEL = SAFE);
CREATE AGGREGATE minhash_agg(feature text, hashes integer) (SFUNC = minhash_accumulate, STYPE = minhash_signature, SSPACE = 528, COMBINEFUNC = minhash_union, PARALLEL = SAFE);
CREATE AGGREGATE minhash_agg(feature text, hashes integer, seed bigint) (SFUNC = minhash_accumulate, STYPE = minhash_signature, SSPACE = 528, COMBINEFUNC = minhash_union, PARALLEL = SAFE);
CREATE AGGREGATE minhash_agg(feature text, hashes integer, seed bigint, scheme text) (SFUNC = minhash_accumulate, STYPE = minhash_signature, SSPACE = 528, COMBINEFUNC = minhash_union, PARALLEL = SAFE);
CREATE AGGREGATE minhash_union_agg(minhash_signature) (SFUNC = minhash_union, STYPE = minhash_signature, SSPACE = 528, COMBINEFUNC = minhash_union, PARALLEL = SAFE);
COMMENT ON FUNCTION minhash_union(minhash_signature, minhash_signature) IS 'the signature of the union of two sets, from their signatures';
COMMENT ON FUNCTION minhash_accumulate(minhash_signature, text) IS 'implementation of minhash_agg';
COMMENT ON FUNCTION minhash_accumulate(minhash_signature, text, integer) IS 'implementation of minhash_agg';
COMMENT ON FUNCTION minhash_accumulate(minhash_signature, text, integer, bigint) IS 'implementation of minhash_agg';
COMMENT ON FUNCTION minhash_accumulate(minhash_signature, text, integer, bigint, text) IS 'implementation of minhash_agg';
COMMENT ON AGGREGATE minhash_agg(text) IS 'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_agg(text, integer) IS 'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_agg(text, integer, bigint) IS 'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_agg(text, integer, bigint, text) IS 'MinHash signature of the set of all features, NULLs left out';
COMMENT ON AGGREGATE minhash_union_agg(minhash_signature) IS 'the signature of the union of all sets';

CREATE FUNCTION minhash_values(minhash_signature) RETURNS bigint[] LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_values';
CREATE FUNCTION minhash_from_values("values" bigint[], seed bigint DEFAULT 0, scheme text DEFAULT 'neardup1') RETURNS minhash_signature LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_from_values';
CREATE FUNCTION minhash_super_shingles(minhash_signature, groups integer DEFAULT 6) RETURNS bigint[] LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_super_shingles';
COMMENT ON FUNCTION minhash_values(minhash_signature) IS 'the values of a signature';
COMMENT ON FUNCTION minhash_from_values(bigint[], bigint, text) IS 'a signature from its values, made elsewhere with this seed and scheme';
COMMENT ON FUNCTION minhash_super_shingles(minhash_signature, integer) IS 'a hash of each group of values: near-duplicates share some of them';

CREATE FUNCTION containment(a text, b text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep')
    RETURNS double precision LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2000 AS 'MODULE_PATHNAME', 'containment_texts';
COMMENT ON FUNCTION containment(text, text, text, integer, boolean, text, text) IS 'exact share of the first text''s features that the second has too; NULL if the first has none';

-- A domain: clients and arithmetic see a double precision. It has no operators of its own. Those on
-- (jaccard, numeric), which 0.2 would need, make the server's own integer <= numeric ambiguous, and
-- with those on (jaccard, jaccard) an untyped parameter becomes a jaccard, which not every driver
-- can send. The planner rewrites the server's own comparisons (src/planner/conditions.rs).
CREATE DOMAIN jaccard AS double precision;
COMMENT ON DOMAIN jaccard IS
    'estimated Jaccard distance or similarity, from 0 to 1: what <%> and minhash_similarity return';
CREATE FUNCTION neardup_estimate_support(internal) RETURNS internal LANGUAGE C STRICT
    AS 'MODULE_PATHNAME', 'neardup_estimate_support';
CREATE FUNCTION neardup_jaccard_within_support(internal) RETURNS internal LANGUAGE C STRICT AS 'MODULE_PATHNAME', 'neardup_jaccard_within_support';
CREATE FUNCTION neardup_jaccard_sel(internal, oid, internal, integer) RETURNS float8 LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_jaccard_sel';
CREATE FUNCTION neardup_jaccard_joinsel(internal, oid, internal, smallint, internal) RETURNS float8 LANGUAGE C STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_jaccard_joinsel';

CREATE FUNCTION minhash_distance(minhash_signature, minhash_signature) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT neardup_estimate_support AS 'MODULE_PATHNAME', 'minhash_distance';
CREATE FUNCTION minhash_similarity(minhash_signature, minhash_signature) RETURNS jaccard
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT neardup_estimate_support AS 'MODULE_PATHNAME', 'minhash_similarity';
CREATE FUNCTION neardup_similar(minhash_signature, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_similar';
CREATE FUNCTION neardup_within(minhash_signature, minhash_signature, bound float8, kind integer)
    RETURNS boolean LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    SUPPORT neardup_jaccard_within_support AS 'MODULE_PATHNAME', 'minhash_within';
COMMENT ON FUNCTION minhash_distance(minhash_signature, minhash_signature) IS 'implementation of <%> operator';
COMMENT ON FUNCTION minhash_similarity(minhash_signature, minhash_signature) IS 'estimated Jaccard similarity: the share of equal values';
COMMENT ON FUNCTION neardup_similar(minhash_signature, minhash_signature) IS 'implementation of ~= operator';
COMMENT ON FUNCTION neardup_within(minhash_signature, minhash_signature, float8, integer) IS 'whether the distance (kind 0: at most, 1: below) or the similarity (2: at least, 3: above) keeps to a bound; the planned form of such comparisons in joins';
CREATE OPERATOR <%> (LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_distance, COMMUTATOR = <%>);
CREATE OPERATOR ~= (LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = neardup_similar, COMMUTATOR = ~=, RESTRICT = neardup_jaccard_sel, JOIN = neardup_jaccard_joinsel);
COMMENT ON OPERATOR <%> (minhash_signature, minhash_signature) IS 'estimated Jaccard distance: the share of differing values';
COMMENT ON OPERATOR ~= (minhash_signature, minhash_signature) IS 'near-duplicates: estimated Jaccard similarity of 0.8 or more';

CREATE TYPE minhash_ball;
CREATE FUNCTION minhash_ball_in(cstring) RETURNS minhash_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_in';
CREATE FUNCTION minhash_ball_out(minhash_ball) RETURNS cstring LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_out';
CREATE FUNCTION minhash_ball_recv(internal) RETURNS minhash_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_recv';
CREATE FUNCTION minhash_ball_send(minhash_ball) RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_send';
CREATE TYPE minhash_ball (
    INPUT = minhash_ball_in, OUTPUT = minhash_ball_out, RECEIVE = minhash_ball_recv, SEND = minhash_ball_send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE minhash_ball IS 'all signatures that differ from a centre in at most so many values, written <signature,mismatches>';
CREATE FUNCTION ball(center minhash_signature, distance float8) RETURNS minhash_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball';
CREATE FUNCTION neardup_ball(center minhash_signature, bound float8, kind integer) RETURNS minhash_ball LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'minhash_ball_of_kind';
CREATE FUNCTION neardup_approximate(minhash_ball) RETURNS minhash_ball
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_ball_approximate';
CREATE FUNCTION neardup_contained(minhash_signature, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_contained';
CREATE FUNCTION neardup_contains(minhash_ball, minhash_signature) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_contains';
COMMENT ON FUNCTION ball(minhash_signature, float8) IS 'the ball of all signatures within an estimated distance; a negative one makes the empty ball';
COMMENT ON FUNCTION neardup_ball(minhash_signature, float8, integer) IS 'the ball of the signatures whose distance (kind 0: at most, 1: below) or similarity (2: at least, 3: above) keeps to a bound; the planned form of such comparisons';
COMMENT ON FUNCTION neardup_approximate(minhash_ball) IS 'the same ball, of which an index may miss some; the planned form while neardup.allow_approximate is on';
COMMENT ON FUNCTION neardup_contained(minhash_signature, minhash_ball) IS 'implementation of <@ operator';
COMMENT ON FUNCTION neardup_contains(minhash_ball, minhash_signature) IS 'implementation of @> operator';
CREATE OPERATOR <@ (LEFTARG = minhash_signature, RIGHTARG = minhash_ball, FUNCTION = neardup_contained, COMMUTATOR = @>, RESTRICT = neardup_jaccard_sel, JOIN = neardup_jaccard_joinsel);
CREATE OPERATOR @> (LEFTARG = minhash_ball, RIGHTARG = minhash_signature, FUNCTION = neardup_contains, COMMUTATOR = <@, RESTRICT = neardup_jaccard_sel, JOIN = neardup_jaccard_joinsel);
COMMENT ON OPERATOR <@ (minhash_signature, minhash_ball) IS 'whether a signature lies in a ball';
COMMENT ON OPERATOR @> (minhash_ball, minhash_signature) IS 'whether a ball holds a signature';

-- Equality of balls of signatures, and an order, which means nothing.
CREATE FUNCTION minhash_ball_cmp(minhash_ball, minhash_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_cmp';
CREATE FUNCTION minhash_ball_eq(minhash_ball, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_eq';
CREATE FUNCTION minhash_ball_ne(minhash_ball, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_ne';
CREATE FUNCTION minhash_ball_lt(minhash_ball, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_lt';
CREATE FUNCTION minhash_ball_le(minhash_ball, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_le';
CREATE FUNCTION minhash_ball_gt(minhash_ball, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_gt';
CREATE FUNCTION minhash_ball_ge(minhash_ball, minhash_ball) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_ge';
CREATE FUNCTION minhash_ball_hash(minhash_ball) RETURNS integer
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'MODULE_PATHNAME', 'minhash_ball_hash';
CREATE FUNCTION minhash_ball_hash_extended(minhash_ball, bigint) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
    AS 'MODULE_PATHNAME', 'minhash_ball_hash_extended';
CREATE OPERATOR = (
    LEFTARG = minhash_ball, RIGHTARG = minhash_ball, FUNCTION = minhash_ball_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = minhash_ball, RIGHTARG = minhash_ball, FUNCTION = minhash_ball_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = minhash_ball, RIGHTARG = minhash_ball, FUNCTION = minhash_ball_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = minhash_ball, RIGHTARG = minhash_ball, FUNCTION = minhash_ball_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = minhash_ball, RIGHTARG = minhash_ball, FUNCTION = minhash_ball_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = minhash_ball, RIGHTARG = minhash_ball, FUNCTION = minhash_ball_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS minhash_ball_btree_ops DEFAULT FOR TYPE minhash_ball USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 minhash_ball_cmp(minhash_ball, minhash_ball),
    FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS minhash_ball_hash_ops DEFAULT FOR TYPE minhash_ball USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 minhash_ball_hash(minhash_ball),
    FUNCTION 2 minhash_ball_hash_extended(minhash_ball, bigint);

-- ------------------------------------------------------------------------------------------------
-- The access method and its operator classes
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION neardup_handler(internal) RETURNS index_am_handler LANGUAGE C PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_handler';
CREATE ACCESS METHOD neardup TYPE INDEX HANDLER neardup_handler;
COMMENT ON ACCESS METHOD neardup IS 'exact search by Hamming distance, over block-permutation keys, and for MinHash signatures, over bands';

CREATE OPERATOR CLASS fingerprint_ops DEFAULT FOR TYPE fingerprint USING neardup AS
    OPERATOR 1 <@ (fingerprint, fingerprint_ball),
    OPERATOR 2 ~= (fingerprint, fingerprint),
    OPERATOR 3 = (fingerprint, fingerprint),
    OPERATOR 4 <#> (fingerprint, fingerprint) FOR ORDER BY integer_ops;
CREATE OPERATOR CLASS fingerprint128_ops DEFAULT FOR TYPE fingerprint128 USING neardup AS
    OPERATOR 1 <@ (fingerprint128, fingerprint128_ball),
    OPERATOR 2 ~= (fingerprint128, fingerprint128),
    OPERATOR 3 = (fingerprint128, fingerprint128),
    OPERATOR 4 <#> (fingerprint128, fingerprint128) FOR ORDER BY integer_ops;
CREATE OPERATOR CLASS fingerprint256_ops DEFAULT FOR TYPE fingerprint256 USING neardup AS
    OPERATOR 1 <@ (fingerprint256, fingerprint256_ball),
    OPERATOR 2 ~= (fingerprint256, fingerprint256),
    OPERATOR 3 = (fingerprint256, fingerprint256),
    OPERATOR 4 <#> (fingerprint256, fingerprint256) FOR ORDER BY integer_ops;
CREATE OPERATOR CLASS bigint_hamming_ops FOR TYPE bigint USING neardup AS
    OPERATOR 1 <@ (bigint, bigint_ball),
    OPERATOR 2 ~= (bigint, bigint),
    OPERATOR 3 = (bigint, bigint),
    OPERATOR 4 <#> (bigint, bigint) FOR ORDER BY integer_ops;
-- Small literals are integer, and clients send small numbers as smallint.
ALTER OPERATOR FAMILY bigint_hamming_ops USING neardup ADD
    OPERATOR 3 = (bigint, integer), OPERATOR 3 = (bigint, smallint);

CREATE OPERATOR CLASS minhash_ops DEFAULT FOR TYPE minhash_signature USING neardup AS
    OPERATOR 1 <@ (minhash_signature, minhash_ball),
    OPERATOR 2 ~= (minhash_signature, minhash_signature),
    OPERATOR 3 = (minhash_signature, minhash_signature);

CREATE FUNCTION neardup_tune(similarity float8, recall float8 DEFAULT 1, hashes integer DEFAULT 128, rows_expected bigint DEFAULT 1000000,
    OUT bands integer, OUT "rows" integer, OUT exact boolean, OUT found_at_50 float8, OUT found_at_60 float8, OUT found_at_70 float8, OUT found_at_80 float8, OUT found_at_90 float8,
    OUT candidates float8, OUT bytes_per_row float8, OUT options text)
    RETURNS record LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_tune_minhash';
CREATE FUNCTION neardup_tune(bits integer, distance integer, rows_expected bigint DEFAULT 1000000,
    OUT blocks integer, OUT tables integer, OUT leading_bits integer, OUT candidates float8, OUT bytes_per_row float8, OUT options text)
    RETURNS record LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'neardup_tune_hamming';
COMMENT ON FUNCTION neardup_tune(float8, float8, integer, bigint) IS 'options for an index on signatures that finds this share (recall) of all pairs of a similarity; recall 1 finds all, exactly';
COMMENT ON FUNCTION neardup_tune(integer, integer, bigint) IS 'options for an index on fingerprints of so many bits that is fastest within a distance';

CREATE FUNCTION neardup_index_check(index regclass, heap boolean DEFAULT false,
    OUT rows bigint, OUT null_rows bigint, OUT entries bigint, OUT leaves bigint, OUT inner_pages bigint)
    RETURNS record LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000000
    AS 'MODULE_PATHNAME', 'neardup_index_check';
COMMENT ON FUNCTION neardup_index_check(regclass, boolean) IS 'checks every invariant of a neardup index and, with heap, that each row of its table stands in it once';
CREATE FUNCTION neardup_index_info(index regclass,
    OUT fingerprint_bits int, OUT scope_columns int, OUT distance int, OUT blocks int, OUT tables int, OUT leading_bits int,
    OUT height int, OUT pages bigint, OUT inner_pages bigint, OUT leaf_pages bigint, OUT empty_pages bigint, OUT unused_pages bigint,
    OUT entries bigint, OUT rows bigint, OUT null_rows bigint, OUT bytes_per_row float8, OUT leaf_fill float8, OUT candidates float8,
    OUT crowd_entries bigint, OUT crowd_table int, OUT crowd_mask varbit, OUT crowd_bits varbit, OUT crowd_row tid,
    OUT hashes int, OUT bands int, OUT band_rows int, OUT similarity float8)
    RETURNS record LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 1000000
    AS 'MODULE_PATHNAME', 'neardup_index_info';
COMMENT ON FUNCTION neardup_index_info(regclass) IS 'what a neardup index is, what it takes, and how its keys are spread; reads all of it';
-- Both raise an error unless the caller owns the index's table.

-- ------------------------------------------------------------------------------------------------
-- A whole table at once
-- ------------------------------------------------------------------------------------------------

-- They see what the query's snapshot sees and check the caller's rights on the table themselves.
CREATE FUNCTION neardup_pairs(relation regclass, distance integer, column_name name DEFAULT NULL,
    OUT a tid, OUT b tid, OUT distance integer)
    RETURNS SETOF record LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_pairs';
CREATE FUNCTION neardup_pairs(relation regclass, distance float8, column_name name DEFAULT NULL,
    OUT a tid, OUT b tid, OUT distance float8)
    RETURNS SETOF record LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_signature_pairs';
COMMENT ON FUNCTION neardup_pairs(regclass, integer, name) IS
    'all pairs of rows within a distance, found by one pass over each table of a neardup index';
COMMENT ON FUNCTION neardup_pairs(regclass, float8, name) IS
    'all pairs of rows within a distance of signatures, found by passes over a neardup index';

CREATE FUNCTION neardup_clusters(relation regclass, distance integer,
    method text DEFAULT 'star', keep text DEFAULT NULL, column_name name DEFAULT NULL,
    OUT member tid, OUT representative tid, OUT size bigint, OUT distance integer)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_clusters';
CREATE FUNCTION neardup_clusters(relation regclass, distance float8,
    method text DEFAULT 'star', keep text DEFAULT NULL, column_name name DEFAULT NULL,
    OUT member tid, OUT representative tid, OUT size bigint, OUT distance float8)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    AS 'MODULE_PATHNAME', 'neardup_signature_clusters';
COMMENT ON FUNCTION neardup_clusters(regclass, integer, text, text, name) IS
    'groups of near-duplicate rows, each with the row to keep by the order given';
COMMENT ON FUNCTION neardup_clusters(regclass, float8, text, text, name) IS
    'groups of near-duplicate rows by their signatures, each with the row to keep';

CREATE FUNCTION neardup_distance_histogram(relation regclass, max_distance integer DEFAULT 16, sample_rows integer DEFAULT 1000, column_name name DEFAULT NULL,
    OUT distance integer, OUT pairs bigint, OUT bar text, OUT a tid[], OUT b tid[])
    RETURNS SETOF record LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000 ROWS 17 AS 'MODULE_PATHNAME', 'neardup_distance_histogram';
COMMENT ON FUNCTION neardup_distance_histogram(regclass, integer, integer, name) IS 'how many pairs of rows there are at each distance, with a few of them, for choosing a distance';

-- Constraints of any radius: EXCLUDE USING neardup (ball(fp, 8) WITH ~=).
CREATE OPERATOR CLASS fingerprint_ball_ops DEFAULT FOR TYPE fingerprint_ball USING neardup AS
    OPERATOR 2 ~= (fingerprint_ball, fingerprint_ball), STORAGE fingerprint;
CREATE OPERATOR CLASS fingerprint128_ball_ops DEFAULT FOR TYPE fingerprint128_ball USING neardup AS
    OPERATOR 2 ~= (fingerprint128_ball, fingerprint128_ball), STORAGE fingerprint128;
CREATE OPERATOR CLASS fingerprint256_ball_ops DEFAULT FOR TYPE fingerprint256_ball USING neardup AS
    OPERATOR 2 ~= (fingerprint256_ball, fingerprint256_ball), STORAGE fingerprint256;
CREATE OPERATOR CLASS bigint_ball_ops DEFAULT FOR TYPE bigint_ball USING neardup AS
    OPERATOR 2 ~= (bigint_ball, bigint_ball), STORAGE bigint;

-- Columns in front of the fingerprint: a scope, within which rows are compared. Equality is that
-- of the type's hash operator class, whose hash the index keeps.
CREATE OPERATOR FAMILY integer_scope_ops USING neardup;
CREATE OPERATOR CLASS int2_scope_ops DEFAULT FOR TYPE int2 USING neardup FAMILY integer_scope_ops AS OPERATOR 3 = (int2, int2);
CREATE OPERATOR CLASS int4_scope_ops DEFAULT FOR TYPE int4 USING neardup FAMILY integer_scope_ops AS OPERATOR 3 = (int4, int4);
CREATE OPERATOR CLASS int8_scope_ops DEFAULT FOR TYPE int8 USING neardup FAMILY integer_scope_ops AS OPERATOR 3 = (int8, int8);
ALTER OPERATOR FAMILY integer_scope_ops USING neardup ADD
    OPERATOR 3 = (int2, int4), OPERATOR 3 = (int2, int8), OPERATOR 3 = (int4, int2),
    OPERATOR 3 = (int4, int8), OPERATOR 3 = (int8, int2), OPERATOR 3 = (int8, int4);
CREATE OPERATOR CLASS bool_scope_ops DEFAULT FOR TYPE boolean USING neardup AS OPERATOR 3 = (boolean, boolean);
CREATE OPERATOR CLASS text_scope_ops DEFAULT FOR TYPE text USING neardup AS OPERATOR 3 = (text, text);
CREATE OPERATOR CLASS bpchar_scope_ops DEFAULT FOR TYPE bpchar USING neardup AS OPERATOR 3 = (bpchar, bpchar);
CREATE OPERATOR CLASS name_scope_ops DEFAULT FOR TYPE name USING neardup AS OPERATOR 3 = (name, name);
CREATE OPERATOR CLASS uuid_scope_ops DEFAULT FOR TYPE uuid USING neardup AS OPERATOR 3 = (uuid, uuid);
CREATE OPERATOR CLASS bytea_scope_ops DEFAULT FOR TYPE bytea USING neardup AS OPERATOR 3 = (bytea, bytea);
CREATE OPERATOR CLASS date_scope_ops DEFAULT FOR TYPE date USING neardup AS OPERATOR 3 = (date, date);
CREATE OPERATOR CLASS timestamp_scope_ops DEFAULT FOR TYPE timestamp USING neardup AS OPERATOR 3 = (timestamp, timestamp);
CREATE OPERATOR CLASS timestamptz_scope_ops DEFAULT FOR TYPE timestamptz USING neardup AS OPERATOR 3 = (timestamptz, timestamptz);
CREATE OPERATOR CLASS numeric_scope_ops DEFAULT FOR TYPE numeric USING neardup AS OPERATOR 3 = (numeric, numeric);
CREATE OPERATOR CLASS inet_scope_ops DEFAULT FOR TYPE inet USING neardup AS OPERATOR 3 = (inet, inet);
CREATE OPERATOR CLASS oid_scope_ops DEFAULT FOR TYPE oid USING neardup AS OPERATOR 3 = (oid, oid);
CREATE OPERATOR FAMILY float_scope_ops USING neardup;
CREATE OPERATOR CLASS float4_scope_ops DEFAULT FOR TYPE float4 USING neardup
    FAMILY float_scope_ops AS OPERATOR 3 = (float4, float4);
CREATE OPERATOR CLASS float8_scope_ops DEFAULT FOR TYPE float8 USING neardup
    FAMILY float_scope_ops AS OPERATOR 3 = (float8, float8);
ALTER OPERATOR FAMILY float_scope_ops USING neardup ADD
    OPERATOR 3 = (float4, float8), OPERATOR 3 = (float8, float4);
CREATE OPERATOR CLASS char_scope_ops DEFAULT FOR TYPE "char" USING neardup
    AS OPERATOR 3 = ("char", "char");
CREATE OPERATOR CLASS time_scope_ops DEFAULT FOR TYPE time USING neardup
    AS OPERATOR 3 = (time, time);
CREATE OPERATOR CLASS timetz_scope_ops DEFAULT FOR TYPE timetz USING neardup
    AS OPERATOR 3 = (timetz, timetz);
CREATE OPERATOR CLASS interval_scope_ops DEFAULT FOR TYPE interval USING neardup
    AS OPERATOR 3 = (interval, interval);
CREATE OPERATOR CLASS macaddr_scope_ops DEFAULT FOR TYPE macaddr USING neardup
    AS OPERATOR 3 = (macaddr, macaddr);
CREATE OPERATOR CLASS macaddr8_scope_ops DEFAULT FOR TYPE macaddr8 USING neardup
    AS OPERATOR 3 = (macaddr8, macaddr8);
CREATE OPERATOR CLASS pg_lsn_scope_ops DEFAULT FOR TYPE pg_lsn USING neardup
    AS OPERATOR 3 = (pg_lsn, pg_lsn);
CREATE OPERATOR CLASS jsonb_scope_ops DEFAULT FOR TYPE jsonb USING neardup
    AS OPERATOR 3 = (jsonb, jsonb);
CREATE OPERATOR CLASS range_scope_ops DEFAULT FOR TYPE anyrange USING neardup
    AS OPERATOR 3 = (anyrange, anyrange);
CREATE OPERATOR CLASS multirange_scope_ops DEFAULT FOR TYPE anymultirange USING neardup
    AS OPERATOR 3 = (anymultirange, anymultirange);
CREATE OPERATOR CLASS enum_scope_ops DEFAULT FOR TYPE anyenum USING neardup AS OPERATOR 3 = (anyenum, anyenum);
CREATE OPERATOR CLASS array_scope_ops DEFAULT FOR TYPE anyarray USING neardup AS OPERATOR 3 = (anyarray, anyarray);

-- ------------------------------------------------------------------------------------------------
-- Deduplication
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION neardup_dedup() RETURNS trigger LANGUAGE C VOLATILE AS 'MODULE_PATHNAME', 'neardup_dedup';
COMMENT ON FUNCTION neardup_dedup() IS 'row trigger that skips, refuses, marks or logs rows that are near-duplicates of rows that are there';

CREATE FUNCTION neardup_rows_in_flight(OUT pid integer, OUT relation regclass, OUT column_name name)
    RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10
    AS 'MODULE_PATHNAME', 'neardup_rows_in_flight';
COMMENT ON FUNCTION neardup_rows_in_flight()
    IS 'rows that neardup_dedup has looked at and that do not stand in their indexes yet';
REVOKE ALL ON FUNCTION neardup_rows_in_flight() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION neardup_rows_in_flight() TO pg_monitor;
