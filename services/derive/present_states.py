"""The newest snapshot of each window of one partition, in a file on disk.

The file is a cache: it is deleted when it is open, so it ends with the process, and is filled from the topic.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from contracts.wire import decode_snapshot
from services.derive.errors import StatesNotStoredError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contracts.wire import Order, Snapshot

Window = tuple[str, datetime]
"""A key and the start of its window."""

MAP_SIZE = 1 << 36
"""In bytes. It only reserves addresses."""
FIRST = datetime(1, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
START = struct.Struct(">Q")
"""The start of a window, as microseconds since the year 1: it sorts as the time does."""
ORDER = struct.Struct(">QQ")
"""Epoch and version, before the snapshot."""


class WindowSlice(NamedTuple):
    """Windows in the order of their keys. `position` is that of the last key seen; None at the end."""

    windows: list[Window]
    position: bytes | None


class PresentStates:
    """Two databases: snapshots by key and window, and windows by their start. One thread uses it.

    It raises StatesNotStoredError when it opens, and when it writes.
    """

    def __init__(self) -> None:
        with _storing():
            folder = tempfile.mkdtemp(prefix="stateloop-derive-")
            self._env = lmdb.open(
                folder, map_size=MAP_SIZE, max_dbs=2, lock=False, sync=False, metasync=False, readahead=False
            )
            shutil.rmtree(folder)
            self._snapshots = self._env.open_db(b"snapshots")
            self._starts = self._env.open_db(b"starts")

    def order(self, window: Window) -> Order | None:
        """The epoch and version that are stored of a window."""
        with self._env.begin(self._snapshots) as txn:
            found = txn.get(_by_key(window))
        if found is None:
            return None
        epoch, version = ORDER.unpack_from(found)
        return epoch, version

    def get(self, windows: Iterable[Window]) -> list[Snapshot | None]:
        """The snapshots of these windows."""
        with self._env.begin(self._snapshots) as txn:
            found = [txn.get(_by_key(window)) for window in windows]
        return [None if one is None else decode_snapshot(one[ORDER.size :]) for one in found]

    def change(self, changes: Iterable[tuple[Window, Order, bytes | None]]) -> None:
        """Store snapshots in place of older ones; one without bytes is removed."""
        with _storing(), self._env.begin(write=True) as txn:
            for window, order, value in changes:
                key = _by_key(window)
                if value is None:
                    txn.delete(key, db=self._snapshots)
                    txn.delete(_by_start(window), db=self._starts)
                    continue
                stored = txn.get(key, db=self._snapshots)
                if stored is None:
                    txn.put(_by_start(window), b"", db=self._starts)
                elif ORDER.unpack_from(stored) >= order:
                    continue
                txn.put(key, ORDER.pack(*order) + value, db=self._snapshots)

    def of_key(self, key: str) -> list[Window]:
        """All windows of a key."""
        prefix, found = key.encode(), []
        with self._env.begin(self._snapshots) as txn:
            cursor = txn.cursor()
            is_there = cursor.set_range(prefix + START.pack(0))
            while is_there and (at := cursor.key()).startswith(prefix) and at <= prefix + b"\xff" * START.size:
                if len(at) == len(prefix) + START.size:
                    found.append(_window_of_key(at))
                is_there = cursor.next()
        return found

    def page(self, after: bytes | None, limit: int, matches: Callable[[str], bool]) -> WindowSlice:
        """The next keys that match, of at most `limit` keys after a position."""
        found: list[Window] = []
        position = after
        with self._env.begin(self._snapshots) as txn:
            cursor = txn.cursor()
            is_there = cursor.first() if after is None else cursor.set_range(after + b"\0")
            for _ in range(limit):
                if not is_there:
                    return WindowSlice(found, None)
                position = cursor.key()
                if matches(position[: -START.size].decode()):
                    found.append(_window_of_key(position))
                is_there = cursor.next()
        return WindowSlice(found, position)

    def started_before(self, time: datetime, limit: int) -> list[Window]:
        """The earliest windows, if they start before a time."""
        end = START.pack(max(0, (time - FIRST) // MICROSECOND))
        with self._env.begin(self._starts) as txn:
            return [_window(at) for at in _keys(txn, limit) if at[: START.size] < end]

    def count(self) -> int:
        """The number of windows."""
        with self._env.begin() as txn:
            return int(txn.stat(self._snapshots)["entries"])

    def close(self) -> None:
        """Give the disk space back."""
        self._env.close()


@contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except (lmdb.Error, OSError) as error:
        raise StatesNotStoredError(tempfile.gettempdir(), str(error)) from error


def _keys(txn: lmdb.Transaction, limit: int) -> Iterator[bytes]:
    cursor = txn.cursor()
    for _, key in zip(range(limit), cursor.iternext(keys=True, values=False), strict=False):
        yield bytes(key)


def _start(window: Window) -> bytes:
    return START.pack((window[1] - FIRST) // MICROSECOND)


def _by_key(window: Window) -> bytes:
    return window[0].encode() + _start(window)


def _by_start(window: Window) -> bytes:
    return _start(window) + window[0].encode()


def _window_of_key(key: bytes) -> Window:
    (start,) = START.unpack_from(key, len(key) - START.size)
    return key[: -START.size].decode(), FIRST + start * MICROSECOND


def _window(by_start: bytes) -> Window:
    (start,) = START.unpack_from(by_start)
    return by_start[START.size :].decode(), FIRST + start * MICROSECOND
