"""Sends numbers to the functions of neardup by drivers for Python.

Usage: sent_numbers.py DRIVER CONNINFO. The table `cases` has queries with {} in the place of a
number, and the number. The result of each is stored there, and NULL for an error.
"""

import asyncio
import sys

CASES = "SELECT number, query, value FROM cases ORDER BY number"
RESULT = "UPDATE cases SET result = {} WHERE number = {}"


def number_of(value):
    return float(value) if "." in value else int(value)


def shown(result):
    return "NULL" if result is None else result


def with_psycopg(conninfo, binary):
    import psycopg

    place = "%b" if binary else "%t"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for number, query, value in connection.execute(CASES).fetchall():
            text = query.replace("%", "%%").replace("{}", place)
            try:
                result = shown(connection.execute(text, [number_of(value)]).fetchone()[0])
            except psycopg.Error:
                continue
            connection.execute(RESULT.format("%s", "%s"), [result, number])


def with_asyncpg(settings):
    import asyncpg

    async def run():
        connection = await asyncpg.connect(
            host=settings["host"], port=int(settings["port"]), user=settings["user"],
            database=settings["dbname"])
        for number, query, value in await connection.fetch(CASES):
            try:
                result = shown(await connection.fetchval(
                    query.replace("{}", "$1"), number_of(value)))
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
