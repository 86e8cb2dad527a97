"""Retries requests while a partition moves from one instance to another, which takes moments."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from services.query.cluster import Role
from services.query.http.peer_client import FORWARDED
from services.query.http.responses import PASSING
from services.query.lookup.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from services.query.cluster import PartitionStatus
    from services.query.lookup.problems import Problem

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PATIENCE_S = 0.5
PAUSE_S = 0.02
NEAR = 1000
"""An instance with more records to read than this is not caught up in moments: its clients get the problem at once."""
WAITED = web.RequestKey("waited", float)
"""The last time at which a request waited for a version, by the instance's clock. Its retry budget restarts then."""


def catches_up_soon(partition_status: PartitionStatus) -> bool:
    """Whether this instance is about to answer for the partition."""
    return partition_status.role is Role.CATCHING_UP and partition_status.lag < NEAR


def is_passing(problem: Problem) -> bool:
    """Whether the problem may be gone a moment later."""
    return problem.kind == "unreachable" or (problem.kind == "catching_up" and _lag(problem) < NEAR)


class RetryBudget:
    """The time in which one request is retried. A forwarded request has none: the instance that forwards it retries."""

    def __init__(self, request: web.Request, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._request = request
        self._began = clock()
        self._budget_s = 0 if FORWARDED in request.headers else PATIENCE_S

    async def pause(self) -> bool:
        """Wait before the next attempt; returns False, at once, when the time is used up."""
        if self._clock() >= self._request.get(WAITED, self._began) + self._budget_s:
            return False
        await asyncio.sleep(PAUSE_S)
        return True


async def with_retries(request: web.Request, handler: Handler, budget: RetryBudget) -> web.StreamResponse:
    """The handler's response, retried while it is a problem that may pass. Raises what the handler raises."""
    while True:
        try:
            response = await handler(request)
        except ProblemError as error:
            if not (is_passing(error.problem) and await budget.pause()):
                raise
        else:
            if not (response.get(PASSING, False) and await budget.pause()):
                return response


def _lag(problem: Problem) -> int:
    lag = problem.facts.get("lag")
    return int(lag["records"]) if isinstance(lag, dict) else 0
