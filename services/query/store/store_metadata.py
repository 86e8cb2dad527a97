"""The metadata of a store: positions, the watermarks, and the bucket of each slot."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lmdb import Transaction, _Database

NUMBER = struct.Struct(">q")
WATERMARK = b"watermark"
COMPLETE = b"complete"
POSITION = b"position "
BUCKET = b"bucket "
CLEARING = b"forgetting "
CAUGHT_UP = b"fresh "


class StoreMetadata:
    """Numbers by name, in a database of their own."""

    def __init__(self, database: _Database) -> None:
        self._database = database

    def watermark(self, txn: Transaction[bytes]) -> int:
        """Return the watermark that was written last."""
        return self._number(txn, WATERMARK)

    def complete_watermark(self, txn: Transaction[bytes]) -> int:
        """Return the watermark by which windows were closed last."""
        return self._number(txn, COMPLETE)

    def positions(self, txn: Transaction[bytes]) -> dict[int, int]:
        """Return the position of each partition."""
        return dict(self._numbered(txn, POSITION))

    def buckets(self, txn: Transaction[bytes]) -> dict[int, int]:
        """Return the bucket of each slot."""
        return dict(self._numbered(txn, BUCKET))

    def write(
        self,
        txn: Transaction[bytes],
        *,
        watermark: int,
        complete: int,
        positions: Mapping[int, int],
        buckets: Mapping[int, int],
    ) -> None:
        """Write these; other positions and slots stay."""
        put, database = txn.put, self._database
        put(WATERMARK, NUMBER.pack(watermark), db=database)
        put(COMPLETE, NUMBER.pack(complete), db=database)
        for partition, position in positions.items():
            put(POSITION + NUMBER.pack(partition), NUMBER.pack(position), db=database)
        for slot, bucket in buckets.items():
            put(BUCKET + NUMBER.pack(slot), NUMBER.pack(bucket), db=database)

    def caught_up_at(self, txn: Transaction[bytes]) -> dict[int, int]:
        """Return, by partition, when the store last had all its records."""
        return dict(self._numbered(txn, CAUGHT_UP))

    def mark_caught_up(self, txn: Transaction[bytes], times: Mapping[int, int]) -> None:
        """Write these times."""
        for partition, time in times.items():
            txn.put(CAUGHT_UP + NUMBER.pack(partition), NUMBER.pack(time), db=self._database)

    def clearing(self, txn: Transaction[bytes]) -> set[int]:
        """Return the partitions that were cleared in part."""
        return set(dict(self._numbered(txn, CLEARING)))

    def clear(self, txn: Transaction[bytes], partition: int, *, pending: bool) -> None:
        """Delete the metadata of a partition; `pending`: it has entries left."""
        name, database = NUMBER.pack(partition), self._database
        txn.delete(POSITION + name, db=database)
        txn.delete(CAUGHT_UP + name, db=database)
        if pending:
            txn.put(CLEARING + name, NUMBER.pack(1), db=database)
        else:
            txn.delete(CLEARING + name, db=database)

    def _number(self, txn: Transaction[bytes], name: bytes) -> int:
        found = txn.get(name, db=self._database)
        return 0 if found is None else NUMBER.unpack(found)[0]

    def _numbered(self, txn: Transaction[bytes], prefix: bytes) -> Iterator[tuple[int, int]]:
        with txn.cursor(self._database) as cursor:
            if not cursor.set_range(prefix):
                return
            for name, value in cursor:
                if not name.startswith(prefix):
                    return
                yield NUMBER.unpack(name[len(prefix) :])[0], NUMBER.unpack(value)[0]
