"""Clusters the documents of a file by datatrove's MinHash: signatures, buckets and clusters, in
one process.

The measured time includes reading the file, which is a part of the first step.
"""
import json
import resource
import struct
import sys
import time
from importlib.metadata import version
from pathlib import Path

from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import JsonlReader
from loguru import logger


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


logger.remove()
path, folder = Path(sys.argv[1]), sys.argv[2]
# The library's default: 14 bands of 8 hashes. Three-word shingles, as for the other libraries.
config = MinhashConfig(n_grams=3)
reader = JsonlReader(str(path.parent), glob_pattern=path.name, compression=None)
signatures = MinhashDedupSignature(f"{folder}/signatures", config)
buckets = MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config)
cluster = MinhashDedupCluster(f"{folder}/buckets", f"{folder}/clusters", config, True)
wall, cpu = time.perf_counter(), processor()
signatures.run(reader.run(), 0, 1)
for bucket in range(config.num_buckets):
    buckets.run(None, bucket, config.num_buckets)
cluster.run(None, 0, 1)
wall, cpu = time.perf_counter() - wall, processor() - cpu
with open(f"{folder}/clusters/000000.clusters", "rb") as file:
    found = list(struct.iter_unpack("<II", file.read()))
with open(f"{folder}/clusters", "w") as file:
    file.writelines(f"{row} {cluster}\n" for row, cluster in found)
print(json.dumps({"version": version("datatrove"), "wall": wall, "cpu": cpu}))
