"""Reads assigned partitions in batches: small ones while it keeps up, large ones while it catches up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from confluent_kafka import Consumer, Message

CONSUMER_CONFIG: dict[str, str | int | float | bool] = {
    "auto.offset.reset": "error",  # the store must be cleared first
    "enable.partition.eof": True,  # reports an end that has no record: compaction or a transaction removed the last
    "fetch.wait.max.ms": 50,  # a new assignment may wait this long for the response to the fetch before it
    "fetch.queue.backoff.ms": 10,  # by default a full queue stops fetching for a second
    "queued.max.messages.kbytes": 32 * 1024,
}
POLL_S = 0.05
SMALL_BATCH = 100
"""Written in about a millisecond."""
LARGE_BATCH = 10_000
LINGER_S = 0.003
"""The wait for more records when they arrive close together: one transaction for each record would cost more."""
CONSUME_SIZE = 500
"""The client creates so many message objects while it holds the interpreter's lock."""


class BatchReader:
    """Wraps the consumer in the one thread that reads."""

    def __init__(self, consumer: Consumer, clock: Callable[[], float]) -> None:
        self._consumer = consumer
        self._clock = clock
        self._ended = clock()
        self._limit = SMALL_BATCH

    def add(self, topic: str, partition: int, position: int | None) -> None:
        """Read the partition from this position; None: from its beginning."""
        self._consumer.incremental_assign([TopicPartition(topic, partition, _offset(position))])

    def remove(self, topic: str, partition: int) -> None:
        """Stop reading the partition."""
        self._consumer.incremental_unassign([TopicPartition(topic, partition)])

    def replace(self, positions: Mapping[tuple[str, int], int | None]) -> None:
        """Read these partitions, by topic and number, from these positions, and no others."""
        self._consumer.assign([TopicPartition(*one, _offset(position)) for one, position in positions.items()])

    def known_end(self, topic: str, partition: int) -> int | None:
        """Return the partition's end offset in the last fetch response."""
        _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)
        return end if end >= 0 else None

    def read(self, *, wait: bool) -> Iterator[list[Message]]:
        """Yield a batch in pieces; may wait briefly for the first. After a full batch the limit of the next doubles.

        Raises KafkaException: then `replace` must be called, or the records read before are lost.
        """
        first = self._consumer.poll(POLL_S if wait else 0)
        if first is None:
            self._limit = SMALL_BATCH
            return
        began, count = self._clock(), 1
        yield [first]
        wait_s = LINGER_S if began - self._ended < LINGER_S else 0
        while count < self._limit:
            more = self._consumer.consume(min(CONSUME_SIZE, self._limit - count), wait_s)
            if not more:
                break
            count += len(more)
            wait_s = 0
            yield more
        self._ended = self._clock()
        self._limit = min(LARGE_BATCH, 2 * self._limit) if count >= self._limit else SMALL_BATCH


def _offset(position: int | None) -> int:
    return OFFSET_BEGINNING if position is None else position
