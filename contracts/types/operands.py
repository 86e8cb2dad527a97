"""The operands of filters: which ones fit a field, their Spark SQL, and comparisons in Python with the same result.

Values are ordered as Spark orders them: text by its UTF-8 bytes, NaN above every other number. Of a whole number and
a float, both are compared as floats.
"""

import math
import operator
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from contracts.errors import DeclarationError
from contracts.types.columns import LONG, choices, text, without_none
from contracts.types.quantize import EPOCH, MICROSECOND

Operand = str | int | float | bool | datetime

EQUALITY: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}
ORDERING: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARISONS = EQUALITY | ORDERING
EXAMPLES = {str: "a text", int: "a number", float: "a number", bool: "True or False", datetime: "a datetime"}
"""The operands that fit a field of each type, in words."""


def operand_of(name: str, operand: object) -> Operand:
    """Return an operand that both sides can compare with. Raises DeclarationError."""
    where = f"field({name!r}) compared with {operand!r}"
    match operand:
        case None:
            write = f"Write field({name!r}).is_null() or field({name!r}).is_not_null()"
            raise DeclarationError(where, "a comparison with null is never true", write)
        case StrEnum():
            return operand.value
        case str() if not _is_utf8(operand):
            raise DeclarationError(where, "half a character occurs in no event", "Write a text that UTF-8 can encode")
        case bool() | str():
            return operand
        case int() if not -LONG <= operand < LONG:
            raise DeclarationError(where, "is no whole number of 64 bits", f"Write one from {-LONG} to {LONG - 1}")
        case float() if not math.isfinite(operand):
            raise DeclarationError(where, "occurs in no event", "Write a finite number")
        case int() | float():
            return operand
        case datetime(tzinfo=None):
            raise DeclarationError(where, "has no offset from UTC", "Write datetime(…, tzinfo=UTC)")
        case datetime():
            return operand.astimezone(UTC)
    write = "Write a str, an int, a float, a bool or a datetime"
    raise DeclarationError(where, f"cannot compare with a {type(operand).__name__}", write)


def declared_type(event: type[BaseModel], name: str, where: str) -> Any:
    """Return the type of a field, without `| None`. Raises DeclarationError for an unknown field."""
    if name not in event.model_fields:
        write = f"Name one of these: {', '.join(event.model_fields)}"
        raise DeclarationError(f"{where}: field({name!r})", f"{event.__name__} has no field of this name", write)
    return without_none(event.model_fields[name].annotation)[0]


def check_operand(declared: Any, operand: Operand, of: object, where: str, *, is_equality: bool) -> None:
    """Check that a field of this type can be compared with an operand. Raises DeclarationError."""
    allowed = choices(declared)
    kind = str if allowed else declared
    if kind not in EXAMPLES:
        spelled = getattr(declared, "__name__", declared)
        write = "Write is_null() or is_not_null(), or compare a field that is a text, a number, a bool or a time"
        raise DeclarationError(f"{where}: {of!r}", f"a field of type {spelled} cannot be compared", write)
    fits = isinstance(operand, (int, float) if kind in (int, float) else kind)
    if not fits or isinstance(operand, bool) is not (kind is bool):
        problem = f"the field is of type {kind.__name__}, and {operand!r} is not"
        raise DeclarationError(f"{where}: {of!r}", problem, f"Write {EXAMPLES[kind]}")
    if allowed and is_equality and operand not in allowed:
        problem = f"the field is never {operand!r}"
        raise DeclarationError(f"{where}: {of!r}", problem, f"Write one of these: {', '.join(map(repr, allowed))}")


def compare(sign: str, value: Any, operand: Operand) -> bool:
    """Return whether a value of an event, not null, compares so with an operand."""
    left, right = _ordered(value), _ordered(operand)
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if math.isnan(left):  # no operand is NaN
            return sign in ("!=", ">", ">=")
    return COMPARISONS[sign](left, right)


def _ordered(value: Any) -> Any:
    """A value that Python orders as Spark orders the original."""
    return value.encode(errors="surrogatepass") if isinstance(value, str) else value


def sql_literal(operand: Operand) -> str:
    """Return the Spark SQL of an operand."""
    match operand:
        case bool():
            return str(operand).lower()
        case str():
            return text(operand)
        case int():
            return f"{operand}L"
        case float():
            return f"double('{operand!r}')"
    return f"timestamp_micros({(operand - EPOCH) // MICROSECOND}L)"


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
