"""The index of a state: finds keys by the value of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.store.packing import HASH_SIZE, HEADER, NO_HASH, field_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmdb import Transaction, _Database


class FieldIndex:
    """The declared indexes of a state, all in one database: by index number, hash of the value, and key."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(tuple(one.split(".")) for one in paths)
        self._end = HEADER.size + HASH_SIZE * len(paths)

    def hashes(self, value: bytes) -> bytes:
        """Return the hashes of the indexed fields of an entry's value."""
        return field_hashes(value, self._paths) if self._paths else b""

    def hashes_of(self, data: bytes) -> bytes:
        """Return the hashes in a packed entry."""
        return data[HEADER.size : self._end]

    def move(self, txn: Transaction[bytes], database: _Database, name: bytes, old: bytes, new: bytes) -> None:
        """Replace the hashes of a key; `old` is empty for a new key, `new` for a deleted one."""
        if old == new:
            return
        before, after = set(_entries(old)), set(_entries(new))
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
