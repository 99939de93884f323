"""Distances and estimates as drivers for Python hand them out and take them.

Usage: distances.py DRIVER CONNINFO. The table `docs` has the columns id, fp and sig, of which the
rows 1 to 3 are near one another. Each check is one query with the values expected.
"""

import asyncio
import sys

# (query, arguments, rows). An argument is written {0}, with its type where the query needs it.
QUERIES = [
    # Results are numbers in every kind of expression.
    ("SELECT a.fp <~> b.fp, a.sig <%> b.sig, minhash_similarity(a.sig, b.sig) FROM docs a, docs b"
     " WHERE a.id = 1 AND b.id = 2", [], [(2, 0.125, 0.875)]),
    ("SELECT coalesce(fp <~> NULL, 7), coalesce(sig <%> NULL, 1) FROM docs WHERE id = 1",
     [], [(7, 1.0)]),
    ("SELECT greatest(fp <~> fp, 3), greatest(sig <%> sig, 0.5) FROM docs WHERE id = 1",
     [], [(3, 0.5)]),
    ("SELECT CASE WHEN id = 1 THEN fp <~> fp ELSE 5 END, CASE WHEN id = 1 THEN sig <%> sig"
     " ELSE 0.25 END FROM docs WHERE id < 3 ORDER BY id", [], [(0, 0.0), (5, 0.25)]),
    ("SELECT fp <~> fp, sig <%> sig FROM docs WHERE id = 1 UNION SELECT 9, 0.75 ORDER BY 1",
     [], [(0, 0.0), (9, 0.75)]),
    ("SELECT max(a.fp <~> b.fp), sum(a.fp <~> b.fp), max(a.sig <%> b.sig), avg(a.sig <%> b.sig)"
     " FROM docs a, docs b WHERE a.id = 1 AND b.id < 3", [], [(2, 2, 0.125, 0.0625)]),
    ("SELECT d, e, count(*) FROM (SELECT a.fp <~> b.fp AS d, a.sig <%> b.sig AS e FROM docs a,"
     " docs b WHERE a.id < 3 AND b.id < 3) s GROUP BY d, e ORDER BY d",
     [], [(0, 0.0, 2), (2, 0.125, 2)]),
    ("SELECT array_agg((fp <~> fp)::int4), array_agg((sig <%> sig)::float8) FROM docs"
     " WHERE id = 1", [], [([0], [0.0])]),
    # Parameters that the query gives no type.
    ("SELECT b.id FROM docs a, docs b WHERE a.id = 1 AND a.fp <~> b.fp <= {0} ORDER BY 1",
     [2], [(1,), (2,)]),
    ("SELECT b.id FROM docs a, docs b WHERE a.id = 1 AND {0} > a.fp <~> b.fp ORDER BY 1",
     [2], [(1,)]),
    ("SELECT b.id FROM docs a, docs b WHERE a.id = 1 AND a.fp <~> b.fp = {0}", [2], [(2,)]),
    ("SELECT b.id FROM docs a, docs b WHERE a.id = 1 AND a.sig <%> b.sig <= {0} ORDER BY 1",
     [0.125], [(1,), (2,)]),
    ("SELECT b.id FROM docs a, docs b WHERE a.id = 1 AND {0} > a.sig <%> b.sig ORDER BY 1",
     [0.125], [(1,)]),
    ("SELECT b.id FROM docs a, docs b WHERE a.id = 1 AND minhash_similarity(a.sig, b.sig) >= {0}"
     " ORDER BY 1", [0.875], [(1,), (2,)]),
    ("SELECT b.id FROM docs a, docs b WHERE a.id = 1 AND a.sig <%> b.sig BETWEEN {0} AND {1}",
     [0.1, 0.2], [(2,)]),
    # Columns of the domains.
    ("INSERT INTO measured VALUES ({0}, {1}) RETURNING h, j", [4, 0.5], [(4, 0.5)]),
    ("SELECT h, j FROM measured WHERE h = {0} AND j = {1}", [4, 0.5], [(4, 0.5)]),
]


def check(query, expected, rows):
    rows = [tuple(row) for row in rows]
    for row in rows:
        for value in row:
            parts = value if isinstance(value, list) else [value]
            assert all(type(part) in (int, float) for part in parts), f"{query}: {rows!r}"
    assert rows == expected, f"{query}: {rows!r}, not {expected!r}"


def with_psycopg(conninfo, binary):
    import psycopg

    with psycopg.connect(conninfo, autocommit=True) as connection:
        # Prepare each query at its first execution.
        connection.prepare_threshold = 0
        placeholder = "%b" if binary else "%t"
        for query, arguments, expected in QUERIES:
            text = query.replace("%", "%%").format(*[placeholder] * len(arguments))
            check(query, expected, connection.execute(text, arguments, binary=binary).fetchall())


def with_asyncpg(settings):
    import asyncpg

    async def run():
        connection = await asyncpg.connect(
            host=settings["host"], port=int(settings["port"]), user=settings["user"],
            database=settings["dbname"])
        for query, arguments, expected in QUERIES:
            text = query.format(*[f"${n + 1}" for n in range(len(arguments))])
            check(query, expected, await connection.fetch(text, *arguments))
        await connection.close()

    asyncio.run(run())


def with_pg8000(settings):
    import pg8000.native

    socket = f"{settings['host']}/.s.PGSQL.{settings['port']}"
    connection = pg8000.native.Connection(
        settings["user"], database=settings["dbname"], unix_sock=socket)
    for query, arguments, expected in QUERIES:
        text = query.format(*[f":p{n}" for n in range(len(arguments))])
        values = {f"p{n}": argument for n, argument in enumerate(arguments)}
        check(query, expected, connection.run(text, **values))
    connection.close()


def main():
    driver, conninfo = sys.argv[1:]
    settings = dict(part.split("=", 1) for part in conninfo.split())
    if driver == "psycopg-text":
        with_psycopg(conninfo, False)
    elif driver == "psycopg-binary":
        with_psycopg(conninfo, True)
    elif driver == "asyncpg":
        with_asyncpg(settings)
    elif driver == "pg8000":
        with_pg8000(settings)
    else:
        sys.exit(f"no such driver: {driver}")
    print(f"{driver}: {len(QUERIES)} queries")


main()
