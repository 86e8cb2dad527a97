"""The records that were read and are not written yet: bounded, so that reading slows down to the pace of the store."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.sink.partitions import RoutedRecord

MAX_BATCH_BYTES = 4 << 20


class PendingRecords:
    """A queue that is full at so many records or bytes, those of the current batch included.

    It has room again at half of both.
    """

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._records: deque[RoutedRecord] = deque()
        self._taken: list[RoutedRecord] = []
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._records) + len(self._taken)

    def put(self, records: list[RoutedRecord]) -> None:
        """Append records."""
        self._records.extend(records)
        self.bytes += sum(one.record.size for one in records)
        if self._records:
            self._arrived.set()
        if len(self) >= self._max_count or self.bytes >= self._max_bytes:
            self._room.clear()

    async def take(self, most: int) -> list[RoutedRecord]:
        """Take the oldest records as a batch, at most this many; wait until there is one."""
        while not self._records:
            self._arrived.clear()
            await self._arrived.wait()
        size = 0
        while self._records and len(self._taken) < most and size < MAX_BATCH_BYTES:
            self._taken.append(self._records.popleft())
            size += self._taken[-1].record.size
        return list(self._taken)

    def release(self) -> None:
        """Drop the current batch: it is written."""
        self.bytes -= sum(one.record.size for one in self._taken)
        self._taken.clear()
        if len(self) <= self._max_count // 2 and self.bytes <= self._max_bytes // 2:
            self._room.set()

    async def wait_for_room(self, within: float) -> bool:
        """Wait at most this many seconds until there is room; return whether there is."""
        try:
            async with asyncio.timeout(within):
                await self._room.wait()
        except TimeoutError:
            return False
        return True
