"""The index of a state: finds keys by the value of a field, by its number, or by the time of their last record."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import orjson

from services.query.store.keys import last_before
from services.query.store.packing import COLUMN_SIZE, HEADER, NO_HASH, field_hash, fields_at, value_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmdb import Cursor, Transaction, _Database

NUMBER = struct.Struct(">Q")
FLOAT = struct.Struct(">d")
SIGN, ALL_BITS = 1 << 63, (1 << 64) - 1
NO_NUMBER = bytes(COLUMN_SIZE)
"""The bytes of a field that is no number: those of a NaN, which JSON does not have."""
TIMES, PRESENT = b"\xfe", b"\xff"
"""Begin the heads of event times and of all keys of a window, where other heads begin with the number of a field."""
HASHED, NUMBERED = b"\0", b"\1"
"""The kind of a value: the hash of a text, or a number that sorts. A field of an entry has one of them."""
BEYOND = b"\xff" * (COLUMN_SIZE + 1)
"""Sorts after the rest of every head."""
SECOND = 1000
FIRST_SECOND = -(1 << 62)
"""Before every event time."""


class TermIndex:
    """Lists keys under heads: under the value of each declared field and, if it has `times`, their event time.

    LMDB stores a list as the sorted duplicates of its head: a list is one range, and its head is stored once. With
    `windowed`, each window has its own lists of values, one of all its keys, and fields that are numbers in their
    order: a new window is appended, which fills pages. An event time is that of the newest window of a key, in whole
    seconds: a key that changes several times within a second is moved once.
    """

    def __init__(self, paths: Sequence[str], *, windowed: bool, times: bool) -> None:
        self.columns_count = len(paths) * (1 + windowed)
        self.has_times = times
        self._paths = tuple(tuple(path.split(".")) for path in paths)
        self._windowed = windowed
        self._fields = tuple(bytes([number]) for number in range(len(paths)))
        self._end = HEADER.size + COLUMN_SIZE * self.columns_count

    def columns(self, value: bytes) -> bytes:
        """Return the columns of an entry's value: the hashes of the indexed fields, and those of windows' numbers."""
        if not self._paths:
            return b""
        fields = fields_at(value, self._paths)
        hashes = b"".join(map(field_hash, fields))
        return hashes + b"".join(map(_field_number, fields)) if self._windowed else hashes

    def columns_of(self, data: bytes) -> bytes:
        """Return the columns in a packed entry."""
        return data[HEADER.size : self._end]

    def move(  # noqa: PLR0913, PLR0917 (the place and its change)
        self,
        txn: Transaction[bytes],
        database: _Database,
        key: bytes,
        window_start: int,
        old: bytes | None,
        new: bytes | None,
    ) -> None:
        """Replace the columns of an entry; `old` is None for a new entry, `new` for a deleted one."""
        if old == new or not (self._paths or self._windowed):
            return
        before, after = self._heads(window_start, old), self._heads(window_start, new)
        for head in before:
            if head not in after:
                txn.delete(head, key, db=database)
        for head in after:
            if head not in before:
                txn.put(head, key, db=database)

    def move_time(
        self, txn: Transaction[bytes], database: _Database, key: bytes, old: int | None, new: int | None
    ) -> None:
        """Replace the event time of a key, in milliseconds since 1970; None if the key is not listed."""
        before, after = (None if time is None else TIMES + pack_number(time // SECOND) for time in (old, new))
        if before == after:
            return
        if before is not None:
            txn.delete(before, key, db=database)
        if after is not None:
            txn.put(after, key, db=database)

    def value_heads(self, field: int, text: str, window_start: int) -> list[bytes]:
        """Return the heads of the keys whose field may have this text; the hash in the entry decides."""
        prefix = self._fields[field] + self._window(window_start)
        number = _parse_number(text) if self._windowed else NO_NUMBER
        hashed = prefix + HASHED + value_hash(text)
        return [hashed] if number == NO_NUMBER else [hashed, prefix + NUMBERED + number]

    def present_head(self, window_start: int) -> bytes:
        """Return the head of all keys of a window."""
        return PRESENT + _pack_start(window_start)

    def numbers_prefix(self, field: int, window_start: int) -> bytes:
        """Return what the heads of the numbers of a field begin with."""
        return self._fields[field] + self._window(window_start) + NUMBERED

    def _window(self, window_start: int) -> bytes:
        return _pack_start(window_start) if self._windowed else b""

    def _heads(self, window_start: int, columns: bytes | None) -> list[bytes]:
        """Return the heads of the lists that have an entry with these columns."""
        if columns is None:
            return []
        window, numbers_at = self._window(window_start), COLUMN_SIZE * len(self._fields)
        heads = [PRESENT + window] if self._windowed else []
        for at, field in zip(range(0, numbers_at, COLUMN_SIZE), self._fields, strict=True):
            number = columns[numbers_at + at : numbers_at + at + COLUMN_SIZE] if self._windowed else NO_NUMBER
            if number != NO_NUMBER:
                heads.append(field + window + NUMBERED + number)
            elif (value := columns[at : at + COLUMN_SIZE]) != NO_HASH:
                heads.append(field + window + HASHED + value)
        return heads


def keys_under(txn: Transaction[bytes], database: _Database, head: bytes, first: bytes) -> Iterator[bytes]:
    """Yield the keys under a head, in order and from a first one on."""
    with txn.cursor(database) as cursor:
        if cursor.set_range_dup(head, first) if first else cursor.set_key(head):
            yield from cursor.iternext_dup()


def numbered_keys(
    txn: Transaction[bytes],
    database: _Database,
    prefix: bytes,
    after: tuple[float, bytes] | None,
    *,
    descending: bool = False,
) -> Iterator[tuple[float, bytes]]:
    """Yield the keys under the heads of a prefix and a number, by number and key, after a place in that order."""
    place = None if after is None else (prefix + pack_number(after[0]), after[1])
    with txn.cursor(database) as cursor:
        found = _position_before(cursor, prefix, place) if descending else _position_after(cursor, prefix, place)
        move = cursor.prev if descending else cursor.next
        while found and (head := cursor.key()).startswith(prefix):
            yield unpack_number(head[len(prefix) :]), cursor.value()
            found = move()


def newest_window(txn: Transaction[bytes], database: _Database, after: int, until: int) -> int | None:
    """Return the latest window in the index that has keys and a start in (after, until]."""
    with txn.cursor(database) as cursor:
        if not (last_before(cursor, PRESENT + _pack_start(until) + BEYOND) and cursor.key().startswith(PRESENT)):
            return None
        start: int = NUMBER.unpack(cursor.key()[len(PRESENT) :])[0] - SIGN
    return start if start > after else None


def silent_until(now: int, silent_for: int) -> int:
    """Return the second before which the event times of keys are that have been silent for so many seconds."""
    return now // SECOND - silent_for


def pack_number(number: float) -> bytes:
    """Return a number as bytes that sort like it: IEEE 754 with the sign turned, and all bits of negative ones."""
    bits: int = NUMBER.unpack(FLOAT.pack(number + 0.0))[0]  # + 0.0: a zero has no sign
    return NUMBER.pack(ALL_BITS - bits if bits & SIGN else bits | SIGN)


def unpack_number(data: bytes) -> float:
    """Return the number that `pack_number` packed."""
    bits: int = NUMBER.unpack(data)[0]
    return FLOAT.unpack(NUMBER.pack(bits - SIGN if bits & SIGN else ALL_BITS - bits))[0]  # type: ignore[no-any-return]


def _pack_start(window_start: int) -> bytes:
    """Return the start of a window, which may be negative, as bytes that sort like it."""
    return NUMBER.pack(window_start + SIGN)


def _field_number(value: Any) -> bytes:
    return pack_number(value) if type(value) in (int, float) else NO_NUMBER


def _parse_number(text: str) -> bytes:
    try:
        return _field_number(orjson.loads(text))
    except orjson.JSONDecodeError:
        return NO_NUMBER


def _position_after(cursor: Cursor[bytes], prefix: bytes, place: tuple[bytes, bytes] | None) -> bool:
    if place is None:
        return cursor.set_range(prefix)
    head, key = place
    return cursor.set_range_dup(head, key + b"\0") or cursor.set_range(head + b"\0")


def _position_before(cursor: Cursor[bytes], prefix: bytes, place: tuple[bytes, bytes] | None) -> bool:
    if place is None:
        return last_before(cursor, prefix + BEYOND)
    head, key = place
    return cursor.prev() if cursor.set_range_dup(head, key) else last_before(cursor, head + b"\0")
