"""Writes records to Kafka from a thread: each with its acknowledgement, many at once, or in transactions."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition
from typing_extensions import override

from services.runtime.kafka.errors import delivery_failed, requested
from services.runtime.kafka.interfaces import BlockingProducer, TransactionalProducer
from services.runtime.kafka.options import create_consumer, create_producer
from services.runtime.kafka.producer import message_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from confluent_kafka import KafkaError, Message, Producer

    from services.runtime.errors import DeliveryFailedError
    from services.runtime.kafka.options import Options
    from services.runtime.kafka.values import GroupOffset, Output, Partition

    OnDelivery = Callable[[KafkaError | None, Message], None]

SLICE_S = 0.1
"""The wait of one call of the client, between which a signal can end the process."""
DROP_AFTER = timedelta(minutes=5)
ANSWER_S = 60.0


class BlockingKafkaProducer(BlockingProducer):
    """A producer without a thread.

    The client drops records that are not acknowledged within `drop_after`. An error is raised once: the producer can be
    used after it, unless the error is fatal.
    """

    def __init__(
        self, client: Options, name: str, drop_after: timedelta = DROP_AFTER, options: Options | None = None
    ) -> None:
        self._producer = create_producer(client, name, {**(options or {}), **message_timeout(drop_after)})
        self._error: DeliveryFailedError | None = None
        self._topic = ""
        """The topic of the last record."""

    @override
    def send(self, outputs: Iterable[Output]) -> Sequence[int]:
        offsets: dict[int, int] = {}
        for index, output in enumerate(outputs):
            self._enqueue(output, partial(self._delivered, offsets, index))
        self.flush()
        return [offset for _, offset in sorted(offsets.items())]

    @override
    def enqueue(self, output: Output) -> None:
        self._enqueue(output, self._noted)

    @override
    def flush(self, within_s: float | None = None) -> int:
        deadline = float("inf") if within_s is None else time.monotonic() + within_s
        left = self._flush()
        while left and time.monotonic() < deadline:
            left = self._flush()
        self._require_deliveries()
        return left

    def _flush(self) -> int:
        """Wait for a moment. Raises DeliveryFailedError after a fatal error, such as a missing right to write."""
        try:
            return self._producer.flush(SLICE_S)
        except KafkaException as error:
            raise delivery_failed(self._topic, error.args[0]) from error

    def _enqueue(self, output: Output, on_delivery: OnDelivery) -> None:
        call_back(self._producer, output.topic)
        self._require_deliveries()
        self._topic = output.topic
        produce(self._producer, output, on_delivery)

    def _delivered(self, offsets: dict[int, int], index: int, error: KafkaError | None, message: Message) -> None:
        offsets[index] = message.offset() or 0
        self._noted(error, message)

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._error = self._error or delivery_failed(message.topic() or "", error)

    def _require_deliveries(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


class TransactionalKafkaProducer(TransactionalProducer):
    """A producer whose records belong to transactions.

    It aborts the transaction that an earlier producer of the same id has left open; that one can write no more. With a
    `group`, a transaction commits offsets of this group too. Raises KafkaRequestError.
    """

    def __init__(
        self,
        client: Options,
        name: str,
        transactional_id: str,
        options: Options | None = None,
        group: str | None = None,
    ) -> None:
        self._producer = create_producer(client, name, {**(options or {}), "transactional.id": transactional_id})
        self._group = None if group is None else create_consumer(client, name, group)
        with requested("begin a transaction"):
            self._producer.init_transactions(ANSWER_S)

    @override
    def begin(self) -> None:
        with requested("begin a transaction"):
            self._producer.begin_transaction()

    @override
    def enqueue(self, output: Output) -> None:
        """Write a record in the transaction; `commit` reports records that were not delivered."""
        call_back(self._producer, output.topic)
        produce(self._producer, output)

    @override
    def commit(self, group_offsets: Mapping[Partition, GroupOffset] | None = None) -> None:
        with requested("commit a transaction"):
            if group_offsets and self._group is not None:
                offsets = [TopicPartition(*partition, *offset) for partition, offset in group_offsets.items()]
                metadata = self._group.consumer_group_metadata()
                self._producer.send_offsets_to_transaction(offsets, metadata, ANSWER_S)
            self._producer.commit_transaction()

    @override
    def abort(self) -> None:
        with requested("abort a transaction"):
            self._producer.abort_transaction(ANSWER_S)

    def close(self) -> None:
        """Close the client of the group."""
        if self._group is not None:
            self._group.close()


def call_back(producer: Producer, topic: str) -> None:
    """Let the client report deliveries. Raises DeliveryFailedError after a fatal error, such as a fence."""
    try:
        producer.poll(0)
    except KafkaException as error:
        raise delivery_failed(topic, error.args[0]) from error


def produce(producer: Producer, output: Output, on_delivery: OnDelivery | None = None) -> None:
    """Give the client a record, waiting while its queue is full. Raises DeliveryFailedError."""
    while True:
        try:
            producer.produce(
                output.topic,
                output.value,
                output.key,
                output.partition,
                on_delivery=on_delivery,
                timestamp=output.timestamp_ms,
                headers=list(output.headers) or None,
            )
        except BufferError:
            producer.poll(SLICE_S)
        except KafkaException as error:
            raise delivery_failed(output.topic, error.args[0]) from error
        else:
            return
