"""All pairs in another engine, by the statements of docs/distributed.md under "Other engines".

Usage: engines.py ENGINE DOCUMENT CONNINFO [TYPE]. It exports the table `docs` of the server, whose
fingerprints are of the type, and prints count of pairs, and sums of their ids and distances. The
engine `functions` compares fingerprints that DuckDB makes with those of the server instead.
"""

import os
import sys
import tempfile
from pathlib import Path

BITS = {"fingerprint128": 128, "fingerprint256": 256}
SUMS = "SELECT count(*), sum(a), sum(b), sum(distance) FROM {}"


def blocks(document):
    """The fenced blocks of the section, by what they are marked with."""
    section = document.read_text().split("\n## Other engines\n")[1].split("\n## ")[0]
    found = {}
    for block in section.split("\n```")[1::2]:
        mark, code = block.split("\n", 1)
        found[mark] = code
    return found


def replace(text, old, new):
    assert old in text, f"no {old!r} in\n{text}"
    return text.replace(old, new)


def for_type(code, fp_type):
    """The statements for bit strings, as the document describes them, if the type is wide."""
    bits = BITS.get(fp_type)
    if not bits:
        return code
    code = dict(code)
    for mark in ("sql duckdb-postgres", "sql export"):
        code[mark] = replace(code[mark], "fp::bigint", f"fp::bit({bits})::text")
    code["sql duckdb-csv"] = replace(code["sql duckdb-csv"], "fp: 'BIGINT'", "fp: 'VARCHAR'")
    for mark in ("sql duckdb", "sql duckdb-parts"):
        code[mark] = replace(code[mark], "AS key, id, fp", "AS key, id, fp::BIT AS fp")
    return code


def load_postgres(connection):
    """Loads the reader from its wheel; DuckDB would bring it from its own repository."""
    import duckdb_extension_postgres_scanner as package

    [file] = Path(package.__file__).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{file}'")


def export_csv(code, conninfo):
    import psycopg

    with psycopg.connect(conninfo) as connection, open("docs.csv", "wb") as file:
        with connection.cursor().copy(code["sql export"].rstrip().rstrip(";")) as copy:
            for data in copy:
                file.write(data)


def in_parts(connection, statements):
    for part in range(4):
        connection.execute(replace(statements, "part = 0", f"part = {part}"))


def with_duckdb(code, conninfo, reader):
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        if reader == "sql duckdb-postgres":
            load_postgres(connection)
            connection.execute(replace(code[reader], "dbname=docs", conninfo))
        else:
            export_csv(code, conninfo)
            connection.execute(code[reader])
        connection.execute(code["sql duckdb"])
        at_once = connection.execute(SUMS.format("pairs")).fetchone()
        connection.execute("DROP TABLE pairs")
        in_parts(connection, code["sql duckdb-parts"])
        parts = connection.execute(SUMS.format("pairs")).fetchone()
    assert parts == at_once, f"{parts} in parts, {at_once} at once"
    return at_once


def with_spark(code, conninfo):
    import duckdb
    from pyspark.sql import SparkSession

    with duckdb.connect() as connection:
        load_postgres(connection)
        connection.execute(replace(code["sql duckdb-postgres"], "dbname=docs", conninfo))
    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "driver.memory": "6g", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1",
        "ui.enabled": "false", "sql.shuffle.partitions": "16", "local.dir": os.getcwd(),
    }.items():
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    exec(code["python spark"], {"spark": spark})
    spark.read.parquet("pairs.parquet").createOrReplaceTempView("pairs")
    sums = spark.sql(SUMS.format("pairs")).collect()[0]
    spark.stop()
    return sums


def functions(code, conninfo):
    """Fingerprints that DuckDB makes by the package neardup are those of the server."""
    import psycopg

    names = {}
    exec(code["python functions"], names)
    texts = [f"page {n // 3} of a site with {n} words" for n in range(200)] + ["", "Ωmega ﬁ 中文"]
    query = "SELECT simhash(body)::bigint FROM unnest({}) AS t (body)"
    with psycopg.connect(conninfo) as server:
        expected = server.execute(query.format("%s::text[]"), [texts]).fetchall()
    query = replace(query, "::bigint", "")
    found = names["connection"].execute(query.format("?::VARCHAR[]"), [texts]).fetchall()
    assert found == expected, f"{found}, not {expected}"
    assert len(set(found)) > 50 and (None,) in found, found
    return len(found), 0, 0, 0


def main():
    engine, document, conninfo, fp_type = sys.argv[1:]
    code = for_type(blocks(Path(document)), fp_type)
    run = {
        "duckdb-postgres": lambda: with_duckdb(code, conninfo, "sql duckdb-postgres"),
        "duckdb-csv": lambda: with_duckdb(code, conninfo, "sql duckdb-csv"),
        "spark": lambda: with_spark(code, conninfo),
        "functions": lambda: functions(code, conninfo),
    }[engine]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print("sums:", *run())
        os.chdir("/")


main()
