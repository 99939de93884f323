"""Types for psycopg 3.

>>> with psycopg.connect(conninfo) as connection:
...     neardup.psycopg.register(connection)

From then on the connection takes and returns neardup.Fingerprint and its kin, arrays of them too,
as text and in binary. For a pool: ConnectionPool(configure=neardup.psycopg.register).
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.rows import tuple_row
from psycopg.types import TypeInfo

from ._types import CLASSES, QUERY, expect_types

__all__ = ["register", "register_async"]


def register(connection: psycopg.Connection[Any]) -> None:
    """Registers the types of the connection's database with the connection.

    Raises LookupError if the database does not have the extension.
    """
    with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(QUERY).fetchall()
    _register(connection, rows)


async def register_async(connection: psycopg.AsyncConnection[Any]) -> None:
    """As register, for an AsyncConnection."""
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        rows = await (await cursor.execute(QUERY)).fetchall()
    _register(connection, rows)


def _register(connection: Any, rows: Any) -> None:
    for name, _, oid, array_oid, full_name in expect_types(rows):
        TypeInfo(name, oid, array_oid, regtype=full_name).register(connection)
        for dumper in (_text_dumper(oid), _binary_dumper(oid)):
            connection.adapters.register_dumper(CLASSES[name], dumper)
        for loader in (_text_loader(CLASSES[name]), _binary_loader(CLASSES[name])):
            connection.adapters.register_loader(oid, loader)


def _text_dumper(type_oid: int) -> type[Dumper]:
    class TextDumper(Dumper):
        oid = type_oid

        def dump(self, obj: Any) -> bytes:
            return str(obj).encode()

    return TextDumper


def _binary_dumper(type_oid: int) -> type[Dumper]:
    class BinaryDumper(Dumper):
        format = Format.BINARY
        oid = type_oid

        def dump(self, obj: Any) -> bytes:
            return bytes(obj)

    return BinaryDumper


def _text_loader(value_class: Any) -> type[Loader]:
    class TextLoader(Loader):
        def load(self, data: Any) -> Any:
            return value_class(bytes(data).decode())

    return TextLoader


def _binary_loader(value_class: Any) -> type[Loader]:
    class BinaryLoader(Loader):
        format = Format.BINARY

        def load(self, data: Any) -> Any:
            return value_class(bytes(data))

    return BinaryLoader
