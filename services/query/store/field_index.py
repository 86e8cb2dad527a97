"""The index of a state: finds keys by the value of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.store.packing import HASH_SIZE, HEADER, NO_HASH, field_hash, fields_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmdb import Transaction, _Database


class FieldIndex:
    """The declared indexes of a state, all in one database: by index number, hash of the value, and key."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(tuple(path.split(".")) for path in paths)
        self._end = HEADER.size + HASH_SIZE * len(paths)

    def columns(self, value: bytes) -> bytes:
        """See `EntryIndex`. They are the hashes of the indexed fields."""
        return b"".join(map(field_hash, fields_at(value, self._paths))) if self._paths else b""

    def columns_of(self, data: bytes) -> bytes:
        """See `EntryIndex`."""
        return data[HEADER.size : self._end]

    def move(
        self, txn: Transaction[bytes], database: _Database, name: bytes, old: bytes | None, new: bytes | None
    ) -> None:
        """See `EntryIndex`."""
        if old == new or not self._paths:
            return
        before, after = set(_entries(old or b"")), set(_entries(new or b""))
        for one in before - after:
            txn.delete(one + name, db=database)
        for one in after - before:
            txn.put(one + name, b"", db=database)

    def find(
        self, txn: Transaction[bytes], database: _Database, number: int, value_hash: bytes, start: bytes
    ) -> Iterator[bytes]:
        """Yield the keys whose field has this hash, from a start key on."""
        prefix = bytes([number]) + value_hash
        with txn.cursor(database) as cursor:
            if cursor.set_range(prefix + start):
                for one in cursor.iternext(keys=True, values=False):
                    if not one.startswith(prefix):
                        return
                    yield one[len(prefix) :]


def _entries(hashes: bytes) -> Iterator[bytes]:
    for number, at in enumerate(range(0, len(hashes), HASH_SIZE)):
        one = hashes[at : at + HASH_SIZE]
        if one != NO_HASH:
            yield bytes([number]) + one
