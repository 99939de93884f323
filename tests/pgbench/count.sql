\set near random(1, 249) * 20 + random(1, 19)
\set radius random(0, 12)
SELECT agree('count of docs',
    ARRAY[(SELECT count(fp) FROM docs WHERE fp <@ ball(fp_of(:near), :radius))],
    ARRAY[(SELECT count(id) FROM docs WHERE fp <#> fp_of(:near) <= :radius)]);
SELECT agree('all of docs', ARRAY[(SELECT count(fp) FROM docs)], ARRAY[(SELECT count(id) FROM docs
    WHERE fp IS NOT NULL)]);
