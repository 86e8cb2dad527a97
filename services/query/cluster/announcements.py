"""The topic of announcements: each instance writes its own, and all instances read them in one order."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pydantic import ValidationError

from contracts.wire.announcement import Announcement
from services.query.ingest.consumer_thread import POLL_S, RECONNECT, Config, ConsumerThread
from services.runtime.kafka.options import create_producer, log_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

log = logging.getLogger(__name__)

NAME = "announcements"
PARTITION = 0
"""The only partition in use: there is no order between partitions."""
INITIAL_RECORDS = 2000
"""The number of records that are read at the start: live instances announce themselves often enough for that."""
BATCH_SIZE = 500
READ: Config = {"fetch.wait.max.ms": 100, "auto.offset.reset": "earliest"}
"""The earliest if the next record is gone: an instance that jumped to the end would miss leases of others."""
RESPONSE_TIMEOUT_S = 2.0
FLUSH_TIMEOUT_S = 2.0


class Announcements(Protocol):
    """The topic, for one instance."""

    def send(self, announcement: Announcement) -> None:
        """Write an announcement; reading it back shows that it arrived."""

    async def run(self, receive: Callable[[Sequence[Announcement]], None]) -> None:
        """Read until cancelled, and pass announcements on in the order of the topic."""

    async def leave(self, announcement: Announcement) -> None:
        """Write the last announcement, and a tombstone after it."""


class KafkaAnnouncements:
    """The topic on a broker. An announcement that is not written within `timeout` seconds is dropped."""

    def __init__(self, client: Mapping[str, str], *, topic: str, group: str, timeout: float) -> None:
        self._topic = topic
        self._thread = ConsumerThread(client, NAME, group, READ)
        ordered = {"acks": "all", "linger.ms": 0, "max.in.flight.requests.per.connection": 1}  # keep their order
        delivery = {"message.timeout.ms": round(timeout * 1000), "socket.nagle.disable": True}
        self._producer = create_producer({**RECONNECT, **client}, f"query-{NAME}", {**ordered, **delivery}, log)
        self._assigned = False

    def send(self, announcement: Announcement) -> None:
        """See `Announcements.send`."""
        self._write(announcement.instance, announcement.encode())

    async def run(self, receive: Callable[[Sequence[Announcement]], None]) -> None:
        """See `Announcements.run`."""
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        await self._thread.run(self._poll)

    async def leave(self, announcement: Announcement) -> None:
        """See `Announcements.leave`."""
        self._write(announcement.instance, announcement.encode())
        self._write(announcement.instance, None)
        await asyncio.get_running_loop().run_in_executor(None, self._producer.flush, FLUSH_TIMEOUT_S)

    def _write(self, key: str, value: bytes | None) -> None:
        try:
            self._producer.produce(self._topic, value, key, PARTITION, on_delivery=_on_delivery)
            self._producer.poll(0)
        except (BufferError, KafkaException) as error:
            log.warning("an announcement was not written", extra={"facts": {"detail": str(error)}})

    def _poll(self, consumer: Consumer) -> None:
        if not self._assigned:
            partition = TopicPartition(self._topic, PARTITION)
            low, high = consumer.get_watermark_offsets(partition, timeout=RESPONSE_TIMEOUT_S) or (0, 0)
            consumer.assign([TopicPartition(self._topic, PARTITION, max(low, high - INITIAL_RECORDS))])
            self._assigned = True
        first = consumer.poll(POLL_S)
        messages = [] if first is None else [first, *consumer.consume(BATCH_SIZE, 0)]
        if received := [one for message in messages if (one := _read(message)) is not None]:
            self._loop.call_soon_threadsafe(self._receive, received)


def _read(message: Message) -> Announcement | None:
    error, value = message.error(), message.value()
    if error is not None:
        _on_error(error)
        return None
    if value is None:
        return None
    try:
        return Announcement.model_validate_json(value)
    except ValidationError as refused:
        log.warning("an announcement is invalid", extra={"facts": {"detail": str(refused)}})
        return None


def _on_delivery(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        _on_error(error)


def _on_error(error: KafkaError) -> None:
    log_error(log, f"query-{NAME}", error)
