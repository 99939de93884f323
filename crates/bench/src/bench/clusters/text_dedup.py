"""Clusters the documents of a file by text-dedup's MinHash, in one process.

The measured time includes neither reading the file into the library's own format nor writing the
remaining documents.
"""
import json
import os
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

path, folder = sys.argv[1:]
os.environ["HF_HOME"] = folder
os.environ["HF_HUB_OFFLINE"] = "1"

from text_dedup import minhash
from text_dedup.config.base import load_config_from_toml


def processor():
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


settings = f"""
[input]
input_type = "local_files"
file_type = "json"
[input.read_arguments]
path = "json"
data_files = "{path}"
split = "train"
[algorithm]
algorithm_name = "minhash"
text_column = "text"
num_perm = 128
ngram_size = 3
threshold = 0.8
num_proc = 1
[output]
output_dir = "{folder}/output"
skip_filtering = true
[debug]
"""
file = Path(folder) / "config.toml"
file.write_text(settings)
config = load_config_from_toml(file)
minhash.load_dataset(config)
wall, cpu = time.perf_counter(), processor()
documents, _, _ = minhash.load_and_preprocess(config)
found = minhash.cluster(config, minhash.fingerprint(config, documents))
wall, cpu = time.perf_counter() - wall, processor() - cpu
with open(f"{folder}/clusters", "w") as file:
    file.writelines(f"{row} {cluster}\n" for row, cluster in found.items())
print(json.dumps({"version": version("text-dedup"), "wall": wall, "cpu": cpu}))
