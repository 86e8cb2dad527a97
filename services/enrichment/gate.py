"""Where the requests of one API wait: for room, and while it is unavailable. Those of other APIs do not."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from services.enrichment.availability import Availability
    from services.enrichment.lane import Lane
    from services.enrichment.work import Work

    Start = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


class Gate:
    """A queue for one API, in the order of planning. It holds no task for what waits."""

    def __init__(
        self,
        api: str,
        room: int,
        availability: Availability,
        start: Start,
        run: Callable[[Work], Coroutine[None, None, None]],
    ) -> None:
        self.api = api
        self._room = room
        self._few = room // 2
        self._availability = availability
        self._start = start
        self._run = run
        self._waiting: deque[Work] = deque()
        self._watch: asyncio.Task[None] | None = None
        """Waits until the API is available again."""
        self._closed = False
        self.is_low = asyncio.Event()
        """Set while what waits is half of what may be under way, or less."""
        self.is_low.set()

    def add(self, work: Work) -> None:
        """Begin it now, or when its turn comes. What calls nobody need not wait."""
        if work.request.skipped is not None:
            self._begin(work)
            return
        self._waiting.append(work)
        self.advance()
        if len(self._waiting) > self._few:
            self.is_low.clear()

    def advance(self) -> None:
        """Begin what can begin."""
        while self._waiting and self._may_begin():
            work = self._waiting.popleft()
            if work.lane.may_begin(work):
                self._begin(work)
        if len(self._waiting) <= self._few:
            self.is_low.set()

    def shed(self) -> list[Work]:
        """Give back what waits beyond half of what may be under way: the latest ones, in their order."""
        shed = [self._waiting.pop() for _ in range(len(self._waiting) - self._few)]
        self.is_low.set()
        return [work for work in reversed(shed) if not work.over]

    def close(self) -> None:
        """Begin nothing any more, whatever room there is, and wait for no API."""
        self._closed = True
        if self._watch:
            self._watch.cancel()

    def __len__(self) -> int:
        return len(self._waiting)

    def _may_begin(self) -> bool:
        if self._room <= 0 or self._watch or self._closed:  # what calls nobody begins beyond the room
            return False
        if self._availability.is_available(self.api):
            return True
        self._watch = self._start(self._reopen())
        return False

    def _begin(self, work: Work) -> None:
        self._room -= 1
        task = self._start(self._run(work))
        work.lane.start(work, task)
        task.add_done_callback(partial(self._ended, work.lane))

    def _ended(self, lane: Lane, task: asyncio.Task[None]) -> None:
        """An error ends the worker: nothing takes the place of what failed."""
        lane.tasks.discard(task)
        self._room += 1
        if task.cancelled() or task.exception() is None:
            self.advance()

    async def _reopen(self) -> None:
        await self._availability.available(self.api)
        self._watch = None
        self.advance()
