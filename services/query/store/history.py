"""The earlier entries of the keys' present lives."""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lmdb import Transaction, _Database

    from services.query.store.entry import Order

PLACE = struct.Struct(">QQ")
"""Epoch and version."""
ZERO = 1 << 63
"""Both may be negative, and are to be in order."""


class History:
    """Keeps so many earlier entries of each key, of its present life."""

    def __init__(self, most: int) -> None:
        self._most = most

    def push(self, txn: Transaction[bytes], database: _Database, name: bytes, order: Order, data: bytes) -> None:
        """Keep what was the entry until now, of this order, and let go of the earliest if there are too many."""
        if not self._most:
            return
        prefix = _prefix(name)
        txn.put(_named(prefix, order), data, db=database)
        held = [one for one, _ in self._held(txn, database, prefix)]
        for one in held[: -self._most]:
            txn.delete(one, db=database)

    def clear(self, txn: Transaction[bytes], database: _Database, name: bytes) -> None:
        """The life is over."""
        if self._most:
            for one in [one for one, _ in self._held(txn, database, _prefix(name))]:
                txn.delete(one, db=database)

    def all(self, txn: Transaction[bytes], database: _Database, name: bytes) -> list[bytes]:
        """The entries, the earliest first."""
        return [data for _, data in self._held(txn, database, _prefix(name))] if self._most else []

    def _held(self, txn: Transaction[bytes], database: _Database, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        with txn.cursor(database) as cursor:
            if not cursor.set_range(prefix):
                return
            for name, data in cursor:
                if not name.startswith(prefix):
                    return
                yield name, data


def _prefix(name: bytes) -> bytes:
    """Of one length for all keys, so that no key's history lies within another's."""
    return blake2b(name, digest_size=16).digest()


def _named(prefix: bytes, order: Order) -> bytes:
    _, epoch, version = order
    return prefix + PLACE.pack((epoch + ZERO) % (1 << 64), (version + ZERO) % (1 << 64))
