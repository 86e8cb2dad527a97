"""Finds keys by the value of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.store.packing import HEAD, MARK, NO_MARK, marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmdb import Transaction, _Database


class Index:
    """The declared indexes of a state, all in one database: by number, mark and key."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(tuple(one.split(".")) for one in paths)
        self._end = HEAD.size + MARK * len(paths)

    def marks(self, value: bytes) -> bytes:
        """Those of an entry's value."""
        return marks(value, self._paths) if self._paths else b""

    def marks_of(self, data: bytes) -> bytes:
        """Those that a packed entry has."""
        return data[HEAD.size : self._end]

    def move(self, txn: Transaction[bytes], database: _Database, name: bytes, old: bytes, new: bytes) -> None:
        """A key had these marks and has those; none at all if it comes or goes."""
        if old == new:
            return
        before, after = set(_entries(old)), set(_entries(new))
        for one in before - after:
            txn.delete(one + name, db=database)
        for one in after - before:
            txn.put(one + name, b"", db=database)

    def find(
        self, txn: Transaction[bytes], database: _Database, number: int, mark: bytes, start: bytes
    ) -> Iterator[bytes]:
        """The keys with that mark, from a start on."""
        prefix = bytes([number]) + mark
        with txn.cursor(database) as cursor:
            if cursor.set_range(prefix + start):
                for one in cursor.iternext(keys=True, values=False):
                    if not one.startswith(prefix):
                        return
                    yield one[len(prefix) :]


def _entries(marks: bytes) -> Iterator[bytes]:
    for number, at in enumerate(range(0, len(marks), MARK)):
        one = marks[at : at + MARK]
        if one != NO_MARK:
            yield bytes([number]) + one
