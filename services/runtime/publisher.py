"""Writes records to Kafka, and waits for their acknowledgement."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, Message

from services.runtime.errors import DeliveryFailedError, DeliveryUnknownError
from services.runtime.kafka_clients import create_producer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    Delivered = Callable[[KafkaError | None, Message], None]

log = logging.getLogger(__name__)

FULL_WAIT_S = 0.01
FLUSH_S = 5.0
POLL_S = 0.1
ROOM_S = 1.0
"""The time for which a batch waits for room in the client."""
DURABLE = {"acks": "all", "linger.ms": 1}
UNKNOWN = {"_MSG_TIMED_OUT", "_TIMED_OUT", "_PURGE_QUEUE"}
BY_KEY = -1
"""The partition of a record that is selected by its key."""


class OutputRecord(NamedTuple):
    """A record to be written."""

    topic: str
    key: bytes | None
    value: bytes
    partition: int = BY_KEY


class Publisher(Protocol):
    """The producer of a worker."""

    async def publish(self, topic: str, key: bytes | None, value: bytes, timestamp: int = 0) -> None:
        """Write a record, with a time in milliseconds (0 is now), and wait until all in-sync replicas have it.

        Records of one key are written in the order of the calls. Raises DeliveryFailedError.
        """


class BatchPublisher(Protocol):
    """The producer of a worker that writes batches, and drops what it cannot send soon."""

    async def publish_all(self, outputs: Sequence[OutputRecord]) -> None:
        """Write records, and wait until all in-sync replicas have each of them.

        Raises DeliveryUnknownError if some of them were dropped, when it is known of each, and DeliveryFailedError.
        """

    def drop_unsent(self) -> None:
        """Drop the records that are not sent yet: their writers get a DeliveryUnknownError."""


class KafkaPublisher:
    """A synchronous producer with a polling thread: the client's own AIOProducer is far slower.

    While the broker is down records wait without a time limit: backpressure bounds their number. With `drop_after`, a
    record that is not sent by then is dropped.
    """

    def __init__(
        self,
        client: Mapping[str, str | int | float | bool],
        name: str,
        loop: asyncio.AbstractEventLoop,
        drop_after: timedelta | None = None,
    ) -> None:
        timeout_ms = 0 if drop_after is None else int(drop_after.total_seconds() * 1000)
        self._producer = create_producer(client, name, {**DURABLE, "message.timeout.ms": timeout_ms}, log)
        self._drops = drop_after is not None
        self._loop = loop
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._settled: deque[tuple[asyncio.Future[None], KafkaError | None, str]] = deque()
        self._scheduled = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="publisher", daemon=True)
        self._thread.start()

    async def publish(self, topic: str, key: bytes | None, value: bytes, timestamp: int = 0) -> None:
        """See `Publisher.publish`."""
        future: asyncio.Future[None] = self._loop.create_future()
        delivered = partial(self._delivered, future, topic)
        if self._waiting or not self._produced(topic, key, value, timestamp, delivered):
            await self._produced_in_turn(topic, key, value, timestamp, delivered)
        await future

    async def publish_all(self, outputs: Sequence[OutputRecord]) -> None:
        """See `BatchPublisher.publish_all`."""
        if outputs:
            batch = _Batch(len(outputs), self._loop)
            for number, one in enumerate(outputs):
                if not await self._has_room(one, batch):
                    batch.drop(len(outputs) - number)
                    break
            await batch.done

    def drop_unsent(self) -> None:
        """See `BatchPublisher.drop_unsent`."""
        self._producer.purge(in_queue=True, in_flight=False, blocking=False)

    async def _has_room(self, one: OutputRecord, batch: _Batch) -> bool:
        """Produce a record; return False if the client has no room for too long. Raises DeliveryFailedError."""
        until = self._loop.time() + ROOM_S
        while True:
            try:
                self._producer.produce(one.topic, one.value, one.key, one.partition, on_delivery=batch.delivered)
            except BufferError:
                if self._loop.time() >= until:
                    return False
                await asyncio.sleep(FULL_WAIT_S)
            except KafkaException as error:
                raise failed(one.topic, error.args[0]) from error
            else:
                return True

    async def _produced_in_turn(
        self, topic: str, key: bytes | None, value: bytes, timestamp: int, delivered: Delivered
    ) -> None:
        """Wait for room in the client, in the order of the calls."""
        self._waiting += 1
        try:
            async with self._turn:
                while not self._produced(topic, key, value, timestamp, delivered):  # noqa: ASYNC110 (the client does not report room)
                    await asyncio.sleep(FULL_WAIT_S)
        finally:
            self._waiting -= 1

    def _produced(self, topic: str, key: bytes | None, value: bytes, timestamp: int, delivered: Delivered) -> bool:
        """Produce a record; return False if the client has no room. Raises DeliveryFailedError."""
        try:
            self._producer.produce(topic, value=value, key=key, timestamp=timestamp, on_delivery=delivered)
        except BufferError:
            return False
        except KafkaException as error:
            raise failed(topic, error.args[0]) from error
        return True

    async def close(self) -> None:
        """Wait some seconds for the records in flight, unless they may be dropped, and stop the thread."""
        if not self._drops:
            await asyncio.to_thread(self._producer.flush, FLUSH_S)
        self._stopped.set()
        await asyncio.to_thread(self._thread.join)

    def _poll(self) -> None:
        while not self._stopped.is_set():
            self._producer.poll(POLL_S)

    def _delivered(self, future: asyncio.Future[None], topic: str, error: KafkaError | None, _: Message) -> None:
        """Called in the thread. It wakes the event loop once for many records, which clears the flag first."""
        self._settled.append((future, error, topic))
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        self._scheduled = False
        while self._settled:
            future, error, topic = self._settled.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(failed(topic, error))


class _Batch:
    """The outcome of records that are written together. Their number is counted down in the producer's thread."""

    def __init__(self, count: int, loop: asyncio.AbstractEventLoop) -> None:
        self.done: asyncio.Future[None] = loop.create_future()
        self._left = count
        self._loop = loop
        self._lock = threading.Lock()
        self._error: DeliveryFailedError | DeliveryUnknownError | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Note the outcome of a record. Called in the thread."""
        if error is not None:
            topic = message.topic() or ""
            is_unknown = error.name() in UNKNOWN
            self._note(1, DeliveryUnknownError(topic) if is_unknown else failed(topic, error))
        else:
            self._note(1)

    def drop(self, count: int) -> None:
        """Note that records were not produced."""
        self._note(count, DeliveryUnknownError(""))

    def _note(self, count: int, error: DeliveryFailedError | DeliveryUnknownError | None = None) -> None:
        with self._lock:
            self._left -= count
            if error is not None and not isinstance(self._error, DeliveryFailedError):
                self._error = error
            if not self._left:
                self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if self.done.done():
            return
        if self._error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(self._error)


def failed(topic: str, error: KafkaError) -> DeliveryFailedError:
    """Convert a Kafka error."""
    return DeliveryFailedError(topic, error.name(), error.str())
