"""The newest snapshot of each window of one partition, in a file on disk.

The file is a cache: it is deleted when it is open, so it ends with the process, and is filled from the topic.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from contracts.wire import decode_snapshot
from contracts.wire.window_key import parse_window_key
from services.alerts.errors import StatesNotStoredError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from contracts.wire import Order, Snapshot

Window = tuple[str, datetime]
"""A key and the start of its window."""
Position = bytes
"""The key of a window's snapshot in the file: ordered by the key, then by the window's start."""

MAP_SIZE = 1 << 36
"""In bytes. It only reserves addresses."""
FIRST = datetime(1, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
START = struct.Struct(">Q")
"""The start of a window, as microseconds since the year 1: it sorts as the time does."""
ORDER = struct.Struct(">QQ")
"""Epoch and version, before the snapshot."""


class PositionPage(NamedTuple):
    """Positions in their order. `last` is the last one visited; None at the end."""

    positions: list[Position]
    last: Position | None


class PresentStates:
    """The newest snapshots, by key and window, and the windows by their start. One thread uses it.

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

    def order(self, position: Position) -> Order | None:
        """The epoch and version of the snapshot at a position."""
        with self._env.begin(self._snapshots) as txn:
            value = txn.get(position)
        if value is None:
            return None
        epoch, version = ORDER.unpack_from(value)
        return epoch, version

    def get(self, positions: Collection[Position]) -> Iterator[tuple[Position, Snapshot | None]]:
        """Yield the snapshots at these positions.

        Each is decoded when it is needed: a list of decoded ones takes twice as long.
        """
        with self._env.begin(self._snapshots) as txn:
            values = dict(txn.cursor().getmulti(positions))
        for position in positions:
            value = values.get(position)
            yield position, None if value is None else decode_snapshot(value[ORDER.size :])

    def change(self, changes: Iterable[tuple[Position, Order, bytes | None]]) -> None:
        """Store snapshots in place of older ones; one without bytes is removed."""
        with _storing(), self._env.begin(write=True) as txn:
            for position, order, value in changes:
                if value is None:
                    txn.delete(position, db=self._snapshots)
                    txn.delete(_by_start(position), db=self._starts)
                    continue
                stored = txn.get(position, db=self._snapshots)
                if stored is None:
                    txn.put(_by_start(position), b"", db=self._starts)
                elif ORDER.unpack_from(stored) >= order:
                    continue
                txn.put(position, ORDER.pack(*order) + value, db=self._snapshots)

    def expect(self, positions: Iterable[Position]) -> None:
        """List these windows by their start, also those that have no snapshot."""
        with _storing(), self._env.begin(self._starts, write=True) as txn:
            for position in positions:
                txn.put(_by_start(position), b"")

    def of_key(self, key: str) -> list[Position]:
        """The positions of all windows of a key."""
        prefix, positions = key.encode(), []
        with self._env.begin(self._snapshots) as txn:
            cursor = txn.cursor()
            is_there = cursor.set_range(prefix + START.pack(0))
            while is_there and (at := cursor.key()).startswith(prefix) and at <= prefix + b"\xff" * START.size:
                if len(at) == len(prefix) + START.size:
                    positions.append(at)
                is_there = cursor.next()
        return positions

    def page(self, prefix: str, matches: Callable[[str], object], after: Position | None, limit: int) -> PositionPage:
        """The next windows whose keys match, of at most `limit` windows after a position.

        All keys that match have this prefix.
        """
        start = prefix.encode()
        with self._env.begin(self._snapshots) as txn:
            cursor = txn.cursor()
            is_there = cursor.set_range(start if after is None else after + b"\0")
            visited = [*islice(cursor.iternext(values=False), limit)] if is_there else []
        matching = [
            position for position in visited if position.startswith(start) and matches(position[: -START.size].decode())
        ]
        is_last = len(visited) < limit or not visited[-1].startswith(start)
        return PositionPage(matching, None if is_last else visited[-1])

    def older_than(self, age: timedelta, time: datetime, limit: int) -> list[Position]:
        """The positions of the earliest windows, if they start more than `age` before a time."""
        end = START.pack(max(0, (time - FIRST - age) // MICROSECOND))
        with self._env.begin(self._starts) as txn:
            return [at[START.size :] + at[: START.size] for at in _keys(txn, limit) if at[: START.size] < end]

    def count(self) -> int:
        """The number of windows."""
        with self._env.begin() as txn:
            return int(txn.stat(self._snapshots)["entries"])

    def close(self) -> None:
        """Close the file, which frees its disk space."""
        self._env.close()


def position_of(window: Window) -> Position:
    """Return the position of a window."""
    return window[0].encode() + START.pack((window[1] - FIRST) // MICROSECOND)


def position_of_key(key: bytes | None) -> Position:
    """Return the position of the window that the key of a record names. Raises ValueError."""
    return position_of(parse_window_key(key or b""))


def start_of(position: Position) -> datetime:
    """Return the start of the window at a position."""
    microseconds: int = START.unpack(position[-START.size :])[0]
    return FIRST + microseconds * MICROSECOND


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


def _by_start(position: Position) -> bytes:
    return position[-START.size :] + position[: -START.size]
