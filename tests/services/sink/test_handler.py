"""What a sink does when its partitions go while the store is away."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from contracts.sinks import Move
from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.partition import AssignedPartition
from services.sink.handler import MAX_BATCH_BYTES, SinkHandler
from tests.deadline import DEADLINE_S
from tests.services.sink.in_memory import ControlledStore, Published, RunningSink, Topic, until
from tests.services.sink.records import Change, record

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from services.sink.partition import SinkPartition


class Handled:
    """A handler whose store is under control, with a backpressure."""

    def __init__(self) -> None:
        self.store, self.published, self.backpressure = ControlledStore(), Published(), Backpressure(1000, 10**6)
        self.topic = Topic([])
        sink = RunningSink(self.topic, self.store, self.published)
        self.handler = SinkHandler(sink.dependencies, self.backpressure)
        self.tasks: set[asyncio.Task[None]] = set()
        self.reopened: list[int] = []
        self.handler.begin(self.spawn)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        return task

    async def opened(self, *offsets: int) -> tuple[SinkPartition, asyncio.Task[None]]:
        """A partition whose records wait for the store."""
        state = await self.open(0, offsets[0])
        records = [record(Change("a", version=1 + offset), 0, offset) for offset in offsets]
        processing = asyncio.create_task(self.handler.process(state, records))
        await asyncio.sleep(0)
        return state, processing

    async def open(self, number: int, first: int) -> SinkPartition:
        """A partition whose first record has this offset."""
        partition = AssignedPartition(number, self.backpressure, self.spawn, self.reopen)
        state = await self.handler.open(partition)
        partition.first = first
        return state

    def reopen(self, partition: AssignedPartition, offset: int) -> None:
        """Do what the worker does first when a partition is to be read again."""
        partition.abandon()
        self.reopened.append(offset)

    async def lose(self, state: SinkPartition, processing: asyncio.Task[None]) -> None:
        """Do what the worker does when a partition is revoked or lost."""
        state.partition.close()
        self.handler.abandon(state)
        state.partition.abandon()
        processing.cancel()
        await asyncio.gather(processing, return_exceptions=True)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_nothing_of_lost_partitions_stays_in_memory_while_the_store_is_away() -> None:
    handled = Handled()
    handled.store.hangs = True
    _, first = await handled.opened(0)
    lost = []
    for number in range(1, 6):
        state, processing = await handled.opened(number)
        await handled.lose(state, processing)
        lost.append(weakref.ref(state))
        del state, processing
    gc.collect()
    assert sum(one() is not None for one in lost) <= 1, "a comparison with the store waits for it too"
    assert handled.backpressure.count == 1
    first.cancel()
    await handled.end()


async def test_records_of_a_lost_partition_are_not_written() -> None:
    handled = Handled()
    handled.store.hangs = True
    state, processing = await handled.opened(0, 1)
    await handled.lose(state, processing)
    handled.store.hangs = False
    handled.store.state.positions[0] = 5
    _, writing = await handled.opened(5)
    await writing
    assert [batch.moves for batch in handled.store.batches] == [{0: Move(5, 6)}]
    assert handled.backpressure.count == 0
    await handled.end()


async def test_a_topic_that_was_created_again_moves_the_position_back(caplog: pytest.LogCaptureFixture) -> None:
    handled = Handled()
    handled.store.state.positions[0] = 501
    _, writing = await handled.opened(0)
    await writing
    assert handled.store.state.positions == {0: 1}
    assert caplog.messages == ["the position in the store was one of a former topic, and moved back"]
    await handled.end()


async def test_a_takeover_from_an_older_offset_moves_no_position_back() -> None:
    handled = Handled()
    handled.store.state.positions[0] = 9
    handled.topic.group_offset, handled.topic.end = 7, 20
    state, writing = await handled.opened(7)
    await writing
    assert (handled.store.state.positions, handled.store.batches) == ({0: 9}, [])
    assert (state.stored, state.partition.position) == (9, 8)
    records = [record(Change("a", version=1 + offset), 0, offset) for offset in (8, 9)]
    await handled.handler.process(state, records)
    (written,) = handled.store.batches
    assert (written.moves, [row.offset for step in written.steps for row in step.rows]) == ({0: Move(9, 10)}, [9])
    await handled.end()


@pytest.mark.parametrize(("committed", "end"), [(-1, 600), (7, 500), (501, 600)])
async def test_the_position_of_an_earlier_topic_is_moved_back(committed: int, end: int) -> None:
    """The group has no offset in this topic; or the topic has not reached the position, or has lost that offset."""
    handled = Handled()
    handled.store.state.positions[0] = 501
    handled.topic.group_offset, handled.topic.end = committed, end
    _, writing = await handled.opened(7)
    await writing
    assert handled.store.state.positions == {0: 8}
    await handled.end()


@pytest.mark.parametrize(
    ("position", "first", "writes"),
    [(0, 0, [(0, [0, 0, 0])]), (7, 7, [(7, [7, 7, 7])]), (501, 0, [(501, []), (0, [0, 0, 0])])],
)
async def test_the_group_commits_where_a_partition_begins_before_its_first_write(
    monkeypatch: pytest.MonkeyPatch, position: int, first: int, writes: list[tuple[int, list[int]]]
) -> None:
    """A member that is killed after it leaves a committed offset: the position is one of this topic."""
    monkeypatch.setattr("services.sink.handler.RETRY_S", 0.001)
    handled = Handled()
    handled.store.state.positions[0] = position
    handled.topic.refused_proofs = 2
    seen: list[tuple[int, list[int]]] = []
    handled.store.before_write = lambda: seen.append((handled.store.state.positions[0], handled.topic.proofs.copy()))
    _, writing = await handled.opened(first)
    await writing
    assert seen == writes, "position of the store and commits before each write"
    assert handled.store.state.positions == {0: first + 1}
    await handled.end()


async def test_a_member_that_was_frozen_while_another_one_committed_moves_no_position_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.sink.handler.RETRY_S", 0.001)
    handled = Handled()
    handled.store.state.positions[0] = handled.topic.group_offset = 9
    handled.topic.end, handled.topic.refused_proofs = 20, 1_000_000
    state, writing = await handled.opened(0)
    await until(lambda: handled.topic.proofs)
    state.partition.close()
    async with asyncio.timeout(DEADLINE_S):
        await writing
    assert (handled.store.state.positions, handled.store.batches) == ({0: 9}, [])
    assert (set(handled.topic.proofs), state.partition.position) == ({9}, None)
    await handled.end()


async def test_another_sink_that_moves_the_position_of_a_former_topic_back_first_is_compared_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.sink.handler.RETRY_S", 0.001)
    handled = Handled()
    handled.store.state.positions[0] = 501
    others = iter([{0: 0}])
    handled.store.before_write = lambda: handled.store.state.positions.update(next(others, {}))
    _, writing = await handled.opened(0)
    await writing
    assert [batch.moves for batch in handled.store.batches] == [{0: Move(0, 1)}]
    await handled.end()


async def test_nothing_is_written_before_the_topic_of_a_position_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.sink.handler.RETRY_S", 0.001)
    handled = Handled()
    handled.store.state.positions[0] = 9
    handled.topic.group_offset, handled.topic.end, handled.topic.unanswered = 7, 20, 3
    _, writing = await handled.opened(7, 9)
    await writing
    (written,) = handled.store.batches
    assert (written.moves, handled.topic.unanswered) == ({0: Move(9, 10)}, -1)
    await handled.end()


async def test_a_partition_whose_topic_is_unknown_does_not_delay_the_others() -> None:
    handled = Handled()
    handled.store.state.positions[0] = 9
    handled.topic.hangs = True
    state, writing = await handled.opened(7)
    await handled.handler.process(await handled.open(1, 0), [record(Change("b"), 1)])
    assert handled.store.state.positions == {0: 9, 1: 1}
    await handled.lose(state, writing)
    await handled.end()


async def test_a_second_conflict_may_be_at_an_earlier_position() -> None:
    """The store was restored from a backup after another sink had written."""
    handled = Handled()
    handled.store.state.positions[0] = 7
    others = iter([{0: 9}, {0: 3}])
    handled.store.before_write = lambda: handled.store.state.positions.update(next(others, {}))
    _, writing = await handled.opened(7, 8, 9)
    await writing
    assert (handled.store.state.positions, handled.store.batches, handled.reopened) == ({0: 3}, [], [3])
    await handled.end()


async def test_what_another_sink_has_written_meanwhile_is_not_written_again() -> None:
    handled = Handled()
    handled.store.state.positions[0] = 7
    others = iter([{0: 9}])
    handled.store.before_write = lambda: handled.store.state.positions.update(next(others, {}))
    state, writing = await handled.opened(7)
    await writing
    assert (handled.store.state.positions, handled.store.batches) == ({0: 9}, [])
    assert (state.stored, state.partition.position) == (9, 8)
    undecodable = record(Change("a"), 0, 8)._replace(value=b"{")
    await handled.handler.process(state, [undecodable, record(Change("a", version=10), 0, 9)])
    (written,) = handled.store.batches
    assert (written.moves, [row.offset for step in written.steps for row in step.rows]) == ({0: Move(9, 10)}, [9])
    assert handled.published.dead_letters == [], "the other sink has sent it"
    await handled.end()


async def test_no_partition_joins_a_write_that_is_large_already() -> None:
    handled = Handled()
    records = [record(Change("a", padding="x" * MAX_BATCH_BYTES), 0), record(Change("b"), 1), record(Change("c"), 2)]
    states = [await handled.open(number, 0) for number in range(len(records))]
    await asyncio.gather(*(handled.handler.process(state, [one]) for state, one in zip(states, records, strict=True)))
    assert [list(batch.moves) for batch in handled.store.batches] == [[0], [1, 2]]
    await handled.end()
