-- Keys of exported signatures in DuckDB: band_keys(minima, bands, rows) returns the same as
-- neardup_band_keys(sig, bands, rows) in PostgreSQL, up to 128 bands. minima are
-- minhash_values(sig) of a signature with the scheme neardup1 and the seed 0.

-- A 64-bit hash of a number: the finalizer of splitmix64.
CREATE MACRO low64(x) AS (x & 18446744073709551615)::UBIGINT;
CREATE MACRO mix1(x) AS low64(xor(x, x >> 30)::UHUGEINT * 13787848793156543929);
CREATE MACRO mix2(x) AS low64(xor(x, x >> 27)::UHUGEINT * 10723151780598845931);
CREATE MACRO mix3(x) AS xor(x, x >> 31);
CREATE MACRO mix(x) AS mix3(mix2(mix1(x)));

-- A key has the number of the band, rows - 1, and 48 bits of a hash of the band's values. The hash
-- begins with a hash of the scheme and the seed.
CREATE MACRO band_keys(minima, bands, rows) AS CASE WHEN minima IS NOT NULL THEN
    list_transform(range(bands), lambda band:
        (band << 56) + ((rows - 1)::BIGINT << 48) + (mix(list_reduce(
            minima[band * rows + 1 : band * rows + rows]::UBIGINT[],
            lambda hash, value: low64(mix(xor(hash, value))::UHUGEINT + 11400714819323198485),
            mix(xor(1513209474796486656::UBIGINT, band::UBIGINT)))) >> 16)::BIGINT)
    END;
