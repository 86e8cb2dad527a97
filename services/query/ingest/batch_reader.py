"""Reads partitions by plain assignment: few records at a time while it keeps up, many while it catches up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from confluent_kafka import Consumer, Message

FLOW: dict[str, str | int | float | bool] = {
    "auto.offset.reset": "error",  # the store must be emptied first
    "enable.partition.eof": True,  # an end that is no record's: compaction or a transaction took the last
    "fetch.wait.max.ms": 50,  # how long a new assignment may have to wait for the answer to the fetch before
    "fetch.queue.backoff.ms": 10,  # by default a full queue stops fetching for a second
    "queued.max.messages.kbytes": 32 * 1024,
}
POLL_S = 0.05
FEW = 100
"""A batch of these is written in about a millisecond."""
MANY = 10_000
GATHER_S = 0.003
"""How long it waits for more when records come one soon after the other: a transaction for each would cost more."""
AT_ONCE = 500
"""The client makes objects of so many records without letting the event loop in between."""


class Reader:
    """A consumer in the one thread that reads."""

    def __init__(self, consumer: Consumer, clock: Callable[[], float]) -> None:
        self._consumer = consumer
        self._clock = clock
        self._ended = clock()
        self._most = FEW

    def begin(self, topic: str, partition: int, position: int | None) -> None:
        """Read from there on; None: from the beginning."""
        self._consumer.incremental_assign([TopicPartition(topic, partition, _offset(position))])

    def end(self, topic: str, partition: int) -> None:
        """Read it no more."""
        self._consumer.incremental_unassign([TopicPartition(topic, partition)])

    def place(self, positions: Mapping[tuple[str, int], int | None]) -> None:
        """Read these, by topic and partition, and nothing else, from these positions on."""
        places = [TopicPartition(*one, _offset(position)) for one, position in positions.items()]
        self._consumer.assign(places)

    def known_end(self, topic: str, partition: int) -> int | None:
        """The partition's end, as the last answer to a fetch told it."""
        _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)
        return end if end >= 0 else None

    def read(self, *, wait: bool) -> Iterator[list[Message]]:
        """What there is, a piece at a time; may wait a little for the first. After a full one it may be twice as much.

        Raises KafkaException: what was read before is lost then, unless all is placed again.
        """
        first = self._consumer.poll(POLL_S if wait else 0)
        if first is None:
            self._most = FEW
            return
        begun, read = self._clock(), 1
        yield [first]
        wait_s = GATHER_S if begun - self._ended < GATHER_S else 0
        while read < self._most:
            more = self._consumer.consume(min(AT_ONCE, self._most - read), wait_s)
            if not more:
                break
            read += len(more)
            wait_s = 0
            yield more
        self._ended = self._clock()
        self._most = min(MANY, 2 * self._most) if read >= self._most else FEW


def _offset(position: int | None) -> int:
    return OFFSET_BEGINNING if position is None else position
