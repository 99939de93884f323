"""Sends calls of the functions of neardup by drivers for Python.

Usage: sent_calls.py DRIVER CONNINFO. The table `cases` has queries with $1 and so on, and the
values: text, or numbers as text. The result of each call is stored there, and NULL for an error.
"""

import asyncio
import re
import sys

CASES = "SELECT number, query, kinds, sent FROM cases ORDER BY number"
RESULT = "UPDATE cases SET result = {} WHERE number = {}"


def values_of(kinds, sent):
    return [text if kind == "text" else float(text) if "." in text else int(text)
            for kind, text in zip(kinds, sent)]


def shown(result):
    return "NULL" if result is None else result


def with_psycopg(conninfo, binary):
    import psycopg

    placeholder = "%b" if binary else "%t"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for number, query, kinds, sent in connection.execute(CASES).fetchall():
            # The parameters of a query are in the order of their numbers.
            text = re.sub(r"\$[0-9]", placeholder, query.replace("%", "%%"))
            try:
                result = shown(connection.execute(text, values_of(kinds, sent)).fetchone()[0])
            except psycopg.Error:
                continue
            connection.execute(RESULT.format("%s", "%s"), [result, number])


def with_asyncpg(settings):
    import asyncpg

    async def run():
        connection = await asyncpg.connect(
            host=settings["host"], port=int(settings["port"]), user=settings["user"],
            database=settings["dbname"])
        for number, query, kinds, sent in await connection.fetch(CASES):
            try:
                result = shown(await connection.fetchval(query, *values_of(kinds, sent)))
            except (asyncpg.PostgresError, asyncpg.InterfaceError):
                continue
            await connection.execute(RESULT.format("$1", "$2"), result, number)
        await connection.close()

    asyncio.run(run())


def main():
    driver, conninfo = sys.argv[1:]
    if driver == "asyncpg":
        with_asyncpg(dict(part.split("=", 1) for part in conninfo.split()))
    else:
        with_psycopg(conninfo, {"psycopg-text": False, "psycopg-binary": True}[driver])


main()
