"""The types that a record may have: one table from Python annotations to Spark SQL types, and the checks they imply."""

import math
import operator
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from contracts.errors import DeclarationError

SQL_TYPES: dict[object, str] = {str: "STRING", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", datetime: "TIMESTAMP"}
RFC3339 = (
    r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
    r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])(?![\s\S])"
)
"""How a time is written on the wire: with a date, a time of day and an offset; at most microseconds."""


def without_none(annotation: Any) -> tuple[Any, bool]:
    """An annotation without its `| None` and its metadata, and whether it had the `None`."""
    if get_origin(annotation) is Annotated:
        return without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        if len(parts) == 1 and len(parts) < len(get_args(annotation)):
            return without_none(parts[0])[0], True
    return (datetime if annotation is AwareDatetime else annotation), False


def is_model(annotation: Any) -> bool:
    """Whether an annotation is a pydantic model, which becomes a struct."""
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def choices(annotation: Any) -> tuple[str, ...]:
    """The texts that a `Literal` or a `StrEnum` allows; empty for every other annotation."""
    if get_origin(annotation) is Literal:
        return tuple(value for value in get_args(annotation) if isinstance(value, str))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return tuple(member.value for member in annotation)
    return ()


def sql_type(annotation: Any, where: str, *, times: str = "TIMESTAMP") -> str:
    """The Spark SQL type of an annotation. `times` is what a datetime becomes: STRING as read, or TIMESTAMP.

    Raises DeclarationError for a type that the wire does not carry.
    """
    inner, _ = without_none(annotation)
    if inner is datetime:
        return times
    if inner in SQL_TYPES:
        return SQL_TYPES[inner]
    if choices(inner):
        return "STRING"
    if is_model(inner):
        return struct_type(inner, where, times=times)
    arguments = get_args(inner)
    if get_origin(inner) is list:
        return f"ARRAY<{sql_type(arguments[0], where, times=times)}>"
    if get_origin(inner) is dict and arguments[0] is str:
        return f"MAP<STRING, {sql_type(arguments[1], where, times=times)}>"
    raise DeclarationError(
        where,
        f"{inner!r} has no place on the wire",
        "Write str, int, float, bool, datetime, a Literal of texts, a StrEnum, list[T], dict[str, T] or a model",
    )


def struct_type(model: type[BaseModel], where: str, *, times: str = "STRING") -> str:
    """The Spark SQL struct of a model. Times inside a struct stay the text that they are on the wire."""
    fields = ", ".join(
        f"`{name}`: {sql_type(field.annotation, f'{where}.{name}', times=times)}"
        for name, field in model.model_fields.items()
    )
    return f"STRUCT<{fields}>"


@dataclass(frozen=True)
class Bound:
    """One condition on a value that is there: as SQL over `{x}`, and as a Python predicate."""

    sql: str
    holds: Callable[[Any], bool]


def bounds(field: FieldInfo, where: str) -> Iterator[Bound]:
    """The conditions that a value of this field must meet, from its type and its pydantic constraints.

    Raises DeclarationError for a constraint that cannot be checked on both sides.
    """
    inner, _ = without_none(field.annotation)
    if inner is float:
        yield Bound("abs({x}) < double('Infinity')", math.isfinite)
    if allowed := choices(inner):
        yield Bound(f"{{x}} IN ({', '.join(text(value) for value in allowed)})", allowed.__contains__)
    for constraint in field.metadata:
        yield _bound(constraint, where)


def _bound(constraint: Any, where: str) -> Bound:
    match constraint:
        case at.Ge():
            return _compared(">=", operator.ge, constraint.ge)
        case at.Gt():
            return _compared(">", operator.gt, constraint.gt)
        case at.Le():
            return _compared("<=", operator.le, constraint.le)
        case at.Lt():
            return _compared("<", operator.lt, constraint.lt)
        case at.MinLen(min_length=limit):
            return Bound(f"length({{x}}) >= {limit}", lambda x: len(x) >= limit)
        case at.MaxLen(max_length=limit):
            return Bound(f"length({{x}}) <= {limit}", lambda x: len(x) <= limit)
    raise DeclarationError(
        where,
        f"the constraint {constraint!r} cannot be checked in the Spark job",
        "Use ge, gt, le, lt, min_length, max_length, a Literal or a StrEnum",
    )


def _compared(sign: str, holds: Callable[[Any, Any], bool], limit: Any) -> Bound:
    return Bound(f"{{x}} {sign} {limit!r}", lambda x: holds(x, limit))


def text(value: str) -> str:
    """A string literal of Spark SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
