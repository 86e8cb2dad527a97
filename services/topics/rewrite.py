"""Rewrites the topic of a state, after partitions were added to it.

Records whose versions are offsets get the former one in their copies. So each copy has the order of the record that it
replaces, and readers drop what they have seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from pydantic import ValidationError

from contracts.records.state_record import StateRecordDecoder, UndecodableRecordError
from contracts.wire.partition import partition
from services.runtime.kafka_clients import create_admin_client, create_consumer, create_producer
from services.topics.broker import watermarks
from services.topics.errors import NoBrokerError, refused

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from contracts.model.named_state import NamedState
    from contracts.settings import KafkaSettings
    from contracts.wire import OffsetVersioned

GROUP = "stateloop-topics"
"""The client requires a group id; it joins no group."""
READ = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
WRITE = {"linger.ms": 20, "message.max.bytes": 64 * 1024 * 1024}
MOST, POLL_S = 5_000, 1.0
FLUSH_S = 60.0


def rewrite(
    settings: KafkaSettings, state: NamedState, partitions: int, model: type[OffsetVersioned] | None = None
) -> None:
    """Write each record again, in the partition of its key, and then delete those that were there.

    `model` is that of records whose versions are offsets. Records of one partition keep their order. Nothing else
    writes to the topic. A call that was interrupted may be repeated. Raises TopicRefusedError, NoBrokerError.
    """
    consumer = create_consumer(settings.client(), "topics", GROUP, READ)
    copier = _Copier(settings, state.topic)
    try:
        found = watermarks(consumer, state.topic).items()
        end_offsets = [TopicPartition(state.topic, number, end) for number, (begin, end) in found if begin < end]
        _copy(consumer, end_offsets, copier, RecordMover(state, partitions, model))
    except KafkaException as error:
        raise NoBrokerError(settings.kafka, error.args[0].str()) from error
    finally:
        consumer.close()
    copier.flush()
    admin = create_admin_client(settings.client(), "topics")
    for future in admin.delete_records(end_offsets).values() if end_offsets else ():
        try:
            future.result()
        except KafkaException as error:
            raise refused(state.topic, settings.kafka, error.args[0]) from error


def _copy(consumer: Consumer, end_offsets: list[TopicPartition], copier: _Copier, mover: RecordMover) -> None:
    """Copy all records before these end offsets."""
    unread = {one.partition: one.offset for one in end_offsets}
    consumer.assign([TopicPartition(one.topic, one.partition, 0) for one in end_offsets])
    while unread:
        for message in consumer.consume(MOST, POLL_S):
            number, offset, error = message.partition() or 0, message.offset() or 0, message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 (a public name)
                continue
            if offset >= unread.get(number, 0):
                unread.pop(number, None)
            elif error is None and (found := mover.moved(message)) is not None:
                copier.copy(message, *found)


class RecordMover:
    """Creates the copies of a state's records.

    Those of records whose versions are offsets are made in the order of the versions: after an interruption, earlier
    copies and the records that they replace are both there.
    """

    def __init__(self, state: NamedState, partitions: int, model: type[OffsetVersioned] | None) -> None:
        self._decoder = StateRecordDecoder(state)
        self._partitions = partitions
        self._model = model
        self._copied: dict[bytes, tuple[int, int]] = {}

    def moved(self, message: Message) -> tuple[int, bytes | None] | None:
        """Return partition and value of the copy; None for what no reader reads, and what is copied already."""
        key, value = message.key() or b"", message.value()
        try:
            if value is None:
                removed = self._decoder.tombstone(key)
                return removed and (self._new_partition(removed.key), None)
            found = self._decoder.value(key, value, message.offset() or 0, message.timestamp()[1])
            if self._model is not None:
                order = found.epoch, found.version
                if self._copied.get(key, (-1, -1)) >= order:
                    return None
                value = self._model.model_validate_json(value).moved(found.version).encode()
                self._copied[key] = order
        except (UndecodableRecordError, ValidationError):
            return None
        return self._new_partition(found.key), value

    def _new_partition(self, key: str) -> int:
        return partition(key.encode(), self._partitions)


class _Copier:
    """Writes copies. Raises an error that the broker returned for an earlier one."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._producer = create_producer(settings.client(), "topics", WRITE)
        self._topic, self._kafka = topic, settings.kafka
        self._refusal: KafkaError | None = None

    def copy(self, message: Message, number: int, value: bytes | None) -> None:
        """Write the record to a partition, with this value."""
        key, headers = message.key(), message.headers()
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
