"""Reads single records at the origins of dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.kafka.interfaces import Partition

if TYPE_CHECKING:
    from contracts.records.record import Record
    from services.runtime.kafka.interfaces import BlockingTopicReader

SHORT_FETCH = {"fetch.wait.max.ms": 10}
"""The options of the reader: it often changes to another partition, which waits for the last fetch."""


class Origins:
    """A reader of any topic. Neighbouring records are cheap in the order of their offsets."""

    def __init__(self, reader: BlockingTopicReader) -> None:
        self._reader = reader

    def record(self, topic: str, partition: int, offset: int) -> Record | None:
        """Return the record at that position; None if the topic has deleted it. Raises TopicReadError."""
        place = Partition(topic, partition)
        kept = self._reader.bounds([place])[place]
        if not kept.start <= offset < kept.end:
            return None
        return next(iter(self._reader.at(place, [offset])), None)

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()
