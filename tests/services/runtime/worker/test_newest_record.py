"""The newest record of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contracts.records.record import Record
from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import BoundedRange
from services.runtime.worker.newest_record import newest_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.runtime.kafka.values import Partition

FOUND = Record("snapshots", 1, 3, 0, b"d", b"v")


class Reader:
    """Returns the same record for the offset 3, and no other. Implements a part of TopicReader."""

    def __init__(self, begin: int, end: int) -> None:
        self.range = BoundedRange(begin, end)

    async def bounds(self, partitions: Sequence[Partition]) -> dict[Partition, BoundedRange]:
        return dict.fromkeys(partitions, self.range)

    async def at(self, partition: Partition, offsets: Sequence[int], _: Callable[[], bool]) -> Sequence[Record]:
        if list(offsets) != [3]:
            raise TopicReadError(partition.topic, "ENDS_EARLY", "partition 1 ends before 5")
        return [FOUND]


@pytest.mark.parametrize(("begin", "end", "newest"), [(0, 4, FOUND), (4, 4, None), (0, 9, None)])
async def test_the_newest_record_is_none_in_an_empty_partition_and_while_the_broker_is_away(
    begin: int, end: int, newest: Record | None
) -> None:
    reader: Any = Reader(begin, end)
    assert await newest_record(reader, "snapshots")(1, lambda: True) == newest
