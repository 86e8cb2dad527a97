"""An API is away for a while, behind its real breaker: polling goes on, nothing grows, and all slots are used again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from aiohttp import web

from contracts import Application, Breaker, Policy
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from services.enrichment.calls.assembly import assemble
from tests.services.enrichment.calls.calling import transport
from tests.services.enrichment.fleet import app
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until
from tests.services.enrichment.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Awaitable

AWAY = 6
"""The polls during the outage: without room for records, a worker polls every half second."""
AT_ONCE = 5
LATENCY_S = 0.05
MOST = 500
POLICY = Policy(concurrency=AT_ONCE, breaker=Breaker(open_for=timedelta(seconds=0.5)))
FLEET = Application(
    name="fleet",
    event=app.event,
    state=app.state,
    enrichments=app.enrichments,
    topics=app.topics,
    apis={"registry": POLICY},
)


class Outage(Registry):
    """An API that can be away."""

    away = False
    answered = refused = under_way = most_under_way = 0

    async def owner(self, request: web.Request) -> web.StreamResponse:
        return await self._unless_away(super().owner(request))

    async def quote(self, request: web.Request) -> web.StreamResponse:
        async def later() -> web.StreamResponse:
            await asyncio.sleep(self.latency)
            return await super(Outage, self).quote(request)

        return await self._unless_away(later())

    async def _unless_away(self, responding: Awaitable[web.StreamResponse]) -> web.StreamResponse:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            response = await responding
        finally:
            self.under_way -= 1
        if self.away:
            self.refused += 1
            return web.Response(status=503)
        self.answered += 1
        return response


async def test_an_outage_stops_nothing_but_its_calls_and_leaves_no_trace() -> None:
    log, gated, registry = Log(cars(5000)), Gated().let(), Outage()
    registry.latency = LATENCY_S
    async with registry.serving(), transport(registry.url) as way:
        calls = assemble(FLEET, {"registry": way}, Counts(metrics.CATALOGUE))
        async with running(log, gated, FLEET, calls, unfinished=MOST, stop_within=0):
            await until(lambda: registry.answered > 10 * AT_ONCE)
            registry.away = True
            polled = log.fetches
            await until(lambda: log.fetches > polled + AWAY)
            assert 0 < registry.refused < 100, "some tried, the others waited"
            assert gated.counts.get(metrics.UNFINISHED) <= MOST + log.batch
            registry.away = False
            registry.most_under_way, answered = 0, registry.answered
            await until(lambda: registry.most_under_way == AT_ONCE)
            await until(lambda: registry.answered > answered + 10 * AT_ONCE)
    assert gated.dead_letters() == [], "requests in flight when it went away are repeated"
