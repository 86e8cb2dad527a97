"""Partitions come and go: what finishes late is never committed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from services.enrichment.lanes import Lanes
from services.enrichment.pressure import Pressure
from services.enrichment.settings import EnrichmentSettings
from services.enrichment.source import Record
from tests.services.enrichment.fleet import START, app, snapshot


def lanes(drain: float = 0.0) -> tuple[Lanes, Counts]:
    counts = Counts(metrics.CATALOGUE)
    settings = EnrichmentSettings(application="fleet", drain=timedelta(seconds=drain))
    return Lanes(app, settings, counts, lambda: 0.0, Pressure(1000, 1000, 1000)), counts


def record(offset: int, partition: int = 0) -> Record:
    return Record(partition, offset, b"d1", b"{}", 0)


async def test_a_completion_of_a_former_assignment_is_never_committed() -> None:
    ours, _ = lanes()
    ours.assigned([0])
    ((former, _),) = ours.sorted([record(5)])
    former.offsets.take(5, 1)
    assert await ours.release([0]) == {0: 5}
    ours.assigned([0])
    ((lane, _),) = ours.sorted([record(5)])
    lane.offsets.take(5, 1)
    former.offsets.finish(5)
    assert ours.positions() == {0: 5}


async def test_what_is_under_way_may_finish_before_its_partition_goes() -> None:
    ours, counts = lanes(drain=60)
    ours.assigned([0, 1])
    ((lane, _),) = ours.sorted([record(5)])
    lane.offsets.take(5, 1)

    async def work() -> None:
        await asyncio.sleep(0)
        assert lane.closed, "nothing begins in a partition that goes away"
        lane.offsets.finish(5)

    lane.hold(asyncio.create_task(work()))
    assert await ours.release([0]) == {0: 6}
    assert counts.get(metrics.ABANDONED) == 0


async def test_what_does_not_finish_in_time_is_given_up() -> None:
    ours, counts = lanes()
    ours.assigned([0])
    ((lane, read),) = ours.sorted([record(5)])
    lane.offsets.take(5, 1)
    request = lane.due(app, snapshot(1), START).begin[0]
    work = lane.begin(read, request, None)
    assert work
    work.task = task = asyncio.create_task(asyncio.sleep(3600))
    lane.hold(task)
    assert await ours.release([0]) == {0: 5}
    await asyncio.wait([task])
    assert task.cancelled()
    assert counts.get(metrics.ABANDONED) == 1
    assert ours.positions() == {}


async def test_lost_partitions_commit_nothing_and_their_records_are_dropped() -> None:
    ours, _ = lanes()
    ours.assigned([0, 1])
    ours.lost([0])
    ((lane, kept),) = ours.sorted([record(1), record(2, partition=1)])
    lane.offsets.take(2, 0)
    assert kept.partition == 1
    assert ours.positions() == {1: 3}


async def test_a_topic_made_anew_begins_anew() -> None:
    ours, _ = lanes()
    ours.assigned([0])
    ((former, _),) = ours.sorted([record(100)])
    former.offsets.take(100, 1)
    ((lane, _),) = ours.sorted([record(0)])
    lane.offsets.take(0, 0)
    assert former.closed
    assert ours.positions() == {0: 1}


async def test_a_partition_is_full_when_it_was_read_a_window_beyond_what_is_unfinished() -> None:
    settings = EnrichmentSettings(application="fleet", window=10)
    ours = Lanes(app, settings, Counts(metrics.CATALOGUE), lambda: 0.0, Pressure(1000, 1000, 1000))
    ours.assigned([0, 1])
    for offset, ((lane, _),) in enumerate(ours.sorted([record(n)]) for n in range(10)):
        assert ours.full() == frozenset()
        lane.offsets.take(offset, 1 if offset == 0 else 0)
    assert ours.full() == {0}
    lane.offsets.finish(0)
    assert ours.full() == frozenset()
    assert ours.positions() == {0: 10}


async def test_a_partition_that_is_back_before_it_has_gone_keeps_its_new_lane() -> None:
    ours, _ = lanes(drain=60)
    ours.assigned([0])
    ((former, _),) = ours.sorted([record(5)])
    former.offsets.take(5, 1)
    task = asyncio.create_task(asyncio.sleep(3600))
    former.hold(task)
    going = asyncio.create_task(ours.release([0]))
    await asyncio.sleep(0)
    ours.assigned([0])
    task.cancel()
    assert await going == {0: 5}
    assert [lane is former for lane, _ in ours.sorted([record(6)])] == [False]
