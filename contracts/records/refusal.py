"""The details of refused records in dead letters, as plain Python and as Spark SQL with the same text."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_origin

import annotated_types as at
from pydantic.fields import FieldInfo

from contracts.types.bounds import COMPARED, needed
from contracts.types.columns import choices, constraints, is_model, text, ungrouped, without_none
from contracts.types.key import LARGEST_KEY, MaxBytes

TIME_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
NOT_AN_OBJECT = "not one JSON object"
NON_NUMBER = r"[:,\[][ \t\r\n]*[-+]?(?:NaN|Infinity)[ \t\r\n]*[,}\]]"
"""A value that JSON does not have, and that several libraries write. It may also be a part of a text."""
NON_NUMBERS = f"{NOT_AN_OBJECT}: JSON has neither NaN nor Infinity, so send null, or leave the field out"
HALF_A_CHARACTER = "an escape is half a character"
KEY_EXCERPT = 100
"""The length of the part of a key in a detail: in characters, or in bytes where they are not UTF-8."""
KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
LISTED = 10
"""The number of allowed texts in a detail."""
INSIDE = " of the declared type and constraints"
TIME_KIND = "a time with an offset, such as 2026-01-01T12:00:00Z"
AHEAD = "set the device's clock, or declare a larger skew"
LATE = "send records sooner, or declare a longer lifetime or grace; in a replay, give each record its event's time"
LATE_WINDOWS = "send records sooner, or declare a longer grace; in a replay, give each record its event's time"
LARGE_KEY = f" bytes, and {LARGEST_KEY} are allowed"
NO_WINDOW = "first_seen: no window of the state starts then"
WRONG_KEY = "send each record under the key of its device"
NO_KEY, KEY_IS = "the record has no key", "the record's key is "
STAMP, JOB = " (the record's timestamp)", " (the job's clock)"


def oversized(size: int, largest: int) -> str:
    """The record has more bytes than are allowed."""
    return f"{size} bytes, and {largest} are allowed"


def oversized_sql(value: str, largest: int) -> str:
    """The SQL of `oversized`, over an expression of bytes."""
    return f"concat(length({value}), {text(f' bytes, and {largest} are allowed')})"


def not_an_object(written: str) -> str:
    """A record is not one JSON object. The detail names NaN and Infinity where they may be the cause."""
    return NON_NUMBERS if re.search(NON_NUMBER, written) else NOT_AN_OBJECT


def invalid(name: str, field: FieldInfo) -> str:
    """A field is missing, is no time, or breaks a constraint of its declaration: what is expected of it."""
    return f"{name} is {'missing, or ' if needed(field) else ''}not {_expected(field)}"


def mistyped(name: str, annotation: Any) -> str:
    """A field of the record, or something in it, does not have its declared type."""
    inner, _ = without_none(annotation)
    if get_origin(inner) is list:
        return f"{name} is not a list of the declared type"
    if is_model(inner) or get_origin(inner) is dict:
        return f"{name} is not an object of the declared type"
    return f"{name} is not {KINDS.get(inner, 'a text')}"


def wrong_key(field: str, key: bytes | None, expected: str) -> str:
    """The record's key is not its device's."""
    clause = NO_KEY if key is None else f"{KEY_IS}{_key_excerpt(key)}"
    return f"{clause}, and its {field} is {expected[:KEY_EXCERPT]}: {WRONG_KEY}"


def wrong_key_sql(field: str, key: str, expected: str) -> str:
    """The SQL of `wrong_key`, over expressions of bytes and of a text."""
    excerpt = (
        f"CASE WHEN is_valid_utf8(CAST({key} AS STRING)) THEN left(CAST({key} AS STRING), {KEY_EXCERPT})"
        f" ELSE concat('0x', hex(left({key}, {KEY_EXCERPT}))) END"
    )
    clause = f"coalesce(concat({text(KEY_IS)}, {excerpt}), {text(NO_KEY)})"
    return (
        f"concat({clause}, {text(f', and its {field} is ')}, left({expected}, {KEY_EXCERPT}), {text(f': {WRONG_KEY}')})"
    )


def large_key(name: str, key: str) -> str:
    """Several fields make a key that is too large."""
    return f"{name}: {len(key.encode())}{LARGE_KEY}"


def large_key_sql(name: str, key: str) -> str:
    """The SQL of `large_key`, over an expression of a text."""
    return f"concat({text(f'{name}: ')}, octet_length({key}), {text(LARGE_KEY)})"


def ahead(field: str, time: datetime, clock: datetime, whose: str, skew: timedelta) -> str:
    """A time of the record is ahead of the clock that it is compared with."""
    return f"{field} {_time(time)} is more than {skew} ahead of {_time(clock)}{whose}: {AHEAD}"


def ahead_sql(field: str, time: str, clock: str, whose: str, skew: timedelta) -> str:
    """The SQL of `ahead`; the times and `whose` are expressions."""
    between = text(f" is more than {skew} ahead of ")
    return (
        f"concat({text(f'{field} ')}, {_time_sql(time)}, {between}, {_time_sql(clock)}, {whose}, {text(f': {AHEAD}')})"
    )


def late(first_seen: datetime, clock: datetime, whose: str, kept_for: timedelta) -> str:
    """The record's window was over by the clock that it is compared with."""
    return f"first_seen {_time(first_seen)} is more than {kept_for} before {_time(clock)}{whose}: {LATE}"


def late_sql(first_seen: str, clock: str, whose: str, kept_for: timedelta) -> str:
    """The SQL of `late`; the times and `whose` are expressions."""
    between, last = text(f" is more than {kept_for} before "), text(f": {LATE}")
    return f"concat('first_seen ', {_time_sql(first_seen)}, {between}, {_time_sql(clock)}, {whose}, {last})"


def late_windows(ts: datetime, clock: datetime, whose: str, grace: timedelta) -> str:
    """All windows of a windowed state that contain the event were over by the clock."""
    return f"ts {_time(ts)}: its last window ended more than {grace} before {_time(clock)}{whose}: {LATE_WINDOWS}"


def late_windows_sql(ts: str, clock: str, whose: str, grace: timedelta) -> str:
    """The SQL of `late_windows`; the times and `whose` are expressions."""
    between, last = text(f": its last window ended more than {grace} before "), text(f": {LATE_WINDOWS}")
    return f"concat('ts ', {_time_sql(ts)}, {between}, {_time_sql(clock)}, {whose}, {last})"


def _expected(field: FieldInfo) -> str:
    """Return the declared type with its constraints."""
    inner, _ = without_none(field.annotation)
    if allowed := choices(inner):
        return f"one of {', '.join(allowed[:LISTED])}{', …' if len(allowed) > LISTED else ''}"
    inside = ""
    if get_origin(inner) is list:
        kind, inside = "a list", INSIDE
    elif is_model(inner) or get_origin(inner) is dict:
        kind, inside = "an object", INSIDE
    else:
        kind = TIME_KIND if inner is datetime else KINDS.get(inner, "a text")
    outer = (part for constraint in field.metadata for part in ungrouped(constraint))
    limits = [limit for constraint in (*outer, *constraints(field.annotation)) for limit in _limits(constraint, inner)]
    if not limits:
        return f"{kind}{inside}"
    return f"{kind} {' and '.join(limits)}{',' if inside else ''}{inside}"


def _limits(constraint: Any, inner: Any) -> Iterator[str]:
    """Yield the text of a constraint."""
    for kind, name, sign, _ in COMPARED:
        if isinstance(constraint, kind):
            yield f"{sign} {getattr(constraint, name)}"
    unit = "items" if get_origin(inner) is list else "characters"
    match constraint:
        case at.MinLen(min_length=limit):
            yield f"of {limit} or more {unit}"
        case MaxBytes(size=limit):
            yield f"of {limit} bytes or fewer"
        case at.MaxLen(max_length=limit):
            yield f"of {limit} {unit} or fewer"


def _key_excerpt(key: bytes) -> str:
    try:
        return key.decode()[:KEY_EXCERPT]
    except UnicodeDecodeError:
        return f"0x{key[:KEY_EXCERPT].hex().upper()}"


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _time_sql(time: str) -> str:
    """Return the SQL of a time on the wire, in a session in UTC."""
    return f"date_format({time}, {text(TIME_PATTERN)})"
