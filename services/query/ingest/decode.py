"""Decodes a record of a state's topic into an update of its store; pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from contracts.types.key import LARGEST_KEY
from contracts.wire.window_key import parse_window_key
from services.query.ingest.errors import UndecodableRecordError
from services.query.store import Entry, Update
from services.query.store.entry import make_tuple
from services.query.store.window_keys import encode_key

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState

LARGEST = (1 << 63) - 1
FIRST_MS = -62_135_596_800_000
"""The year 1: the earliest time that ISO 8601 can express here."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
AHEAD_MS = 24 * 3600 * 1000
"""How far a window may start after its record's timestamp: one wrong clock must not expire all other windows."""
CACHED_TIMES = 10_000


class RawRecord(NamedTuple):
    """A record as it is on the topic. The timestamp is in milliseconds, negative if there is none."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: int


class UpdateDecoder:
    """Decodes the records of a state by the paths that it declares."""

    def __init__(self, state: NamedState) -> None:
        self._key = _path(state.key)
        self._window_start = _path(state.window_start)
        self._epoch = _path(state.epoch)
        self._version = _path(state.version)
        self._event_time = _path(state.event_time)
        self._windowed = state.windowed
        self._expires = state.lifetime is not None
        self._stores_windows = state.window is not None

    def decode(self, record: RawRecord) -> Update | None:
        """Return the update; None for a tombstone without a key. Raises UndecodableRecordError."""
        key, value, partition, offset, timestamp = record
        if value is None:
            return self._tombstone(key, partition, offset)
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise UndecodableRecordError("is not JSON") from error
        if type(document) is not dict:
            raise UndecodableRecordError("is not a JSON object")
        name = _name(key) if self._key is None else _text(document, self._key)
        self._check_stored(name)
        window_start = 0 if self._window_start is None else _time(document, self._window_start)
        if self._expires and window_start > timestamp + AHEAD_MS and timestamp >= 0:
            raise UndecodableRecordError("its window starts a day or more after its timestamp")
        epoch = 0 if self._epoch is None or _at(document, self._epoch) is None else _number(document, self._epoch)
        version = offset if self._version is None else _number(document, self._version)
        event_time = timestamp if self._event_time is None else _time(document, self._event_time)
        entry = make_tuple(Entry, (window_start, epoch, version, event_time, partition, offset, value))
        return make_tuple(Update, (name, partition, offset, entry, None))

    def _tombstone(self, key: bytes | None, partition: int, offset: int) -> Update | None:
        if self._windowed:
            name, start = _window(key)
            self._check_stored(name)
            return Update(name, partition, offset, None, start)
        if self._key is not None:
            return None
        name = _name(key)
        self._check_stored(name)
        return Update(name, partition, offset, None)

    def _check_stored(self, key: str) -> None:
        if self._stores_windows and encode_key(key) is None:
            raise UndecodableRecordError("its key has too many zero bytes")


def _path(path: str | None) -> tuple[str, ...] | None:
    return None if path is None else tuple(path.split("."))


def _at(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    if len(path) == 1:  # the usual case
        return document.get(path[0])
    found: Any = document
    for name in path:
        found = found.get(name) if type(found) is dict else None
    return found


def _number(document: dict[str, Any], path: tuple[str, ...]) -> int:
    found = _at(document, path)
    if type(found) is not int or not -LARGEST <= found <= LARGEST:
        raise UndecodableRecordError(f"{'.'.join(path)} is not an integer")
    return found


def _time(document: dict[str, Any], path: tuple[str, ...]) -> int:
    """Return milliseconds since 1970, from a number or from ISO 8601, where UTC is the default offset."""
    found = _at(document, path)
    try:
        time = _parsed(found) if type(found) is str else _number(document, path)
    except ValueError as error:
        raise UndecodableRecordError(f"{'.'.join(path)} is not a time") from error
    if time < FIRST_MS:
        raise UndecodableRecordError(f"{'.'.join(path)} is before the year 1")
    return time


@lru_cache(CACHED_TIMES)
def _parsed(text: str) -> int:
    """Parse ISO 8601. Cached, because all records of a window have the same start. Raises ValueError."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - EPOCH) // MILLISECOND


def _text(document: dict[str, Any], path: tuple[str, ...]) -> str:
    found = _at(document, path)
    if type(found) is not str:
        raise UndecodableRecordError(f"{'.'.join(path)} is not a string")
    return _checked(found, len(found.encode()))


def _name(key: bytes | None) -> str:
    if key is None:
        raise UndecodableRecordError("has no key")
    try:
        return _checked(key.decode(), len(key))
    except UnicodeDecodeError as error:
        raise UndecodableRecordError("its key is not UTF-8") from error


def _window(key: bytes | None) -> tuple[str, int]:
    """Return the key and the window's start in milliseconds, both from the record's key."""
    try:
        name, start = parse_window_key(key or b"")
    except ValueError as error:
        raise UndecodableRecordError("its key is not a window key") from error
    return _checked(name, len(name.encode())), (start - EPOCH) // MILLISECOND


def _checked(key: str, size: int) -> str:
    if not 0 < size <= LARGEST_KEY:
        raise UndecodableRecordError(f"its key has {size} bytes; 1 to {LARGEST_KEY} are allowed")
    return key
