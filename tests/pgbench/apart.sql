\set rows random_zipfian(1, 50, 1.5)
\set part random(0, 99)
SELECT quietly('INSERT INTO apart SELECT id, apart_of(id)
    FROM (SELECT nextval(''ids'') AS id FROM generate_series(1, :rows)) AS new
    ON CONFLICT DO NOTHING');
SELECT quietly('UPDATE apart SET fp = apart_of(id + :rows) WHERE id % 100 = :part');
SELECT agree('duplicates', ARRAY[(SELECT count(*) FROM apart AS a JOIN apart AS b
    ON a.fp <@ ball(b.fp, 3) AND a.id < b.id WHERE b.id % 100 = :part)], ARRAY[0]);
