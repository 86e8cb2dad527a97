"""The shape of a record's JSON: the pydantic model of an input topic, read strictly and without surprises.

The job reads the same shapes with native expressions (spark_app/decode.py); a corpus of hostile records holds the two
to the same verdicts.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, NoReturn, Self, get_args, get_origin

from pydantic import BaseModel, create_model

from contracts.application import Application
from contracts.columns import RFC3339, bounds, is_model, without_none
from contracts.record import Reason, Refused
from contracts.wire import Feedback

LONE_SURROGATE = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""An escape that is half a character: no text can hold it."""
LONG = 1 << 63
LONGEST_NUMBER, LONGEST_NAME = 1_000, 50_000
"""In characters: what the job's JSON parser bears at the most."""


def feedback_shape(application: Application) -> type[BaseModel]:
    """The shape of this application's feedback: each enrichment has its own model under its name in `result`."""
    results: dict[str, Any] = {one.name: (one.result | None, None) for one in application.enrichments}
    names = tuple(application.by_name)
    own: dict[str, Any] = {
        "enrichment": (_literal(names), ...),
        "result": (create_model("Results", **results) | None, None),
    }
    inherited: dict[str, Any] = {
        name: (field.annotation, field) for name, field in Feedback.model_fields.items() if name not in own
    }
    return create_model("Feedback", **inherited, **own)


def read(shape: type[BaseModel], value: bytes | None, largest: int) -> dict[str, Any]:
    """The fields of a record, missing ones as None, times as instants. Raises Refused."""
    if not value:
        raise Refused(Reason.EMPTY)
    if len(value) > largest:
        raise Refused(Reason.OVERSIZED)
    fields = _struct(_parse(value), shape)
    for name, field in shape.model_fields.items():
        if without_none(field.annotation)[0] is datetime and fields[name] is not None:
            fields[name] = _time(name, fields[name])
        if fields[name] is None:
            if field.is_required():
                raise Refused(Reason.INVALID_FIELD, name)
        elif not all(bound.holds(fields[name]) for bound in bounds(field, name)):
            raise Refused(Reason.INVALID_FIELD, name)
    return fields


def _literal(names: tuple[str, ...]) -> Any:
    return Literal[names] if names else str


def _parse(value: bytes) -> dict[str, Any]:
    try:
        written = value.decode()
    except UnicodeDecodeError as error:
        raise Refused(Reason.NOT_UTF8) from error
    if re.search(LONE_SURROGATE, written):
        raise Refused(Reason.MALFORMED, "half a character")
    try:
        parsed = json.loads(
            written, parse_constant=_no_constant, parse_float=_decimal, parse_int=_whole, object_pairs_hook=_object
        )
    except (ValueError, RecursionError) as error:
        raise Refused(Reason.MALFORMED, str(error)) from error
    if not isinstance(parsed, dict):
        raise Refused(Reason.MALFORMED, "not an object")
    return parsed


class _Decimal(float):
    """A float that remembers how it was written, for when it stands where a text is declared."""

    def __new__(cls, written: str) -> Self:
        self = super().__new__(cls, written)
        self.written = written
        return self

    written: str


def _decimal(written: str) -> float:
    return _Decimal(_bounded(written, LONGEST_NUMBER))


def _whole(written: str) -> int:
    return int(_bounded(written, LONGEST_NUMBER))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_bounded(name, LONGEST_NAME): value for name, value in pairs}


def _bounded(written: str, most: int) -> str:
    if len(written) > most:
        raise ValueError(f"{len(written)} characters where {most} are borne")
    return written


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _struct(value: Any, shape: type[BaseModel]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused(Reason.MALFORMED, f"not a {shape.__name__}")
    return {name: _conform(value.get(name), field.annotation, name) for name, field in shape.model_fields.items()}


def _conform(value: Any, annotation: Any, name: str) -> Any:
    """The value as its declared type. Whole numbers serve as floats, any JSON serves as text, nothing else is bent."""
    inner, _ = without_none(annotation)
    if value is None:
        return None
    if is_model(inner):
        return _struct(value, inner)
    if get_origin(inner) in (list, dict):
        return _nested(value, inner, name)
    if inner not in (bool, int, float):
        return _text(value)
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
        return [_conform(item, arguments[0], name) for item in value]
    return {key: _conform(item, arguments[1], name) for key, item in value.items()}


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return value.written if isinstance(value, _Decimal) else json.dumps(value, separators=(",", ":"))


def _time(name: str, written: str) -> datetime:
    try:
        if re.match(RFC3339, written):
            return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Refused(Reason.INVALID_FIELD, name)
