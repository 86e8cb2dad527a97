"""How much was read and is not finished: where reading is slowed down to the pace of the calls."""

from __future__ import annotations

import asyncio


class Pressure:
    """Counts snapshots that wait and requests that are not answered, their bytes, and the requests that are parked.

    Reading stops at the high-water mark of one, and goes on where all are at half of theirs.
    """

    def __init__(self, most: int, most_bytes: int, most_parked: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._most_parked = most_parked
        self.count = 0
        self.bytes = 0
        self.parked = 0
        self._open = asyncio.Event()
        self._open.set()

    def add(self, size: int, count: int = 1) -> None:
        """Note what was read or planned, and how many bytes it keeps."""
        self.count += count
        self.bytes += size
        self._judge()

    def ease(self, size: int, count: int = 1) -> None:
        """Note that it is finished, or given up."""
        self.count -= count
        self.bytes -= size
        self._judge()

    def park(self, count: int) -> None:
        """Note how many requests were parked, or less than none that were taken up again."""
        self.parked += count
        self._judge()

    @property
    def is_high(self) -> bool:
        """Whether what waits for an API that is away is to be parked: at half of where reading would go on."""
        return self.count >= self._most // 4 or self.bytes >= self._most_bytes // 4

    def _judge(self) -> None:
        if self.count >= self._most or self.bytes >= self._most_bytes or self.parked >= self._most_parked:
            self._open.clear()
        elif (
            self.count <= self._most // 2
            and self.bytes <= self._most_bytes // 2
            and self.parked <= self._most_parked // 2
        ):
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
