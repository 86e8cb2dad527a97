"""From a record of a state's topic to an update of its store. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from contracts.types.key import LARGEST_KEY
from contracts.wire.window_key import parse_window_key
from services.query.store.entry import Entry, made
from services.query.store.store import Update

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState

LARGEST = (1 << 63) - 1
FIRST_MS = -62_135_596_800_000
"""The year 1, in which times that can be written begin."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
AHEAD_MS = 24 * 3600 * 1000
"""How much later than its record was written a life may begin: one wrong clock must not end all other lives."""
TIMES_KEPT = 10_000


class Garbage(Exception):
    """A record that says nothing of the state. `reason` does not tell what is in it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Read(NamedTuple):
    """A record as the topic has it. The timestamp is in milliseconds, negative if there is none."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: int


class Decoder:
    """Reads the records of a state, by the paths that it declares."""

    def __init__(self, state: NamedState) -> None:
        self._key = _path(state.key)
        self._life = _path(state.life)
        self._epoch = _path(state.epoch)
        self._version = _path(state.version)
        self._event_time = _path(state.event_time)
        self._windowed = state.windowed
        self._ends = state.lifetime is not None

    def decode(self, read: Read) -> Update | None:
        """The update; None for a removal that does not say of which key. Raises Garbage."""
        key, value, partition, offset, timestamp = read
        if value is None:
            return self._removal(key, partition, offset)
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise Garbage("is no JSON") from error
        if type(document) is not dict:
            raise Garbage("is no object")
        name = _name(key) if self._key is None else _text(document, self._key)
        life = 0 if self._life is None else _time(document, self._life)
        if self._ends and life > timestamp + AHEAD_MS and timestamp >= 0:
            raise Garbage("its life begins a day after it was written, or more")
        epoch = 0 if self._epoch is None or _at(document, self._epoch) is None else _number(document, self._epoch)
        version = offset if self._version is None else _number(document, self._version)
        event_time = timestamp if self._event_time is None else _time(document, self._event_time)
        entry = made(Entry, (life, epoch, version, event_time, partition, offset, value))
        return made(Update, (name, partition, offset, entry, None))

    def _removal(self, key: bytes | None, partition: int, offset: int) -> Update | None:
        if self._windowed:
            name, start = _window(key)
            return Update(name, partition, offset, None, start)
        return Update(_name(key), partition, offset, None) if self._key is None else None


def _path(path: str | None) -> tuple[str, ...] | None:
    return None if path is None else tuple(path.split("."))


def _at(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    if len(path) == 1:  # as nearly all have it
        return document.get(path[0])
    found: Any = document
    for name in path:
        found = found.get(name) if type(found) is dict else None
    return found


def _number(document: dict[str, Any], path: tuple[str, ...]) -> int:
    found = _at(document, path)
    if type(found) is not int or not -LARGEST <= found <= LARGEST:
        raise Garbage(f"{'.'.join(path)} is no whole number")
    return found


def _time(document: dict[str, Any], path: tuple[str, ...]) -> int:
    """Milliseconds since 1970, as such or in ISO 8601; without an offset it is taken for UTC."""
    found = _at(document, path)
    try:
        time = _parsed(found) if type(found) is str else _number(document, path)
    except ValueError as error:
        raise Garbage(f"{'.'.join(path)} is no time") from error
    if time < FIRST_MS:
        raise Garbage(f"{'.'.join(path)} is before the year 1")
    return time


@lru_cache(TIMES_KEPT)
def _parsed(text: str) -> int:
    """Remembered, for each record of a life tells when that began. Raises ValueError."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - EPOCH) // MILLISECOND


def _text(document: dict[str, Any], path: tuple[str, ...]) -> str:
    found = _at(document, path)
    if type(found) is not str:
        raise Garbage(f"{'.'.join(path)} is no text")
    return _fitting(found, len(found.encode()))


def _name(key: bytes | None) -> str:
    if key is None:
        raise Garbage("has no key")
    try:
        return _fitting(key.decode(), len(key))
    except UnicodeDecodeError as error:
        raise Garbage("its key is no UTF-8") from error


def _window(key: bytes | None) -> tuple[str, int]:
    """The key, and the window's start in milliseconds, that a record's own key names."""
    try:
        name, start = parse_window_key(key or b"")
    except ValueError as error:
        raise Garbage("its key names no window") from error
    return _fitting(name, len(name.encode())), (start - EPOCH) // MILLISECOND


def _fitting(key: str, size: int) -> str:
    if not 0 < size <= LARGEST_KEY:
        raise Garbage(f"its key has {size} bytes, and may have 1 to {LARGEST_KEY}")
    return key
