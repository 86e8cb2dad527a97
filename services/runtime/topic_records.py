"""Reads all records that a topic holds at this time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.runtime.errors import TopicReadError
from services.runtime.kafka.options import create_consumer, record_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contracts.records.record import Record

RESPONSE_S = 10
POLL_S = 1.0
BATCH = 500


def stored_records(client: Mapping[str, str], name: str, topic: str) -> Iterator[Record]:
    """Yield the records from the start of a topic to its present end, in order within a partition.

    `name` is that of the Kafka client. Raises TopicReadError.
    """
    # The client requires a group; it commits nothing.
    consumer = create_consumer(client, name, f"stateloop-{name}", {"auto.offset.reset": "earliest"})
    try:
        ranges = _offset_ranges(consumer, topic)
        consumer.assign([TopicPartition(topic, partition, start) for partition, (start, _) in ranges.items()])
        while ranges:
            for message in consumer.consume(BATCH, POLL_S):
                if (error := message.error()) is not None:
                    raise read_error(topic, error)
                record = record_of(message)
                if record.partition in ranges:
                    end = ranges[record.partition][1]
                    if record.offset < end:
                        yield record
                    if record.offset + 1 >= end:
                        del ranges[record.partition]
            ranges = {p: offsets for p, offsets in ranges.items() if not _is_past(consumer, topic, p, offsets[1])}
    except KafkaException as error:
        raise read_error(topic, error.args[0]) from error
    finally:
        consumer.close()


def read_error(topic: str, error: KafkaError) -> TopicReadError:
    """Return Kafka's error as a TopicReadError."""
    return TopicReadError(topic, error.name(), error.str())


def _offset_ranges(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    """Return the first offset of each partition that is not empty, and its end offset."""
    listed = consumer.list_topics(topic, RESPONSE_S).topics[topic]
    if listed.error is not None:
        raise read_error(topic, listed.error)
    offsets = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), RESPONSE_S) for p in listed.partitions}
    return {p: (low, high) for p, (low, high) in offsets.items() if low < high}


def _is_past(consumer: Consumer, topic: str, partition: int, end: int) -> bool:
    """Return whether the end is reached; no consumer receives the markers of transactions at it."""
    (position,) = consumer.position([TopicPartition(topic, partition)])
    return position.offset >= end
