"""Types for asyncpg.

>>> connection = await asyncpg.connect(...)
>>> await neardup.asyncpg.register(connection)

From then on the connection takes and returns neardup.Fingerprint and its kin, arrays of them too.
For a pool: asyncpg.create_pool(init=neardup.asyncpg.register).
"""

from __future__ import annotations

from typing import Any

from ._types import CLASSES, QUERY, expect_types

__all__ = ["register"]


async def register(connection: Any) -> None:
    """Registers the types of the connection's database with the connection.

    Text is taken as well as values: '0123456789abcdef'. Raises LookupError if the database does
    not have the extension.
    """
    for name, schema, *_ in expect_types(await connection.fetch(QUERY)):
        value_class: Any = CLASSES[name]
        await connection.set_type_codec(
            name,
            schema=schema,
            encoder=lambda value, value_class=value_class: bytes(value_class(value)),
            decoder=value_class,
            format="binary",
        )
