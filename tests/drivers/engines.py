"""All pairs in another engine, by the statements of docs/distributed.md under "Other engines".

Usage: engines.py ENGINE DOCUMENT CONNINFO TYPE. It exports the table `docs` of the server, whose
fingerprints are of the type, and prints count of pairs, and sums of their ids and distances, and
the times that the export and the join took. Of signatures it sums up the values that are alike. The
engines `functions` and `spark-functions` compare fingerprints that DuckDB and Spark make with those
of the server instead.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

BITS = {"fingerprint128": 128, "fingerprint256": 256}
SECONDS = []
SUMS = "SELECT count(*), sum(a), sum(b), sum(distance) FROM {}"


def clock(restart=False, since=[None]):
    """Notes the time since the last call, unless this is the first, or begins again."""
    now = time.monotonic()
    if since[0] is not None and not restart:
        SECONDS.append(now - since[0])
    since[0] = now


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


def attach(connection, code, conninfo):
    """Attaches the server, and exports the fingerprints."""
    load_postgres(connection)
    connection.execute(replace(code["sql duckdb-postgres"], "dbname=docs", conninfo))


def export_signatures(connection, code, conninfo):
    load_postgres(connection)
    connection.execute(f"ATTACH '{conninfo}' AS pg (TYPE postgres, READ_ONLY)")
    connection.execute(code["sql duckdb-signatures-export"])


def with_duckdb(code, conninfo, reader):
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        clock()
        if reader == "sql duckdb-postgres":
            attach(connection, code, conninfo)
        else:
            export_csv(code, conninfo)
            connection.execute(code[reader])
        clock()
        connection.execute(code["sql duckdb"])
        clock()
        at_once = connection.execute(SUMS.format("pairs")).fetchone()
        connection.execute("DROP TABLE pairs")
        in_parts(connection, code["sql duckdb-parts"])
        parts = connection.execute(SUMS.format("pairs")).fetchone()
    assert parts == at_once, f"{parts} in parts, {at_once} at once"
    return at_once


def signatures_with_duckdb(code, conninfo):
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        clock()
        export_signatures(connection, code, conninfo)
        clock()
        connection.execute(code["sql duckdb-signatures"])
        clock()
        return connection.execute(SUMS.format("pairs").replace("distance", "alike")).fetchone()


def spark_session():
    from pyspark.sql import SparkSession

    # The interpreter of its workers.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "driver.memory": "6g", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1",
        "ui.enabled": "false", "sql.shuffle.partitions": "16", "local.dir": os.getcwd(),
    }.items():
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def with_spark(code, conninfo, export, statements):
    """Exports by DuckDB, and runs the statements, which write the pairs, in Spark."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        clock()
        export(connection, code, conninfo)
        clock()
    spark = spark_session()
    clock(restart=True)
    exec(code[statements], {"spark": spark})
    clock()
    spark.read.parquet("pairs.parquet").createOrReplaceTempView("pairs")
    last = spark.table("pairs").columns[-1]
    sums = spark.sql(SUMS.format("pairs").replace("distance", last)).collect()[0]
    spark.stop()
    return sums


def functions(code, conninfo, run):
    """Fingerprints that an engine makes by the package neardup are those of the server."""
    import psycopg

    names = {}
    exec(code["python functions"], names)
    texts = [f"page {n // 3} of a site with {n} words" for n in range(200)] + ["", "Ωmega ﬁ 中文"]
    query = "SELECT simhash(body)::bigint FROM unnest(%s::text[]) AS t (body)"
    with psycopg.connect(conninfo) as server:
        expected = server.execute(query, [texts]).fetchall()
    found = run(code, names, texts)
    assert found == expected, f"{found}, not {expected}"
    assert len(set(found)) > 50 and (None,) in found, found
    SECONDS.extend([0, 0])
    return len(found), 0, 0, 0


def in_duckdb(_, names, texts):
    query = "SELECT simhash(body) FROM unnest(?::VARCHAR[]) AS t (body)"
    return names["connection"].execute(query, [texts]).fetchall()


def in_spark(code, names, texts):
    spark = names["spark"] = spark_session()
    exec(code["python spark-functions"], names)
    rows = spark.createDataFrame([(text,) for text in texts], "body string")
    rows.createOrReplaceTempView("texts")
    found = [tuple(row) for row in spark.sql("SELECT simhash(body) FROM texts").collect()]
    spark.stop()
    return found


def main():
    engine, document, conninfo, fp_type = sys.argv[1:]
    code = for_type(blocks(Path(document)), fp_type)
    run = {
        "duckdb-postgres": lambda: with_duckdb(code, conninfo, "sql duckdb-postgres"),
        "duckdb-csv": lambda: with_duckdb(code, conninfo, "sql duckdb-csv"),
        "spark": lambda: with_spark(code, conninfo, attach, "python spark"),
        "duckdb-signatures": lambda: signatures_with_duckdb(code, conninfo),
        "spark-signatures": lambda: with_spark(
            code, conninfo, export_signatures, "python spark-signatures"
        ),
        "functions": lambda: functions(code, conninfo, in_duckdb),
        "spark-functions": lambda: functions(code, conninfo, in_spark),
    }[engine]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print("sums:", *run())
        print("seconds:", *SECONDS)
        os.chdir("/")


main()
