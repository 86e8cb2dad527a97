"""Partitions come and go: what finishes late is never committed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.records.record import Record
from services.enrichment.backpressure import Backpressure
from services.enrichment.partitions import Partitions
from services.enrichment.settings import EnrichmentSettings
from tests.services.enrichment.fleet import START, app, snapshot


def assigned(drain: float = 0.0) -> tuple[Partitions, Counts]:
    counts = Counts(metrics.CATALOGUE)
    settings = EnrichmentSettings(application="fleet", drain=timedelta(seconds=drain))
    return Partitions(app, settings, counts, lambda: 0.0, Backpressure(1000, 1000, 1000)), counts


def record(offset: int, partition: int = 0) -> Record:
    return Record("snapshots", partition, offset, 0, b"d1", b"{}")


async def test_a_completion_of_a_former_assignment_is_never_committed() -> None:
    ours, _ = assigned()
    ours.on_assigned([0])
    ((former, _),) = ours.route([record(5)])
    former.track(5, 1)
    assert await ours.on_revoked([0]) == {0: 5}
    ours.on_assigned([0])
    ((state, _),) = ours.route([record(5)])
    state.track(5, 1)
    former.finish_offset(5)
    assert ours.positions() == {0: 5}


async def test_running_requests_may_finish_before_their_partition_is_revoked() -> None:
    ours, counts = assigned(drain=60)
    ours.on_assigned([0, 1])
    ((state, _),) = ours.route([record(5)])
    state.track(5, 1)

    async def work() -> None:
        await asyncio.sleep(0)
        assert state.is_closed, "nothing begins in a partition that goes away"
        state.finish_offset(5)

    state.keep_task(asyncio.create_task(work()))
    assert await ours.on_revoked([0]) == {0: 6}
    assert counts.get(metrics.ABANDONED) == 0


async def test_requests_that_do_not_finish_in_time_are_abandoned() -> None:
    ours, counts = assigned()
    ours.on_assigned([0])
    ((state, read),) = ours.route([record(5)])
    state.track(5, 1)
    request = state.plan(app, snapshot(1), START).requests[0]
    pending = state.add(read, request, None)
    assert pending
    pending.task = task = asyncio.create_task(asyncio.sleep(3600))
    state.keep_task(task)
    assert await ours.on_revoked([0]) == {0: 5}
    await asyncio.wait([task])
    assert task.cancelled()
    assert counts.get(metrics.ABANDONED) == 1
    assert ours.positions() == {}


async def test_lost_partitions_commit_nothing_and_their_records_are_dropped() -> None:
    ours, _ = assigned()
    ours.on_assigned([0, 1])
    ours.on_lost([0])
    ((state, kept),) = ours.route([record(1), record(2, partition=1)])
    state.track(2, 0)
    assert kept.partition == 1
    assert ours.positions() == {1: 3}


async def test_a_topic_made_anew_begins_anew() -> None:
    ours, _ = assigned()
    ours.on_assigned([0])
    ((former, _),) = ours.route([record(100)])
    former.track(100, 1)
    ((state, _),) = ours.route([record(0)])
    state.track(0, 0)
    assert former.is_closed
    assert ours.positions() == {0: 1}


async def test_a_partition_is_full_at_the_maximum_of_uncommitted_offsets() -> None:
    settings = EnrichmentSettings(application="fleet", max_uncommitted=10)
    ours = Partitions(app, settings, Counts(metrics.CATALOGUE), lambda: 0.0, Backpressure(1000, 1000, 1000))
    ours.on_assigned([0, 1])
    for offset, ((state, _),) in enumerate(ours.route([record(n)]) for n in range(10)):
        assert ours.full() == frozenset()
        state.track(offset, 1 if offset == 0 else 0)
    assert ours.full() == {0}
    state.finish_offset(0)
    assert ours.full() == frozenset()
    assert ours.positions() == {0: 10}


async def test_a_partition_that_is_back_before_it_has_gone_keeps_its_new_state() -> None:
    ours, _ = assigned(drain=60)
    ours.on_assigned([0])
    ((former, _),) = ours.route([record(5)])
    former.track(5, 1)
    task = asyncio.create_task(asyncio.sleep(3600))
    former.keep_task(task)
    going = asyncio.create_task(ours.on_revoked([0]))
    await asyncio.sleep(0)
    ours.on_assigned([0])
    task.cancel()
    assert await going == {0: 5}
    assert [state is former for state, _ in ours.route([record(6)])] == [False]
