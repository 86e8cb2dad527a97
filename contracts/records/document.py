"""Reads a record's JSON as strictly as the job's parser, and writes values as text in the same way."""

import json
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NoReturn

import orjson

from contracts.records.record import Reason, RecordError
from contracts.records.refusal import HALF_A_CHARACTER, not_an_object

LONE_SURROGATE = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""An escape of half a character, which no text can contain."""
LONGEST_NUMBER, LONGEST_NAME = 1_000, 50_000
"""In characters: the limits of the job's JSON parser."""
ESCAPE = b"\\"
PLAIN = 1e-3, 1e7
"""Java writes the numbers from here to there without an exponent."""


class Object(dict[str, Any]):
    """A JSON object with its repeated names: the last one counts, but the types of all are checked."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__((_bounded(name, LONGEST_NAME), value) for name, value in pairs)
        self.pairs = pairs


def parse(value: bytes) -> Object:
    """Return the JSON object of a record. Raises RecordError."""
    try:
        written = value.decode()
    except UnicodeDecodeError as error:
        raise RecordError(Reason.NOT_UTF8) from error
    if re.search(LONE_SURROGATE, written):
        raise RecordError(Reason.MALFORMED, HALF_A_CHARACTER)
    try:
        parsed = json.loads(
            written, parse_constant=_no_constant, parse_float=_float, parse_int=_int, object_pairs_hook=Object
        )
    except (ValueError, RecursionError) as error:
        raise RecordError(Reason.MALFORMED, not_an_object(written)) from error
    if not isinstance(parsed, Object):
        raise RecordError(Reason.MALFORMED, not_an_object(written))
    return parsed


def parse_own(value: bytes) -> dict[str, Any]:
    """Return the object of a record that orjson wrote: as `parse`, but several times as fast. Raises RecordError."""
    plain = len(value) <= LONGEST_NAME and ESCAPE not in value
    document: dict[str, Any] = orjson.loads(value) if plain else parse(value)
    return document


def pairs(value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The names of an object with what they name, repeated ones too."""
    return value.pairs if isinstance(value, Object) else value.items()


def as_text(value: Any) -> str:
    """Return the value of a text field for a value of JSON: a string itself, anything else as JSON."""
    return value if isinstance(value, str) else _written(value)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_written(name)}:{_written(item)}" for name, item in pairs(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(item) for item in value) + "]"
    return _java(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _java(number: float) -> str:
    """A number with a fraction or an exponent, as Java writes a double."""
    if not math.isfinite(number):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    if number == 0 or PLAIN[0] <= abs(number) < PLAIN[1]:
        return repr(number)
    sign, digits, _ = Decimal(repr(number)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{Decimal(repr(number)).adjusted()}"


def _float(written: str) -> float:
    return float(_bounded(written, LONGEST_NUMBER))


def _int(written: str) -> int:
    return int(_bounded(written, LONGEST_NUMBER))


def _bounded(written: str, most: int) -> str:
    if len(written) > most:
        raise ValueError(f"{len(written)} characters where {most} are borne")
    return written


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
