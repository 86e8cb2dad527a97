"""What a store knows besides its entries: positions, the watermark, and which bucket each slot holds."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lmdb import Transaction, _Database

NUMBER = struct.Struct(">q")
WATERMARK = b"watermark"
POSITION = b"position "
BUCKET = b"bucket "
FORGETTING = b"forgetting "
FRESH = b"fresh "


class Facts:
    """Numbers by name, in a database of their own."""

    def __init__(self, database: _Database) -> None:
        self._database = database

    def watermark(self, txn: Transaction[bytes]) -> int:
        """The largest beginning of a life that was applied."""
        found = txn.get(WATERMARK, db=self._database)
        return 0 if found is None else NUMBER.unpack(found)[0]

    def positions(self, txn: Transaction[bytes]) -> dict[int, int]:
        """By partition."""
        return dict(self._numbered(txn, POSITION))

    def buckets(self, txn: Transaction[bytes]) -> dict[int, int]:
        """By slot."""
        return dict(self._numbered(txn, BUCKET))

    def write(
        self, txn: Transaction[bytes], *, watermark: int, positions: Mapping[int, int], buckets: Mapping[int, int]
    ) -> None:
        """Write them all; what is not named stays."""
        put, database = txn.put, self._database
        put(WATERMARK, NUMBER.pack(watermark), db=database)
        for partition, position in positions.items():
            put(POSITION + NUMBER.pack(partition), NUMBER.pack(position), db=database)
        for slot, bucket in buckets.items():
            put(BUCKET + NUMBER.pack(slot), NUMBER.pack(bucket), db=database)

    def fresh(self, txn: Transaction[bytes]) -> dict[int, int]:
        """By partition, when all of it was here."""
        return dict(self._numbered(txn, FRESH))

    def freshen(self, txn: Transaction[bytes], times: Mapping[int, int]) -> None:
        """Write these."""
        for partition, time in times.items():
            txn.put(FRESH + NUMBER.pack(partition), NUMBER.pack(time), db=self._database)

    def forgetting(self, txn: Transaction[bytes]) -> set[int]:
        """The partitions of which some was forgotten, and not all."""
        return set(dict(self._numbered(txn, FORGETTING)))

    def forget(self, txn: Transaction[bytes], partition: int, *, half: bool) -> None:
        """Remove what is known of a partition; `half` says that entries of it are left."""
        name, database = NUMBER.pack(partition), self._database
        txn.delete(POSITION + name, db=database)
        txn.delete(FRESH + name, db=database)
        if half:
            txn.put(FORGETTING + name, NUMBER.pack(1), db=database)
        else:
            txn.delete(FORGETTING + name, db=database)

    def _numbered(self, txn: Transaction[bytes], prefix: bytes) -> Iterator[tuple[int, int]]:
        with txn.cursor(self._database) as cursor:
            if not cursor.set_range(prefix):
                return
            for name, value in cursor:
                if not name.startswith(prefix):
                    return
                yield NUMBER.unpack(name[len(prefix) :])[0], NUMBER.unpack(value)[0]
