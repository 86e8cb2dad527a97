"""Partitions come and go: what finishes late is never committed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.records.record import Record
from services.runtime.worker.assignment import Assignment
from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.handler import WorkerLimits, WorkerMetrics
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from services.runtime.worker.partition import AssignedPartition


class Ours:
    """An assignment, with the partitions that were opened and not abandoned."""

    def __init__(self, drain: float = 0.0, uncommitted: int = 1000) -> None:
        second = timedelta(seconds=1)
        limits = WorkerLimits(256, uncommitted, second, timedelta(seconds=drain), second, second, second)
        kinds = WorkerMetrics(metrics.COMMITS, metrics.KAFKA_ERRORS, metrics.LAG)
        self.backpressure = Backpressure(1000, 10**6)
        self.opened: list[AssignedPartition] = []
        self.assignment = Assignment(
            limits,
            self.backpressure,
            Counts(metrics.CATALOGUE),
            kinds,
            create_task,
            self.opened.append,
            lambda one: self.opened.remove(one) if one in self.opened else None,
        )

    def read(self, offset: int, number: int = 0) -> AssignedPartition:
        """Read a record; return the partition that has it."""
        self.assignment.route([Record("snapshots", number, offset, 0, b"d1", b"{}")])
        return next(one for one in self.opened if one.number == number)


def create_task(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


async def test_a_completion_of_a_former_assignment_is_never_committed() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0])
    former = ours.read(5)
    former.track(5, 1)
    assert await ours.assignment.on_revoked([0]) == {0: 5}
    ours.assignment.on_assigned([0])
    ours.read(5).track(5, 1)
    former.finish(5)
    assert ours.assignment.positions() == {0: 5}


async def test_work_in_progress_may_finish_before_its_partition_is_revoked() -> None:
    ours = Ours(drain=60)
    ours.assignment.on_assigned([0, 1])
    partition = ours.read(5)
    partition.track(5, 1)

    async def work() -> None:
        await asyncio.sleep(0)
        assert partition.is_closing, "nothing begins in a partition that goes away"
        partition.finish(5)

    task = partition.spawn(work())
    assert await ours.assignment.on_revoked([0]) == {0: 6}
    await task


async def test_work_that_does_not_finish_in_time_is_cancelled() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0])
    partition = ours.read(5)
    partition.track(5, 1)
    task = partition.spawn(forever())
    assert await ours.assignment.on_revoked([0]) == {0: 5}
    await asyncio.wait([task], timeout=DEADLINE_S)
    assert task.cancelled()
    assert partition.is_abandoned
    assert ours.opened == []
    assert ours.assignment.positions() == {}


async def test_lost_partitions_commit_nothing_and_their_records_are_dropped() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0, 1])
    lost = ours.read(0)
    lost.track(0, 0)
    ours.assignment.on_lost([0])
    assert ours.backpressure.count == 0
    ours.assignment.route([Record("snapshots", 0, 1, 0, b"d1", b"{}")])
    ours.read(2, 1).track(2, 0)
    assert ours.assignment.positions() == {1: 3}
    assert ours.backpressure.count == 1


async def test_a_partition_whose_first_record_is_before_the_offset_to_read_begins_anew() -> None:
    """Its topic was created again: the client goes to the beginning, and the offset was of the former topic."""
    ours = Ours()
    ours.assignment.on_assigned([0])
    (quiet,) = ours.opened
    quiet.first = 501
    begun = ours.read(0)
    assert (quiet.is_abandoned, begun.first, begun.start, ours.backpressure.count) == (True, 0, None, 1)


async def test_a_confirmed_offset_without_a_record_awaits_no_commit() -> None:
    """A member has proven that it owns the partition, and has processed nothing."""
    ours = Ours()
    ours.assignment.on_assigned([0])
    ours.assignment.on_committed({0: 5})
    async with asyncio.timeout(DEADLINE_S):
        await ours.assignment.wait_for_commits(timedelta(seconds=10 * DEADLINE_S))


async def test_a_topic_that_was_created_again_begins_anew() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0])
    former = ours.read(100)
    former.track(100, 1)
    again = ours.read(0)
    again.track(0, 0)
    assert (former.is_abandoned, again.start) == (True, None)
    assert ours.assignment.positions() == {0: 1}


async def test_a_partition_is_full_at_the_maximum_of_uncommitted_offsets() -> None:
    ours = Ours(uncommitted=10)
    ours.assignment.on_assigned([0, 1])
    for offset in range(10):
        assert ours.assignment.full() == frozenset()
        partition = ours.read(offset)
        assert len(await partition.take(1)) == 1
        partition.track(offset, 1 if offset == 0 else 0)
    assert ours.assignment.full() == {0}
    ours.opened[0].finish(0)
    assert ours.assignment.full() == frozenset()
    assert ours.assignment.positions() == {0: 10}


async def test_a_partition_whose_records_wait_is_full_alone() -> None:
    """One that takes long to open must not fill the memory of all."""
    ours = Ours(uncommitted=10)
    ours.assignment.on_assigned([0, 1])
    for offset in range(10):
        assert ours.assignment.full() == frozenset()
        ours.read(offset)
    ours.read(0, number=1)
    assert ours.assignment.full() == {0}


async def test_an_idle_partition_gives_no_records_after_a_while() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0])
    (partition,) = ours.opened
    assert await partition.take(10, timedelta(milliseconds=1)) == []
    assert not partition.is_closing
    ours.read(5)
    assert [one.offset for one in await partition.take(10, timedelta(0))] == [5]


async def test_a_partition_that_is_back_before_it_has_gone_keeps_its_new_object() -> None:
    ours = Ours(drain=60)
    ours.assignment.on_assigned([0])
    former = ours.read(5)
    former.track(5, 1)
    task = former.spawn(forever())
    revoking = asyncio.create_task(ours.assignment.on_revoked([0]))
    await asyncio.sleep(0)
    ours.assignment.on_assigned([0])
    task.cancel()
    assert await revoking == {0: 5}
    assert ours.read(6) is not former


async def test_a_reopened_partition_drops_its_records_until_the_consumer_has_sought() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0, 1])
    former = ours.read(5)
    former.track(5, 0)
    former.reopen(2)
    former.reopen(3)  # it has ended already
    assert ours.assignment.seeks == {0: 2}
    assert (ours.assignment.positions(), ours.backpressure.count) == ({}, 0)
    ours.assignment.route([Record("snapshots", 0, 6, 0, b"d1", b"{}")])
    assert ours.backpressure.count == 0
    ours.assignment.sought({})
    assert ours.assignment.seeks == {0: 2}, "a seek that failed is repeated"
    ours.assignment.sought({0: 2})
    again = ours.read(2)
    assert (again.start, again.first, ours.assignment.seeks) == (2, 2, {})


async def test_a_partition_that_goes_while_it_is_reopened_is_not_opened() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0, 1, 2])
    for number in (0, 1, 2):
        ours.read(5, number).reopen(2)
    await ours.assignment.on_revoked([0])
    ours.assignment.on_lost([1])
    ours.assignment.on_assigned([2])
    ours.assignment.sought({0: 2, 1: 2, 2: 2})
    assert [(one.number, one.start) for one in ours.opened] == [(2, None)]


async def test_a_partition_that_is_back_and_reopened_before_it_has_gone_is_read_again() -> None:
    ours = Ours(drain=60)
    ours.assignment.on_assigned([0])
    former = ours.read(5)
    task = former.spawn(forever())
    revoking = asyncio.create_task(ours.assignment.on_revoked([0]))
    await asyncio.sleep(0)
    ours.assignment.on_assigned([0])
    ours.read(5).reopen(2)
    task.cancel()
    await revoking
    assert ours.assignment.seeks == {0: 2}


async def test_a_partition_that_is_reopened_while_it_goes_commits_nothing() -> None:
    ours = Ours(drain=60)
    ours.assignment.on_assigned([0])
    partition = ours.read(5)
    partition.track(5, 0)

    async def work() -> None:
        await asyncio.sleep(0)
        partition.reopen(2)

    task = partition.spawn(work())
    assert await ours.assignment.on_revoked([0]) == {}
    await asyncio.wait([task], timeout=DEADLINE_S)
    assert ours.assignment.seeks == {}


async def test_a_partition_that_comes_while_the_worker_stops_gets_no_work() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0])
    await ours.assignment.drain(timedelta(0))
    ours.assignment.on_assigned([1])
    assert ours.opened == []
    assert ours.assignment.positions() == {}


async def test_records_are_taken_in_batches_of_bounded_size_and_count_until_then() -> None:
    ours = Ours()
    ours.assignment.on_assigned([0])
    large = bytes(3 << 20)
    ours.assignment.route([Record("snapshots", 0, offset, 0, b"d", large) for offset in range(5)])
    (partition,) = ours.opened
    assert [one.offset for one in await partition.take(1)] == [0]
    taken = await partition.take(10)
    assert [one.offset for one in taken] == [1, 2]
    assert (partition.waiting, ours.backpressure.count, ours.backpressure.bytes) == (2, 2, 2 * taken[0].size)
    partition.close()
    assert await partition.take(10) == []


async def forever() -> None:
    await asyncio.Event().wait()
