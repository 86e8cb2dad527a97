"""Writes records to Kafka, and waits for their acknowledgement."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import KafkaError, KafkaException, Message

from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.options import create_producer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Delivered = Callable[[KafkaError | None, Message], None]

log = logging.getLogger(__name__)

FULL_WAIT_S = 0.01
FLUSH_S = 5.0
POLL_S = 0.1
DURABLE = {"acks": "all", "linger.ms": 1, "message.timeout.ms": 0}


class Publisher(Protocol):
    """The producer of a worker."""

    async def publish(self, topic: str, key: bytes | None, value: bytes, timestamp: int = 0) -> None:
        """Write a record, with a time in milliseconds (0 is now), and wait until all in-sync replicas have it.

        Records of one key are written in the order of the calls. Raises DeliveryFailedError.
        """


class KafkaPublisher:
    """A synchronous producer with a polling thread: the client's own AIOProducer is far slower.

    While the broker is down records wait without a time limit: backpressure bounds their number.
    """

    def __init__(
        self, client: Mapping[str, str | int | float | bool], name: str, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._producer = create_producer(client, name, DURABLE, log)
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
        """Wait some seconds for the records in flight, and stop the thread."""
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


def failed(topic: str, error: KafkaError) -> DeliveryFailedError:
    """Convert a Kafka error."""
    return DeliveryFailedError(topic, error.name(), error.str())
