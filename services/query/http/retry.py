"""Retries requests while a partition moves from one instance to another, which takes moments."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.lookup.problems import Problem

PATIENCE_S = 0.5
PAUSE_S = 0.02
NEAR = 1000
"""An instance with more records to read than this is not caught up in moments: its clients get the problem at once."""


def is_passing(problem: Problem) -> bool:
    """Whether the problem may be gone a moment later."""
    return problem.kind == "unreachable" or (problem.kind == "catching_up" and _lag(problem) < NEAR)


class RetryBudget:
    """The time in which one request is retried, which begins again when it has waited.

    A forwarded request has none: the instance that forwards it retries.
    """

    def __init__(self, clock: Callable[[], float], *, is_forwarded: bool) -> None:
        self._clock = clock
        self._patience_s = 0 if is_forwarded else PATIENCE_S
        self._began = clock()
        self.has_waited = False

    def begin(self) -> None:
        """Begin again now: what came before is no retry."""
        self._began = self._clock()

    def waited(self, until: float) -> None:
        """Begin again at the time, by the instance's clock, until which the request waited for a version."""
        self._began, self.has_waited = until, True

    async def pause(self) -> bool:
        """Wait before the next attempt; returns False, at once, when the time is used up."""
        if self._clock() >= self._began + self._patience_s:
            return False
        await asyncio.sleep(PAUSE_S)
        return True


def _lag(problem: Problem) -> int:
    lag = problem.facts.get("lag")
    return int(lag["records"]) if isinstance(lag, dict) else 0
