"""Fingerprints of near-duplicate documents: those of the PostgreSQL extension neardup.

The functions have the names, parameters and results of those in SQL. A text, a list of features or
a value to compare may be None, and the result is None then, as NULL gives NULL. Fingerprints are
equal to the server's, so that they can be computed on either side.

>>> import neardup
>>> a = neardup.minhash64("The library reopens on Monday after two years.")
>>> b = neardup.minhash64("The library reopens on Monday, after two years!")
>>> neardup.hamming_distance(a, b)
0

Hashing of texts from 2 kB on releases the interpreter's lock, so that threads run in parallel; it
can be interrupted. minhash64_many and so on take any iterable of texts, release the lock for all of
them, and compute in several threads. An unknown option is a ValueError that lists the known ones.

Types for drivers and ORMs are in neardup.psycopg, neardup.asyncpg, neardup.sqlalchemy and
neardup.django.
"""

from ._neardup import (
    Fingerprint,
    Fingerprint128,
    Fingerprint256,
    MinHashSignature,
    __version__,
    containment,
    fingerprint_similarity,
    hamming_distance,
    html_text,
    jaccard_similarity,
    longest_sentences_hash,
    minhash,
    minhash64,
    minhash64_features,
    minhash64_many,
    minhash128,
    minhash128_features,
    minhash128_many,
    minhash_distance,
    minhash_features,
    minhash_many,
    minhash_similarity,
    neardup_band_keys,
    neardup_radius,
    set_jieba_user_words,
    simhash,
    simhash128,
    simhash128_features,
    simhash128_many,
    simhash_features,
    simhash_hashes,
    simhash_many,
    text_length,
)

__all__ = [
    "Fingerprint",
    "Fingerprint128",
    "Fingerprint256",
    "MinHashSignature",
    "__version__",
    "containment",
    "fingerprint_similarity",
    "hamming_distance",
    "html_text",
    "jaccard_similarity",
    "longest_sentences_hash",
    "minhash",
    "minhash64",
    "minhash64_features",
    "minhash64_many",
    "minhash128",
    "minhash128_features",
    "minhash128_many",
    "minhash_distance",
    "minhash_features",
    "minhash_many",
    "minhash_similarity",
    "neardup_band_keys",
    "neardup_radius",
    "set_jieba_user_words",
    "simhash",
    "simhash128",
    "simhash128_features",
    "simhash128_many",
    "simhash_features",
    "simhash_hashes",
    "simhash_many",
    "text_length",
]
