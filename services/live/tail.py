"""Reads the topics from their end on, in no group and without committing anything."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from confluent_kafka import OFFSET_END, Consumer, KafkaException, Message, TopicPartition

from contracts.model.topics import READ_COMMITTED
from contracts.records.record import Record
from services.live.errors import WrongOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST = 1000
ANSWER_S = 2.0


class Tail:
    """The records of these topics; of `looked_back` also the last few that were there before. A context manager.

    Raises WrongOptions.
    """

    def __init__(self, client: Mapping[str, str], topics: tuple[str, ...], looked_back: str, history: int) -> None:
        config = {"enable.auto.commit": False, "auto.offset.reset": "latest", "fetch.wait.max.ms": 20, "log_level": 0}
        try:
            self._consumer = Consumer({**config, "group.id": "stateloop-live", **client, **READ_COMMITTED})
        except KafkaException as error:
            raise WrongOptions(error.args[0].str()) from error
        self._topics = topics
        self._looked_back = looked_back
        self._history = history
        self._ends: dict[int, int] = {}

    def open(self) -> bool:
        """Find the topics, and begin at their ends; False when the broker or a topic is not there yet."""
        try:
            known = self._consumer.list_topics(timeout=ANSWER_S).topics
            if not all(name in known and known[name].partitions for name in self._topics):
                return False
            self._consumer.assign(
                [self._begin(name, number) for name in self._topics for number in known[name].partitions]
            )
        except KafkaException:
            return False
        return True

    def read(self, timeout_s: float) -> Iterator[tuple[Record, bool]]:
        """The next records, each with whether it is an old one. Errors pass by: the client connects again."""
        first = self._consumer.poll(timeout_s)
        messages = [] if first is None else [first, *self._consumer.consume(MOST, 0)]
        for message in messages:
            if message.error() is None:
                record = _record(message)
                yield record, record.topic == self._looked_back and record.offset < self._ends[record.partition]

    def ends(self) -> dict[int, tuple[int, int]]:
        """The first offset of each partition of the topic that is looked back at, and the one after its last."""
        known = {}
        for number in self._ends:
            found = self._consumer.get_watermark_offsets(TopicPartition(self._looked_back, number), cached=True)
            if found[1] >= 0:  # -1001 as long as nothing was fetched
                known[number] = found
        return known

    @property
    def partitions(self) -> list[int]:
        """The partitions of the topic that is looked back at."""
        return sorted(self._ends)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def _begin(self, topic: str, number: int) -> TopicPartition:
        if topic != self._looked_back:
            return TopicPartition(topic, number, OFFSET_END)
        low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_S) or (0, 0)
        self._ends[number] = high
        return TopicPartition(topic, number, max(low, high - self._history))


def _record(message: Message) -> Record:
    return Record(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp=datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
        key=message.key(),
        value=message.value(),
    )
