"""The index of a windowed state: finds the keys of one window, in their order, by a field's value, or by its number."""

from __future__ import annotations

import struct
from heapq import merge
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from services.query.store.packing import COLUMN_SIZE, HEADER, NO_HASH, field_hash, fields_at, value_hash
from services.query.store.window_keys import pack_start, split_entry_key, unpack_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmdb import Cursor, Transaction, _Database

NUMBER = struct.Struct(">Q")
FLOAT = struct.Struct(">d")
SIGN, ALL_BITS = 1 << 63, (1 << 64) - 1
NO_NUMBER = bytes(COLUMN_SIZE)
"""The bytes of a field that is no number: those of a NaN, which JSON does not have."""
PRESENT = b"\xff"
"""Begins the list of all keys of a window, where other lists have the number of their field."""
HASHED, NUMBERED = b"\0", b"\1"
"""The kind of a list's value: the hash of a text, or a number that sorts. A field is in one list of its window."""
BEYOND = b"\xff"
"""Sorts after the rest of every list's head."""


class WindowIndex:
    """Has a list of all keys for each window, and one for each window, declared field, and value of the field.

    LMDB stores a list as the sorted duplicates of its head: a list is one range, and its head is stored once.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(tuple(path.split(".")) for path in paths)
        self._numbers_at = HEADER.size + COLUMN_SIZE * len(paths)
        self._end = self._numbers_at + COLUMN_SIZE * len(paths)

    def columns(self, value: bytes) -> bytes:
        """See `EntryIndex`. They are the hashes of the indexed fields, and then their numbers."""
        if not self._paths:
            return b""
        fields = fields_at(value, self._paths)
        return b"".join(map(field_hash, fields)) + b"".join(map(_field_number, fields))

    def columns_of(self, data: bytes) -> bytes:
        """See `EntryIndex`."""
        return data[HEADER.size : self._end]

    def move(
        self, txn: Transaction[bytes], database: _Database, name: bytes, old: bytes | None, new: bytes | None
    ) -> None:
        """See `EntryIndex`."""
        if old == new:
            return
        key, window_start = split_entry_key(name)
        start = pack_start(window_start)
        before, after = self._heads(start, old), self._heads(start, new)
        for head in before - after:
            txn.delete(head, key, db=database)
        for head in after - before:
            txn.put(head, key, db=database)

    def _heads(self, start: bytes, columns: bytes | None) -> set[bytes]:
        """Return the heads of the lists that have an entry with these columns."""
        if columns is None:
            return set()
        heads, half = {PRESENT + start}, len(columns) // 2
        for field, at in enumerate(range(0, half, COLUMN_SIZE)):
            value, number = columns[at : at + COLUMN_SIZE], columns[half + at : half + at + COLUMN_SIZE]
            if number != NO_NUMBER:
                heads.add(bytes([field]) + start + NUMBERED + number)
            elif value != NO_HASH:
                heads.add(bytes([field]) + start + HASHED + value)
        return heads


class IndexedWindow(NamedTuple):
    """One window in the index of a slot, as a transaction sees it."""

    txn: Transaction[bytes]
    database: _Database
    window_start: int

    def keys(self, first: bytes) -> Iterator[bytes]:
        """Yield the keys of the window, from a first one on."""
        return self._names(PRESENT + pack_start(self.window_start), first)

    def find(self, field: int, text: str, first: bytes) -> Iterator[bytes]:
        """Yield the keys whose field may have this text, from a first one on; the hash in the entry decides."""
        prefix = bytes([field]) + pack_start(self.window_start)
        heads = [prefix + HASHED + value_hash(text)]
        if (number := _parse_number(text)) != NO_NUMBER:
            heads.append(prefix + NUMBERED + number)
        return merge(*(self._names(head, first) for head in heads))

    def ordered(
        self, field: int, after: tuple[float, bytes] | None, *, descending: bool
    ) -> Iterator[tuple[float, bytes]]:
        """Yield the keys with the numbers of a field, by number and key, after a place in that order."""
        prefix = bytes([field]) + pack_start(self.window_start) + NUMBERED
        with self.txn.cursor(self.database) as cursor:
            position = _position_before if descending else _position_after
            found = position(cursor, prefix, None if after is None else (pack_number(after[0]), after[1]))
            move = cursor.prev if descending else cursor.next
            while found and (head := cursor.key()).startswith(prefix):
                yield unpack_number(head[len(prefix) :]), cursor.value()
                found = move()

    def _names(self, head: bytes, first: bytes) -> Iterator[bytes]:
        with self.txn.cursor(self.database) as cursor:
            if cursor.set_range_dup(head, first) if first else cursor.set_key(head):
                yield from cursor.iternext_dup()


def newest_window(txn: Transaction[bytes], database: _Database, after: int, until: int) -> int | None:
    """Return the latest window in the index that has keys and a start in (after, until]."""
    with txn.cursor(database) as cursor:
        if not _before(cursor, PRESENT + pack_start(until) + BEYOND):
            return None
        head = cursor.key()
        start = unpack_start(head[len(PRESENT) :]) if head.startswith(PRESENT) else after
    return start if start > after else None


def pack_number(number: float) -> bytes:
    """Return a number as bytes that sort like it: IEEE 754 with the sign turned, and all bits of negative ones."""
    bits: int = NUMBER.unpack(FLOAT.pack(number + 0.0))[0]  # + 0.0: a zero has no sign
    return NUMBER.pack(ALL_BITS - bits if bits & SIGN else bits | SIGN)


def unpack_number(data: bytes) -> float:
    """Return the number that `pack_number` packed."""
    bits: int = NUMBER.unpack(data)[0]
    return FLOAT.unpack(NUMBER.pack(bits - SIGN if bits & SIGN else ALL_BITS - bits))[0]  # type: ignore[no-any-return]


def _field_number(value: Any) -> bytes:
    return pack_number(value) if type(value) in (int, float) else NO_NUMBER


def _parse_number(text: str) -> bytes:
    try:
        return _field_number(orjson.loads(text))
    except orjson.JSONDecodeError:
        return NO_NUMBER


def _before(cursor: Cursor[bytes], key: bytes) -> bool:
    """Move to the last item before all of this key; return whether there is one."""
    return cursor.prev() if cursor.set_range(key) else cursor.last()


def _position_after(cursor: Cursor[bytes], prefix: bytes, after: tuple[bytes, bytes] | None) -> bool:
    if after is None:
        return cursor.set_range(prefix)
    head, key = prefix + after[0], after[1]
    return cursor.set_range_dup(head, key + b"\0") or cursor.set_range(head + b"\0")


def _position_before(cursor: Cursor[bytes], prefix: bytes, before: tuple[bytes, bytes] | None) -> bool:
    if before is None:
        return _before(cursor, prefix + BEYOND * (COLUMN_SIZE + 1))
    head, key = prefix + before[0], before[1]
    return cursor.prev() if cursor.set_range_dup(head, key) else _before(cursor, head + b"\0")
