"""Readers of partitions of the model broker, for a thread and for an event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from services.runtime.kafka.values import EARLIEST, LATEST, BoundedRange, Partition
from tests.simulation.kafka.cursor import Cursor
from tests.simulation.kafka.errors import RefusedError, reading
from tests.simulation.kafka.lookup import UNKNOWN_PARTITION, offset_at
from tests.simulation.kafka.network import ANSWER_S, POLL_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from contracts.records.record import Record
    from services.runtime.kafka.values import OffsetRange
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network

PATIENCE_S = 60.0


class ModelBlockingReader:
    """Lets time pass where a client of a broker would wait. Implements BlockingTopicReader."""

    def __init__(self, broker: Broker, network: Network, patience_s: float = PATIENCE_S) -> None:
        self._broker = broker
        self._network = network
        self._cursor = Cursor(broker, network, patience_s)

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """See `BlockingTopicReader.partitions`."""
        with reading(topics):
            self._network.require()
        known = self._broker.topics.by_name
        return [Partition(name, number) for name in topics if name in known for number in range(len(known[name].logs))]

    def bounds(self, partitions: Collection[Partition], within_s: float = 10.0) -> Mapping[Partition, BoundedRange]:  # noqa: ARG002
        """See `BlockingTopicReader.bounds`. A new partition has a leader at once."""
        starts, ends = self._offsets(partitions, EARLIEST), self._offsets(partitions, LATEST)
        return {partition: BoundedRange(starts[partition], ends[partition]) for partition in partitions}

    def bounds_since(self, partitions: Collection[Partition], time: datetime) -> Mapping[Partition, BoundedRange]:
        """See `BlockingTopicReader.bounds_since`."""
        starts, ends = self._offsets(partitions, int(time.timestamp() * 1000)), self._offsets(partitions, LATEST)
        return {
            partition: BoundedRange(ends[partition] if starts[partition] < 0 else starts[partition], ends[partition])
            for partition in partitions
        }

    def read(
        self, ranges: Mapping[Partition, OffsetRange], is_stopping: Callable[[], bool] = lambda: False
    ) -> Iterator[Sequence[Record]]:
        """See `BlockingTopicReader.read`."""
        self._cursor.assign(ranges)
        while not self._cursor.is_complete and not is_stopping():
            records = self._cursor.next_records()
            if not records:
                self._network.time.sleep(POLL_S)
            yield records

    def poll(self, within_s: float = 0.0) -> Sequence[Record]:
        """See `BlockingTopicReader.poll`."""
        self._cursor.follow()
        until = self._network.time.time() + within_s
        while not (records := self._cursor.next_records()) and self._network.time.time() < until:
            self._network.time.sleep(POLL_S)
        return records

    def at(
        self, partition: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool] = lambda: True
    ) -> Sequence[Record]:
        """See `BlockingTopicReader.at`."""
        wanted = BoundedRange(offsets[0], offsets[-1] + 1)
        batches = self.read({partition: wanted}, lambda: not is_wanted())
        return [one for batch in batches for one in batch if one.offset in offsets]

    def stop(self) -> None:
        """See `BlockingTopicReader.stop`."""
        self._cursor.assign({})

    def close(self) -> None:
        """See `BlockingTopicReader.close`."""

    def _offsets(self, partitions: Collection[Partition], at: int) -> dict[Partition, int]:
        with reading({partition.topic for partition in partitions}):
            self._network.require()
            return {
                partition: offset_at(self._broker.topics.log(partition, UNKNOWN_PARTITION), at)
                for partition in partitions
            }


class ModelTopicReader:
    """Reads as the blocking reader does, and awaits where that lets time pass. Implements TopicReader."""

    def __init__(self, broker: Broker, network: Network, patience_s: float = PATIENCE_S) -> None:
        self._network = network
        self._blocking = ModelBlockingReader(broker, network, patience_s)
        self._cursor = Cursor(broker, network, patience_s)

    async def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """See `TopicReader.partitions`."""
        await self._require(topics)
        return self._blocking.partitions(topics)

    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, BoundedRange]:
        """See `TopicReader.bounds`."""
        await self._require({partition.topic for partition in partitions})
        return self._blocking.bounds(partitions)

    async def read(self, ranges: Mapping[Partition, OffsetRange]) -> AsyncIterator[Sequence[Record]]:
        """See `TopicReader.read`."""
        self._cursor.assign(ranges)
        while not self._cursor.is_complete:
            await self._network.pass_through(asyncio.get_running_loop().time())
            records = self._cursor.next_records()
            if not records:
                await asyncio.sleep(POLL_S)
            yield records

    async def at(self, partition: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> Sequence[Record]:
        """See `TopicReader.at`."""
        found: list[Record] = []
        async for records in self.read({partition: BoundedRange(offsets[0], offsets[-1] + 1)}):
            found += [record for record in records if record.offset in offsets]
            if not is_wanted():
                break
        return found

    async def close(self) -> None:
        """See `TopicReader.close`."""

    async def _require(self, topics: Collection[str]) -> None:
        """Wait for an answer of the broker. Raises TopicReadError if it is away for too long."""
        is_reached = await self._network.pass_through(asyncio.get_running_loop().time() + ANSWER_S)
        with reading(topics):
            if not (is_reached and self._network.is_up):
                raise RefusedError("_TRANSPORT")
