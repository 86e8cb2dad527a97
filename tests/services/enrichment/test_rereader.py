"""A deferred snapshot that cannot be read again stops the worker, with a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contracts.records.record import Record
from services.enrichment.rereader import TopicRereader
from services.runtime.errors import ConsumerFailedError, TopicReadError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.runtime.kafka.values import Partition

FOUND = Record("snapshots", 1, 3, 0, b"d", b"v")


class Reader:
    """Returns the same record for any offsets below 5. Implements a part of TopicReader."""

    async def at(self, partition: Partition, offsets: Sequence[int], _: Callable[[], bool]) -> Sequence[Record]:
        if offsets[-1] >= 5:
            raise TopicReadError(partition.topic, "ENDS_EARLY", "partition 1 ends before 5")
        return [FOUND]


async def test_records_of_its_topic_are_read_or_the_worker_stops() -> None:
    reader: Any = Reader()
    rereader = TopicRereader(reader, "snapshots")
    assert await rereader.reread(1, [3], lambda: True) == [FOUND]
    with pytest.raises(ConsumerFailedError, match=r"ENDS_EARLY: partition 1 ends before 5.*start the worker again"):
        await rereader.reread(1, [3, 7], lambda: True)
