-- Options by what an index is to find.
CREATE SCHEMA tune_test;
SET search_path = tune_test, public;
-- As many digits as all machines agree in.
SET extra_float_digits = -10;
\x on
SELECT * FROM neardup_tune(0.8);
SELECT * FROM neardup_tune(0.8, recall => 0.95);
SELECT * FROM neardup_tune(0.5, recall => 0.99, hashes => 256, rows_expected => 100000000);
SELECT * FROM neardup_tune(64, 3);
SELECT * FROM neardup_tune(bits => 256, distance => 8, rows_expected => 10000000);
\x off
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
SELECT neardup_tune(0.8, 'NaN');
SELECT neardup_tune(0.8, hashes => 5);
SELECT neardup_tune(0.8, rows_expected => 0);
SELECT neardup_tune(0.01, 0.999999);
SELECT neardup_tune(63, 3);
SELECT neardup_tune(64, 9);
SELECT neardup_tune(64, -1);

SET client_min_messages = warning;
DROP SCHEMA tune_test CASCADE;
