"""The newest record of a partition, which shows the broker's clock before a backlog is read."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from services.runtime.errors import TopicReadError
from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts.records.record import Record
    from services.runtime.broker_clock import BrokerClock
    from services.runtime.kafka.interfaces import TopicReader
    from services.runtime.worker.partition import AssignedPartition

SMALL_QUEUE = {"queued.max.messages.kbytes": 2048}
"""The options of a client that reads single records: what it reads ahead takes little memory."""
PRECISION = timedelta(minutes=1)
"""The precision with which the broker's clock must be known. Else the newest record of a new partition is read."""
NEWEST_S = 10.0
"""How long that may take: the other partitions wait meanwhile."""


class NewestRecord(Protocol):
    """Looks the newest record of a partition up."""

    async def __call__(self, partition: int, is_wanted: Callable[[], bool], /) -> Record | None:
        """Return the last record of a partition; None if it has none, or does not return it now.

        It waits while the broker is down, and returns early when `is_wanted` returns False.
        """
        ...


def newest_record(reader: TopicReader, topic: str) -> NewestRecord:
    """Return the look-up in a topic."""

    async def newest(number: int, is_wanted: Callable[[], bool], /) -> Record | None:
        place = Partition(topic, number)
        try:
            begin, end = (await reader.bounds([place]))[place]
            records = await reader.at(place, [end - 1], is_wanted) if begin < end else ()
        except TopicReadError:
            return None
        return next(iter(records), None)

    return newest


class BacklogTime:
    """Sets the `broker_clock` by the newest record of a backlog before it is read, unless it is near `now` already."""

    def __init__(
        self,
        newest: NewestRecord,
        broker_clock: BrokerClock,
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        self._newest = newest
        self._broker_clock = broker_clock
        self._now = now
        self._clock = clock
        self._noting = asyncio.Lock()

    async def note(self, partition: AssignedPartition) -> None:
        """Note the newest record of a partition: the windows of its backlog may be over."""
        async with self._noting:
            if self._now() - self._broker_clock.now() > PRECISION and not partition.is_closing:
                until = self._clock() + NEWEST_S
                newest = await self._newest(
                    partition.number, lambda: not partition.is_closing and self._clock() < until
                )
                if newest is not None:
                    self._broker_clock.note(newest.timestamp_ms)
