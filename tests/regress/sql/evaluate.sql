-- neardup_evaluate: precision and recall by labelled pairs.
SELECT * FROM neardup_evaluate('{0,1,1,2,3,8}', '{t,t,f,t,f,t}');
-- By definition: weights, NULL labels, NULL distances, any order
CREATE TEMP TABLE labelled AS
SELECT i % 7 + CASE WHEN i % 3 = 0 THEN 0.5 ELSE 0 END AS distance, i % 5 > i % 7 AS is_duplicate,
    (i % 4)::float8 / 2 AS weight FROM generate_series(1, 300) i;
UPDATE labelled SET distance = NULL WHERE weight = 1 AND distance > 6;
UPDATE labelled SET is_duplicate = NULL WHERE weight = 1.5 AND distance = 2;
SELECT e.radius, e.pairs, e.duplicates, round(e.precision::numeric, 4) AS precision,
    round(e.recall::numeric, 4) AS recall, round(e.f1::numeric, 4) AS f1,
    e.pairs = count(*) FILTER (WHERE l.distance <= e.radius) AND e.duplicates = count(*) FILTER
    (WHERE l.distance <= e.radius AND is_duplicate) AS numbers,
    abs(e.precision - sum(weight) FILTER (WHERE l.distance <= e.radius AND is_duplicate)
    / sum(weight) FILTER (WHERE l.distance <= e.radius)) < 1e-9 AS same_precision,
    abs(e.recall - sum(weight) FILTER (WHERE l.distance <= e.radius AND is_duplicate)
    / sum(weight) FILTER (WHERE is_duplicate)) < 1e-9 AS same_recall,
    abs(e.f1 - 2 * e.precision * e.recall / (e.precision + e.recall)) < 1e-9 AS same_f1
FROM (SELECT array_agg(distance), array_agg(is_duplicate), array_agg(weight) FROM labelled)
    x (d, l, w), neardup_evaluate(d, l, w) e, labelled l
WHERE l.is_duplicate IS NOT NULL
GROUP BY e.radius, e.pairs, e.duplicates, e.precision, e.recall, e.f1 ORDER BY 1;
-- Equal weights change nothing; distances of each kind
SELECT count(*) AS lines, bool_and(a = b) AS same
FROM neardup_evaluate('{3,1,2}', '{f,t,t}') WITH ORDINALITY a (d, p, t, x, y, z, n)
JOIN neardup_evaluate('{3,1,2}', '{f,t,t}', '{2,2,2}') WITH ORDINALITY b (d, p, t, x, y, z, n)
    USING (n);
SELECT e.* FROM (SELECT array_agg(simhash(a) <~> simhash(b)), array_agg(label)
    FROM (VALUES ('one two', 'One, two', true), ('a b', 'c d', false)) t (a, b, label)) x (d, l),
    neardup_evaluate(d, l) e;
SELECT e.* FROM (SELECT array_agg(minhash(a) <%> minhash(b)), array_agg(label)
    FROM (VALUES ('one two', 'One, two', true), ('a b', 'c d', false)) t (a, b, label)) x (d, l),
    neardup_evaluate(d, l) e;
-- The smallest radius that misses few duplicates
SELECT * FROM neardup_evaluate('{0,1,1,2,3,8}', '{t,t,f,t,f,t}', max_loss => 0.25);
SELECT * FROM neardup_evaluate('{0,1,1,2,3,8}', '{t,t,f,t,f,t}', max_loss => 0.2);
SELECT * FROM neardup_evaluate('{0,1,1,2,3,8}', '{t,t,f,t,f,t}', max_loss => 1);
SELECT * FROM neardup_evaluate('{0,1,1,2,3,NULL}', '{t,t,f,t,f,t}', max_loss => 0);
SELECT * FROM neardup_evaluate('{1,2}', '{f,f}', max_loss => 0.01);
-- By definition, and losses that are no sums of powers of two
SELECT bool_and(e.radius = (SELECT min(r.radius) FROM neardup_evaluate(d, l) r
    WHERE r.recall > 1 - loss - 1e-6)) AS smallest, count(*)
FROM (SELECT array_agg(i::float8), array_agg(true) FROM generate_series(1, 100) i) x (d, l),
    generate_series(0, 0.99, 0.01) loss, neardup_evaluate(d, l, max_loss => loss) e;
-- Undefined results
SELECT * FROM neardup_evaluate('{}', '{}');
SELECT * FROM neardup_evaluate('{1,2}', '{f,f}');
SELECT * FROM neardup_evaluate('{1,NULL,infinity}', '{t,t,f}', '{0,1,1}');
-- Refused
SELECT * FROM neardup_evaluate(NULL, '{t}');
\echo :SQLSTATE
SELECT * FROM neardup_evaluate('{1}', '{t,f}');
\echo :SQLSTATE
SELECT * FROM neardup_evaluate('{1}', '{t}', '{1,2}');
SELECT * FROM neardup_evaluate('{1}', '{t}', '{-1}');
\echo :SQLSTATE
SELECT * FROM neardup_evaluate('{1}', '{t}', '{NULL}');
\echo :SQLSTATE
SELECT * FROM neardup_evaluate('{NaN}', '{t}');
\echo :SQLSTATE
SELECT * FROM neardup_evaluate('{1}', '{t}', max_loss => 1.5);
\echo :SQLSTATE
SELECT * FROM neardup_evaluate('{1}', '{t}', max_loss => 'NaN');
