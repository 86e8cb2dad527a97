"""A bounded run of a handler: over the records that a topic has now, without a consumer group."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

from typing_extensions import override

from services.runtime.adapters import loop_time
from services.runtime.errors import TopicReadError, leaves
from services.runtime.kafka.interfaces import GroupConsumer
from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.handler import S, WorkerLimits
from services.runtime.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from contracts.metrics.counts import Counts
    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import RebalanceListener, TopicReader
    from services.runtime.kafka.values import BoundedRange, Partition
    from services.runtime.worker.handler import Handler

LIMITS = WorkerLimits(
    batch=256,
    uncommitted=sys.maxsize,
    commit_every=timedelta(milliseconds=50),
    drain=timedelta(seconds=1),
    stop_within=timedelta(seconds=1),
    report_every=timedelta(seconds=5),
    stuck_after=timedelta.max,
)
UNPROCESSED, UNPROCESSED_BYTES = 10_000, 64 << 20
"""The number of records, and of their bytes, at which reading pauses."""
IDLE_S = 0.05
"""The pause between two looks at the progress while nothing is read."""


async def run_bounded(handler: Handler[S], reader: TopicReader, topic: str, counts: Counts) -> None:
    """Process the records from the start of a topic to its present end; return when all are finished.

    Nothing is committed: each run begins at the start. Raises TopicReadError, and the first error of the handler.
    """
    partitions = await reader.partitions([topic])
    if not partitions:
        raise TopicReadError(topic, "UNKNOWN_TOPIC_OR_PART", "Broker: Unknown topic or partition")
    source = _BoundedSource(reader, await reader.bounds(partitions))
    backpressure = Backpressure(UNPROCESSED, UNPROCESSED_BYTES)
    worker = Worker(handler, source, LIMITS, backpressure, counts, loop_time)
    source.on_finished = worker.stop
    try:
        await worker.run()
    except ExceptionGroup as group:
        raise next(leaves(group)) from group


class _BoundedSource(GroupConsumer):
    """Reads ranges in place of a member of a group."""

    def __init__(self, reader: TopicReader, ranges: Mapping[Partition, BoundedRange]) -> None:
        self._starts = {partition.number: offsets.start for partition, offsets in ranges.items()}
        self._batches = reader.read(ranges)
        self._is_read = False
        self._ends: dict[int, int] = {}
        """The offset behind the last record that was read, by partition."""
        self._listener: RebalanceListener
        self.on_finished: Callable[[], None]
        """Called when all records are processed."""

    @override
    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        """Assign all partitions, until the end of the run."""
        self._listener = listener
        loop.call_soon(listener.on_assigned, list(self._starts))

    @override
    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        """Return the next records. The positions are confirmed, and stored nowhere."""
        if positions:
            self._listener.on_committed(dict(positions))
        if self._is_read and self._ends.items() <= positions.items():
            self.on_finished()
        if paused or full or self._is_read:
            await asyncio.sleep(IDLE_S)
            return []
        records = await anext(self._batches, None)
        self._is_read = records is None
        self._ends |= {record.partition: record.offset + 1 for record in records or ()}
        return list(records or ())

    @override
    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        """Refuse: a bounded run reads no partition again."""
        raise NotImplementedError

    @override
    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        return {number: self._ends.get(number, self._starts[number]) for number in partitions}

    @override
    async def lag(self) -> int:
        """Return 0: records that come later are not the run's."""
        return 0

    @override
    def problem(self) -> None:
        """Return None: an error of the reader ends the run."""

    @override
    async def close(self) -> None:
        """Do nothing: the caller closes the reader."""
