"""Clusters the documents of a file by rensa's MinHash signatures and banded index.

rensa finds candidate pairs. This program makes the shingles, compares the signatures of candidates,
and joins similar documents to clusters, because rensa leaves these steps to its caller.
"""
import json
import re
import resource
import sys
import time
from importlib.metadata import version

from rensa import RMinHash, RMinHashLSH

WORD = re.compile(r"\w+")
SHINGLE, HASHES, SIMILARITY, BANDS = 3, 128, 0.8, 16
BATCH = 10_000


def shingles(text):
    words = WORD.findall(text.lower())
    return [" ".join(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)]


def clusters(texts):
    lsh = RMinHashLSH(SIMILARITY, HASHES, BANDS)
    signatures, parent = [], list(range(len(texts)))

    def root(row):
        while parent[row] != row:
            parent[row] = row = parent[parent[row]]
        return row

    for start in range(0, len(texts), BATCH):
        some = [shingles(text) for text in texts[start : start + BATCH]]
        for signature in RMinHash.from_token_sets(some, HASHES, 42):
            row = len(signatures)
            for other in lsh.query(signature):
                if signature.jaccard(signatures[other]) >= SIMILARITY:
                    parent[root(row)] = root(other)
            lsh.insert(row, signature)
            signatures.append(signature)
    return [root(row) for row in range(len(texts))]


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


path, folder = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    documents = [json.loads(line)["text"] for line in file]
wall, cpu = time.perf_counter(), processor()
found = clusters(documents)
wall, cpu = time.perf_counter() - wall, processor() - cpu
with open(f"{folder}/clusters", "w") as file:
    file.writelines(f"{row} {cluster}\n" for row, cluster in enumerate(found))
print(json.dumps({"version": version("rensa"), "wall": wall, "cpu": cpu}))
