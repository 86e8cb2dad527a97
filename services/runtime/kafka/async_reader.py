"""Reads partitions from an event loop: a blocking reader with a thread of its own."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from services.runtime.call_thread import CallThread
from services.runtime.kafka.interfaces import TopicReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence

    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import BlockingTopicReader
    from services.runtime.kafka.values import BoundedRange, OffsetRange, Partition


class KafkaTopicReader(TopicReader):
    """Calls a blocking reader in a thread, which ends its call soon after a cancellation."""

    def __init__(self, reader: BlockingTopicReader) -> None:
        self._reader = reader
        self._thread = CallThread("topic-reader")

    @override
    async def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        return await self._thread.call(partial(self._reader.partitions, topics))

    @override
    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, BoundedRange]:
        return await self._thread.call(partial(self._reader.bounds, partitions))

    @override
    async def read(self, ranges: Mapping[Partition, OffsetRange]) -> AsyncIterator[Sequence[Record]]:
        with _cancellation() as is_cancelled:
            batches = self._reader.read(ranges, is_cancelled)
            while (records := await self._thread.call(partial(next, batches, None))) is not None:
                yield records

    @override
    async def at(self, partition: Partition, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> Sequence[Record]:
        with _cancellation() as is_cancelled:
            return await self._thread.call(
                lambda: self._reader.at(partition, offsets, lambda: is_wanted() and not is_cancelled())
            )

    @override
    async def close(self) -> None:
        await self._thread.call(self._reader.close)
        self._thread.close()


@contextmanager
def _cancellation() -> Iterator[Callable[[], bool]]:
    """Give a function that returns whether the block was left, as by a cancellation."""
    left = threading.Event()
    try:
        yield left.is_set
    finally:
        left.set()
