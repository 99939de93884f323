\set near random(1, 249) * 20 + random(1, 19)
\set radius random(0, 20)
SELECT agree('probe of docs',
    (SELECT array_agg(id ORDER BY id) FROM docs WHERE fp <@ ball(fp_of(:near), :radius)),
    (SELECT array_agg(id ORDER BY id) FROM docs WHERE fp <#> fp_of(:near) <= :radius));
SELECT agree('probe of wide',
    (SELECT array_agg(id ORDER BY id) FROM wide WHERE fp <@ ball(wide_of(:near), 4 * :radius)),
    (SELECT array_agg(id ORDER BY id) FROM wide WHERE fp <#> wide_of(:near) <= 4 * :radius));
SELECT agree('probe of a site',
    (SELECT array_agg(id ORDER BY id) FROM scoped WHERE site = 'site 3' AND fp <@ ball(fp_of(:near),
    :radius)),
    (SELECT array_agg(id ORDER BY id) FROM scoped WHERE site || '' = 'site 3'
    AND fp <#> fp_of(:near) <= :radius));
SELECT agree('probe of signatures',
    (SELECT array_agg(id ORDER BY id) FROM signed WHERE fp <@ minhash_ball(signature_of(:near),
    :radius / 64.0)),
    (SELECT array_agg(id ORDER BY id) FROM signed WHERE minhash_similarity(signature_of(:near),
    (fp::text)::minhash_signature) >= 1 - :radius / 64.0));
