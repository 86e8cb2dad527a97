"""Writes records to Kafka from an event loop, and waits for their acknowledgements."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from typing_extensions import override

from services.runtime.kafka.errors import delivery_failed
from services.runtime.kafka.interfaces import Producer
from services.runtime.kafka.options import create_producer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka import Message

    from services.runtime.errors import DeliveryFailedError
    from services.runtime.kafka.options import Options
    from services.runtime.kafka.values import Output

log = logging.getLogger(__name__)

FULL_WAIT_S = 0.01
FLUSH_S = 5.0
POLL_S = 0.1
ROOM_S = 1.0
"""The time for which records that may be dropped wait for room in the client."""
DURABLE = {"acks": "all", "linger.ms": 1}
FOREVER_MS = 0


class KafkaProducer(Producer):
    """A synchronous producer with a polling thread: the client's own AIOProducer is far slower.

    An event loop creates it. With `drop_after`, it drops records for which the client has no room within a second, and
    those that are not acknowledged in that time. Without it records wait while the broker is down: backpressure must
    bound their number. Without a `log` the client is silent.
    """

    def __init__(
        self,
        client: Options,
        name: str,
        drop_after: timedelta | None = None,
        options: Options | None = None,
        log: logging.Logger | None = log,
    ) -> None:
        own = {**DURABLE, **(options or {}), **message_timeout(drop_after)}
        self._producer = create_producer(client, name, own, log)
        self._drops = drop_after is not None
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Delivery] = deque()
        self._complete: deque[_Delivery] = deque()
        self._is_scheduled = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="producer", daemon=True)
        self._thread.start()

    @override
    def send(self, outputs: Sequence[Output]) -> asyncio.Future[Sequence[int]]:
        delivery = _Delivery(outputs, self._loop.create_future(), self._loop.time() + ROOM_S)
        if self._waiting or not self._is_produced(delivery):
            self._waiting.append(delivery)
            if len(self._waiting) == 1:
                self._loop.call_later(FULL_WAIT_S, self._produce_waiting)
        return delivery.future

    @override
    def drop_unsent(self) -> None:
        self._producer.purge(in_queue=True, in_flight=False, blocking=False)

    @override
    async def close(self) -> None:
        """Wait some seconds for the records in flight, unless they may be dropped, and close the client."""
        if not self._drops:
            await asyncio.to_thread(self._producer.flush, FLUSH_S)
        self._stopped.set()
        await asyncio.to_thread(self._thread.join)

    def _produce_waiting(self) -> None:
        """Produce what waits for room in the client, in the order of the calls. The client does not report room."""
        while self._waiting:
            first = self._waiting[0]
            if self._drops and self._loop.time() >= first.room_until:  # the process may have been frozen meanwhile
                first.drop_rest()
            elif not self._is_produced(first):
                self._loop.call_later(FULL_WAIT_S, self._produce_waiting)
                return
            self._waiting.popleft()

    def _is_produced(self, delivery: _Delivery) -> bool:
        """Produce the next records of a delivery; return False if the client has no room for all of them."""
        outputs, future = delivery.outputs, delivery.future
        while delivery.produced < len(outputs) and not future.cancelled():
            topic, key, value, partition, timestamp_ms, headers = outputs[delivery.produced]
            try:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    on_delivery=partial(self._delivered, delivery, delivery.produced),
                    timestamp=timestamp_ms,
                    headers=list(headers) or None,
                )
            except BufferError:
                return False
            except KafkaException as error:
                delivery.refuse(error.args[0])
            delivery.produced += 1
        return True

    def _poll(self) -> None:
        while not self._stopped.is_set():
            self._producer.poll(POLL_S)

    def _delivered(self, delivery: _Delivery, index: int, error: KafkaError | None, message: Message) -> None:
        """Called in the thread. It wakes the event loop once for many deliveries, which clears the flag first."""
        delivery.acknowledge(index, error, message)
        if delivery.is_complete:
            self._complete.append(delivery)
            if not self._is_scheduled:
                self._is_scheduled = True
                self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        self._is_scheduled = False
        while self._complete:
            self._complete.popleft().settle()


class _Delivery:
    """The records of one call. Its future is done when each of them is acknowledged, dropped or refused.

    The client's thread acknowledges records, and the event loop refuses them: each has a counter of its own.
    """

    __slots__ = ("_acknowledged", "_error", "_offsets", "_refused", "future", "outputs", "produced", "room_until")

    def __init__(self, outputs: Sequence[Output], future: asyncio.Future[Sequence[int]], room_until: float) -> None:
        self.outputs = outputs
        self.future = future
        self.room_until = room_until
        """The time of the event loop until which it may wait for room."""
        self.produced = self._acknowledged = self._refused = 0
        self._offsets = [0] * len(outputs)
        self._error: DeliveryFailedError | None = None
        if not outputs:
            self.settle()

    @property
    def is_complete(self) -> bool:
        """Whether all records are acknowledged, dropped or refused."""
        return self._acknowledged + self._refused == len(self.outputs)

    def acknowledge(self, index: int, error: KafkaError | None, message: Message) -> None:
        """Note the offset of a record, or that the client has dropped it. Called in the thread."""
        if error is None:
            self._offsets[index] = message.offset() or 0
        else:
            self._fail(message.topic() or "", error)
        self._acknowledged += 1

    def refuse(self, error: KafkaError) -> None:
        """Note that the client does not take the next record."""
        self._fail(self.outputs[self.produced].topic, error)
        self._refused += 1
        if self.is_complete:
            self.settle()

    def drop_rest(self) -> None:
        """Drop the records that are not produced yet."""
        self._fail(self.outputs[self.produced].topic, KafkaError(KafkaError._MSG_TIMED_OUT))  # noqa: SLF001  # a public name
        self._refused += len(self.outputs) - self.produced
        self.produced = len(self.outputs)
        if self.is_complete:
            self.settle()

    def settle(self) -> None:
        """Set the result of the future."""
        if self.future.done():
            return
        if self._error is None:
            self.future.set_result(self._offsets)
        else:
            self.future.set_exception(self._error)

    def _fail(self, topic: str, error: KafkaError) -> None:
        """Note an error. A dropped record is reported only if no other one failed."""
        if self._error is None or self._error.is_dropped:
            self._error = delivery_failed(topic, error)


def message_timeout(drop_after: timedelta | None) -> Mapping[str, int]:
    """Return the option of the time after which a client drops a record."""
    milliseconds = FOREVER_MS if drop_after is None else max(1, drop_after // timedelta(milliseconds=1))
    return {"message.timeout.ms": milliseconds}
