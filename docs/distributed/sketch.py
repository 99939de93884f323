"""Signatures and approximate keys of texts, in Arrow batches.

pip install neardup pyarrow
"""

import neardup
import pyarrow as pa
import pyarrow.parquet as pq

SPARK_SCHEMA = "id bigint, minima array<bigint>, keys array<bigint>"
BANDS, ROWS = 16, 8


def sketch(batches):
    """Turns batches with the columns id and body into batches of SPARK_SCHEMA."""
    numbers = pa.list_(pa.int64())
    for batch in batches:
        signatures = neardup.minhash_many(batch["body"].to_pylist())
        minima = [signature and signature.values for signature in signatures]
        keys = [neardup.neardup_band_keys(signature, BANDS, ROWS) for signature in signatures]
        yield pa.RecordBatch.from_arrays(
            [batch["id"], pa.array(minima, numbers), pa.array(keys, numbers)],
            ["id", "minima", "keys"],
        )


def convert(texts, signatures):
    """Reads one Parquet file and writes the other, batch by batch."""
    numbers = pa.list_(pa.int64())
    schema = pa.schema([("id", pa.int64()), ("minima", numbers), ("keys", numbers)])
    with pq.ParquetFile(texts) as file, pq.ParquetWriter(signatures, schema) as writer:
        for batch in sketch(file.iter_batches(10_000, columns=["id", "body"])):
            writer.write_batch(batch)
