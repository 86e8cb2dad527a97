"""Records, and the topics that they are in, without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KEPT_MS = 1_767_225_600_000
AWAY = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  # so it is called


class Kept:
    """A record, as the client gives it."""

    def __init__(
        self,
        topic: str,
        offset: int,
        *,
        headers: Sequence[tuple[str, str | bytes]] | None = None,
        error: KafkaError | None = None,
        value: bytes | None = None,
    ) -> None:
        self._topic, self._offset, self._headers, self._error = topic, offset, headers, error
        self._value = b"%d" % offset if value is None else value

    def topic(self) -> str:
        return self._topic

    def offset(self) -> int:
        return self._offset

    def headers(self) -> Sequence[tuple[str, str | bytes]] | None:
        return self._headers

    def error(self) -> KafkaError | None:
        return self._error

    def key(self) -> bytes:
        return b"d1"

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, KEPT_MS + self._offset


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

    def poll(self, _: float) -> Kept | None:
        self.polled += 1
        if self.broken:
            return Kept(self._place[0], self._next, error=AWAY)
        offset = next((one for one in self.left[self._place] if one >= self._next), None)
        if offset is None:
            return None
        self._next = offset + 1
        return Kept(self._place[0], offset)

    def close(self) -> None:
        pass
