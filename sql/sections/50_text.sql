-- ------------------------------------------------------------------------------------------------
-- Text to fingerprints
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION simhash(
    body text, tokens text DEFAULT 'word', shingle integer DEFAULT 2, weight text DEFAULT 'sqrt',
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'simhash_text';
CREATE FUNCTION simhash128(
    body text, tokens text DEFAULT 'word', shingle integer DEFAULT 2, weight text DEFAULT 'sqrt',
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'simhash128_text';
COMMENT ON FUNCTION simhash(text, text, integer, text, boolean, text, text) IS
    'fingerprint of a text: similar texts have fingerprints that differ in few bits; NULL if the '
    'text has no feature';
COMMENT ON FUNCTION simhash128(text, text, integer, text, boolean, text, text) IS
    '128-bit fingerprint of a text: as simhash, with less chance in the distances; NULL if the '
    'text has no feature';

CREATE FUNCTION neardup_features(
    body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, weight text DEFAULT 'sqrt',
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep',
    OUT feature text, OUT weight real, OUT hash fingerprint
) RETURNS SETOF record
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 ROWS 200
    AS 'MODULE_PATHNAME', 'neardup_features';
COMMENT ON FUNCTION neardup_features(text, text, integer, text, boolean, text, text) IS
    'the distinct features of a text that its fingerprint is made of, each with its weight and '
    'hash, the heaviest first';
-- Called on NULL input: shingle and weight are the function's own if they are NULL. A NULL
-- elsewhere gives NULL.
CREATE FUNCTION neardup_explain(
    a text, b text, tokens text DEFAULT 'word', shingle integer DEFAULT NULL,
    weight text DEFAULT NULL, html boolean DEFAULT false, accents text DEFAULT 'keep',
    digits text DEFAULT 'keep', top integer DEFAULT 20, function text DEFAULT 'minhash64'
) RETURNS jsonb
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'neardup_explain';
COMMENT ON FUNCTION neardup_explain(
    text, text, text, integer, text, boolean, text, text, integer, text
) IS
    'two texts compared as a function compares them: distance, exact and estimated Jaccard '
    'similarity, different passages, and the heaviest features that both texts have or only '
    'one has, with their positions';
CREATE FUNCTION jaccard_similarity(
    a text, b text, tokens text DEFAULT 'word', shingle integer DEFAULT 3,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS double precision
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2000
    AS 'MODULE_PATHNAME', 'jaccard_similarity';
COMMENT ON FUNCTION jaccard_similarity(text, text, text, integer, boolean, text, text) IS
    'exact Jaccard similarity of two texts'' sets of features, from 0 to 1; NULL if neither has '
    'any';

-- Features of the texts that `confirm` compares, with the parameters of minhash64 and
-- minhash64_without.
CREATE FUNCTION _neardup_feature_hashes(
    body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS bigint[]
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', '_neardup_feature_hashes';
CREATE FUNCTION _neardup_feature_hashes_without(
    body text, without bytea, tokens text DEFAULT 'word', shingle integer DEFAULT 3,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS bigint[]
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', '_neardup_feature_hashes_without';
COMMENT ON FUNCTION _neardup_feature_hashes(text, text, integer, boolean, text, text) IS
    'hashes of the distinct features of a text';
COMMENT ON FUNCTION _neardup_feature_hashes_without(
    text, bytea, text, integer, boolean, text, text
) IS
    'hashes of the distinct features of a text that are not in a set of common features';

-- STABLE: a reload of the configuration changes it.
CREATE FUNCTION neardup_jieba_words_hash()
    RETURNS text LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'neardup_jieba_words_hash';
COMMENT ON FUNCTION neardup_jieba_words_hash() IS
    'hash of the words in neardup.jieba_user_words: to find out which fingerprints were made with '
    'others';

-- ------------------------------------------------------------------------------------------------
-- Ready-made features to fingerprints
-- ------------------------------------------------------------------------------------------------

-- Called on NULL input because weights may be NULL; the other arguments may not.
CREATE FUNCTION simhash(
    features text[], weights double precision[] DEFAULT NULL, scheme text DEFAULT 'neardup'
) RETURNS fingerprint
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'simhash_features';
CREATE FUNCTION simhash(
    hashes bigint[], weights double precision[] DEFAULT NULL, scheme text DEFAULT 'neardup'
) RETURNS fingerprint
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'simhash_hashes';
CREATE FUNCTION simhash128(features text[], weights double precision[] DEFAULT NULL)
    RETURNS fingerprint128
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'simhash128_features';
COMMENT ON FUNCTION simhash(text[], double precision[], text) IS
    'fingerprint of ready-made features, each with a weight (default 1), as this extension or '
    'another program makes it; NULL if there are none';
COMMENT ON FUNCTION simhash(bigint[], double precision[], text) IS
    'fingerprint of the hashes of features, each with a weight (default 1), as this extension or '
    'another program makes it; NULL if there are none';
COMMENT ON FUNCTION simhash128(text[], double precision[]) IS
    '128-bit fingerprint of ready-made features, each with a weight (default 1); NULL if there '
    'are none';

-- ------------------------------------------------------------------------------------------------
-- HTML, and keys of texts
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION html_text(html text) RETURNS text
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'html_text';
CREATE FUNCTION longest_sentences_hash(body text, n integer DEFAULT 3) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', 'longest_sentences_hash';
CREATE FUNCTION neardup_text_length(
    body text, html boolean DEFAULT false, accents text DEFAULT 'keep'
) RETURNS bigint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200 AS 'MODULE_PATHNAME', 'neardup_text_length';
COMMENT ON FUNCTION neardup_text_length(text, boolean, text) IS
    'number of characters of a text in the form that is compared: folded, white space of any '
    'length one space, markup left out of HTML; for choosing the copy to keep';
COMMENT ON FUNCTION html_text(text) IS
    'the text of an HTML page as a reader sees it: without scripts, styles, markup and what is '
    'hidden';
COMMENT ON FUNCTION longest_sentences_hash(text, integer) IS
    'hash of the longest sentences of a text: equal for copies that differ in what frames them '
    'only; NULL if the text has no word';

-- ------------------------------------------------------------------------------------------------
-- Fingerprints whose distance estimates the Jaccard similarity
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION minhash64(
    body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false,
    accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash64_text';
CREATE FUNCTION minhash64(features text[]) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash64_features';
CREATE FUNCTION minhash64(vector tsvector) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'minhash64_tsvector';
CREATE FUNCTION minhash128(
    body text, tokens text DEFAULT 'word', shingle integer DEFAULT 3, html boolean DEFAULT false,
    accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash128_text';
CREATE FUNCTION minhash128(features text[]) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'minhash128_features';
CREATE FUNCTION minhash128(vector tsvector) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'minhash128_tsvector';
COMMENT ON FUNCTION minhash64(text, text, integer, boolean, text, text) IS
    'fingerprint of a text''s set of features, a bit of each of many minima: of a Jaccard '
    'similarity J, 32 * (1 - J) bits are expected to differ; NULL if it has no feature';
COMMENT ON FUNCTION minhash64(text[]) IS
    'fingerprint of a set of ready-made features, a bit of each of many minima; NULL if there are '
    'none';
COMMENT ON FUNCTION minhash64(tsvector) IS
    'fingerprint of the set of lexemes that text search finds in a document, a bit of each of '
    'many minima; NULL if there are none';
COMMENT ON FUNCTION minhash128(text, text, integer, boolean, text, text) IS
    '128-bit fingerprint of a text''s set of features, a bit of each of many minima: of a Jaccard '
    'similarity J, 64 * (1 - J) bits are expected to differ; NULL if it has no feature';
COMMENT ON FUNCTION minhash128(text[]) IS
    '128-bit fingerprint of a set of ready-made features, a bit of each of many minima; NULL if '
    'there are none';
COMMENT ON FUNCTION minhash128(tsvector) IS
    '128-bit fingerprint of the set of lexemes that text search finds in a document, a bit of '
    'each of many minima; NULL if there are none';

-- ------------------------------------------------------------------------------------------------
-- Features from elsewhere: of text search, and from rows
-- ------------------------------------------------------------------------------------------------

CREATE FUNCTION simhash(vector tsvector) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'simhash_tsvector';
CREATE FUNCTION simhash128(vector tsvector) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'simhash128_tsvector';
COMMENT ON FUNCTION simhash(tsvector) IS
    'fingerprint of the lexemes that text search finds in a document, weighted by their frequency '
    'and labels; NULL if there are none';
COMMENT ON FUNCTION simhash128(tsvector) IS
    '128-bit fingerprint of the lexemes that text search finds in a document, weighted by their '
    'frequency and labels; NULL if there are none';

-- Features in rows. The sums are exact, so neither the order of the rows matters nor how
-- parallel workers share them. There is no form with one argument: f(x ORDER BY a, b) for
-- f(x, a ORDER BY b) would then be wrong without an error.

CREATE FUNCTION _neardup_simhash_agg_add(internal, text, float8) RETURNS internal
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_simhash_agg_add';
CREATE FUNCTION _neardup_simhash_agg_merge(internal, internal) RETURNS internal
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_simhash_agg_merge';
CREATE FUNCTION _neardup_simhash_agg_save(internal) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '_neardup_simhash_agg_save';
CREATE FUNCTION _neardup_simhash_agg_load(bytea, internal) RETURNS internal
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '_neardup_simhash_agg_load';
CREATE FUNCTION _neardup_simhash_agg_finish(internal) RETURNS fingerprint
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', '_neardup_simhash_agg_finish';
CREATE FUNCTION _neardup_simhash128_agg_add(internal, text, float8) RETURNS internal
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_simhash128_agg_add';
CREATE FUNCTION _neardup_simhash128_agg_merge(internal, internal) RETURNS internal
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_simhash128_agg_merge';
CREATE FUNCTION _neardup_simhash128_agg_finish(internal) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_simhash128_agg_finish';
COMMENT ON FUNCTION _neardup_simhash_agg_add(internal, text, float8) IS
    'part of simhash_agg: adds a row';
COMMENT ON FUNCTION _neardup_simhash_agg_merge(internal, internal) IS
    'part of simhash_agg: merges the sums of two processes';
COMMENT ON FUNCTION _neardup_simhash_agg_save(internal) IS
    'part of simhash_agg, simhash128_agg and neardup_common_features: state for another process';
COMMENT ON FUNCTION _neardup_simhash_agg_load(bytea, internal) IS
    'part of simhash_agg, simhash128_agg and neardup_common_features: state of another process';
COMMENT ON FUNCTION _neardup_simhash_agg_finish(internal) IS 'part of simhash_agg: the fingerprint';
COMMENT ON FUNCTION _neardup_simhash128_agg_add(internal, text, float8) IS
    'part of simhash128_agg: adds a row';
COMMENT ON FUNCTION _neardup_simhash128_agg_merge(internal, internal) IS
    'part of simhash128_agg: merges the sums of two processes';
COMMENT ON FUNCTION _neardup_simhash128_agg_finish(internal) IS
    'part of simhash128_agg: the fingerprint';

CREATE AGGREGATE simhash_agg(feature text, weight float8) (
    SFUNC = _neardup_simhash_agg_add, STYPE = internal, SSPACE = 640,
    FINALFUNC = _neardup_simhash_agg_finish,
    COMBINEFUNC = _neardup_simhash_agg_merge, SERIALFUNC = _neardup_simhash_agg_save,
    DESERIALFUNC = _neardup_simhash_agg_load, PARALLEL = SAFE
);
CREATE AGGREGATE simhash128_agg(feature text, weight float8) (
    SFUNC = _neardup_simhash128_agg_add, STYPE = internal, SSPACE = 1152,
    FINALFUNC = _neardup_simhash128_agg_finish,
    COMBINEFUNC = _neardup_simhash128_agg_merge, SERIALFUNC = _neardup_simhash_agg_save,
    DESERIALFUNC = _neardup_simhash_agg_load, PARALLEL = SAFE
);
COMMENT ON AGGREGATE simhash_agg(text, float8) IS
    'fingerprint of features in rows, each with a weight; NULL if there are none';
COMMENT ON AGGREGATE simhash128_agg(text, float8) IS
    '128-bit fingerprint of features in rows, each with a weight; NULL if there are none';

-- ------------------------------------------------------------------------------------------------
-- Text that many documents share, left out
-- ------------------------------------------------------------------------------------------------

-- A set of features is a bytea. It is read and prepared once for all rows of a query.
CREATE FUNCTION simhash_without(
    body text, without bytea, tokens text DEFAULT 'word', shingle integer DEFAULT 2,
    weight text DEFAULT 'sqrt', html boolean DEFAULT false, accents text DEFAULT 'keep',
    digits text DEFAULT 'keep'
) RETURNS fingerprint
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1500
    AS 'MODULE_PATHNAME', 'simhash_without';
CREATE FUNCTION simhash128_without(
    body text, without bytea, tokens text DEFAULT 'word', shingle integer DEFAULT 2,
    weight text DEFAULT 'sqrt', html boolean DEFAULT false, accents text DEFAULT 'keep',
    digits text DEFAULT 'keep'
) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1500
    AS 'MODULE_PATHNAME', 'simhash128_without';
CREATE FUNCTION minhash64_without(
    body text, without bytea, tokens text DEFAULT 'word', shingle integer DEFAULT 3,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS fingerprint
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1500
    AS 'MODULE_PATHNAME', 'minhash64_without';
CREATE FUNCTION minhash128_without(
    body text, without bytea, tokens text DEFAULT 'word', shingle integer DEFAULT 3,
    html boolean DEFAULT false, accents text DEFAULT 'keep', digits text DEFAULT 'keep'
) RETURNS fingerprint128
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1500
    AS 'MODULE_PATHNAME', 'minhash128_without';
COMMENT ON FUNCTION simhash_without(text, bytea, text, integer, text, boolean, text, text) IS
    'fingerprint of the features of a text that a set of common features does not have; '
    'NULL if there are none';
COMMENT ON FUNCTION simhash128_without(text, bytea, text, integer, text, boolean, text, text) IS
    '128-bit fingerprint of the features of a text that a set of common features does not have; '
    'NULL if there are none';
COMMENT ON FUNCTION minhash64_without(text, bytea, text, integer, boolean, text, text) IS
    'fingerprint of the features of a text that a set of common features does not have; '
    'NULL if there are none';
COMMENT ON FUNCTION minhash128_without(text, bytea, text, integer, boolean, text, text) IS
    '128-bit fingerprint of the features of a text that a set of common features does not have; '
    'NULL if there are none';

CREATE FUNCTION _neardup_common_features_add(internal, text, float8) RETURNS internal
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', '_neardup_common_features_add';
CREATE FUNCTION _neardup_common_features_add(internal, text, float8, text, integer)
    RETURNS internal LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', '_neardup_common_features_add';
CREATE FUNCTION _neardup_common_features_add(
    internal, text, float8, text, integer, boolean, text, text
) RETURNS internal LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1000
    AS 'MODULE_PATHNAME', '_neardup_common_features_add';
CREATE FUNCTION _neardup_common_features_merge(internal, internal) RETURNS internal
    LANGUAGE C IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE
    AS 'MODULE_PATHNAME', '_neardup_common_features_merge';
CREATE FUNCTION _neardup_common_features_finish(internal) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000
    AS 'MODULE_PATHNAME', '_neardup_common_features_finish';
COMMENT ON FUNCTION _neardup_common_features_add(internal, text, float8) IS
    'part of neardup_common_features: adds a document';
COMMENT ON FUNCTION _neardup_common_features_add(internal, text, float8, text, integer) IS
    'part of neardup_common_features: adds a document';
COMMENT ON FUNCTION _neardup_common_features_add(
    internal, text, float8, text, integer, boolean, text, text
) IS
    'part of neardup_common_features: adds a document';
COMMENT ON FUNCTION _neardup_common_features_merge(internal, internal) IS
    'part of neardup_common_features: merges the documents of two processes';
COMMENT ON FUNCTION _neardup_common_features_finish(internal) IS
    'part of neardup_common_features: the set';
-- The planner is told a size by which it sorts groups instead of keeping them all in memory.
CREATE AGGREGATE neardup_common_features(
    body text, share float8
) (
    SFUNC = _neardup_common_features_add, STYPE = internal, SSPACE = 16000000,
    FINALFUNC = _neardup_common_features_finish, COMBINEFUNC = _neardup_common_features_merge,
    SERIALFUNC = _neardup_simhash_agg_save, DESERIALFUNC = _neardup_simhash_agg_load,
    PARALLEL = SAFE
);
CREATE AGGREGATE neardup_common_features(
    body text, share float8, tokens text, shingle integer
) (
    SFUNC = _neardup_common_features_add, STYPE = internal, SSPACE = 16000000,
    FINALFUNC = _neardup_common_features_finish, COMBINEFUNC = _neardup_common_features_merge,
    SERIALFUNC = _neardup_simhash_agg_save, DESERIALFUNC = _neardup_simhash_agg_load,
    PARALLEL = SAFE
);
CREATE AGGREGATE neardup_common_features(
    body text, share float8, tokens text, shingle integer, html boolean, accents text,
    digits text
) (
    SFUNC = _neardup_common_features_add, STYPE = internal, SSPACE = 16000000,
    FINALFUNC = _neardup_common_features_finish, COMBINEFUNC = _neardup_common_features_merge,
    SERIALFUNC = _neardup_simhash_agg_save, DESERIALFUNC = _neardup_simhash_agg_load,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE neardup_common_features(text, float8) IS
    'set of the features that more than a share of all documents have, for the parameter without '
    'of fingerprints';
COMMENT ON AGGREGATE neardup_common_features(text, float8, text, integer) IS
    'set of the features that more than a share of all documents have, for the parameter without '
    'of fingerprints';
COMMENT ON AGGREGATE neardup_common_features(text, float8, text, integer, boolean, text, text) IS
    'set of the features that more than a share of all documents have, for the parameter without '
    'of fingerprints';
