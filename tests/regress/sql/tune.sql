-- Options for the radius that an index must find.
CREATE SCHEMA tune_test;
SET search_path = tune_test, public;
-- The digits in which all machines agree.
SET extra_float_digits = -10;
\x on
SELECT * FROM neardup_tune(0.8);
SELECT * FROM neardup_tune(0.8, recall => 0.95);
SELECT * FROM neardup_tune(0.5, recall => 0.99, hashes => 256, rows_expected => 100000000);
SELECT * FROM neardup_tune_radius(64, 3);
SELECT * FROM neardup_tune_radius(bits => 256, radius => 8, rows_expected => 10000000);
\x off
-- Costs of searches within 8 bits in indexes of several radii, and in one with default options.
SELECT radius, guaranteed_radius, blocks, permutations, round(bytes_per_row) AS bytes_per_row,
    round(search_cost) AS search_cost, round(default_cost) AS default_cost
FROM generate_series(2, 8) radius, neardup_tune_radius(64, radius, 10000000, search_radius => 8);
SELECT search_cost = default_cost AS is_default
    FROM neardup_tune_radius(128, 12, search_radius => 6);
SELECT search_cost FROM neardup_tune_radius(64, 3, search_radius => -1);
-- No radius has cheaper searches in an index for another radius, except for ties.
SELECT bool_and(own.search_cost <= 1.03 * other.search_cost) AS is_best
FROM generate_series(0, 16, 2) radius, generate_series(0, 16, 2) others,
    neardup_tune_radius(64, radius, 10000000) own,
    neardup_tune_radius(64, others, 10000000, search_radius => radius) other;
SELECT neardup_tune_radius(64, 3, NULL) IS NULL AS of_null,
    neardup_tune_radius(NULL::int, 3) IS NULL AS of_nulls,
    neardup_tune_radius(64, 3, 1000, NULL) = neardup_tune_radius(64, 3, 1000) AS within_radius;
-- Few rows get the layout of a million, and any number has one.
SELECT rows, guaranteed_radius, blocks, permutations, leading_bits
FROM unnest(ARRAY[1, 999999, 1000000, 20000000, 100000000, 9000000000000000000]) rows,
    neardup_tune_radius(64, 6, rows);
SELECT rows, options FROM unnest(ARRAY[100000, 10000000, 100000000]) rows,
    neardup_tune_radius(64, 8, rows);
-- An index with the proposed options can be built, and has the stated recall.
CREATE TABLE t (sig minhash_signature);
SELECT format('CREATE INDEX ON t USING neardup (sig) %s', options) FROM neardup_tune(0.7) \gexec
SELECT format('CREATE INDEX ON t USING neardup (sig) %s', options) FROM neardup_tune(0.7, 0.9,
    256) \gexec
-- The requested recall is reached.
SELECT bool_and((SELECT 1 - (1 - s ^ rows) ^ bands >= r FROM neardup_tune(s, r)))
FROM unnest(ARRAY[0.5, 0.7, 0.8, 0.9]::float8[]) s, unnest(ARRAY[0.5, 0.9, 0.99, 0.999]::float8[])
    r;
-- A warning about an index that does not pay, with an alternative if there is one.
SELECT bands, exact, options FROM neardup_tune(0.3);
SELECT bands, exact, options FROM neardup_tune(0.5);
SELECT bands, exact, options FROM neardup_tune(0.1, 0.9);
SELECT bands, exact, options FROM neardup_tune(0.3, 0.9);
SELECT neardup_tune(0);
SELECT neardup_tune(64, 3);
SELECT neardup_tune(64::smallint, 3::smallint);
SELECT neardup_tune(0.8, 'NaN');
SELECT neardup_tune(0.8, hashes => 5);
SELECT neardup_tune(0.8, rows_expected => 0);
SELECT neardup_tune(0.01, 0.999999);
SELECT neardup_tune_radius(63, 3);
SELECT neardup_tune_radius(64, 65);
SELECT neardup_tune_radius(64, -1);

SET client_min_messages = warning;
DROP SCHEMA tune_test CASCADE;
