"""An API is away for a while, behind its real breaker: polling goes on, nothing grows, and then it is as before."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
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
    from collections.abc import Collection, Mapping

    from contracts.records.record import Record

AWAY_S = 3.0
BACK_S = 2.0
"""The time after the API's return in which the rate may be lower."""
MEASURED_S = 1.0
SHARE = 0.95
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
    answered = 0

    async def owner(self, request: web.Request) -> web.StreamResponse:
        return await self._unless_away(await super().owner(request))

    async def quote(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self.latency)
        return await self._unless_away(await super().quote(request))

    async def _unless_away(self, response: web.StreamResponse) -> web.StreamResponse:
        if self.away:
            return web.Response(status=503)
        self.answered += 1
        return response


class Polled(Log):
    """Notes when it was polled last, and the longest time between two polls."""

    longest = 0.0
    last = 0.0

    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        now = asyncio.get_running_loop().time()
        self.longest = max(self.longest, now - (self.last or now))
        self.last = now
        return await super().fetch(paused=paused, full=full, positions=positions)


@pytest.mark.timed
async def test_an_outage_stops_nothing_but_its_calls_and_leaves_no_trace() -> None:
    log, gated, registry = Polled(cars(5000)), Gated().let(), Outage()
    registry.latency = LATENCY_S
    async with registry.serving(), transport(registry.url) as way:
        calls = assemble(FLEET, {"registry": way}, Counts(metrics.CATALOGUE))
        async with running(log, gated, FLEET, calls, unfinished=MOST, stop_within=0):
            await until(lambda: registry.answered > 10 * AT_ONCE)
            before = await rate(registry)
            registry.away = True
            await asyncio.sleep(AWAY_S)
            assert registry.calls.total() - registry.answered < 100, "some tried, the others waited"
            assert gated.counts.get(metrics.UNFINISHED) <= MOST + log.batch
            registry.away = False
            within = int(BACK_S / MEASURED_S)
            after = [await rate(registry) for _ in range(within + 1)]
    assert max(after) >= SHARE * before, f"{before:.0f} answers a second before, {after} after"
    assert log.longest < 1, "polling goes on, or the group would take the partitions away"
    assert gated.dead_letters() == [], "requests in flight when it went away are repeated"


async def rate(registry: Outage) -> float:
    """ResponseCache a second."""
    began, before = asyncio.get_running_loop().time(), registry.answered
    await asyncio.sleep(MEASURED_S)
    return (registry.answered - before) / (asyncio.get_running_loop().time() - began)
