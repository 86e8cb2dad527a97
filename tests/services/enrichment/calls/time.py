"""A clock that only a test advances."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

from services.enrichment.calls.assembly import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = 50
"""The turns of the event loop after which all tasks are as far as they can be without time."""


class Time:
    """A clock, and what waits for it. `waits` notes how long each sleep was to last."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._number = count()

    def clock(self) -> float:
        return self.now

    def later(self, seconds: float, what: Callable[[], object]) -> None:
        heapq.heappush(self._due, (self.now + seconds, next(self._number), what))

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        over = asyncio.Event()
        self.later(seconds, over.set)
        await over.wait()

    async def passes(self, seconds: float) -> None:
        """Let that much time pass, and everything happen that is due in it."""
        until = self.now + seconds
        await self.settles()
        while self._due and self._due[0][0] <= until:
            self.now = self._due[0][0]
            while self._due and self._due[0][0] == self.now:
                heapq.heappop(self._due)[-1]()
            await self.settles()
        self.now = until

    async def settles(self) -> None:
        """Let every task come as far as it can without time."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def outside(self) -> Runtime:
        """The runtime of calls with this clock, and with the longest of all random pauses."""
        return Runtime(
            clock=self.clock, now=lambda: EPOCH, sleep=self.sleep, later=self.later, draw=lambda _, high: high
        )
