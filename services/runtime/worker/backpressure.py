"""Bounds the memory of unfinished work: reading slows down to the pace of the work."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from contracts.records.record import Record


class Backpressure:
    """Counts the records and requests that are unfinished, their bytes, and the deferred requests.

    Reading stops when one of the three reaches its limit, and resumes when all are at half of their limits or below.
    """

    def __init__(self, max_count: int, max_bytes: int, max_deferred: int = 1) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._max_deferred = max_deferred
        self.count = 0
        self.bytes = 0
        self.deferred = 0
        self._open = asyncio.Event()
        self._open.set()

    def add(self, size: int, count: int = 1) -> None:
        """Count records or requests, and the bytes that they keep in memory."""
        self.count += count
        self.bytes += size
        self._update()

    def release(self, size: int, count: int = 1) -> None:
        """Subtract records or requests that are finished or abandoned."""
        self.count -= count
        self.bytes -= size
        self._update()

    @contextmanager
    def counted(self, records: Collection[Record]) -> Iterator[None]:
        """Count these records as unfinished until the end of the block."""
        size = sum(record.size for record in records)
        self.add(size, len(records))
        try:
            yield
        finally:
            self.release(size, len(records))

    def add_deferred(self, count: int) -> None:
        """Count deferred requests; a negative number subtracts resumed ones."""
        self.deferred += count
        self._update()

    @property
    def is_full(self) -> bool:
        """Whether reading is paused."""
        return not self._open.is_set()

    @property
    def is_high(self) -> bool:
        """Whether requests for an unavailable API are deferred: from half of the level at which reading resumes."""
        return self.count >= self._max_count // 4 or self.bytes >= self._max_bytes // 4

    def _update(self) -> None:
        if self.count >= self._max_count or self.bytes >= self._max_bytes or self.deferred >= self._max_deferred:
            self._open.clear()
        elif (
            self.count <= self._max_count // 2
            and self.bytes <= self._max_bytes // 2
            and self.deferred <= self._max_deferred // 2
        ):
            self._open.set()

    async def wait_for_room(self, within: float) -> bool:
        """Wait at most this many seconds until reading may continue; return whether it may.

        Without the wait a fast stream would pause its partitions all the time, and each pause discards the records
        that Kafka's client has prefetched.
        """
        if not self.is_full:
            return True
        try:
            async with asyncio.timeout(within):  # wait_for of Python 3.11 may swallow a cancellation
                await self._open.wait()
        except TimeoutError:
            return False
        return True
