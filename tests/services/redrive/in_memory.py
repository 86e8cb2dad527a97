"""Records, and the topics that they are in, without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from contracts.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KEPT_MS = 1_767_225_600_000
AWAY = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  # so it is called


def kept(
    topic: str, offset: int, *, headers: Iterable[tuple[str, str | bytes]] = (), value: bytes | None = None
) -> Record:
    """Return a record that its topic has not deleted."""
    content = b"%d" % offset if value is None else value
    return Record(topic, 0, offset, KEPT_MS + offset, b"d1", content, tuple(headers))


class Topics:
    """A consumer of partitions that have these offsets left, of as many as there ever were."""

    def __init__(self, left: Mapping[tuple[str, int], Sequence[int]], end: int) -> None:
        self.left = left
        self.end = end
        self.assigned: list[tuple[str, int, int]] = []
        self.polled = 0
        self.away = False
        self.broken = False
        self._place = ("", 0)
        self._next = 0

    def get_watermark_offsets(self, place: TopicPartition, _: float) -> tuple[int, int]:
        if self.away:
            raise KafkaException(AWAY)
        return min(self.left[place.topic, place.partition]), self.end

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        (one,) = partitions
        self._place, self._next = (one.topic, one.partition), one.offset
        self.assigned.append((one.topic, one.partition, one.offset))

    def poll(self, _: float) -> Message | None:
        self.polled += 1
        if self.broken:
            return Message(*self._place, self._next, error=AWAY)
        offset = next((one for one in self.left[self._place] if one >= self._next), None)
        if offset is None:
            return None
        self._next = offset + 1
        return Message(*self._place, offset)

    def close(self) -> None:
        pass
