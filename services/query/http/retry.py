"""What is told while a partition goes from one instance to another: that takes moments, so it is waited for."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from services.query.cluster.routing import Role
from services.query.dependencies import HOP
from services.query.lookup.problem import ProblemError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from services.query.cluster.routing import Standing
    from services.query.lookup.problem import Problem

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PATIENCE_S = 0.5
PAUSE_S = 0.02
NEAR = 1000
"""Who has more records to read than this is not there in moments: its clients are told at once."""
OF_KEY = (b'{"type":"elsewhere"', b'{"type":"unreachable"', b'{"type":"catching_up"')
"""How the text of one key's problem begins that may pass in moments."""


def is_nearly_caught_up(standing: Standing) -> bool:
    """Whether this instance is about to answer for the partition."""
    return standing.role is Role.CATCHING_UP and standing.lag < NEAR


WAITED = web.RequestKey("waited", float)
"""When a request that waits for a version did so last, by the instance's clock: its patience begins anew then."""


class RetryBudget:
    """Time for one request. A question that was handed on has none: who handed it on has it."""

    def __init__(self, request: web.Request, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._request = request
        self._began = clock()
        self._lasts_s = 0 if HOP in request.headers else PATIENCE_S

    async def lasts(self) -> bool:
        """Whether to try once more, after a pause."""
        if self._clock() >= self._request.get(WAITED, self._began) + self._lasts_s:
            return False
        await asyncio.sleep(PAUSE_S)
        return True


async def retried(request: web.Request, handler: Handler, patience: RetryBudget) -> web.StreamResponse:
    """The handler's response; what may pass in moments is tried again. Raises what the handler raises."""
    while True:
        try:
            response = await handler(request)
        except ProblemError as error:
            if not (_passes(error.problem.kind, _lag(error.problem)) and await patience.lasts()):
                raise
        else:
            if not (_is_passing(response) and await patience.lasts()):
                return response


def _is_passing(response: web.StreamResponse) -> bool:
    if response.status != HTTPStatus.SERVICE_UNAVAILABLE or not isinstance(response, web.Response):
        return False
    try:
        told = orjson.loads(response.body if isinstance(response.body, bytes) else b"")
        return _passes(told["type"], told.get("lag", {}).get("records", 0))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):  # no problem of ours
        return False


def _passes(kind: str, lag: int) -> bool:
    return kind == "unreachable" or (kind == "catching_up" and lag < NEAR)


def _lag(problem: Problem) -> int:
    lag = problem.facts.get("lag")
    return int(lag["records"]) if isinstance(lag, dict) else 0
