"""All pairs in another engine, by the statements of docs/distributed.md under "Other engines".

Usage: engines.py ENGINE DOCUMENT CONNINFO TYPE. It exports the table `docs` of the server, whose
fingerprints are of the type, and prints count of pairs, and sums of their ids and distances, and
the times that the export and the join took. Of signatures it sums up the values that are alike. The
engines `sketch` and `spark-sketch` compare signatures and keys that DuckDB and Spark make with
those of the server instead, and `components` and `spark-components` clusters.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

BITS = {"fingerprint128": 128, "fingerprint256": 256}
SECONDS = []
SUMS = "SELECT count(*), sum(a), sum(b), sum(distance) FROM {}"
FINGERPRINTS = "id, fp::bigint AS fp, neardup_keys(fp, 6) AS keys"
APPROXIMATE = "neardup_band_keys(sig, 12, 10)"


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
    assert f"`{FINGERPRINTS.removeprefix('id, ')}`" in section.replace("\n", " ")
    return found


def replace(text, old, new):
    assert old in text, f"no {old!r} in\n{text}"
    return text.replace(old, new)


def load_postgres(connection):
    """Loads the reader from its wheel; DuckDB would bring it from its own repository."""
    import duckdb_extension_postgres_scanner as package

    [file] = Path(package.__file__).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{file}'")


def export(connection, code, conninfo, columns=None):
    """Attaches the server, and exports signatures, or other columns."""
    load_postgres(connection)
    code = replace(code["sql duckdb-postgres"], "dbname=docs", conninfo)
    if columns:
        signatures = "id, minhash_values(sig) AS minima, minhash_keys(sig, 0.8) AS keys"
        code = replace(code, signatures, columns)
    connection.execute(code)


def fingerprints(fp_type):
    bits = BITS.get(fp_type)
    return replace(FINGERPRINTS, "fp::bigint", f"fp::bit({bits})::text") if bits else FINGERPRINTS


def with_duckdb(code, conninfo, fp_type):
    """Pairs of fingerprints."""
    import duckdb

    statement = code["sql duckdb-fingerprints"]
    if fp_type in BITS:
        statement = replace(statement, "AS key, id, fp", "AS key, id, fp::BIT AS fp")
    with duckdb.connect(config={"threads": 2}) as connection:
        clock()
        export(connection, code, conninfo, fingerprints(fp_type))
        clock()
        connection.execute(statement)
        clock()
        return connection.execute(SUMS.format("pairs")).fetchone()


def signatures_with_duckdb(code, conninfo, exact=True):
    """Pairs of signatures within 64 MB, at once and in parts. Nothing may spill."""
    import duckdb

    statements = replace(code["sql duckdb"], "'4GB'", "'64MB'")
    if not exact:
        statements = replace(statements, ">= 5", ">= 1")
    with duckdb.connect(config={"threads": 2}) as connection:
        clock()
        keys = "minhash_keys(sig, 0.8)" if exact else APPROXIMATE
        export(connection, code, conninfo,
               f"id, minhash_values(sig) AS minima, {keys} AS keys")
        clock()
        connection.execute("SET max_temp_directory_size = '0GB'")
        connection.execute(statements)
        clock()
        sums = SUMS.replace("distance", "alike")
        found = connection.execute(sums.format("'pairs.parquet'")).fetchone()
        parts = [0, 0, 0, 0]
        for part in range(16):
            connection.execute("DROP TABLE keys; DROP TABLE candidates; DROP TABLE pairs")
            connection.execute(replace(
                statements, "  -- in parts: AND a.id % 16 = 0, and so on",
                f" AND a.id % 16 = {part}"))
            row = connection.execute(sums.format("pairs")).fetchone()
            parts = [of + (more or 0) for of, more in zip(parts, row)]
    assert tuple(parts) == found, f"{parts} in parts, {found} at once"
    return found


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


def with_spark(code, conninfo, columns=None):
    """Exports by DuckDB. Runs the statement for signatures in Spark, or that of DuckDB for
    fingerprints, translated as the document says."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        clock()
        export(connection, code, conninfo, columns)
        clock()
    spark = spark_session()
    clock(restart=True)
    if columns:
        statement = code["sql duckdb-fingerprints"].removeprefix("CREATE TABLE pairs AS\n")
        for old, new in (("unnest", "explode"), ("xor(a.fp, b.fp)", "a.fp ^ b.fp"),
                         ("'docs.parquet'", "parquet.`docs.parquet`"), (";", "")):
            statement = replace(statement, old, new)
        spark.sql(statement).write.parquet("pairs.parquet")
    else:
        exec(code["python spark"], {"spark": spark})
    clock()
    if not columns:
        salted = replace(code["python spark"], "keys a JOIN keys b USING (key)",
                         code["sql spark-salted"])
        exec(replace(salted, "pairs.parquet", "salted.parquet"), {"spark": spark})
        plain = spark.read.parquet("pairs.parquet")
        salted = spark.read.parquet("salted.parquet")
        assert plain.exceptAll(salted).isEmpty() and salted.exceptAll(plain).isEmpty()
    spark.read.parquet("pairs.parquet").createOrReplaceTempView("pairs")
    last = spark.table("pairs").columns[-1]
    sums = spark.sql(SUMS.format("pairs").replace("distance", last)).collect()[0]
    spark.stop()
    return sums


def texts(conninfo):
    """Writes texts.parquet. Returns values and keys that the server makes of the texts."""
    import psycopg
    import pyarrow as pa
    import pyarrow.parquet as pq

    bodies = [f"page {n // 3} of a site with {n} words" for n in range(200)] + [None, "", "中文 Ω"]
    query = ("SELECT n::bigint, minhash_values(minhash(body)), "
             "neardup_band_keys(minhash(body), 16, 8) "
             "FROM unnest(%s::text[]) WITH ORDINALITY AS t (body, n) ORDER BY n")
    with psycopg.connect(conninfo) as server:
        expected = server.execute(query, [bodies]).fetchall()
    ids = list(range(1, len(bodies) + 1))
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "body": bodies}), "texts.parquet")
    assert len({row[2] and row[2][0] for row in expected}) > 50
    return expected


def compare(found, expected):
    found = sorted(tuple(row) for row in found)
    wrong = [pair for pair in zip(found, expected) if pair[0] != pair[1]]
    assert not wrong and len(found) == len(expected), f"{wrong[:1]} of {len(found)}"
    SECONDS[:] = [0, 0]
    return len(found), 0, 0, 0


def sketch(code, conninfo, folder):
    """The package makes signatures and keys, and DuckDB makes the same keys of the signatures."""
    import duckdb

    expected = texts(conninfo)
    exec(code["python arrow"], {})
    with duckdb.connect() as connection:
        rows = "SELECT id, minima, {} FROM 'docs.parquet'"
        counted = compare(connection.execute(rows.format("keys")).fetchall(), expected)
        connection.execute((folder / "band_keys_duckdb.sql").read_text())
        keys = "band_keys(minima, 16, 8)"
        assert f"`{keys}`" in (folder.parent / "distributed.md").read_text()
        compare(connection.execute(rows.format(keys)).fetchall(), expected)
    return counted


def spark_sketch(code, conninfo, folder):
    from band_keys_spark import band_keys

    expected = texts(conninfo)
    spark = spark_session()
    # The workers import the module, too.
    spark.sparkContext.addPyFile(str(folder / "sketch.py"))
    names = {"spark": spark}
    exec("from sketch import SPARK_SCHEMA, sketch", names)
    exec(code["python spark-arrow"], names)
    docs = spark.read.parquet("docs.parquet")
    counted = compare(docs.select("id", "minima", "keys").collect(), expected)
    spark.conf.set("spark.sql.ansi.enabled", False)
    compare(docs.selectExpr("id", "minima", f"{band_keys(16, 8)} AS keys").collect(), expected)
    spark.stop()
    return counted


def components(code, conninfo, run):
    """Clusters of a table of pairs are those of the server."""
    import psycopg
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A chain in a mixed order, stars, cycles and a pair that occurs twice.
    pairs = [(n * 7919 % 1000, (n + 1) * 7919 % 1000) for n in range(500)]
    pairs += [(2000 + n % 7, 2000 + n) for n in range(1, 300) if n % 7 != n]
    pairs += [(3000 + n, 3000 + n // 5 * 5 + (n + 1) % 5) for n in range(50)] + [(5, 4000)] * 2
    pairs = [(a, b) for a, b in pairs if a != b]
    columns = {name: pa.array(ids, pa.int64()) for name, ids in zip("ab", zip(*pairs))}
    pq.write_table(pa.table(columns), "pairs.parquet")
    with psycopg.connect(conninfo) as server, server.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE pairs (a bigint, b bigint)")
        cursor.executemany("INSERT INTO pairs VALUES (%s, %s)", pairs)
        cursor.execute("SELECT member, min(member) OVER (PARTITION BY representative) "
                       "FROM neardup_components('SELECT a, b FROM pairs')")
        expected = sorted(row for row in cursor.fetchall() if row[0] != row[1])
    assert len(expected) > 800
    return compare(run(code), expected)


def duckdb_components(code):
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE pairs AS FROM 'pairs.parquet'")
        connection.execute("CREATE TABLE docs AS SELECT unnest(range(5000)) AS id")
        exec(code["python duckdb-components"], {"connection": connection})
        found = connection.execute("SELECT a, b FROM stars").fetchall()
        [left] = connection.execute("SELECT count(*) FROM docs").fetchone()
        assert left == 5000 - len(found), left
        return found


def spark_components(code):
    spark = spark_session()
    exec(code["python spark-components"], {"spark": spark})
    found = spark.table("stars").select("a", "b").collect()
    spark.stop()
    return found


def main():
    engine, document, conninfo, fp_type = sys.argv[1:]
    document = Path(document).resolve()
    folder = document.with_suffix("")
    sys.path.insert(0, str(folder))
    code = blocks(document)
    run = {
        "duckdb-postgres": lambda: with_duckdb(code, conninfo, fp_type),
        "spark": lambda: with_spark(code, conninfo, FINGERPRINTS),
        "duckdb-signatures": lambda: signatures_with_duckdb(code, conninfo),
        "duckdb-approximate": lambda: signatures_with_duckdb(code, conninfo, exact=False),
        "spark-signatures": lambda: with_spark(code, conninfo),
        "sketch": lambda: sketch(code, conninfo, folder),
        "spark-sketch": lambda: spark_sketch(code, conninfo, folder),
        "components": lambda: components(code, conninfo, duckdb_components),
        "spark-components": lambda: components(code, conninfo, spark_components),
    }[engine]
    with tempfile.TemporaryDirectory() as working:
        os.chdir(working)
        print("sums:", *map(int, run()))
        print("seconds:", *SECONDS)
        os.chdir("/")


main()
