"""Requests against an API that misbehaves: real HTTP, and no real waiting."""

from __future__ import annotations

import asyncio
import resource
from typing import TYPE_CHECKING

import pytest

from contracts.metrics import worker as metrics
from contracts.plan import plan
from services.enrichment.calls.api import HttpApi
from services.enrichment.calls.caller import Caller, Outcome
from services.enrichment.calls.transport import AiohttpTransport
from services.enrichment.metrics import Metrics
from tests.services.enrichment.fleet import START, app, snapshot
from tests.services.enrichment.registry import now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.services.enrichment.registry import Registry

LIMIT = 1024 * 1024


class Bench:
    """A caller whose waits are noted instead of waited."""

    def __init__(self, registry: Registry, transport: AiohttpTransport) -> None:
        self.registry = registry
        self.waits: list[float] = []
        self.counts = Metrics()
        apis = {one.name: HttpApi(transport, one, app.apis[one.api], now, self.counts) for one in app.enrichments}
        self.caller = Caller(app, apis, sleep=self._sleep, draw=lambda low, _: low)

    async def answer(self, plate: str) -> Outcome:
        request = next(one for one in plan(app, snapshot(1, plate), START) if one.enrichment == "owner")
        return await self.caller.answer(request)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
async def bench(registry: Registry) -> AsyncIterator[Bench]:
    async with AiohttpTransport(registry.url, connections=10, body_limit=LIMIT) as transport:
        yield Bench(registry, transport)


async def test_a_result(bench: Bench) -> None:
    found = await bench.answer("P 1/ä")
    assert found == Outcome("result", result={"name": "owner of P 1/ä", "rating": 1.0})
    assert bench.registry.raw == ["/owners/P%201%2F%C3%A4"]
    assert bench.counts.get(metrics.CALLS, "registry", "owner", "result") == 1


@pytest.mark.parametrize(
    ("plate", "status", "reason", "calls"),
    [
        ("missing", "absence", "status 404", 1),
        ("forbidden", "failure", "status 403", 1),
        ("redirect", "failure", "status 302: redirects are not followed", 1),
        ("endless", "failure", f"the response is larger than {LIMIT} bytes", 1),
        ("bomb", "failure", f"the response is larger than {LIMIT} bytes", 1),
        ("down", "failure", "status 503", 4),
        ("hang", "failure", "no answer within 0.5 s", 4),
        ("reset", "failure", "the connection failed (ClientPayloadError)", 4),
        ("garbage", "failure", "the response is not JSON (", 4),
        ("html", "failure", "the response is not JSON (", 4),
        ("nan", "failure", "the response is not JSON (", 4),
        ("wrong", "failure", "the response does not fit Owner: name: Input should be a valid string", 4),
    ],
)
async def test_how_each_fault_ends(bench: Bench, plate: str, status: str, reason: str, calls: int) -> None:
    found = await bench.answer(plate)
    assert (found.status, found.result) == (status, None)
    assert found.reason is not None
    assert found.reason.startswith(reason)
    assert bench.registry.calls == {f"/owners/{plate}": calls}
    assert len(bench.waits) == calls - 1


async def test_slow_is_no_failure_and_a_storm_passes(bench: Bench) -> None:
    assert (await bench.answer("slow")).status == "result"
    assert (await bench.answer("storm")).status == "result"
    assert bench.counts.get(metrics.CALLS, "registry", "owner", "retryable") == 2


@pytest.mark.parametrize(("plate", "waited"), [("busy-bare", 0.0), ("busy-seconds", 3.0), ("busy-date", 7.0)])
async def test_retry_after_is_obeyed(bench: Bench, plate: str, waited: float) -> None:
    assert (await bench.answer(plate)).status == "result"
    assert bench.waits == [waited]


async def test_a_bomb_does_not_take_the_memory(bench: Bench) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await asyncio.gather(*(bench.answer("bomb") for _ in range(10)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


async def test_an_api_that_is_not_there(registry: Registry) -> None:
    async with AiohttpTransport("http://127.0.0.1:1", connections=1, body_limit=LIMIT) as transport:
        found = await Bench(registry, transport).answer("P1")
    assert found == Outcome("failure", reason="the connection failed (ClientConnectorError)")


async def test_a_name_that_is_not_found(registry: Registry) -> None:
    async with AiohttpTransport("http://nowhere.invalid", connections=1, body_limit=LIMIT) as transport:
        found = await Bench(registry, transport).answer("P1")
    assert found.status == "failure"
    assert found.reason is not None
    assert found.reason.startswith("the connection failed (ClientConnector")
