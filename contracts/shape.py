"""The shape of a record's JSON: the pydantic model of an input topic, read strictly and without surprises.

The job reads the same shapes with native expressions (spark_app/decode.py); a corpus of hostile records holds the two
to the same verdicts.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, create_model

from contracts.application import Application
from contracts.bounds import Bound, bounds, instant, needed
from contracts.columns import is_model, without_none
from contracts.document import Object, as_text, parse
from contracts.record import Reason, Refused
from contracts.tracing import FIELD
from contracts.wire import Feedback

LONG = 1 << 63


def feedback_shape(application: Application) -> type[BaseModel]:
    """The shape of this application's feedback: each enrichment has its own model under its name in `result`."""
    results: dict[str, Any] = {one.name: (one.result | None, None) for one in application.enrichments}
    names = tuple(application.by_name)
    own: dict[str, Any] = {
        "enrichment": (_literal(names), ...),
        "result": (create_model("Results", **results) | None, None),
    }
    inherited: dict[str, Any] = {
        name: (field.annotation, field)
        for name, field in Feedback.model_fields.items()
        if name not in own and (name != FIELD or application.traced)
    }
    return create_model("Feedback", **inherited, **own)


def read(shape: type[BaseModel], value: bytes | None, largest: int) -> dict[str, Any]:
    """The fields of a record, missing ones as None, times as instants. Raises Refused."""
    if not value:
        raise Refused(Reason.EMPTY)
    if len(value) > largest:
        raise Refused(Reason.OVERSIZED)
    fields = _struct(parse(value), shape)
    _judge(fields, shape)
    return fields


@cache
def _types(shape: type[BaseModel]) -> dict[str, Any]:
    """The types of a shape's fields, without `| None`: to find them costs as much as to read a record."""
    return {name: without_none(field.annotation)[0] for name, field in shape.model_fields.items()}


@cache
def _bounds(shape: type[BaseModel]) -> dict[str, tuple[Bound, ...]]:
    return bounds(shape)


def _judge(fields: dict[str, Any], shape: type[BaseModel]) -> None:
    """Make times of the texts that are declared so, and raise Refused for the first field that breaks a condition."""
    for name, kind in _types(shape).items():
        value = fields[name]
        if value is not None and kind is datetime:
            fields[name] = value = instant(value)
            right = value is not None
        elif value is None:
            right = not needed(shape.model_fields[name])
        else:
            right = all(bound.holds(value) for bound in _bounds(shape)[name])
        if not right:
            raise Refused(Reason.INVALID_FIELD, name)


def _literal(names: tuple[str, ...]) -> Any:
    return Literal[names] if names else str


def _struct(value: Any, shape: type[BaseModel]) -> dict[str, Any]:
    if not isinstance(value, Object):
        raise Refused(Reason.MALFORMED, f"not a {shape.__name__}")
    declared = _types(shape)
    given = ((name, _conform(item, declared[name], name)) for name, item in value.pairs if name in declared)
    return dict.fromkeys(declared) | dict(given)


def _conform(value: Any, inner: Any, name: str) -> Any:
    """The value as its declared type. Whole numbers serve as floats, any JSON serves as text, nothing else is bent."""
    if value is None:
        return None
    if is_model(inner):
        return _struct(value, inner)
    if get_origin(inner) in (list, dict):
        return _nested(value, inner, name)
    if inner not in (bool, int, float):
        return as_text(value)
    if not _FITS[inner](value):
        raise Refused(Reason.MALFORMED, f"{name} is not a {inner.__name__}")
    return _double(value) if inner is float else value


_FITS: dict[Any, Callable[[Any], bool]] = {
    bool: lambda value: isinstance(value, bool),
    int: lambda value: type(value) is int and -LONG <= value < LONG,
    float: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _nested(value: Any, annotation: Any, name: str) -> Any:
    kind, arguments = get_origin(annotation), get_args(annotation)
    if not isinstance(value, kind):
        raise Refused(Reason.MALFORMED, f"{name} is not a {kind.__name__}")
    if kind is list:
        return [_conform(item, without_none(arguments[0])[0], name) for item in value]
    return {key: _conform(item, without_none(arguments[1])[0], name) for key, item in value.pairs}


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
