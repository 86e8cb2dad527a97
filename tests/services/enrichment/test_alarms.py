"""When everything fails, the worker stops; when something does, it goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.metrics import worker as metrics
from services.enrichment.alarms import Alarm
from services.enrichment.errors import EverythingFailsError
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until


@given(of=st.integers(1, 8), ends=st.lists(st.booleans(), max_size=40))
def test_it_sounds_for_the_last_ones_only(of: int, ends: list[bool]) -> None:
    alarm = Alarm(of, 0.75)
    for number, failed in enumerate(ends, 1):
        last = ends[max(0, number - of) : number]
        assert alarm.note(failed=failed) == (failed and len(last) == of and sum(last) >= 0.75 * of)


async def test_an_api_that_refuses_everything_stops_the_worker() -> None:
    log, gated = Log(cars(500)), Gated().let()
    gated.refused = True
    with pytest.raises(ExceptionGroup) as ended:
        async with running(log, gated, alarm_of=50, in_flight=10):
            await until(lambda: False)
    assert ended.group_contains(EverythingFailsError, match="of the last 50 requests of registry failed, .*status 401")
    assert len(gated.letters()) <= 60, "what was under way, and no more"
    assert max(log.committed) < 50


async def test_a_topic_of_rubbish_stops_the_worker() -> None:
    log, gated = Log([b"rubbish"] * 500), Gated().let()
    with pytest.raises(ExceptionGroup) as ended:
        async with running(log, gated, alarm_of=50):
            await until(lambda: False)
    assert ended.group_contains(EverythingFailsError, match="Check that the job writes that topic")
    assert len(gated.letters()) < 60


async def test_some_failures_among_many_do_not() -> None:
    mixed = [value for good in cars(100) for value in (good, b"rubbish")]
    log, gated = Log(mixed), Gated().let()
    async with running(log, gated, alarm_of=50):
        await until(lambda: 200 in log.committed)
    assert gated.counts.get(metrics.REJECTED) == 100
