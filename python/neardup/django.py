"""Fields, functions, an index and a constraint for Django.

INSTALLED_APPS has to have "django.contrib.postgres" (Django 6 checks it). The extension is created
by a migration with the operation NeardupExtension.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.indexes import PostgresIndex
from django.contrib.postgres.operations import CreateExtension
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DEFAULT_DB_ALIAS, NotSupportedError, models
from django.db.migrations.operations.base import Operation
from django.db.models import F, Func, Value
from django.db.models.lookups import PostgresOperatorLookup

from . import _setup
from ._types import CLASSES

__all__ = [
    "Ball",
    "BallField",
    "Fingerprint128Field",
    "Fingerprint256Field",
    "FingerprintField",
    "FingerprintSimilarity",
    "HammingDistance",
    "JaccardDistance",
    "MinHash",
    "MinHash128",
    "MinHash64",
    "MinHashSignatureField",
    "NeardupConstraint",
    "NeardupExtension",
    "NeardupIndex",
    "NeardupSetup",
    "Simhash",
    "Simhash128",
]


class NeardupExtension(CreateExtension):
    """Creates the extension, in a migration. Reversed, it drops it."""

    def __init__(self, hints: Any = None) -> None:
        super().__init__("neardup")
        self.hints = hints or {}


class NeardupSetup(Operation):
    """Adds a search, or a rule for near-duplicates, to a table in use, in a migration with
    ``atomic = False``: runs the statements of ``neardup_setup``. Reversed, it removes them.

    ``action`` is ``search``, ``skip``, ``error`` or ``mark``. ``options`` are further arguments of
    the trigger, such as ``["confirm=body"]``. With ``mark``, ``keep`` is the order in which
    existing rows become originals, as after ORDER BY. A statement that needs a strong lock waits
    for it at most ``lock_timeout``, so that other sessions do not wait behind it, and is repeated
    up to ``attempts`` times.
    """

    def __init__(
        self,
        table: str,
        column: str,
        action: str = "search",
        similarity: float = 0.8,
        options: Sequence[str] = (),
        keep: str | None = None,
        lock_timeout: str = "1s",
        attempts: int = 60,
    ) -> None:
        self.table = table
        self.column = column
        self.action = action
        self.similarity = similarity
        self.options = list(options)
        self.keep = keep
        self.lock_timeout = lock_timeout
        self.attempts = attempts

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Django's models do not know the columns."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._run(schema_editor, "add")

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._run(schema_editor, "remove")

    def describe(self) -> str:
        return f"Add neardup {self.action} to {self.table}.{self.column}"

    def _run(self, schema_editor: Any, part: str) -> None:
        connection = schema_editor.connection
        if connection.in_atomic_block:
            raise NotSupportedError("NeardupSetup requires atomic = False in its migration")
        with connection.cursor() as cursor:
            cursor.execute(
                _setup.STATEMENTS.format("%s", "%s", "%s", "%s", "%s::text[]", "%s", "%s"),
                [
                    self.table,
                    self.column,
                    self.action,
                    self.similarity,
                    self.options,
                    self.keep,
                    part,
                ],
            )
            statements = [statement for (statement,) in cursor.fetchall()]
            _setup.run(statements, cursor.execute, self.lock_timeout, self.attempts)


class _ValueFormField(forms.CharField):
    """A form field for the text of a value. Without text it is None."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"empty_value": None, **kwargs})

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(None if initial is None else str(initial), data)


class _ValueField(models.Field):
    """A field whose values have a class of this package. Text and numbers are taken as well."""

    sql_type = ""

    def db_type(self, connection: Any) -> str:
        return self.sql_type

    # Parameters have a type, so that calls of overloaded functions resolve: ball(%s, 3). For
    # Django before 6.1:
    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        return f"%s::{self.sql_type}"

    # For Django 6.1 and later.
    def get_placeholder_sql(self, value: Any, compiler: Any, connection: Any) -> Any:
        if hasattr(value, "as_sql"):
            sql, params = compiler.compile(value)
            return f"{sql}::{self.sql_type}", params
        return f"%s::{self.sql_type}", (value,)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return None if value is None else CLASSES[self.sql_type](value)

    def to_python(self, value: Any) -> Any:
        if value is None or value == "":
            return None
        try:
            return CLASSES[self.sql_type](value)
        except (TypeError, ValueError) as error:
            raise ValidationError(str(error), code="invalid") from error

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        # An empty form field is empty text.
        return None if value is None or value == "" else str(CLASSES[self.sql_type](value))

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": _ValueFormField, **kwargs})

    def value_to_string(self, obj: Any) -> str:
        value = self.value_from_object(obj)
        return "" if value is None else str(value)


class FingerprintField(_ValueField):
    """64 bits: neardup.Fingerprint."""

    description = "Fingerprint of 64 bits"
    sql_type = "fingerprint"


class Fingerprint128Field(_ValueField):
    """128 bits: neardup.Fingerprint128."""

    description = "Fingerprint of 128 bits"
    sql_type = "fingerprint128"


class Fingerprint256Field(_ValueField):
    """256 bits: neardup.Fingerprint256."""

    description = "Fingerprint of 256 bits"
    sql_type = "fingerprint256"


class MinHashSignatureField(_ValueField):
    """A signature: neardup.MinHashSignature."""

    description = "MinHash signature"
    sql_type = "minhash_signature"


class BallField(models.Field):
    """The type of Ball, for expressions; not for models."""

    def db_type(self, connection: Any) -> str:
        return "fingerprint_ball"


_FIELDS: dict[type, type[_ValueField]] = {
    CLASSES[field.sql_type]: field
    for field in (
        FingerprintField,
        Fingerprint128Field,
        Fingerprint256Field,
        MinHashSignatureField,
    )
}


def _expression(value: Any) -> Any:
    """A value of this package as an expression; anything else as it is."""
    field = _FIELDS.get(type(value))
    return value if field is None else Value(value, output_field=field())


class _OfTwo(Func):
    """A function of two columns, expressions or values."""

    arity = 2

    def __init__(self, a: Any, b: Any, **extra: Any) -> None:
        super().__init__(_expression(a), _expression(b), **extra)


class HammingDistance(_OfTwo):
    """Number of bits in which two fingerprints differ: the operator `<~>`."""

    template = "(%(expressions)s)"
    arg_joiner = " <~> "
    output_field = models.IntegerField()


class JaccardDistance(_OfTwo):
    """Estimated Jaccard distance of two signatures, 0 to 1: the operator `<%>`."""

    template = "(%(expressions)s)"
    # Drivers read a single % as the start of a parameter.
    arg_joiner = " <%%> "
    output_field = models.FloatField()


class FingerprintSimilarity(_OfTwo):
    """Estimated Jaccard similarity of fingerprints by minhash64 or minhash128, or of signatures."""

    function = "fingerprint_similarity"
    output_field = models.FloatField()


class Ball(Func):
    """All values within a radius of a column or value: `ball(center, radius)`."""

    function = "ball"
    arity = 2
    output_field = BallField()

    def __init__(self, center: Any, radius: Any, **extra: Any) -> None:
        radius = radius if hasattr(radius, "resolve_expression") else Value(radius)
        super().__init__(_expression(center), radius, **extra)


class _OfText(Func):
    """A function of a text, with the options of SQL by name: MinHash64("body", shingle=2)."""

    arity = 1
    options = frozenset({"tokens", "shingle", "html", "accents", "digits"})

    def __init__(self, body: Any, **options: Any) -> None:
        unknown = options.keys() - self.options
        if unknown:
            raise TypeError(
                f"{self.function} has no option {', '.join(sorted(unknown))}; it has "
                f"{', '.join(sorted(self.options))}"
            )
        # The options are literals, because an index or a generated column cannot have parameters.
        literals = "".join(f", {name} => {_literal(options[name])}" for name in sorted(options))
        super().__init__(body, template=f"%(function)s(%(expressions)s{literals})")


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and re.fullmatch(r"[a-z0-9_:]+", value):
        return f"'{value}'"
    raise ValueError(f"{value!r} is no value of an option: they are names, numbers, True and False")


class MinHash64(_OfText):
    """The fingerprint of a text's set of features; `minhash64` of SQL."""

    function = "minhash64"
    output_field = FingerprintField()


class MinHash128(_OfText):
    """The 128-bit fingerprint of a text's set of features; `minhash128` of SQL."""

    function = "minhash128"
    output_field = Fingerprint128Field()


class MinHash(_OfText):
    """The MinHash signature of a text's set of features; `minhash` of SQL."""

    function = "minhash"
    options = _OfText.options | {"hashes", "seed", "scheme"}
    output_field = MinHashSignatureField()


class Simhash(_OfText):
    """The simhash of a text; `simhash` of SQL."""

    function = "simhash"
    options = _OfText.options | {"weight"}
    output_field = FingerprintField()


class Simhash128(_OfText):
    """The 128-bit simhash of a text; `simhash128` of SQL."""

    function = "simhash128"
    options = _OfText.options | {"weight"}
    output_field = Fingerprint128Field()


_OPTIONS = ("radius", "blocks", "similarity", "hashes", "bands", "rows", "fillfactor")


class _IndexOptions:
    """The options of an index: WITH (radius = 3, ...)."""

    def _take_options(self, given: dict[str, Any]) -> None:
        self.index_options = {
            name: given.pop(name) for name in _OPTIONS if given.get(name) is not None
        }
        for name, value in self.index_options.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"{name} of an index must be a number, not {value!r}")
        for name in _OPTIONS:
            given.pop(name, None)

    def get_with_params(self) -> list[str]:
        return [f"{name} = {value}" for name, value in self.index_options.items()]


class NeardupIndex(_IndexOptions, PostgresIndex):
    """An index USING neardup. Options by name: radius, blocks, similarity, hashes, bands,
    rows, fillfactor. For image hashes in a BigIntegerField, opclasses=["bigint_hamming_ops"]."""

    suffix = "neardup"

    def __init__(self, *expressions: Any, **given: Any) -> None:
        self._take_options(given)
        super().__init__(*expressions, **given)

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, **self.index_options}


class NeardupConstraint(_IndexOptions, ExclusionConstraint):
    """A constraint that keeps near-duplicates out: EXCLUDE USING neardup.

    >>> NeardupConstraint(name="one_copy", expressions=[("site", "="), (Ball("fp", 6), "~=")])

    The options of an index are taken by name, as by NeardupIndex.

    Forms check it if they have the fields from which the fingerprint is generated. The message
    names the existing row: violation_error_message may contain %(existing)s, %(pk)s and %(name)s.
    """

    default_violation_error_message = "Near-duplicate of “%(existing)s” (%(pk)s)."

    def __init__(self, **given: Any) -> None:
        self._take_options(given)
        # The class rejects all methods except GiST and SP-GiST.
        given.pop("index_type", None)
        super().__init__(**given)
        self.index_type = "neardup"

    def validate(
        self, model: Any, instance: Any, exclude: Any = None, using: str = DEFAULT_DB_ALIAS
    ) -> None:
        """Raises ValidationError if the instance is a near-duplicate of a row in the database.

        A form excludes fields that it does not have, always a generated one. The check depends on
        the fields that those are generated from. A stored instance has the values of excluded
        fields already; a new one may still get them.
        """
        parts = [
            (F(expression) if isinstance(expression, str) else expression, operator)
            for expression, operator in self.expressions
        ]
        expressions = [expression for expression, _ in parts]
        sources, generated = _references(model, [*expressions, self.condition])
        exclude = set(exclude or ())
        excluded = sources & exclude
        if excluded and (instance._state.adding or excluded == sources):
            return
        values = _values(model, instance, exclude - sources - generated)
        replacements = {F(field): value for field, value in values.items()}
        lookups = []
        for expression, operator in parts:
            lookup = PostgresOperatorLookup(
                lhs=_for_validation(expression),
                rhs=_for_validation(expression.replace_expressions(replacements)),
            )
            lookup.postgres_operator = operator
            lookups.append(lookup)
        rows = model._default_manager.using(using).filter(*lookups)
        if self.condition:
            if not self.condition.check(values, using=using):
                return
            rows = rows.filter(self.condition)
        if not instance._state.adding and instance.pk is not None:
            rows = rows.exclude(pk=instance.pk)
        # The index serves the condition on the fingerprint. ORDER BY would make the server sort.
        existing = next(iter(rows[:1]), None)
        if existing is not None:
            shown = {"name": self.name, "existing": existing, "pk": existing.pk}
            # Django 4.2 does not have codes.
            code = getattr(self, "violation_error_code", None) or "near_duplicate"
            raise ValidationError(self.violation_error_message, code=code, params=shown)

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        kwargs.pop("index_type", None)
        return path, args, {**kwargs, **self.index_options}

    def constraint_sql(self, model: Any, schema_editor: Any) -> Any:
        statement = super().constraint_sql(model, schema_editor)
        if self.index_options:
            # PostgreSQL's grammar has the parameters after INCLUDE.
            statement.parts["include"] += f" WITH ({', '.join(self.get_with_params())})"
        return statement

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, NeardupConstraint) and self.index_options != other.index_options:
            return False
        return super().__eq__(other)


def _for_validation(expression: Any) -> Any:
    """The expression without what only an index has, such as an operator class."""
    if hasattr(expression, "get_expression_for_validation"):
        return expression.get_expression_for_validation()
    return expression


def _values(model: Any, instance: Any, exclude: set[str]) -> Any:
    """The values of an instance by field, as expressions."""
    # Django 5.0 and earlier use the other name.
    for name in ("_get_field_expression_map", "_get_field_value_map"):
        if hasattr(instance, name):
            return getattr(instance, name)(meta=model._meta, exclude=exclude)
    raise NotImplementedError("this version of Django has no map of field values")


def _references(model: Any, expressions: Any) -> tuple[set[str], set[str]]:
    """The fields that expressions depend on: those that have values, and generated ones."""
    sources: set[str] = set()
    generated: set[str] = set()
    for expression in expressions:
        for name, *_ in model._get_expr_references(expression):
            try:
                field = model._meta.pk if name == "pk" else model._meta.get_field(name)
            except FieldDoesNotExist:
                continue
            if getattr(field, "generated", False):
                generated.add(field.name)
                of_field = _references(model, [field.expression])
                sources |= of_field[0]
                generated |= of_field[1]
            else:
                sources.add(field.name)
    return sources, generated


def _teach_json_encoder() -> None:
    """Has DjangoJSONEncoder write values of this package as text, as the server's to_jsonb does.

    The encoder has no registry of types, and JsonResponse, JSONField and serializers use this class
    by default.
    """
    others = DjangoJSONEncoder.default
    if getattr(others, "knows_neardup", False):
        return

    def default(self: Any, o: Any) -> Any:
        return str(o) if type(o) in _FIELDS else others(self, o)

    default.knows_neardup = True  # type: ignore[attr-defined]
    DjangoJSONEncoder.default = default  # type: ignore[method-assign]


_teach_json_encoder()
