"""The constraints of values beyond their types, at any depth: each as Spark SQL and as a Python predicate."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args, get_origin

import annotated_types as at
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from contracts.errors import DeclarationError
from contracts.types.columns import RFC3339, choices, constraints, is_model, text, ungrouped, without_none
from contracts.types.echo import Echo
from contracts.types.key import MaxBytes

COMPARED: tuple[tuple[type, str, str, Callable[[Any, Any], bool]], ...] = (
    (at.Ge, "ge", ">=", operator.ge),
    (at.Gt, "gt", ">", operator.gt),
    (at.Le, "le", "<=", operator.le),
    (at.Lt, "lt", "<", operator.lt),
)


@dataclass(frozen=True)
class Bound:
    """One constraint of a value that is not null: as SQL over an expression, and as a Python predicate.

    The SQL is null where it looks at a null, and a null result counts as met.
    """

    sql: Callable[[str], str]
    is_met: Callable[[Any], bool]


def bounds(model: type[BaseModel]) -> dict[str, tuple[Bound, ...]]:
    """The conditions that the value of each field of a record must meet, from its type and its pydantic constraints.

    Raises DeclarationError for what cannot be checked on both sides.
    """
    _check_model(model)
    return {
        name: tuple(_bounds(field.annotation, field.metadata, f"{model.__name__}.{name}", inside=False))
        for name, field in model.model_fields.items()
    }


def all_are_met(each: tuple[Bound, ...], value: Any) -> bool:
    """Return whether a value that is there meets all its conditions."""
    for bound in each:  # noqa: SIM110  # there is mostly none, or one: a generator costs more than they do
        if not bound.is_met(value):
            return False
    return True


def needed(field: FieldInfo) -> bool:
    """Return whether a field must have a value. Missing and null are the same on the wire."""
    return field.is_required() and not without_none(field.annotation)[1]


def instant_sql(written: str) -> str:
    """The SQL of the time that a text is; null if it is none. For a session in UTC."""
    # Without an offset the cast takes the session's time zone, and need not look one up for each record.
    offsets = " ".join(f"WHEN endswith({written}, '{utc}') THEN {len(utc)}" for utc in ("Z", "+00:00"))
    # As bytes: a text is measured and cut character by character.
    bare = f"CAST(left(CAST({written} AS BINARY), octet_length({written}) - CASE {offsets} ELSE 0 END) AS STRING)"
    return f"CASE WHEN {written} RLIKE {text(RFC3339)} THEN try_cast({bare} AS TIMESTAMP) END"


def instant(written: str) -> datetime | None:
    """Return the time of a text, in UTC; None if it is no time."""
    try:
        return datetime.fromisoformat(written).astimezone(UTC) if re.match(RFC3339, written) else None
    except ValueError:
        return None


def _bounds(annotation: Any, outer: Iterable[Any], where: str, *, inside: bool) -> Iterator[Bound]:
    """`inside` a model or a list, a time is the text that it is on the wire."""
    inner, _ = without_none(annotation)
    if inner is float:
        yield Bound(lambda x: f"abs({x}) < double('Infinity')", math.isfinite)
    if inner is datetime and inside:
        yield Bound(
            lambda x: f"CASE WHEN {x} IS NOT NULL THEN {instant_sql(x)} IS NOT NULL END",
            lambda written: instant(written) is not None,
        )
    if allowed := choices(inner):
        listed = ", ".join(text(value) for value in allowed)
        yield Bound(lambda x: f"{x} IN ({listed})", allowed.__contains__)
    for constraint in (*(part for metadata in outer for part in ungrouped(metadata)), *constraints(annotation)):
        if not isinstance(constraint, Echo):  # the worker checks it: the job does not know the call
            yield _constraint(constraint, inner, where)
    if get_origin(inner) is list:
        yield from _of_items(tuple(_bounds(get_args(inner)[0], (), where, inside=True)))
    if get_origin(inner) is dict:
        _check_values(get_args(inner)[1], where)
    if is_model(inner):
        yield from _of_model(inner)


def _of_items(each: tuple[Bound, ...]) -> Iterator[Bound]:
    """Yield the constraint of a list's items. A null item meets it."""
    if each:
        yield Bound(
            lambda x: f"forall({x}, item -> {_all('item', each)})",
            lambda items: all(all_are_met(each, item) for item in items if item is not None),
        )


def _of_model(model: type[BaseModel]) -> Iterator[Bound]:
    _check_model(model)
    fields = {
        name: (needed(field), tuple(_bounds(field.annotation, field.metadata, f"{model.__name__}.{name}", inside=True)))
        for name, field in model.model_fields.items()
    }

    def sql(x: str) -> str:
        there = [f"{x}.`{name}` IS NOT NULL" for name, (must, _) in fields.items() if must]
        right = [_all(f"{x}.`{name}`", each) for name, (_, each) in fields.items() if each]
        return f"({x} IS NULL OR ({' AND '.join((*there, *right))}))"

    def is_met(values: dict[str, Any]) -> bool:
        for name, (must, each) in fields.items():
            value = values[name]
            if must if value is None else not all_are_met(each, value):
                return False
        return True

    if any(must or each for must, each in fields.values()):
        yield Bound(sql, is_met)


def _all(x: str, each: tuple[Bound, ...]) -> str:
    return " AND ".join(bound.sql(x) for bound in each)


def _constraint(constraint: Any, inner: Any, where: str) -> Bound:
    for kind, name, sign, is_met in COMPARED:
        if isinstance(constraint, kind):
            return _compared(sign, is_met, getattr(constraint, name), inner, where)
    size = {str: "length", list: "array_size"}.get(get_origin(inner) or inner)
    match constraint:
        case at.MinLen(min_length=limit) if size:
            return Bound(lambda x: f"{size}({x}) >= {limit}", lambda value: len(value) >= limit)
        case MaxBytes(size=limit) if size == "length":
            return Bound(lambda x: f"octet_length({x}) <= {limit}", lambda value: len(value.encode()) <= limit)
        case at.MaxLen(max_length=limit) if size:
            return Bound(lambda x: f"{size}({x}) <= {limit}", lambda value: len(value) <= limit)
    raise DeclarationError(
        where,
        f"the constraint {constraint!r} cannot be checked in the Spark job",
        "Use ge, gt, le, lt of a number, min_length, max_length of a str or a list, a Literal or a StrEnum",
    )


def _compared(sign: str, is_met: Callable[[Any, Any], bool], limit: Any, inner: Any, where: str) -> Bound:
    if inner is int and isinstance(limit, int):
        return Bound(lambda x: f"{x} {sign} {limit}", lambda value: is_met(value, limit))
    if inner is float and isinstance(limit, int | float):
        return Bound(lambda x: f"{x} {sign} double('{float(limit)}')", lambda value: is_met(value, float(limit)))
    write = "Bound an int by whole numbers and a float by numbers; other types have no order here"
    raise DeclarationError(where, f"the limit {limit!r} cannot be checked in the Spark job", write)


def _check_values(annotation: Any, where: str) -> None:
    """Only the job sees the values of repeated names. No state has a dict: floats pass."""
    if without_none(annotation)[0] is float and not list(constraints(annotation)):
        return
    if list(_bounds(annotation, (), where, inside=True)):
        raise DeclarationError(where, "the values of a dict cannot be checked", "Write a model, or a list of models")


def _check_model(model: type[BaseModel]) -> None:
    decorators = model.__pydantic_decorators__
    validators = (
        *decorators.validators,
        *decorators.field_validators,
        *decorators.root_validators,
        *decorators.model_validators,
    )
    settings = [setting for setting in model.model_config if setting.startswith("str_")]
    for name in (*validators, *settings):
        raise DeclarationError(
            f"{model.__name__}.{name}",
            "cannot be run in the Spark job",
            "Use constraints of the fields, such as Field(ge=0), and let the enrichment's function check a result",
        )
