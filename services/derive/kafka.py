"""The worker's way to Kafka: batches of snapshots in, records out, and commits of what is safe."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from contracts.record import Record
from contracts.topics import PARTITIONER
from services.derive.errors import KafkaFailed, NoTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from confluent_kafka import Message

    from services.derive.derive import Written

log = logging.getLogger(__name__)

POLL_S = 0.2
ROOM_S = 0.1
ANSWER_S = 30.0
FLUSH_S = 1.0
LOSES = {"_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_MAX_POLL_EXCEEDED"}
"""What passes by itself: the client tries again."""


class Kafka(Protocol):
    """Where the worker reads and writes."""

    def read(self) -> Sequence[Record]:
        """The next snapshots, none after a while. Raises KafkaFailed."""
        ...

    def write(self, records: Iterable[Written]) -> None:
        """Write records, and wait until all in-sync replicas have them. Raises KafkaFailed."""

    def commit(self, records: Sequence[Record]) -> None:
        """These need not be read again."""


class RealKafka:
    """A member of the group that the client's settings name. While the broker is away it waits."""

    def __init__(
        self, client: Mapping[str, str], consumer: Mapping[str, str | int | bool], topic: str, most: int
    ) -> None:
        self._consumer = Consumer(dict(consumer), logger=log)
        self._consumer.subscribe([topic])
        self._producer = Producer(
            {
                **client,
                "partitioner": PARTITIONER,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 0,
            },
            logger=log,
        )
        self._most = most
        self._failed: KafkaFailed | None = None

    def partitions(self, topics: Iterable[str], kafka: str) -> dict[str, int]:
        """How many each topic has. Raises NoTopic, KafkaFailed."""
        try:
            listed = self._producer.list_topics(timeout=ANSWER_S).topics
        except KafkaException as error:
            raise failed("no broker answers", error.args[0]) from error
        for topic in topics:
            if topic not in listed:
                raise NoTopic(topic, kafka)
        return {topic: len(listed[topic].partitions) for topic in topics}

    def read(self) -> Sequence[Record]:
        """See `Kafka.read`."""
        first = self._consumer.poll(POLL_S)
        found = [first, *self._consumer.consume(self._most - 1, 0)] if first else []
        return [_record(message) for message in found if _is_record(message)]

    def write(self, records: Iterable[Written]) -> None:
        """See `Kafka.write`. While it waits the group is told nothing: for longer than it allows, it takes over."""
        for one in records:
            self._produce(one)
        while self._producer.flush(FLUSH_S):
            self._check()
        self._check()

    def commit(self, records: Sequence[Record]) -> None:
        """See `Kafka.commit`. One that fails leaves the snapshots to be read again, which does no harm."""
        ends: dict[tuple[str, int], int] = {}
        for record in records:
            ends[record.topic, record.partition] = record.offset + 1
        offsets = [TopicPartition(topic, number, offset) for (topic, number), offset in ends.items()]
        try:
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            log.warning("not committed", extra={"facts": {"detail": error.args[0].str()}})

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _produce(self, one: Written) -> None:
        while True:
            try:
                self._producer.produce(one.topic, one.value, one.key, one.partition, on_delivery=self._noted)
            except BufferError:
                self._producer.poll(ROOM_S)
            except KafkaException as error:
                raise failed(f"a record could not be written to {one.topic}", error.args[0]) from error
            else:
                return

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed = failed(f"a record could not be written to {message.topic()}", error)

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed


def _is_record(message: Message) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.fatal() or not (error.retriable() or error.name() in LOSES):
        raise failed("the snapshots cannot be read", error)
    log.warning("kafka", extra={"facts": {"code": error.name(), "detail": error.str()}})
    return False


def _record(message: Message) -> Record:
    """A message that was read. A time that Kafka does not know is 1970."""
    return Record(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp=datetime.fromtimestamp(max(message.timestamp()[1], 0) / 1000, UTC),
        key=message.key(),
        value=message.value(),
    )


def failed(what: str, error: KafkaError) -> KafkaFailed:
    """Kafka's error as ours."""
    return KafkaFailed(what, error.name(), error.str())
