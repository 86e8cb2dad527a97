"""A window has ended when the worker's clock and the broker's say so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Application, Topics
from contracts.metrics import worker as metrics
from contracts.records.record import Record, timestamp_ms
from services.enrichment.broker_clock import BrokerClock
from tests.services.enrichment.fleet import START, app
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until

LIVE = Application(
    name="fleet", event=app.event, state=app.state, enrichments=app.enrichments, apis=app.apis, topics=Topics()
)
OVER = START + LIVE.kept_for + timedelta(minutes=10)
CALLS = 2
"""The calls of a new window."""
SECONDS = st.integers(0, 100_000)


@given(st.lists(st.tuples(SECONDS, SECONDS)))
def test_it_is_never_ahead_of_the_broker_and_never_goes_back(reads: list[tuple[int, int]]) -> None:
    """A record is read some seconds after the one before, and was stamped some seconds ago."""
    elapsed = best = 0
    clock = BrokerClock(lambda: 7.0 + elapsed)
    assert clock.now() == datetime.fromtimestamp(0, UTC)
    for number, (pause, age) in enumerate(reads):
        elapsed += pause
        before = clock.now()
        clock.note(Record("snapshots", 0, 0, timestamp_ms(START + timedelta(seconds=elapsed - age)), None, None))
        best = age if number == 0 else min(best, age)
        assert clock.now() == START + timedelta(seconds=elapsed - best) >= before


@pytest.mark.parametrize(
    ("read_at", "newest_at", "calls"),
    [(START, None, CALLS), (START, START, CALLS), (START, OVER, 0), (OVER, None, 0)],
    ids=["of an empty broker", "of a wrong clock", "of a backlog", "of a late record"],
)
async def test_a_window_has_ended_by_both_clocks(read_at: datetime, newest_at: datetime | None, calls: int) -> None:
    log, gated = Log(cars(1)), Gated().let()
    log.timestamp_ms, log.newest_ms = timestamp_ms(read_at), timestamp_ms(newest_at) if newest_at else 0
    async with running(log, gated, LIVE, now=OVER):
        await until(lambda: 1 in log.committed)
    assert gated.calls == calls


async def test_a_worker_that_knows_the_time_does_not_look_it_up() -> None:
    log, gated = Log(cars(1)), Gated().let()
    log.newest_ms = timestamp_ms(START)
    async with running(log, gated, LIVE):
        await until(lambda: 1 in log.committed)
        log.listener.on_assigned([1, 2])
        await until(lambda: gated.counts.get(metrics.PARTITIONS) == 3)
        fetches = log.fetches
        await until(lambda: log.fetches > fetches + 5)
    assert log.looked_up == 1
