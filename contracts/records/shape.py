"""The shape of a record's JSON: the pydantic model of an input topic, read strictly and without surprises.

The job reads the same shapes with native expressions (spark_app/query/decode.py); tests compare the two with a corpus
of hostile records.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, create_model

from contracts.model.application import Application
from contracts.model.tracing import FIELD
from contracts.records.document import as_text, pairs, parse, parse_own
from contracts.records.record import Reason, RecordError
from contracts.records.refusal import invalid, mistyped, oversized
from contracts.types.bounds import Bound, all_are_met, bounds, instant, needed
from contracts.types.columns import LONG, is_model, without_none
from contracts.wire import Feedback

_Taker = Callable[[Any], Any]
AS_IT_IS = (bool, float, str)
"""The types whose values need no conversion after JSON is parsed."""


def feedback_shape(application: Application) -> type[BaseModel]:
    """The shape of this application's feedback: each enrichment has its own model under its name in `result`."""
    results: dict[str, Any] = {
        enrichment.recorded_as: (enrichment.result | None, None) for enrichment in application.enrichments
    }
    names = tuple(application.by_recorded_name)
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
    """The fields of a record, missing ones as None, times as instants. Raises RecordError."""
    if not value:
        raise RecordError(Reason.EMPTY)
    if len(value) > largest:
        raise RecordError(Reason.OVERSIZED, oversized(len(value), largest))
    fields = _typed(parse(value), shape)
    _judge(fields, shape)
    return fields


def check_own(shape: type[BaseModel], value: bytes) -> None:
    """Raise RecordError for a record that orjson wrote, if `read` would. The size is not checked."""
    _judge(_typed(parse_own(value), shape), shape)


def _typed(document: dict[str, Any], shape: type[BaseModel]) -> dict[str, Any]:
    try:
        return _struct(document, shape)
    except RecordError as refused:
        raise RecordError(Reason.MALFORMED, _first_mistyped(document, shape)) from refused


def _first_mistyped(document: dict[str, Any], shape: type[BaseModel]) -> str | None:
    """The detail of the first field of the shape that any value of its name in the document does not fit."""
    for name, field in _fields(shape).items():
        values = [item for key, item in pairs(document) if key == name and item is not None]
        try:
            for item in values:
                field.take(item)
        except RecordError:
            return mistyped(name, shape.model_fields[name].annotation)
    return None


class _Field(NamedTuple):
    exact: Any
    """The type of the values that need no conversion."""
    take: _Taker


class _Rule(NamedTuple):
    is_time: bool
    needed: bool
    bounds: tuple[Bound, ...]


@cache
def _rules(shape: type[BaseModel]) -> dict[str, _Rule]:
    """Return the rule of each field. It is cached: to compute the rules takes as long as to read a record."""
    limits = bounds(shape)
    return {
        name: _Rule(without_none(field.annotation)[0] is datetime, needed(field), limits[name])
        for name, field in shape.model_fields.items()
    }


@cache
def _fields(shape: type[BaseModel]) -> dict[str, _Field]:
    """Return the conversion of each field's value."""
    kinds = {name: (field.annotation, without_none(field.annotation)[0]) for name, field in shape.model_fields.items()}
    return {
        name: _Field(inner if inner in AS_IT_IS else None, _taker(annotation, name))
        for name, (annotation, inner) in kinds.items()
    }


def _judge(fields: dict[str, Any], shape: type[BaseModel]) -> None:
    """Parse the declared times, and raise RecordError for the first field that breaks a condition."""
    for name, rule in _rules(shape).items():
        value = fields[name]
        if value is not None and rule.is_time:
            fields[name] = value = instant(value)
            right = value is not None
        elif value is None:
            right = not rule.needed
        else:
            right = all_are_met(rule.bounds, value)
        if not right:
            raise RecordError(Reason.INVALID_FIELD, invalid(name, shape.model_fields[name]))


def _literal(names: tuple[str, ...]) -> Any:
    return Literal[names] if names else str


def _struct(value: Any, shape: type[BaseModel]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(Reason.MALFORMED, f"not a {shape.__name__}")
    fields = _fields(shape)
    struct: dict[str, Any] = dict.fromkeys(fields)
    for name, item in pairs(value):
        if field := fields.get(name):
            struct[name] = item if item is None or type(item) is field.exact else field.take(item)
    return struct


def _taker(annotation: Any, name: str) -> _Taker:
    """Return the function that converts a value other than null to its declared type, or raises RecordError.

    Whole numbers are valid floats, and any JSON is a valid text; nothing else is converted.
    """
    inner, _ = without_none(annotation)
    if is_model(inner):
        return partial(_struct, shape=inner)
    if get_origin(inner) in (list, dict):
        return _nested(inner, name)
    if inner in (bool, int, float):
        return partial(_number, kind=inner, name=name)
    return as_text


def _number(value: Any, kind: Any, name: str) -> Any:
    value_type = type(value)
    if value_type is not kind and not (kind is float and value_type is int):
        raise RecordError(Reason.MALFORMED, f"{name} is not a {kind.__name__}")
    if kind is int and not -LONG <= value < LONG:
        raise RecordError(Reason.MALFORMED, f"{name} is not a {kind.__name__}")
    return _double(value) if kind is float else value


def _nested(annotation: Any, name: str) -> _Taker:
    kind, arguments = get_origin(annotation), get_args(annotation)
    take_item = _taker(arguments[-1], name)

    def take(value: Any) -> Any:
        if not isinstance(value, kind):
            raise RecordError(Reason.MALFORMED, f"{name} is not a {kind.__name__}")
        if kind is list:
            return [None if item is None else take_item(item) for item in value]
        return {key: None if item is None else take_item(item) for key, item in pairs(value)}

    return take


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
