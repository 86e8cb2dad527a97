"""Decodes a record of a named state's topic by the paths that the state declares; pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from contracts.types.key import LARGEST_KEY
from contracts.wire.window_key import parse_window_key

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState

LARGEST = (1 << 63) - 1
FIRST_US = -62_135_596_800_000_000
"""The year 1: the earliest time that ISO 8601 can express here."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
US_PER_MS = 1000
AHEAD_MS = 24 * 3600 * 1000
"""The maximum time from a record's timestamp to its window's start: one wrong clock must not expire all windows."""
CACHED_TIMES = 10_000
CACHED_SOURCES = 10_000
ROOM = 24
"""The levels of JSON that are left for a response around a value: parsers refuse more than 1,024 levels in all."""
DEEPEST = 1024 - ROOM
"""The largest number of levels of a value."""
SOURCE_BYTES = 7
"""The size of a source's number: as a signed number of eight bytes it is positive."""


class StateRecord(NamedTuple):
    """A value of a key. Times are in microseconds since 1970; `window_start` is 0 in a state without windows."""

    key: str
    window_start: int
    epoch: int
    """The epoch; 0 if the records have none."""
    version: int
    event_time: int
    source: int = 0
    """A number of the record's source; 0 if all records of a key have one source."""


class Tombstone(NamedTuple):
    """A record without value: it removes the key, or one window of it."""

    key: str
    window_start: int | None
    """None in a state whose tombstones name no window."""


class UndecodableRecordError(Exception):
    """A record that is not one of the state. `reason` contains nothing of its content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StateRecordDecoder:
    """Decodes the records of one state."""

    def __init__(self, state: NamedState) -> None:
        self._key = _path(state.key)
        self._window_start = _path(state.window_start)
        self._epoch = _path(state.epoch)
        self._version = _path(state.version)
        self._copied_from = _path(state.copied_from)
        self._event_time = _path(state.event_time)
        self._source = _path(state.source)
        self._windowed = state.windowed
        self._expires = state.lifetime is not None

    def value(self, key: bytes | None, value: bytes, offset: int, timestamp: int) -> StateRecord:
        """Decode a record with a value. Raises UndecodableRecordError.

        The timestamp is in milliseconds, negative if there is none.
        """
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise UndecodableRecordError("is not JSON") from error
        if type(document) is not dict:
            raise UndecodableRecordError("is not a JSON object")
        if len(value) > 2 * DEEPEST and _is_too_deep(value):  # a level has two brackets
            raise UndecodableRecordError(f"has more than {DEEPEST} levels")
        name = _name(key) if self._key is None else _text(document, self._key)
        window_start = 0 if self._window_start is None else _time(document, self._window_start)
        if self._expires and timestamp >= 0 and window_start > (timestamp + AHEAD_MS) * US_PER_MS:
            raise UndecodableRecordError("its window starts a day or more after its timestamp")
        epoch = 0 if self._epoch is None or _at(document, self._epoch) is None else _number(document, self._epoch)
        version = _number(document, self._version) if self._version else self._position(document, offset)
        event_time = timestamp * US_PER_MS if self._event_time is None else _time(document, self._event_time)
        source = 0 if self._source is None else source_number(_text(document, self._source))
        return tuple.__new__(
            StateRecord, (name, window_start, epoch, version, event_time, source)
        )  # half the cost of its class

    def _position(self, document: dict[str, Any], offset: int) -> int:
        """Return the offset of the record, or of the one that it is a copy of."""
        path = self._copied_from
        return offset if path is None or _at(document, path) is None else _number(document, path)

    def tombstone(self, key: bytes | None) -> Tombstone | None:
        """Decode a record without value; None if it does not name a key. Raises UndecodableRecordError."""
        if self._windowed:
            return _window(key)
        return None if self._key is not None else Tombstone(_name(key), None)


@lru_cache(CACHED_SOURCES)
def source_number(name: str) -> int:
    """Return a number for the name of a source, which stores can compare in the same way everywhere."""
    return int.from_bytes(blake2b(name.encode(), digest_size=SOURCE_BYTES).digest())


def _is_too_deep(value: bytes) -> bool:
    """Return whether a valid document has more than DEEPEST levels, by the limit of the parser itself."""
    if value.count(b"{") + value.count(b"[") <= DEEPEST:
        return False
    try:
        orjson.loads(b"[" * ROOM + value + b"]" * ROOM)
    except orjson.JSONDecodeError:
        return True
    return False


def _path(path: str | None) -> tuple[str, ...] | None:
    return None if path is None else tuple(path.split("."))


def _at(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    if len(path) == 1:  # the usual case
        return document.get(path[0])
    value: Any = document
    for name in path:
        value = value.get(name) if type(value) is dict else None
    return value


def _number(document: dict[str, Any], path: tuple[str, ...]) -> int:
    number = _at(document, path)
    if type(number) is not int or not -LARGEST <= number <= LARGEST:
        raise UndecodableRecordError(f"{'.'.join(path)} is not an integer")
    return number


def _time(document: dict[str, Any], path: tuple[str, ...]) -> int:
    """Return microseconds since 1970, from a number of milliseconds or from ISO 8601, where UTC is the default."""
    value = _at(document, path)
    try:
        time = _parsed(value) if type(value) is str else _number(document, path) * US_PER_MS
    except ValueError as error:
        raise UndecodableRecordError(f"{'.'.join(path)} is not a time") from error
    if time < FIRST_US:
        raise UndecodableRecordError(f"{'.'.join(path)} is before the year 1")
    return time


@lru_cache(CACHED_TIMES)
def _parsed(text: str) -> int:
    """Parse ISO 8601. Cached, because all records of a window have the same start. Raises ValueError."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - EPOCH) // MICROSECOND


def _text(document: dict[str, Any], path: tuple[str, ...]) -> str:
    value = _at(document, path)
    if type(value) is not str:
        raise UndecodableRecordError(f"{'.'.join(path)} is not a string")
    return _checked(value, len(value.encode()))


def _name(key: bytes | None) -> str:
    if key is None:
        raise UndecodableRecordError("has no key")
    try:
        return _checked(key.decode(), len(key))
    except UnicodeDecodeError as error:
        raise UndecodableRecordError("its key is not UTF-8") from error


def _window(key: bytes | None) -> Tombstone:
    try:
        name, start = parse_window_key(key or b"")
    except ValueError as error:
        raise UndecodableRecordError("its key is not a window key") from error
    return Tombstone(_checked(name, len(name.encode())), (start - EPOCH) // MICROSECOND)


def _checked(key: str, size: int) -> str:
    if not 0 < size <= LARGEST_KEY:
        raise UndecodableRecordError(f"its key has {size} bytes; 1 to {LARGEST_KEY} are allowed")
    return key
