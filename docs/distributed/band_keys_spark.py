"""Keys of exported signatures in Spark.

band_keys(bands, rows) returns an SQL expression for the keys of a column `minima`. The keys are
those of neardup_band_keys(sig, bands, rows) in PostgreSQL, up to 128 bands. `minima` are
minhash_values(sig) of a signature with the scheme neardup1 and the seed 0. Arithmetic must keep the
lowest 64 bits: spark.conf.set("spark.sql.ansi.enabled", False).
"""


def mix(x):
    """A 64-bit hash of a number: the finalizer of splitmix64."""
    for shift, factor in (30, -4658895280553007687), (27, -7723592293110705685):
        x = f"(({x} ^ shiftrightunsigned({x}, {shift})) * {factor})"
    return f"({x} ^ shiftrightunsigned({x}, 31))"


def band_keys(bands, rows):
    """A key has the number of the band, rows - 1, and 48 bits of a hash of the band's values. The
    hash begins with a hash of the scheme and the seed."""
    return f"""if(minima IS NULL, NULL, transform(sequence(0L, {bands - 1}L), band ->
        shiftleft(band, 56) + shiftleft({rows - 1}L, 48)
        + aggregate(slice(minima, CAST(band AS INT) * {rows} + 1, {rows}),
            {mix("(1513209474796486656 ^ band)")},
            (hash, value) -> {mix("(hash ^ value)")} - 7046029254386353131,
            hash -> shiftrightunsigned({mix("hash")}, 16))))"""
