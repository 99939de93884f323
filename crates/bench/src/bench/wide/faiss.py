"""Searches values of 64 bits by FAISS's IndexBinaryFlat, one query at a time in one thread.

Each line of the input names a file of queries, their number, and a search: ["within", radius] or
["nearest", number]. Each line of the output has the times of all repetitions, in seconds a query,
and one number for the result of each query: 1,000 for each value found, plus their distances.
"""
import json
import sys
import time

import faiss
import numpy


def values(path):
    return numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, 8)


def within(index, query, radius):
    # FAISS returns values at distances below its radius; neardup's radius is inclusive.
    return index.range_search(query, radius + 1)[1]


def nearest(index, query, count):
    return index.search(query, count)[0]


def answer(index, asked):
    search, of = asked["search"]
    search = {"within": within, "nearest": nearest}[search]
    queries = values(asked["queries"])
    queries = [queries[i : i + 1] for i in range(len(queries))]
    start = time.perf_counter()
    search(index, queries[0], of)
    affordable = int(1 / (time.perf_counter() - start))
    queries = queries[: max(1, min(asked["count"], affordable))]
    sums = []
    for query in queries:
        found = search(index, query, of)
        sums.append(1000 * found.size + int(found.sum()))
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < 1.5:
        start = time.perf_counter()
        for query in queries:
            search(index, query, of)
        times.append((time.perf_counter() - start) / len(queries))
    return {"times": times, "sums": sums}


faiss.omp_set_num_threads(1)
index = faiss.IndexBinaryFlat(64)
index.add(values(sys.argv[1]))
print(json.dumps({"version": faiss.__version__}), flush=True)
for line in sys.stdin:
    print(json.dumps(answer(index, json.loads(line))), flush=True)
