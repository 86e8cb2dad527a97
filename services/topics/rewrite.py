"""Rewrites a topic of records that are found by key, after partitions were added to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from contracts.wire.partition import partition
from contracts.wire.window_key import SUFFIX_BYTES
from services.runtime.kafka_clients import create_admin_client, create_consumer, create_producer
from services.topics.broker import watermarks
from services.topics.errors import NoBrokerError, refused

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from contracts.settings import KafkaSettings

GROUP = "stateloop-topics"
"""The client requires a group id; it joins no group."""
READ = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
WRITE = {"linger.ms": 20, "message.max.bytes": 64 * 1024 * 1024}
MOST, POLL_S = 5_000, 1.0
FLUSH_S = 60.0


def rewrite(settings: KafkaSettings, topic: str, partitions: int, *, is_derived: bool) -> None:
    """Write each record again, in the partition of its key, and then delete those that were there.

    Records of one partition keep their order. Nothing else writes to the topic. A call that was interrupted may be
    repeated. Raises TopicRefusedError, NoBrokerError.
    """
    consumer = create_consumer(settings.client(), "topics", GROUP, READ)
    copier = _Copier(settings, topic)
    try:
        found = watermarks(consumer, topic).items()
        ends = [TopicPartition(topic, number, end) for number, (begin, end) in found if begin < end]
        _copy(consumer, ends, copier, partitions, is_derived=is_derived)
    except KafkaException as error:
        raise NoBrokerError(settings.kafka, error.args[0].str()) from error
    finally:
        consumer.close()
    copier.flush()
    admin = create_admin_client(settings.client(), "topics")
    for future in admin.delete_records(ends).values() if ends else ():
        try:
            future.result()
        except KafkaException as error:
            raise refused(topic, settings.kafka, error.args[0]) from error


def _copy(
    consumer: Consumer, ends: list[TopicPartition], copier: _Copier, partitions: int, *, is_derived: bool
) -> None:
    """Copy all records before these ends."""
    unread = {one.partition: one.offset for one in ends}
    consumer.assign([TopicPartition(one.topic, one.partition, 0) for one in ends])
    while unread:
        for message in consumer.consume(MOST, POLL_S):
            number, offset, error = message.partition() or 0, message.offset() or 0, message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 (a public name)
                continue
            if offset >= unread.get(number, 0):
                unread.pop(number, None)
            elif error is None and (key := _state_key(message, is_derived=is_derived)) is not None:
                copier.copy(message, partition(key, partitions))


class _Copier:
    """Writes copies. Raises the broker's refusal of an earlier one."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._producer = create_producer(settings.client(), "topics", WRITE)
        self._topic, self._kafka = topic, settings.kafka
        self._refusal: KafkaError | None = None

    def copy(self, message: Message, number: int) -> None:
        """Write the record to a partition."""
        value, key, headers = message.value(), message.key(), message.headers()
        while True:
            self._producer.poll(0)
            self._check()
            try:
                self._producer.produce(
                    self._topic, value, key, number, headers=headers or [], on_delivery=self._on_delivery
                )
            except BufferError:
                self._producer.poll(POLL_S)
            else:
                return

    def flush(self) -> None:
        """Wait until the broker has all copies."""
        while self._producer.flush(FLUSH_S):
            self._check()
        self._check()

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        self._refusal = self._refusal or error

    def _check(self) -> None:
        if self._refusal is not None:
            raise refused(self._topic, self._kafka, self._refusal)


def _state_key(message: Message, *, is_derived: bool) -> bytes | None:
    """The key by which readers find the record; None for what is no record of a state."""
    key, value = message.key(), message.value()
    if not is_derived:
        return None if key is None else key[:-SUFFIX_BYTES] or None
    if value is None:
        return None  # readers ignore the removal of a derived record
    try:
        found = orjson.loads(value)["key"]
    except (ValueError, KeyError, TypeError):
        return None
    return found.encode() if isinstance(found, str) else None
