"""Reads the dead letters that are there now, and chooses among them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pydantic import ValidationError

from contracts.model.topics import READ_COMMITTED
from contracts.wire import DeadLetter
from services.redrive.errors import ReadError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GROUP = "stateloop-redrive"
"""Needed by the client, never used: nothing is committed."""
ANSWER_S = 10
POLL_S = 1.0
BATCH = 500
CONFIG = {**READ_COMMITTED, "group.id": GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"}


@dataclass(frozen=True)
class Found:
    """A letter, with the key of its origin and when it was written. None for one that cannot be read."""

    letter: DeadLetter | None
    key: bytes | None
    written: datetime


@dataclass(frozen=True)
class Choice:
    """Which letters are meant; what is left empty does not choose."""

    reasons: frozenset[str] = frozenset()
    enrichments: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None

    def takes(self, found: Found) -> bool:
        """Whether this one is meant. Times are those at which letters were written; `until` is not included."""
        if (self.since and found.written < self.since) or (self.until and found.written >= self.until):
            return False
        if found.letter is None:
            return not self.reasons and not self.enrichments
        return (not self.reasons or found.letter.reason in self.reasons) and (
            not self.enrichments or found.letter.enrichment in self.enrichments
        )


def letters(client: Mapping[str, str], topic: str) -> Iterator[Found]:
    """All that the topic holds when this begins; what comes later is for another time. Raises ReadError."""
    consumer = Consumer({**client, **CONFIG})
    try:
        ends = _ends(consumer, topic)
        consumer.assign([TopicPartition(topic, partition, start) for partition, (start, _) in ends.items()])
        while ends:
            for message in consumer.consume(BATCH, POLL_S):
                partition, offset = _place(message, topic)
                if partition in ends:
                    yield _found(message)
                    if offset + 1 >= ends[partition][1]:
                        del ends[partition]
            ends = {p: end for p, end in ends.items() if not _is_past(consumer, topic, p, end[1])}
    except KafkaException as error:
        raise not_read(topic, error.args[0]) from error
    finally:
        consumer.close()


def not_read(topic: str, error: KafkaError) -> ReadError:
    """Kafka's error as ours."""
    return ReadError(topic, error.name(), error.str())


def _ends(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    """The first offset and the one after the last of each partition that is not empty."""
    listed = consumer.list_topics(topic, ANSWER_S).topics[topic]
    if listed.error is not None:
        raise not_read(topic, listed.error)
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), ANSWER_S) for p in listed.partitions}
    return {p: (low, high) for p, (low, high) in ends.items() if low < high}


def _is_past(consumer: Consumer, topic: str, partition: int, end: int) -> bool:
    """What ends with records that nobody is given (of a transaction) is past all the same."""
    (position,) = consumer.position([TopicPartition(topic, partition)])
    return position.offset >= end


def _place(message: Message, topic: str) -> tuple[int, int]:
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is not None:
        raise not_read(topic, error)
    if partition is None or offset is None:  # only of a message that was never sent
        raise ReadError(topic, "NO_OFFSET", "a message came without its offset")
    return partition, offset


def _found(message: Message) -> Found:
    written = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
    try:
        return Found(DeadLetter.model_validate_json(message.value() or b""), message.key(), written)
    except ValidationError:
        return Found(None, message.key(), written)
