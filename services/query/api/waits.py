"""Requests that wait for a key to change: a reader of its own writes, or one that has the present version."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contracts.metrics import query as metrics
from services.query.api.problems import AGAIN_S, Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.metrics.counts import Counts
    from services.query.entry import Change


class Waits:
    """Who waits for which key; at most so many. Changes of others cost one look into a dict."""

    def __init__(self, most: int, counts: Counts) -> None:
        self._most = most
        self._counts = counts
        self._waiting: dict[tuple[str, str], set[asyncio.Future[None]]] = {}
        self.waiting = 0
        """How many wait now."""

    def changed(self, changes: Sequence[Change]) -> None:
        """Readers can see these since just now: wake who waits for them."""
        if not self._waiting:
            return
        for change in changes:
            for one in self._waiting.get((change.state, change.key), ()):
                if not one.done():
                    one.set_result(None)

    async def change(self, state: str, key: str, within_s: float) -> bool:
        """Whether the key changed within this time, from now on. Raises ProblemError (429) when too many wait."""
        if self.waiting >= self._most:
            self._counts.add(metrics.REFUSED, "waits")
            raise ProblemError(Problem("too_many", "Too many requests wait: ask without wait=", retry_after=AGAIN_S))
        one = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault((state, key), set())
        waiting.add(one)
        self._count(1)
        try:
            async with asyncio.timeout(within_s):
                await one
        except TimeoutError:
            return False
        finally:
            self._count(-1)
            waiting.discard(one)
            if not waiting:
                self._waiting.pop((state, key), None)
        return True

    def _count(self, by: int) -> None:
        self.waiting += by
        self._counts.set(metrics.WAITS, self.waiting)
