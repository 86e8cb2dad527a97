"""Topics in memory, for readers that join no group."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from services.runtime.kafka.values import BoundedRange, Partition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence

    from contracts.records.record import Record
    from services.runtime.kafka.values import OffsetRange

BATCH = 3


class StoredTopics:
    """Partitions with these records, from offset 0 to behind the last one. Implements TopicReader."""

    def __init__(self, records: Iterable[Record], partitions: Collection[Partition] = ()) -> None:
        self.records: dict[Partition, list[Record]] = {partition: [] for partition in partitions}
        for record in records:
            self.records.setdefault(Partition(record.topic, record.partition), []).append(record)

    async def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        return [record for record in self.records if record.topic in topics]

    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, BoundedRange]:
        kept = {partition: self.records.get(partition, []) for partition in partitions}
        return {one: BoundedRange(0, found[-1].offset + 1 if found else 0) for one, found in kept.items()}

    async def read(self, ranges: Mapping[Partition, OffsetRange]) -> AsyncIterator[Sequence[Record]]:
        for partition, (start, end) in ranges.items():
            found = [one for one in self.records[partition] if end is not None and start <= one.offset < end]
            for first in range(0, len(found), BATCH):
                await asyncio.sleep(0)
                yield found[first : first + BATCH]

    async def at(self, partition: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> Sequence[Record]:
        assert is_wanted()
        return [one for one in self.records.get(partition, []) if one.offset in offsets]

    async def close(self) -> None:
        """See `TopicReader.close`."""
