"""Types for SQLAlchemy 2, on any driver for PostgreSQL.

Importing the module lets reflection know the types, and gives func.simhash, func.minhash64 and so
on the types of their results. Index options are SQLAlchemy's own:

>>> Index("page_fp", Page.fp, postgresql_using="neardup", postgresql_with={"radius": 6})

A column has, besides SQLAlchemy's operators, hamming_distance(), similarity() and is_near():

>>> select(Page.url).where(Page.fp.similarity(neardup.minhash64(body)) >= 0.8)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import ARRAY, Boolean, Connection, Float, Integer, Text, bindparam, func, text
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import UserDefinedType

from . import _setup
from ._types import CLASSES

__all__ = [
    "Ball",
    "BigintBall",
    "Fingerprint",
    "Fingerprint128",
    "Fingerprint128Ball",
    "Fingerprint256",
    "Fingerprint256Ball",
    "FingerprintBall",
    "MinHashBall",
    "MinHashSignature",
    "setup_table",
]


def setup_table(
    connection: Connection,
    table: str,
    column: str,
    action: str = "search",
    similarity: float = 0.8,
    options: Sequence[str] = (),
    keep: str | None = None,
    remove: bool = False,
    lock_timeout: str = "1s",
    attempts: int = 60,
) -> None:
    """Adds a search, or a rule for near-duplicates, to a table in use, or removes it: runs the
    statements of ``neardup_setup``. The connection commits each statement, as in Alembic's
    ``autocommit_block``.

    ``action`` is ``search``, ``skip``, ``error`` or ``mark``. ``options`` are further arguments of
    the trigger, such as ``["confirm=body"]``. With ``mark``, ``keep`` is the order in which
    existing rows become originals, as after ORDER BY. A statement that needs a strong lock waits
    for it at most ``lock_timeout``, so that other sessions do not wait behind it, and is repeated
    up to ``attempts`` times.
    """
    names = ["table", "column", "action", "similarity", "options", "keep", "part"]
    query = text(_setup.STATEMENTS.format(*[f":{name}" for name in names]))
    query = query.bindparams(bindparam("options", type_=ARRAY(Text)))
    part = "remove" if remove else "add"
    values = [table, column, action, similarity, list(options), keep, part]
    statements = connection.scalars(query, dict(zip(names, values))).all()
    _setup.run(statements, connection.exec_driver_sql, lock_timeout, attempts)


def _array_as_text(name: str, driver: str) -> TypeError:
    """The error for an array of a type that the driver does not know."""
    if driver == "psycopg":
        cure = (
            "register the types with each connection: event.listen(engine, 'connect', "
            "lambda connection, _: neardup.psycopg.register(connection))"
        )
    else:
        cure = (
            "read the array as text[]: type_coerce(cast(array, ARRAY(Text)), "
            f"ARRAY({CLASSES[name].__name__}))"
        )
    return TypeError(
        f"the driver {driver} returned an array of {name} as text, because it does not know the "
        f"type; {cure}"
    )


class _Type(UserDefinedType[Any]):
    """A type of the extension. `schema` is that of the extension if it is not on search_path."""

    # Parameters have a type, so that calls of overloaded functions resolve: ball(%s, 3).
    render_bind_cast = True
    name = ""

    def __init__(self, schema: str | None = None) -> None:
        self.schema = schema

    def __init_subclass__(cls, **options: Any) -> None:
        # SQLAlchemy does not inherit this attribute.
        cls.cache_ok = True
        super().__init_subclass__(**options)

    def get_col_spec(self, **options: Any) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


class _Values(_Type):
    """A type whose values have a class of this package."""

    @property
    def python_type(self) -> Any:
        return CLASSES[self.name]

    def bind_processor(self, dialect: Any) -> Any:
        value_class: Any = CLASSES[self.name]
        return lambda value: None if value is None else str(value_class(value))

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        value_class: Any = CLASSES[self.name]

        def process(value: Any) -> Any:
            # An array that the driver returns as text arrives here one character at a time.
            if value == "{":
                raise _array_as_text(self.name, dialect.driver)
            return None if value is None else value_class(value)

        return process

    def literal_processor(self, dialect: Any) -> Any:
        value_class: Any = CLASSES[self.name]
        return lambda value: f"'{value_class(value)}'::{self.get_col_spec()}"

    class Comparator(UserDefinedType.Comparator[Any]):
        """Operators of all these types."""

        def is_near(self, other: Any) -> ColumnElement[bool]:
            """Near-duplicates at the conventional threshold: the operator `~=`."""
            near = self.op("~=", is_comparison=True, return_type=Boolean())(other)
            return cast("ColumnElement[bool]", near)

        def similarity(self, other: Any) -> ColumnElement[float]:
            """Estimated Jaccard similarity, 0 to 1: `fingerprint_similarity` of SQL."""
            if not hasattr(other, "__clause_element__") and not isinstance(other, ColumnElement):
                other = bindparam(None, other, type_=self.type)
            return func.fingerprint_similarity(self.expr, other, type_=Float())

    comparator_factory = Comparator


class _Bits(_Values):
    """Fingerprints, which have a Hamming distance."""

    class Comparator(_Values.Comparator):
        """Operators of fingerprints."""

        def hamming_distance(self, other: Any) -> ColumnElement[int]:
            """Number of bits in which the two differ: the operator `<~>`."""
            return cast("ColumnElement[int]", self.op("<~>", return_type=Integer())(other))

    comparator_factory = Comparator


class Fingerprint(_Bits):
    """64 bits: neardup.Fingerprint."""

    name = "fingerprint"


class Fingerprint128(_Bits):
    """128 bits: neardup.Fingerprint128."""

    name = "fingerprint128"


class Fingerprint256(_Bits):
    """256 bits: neardup.Fingerprint256."""

    name = "fingerprint256"


class MinHashSignature(_Values):
    """A signature: neardup.MinHashSignature."""

    name = "minhash_signature"

    class Comparator(_Values.Comparator):
        """Operators of signatures."""

        def jaccard_distance(self, other: Any) -> ColumnElement[float]:
            """Estimated Jaccard distance, 0 to 1: the operator `<%>`."""
            return cast("ColumnElement[float]", self.op("<%>", return_type=Float())(other))

    comparator_factory = Comparator


class Ball(_Type):
    """Values within a radius of a centre, as text; made by func.ball(center, radius)."""


class FingerprintBall(Ball):
    """Fingerprints of 64 bits within a radius."""

    name = "fingerprint_ball"


class Fingerprint128Ball(Ball):
    """Fingerprints of 128 bits within a radius."""

    name = "fingerprint128_ball"


class Fingerprint256Ball(Ball):
    """Fingerprints of 256 bits within a radius."""

    name = "fingerprint256_ball"


class BigintBall(Ball):
    """Numbers of 64 bits within a radius."""

    name = "bigint_ball"


class MinHashBall(Ball):
    """Signatures within a distance."""

    name = "minhash_ball"


for _known in (
    Fingerprint,
    Fingerprint128,
    Fingerprint256,
    MinHashSignature,
    FingerprintBall,
    Fingerprint128Ball,
    Fingerprint256Ball,
    BigintBall,
    MinHashBall,
):
    ischema_names[_known.name] = _known


# Result types of func.minhash64(...) and similar calls.
for _name, _result in (
    ("simhash", Fingerprint),
    ("simhash128", Fingerprint128),
    ("minhash64", Fingerprint),
    ("minhash128", Fingerprint128),
    ("minhash", MinHashSignature),
):
    type(_name, (GenericFunction,), {"type": _result(), "inherit_cache": True, "name": _name})
