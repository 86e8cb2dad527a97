"""The details of refused records in dead letters, as plain Python and as Spark SQL with the same text."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_origin

from contracts.types.columns import is_model, text, without_none
from contracts.types.key import LARGEST_KEY

TIME_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
NOT_AN_OBJECT = "not one JSON object"
HALF_A_CHARACTER = "an escape is half a character"
KEY_EXCERPT = 100
"""The length of the part of a key in a detail: in characters, or in bytes where they are not UTF-8."""
KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
AHEAD = "set the device's clock, or declare a larger skew"
LATE = "send records sooner, or declare a longer lifetime or grace; in a replay, give each record its event's time"
LATE_WINDOWS = "send records sooner, or declare a longer grace; in a replay, give each record its event's time"
LARGE_KEY = f" bytes, and {LARGEST_KEY} are allowed"
NO_WINDOW = "first_seen: no window of the state starts then"
WRONG_KEY = "send each record under the key of its device"
NO_KEY, KEY_IS = "the record has no key", "the record's key is "
STAMP, JOB = " (the record's timestamp)", " (the job's clock)"


def oversized(size: int, largest: int) -> str:
    """The record has so many bytes."""
    return f"{size} bytes, and {largest} are allowed"


def oversized_sql(value: str, largest: int) -> str:
    """The SQL of `oversized`, over an expression of bytes."""
    return f"concat(length({value}), {text(f' bytes, and {largest} are allowed')})"


def mistyped(name: str, annotation: Any) -> str:
    """A field of the record, or something in it, does not have its declared type."""
    inner, _ = without_none(annotation)
    if get_origin(inner) is list:
        return f"{name} is not a list of the declared type"
    if is_model(inner) or get_origin(inner) is dict:
        return f"{name} is not an object of the declared type"
    return f"{name} is not {KINDS.get(inner, 'a text')}"


def wrong_key(field: str, given: bytes | None, expected: str) -> str:
    """The record's key is not its device's."""
    found = NO_KEY if given is None else f"{KEY_IS}{_key_excerpt(given)}"
    return f"{found}, and its {field} is {expected[:KEY_EXCERPT]}: {WRONG_KEY}"


def wrong_key_sql(field: str, given: str, expected: str) -> str:
    """The SQL of `wrong_key`, over expressions of bytes and of a text."""
    excerpt = (
        f"CASE WHEN is_valid_utf8(CAST({given} AS STRING)) THEN left(CAST({given} AS STRING), {KEY_EXCERPT})"
        f" ELSE concat('0x', hex(left({given}, {KEY_EXCERPT}))) END"
    )
    found = f"coalesce(concat({text(KEY_IS)}, {excerpt}), {text(NO_KEY)})"
    return (
        f"concat({found}, {text(f', and its {field} is ')}, left({expected}, {KEY_EXCERPT}), {text(f': {WRONG_KEY}')})"
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
