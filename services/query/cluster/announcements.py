"""The topic of announcements: each instance writes its own, and all instances read them in one order."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from pydantic import ValidationError

from contracts.wire.announcement import Announcement
from services.runtime.errors import DeliveryFailedError, TopicReadError
from services.runtime.kafka.values import EndlessRange, Output, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.records.record import Record
    from services.runtime.broker_clock import BrokerClock
    from services.runtime.errors import KafkaOperationError
    from services.runtime.kafka.interfaces import Kafka

log = logging.getLogger(__name__)

NAME = "announcements"
CLIENT = f"query-{NAME}"
PARTITION = 0
"""The only partition in use: there is no order between partitions."""
INITIAL_RECORDS = 2000
"""The number of records that are read at the start: live instances announce themselves often enough for that."""
READ = {"fetch.wait.max.ms": 100}
WRITE = {"linger.ms": 0, "max.in.flight.requests.per.connection": 1, "socket.nagle.disable": True}
PAUSE_S = 0.1
CLOSE_S = 3.0
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
    """The topic on a broker. An announcement that is not written within `timeout` seconds is dropped.

    The records show the `broker_clock`, as long as an instance runs.
    """

    def __init__(self, kafka: Kafka, *, topic: str, group: str, timeout: float, broker_clock: BrokerClock) -> None:
        self._place = Partition(topic, PARTITION)
        self._reader = kafka.reader(CLIENT, group=group, options=READ, log=log)
        self._producer = kafka.producer(CLIENT, timedelta(seconds=timeout), WRITE)
        self._broker_clock = broker_clock

    def send(self, announcement: Announcement) -> None:
        """See `Announcements.send`."""
        self._write(announcement).add_done_callback(_log_failure)

    async def run(self, receive: Callable[[Sequence[Announcement]], None]) -> None:
        """See `Announcements.run`."""
        position: int | None = None
        try:
            while True:
                try:
                    position = await self._first() if position is None else position
                    async for records in self._reader.read({self._place: EndlessRange(position)}):
                        if records:
                            position = records[-1].offset + 1
                            self._broker_clock.note(records[-1].timestamp_ms)
                        if received := [one for record in records if (one := _announcement(record)) is not None]:
                            receive(received)
                except TopicReadError as error:
                    _log_error(error)
                    await asyncio.sleep(PAUSE_S)
        finally:
            await self._close()

    async def leave(self, announcement: Announcement) -> None:
        """See `Announcements.leave`."""
        tombstone = Output(self._place.topic, announcement.instance.encode(), None, PARTITION)
        with suppress(TimeoutError, DeliveryFailedError):
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await self._write(announcement, tombstone)
        await self._producer.close()

    def _write(self, announcement: Announcement, *more: Output) -> asyncio.Future[Sequence[int]]:
        own = Output(self._place.topic, announcement.instance.encode(), announcement.encode(), PARTITION)
        return asyncio.ensure_future(self._producer.send([own, *more]))

    async def _first(self) -> int:
        """Return the offset of the first announcement to read. Raises TopicReadError."""
        start, end = (await self._reader.bounds([self._place]))[self._place]
        return max(start, end - INITIAL_RECORDS)

    async def _close(self) -> None:
        """Close the reader, or give up: while the broker is down that takes long, and its effect is not needed."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._reader.close()
        except TimeoutError:
            log.warning(
                "a client was not closed, because the broker does not respond", extra={"facts": {"client": NAME}}
            )


def _announcement(record: Record) -> Announcement | None:
    if record.value is None:
        return None
    try:
        return Announcement.model_validate_json(record.value)
    except ValidationError as refused:
        log.warning("an announcement is invalid", extra={"facts": {"detail": str(refused)}})
        return None


def _log_failure(written: asyncio.Future[Sequence[int]]) -> None:
    if not written.cancelled() and isinstance(error := written.exception(), DeliveryFailedError):
        _log_error(error)


def _log_error(error: KafkaOperationError) -> None:
    log.warning("kafka", extra={"facts": {"client": CLIENT, "code": error.code, "detail": error.detail}})
