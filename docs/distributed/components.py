"""Connected clusters of a table of pairs (a, b), in DuckDB or Spark, with large and small stars.

The algorithm is that of Kiveris and others, "Connected Components in MapReduce and Beyond" (2014).
At the end, `stars` has a row (a, b) for each member a of a cluster but the one with the lowest id,
which is b.
"""

START = "SELECT DISTINCT greatest(a, b) AS a, least(a, b) AS b FROM pairs WHERE a <> b"

# Connects the higher neighbours of an id to the lowest of the id and its neighbours.
LARGE_STAR = """
    WITH ways AS (SELECT a, b FROM stars UNION ALL SELECT b, a FROM stars),
        lowest AS (SELECT a, least(a, min(b)) AS m FROM ways GROUP BY a)
    SELECT DISTINCT b AS a, m AS b FROM ways JOIN lowest USING (a) WHERE b > a"""

# Connects an id and its lower neighbours to the lowest of these.
SMALL_STAR = """
    WITH lowest AS (SELECT a, min(b) AS m FROM stars GROUP BY a)
    SELECT b AS a, m AS b FROM stars JOIN lowest USING (a) WHERE b <> m
    UNION SELECT a, m FROM lowest"""

# Is 0 when each member has one row, and no center is a member of another cluster.
REMAINING = """
    SELECT (SELECT count(*) - count(DISTINCT a) FROM stars)
        + (SELECT count(*) FROM stars WHERE b IN (SELECT a FROM stars))"""


def components(store, number):
    """Calls store(query), which makes the table `stars`, and number(query)."""
    store(START)
    while number(REMAINING):
        store(LARGE_STAR)
        store(SMALL_STAR)


def in_duckdb(connection):
    components(
        lambda query: connection.execute(f"CREATE OR REPLACE TABLE stars AS {query}"),
        lambda query: connection.execute(query).fetchone()[0],
    )


def in_spark(spark, folder):
    """`pairs` is a view. The rounds are written to the folder, because the plan of a view of a view
    would grow with each round."""
    files = []

    def store(query):
        files.append(f"{folder}/{len(files)}")
        spark.sql(query).write.parquet(files[-1])
        spark.read.parquet(files[-1]).createOrReplaceTempView("stars")

    components(store, lambda query: spark.sql(query).first()[0])
