-- Options by what an index is to find.
CREATE SCHEMA tune_test;
SET search_path = tune_test, public;
-- As many digits as all machines agree in.
SET extra_float_digits = -10;
\x on
SELECT * FROM neardup_tune(0.8);
SELECT * FROM neardup_tune(0.8, recall => 0.95);
SELECT * FROM neardup_tune(0.5, recall => 0.99, hashes => 256, rows_expected => 100000000);
SELECT * FROM neardup_tune_radius(64, 3);
SELECT * FROM neardup_tune_radius(bits => 256, distance => 8, rows_expected => 10000000);
\x off
-- Costs of one radius in indexes of several distances, and in one with default options.
SELECT distance, tables, round(bytes_per_row) AS bytes_per_row, round(search_cost) AS search_cost,
    round(default_cost) AS default_cost
FROM generate_series(2, 8) distance, neardup_tune_radius(64, distance, 10000000, radius => 8);
SELECT search_cost = default_cost AS is_default FROM neardup_tune_radius(128, 6, radius => 12);
SELECT search_cost FROM neardup_tune_radius(64, 3, radius => -1);
SELECT neardup_tune_radius(64, 3, NULL) IS NULL AS of_null,
    neardup_tune_radius(NULL::int, 3) IS NULL AS of_nulls,
    neardup_tune_radius(64, 3, 1000, NULL) = neardup_tune_radius(64, 3, 1000) AS within_distance;
-- More rows never make fewer blocks, also where no number of them is enough.
SELECT rows, blocks, tables, leading_bits FROM unnest(ARRAY[1, 20000000, 50000000, 70000000,
    9000000000000000000]) rows, neardup_tune_radius(64, 6, rows);
SELECT rows, options FROM unnest(ARRAY[100000, 10000000, 100000000]) rows,
    neardup_tune_radius(64, 8, rows);
-- What it proposes can be made, and finds what it says.
CREATE TABLE t (sig minhash_signature);
SELECT format('CREATE INDEX ON t USING neardup (sig) %s', options) FROM neardup_tune(0.7) \gexec
SELECT format('CREATE INDEX ON t USING neardup (sig) %s', options) FROM neardup_tune(0.7, 0.9,
    256) \gexec
-- The recall asked for is reached.
SELECT bool_and((SELECT 1 - (1 - s ^ rows) ^ bands >= r FROM neardup_tune(s, r)))
FROM unnest(ARRAY[0.5, 0.7, 0.8, 0.9]::float8[]) s, unnest(ARRAY[0.5, 0.9, 0.99, 0.999]::float8[])
    r;
SELECT neardup_tune(0);
SELECT neardup_tune(64, 3);
SELECT neardup_tune(64::smallint, 3::smallint);
SELECT neardup_tune(0.8, 'NaN');
SELECT neardup_tune(0.8, hashes => 5);
SELECT neardup_tune(0.8, rows_expected => 0);
SELECT neardup_tune(0.01, 0.999999);
SELECT neardup_tune_radius(63, 3);
SELECT neardup_tune_radius(64, 9);
SELECT neardup_tune_radius(64, -1);

SET client_min_messages = warning;
DROP SCHEMA tune_test CASCADE;
