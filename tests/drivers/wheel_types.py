"""The types of the package neardup for drivers and SQLAlchemy.

Usage: wheel_types.py TEST CONNINFO. Each test makes a schema of its own for the extension in one
of two databases, so that nothing depends on search_path or on the OIDs of another database.
"""

import asyncio
import sys
import uuid
import warnings

import neardup
import neardup.asyncpg
import neardup.psycopg
from neardup import Fingerprint, Fingerprint128, Fingerprint256, MinHashSignature

FP = Fingerprint("0123456789abcdef")
FP128 = Fingerprint128(uuid.UUID("01234567-89ab-cdef-0123-456789abcdef").int)
FP256 = Fingerprint256(2**255 + 1)
SIG = MinHashSignature(range(16))
VALUES = [FP, FP128, FP256, SIG]
TABLE = ("CREATE TABLE docs (id int PRIMARY KEY, fp fingerprint, fp128 fingerprint128,"
         " fp256 fingerprint256, sig minhash_signature, fps fingerprint[])")
ROWS = [(1, *VALUES, [FP, None, Fingerprint(0)]), (2, None, None, None, None, None)]


def moved(connection):
    """Has the extension in a schema that is not on search_path."""
    connection.execute("CREATE SCHEMA ext; ALTER EXTENSION neardup SET SCHEMA ext")


def with_psycopg(conninfo):
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(TABLE)
        moved(connection)
        connection.row_factory = dict_row
        neardup.psycopg.register(connection)
        connection.row_factory = psycopg.rows.tuple_row
        for binary, placeholder in ((False, "%t"), (True, "%b"), (True, "%s")):
            insert = f"INSERT INTO docs VALUES ({', '.join([placeholder] * 6)})"
            for row in ROWS:
                connection.execute(insert, row)
            found = connection.execute("SELECT * FROM docs ORDER BY id", binary=binary).fetchall()
            assert found == ROWS, found
            # An argument has a type of its own: no cast is needed.
            query = f"SELECT id FROM docs WHERE fp OPERATOR(ext.<~>) {placeholder} <= 3"
            assert connection.execute(query, [Fingerprint(int(FP) ^ 7)]).fetchall() == [(1,)]
            query = f"SELECT id FROM docs WHERE fp OPERATOR(ext.=) ANY ({placeholder})"
            assert connection.execute(query, [[FP, Fingerprint(3)]]).fetchall() == [(1,)]
            connection.execute("DELETE FROM docs")
        types = ["int4", "fingerprint", "fingerprint128", "fingerprint256", "minhash_signature",
                 "fingerprint[]"]
        for form in ("", " (FORMAT binary)"):
            with connection.cursor().copy(f"COPY docs FROM STDIN{form}") as copy:
                copy.set_types(types)
                for row in ROWS:
                    copy.write_row(row)
            with connection.cursor().copy(f"COPY docs TO STDOUT{form}") as copy:
                copy.set_types(types)
                assert list(copy.rows()) == ROWS
            connection.execute("DELETE FROM docs")
        # Parameters that the client puts into the text.
        cursor = psycopg.ClientCursor(connection)
        cursor.execute("INSERT INTO docs VALUES (%s, %s, %s, %s, %s, %s)", ROWS[0])
        assert cursor.execute("SELECT * FROM docs").fetchall() == ROWS[:1]
        # A transaction stays open and unchanged.
        with connection.transaction():
            connection.execute("DELETE FROM docs")
            neardup.psycopg.register(connection)
        assert connection.execute("SELECT count(*) FROM docs").fetchone() == (0,)
        connection.execute("DROP EXTENSION neardup CASCADE")
        try:
            neardup.psycopg.register(connection)
            raise AssertionError("there are no types")
        except LookupError as error:
            assert "CREATE EXTENSION" in str(error)


def with_psycopg_pool(conninfo):
    import psycopg
    from psycopg_pool import ConnectionPool

    with psycopg.connect(conninfo, autocommit=True) as connection:
        moved(connection)
    with ConnectionPool(conninfo, min_size=1, max_size=1,
                        configure=neardup.psycopg.register) as pool:
        for _ in range(2):
            with pool.connection() as connection:
                assert connection.execute("SELECT %s", [FP]).fetchone() == (FP,)


def with_psycopg_async(conninfo):
    import psycopg

    async def run():
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            await neardup.psycopg.register_async(connection)
            found = await connection.execute("SELECT %s, minhash64('a b c')", [FP])
            assert await found.fetchone() == (FP, neardup.minhash64("a b c"))

    asyncio.run(run())


def with_asyncpg(conninfo):
    import asyncpg

    settings = dict(part.split("=", 1) for part in conninfo.split())

    async def run():
        pool = await asyncpg.create_pool(
            host=settings["host"], port=int(settings["port"]), user=settings["user"],
            database=settings["dbname"], min_size=1, max_size=1, init=neardup.asyncpg.register)
        async with pool.acquire() as connection:
            await connection.execute(TABLE)
        await pool.expire_connections()
        async with pool.acquire() as connection:
            await connection.execute(
                "CREATE SCHEMA ext; ALTER EXTENSION neardup SET SCHEMA ext")
        await pool.expire_connections()
        async with pool.acquire() as connection:
            insert = "INSERT INTO docs VALUES ($1, $2, $3, $4, $5, $6)"
            await connection.executemany(insert, ROWS)
            found = await connection.fetch("SELECT * FROM docs ORDER BY id")
            assert [tuple(row) for row in found] == ROWS, found
            query = "SELECT id FROM docs WHERE fp OPERATOR(ext.<~>) $1 <= $2"
            for value in (Fingerprint(int(FP) ^ 7), str(FP), bytes(FP), int(FP)):
                assert await connection.fetchval(query, value, 3) == 1
            among = "SELECT id FROM docs WHERE fp OPERATOR(ext.=) ANY ($1)"
            assert await connection.fetchval(among, [FP]) == 1
            await connection.execute("DELETE FROM docs")
            await connection.copy_records_to_table("docs", records=ROWS)
            found = await connection.fetch("SELECT * FROM docs ORDER BY id")
            assert [tuple(row) for row in found] == ROWS, found
            try:
                await connection.fetch(query, "0123", 3)
                raise AssertionError("not a fingerprint")
            except asyncpg.DataError as error:
                assert "16 hexadecimal digits" in str(error), error
        await pool.close()

    asyncio.run(run())


def urls(conninfo):
    settings = dict(part.split("=", 1) for part in conninfo.split())
    parts = "{user}@/{dbname}?host={host}&port={port}".format(**settings)
    socket = "{user}@/{dbname}?unix_sock={host}/.s.PGSQL.{port}".format(**settings)
    return ["postgresql+psycopg://" + parts, "postgresql+asyncpg://" + parts,
            "postgresql+pg8000://" + socket]


def model():
    from neardup import sqlalchemy as types
    from sqlalchemy import BigInteger, Column, Computed, Index, MetaData, Table, Text, func
    from sqlalchemy.dialects.postgresql import ARRAY, ExcludeConstraint

    metadata = MetaData()
    docs = Table(
        "docs", metadata,
        Column("id", BigInteger, primary_key=True),
        Column("body", Text),
        Column("fp", types.Fingerprint, Computed("minhash64(body)", persisted=True)),
        Column("fp128", types.Fingerprint128),
        Column("fp256", types.Fingerprint256),
        Column("sig", types.MinHashSignature, Computed("minhash(body)", persisted=True)),
        Column("fps", ARRAY(types.Fingerprint)),
        Column("near", types.FingerprintBall),
        Column("hash", BigInteger),
    )
    Index("docs_fp", docs.c.fp, postgresql_using="neardup", postgresql_with={"radius": 4})
    Index("docs_sig", docs.c.sig, postgresql_using="neardup")
    Index("docs_hash", docs.c.hash, postgresql_using="neardup",
          postgresql_ops={"hash": "bigint_hamming_ops"})
    docs.append_constraint(ExcludeConstraint(
        (func.ball(docs.c.fp128, 6), "~="), using="neardup", name="one_copy"))
    return metadata, docs


def check_sqlalchemy(connection, docs, arrays):
    """Queries on a connection of any driver. Arrays need a driver that knows the type."""
    from sqlalchemy import func, insert, literal, select, text
    from sqlalchemy.exc import DBAPIError

    bodies = ["The library reopens on Monday after two years.",
              "The library reopens on Monday, after two years!",
              "Rain is expected all over the country."]
    connection.execute(insert(docs), [
        {"id": n, "body": body, "fp128": Fingerprint128(2 ** (40 * n) - 1), "fp256": FP256,
         "fps": [FP, None], "hash": n} for n, body in enumerate(bodies)])
    columns = [column for column in docs.c if arrays or column.name != "fps"]
    row = connection.execute(select(*columns).where(docs.c.id == 0)).one()
    assert row.fp == neardup.minhash64(bodies[0]) and row.sig == neardup.minhash(bodies[0])
    assert row.fp128 == Fingerprint128(0) and row.near is None
    assert not arrays or row.fps == [FP, None]

    def ids(condition):
        query = select(docs.c.id).where(condition).order_by(docs.c.id)
        return connection.scalars(query).all()

    fp, sig = row.fp, row.sig
    assert ids(docs.c.fp == fp) == ids(docs.c.fp == str(fp)) == [0, 1]
    assert ids(docs.c.fp.in_([fp])) == [0, 1]
    assert ids(docs.c.fp.hamming_distance(fp) <= 6) == [0, 1]
    assert ids(docs.c.fp.similarity(fp) >= 0.8) == [0, 1]
    assert ids(docs.c.fp.is_near(fp)) == [0, 1]
    assert ids(docs.c.fp.similarity(func.minhash64(bodies[2])) >= 0.8) == [2]
    assert ids(docs.c.sig.similarity(sig) >= 0.8) == [0, 1]
    # SQLAlchemy does not double the % of an operator for this driver.
    if connection.dialect.driver != "pg8000":
        assert ids(docs.c.sig.jaccard_distance(sig) <= 0.2) == [0, 1]
    assert ids(docs.c.fp.op("<@")(func.ball(literal(fp, docs.c.fp.type), 6))) == [0, 1]
    other = docs.alias()
    pairs = select(docs.c.id, other.c.id, docs.c.fp.hamming_distance(other.c.fp)).where(
        docs.c.fp.similarity(other.c.fp) >= 0.8, docs.c.id < other.c.id)
    assert connection.execute(pairs).all() == [(0, 1, 0)]
    nearest = select(docs.c.id).order_by(docs.c.fp.hamming_distance(fp), docs.c.id).limit(1)
    assert connection.scalar(nearest) == 0
    assert connection.scalar(select(func.minhash64(bodies[0]))) == fp
    # The index serves the condition.
    connection.execute(text("SET LOCAL enable_seqscan = off"))
    query = select(docs.c.id).where(docs.c.fp.hamming_distance(fp) <= 6)
    compiled = query.compile(connection.engine, compile_kwargs={"literal_binds": True})
    plan = connection.exec_driver_sql("EXPLAIN " + str(compiled)).all()
    assert "docs_fp" in str(plan), plan
    try:
        with connection.begin_nested():
            connection.execute(insert(docs).values(id=9, fp128=Fingerprint128(7)))
        raise AssertionError("a near-duplicate")
    except DBAPIError as error:
        assert "one_copy" in str(error), error


def with_sqlalchemy(conninfo):
    from sqlalchemy import create_engine
    from sqlalchemy.ext.asyncio import create_async_engine

    warnings.simplefilter("error")
    metadata, docs = model()

    def run(connection, arrays=False):
        metadata.create_all(connection)
        check_sqlalchemy(connection, docs, arrays)
        connection.rollback()

    # The warnings about a connection that is left open are not SQLAlchemy's.
    warnings.simplefilter("ignore", ResourceWarning)
    for url in urls(conninfo):
        if "asyncpg" in url:
            async def run_async():
                engine = create_async_engine(url)
                async with engine.connect() as connection:
                    await connection.run_sync(run, True)
                await engine.dispose()

            asyncio.run(run_async())
        else:
            with create_engine(url).connect() as connection:
                run(connection)
    # With types registered with the driver as well.
    from sqlalchemy import event

    engine = create_engine(urls(conninfo)[0])
    event.listen(engine, "connect", lambda connection, _: neardup.psycopg.register(connection))
    with engine.connect() as connection:
        run(connection, arrays=True)


def arrays_as_text(conninfo):
    """A driver that does not know the type leaves arrays as text: the error says what to do."""
    from sqlalchemy import ARRAY, Text, cast, create_engine, event, func, insert, select
    from sqlalchemy import type_coerce
    from neardup import sqlalchemy as types

    metadata, docs = model()
    wanted = sorted([neardup.minhash64("a b c"), neardup.minhash64("d e f")])
    query = select(func.array_agg(docs.c.fp))
    as_text = cast(func.array_agg(docs.c.fp), ARRAY(Text))
    for url, cure in ((urls(conninfo)[0], "neardup.psycopg.register(connection)"),
                      (urls(conninfo)[2], "ARRAY(Text)")):
        engine = create_engine(url)
        with engine.begin() as connection:
            metadata.drop_all(connection)
            metadata.create_all(connection)
            rows = [{"id": 1, "body": "a b c"}, {"id": 2, "body": "d e f"}]
            connection.execute(insert(docs), rows)
        with engine.connect() as connection:
            try:
                raise AssertionError(connection.scalar(query))
            except TypeError as error:
                assert cure in str(error) and "array of fingerprint" in str(error), error
            # The remedy for any driver.
            coerced = type_coerce(as_text, ARRAY(types.Fingerprint))
            assert sorted(connection.scalar(select(coerced))) == wanted
        engine.dispose()
    engine = create_engine(urls(conninfo)[0])
    event.listen(engine, "connect", lambda connection, _: neardup.psycopg.register(connection))
    with engine.connect() as connection:
        assert sorted(connection.scalar(query)) == wanted
    engine.dispose()


def reflection(conninfo):
    """Tables are read back as they were, and Alembic finds nothing to change."""
    from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
    from alembic.migration import MigrationContext
    from neardup import sqlalchemy as types
    from sqlalchemy import MetaData, create_engine, inspect

    warnings.simplefilter("error")
    metadata, docs = model()
    engine = create_engine(urls(conninfo)[0])
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        code = render_python_code(produce_migrations(context, metadata).upgrade_ops)
        assert "neardup.sqlalchemy.Fingerprint()" in code, code
        metadata.create_all(connection)
        read = MetaData()
        read.reflect(connection)
        for column in docs.columns:
            name = read.tables["docs"].c[column.name].type.compile(connection.dialect)
            assert name == column.type.compile(connection.dialect), name
        assert type(read.tables["docs"].c.fps.type.item_type) is types.Fingerprint
        indexes = {index["name"]: index for index in inspect(connection).get_indexes("docs")}
        options = indexes["docs_fp"]["dialect_options"]
        assert options["postgresql_using"] == "neardup", options
        assert options["postgresql_with"] == {"radius": "4"}, options
        changes = compare_metadata(
            MigrationContext.configure(connection, opts={"compare_type": True}), metadata)
        assert not changes, changes
    engine.dispose()


def main():
    test, conninfo = sys.argv[1:]
    globals()[test](conninfo)
    print(f"{test}: done")


main()
