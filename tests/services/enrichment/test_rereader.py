"""A deferred snapshot that cannot be read again stops the worker, with a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contracts.records.record import Record
from services.enrichment.rereader import TopicRereader
from services.runtime.errors import ConsumerFailedError, TopicReadError
from services.runtime.kafka.values import BoundedRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.runtime.kafka.values import Partition

FOUND = Record("snapshots", 1, 3, 0, b"d", b"v")


class Reader:
    """Returns the same record for any offsets below 5. Implements a part of TopicReader."""

    def __init__(self, begin: int, end: int) -> None:
        self.range = BoundedRange(begin, end)

    async def bounds(self, partitions: Sequence[Partition]) -> dict[Partition, BoundedRange]:
        return dict.fromkeys(partitions, self.range)

    async def at(self, partition: Partition, offsets: Sequence[int], _: Callable[[], bool]) -> Sequence[Record]:
        if offsets[-1] >= 5:
            raise TopicReadError(partition.topic, "ENDS_EARLY", "partition 1 ends before 5")
        return [FOUND]


async def test_records_of_its_topic_are_read_or_the_worker_stops() -> None:
    reader: Any = Reader(0, 5)
    rereader = TopicRereader(reader, "snapshots")
    assert await rereader.reread(1, [3], lambda: True) == [FOUND]
    with pytest.raises(ConsumerFailedError, match=r"ENDS_EARLY: partition 1 ends before 5.*start the worker again"):
        await rereader.reread(1, [3, 7], lambda: True)


@pytest.mark.parametrize(("begin", "end", "newest"), [(0, 4, FOUND), (4, 4, None), (0, 9, None)])
async def test_the_newest_record_is_none_in_an_empty_partition_and_while_the_broker_is_away(
    begin: int, end: int, newest: Record | None
) -> None:
    reader: Any = Reader(begin, end)
    assert await TopicRereader(reader, "snapshots").newest(1, lambda: True) == newest
