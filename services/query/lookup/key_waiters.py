"""Requests that wait for a key to change: for a version that they need, or for one that the client does not have."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contracts.metrics import query as metrics
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.metrics.counts import Counts
    from services.query.store import Change

CHECK_EVERY_S = 0.2
"""How often waiting requests check that this instance still answers for their key."""


class KeyWaiters:
    """Waiting requests by key, at most `limit` of them. A change of another key costs one dictionary lookup."""

    def __init__(self, limit: int, counts: Counts) -> None:
        self._limit = limit
        self._counts = counts
        self._waiting: dict[tuple[str, str], dict[asyncio.Future[None], Callable[[], bool]]] = {}
        self._checking = False
        self.waiting = 0
        """The number of waiting requests."""

    def changed(self, changes: Sequence[Change]) -> None:
        """Wake the requests that wait for these keys. Readers see the changes already."""
        if not self._waiting:
            return
        for change in changes:
            for future in self._waiting.get((change.state, change.key), ()):
                _wake(future)

    async def wait(self, state: str, key: str, timeout_s: float, is_here: Callable[[], bool]) -> bool:
        """Whether the key changes within the timeout, or `is_here` becomes false.

        Raises ProblemError (429) when too many requests wait.
        """
        if self.waiting >= self._limit:
            self._counts.add(metrics.REFUSED, "waits")
            detail = "Too many requests wait: leave out wait="
            raise ProblemError(Problem("too_many", detail, retry_after=RETRY_AFTER_S))
        future = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault((state, key), {})
        waiting[future] = is_here
        self._count(1)
        if not self._checking:
            self._schedule_check()
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            return False
        finally:
            self._count(-1)
            del waiting[future]
            if not waiting:
                self._waiting.pop((state, key), None)
        return True

    def _schedule_check(self) -> None:
        self._checking = bool(self._waiting)
        if self._checking:
            asyncio.get_running_loop().call_later(CHECK_EVERY_S, self._check)

    def _check(self) -> None:
        """Wake requests whose partition moved to another instance: no change reports that."""
        for waiting in self._waiting.values():
            for future, is_here in waiting.items():
                if not is_here():
                    _wake(future)
        self._schedule_check()

    def _count(self, by: int) -> None:
        self.waiting += by
        self._counts.set(metrics.WAITS, self.waiting)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
