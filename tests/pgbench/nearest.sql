\set near random(1, 249) * 20 + random(1, 19)
\set rows random(1, 40)
SELECT agree('nearest of docs',
    (SELECT array_agg(d) FROM (SELECT fp <#> fp_of(:near) AS d FROM docs
    ORDER BY fp <~> fp_of(:near) LIMIT :rows) AS n),
    (SELECT array_agg(d) FROM (SELECT fp <#> fp_of(:near) AS d FROM docs
    ORDER BY (fp <#> fp_of(:near)) + 0 LIMIT :rows) AS n));
SELECT agree('nearest of wide',
    (SELECT array_agg(d) FROM (SELECT fp <#> wide_of(:near) AS d FROM wide
    ORDER BY fp <~> wide_of(:near) LIMIT :rows) AS n),
    (SELECT array_agg(d) FROM (SELECT fp <#> wide_of(:near) AS d FROM wide
    ORDER BY (fp <#> wide_of(:near)) + 0 LIMIT :rows) AS n));
