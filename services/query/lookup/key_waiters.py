"""Requests that wait for a key to change: a reader of its own writes, or one that has the present version."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contracts.metrics import query as metrics
from services.query.lookup.problem import RETRY_AFTER_S, Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.metrics.counts import Counts
    from services.query.store.entry import Change

LOOK_EVERY_S = 0.2
"""How often it is looked whether those who wait do so at the right instance still."""


class KeyWaiters:
    """Who waits for which key; at most so many. Changes of others cost one look into a dict."""

    def __init__(self, most: int, counts: Counts) -> None:
        self._most = most
        self._counts = counts
        self._waiting: dict[tuple[str, str], dict[asyncio.Future[None], Callable[[], bool]]] = {}
        self._looking = False
        self.waiting = 0
        """How many wait now."""

    def changed(self, changes: Sequence[Change]) -> None:
        """Readers can see these since just now: wake who waits for them."""
        if not self._waiting:
            return
        for change in changes:
            for one in self._waiting.get((change.state, change.key), ()):
                _wake(one)

    async def change(self, state: str, key: str, within_s: float, here: Callable[[], bool]) -> bool:
        """Whether the key changed within this time, from now on, or is not `here` any more.

        Raises ProblemError (429) when too many wait.
        """
        if self.waiting >= self._most:
            self._counts.add(metrics.REFUSED, "waits")
            raise ProblemError(
                Problem("too_many", "Too many requests wait: ask without wait=", retry_after=RETRY_AFTER_S)
            )
        one = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault((state, key), {})
        waiting[one] = here
        self._count(1)
        if not self._looking:
            self._look_later()
        try:
            async with asyncio.timeout(within_s):
                await one
        except TimeoutError:
            return False
        finally:
            self._count(-1)
            del waiting[one]
            if not waiting:
                self._waiting.pop((state, key), None)
        return True

    def _look_later(self) -> None:
        self._looking = bool(self._waiting)
        if self._looking:
            asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """Nobody is told when a partition goes to another instance: while somebody waits, it is looked for."""
        for waiting in self._waiting.values():
            for one, here in waiting.items():
                if not here():
                    _wake(one)
        self._look_later()

    def _count(self, by: int) -> None:
        self.waiting += by
        self._counts.set(metrics.WAITS, self.waiting)


def _wake(one: asyncio.Future[None]) -> None:
    if not one.done():
        one.set_result(None)
