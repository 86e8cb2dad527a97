"""Reads single records: deferred snapshots, of which the worker has only the offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.runtime.errors import ConsumerFailedError, TopicReadError
from services.runtime.kafka.values import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import TopicReader

NAME = "enrichment-rereader"
"""The name of the Kafka client."""


class Rereader(Protocol):
    """Reads records by their offsets."""

    async def reread(self, partition: int, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> Sequence[Record]:
        """Return the records at these ascending offsets, without those that the topic no longer has.

        It waits while the broker is down, and returns early when `is_wanted` returns False. Raises ConsumerFailedError,
        also if the partition stays shorter than these offsets: its topic was recreated.
        """
        ...


class TopicRereader:
    """Reads records of one topic. Implements Rereader."""

    def __init__(self, reader: TopicReader, topic: str) -> None:
        self._reader = reader
        self._topic = topic

    async def reread(self, partition: int, offsets: Sequence[int], is_wanted: Callable[[], bool]) -> Sequence[Record]:
        """See `Rereader.reread`."""
        try:
            return await self._reader.at(Partition(self._topic, partition), offsets, is_wanted)
        except TopicReadError as error:
            raise ConsumerFailedError(error.code, error.detail) from error
