"""How much was read and is not finished: where reading is slowed down to the pace of the calls."""

from __future__ import annotations

import asyncio


class Pressure:
    """Counts snapshots that wait and requests that are not answered, and their bytes.

    Reading stops at the high-water mark of either, and goes on where both are at half of it.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self.count = 0
        self.bytes = 0
        self._open = asyncio.Event()
        self._open.set()

    def add(self, size: int, count: int = 1) -> None:
        """Note what was read or planned, and how many bytes it keeps."""
        self.count += count
        self.bytes += size
        if self.count >= self._most or self.bytes >= self._most_bytes:
            self._open.clear()

    def ease(self, size: int, count: int = 1) -> None:
        """Note that it is finished, or given up."""
        self.count -= count
        self.bytes -= size
        if self.count <= self._most // 2 and self.bytes <= self._most_bytes // 2:
            self._open.set()

    async def has_room(self, within: float) -> bool:
        """Whether reading may go on, after waiting that many seconds for it at most.

        The wait keeps a fast flow from pausing partitions all the time, which throws away what Kafka's client queued.
        """
        try:
            async with asyncio.timeout(within):  # wait_for of Python 3.11 may swallow that it is cancelled
                await self._open.wait()
        except TimeoutError:
            return False
        return True
