"""A bounded run: it processes what a topic has, and ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.records.record import Record
from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import Partition
from services.runtime.worker.bounded import run_bounded
from services.runtime.worker.handler import Handler, WorkerMetrics
from tests.services.runtime.worker.stored_topics import StoredTopics
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.runtime.worker.partition import AssignedPartition

SLOW_S = 60.0


class Slow(Handler["AssignedPartition"]):
    """Finishes each record a minute after it was processed; fails at one of them."""

    loop_metrics = WorkerMetrics(metrics.COMMITS, metrics.KAFKA_ERRORS, metrics.LAG)

    def __init__(self, topics: StoredTopics, fails_at: int | None = None) -> None:
        self.processed: list[tuple[int, int]] = []
        self.finished: list[tuple[int, int]] = []
        self.is_closed = False
        self._topics = topics
        self._fails_at = fails_at

    @override
    async def open(self, partition: AssignedPartition) -> AssignedPartition:
        return partition

    @override
    async def process(self, state: AssignedPartition, records: Sequence[Record]) -> None:
        for record in records:
            if record.offset == self._fails_at:
                raise LookupError(record.offset)
            self.processed.append((record.partition, record.offset))
            state.track(record.offset, 1)
            _ = state.spawn(self._finish(state, record))
            self._topics.records[Partition("t", 0)].append(record_of(0, 1000 + len(self.processed)))

    async def _finish(self, state: AssignedPartition, record: Record) -> None:
        await asyncio.sleep(SLOW_S)
        state.finish(record.offset)
        self.finished.append((record.partition, record.offset))

    @override
    def abandon(self, state: AssignedPartition) -> None:
        """Nothing to drop."""

    @override
    def progress(self) -> float:
        return len(self.finished)

    @override
    async def close(self) -> None:
        self.is_closed = True


def record_of(partition: int, offset: int) -> Record:
    return Record("t", partition, offset, 0, None, b"x")


PLACES = [(partition, offset) for partition in range(2) for offset in (0, 1, 4, 5, 6, 9, 10)]
"""Compaction has removed some."""


def topics() -> StoredTopics:
    return StoredTopics([record_of(*one) for one in PLACES], [Partition("t", 2)])


def run(handler: Slow, reader: StoredTopics, topic: str = "t") -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run_bounded(handler, reader, topic, Counts(metrics.CATALOGUE)))


def test_it_ends_when_all_records_are_finished_that_the_topic_had_at_the_start() -> None:
    reader = topics()
    handler = Slow(reader)
    run(handler, reader)
    assert sorted(handler.finished) == PLACES
    assert [one for one in handler.processed if one[0] == 1] == PLACES[7:], "in the order of the partition"
    assert handler.is_closed


def test_an_empty_topic_ends_at_once() -> None:
    reader = StoredTopics([], [Partition("t", 0)])
    handler = Slow(reader)
    run(handler, reader)
    assert (handler.finished, handler.is_closed) == ([], True)


def test_a_topic_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TopicReadError, match="other cannot be read"):
        run(Slow(topics()), topics(), "other")


def test_the_first_error_of_the_handler_ends_the_run() -> None:
    reader = topics()
    handler = Slow(reader, fails_at=4)
    with pytest.raises(LookupError, match="4"):
        run(handler, reader)
    assert all(offset < 4 for _, offset in handler.processed)
    assert handler.is_closed
