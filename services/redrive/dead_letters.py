"""Reads the dead letters of a topic, and selects among them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pydantic import ValidationError

from contracts.wire import DeadLetter
from services.redrive.errors import ReadError
from services.runtime.kafka_clients import create_consumer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GROUP = "stateloop-redrive"
"""The client requires a group; it commits nothing."""
ANSWER_S = 10
POLL_S = 1.0
BATCH = 500


@dataclass(frozen=True)
class StoredDeadLetter:
    """A dead letter, None if it cannot be decoded, with the key of its origin and the time at which it was written."""

    dead_letter: DeadLetter | None
    key: bytes | None
    written: datetime


@dataclass(frozen=True)
class Selection:
    """Conditions on dead letters; an empty one is always met."""

    reasons: frozenset[str] = frozenset()
    enrichments: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, found: StoredDeadLetter) -> bool:
        """Return whether it meets all conditions. Times are those of writing; `until` is exclusive."""
        if (self.since and found.written < self.since) or (self.until and found.written >= self.until):
            return False
        if found.dead_letter is None:
            return not self.reasons and not self.enrichments
        return (not self.reasons or found.dead_letter.reason in self.reasons) and (
            not self.enrichments or found.dead_letter.enrichment in self.enrichments
        )


def dead_letters(client: Mapping[str, str], topic: str) -> Iterator[StoredDeadLetter]:
    """Yield the dead letters from the start of the topic to its present end. Raises ReadError."""
    consumer = create_consumer(client, "redrive", GROUP, {"auto.offset.reset": "earliest"})
    try:
        ends = _offset_ranges(consumer, topic)
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
        raise read_error(topic, error.args[0]) from error
    finally:
        consumer.close()


def read_error(topic: str, error: KafkaError) -> ReadError:
    """Return Kafka's error as one of this part."""
    return ReadError(topic, error.name(), error.str())


def _offset_ranges(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    """Return the first offset of each partition that is not empty, and its end offset."""
    listed = consumer.list_topics(topic, ANSWER_S).topics[topic]
    if listed.error is not None:
        raise read_error(topic, listed.error)
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), ANSWER_S) for p in listed.partitions}
    return {p: (low, high) for p, (low, high) in ends.items() if low < high}


def _is_past(consumer: Consumer, topic: str, partition: int, end: int) -> bool:
    """Return whether the end is reached; no consumer receives the markers of transactions at it."""
    (position,) = consumer.position([TopicPartition(topic, partition)])
    return position.offset >= end


def _place(message: Message, topic: str) -> tuple[int, int]:
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is not None:
        raise read_error(topic, error)
    if partition is None or offset is None:  # only of a message that was never sent
        raise ReadError(topic, "NO_OFFSET", "a message came without its offset")
    return partition, offset


def _found(message: Message) -> StoredDeadLetter:
    written = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
    try:
        return StoredDeadLetter(DeadLetter.model_validate_json(message.value() or b""), message.key(), written)
    except ValidationError:
        return StoredDeadLetter(None, message.key(), written)
