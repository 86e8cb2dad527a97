"""Where the requests of one API wait: for room, and while it is unavailable. Those of other APIs do not."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from services.enrichment.availability import Availability
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
        self._api = api
        self._room = room
        self._availability = availability
        self._start = start
        self._run = run
        self._waiting: deque[Work] = deque()
        self._watch: asyncio.Task[None] | None = None
        """Waits until the API is available again."""
        self._closed = False

    def add(self, work: Work) -> None:
        """Begin it now, or when its turn comes. What calls nobody need not wait."""
        if work.request.skipped is not None:
            self._begin(work)
            return
        self._waiting.append(work)
        self.advance()

    def advance(self) -> None:
        """Begin what can begin."""
        while self._waiting and self._may_begin():
            work = self._waiting.popleft()
            if work.lane.may_begin(work):
                self._begin(work)

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
        if self._availability.is_available(self._api):
            return True
        self._watch = self._start(self._reopen())
        return False

    def _begin(self, work: Work) -> None:
        self._room -= 1
        task = self._start(self._run(work))
        work.lane.start(work, task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """An error ends the worker: nothing takes the place of what failed."""
        self._room += 1
        if task.cancelled() or task.exception() is None:
            self.advance()

    async def _reopen(self) -> None:
        await self._availability.available(self._api)
        self._watch = None
        self.advance()
