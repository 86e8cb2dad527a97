"""An API of which everything fails is suspended, and a topic of rubbish stops the worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from services.enrichment.calls.assembly import assemble
from services.enrichment.calls.response import Response
from services.enrichment.calls.suspension import FailureLimits
from services.runtime.errors import EverythingFailsError
from tests.services.enrichment.calls.calling import transport
from tests.services.enrichment.fleet import QUICK, application
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until
from tests.services.enrichment.registry import Registry
from tests.services.enrichment.test_flow import APART

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.enrichment.calls.transport import Post

NOWHERE = "http://127.0.0.1:1"
FIRST = 5
QUICK_LIMITS = FailureLimits(window=1000, share=0.95, first=FIRST, trial_s=0.01)


class Scripted:
    """An API whose answers have the status that a function returns. Implements Transport."""

    def __init__(self, status: Callable[[], int]) -> None:
        self.status = status

    async def get(self, target: str, within: float) -> Response:  # noqa: ARG002  # of Transport
        await asyncio.sleep(0)
        return Response(self.status(), b'{"name": "x", "street": "x", "price": 1.0}')

    async def post(self, post: Post, within: float) -> Response:
        raise AssertionError((post, within))


async def test_an_api_that_refuses_everything_waits_and_delays_no_other() -> None:
    """Its requests wait, and are no dead letters. They go on when it accepts them."""
    log, gated, refuses = Log(cars(100)), Gated().let(), True
    registry, prices = Scripted(lambda: 200), Scripted(lambda: 401 if refuses else 200)
    calls = assemble(APART, {"registry": registry, "prices": prices}, gated.counts, limits=QUICK_LIMITS)
    async with running(log, gated, APART, calls):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner") == 100)
        await until(lambda: gated.counts.get(metrics.TRIALS, "prices") > 3)
        assert (gated.counts.get(metrics.BREAKER, "prices"), log.committed[-1]) == (2, FIRST - 1)
        assert gated.counts.get(metrics.BREAKER_FAILURES, "prices", "status 401") > FIRST
        refuses = False
        await until(lambda: 100 in log.committed)
        assert gated.counts.get(metrics.BREAKER, "prices") == 0
    assert {dead_letter.detail for dead_letter in gated.dead_letters()} == {"quote: status 401"}
    assert len(gated.dead_letters()) == FIRST - 1
    assert gated.counts.get(metrics.ANSWERS, "quote", "result") == 100 - (FIRST - 1)


async def test_a_topic_of_rubbish_stops_the_worker() -> None:
    log, gated = Log([b"rubbish"] * 500), Gated().let()
    with pytest.raises(ExceptionGroup) as ended:
        async with running(log, gated, failure_window=50, failure_min_count=50):
            await until(lambda: False)
    assert ended.group_contains(EverythingFailsError, match="Check that Stateloop writes that topic")
    assert len(gated.dead_letters()) < 60


async def test_some_failures_among_many_do_not() -> None:
    mixed = [value for good in cars(100) for value in (good, b"rubbish")]
    log, gated = Log(mixed), Gated().let()
    async with running(log, gated, failure_window=50):
        await until(lambda: 200 in log.committed)
    assert gated.counts.get(metrics.REJECTED) == 100


async def test_where_no_record_was_decoded_since_the_start_a_few_are_enough() -> None:
    log, gated = Log([b"rubbish"] * 500), Gated().let()
    with pytest.raises(ExceptionGroup) as ended:
        async with running(log, gated, in_flight=1):
            await until(lambda: False)
    assert ended.group_contains(EverythingFailsError, match="^20 of the last 20 ")
    assert len(gated.dead_letters()) < 20 + log.batch


async def test_a_worker_that_never_stops_for_failures_does_not_do_so_at_its_start() -> None:
    log, gated = Log([b"rubbish"] * 50), Gated().let()
    async with running(log, gated, failure_rate_threshold=1.1):
        await until(lambda: 50 in log.committed)
    assert len(gated.dead_letters()) == 50


async def test_an_api_without_a_breaker_may_be_down_when_the_worker_starts() -> None:
    without = application()
    without.apis["registry"] = QUICK.model_copy(update={"breaker": None})
    log, gated = Log(cars(50)), Gated().let()
    calls = assemble(without, {"registry": Scripted(lambda: 401)}, gated.counts, limits=QUICK_LIMITS)
    async with running(log, gated, without, calls):
        await until(lambda: 50 in log.committed)
    assert len(gated.dead_letters()) == 100


async def test_an_api_that_is_down_when_the_worker_starts_does_not_stop_it() -> None:
    """Its breaker makes its requests wait, and those of the other API are answered."""
    log, gated = Log(cars(200)), Gated().let()
    async with Registry().serving() as registry, transport(registry.url) as up, transport(NOWHERE) as down:
        calls = assemble(APART, {"registry": up, "prices": down}, Counts(metrics.CATALOGUE))
        async with running(log, gated, APART, calls, stop_within=0):
            await until(lambda: gated.counts.get(metrics.ANSWERS, "owner") == 200)
    assert gated.dead_letters() == []
