"""The names of entries in the database of a slot, and how the windows of a key are found by them.

A state that stores one window of each key names an entry by its key: one get finds it. A windowed state names an entry
by its key and the complement of the start of its window: the windows of a key are one range, the newest first. A zero
byte within a key is escaped, which leaves the order of keys as it is.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import lmdb
from typing_extensions import override

from contracts.types.key import LARGEST_KEY
from services.query.store.entry import make_tuple
from services.query.store.packing import order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lmdb import Cursor, Transaction

    from services.query.store.environment import Slot

NUMBER = struct.Struct(">Q")
FIRST_START, END_START = -(1 << 63), 1 << 63
"""The start of the earliest possible window, and a bound after the latest one."""
ALL_STARTS = FIRST_START, END_START
ZERO, ESCAPED, END, BOUND = b"\0", b"\0\xff", b"\0\0", b"\0\1"
SUFFIX_SIZE = len(END) + NUMBER.size


class StoredWindow(NamedTuple):
    """A packed entry, with its name and the slot that has it."""

    name: bytes
    data: bytes
    slot: Slot


class KeyNames:
    """Names an entry by its key, and finds the windows of a key in [first, end), of which there is one.

    Slots are in a sequence with the newest first.
    """

    has_windows = False
    """Whether a key has an entry for each of its windows."""

    def encode(self, key: str) -> bytes | None:
        """Return the bytes of a key; None for a text that is the key of no record."""
        try:
            name = key.encode()
        except UnicodeEncodeError:
            return None
        return name if 0 < len(name) <= LARGEST_KEY else None

    def name(self, key: bytes, window_start: int) -> bytes:  # noqa: ARG002 (a windowed state needs it)
        """Return the name of the entry of a window of a key."""
        return key

    def key(self, name: bytes) -> bytes:
        """Return the key of the entry with this name."""
        return name

    def windows(  # noqa: PLR0913 (a range in a slot)
        self,
        txn: Transaction[bytes],
        slot: Slot,
        key: bytes,
        first: int,
        end: int,
        *,
        newest_first: bool = True,  # noqa: ARG002 (of one)
    ) -> Iterator[StoredWindow]:
        """Yield the windows of the key that are in this slot, in order."""
        found = self.newest(txn, (slot,), key, first, end)
        if found is not None:
            yield found

    def newest(
        self, txn: Transaction[bytes], slots: Iterable[Slot], key: bytes, first: int, end: int
    ) -> StoredWindow | None:
        """Return the newest window of the key."""
        for slot in slots:
            data = txn.get(key, None, slot.entries)
            if data is not None:
                is_within = (first, end) == ALL_STARTS or first <= order(data)[0] < end
                return make_tuple(StoredWindow, (key, data, slot)) if is_within else None
        return None

    def newest_of_many(
        self, txn: Transaction[bytes], slots: Sequence[Slot], keys: Sequence[str], first: int, end: int
    ) -> list[bytes | None]:
        """Return the packed entries of the newest windows of many keys. Most are in the newest bucket."""
        if (first, end) != ALL_STARTS:
            return self._newest_of_each(txn, slots, keys, first, end)
        get, newest = txn.get, slots[0].entries
        try:
            found = [get(key.encode(), None, newest) for key in keys]
        except (UnicodeEncodeError, lmdb.BadValsizeError):
            return self._newest_of_each(txn, slots, keys, first, end)
        missing = [key for key, data in zip(keys, found, strict=True) if data is None]
        if not missing:
            return found
        others = iter(self._newest_of_each(txn, slots, missing, first, end))
        return [next(others) if data is None else data for data in found]

    def walk(self, txn: Transaction[bytes], slot: Slot, first: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys in a slot, in order and from a first one on, each with its newest window there."""
        with txn.cursor(slot.entries) as cursor:
            if cursor.set_range(first) if first else cursor.first():
                yield from cursor

    def _newest_of_each(
        self, txn: Transaction[bytes], slots: Sequence[Slot], keys: Sequence[str], first: int, end: int
    ) -> list[bytes | None]:
        names = map(self.encode, keys)
        windows = [None if name is None else self.newest(txn, slots, name, first, end) for name in names]
        return [None if window is None else window.data for window in windows]


class WindowNames(KeyNames):
    """Names an entry by its key and window. The windows of a newer slot are newer."""

    has_windows = True

    @override
    def encode(self, key: str) -> bytes | None:
        return encode_key(key)

    @override
    def name(self, key: bytes, window_start: int) -> bytes:
        return key.replace(ZERO, ESCAPED) + END + pack_start(window_start)

    @override
    def key(self, name: bytes) -> bytes:
        return name[:-SUFFIX_SIZE].replace(ESCAPED, ZERO)

    @override
    def newest(
        self, txn: Transaction[bytes], slots: Iterable[Slot], key: bytes, first: int, end: int
    ) -> StoredWindow | None:
        for slot in slots:
            for window in self.windows(txn, slot, key, first, end):
                return window
        return None

    @override
    def newest_of_many(
        self, txn: Transaction[bytes], slots: Sequence[Slot], keys: Sequence[str], first: int, end: int
    ) -> list[bytes | None]:
        return self._newest_of_each(txn, slots, keys, first, end)

    @override
    def windows(
        self, txn: Transaction[bytes], slot: Slot, key: bytes, first: int, end: int, *, newest_first: bool = True
    ) -> Iterator[StoredWindow]:
        prefix = key.replace(ZERO, ESCAPED) + END
        newest, oldest = prefix + pack_start(end - 1), prefix + pack_start(first)
        with txn.cursor(slot.entries) as cursor:
            found = cursor.set_range(newest) if newest_first else last_before(cursor, oldest + ZERO)
            move = cursor.next if newest_first else cursor.prev
            while found and newest <= (name := cursor.key()) <= oldest:
                yield make_tuple(StoredWindow, (name, cursor.value(), slot))
                found = move()

    @override
    def walk(self, txn: Transaction[bytes], slot: Slot, first: bytes) -> Iterator[tuple[bytes, bytes]]:
        with txn.cursor(slot.entries) as cursor:
            found = cursor.set_range(first.replace(ZERO, ESCAPED)) if first else cursor.first()
            while found:
                name, data = cursor.item()
                yield self.key(name), data
                found = cursor.set_range(name[:-SUFFIX_SIZE] + BOUND)


def encode_key(key: str) -> bytes | None:
    """Return the bytes of a key of a windowed state; None for a text that is the key of no record."""
    try:
        name = key.encode()
    except UnicodeEncodeError:
        return None
    return name if len(name) + name.count(ZERO) <= LARGEST_KEY else None


def pack_start(window_start: int) -> bytes:
    """Return a start as bytes that sort like its complement: the newest one is the first."""
    return NUMBER.pack(END_START - 1 - window_start)


def last_before(cursor: Cursor[bytes], name: bytes) -> bool:
    """Move to the last entry before this name; return whether there is one."""
    return cursor.prev() if cursor.set_range(name) else cursor.last()
