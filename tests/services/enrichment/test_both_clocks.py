"""A window has ended when the worker's clock and the broker's say so."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from contracts import Application, Topics
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.records.record import Record, timestamp_ms
from services.enrichment.partition_state import PartitionState
from services.enrichment.planner import EnrichmentPlanner
from services.runtime.broker_clock import BrokerClock
from tests.services.enrichment.fleet import START, app
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until
from tests.services.runtime.worker.assigned import assigned

LIVE = Application(
    name="fleet", event=app.event, state=app.state, enrichments=app.enrichments, apis=app.apis, topics=Topics()
)
OVER = START + LIVE.kept_for + timedelta(minutes=10)
CALLS = 2
"""The calls of a new window."""


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
    assert gated.counts.get(metrics.EXPIRED) == CALLS - calls


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


def test_a_deferred_request_whose_window_ends_is_counted_with_its_api() -> None:
    counts, broker_clock = Counts(metrics.CATALOGUE), BrokerClock(lambda: 0.0)
    state = PartitionState(assigned(), 1000, LIVE.kept_for, lambda: 0.0, broker_clock)
    planner, record = EnrichmentPlanner(LIVE, counts), Record("snapshots", 0, 0, 0, b"d", cars(1)[0])
    requests = planner.plan(state, record, OVER)
    api = planner.api_of[requests[0].enrichment]
    broker_clock.note(timestamp_ms(OVER))
    assert planner.replan(state, record, OVER, api) == []
    assert counts.divided(metrics.EXPIRED) == {
        (one.enrichment,): 1 for one in requests if planner.api_of[one.enrichment] == api
    }
