"""The earlier entries of the keys' current windows."""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lmdb import Transaction, _Database

    from services.query.store import EntryOrder

VERSION = struct.Struct(">QQ")
"""Epoch and version."""
OFFSET = 1 << 63
"""Added to both, which may be negative, so that their bytes sort like the numbers."""


class History:
    """Stores up to `limit` earlier entries of each key's current window."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def push(self, txn: Transaction[bytes], database: _Database, name: bytes, order: EntryOrder, data: bytes) -> None:
        """Add the entry that is replaced now, of this order, and delete the oldest above the limit."""
        if not self._limit:
            return
        prefix = _prefix(name)
        txn.put(_version_key(prefix, order), data, db=database)
        stored = [one for one, _ in self._entries(txn, database, prefix)]
        for one in stored[: -self._limit]:
            txn.delete(one, db=database)

    def clear(self, txn: Transaction[bytes], database: _Database, name: bytes) -> None:
        """Delete the history of a key, whose window is over."""
        if self._limit:
            for one in [one for one, _ in self._entries(txn, database, _prefix(name))]:
                txn.delete(one, db=database)

    def all(self, txn: Transaction[bytes], database: _Database, name: bytes) -> list[bytes]:
        """Return the earlier entries, oldest first."""
        return [data for _, data in self._entries(txn, database, _prefix(name))] if self._limit else []

    def since(
        self, txn: Transaction[bytes], database: _Database, name: bytes, order: EntryOrder, size: int
    ) -> list[bytes]:
        """Return the earlier entries from this order on, oldest first, until they have this many bytes."""
        found, prefix = list[bytes](), _prefix(name)
        for _, data in self._entries(txn, database, prefix, _version_key(prefix, order)) if self._limit else ():
            found.append(data)
            size -= len(data)
            if size <= 0:
                break
        return found

    def _entries(
        self, txn: Transaction[bytes], database: _Database, prefix: bytes, first: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        with txn.cursor(database) as cursor:
            if not cursor.set_range(first or prefix):
                return
            for name, data in cursor:
                if not name.startswith(prefix):
                    return
                yield name, data


def _prefix(name: bytes) -> bytes:
    """Return a prefix of fixed length, so that no key's history lies within another's."""
    return blake2b(name, digest_size=16).digest()


def _version_key(prefix: bytes, order: EntryOrder) -> bytes:
    _, epoch, version = order
    return prefix + VERSION.pack((epoch + OFFSET) % (1 << 64), (version + OFFSET) % (1 << 64))
