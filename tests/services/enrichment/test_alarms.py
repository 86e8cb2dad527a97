"""The worker stops when everything fails, and continues when something succeeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from services.enrichment.alarms import Alarm
from services.enrichment.calls.assembly import assemble
from services.enrichment.errors import EverythingFailsError
from tests.services.enrichment.calls.calling import transport
from tests.services.enrichment.fleet import QUICK, application
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until
from tests.services.enrichment.registry import Registry
from tests.services.enrichment.test_flow import APART

NOWHERE = "http://127.0.0.1:1"


@given(of=st.integers(1, 8), first=st.integers(1, 10), failures=st.lists(st.booleans(), max_size=40))
def test_it_sounds_for_the_last_ones_only(of: int, first: int, failures: list[bool]) -> None:
    alarm = Alarm(of, 0.75, first)
    for number, failed in enumerate(failures, 1):
        last = failures[max(0, number - of) : number]
        nothing_works = all(failures[:number]) and number >= first
        too_many = len(last) == of and sum(last) >= 0.75 * of
        assert alarm.note(failed=failed) == (failed and (too_many or nothing_works))
        assert alarm.seen == len(last)


async def test_an_api_that_refuses_everything_stops_the_worker() -> None:
    log, gated = Log(cars(500)), Gated().let()
    gated.refused = True
    with pytest.raises(ExceptionGroup) as ended:
        async with running(log, gated, failure_window=50, failure_min_count=50, in_flight=10):
            await until(lambda: False)
    assert ended.group_contains(EverythingFailsError, match="of the last 50 requests of registry failed, .*status 401")
    assert len(gated.dead_letters()) <= 60, "what was under way, and no more"
    assert max(log.committed) < 50


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


@pytest.mark.parametrize("values", [cars(500), [b"rubbish"] * 500], ids=["calls", "snapshots"])
async def test_where_nothing_worked_since_the_start_a_few_are_enough(values: list[bytes | None]) -> None:
    log, gated = Log(values), Gated().let()
    gated.refused = True
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
    gated.refused = True
    async with running(log, gated, without):
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
