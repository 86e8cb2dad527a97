"""The topic in which instances announce themselves: written, and read by all in one order."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from pydantic import ValidationError

from contracts.wire.announcement import Announcement
from services.query.ingest.consumer_thread import POLL_S, QUIET, Config, Polling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

log = logging.getLogger(__name__)

PARTITION = 0
"""The only one that is used: there is no order between partitions."""
LATEST = 2000
"""How many records are read at the start. Those who are there announce themselves again and again, so it tells all."""
AT_ONCE = 500
AGAIN: Config = {"auto.offset.reset": "earliest"}
"""Where the place to read on is gone: whoever jumped to the end would miss that another holds a partition."""
ANSWER_S = 2.0
FLUSH_S = 2.0


class Announcements(Protocol):
    """The topic, as an instance has it."""

    def send(self, announcement: Announcement) -> None:
        """Write; that it arrived is known when it is read."""

    async def run(self, hear: Callable[[Sequence[Announcement]], None]) -> None:
        """Read until cancelled, and tell in the order of the topic."""

    async def leave(self, announcement: Announcement) -> None:
        """Write the last one, and that it may be forgotten."""


class KafkaAnnouncements:
    """The topic on a broker. What is not written after `patience` seconds is of no use any more."""

    def __init__(self, client: Mapping[str, str], *, topic: str, group: str, patience: float) -> None:
        self._topic = topic
        self._polling = Polling(client, {"group.id": group, "fetch.wait.max.ms": 100, **AGAIN}, "announcements")
        written = {"acks": "all", "linger.ms": 0, "max.in.flight.requests.per.connection": 1}  # in their order
        away = {name: value for name, value in QUIET.items() if name != "enable.auto.commit"}
        late = {"message.timeout.ms": round(patience * 1000), "socket.nagle.disable": True}
        self._producer = Producer({**away, **client, **written, **late, "error_cb": _on_error}, logger=log)
        self._assigned = False

    def send(self, announcement: Announcement) -> None:
        """See `Announcements.send`."""
        self._write(announcement.instance, announcement.encode())

    async def run(self, hear: Callable[[Sequence[Announcement]], None]) -> None:
        """See `Announcements.run`."""
        self._loop = asyncio.get_running_loop()
        self._hear = hear
        await self._polling.run(self._poll)

    async def leave(self, announcement: Announcement) -> None:
        """See `Announcements.leave`."""
        self._write(announcement.instance, announcement.encode())
        self._write(announcement.instance, None)
        await asyncio.get_running_loop().run_in_executor(None, self._producer.flush, FLUSH_S)

    def _write(self, key: str, value: bytes | None) -> None:
        try:
            self._producer.produce(self._topic, value, key, PARTITION, on_delivery=_on_delivery)
            self._producer.poll(0)
        except (BufferError, KafkaException) as error:
            log.warning("an announcement was not written", extra={"facts": {"detail": str(error)}})

    def _poll(self, consumer: Consumer) -> None:
        if not self._assigned:
            part = TopicPartition(self._topic, PARTITION)
            low, high = consumer.get_watermark_offsets(part, timeout=ANSWER_S) or (0, 0)
            consumer.assign([TopicPartition(self._topic, PARTITION, max(low, high - LATEST))])
            self._assigned = True
        first = consumer.poll(POLL_S)
        messages = [first, *consumer.consume(AT_ONCE, 0)] if first else []
        if heard := [one for message in messages if (one := _read(message)) is not None]:
            self._loop.call_soon_threadsafe(self._hear, heard)


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
        log.warning("an announcement cannot be read", extra={"facts": {"detail": str(refused)}})
        return None


def _on_delivery(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        _on_error(error)


def _on_error(error: KafkaError) -> None:
    log.warning("kafka", extra={"facts": {"client": "announcements", "code": error.name(), "detail": error.str()}})
