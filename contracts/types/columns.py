"""The types that a record may have: one table from Python annotations to Spark SQL types."""

import types
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from contracts.errors import DeclarationError

SQL_TYPES: dict[object, str] = {str: "STRING", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", datetime: "TIMESTAMP"}
LONG = 1 << 63
"""The bound of a BIGINT, which has 64 bits."""
SQL_SETTINGS = {
    # A number that does not fit must become null and a dead letter, never a failed query.
    "spark.sql.ansi.enabled": "false",
    # Times on the wire are UTC.
    "spark.sql.session.timeZone": "UTC",
}
"""The settings of the Spark session that every SQL expression is written for."""
RFC3339 = (
    r"^(?:[1-8][0-9]{3}|(?!0000|0001-01-01T[^+]*[+](?!00:00)|9999-12-31T[^-]*-(?!00:00))[0-9]{4})"
    r"-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:[.][0-9]{1,6})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])(?![\s\S])"
)
"""The format of a time on the wire: a date, a time of day with at most microseconds, and an offset.

The very first day has no offset to the east and the very last none to the west, so in UTC its year is 1 to 9999 too.
"""


def without_none(annotation: Any) -> tuple[Any, bool]:
    """An annotation without its `| None` and its metadata, and whether it had the `None`."""
    if get_origin(annotation) is Annotated:
        return without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        if len(parts) == 1 and len(parts) < len(get_args(annotation)):
            return without_none(parts[0])[0], True
    return (datetime if annotation is AwareDatetime else annotation), False


def constraints(annotation: Any) -> Iterator[Any]:
    """The metadata of `Annotated` for a type, also inside its `| None`."""
    inner, *metadata = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    yield from (constraint for part in metadata for constraint in ungrouped(part))
    if inner is not annotation:
        yield from constraints(inner)
    elif get_origin(inner) in (Union, types.UnionType):
        yield from (constraint for part in get_args(inner) for constraint in constraints(part))


def ungrouped(constraint: Any) -> Iterator[Any]:
    """A constraint's parts: `Field(ge=0, le=1)` and `Interval(ge=0, le=1)` are two."""
    if isinstance(constraint, FieldInfo | at.GroupedMetadata):
        parts = constraint.metadata if isinstance(constraint, FieldInfo) else constraint
        yield from (each for part in parts for each in ungrouped(part))
    elif constraint is not None:
        yield constraint


def is_model(annotation: Any) -> bool:
    """Return whether an annotation is a pydantic model, which becomes a struct."""
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def models(annotation: Any, known: tuple[type[BaseModel], ...] = ()) -> tuple[type[BaseModel], ...]:
    """The known models, and those of a type: itself, and in a model's fields, in a list's items, in a dict's values."""
    inner, _ = without_none(annotation)
    if inner in known:
        return known
    parts = get_args(inner)
    if is_model(inner):
        known, parts = (*known, inner), tuple(field.annotation for field in inner.model_fields.values())
    for part in parts:
        known = models(part, known)
    return known


def check_nulls(model: type[BaseModel]) -> None:
    """Raise DeclarationError for a null that would become a default: it is as if missing on the wire."""
    for one in models(model):
        for name, field in one.model_fields.items():
            default = None if field.is_required() else field.default_factory or field.default
            if default is not None and without_none(field.annotation)[1]:
                where, write = f"{one.__name__}.{name}", "Write `T | None = None`, or `T` with the default"
                raise DeclarationError(where, "may be null, and its default is another value", write)


def check_required(model: type[BaseModel]) -> None:
    """Raise DeclarationError for a field of a model that may be null and not missing: on the wire both are the same."""
    for name, field in model.model_fields.items():
        if field.is_required() and without_none(field.annotation)[1]:
            write = "Write `T` if it is required, and `T | None = None` if it is not"
            where = f"{model.__name__}.{name}"
            raise DeclarationError(where, "may be null but not missing, which are the same here", write)


def check_distinct(model: type[BaseModel]) -> None:
    """Raise DeclarationError for fields whose names differ in case only: Spark takes them for one."""
    names: dict[str, str] = {}
    for name in model.model_fields:
        if (other := names.setdefault(name.casefold(), name)) != name:
            problem = f"differs from {other!r} in case only, and Spark SQL ignores the case of names"
            raise DeclarationError(f"{model.__name__}.{name}", problem, "Rename one of them")


def choices(annotation: Any) -> tuple[str, ...]:
    """The texts that a `Literal` or a `StrEnum` allows; empty for every other annotation."""
    if get_origin(annotation) is Literal:
        values = get_args(annotation)
        return values if all(isinstance(value, str) for value in values) else ()
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
    """The Spark SQL struct of a model. Times inside a struct stay the text that they are on the wire.

    Raises DeclarationError for a model that contains itself.
    """
    if any(model in models(field.annotation) for field in model.model_fields.values()):
        raise DeclarationError(where, f"{model.__name__} contains itself", "Write `str`, and send it as JSON text")
    check_distinct(model)
    fields = ", ".join(
        f"`{name}`: {sql_type(field.annotation, f'{where}.{name}', times=times)}"
        for name, field in model.model_fields.items()
    )
    return f"STRUCT<{fields}>"


def text(value: str) -> str:
    """A string literal of Spark SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
